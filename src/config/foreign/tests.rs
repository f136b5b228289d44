use super::*;
use crate::config::{Problems, Source, resolve};
use crate::names::{PciAddress, VfIndex};
use expect_test::{Expect, expect};
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

#[track_caller]
fn shows(imported: &Imported, want: &Expect) {
    let text = imported.to_text("/etc/x");
    want.assert_eq(&text);
    if let Err(problems) = check(&text) {
        panic!("{problems}");
    }
}

#[test]
fn sriov_vfs_of_rdma_core() {
    let text = "# comment\n\n0000:4b:00.1 guid 05011403007bcba1 pkey 0xffff 0x8002\n0000:4b:00.2 port 1 guid 0x05011403007bcba2\n";
    shows(
        &sriov_vfs::import(text, vf_of),
        &expect![[r##"
            # From /etc/x, by `ibprov import`.

            [[pf]]
            pci = "0000:4b:00.0"
            # Names for its VFs that do not depend on chance (ibprov.toml(5)):
            #vf-name = "{netdev}v{vf}"
            #vf-rdma-name = "{rdma}v{vf}"
            guid.list = [
                "0501:1403:007b:cba1", # VF 0
                "0501:1403:007b:cba2", # VF 1
            ]

            # To do by hand:
            # - line 3: VF 0000:4b:00.1: the subnet manager assigns P_Keys of a VF by its port GUID: see `ibprov plan --partitions`
        "##]],
    );
}

#[test]
fn sriov_vfs_that_cannot_be_carried_over() {
    let text = "0000:4b:00.3 guid 05011403007bcba3\n0000:4b:00.1 port 2 guid 05011403007bcba1\n\
                0000:4b:00.1 port 1 pkey 0x7fff\n0000:44:00.1 guid 05011403007bcba1\n\
                0000:4b:00.2 port 2 mac aa:bb:cc:dd:ee:f0 spoofchk on\n4b:00.1 guid 1\n\
                0000:4b:00.1 guid 1\n0000:4b:00.1 guid\n0000:4b:00.3 guid 05011403007bcba4\n\
                0000:4b:00.1 \u{1b}[2J x\n";
    let imported = sriov_vfs::import(text, vf_of);
    expect![[r##"
        # From /etc/rdma/sriov-vfs, by `ibprov import`.

        [[pf]]
        pci = "0000:4b:00.0"
        # Names for its VFs that do not depend on chance (ibprov.toml(5)):
        #vf-name = "{netdev}v{vf}"
        #vf-rdma-name = "{rdma}v{vf}"
        vfs = 3
        [[pf.vf]]
        index = 2
        node-guid = "0501:1403:007b:cba4"
        port-guid = "0501:1403:007b:cba4"

        # To do by hand:
        # - line 2: VF 0000:4b:00.1: ibprov plans one port GUID for each VF, and this is for port 2
        # - line 3: VF 0000:4b:00.1 has no GUID here: the subnet manager assigned it. Set one in the configuration
        # - line 4: VF 0000:44:00.1 with GUID 0501:1403:007b:cba1 is not on this host, so its PF and index are not known: create the VFs first, then import
        # - line 5: VF 0000:4b:00.2: "mac" is a setting of Ethernet ports, which ibprov does not change
        # - line 6: "4b:00.1" is not a PCI address: expected domain:bus:device.function in hex, as `lspci -D` prints it, e.g. 0000:4b:00.0
        # - line 7: VF 0000:4b:00.1: "1" is not a GUID: expected 16 hex digits, written 0x0002c903000e8acd, 0002:c903:000e:8acd or 00:02:c9:03:00:0e:8a:cd
        # - line 8: VF 0000:4b:00.1: "guid" without a GUID
        # - line 9: VF 0000:4b:00.3 had 0501:1403:007b:cba3 in a line above: the later one is used
        # - line 10: VF 0000:4b:00.1: "\u{1b}[2J" is not understood
        # - PF 0000:4b:00.0: VF 0, 1 has no GUID in the file, but needs one: `ibprov config check` shows where, and a guid.template gives it
    "##]].assert_eq(&imported.to_text("/etc/rdma/sriov-vfs"));
    // It is shown where a GUID has to be given.
    assert!(check(&imported.toml).expect_err("VF 0 has none").contains("vfs = 3"));
}

#[test]
fn guids_of_the_network_operator() {
    let text = r#"[
      {"pci_address": "0000:4b:00.0", "guids": ["02:00:00:00:00:00:00:00", "02:00:00:00:00:00:00:01"]},
      {"pfGuid": "00:00:10:49:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:12:a4:80", "rangeStart": "02:00:00:00:00:aa:00:02", "rangeEnd": "02:00:00:00:00:aa:00:0a"},
      {"pf_guid": "b8:59:9f:03:00:12:a4:90", "guidsRange": {"start": "02:00:00:00:00:ab:00:00", "end": "02:00:00:00:00:ab:ff:ff"}}
    ]"#;
    let imported = operator_guids::import(text).expect("JSON");
    shows(
        &imported,
        &expect![[r##"
            # From /etc/x, by `ibprov import`.

            [[pf]]
            pci = "0000:4b:00.0"
            # Names for its VFs that do not depend on chance (ibprov.toml(5)):
            #vf-name = "{netdev}v{vf}"
            #vf-rdma-name = "{rdma}v{vf}"
            guid.list = [
                "0200:0000:0000:0000", # VF 0
                "0200:0000:0000:0001", # VF 1
            ]

            [[pf]]
            port-guid = "b859:9f03:0012:a480"
            # Names for its VFs that do not depend on chance (ibprov.toml(5)):
            #vf-name = "{netdev}v{vf}"
            #vf-rdma-name = "{rdma}v{vf}"
            vfs = 9
            guid.range = "0200:0000:00aa:0002 - 0200:0000:00aa:000a"

            [[pf]]
            port-guid = "b859:9f03:0012:a490"
            # Names for its VFs that do not depend on chance (ibprov.toml(5)):
            #vf-name = "{netdev}v{vf}"
            #vf-rdma-name = "{rdma}v{vf}"
            vfs = 127
            guid.range = "0200:0000:00ab:0000 - 0200:0000:00ab:ffff"

            # To do by hand:
            # - PF 2 of the file: the operator has the number of VFs in its policy: vfs is the length of the range, at most 127
            # - PF 3 of the file: the operator has the number of VFs in its policy: vfs is the length of the range, at most 127
        "##]],
    );
    let config = check(&imported.toml).expect("good");
    let vfs: Vec<u16> = config.pf.iter().map(|pf| pf.vfs).collect();
    assert_eq!(vfs, [2, 9, 127]);
}

#[test]
fn what_the_operator_would_not_take_either() {
    let text = r#"[
      {"guids": ["02:00:00:00:00:00:00:00"]},
      {"pciAddress": "0000:4b:00.0", "pfGuid": "b8:59:9f:03:00:12:a4:90", "guids": []},
      {"pciAddress": "0000:4b:00.0"},
      {"pciAddress": "4b:00.0", "guids": ["02:00:00:00:00:00:00:00"]},
      {"pciAddress": "0000:4b:00.0", "guids": ["02:00:00"]},
      {"pciAddress": "0000:4b:00.0", "guids": ["02:00:00:00:00:00:00:00"], "rangeStart": "02:00:00:00:00:00:00:00"},
      {"pciAddress": "0000:4b:00.0", "rangeStart": "02:00:00:00:00:00:00:01", "rangeEnd": "02:00:00:00:00:00:00:00"},
      {"pfGuid": "00:00:00:00:00:00:00:00", "guids": ["02:00:00:00:00:00:00:00"]}
    ]"#;
    shows(
        &operator_guids::import(text).expect("JSON"),
        &expect![[r##"
        # From /etc/x, by `ibprov import`.

        # To do by hand:
        # - PF 1 of the file is left out: it names no PF
        # - PF 2 of the file is left out: it names its PF twice, by address and by GUID
        # - PF 3 of the file is left out: it gives no GUIDs
        # - PF 4 of the file is left out: "4b:00.0" is not a PCI address: expected domain:bus:device.function in hex, as `lspci -D` prints it, e.g. 0000:4b:00.0
        # - PF 5 of the file is left out: "02:00:00" is not a GUID: expected 16 hex digits, written 0x0002c903000e8acd, 0002:c903:000e:8acd or 00:02:c9:03:00:0e:8a:cd
        # - PF 6 of the file is left out: it gives GUIDs and a range
        # - PF 7 of the file is left out: the range ends at 0200:0000:0000:0000, before its first GUID 0200:0000:0000:0001
        # - PF 8 of the file is left out: "00:00:00:00:00:00:00:00" is not a GUID of a PF
    "##]],
    );
    assert!(operator_guids::import("{}").is_err());
    assert!(
        operator_guids::import(r#"[{"pciAddres": "x"}]"#).expect_err("key").contains("pciAddres")
    );
}

#[test]
fn the_shipped_openib_conf_needs_little() {
    let text = "# Start HCA driver upon boot\nONBOOT=yes\nALLOW_STOP=yes\nFORCE_MODE=no\nNODE_DESC=$(hostname -s)\nNODE_DESC_TIME_BEFORE_UPDATE=20\nPOST_START_DELAY=0\nRUN_SYSCTL=no\nUMAD_LOAD=yes\nUVERBS_LOAD=yes\nIPOIB_LOAD=yes\nRDMA_CM_LOAD=yes\nRDMA_UCM_LOAD=yes\nMLX5_LOAD=yes\nSRP_LOAD=no\n";
    shows(
        &openib_conf::import(text),
        &expect![[r##"
            # From /etc/x, by `ibprov import`.

            [modules]
            load = ["rdma_cm", "rdma_ucm"]
        "##]],
    );
}

#[test]
fn a_site_s_openib_conf() {
    let text = "ONBOOT=\"no\"\nIPOIB_LOAD=yes\nexport SRP_LOAD=yes # storage\nSET_IPOIB_CM=yes\nIPOIB_MTU=65520\nUMAD_LOAD='no'\nMLX4_LOAD=no\nNODE_DESC=\"$(cat /etc/name)\"\nRUN_SYSCTL=yes\nPOST_START_DELAY=10\nSDP_LOAD=yes\nCOLOUR=\u{1b}[2J\nif true; then\nIPOIB_LOAD=no\nUVERBS_LOAD=maybe\nX=\"open\nOPENIBD_POST_START=/root/hook.sh\nXPRTRDMA_LOAD=yes\nSVCRDMA_LOAD=YES\n";
    let imported = openib_conf::import(text);
    shows(
        &imported,
        &expect![[r##"
            # From /etc/x, by `ibprov import`.

            [modules]
            load = ["ib_srp", "rpcrdma"]
            exclude = ["ib_umad", "ib_ipoib"]

            [[interface]]
            match.name = "*"
            mode = "connected"
            mtu = 65520

            # To do by hand:
            # - line 1: ONBOOT="no": openibd did not start at boot: leave ibprov.service disabled
            # - line 7: MLX4_LOAD="no": udev loads drivers: to keep this one out, deny it in /etc/modprobe.d (`blacklist NAME`)
            # - line 8: NODE_DESC="$(cat /etc/name)" is computed by a shell, which ibprov does not run
            # - line 9: RUN_SYSCTL="yes": put the settings of /sbin/sysctl_perf_tuning into /etc/sysctl.d
            # - line 10: POST_START_DELAY="10": ibprov waits for the ports instead; order units that need more after a port or a netdev
            # - line 11: SDP_LOAD="yes": current kernels have no such module
            # - line 12: COLOUR="\u{1b}[2J": ibprov does not know this key
            # - line 13: "if true; then" is not an assignment
            # - line 15: UVERBS_LOAD="maybe": neither yes nor no
            # - line 16: X has a quote without an end
            # - line 17: OPENIBD_POST_START="/root/hook.sh": make it a unit, ordered After= or Before=ibprov.service
        "##]],
    );
}

#[test]
fn an_mtu_without_connected_mode_is_said() {
    shows(
        &openib_conf::import("SET_IPOIB_CM=auto\nIPOIB_MTU=65520\n"),
        &expect![[r#"
        # From /etc/x, by `ibprov import`.

        # To do by hand:
        # - line 2: IPOIB_MTU is the MTU of connected mode, which is not set
    "#]],
    );
    shows(
        &openib_conf::import("SET_IPOIB_CM=no\n"),
        &expect![[r##"
        # From /etc/x, by `ibprov import`.

        [[interface]]
        match.name = "*"
        mode = "datagram"
    "##]],
    );
    shows(
        &openib_conf::import("SET_IPOIB_CM=yes\nIPOIB_MTU=99999\n"),
        &expect![[r##"
        # From /etc/x, by `ibprov import`.

        [[interface]]
        match.name = "*"
        mode = "connected"

        # To do by hand:
        # - line 2: IPOIB_MTU="99999": not an MTU of IPoIB
    "##]],
    );
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
        ])
        .prop_map(str::to_owned),
        "(?s).{0,4}",
    ];
    prop::collection::vec(word, 0..14).prop_map(|words| words.join(" ").replace("= ", "="))
}

proptest! {
    #[test]
    fn hostile_files_give_good_toml_or_none(text in words()) {
        let openib = openib_conf::import(&text).to_text("/x\n[boot]");
        prop_assert!(check(&openib).is_ok(), "{}", openib);
        let vfs = sriov_vfs::import(&text, vf_of);
        let shown = vfs.to_text("/x");
        for text in [&openib, &shown] {
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
