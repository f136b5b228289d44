//! VFs that are not as planned: status, check, plan and the dry runs say the same, and what
//! `apply` cannot change is known before it is tried.

use expect_test::expect;
use serde_json::Value;

use crate::active::{LIT, json, vfs};
use crate::host::{Host, PF, PortSpec};

/// Every verb that judges a plan.
const VERBS: [&[&str]; 5] =
    [&["status"], &["check"], &["plan"], &["apply", "--dry-run"], &["boot", "--dry-run"]];

/// That all of [`VERBS`] exit with `exit`, and name `code` with this severity at `object`.
#[track_caller]
fn assert_named(host: &Host, exit: i64, severity: &str, code: &str, object: &str) {
    for verb in VERBS {
        let report = json(host, verb);
        assert_eq!(report["exit_code"], exit, "{verb:?}: {report:#}");
        let findings = report["findings"].as_array().expect("findings");
        let is_it = |finding: &&Value| {
            (&finding["severity"], &finding["code"], &finding["object"])
                == (&severity.into(), &code.into(), &object.into())
        };
        assert!(findings.iter().any(|finding| is_it(&finding)), "{verb:?}: {report:#}");
    }
}

/// Add lines to the `[[pf]]` of a host.
fn plan(host: &Host, lines: &str) {
    let path = "etc/ibprov/ibprov.toml";
    let text = std::fs::read_to_string(host.path(path)).expect("file");
    host.file(path, &format!("{text}{lines}\n"));
}

