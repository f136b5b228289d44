//! Soft RoCE: `[[rxe]]`.

use expect_test::expect;

use crate::host::Host;

const WANTED: &str = "[[rxe]]\nname = \"rxe0\"\nnetdev = \"eth1\"\n";

/// A healthy host with an Ethernet netdev, on which soft RoCE is wanted.
fn host() -> Host {
    let host = Host::healthy();
    host.file("etc/ibprov/ibprov.toml", WANTED);
    host.file("sys/module/rdma_rxe/initstate", "live\n");
    netdev(&host, "1");
    host.file("run/udev/data/n7", "I:5221000\nE:ID_BUS=pci\n");
    host
}

fn netdev(host: &Host, arphrd: &str) {
    for (attribute, value) in
        [("type", arphrd), ("ifindex", "7"), ("mtu", "1500"), ("flags", "0x1003"), ("carrier", "1")]
    {
        host.file(&format!("sys/class/net/eth1/{attribute}"), &format!("{value}\n"));
    }
}

fn device(host: &Host, name: &str, netdev: &str) {
    let dir = format!("sys/class/infiniband/{name}");
    host.file(&format!("{dir}/parent"), &format!("{netdev}\n"));
    host.file(&format!("{dir}/ports/1/link_layer"), "Ethernet\n");
    let gid = |index: u32, gid: &str| {
        host.file(&format!("{dir}/ports/1/gids/{index}"), &format!("{gid}\n"));
        host.file(&format!("{dir}/ports/1/gid_attrs/types/{index}"), "RoCE v2\n");
        host.file(&format!("{dir}/ports/1/gid_attrs/ndevs/{index}"), &format!("{netdev}\n"));
    };
    gid(0, "fe80:0000:0000:0000:5054:00ff:fe12:3456");
    gid(1, "0000:0000:0000:0000:0000:ffff:0a00:0007");
}

fn code(host: &Host, verb: &[&str]) -> Option<i32> {
    host.ibprov(verb).status.code()
}

