//! `ibprov import` on copies of host trees.

use expect_test::expect;

use crate::host::{Host, PF};

#[test]
fn vfs_get_their_pf_from_the_host() {
    let host = Host::healthy();
    for index in 0..2 {
        let vf = format!("0000:4b:00.{}", index + 1);
        host.function(&vf, "15b3:1004", "028000", Some("mlx4_core"));
        host.link(&format!("sys/bus/pci/devices/{vf}/physfn"), &format!("../{PF}"));
        host.link(&format!("sys/bus/pci/devices/{PF}/virtfn{index}"), &format!("../{vf}"));
    }
    host.file(
        "etc/rdma/sriov-vfs",
        "# VFs\n0000:4b:00.2 guid 05011403007bcba2\n0000:4b:00.1 guid 05011403007bcba1\n",
    );
    let shown = host.show(&["import", "sriov-vfs"]);
    expect![[r##"
        # From /etc/rdma/sriov-vfs, by `ibprov import`.

        [[pf]]
        pci = "0000:4b:00.0"
        # Names for its VFs that do not depend on chance (ibprov-vf(5)):
        #vf-name = "{netdev}v{vf}"
        #vf-rdma-name = "{rdma}v{vf}"
        guid.list = [
            "0501:1403:007b:cba1", # VF 0
            "0501:1403:007b:cba2", # VF 1
        ]
        exit 0
    "##]]
    .assert_eq(&shown);
    // What is printed is a configuration.
    host.file("etc/ibprov/ibprov.d/50-vfs.toml", shown.strip_suffix("exit 0\n").expect("good"));
    assert!(host.show(&["config", "check"]).ends_with("exit 0\n"));
}

#[test]
fn what_is_left_to_do_is_exit_1_and_no_file_is_exit_2() {
    let host = Host::healthy();
    // A configuration that is bad is no hindrance.
    host.file("etc/ibprov/ibprov.toml", "x = 1\n");
    expect![[r#"
        error: /etc/infiniband/openib.conf: ENOENT: No such file or directory: there is no such configuration to import; name another FILE to import that
        exit 2
    "#]]
    .assert_eq(&host.show(&["import", "openib-conf"]));
    host.file("etc/infiniband/openib.conf", "SRP_LOAD=yes\nRUN_MLNX_TUNE=yes\n");
    expect![[r##"
        # From /etc/infiniband/openib.conf, by `ibprov import`.

        [modules]
        load = ["ib_srp"]

        # To do by hand:
        # - line 2: RUN_MLNX_TUNE="yes": ibprov does not tune the system: run mlnx_tune in a unit
        exit 1
    "##]]
    .assert_eq(&host.show(&["import", "openib-conf"]));
    host.file("guids", "[{}");
    expect![[r#"
        error: /guids: EOF while parsing a list at line 1 column 3
        exit 2
    "#]]
    .assert_eq(&host.show(&["import", "operator-guids", "/guids"]));
    host.file(
        "guids",
        "[{\"pci_address\": \"0000:4b:00.0\", \"guids\": [\"02:00:00:00:00:00:00:01\"]}]",
    );
    expect![[r##"
        # From /guids, by `ibprov import`.

        [[pf]]
        pci = "0000:4b:00.0"
        # Names for its VFs that do not depend on chance (ibprov-vf(5)):
        #vf-name = "{netdev}v{vf}"
        #vf-rdma-name = "{rdma}v{vf}"
        guid.list = [
            "0200:0000:0000:0001", # VF 0
        ]
        exit 0
    "##]]
    .assert_eq(&host.show(&["import", "operator-guids", "/guids"]));
}

#[test]
fn an_agent_that_reads_the_same_file_is_left_to_do() {
    let host = Host::healthy();
    host.mlnx_interface_manager();
    expect![[r#"
        # From /etc/infiniband/openib.conf, by `ibprov import`.

        # To do by hand:
        # - /lib/udev/rules.d/90-ib.rules: mlnx_interface_mgr continues to configure interfaces from this file: ln -sf /dev/null /etc/udev/rules.d/90-ib.rules && udevadm control --reload
        exit 1
    "#]].assert_eq(&host.show(&["import", "openib-conf"]));
}

#[test]
fn files_of_network_stacks_and_of_rdma_core() {
    let host = Host::healthy();
    host.file("etc/rdma/rdma.conf", "IPOIB_LOAD=yes\nSRP_LOAD=yes\n");
    host.file("etc/rdma/mlx4.conf", &format!("{PF} eth eth\n0000:99:00.0 ib ib\n"));
    let ifcfg = "/etc/sysconfig/network-scripts/ifcfg-ib0";
    host.file(
        &ifcfg[1..],
        "DEVICE=ib0\nTYPE=InfiniBand\nIPADDR=10.0.0.1\nCONNECTED_MODE=yes\nMACADDR=00:11\n",
    );
    let profile = "/etc/NetworkManager/system-connections/ib0.nmconnection";
    host.file(&profile[1..], "[connection]\ntype=infiniband\ninterface-name=ib0\n[infiniband]\nmtu=9\ntransport-mode=datagram\n");
    expect![[r##"
        # From /etc/rdma/rdma.conf, by `ibprov import`.

        [modules]
        load = ["rdma_ucm", "ib_srp"]
        exit 0
    "##]]
    .assert_eq(&host.show(&["import", "rdma-conf"]));
    expect![[r##"
        # From /etc/rdma/mlx4.conf, by `ibprov import`.

        [[port]]
        pci = "0000:4b:00.0"
        port = 1
        type = "eth"
        required = false

        [[port]]
        pci = "0000:4b:00.0"
        port = 2
        type = "eth"
        required = false

        # To do by hand:
        # - line 2: adapter 0000:99:00.0 is not on this host: boot would expect the adapter and wait for it
        exit 1
    "##]]
    .assert_eq(&host.show(&["import", "mlx4-conf"]));
    expect![[r#"
        # From /etc/sysconfig/network-scripts/ifcfg-ib0, by `ibprov import`.

        # Left to the network stack: IPADDR (line 3), MACADDR (line 5)

        # To do by hand:
        # - connected mode left out, because the driver of ib0 does not support connected mode
        exit 1
    "#]]
    .assert_eq(&host.show(&["import", "ifcfg", ifcfg]));
    expect![[r##"
        # From /etc/NetworkManager/system-connections/ib0.nmconnection, by `ibprov import`.

        # /etc/NetworkManager/system-connections/ib0.nmconnection
        [[interface]]
        match.name = "ib0"
        mode = "datagram"

        # To do by hand:
        # - line 5: mtu="9": not an MTU of IPoIB
        exit 1
    "##]]
    .assert_eq(&host.show(&["import", "keyfile", profile]));
    host.file("etc/x", "TYPE=Ethernet\n");
    host.file(
        "etc/ifcfg-ib1.8001",
        "STARTMODE='auto'\nIPOIB_MODE='connected'\nIPADDR=10.0.0.1/24\n",
    );
    expect![[r##"
        # From /etc/ifcfg-ib1.8001, by `ibprov import`.

        # /etc/ifcfg-ib1.8001
        [[interface]]
        match.name = "ib1"
        [[interface.partition]]
        pkey = "0x8001"
        mode = "connected"

        # Left to the network stack: STARTMODE (line 1), IPADDR (line 3)
        exit 0
    "##]]
    .assert_eq(&host.show(&["import", "ifcfg", "/etc/ifcfg-ib1.8001"]));
    host.file("etc/ifcfg-eth0", "TYPE=Ethernet\n");
    expect![[r#"
        error: /etc/x is not named ifcfg-NAME
        exit 2
    "#]]
    .assert_eq(&host.show(&["import", "ifcfg", "/etc/x"]));
    expect![[r#"
        error: /etc/ifcfg-eth0 is not for an InfiniBand interface (TYPE=InfiniBand, or IPOIB=yes of wicked)
        exit 2
    "#]]
    .assert_eq(&host.show(&["import", "ifcfg", "/etc/ifcfg-eth0"]));
    expect![[r#"
        error: /etc/x is not a profile of type infiniband
        exit 2
    "#]]
    .assert_eq(&host.show(&["import", "keyfile", "/etc/x"]));
}