#[test]
fn vfs_with_other_names_are_not_as_planned_in_any_verb() {
    let host = vfs(LIT, "Follow");
    plan(&host, "vf-name = \"{netdev}v{vf}\"\nvf-rdma-name = \"{rdma}v{vf}\"");
    assert_named(&host, 3, "error", "vf-not-as-planned", PF);
    expect![[r#"
        NOT READY: 1 of 1 expected ports active, 0 of 2 VFs as planned
          error: PF 0000:4b:00.0: VFs 0-1: not named as planned; names are given when a VF is bound
            run: ibprov plan
            do: if they are not in use
            run: for n in 0 1; do basename $(readlink /sys/bus/pci/devices/0000:4b:00.0/virtfn$n) >/sys/bus/pci/drivers/mlx5_core/unbind; done; ibprov apply 0000:4b:00.0
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
          mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR
        !     VFs 0-1  netdev not named as planned
        exit 3
    "#]].assert_eq(&host.show(&["status"]));
    expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          2 VFs planned, 2 present, 2 not as planned, GUIDs not pinned
          VFs are bound at the same time, because vf-name and vf-rdma-name name each of them
          error: VFs 0-1: not named as planned; names are given when a VF is bound
            run: ibprov plan
            do: if they are not in use
            run: for n in 0 1; do basename $(readlink /sys/bus/pci/devices/0000:4b:00.0/virtfn$n) >/sys/bus/pci/drivers/mlx5_core/unbind; done; ibprov apply 0000:4b:00.0
          ! VF 0   netdev ib1 -> ib0v0 (a VF gets its names when it is bound)
          ! VF 1   netdev ib2 -> ib0v1 (a VF gets its names when it is bound)

        Plan: 2 VFs not as planned
        exit 3
    "#]].assert_eq(&host.show(&["plan"]));
    expect![[r#"
        PF 0000:4b:00.0: nothing to do
          error: VFs 0-1: not named as planned; names are given when a VF is bound
            run: ibprov plan
            do: if they are not in use
            run: for n in 0 1; do basename $(readlink /sys/bus/pci/devices/0000:4b:00.0/virtfn$n) >/sys/bus/pci/drivers/mlx5_core/unbind; done; ibprov apply 0000:4b:00.0
        exit 3
    "#]].assert_eq(&host.show(&["apply", "--dry-run"]));
    // Named as planned, all is well.
    let named = vfs(LIT, "Follow");
    plan(&named, "vf-name = \"ib{vf}x\"");
    for index in 0..2 {
        let net = format!("sys/bus/pci/devices/0000:4b:00.{}/net", index + 1);
        std::fs::rename(
            named.path(&format!("{net}/ib{}", index + 1)),
            named.path(&format!("{net}/ib{index}x")),
        )
        .expect("rename");
    }
    for verb in VERBS {
        assert_eq!(json(&named, verb)["exit_code"], 0, "{verb:?}: {}", named.show(&["plan"]));
    }
}

const CX3: &str = "0000:08:00.0";

/// A ConnectX-3 with two VFs for the host, of which mlx4_core binds as many as `probe_vf` says.
fn connectx3(probe_vf: &str) -> Host {
    mlx4(
        &[PortSpec { guid: "0002:c903:00a1:b2c1", ..PortSpec::default() }],
        &[&[1], &[1]],
        probe_vf,
    )
}

/// A ConnectX-3 with these ports, and VFs that have these of them.
fn mlx4(ports: &[PortSpec<'_>], vfs: &[&[u8]], probe_vf: &str) -> Host {
    let mut host = Host::new();
    host.function(CX3, "15b3:1003", "020700", Some("mlx4_core"));
    host.rdma(CX3, "mlx4_0", "0002:c903:00a1:b2c0", ports);
    let dir = format!("sys/bus/pci/devices/{CX3}");
    host.file(&format!("{dir}/sriov_totalvfs"), "8\n");
    for (index, ports) in vfs.iter().enumerate() {
        let vf = format!("0000:08:00.{}", index + 1);
        host.function(&vf, "15b3:1004", "020700", None);
        host.link(&format!("sys/bus/pci/devices/{vf}/physfn"), &format!("../{CX3}"));
        host.link(&format!("{dir}/virtfn{index}"), &format!("../{vf}"));
        for port in *ports {
            let iov = format!("{dir}/infiniband/mlx4_0/iov/{vf}/ports/{port}");
            host.file(&format!("{iov}/gid_idx/0"), &format!("{}\n", index + 1));
        }
        // Every port of the PF has an entry for every function.
        for port in ports.iter().chain(&[1]) {
            alias(&host, *port, index, "0000:0000:0000:0000");
        }
    }
    for (parameter, value) in [("num_vfs", vfs.len().to_string()), ("probe_vf", probe_vf.into())] {
        host.file(&format!("sys/module/mlx4_core/parameters/{parameter}"), &format!("{value}\n"));
    }
    let plan = format!(
        "[[pf]]\npci = \"{CX3}\"\nvfs = {}\nguid.template = \"02:00:00:00:00:12:{{kind:8}}:{{vf:8}}\"\n",
        vfs.len()
    );
    host.file("etc/ibprov/ibprov.toml", &plan);
    host
}

/// The alias GUID of a VF at a port of the PF is this one, and granted, as mlx4 prints both.
fn alias(host: &Host, port: u8, vf: usize, guid: &str) {
    let dir = format!("sys/bus/pci/devices/{CX3}/infiniband/mlx4_0/iov/ports/{port}");
    let digits = guid.replace(':', "");
    let digits = digits.trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    host.file(&format!("{dir}/admin_guids/{}", vf + 1), &format!("{digits}\n"));
    host.file(&format!("{dir}/gids/{}", vf + 1), &format!("fe80:0000:0000:0000:{guid}\n"));
}

/// A VF is bound to its driver, and its ports show these GUIDs.
fn bound(host: &mut Host, vf: usize, guids: &[&str]) {
    let pci = format!("0000:08:00.{}", vf + 1);
    host.link(&format!("sys/bus/pci/devices/{pci}/driver"), "../../drivers/mlx4_core");
    let netdevs: Vec<String> =
        (1..=guids.len()).map(|port| format!("ib{}", 10 * (vf + 1) - port)).collect();
    let ports = (1..).zip(guids).zip(&netdevs).map(|((number, guid), netdev)| {
        let is_dark = guid.ends_with("0000:0000:0000");
        let state = if is_dark { "1: DOWN" } else { "4: ACTIVE" };
        PortSpec { number, guid, state, netdev: Some(netdev), ..PortSpec::default() }
    });
    let ports: Vec<PortSpec<'_>> = ports.collect();
    host.rdma(&pci, &format!("mlx4_{}", vf + 1), "0002:c903:00a1:b2d0", &ports);
}

/// Both ports of a dual-port MT4099; the second one is in this state.
fn two_ports(state: &str) -> [PortSpec<'_>; 2] {
    let port = PortSpec { guid: "0002:c903:00a1:b2c1", ..PortSpec::default() };
    let second =
        PortSpec { number: 2, guid: "0002:c903:00a1:b2c2", state, netdev: Some("ib1"), ..port };
    [port, second]
}

const ACTIVE: &str = "4: ACTIVE";

/// The first has port 1, the second one port 2 alone, which it counts as its port 1.
#[test]
fn each_port_that_a_vf_of_mlx4_has_gets_its_guid_and_is_verified() {
    let mut host = mlx4(&two_ports(ACTIVE), &[&[1], &[2], &[1, 2]], "3");
    expect![[r#"
        PF 0000:08:00.0 mlx4_0 (/etc/ibprov/ibprov.toml:1)
          3 VFs planned, 3 present, 3 to change, GUIDs not pinned
          VFs are bound one after the other, so that the kernel numbers them in their order
          ~ VF 0   port GUID 0000:0000:0000:0000 -> 0200:0000:0012:0100 (template)
                   driver none -> mlx4_core
          ~ VF 1   port GUID 0000:0000:0000:0000 -> 0200:0000:0012:0101 (template)
                   driver none -> mlx4_core
          ~ VF 2   port GUID 0000:0000:0000:0000 -> 0200:0000:0012:0102 (template)
                   GUID of port 2 0000:0000:0000:0000 -> 0200:0000:0012:0202 (template)
                   driver none -> mlx4_core

        Plan: 3 VFs to change
        exit 1
    "#]]
    .assert_eq(&host.show(&["plan"]));
    let report = json(&host, &["plan"]);
    let steps = report["pfs"][0]["steps"].as_array().expect("steps").iter();
    let ports =
        steps.filter(|s| s["step"] == "port-guid").map(|s| format!("{} {}", s["vf"], s["port"]));
    assert_eq!(ports.collect::<Vec<_>>(), ["0 1", "1 1", "2 1", "2 2"]);
    let guid = |kind: u8, vf: usize| format!("0200:0000:0012:{kind:02x}{vf:02x}");
    for (port, kind, vf) in [(1, 1, 0), (2, 1, 1), (1, 1, 2), (2, 2, 2)] {
        alias(&host, port, vf, &guid(kind, vf));
    }
    bound(&mut host, 0, &[&guid(1, 0)]);
    bound(&mut host, 1, &[&guid(1, 1)]);
    bound(&mut host, 2, &[&guid(1, 2), &guid(2, 2)]);
    for verb in VERBS {
        assert_eq!(json(&host, verb)["exit_code"], 0, "{verb:?}: {}", host.show(verb));
    }
    let status = json(&host, &["status"]);
    let port2 = format!("\"port2_guid\":\"{}\"", guid(2, 2));
    assert!(status.to_string().contains(&port2), "{status:#}");
    // Another one at the PF, then at the VF.
    alias(&host, 2, 2, &guid(9, 2));
    let shown = host.show(&["status"]);
    assert!(
        shown.contains("GUID of port 2 0200:0000:0012:0902 (planned 0200:0000:0012:0202)"),
        "{shown}"
    );
    assert_eq!(json(&host, &["status"])["exit_code"], 3, "{shown}");
    alias(&host, 2, 2, &guid(2, 2));
    let gid = "sys/bus/pci/devices/0000:08:00.3/infiniband/mlx4_3/ports/2/gids/0";
    host.file(gid, &format!("fe80:0000:0000:0000:{}\n", guid(9, 2)));
    let shown = host.show(&["plan"]);
    assert!(
        shown.contains(
            "the GUID of port 2 of the VF is 0200:0000:0012:0902 instead of 0200:0000:0012:0202"
        ),
        "{shown}"
    );
    // The same of a VF whose only port is the second.
    host.file(gid, &format!("fe80:0000:0000:0000:{}\n", guid(2, 2)));
    alias(&host, 2, 1, &guid(9, 1));
    let shown = host.show(&["plan"]);
    assert!(
        shown.contains("VF 1   port GUID 0200:0000:0012:0901 -> 0200:0000:0012:0101"),
        "{shown}"
    );
}

/// mlx4 asks no subnet manager of a port that is not active.
#[test]
fn a_second_port_without_a_cable_is_as_planned_once_its_guid_is_asked_for() {
    let mut host = mlx4(&two_ports("1: DOWN"), &[&[1, 2]], "1");
    let zero = "0000:0000:0000:0000";
    alias(&host, 1, 0, "0200:0000:0012:0100");
    bound(&mut host, 0, &["0200:0000:0012:0100", zero]);
    assert!(
        host.show(&["plan"]).contains("GUID of port 2 0000:0000:0000:0000 -> 0200:0000:0012:0200")
    );
    alias(&host, 2, 0, "0200:0000:0012:0200");
    host.file(
        &format!("sys/bus/pci/devices/{CX3}/infiniband/mlx4_0/iov/ports/2/gids/1"),
        &format!("fe80:0000:0000:0000:{zero}\n"),
    );
    host.file(
        "etc/ibprov/ibprov.toml",
        &format!(
            "[[port]]\npci = \"{CX3}\"\nport = 2\nrequired = false\n\n{}",
            std::fs::read_to_string(host.path("etc/ibprov/ibprov.toml")).expect("file")
        ),
    );
    let codes = |host: &Host| -> Vec<String> {
        let report = json(host, &["status"]);
        let findings = report["findings"].as_array().expect("findings").iter();
        findings
            .filter(|f| f["code"].as_str().is_some_and(|c| c.starts_with("vf-")))
            .map(|f| f.to_string())
            .collect()
    };
    assert_eq!(codes(&host), [""; 0]);
    assert_eq!(json(&host, &["plan"])["exit_code"], 0, "{}", host.show(&["plan"]));
    // With a cable and no grant it is none.
    host.file(&format!("sys/bus/pci/devices/{CX3}/infiniband/mlx4_0/ports/2/state"), "4: ACTIVE\n");
    let shown = codes(&host).join("");
    assert!(
        shown.contains("VF 0: a port GUID is set that the subnet manager has not granted"),
        "{shown}"
    );
}

#[test]
fn a_second_port_for_which_there_is_no_guid_is_told() {
    let host = mlx4(&two_ports(ACTIVE), &[&[1], &[1, 2]], "2");
    let path = "etc/ibprov/ibprov.toml";
    let text = std::fs::read_to_string(host.path(path)).expect("file").replace("{kind:8}", "00");
    host.file(path, &text);
    let told = "VF 1: the GUID of port 2 is not set: the configuration gives none\n";
    for verb in ["plan", "status"] {
        assert!(host.show(&[verb]).contains(told), "{}", host.show(&[verb]));
    }
    plan(&host, "[[pf.vf]]\nindex = 1\nport2-guid = \"0200:0000:0012:0201\"");
    let shown = host.show(&["plan"]);
    assert!(
        !shown.contains("is not set")
            && shown.contains("GUID of port 2 0000:0000:0000:0000 -> 0200:0000:0012:0201"),
        "{shown}"
    );
    host.file(path, &text);
    alias(&host, 2, 1, "0014:0500:0000:0002");
    assert!(!host.show(&["plan"]).contains("is not set"), "somebody has set it");
    // RoCE takes its GIDs from addresses.
    alias(&host, 2, 1, "0000:0000:0000:0000");
    host.file(
        &format!("sys/bus/pci/devices/{CX3}/infiniband/mlx4_0/ports/2/link_layer"),
        "Ethernet\n",
    );
    assert!(!host.show(&["plan"]).contains("port 2"), "{}", host.show(&["plan"]));
}

/// A Connect-IB: mlx5 has no way to port 2.
#[test]
fn a_second_port_of_mlx5_cannot_be_set() {
    let mut host = vfs(LIT, "Follow");
    let port = PortSpec {
        number: 2,
        guid: "b859:9f03:0012:a481",
        netdev: Some("ib9"),
        ..PortSpec::default()
    };
    host.rdma(PF, "mlx5_0", "b859:9f03:0012:a480", &[port]);
    assert_named(&host, 1, "warning", "vf-guid-zero", PF);
    for verb in ["plan", "status"] {
        let shown = host.show(&[verb]);
        let told =
            "VFs 0-1: the GUID of port 2 cannot be set: the driver sets that of port 1 alone";
        assert!(shown.contains(told), "{shown}");
    }
}

#[test]
fn what_mlx4_core_will_not_bind_is_known_before() {
    let host = connectx3("");
    assert_named(&host, 3, "error", "vf-not-probed", "0000:08:00.0");
    expect![[r#"
        PF 0000:08:00.0 mlx4_0 (/etc/ibprov/ibprov.toml:1)
          2 VFs planned, 2 present, 2 not as planned, GUIDs not pinned
          VFs are bound one after the other, so that the kernel numbers them in their order
          error: VFs 0-1: mlx4_core refuses to bind them on this host: its parameter num_vfs is 2, and probe_vf is not set
            do: write `options mlx4_core probe_vf=2` to a file in /etc/modprobe.d, rebuild the initramfs if it contains mlx4_core, and reboot
          ! VF 0   port GUID 0000:0000:0000:0000 -> 0200:0000:0012:0100 (template)
                   driver none -> mlx4_core
          ! VF 1   port GUID 0000:0000:0000:0000 -> 0200:0000:0012:0101 (template)
                   driver none -> mlx4_core

        Plan: 2 VFs not as planned
        exit 3
    "#]].assert_eq(&host.show(&["plan"]));
    let one = connectx3("1").show(&["status"]);
    assert!(one.contains("error: PF 0000:08:00.0: VF 1: mlx4_core refuses"), "{one}");
    let both = connectx3("2");
    assert!(!both.show(&["plan"]).contains("mlx4_core refuses"), "{}", both.show(&["plan"]));
    assert_eq!(json(&both, &["plan"])["exit_code"], 1);
    // The guests have them all.
    plan(&host, "driver = \"none\"");
    assert!(!host.show(&["plan"]).contains("mlx4_core refuses"), "{}", host.show(&["plan"]));
}

#[test]
fn a_vf_that_shares_its_iommu_group_with_the_host_is_of_no_use_to_guests() {
    let host = vfs(LIT, "Follow");
    plan(&host, "driver = \"vfio-pci\"");
    host.link(&format!("sys/bus/pci/devices/{PF}/iommu_group"), "../../../kernel/iommu_groups/17");
    for (index, group) in [(0, 17), (1, 18)] {
        let dir = format!("sys/bus/pci/devices/0000:4b:00.{}", index + 1);
        host.remove(&format!("{dir}/driver"));
        host.link(&format!("{dir}/driver"), "../../drivers/vfio-pci");
        host.remove(&format!("{dir}/infiniband"));
        host.remove(&format!("{dir}/net"));
        host.remove(&format!("sys/class/net/ib{}", index + 1));
        host.link(&format!("{dir}/iommu_group"), &format!("../../../kernel/iommu_groups/{group}"));
        host.file(&format!("sys/kernel/iommu_groups/{group}/devices/0000:4b:00.{}", index + 1), "");
    }
    // The port that leads to the adapter may be in the group.
    host.function("0000:4a:00.0", "8086:0000", "060400", Some("pcieport"));
    host.file("sys/kernel/iommu_groups/18/devices/0000:4a:00.0", "");
    for verb in VERBS {
        assert_eq!(json(&host, verb)["exit_code"], 0, "{verb:?}: {}", host.show(verb));
    }
    host.file(&format!("sys/kernel/iommu_groups/17/devices/{PF}"), "");
    assert_named(&host, 1, "warning", "iommu-group-shared", PF);
    let shown = host.show(&["status"]);
    assert!(shown.contains("VF 0: no guest can have one: IOMMU group 17 also has 0000:4b:00.0, which mlx5_core drives\n"), "{shown}");
}

#[test]
fn status_says_why_a_vf_is_not_as_planned() {
    let host = vfs(LIT, "Follow");
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov/1/port"), "00:00:00:00:00:00:00:00\n");
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov/0/policy"), "Down\n");
    let shown = host.show(&["status"]);
    for row in [
        "!     VF 0  link state down (planned follow)",
        "!     VF 1  port GUID 0 (planned 0200:0000:0012:0101)",
    ] {
        assert!(shown.contains(&format!("\n{row}\n")), "{shown}");
    }
}

#[test]
fn what_the_plan_knows_has_its_code_in_every_verb() {
    // The third adapter has no SR-IOV: its VFs are planned, and are none.
    let mut host = vfs(LIT, "Follow");
    host.function("0000:5e:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    let guid = "b859:9f03:0013:0000";
    let port = PortSpec { guid, netdev: Some("ib9"), ..PortSpec::default() };
    host.rdma("0000:5e:00.0", "mlx5_9", guid, &[port]);
    host.file(
        "run/ibprov/boot.json",
        r#"{"schema":1,"report":"boot","verdict":"not-ready","exit_code":3}"#,
    );
    plan(
        &host,
        "[[pf]]\npci = \"0000:5e:00.0\"\nvfs = 16\nguid.template = \"02:00:00:00:00:13:{kind:8}:{vf:8}\"",
    );
    assert_named(&host, 3, "error", "sriov-not-enabled-fw", "0000:5e:00.0");
    let shown = host.show(&["status"]);
    assert!(shown.contains("2 of 18 VFs as planned"), "{shown}");
    assert!(shown.contains("mstconfig -d 0000:5e:00.0 set SRIOV_EN=1 NUM_OF_VFS=16"), "{shown}");
    let metrics = host.show(&["metrics"]);
    assert!(metrics.contains("\nibprov_vfs_planned 18\n"), "{metrics}");
    // The boot that failed of it is no second fault.
    let check = json(&host, &["check"]);
    let all = check["findings"].as_array().expect("findings").iter();
    let codes: Vec<(&Value, &Value)> = all.map(|f| (&f["code"], &f["caused_by"])).collect();
    let cause = Value::from("sriov-not-enabled-fw");
    assert_eq!(codes, [(&cause, &Value::Null), (&"boot-failed".into(), &cause)], "{check:#}");
    // A VF that is given the GUID of another.
    let twice = Host::healthy();
    twice.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), "16\n");
    let exception = "node-guid = \"b859:9f03:0012:a490\"\nport-guid = \"0200:0000:0000:0001\"";
    twice.file(
        "etc/ibprov/ibprov.toml",
        &format!(
            "[[pf]]\npci = \"{PF}\"\nvfs = 2\nguid.offset = 16\n[[pf.vf]]\nindex = 1\n{exception}\n"
        ),
    );
    assert_named(&twice, 3, "error", "vf-guid-duplicate", PF);
}

#[test]
fn the_number_that_was_refused_is_told_with_the_answer() {
    let host = Host::healthy();
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), "16\n");
    host.file(&format!("sys/bus/pci/devices/{PF}/mlx5_num_vfs"), "0\n");
    host.file(
        "etc/ibprov/ibprov.toml",
        &format!("[[pf]]\npci = \"{PF}\"\nvfs = 4\nguid.template = \"02:00:00:00:00:12:{{kind:8}}:{{vf:8}}\"\n"),
    );
    let report = format!(
        r#"{{"schema":1,"report":"apply-pf","pf":"{PF}","verdict":"failed","exit_code":3,"findings":[],"reason":"cannot change the number of VFs from 0 to 4: ENOSPC: No space left on device"}}"#
    );
    host.file(&format!("run/ibprov/pf/{PF}.json"), &report);
    for verb in ["status", "check"] {
        let shown = host.show(&[verb]);
        assert!(shown.contains("VFs 0-3 to be created; the last run: cannot change the number of VFs from 0 to 4: ENOSPC: No space left on device"), "{shown}");
        assert!(!shown.contains("not-as-expected"), "{shown}");
    }
}

#[test]
fn vfs_that_lost_their_plan_are_orphaned() {
    let host = vfs(LIT, "Follow");
    let run = format!(
        r#"{{"schema":1,"report":"apply-pf","pf":"{PF}","verdict":"done","exit_code":0,"findings":[],"vfs":[{{}},{{}}]}}"#
    );
    host.file(&format!("run/ibprov/pf/{PF}.json"), &run);
    let orphaned = |verb: &str| {
        let report = json(&host, &[verb]);
        let findings = report["findings"].as_array().expect("findings").iter();
        let of = findings.filter(|f| f["code"] == "vf-orphaned" && f["object"] == PF);
        of.map(|f| f["message"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(orphaned("status"), [""; 0], "they are planned");
    host.remove("etc/ibprov/ibprov.toml");
    let said = "VFs 0-1: orphaned: ibprov configured them in this boot, and no [[pf]] plans them";
    assert_eq!(orphaned("status"), [said]);
    assert!(orphaned("check").concat().contains(said), "{:?}", orphaned("check"));
    assert_eq!(json(&host, &["status"])["exit_code"], 0, "a note");
    host.file("etc/ibprov/ibprov.toml", &format!("[[pf]]\npci = \"{PF}\"\nvfs = 0\n"));
    let shown = host.show(&["apply", PF, "--dry-run"]);
    assert!(shown.contains("change the number of VFs from 2 to 0"), "{shown}");
    host.remove("etc/ibprov/ibprov.toml");
    host.remove(&format!("run/ibprov/pf/{PF}.json"));
    assert_eq!(orphaned("status"), [""; 0], "another program has created them");
}

#[test]
fn a_second_port_of_a_vf_without_a_guid_is_told() {
    let mut host = connectx3("2");
    for index in 0..2 {
        let guid = format!("0200:0000:0012:010{index}");
        alias(&host, 1, index, &guid);
        bound(&mut host, index, &[&guid, "0000:0000:0000:0000"]);
    }
    for verb in ["status", "check"] {
        let report = json(&host, &[verb]);
        let findings = report["findings"].as_array().expect("findings").iter();
        let of = findings.filter(|f| f["code"] == "vf-guid-zero");
        let objects: Vec<&str> = of.filter_map(|f| f["object"].as_str()).collect();
        let objects = objects.join(", ");
        assert_eq!(objects, "mlx4_1/2 (0000:08:00.1), mlx4_2/2 (0000:08:00.2)", "{report:#}");
        assert_eq!(report["exit_code"], 1, "{report:#}");
    }
}

/// A rule that names no adapter is for all; what names another one is not for this PF.
#[test]
fn what_else_creates_vfs_is_named_wherever_it_stands() {
    let writers = |host: &Host, verb: &str| -> Vec<String> {
        let report = json(host, &[verb]);
        let findings = report["findings"].as_array().expect("findings").iter();
        let mut others = findings.filter(|finding| finding["code"] == "vf-other-writer");
        let message = others.next().map_or("", |found| found["message"].as_str().expect("text"));
        let list = message.split(" by ").nth(1).and_then(|rest| rest.split(" too: ").next());
        list.map_or_else(Vec::new, |list| list.split(", ").map(str::to_owned).collect())
    };
    let host = vfs(LIT, "Follow");
    assert_eq!(writers(&host, "status"), [""; 0]);
    host.file("etc/rc.local", "#!/bin/sh\nip link set ib0 vf 0 state auto\necho 4 >/sys/class/net/eth9/device/sriov_numvfs\necho 2 >/sys/bus/pci/devices/0000:4b:00.0/sriov_numvfs\n");
    host.file(
        "etc/udev/rules.d/70-virt.rules",
        "SUBSYSTEM==\"pci\", DRIVER==\"mlx5_core\", ATTR{sriov_numvfs}=\"2\"\nKERNEL==\"eth9\", ATTR{device/sriov_numvfs}=\"2\"\n",
    );
    for verb in ["status", "check", "plan"] {
        assert_eq!(
            writers(&host, verb),
            ["/etc/rc.local:2", "/etc/rc.local:4", "/etc/udev/rules.d/70-virt.rules:1"],
            "{verb}"
        );
    }
}
