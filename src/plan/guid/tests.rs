use super::*;
use crate::config::pins::Pins;
use crate::config::{Problems, Source};
use crate::names::Guid;
use proptest::prelude::*;

fn guid(text: &str) -> Guid {
    text.parse().expect("GUID")
}

fn pci(text: &str) -> PciAddress {
    text.parse().expect("PCI address")
}

/// Two PFs of 16 VFs, 4b:00.0 and 5e:00.0, on node c12.
fn host() -> PlanHost {
    let function = |address: &str, rdma: &str, guid_text: &str| PlanFunction {
        pci: pci(address),
        hca: true,
        physfn: None,
        rdma: vec![rdma.parse().expect("name")],
        netdev: rdma.replace("mlx5_", "ibs").parse().ok(),
        node_guid: Some(guid(guid_text)),
        port_guids: vec![guid(guid_text)],
        vfs_have_port2: false,
        total_vfs: Some(16),
        ethernet: false,
        nvswitch: false,
        iommu: true,
    };
    PlanHost {
        name: Some("c12".to_owned()),
        name_is_transient: false,
        overruled_name: None,
        number_file: None,
        machine: Machine::default(),
        functions: vec![
            function("0000:4b:00.0", "mlx5_0", "b859:9f03:0012:a480"),
            function("0000:5e:00.0", "mlx5_1", "b859:9f03:0012:a4a0"),
        ],
    }
}

fn config(text: &str) -> Config {
    let source = Source { path: "/c.toml".to_owned(), text: text.to_owned() };
    match crate::config::resolve(vec![source], Problems::default()) {
        Ok(loaded) => loaded.config,
        Err(problems) => panic!("{problems}"),
    }
}

fn may_pass(finding: &Finding) -> bool {
    finding.code.may_pass()
}

fn is_drift(finding: &Finding) -> bool {
    finding.code.is_drift()
}

fn plan(text: &str, pins: &Pins, host: &PlanHost) -> Vec<Resolved> {
    resolve(&config(text), Ok(pins), host)
}

/// What the VFs of a PF shall be, wherever their GUIDs come from.
fn planned(plan: &Resolved) -> Result<WantedPf, Vec<Finding>> {
    let mut wanted = plan.wanted.clone();
    wanted.iter_mut().flat_map(|pf| &mut pf.vfs).for_each(|vf| vf.guids_from.clear());
    wanted
}

/// The only PF's errors, as text.
fn errors(text: &str, host: &PlanHost) -> Vec<String> {
    let resolved = plan(text, &Pins::default(), host);
    let [one] = resolved.as_slice() else { panic!("one PF") };
    let errors = one.wanted.as_ref().err().cloned().unwrap_or_default();
    errors.iter().map(|told| told.message.clone()).collect()
}

const GOOD: &str = "[[pf]]\npci = \"0000:4b:00.0\"\nvfs = 3\nguid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"\n";

#[test]
fn a_function_that_cannot_have_so_many_vfs_is_told() {
    let said = |change: &dyn Fn(&mut PlanFunction)| {
        let mut host = host();
        change(&mut host.functions[0]);
        let resolved = plan(GOOD, &Pins::default(), &host);
        let errors = resolved[0].wanted.as_ref().expect_err("an error");
        errors.iter().map(Finding::with_remedy).collect::<Vec<_>>().join("\n")
    };
    assert!(said(&|f| f.total_vfs = Some(0)).contains("SRIOV_EN=1 NUM_OF_VFS=3"));
    assert!(said(&|f| f.total_vfs = None).contains("has no SR-IOV capability"));
    assert_eq!(
        said(&|f| f.total_vfs = Some(1)),
        "3 VFs are planned for 0000:4b:00.0, but the firmware allows 1 (sriov_totalvfs). To fix: set it (mlxconfig takes the same arguments), then reboot, or power the host off and on: `mstconfig -d 0000:4b:00.0 set SRIOV_EN=1 NUM_OF_VFS=3`"
    );
    let physfn = || Some(pci("0000:5e:00.0"));
    assert!(said(&|f| f.physfn = physfn()).contains("is a VF of 0000:5e:00.0, not a PF"));
}

#[test]
fn a_template_is_filled_for_every_vf() {
    let text =
        format!("{GOOD}[[pf.vf]]\nindex = 2\ndriver = \"vfio-pci\"\nlink-state = \"down\"\n");
    let resolved = plan(&text, &Pins::default(), &host());
    let wanted = resolved[0].wanted.as_ref().expect("good");
    assert_eq!(wanted.pf, pci("0000:4b:00.0"));
    let shown: Vec<String> = wanted
        .vfs
        .iter()
        .map(|vf| {
            format!("{} {} {} {} {}", vf.index, vf.node_guid, vf.port_guid, vf.policy, vf.driver)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "0 0200:000c:0000:0000 0200:000c:0001:0000 follow host",
            "1 0200:000c:0000:0001 0200:000c:0001:0001 follow host",
            "2 0200:000c:0000:0002 0200:000c:0001:0002 down vfio-pci",
        ]
    );
    assert_eq!((resolved[0].warnings.len(), resolved[0].pinned), (0, 0));
}

