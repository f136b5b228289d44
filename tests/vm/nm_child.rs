//! A P_Key child that is in ibprov's configuration, imported from the profile of
//! NetworkManager, which creates it too: whoever comes second takes it as it is.

use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("nm_child", name)
}

#[test]
#[ignore = "two boots of one machine with NetworkManager"]
fn the_child_is_there_in_each_boot_with_its_address() {
    for round in ["first", "second"] {
        assert_eq!(scene(&format!("{round} ib0.8001")), "0x8001 10.2.0.1/24 up", "{round}");
        let active = boot("nm_child").file(&format!("{round}.active"));
        assert!(active.contains("storage:ib0.8001:activated"), "{round}: {active}");
    }
    let guest = boot("nm_child");
    assert_eq!(scene("config"), "0", "{}", guest.file("config"));
    assert_eq!(scene("second ib0"), "0 10.1.0.1/24", "{}", guest.file("second.iface"));
    assert_eq!(scene("status"), "0", "{}", guest.file("status"));
    // Nothing is left to do.
    assert_eq!(scene("again"), "0", "{}", guest.file("again"));
}

#[test]
#[ignore = "two boots of one machine with NetworkManager"]
fn the_profile_is_activated_on_a_child_that_ibprov_created() {
    let guest = boot("nm_child");
    assert_eq!(scene("by-ibprov"), "0", "{}", guest.file("by-ibprov.stderr"));
    assert_eq!(scene("by-nm"), "0", "{}", guest.file("by-nm.stderr"));
    assert_eq!(scene("address"), "0");
    assert_eq!(scene("status-again"), "0", "{}", guest.file("status-again"));
}
