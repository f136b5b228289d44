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
        # - line 2: VF 0000:4b:00.1: ibprov plans one port GUID for each VF, but this line is for port 2
        # - line 3: VF 0000:4b:00.1 has no GUID in the file: the subnet manager assigned the GUID. Set one in the configuration
        # - line 4: VF 0000:44:00.1 with GUID 0501:1403:007b:cba1 is not on this host, so its PF and index are not known: create the VFs first, then import
        # - line 5: VF 0000:4b:00.2: "mac" is a setting of Ethernet ports, which ibprov does not change
        # - line 6: "4b:00.1" is not a PCI address: expected domain:bus:device.function in hex, as `lspci -D` prints it, e.g. 0000:4b:00.0
        # - line 7: VF 0000:4b:00.1: "1" is not a GUID: expected 16 hex digits, written 0x0002c903000e8acd, 0002:c903:000e:8acd or 00:02:c9:03:00:0e:8a:cd
        # - line 8: VF 0000:4b:00.1: "guid" without a GUID
        # - line 9: VF 0000:4b:00.3 has 0501:1403:007b:cba3 in a line above: the later value is used
        # - line 10: VF 0000:4b:00.1: "\u{1b}[2J" is not a known setting
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
            # - PF 2 of the file: the number of VFs is in the operator's policy: vfs is set to the length of the range, at most 127
            # - PF 3 of the file: the number of VFs is in the operator's policy: vfs is set to the length of the range, at most 127
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
            # - PF 1 of the file is left out: the entry names no PF
            # - PF 2 of the file is left out: the entry names its PF twice, by address and by GUID
            # - PF 3 of the file is left out: the entry gives no GUIDs
            # - PF 4 of the file is left out: "4b:00.0" is not a PCI address: expected domain:bus:device.function in hex, as `lspci -D` prints it, e.g. 0000:4b:00.0
            # - PF 5 of the file is left out: "02:00:00" is not a GUID: expected 16 hex digits, written 0x0002c903000e8acd, 0002:c903:000e:8acd or 00:02:c9:03:00:0e:8a:cd
            # - PF 6 of the file is left out: the entry gives both GUIDs and a range
            # - PF 7 of the file is left out: the range ends at 0200:0000:0000:0000, before its first GUID 0200:0000:0000:0001
            # - PF 8 of the file is left out: "00:00:00:00:00:00:00:00" has the GUID zero, which is not the GUID of a port
        "##]],
    );
    assert!(operator_guids::import("{}").is_err());
    assert!(
        operator_guids::import(r#"[{"pciAddres": "x"}]"#).expect_err("key").contains("pciAddres")
    );
    // serde_json repeats a key as it is.
    let said = operator_guids::import("[{\"pci\u{86}Address\": \"x\"}]").expect_err("key");
    assert!(said.contains("`pci\u{fffd}Address`"), "{said:?}");
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
            # - line 7: MLX4_LOAD="no": udev loads drivers: to exclude this driver, deny it in /etc/modprobe.d (`blacklist NAME`)
            # - line 8: NODE_DESC="$(cat /etc/name)" is computed by a shell, which ibprov does not run
            # - line 9: RUN_SYSCTL="yes": put the settings of /sbin/sysctl_perf_tuning into /etc/sysctl.d
            # - line 10: POST_START_DELAY="10": ibprov waits for the ports instead; order units that need more after a port or a netdev
            # - line 11: SDP_LOAD="yes": current kernels have no such module
            # - line 12: COLOUR="\u{1b}[2J": ibprov does not know this key
            # - line 13: "if true; then" is not an assignment
            # - line 15: UVERBS_LOAD="maybe": neither yes nor no
            # - line 16: X has a quote without an end
            # - line 17: OPENIBD_POST_START="/root/hook.sh": replace the script by a unit that is ordered After= or Before=ibprov.service
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
            # - line 2: IPOIB_MTU="99999" is not an MTU of IPoIB
        "##]],
    );
}

/// As the package of RHEL 7 and 8.0 to 8.2 ships it (`redhat/rdma.conf` of rdma-core 16 to 29).
const RDMA_CONF: &str = "# Load IPoIB\nIPOIB_LOAD=yes\n# Load SRP (SCSI Remote Protocol initiator support) module\nSRP_LOAD=yes\n# Load SRPT (SCSI Remote Protocol target support) module\nSRPT_LOAD=yes\n# Load iSER (iSCSI over RDMA initiator support) module\nISER_LOAD=yes\n# Load iSERT (iSCSI over RDMA target support) module\nISERT_LOAD=yes\n# Load RDS (Reliable Datagram Service) network protocol\nRDS_LOAD=no\n# Load NFSoRDMA client transport module\nXPRTRDMA_LOAD=yes\n# Load NFSoRDMA server transport module\nSVCRDMA_LOAD=no\n# Load Tech Preview device driver modules\nTECH_PREVIEW_LOAD=no\n";