/// The GUIDs of the second ports of a plan's VFs, of a dual-port ConnectX-3.
fn second_ports(lines: &str, pins: &Pins) -> (String, Vec<Resolved>) {
    let mut host = host();
    host.functions[0].vfs_have_port2 = true;
    let text = format!("[[pf]]\npci = \"0000:4b:00.0\"\nvfs = 2\n{lines}\n");
    let resolved = plan(&text, pins, &host);
    let text = match &resolved[0].wanted {
        Ok(wanted) => {
            let guids = wanted.vfs.iter().map(|vf| vf.port2_guid);
            guids
                .map(|guid| guid.map_or("none".to_owned(), |g| g.to_string()))
                .collect::<Vec<_>>()
                .join(" ")
        }
        Err(errors) => errors.iter().map(|e| e.message.as_str()).collect::<Vec<_>>().join("; "),
    };
    (text, resolved)
}

#[test]
fn a_second_port_gets_the_next_kind_or_what_is_said_of_it_alone() {
    let of = |lines: &str| second_ports(lines, &Pins::default()).0;
    let template = "guid.template = \"02:00:{host:16}:00:{kind:8}:{vf:16}\"";
    assert_eq!(of(template), "0200:000c:0002:0000 0200:000c:0002:0001");
    let said = "\n[[pf.vf]]\nindex = 1\nport2-guid = \"0200:000c:0099:0001\"";
    assert_eq!(of(&format!("{template}{said}")), "0200:000c:0002:0000 0200:000c:0099:0001");
    // Nothing else tells two ports apart, and that is no error: a VF may have one port.
    for lines in [
        "guid.template = \"02:00:{host:16}:00:00:{vf:16}\"".to_owned(),
        "guid.range = \"0200:0000:0000:0000 - 0200:0000:0000:0009\"".to_owned(),
        "guid.offset = 48".to_owned(),
        "guid.list = [\"0200:0000:0000:0000\", \"0200:0000:0000:0001\"]".to_owned(),
    ] {
        assert_eq!(of(&lines), "none none", "{lines}");
        assert_eq!(of(&format!("{lines}{said}")), "none 0200:000c:0099:0001", "{lines}");
    }
    // Elsewhere there is no such port.
    let one = plan(&GOOD.replace("vfs = 3", "vfs = 1"), &Pins::default(), &host());
    assert_eq!(one[0].wanted.as_ref().expect("good").vfs[0].port2_guid, None);
}

#[test]
fn a_second_port_shares_its_guid_with_no_other_port() {
    let list = "guid.list = [\"0200:0000:0000:0000\", \"0200:0000:0000:0001\"]\n[[pf.vf]]\nindex = 0\nport2-guid = ";
    let of = |guid: &str| second_ports(&format!("{list}\"{guid}\""), &Pins::default()).0;
    assert_eq!(
        of("b859:9f03:0012:a4a0")
            .matches("VF 0: the port 2 GUID b859:9f03:0012:a4a0 is already")
            .count(),
        2
    );
    let twin = of("0000:0000:0000:0001");
    assert!(twin.contains("differs from that of VF 0 only in bit 0x02"), "{twin}");
    let own = "guid.node.range = \"0200:0000:0000:0000 - 0200:0000:0000:0009\"\nguid.port.range = \"0200:0000:0000:0100 - 0200:0000:0000:0109\"\n[[pf.vf]]\nindex = 0\nport2-guid = \"0200:0000:0000:0100\"";
    assert_eq!(
        second_ports(own, &Pins::default()).0,
        "VF 0: the port 2 GUID 0200:0000:0000:0100 is also the port GUID of VF 0"
    );
}

#[test]
fn a_second_port_is_pinned_like_the_first() {
    let template =
        |kind: &str| format!("guid.template = \"02:00:{{host:16}}:00:{{{kind}}}:{{vf:16}}\"");
    let (first, plans) = second_ports(&template("kind:8"), &Pins::default());
    let pins = pins_of(&plans, &Pins::default(), &host(), false);
    let pins = Pins::parse(&pins.to_toml()).expect("read back");
    let (second, plans) = second_ports(&template("kind:8:node=0,port=7"), &pins);
    assert_eq!(second, first);
    assert!(plans[0].warnings.iter().any(is_drift), "{:?}", plans[0].warnings);
    // Pins from before it had one.
    let mut older = pins.clone();
    older.pfs[0].vfs.iter_mut().for_each(|guids| guids[2] = None);
    assert_eq!(second_ports(&template("kind:8"), &older).0, first);
}

#[test]
fn a_pf_is_found_by_each_of_its_names() {
    for name in [
        "pci = \"0000:5e:00.0\"",
        "port-guid = \"b859:9f03:0012:a4a0\"",
        "node-guid = \"b859:9f03:0012:a4a0\"",
        "rdma = \"mlx5_1\"",
    ] {
        let resolved = plan(&format!("[[pf]]\n{name}\nvfs = 0\n"), &Pins::default(), &host());
        assert_eq!(resolved[0].pci, Some(pci("0000:5e:00.0")), "{name}");
    }
}

