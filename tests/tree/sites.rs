//! What every site sees: a healthy node, a degraded and a failed one, on screens of 80 and
//! 100 columns, with and without colour.

use expect_test::{Expect, expect};

use crate::host::{Host, PortSpec};

const ADAPTERS: u32 = 12;
const VFS: u32 = 16;

fn pci(adapter: u32) -> String {
    format!("0000:{:02x}:00.0", 0x10 + adapter)
}

/// Twelve adapters with sixteen VFs each, all as planned.
pub fn healthy() -> Host {
    let mut host = Host::enabled();
    let mut config = String::new();
    for adapter in 0..ADAPTERS {
        let pci = pci(adapter);
        let guid = format!("b859:9f03:0012:{adapter:04x}");
        let netdev = format!("ibp{}s0", 16 + adapter);
        let lid = format!("{:#x}", 7 + adapter);
        host.function(&pci, "15b3:101b", "020700", Some("mlx5_core"));
        let port =
            PortSpec { guid: &guid, netdev: Some(&netdev), lid: &lid, ..PortSpec::default() };
        host.rdma(&pci, &format!("mlx5_{adapter}"), &guid, &[port]);
        let dir = format!("sys/bus/pci/devices/{pci}");
        host.file(&format!("{dir}/sriov_totalvfs"), "16\n");
        host.file(&format!("{dir}/mlx5_num_vfs"), "16\n");
        host.link(&format!("{dir}/iommu_group"), "../../../../kernel/iommu_groups/7");
        for vf in 0..VFS {
            let at = format!("0000:{:02x}:{:02x}.{}", 0x10 + adapter, (vf + 1) / 8, (vf + 1) % 8);
            host.function(&at, "15b3:101c", "020700", Some("vfio-pci"));
            host.link(&format!("sys/bus/pci/devices/{at}/physfn"), &format!("../{pci}"));
            host.link(&format!("{dir}/virtfn{vf}"), &format!("../{at}"));
            let ofed = format!("{dir}/sriov/{vf}");
            host.file(
                &format!("{ofed}/node"),
                &format!("02:00:00:00:{adapter:02x}:12:00:{vf:02x}\n"),
            );
            host.file(
                &format!("{ofed}/port"),
                &format!("02:00:00:00:{adapter:02x}:12:01:{vf:02x}\n"),
            );
            host.file(&format!("{ofed}/policy"), "Follow\n");
        }
        config.push_str(&format!(
            "[[pf]]\npci = \"{pci}\"\nvfs = {VFS}\ndriver = \"vfio-pci\"\nguid.template = \"02:00:00:00:{adapter:02x}:12:{{kind:8}}:{{vf:8}}\"\n"
        ));
    }
    host.file("etc/ibprov/ibprov.toml", &config);
    host
}

/// One port without subnet manager, one without cable, one VF with another GUID, a P_Key
/// child that is down, an Ethernet port, an adapter that a guest has.
pub fn degraded() -> Host {
    let mut host = healthy();
    let port = |adapter: u32| {
        format!("sys/bus/pci/devices/{}/infiniband/mlx5_{adapter}/ports/1", pci(adapter))
    };
    for (file, text) in [("state", "2: INIT\n"), ("lid", "0x0\n"), ("sm_lid", "0x0\n")] {
        host.file(&format!("{}/{file}", port(2)), text);
    }
    for (file, text) in
        [("state", "1: DOWN\n"), ("phys_state", "2: Polling\n"), ("lid", "0xffff\n")]
    {
        host.file(&format!("{}/{file}", port(3)), text);
    }
    host.file(&format!("sys/bus/pci/devices/{}/sriov/5/port", pci(4)), "00:00:00:00:00:00:00:00\n");
    for (file, text) in [
        ("ifindex", "77\n"),
        ("iflink", "2\n"),
        ("type", "32\n"),
        ("flags", "0x1002\n"),
        ("mtu", "2044\n"),
        ("broadcast", "00:ff:ff:ff:ff:12:40:1b:80:01:00:00:00:00:00:00:ff:ff:ff:ff\n"),
    ] {
        host.file(&format!("sys/class/net/ibp16s0.8001/{file}"), text);
    }
    host.function("0000:40:00.0", "15b3:101d", "020000", Some("mlx5_core"));
    let port = PortSpec { link_layer: "Ethernet", netdev: None, ..PortSpec::default() };
    host.rdma("0000:40:00.0", "mlx5_20", "b859:9f03:0012:ff00", &[port]);
    host.file("sys/bus/pci/devices/0000:40:00.0/net/enp64s0/dev_port", "0\n");
    host.file("sys/bus/pci/devices/0000:40:00.0/net/enp64s0/type", "1\n");
    host.file("sys/bus/pci/devices/0000:40:00.0/net/enp64s0/ifindex", "640\n");
    host.function("0000:41:00.0", "15b3:101b", "020700", Some("vfio-pci"));
    host
}

