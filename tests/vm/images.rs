//! The root file system is mounted by an initramfs of the distribution's own builders, with
//! ibprov's part in it: netdevs are made there, and bear their final names from then on.

use crate::machine::{self, boot};

fn assert_names_of_the_image_stay(scenario: &str) {
    let guest = boot(scenario);
    guest.assert_success();
    let early = guest.file("early-links");
    for name in ["fabric0", "storage0"] {
        assert!(early.lines().any(|line| line.starts_with(name)), "{name}: {early}");
    }
    let scene = |name: &str| machine::scene(scenario, name);
    assert_eq!(scene("fabric0"), "0001:01:00.0 active 10.0.1.1/24");
    assert_eq!(scene("storage0").trim(), "0001:02:00.0 active");
    assert_eq!(scene("networking"), "success");
    assert_eq!(scene("status"), "0", "{}", guest.file("status"));
    assert_eq!(scene("initrd"), "0", "{}", guest.file("initrd"));
    let report = guest.boot_json();
    assert_eq!(report["verdict"], "ready", "{report:#}");
}

#[test]
#[ignore = "dracut builds an image, and another init runs before systemd"]
fn names_of_an_image_of_dracut_stay() {
    assert_names_of_the_image_stay("image_dracut");
}

#[test]
#[ignore = "mkinitramfs builds an image, and another init runs before systemd"]
fn names_of_an_image_of_initramfs_tools_stay() {
    assert_names_of_the_image_stay("image_initramfs_tools");
}

/// rdma-core's rules and units work in the initramfs too, and are stopped in the middle of it.
#[test]
#[ignore = "dracut builds an image, and another init runs before systemd"]
fn an_image_with_rdma_core_s_part_may_end_while_drivers_are_at_work() {
    let guest = boot("image_rdma");
    guest.assert_success();
    let scene = |name: &str| machine::scene("image_rdma", name);
    for (name, pci) in [("fabric0", "0001:01:00.0"), ("storage0", "0001:02:00.0")] {
        let rdma = format!("ib{}", if pci.contains("01:00") { "P1p1s0" } else { "P1p2s0" });
        assert_eq!(scene(name), format!("{pci} {rdma} active"), "{}", guest.file("dmesg"));
    }
    assert_eq!(scene("networking"), "success");
    assert_eq!(scene("status"), "0", "{}", guest.file("status"));
    assert_eq!(scene("check"), "0", "{}", guest.file("check"));
    assert_eq!(scene("initrd"), "0", "{}", guest.file("initrd"));
    let report = guest.boot_json();
    assert_eq!(report["verdict"], "ready", "{report:#}");
}