#[test]
fn offsets_count_from_the_port_guid() {
    let resolved = plan(
        "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 2\nguid.node.offset = -16\nguid.port.offset = 8\n",
        &Pins::default(),
        &host(),
    );
    let wanted = resolved[0].wanted.as_ref().expect("good");
    assert_eq!(wanted.vfs[1].node_guid, guid("b859:9f03:0012:a471"));
    assert_eq!(wanted.vfs[1].port_guid, guid("b859:9f03:0012:a489"));
    // 0xa480 + 32 is the other card.
    assert_eq!(
        errors("[[pf]]\nrdma = \"mlx5_0\"\nvfs = 2\nguid.offset = 31\n", &host()),
        [
            "VF 1: the node GUID b859:9f03:0012:a4a0 is already the node GUID of 0000:5e:00.0 on this host",
            "VF 1: the node GUID b859:9f03:0012:a4a0 is already the port GUID of 0000:5e:00.0 on this host"
        ]
    );
    let mut high = host();
    high.functions[0].port_guids = vec![Guid::new(u64::MAX - 4)];
    assert_eq!(
        errors("[[pf]]\nrdma = \"mlx5_0\"\nvfs = 8\nguid.offset = 1\n", &high),
        [
            "VF 4: ffff:ffff:ffff:fffb plus 5 is not a GUID: it exceeds 64 bits",
            "VF 3: the node GUID is all ones, which is not a valid GUID",
            "VF 3: the port GUID is all ones, which is not a valid GUID"
        ]
    );
}

#[test]
fn a_pin_holds_and_drift_is_told() {
    let host = host();
    let first = plan(GOOD, &Pins::default(), &host);
    let pins = pins_of(&first, &Pins::default(), &host, false);
    let again = plan(GOOD, &pins, &host);
    assert_eq!(planned(&again[0]), planned(&first[0]));
    assert_eq!((again[0].pinned, again[0].warnings.len()), (3, 0));

    let mut renamed = host.clone();
    renamed.name = Some("c13".to_owned());
    let drifted = plan(GOOD, &pins, &renamed);
    assert_eq!(planned(&drifted[0]), planned(&first[0]));
    assert_eq!(
        drifted[0].warnings.iter().map(|told| told.message.clone()).collect::<Vec<_>>(),
        [
            "drift of VFs 0-2: the configured node GUID of VF 0 is 0200:000d:0000:0000, but 0200:000c:0000:0000 is pinned and stays in use"
        ]
    );
    // Decided: the new ones.
    let anew = resolve_anew(&config(GOOD), &pins, &renamed);
    let replaced = pins_of(&anew, &pins, &renamed, true);
    assert_eq!(replaced.pfs.len(), 1);
    let decided = plan(GOOD, &replaced, &renamed);
    assert_eq!(decided[0].warnings.len(), 0);
    assert_eq!(
        decided[0].wanted.as_ref().expect("good").vfs[0].node_guid,
        guid("0200:000d:0000:0000")
    );

    renamed.name = Some("login".to_owned());
    let nothing = plan(GOOD, &pins, &renamed);
    assert_eq!(planned(&nothing[0]), planned(&first[0]));
    assert_eq!(
        nothing[0].warnings.iter().map(|told| told.message.clone()).collect::<Vec<_>>(),
        [
            "drift: the configuration no longer gives GUIDs; the pinned ones stay in use: the host has no number for {host:BITS} of guid.template: the host name \"login\" has no digits"
        ]
    );
    // A VF that no pin covers needs a number.
    let more = plan(&GOOD.replace("vfs = 3", "vfs = 4"), &pins, &renamed);
    assert_eq!(
        more[0].wanted.as_ref().err().and_then(|e| e.first()).map(|e| e.code.name()),
        Some("no-host-number")
    );
}

#[test]
fn fewer_vfs_keep_the_pins_of_the_others() {
    let host = host();
    let pins = pins_of(&plan(GOOD, &Pins::default(), &host), &Pins::default(), &host, false);
    let fewer = plan(&GOOD.replace("vfs = 3", "vfs = 1"), &pins, &host);
    assert_eq!((fewer[0].pinned, fewer[0].warnings.len()), (1, 0));
    assert_eq!(pins_of(&fewer, &pins, &host, false), pins);
    // A PF that no configuration names keeps its pins too.
    assert_eq!(pins_of(&[], &pins, &host, true), pins);
}

