//! What a link has to be at least: the port's, and the PCIe link of its adapter.

use expect_test::expect;

use crate::host::{Host, PF};

/// The PCIe links of the HCA and of the slot above it.
fn with_slot(host: &Host, current: (&str, &str), adapter: (&str, &str), slot: (&str, &str)) {
    let own = "sys/devices/pci0000:40/0000:40:01.0/0000:4b:00.0";
    let at = format!("sys/bus/pci/devices/{PF}");
    std::fs::create_dir_all(host.path(own).parent().expect("parent")).expect("directory");
    std::fs::rename(host.path(&at), host.path(own)).expect("move");
    host.link(&at, "../../../devices/pci0000:40/0000:40:01.0/0000:4b:00.0");
    for (dir, kind, (width, speed)) in [
        (own, "current", current),
        (own, "max", adapter),
        ("sys/devices/pci0000:40/0000:40:01.0", "max", slot),
    ] {
        host.file(&format!("{dir}/{kind}_link_width"), &format!("{width}\n"));
        host.file(&format!("{dir}/{kind}_link_speed"), &format!("{speed} GT/s PCIe\n"));
    }
}

fn configured(host: &Host, row: &str) {
    host.file("etc/ibprov/ibprov.toml", &format!("[[port]]\npci = \"{PF}\"\n{row}\n"));
}

fn exit(host: &Host, arguments: &[&str]) -> Option<i32> {
    host.ibprov(arguments).status.code()
}