#[test]
fn a_device_that_is_missing_would_be_created() {
    let host = host();
    let shown = host.show(&["boot", "--dry-run"]);
    assert!(shown.contains("create the soft RoCE device rxe0 on eth1\n"), "{shown}");
    assert_eq!(code(&host, &["boot", "--dry-run"]), Some(1), "would change");
    expect![[r#"
        rxe0 (eth1): would be created on eth1 (soft RoCE)
        exit 1
    "#]]
    .assert_eq(&host.show(&["plan"]));
    let ask = ["iface", "eth1", "--dry-run"];
    expect![[r#"
        rxe0 (eth1): would be created on eth1 (soft RoCE)
        exit 1
    "#]]
    .assert_eq(&host.show(&ask));
    let output = host.ibprov(&["iface", "eth1", "--dry-run", "--format", "json"]);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&said["verdict"], &said["rxe"]["state"]),
        (&"would-change".into(), &"absent".into())
    );
    let status = host.show(&["status"]);
    assert!(status.starts_with("NOT READY"), "{status}");
    assert!(
        status.contains("error: rxe0 (eth1): soft RoCE device not created on eth1\n"),
        "{status}"
    );
    assert_eq!(code(&host, &["check"]), Some(3), "check says the same");
}

#[test]
fn one_that_is_there_is_shown_with_its_gids() {
    let host = host();
    device(&host, "rxe0", "eth1");
    expect![[r#"
        ready: 1 of 1 expected ports active
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
          mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR

        soft RoCE: rxe0 (eth1): ready
        exit 0
    "#]]
    .assert_eq(&host.show(&["status"]));
    let gids = host.show(&["status", "--gids"]);
    assert!(gids.contains("soft RoCE: rxe0 (eth1): ready\n  "), "{gids}");
    assert!(gids.contains("10.0.0.7"), "{gids}");
    let by_netdev = ["gid", "--port", "eth1", "--type", "rocev2", "--address", "10.0.0.7"];
    assert_eq!(host.show(&by_netdev), "1\nexit 0\n");
    assert_eq!(code(&host, &["gid", "--port", "eth9"]), Some(2));
    let index = ["gid", "--port", "rxe0/1", "--type", "rocev2", "--address", "10.0.0.7"];
    assert_eq!(host.show(&index), "1\nexit 0\n");
    assert!(host.show(&["boot", "--dry-run"]).starts_with("boot would change nothing"));
    host.file("sys/class/net/eth1/carrier", "0\n");
    let status = host.show(&["status"]);
    assert!(status.contains("warning: rxe0 (eth1): soft RoCE device on eth1: eth1 has no carrier"));
    assert_eq!(code(&host, &["status"]), Some(1));
}

#[test]
fn one_without_a_netdev_comes_later() {
    let host = host();
    host.file("etc/ibprov/ibprov.toml", "[[rxe]]\nname = \"rxe0\"\nnetdev = \"eth9\"\n");
    let status = host.show(&["status"]);
    assert!(
        status.contains("netdev eth9 does not exist; the device is created when eth9 appears"),
        "{status}"
    );
    assert_eq!(code(&host, &["status"]), Some(1));
    let plan = host.show(&["plan"]);
    assert!(plan.contains("netdev eth9 does not exist"), "{plan}");
}

#[test]
fn ipoib_and_another_device_of_the_netdev_are_refused() {
    let host = host();
    netdev(&host, "32");
    let shown = host.show(&["boot", "--dry-run"]);
    assert!(shown.contains("refused: eth1 is an IPoIB interface"), "{shown}");
    assert_eq!(code(&host, &["boot", "--dry-run"]), Some(3));
    netdev(&host, "1");
    device(&host, "other", "eth1");
    let plan = host.show(&["plan"]);
    assert!(plan.contains("not created: eth1 has the soft RoCE device other"), "{plan}");
    assert_eq!(code(&host, &["plan"]), Some(3));
}

#[test]
fn one_that_is_not_configured_is_left_alone_and_told() {
    let host = host();
    host.file("etc/ibprov/ibprov.toml", "");
    device(&host, "rxe0", "eth1");
    let status = host.show(&["status"]);
    assert!(
        status.contains("soft RoCE device on eth1 is not in the configuration, and is not changed"),
        "{status}"
    );
    assert_eq!(code(&host, &["status"]), Some(0));
    let check = host.show(&["check"]);
    assert!(check.starts_with("verdict: ready"), "{check}");
    assert!(host.show(&["boot", "--dry-run"]).starts_with("boot would change nothing"));
}

#[test]
fn a_host_without_infiniband_can_have_soft_roce() {
    let host = Host::new();
    host.file("etc/ibprov/ibprov.toml", WANTED);
    netdev(&host, "1");
    host.file("run/udev/data/n7", "I:5221000\nE:ID_BUS=pci\n");
    let shown = host.show(&["boot", "--dry-run"]);
    assert!(shown.contains("rdma_rxe"), "{shown}");
    assert!(shown.contains("create the soft RoCE device rxe0 on eth1\n"), "{shown}");
    assert!(!shown.contains("ib_ipoib"), "{shown}");
}

#[test]
fn mistakes_of_the_configuration_are_told_with_their_place() {
    let host = host();
    let of = |text: &str| {
        host.file("etc/ibprov/ibprov.toml", text);
        let out = host.ibprov(&["config", "check"]);
        assert_eq!(out.status.code(), Some(2), "{text}");
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
    };
    let twice = of(&format!("{WANTED}{WANTED}"));
    assert!(twice.contains("two [[rxe]] have the name rxe0"), "{twice}");
    let twice = of(&format!("{WANTED}[[rxe]]\nname = \"rxe1\"\nnetdev = \"eth1\"\n"));
    assert!(twice.contains("two [[rxe]] have the netdev eth1"), "{twice}");
    let ipoib = of(
        "[[interface]]\nmatch.name = \"ib0\"\nmtu = 2044\n[[rxe]]\nname = \"rxe0\"\nnetdev = \"ib0\"\n",
    );
    assert!(ipoib.contains("rxe.netdev ib0 is an IPoIB interface"), "{ipoib}");
    let excluded = of(&format!("{WANTED}[modules]\nexclude = [\"rdma_rxe\"]\n"));
    assert!(excluded.contains("[[rxe]] needs rdma_rxe, which modules.exclude names"), "{excluded}");
    let half = of("[[rxe]]\nname = \"rxe0\"\n");
    assert!(half.contains("rxe has no netdev"), "{half}");
    let hostile = of("[[rxe]]\nname = \"rxe0\"\nnetdev = \"e\\\"x\"\n");
    assert!(hostile.contains("cannot be given to a network device"), "{hostile}");
}
