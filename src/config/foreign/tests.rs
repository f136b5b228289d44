use super::*;
use crate::config::tests::files::{read, tree};
use crate::config::{Problems, Source, resolve};
use crate::names::{PciAddress, VfIndex};
use expect_test::{expect, expect_file};
use proptest::prelude::*;

/// VF `4b:00.N` is VF N - 1 of `4b:00.0`.
fn vf_of(pci: PciAddress) -> Option<(PciAddress, VfIndex)> {
    let text = pci.to_string();
    let function: u16 = text.strip_prefix("0000:4b:00.")?.parse().ok()?;
    let pf = "0000:4b:00.0".parse().expect("address");
    Some((pf, VfIndex::new(function.checked_sub(1)?)?))
}

fn check(toml: &str) -> Result<crate::config::Config, String> {
    let source = Source { path: "/import.toml".to_owned(), text: toml.to_owned() };
    resolve(vec![source], Problems::default())
        .map(|loaded| loaded.config)
        .map_err(|problems| problems.render(false))
}

/// Each `cases/NAME.FORMAT` becomes what `NAME.FORMAT.expected` has, which ends with what is
/// still wrong with it. A new case is two files; `UPDATE_EXPECT=1` writes the expected one.
#[test]
fn every_case_is_imported_as_expected() {
    for path in tree("src/config/foreign/cases") {
        let file = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let (name, format) = file.rsplit_once('.').expect("a format");
        let text = read(&path);
        let imported = match format {
            "expected" => continue,
            "ifcfg" => of_ifcfg(name, &text),
            "mlx4" => mlx4_conf::import(&text, |pci| pci.to_string() != "0000:99:00.0"),
            "nmconnection" => of_keyfile(&text),
            "openib" => openib_conf::import(&text, &[]),
            "operator-guids" => operator_guids::import(&text).expect("JSON"),
            "rdma" => rdma_conf::import(&text),
            "sriov-vfs" => sriov_vfs::import(&text, vf_of),
            "wicked" => of_wicked(name, &text),
            other => panic!("no importer reads {other}"),
        };
        let text = imported.to_text("/etc/x");
        let wrong =
            check(&text).err().map_or_else(String::new, |problems| format!("\n{problems}\n"));
        expect_file![path.with_file_name(format!("{file}.expected"))]
            .assert_eq(&format!("{text}{wrong}"));
    }
}

