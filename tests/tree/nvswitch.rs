//! Functions that manage NVSwitches: told by their vital product data, as the kernel
//! gives them or as an earlier run has kept what they say.

use crate::host::{Host, PF, PortSpec};

const BRIDGE: &str = "0000:01:00.0";
const WHY: &str = "manages an NVSwitch (SMDL=SW_MNG in its product data) for nvidia-fabricmanager";

/// Product data with one field of the vendor's.
fn product_data(field: &str) -> Vec<u8> {
    let size = u8::try_from(field.len()).expect("a short field");
    let mut data = vec![0x82, 4, 0, b'C', b'X', b'-', b'7', 0x90, size + 3, 0, b'V', b'3', size];
    data.extend(field.as_bytes());
    data.push(0x78);
    data
}

fn bridge(host: &mut Host) {
    host.function(BRIDGE, "15b3:101b", "020700", Some("mlx5_core"));
    let port = PortSpec {
        state: "2: INIT",
        lid: "0x0",
        guid: "b859:9f03:0012:a4f0",
        netdev: Some("ib9"),
        ..PortSpec::default()
    };
    host.rdma(BRIDGE, "mlx5_9", "b859:9f03:0012:a4f0", &[port]);
}

/// A healthy host with one bridge, which its product data tell.
fn host() -> Host {
    let mut host = Host::healthy();
    bridge(&mut host);
    host.bytes(&format!("sys/bus/pci/devices/{BRIDGE}/vpd"), &product_data("SMDL=SW_MNG"));
    host
}

