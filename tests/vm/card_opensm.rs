//! Debian's opensm on the software card (`tests/vm/card`, knob `sm=real`): subnet
//! manager, drivers and tools are real, ports and switch answer them.

use crate::card::assert_sound;
use crate::machine::boot;

#[test]
fn the_distribution_s_subnet_manager_brings_the_ports_up() {
    let guest = boot("card_opensm");
    guest.assert_success();
    assert_sound(&guest);
    assert!(!guest.stdout().contains("not "), "{}", guest.stdout());
    assert_eq!(guest.file("states.before"), "2 2: INIT\n");
    assert_eq!(guest.file("states.after"), "2 4: ACTIVE\n");
    assert!(guest.file("sminfo").contains("SMINFO_MASTER"), "{}", guest.file("sminfo"));
    // The switch and both cards.
    let fabric = guest.file("fabric");
    let nodes = |kind: &str| fabric.lines().filter(|l| l.starts_with(kind)).count();
    assert_eq!((nodes("Switch"), nodes("Ca")), (1, 2), "{fabric}");
    let pings = guest.file("ping");
    assert!(pings.contains("3 received"), "{pings}\n{}", guest.stdout());
}

#[test]
fn a_port_without_a_subnet_manager_is_told_from_one_with() {
    let guest = boot("card_opensm");
    let port = |name: &str| guest.json(name)["hcas"][1]["ports"][0].clone();
    assert_eq!(port("before.json")["state"], "init");
    assert_eq!(port("after.json")["state"], "active");
    // A management packet over the switch to the other card and back.
    assert!(guest.file("nodeinfo").contains("0x0c42a10300a0b200"), "{}", guest.file("nodeinfo"));
}
