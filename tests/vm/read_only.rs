//! A node whose root file system is an image: what a boot needs is written below /run.

use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("read_only", name)
}

#[test]
fn a_boot_needs_nothing_that_can_be_written() {
    for (what, is) in [("root", "ro"), ("var", "tmpfs")] {
        assert_eq!(scene(what), is, "{what}");
    }
    let guest = boot("read_only");
    assert_eq!(guest.boot_json()["verdict"], "ready", "{:#}", guest.boot_json());
    for verb in ["status", "plan", "apply"] {
        assert_eq!(scene(verb), "0", "{verb}: {}", guest.file(verb));
    }
}

/// What is to be kept cannot be, and that is said.
#[test]
fn what_cannot_be_kept_is_told() {
    let guest = boot("read_only");
    let said = guest.file("pin");
    assert_eq!(scene("pin"), "2", "{said}");
    assert!(said.contains("EROFS") && said.contains("guid-pins.toml"), "{said}");
}