#[test]
fn pins_follow_the_name_in_the_configuration_and_then_the_card() {
    let host = host();
    let pins = pins_of(&plan(GOOD, &Pins::default(), &host), &Pins::default(), &host, false);
    let moved = GOOD.replace("pci = \"0000:4b:00.0\"", "port-guid = \"b859:9f03:0012:a480\"");
    assert_eq!(plan(&moved, &pins, &host)[0].pinned, 3, "named otherwise, the same card");

    let mut swapped = host.clone();
    swapped.functions[0].port_guids = vec![guid("b859:9f03:0012:ffff")];
    let other = plan(GOOD, &pins, &swapped);
    assert_eq!(other[0].pinned, 3, "a new card in the same slot");
    assert_eq!(
        other[0].warnings.iter().map(|told| told.message.clone()).collect::<Vec<_>>(),
        [
            "drift: the adapter was replaced after the GUIDs were pinned (port GUID b859:9f03:0012:a480 then, b859:9f03:0012:ffff now); the pinned GUIDs stay in use"
        ]
    );

    // RDMA names that changed places: the card decides.
    let named = "host.number = 1\n[[pf]]\nrdma = \"mlx5_0\"\nvfs = 1\nguid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"\n[[pf]]\nrdma = \"mlx5_1\"\nvfs = 1\nguid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"\n";
    let first = plan(named, &Pins::default(), &host);
    let pins = pins_of(&first, &Pins::default(), &host, false);
    let mut renamed = host.clone();
    for (function, name) in renamed.functions.iter_mut().zip(["mlx5_1", "mlx5_0"]) {
        function.rdma = vec![name.parse().expect("name")];
    }
    let second = plan(named, &pins, &renamed);
    assert_eq!(planned(&second[1]), planned(&first[0]), "0000:4b:00.0, now mlx5_1");
    assert!(second[1].warnings.iter().any(is_drift));
}

/// Host c12 as it is when it was started from the image of another of its kind: the same
/// slots, other cards.
fn clone_named(name: Option<&str>) -> PlanHost {
    let mut host = host();
    host.name = name.map(str::to_owned);
    for (function, last) in host.functions.iter_mut().zip([0xffc0, 0xffe0]) {
        function.node_guid = Some(Guid::new(0xb859_9f03_0012_0000 + last));
        function.port_guids = function.node_guid.into_iter().collect();
    }
    host
}

#[test]
fn the_pins_of_a_cloned_image_are_never_carried_out() {
    let golden = host();
    let pins = pins_of(&plan(GOOD, &Pins::default(), &golden), &Pins::default(), &golden, false);
    let clone = clone_named(Some("c13"));
    let resolved = plan(GOOD, &pins, &clone);
    let errors = resolved[0].wanted.as_ref().expect_err("foreign pins");
    assert_eq!(
        errors.iter().map(|told| told.message.clone()).collect::<Vec<_>>(),
        [
            "the pin file /etc/ibprov/guid-pins.toml belongs to another host, probably because an image was cloned: it names host \"c12\", this host is \"c13\", and the file lists none of its adapters"
        ]
    );
    assert_eq!((errors[0].code.name(), may_pass(&errors[0])), ("pins-of-another-host", false));
    // What is said to help helps: nothing of the other host is left.
    let anew = resolve_anew(&config(GOOD), &pins, &clone);
    let own = pins_of(&anew, &pins, &clone, true);
    assert_eq!((own.host.as_deref(), own.pfs.len()), (Some("c13"), 1));
    let decided = plan(GOOD, &own, &clone);
    let wanted = decided[0].wanted.as_ref().expect("its own pins");
    assert_eq!(wanted.vfs[0].node_guid, guid("0200:000d:0000:0000"));
    assert_eq!(decided[0].warnings.len(), 0);
    // So does what is said for a host whose cards were replaced.
    let adopted = plan(GOOD, &Pins { host: Some("c13".to_owned()), ..pins.clone() }, &clone);
    assert!(adopted[0].wanted.is_ok() && adopted[0].warnings.iter().all(is_drift));
    // A name that DHCP may have given decides nothing, whatever it is.
    for name in [None, Some("localhost"), Some("c12")] {
        let nameless = PlanHost { name_is_transient: true, ..clone_named(name) };
        assert!(plan(GOOD, &pins, &nameless)[0].wanted.is_err(), "{name:?}");
    }
}

