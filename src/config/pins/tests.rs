use super::*;
use proptest::prelude::*;

fn machine(product_uuid: Option<&str>, board_serial: Option<&str>) -> Machine {
    Machine::of(product_uuid, board_serial)
}

fn why(text: &str) -> String {
    Pins::parse(text).expect_err(text)
}

#[test]
fn a_file_is_read_back_and_explains_itself() {
    let pins = Pins {
        host: Some("c12.example".to_owned()),
        machine: machine(Some("4c4c4544-0043-3510-8052-b4c04f4a3733"), Some("CN7475153B0B16")),
        pfs: vec![PinnedPf {
            which: PfSelector::Pci("0000:4b:00.0".parse().expect("address")),
            pci: "0000:4b:00.0".parse().expect("address"),
            node_guid: Some(Guid::new(0xb859_9f03_0012_a480)),
            port_guids: vec![Guid::new(0xb859_9f03_0012_a480)],
            vfs: vec![
                [0x0200_000c_0000_0000, 0x0200_000c_0001_0000, 0x0200_000c_0002_0000]
                    .map(|guid| Some(Guid::new(guid))),
                [Some(Guid::new(2)), Some(Guid::new(3)), None],
            ],
        }],
    };
    expect_test::expect![[r##"
        # The GUIDs of the VFs of this host, written by `ibprov plan --pin`.
        # They take precedence over ibprov.toml: see ibprov-plan(8).
        # machine: digests of DMI's product UUID and board serial number, which a clone lacks;
        # config: how ibprov.toml names the PF; pci, node-guid, port-guids: which adapter
        # it was then; vfs: node GUID and port GUIDs of each VF, from VF 0 on.
        schema = 1
        host = "c12.example"
        machine = { product-uuid = "baa2002367a0dbf1", board-serial = "de48b68a760af56c" }

        [[pf]]
        config = { pci = "0000:4b:00.0" }
        pci = "0000:4b:00.0"
        node-guid = "b859:9f03:0012:a480"
        port-guids = ["b859:9f03:0012:a480"]
        vfs = [
            ["0200:000c:0000:0000", "0200:000c:0001:0000", "0200:000c:0002:0000"], # VF 0
            ["0000:0000:0000:0002", "0000:0000:0000:0003"], # VF 1
        ]
    "##]]
    .assert_eq(&pins.to_toml());
    assert_eq!(Pins::parse(&pins.to_toml()), Ok(pins));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    assert_eq!(why(""), "line 1: missing field `schema`");
    assert_eq!(
        why("schema = 2\n"),
        "the file has schema 2, but this ibprov reads only schema 1: a newer version wrote the file"
    );
    assert!(why("schema = 1\n[[pf]\n").starts_with("line 2: "), "{}", why("schema = 1\n[[pf]\n"));
    assert!(why("schema = 1\nvf = 1\n").starts_with("line 2: unknown field `vf`"));
    let pf = "schema = 1\n[[pf]]\nconfig = { pci = \"4b:00.0\" }\npci = \"0000:4b:00.0\"\n";
    assert!(why(pf).starts_with("pf 1: \"4b:00.0\" is not a PCI address"), "{}", why(pf));
    let pf = pf.replace("\"4b:00.0\"", "\"0000:4b:00.0\"");
    let vfs = format!("{pf}vfs = [[\"12\", \"0200:0000:0000:0000\"]]\n");
    assert!(why(&vfs).starts_with("pf 1: \"12\" is not a GUID"), "{}", why(&vfs));
    assert!(Pins::parse(&pf).is_ok(), "no VFs is a plan too");
    let one = format!("{pf}vfs = [[\"0200:0000:0000:0001\"]]\n");
    assert_eq!(why(&one), "pf 1: expected 2 or 3 GUIDs for a VF, found 1");
    let machine = why("schema = 1\nmachine = { product-uuid = \"\\u001b\" }\n");
    assert!(machine.starts_with("machine: ") && !machine.contains('\u{1b}'), "{machine}");
}

fn guid() -> impl Strategy<Value = Guid> {
    any::<u64>().prop_map(Guid::new)
}

fn selector() -> impl Strategy<Value = PfSelector> {
    prop_oneof![
        (0..32_u8, 0..8_u8).prop_map(|(device, function)| {
            let text = format!("0000:4b:{device:02x}.{function}");
            PfSelector::Pci(text.parse().expect("address"))
        }),
        guid().prop_map(PfSelector::PortGuid),
        guid().prop_map(PfSelector::NodeGuid),
        "[a-z][a-z0-9_.-]{0,12}".prop_map(|n| PfSelector::Rdma(n.parse().expect("name"))),
    ]
}

fn pinned() -> impl Strategy<Value = PinnedPf> {
    let vf = (guid(), guid(), prop::option::of(guid()));
    let vf = vf.prop_map(|(node, port, port2)| [Some(node), Some(port), port2]);
    let vfs = prop::collection::vec(vf, 0..4);
    let cards = (prop::option::of(guid()), prop::collection::vec(guid(), 0..3));
    (selector(), cards, vfs).prop_map(|(which, (node_guid, port_guids), vfs)| PinnedPf {
        which,
        pci: "0001:00:1f.7".parse().expect("address"),
        node_guid,
        port_guids,
        vfs,
    })
}

proptest! {
    #[test]
    fn any_pins_are_read_back(
        host in prop::option::of("[^\u{7f}]{0,20}"),
        uuid in prop::option::of("[0-9a-f]{8}"),
        serial in prop::option::of("[A-Z0-9.]{0,12}"),
        pfs in prop::collection::vec(pinned(), 0..4),
    ) {
        let machine = machine(uuid.as_deref(), serial.as_deref());
        let pins = Pins { host, machine, pfs };
        prop_assert_eq!(Pins::parse(&pins.to_toml()), Ok(pins));
    }

    #[test]
    fn no_text_panics_or_reaches_the_terminal(text in "(?s).{0,80}") {
        if let Err(why) = Pins::parse(&text) {
            prop_assert!(!why.chars().any(char::is_control), "{:?}", why);
        }
    }

    #[test]
    fn no_value_panics_or_reaches_the_terminal(
        key in prop::sample::select(vec!["config", "pci", "node-guid", "port-guids", "vfs", "x\u{1b}"]),
        value in "(\"(?s)[^\"]{0,9}\"|[0-9]{1,25}|\\[\\[\"\\x1b\"\\]\\]|\\{ pci = \"\\u{202e}\" \\}|nan)",
    ) {
        let text = format!("schema = 1\n[[pf]]\n{key} = {value}\n");
        let why = Pins::parse(&text).expect_err("never a whole PF");
        prop_assert!(!why.chars().any(|c| c.is_control() || c == '\u{202e}'), "{:?}", why);
    }
}
