//! `[[interface]]`.

use expect_test::expect;

use super::{bad, good, loaded};
use crate::config::{InterfaceSelector, to_toml};
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
    let several = row("match.pci = [\"0000:18:00.0\", \"0000:40:00.0\"]");
    bad(
        &[&row("match.name = \"ib0\""), &several],
        &expect![[r#"
            error: interface.name is for one port
             --> /etc/0.toml:3:8
              |
            2 | match.name = "ib0"
              |              ----- the present name
            3 | name = "rail0"
              |        ^^^^^^^ the name that is set
              |
              = help: give match.port-guid, or match.pci (and match.port, if the adapter has several ports)

            error: interface.name is for one port
             --> /etc/1.toml:3:8
              |
            2 | match.pci = ["0000:18:00.0", "0000:40:00.0"]
              |                              -------------- and more than one port
            3 | name = "rail0"
              |        ^^^^^^^ one name
              |
              = help: give match.port-guid, or match.pci (and match.port, if the adapter has several ports)

            the configuration is not valid: 2 errors"#]],
    );
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
    // The MTU of its parent, a P_Key twice, none, a name twice, and one for many.
    let bad_ones = format!(
        "{row}[[interface.partition]]\npkey = \"0x8001\"\nmode = \"datagram\"\n{child}[[interface.partition]]\nname = \"lnet0\"\n[[interface]]\nmatch.name = \"ib*\"\n[[interface.partition]]\npkey = \"0x8003\"\nname = \"x\"\n[[interface]]\nmatch.port-guid = \"0002:c903:000e:8acd\"\nname = \"lnet0\"\n"
    );
    bad(
        &[&bad_ones],
        &expect![[r#"
            error: the MTU 65520 is too large for datagram mode
             --> /etc/0.toml:4:7
              |
            4 | mtu = 65520
              |       ^^^^^ at most 4092 is possible
            5 | [[interface.partition]]
            6 | pkey = "0x8001"
            7 | mode = "datagram"
              |        ---------- in this mode
              |
              = help: the maximum is 4092 in datagram mode (2044 on a link of 2048) and 65520 in connected mode

            error: P_Key 0x8001 is listed twice for one interface
             --> /etc/0.toml:9:8
              |
            6 | pkey = "0x8001"
              |        -------- and first here
            7 | mode = "datagram"
            8 | [[interface.partition]]
            9 | pkey = "0x0001"
              |        ^^^^^^^^ here
              |
              = help: keep one of the two; 0x0001 is 0x8001, since IPoIB is always a full member

            error: interface.partition has no P_Key
              --> /etc/0.toml:14:1
               |
            14 | [[interface.partition]]
               | ^^^^^^^^^^^^^^^^^^^^^^^ names none
               |
               = help: add, for example, `pkey = "0x8001"`

            error: interface.partition.name is for one interface
              --> /etc/0.toml:20:8
               |
            16 | [[interface]]
               | ------------- and more than one interface, or a pattern
            17 | match.name = "ib*"
            18 | [[interface.partition]]
            19 | pkey = "0x8003"
            20 | name = "x"
               |        ^^^ one name
               |
               = help: remove it: children are then named PARENT.8001

            error: two interfaces have the same name
              --> /etc/0.toml:23:8
               |
            23 | name = "lnet0"
               |        ^^^^^^^ here
               |
              ::: /etc/0.toml:10:8
               |
            10 | name = "lnet0"
               |        ------- and here
               |
               = help: keep one of the two

            the configuration is not valid: 5 errors"#]],
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
fn what_is_shown_can_be_read_again() {
    let text = "[[interface]]\nmatch.name = \"ib*\"\npartition = [{ pkey = \"0x8001\" }]\numcast = false\n";
    let shown = to_toml(&loaded(&[text]).expect("good").effective());
    let (mut again, mut before) = (good(&[&shown]), good(&[text]));
    for rule in again.interfaces.iter_mut().chain(&mut before.interfaces) {
        rule.origin.clear();
    }
    assert_eq!(again, before, "{shown}");
    assert_eq!(good(&[&to_toml(&loaded(&[]).expect("good").effective())]), good(&[]));
}

#[test]
fn an_empty_list_takes_interfaces_away() {
    assert_eq!(
        good(&["[[interface]]\nmatch.name = \"*\"\nmtu = 2044\n", "interface = []"]),
        good(&[])
    );
}

#[test]
fn every_way_to_go_wrong_is_shown() {
    bad(
        &[
            "[[interface]]\nmtu = 2044\n[[interface]]\nmatch.name = \"ib0\"\nmatch.pci = \"0000:4b:00.0\"\n[[interface]]\nmatch.name = \"ib0\"\nmatch.port = 1\n",
        ],
        &expect![[r#"
            error: interface does not select an interface
             --> /etc/0.toml:1:1
              |
            1 | [[interface]]
              | ^^^^^^^^^^^^^ names none
              |
              = help: give exactly one of match.name, match.port-guid, match.pci; match.name = "*" means every one

            error: interface selects its interface in more than one way
             --> /etc/0.toml:4:14
              |
            4 | match.name = "ib0"
              |              ^^^^^ one way
            5 | match.pci = "0000:4b:00.0"
              |             -------------- and another
              |
              = help: keep exactly one of match.name, match.port-guid, match.pci

            error: match.port has no meaning without match.pci
             --> /etc/0.toml:8:14
              |
            7 | match.name = "ib0"
              |              ----- does not name an adapter
            8 | match.port = 1
              |              ^ which port of an adapter
              |
              = help: leave it out

            the configuration is not valid: 3 errors"#]],
    );
    bad(
        &["[[interface]]\nmatch.name = \"*\"\nmode = \"datagram\"\nmtu = 65520\nname = \"ib0\"\n"],
        &expect![[r#"
            error: the MTU 65520 is too large for datagram mode
             --> /etc/0.toml:4:7
              |
            3 | mode = "datagram"
              |        ---------- in this mode
            4 | mtu = 65520
              |       ^^^^^ at most 4092 is possible
              |
              = help: the maximum is 4092 in datagram mode (2044 on a link of 2048) and 65520 in connected mode

            error: interface.name is for one port
             --> /etc/0.toml:5:8
              |
            2 | match.name = "*"
              |              --- the present name
            3 | mode = "datagram"
            4 | mtu = 65520
            5 | name = "ib0"
              |        ^^^^^ the name that is set
              |
              = help: give match.port-guid, or match.pci (and match.port, if the adapter has several ports)

            the configuration is not valid: 2 errors"#]],
    );
    bad(
        &[
            "[[interface]]\nmatch.name = \"ib 0\"\nmode = \"cm\"\nmtu = 9\npartition = [{ pkey = \"0x8000\" }, { pkey = \"8001\" }]\n",
        ],
        &expect![[r#"
            error: bad value for interface.match.name
             --> /etc/0.toml:2:14
              |
            2 | match.name = "ib 0"
              |              ^^^^^^ "ib 0" is not a name pattern: no network device has '/', ':' or blanks in its name

            error: bad value for interface.mode
             --> /etc/0.toml:3:8
              |
            3 | mode = "cm"
              |        ^^^^ "cm" is not a transport mode: expected "datagram" or "connected"

            error: bad value for interface.mtu
             --> /etc/0.toml:4:7
              |
            4 | mtu = 9
              |       ^ 9 is out of range: expected 72 to 65520

            error: bad value for interface.partition.pkey
             --> /etc/0.toml:5:23
              |
            5 | partition = [{ pkey = "0x8000" }, { pkey = "8001" }]
              |                       ^^^^^^^^ "0x8000" is not a P_Key: expected 0x and four hex digits, 0x8001 to 0xffff (0x0001 is 0x8001: IPoIB is always a full member)

            error: bad value for interface.partition.pkey
             --> /etc/0.toml:5:44
              |
            5 | partition = [{ pkey = "0x8000" }, { pkey = "8001" }]
              |                                            ^^^^^^ "8001" is not a P_Key: expected 0x and four hex digits, 0x8001 to 0xffff (0x0001 is 0x8001: IPoIB is always a full member)

            the configuration is not valid: 5 errors"#]],
    );
    bad(
        &["[[interface]]\nmatch.name = \"*\"\npkeys = \"0x8001\"\n"],
        &expect![[r#"
            error: interface.pkeys was renamed to interface.partition
             --> /etc/0.toml:3:1
              |
            3 | pkeys = "0x8001"
              | ^^^^^ write interface.partition
              |
              = help: write [[interface.partition]] below, once for each, with `pkey = "0x8001"`

            the configuration is not valid: 1 error"#]],
    );
    bad(
        &[
            "[[interface]]\nmatch.port-guid = \"0002:c903:000e:8acd\"\nname = \"ib0\"\n",
            "[[interface]]\nmatch.port-guid = \"0002:c903:000e:8ace\"\nname = \"ib0\"\n",
        ],
        &expect![[r#"
            error: two interfaces have the same name
             --> /etc/1.toml:3:8
              |
            3 | name = "ib0"
              |        ^^^^^ here
              |
             ::: /etc/0.toml:3:8
              |
            3 | name = "ib0"
              |        ----- and here
              |
              = help: keep one of the two

            the configuration is not valid: 1 error"#]],
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