/// An image with the original's name in /etc/hostname boots on every node as the original,
/// until something names the node.
#[test]
fn a_clone_with_the_name_of_its_original_is_told_by_its_machine() {
    let original = Machine::of(Some("4c4c4544-0043-3510-8052-b4c04f4a3733"), Some("S1"));
    let another = Machine::of(Some("4c4c4544-0043-3510-8052-b4c04f4a3734"), Some("S2"));
    let golden = PlanHost { machine: original, ..host() };
    let pins = pins_of(&plan(GOOD, &Pins::default(), &golden), &Pins::default(), &golden, false);
    assert_eq!(pins.machine, original);
    let with = |machine, name| PlanHost { machine, ..clone_named(Some(name)) };
    let clone = with(another, "c12.cluster.example");
    let resolved = plan(GOOD, &pins, &clone);
    let errors = resolved[0].wanted.as_ref().expect_err("foreign pins");
    assert_eq!(
        errors.iter().map(|told| told.message.clone()).collect::<Vec<_>>(),
        [
            "the pin file /etc/ibprov/guid-pins.toml belongs to another host, probably because an image was cloned: it names host \"c12\", which is this host's name, but it was written on another machine (by DMI's product UUID or board serial number), and the file lists none of its adapters"
        ]
    );
    assert_eq!((errors[0].code.name(), may_pass(&errors[0])), ("pins-of-another-host", false));
    assert!(!is_recognized(&pins, &clone));
    // What is said to help helps.
    let anew = pins_of(&resolve_anew(&config(GOOD), &pins, &clone), &pins, &clone, true);
    assert_eq!(anew.machine, another);
    assert!(plan(GOOD, &anew, &clone)[0].wanted.is_ok());
    let unknown = Pins { machine: Machine::default(), ..pins.clone() };
    let adopted = plan(GOOD, &unknown, &clone);
    assert!(adopted[0].wanted.is_ok());
    assert_eq!(pins_of(&adopted, &unknown, &clone, false).machine, another, "the next write");

    let is_good = |pins: &Pins, host: &PlanHost| plan(GOOD, pins, host)[0].wanted.is_ok();
    assert!(is_good(&pins, &with(original, "c12")), "all adapters were replaced");
    assert!(is_good(&pins, &with(Machine::default(), "c12")), "only root can read it");
    let board = PlanHost { machine: another, ..host() };
    assert!(is_good(&pins, &board), "the board was replaced");
    let next = pins_of(&plan(GOOD, &pins, &board), &pins, &board, false);
    assert_eq!(next.machine, another);
    // Whose machine is not known keeps what the file knows.
    assert_eq!(pins_of(&plan(GOOD, &pins, &host()), &pins, &host(), false), pins);
    // A machine alone is no proof: vendors have given thousands the same.
    assert!(!is_good(&pins, &with(original, "c13")));
    // The adapters that have still to come may be those of the file.
    let mut early = with(another, "c12");
    for function in &mut early.functions {
        (function.rdma, function.node_guid) = (Vec::new(), None);
        function.port_guids.clear();
    }
    let resolved = plan(GOOD, &pins, &early);
    let errors = resolved[0].wanted.as_ref().expect_err("not known yet");
    assert!(errors.iter().all(may_pass), "{errors:?}");
}

#[test]
fn where_a_name_identifies_no_host_the_cards_alone_decide() {
    let names = [
        Some("localhost"),
        Some("localhost.localdomain"),
        Some("localhost4.localdomain4"),
        Some("LOCALHOST6"),
        Some(""),
        None,
    ];
    let golden = host();
    let pins = pins_of(&plan(GOOD, &Pins::default(), &golden), &Pins::default(), &golden, false);
    // The name in the pin file and that of the host, which is the same on each clone.
    for then in names {
        let pins = Pins { host: then.map(str::to_owned), ..pins.clone() };
        for now in names.into_iter().chain([Some("c13")]) {
            let clone = clone_named(now);
            let resolved = plan(GOOD, &pins, &clone);
            let errors = resolved[0].wanted.as_ref().expect_err("foreign pins");
            let codes: Vec<_> = errors.iter().map(|e| (e.code.name(), may_pass(e))).collect();
            assert_eq!(codes[0], ("pins-of-another-host", false), "{then:?} {now:?}");
            let same = PlanHost { name: now.map(str::to_owned), ..golden.clone() };
            assert!(plan(GOOD, &pins, &same)[0].wanted.is_ok(), "{then:?} {now:?}");
            // The node GUID is enough: a card whose ports have none shows it.
            let mut bare = same.clone();
            bare.functions.iter_mut().for_each(|f| f.port_guids.clear());
            assert!(plan(GOOD, &pins, &bare)[0].wanted.is_ok(), "{then:?} {now:?}");
            // Early in boot, while no driver is bound, it is merely not known yet.
            let mut early = same;
            for function in &mut early.functions {
                (function.rdma, function.node_guid) = (Vec::new(), None);
                function.port_guids.clear();
            }
            let resolved = plan(GOOD, &pins, &early);
            let errors = resolved[0].wanted.as_ref().expect_err("not known yet");
            let foreign = errors.iter().find(|e| e.code == Code::PinsUndecided);
            assert!(foreign.is_some_and(may_pass), "{then:?} {now:?} {errors:?}");
        }
    }
    // The only card of a host called localhost was replaced: the card's GUID in the file
    // makes the pins its own again.
    let clone = clone_named(Some("localhost"));
    let mut adopted = Pins { host: Some("localhost".to_owned()), ..pins };
    let said = plan(GOOD, &adopted, &clone)[0].wanted.clone().expect_err("foreign pins");
    assert_eq!(
        said[0].message,
        "the pin file /etc/ibprov/guid-pins.toml belongs to another host, probably because an image was cloned: it names host \"localhost\", which identifies no host, this host has no name of its own, and the file lists none of its adapters"
    );
    adopted.pfs[0].port_guids = clone.functions[0].port_guids.clone();
    assert_eq!(
        planned(&plan(GOOD, &adopted, &clone)[0]),
        planned(&plan(GOOD, &Pins::default(), &golden)[0])
    );
}