#[test]
fn rdma_conf_as_red_hat_ships_it() {
    shows(
        &rdma_conf::import(RDMA_CONF),
        &expect![[r##"
        # From /etc/x, by `ibprov import`.

        [modules]
        load = ["rdma_ucm", "ib_srp", "ib_srpt", "ib_iser", "ib_isert", "rpcrdma"]
    "##]],
    );
    // RHEL 6; RDS brings IPoIB with it.
    shows(
        &rdma_conf::import(
            "IPOIB_LOAD=no\nRDS_LOAD=yes\nFIXUP_MTRR_REGS=yes\nNFSoRDMA_LOAD=yes\nNFSoRDMA_PORT=2050\nMLX4_LOAD=$(x)\n",
        ),
        &expect![[r##"
            # From /etc/x, by `ibprov import`.

            [modules]
            load = ["rdma_ucm", "rds_rdma", "rpcrdma"]

            # To do by hand:
            # - line 3: FIXUP_MTRR_REGS="yes": current kernels set up write combining without the MTRRs: no setting replaces this one
            # - line 5: NFSoRDMA_PORT="2050": an NFS server listens for RDMA on rdma-port= of [nfsd] in /etc/nfs.conf
            # - line 6: MLX4_LOAD="$(x)" is computed by a shell, which ibprov does not run
        "##]],
    );
    assert!(rdma_conf::import("IPOIB_LOAD=no\n").toml.contains("exclude = [\"ib_ipoib\"]"));
}

#[test]
fn port_types_of_mlx4() {
    let here = |pci: PciAddress| pci.to_string() != "0000:99:00.0";
    // The text around them is that of the package.
    let text = "# Format:\n# <pci_device_of_card> <port1_type> [port2_type]\n#\n0000:0b:00.0 eth eth\n0000:05:00.0 ib ib\n0000:06:00.0 ib\n";
    shows(
        &mlx4_conf::import(text, here),
        &expect![[r##"
        # From /etc/x, by `ibprov import`.

        [[port]]
        pci = "0000:05:00.0"
        port = 1
        type = "ib"

        [[port]]
        pci = "0000:05:00.0"
        port = 2
        type = "ib"

        [[port]]
        pci = "0000:06:00.0"
        port = 1
        type = "ib"

        [[port]]
        pci = "0000:0b:00.0"
        port = 1
        type = "eth"
        required = false

        [[port]]
        pci = "0000:0b:00.0"
        port = 2
        type = "eth"
        required = false
    "##]],
    );
    let text = "0000:0b:00.0 eth ib\n0000:05:00.0 auto ib\n0000:06:00.0\n0000:07:00.0 IB ib\n0000:99:00.0 ib\n5:0 ib\n0000:08:00.0 ib ib\n0000:08:00.0 ib eth\n0000:09:00.0 ib ib ib\n0000:0a:00.0 eth\n";
    shows(
        &mlx4_conf::import(text, here),
        &expect![[r##"
            # From /etc/x, by `ibprov import`.

            [[port]]
            pci = "0000:05:00.0"
            port = 2
            type = "ib"

            [[port]]
            pci = "0000:08:00.0"
            port = 1
            type = "ib"

            [[port]]
            pci = "0000:08:00.0"
            port = 2
            type = "eth"
            required = false

            [[port]]
            pci = "0000:0a:00.0"
            port = 1
            type = "eth"
            required = false

            # To do by hand:
            # - line 1: adapter 0000:0b:00.0: port 1 can be eth only if port 2 is: mlx4-setup.sh refuses it
            # - line 2: adapter 0000:05:00.0, port 1: ibprov sets ib or eth, and does not change a port whose type the adapter detects (auto)
            # - line 3: adapter 0000:06:00.0: expected a type for each of one or two ports
            # - line 4: adapter 0000:07:00.0: port 1: "IB" is not a port type: expected ib, eth or auto
            # - line 5: adapter 0000:99:00.0 is not on this host: boot would expect the adapter and wait for it
            # - line 6: "5:0" is not a PCI address: expected domain:bus:device.function in hex, as `lspci -D` prints it, e.g. 0000:4b:00.0
            # - line 7: adapter 0000:08:00.0 has another line, 8, which is used
            # - line 9: adapter 0000:09:00.0: expected a type for each of one or two ports
        "##]],
    );
}

fn of_ifcfg(name: &str, text: &str) -> Imported {
    let said = ifcfg::read(name, text).expect("InfiniBand");
    interfaces::import(&[(format!("{}/ifcfg-{name}", ifcfg::DIR), said)])
}

#[test]
fn ifcfg_of_red_hat() {
    // As Red Hat's manual for RHEL 7 has them, parent and child.
    shows(
        &of_ifcfg(
            "mlx4_ib0",
            "DEVICE=mlx4_ib0\nTYPE=InfiniBand\nONBOOT=yes\nHWADDR=80:00:02:00:fe:80:00:00:00:00:00:00:f4:52:14:03:00:7b:cb:a1\nBOOTPROTO=none\nIPADDR=172.31.0.254\nPREFIX=24\nNETWORK=172.31.0.0\nBROADCAST=172.31.0.255\nIPV4_FAILURE_FATAL=yes\nIPV6INIT=no\nMTU=65520\nCONNECTED_MODE=yes\nNAME=mlx4_ib0\n",
        ),
        &expect![[r##"
            # From /etc/x, by `ibprov import`.

            # /etc/sysconfig/network-scripts/ifcfg-mlx4_ib0
            [[interface]]
            match.name = "mlx4_ib0"
            mode = "connected"
            mtu = 65520

            # Left to the network stack: ONBOOT (line 3), BOOTPROTO (line 5), IPADDR (line 6), PREFIX (line 7), NETWORK (line 8), BROADCAST (line 9), IPV4_FAILURE_FATAL (line 10), IPV6INIT (line 11), NAME (line 14)
        "##]],
    );
    shows(
        &of_ifcfg(
            "mlx4_ib0.8002",
            "DEVICE=mlx4_ib0.8002\nPHYSDEV=mlx4_ib0\nPKEY=yes\nPKEY_ID=2\nTYPE=InfiniBand\nONBOOT=yes\nMTU=65520\nCONNECTED_MODE=yes\nIPADDR=172.31.2.254\n",
        ),
        &expect![[r##"
            # From /etc/x, by `ibprov import`.

            # /etc/sysconfig/network-scripts/ifcfg-mlx4_ib0.8002
            [[interface]]
            match.name = "mlx4_ib0"
            [[interface.partition]]
            pkey = "0x8002"
            mode = "connected"
            mtu = 65520

            # Left to the network stack: ONBOOT (line 6), IPADDR (line 9)
        "##]],
    );
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

fn of_wicked(name: &str, text: &str) -> Imported {
    let said = ifcfg_suse::read(name, text).expect("InfiniBand");
    interfaces::import(&[(format!("{}/ifcfg-{name}", ifcfg_suse::DIR), said)])
}

#[test]
fn ifcfg_of_wicked() {
    shows(
        &of_wicked(
            "ib0",
            "STARTMODE='auto'\nBOOTPROTO='static'\nIPADDR='10.0.0.1/24'\nIPOIB_MODE='connected'\nIPOIB_UMCAST='allowed'\nMTU='65520'\n",
        ),
        &expect![[r##"
            # From /etc/x, by `ibprov import`.

            # /etc/sysconfig/network/ifcfg-ib0
            [[interface]]
            match.name = "ib0"
            mode = "connected"
            umcast = true
            mtu = 65520

            # Left to the network stack: STARTMODE (line 1), BOOTPROTO (line 2), IPADDR (line 3)
        "##]],
    );
    // A child by the name alone, and one with a name of its own.
    shows(
        &of_wicked("ib0.8001", "STARTMODE=hotplug\nBOOTPROTO=dhcp\n"),
        &expect![[r##"
        # From /etc/x, by `ibprov import`.

        # /etc/sysconfig/network/ifcfg-ib0.8001
        [[interface]]
        match.name = "ib0"
        [[interface.partition]]
        pkey = "0x8001"

        # Left to the network stack: STARTMODE (line 1), BOOTPROTO (line 2)
    "##]],
    );
    shows(
        &of_wicked(
            "storage",
            "IPOIB=yes\nIPOIB_DEVICE=ib1\nIPOIB_PKEY=0x8002\nIPOIB_MODE=datagram\nIPOIB_UMCAST=0\n",
        ),
        &expect![[r##"
            # From /etc/x, by `ibprov import`.

            # /etc/sysconfig/network/ifcfg-storage
            [[interface]]
            match.name = "ib1"
            [[interface.partition]]
            pkey = "0x8002"
            name = "storage"
            mode = "datagram"
            umcast = false
        "##]],
    );
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

#[test]
fn a_port_without_a_name_is_told_by_its_address() {
    let text = "TYPE=InfiniBand\nNAME=first\nHWADDR=80:00:02:00:fe:80:00:00:00:00:00:00:f4:52:14:03:00:7b:cb:a1\nCONNECTED_MODE=yes\n";
    assert!(of_ifcfg("first", text).toml.contains("match.port-guid = \"f452:1403:007b:cba1\""));
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
    shows(
        &of_keyfile(&parent),
        &expect![[r##"
        # From /etc/x, by `ibprov import`.

        # /etc/NetworkManager/system-connections/x.nmconnection
        [[interface]]
        match.name = "ib0"
        mode = "connected"
        mtu = 65520

        # Left to the network stack: connection.id (line 2), connection.uuid (line 3), ipv4.method (line 12)
    "##]],
    );
    // The parent's settings come before, whatever the order of the files, since they hold for
    // the child too, and its MTU is none of datagram mode.
    let read = |text: &str| keyfile::read(text).expect("InfiniBand");
    let files = [("/a".to_owned(), read(&child)), ("/b".to_owned(), read(&parent))];
    shows(
        &interfaces::import(&files),
        &expect![[r##"
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
    "##]],
    );
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
        let openib = openib_conf::import(&text).to_text("/x\n[boot]");
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