/// The same, without product data that could be read, and with what is kept of them.
fn host_with_kept(product: &str) -> Host {
    let mut host = Host::healthy();
    bridge(&mut host);
    let modalias =
        std::fs::read_to_string(host.path(&format!("sys/bus/pci/devices/{BRIDGE}/modalias")));
    let modalias = modalias.expect("modalias");
    let kept = format!(r#"{{"modalias":"{}","product":"{product}"}}"#, modalias.trim());
    host.file(&format!("run/ibprov/vpd/{BRIDGE}.json"), &kept);
    host
}

#[test]
fn a_function_that_manages_an_nvswitch_is_shown_as_that_and_lacks_nothing() {
    for host in [host(), host_with_kept("nvswitch-management")] {
        let text = host.show(&["status", "-v"]);
        assert!(text.contains("  manages an NVSwitch\n"), "{text}");
        assert!(text.contains(&format!("\n  not expected: {WHY}\n")), "{text}");
        assert!(text.ends_with("exit 0\n"), "{text}");
        let out = host.ibprov(&["status", "--format", "json"]);
        let status: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
        assert_eq!(status["hcas"][0]["pci"], BRIDGE, "{status:#}");
        assert_eq!(status["hcas"][0]["left_out"]["code"], "nvswitch-management", "{status:#}");
        assert_eq!(status["hcas"][1]["left_out"], serde_json::Value::Null, "{status:#}");
    }
}

#[test]
fn what_cannot_be_read_or_says_something_else_is_an_hca() {
    let hosts = [host_with_kept("unread"), host_with_kept("other"), host(), host()];
    let [_, _, broken, other] = &hosts;
    broken.bytes(&format!("sys/bus/pci/devices/{BRIDGE}/vpd"), &[0xff; 64]);
    other.bytes(&format!("sys/bus/pci/devices/{BRIDGE}/vpd"), &product_data("SMDL=NIC"));
    for host in &hosts {
        let text = host.show(&["boot", "--dry-run"]);
        let want = format!("named: mlx5_9/1 ({BRIDGE}) as ib9\n");
        assert!(text.contains(&want), "{text}");
    }
    let text = broken.show(&["status"]);
    let want = format!(
        "note: read the vital product data of {BRIDGE}: octet 0: 0xff is not a tag of product data: the function counts as an adapter\n"
    );
    assert!(text.contains(&want), "{text}");
}

#[test]
fn what_is_kept_of_another_card_in_the_slot_says_nothing() {
    let host = host_with_kept("nvswitch-management");
    let modalias = "pci:v000015B3d00001021sv000015B3sd00000007bc02sc07i00\n";
    host.file(&format!("sys/bus/pci/devices/{BRIDGE}/modalias"), modalias);
    let text = host.show(&["status"]);
    assert!(!text.contains("NVSwitch"), "{text}");
}

#[test]
fn boot_waits_for_none_and_loads_all_but_ipoib_for_those_alone() {
    let text = host().show(&["boot", "--dry-run"]);
    assert!(text.contains(&format!("not waited for: {BRIDGE}: {WHY}\n")), "{text}");
    let alone = host();
    alone.remove(&format!("sys/bus/pci/devices/{PF}"));
    for module in ["ib_umad", "ib_ipoib"] {
        alone.remove(&format!("sys/module/{module}"));
    }
    let want = format!(
        "boot would, in this order:\n1. load ib_umad\nnot waited for: {BRIDGE}: {WHY}\nexit 1\n"
    );
    assert_eq!(alone.show(&["boot", "--dry-run"]), want);
    alone.file("etc/modprobe.d/site.conf", "blacklist ib_umad\n");
    let text = alone.show(&["boot", "--dry-run"]);
    let want = "ib_umad: not loaded: deny-listed by /etc/modprobe.d/site.conf:1\n";
    assert!(text.contains(want), "{text}");
}

/// What the site lists by name is its word against the card's.
#[test]
fn a_list_of_expected_ports_holds_and_others_are_told() {
    let host = host();
    let list = |pci: &str| {
        host.file(
            "etc/ibprov/ibprov.toml",
            &format!("boot.ports = \"listed\"\n[[port]]\npci = \"{pci}\"\n"),
        );
        host.show(&["boot", "--dry-run"])
    };
    let text = list(PF);
    assert!(text.contains(&format!("not waited for: {BRIDGE}: {WHY}\n")), "{text}");
    let text = list(BRIDGE);
    assert!(text.contains(&format!("named: mlx5_9/1 ({BRIDGE})")), "{text}");
    assert!(!text.contains("NVSwitch"), "{text}");
}

#[test]
fn its_interface_is_left_alone_without_a_failed_unit() {
    for host in [host(), host_with_kept("nvswitch-management")] {
        host.file("etc/ibprov/ibprov.toml", "[[interface]]\nmatch.name = \"ib*\"\nmtu = 1500\n");
        // As sysfs has it, for each netdev.
        for (netdev, pci) in [("ib9", BRIDGE), ("ib0", PF)] {
            let link = format!("sys/bus/pci/devices/{pci}/net/{netdev}/device");
            host.link(&link, &format!("../../../{pci}"));
        }
        let unit = host.ibprov(&["iface", "--device=/sys/devices/virtual/net/ib9"]);
        let said = String::from_utf8_lossy(&unit.stderr);
        assert_eq!(unit.status.code(), Some(0), "{said}");
        let want = format!(
            "ib9 is of {BRIDGE}, which manages an NVSwitch (SMDL=SW_MNG in its product data) and belongs to nvidia-fabricmanager: ibprov does not change it"
        );
        assert!(said.contains(&want), "{said}");
        let by_hand = host.ibprov(&["iface", "ib9", "--dry-run"]);
        assert_eq!(by_hand.status.code(), Some(2));
        let other = host.show(&["iface", "ib0", "--dry-run"]);
        assert!(other.contains("ib0: settings of "), "{other}");
    }
}

#[test]
fn a_plan_for_its_vfs_is_an_error() {
    for host in [host(), host_with_kept("nvswitch-management")] {
        host.file(&format!("sys/bus/pci/devices/{BRIDGE}/sriov_totalvfs"), "8\n");
        let pf = format!(
            "[[pf]]\npci = \"{BRIDGE}\"\nvfs = 2\nguid.template = \"02:00:00:70:00:{{kind:8}}:{{vf:16}}\"\n"
        );
        host.file("etc/ibprov/ibprov.toml", &pf);
        for verb in [&["plan"][..], &["apply", "--dry-run"]] {
            let text = host.show(verb);
            let want = format!(
                "{BRIDGE} manages an NVSwitch (SMDL=SW_MNG in its product data): nvidia-fabricmanager uses it, and ibprov creates no VFs on it"
            );
            assert!(text.contains(&want), "{text}");
            assert!(text.ends_with("exit 3\n"), "{text}");
        }
    }
}