#[test]
fn pins_that_would_not_show_whose_they_are_are_not_recognized() {
    let golden = host();
    let plans = plan(GOOD, &Pins::default(), &golden);
    let is_recognized =
        |host: &PlanHost| is_recognized(&pins_of(&plans, &Pins::default(), host, false), host);
    let mut unbound = golden.clone();
    for function in &mut unbound.functions {
        (function.rdma, function.node_guid) = (Vec::new(), None);
        function.port_guids.clear();
    }
    assert!(is_recognized(&golden) && is_recognized(&unbound));
    unbound.name = Some("localhost".to_owned());
    assert!(!is_recognized(&unbound));
    unbound = PlanHost { name: Some("c12".to_owned()), name_is_transient: true, ..unbound };
    assert!(!is_recognized(&unbound));
    let localhost = PlanHost { name: Some("localhost".to_owned()), ..golden.clone() };
    assert!(is_recognized(&localhost));
}

#[test]
fn a_host_of_that_name_or_with_one_of_the_cards_has_its_own_pins() {
    let golden = host();
    let pins = pins_of(&plan(GOOD, &Pins::default(), &golden), &Pins::default(), &golden, false);
    let is_good = |host: &PlanHost| plan(GOOD, &pins, host)[0].wanted.is_ok();
    for name in ["c12", "C12", "c12.cluster.example"] {
        assert!(is_good(&clone_named(Some(name))), "{name}: all its cards are new");
    }
    assert!(!is_good(&clone_named(Some("c12x"))));
    let mut renamed = host();
    renamed.name = Some("c13".to_owned());
    assert!(is_good(&renamed));
    renamed.name_is_transient = true;
    assert!(is_good(&renamed));
    // One of the pinned cards is enough; a VF that bears its GUID is not.
    let mut mixed = clone_named(Some("c13"));
    mixed.functions[1].port_guids = golden.functions[0].port_guids.clone();
    assert!(is_good(&mixed));
    mixed.functions[1].physfn = Some(pci("0000:4b:00.0"));
    assert!(!is_good(&mixed));
    // While a card has no RDMA device, it may be the one; nothing is done until then.
    let mut early = clone_named(Some("c13"));
    early.functions[1] = PlanFunction {
        rdma: Vec::new(),
        node_guid: None,
        port_guids: Vec::new(),
        ..early.functions[1].clone()
    };
    let resolved = plan(GOOD, &pins, &early);
    let errors = resolved[0].wanted.as_ref().expect_err("undecided");
    assert!(errors.iter().all(may_pass), "{errors:?}");
    assert!(errors[0].message.contains("that have registered an RDMA device"), "{}", errors[0]);
}

#[test]
fn the_two_sources_of_a_fixed_name_have_to_give_one_number() {
    let both = |given: &str, file: &str| PlanHost {
        name: Some(given.to_owned()),
        overruled_name: Some(file.to_owned()),
        ..host()
    };
    let first = |host: &PlanHost| {
        let plans = plan(GOOD, &Pins::default(), host);
        plans[0]
            .wanted
            .as_ref()
            .map(|wanted| wanted.vfs[0].node_guid)
            .map_err(|e| e[0].message.clone())
    };
    assert_eq!(first(&both("c12", "c12.example")), Ok(guid("0200:000c:0000:0000")));
    assert_eq!(first(&both("c12", "golden")), Ok(guid("0200:000c:0000:0000")));
    assert_eq!(
        first(&both("c12", "golden01")),
        Err("the host has no number for {host:BITS} of guid.template: the host's number is 12 by systemd.hostname=c12 on the kernel command line, and 1 by \"golden01\" in /etc/hostname, so that one of them is wrong".to_owned())
    );
    // Where it decides nothing it is no error: a number is given, or all is pinned.
    let given = format!("host.number = 5\n{GOOD}");
    assert!(plan(&given, &Pins::default(), &both("c12", "golden01"))[0].wanted.is_ok());
    let pins = pins_of(&plan(GOOD, &Pins::default(), &host()), &Pins::default(), &host(), false);
    let pinned = plan(GOOD, &pins, &both("c12", "golden01"));
    assert!(pinned[0].wanted.is_ok() && pinned[0].warnings.iter().all(is_drift));
}