#[test]
fn what_is_no_file_of_the_operator() {
    assert!(operator_guids::import("{}").is_err());
    assert!(
        operator_guids::import(r#"[{"pciAddres": "x"}]"#).expect_err("key").contains("pciAddres")
    );
    let yaml = "apiVersion: sriovnetwork.openshift.io/v1\nkind: SriovNetworkNodePolicy\n";
    assert!(operator_guids::import(yaml).expect_err("YAML").contains("SriovNetworkNodePolicy"));
    // serde_json repeats a key as it is.
    let said = operator_guids::import("[{\"pci\u{86}Address\": \"x\"}]").expect_err("key");
    assert!(said.contains("`pci\u{fffd}Address`"), "{said:?}");
}

fn of_ifcfg(name: &str, text: &str) -> Imported {
    let said = ifcfg::read(name, text).expect("InfiniBand");
    interfaces::import(&[(format!("{}/ifcfg-{name}", ifcfg::DIR), said)])
}

#[test]
fn ifcfg_of_red_hat() {
    for (text, interface) in [
        ("TYPE=InfiniBand\nCONNECTED_MODE=no\nMTU=65520\n", "mode = \"datagram\""),
        ("DEVICE='ib*'\nCONNECTED_MODE=yes\nTYPE=InfiniBand\n", ""),
        ("MTU=$(cat /x)\nADDR=$(y)\n", ""),
        ("DEVICE=ib0.0002\nPKEY=yes\nPKEY_ID=0x0002\nPHYSDEV=ib0\n", ""),
        ("PKEY=yes\nPKEY_ID=2\n", ""),
        ("DEVICE=ib0.8002\nPKEY_ID=2\n", ""),
        ("DEVICE=ib0.8000\nPKEY=yes\nPKEY_ID=0\nPHYSDEV=ib0\n", ""),
    ] {
        let imported = of_ifcfg("ib0", text);
        assert_eq!(imported.todo.len(), 1, "{text}: {:?}", imported.todo);
        assert!(imported.toml.contains(interface), "{text}: {}", imported.toml);
        assert_eq!(imported.toml.is_empty(), interface.is_empty(), "{text}: {}", imported.toml);
    }
    // No reader sets that at boot, or it says nothing of InfiniBand.
    for text in ["ONBOOT=no\nCONNECTED_MODE=yes\n", "BOOTPROTO=dhcp\n"] {
        assert_eq!(
            (of_ifcfg("ib0", text).toml, of_ifcfg("ib0", text).todo.len()),
            (String::new(), 0)
        );
    }
    assert_eq!(ifcfg::read("eth0", "DEVICE=eth0\nMTU=9000\n"), None);
    assert_eq!(ifcfg::read("bond0", "TYPE=Bond\nCONNECTED_MODE=yes\n"), None);
    assert_eq!(ifcfg::name_of("ifcfg-ib0.rpmsave"), None);
}

#[test]
fn what_a_port_refuses_is_left_out_for_the_reason_that_holds() {
    let seen = |can_connect, omni_path| {
        Some(interfaces::Seen { name: "ib0".parse().expect("a name"), can_connect, omni_path })
    };
    let red_hat = format!("{}/ifcfg-ib0", ifcfg::DIR);
    let wicked = format!("{}/ifcfg-ib0", ifcfg_suse::DIR);
    let limit =
        "MTU {} left out: the file does not set connected mode, and datagram mode has at most 4092";
    let said = |mtu: &str, more: &str| format!("{}{more}", limit.replace("{}", mtu));
    let unless = " unless the port is one of Omni-Path, and this host has no such interface now";
    let driver = "left out, because the driver of ib0 does not support connected mode";
    let connected = "TYPE=InfiniBand\nSTARTMODE=onboot\nCONNECTED_MODE=yes\nMTU=65520\n";
    for (path, text, seen, todo, toml) in [
        (&red_hat, connected, seen(true, false), None, "mode = \"connected\"\nmtu = 65520\n\n"),
        (&red_hat, connected, None, None, "mode = \"connected\"\nmtu = 65520\n\n"),
        (
            &red_hat,
            connected,
            seen(false, false),
            Some(format!("connected mode and MTU 65520 {driver}")),
            "",
        ),
        (&red_hat, "TYPE=InfiniBand\nMTU=4094\n", seen(true, false), Some(said("4094", "")), ""),
        (&red_hat, "TYPE=InfiniBand\nMTU=4094\n", seen(false, false), Some(said("4094", "")), ""),
        (&red_hat, "TYPE=InfiniBand\nMTU=4094\n", None, Some(said("4094", unless)), ""),
        (&red_hat, "TYPE=InfiniBand\nMTU=10236\n", seen(false, true), None, "mtu = 10236\n\n"),
        (&wicked, "IPOIB=yes\nMTU=65520\n", seen(true, false), Some(said("65520", "")), ""),
    ] {
        let mut read = ifcfg::read_at(path, "ib0", text).expect("InfiniBand");
        read.fit(seen.as_ref());
        assert_eq!(read.todo, Vec::from_iter(todo), "{path}: {text}");
        let imported = interfaces::import(&[(path.clone(), read)]);
        assert!(imported.toml.ends_with(toml), "{path}: {text}: {}", imported.toml);
        assert_eq!(imported.toml.is_empty(), toml.is_empty(), "{path}: {text}");
    }
}

#[test]
fn a_line_that_is_no_assignment_is_none_of_the_stack() {
    let imported = of_ifcfg("ib1", "TYPE=InfiniBand\n„CONNECTED_MODE=no“\nMTU = 2044\nX=$(y)\n");
    let todo = imported.todo.join("\n");
    assert_eq!(imported.todo.len(), 2, "{todo}");
    assert!(imported.todo.iter().all(|todo| todo.ends_with("is not an assignment")), "{todo}");
    assert_eq!(imported.stays, ["X (line 4)"]);
}

fn of_wicked(name: &str, text: &str) -> Imported {
    let said = ifcfg_suse::read(name, text).expect("InfiniBand");
    interfaces::import(&[(format!("{}/ifcfg-{name}", ifcfg_suse::DIR), said)])
}

#[test]
fn ifcfg_of_wicked() {
    for text in [
        "IPOIB_MODE=fast\n",
        "IPOIB_MODE=connected\nIPOIB_UMCAST=2\n",
        "IPOIB_MODE=connected\nIPOIB_PKEY=8001\n",
        "IPOIB_DEVICE=ib0\nIPOIB_MODE=connected\n",
        "IPOIB=yes\nIPOIB_DEVICE=ib0\nIPOIB_PKEY=x\n",
        "IPOIB=yes\nIPOIB_DEVICE='ib*'\nIPOIB_PKEY=8001\n",
    ] {
        let imported = of_wicked("ib0", text);
        assert_eq!((imported.todo.len(), imported.toml.as_str()), (1, ""), "{text}");
    }
    for text in ["STARTMODE=off\nIPOIB_MODE=connected\n", "STARTMODE=manual\n", "MTU=0\n"] {
        let imported = of_wicked("ib0", text);
        assert_eq!((imported.todo.len(), imported.toml.as_str()), (0, ""), "{text}");
    }
    assert_eq!(ifcfg_suse::read("eth0", "STARTMODE=auto\nMTU=9000\n"), None);
    assert_eq!(ifcfg_suse::read("ib0", "IPOIB=no\nIPOIB_MODE=connected\n"), None);
    assert_eq!(ifcfg_suse::read("ibx", "STARTMODE=auto\n"), None);
    assert!(ifcfg_suse::is_one("# ib0\nSTARTMODE=auto\n"));
    assert!(!ifcfg_suse::is_one("TYPE=InfiniBand\nONBOOT=yes\n"));
}

fn of_keyfile(text: &str) -> Imported {
    let said = keyfile::read(text).expect("InfiniBand");
    interfaces::import(&[(format!("{}/x.nmconnection", keyfile::DIR), said)])
}

#[test]
fn keyfiles_of_network_manager() {
    // As `nmcli connection add type infiniband` writes them.
    let uuid = "uuid=3f1c2e30-5e4b-4f7e-9d2e-0c5fb4a4a0e1";
    let child = format!(
        "[connection]\nid=ib0.8002\n{uuid}\ntype=infiniband\ninterface-name=ib0.8002\n\n[infiniband]\np-key=32770\nparent=ib0\ntransport-mode=datagram\n\n[ipv4]\naddress1=172.31.2.1/24\nmethod=manual\n"
    );
    let parent = format!(
        "[connection]\nid=ib0\n{uuid}\ntype=infiniband\ninterface-name=ib0\n\n[infiniband]\nmtu=65520\ntransport-mode=connected\n\n[ipv4]\nmethod=auto\n"
    );
    // The parent's settings come before, whatever the order of the files, since they hold for
    // the child too, and its MTU is none of datagram mode.
    let read = |text: &str| keyfile::read(text).expect("InfiniBand");
    let files = [("/a".to_owned(), read(&child)), ("/b".to_owned(), read(&parent))];
    let text = interfaces::import(&files).to_text("/etc/x");
    expect![[r##"
        # From /etc/x, by `ibprov import`.

        # /b
        [[interface]]
        match.name = "ib0"
        mode = "connected"
        mtu = 65520

        # /a
        [[interface]]
        match.name = "ib0"
        [[interface.partition]]
        pkey = "0x8002"
        mode = "datagram"
        mtu = 2044 # its parent's would be too large

        # Left to the network stack: connection.id (line 2), connection.uuid (line 3), ipv4.address1 (line 13), ipv4.method (line 14), connection.id (line 2), connection.uuid (line 3), ipv4.method (line 12)
    "##]].assert_eq(&text);
    assert!(check(&text).is_ok(), "{text}");
    let begin = "[connection]\ntype=infiniband\n";
    // Without the membership bit NetworkManager's name is not the kernel's.
    for (text, toml) in [
        ("[infiniband]\nparent=ib0\np-key=2\n", "name = \"ib0.0002\""),
        (
            "[infiniband]\nmac-address=80:00:02:00:fe:80:00:00:00:00:00:00:f4:52:14:03:00:7b:cb:a1\ntransport-mode=connected\n",
            "match.port-guid = \"f452:1403:007b:cba1\"",
        ),
    ] {
        let imported = of_keyfile(&format!("{begin}{text}"));
        assert!(imported.toml.contains(toml) && imported.todo.is_empty(), "{imported:?}");
        assert!(check(&imported.toml).is_ok(), "{}", imported.toml);
    }
    for text in [
        "[infiniband]\ntransport-mode=connected\n",
        "[infiniband]\np-key=32770\n",
        "interface-name=ib0\n[infiniband]\ntransport-mode=both\n",
        "interface-name=ib0\n[infiniband]\nmtu=65520\n",
        "[infiniband]\nparent=ib 0\np-key=32770\n",
        "[infiniband]\nmac-address=00:00:00:00:00:00:00:00\nmtu=2044\n",
        "[infiniband]\nparent=ib0\np-key=32768\n",
        "interface-name=ib0\n[infiniband]\nnew=1\n",
    ] {
        let imported = of_keyfile(&format!("{begin}{text}"));
        assert_eq!((imported.todo.len(), imported.toml.as_str()), (1, ""), "{text}: {imported:?}");
    }
    assert_eq!(
        of_keyfile(&format!(
            "{begin}autoconnect=false\ninterface-name=ib0\n[infiniband]\nmtu=2044\n"
        ))
        .toml,
        ""
    );
    assert_eq!(keyfile::read("[connection]\ntype=ethernet\n"), None);
}

/// What the shell would make of it: its own words, mixed with anything.
fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        prop::sample::select(vec![
            "0000:4b:00.1",
            "guid",
            "05011403007bcba1",
            "pkey",
            "port",
            "2",
            "mac",
            "#",
            "\n",
            "UMAD_LOAD=",
            "yes",
            "no",
            "IPOIB_MTU=",
            "SET_IPOIB_CM=yes\n",
            "\"",
            "'",
            "$(x)",
            "65520",
            "TYPE=InfiniBand\n",
            "DEVICE=",
            "PHYSDEV=ib0\n",
            "PKEY=yes\n",
            "PKEY_ID=2\n",
            "DEVICE=ib0.8002\n",
            "CONNECTED_MODE=no\n",
            "MTU=",
            "[connection]\ntype=infiniband\n",
            "interface-name=",
            "\n[infiniband]\n",
            "p-key=",
            "parent=ib0\n",
            "transport-mode=connected\n",
            "mac-address=",
            "ib",
            "eth\n",
        ])
        .prop_map(str::to_owned),
        "(?s).{0,4}",
    ];
    prop::collection::vec(word, 0..14).prop_map(|words| words.join(" ").replace("= ", "="))
}

proptest! {
    #[test]
    fn hostile_files_give_good_toml_or_none(text in words()) {
        let openib = openib_conf::import(&text, &[]).to_text("/x\n[boot]");
        prop_assert!(check(&openib).is_ok(), "{}", openib);
        let vfs = sriov_vfs::import(&text, vf_of);
        let shown = vfs.to_text("/x");
        for text in [&openib, &shown] {
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{:?}", text);
        }
        let mut others = vec![
            rdma_conf::import(&text).to_text("/x"),
            mlx4_conf::import(&text, |_| true).to_text("/x"),
        ];
        let said = [ifcfg::read("ib0", &text), keyfile::read(&text)].into_iter().flatten();
        others.extend(said.map(|said| interfaces::import(&[(text.clone(), said)]).to_text("/x")));
        for text in &others {
            prop_assert!(check(text).is_ok(), "{}", text);
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{:?}", text);
        }
        // A VF without a GUID is the one thing that the check may refuse.
        if vfs.todo.iter().all(|todo| !todo.contains("needs one")) {
            prop_assert!(check(&shown).is_ok(), "{}", shown);
        }
    }

    #[test]
    fn hostile_json_gives_good_toml_or_none(
        pci in "(0000:4b:00\\.[0-7]|(?s).{0,6})",
        guid in "(02:00:00:00:00:00:00:0[0-9a-f]|(?s).{0,6})",
        key in prop::sample::select(vec!["pciAddress", "pf_guid", "pfGuid"]),
    ) {
        let value = serde_json::json!([{ key: pci, "guids": [guid] }]);
        if let Ok(imported) = operator_guids::import(&value.to_string()) {
            let shown = imported.to_text("/x");
            prop_assert!(check(&shown).is_ok(), "{}", shown);
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{:?}", shown);
        }
        let _imported = operator_guids::import(&pci);
    }
}
