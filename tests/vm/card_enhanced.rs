//! Enhanced IPoIB: the netdev that mlx5_core makes by itself, on the software
//! card (`tests/vm/card`). What the driver sends, refuses and shows is real.

use crate::bed::outcome::Outcome;
use crate::card::assert_sound;
use crate::machine::boot;
use crate::vf_plan::grown;

fn ended(guest: &Outcome, line: &str) {
    assert!(guest.stdout().lines().any(|l| l == line), "no {line:?} in\n{}", guest.stdout());
}

#[test]
#[ignore = "a mode of its own: a minute"]
fn a_node_with_enhanced_ipoib_boots() {
    let guest = boot("card_enhanced");
    guest.assert_success();
    assert_sound(&guest);
    assert_eq!(guest.file("netdevs"), "mlx5_core datagram 00\n".repeat(2));
    assert_eq!(guest.file("networking"), "success\n");
    assert!(guest.file("addr").contains("192.168.77.9/24"), "{}", guest.file("addr"));
    let report = guest.boot_json();
    assert_eq!(report["verdict"], "ready", "{report:#}");
    let status = guest.json("status.json");
    for hca in status["hcas"].as_array().expect("HCAs") {
        let port = &hca["ports"][0];
        assert_eq!(port["state"], "active", "{port:#}");
    }
}

/// The driver has no connected mode; its address says so, and so does ibprov
/// before it tries.
#[test]
#[ignore = "a mode of its own: a minute"]
fn connected_mode_is_refused_where_the_driver_has_none() {
    let guest = boot("card_enhanced");
    assert_eq!(guest.file("raw-mode"), "refused\n");
    ended(&guest, "connected: 3 datagram 2044 ");
    let said = guest.file("connected");
    assert!(
        said.contains("connected mode is configured, but the driver does not support it"),
        "{said}"
    );
    assert!(said.contains("the maximum in datagram mode is 4092"), "{said}");
}

#[test]
#[ignore = "a mode of its own: a minute"]
fn an_mtu_and_a_child_are_had_on_enhanced_ipoib() {
    let guest = boot("card_enhanced");
    ended(&guest, "small: 0 datagram 1500 ");
    // The broadcast group has 2048; the kernel takes the wish and applies that.
    ended(&guest, "large: 0 datagram 2044 ");
    ended(&guest, "child: 0 datagram 2044 ");
    assert!(guest.file("child").contains("8001"), "{}", guest.file("child"));
    ended(&guest, "again: 0 datagram 2044 ");
    assert!(!guest.file("again").contains("8001"), "{}", guest.file("again"));
}

#[test]
#[ignore = "a mode of its own: a minute"]
fn enhanced_and_plain_ipoib_pass_ip_to_each_other() {
    let guest = boot("card_enhanced");
    assert_eq!(guest.file("plain"), "80\n");
    let pings = guest.file("pings");
    let lost = pings.lines().filter(|l| l.contains("packet loss"));
    assert_eq!(lost.filter(|l| l.contains("3 received")).count(), 7, "{pings}\n{}", guest.stdout());
    for way in ["a b", "b a", "a c", "c a"] {
        ended(&guest, &format!("tcp {way}: same"));
    }
    assert_eq!(guest.file("sums"), "wrong sums: 0\n".repeat(3));
    // The kernel sums up itself what does not agree with the card, and says so.
    assert_eq!(guest.file("dmesg").matches("hw csum failure").count(), 0);
}

#[test]
#[ignore = "a mode of its own: a minute"]
fn enhanced_ipoib_goes_over_queues_of_its_own() {
    let guest = boot("card_enhanced");
    let one = grown(&guest, "traffic.before", "traffic.enhanced");
    let two = grown(&guest, "traffic.enhanced", "traffic.mixed");
    let grew = |of: &std::collections::BTreeMap<String, i64>, pci: &str, what: &str| {
        of.get(&format!("ibcard/{pci} {what}")).copied().unwrap_or(0)
    };
    // Three echoes, and three in three fragments each, there and back.
    for pci in ["0001:01:00.0", "0001:02:00.0"] {
        for what in ["tx_enhanced", "rx_enhanced"] {
            assert!(grew(&one, pci, what) >= 12, "{pci} {what}: {one:?}");
        }
    }
    assert!(grew(&two, "0001:01:00.0", "rx_enhanced") >= 12, "{two:?}");
    assert!(grew(&two, "0001:01:00.1", "rx_packet") >= 12, "{two:?}");
    assert_eq!(grew(&two, "0001:01:00.1", "rx_enhanced"), 0, "{two:?}");
}

#[test]
#[ignore = "a mode of its own: a minute"]
fn enhanced_ipoib_is_bound_anew_and_leaves_nothing_on_the_card() {
    let guest = boot("card_enhanced");
    assert!(!guest.stdout().contains("not up"), "{}", guest.stdout());
    for n in 1..=3 {
        assert_eq!(guest.file(&format!("held.{n}")), "", "held after unbind {n}");
    }
}
