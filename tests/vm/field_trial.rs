//! The trial of `packaging/field-trial.sh` on a node of the vendor's package, from its refusals to
//! the boot after its undo.

use crate::machine::{boot, scene};

/// The exit code of a step, which is checked, and what it said.
fn said(step: &str, code: &str) -> String {
    let text = boot("field_trial").file(step);
    assert_eq!(scene("field_trial", step), code, "{step}: {text}");
    text
}

#[test]
#[ignore = "six boots of one machine take minutes"]
fn nothing_is_begun_on_a_node_that_is_in_use() {
    assert!(said("not-root", "1").contains("not root"));
    let uses = said("in-use", "1");
    for of in [
        "a TCP connection from 10.0.0.1:",
        "a subnet manager: opensm",
        "a virtual machine: qemu-system-x86",
        "a job of Slurm: slurmstepd",
        "slurmd, and Slurm does not say that",
        "kubelet, and Kubernetes does not say that",
    ] {
        assert!(uses.contains(of), "{of}: {uses}");
    }
    assert!(said("wrong-number", "1").contains("not begun: that is not the number"));
    assert!(said("begins", "0").contains("append\nibprov=0 to the line"));
    assert!(said("too-early", "1").contains("has not been rebooted since the last step"));
}

#[test]
#[ignore = "six boots of one machine take minutes"]
fn each_boot_is_measured_and_the_undo_leaves_nothing() {
    let installs = said("installs", "0");
    for of in [
        "boot without ibprov: Linux ",
        "ib0: seen by udev at ",
        "[[port]]\npci = \"0001:01:00.0\"",
        "migrated; it takes effect at the next boot",
        "What the next boot would do:",
    ] {
        assert!(installs.contains(of), "{of}: {installs}");
    }
    let first = said("first", "0");
    let lacking = "NOT ACTIVE, and active in the boot before ibprov:\n  site.service\n";
    assert!(first.contains(lacking), "{first}");
    for (of, text) in [("first", &first), ("second", &said("second", "0"))] {
        assert!(text.contains("\nready: "), "{of}: {text}");
        assert!(text.contains("\nibprov.service: "), "{of}: {text}");
    }
    let active = "All units that were active in the boot before ibprov are active.";
    assert!(said("second", "0").contains(active));
    let undone = said("undone", "0");
    assert!(undone.contains("The undo is right"), "{undone}");
    assert!(undone.contains(active), "{undone}");
    assert!(undone.contains("boot-2/collect.tar.gz"), "{undone}");
    // What is left is seen.
    let left = said("left", "1");
    assert!(left.contains("THE UNDO IS NOT RIGHT"), "{left}");
    for of in ["> drwxr-xr-x 0 0 /etc/left", "> site.service disabled"] {
        assert!(left.contains(of), "{of}: {left}");
    }
}
