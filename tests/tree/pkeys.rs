//! The P_Key tables of ports, and netdevs that their partition keeps from being online.

use expect_test::expect;
use serde_json::{Value, json};

use crate::host::{Host, PF};

/// A healthy host whose port has this P_Key table.
fn with(table: &[&str]) -> Host {
    let host = Host::healthy();
    host.pkeys(PF, "mlx5_0", table);
    host
}

fn report(host: &Host, verb: &str) -> Value {
    let out = host.ibprov(&[verb, "--format", "json"]);
    serde_json::from_slice(&out.stdout).expect("JSON")
}

#[test]
fn status_shows_the_table_with_the_membership_of_each_entry() {
    let host = with(&["0x7fff", "0x0000", "0x8012"]);
    let shown = host.show(&["status", "-v"]);
    assert!(shown.contains("\n    P_Keys 0x7fff limited, 0x8012 full\n"), "{shown}");
    let pkeys = |host: &Host| report(host, "status")["hcas"][0]["ports"][0]["pkeys"].clone();
    let table = json!([
        {"index": 0, "pkey": "0x7fff", "membership": "limited"},
        {"index": 2, "pkey": "0x8012", "membership": "full"},
    ]);
    assert_eq!(pkeys(&host), table);
    assert!(with(&[]).show(&["status", "-v"]).contains("\n    P_Keys none\n"));
    // Not copied, or no table.
    let without = Host::healthy();
    assert_eq!(pkeys(&without), Value::Null);
    assert!(!without.show(&["status", "-v"]).contains("P_Key"));
    let odd = with(&["0xffff", "0x80"]);
    odd.file(&format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0/ports/1/pkeys/1"), "no\n");
    assert_eq!(pkeys(&odd), Value::Null);
    assert!(odd.show(&["status"]).contains("pkeys/1: \"no\" is not a P_Key"));
}

/// Each finding of a verb but healthy: severity, code, object.
fn told(host: &Host, verb: &str) -> (i64, Vec<String>) {
    let report = report(host, verb);
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let findings = report["findings"].as_array().expect("findings").iter();
    let findings = findings.filter(|finding| finding["code"] != "healthy");
    let mut findings: Vec<String> = findings
        .flat_map(|f| {
            let head = format!("{} {}", word(&f["severity"]), word(&f["code"]));
            let objects = word(&f["object"]);
            objects.split(", ").map(|object| format!("{head} {object}")).collect::<Vec<_>>()
        })
        .collect();
    findings.sort();
    (report["exit_code"].as_i64().expect("exit code"), findings)
}

/// status and check say this, and exit with the code that metrics has.
#[track_caller]
fn assert_told(host: &Host, code: i64, want: &[&str]) {
    for verb in ["status", "check"] {
        let (exit, findings) = told(host, verb);
        assert_eq!(findings, want, "{verb}: {}", host.show(&[verb]));
        assert_eq!(exit, code, "{verb}");
    }
    let metrics = host.show(&["metrics"]);
    assert!(metrics.contains(&format!("\nibprov_node_exit_code {code}\n")), "{metrics}");
}

fn without_carrier(host: &Host, netdev: &str) {
    host.file(&format!("sys/class/net/{netdev}/carrier"), "0\n");
}

/// A P_Key child of ib0.
fn child(host: &Host, name: &str, pkey: &str, carrier: &str) {
    let dir = format!("sys/class/net/{name}");
    let broadcast = format!("00:ff:ff:ff:ff:12:40:1b:{pkey}:00:00:00:00:00:00:ff:ff:ff:ff");
    for (file, text) in [
        ("type", "32"),
        ("ifindex", "9"),
        ("iflink", "2"),
        ("mtu", "2044"),
        ("flags", "0x1003"),
        ("uevent", ""),
        ("carrier", carrier),
        ("broadcast", &broadcast),
    ] {
        host.file(&format!("{dir}/{file}"), &format!("{text}\n"));
    }
}

const PORT: &str = "mlx5_0/1 (0000:4b:00.0)";

#[test]
fn a_limited_member_of_the_default_partition_has_no_carrier() {
    let host = with(&["0x7fff", "0x8012"]);
    // It reaches full members.
    assert_told(&host, 0, &[]);
    without_carrier(&host, "ib0");
    assert_told(
        &host,
        1,
        &["warning interface-not-online ib0", &format!("warning pkey-missing {PORT}")],
    );
    expect![[r#"
        ready with exceptions: 1 of 1 expected ports active
          warning: mlx5_0/1: the port is only a limited member of partition 0x7fff (its P_Key table has 0x7fff, not 0xffff); needed by ib0
            do: ask the administrator of the subnet manager for full membership; in opensm's partitions.conf: Default=0x7fff, ipoib : ALL=limited, SELF=full, 0xb8599f030012a480=full ;
          warning: ib0: up without carrier, probably because the port is only a limited member of partition 0x7fff (its P_Key table has 0x7fff, not 0xffff)
            do: status -110 means that the subnet manager does not answer, -22 that it refuses
            run: dmesg | grep 'ib0: multicast join failed'
            run: sminfo -C mlx5_0 -P 1
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
        ~ mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR  no carrier
        exit 1
    "#]].assert_eq(&host.show(&["status"]));
    expect![[r#"
        verdict: exceptions (errors: 0, warnings: 1)
        read: no log

        warning: pkey-missing (confidence high)
          mlx5_0/1 (0000:4b:00.0): the port is only a limited member of partition 0x7fff (its P_Key table has 0x7fff, not 0xffff); needed by ib0.
          Fix permanently:
            do: ask the administrator of the subnet manager for full membership; in opensm's partitions.conf: Default=0x7fff, ipoib : ALL=limited, SELF=full, 0xb8599f030012a480=full ;

            warning: interface-not-online (confidence high, caused by pkey-missing)
              ib0: up without carrier, probably because the port is only a limited member of partition 0x7fff (its P_Key table has 0x7fff, not 0xffff).
              Look:
                do: status -110 means that the subnet manager does not answer, -22 that it refuses
                run: dmesg | grep 'ib0: multicast join failed'
                run: sminfo -C mlx5_0 -P 1
        exit 1
    "#]].assert_eq(&host.show(&["check"]));
    // Where the table says nothing against it.
    let host = with(&["0xffff"]);
    without_carrier(&host, "ib0");
    assert_told(&host, 1, &["warning interface-not-online ib0"]);
    expect![[r#"
        ready with exceptions: 1 of 1 expected ports active
          warning: ib0: up without carrier: IPoIB has not joined its broadcast group
            do: status -110 means that the subnet manager does not answer, -22 that it refuses
            run: dmesg | grep 'ib0: multicast join failed'
            run: sminfo -C mlx5_0 -P 1
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
        ~ mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR  no carrier
        exit 1
    "#]]
    .assert_eq(&host.show(&["status"]));
    // Nor is it judged where the tree does not show the carrier.
    host.remove("sys/class/net/ib0/carrier");
    assert_told(&host, 0, &[]);
}

#[test]
fn what_a_port_has_to_be_a_member_of_is_judged_while_it_is_active() {
    let host = with(&["0xffff", "0x0012"]);
    let file = "etc/ibprov/ibprov.toml";
    let asking = |pkeys: &str| format!("[[port]]\npci = \"{PF}\"\npkeys = {pkeys}\n");
    host.file(file, &asking(r#"["0xffff"]"#));
    assert_told(&host, 0, &[]);
    host.file(file, &asking(r#"["0x0012", "0x8013"]"#));
    let missing = format!("warning pkey-missing {PORT}");
    assert_told(&host, 1, &[&missing, &missing]);
    expect![[r#"
        ready with exceptions: 1 of 1 expected ports active
          warning: mlx5_0/1: the port is only a limited member of partition 0x0012 (its P_Key table has 0x0012, not 0x8012); needed by the [[port]] at /etc/ibprov/ibprov.toml:1
            do: ask the administrator of the subnet manager for full membership; in opensm's partitions.conf: pkey0012=0x0012, ipoib : 0xb8599f030012a480=full ;
          warning: mlx5_0/1: the port is not a member of partition 0x0013 (its P_Key table has neither 0x8013 nor 0x0013); needed by the [[port]] at /etc/ibprov/ibprov.toml:1
            do: ask the administrator of the subnet manager for full membership; in opensm's partitions.conf: pkey0013=0x0013, ipoib : 0xb8599f030012a480=full ;
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
        ~ mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR  pkey-missing
        exit 1
    "#]].assert_eq(&host.show(&["status"]));
    host.file(file, &format!("{}required = false\n", asking(r#"["0x8013"]"#)));
    assert_told(&host, 0, &[&format!("info pkey-missing {PORT}")]);
    host.file(file, &asking(r#"["0x8013"]"#));
    host.pkeys(PF, "mlx5_0", &["0x7fff", "0xffff", "0x0013", "0x8013"]);
    assert_told(&host, 0, &[]);
    // The subnet manager may not have written it yet.
    host.pkeys(PF, "mlx5_0", &["0xffff", "0x0000", "0x0000", "0x0000"]);
    host.file(&format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0/ports/1/state"), "2: INIT\n");
    let (_, status) = told(&host, "status");
    assert_eq!(status, [format!("error port-not-active {PORT}")]);
    // A tree without the table.
    let host = Host::healthy();
    host.file(file, &asking(r#"["0x8013"]"#));
    assert_eq!(told(&host, "status"), (0, vec![format!("info port-not-judged {PORT}")]));
}

#[test]
fn a_child_needs_its_partition() {
    let missing = format!("warning pkey-missing {PORT}");
    let host = with(&["0xffff", "0x0012"]);
    child(&host, "ib0.8012", "80:12", "0");
    assert_told(&host, 1, &["warning interface-not-online ib0.8012", &missing]);
    expect![[r#"
        ready with exceptions: 1 of 1 expected ports active
          warning: mlx5_0/1: the port is only a limited member of partition 0x0012 (its P_Key table has 0x0012, not 0x8012); needed by ib0.8012
            do: ask the administrator of the subnet manager for full membership; in opensm's partitions.conf: pkey0012=0x0012, ipoib : 0xb8599f030012a480=full ;
          warning: ib0.8012: up without carrier, probably because the port is only a limited member of partition 0x0012 (its P_Key table has 0x0012, not 0x8012)
            do: status -110 means that the subnet manager does not answer, -22 that it refuses
            run: dmesg | grep 'ib0.8012: multicast join failed'
            run: sminfo -C mlx5_0 -P 1
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
        ~ mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR  pkey-missing
        ~     P_Key children: ib0.8012 (0x8012) up, no carrier
        exit 1
    "#]].assert_eq(&host.show(&["status"]));
    host.pkeys(PF, "mlx5_0", &["0xffff", "0x8012"]);
    assert_told(&host, 1, &["warning interface-not-online ib0.8012"]);
    host.file("sys/class/net/ib0.8012/carrier", "1\n");
    assert_told(&host, 0, &[]);
    // One that is to be created is not there, and says why it would be in vain.
    let host = with(&["0xffff"]);
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[interface]]\nmatch.name = \"ib0\"\n[[interface.partition]]\npkey = \"0x8012\"\n",
    );
    let (_, status) = told(&host, "status");
    assert!(status.contains(&missing), "{status:?}");
}

/// A host whose network stack `unit` is enabled and has this file.
fn network(unit: &str, file: &str, text: &str) -> Host {
    let host = with(&["0xffff"]);
    host.file(file, text);
    host.link(
        &format!("etc/systemd/system/multi-user.target.wants/{unit}"),
        &format!("/usr/lib/systemd/system/{unit}"),
    );
    host
}

fn down(host: &Host) {
    host.file("sys/class/net/ib0/flags", "0x1002\n");
    host.remove("sys/class/net/ib0/carrier");
}

#[test]
fn one_that_is_down_is_missed_where_a_network_stack_is_to_set_it_up() {
    let host = with(&["0xffff"]);
    down(&host);
    assert_told(&host, 0, &[]);
    let interfaces = "etc/network/interfaces";
    let host = network("networking.service", interfaces, "auto ib0\niface ib0 inet manual\n");
    down(&host);
    assert_told(&host, 1, &["warning interface-not-online ib0"]);
    expect![[r#"
        ready with exceptions: 1 of 1 expected ports active
          warning: ib0: down, and networking.service is configured to set it up (/etc/network/interfaces)
            run: ibprov iface ib0 --dry-run
            run: journalctl -b -u networking.service
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
        ~ mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR  netdev down
        exit 1
    "#]].assert_eq(&host.show(&["status"]));
    // Another stack is enabled, and does not read that file.
    let other = network("systemd-networkd.service", interfaces, "auto ib0\n");
    down(&other);
    assert_told(&other, 0, &[]);
    let by_hand = network(
        "NetworkManager.service",
        "etc/NetworkManager/system-connections/ib0.nmconnection",
        "[connection]\nid=ib0\ntype=infiniband\ninterface-name=ib0\nautoconnect=false\n",
    );
    down(&by_hand);
    assert_told(&by_hand, 0, &[]);
}

#[test]
fn a_configuration_for_an_interface_that_no_adapter_has_is_named() {
    for (unit, file, text) in [
        (
            "NetworkManager.service",
            "etc/NetworkManager/system-connections/ib5.nmconnection",
            "[connection]\nid=ib5\ntype=infiniband\ninterface-name=ib5\n",
        ),
        (
            "NetworkManager.service",
            "etc/sysconfig/network-scripts/ifcfg-ib5",
            "DEVICE=ib5\nTYPE=InfiniBand\nONBOOT=yes\n",
        ),
        ("systemd-networkd.service", "etc/systemd/network/ib.network", "[Match]\nName=ib5\n"),
        ("networking.service", "etc/network/interfaces", "auto lo ib5\niface ib5 inet dhcp\n"),
    ] {
        let host = network(unit, file, text);
        assert_told(&host, 1, &["warning ifcfg-mismatch ib5"]);
        let shown = host.show(&["status"]);
        assert!(shown.contains(&format!("is configured to set it up (/{file})")), "{shown}");
        // A port that has no netdev yet may get that name.
        host.remove("sys/class/net/ib0");
        host.remove(&format!("sys/bus/pci/devices/{PF}/net"));
        assert!(!host.show(&["status"]).contains("ib5"), "{}", host.show(&["status"]));
    }
    let names = "auto ib0 ib0.8012 ib0:1 eth7 ib* storage0\n";
    assert_told(&network("networking.service", "etc/network/interfaces", names), 0, &[]);
    let host = network("networking.service", "etc/network/interfaces", "auto ib5 ib6.8001\n");
    assert_told(&host, 1, &["warning ifcfg-mismatch ib5", "warning ifcfg-mismatch ib6.8001"]);
    expect![[r#"
        ready with exceptions: 1 of 1 expected ports active
          warning: ib5, ib6.8001: no interface has this name, and networking.service is configured to set it up (/etc/network/interfaces); IPoIB interfaces: ib0
            run: ibprov status -v
            do: correct the name in /etc/network/interfaces, or remove the file
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
          mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR
        exit 1
    "#]].assert_eq(&host.show(&["status"]));
}

const REFUSED: &str = "\
Oct 04 08:11:20 n3 kernel: mlx5_core 0000:06:00.0: firmware version: 28.41.1000
Oct 04 08:11:22 n3 kernel: ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -22
Oct 04 08:11:30 n3 kernel: ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -22
Oct 04 08:11:46 n3 kernel: ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -22
Oct 04 08:12:40 n3 NetworkManager[911]: <warn>  [1759565560.1] device (ib0): carrier not present
";

const STATE: &str = "\
$ ibstat mlx5_0
CA 'mlx5_0'
	CA type: MT4126
	Number of ports: 1
	Firmware version: 28.41.1000
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 400
		Base lid: 44
		LMC: 0
		SM lid: 1
		Capability mask: 0x2651ec48
		Port GUID: 0x0200000c00010003
		Link layer: InfiniBand
$ grep -H . /sys/class/infiniband/mlx5_0/ports/1/pkeys/* | grep -v 0x0000
/sys/class/infiniband/mlx5_0/ports/1/pkeys/0:0x7fff
/sys/class/infiniband/mlx5_0/ports/1/pkeys/1:0x8012
$ ip link show ib0
3: ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 2044 qdisc mq state DOWN mode DEFAULT group default qlen 256
    link/infiniband 00:00:01:28:fe:80:00:00:00:00:00:00:02:00:00:0c:00:01:00:03 brd 00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff
";

#[test]
fn a_log_of_joins_that_are_refused_is_told_and_the_table_explains_it() {
    let host = Host::new();
    host.file("journal.log", REFUSED);
    host.file("state.txt", STATE);
    let log = |name: &str| host.path(name).display().to_string();
    let check = |files: &[&str]| {
        let files: Vec<String> = files.iter().map(|name| log(name)).collect();
        let mut arguments = vec!["check", "--log"];
        arguments.extend(files.iter().map(String::as_str));
        host.show(&arguments)
    };
    expect![[r#"
        verdict: exceptions (errors: 0, warnings: 1)
        read: ROOT/journal.log: 5 lines, 1 boot, Oct 04 08:11:20 to Oct 04 08:12:40

        warning: interface-not-online (confidence medium)
          The subnet manager refuses to let ib0 join its broadcast group (status -22), so that ib0 has no carrier.
          Evidence:
            ROOT/journal.log:2: [Oct 04 08:11:22] ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -22
            ROOT/journal.log:3: [Oct 04 08:11:30] ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -22
            ROOT/journal.log:4: [Oct 04 08:11:46] ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -22
          Look:
            do: compare the P_Keys of the port with the partition of the group
            run: ibprov status -v
            do: the rate and the MTU of the group must not be greater than those of the port: saquery -C DEVICE -P PORT -g
        exit 1
    "#]].assert_eq(&check(&["journal.log"]));
    expect![[r#"
        verdict: exceptions (errors: 0, warnings: 1)
        read: ROOT/journal.log, ROOT/state.txt: 26 lines, 1 boot, Oct 04 08:11:20 to Oct 04 08:12:40

        warning: pkey-missing (confidence medium)
          mlx5_0/1: the port is only a limited member of partition 0x7fff (its P_Key table has 0x7fff, not 0xffff), and ib0 is refused.
          Evidence:
            ROOT/state.txt:7: mlx5_0/1: State: Active
          Fix permanently:
            do: ask the administrator of the subnet manager for full membership; in opensm's partitions.conf: Default=0x7fff, ipoib : ALL=limited, SELF=full, 0x0200000c00010003=full ;

            warning: interface-not-online (confidence medium, caused by pkey-missing)
              The subnet manager refuses to let ib0 join its broadcast group (status -22), so that ib0 has no carrier.
              Evidence:
                ROOT/journal.log:2: [Oct 04 08:11:22] ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -22
                ROOT/journal.log:3: [Oct 04 08:11:30] ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -22
                ROOT/journal.log:4: [Oct 04 08:11:46] ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -22
              Look:
                do: compare the P_Keys of the port with the partition of the group
                run: ibprov status -v
                do: the rate and the MTU of the group must not be greater than those of the port: saquery -C DEVICE -P PORT -g
        exit 1
    "#]].assert_eq(&check(&["journal.log", "state.txt"]));
}
