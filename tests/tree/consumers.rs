//! `ibprov consumers` on a copy of a host's tree: what uses InfiniBand, and the drop-ins.

use serde_json::Value;

use crate::host::Host;

const UNITS: &str = "usr/lib/systemd/system";
const DROP_IN: &str = "50-ibprov-order.conf";

/// A node with a port, and four units that use it: one that is ordered, one that is not, a
/// mount of which only the address tells, and a starter of containers.
fn node() -> Host {
    let host = Host::healthy();
    for (name, text) in [
        (
            "ibprov.service",
            "[Unit]\nDefaultDependencies=no\nBefore=network-pre.target\n[Service]\nType=oneshot\nExecStart=/usr/sbin/ibprov boot\n",
        ),
        ("sysinit.target", "[Unit]\nWants=ibprov.service\n"),
        (
            "multi-user.target",
            "[Unit]\nRequires=sysinit.target\nWants=lnet.service site.service docker.service ordered.service plain.service\n",
        ),
        (
            "lnet.service",
            "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/sbin/lnetctl net add --if ib0\n",
        ),
        (
            "site.service",
            "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/bin/site --bind 10.9.8.1:77\n",
        ),
        (
            "docker.service",
            "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/bin/dockerd\n",
        ),
        (
            "ordered.service",
            "[Unit]\nDefaultDependencies=no\nAfter=ibprov.service\n[Service]\nExecStart=/usr/bin/x --dev mlx5_0\n",
        ),
        ("plain.service", "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/bin/plain\n"),
    ] {
        host.file(&format!("{UNITS}/{name}"), text);
    }
    host.link("etc/systemd/system/default.target", "/usr/lib/systemd/system/multi-user.target");
    host.file("etc/network/interfaces", "auto ib0\niface ib0 inet static\n address 10.9.8.1/24\n");
    host
}

fn ran(host: &Host, arguments: &[&str]) -> (i32, Value) {
    let mut all = vec!["consumers", "--format", "json"];
    all.extend(arguments);
    let output = host.ibprov(&all);
    let report = serde_json::from_slice(&output.stdout).expect("JSON");
    (output.status.code().expect("an exit code"), report)
}

fn with_order(report: &Value, order: &str) -> Vec<String> {
    let consumers = report["consumers"].as_array().expect("consumers").iter();
    let of = consumers.filter(|c| c["order"] == order);
    let mut names: Vec<String> =
        of.map(|c| c["unit"].as_str().expect("a name").to_owned()).collect();
    names.sort();
    names
}

#[test]
fn what_is_not_ordered_gets_its_drop_in_and_loses_it_again() {
    let host = node();
    let (code, before) = ran(&host, &[]);
    assert_eq!((code, &before["verdict"]), (1, &Value::from("exceptions")), "{before:#}");
    assert_eq!(with_order(&before, "missing"), ["docker.service", "lnet.service", "site.service"]);
    assert_eq!(with_order(&before, "after"), ["ordered.service"]);

    // A dry run changes nothing, and nothing else is to be had of a copied tree.
    let (code, dry) = ran(&host, &["--install", "--dry-run"]);
    assert_eq!((code, dry["applied"].as_bool()), (1, Some(false)), "{dry:#}");
    assert_eq!(dry["changes"].as_array().expect("changes").len(), 6);
    for flag in ["--install", "--remove"] {
        assert_eq!(
            host.show(&["consumers", flag]),
            format!(
                "error: {flag} cannot be combined with --root: run it in that system, with chroot, or add --dry-run to see what would be changed\nexit 2\n"
            )
        );
    }
    let drop_in = |unit: &str| host.path(&format!("etc/systemd/system/{unit}.d/{DROP_IN}"));
    assert!(!drop_in("lnet.service").parent().expect("a directory").exists());

    let files = written(&host, &dry);
    assert_eq!(files.len(), 3, "{dry:#}");
    let text = std::fs::read_to_string(drop_in("lnet.service")).expect("the drop-in");
    assert!(text.ends_with("\n[Unit]\nAfter=ibprov.service\n"), "{text}");
    let (code, again) = ran(&host, &["--install", "--dry-run"]);
    assert_eq!((code, &again["verdict"]), (0, &Value::from("ready")), "{again:#}");
    assert_eq!(again["changes"].as_array().map(Vec::len), Some(0), "{again:#}");

    // Exactly ours goes: what somebody has changed stays, and so does a directory in use.
    std::fs::write(drop_in("site.service"), format!("{text}Wants=x.service\n")).expect("written");
    host.file("etc/systemd/system/docker.service.d/site.conf", "[Unit]\n");
    let (code, removed) = ran(&host, &["--remove", "--dry-run"]);
    assert_eq!(code, 1, "{removed:#}");
    let goes = removed["changes"].as_array().expect("changes").iter();
    let mut goes: Vec<&str> = goes.map(|c| c["path"].as_str().expect("a path")).collect();
    goes.sort_unstable();
    let lnet = "/etc/systemd/system/lnet.service.d";
    let docker = "/etc/systemd/system/docker.service.d";
    assert_eq!(
        goes,
        [format!("{docker}/{DROP_IN}"), lnet.to_owned(), format!("{lnet}/{DROP_IN}")],
        "{removed:#}"
    );
    let kept = removed["findings"].as_array().expect("findings").iter();
    let kept: Vec<_> = kept.filter(|f| f["code"] == "changed-since").collect();
    assert_eq!(kept.len(), 1, "{removed:#}");
}

