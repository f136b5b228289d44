//! `ibprov migrate` on copies of host trees: what becomes of what is there, that nothing else
//! changes, and that it can be undone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use expect_test::expect;
use serde_json::Value;

use crate::host::{Host, PF, PortSpec};

const LIB: &str = "usr/lib/systemd/system";
const ETC: &str = "etc/systemd/system";
const RECORD: &str = "var/lib/ibprov/migration.json";

/// What every system has, and ibprov installed on it.
fn system() -> Host {
    let host = Host::new();
    for (unit, text) in [
        ("multi-user.target", "[Unit]\nRequires=basic.target\nAfter=basic.target\n"),
        ("basic.target", "[Unit]\nRequires=sysinit.target\nAfter=sysinit.target\n"),
        (
            "sysinit.target",
            "[Unit]\nDefaultDependencies=no\nWants=local-fs.target\nAfter=local-fs.target\n",
        ),
        ("local-fs.target", "[Unit]\nDefaultDependencies=no\n"),
        ("network-pre.target", "[Unit]\n"),
        ("network.target", "[Unit]\nAfter=network-pre.target\n"),
        ("network-online.target", "[Unit]\nAfter=network.target\n"),
        (
            "networking.service",
            "[Unit]\nDefaultDependencies=no\nWants=network.target\nAfter=local-fs.target network-pre.target\nBefore=network.target\n[Service]\nType=oneshot\nExecStart=/sbin/ifup -a\n",
        ),
    ] {
        host.file(&format!("{LIB}/{unit}"), text);
    }
    host.link(&format!("{LIB}/default.target"), "multi-user.target");
    host.link(
        &format!("{ETC}/multi-user.target.wants/networking.service"),
        "/usr/lib/systemd/system/networking.service",
    );
    let units = concat!(env!("CARGO_MANIFEST_DIR"), "/units");
    for unit in fs::read_dir(units).expect("units") {
        let unit = unit.expect("unit");
        let text = fs::read_to_string(unit.path()).expect("unit");
        host.file(&format!("{LIB}/{}", unit.file_name().to_str().expect("name")), &text);
    }
    host
}

/// The vendor's openibd with all that its packages bring, as MLNX_OFED 5.8 has it.
fn mlnx_ofed() -> Host {
    let host = system();
    let unit = "[Unit]\nDescription=openibd - configure Mellanox devices\nDefaultDependencies=false\nAfter=local-fs.target\nBefore=network.target network.service networking.service remote-fs-pre.target\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/etc/init.d/openibd start bootid=%b\n[Install]\nWantedBy=sysinit.target\n";
    host.file(&format!("{LIB}/openibd.service"), unit);
    host.link(
        &format!("{ETC}/sysinit.target.wants/openibd.service"),
        "/usr/lib/systemd/system/openibd.service",
    );
    host.file("etc/init.d/openibd", "#!/bin/sh\n# chkconfig: 2345 05 95\n");
    for level in 2..6 {
        host.link(&format!("etc/rc{level}.d/S05openibd"), "../init.d/openibd");
    }
    host.mlnx_interface_manager();
    // Some releases install the rule here.
    let rule = fs::read_to_string(host.path("lib/udev/rules.d/90-ib.rules")).expect("rule");
    host.remove("lib/udev/rules.d/90-ib.rules");
    host.file("etc/udev/rules.d/90-ib.rules", &rule);
    let mode = fs::Permissions::from_mode(0o640);
    fs::set_permissions(host.path("etc/udev/rules.d/90-ib.rules"), mode).expect("mode");
    host.file(
        "etc/infiniband/openib.conf",
        "ONBOOT=yes\nSRP_LOAD=yes\nSET_IPOIB_CM=yes\nIPOIB_MTU=65520\nRUN_MLNX_TUNE=yes\n",
    );
    host.file(
        "etc/sysconfig/network-scripts/ifcfg-ib0",
        "DEVICE=ib0\nONBOOT=yes\nIPADDR=10.1.2.3\n",
    );
    host.file("etc/default/opensm", "PORTS=\"ALL\"\n");
    host
}

/// A distribution's rdma-core, and nothing of the vendor's.
fn rdma_core() -> Host {
    let host = system();
    host.file(&format!("{LIB}/rdma-load-modules@.service"), "[Service]\nType=oneshot\n");
    host.file("etc/rdma/mlx4.conf", "0000:05:00.0 ib ib\n");
    host.function("0000:05:00.0", "15b3:1003", "028000", Some("mlx4_core"));
    host
}

/// A node of RHEL 8.2 with all the files of its rdma-core and of both its network stacks.
fn red_hat() -> Host {
    let host = rdma_core();
    host.file(
        &format!("{LIB}/rdma.service"),
        "[Unit]\nDescription=Initialize the iWARP/InfiniBand/RDMA stack in the kernel\n[Service]\nType=oneshot\nExecStart=/usr/libexec/rdma-init-kernel\n",
    );
    host.file(
        "etc/rdma/rdma.conf",
        "# Load IPoIB\nIPOIB_LOAD=yes\n# Load SRP (SCSI Remote Protocol initiator support) module\nSRP_LOAD=yes\n# Load SRPT (SCSI Remote Protocol target support) module\nSRPT_LOAD=no\n# Load iSER (iSCSI over RDMA initiator support) module\nISER_LOAD=yes\n# Load iSERT (iSCSI over RDMA target support) module\nISERT_LOAD=no\n# Load RDS (Reliable Datagram Service) network protocol\nRDS_LOAD=no\n# Load NFSoRDMA client transport module\nXPRTRDMA_LOAD=yes\n# Load NFSoRDMA server transport module\nSVCRDMA_LOAD=no\n# Load Tech Preview device driver modules\nTECH_PREVIEW_LOAD=no\n",
    );
    let scripts = "etc/sysconfig/network-scripts";
    host.file(
        &format!("{scripts}/ifcfg-ib0"),
        "CONNECTED_MODE=yes\nTYPE=InfiniBand\nBOOTPROTO=none\nIPADDR=10.1.2.3\nPREFIX=24\nNAME=ib0\nDEVICE=ib0\nONBOOT=yes\nMTU=65520\n",
    );
    host.file(
        &format!("{scripts}/ifcfg-ib0.8002"),
        "CONNECTED_MODE=no\nTYPE=InfiniBand\nPKEY=yes\nPKEY_ID=0x2\nPHYSDEV=ib0\nBOOTPROTO=none\nIPADDR=10.1.3.3\nPREFIX=24\nDEVICE=ib0.8002\nONBOOT=yes\n",
    );
    host.file(&format!("{scripts}/ifcfg-ib3"), "DEVICE=ib3\nTYPE=InfiniBand\nBOOTPROTO=dhcp\n");
    host.file("etc/sysconfig/network/ifcfg-ib7", "STARTMODE=auto\nIPOIB_MODE=datagram\nMTU=2044\n");
    host.file(&format!("{scripts}/ifcfg-eth0"), "DEVICE=eth0\nTYPE=Ethernet\nMTU=9000\n");
    host.file(
        "etc/NetworkManager/system-connections/Infini Band 1.nmconnection",
        "[connection]\nid=Infini Band 1\nuuid=3f1c2e30-5e4b-4f7e-9d2e-0c5fb4a4a0e1\ntype=infiniband\ninterface-name=ib1\n\n[infiniband]\ntransport-mode=datagram\nmtu=2044\n\n[ipv4]\naddress1=10.1.4.3/24\nmethod=manual\n",
    );
    host
}

