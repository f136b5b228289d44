//! A DGX with eight rails and two Ethernet ports, on a serial console of 80 x 24.

use expect_test::expect;

use crate::host::{Host, PortSpec};
use crate::terminal::on_terminal;

/// The rails, by PCI bus, as a DGX H100 has them.
const RAILS: [u8; 8] = [0x18, 0x40, 0x4f, 0x5e, 0x9a, 0xc0, 0xce, 0xdc];

pub fn address(rail: usize) -> String {
    format!("0000:{:02x}:00.0", RAILS[rail])
}

fn port_dir(rail: usize) -> String {
    format!("sys/bus/pci/devices/{}/infiniband/mlx5_{rail}/ports/1", address(rail))
}

/// All is well.
pub fn healthy() -> Host {
    let mut host = Host::enabled();
    for (rail, bus) in RAILS.into_iter().enumerate() {
        let guid = format!("a088:c203:00ab:{:04x}", 0x10 * rail);
        let (netdev, lid) = (format!("ibp{bus}s0"), format!("{:#x}", 40 + rail));
        let port =
            PortSpec { guid: &guid, netdev: Some(&netdev), lid: &lid, ..PortSpec::default() };
        host.function(&address(rail), "15b3:1021", "020700", Some("mlx5_core"));
        host.rdma(&address(rail), &format!("mlx5_{rail}"), &guid, &[port]);
        host.file(&format!("{}/rate", port_dir(rail)), "400 Gb/sec (4X NDR)\n");
        let pci = address(rail);
        let device = format!("sys/bus/pci/devices/{pci}/net/{netdev}/device");
        host.link(&device, &format!("../../../{pci}"));
    }
    for port in 0..2 {
        let pci = format!("0000:29:00.{port}");
        host.function(&pci, "15b3:101f", "020000", Some("mlx5_core"));
        let guid = format!("a088:c203:00cd:{port:04x}");
        let spec =
            PortSpec { link_layer: "Ethernet", netdev: None, guid: &guid, ..PortSpec::default() };
        host.rdma(&pci, &format!("mlx5_{}", 8 + port), &guid, &[spec]);
        let net = format!("sys/bus/pci/devices/{pci}/net/enp41s0f{port}np{port}");
        for (file, text) in [("dev_port", "0"), ("type", "1")] {
            host.file(&format!("{net}/{file}"), &format!("{text}\n"));
        }
        host.file(&format!("{net}/ifindex"), &format!("{}\n", 640 + port));
    }
    host
}

/// One rail is not configured by the subnet manager, one has no signal, one no RDMA device, and
/// one uses two of its four lanes; two configured modules are not loaded.
pub fn degraded() -> Host {
    let host = healthy();
    let set = |rail: usize, files: &[(&str, &str)]| {
        for (file, text) in files {
            host.file(&format!("{}/{file}", port_dir(rail)), &format!("{text}\n"));
        }
    };
    set(1, &[("state", "2: INIT"), ("lid", "0x0"), ("sm_lid", "0x0")]);
    set(3, &[("state", "1: DOWN"), ("phys_state", "2: Polling"), ("lid", "0xffff")]);
    set(5, &[("rate", "200 Gb/sec (2X NDR)")]);
    host.remove(&format!("sys/bus/pci/devices/{}/infiniband", address(7)));
    host.remove(&format!("sys/bus/pci/devices/{}/net", address(7)));
    host.remove("sys/class/net/ibp220s0");
    let rails: Vec<String> = (0..8).map(|rail| format!("\"{}\"", address(rail))).collect();
    host.file(
        "etc/ibprov/ibprov.toml",
        &format!(
            "[boot]\nat-least = 7\n[modules]\nload = [\"nvidia_peermem\", \"rpcrdma\"]\n[[port]]\npci = [{}]\nrate = \"400 Gb/s\"\n",
            rails.join(", ")
        ),
    );
    host
}