#[test]
fn a_port_below_its_rate_is_degraded() {
    let host = Host::healthy();
    configured(&host, "rate = \"400 Gb/s\"");
    expect![[r#"
        ready with exceptions: 1 of 1 expected ports active
          warning: mlx5_0/1: degraded: rate 200 Gb/sec (4X HDR), minimum 400 Gb/s
            run: mlxlink -d 0000:4b:00.0
            do: check the cable, and speed and width of the switch port it leads to
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
        ~ mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR
        exit 1
    "#]]
    .assert_eq(&host.show(&["status"]));
    expect![[r#"
        verdict: exceptions (errors: 0, warnings: 1)
        read: no log

        warning: port-degraded (confidence high)
          mlx5_0/1 (0000:4b:00.0): degraded: rate 200 Gb/sec (4X HDR), minimum 400 Gb/s.
          Look:
            run: mlxlink -d 0000:4b:00.0
          Fix permanently:
            do: check the cable, and speed and width of the switch port it leads to
        exit 1
    "#]]
    .assert_eq(&host.show(&["check"]));
    let json = host.ibprov(&["status", "--format", "json"]);
    let status: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(status["findings"][0]["code"], "port-degraded");
    assert_eq!(status["hcas"][0]["ports"][0]["degraded"][0]["what"], "rate");
    configured(&host, "rate = \"200 Gb/s\"\nwidth = \"4x\"\nspeed = \"hdr\"");
    assert_eq!(exit(&host, &["status"]), Some(0));
    for row in ["width = \"8x\"", "speed = \"ndr\"", "pcie-width = \"x16\""] {
        configured(&host, row);
        assert_eq!(exit(&host, &["status"]), Some(1), "{row}");
        assert_eq!(exit(&host, &["check"]), Some(1), "{row}");
    }
}

#[test]
fn the_rate_of_a_port_that_is_not_active_means_nothing() {
    let host = Host::healthy();
    let at = format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0/ports/1");
    for (attribute, text) in [("state", "1: DOWN"), ("phys_state", "2: Polling"), ("lid", "0x0")] {
        host.file(&format!("{at}/{attribute}"), &format!("{text}\n"));
    }
    configured(&host, "rate = \"400 Gb/s\"");
    host.file(&format!("{at}/rate"), "10 Gb/sec (4X SDR)\n");
    let shown = host.show(&["status"]);
    assert!(!shown.contains("degraded"), "{shown}");
    assert!(shown.contains("polling"), "{shown}");
}

#[test]
fn a_pcie_link_that_lost_lanes_is_a_note_unless_it_is_configured() {
    let host = Host::healthy();
    with_slot(&host, ("8", "16.0"), ("16", "32.0"), ("16", "16.0"));
    expect![[r#"
        ready: 1 of 1 expected ports active
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
          mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR
        note: adapter 0000:4b:00.0: the PCIe width is x8, and adapter and slot are capable of x16
          run: lspci -vv -s 0000:4b:00.0 | grep -e LnkCap: -e LnkSta:
          do: reseat the adapter, or check speed and width of the slot in the firmware setup
          see: ibprov check --explain pcie-link-reduced

        kernel 6.1.0-9-amd64
        modules: ib_ipoib, ib_umad, ib_uverbs

        mlx5_0  0000:4b:00.0  15b3:101b  MT4123  firmware 20.36.1010  node GUID b859:9f03:0012:a480  driver mlx5_core  PCIe x8 16 GT/s
          port 1  InfiniBand  ACTIVE  LinkUp  200 Gb/sec (4X HDR)  LID 7  SM LID 1  port GUID b859:9f03:0012:a480
            ib0  datagram  mtu 2044  up, carrier  no address
            pci > driver > rdma > netdev > named > configured > link > active
        exit 0
    "#]].assert_eq(&host.show(&["status", "-v"]));
    let check = host.show(&["check"]);
    assert!(check.contains("pcie-link-reduced"), "{check}");
    assert!(check.ends_with("exit 0\n"), "{check}");
    configured(&host, "pcie-width = \"x16\"\npcie-speed = \"16 GT/s\"");
    let shown = host.show(&["status"]);
    assert!(shown.contains("degraded: PCIe width x8, minimum x16\n"), "{shown}");
    assert!(shown.ends_with("exit 1\n"), "{shown}");
    assert!(!shown.contains("capable of"), "{shown}");
    assert_eq!(exit(&host, &["check"]), Some(1));
}

#[test]
fn a_slot_that_is_no_better_than_the_link_is_not_told() {
    let host = Host::healthy();
    with_slot(&host, ("8", "16.0"), ("16", "32.0"), ("8", "16.0"));
    let shown = host.show(&["status"]);
    assert!(shown.starts_with("ready: ") && !shown.contains("PCIe"), "{shown}");
}

#[test]
fn a_bad_minimum_is_shown_where_it_stands() {
    let host = Host::new();
    configured(&host, "rate = \"400\"\nwidth = \"3x\"\nspeed = \"fast\"\npcie-width = \"16\"");
    expect![[r#"
        error: bad value for port.rate
         --> /etc/ibprov/ibprov.toml:3:8
          |
        3 | rate = "400"
          |        ^^^^^ "400" is not a rate: expected gigabits per second, such as "400 Gb/s" or "400 NDR"

        error: bad value for port.width
         --> /etc/ibprov/ibprov.toml:4:9
          |
        4 | width = "3x"
          |         ^^^^ "3x" is not a link width: expected "1x", "2x", "4x", "8x" or "12x"

        error: bad value for port.speed
         --> /etc/ibprov/ibprov.toml:5:9
          |
        5 | speed = "fast"
          |         ^^^^^^ "fast" is not a link speed: expected "sdr", "ddr", "qdr", "fdr10", "fdr", "edr", "hdr", "ndr" or "xdr"

        error: bad value for port.pcie-width
         --> /etc/ibprov/ibprov.toml:6:14
          |
        6 | pcie-width = "16"
          |              ^^^^ "16" is not a PCIe width: expected "x1", "x2", "x4", "x8", "x12", "x16" or "x32"

        the configuration is not valid: 4 errors
        files, in the order in which they apply:
          /etc/ibprov/ibprov.toml
        exit 2
    "#]].assert_eq(&host.show(&["config", "check"]));
}

#[test]
fn a_port_of_an_adapter_with_older_firmware_is_degraded() {
    let host = Host::healthy();
    let version = format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0/fw_ver");
    for (is, floor, code) in [
        ("20.31.1014", ">= 20.31", 0),
        ("20.31.1014", "20.31.1014", 0),
        ("20.31.1014", "20.31.1015", 1),
        ("9.99.9999", "20", 1),
        ("unknown", "20", 1),
    ] {
        host.file(&version, &format!("{is}\n"));
        configured(&host, &format!("firmware = \"{floor}\""));
        assert_eq!(exit(&host, &["status"]), Some(code), "{is} {floor}");
    }
    let said = host.show(&["status"]);
    let why = "degraded: firmware version unknown, minimum 20.0.0";
    assert!(said.contains(why) && said.contains("mstflint -d 0000:4b:00.0 query"), "{said}");
    assert!(!said.contains("cable"), "{said}");
}