/// A site whose own scripts do all.
fn by_hand() -> Host {
    let mut host = system();
    host.function(PF, "15b3:101b", "020700", Some("mlx5_core"));
    host.rdma(PF, "mlx5_0", "b859:9f03:0012:a480", &[PortSpec::default()]);
    host.file("etc/sysfs.d/vfs.conf", "class/net/ib0/device/sriov_numvfs = 4\n");
    host.file(
        "etc/rc.local",
        "#!/bin/sh\n# modprobe ib_umad by hand\nmodprobe ib_ipoib\necho 4 >/sys/class/infiniband/mlx5_0/device/sriov_numvfs\nifup ib0\nvirsh start vm09\n",
    );
    host.file("etc/cron.d/fabric", "@reboot root /usr/local/sbin/guids\n* * * * * root ifup ib0\n");
    host.file(
        "usr/local/sbin/guids",
        "#!/bin/sh\nip link set ib0 vf 0 node_guid 02:00:00:00:00:00:00:01\n",
    );
    host.file(
        &format!("{ETC}/sriov_config.service"),
        "[Unit]\nAfter=openibd.service\n[Service]\nType=oneshot\nExecStart=/usr/bin/os-net-config-sriov\n",
    );
    host.link(&format!("{ETC}/basic.target.wants/sriov_config.service"), "../sriov_config.service");
    host
}