#[test]
fn a_name_that_may_change_gives_no_number_before_dhcp_or_after_it() {
    let called =
        |name: &str| PlanHost { name: Some(name.to_owned()), name_is_transient: true, ..host() };
    let ids = |text: &str, pins: &Pins, host: &PlanHost| -> Vec<&str> {
        let errors = plan(text, pins, host)[0].wanted.clone().err().unwrap_or_default();
        errors.iter().map(|e| e.code.name()).collect()
    };
    // As boot sees the host, and as a later apply does.
    for name in ["localhost", "c12"] {
        let transient = called(name);
        assert_eq!(ids(GOOD, &Pins::default(), &transient), ["host-name-transient"], "{name}");
        // Where the name is not used, it does not matter.
        let given = format!("host.number = 5\n{GOOD}");
        assert!(ids(&given, &Pins::default(), &transient).is_empty());
        let file = format!("host.number-file = \"/etc/number\"\n{GOOD}");
        let read = PlanHost { number_file: Some(Ok("5\n".to_owned())), ..called(name) };
        assert!(ids(&file, &Pins::default(), &read).is_empty());
        let range = "[[pf]]\npci = \"0000:4b:00.0\"\nvfs = 1\nguid.range = \"0200:0000:0000:0000 - 0200:0000:0000:0004\"\n";
        assert!(ids(range, &Pins::default(), &transient).is_empty());
        // Pinned GUIDs hold, and nothing is said against them. A VF without one has none.
        let fixed = plan(GOOD, &Pins::default(), &host());
        let pins = pins_of(&fixed, &Pins::default(), &host(), false);
        let pinned = plan(GOOD, &pins, &transient);
        assert_eq!(planned(&pinned[0]), planned(&fixed[0]), "{name}");
        assert_eq!(pinned[0].warnings, [], "{name}");
        let more = GOOD.replace("vfs = 3", "vfs = 4");
        assert_eq!(ids(&more, &pins, &transient), ["host-name-transient"]);
    }
    assert_eq!(
        errors(GOOD, &called("c12")),
        [
            "the host has no number for {host:BITS} of guid.template: its name \"c12\" is neither in /etc/hostname nor on the kernel command line (systemd.hostname=). No GUID is computed from such a name, because DHCP may change it, and boot runs before DHCP"
        ]
    );
}

#[test]
fn pins_that_cannot_be_read_stop_every_pf() {
    let resolved = resolve(&config(GOOD), Err("line 3: no"), &host());
    assert_eq!(
        resolved[0].wanted.as_ref().err().map(|e| e[0].message.clone()).as_deref(),
        Some("cannot read the pin file /etc/ibprov/guid-pins.toml: line 3: no")
    );
}

#[test]
fn what_other_vfs_of_the_host_bear_is_taken() {
    let mut host = host();
    let mut vf = host.functions[1].clone();
    vf.pci = pci("0000:5e:00.1");
    vf.physfn = Some(pci("0000:5e:00.0"));
    vf.node_guid = Some(guid("0200:000c:0000:0001"));
    vf.port_guids = Vec::new();
    host.functions.push(vf.clone());
    assert_eq!(
        errors(GOOD, &host),
        [
            "VF 1: the node GUID 0200:000c:0000:0001 is already the node GUID of 0000:5e:00.1 on this host"
        ]
    );
    // A VF of a PF that has a plan is what the plan made of it.
    host.functions[2].physfn = Some(pci("0000:4b:00.0"));
    assert_eq!(errors(GOOD, &host), Vec::<String>::new());
}

fn selector() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "pci = \"0000:4b:00.0\"",
        "pci = \"0000:5e:00.0\"",
        "pci = \"0000:af:00.0\"",
        "port-guid = \"b859:9f03:0012:a480\"",
        "node-guid = \"b859:9f03:0012:a4a0\"",
        "rdma = \"mlx5_0\"",
    ])
}

fn source() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "guid.offset = 1",
        "guid.offset = 30",
        "guid.node.offset = 1\nguid.port.offset = 1",
        "guid.range = \"0200:0000:0000:0000 - 0200:0000:0000:0004\"",
        "guid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"",
        "guid.template = \"00:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"",
        "guid.template = \"0000:0000:0000:00{vf:4}{kind:4}\"",
        "guid.list = [\"0200:0000:0000:0001\", \"0200:0000:0000:0001\"]",
        "guid.range = \"0200:0000:0000:0100 - 0200:0000:0000:0104\"\n[[pf.vf]]\nindex = 0\nport2-guid = \"0200:0000:0000:0002\"",
        "guid.range = \"0200:0000:0000:0100 - 0200:0000:0000:0104\"\n[[pf.vf]]\nindex = 0\nport2-guid = \"0200:0000:0000:0100\"",
    ])
}