/// Two ports are listed of which one is gone and one has no driver; the last boot failed.
pub fn failed() -> Host {
    let mut host = Host::healthy();
    host.function("0000:5e:00.0", "15b3:101b", "020700", None);
    host.function("0000:6e:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    let port = PortSpec { guid: "b859:9f03:0012:a4ff", netdev: Some("ib1"), ..PortSpec::default() };
    host.rdma("0000:6e:00.0", "mlx5_1", "b859:9f03:0012:a4ff", &[port]);
    host.file(
        "etc/ibprov/ibprov.toml",
        "[boot]\nports = \"listed\"\n[[port]]\npci = [\"4b:00.0\", \"5e:00.0\", \"99:00.0\"]\n[[port]]\npci = \"9a:00.0\"\nrequired = false\n",
    );
    host.file(
        "run/ibprov/boot.json",
        r#"{"schema":1,"report":"boot","verdict":"not-ready","exit_code":3}"#,
    );
    host
}

fn shown(host: &Host, columns: &str, arguments: &[&str]) -> String {
    host.show_on(&[("COLUMNS", columns)], arguments)
}

#[track_caller]
fn status(host: &Host, columns: &str, want: &Expect) {
    want.assert_eq(&shown(host, columns, &["status"]));
}

#[test]
fn twelve_adapters_with_sixteen_vfs_each_fit_on_one_screen() {
    let host = healthy();
    let at_80 = shown(&host, "80", &["status"]);
    assert!(at_80.lines().count() <= 40, "{at_80}");
    assert!(at_80.lines().all(|line| line.chars().count() <= 80), "{at_80}");
    assert_eq!(at_80, shown(&host, "100", &["status"]), "nothing is cut at 80 columns");
    expect![[r#"
        ready: 12 of 12 expected ports active, 192 of 192 VFs as planned
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT       PCI           NETDEV   STATE   LID  Gb/s     NOTE
          mlx5_0/1   0000:10:00.0  ibp16s0  active  7    200 HDR
              VFs 0-15  vfio-pci, link state follow, as planned
          mlx5_1/1   0000:11:00.0  ibp17s0  active  8    200 HDR
              VFs 0-15  vfio-pci, link state follow, as planned
          mlx5_2/1   0000:12:00.0  ibp18s0  active  9    200 HDR
              VFs 0-15  vfio-pci, link state follow, as planned
          mlx5_3/1   0000:13:00.0  ibp19s0  active  10   200 HDR
              VFs 0-15  vfio-pci, link state follow, as planned
          mlx5_4/1   0000:14:00.0  ibp20s0  active  11   200 HDR
              VFs 0-15  vfio-pci, link state follow, as planned
          mlx5_5/1   0000:15:00.0  ibp21s0  active  12   200 HDR
              VFs 0-15  vfio-pci, link state follow, as planned
          mlx5_6/1   0000:16:00.0  ibp22s0  active  13   200 HDR
              VFs 0-15  vfio-pci, link state follow, as planned
          mlx5_7/1   0000:17:00.0  ibp23s0  active  14   200 HDR
              VFs 0-15  vfio-pci, link state follow, as planned
          mlx5_8/1   0000:18:00.0  ibp24s0  active  15   200 HDR
              VFs 0-15  vfio-pci, link state follow, as planned
          mlx5_9/1   0000:19:00.0  ibp25s0  active  16   200 HDR
              VFs 0-15  vfio-pci, link state follow, as planned
          mlx5_10/1  0000:1a:00.0  ibp26s0  active  17   200 HDR
              VFs 0-15  vfio-pci, link state follow, as planned
          mlx5_11/1  0000:1b:00.0  ibp27s0  active  18   200 HDR
              VFs 0-15  vfio-pci, link state follow, as planned
        exit 0
    "#]]
    .assert_eq(&at_80);
}

#[test]
fn what_is_wrong_stands_out_on_a_degraded_node() {
    let host = degraded();
    status(
        &host,
        "80",
        &expect![[r#"
            ready with exceptions: 10 of 12 expected ports active, 191 of 192 VFs as planned
              warning: mlx5_2/1: not active: no subnet manager configured it (Initializing)
                do: if it is in the fabric of mlx5_0/1 (Active): check its switch port
                do: if it is in a fabric of its own, and `sminfo -C mlx5_2 -P 1` finds no
                    subnet manager: enable that of its switch, or run opensm on this port
                    alone (man 8 ibprov-opensm)
              warning: mlx5_3/1: no link: no cable, or the other end is down (Polling)
                do: check the cable and the switch port
                run: mlxlink -d 0000:13:00.0 || mstlink -d 0000:13:00.0
                do: if nothing is meant to be connected to it: `required = false` in its
                    [[port]], or boot.ignore (man 5 ibprov.toml)
              warning: PF 0000:14:00.0: VF 5 is left alone: the port GUID at the PF is
              0000:0000:0000:0000 instead of 0200:0000:0412:0105; it may be in use: its use
              cannot be determined: the function has no iommu_group
                run: ibprov plan
            ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

              PORT       PCI           NETDEV   STATE         LID  Gb/s     NOTE
              mlx5_0/1   0000:10:00.0  ibp16s0  active        7    200 HDR
            ~     P_Key children: ibp16s0.8001 (0x8001) down
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_1/1   0000:11:00.0  ibp17s0  active        8    200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
            ~ mlx5_2/1   0000:12:00.0  ibp18s0  initializing  -    200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
            ~ mlx5_3/1   0000:13:00.0  ibp19s0  polling       -    -
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_4/1   0000:14:00.0  ibp20s0  active        11   200 HDR
                  VFs 0-4, 6-15  vfio-pci, link state follow, as planned
            ~     VF 5  port GUID 0 (planned 0200:0000:0412:0105); in use
              mlx5_5/1   0000:15:00.0  ibp21s0  active        12   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_6/1   0000:16:00.0  ibp22s0  active        13   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_7/1   0000:17:00.0  ibp23s0  active        14   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_8/1   0000:18:00.0  ibp24s0  active        15   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_9/1   0000:19:00.0  ibp25s0  active        16   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_10/1  0000:1a:00.0  ibp26s0  active        17   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_11/1  0000:1b:00.0  ibp27s0  active        18   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
            2 unexpected ports: ibprov --root ROOT status -v
            exit 1
        "#]],
    );
    status(
        &host,
        "100",
        &expect![[r#"
            ready with exceptions: 10 of 12 expected ports active, 191 of 192 VFs as planned
              warning: mlx5_2/1: not active: no subnet manager configured it (Initializing)
                do: if it is in the fabric of mlx5_0/1 (Active): check its switch port
                do: if it is in a fabric of its own, and `sminfo -C mlx5_2 -P 1` finds no subnet manager: enable
                    that of its switch, or run opensm on this port alone (man 8 ibprov-opensm)
              warning: mlx5_3/1: no link: no cable, or the other end is down (Polling)
                do: check the cable and the switch port
                run: mlxlink -d 0000:13:00.0 || mstlink -d 0000:13:00.0
                do: if nothing is meant to be connected to it: `required = false` in its [[port]], or
                    boot.ignore (man 5 ibprov.toml)
              warning: PF 0000:14:00.0: VF 5 is left alone: the port GUID at the PF is 0000:0000:0000:0000
              instead of 0200:0000:0412:0105; it may be in use: its use cannot be determined: the function has
              no iommu_group
                run: ibprov plan
            ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

              PORT       PCI           NETDEV   STATE         LID  Gb/s     NOTE
              mlx5_0/1   0000:10:00.0  ibp16s0  active        7    200 HDR
            ~     P_Key children: ibp16s0.8001 (0x8001) down
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_1/1   0000:11:00.0  ibp17s0  active        8    200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
            ~ mlx5_2/1   0000:12:00.0  ibp18s0  initializing  -    200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
            ~ mlx5_3/1   0000:13:00.0  ibp19s0  polling       -    -
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_4/1   0000:14:00.0  ibp20s0  active        11   200 HDR
                  VFs 0-4, 6-15  vfio-pci, link state follow, as planned
            ~     VF 5  port GUID 0 (planned 0200:0000:0412:0105); in use
              mlx5_5/1   0000:15:00.0  ibp21s0  active        12   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_6/1   0000:16:00.0  ibp22s0  active        13   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_7/1   0000:17:00.0  ibp23s0  active        14   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_8/1   0000:18:00.0  ibp24s0  active        15   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_9/1   0000:19:00.0  ibp25s0  active        16   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_10/1  0000:1a:00.0  ibp26s0  active        17   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_11/1  0000:1b:00.0  ibp27s0  active        18   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
            2 unexpected ports: ibprov --root ROOT status -v
            exit 1
        "#]],
    );
}

#[test]
fn what_failed_is_said_first_on_a_failed_node() {
    let host = failed();
    status(
        &host,
        "80",
        &expect![[r#"
            NOT READY: 1 of 4 expected ports active
              error: 0000:5e:00.0: no driver: no driver is bound to the function
                do: see `lspci -k` and dmesg
              error: 0000:99:00.0: absent, and expected (listed in
              /etc/ibprov/ibprov.toml:3)
              warning: 0000:9a:00.0: absent, and optional (listed in
              /etc/ibprov/ibprov.toml:5)
                do: see whether the adapter is in another slot or disabled in the firmware
                    setup, or the VF not created yet
                run: lspci -Dnn -d 15b3:
              warning: the last boot: boot incomplete (exit code 3)
                run: journalctl -b -u ibprov.service
            ibprov: enabled; last boot: not-ready, exit 3; openibd.service: ibprov's

              PORT      PCI           NETDEV  STATE      LID  Gb/s     NOTE
            ! -         0000:99:00.0  -       absent     -    -
            ~ -         0000:9a:00.0  -       absent     -    -
              mlx5_0/1  0000:4b:00.0  ib0     active     7    200 HDR
            ! -         0000:5e:00.0  -       no driver  -    -
            1 unexpected port: ibprov --root ROOT status -v
            exit 3
        "#]],
    );
    status(
        &host,
        "100",
        &expect![[r#"
            NOT READY: 1 of 4 expected ports active
              error: 0000:5e:00.0: no driver: no driver is bound to the function
                do: see `lspci -k` and dmesg
              error: 0000:99:00.0: absent, and expected (listed in /etc/ibprov/ibprov.toml:3)
              warning: 0000:9a:00.0: absent, and optional (listed in /etc/ibprov/ibprov.toml:5)
                do: see whether the adapter is in another slot or disabled in the firmware setup, or the VF not
                    created yet
                run: lspci -Dnn -d 15b3:
              warning: the last boot: boot incomplete (exit code 3)
                run: journalctl -b -u ibprov.service
            ibprov: enabled; last boot: not-ready, exit 3; openibd.service: ibprov's

              PORT      PCI           NETDEV  STATE      LID  Gb/s     NOTE
            ! -         0000:99:00.0  -       absent     -    -
            ~ -         0000:9a:00.0  -       absent     -    -
              mlx5_0/1  0000:4b:00.0  ib0     active     7    200 HDR
            ! -         0000:5e:00.0  -       no driver  -    -
            1 unexpected port: ibprov --root ROOT status -v
            exit 3
        "#]],
    );
}

#[test]
fn colour_is_for_who_wants_it_and_marks_what_is_wrong() {
    let host = failed();
    let plain = shown(&host, "80", &["status"]);
    let coloured = shown(&host, "80", &["status", "--color", "always"]);
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let never = shown(&host, "80", &["status", "--color", "never"]);
    assert_eq!(plain, never.replace(" --color never", ""));
    let red = "\u{1b}[1m\u{1b}[31m";
    for line in coloured.lines().filter(|line| line.starts_with(red) || line.contains('!')) {
        assert!(line.ends_with("\u{1b}[0m"), "{line:?}");
    }
    assert!(coloured.starts_with(&format!("{red}NOT READY: ")), "{coloured:?}");
    assert!(coloured.contains(&format!("{red}! -         0000:99:00.0")), "{coloured}");
    let mut stripped = coloured;
    for code in ["\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[0m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped.replace(" --color always", ""), plain);
}