/// Writes the files of `report` into the tree.
fn written(host: &Host, report: &Value) -> Vec<String> {
    let changes = report["changes"].as_array().expect("changes").iter();
    let files = changes.filter_map(|change| {
        let (path, text) = (change["path"].as_str()?, change["after"]["text"].as_str()?);
        host.file(path.trim_start_matches('/'), text);
        Some(path.to_owned())
    });
    files.collect()
}

#[test]
fn a_cycle_is_not_made() {
    let host = node();
    host.file(
        &format!("{UNITS}/lnet.service"),
        "[Unit]\nDefaultDependencies=no\nBefore=ibprov.service\n[Service]\nExecStart=/usr/sbin/lnetctl net add --if ib0\n",
    );
    let (_, report) = ran(&host, &["--install", "--dry-run"]);
    assert_eq!(with_order(&report, "before"), ["lnet.service"]);
    let files = written(&host, &report);
    assert!(!files.iter().any(|file| file.contains("lnet.service.d")), "{files:?}");
}

/// What the site has put there is left, and nothing is ordered after the vendor's unit.
#[test]
fn what_is_not_ours_is_left() {
    let host = node();
    let ours = |unit: &str| format!("etc/systemd/system/{unit}.d/{DROP_IN}");
    host.file(&ours("lnet.service"), "[Unit]\n# not before noon\n");
    host.file("etc/systemd/system/site.service.d/x.conf", "[Unit]\n");
    host.link(&ours("site.service"), "/dev/null");
    let (code, report) = ran(&host, &["--install", "--dry-run"]);
    assert_eq!(code, 1, "{report:#}");
    let findings = report["findings"].as_array().expect("findings").iter();
    assert_eq!(findings.filter(|f| f["code"] == "changed-since").count(), 2, "{report:#}");
    let files = written(&host, &report);
    assert_eq!(files, [format!("/{}", ours("docker.service"))]);

    let host = node();
    host.file(
        &format!("{UNITS}/openibd.service"),
        "[Unit]\n[Service]\nExecStart=/etc/init.d/openibd start\n",
    );
    host.file(&format!("{UNITS}/sysinit.target"), "[Unit]\nWants=openibd.service\n");
    host.remove(&format!("{UNITS}/ibprov.service"));
    let output = host.ibprov(&["consumers", "--install", "--dry-run"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("ibprov migrate"), "{output:?}");
    assert!(!host.path("etc/systemd/system/lnet.service.d").exists());
}

/// netplan writes for the stacks during the boot; an image has nothing of it.
#[test]
fn what_netplan_has_not_written_yet_is_not_judged() {
    let host = node();
    host.file("lib/netplan/readme.txt", "");
    let verbs: [&[&str]; 3] =
        [&["consumers"], &["iface", "ib0", "--dry-run"], &["boot", "--dry-run"]];
    let note = "note: /etc/netplan/50-cloud-init.yaml: addresses, MTU and infiniband-mode were not judged: netplan writes its files for systemd-networkd and NetworkManager during the boot\n";
    let told = |count: usize| {
        for verb in verbs {
            let shown = host.show(verb);
            assert_eq!(shown.matches(note).count(), count, "{shown}");
            let out = host.ibprov(&[verb, &["--format", "json"]].concat());
            let report: Value = serde_json::from_slice(&out.stdout).expect("JSON");
            let of_it = |finding: &&Value| finding["object"] == "/etc/netplan/50-cloud-init.yaml";
            let findings = report["findings"].as_array().expect("findings");
            assert_eq!(findings.iter().filter(of_it).count(), count, "{report:#}");
        }
    };
    told(0);
    host.file("etc/netplan/50-cloud-init.yaml", "network: {version: 2}\n");
    host.file("etc/netplan/60-ib.yaml", "network: {version: 2}\n");
    told(1);
    for written in [
        "run/systemd/network/10-netplan-ib0.network",
        "run/NetworkManager/system-connections/netplan-ib0.nmconnection",
        "run/NetworkManager/conf.d/10-globally-managed-devices.conf",
    ] {
        host.file(written, "");
        told(0);
        host.remove(written);
        told(1);
    }
}

/// A mount that is made at the first access, and a unit that requires openibd.
#[test]
fn mounts_on_demand_and_what_requires_openibd_use_infiniband() {
    let host = node();
    host.file(
        "etc/fstab",
        "10.9.8.2:/p /proj nfs rdma,port=20049,_netdev,noauto,x-systemd.automount 0 0\n10.9.8.3@o2ib:/s /scratch lustre _netdev,x-systemd.automount 0 0\n10.9.8.3@o2ib:/t /never lustre _netdev,noauto 0 0\n192.0.2.7@tcp:/u /hpc lustre _netdev,x-systemd.requires=openibd.service 0 0\n",
    );
    let wants = "[Unit]\nWants=remote-fs.target burst.service\nRequires=sysinit.target\n";
    host.file(&format!("{UNITS}/multi-user.target"), wants);
    host.file(&format!("{UNITS}/remote-fs.target"), "[Unit]\n");
    host.file(
        &format!("{UNITS}/burst.service"),
        "[Unit]\nDefaultDependencies=no\nRequires=openibd.service\n[Service]\nExecStart=/opt/burst\n",
    );
    let (_, report) = ran(&host, &[]);
    let mut units: Vec<&str> = report["consumers"]
        .as_array()
        .expect("list")
        .iter()
        .filter_map(|c| c["unit"].as_str())
        .collect();
    units.sort_unstable();
    assert_eq!(units, ["burst.service", "hpc.mount", "proj.mount", "scratch.mount"]);
}

/// By whatever a unit names the fabric, and whatever else the inventory has.
#[test]
fn a_unit_uses_infiniband_by_each_way_to_name_it() {
    let host = node();
    host.file("etc/hosts", "127.0.0.1 localhost\n10.9.8.7 fs1\n192.0.2.1 fs2\n");
    host.file("etc/default/site", "# mlx5_0\nDEVICE=mlx5_0\n");
    host.file("opt/bind", "#!/bin/sh\nexec x --bind 10.9.8.1\n");
    host.file("opt/none", "#!/bin/sh\n# x --bind 10.9.8.1\nexec x\n");
    host.file("opt/tune", "#!/bin/sh\necho 4092 >/sys/class/net/ib0/mtu\n");
    host.file("opt/probe", "#!/bin/sh\nibstat\n");
    let services = [
        ("environment", "Environment=NCCL_SOCKET_IFNAME=ib0\nExecStart=/usr/bin/x"),
        ("file", "EnvironmentFile=-/etc/default/site\nExecStart=/usr/bin/x"),
        ("node", "ExecStart=/usr/bin/x /dev/infiniband/uverbs0"),
        ("guid", "ExecStart=/usr/bin/x -g 0xb8599f030012a480"),
        ("script", "ExecStart=-/opt/bind"),
        ("host", "ExecStart=/usr/bin/x fs1:5000"),
        ("tunes", "ExecStart=/opt/tune"),
        ("asks", "ExecStart=/opt/probe"),
        ("no-script", "ExecStart=/opt/none"),
        ("no-host", "ExecStart=/usr/bin/x fs2:5000"),
        ("no-guid", "ExecStart=/usr/bin/x -g 0xb8599f030012a481"),
    ];
    let bare = "[Unit]\nDefaultDependencies=no\n";
    for (name, text) in services {
        host.file(&format!("{UNITS}/{name}.service"), &format!("{bare}[Service]\n{text}\n"));
    }
    for (name, condition) in
        [("condition", "|/dev/infiniband/umad0"), ("no-condition", "!/dev/infiniband/umad0")]
    {
        let text =
            format!("{bare}ConditionPathExists={condition}\n[Service]\nExecStart=/usr/bin/x\n");
        host.file(&format!("{UNITS}/{name}.service"), &text);
    }
    for name in ["nfs-server", "nfs-ganesha", "target", "rc-local"] {
        let text = format!("{bare}[Service]\nExecStart=/usr/bin/x\n");
        host.file(&format!("{UNITS}/{name}.service"), &text);
    }
    host.file("etc/rc.local", "#!/bin/sh\nip link set ib0 mtu 4092\n");
    let names = services.iter().map(|(name, _)| *name);
    let names = names.chain([
        "condition",
        "no-condition",
        "nfs-server",
        "nfs-ganesha",
        "target",
        "rc-local",
    ]);
    let wants: String = names.map(|name| format!("Wants={name}.service\n")).collect();
    host.file(
        &format!("{UNITS}/multi-user.target"),
        &format!("[Unit]\nRequires=sysinit.target\n{wants}"),
    );
    let (_, report) = ran(&host, &[]);
    let used = [
        "asks",
        "condition",
        "environment",
        "file",
        "guid",
        "host",
        "nfs-ganesha",
        "nfs-server",
        "node",
        "rc-local",
        "script",
        "target",
        "tunes",
    ];
    assert_eq!(with_order(&report, "missing"), used.map(|name| format!("{name}.service")));
    host.file("etc/rc.local", "#!/bin/sh\nmodprobe ib_ipoib\n");
    let (_, report) = ran(&host, &[]);
    assert!(!with_order(&report, "missing").contains(&"rc-local.service".to_owned()));
}

#[test]
fn little_memory_to_lock_and_no_peermem_are_told() {
    let host = node();
    let told = || {
        let (_, report) = ran(&host, &[]);
        let findings = report["findings"].as_array().expect("findings").clone();
        let notes = findings.into_iter().filter(|finding| finding["code"] == "notice");
        notes.map(|f| f["object"].as_str().expect("an object").to_owned()).collect::<Vec<_>>()
    };
    let docker = |limit: &str| {
        let text = format!(
            "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/bin/dockerd\n{limit}\n"
        );
        host.file(&format!("{UNITS}/docker.service"), &text);
    };
    for limit in ["", "LimitMEMLOCK=infinity"] {
        docker(limit);
        assert_eq!(told(), [""; 0], "{limit}");
    }
    docker("LimitMEMLOCK=64M:infinity");
    // Of what starts no jobs it is its own affair.
    host.file("etc/systemd/system/lnet.service.d/m.conf", "[Service]\nLimitMEMLOCK=64K\n");
    assert_eq!(told(), ["docker.service"]);
    docker("LimitMEMLOCK=infinity");
    host.file("sys/module/nvidia/version", "580.82\n");
    assert_eq!(told(), ["nvidia_peermem"]);
    host.file("sys/module/nvidia_peermem/initstate", "live\n");
    assert_eq!(told(), [""; 0]);
}