#[test]
fn four_faults_fit_a_serial_console() {
    let shown = on_terminal(&degraded(), 24, 80, &["status"]);
    expect![[r#"
        NOT READY: 5 of 8 expected ports active
          error: mlx5_1/1: not active: no subnet manager configured it (Initializing)
            do: if it is in the fabric of mlx5_0/1 (Active): check its switch port
          error: mlx5_3/1: no link: no cable, or the other end is down (Polling)
            do: check the cable and the switch port
          warning: 0000:dc:00.0: no RDMA device (optional): driver mlx5_core is bound
            run: dmesg | grep 0000:dc:00.0
          warning: mlx5_5/1: degraded: rate 200 Gb/sec (2X NDR), minimum 400 Gb/s
            run: mlxlink -d 0000:c0:00.0
          warning: nvidia_peermem, rpcrdma: not loaded: not built for the running kernel
            do: install it for kernel 6.1.0-9-amd64, or run `depmod -a`

          PORT      PCI           NETDEV    STATE           LID  Gb/s        NOTE
          mlx5_0/1  0000:18:00.0  ibp24s0   active          40   400 NDR
        ! mlx5_1/1  0000:40:00.0  ibp64s0   initializing    -    400 NDR
          mlx5_2/1  0000:4f:00.0  ibp79s0   active          42   400 NDR
        ! mlx5_3/1  0000:5e:00.0  ibp94s0   polling         -    -
          mlx5_4/1  0000:9a:00.0  ibp154s0  active          44   400 NDR
        ~ mlx5_5/1  0000:c0:00.0  ibp192s0  active          45   200 2X NDR
          mlx5_6/1  0000:ce:00.0  ibp206s0  active          46   400 NDR
        ~ -         0000:dc:00.0  -         no RDMA device  -    -
        2 unexpected ports, 5 more steps: ibprov --root ROOT status -v
        exit 3
    "#]]
    .assert_eq(&shown);
    // The last row is for the prompt.
    assert!(shown.lines().count() <= 24, "with the exit code: {shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

/// All steps where there is room for them, and the verdict at the end where there is none at all.
#[test]
fn what_is_higher_than_the_terminal_is_shorter_and_ends_with_the_verdict() {
    let host = degraded();
    let verdict = "NOT READY: 5 of 8 expected ports active\n";
    let on = |rows| on_terminal(&host, rows, 80, &["status"]);
    let steps =
        |shown: &str| shown.matches("    do: ").count() + shown.matches("    run: ").count();
    let (high, usual, low) = (on(60), on(24), on(20));
    assert!(steps(&high) > 5 && high.matches(verdict).count() == 1, "{high}");
    assert!(steps(&usual) == 5 && usual.matches(verdict).count() == 1, "{usual}");
    assert!(steps(&low) == 5 && low.ends_with(&format!("{verdict}exit 3\n")), "{low}");
    assert_eq!(high, host.show_on(&[("COLUMNS", "80")], &["status"]), "and in a pipe");
    let all = on_terminal(&host, 24, 80, &["status", "-vv"]);
    assert!(steps(&all) > 5 && all.ends_with(&format!("{verdict}exit 3\n")), "{all}");
}

#[test]
fn a_table_wider_than_the_terminal_has_no_empty_lines() {
    let shown = on_terminal(&degraded(), 60, 50, &["status", "-v"]);
    let table = shown.split("NOTE\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    let rows = table.expect("a table").lines().filter(|line| line.contains("0000:"));
    assert_eq!(rows.count(), 10, "{shown}");
}

#[test]
fn fewer_lanes_or_a_lower_rate_than_the_other_rails_are_marked() {
    let host = healthy();
    let row = |rate: &str| {
        host.file(&format!("{}/rate", port_dir(2)), &format!("{rate}\n"));
        let shown = host.show(&["status"]);
        assert!(shown.ends_with("exit 0\n"), "{shown}");
        shown.lines().find(|line| line.contains(" mlx5_2/1 ")).expect("a row").to_owned()
    };
    assert!(row("200 Gb/sec (2X NDR)").ends_with("  200 2X NDR  2 of 4 lanes"));
    let slower = row("200 Gb/sec (4X HDR)");
    assert!(slower.starts_with("~ ") && slower.ends_with("200 HDR  200 of 400 Gb/s"), "{slower}");
    // Of rails that are all like that none is marked, nor is one of another card.
    for rail in 0..8 {
        host.file(&format!("{}/rate", port_dir(rail)), "200 Gb/sec (2X NDR)\n");
    }
    assert!(!host.show(&["status"]).contains("lanes"));
    let host = healthy();
    host.file(&format!("{}/rate", port_dir(2)), "200 Gb/sec (2X NDR)\n");
    host.file(&format!("sys/bus/pci/devices/{}/device", address(2)), "0x101b\n");
    assert!(!host.show(&["status"]).contains("lanes"));
}

#[test]
fn the_link_is_shown_of_a_port_that_is_not_configured_too() {
    let host = degraded();
    let rules: Vec<String> = (0..8)
        .map(|n| format!("[[interface]]\nmatch.pci = \"{}\"\nname = \"ib{n}\"\n", address(n)))
        .collect();
    host.file("etc/ibprov/ibprov.toml", &rules.concat());
    let shown = host.show(&["status"]);
    for (rail, state) in [
        (0, "active                        40"),
        (1, "not configured, initializing  -"),
        (3, "not configured, polling       -"),
    ] {
        let row = shown.lines().find(|line| line.contains(&format!(" mlx5_{rail}/1 ")));
        assert!(row.is_some_and(|row| row.contains(state)), "{rail}: {shown}");
        let note = row.filter(|row| row.ends_with("  not configured"));
        assert_eq!(note.is_some(), rail == 0, "{rail}: {shown}");
    }
}

#[test]
fn what_is_wrong_alone() {
    let host = degraded();
    expect![[r#"
        NOT READY: 5 of 8 expected ports active
          error: mlx5_1/1: not active: no subnet manager configured it (Initializing)
            do: if it is in the fabric of mlx5_0/1 (Active): check its switch port
            do: if it is in a fabric of its own, and `sminfo -C mlx5_1 -P 1` finds no
                subnet manager: enable that of its switch, or run opensm on this port
                alone (man 8 ibprov-opensm)
          error: mlx5_3/1: no link: no cable, or the other end is down (Polling)
            do: check the cable and the switch port
            run: mlxlink -d 0000:5e:00.0 || mstlink -d 0000:5e:00.0
            do: if nothing is meant to be connected to it: `required = false` in its
                [[port]], or boot.ignore (man 5 ibprov.toml)
          warning: 0000:dc:00.0: no RDMA device (optional): driver mlx5_core is bound
            run: dmesg | grep 0000:dc:00.0
          warning: mlx5_5/1: degraded: rate 200 Gb/sec (2X NDR), minimum 400 Gb/s
            run: mlxlink -d 0000:c0:00.0
            do: check the cable, and speed and width of the switch port it leads to
          warning: nvidia_peermem, rpcrdma: not loaded: not built for the running kernel
            do: install it for kernel 6.1.0-9-amd64, or run `depmod -a`
            do: a distribution has it in its package modules-extra or modules; with
                OFED: rebuild it, or `dkms autoinstall`;
                /lib/modules/6.1.0-9-amd64/modules.dep must name it

          PORT      PCI           NETDEV    STATE           LID  Gb/s        NOTE
        ! mlx5_1/1  0000:40:00.0  ibp64s0   initializing    -    400 NDR
        ! mlx5_3/1  0000:5e:00.0  ibp94s0   polling         -    -
        ~ mlx5_5/1  0000:c0:00.0  ibp192s0  active          45   200 2X NDR
        ~ -         0000:dc:00.0  -         no RDMA device  -    -
        exit 3
    "#]]
    .assert_eq(&host.show_on(&[("COLUMNS", "80")], &["status", "--problems"]));
    assert_eq!(
        healthy().show(&["status", "--problems"]),
        "ready: 8 of 8 expected ports active\nexit 0\n"
    );
}

/// Each name of a port, in every verb that takes one.
#[test]
fn a_port_has_the_same_names_everywhere() {
    let host = degraded();
    let names = ["ibp64s0", "mlx5_1", "mlx5_1/1", "40:00.0", "0000:40:00.0", "0000:40:00.0/1"];
    let of_first = host.show(&["status", "ibp64s0"]);
    assert!(of_first.starts_with("NOT READY: 0 of 1 expected ports active\n"), "{of_first}");
    for name in names.into_iter().chain(["a088:c203:00ab:0010", "0xa088c20300ab0010"]) {
        assert_eq!(host.show(&["status", name]), of_first, "{name}");
        let gid = host.show(&["gid", "--port", name]);
        assert!(gid.ends_with("0\nexit 0\n"), "{name}: {gid}");
        let holders = host.show(&["holders", name]);
        assert!(holders.starts_with("mlx5_1 (0000:40:00.0): not known"), "{name}: {holders}");
        let apply = host.show(&["apply", "--dry-run", name]);
        assert!(apply.starts_with("PF 0000:40:00.0: nothing to do"), "{name}: {apply}");
        let iface = host.show(&["iface", "--dry-run", name]);
        assert!(iface.starts_with("ibp64s0: "), "{name}: {iface}");
    }
    for (name, code) in [("mlx5_0", 0), ("mlx5_5", 1), ("mlx5_1", 3), ("dc:00.0", 3)] {
        assert_eq!(host.ibprov(&["status", name]).status.code(), Some(code), "{name}");
    }
    // The second netdev of the tree has this index.
    for (file, text) in [("ifindex", "77"), ("iflink", "3"), ("type", "32"), ("flags", "0x1043")] {
        host.file(&format!("sys/class/net/storage/{file}"), &format!("{text}\n"));
    }
    let of_child = host.show(&["status", "storage"]);
    assert!(of_child.starts_with("NOT READY: 0 of 1 expected ports active\n"), "{of_child}");
    assert!(of_child.contains("P_Key children: storage") && of_child.contains(" mlx5_1/1 "));
    let both = host.show(&["status", "mlx5_0", "mlx5_5"]);
    assert!(both.starts_with("ready with exceptions: 2 of 2 expected ports active\n"), "{both}");
    let out = host.ibprov(&["status", "--format", "json", "mlx5_5"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!((&json["expected_ports"]["of"], &json["planned_vfs"]["of"]), (&1.into(), &0.into()));
    let [hca] = &json["hcas"].as_array().expect("HCAs")[..] else { panic!("{json:#}") };
    assert_eq!(hca["rdma"], "mlx5_5");
    let [finding] = &json["findings"].as_array().expect("findings")[..] else { panic!("{json:#}") };
    assert_eq!(finding["code"], "port-degraded");
    for verb in [&["status"][..], &["holders"], &["apply"], &["gid", "--port"]] {
        let said = host.show(&[verb, &["mlx5_9/2"]].concat());
        assert!(
            said.starts_with("error: mlx5_9/2 is no port and no adapter of this host"),
            "{said}"
        );
        assert!(
            said.contains("ibp24s0 mlx5_0 (0000:18:00.0)") && said.ends_with("exit 2\n"),
            "{said}"
        );
    }
}

#[test]
fn all_that_is_known_of_one_port_is_told() {
    let host = degraded();
    expect![[r#"
        NOT READY: 0 of 1 expected ports active
          error: mlx5_3/1: no link: no cable, or the other end is down (Polling)
            do: check the cable and the switch port
            run: mlxlink -d 0000:5e:00.0 || mstlink -d 0000:5e:00.0
            do: if nothing is meant to be connected to it: `required = false` in its
                [[port]], or boot.ignore (man 5 ibprov.toml)

          PORT      PCI           NETDEV   STATE    LID  Gb/s  NOTE
        ! mlx5_3/1  0000:5e:00.0  ibp94s0  polling  -    -

        mlx5_3  0000:5e:00.0  15b3:1021  MT4123  firmware 20.36.1010
          node GUID a088:c203:00ab:0030  driver mlx5_core
          port 1  InfiniBand  DOWN  Polling  400 Gb/sec (4X NDR)  LID -  SM LID 1
            port GUID a088:c203:00ab:0030
            ibp94s0  datagram  mtu 2044  up, carrier  no address
            pci > driver > rdma > netdev > named > configured | missing link: no cable,
              or the other end is down (Polling)
        exit 3
    "#]]
    .assert_eq(&host.show_on(&[("COLUMNS", "80")], &["status", "mlx5_3"]));
}

/// A P_Key child on each rail but one, which is to have one too.
fn with_children(without: usize) -> Host {
    let host = healthy();
    let mut wanted = String::new();
    for (rail, bus) in RAILS.into_iter().enumerate() {
        let pci = address(rail);
        wanted += &format!(
            "[[interface]]\nmatch.pci = \"{pci}\"\npartition = [{{ pkey = \"0x8001\" }}]\n"
        );
        if rail == without {
            continue;
        }
        let parent = host.path(&format!("sys/class/net/ibp{bus}s0/ifindex"));
        let parent = std::fs::read_to_string(parent).expect("index");
        for (file, text) in [
            ("type", "32"),
            ("ifindex", &format!("{}", 900 + rail)),
            ("iflink", parent.trim()),
            ("mtu", "2044"),
            ("flags", "0x1003"),
            ("uevent", ""),
            ("carrier", "1"),
            ("broadcast", "00:ff:ff:ff:ff:12:40:1b:80:01:00:00:00:00:00:00:ff:ff:ff:ff"),
        ] {
            host.file(&format!("sys/class/net/ibp{bus}s0.8001/{file}"), &format!("{text}\n"));
        }
    }
    host.file("etc/ibprov/ibprov.toml", &wanted);
    host
}

#[test]
fn a_child_that_is_missing_is_named_and_its_port_stays_active() {
    let host = with_children(6);
    let shown = on_terminal(&host, 24, 80, &["status"]);
    expect![[r#"
        NOT READY: 8 of 8 expected ports active, 7 ready
          error: mlx5_6/1: not configured: P_Key child ibp206s0.8001 (0x8001) is missing
            run: ibprov iface ibp206s0
            run: systemctl status 'ibprov-iface@*' ibprov-children.service
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV    STATE   LID  Gb/s     NOTE
          mlx5_0/1  0000:18:00.0  ibp24s0   active  40   400 NDR
          mlx5_1/1  0000:40:00.0  ibp64s0   active  41   400 NDR
          mlx5_2/1  0000:4f:00.0  ibp79s0   active  42   400 NDR
          mlx5_3/1  0000:5e:00.0  ibp94s0   active  43   400 NDR
          mlx5_4/1  0000:9a:00.0  ibp154s0  active  44   400 NDR
          mlx5_5/1  0000:c0:00.0  ibp192s0  active  45   400 NDR
        ! mlx5_6/1  0000:ce:00.0  ibp206s0  active  46   400 NDR  not configured
          mlx5_7/1  0000:dc:00.0  ibp220s0  active  47   400 NDR
        7 P_Key children up (0x8001), 2 unexpected ports:
          ibprov --root ROOT status -v
        exit 3
    "#]]
    .assert_eq(&shown);
    let missing = "P_Key child ibp206s0.8001 (0x8001) is missing";
    for name in ["ibp206s0.8001", "ibp206s0", "mlx5_6/1"] {
        let of_name = host.show(&["status", name]);
        assert!(of_name.contains(missing) && of_name.contains("! mlx5_6/1 "), "{of_name}");
        assert!(of_name.contains("run: ibprov iface ibp206s0\n"), "{of_name}");
    }
    assert!(host.show(&["status", "ibp206s0.8002"]).contains("is no port and no adapter"));
    let metrics = host.show(&["metrics"]);
    assert!(metrics.contains("\nibprov_ports_active 8\n"), "{metrics}");
    let of_port =
        metrics.lines().find(|l| l.contains("ibprov_port_state{") && l.contains("mlx5_6"));
    assert!(of_port.is_some_and(|line| line.ends_with(" 8")), "{of_port:?}");
    assert!(metrics.contains("\nibprov_ports_ready 7\n"), "{metrics}");
    // Once it is there, nothing is said of it alone.
    let whole = with_children(8).show(&["status"]);
    assert!(
        whole.contains("\n8 P_Key children up (0x8001), 2 unexpected ports: ibprov "),
        "{whole}"
    );
    assert_eq!(whole.matches("8001").count(), 1, "{whole}");
}

/// A P_Key child on each rail but one, and five faults besides.
fn five_faults() -> Host {
    let host = with_children(6);
    let set = |rail: usize, files: &[(&str, &str)]| {
        for (file, text) in files {
            host.file(&format!("{}/{file}", port_dir(rail)), &format!("{text}\n"));
        }
    };
    set(1, &[("state", "2: INIT"), ("lid", "0x0"), ("sm_lid", "0x0")]);
    set(3, &[("state", "1: DOWN"), ("phys_state", "2: Polling"), ("lid", "0xffff")]);
    set(5, &[("rate", "200 Gb/sec (2X NDR)")]);
    host.file("sys/class/net/ibp64s0.8001/carrier", "0\n");
    host.file("sys/class/net/ibp94s0.8001/carrier", "0\n");
    let path = "etc/ibprov/ibprov.toml";
    let wanted = std::fs::read_to_string(host.path(path)).expect("file");
    let rails: Vec<String> = (0..8).map(|rail| format!("\"{}\"", address(rail))).collect();
    let rate = format!("[[port]]\npci = [{}]\nrate = \"400 Gb/s\"\n", rails.join(", "));
    host.file(path, &format!("[modules]\nload = [\"nvidia_peermem\"]\n{wanted}{rate}"));
    host
}

#[test]
fn five_faults_and_a_p_key_child_on_each_rail_fit_a_serial_console() {
    let host = five_faults();
    let shown = on_terminal(&host, 24, 80, &["status"]);
    expect![[r#"
        NOT READY: 6 of 8 expected ports active
          error: mlx5_6/1: not configured: P_Key child ibp206s0.8001 (0x8001) is missing
            run: ibprov iface ibp206s0
          warning: mlx5_1/1: not active: no subnet manager configured it (Initializing)
            do: if it is in the fabric of mlx5_0/1 (Active): check its switch port
          warning: mlx5_3/1: no link: no cable, or the other end is down (Polling)
            do: check the cable and the switch port
          warning: mlx5_5/1: degraded: rate 200 Gb/sec (2X NDR), minimum 400 Gb/s
            run: mlxlink -d 0000:c0:00.0
          warning: nvidia_peermem: not loaded: not built for the running kernel
            do: install it for kernel 6.1.0-9-amd64, or run `depmod -a`

          PORT      PCI           NETDEV    STATE         LID  Gb/s        NOTE
          mlx5_0/1  0000:18:00.0  ibp24s0   active        40   400 NDR
        ~ mlx5_1/1  0000:40:00.0  ibp64s0   initializing  -    400 NDR
          mlx5_2/1  0000:4f:00.0  ibp79s0   active        42   400 NDR
        ~ mlx5_3/1  0000:5e:00.0  ibp94s0   polling       -    -
          mlx5_4/1  0000:9a:00.0  ibp154s0  active        44   400 NDR
        ~ mlx5_5/1  0000:c0:00.0  ibp192s0  active        45   200 2X NDR
        ! mlx5_6/1  0000:ce:00.0  ibp206s0  active        46   400 NDR
          mlx5_7/1  0000:dc:00.0  ibp220s0  active        47   400 NDR
        5 of 7 P_Key children up (0x8001), 2 unexpected ports, 6 more steps:
          ibprov --root ROOT status -v
        exit 3
    "#]]
    .assert_eq(&shown);
    assert!(shown.lines().count() <= 24, "with the exit code: {shown}");
    // All that was left out.
    let more = on_terminal(&host, 24, 80, &["status", "-v"]);
    assert!(more.contains("  see: ibprov check --explain port-degraded\n"), "{more}");
    assert!(!more.contains(" more step"), "{more}");
    let problems = on_terminal(&host, 16, 80, &["status", "--problems"]);
    assert!(
        problems.contains(" more steps: ibprov --root ROOT status --problems -v\n"),
        "{problems}"
    );
}