proptest! {
    /// Whatever is configured: what comes out good has only GUIDs that nobody
    /// else on the host has, of which no two make one link-local address.
    #[test]
    fn a_good_plan_has_no_collision(
        pfs in prop::collection::vec((selector(), 1_u16..7, source()), 1..4),
        name in "[a-z]{1,3}[0-9]{0,6}",
        two_ports in any::<[bool; 2]>(),
    ) {
        let mut text = String::new();
        let mut seen = Vec::new();
        for (which, vfs, source) in pfs {
            if !seen.contains(&which) {
                text.push_str(&format!("[[pf]]\n{which}\nvfs = {vfs}\n{source}\n"));
                seen.push(which);
            }
        }
        let mut host = PlanHost { name: Some(name), ..host() };
        for (function, two) in host.functions.iter_mut().zip(two_ports) {
            function.vfs_have_port2 = two;
        }
        let source = Source { path: "/c.toml".to_owned(), text: text.clone() };
        // What each host would refuse is no configuration.
        let loaded = crate::config::resolve(vec![source], Problems::default());
        prop_assume!(loaded.is_ok());
        let resolved = plan(&text, &Pins::default(), &host);
        let mut owners: Vec<(Guid, String)> = Vec::new();
        let mut ports: Vec<Guid> = Vec::new();
        for function in &host.functions {
            owners.push((function.port_guids[0], function.pci.to_string()));
            ports.push(function.port_guids[0]);
        }
        for wanted in resolved.iter().filter_map(|r| r.wanted.as_ref().ok()) {
            for vf in &wanted.vfs {
                let owner = format!("{} {}", wanted.pf, vf.index);
                for guid in [Some(vf.node_guid), Some(vf.port_guid), vf.port2_guid].into_iter().flatten() {
                    prop_assert!(!guid.is_zero() && guid.value() != u64::MAX);
                    let other = owners.iter().find(|(g, o)| *g == guid && *o != owner);
                    prop_assert_eq!(other, None, "{} in {}", guid, text);
                    owners.push((guid, owner.clone()));
                }
                for guid in [Some(vf.port_guid), vf.port2_guid].into_iter().flatten() {
                    prop_assert!(!ports.contains(&guid.link_local_twin()), "{}", text);
                    ports.push(guid);
                }
                prop_assert!(vf.port2_guid != Some(vf.port_guid), "{}", text);
            }
        }
    }

    /// Pinning and planning again gives the same, whatever the host is called.
    #[test]
    fn pins_are_what_they_were(vfs in 1_u16..9, name in "[a-z]{1,3}[0-9]{0,6}") {
        let host = host();
        let text = GOOD.replace("vfs = 3", &format!("vfs = {vfs}"));
        let first = plan(&text, &Pins::default(), &host);
        let pins = pins_of(&first, &Pins::default(), &host, false);
        let pins = Pins::parse(&pins.to_toml()).expect("read back");
        let renamed = PlanHost { name: Some(name), ..host };
        let second = plan(&text, &pins, &renamed);
        prop_assert_eq!(planned(&second[0]), planned(&first[0]));
        let anew = resolve_anew(&config(&text), &pins, &renamed);
        let same = planned(&anew[0]) == planned(&first[0]);
        prop_assert_eq!(same, !second[0].warnings.iter().any(is_drift));
    }
}

#[test]
fn names_of_vfs_are_judged_against_the_host_and_each_other() {
    let pf =
        |pci: &str, lines: &str| format!("[[pf]]\npci = \"{pci}\"\nvfs = 2\nnumber = 0\n{lines}\n");
    let with = |first: &str, second: &str, host: &PlanHost| {
        let guids =
            |n: u8| format!("guid.template = \"02:00:{{host:16}}:0{n}:{{kind:8}}:{{vf:16}}\"");
        let text = format!(
            "{}{}",
            pf("0000:4b:00.0", &format!("{}\n{first}", guids(1))),
            pf("0000:5e:00.0", &format!("{}\n{second}", guids(2)))
        );
        let plans = plan(&text, &Pins::default(), host);
        let said = |plan: &Resolved| match &plan.wanted {
            Ok(wanted) => {
                let names = wanted.vfs.iter().filter_map(|vf| vf.names.netdev.as_ref());
                names.map(|name| name.to_string()).collect::<Vec<_>>().join(" ")
            }
            Err(findings) => findings[0].message.clone(),
        };
        [said(&plans[0]), said(&plans[1])]
    };
    let good = "vf-name = \"{netdev}v{vf}\"";
    assert_eq!(with(good, good, &host()), ["ibs0v0 ibs0v1", "ibs1v0 ibs1v1"]);
    // The PFs' names make two patterns give one name.
    let [_, second] = with("vf-name = \"{netdev}v{vf}\"", "vf-name = \"ibs0v{vf}\"", &host());
    assert!(
        second.starts_with(
            "VF 0: the netdev name would be ibs0v0, which is that of VF 0 of 0000:4b:00.0"
        ),
        "{second}"
    );
    let [first, _] = with("vf-name = \"ibs{vf}\"", "", &host());
    assert!(first.contains("ibs0, which is that of PF 0000:4b:00.0"), "{first}");
    let mut kernels = host();
    kernels.functions[0].netdev = "ib1".parse().ok();
    let [first, _] = with("vf-name = \"{netdev}{vf}\"", "", &kernels);
    assert!(first.contains("ib10, which the kernel itself assigns"), "{first}");
    // The PF's own name may be anything that the kernel takes.
    kernels.functions[0].netdev = "ib$env{X}".parse().ok();
    let [first, _] = with(good, "", &kernels);
    assert!(first.contains("is not a valid netdev name"), "{first}");
    kernels.functions[0].netdev = None;
    let [first, _] = with(good, "", &kernels);
    assert!(first.contains("refers to a name of the PF, which is unknown"), "{first}");
}
