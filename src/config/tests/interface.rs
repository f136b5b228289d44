//! `[[interface]]`.

use super::good;
use crate::config::InterfaceSelector;
use crate::names::Mode;

#[test]
fn each_setting_is_read_and_p_keys_are_full_members() {
    let text = "[[interface]]\nmatch.name = \"ib*\"\nmode = \"connected\"\nmtu = 65520\numcast = true\nreceive-queue = 512\nsend-queue = 128\n\n[[interface]]\nmatch.pci = \"0000:4b:00.0\"\nmatch.port = 2\npartition = [{ pkey = \"0x000a\" }, { pkey = \"0x8001\" }]\n\n[[interface]]\nmatch.port-guid = \"0002:c903:000e:8acd\"\nname = \"ib7\"\n";
    let config = good(&[text, "network.timeout = 5"]);
    assert_eq!(config.network.timeout.as_secs(), 5);
    let [a, b, c] = config.interfaces.as_slice() else { panic!("three: {config:?}") };
    assert_eq!((a.mode, a.mtu, a.umcast), (Some(Mode::Connected), Some(65520), Some(true)));
    assert_eq!((a.receive_queue, a.send_queue), (Some(512), Some(128)));
    let InterfaceSelector::Pci(pci, Some(port)) = &b.which else { panic!("{b:?}") };
    assert_eq!((pci.to_string().as_str(), port.get()), ("0000:4b:00.0", 2));
    let pkeys: Vec<String> = b.partitions.iter().map(|p| p.pkey.to_string()).collect();
    assert_eq!(pkeys, ["0x8001", "0x800a"]);
    assert_eq!((b.mode, b.mtu, b.umcast), (None, None, None), "what is not said is left alone");
    assert_eq!(c.name.as_ref().map(|n| n.as_str()), Some("ib7"));
    assert_eq!(c.origin, "/etc/0.toml:14");
}

#[test]
fn a_name_is_for_one_port() {
    let row = |which: &str| format!("[[interface]]\n{which}\nname = \"rail0\"\n");
    for which in [
        "match.pci = \"0000:18:00.0\"",
        "match.pci = [\"18:00.0\"]\nmatch.port = 2",
        "match.port-guid = \"0002:c903:000e:8acd\"",
    ] {
        assert!(good(&[&row(which)]).interfaces[0].name.is_some(), "{which}");
    }
}

#[test]
fn partitions_have_settings_and_names_of_their_own() {
    let row = "[[interface]]\nmatch.name = \"ib0\"\nmode = \"connected\"\nmtu = 65520\n";
    let child = "[[interface.partition]]\npkey = \"0x0001\"\nname = \"lnet0\"\nmode = \"datagram\"\nmtu = 4092\numcast = true\n";
    let rule = good(&[&format!("{row}{child}")]).interfaces.remove(0);
    let own = &rule.partitions[0];
    let name = own.name.as_ref().map(|name| name.as_str());
    let shown = (own.pkey.to_string(), name, own.mode, own.mtu, own.umcast);
    assert_eq!(
        shown,
        ("0x8001".to_owned(), Some("lnet0"), Some(Mode::Datagram), Some(4092), Some(true))
    );
}

#[test]
fn a_list_matches_each_of_its_items() {
    let text = "[[interface]]\nmatch.pci = [\"0000:18:00.0\", \"0000:40:00.0\"]\nmtu = 4092\n";
    let rules = good(&[text]).interfaces;
    let which: Vec<String> = rules.iter().map(|rule| format!("{:?}", rule.which)).collect();
    assert_eq!(
        which,
        ["Pci(PciAddress(0000:18:00.0), None)", "Pci(PciAddress(0000:40:00.0), None)"]
    );
    assert!(rules.iter().all(|rule| rule.mtu == Some(4092)));
}

#[test]
fn an_empty_list_takes_interfaces_away() {
    assert_eq!(
        good(&["[[interface]]\nmatch.name = \"*\"\nmtu = 2044\n", "interface = []"]),
        good(&[])
    );
}

/// udev substitutes or quotes it, the kernel or udev refuses it, or it is taken in every network
/// namespace.
const NO_NAMES: [&str; 28] = [
    "ib%n",
    "ib$name",
    "ib*",
    "ib?",
    "ib[0]",
    "ib\"x",
    "x\",MODE=\"0777",
    "ib\\",
    "ib'",
    "ib 0",
    "ib\t",
    "ib/0",
    "ib:0",
    "-x",
    ".x",
    "_x",
    ".",
    "..",
    "",
    "köln",
    "ib\u{202e}0",
    "ib\u{200b}",
    "lo",
    "all",
    "default",
    "bonding_masters",
    "7",
    "0x1f",
];

#[test]
fn no_name_is_given_that_udev_or_the_kernel_does_not_take_as_it_is() {
    let quoted = |name: &str| serde_json::Value::from(name).to_string();
    let netdevs = |name: &str| {
        let name = quoted(name);
        [
            format!("[[interface]]\nmatch.pci = \"0000:18:00.0\"\nname = {name}\n"),
            format!(
                "[[interface]]\nmatch.name = \"ib0\"\n[[interface.partition]]\npkey = \"0x8001\"\nname = {name}\n"
            ),
            format!("[[rxe]]\nname = \"rxe0\"\nnetdev = {name}\n"),
            format!(
                "[[pf]]\npci = \"0000:18:00.0\"\nvfs = 1\nguid.template = \"02:00:{{host:16}}:{{pf:8}}:{{kind:8}}:{{vf:16}}\"\nvf-name = {name}\n"
            ),
        ]
    };
    let rdma = |name: &str| {
        let name = quoted(name);
        [
            format!("[[rxe]]\nname = {name}\nnetdev = \"eth1\"\n"),
            format!(
                "[[pf]]\npci = \"0000:18:00.0\"\nvfs = 1\nguid.template = \"02:00:{{host:16}}:{{pf:8}}:{{kind:8}}:{{vf:16}}\"\nvf-rdma-name = {name}\n"
            ),
        ]
    };
    let is_good = |text: &String| super::loaded(&[text]).map_err(|e| e.to_string());
    for name in ["rail0", "ib-storage.7", "ib_0", "0x1g", "lo0"] {
        for text in netdevs(name).iter().chain(&rdma(name)) {
            is_good(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        }
    }
    let mut taken = Vec::new();
    for name in NO_NAMES {
        taken.extend(netdevs(name).into_iter().filter(|text| is_good(text).is_ok()));
    }
    // RDMA devices have no reserved names.
    for name in NO_NAMES.into_iter().filter(|name| {
        !name.starts_with(|c: char| c.is_ascii_alphanumeric())
            || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    }) {
        taken.extend(rdma(name).into_iter().filter(|text| is_good(text).is_ok()));
    }
    assert!(taken.is_empty(), "{}: {taken:#?}", taken.len());
}