/// Everything below `root`, by path: what it is, its mode, its content and its time.
fn all(root: &Path) -> BTreeMap<String, String> {
    fn walk(root: &Path, dir: &Path, into: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(dir).expect("directory") {
            let path = entry.expect("entry").path();
            let meta = fs::symlink_metadata(&path).expect("entry");
            let name = path.strip_prefix(root).expect("below").display().to_string();
            let what = if meta.is_dir() {
                walk(root, &path, into);
                format!("directory {:o}", meta.mode())
            } else if meta.is_symlink() {
                format!("link to {}", fs::read_link(&path).expect("link").display())
            } else {
                let text = fs::read(&path).expect("file");
                let time = (meta.mtime(), meta.mtime_nsec());
                format!("file {:o} {time:?} {}", meta.mode(), String::from_utf8_lossy(&text))
            };
            into.insert(name, what);
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

fn tree(host: &Host) -> BTreeMap<String, String> {
    all(&host.path(""))
}

/// The same without the times of files, for trees that were made one after the other.
fn untimed(host: &Host) -> BTreeMap<String, String> {
    let untimed = |what: String| match what.split_once(") ") {
        Some((begin, rest)) if what.starts_with("file ") => {
            format!("{} {rest}", begin.split('(').next().expect("mode"))
        }
        _ => what,
    };
    // The record has the times of what it keeps.
    let others = tree(host).into_iter().filter(|(path, _)| path != RECORD);
    others.map(|(path, what)| (path, untimed(what))).collect()
}

const NONE: [String; 0] = [];

/// Where two trees differ.
fn differ(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let paths = one.keys().chain(other.keys().filter(|path| !one.contains_key(*path)));
    let differing = paths.filter(|path| one.get(*path) != other.get(*path));
    differing.map(|path| format!("{path}: {:?}, {:?}", one.get(path), other.get(path))).collect()
}

fn exit(host: &Host, arguments: &[&str]) -> i32 {
    host.ibprov(arguments).status.code().expect("exit code")
}

fn json(host: &Host, arguments: &[&str]) -> Value {
    let out = host.ibprov(&[arguments, &["--format", "json"]].concat());
    serde_json::from_slice(&out.stdout).expect("JSON")
}

fn codes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("findings").iter();
    findings.map(|finding| finding["code"].as_str().expect("code")).collect()
}

#[test]
fn what_becomes_of_the_vendors_openibd_is_shown_and_nothing_is_changed() {
    let host = mlnx_ofed();
    let before = tree(&host);
    let shown = host.show(&["migrate"]);
    assert_eq!(tree(&host), before);
    expect![[r#"
        would be migrated
          imported: /etc/infiniband/openib.conf: the settings become a drop-in of ibprov's configuration
            drop-in: /etc/ibprov/ibprov.d/50-openib.toml
          disabled: /usr/lib/systemd/system/openibd.service: ibprov replaces the unit at boot, and takes its name
          disabled: /etc/init.d/openibd: the rc links no longer start the script
          disabled: /etc/udev/rules.d/90-ib.rules: the rule is masked by a link to /dev/null in /etc/udev/rules.d, which package updates keep
          enabled: ibprov.service: ibprov brings the ports up at boot, before the network starts
          left: /etc/default/opensm: opensm continues to read the file; ibprov starts one only by a [[subnet-manager]] and ibprov-opensm.target
          left: /etc/sysconfig/network-scripts/ifcfg-ib0: addresses stay with the network stack, which ibprov waits for
        warning: /etc/infiniband/openib.conf: line 5: RUN_MLNX_TUNE="yes": ibprov does not tune the system: run mlnx_tune in a unit
        Changes:
          create the directory /etc/ibprov
          create the directory /etc/ibprov/ibprov.d
          write /etc/ibprov/ibprov.d/50-openib.toml
          link /etc/systemd/system/sysinit.target.wants/ibprov.service to /usr/lib/systemd/system/ibprov.service
          link /etc/systemd/system/sysinit.target.wants/ibprov-openibd.service to /usr/lib/systemd/system/ibprov-openibd.service
          link /etc/systemd/system/openibd.service to /usr/lib/systemd/system/ibprov-openibd.service
          remove /etc/systemd/system/sysinit.target.wants/openibd.service
          link /etc/rc2.d/K95openibd to ../init.d/openibd
          remove /etc/rc2.d/S05openibd
          link /etc/rc3.d/K95openibd to ../init.d/openibd
          remove /etc/rc3.d/S05openibd
          link /etc/rc4.d/K95openibd to ../init.d/openibd
          remove /etc/rc4.d/S05openibd
          link /etc/rc5.d/K95openibd to ../init.d/openibd
          remove /etc/rc5.d/S05openibd
          replace /etc/udev/rules.d/90-ib.rules, a file, by a link to /dev/null
        Nothing was changed. To do it: ibprov migrate --apply
        exit 1
    "#]].assert_eq(&shown);
}

#[test]
fn what_the_driver_would_refuse_is_left_out_with_a_warning() {
    let mut host = mlnx_ofed();
    host.function(PF, "15b3:101b", "020700", Some("mlx5_core"));
    host.rdma(PF, "mlx5_0", "b859:9f03:0012:a480", &[PortSpec::default()]);
    host.file("etc/infiniband/openib.conf", "SET_IPOIB_CM=yes\nIPOIB_MTU=65520\n");
    host.file(
        "etc/sysconfig/network-scripts/ifcfg-ib0",
        "DEVICE=ib0\nTYPE=InfiniBand\nCONNECTED_MODE=yes\nMTU=65520\n",
    );
    let left_out = |host: &Host| {
        let report = json(host, &["migrate"]);
        let all = report["findings"].as_array().expect("findings").iter();
        let all = all.filter(|finding| finding["code"] == "not-converted");
        all.map(|finding| format!("{}: {}", finding["object"], finding["message"]))
            .collect::<Vec<_>>()
    };
    let told = left_out(&host);
    assert!(
        matches!(&told[..], [one, other] if one.contains("openib.conf") && one.contains("ib0")
            && other.contains("connected mode and MTU 65520 left out")),
        "{told:?}"
    );
    assert_eq!(exit(&host, &["migrate", "--apply"]), 1);
    assert!(!host.path("etc/ibprov/ibprov.d/50-openib.toml").exists());
    assert!(!host.path("etc/ibprov/ibprov.d/60-interfaces.toml").exists());
    assert!(!codes(&json(&host, &["status"])).contains(&"setting-refused"));
    // A driver that has connected mode.
    assert_eq!(exit(&host, &["migrate", "--back", "--apply"]), 0);
    let address = format!("sys/bus/pci/devices/{PF}/net/ib0/address");
    let able = fs::read_to_string(host.path(&address)).expect("address").replacen("00:", "80:", 1);
    host.file(&address, &able);
    assert_eq!(left_out(&host), [""; 0]);
    assert_eq!(exit(&host, &["migrate", "--apply"]), 0);
    assert!(!codes(&json(&host, &["status"])).contains(&"setting-refused"));
}

#[test]
fn settings_of_red_hats_files_become_ibprovs_and_the_stack_keeps_its_addresses() {
    let host = red_hat();
    expect![[r#"
        would be migrated
          imported: /etc/rdma/rdma.conf: the settings become a drop-in of ibprov's configuration
            drop-in: /etc/ibprov/ibprov.d/50-rdma.toml
          imported: /etc/rdma/mlx4.conf: the port types become a drop-in of ibprov's configuration; a modprobe rule of rdma-core continues to set the same types
            drop-in: /etc/ibprov/ibprov.d/50-mlx4.toml
          imported: /etc/sysconfig/network-scripts/ifcfg-ib0: mode, MTU and P_Key become a drop-in, by which ibprov checks the interface; addresses stay with the network stack
            drop-in: /etc/ibprov/ibprov.d/60-interfaces.toml
          imported: /etc/sysconfig/network-scripts/ifcfg-ib0.8002: mode, MTU and P_Key become a drop-in, by which ibprov checks the interface; addresses stay with the network stack
            drop-in: /etc/ibprov/ibprov.d/60-interfaces.toml
          imported: /etc/sysconfig/network/ifcfg-ib7: mode, MTU and P_Key become a drop-in, by which ibprov checks the interface; addresses stay with the network stack
            drop-in: /etc/ibprov/ibprov.d/60-interfaces.toml
          imported: /etc/NetworkManager/system-connections/Infini Band 1.nmconnection: mode, MTU and P_Key become a drop-in, by which ibprov checks the interface; addresses stay with the network stack
            drop-in: /etc/ibprov/ibprov.d/60-interfaces.toml
          enabled: ibprov.service: ibprov brings the ports up at boot, before the network starts
          left: /usr/lib/systemd/system/rdma-load-modules@.service: modules are loaded by this too; ibprov skips modules that are loaded
          left: /etc/sysconfig/network-scripts/ifcfg-ib3: addresses stay with the network stack, which ibprov waits for
        Changes:
          create the directory /etc/ibprov
          create the directory /etc/ibprov/ibprov.d
          write /etc/ibprov/ibprov.d/50-rdma.toml
          write /etc/ibprov/ibprov.d/50-mlx4.toml
          write /etc/ibprov/ibprov.d/60-interfaces.toml
          create the directory /etc/systemd/system/sysinit.target.wants
          link /etc/systemd/system/sysinit.target.wants/ibprov.service to /usr/lib/systemd/system/ibprov.service
          link /etc/systemd/system/sysinit.target.wants/ibprov-openibd.service to /usr/lib/systemd/system/ibprov-openibd.service
          link /etc/systemd/system/openibd.service to /usr/lib/systemd/system/ibprov-openibd.service
        Nothing was changed. To do it: ibprov migrate --apply
        exit 1
    "#]].assert_eq(&host.show(&["migrate"]));
    assert_eq!(exit(&host, &["migrate", "--apply"]), 0);
    let drop_in = |name: &str| {
        fs::read_to_string(host.path(&format!("etc/ibprov/ibprov.d/{name}"))).expect(name)
    };
    expect![[r##"
        # From the files named below, by `ibprov import`.

        # /etc/sysconfig/network-scripts/ifcfg-ib0
        [[interface]]
        match.name = "ib0"
        mode = "connected"
        mtu = 65520

        # /etc/sysconfig/network/ifcfg-ib7
        [[interface]]
        match.name = "ib7"
        mode = "datagram"
        mtu = 2044

        # /etc/NetworkManager/system-connections/Infini Band 1.nmconnection
        [[interface]]
        match.name = "ib1"
        mode = "datagram"
        mtu = 2044

        # /etc/sysconfig/network-scripts/ifcfg-ib0.8002
        [[interface]]
        match.name = "ib0"
        [[interface.partition]]
        pkey = "0x8002"
        mode = "datagram"
        mtu = 2044 # its parent's would be too large
    "##]]
    .assert_eq(&drop_in("60-interfaces.toml"));
    assert!(drop_in("50-mlx4.toml").contains("pci = \"0000:05:00.0\"\nport = 2\ntype = \"ib\""));
    assert!(
        drop_in("50-rdma.toml")
            .contains("load = [\"rdma_ucm\", \"ib_srp\", \"ib_iser\", \"rpcrdma\"]")
    );
    let left: Vec<Value> = json(&host, &["migrate"])["items"].as_array().expect("items").clone();
    let there = left.iter().filter(|item| item["reason"] == "settings-there").count();
    assert_eq!(there, 6, "{left:#?}");
    // The host has no adapter at that address, and no rdma.service.
    fs::remove_dir_all(host.path("sys/bus/pci/devices/0000:05:00.0")).expect("directory");
    host.remove(&format!("{LIB}/rdma.service"));
    assert_eq!(exit(&host, &["migrate", "--back", "--apply"]), 0);
    let report = json(&host, &["migrate"]);
    assert_eq!(codes(&report), ["not-converted"]);
    let reason_of = |object: &str| {
        let items = report["items"].as_array().expect("items");
        items.iter().find(|item| item["object"] == object).expect(object)["reason"].clone()
    };
    assert_eq!(reason_of("/etc/rdma/mlx4.conf"), "nothing-converted");
    assert_eq!(reason_of("/etc/rdma/rdma.conf"), "rdma-conf");
    // A setting that cannot be taken over is told with its place, and an unreadable file stops it.
    host.file("etc/sysconfig/network-scripts/ifcfg-ib0", "TYPE=InfiniBand\nMTU=$(cat /etc/mtu)\n");
    let report = json(&host, &["migrate"]);
    let told = report["findings"].as_array().expect("findings").iter();
    let told: Vec<&Value> =
        told.filter(|f| f["object"] == "/etc/sysconfig/network-scripts/ifcfg-ib0").collect();
    assert!(
        told.len() == 1 && told[0]["message"].as_str().expect("text").starts_with("line 2: "),
        "{told:?}"
    );
    host.remove("etc/rdma/mlx4.conf");
    fs::create_dir(host.path("etc/rdma/mlx4.conf")).expect("directory");
    assert_eq!(exit(&host, &["migrate"]), 3);
}

#[test]
fn what_a_site_does_by_itself_needs_a_decision() {
    let host = by_hand();
    host.file("etc/infiniband/connectx.conf", "0000:05:00.0 ib eth\n");
    host.file("etc/infiniband/mlx5.conf", "set_relaxed_ordering=yes\n");
    host.file("etc/modules-load.d/fabric.conf", "# GPUs\nib_iser\n");
    host.file("etc/modules-load.d/other.conf", "loop\n");
    host.file(
        "etc/modprobe.d/vfio.conf",
        "options vfio-pci ids=15b3:101c,8086:1\noptions vfio-pci ids=8086:2\n",
    );
    host.file("etc/netplan/60-ib.yaml", "network: {version: 2}\n");
    expect![[r#"
        would be migrated
          enabled: ibprov.service: ibprov brings the ports up at boot, before the network starts
          left: /etc/modules-load.d/fabric.conf: modules are loaded by this too; ibprov skips modules that are loaded
          needs a decision: /etc/infiniband/connectx.conf: openibd sets the types of ports (ib, eth) from this file; without it they are those of the firmware
            do: write a [[port]] with its type for each port of the file (ibprov.toml(5)), then remove the file
          needs a decision: /etc/infiniband/mlx5.conf: mlnx_interface_mgr applies this file by mlnx_conf_mgr.sh, and ibprov does not know its settings
            do: if they are needed, have a unit of your own set them; then remove the file
          needs a decision: /etc/rc.local:3 (modprobe ib_ipoib): modules for InfiniBand are loaded or unloaded here
            do: ibprov loads drivers, ib_umad, ib_uverbs and ib_ipoib: list others in modules.load, then remove this line or unit
          needs a decision: /etc/rc.local:4 (echo 4 >/sys/class/infiniband/mlx5_0/device/sriov_numvfs): VFs are created here, or their GUIDs are set
            do: plan the VFs with [[pf]] (ibprov-vf(5)), compare with `ibprov plan`, then remove this line or unit
          needs a decision: /etc/rc.local:5 (ifup ib0): an InfiniBand interface is configured here
            do: remove this line or unit if it was only needed because the interface appeared too late; settings belong to [[interface]], addresses to the network stack
          needs a decision: /etc/rc.local:6 (virsh start vm09): a virtual machine is started here, whether its VFs are ready or not
            do: if it has VFs: list it as [[guest]] (ibprov.toml(5)), which starts it when they are ready, then remove this line
          needs a decision: /etc/cron.d/fabric:1 (@reboot root /usr/local/sbin/guids; /usr/local/sbin/guids:2: ip link set ib0 vf 0 node_guid 02:00:00:00:00:00:00:01): VFs are created here, or their GUIDs are set
            do: plan the VFs with [[pf]] (ibprov-vf(5)), compare with `ibprov plan`, then remove this line or unit
          needs a decision: sriov_config.service (/usr/bin/os-net-config-sriov): probably, VFs are created here, or their GUIDs are set
            do: plan the VFs with [[pf]] (ibprov-vf(5)), compare with `ibprov plan`, then remove this line or unit
          needs a decision: /etc/sysfs.d/vfs.conf:1 (class/net/ib0/device/sriov_numvfs = 4): VFs are created here, or their GUIDs are set
            do: plan the VFs with [[pf]] (ibprov-vf(5)), compare with `ibprov plan`, then remove this line or unit
          needs a decision: /etc/modprobe.d/vfio.conf:1 (options vfio-pci ids=15b3:101c,8086:1): adapters or VFs are bound to a driver or unbound here, maybe while ibprov sets them up
            do: ibprov binds VFs once their GUIDs are set, as [[pf]] says (ibprov-vf(5)); remove this line or unit if it is for that
        note: /etc/netplan/60-ib.yaml: addresses, MTU and infiniband-mode were not judged: netplan writes its files for systemd-networkd and NetworkManager during the boot
        Changes:
          create the directory /etc/systemd/system/sysinit.target.wants
          link /etc/systemd/system/sysinit.target.wants/ibprov.service to /usr/lib/systemd/system/ibprov.service
          link /etc/systemd/system/sysinit.target.wants/ibprov-openibd.service to /usr/lib/systemd/system/ibprov-openibd.service
          link /etc/systemd/system/openibd.service to /usr/lib/systemd/system/ibprov-openibd.service
        Nothing was changed. To do it: ibprov migrate --apply
        exit 1
    "#]].assert_eq(&host.show(&["migrate"]));
    let left =
        ["etc/sysfs.d/vfs.conf", "etc/rc.local", "etc/cron.d/fabric", "usr/local/sbin/guids"];
    let before = left.map(|file| fs::read_to_string(host.path(file)).expect("file"));
    let report = json(&host, &["migrate", "--apply"]);
    assert_eq!(report["verdict"], "exceptions");
    let wanted = [vec!["needs-decision"; 10], vec!["notice"]].concat();
    assert_eq!(codes(&report), wanted);
    let after = left.map(|file| fs::read_to_string(host.path(file)).expect("file"));
    assert_eq!(before, after);
}

/// Azure's images and nic-configuration-operator rename RDMA devices; rdma-core's own rule is
/// known.
#[test]
fn what_renames_rdma_devices_needs_a_decision() {
    let host = rdma_core();
    host.file(
        "usr/lib/udev/rules.d/60-rdma-persistent-naming.rules",
        "ACTION==\"add\", SUBSYSTEM==\"infiniband\", PROGRAM=\"rdma_rename %k NAME_FALLBACK\"\n",
    );
    host.file("usr/lib/udev/rules.d/70-x.rules", "RUN+=\"/usr/bin/rdma dev set %k name x\"\n");
    host.link("etc/udev/rules.d/70-x.rules", "/dev/null");
    host.file(
        "etc/udev/rules.d/10-nic-rdma-interface-naming.rules",
        "# Auto-generated\n\nACTION==\"add\", KERNELS==\"0000:1a:00.0\", SUBSYSTEM==\"infiniband\", RUN+=\"/usr/bin/rdma dev set %k name rdma_0_0_0\"\nRUN+=\"/sbin/modprobe ib_umad\"\n",
    );
    for (unit, script) in [
        (
            "azure_persistent_rdma_naming",
            "rdma_rename=/usr/sbin/rdma_rename_55.0\n$rdma_rename $old NAME_FIXED x\n",
        ),
        (
            "azure_persistent_rdma_naming_monitor",
            "systemctl restart azure_persistent_rdma_naming.service\n",
        ),
        ("rdma-rails", "/usr/sbin/rdma_rename_61 mlx5_0 NAME_FIXED rail0\n"),
    ] {
        host.file(&format!("usr/sbin/{unit}.sh"), &format!("#!/bin/bash\n{script}"));
        let text = format!("[Service]\nType=oneshot\nExecStart=/usr/sbin/{unit}.sh\n");
        host.file(&format!("{ETC}/{unit}.service"), &text);
        let want = format!("{ETC}/multi-user.target.wants/{unit}.service");
        host.link(&want, &format!("../{unit}.service"));
    }
    let told: Vec<String> = host
        .show(&["migrate"])
        .lines()
        .skip_while(|line| !line.contains("needs a decision"))
        .take_while(|line| !line.starts_with("Changes:"))
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    expect![[r#"
        needs a decision: azure_persistent_rdma_naming.service (/usr/sbin/azure_persistent_rdma_naming.sh; /usr/sbin/azure_persistent_rdma_naming.sh:3: /usr/sbin/rdma_rename_55.0 $old NAME_FIXED x): RDMA devices are renamed here
        do: name adapters in the configuration by pci or port-guid; remove this line or unit if vf-rdma-name of [[pf]] does the same
        needs a decision: azure_persistent_rdma_naming_monitor.service (/usr/sbin/azure_persistent_rdma_naming_monitor.sh): probably, RDMA devices are renamed here
        do: name adapters in the configuration by pci or port-guid; remove this line or unit if vf-rdma-name of [[pf]] does the same
        needs a decision: rdma-rails.service (/usr/sbin/rdma-rails.sh; /usr/sbin/rdma-rails.sh:2: /usr/sbin/rdma_rename_61 mlx5_0 NAME_FIXED rail0): RDMA devices are renamed here
        do: name adapters in the configuration by pci or port-guid; remove this line or unit if vf-rdma-name of [[pf]] does the same
        needs a decision: /etc/udev/rules.d/10-nic-rdma-interface-naming.rules:3 (ACTION=="add", KERNELS=="0000:1a:00.0", SUBSYSTEM=="infiniband", RUN+="/usr/bin/rdma dev set %k name rdma_0_0_0"): RDMA devices are renamed here
        do: name adapters in the configuration by pci or port-guid; remove this line or unit if vf-rdma-name of [[pf]] does the same
    "#]].assert_eq(&told.concat());
}

/// What NVIDIA's mlnx_bf_configure asks, too: the PCI bridge at 00:00.0, or from BlueField-4 on
/// the file of the BlueField's own system.
#[test]
fn the_system_of_a_bluefield_is_left_to_openibd() {
    let adapter = |id: &str| {
        let host = mlnx_ofed();
        host.function("0000:03:00.0", id, "020700", Some("mlx5_core"));
        host
    };
    let bridge = |host: &Host, id: &str| host.function("0000:00:00.0", id, "060400", None);
    let host = adapter("15b3:a2dc");
    bridge(&host, "15b3:1978");
    let before = tree(&host);
    assert_eq!(exit(&host, &["migrate", "--apply"]), 3);
    assert_eq!(differ(&tree(&host), &before), NONE);
    let shown = host.show(&["migrate"]);
    expect!["error: this is the system of a BlueField itself, where openibd runs mlnx_bf_configure, which sets up switchdev mode, scalable functions and Open vSwitch; ibprov does none of this"].assert_eq(
        &shown.lines().filter(|line| line.contains("BlueField")).collect::<Vec<_>>().join("\n"),
    );
    let host = adapter("15b3:a2df");
    assert_eq!(exit(&host, &["migrate"]), 1, "a server with a BlueField");
    host.file("etc/mlnx-release", "bf-bundle-3.2.1\n");
    assert!(codes(&json(&host, &["migrate"])).contains(&"bluefield-system"));
    let host = adapter("15b3:101b");
    bridge(&host, "8086:09a2");
    host.file("etc/mlnx-release", "");
    assert_eq!(exit(&host, &["migrate"]), 1, "a server without one");
}

#[test]
fn it_is_done_once_and_undone_to_the_byte() {
    for (name, host, code) in [
        ("mlnx_ofed", mlnx_ofed(), 1),
        ("rdma_core", rdma_core(), 0),
        ("red_hat", red_hat(), 0),
        ("by_hand", by_hand(), 1),
    ] {
        let before = tree(&host);
        assert_eq!(exit(&host, &["migrate"]), 1, "{name}");
        assert_eq!(exit(&host, &["migrate", "--back"]), 0, "{name}: nothing is recorded");
        assert_eq!(exit(&host, &["migrate", "--apply"]), code, "{name}");
        let status = json(&host, &["status"]);
        assert_eq!(status["units"]["openibd"], "ibprov", "{name}");
        assert_eq!(status["units"]["enabled"], true, "{name}");
        let found = codes(&status);
        assert!(
            !found.iter().any(|c| ["openibd-", "mlnx-", "two-"].iter().any(|of| c.starts_with(of))),
            "{found:?}"
        );
        let migrated = tree(&host);
        assert_ne!(migrated, before);
        // Once more: nothing.
        assert_eq!(exit(&host, &["migrate"]), 0, "{name}: {}", host.show(&["migrate"]));
        assert_eq!(exit(&host, &["migrate", "--apply"]), code, "{name}");
        assert_eq!(exit(&host, &["migrate", "--back"]), 1, "{name}");
        assert_eq!(differ(&tree(&host), &migrated), NONE, "{name}");
        let back = json(&host, &["migrate", "--back", "--apply"]);
        assert_eq!(
            (&back["verdict"], codes(&back).contains(&"changed-since")),
            (&"done".into(), false)
        );
        assert_eq!(differ(&tree(&host), &before), NONE, "{name}");
    }
}

#[test]
fn the_settings_and_names_are_ibprovs_after_it() {
    let host = mlnx_ofed();
    assert_eq!(exit(&host, &["migrate", "--apply"]), 1);
    let link = |path: &str| fs::read_link(host.path(path)).expect(path).display().to_string();
    assert_eq!(link("etc/udev/rules.d/90-ib.rules"), "/dev/null");
    assert_eq!(
        link(&format!("{ETC}/openibd.service")),
        "/usr/lib/systemd/system/ibprov-openibd.service"
    );
    assert_eq!(link("etc/rc3.d/K95openibd"), "../init.d/openibd");
    assert!(!host.path("etc/rc3.d/S05openibd").exists());
    let shown = host.show(&["config", "show", "--changed"]);
    assert!(shown.contains("ib_srp") && shown.contains("connected"), "{shown}");
}

/// Put what `changes` have into the tree: what was there before, or after.
fn set(host: &Host, changes: &[Value], which: &str) {
    for change in changes {
        let path = host.path(change["path"].as_str().expect("path").trim_start_matches('/'));
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() && change[which]["is"] != "directory" => {
                fs::remove_dir(&path).expect("empty");
            }
            Ok(meta) if !meta.is_dir() => fs::remove_file(&path).expect("file"),
            _ => {}
        }
        let state = &change[which];
        match state["is"].as_str().expect("state") {
            "absent" => {}
            "directory" => fs::create_dir_all(&path).expect("directory"),
            "link" => symlink(state["target"].as_str().expect("target"), &path).expect("link"),
            _ => {
                fs::write(&path, state["text"].as_str().expect("text")).expect("file");
                let mode = u32::try_from(state["mode"].as_u64().expect("mode")).expect("mode");
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("mode");
            }
        }
    }
}

/// The record is whole before the first change: a run that was killed after any number of
/// changes has left the record and that many changes.
#[test]
fn a_run_that_was_killed_after_any_step_is_completed_or_undone_by_the_next() {
    let makers: [fn() -> Host; 2] = [mlnx_ofed, by_hand];
    for make in makers {
        let host = make();
        let before = untimed(&host);
        exit(&host, &["migrate", "--apply"]);
        let migrated = untimed(&host);
        let record = fs::read_to_string(host.path(RECORD)).expect("record");
        let record: Value = serde_json::from_str(&record).expect("JSON");
        let changes = record["changes"].as_array().expect("changes").clone();
        assert!(changes.len() > 3, "{changes:#?}");
        // `upto` changes are made; the others are not, or not any more.
        for upto in 0..=changes.len() {
            let undone: Vec<Value> = changes[upto..].iter().rev().cloned().collect();
            set(&host, &undone, "before");
            exit(&host, &["migrate", "--apply"]);
            assert_eq!(differ(&untimed(&host), &migrated), NONE, "{upto} of {}", changes.len());
        }
        for upto in 0..=changes.len() {
            let host = make();
            exit(&host, &["migrate", "--apply"]);
            let undone: Vec<Value> = changes[upto..].iter().rev().cloned().collect();
            set(&host, &undone, "before");
            // Half a file, too.
            if host.path("etc/udev/rules.d").exists() {
                host.file("etc/udev/rules.d/.90-ib.rules.ibprov-new", "half");
            }
            exit(&host, &["migrate", "--back", "--apply"]);
            assert_eq!(differ(&untimed(&host), &before), NONE, "{upto} of {}", changes.len());
        }
    }
}

/// Between any two changes, and when it is undone, the next boot has a unit that brings the
/// ports up.
#[test]
fn a_boot_after_any_step_has_openibd_or_ibprov() {
    let host = mlnx_ofed();
    exit(&host, &["migrate", "--apply"]);
    let record = fs::read_to_string(host.path(RECORD)).expect("record");
    let record: Value = serde_json::from_str(&record).expect("JSON");
    let changes = record["changes"].as_array().expect("changes").clone();
    for change in changes.iter().rev() {
        set(&host, std::slice::from_ref(change), "before");
        let wants = format!("{ETC}/sysinit.target.wants");
        let is_link = |path: &str| fs::symlink_metadata(host.path(path)).is_ok();
        let ibprov = is_link(&format!("{wants}/ibprov.service"));
        let openibd = is_link(&format!("{wants}/openibd.service"))
            && !is_link(&format!("{ETC}/openibd.service"));
        assert!(ibprov || openibd, "without {change:#}");
    }
}

#[test]
fn what_somebody_changed_since_is_told_and_not_overwritten() {
    let host = mlnx_ofed();
    exit(&host, &["migrate", "--apply"]);
    let alias = format!("{ETC}/openibd.service");
    host.remove(&alias);
    host.link(&alias, "/dev/null");
    let drop_in = "etc/ibprov/ibprov.d/50-openib.toml";
    host.file(drop_in, "[modules]\nload = [\"ib_iser\"]\n");
    let back = json(&host, &["migrate", "--back", "--apply"]);
    assert_eq!(back["verdict"], "exceptions");
    let changed = codes(&back).into_iter().filter(|code| *code == "changed-since").count();
    assert_eq!(changed, 2, "{back:#}");
    assert_eq!(fs::read_link(host.path(&alias)).expect("mask"), Path::new("/dev/null"));
    assert!(fs::read_to_string(host.path(drop_in)).expect("file").contains("ib_iser"));
    assert!(host.path("etc/rc3.d/S05openibd").exists());
    // What is left can be settled later.
    assert!(host.path(RECORD).exists());
    host.remove(&alias);
    host.remove(drop_in);
    assert_eq!(exit(&host, &["migrate", "--back", "--apply"]), 0);
    assert!(!host.path("var/lib/ibprov").exists());
    // A drop-in of the administrator's own is not overwritten either.
    host.file(drop_in, "[modules]\nload = [\"ib_iser\"]\n");
    exit(&host, &["migrate", "--apply"]);
    assert!(fs::read_to_string(host.path(drop_in)).expect("file").contains("ib_iser"));
}

#[test]
fn a_vendor_package_that_is_installed_again_is_migrated_again_and_undone_to_its_new_files() {
    let host = mlnx_ofed();
    exit(&host, &["migrate", "--apply"]);
    let want = format!("{ETC}/sysinit.target.wants/openibd.service");
    host.link(&want, "/usr/lib/systemd/system/openibd.service");
    let rule = "etc/udev/rules.d/90-ib.rules";
    let newer = "# newer\nRUN+=\"/bin/systemctl --no-block start mlnx_interface_mgr@$name\"\n";
    host.remove(rule);
    host.file(rule, newer);
    assert_eq!(exit(&host, &["migrate"]), 1);
    exit(&host, &["migrate", "--apply"]);
    assert_eq!(fs::read_link(host.path(rule)).expect("mask"), Path::new("/dev/null"));
    assert!(fs::symlink_metadata(host.path(&want)).is_err());
    assert_eq!(exit(&host, &["migrate", "--back", "--apply"]), 0);
    assert_eq!(fs::read_to_string(host.path(rule)).expect("rule"), newer);
    assert!(fs::symlink_metadata(host.path(&want)).is_ok());
}

#[test]
fn a_next_boot_that_is_not_proved_to_be_whole_stops_it_before_anything_is_changed() {
    let refused = |what: &dyn Fn(&Host), code: &str| {
        let host = mlnx_ofed();
        what(&host);
        let before = tree(&host);
        assert_eq!(exit(&host, &["migrate"]), 3, "{code}");
        let report = json(&host, &["migrate", "--apply"]);
        assert_eq!(report["verdict"], "would-fail");
        assert!(codes(&report).contains(&code), "{code}: {report:#}");
        assert_eq!(differ(&tree(&host), &before), NONE, "{code}");
    };
    refused(&|host| host.remove(&format!("{LIB}/ibprov.service")), "not-installed");
    refused(&|host| host.link(&format!("{ETC}/ibprov.service"), "/dev/null"), "ibprov-masked");
    refused(
        &|host| {
            let drop_in = format!("{ETC}/ibprov.service.d/late.conf");
            host.file(&drop_in, "[Unit]\nAfter=network.target\n");
        },
        "next-boot-not-whole",
    );
    refused(&|host| host.remove(&format!("{LIB}/default.target")), "next-boot-not-whole");
    refused(&|host| host.file("etc/ibprov/ibprov.toml", "x = 1\n"), "configuration-invalid");
    // Settings that cannot be read would be lost.
    refused(&|host| host.bytes("etc/infiniband/openib.conf", b"ONBOOT=\xff\n"), "not-read");
}

#[test]
fn a_crontab_that_cannot_be_read_is_told() {
    let host = mlnx_ofed();
    fs::create_dir_all(host.path("var/spool/cron/crontabs")).expect("a directory");
    let unread = |report: &Value| {
        let all = report["findings"].as_array().expect("findings").clone();
        all.into_iter().filter(|f| f["code"] == "not-read").collect::<Vec<_>>()
    };
    // A directory among crontabs is none of them.
    assert_eq!(unread(&json(&host, &["migrate"])), Vec::<Value>::new());
    host.bytes("var/spool/cron/crontabs/site", b"@reboot modprobe ib_ipoib # \xff\n");
    let found = unread(&json(&host, &["migrate"]));
    assert_eq!(found.len(), 1, "{found:?}");
    let message = found[0]["message"].as_str().expect("text");
    assert!(message.contains("/var/spool/cron/crontabs/site"), "{message}");
}

#[test]
fn an_openibd_that_is_gone_when_it_is_undone_is_told() {
    let host = mlnx_ofed();
    exit(&host, &["migrate", "--apply"]);
    host.remove(&format!("{LIB}/openibd.service"));
    host.remove("etc/init.d/openibd");
    let back = json(&host, &["migrate", "--back"]);
    assert_eq!(back["verdict"], "would-change");
    let risk = back["findings"].as_array().expect("findings").iter();
    let risk = risk.filter(|f| f["code"] == "next-boot-at-risk" && f["severity"] == "warning");
    assert_eq!(risk.count(), 1, "{back:#}");
}

/// One line, with one remedy, and no port is wrong because the vendor configures it.
#[test]
fn a_node_that_openibd_runs_is_told_as_that() {
    let mut host = mlnx_ofed();
    host.function(PF, "15b3:101b", "020700", Some("mlx5_core"));
    host.rdma(PF, "mlx5_0", "b859:9f03:0012:a480", &[PortSpec::default()]);
    host.file("etc/rc.local", "#!/bin/sh\n/etc/init.d/openibd restart\n");
    expect![[r#"
        ready: 1 of 1 expected ports active
        ibprov: NOT enabled; boot has not run; openibd.service: the vendor's
          ibprov-disabled: this node is run by openibd
            do: to hand it over
            run: ibprov migrate

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
          mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR
        exit 0
    "#]]
    .assert_eq(&host.show(&["status"]));
}

/// What the lines of `report` that need a decision are about, and why.
fn decisions(host: &Host) -> Vec<String> {
    let report = json(host, &["migrate"]);
    let items = report["items"].as_array().expect("items").iter();
    let decisions = items.filter(|item| item["becomes"] == "needs-decision");
    let place = |item: &Value| {
        let line = item["line"].as_u64().map_or_else(String::new, |line| format!(":{line}"));
        let guessed = if item["guessed"] == true { " guessed" } else { "" };
        let [object, reason] = ["object", "reason"].map(|key| item[key].as_str().expect("text"));
        format!("{object}{line} {reason}{guessed}")
    };
    decisions.map(place).collect()
}

#[test]
fn what_touches_infiniband_is_found_wherever_it_stands() {
    let host = by_hand();
    host.remove("etc/sysfs.d/vfs.conf");
    host.remove("etc/cron.d/fabric");
    host.remove(&format!("{ETC}/basic.target.wants/sriov_config.service"));
    host.file(
        "etc/rc.local",
        "#!/bin/sh\necho datagram >/sys/class/net/ib0/mode\nmstconfig -y -d 4b:00.0 set SRIOV_EN=1\n/usr/sbin/opensm --daemon -g 0xb8599f030012a480\nrdma system set netns exclusive\ncd /opt/fabric; ./vfs.sh 4\necho 0000:4b:00.1 >/sys/bus/pci/drivers/mlx5_core/unbind\necho ib >/sys/bus/pci/devices/0000:05:00.0/mlx4_port1\n/opt/fabric/tool /sys/class/infiniband/mlx5_0\nibstat >/var/log/ibstat\nexit 0\n",
    );
    host.file(
        "opt/fabric/vfs.sh",
        "#!/bin/sh\necho $1 >/sys/class/infiniband/mlx5_0/device/sriov_numvfs\n",
    );
    for (unit, text) in [
        ("adapters.timer", "[Timer]\nOnBootSec=45\n"),
        ("adapters.service", "[Service]\nExecStart=/opt/fabric/vfs.sh 4\n"),
        ("nics.service", "[Service]\nExecStart=/opt/nics apply\n"),
        ("off.service", "[Service]\nExecStart=/opt/fabric/vfs.sh 4\n"),
    ] {
        host.file(&format!("{ETC}/{unit}"), text);
    }
    host.file("opt/nics", "\x7fELF\0%s/sriov_numvfs\0");
    for unit in ["adapters.timer", "nics.service"] {
        host.link(&format!("{ETC}/multi-user.target.wants/{unit}"), &format!("../{unit}"));
    }
    host.file(
        "etc/NetworkManager/dispatcher.d/60-fabric",
        "#!/bin/sh\n[ \"$2\" = up ] && ip link set ib0 vf 0 node_guid 02:00:00:00:00:00:09:00\n",
    );
    host.file(
        "etc/udev/rules.d/70-virt.rules",
        "# VFs\nSUBSYSTEM==\"pci\", DRIVER==\"mlx5_core\", ATTR{sriov_numvfs}=\"2\"\nSUBSYSTEM==\"net\", DRIVERS==\"i40e\", ATTR{device/sriov_numvfs}=\"2\"\n",
    );
    expect![[r#"
        /etc/rc.local:2 brings-up
        /etc/rc.local:3 sets-firmware
        /etc/rc.local:4 starts-opensm
        /etc/rc.local:5 sets-ports
        /etc/rc.local:6 sets-vfs
        /etc/rc.local:7 binds-drivers
        /etc/rc.local:8 sets-port-types
        /etc/rc.local:9 not-understood guessed
        adapters.timer sets-vfs
        nics.service sets-vfs guessed
        /etc/udev/rules.d/70-virt.rules:2 sets-vfs
        /etc/NetworkManager/dispatcher.d/60-fabric:2 sets-vfs
    "#]]
    .assert_eq(&(decisions(&host).join("\n") + "\n"));
}

/// What the parts that are replaced have read.
#[test]
fn no_file_of_the_vendors_stack_is_lost_without_a_word() {
    let host = mlnx_ofed();
    host.function("0000:05:00.0", "15b3:1003", "028000", Some("mlx4_core"));
    host.file("etc/infiniband/connectx.conf", "0000:05:00.0 ib eth\n");
    host.file("etc/infiniband/post-start-hook.sh", "#!/bin/sh\nmount /scratch\n");
    host.file(
        &format!("{ETC}/openibd.service.d/20-storage.conf"),
        "[Service]\n# for storage\nExecStartPost=/sbin/modprobe -a ib_srp nvme_rdma\nExecStartPost=/usr/bin/sleep 15\nTimeoutStartSec=300\n",
    );
    let before = tree(&host);
    expect![[r#"
        /etc/infiniband/post-start-hook.sh hook-of-vendor
        /etc/systemd/system/openibd.service.d/20-storage.conf:3 drop-in-loads-modules
        /etc/systemd/system/openibd.service.d/20-storage.conf:4 drop-in-waits
        /etc/systemd/system/openibd.service.d/20-storage.conf:5 drop-in-of-vendor
    "#]]
    .assert_eq(&(decisions(&host).join("\n") + "\n"));
    assert_eq!(json(&host, &["migrate", "--apply"])["verdict"], "exceptions");
    let drop_in = host.path("etc/ibprov/ibprov.d/50-connectx.toml");
    expect![[r##"
        # From /etc/infiniband/connectx.conf, by `ibprov import`.

        [[port]]
        pci = "0000:05:00.0"
        port = 1
        type = "ib"

        [[port]]
        pci = "0000:05:00.0"
        port = 2
        type = "eth"
        required = false
    "##]]
    .assert_eq(&fs::read_to_string(drop_in).expect("drop-in"));
    assert_eq!(exit(&host, &["migrate", "--back", "--apply"]), 0);
    assert_eq!(differ(&before, &tree(&host)), NONE);
}

/// A script on another file system may hang whoever opens it, as a FIFO in its place does.
#[test]
fn a_script_that_is_not_looked_at_is_told_and_hangs_nothing() {
    let host = Host::enabled();
    host.file("opt/.keep", "");
    nix::unistd::mkfifo(&host.path("opt/fifo"), nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    host.file(
        "etc/rc.local",
        "#!/bin/sh\n/opt/fifo\n. /opt/fifo\n/opt/site/start\n/usr/bin/x /opt/site\n. /run/state-$IFACE\n",
    );
    let script = "mkdir -p \"$1/opt/site\" \"$1/run\"
        mount -t tmpfs none \"$1/run\"
        mount -t tmpfs none \"$1/opt/site\"
        printf '#!/bin/sh\\nsystemctl start opensm\\n' >\"$1/opt/site/start\"
        exec timeout 60 \"$2\" migrate --root \"$1\"";
    let mut unshared = std::process::Command::new("unshare");
    unshared.args(["--mount", "sh", "-euc", script, "sh"]).arg(host.path(""));
    let out = unshared.arg(env!("CARGO_BIN_EXE_ibprov")).output().expect("unshare");
    let said = String::from_utf8_lossy(&out.stdout);
    if String::from_utf8_lossy(&out.stderr).contains("unshare failed") {
        println!("skipped: a namespace of mounts cannot be made");
        return;
    }
    let told: Vec<&str> = said.lines().filter(|line| line.contains("/etc/rc.local")).collect();
    assert_eq!(told.len(), 1, "{out:?}");
    let why =
        "/opt/site/start was not looked at: it is on another file system, which may not answer";
    assert!(told[0].contains("/etc/rc.local:4") && told[0].contains(why), "{said}");
}
