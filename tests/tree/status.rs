use expect_test::expect;

use crate::host::{Host, PF, PortSpec};

#[test]
fn a_healthy_node_is_one_screen() {
    expect![[r#"
        ready: 1 of 1 expected ports active
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
          mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR

        kernel 6.1.0-9-amd64
        modules: ib_ipoib, ib_umad, ib_uverbs

        mlx5_0  0000:4b:00.0  15b3:101b  MT4123  firmware 20.36.1010  node GUID b859:9f03:0012:a480  driver mlx5_core
          port 1  InfiniBand  ACTIVE  LinkUp  200 Gb/sec (4X HDR)  LID 7  SM LID 1  port GUID b859:9f03:0012:a480
            ib0  datagram  mtu 2044  up, carrier  no address
            pci > driver > rdma > netdev > named > configured > link > active
        exit 0
    "#]].assert_eq(&Host::healthy().show(&["status", "-v"]));
}

#[test]
fn without_a_card_there_is_nothing_to_fear() {
    expect![[r#"
        nothing expected: this host shows no InfiniBand adapter
        ibprov: NOT enabled; boot has not run; openibd.service: not installed
          ibprov-disabled: ibprov.service does not run at boot: the unit is not enabled, and udev starts none of ibprov's units
            run: systemctl enable ibprov.service
        exit 0
    "#]]
    .assert_eq(&Host::new().show(&["status"]));
}

#[test]
fn each_missing_rung_says_why() {
    let mut host = Host::healthy();
    host.function("0000:01:00.0", "15b3:101b", "020700", None);
    host.function("0000:02:00.0", "15b3:1003", "028000", Some("mlx4_core"));
    host.function("0000:03:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    host.rdma(
        "0000:03:00.0",
        "mlx5_1",
        "b859:9f03:0012:a490",
        &[
            PortSpec { netdev: None, guid: "b859:9f03:0012:a490", ..PortSpec::default() },
            PortSpec {
                number: 2,
                netdev: Some("ib7"),
                named: false,
                state: "2: INIT",
                lid: "0x0",
                guid: "b859:9f03:0012:a491",
                ..PortSpec::default()
            },
        ],
    );
    host.function("0000:04:00.0", "15b3:101b", "020700", Some("vfio-pci"));
    expect![[r#"
        NOT READY: 2 of 5 expected ports active, 1 ready
          error: 0000:01:00.0: no driver: no driver is bound to the function
            do: see `lspci -k` and dmesg
          error: 0000:02:00.0: no RDMA device: driver mlx4_core is bound
            run: dmesg | grep 0000:02:00.0
          error: mlx5_1/1: no netdev: ib_ipoib has not created a netdev for the port
            run: dmesg | grep -i ipoib; grep -H . /sys/module/ib_ipoib/parameters/*
            do: if the modprobe that loaded it was killed
            run: modprobe -r ib_ipoib && ibprov boot
          error: mlx5_1/2: not named: udev has not finished with the netdev or its RDMA device, so that a name may still change
            do: a rule that hangs shows in the log of udev
            run: journalctl -b -u systemd-udevd
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE                    LID  Gb/s     NOTE
        ! -         0000:01:00.0  -       no driver                -    -
        ! -         0000:02:00.0  -       no RDMA device           -    -
        ! mlx5_1/1  0000:03:00.0  -       active                   7    200 HDR  no netdev
        ! mlx5_1/2  0000:03:00.0  ib7     not named, initializing  -    200 HDR
          mlx5_0/1  0000:4b:00.0  ib0     active                   7    200 HDR
        1 unexpected port: ibprov --root ROOT status -v
        exit 3
    "#]].assert_eq(&host.show(&["status"]));
}

#[test]
fn what_the_configuration_skips_is_not_waited_for() {
    let host = Host::healthy();
    host.file("etc/ibprov/ibprov.toml", "[modules]\nexclude = [\"mlx4_core\"]\n");
    host.function("0000:02:00.0", "15b3:1003", "028000", None);
    expect![[r#"
        ready: 1 of 1 expected ports active
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
          mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR
        note: 0000:02:00.0: the driver mlx4_core is deny-listed by modules.exclude of the configuration
          do: to use the adapter: remove mlx4_core from modules.exclude of the configuration
          run: systemctl restart ibprov
        1 unexpected port: ibprov --root ROOT status -v
        exit 0
    "#]]
    .assert_eq(&host.show(&["status"]));
}

#[test]
fn a_report_of_another_version_is_read_or_said_to_be_one() {
    let host = Host::healthy();
    let newer = r#"{"schema":1,"report":"boot","verdict":"exceptions","exit_code":1,"started_usec":5,"mood":"good"}"#;
    host.file("run/ibprov/boot.json", newer);
    let shown = host.show(&["status"]);
    assert!(shown.contains("; last boot: exceptions, exit 1; "), "{shown}");
    host.file(
        "run/ibprov/boot.json",
        r#"{"schema":2,"report":"boot","verdict":"ready","exit_code":0}"#,
    );
    let shown = host.show(&["status"]);
    assert!(shown.contains("; boot has not run; "), "{shown}");
    let note =
        "note: /run/ibprov/boot.json: the report has schema 2, but this ibprov reads schema 1\n";
    assert!(shown.contains(note), "{shown}");
}

#[test]
fn the_gid_table_shows_type_and_ipv4() {
    let mut host = Host::healthy();
    let port = PortSpec { link_layer: "Ethernet", netdev: None, ..PortSpec::default() };
    host.function("0000:5e:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    host.rdma("0000:5e:00.0", "mlx5_1", "b859:9f03:0012:a4a0", &[port]);
    let gids = "sys/bus/pci/devices/0000:5e:00.0/infiniband/mlx5_1/ports/1";
    host.file(&format!("{gids}/gids/1"), "0000:0000:0000:0000:0000:ffff:0a00:0005\n");
    host.file(&format!("{gids}/gid_attrs/types/1"), "RoCE v2\n");
    host.file(&format!("{gids}/gid_attrs/ndevs/1"), "enp94s0\n");
    host.file(&format!("{gids}/gids/2"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
    expect![[r#"
        ready: 1 of 1 expected ports active
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE     LID  Gb/s     NOTE
          mlx5_0/1  0000:4b:00.0  ib0     active    7    200 HDR
          mlx5_1/1  0000:5e:00.0  -       Ethernet  -    200 HDR

        GIDs of mlx5_0/1
          GID   0  IB          fe80::b859:9f03:12:a480

        GIDs of mlx5_1/1
          GID   0  RoCE v1     fe80::b859:9f03:12:a480
          GID   1  RoCE v2     ::ffff:10.0.0.5  10.0.0.5  enp94s0
        exit 0
    "#]]
    .assert_eq(&host.show(&["status", "--gids"]));
}

/// The port's type was changed: what the site lists as an InfiniBand port does not come.
#[test]
fn a_port_that_is_listed_and_is_ethernet_now_is_missing() {
    const OTHER: &str = "0000:5e:00.0";
    let host = |class: &str, rdma: bool| {
        let mut host = Host::healthy();
        host.function(OTHER, "15b3:101b", class, Some("mlx5_core"));
        let port = PortSpec { link_layer: "Ethernet", netdev: None, ..PortSpec::default() };
        if rdma {
            host.rdma(OTHER, "mlx5_1", "b859:9f03:0012:a4a0", &[port]);
        }
        host
    };
    let list = |host: &Host, which: &str| {
        host.file("etc/ibprov/ibprov.toml", &format!("[[port]]\n{which}\n"));
    };
    let want = |seen: &str| {
        format!("{seen}, and an InfiniBand port is expected (listed in /etc/ibprov/ibprov.toml:1)")
    };
    let seen = "the port is in Ethernet mode";
    for (class, rdma, seen) in [
        ("020700", true, seen),
        ("020000", true, seen),
        ("020000", false, "the port is in Ethernet mode (class 0x020000)"),
    ] {
        let host = host(class, rdma);
        list(&host, &format!("pci = \"{OTHER}\""));
        let status = host.show(&["status"]);
        assert!(status.contains(&want(seen)), "{class} {rdma}: {status}");
        assert!(status.ends_with("exit 3\n"), "{status}");
        let boot = host.show(&["boot", "--dry-run"]);
        assert!(boot.contains("\nnot waited for: "), "{class} {rdma}: {boot}");
    }
    // Whom nobody has named is left out, as a port of a card that has both.
    let unnamed = host("020700", true).show(&["status"]);
    assert!(!unnamed.contains(seen) && unnamed.ends_with("exit 0\n"), "{unnamed}");
    let mut both = host("020700", false);
    let other = PortSpec { number: 2, link_layer: "Ethernet", netdev: None, ..PortSpec::default() };
    let ib = PortSpec { guid: "b859:9f03:0012:a4a1", netdev: Some("ib7"), ..PortSpec::default() };
    both.rdma(OTHER, "mlx5_1", "b859:9f03:0012:a4a0", &[ib, other]);
    list(&both, &format!("pci = \"{OTHER}\""));
    let status = both.show(&["status"]);
    assert!(!status.contains(seen) && status.ends_with("exit 0\n"), "{status}");
    list(&both, &format!("pci = \"{OTHER}\"\nport = 2"));
    let status = both.show(&["status"]);
    assert!(status.contains(&want(seen)), "{status}");
}

#[test]
fn vfs_stand_below_their_pf_with_guids_policy_and_binding() {
    let mut host = Host::healthy();
    for (index, driver) in [(0, Some("mlx5_core")), (1, Some("vfio-pci")), (2, None)] {
        let vf = format!("0000:4b:00.{}", index + 1);
        host.function(&vf, "15b3:101c", "020700", driver);
        host.link(&format!("sys/bus/pci/devices/{vf}/physfn"), &format!("../{PF}"));
        host.link(&format!("sys/bus/pci/devices/{PF}/virtfn{index}"), &format!("../{vf}"));
        let ofed = format!("sys/bus/pci/devices/{PF}/sriov/{index}");
        host.file(&format!("{ofed}/node"), &format!("02:00:00:00:00:12:00:0{index}\n"));
        host.file(&format!("{ofed}/port"), &format!("02:00:00:00:00:12:01:0{index}\n"));
        host.file(&format!("{ofed}/policy"), "Follow\n");
    }
    let port = PortSpec { netdev: Some("ib1"), guid: "0200:0000:0012:0100", ..PortSpec::default() };
    host.rdma("0000:4b:00.1", "mlx5_9", "0200:0000:0012:0000", &[port]);
    expect![[r#"
        ready: 1 of 1 expected ports active
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
          mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR
              VF 0  mlx5_core, link state follow, no plan
              VF 1  vfio-pci, link state follow, no plan
              VF 2  no driver, link state follow, no plan
        exit 0
    "#]]
    .assert_eq(&host.show(&["status"]));
}

#[test]
fn a_disabled_port_is_told_with_the_command_that_enables_it_and_no_other() {
    let mut host = Host::healthy();
    host.function("0000:01:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    let guid = "b859:9f03:0012:a4b0";
    let port = PortSpec {
        number: 2,
        state: "1: DOWN",
        physical: "3: Disabled",
        lid: "0x0",
        guid,
        netdev: Some("ib1"),
        ..PortSpec::default()
    };
    host.rdma("0000:01:00.0", "mlx5_1", guid, &[port]);
    let shown = host.show(&["status", "-v"]);
    let command = "    run: ibportstate -C mlx5_1 -P 2 -D 0 2 enable\n";
    assert!(shown.contains(command), "{shown}");
}

#[test]
fn garbage_in_sysfs_is_told_and_harms_nothing() {
    let mut host = Host::healthy();
    host.function("0000:01:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    let port = PortSpec { guid: "b859:9f03:0012:a4b0", netdev: Some("ib1"), ..PortSpec::default() };
    host.rdma("0000:01:00.0", "mlx5_1", "b859:9f03:0012:a4b0", &[port]);
    let rdma = "sys/bus/pci/devices/0000:01:00.0/infiniband/mlx5_1";
    host.bytes(&format!("{rdma}/node_guid"), &[0xff, 0xfe, 0x1b, b'[']);
    host.file(&format!("{rdma}/ports/1/gids/0"), "\u{1b}[2Jnot a gid");
    host.file(&format!("{rdma}/ports/1/lid"), "lots");
    host.file(&format!("{rdma}/ports/x/state"), "4: ACTIVE");
    host.file("sys/bus/pci/devices/hostile;reboot/class", "0x020700");
    host.file("sys/bus/pci/devices/0000:02:00.0/class", "???");
    host.file("run/ibprov/boot.json", "{");
    let shown = host.show(&["status"]);
    assert!(!shown.contains('\u{1b}'), "an escape sequence reached the terminal: {shown:?}");
    expect![[r#"
        ready with exceptions: 1 of 2 expected ports active
          warning: mlx5_1/1: not active: the port is Active without a usable LID
            do: see the log of the subnet manager
        ibprov: enabled; boot has not run; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
        ~ mlx5_1/1  0000:01:00.0  ib1     active  -    200 HDR
          mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR
        note: /sys/bus/pci/devices/0000:01:00.0/infiniband/mlx5_1/node_guid: content is not UTF-8 text
        note: /sys/bus/pci/devices/0000:01:00.0/infiniband/mlx5_1/ports/1/gids/0: "\u{1b}[2Jnot a gid" is not a GID
        note: /sys/bus/pci/devices/0000:01:00.0/infiniband/mlx5_1/ports: "x" is not a port number
        note: /sys/bus/pci/devices/0000:02:00.0/class: "???" is not a hexadecimal number
        note: /sys/bus/pci/devices: "hostile;reboot" is not a PCI address
        note: /run/ibprov/boot.json is not a boot report
        note: /sys/bus/pci/devices/0000:01:00.0/infiniband/mlx5_1/ports/1/lid: "lots" is not a LID
        exit 1
    "#]].assert_eq(&shown);
}

#[test]
fn json_says_the_same() {
    let out = Host::healthy().ibprov(&["status", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!((&json["schema"], &json["report"]), (&1.into(), &"status".into()));
    let port = &json["hcas"][0]["ports"][0];
    assert_eq!(port["port_guid"], "b859:9f03:0012:a480");
    assert_eq!(port["netdev"], "ib0");
    assert_eq!(port["lid"], 7);
    assert_eq!(
        port["ladder"]["reached"],
        serde_json::json!([
            "pci",
            "driver",
            "rdma",
            "netdev",
            "named",
            "configured",
            "link",
            "active"
        ])
    );
}

/// The findings about units.
fn of_units(status: &serde_json::Value) -> Vec<serde_json::Value> {
    let findings = status["findings"].as_array().expect("findings").iter();
    let is_of_units = |finding: &&serde_json::Value| {
        let code = finding["code"].as_str().expect("code");
        ["ibprov-", "openibd-", "mlnx-", "two-"].iter().any(|begin| code.starts_with(begin))
    };
    findings.filter(is_of_units).cloned().collect()
}

/// "Ready" is of something: two RoCE ports that nobody has asked for are not.
#[test]
fn where_nothing_is_expected_status_says_so_and_what_to_write() {
    let host = crate::roce::ready();
    host.remove("sys/bus/pci/devices/0000:4b:00.0");
    host.remove("etc/ibprov/ibprov.toml");
    let (code, status) = crate::account::json(&host, &["status"]);
    assert_eq!((code, &status["verdict"]), (0, &"nothing-expected".into()), "{status:#}");
    let text = host.show(&["status"]);
    assert!(
        text.starts_with("nothing expected: no port is expected and no VF is planned\n"),
        "{text}"
    );
    let findings = status["findings"].as_array().expect("findings");
    let command = findings.iter().find_map(|f| f["advice"][0]["run"].as_str()).expect("advice");
    let (printf, file) = command.split_once(" >>/").expect("a command");
    let lines = std::process::Command::new("sh").args(["-c", printf]).output().expect("sh").stdout;
    host.file(file, &String::from_utf8(lines).expect("text"));
    let status = crate::account::json(&host, &["status"]).1;
    assert_eq!(status["expected_ports"]["active"], 1, "{status:#}");
    assert!(host.show(&["status"]).starts_with("ready: 1 of 1 expected ports active\n"));
}

#[test]
fn links_that_are_wrong_are_named() {
    let codes = |host: &Host| {
        let out = host.ibprov(&["status", "--format", "json"]);
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
        let found = of_units(&json);
        let codes = found.iter().map(|f| f["code"].as_str().expect("code").to_owned());
        (json["units"]["openibd"].as_str().expect("owner").to_owned(), codes.collect::<Vec<_>>())
    };
    let owner =
        |o: &str, c: &[&str]| (o.to_owned(), c.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>());
    assert_eq!(codes(&Host::healthy()), owner("ibprov", &[]));

    let host = Host::healthy();
    host.remove("etc/systemd/system/openibd.service");
    host.remove("etc/systemd/system/sysinit.target.wants/ibprov-openibd.service");
    let found = owner("nobody", &["openibd-alias-broken"]);
    assert_eq!(codes(&host), found, "systemctl disable openibd");
    host.remove("etc/systemd/system/sysinit.target.wants/ibprov.service");
    assert_eq!(codes(&host), owner("nobody", &["ibprov-disabled"]), "systemctl disable ibprov");

    let host = Host::healthy();
    host.remove("etc/systemd/system/sysinit.target.wants/ibprov-openibd.service");
    let found = owner("ibprov", &["openibd-alias-broken"]);
    assert_eq!(codes(&host), found, "nothing starts what has the name");

    let host = Host::healthy();
    host.remove("etc/systemd/system/openibd.service");
    host.file(
        "etc/systemd/system/openibd.service",
        "[Service]\nExecStart=/etc/init.d/openibd start\n",
    );
    assert_eq!(codes(&host), owner("vendor", &["openibd-alias-broken"]), "vendor file in /etc");

    let host = Host::healthy();
    host.remove("etc/systemd/system/openibd.service");
    host.link("etc/systemd/system/openibd.service", "/dev/null");
    assert_eq!(codes(&host), owner("masked", &["openibd-alias-broken"]), "mask");

    let host = Host::healthy();
    host.link(
        "etc/systemd/system/sysinit.target.wants/openibd.service",
        "/usr/lib/systemd/system/openibd.service",
    );
    host.file("etc/init.d/openibd", "#!/bin/sh\n");
    host.link("etc/rc3.d/S05openibd", "../init.d/openibd");
    assert_eq!(
        codes(&host),
        owner("ibprov", &["openibd-want-left"]),
        "systemd ignores the rc link"
    );
    host.remove("etc/systemd/system/openibd.service");
    host.remove("etc/systemd/system/sysinit.target.wants/openibd.service");
    assert_eq!(codes(&host), owner("vendor", &["two-agents"]), "the rc link counts");
}

#[test]
fn a_link_of_an_openibd_that_is_gone_starts_nothing() {
    let host = Host::healthy();
    host.remove("etc/systemd/system/openibd.service");
    host.link(
        "etc/systemd/system/sysinit.target.wants/openibd.service",
        "/usr/lib/systemd/system/openibd.service",
    );
    let out = host.ibprov(&["status"]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("openibd is not installed any more: the link starts nothing"), "{text}");
}

/// openibd.service, its script and the agent of its kernel package: one exception, one remedy.
#[test]
fn openibd_and_ibprov_both_enabled_are_one_exception() {
    let host = Host::healthy();
    host.mlnx_interface_manager();
    host.remove("etc/systemd/system/openibd.service");
    host.remove("etc/systemd/system/sysinit.target.wants/ibprov-openibd.service");
    let unit = "/usr/lib/systemd/system/openibd.service";
    host.file(&unit[1..], "[Service]\nExecStart=/etc/init.d/openibd start\n");
    host.link("etc/systemd/system/sysinit.target.wants/openibd.service", unit);
    host.file("etc/init.d/openibd", "#!/bin/sh\n");
    let (code, status) = crate::account::json(&host, &["status"]);
    let [finding] = &of_units(&status)[..] else { panic!("{status:#}") };
    assert_eq!((code, &finding["code"]), (1, &"two-agents".into()), "{status:#}");
    let message = finding["message"].as_str().expect("a message");
    assert!(
        message.starts_with("ibprov and openibd (by ") && message.contains("mlnx_interface_mgr"),
        "{message}"
    );
    let remedy = serde_json::json!([
        {"purpose": "look", "run": "ibprov migrate"},
        {"purpose": "permanent", "run": "ibprov migrate --apply"},
    ]);
    assert_eq!(finding["advice"], remedy);
    let check = crate::account::json(&host, &["check"]).1;
    assert!(of_units(&check).iter().any(|found| found["code"] == "two-agents"), "{check:#}");
    // No port lacks anything by it.
    let health = |asker| host.ibprov(&["health", "--for", asker]).status.code();
    assert_eq!((health("slurm"), health("nagios")), (Some(0), Some(1)));
    let said = host.show(&["health"]);
    assert_eq!(said, "ready with exceptions: two-agents; 1/1 ports\nexit 1\n");
}

#[test]
fn the_agent_of_mlnx_ofed_is_found_with_what_to_do() {
    let findings = |host: &Host| {
        let out = host.ibprov(&["status", "--format", "json"]);
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
        of_units(&json)
    };
    let host = Host::healthy();
    host.mlnx_interface_manager();
    let found = findings(&host);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding["code"], "two-agents");
    let message = finding["message"].as_str().expect("a message");
    assert!(message.contains("mlnx_interface_mgr (by /lib/udev/rules.d/90-ib.rules)"), "{message}");
    // What the remedy makes.
    host.link("etc/udev/rules.d/90-ib.rules", "/dev/null");
    assert_eq!(findings(&host), Vec::<serde_json::Value>::new());
}

#[test]
fn many_netdevs_are_shown_and_each_costs_as_many_reads() {
    let reads = |hcas: u32| {
        let (text, reads) = Host::with_hcas(hcas).reads(&["status"]);
        assert!((0..=hcas).all(|n| text.contains(&format!(" ib{n} "))), "{text}");
        reads
    };
    let [few, some, many] = [8, 16, 128].map(reads);
    println!("reads: {few} with 8 HCAs, {some} with 16, {many} with 128");
    assert!((many - few) * 10 <= (some - few) * 15 * 11, "{few}, {some}, {many}");
}

/// Exit code, verdict, and of each finding severity, code and object.
fn judged(host: &Host) -> (Option<i32>, String, Vec<String>) {
    let out = host.ibprov(&["status", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let findings = json["findings"].as_array().expect("findings").iter().map(|f| {
        format!(
            "{} {} {}",
            text(&f["severity"]),
            text(&f["code"]),
            f["object"].as_str().unwrap_or("-")
        )
    });
    let findings = findings.collect();
    assert_eq!(json["exit_code"].as_i64(), out.status.code().map(i64::from), "{json:#}");
    (out.status.code(), text(&json["verdict"]), findings)
}

#[test]
fn a_port_that_is_expected_and_absent_is_the_first_thing_that_is_told() {
    let host = Host::healthy();
    let rows = "[[port]]\npci = \"0000:4b:00.0\"\n[[port]]\npci = \"0000:99:00.0\"\n";
    host.file("etc/ibprov/ibprov.toml", rows);
    let shown = host.show(&["status"]);
    let first: Vec<&str> = shown.lines().take(2).collect();
    assert_eq!(
        first,
        [
            "NOT READY: 1 of 2 expected ports active",
            "  error: 0000:99:00.0: absent, and expected (listed in /etc/ibprov/ibprov.toml:3)"
        ]
    );
    let absent = "error port-absent 0000:99:00.0".to_owned();
    assert_eq!(judged(&host), (Some(3), "not-ready".to_owned(), vec![absent]));
    host.file("etc/ibprov/ibprov.toml", &format!("{rows}required = false\n"));
    let absent = "warning port-absent 0000:99:00.0".to_owned();
    assert_eq!(judged(&host), (Some(1), "exceptions".to_owned(), vec![absent]));
}

#[test]
fn a_port_that_is_not_expected_is_marked_and_fails_nothing() {
    let host = Host::healthy();
    host.function("0000:01:00.0", "15b3:101b", "020700", None);
    assert_eq!(judged(&host).0, Some(3), "each adapter counts");
    let row = "[[port]]\npci = \"0000:4b:00.0\"\n";
    host.file("etc/ibprov/ibprov.toml", row);
    assert_eq!(judged(&host).0, Some(3), "a row takes none away");
    for (choice, why) in [
        ("boot.ports = \"listed\"\n", "not listed in any [[port]] (boot.ports is \"listed\")"),
        (
            "boot.ignore = [\"0000:01:00.0\"]\n",
            "ignored by boot.ignore (/etc/ibprov/ibprov.toml:1)",
        ),
    ] {
        host.file("etc/ibprov/ibprov.toml", &format!("{choice}{row}"));
        assert_eq!(judged(&host), (Some(0), "ready".to_owned(), Vec::new()));
        let shown = host.show(&["status", "-v"]);
        assert!(shown.contains(&format!("\n  not expected: {why}\n")), "{shown}");
    }
}

#[test]
fn a_boot_that_failed_is_told_although_all_is_there_now() {
    let host = Host::healthy();
    host.file(
        "run/ibprov/boot.json",
        r#"{"schema":1,"report":"boot","verdict":"not-ready","exit_code":3}"#,
    );
    let failed = "warning boot-failed -".to_owned();
    assert_eq!(judged(&host), (Some(1), "exceptions".to_owned(), vec![failed]));
}

#[test]
fn what_is_planned_for_vfs_is_held_against_them() {
    let mut host = Host::healthy();
    let plan = |vfs| {
        format!(
            "[[pf]]\npci = \"{PF}\"\nvfs = {vfs}\nlink-state = \"follow\"\nguid.template = \"02:00:00:00:00:12:{{kind:8}}:{{vf:8}}\"\n"
        )
    };
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), "8\n");
    host.file("etc/ibprov/ibprov.toml", &plan(2));
    let wrong = format!("error vf-not-as-planned {PF}");
    assert_eq!(judged(&host), (Some(3), "not-ready".to_owned(), vec![wrong.clone()]));
    let shown = host.show(&["status"]);
    assert!(
        shown.starts_with("NOT READY: 1 of 1 expected ports active, 0 of 2 VFs as planned\n"),
        "{shown}"
    );
    assert!(shown.contains(&format!("\n  error: PF {PF}: VFs 0-1 to be created\n")), "{shown}");

    for index in 0..2 {
        let vf = format!("0000:4b:00.{}", index + 1);
        host.function(&vf, "15b3:101c", "020700", Some("mlx5_core"));
        host.link(&format!("sys/bus/pci/devices/{vf}/physfn"), &format!("../{PF}"));
        host.link(&format!("sys/bus/pci/devices/{PF}/virtfn{index}"), &format!("../{vf}"));
        let ofed = format!("sys/bus/pci/devices/{PF}/sriov/{index}");
        host.file(&format!("{ofed}/node"), &format!("02:00:00:00:00:12:00:0{index}\n"));
        host.file(&format!("{ofed}/port"), &format!("02:00:00:00:00:12:01:0{index}\n"));
        host.file(&format!("{ofed}/policy"), "Follow\n");
        let port = format!("0200:0000:0012:010{index}");
        let netdev = format!("ib{}", index + 1);
        let port = PortSpec { netdev: Some(&netdev), guid: &port, ..PortSpec::default() };
        let node = format!("0200:0000:0012:000{index}");
        host.rdma(&vf, &format!("mlx5_{}", index + 1), &node, &[port]);
    }
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_numvfs"), "2\n");
    assert_eq!(
        judged(&host),
        (Some(0), "ready".to_owned(), Vec::new()),
        "{}",
        host.show(&["plan"])
    );
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov/1/port"), "00:00:00:00:00:00:00:00\n");
    assert_eq!(judged(&host), (Some(3), "not-ready".to_owned(), vec![wrong]));
    // Without a plan, too, such a VF is of no use.
    host.file("etc/ibprov/ibprov.toml", "");
    let zero = format!("warning vf-guid-zero {PF}");
    assert_eq!(judged(&host), (Some(1), "exceptions".to_owned(), vec![zero]));
    // A container has the netdev of VF 1.
    host.file("sys/module/ib_ipoib/parameters/send_queue_size", "128\n");
    host.remove("sys/bus/pci/devices/0000:4b:00.2/net");
    host.remove("sys/class/net/ib2");
    let out = host.ibprov(&["status", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let devices = &report["hcas"][0]["vfs"];
    let away: Vec<&serde_json::Value> =
        [0, 1].iter().map(|vf| &devices[*vf]["other_namespace"]).collect();
    assert_eq!(away, [&serde_json::Value::Null, &serde_json::Value::from("netdev")]);
    let shown = host.show(&["status"]);
    assert!(shown.contains("VF 1  mlx5_core, link state follow, "), "{shown}");
    assert!(shown.contains(", its netdev not in this network namespace\n"), "{shown}");
}

#[test]
fn why_a_vf_is_not_as_planned_is_told_beside_it() {
    let host = crate::sites::healthy();
    let pf = "0000:14:00.0";
    host.file(&format!("sys/bus/pci/devices/{pf}/sriov/5/port"), "00:00:00:00:00:00:00:00\n");
    host.file(&format!("sys/bus/pci/devices/{pf}/sriov/6/policy"), "Down\n");
    let shown = host.show(&["status", pf]);
    for line in [
        "~     VF 5  port GUID 0 (planned 0200:0000:0412:0105); in use\n",
        "!     VF 6  link state down (planned follow)\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    // What several have in common is one line, though the plan of each is another.
    for vf in [7, 8] {
        let port = format!("sys/bus/pci/devices/{pf}/sriov/{vf}/port");
        host.file(&port, "00:00:00:00:00:00:00:00\n");
    }
    let shown = host.show(&["status", pf]);
    assert!(shown.contains("\n~     VFs 5, 7-8  port GUID 0; in use\n"), "{shown}");
    let plan = host.show(&["plan"]);
    let alone = "  ! VFs 5, 7-8 are left alone: the port GUID at the PF is 0; each may be in use: ";
    assert!(plan.contains(alone), "{plan}");
    let config = std::fs::read_to_string(host.path("etc/ibprov/ibprov.toml")).expect("rows");
    host.file("etc/ibprov/ibprov.toml", &config.replacen("vfs = 16", "vfs = 17", 1));
    let shown = host.show(&["status", "0000:10:00.0"]);
    let line = "\n!     VFs 0-15  vfio-pci, link state follow, its plan has an error\n";
    assert!(shown.contains(line) && shown.contains("the firmware allows 16"), "{shown}");
    // A VF by itself, with what is found of its PF.
    let shown = host.show(&["status", "14:00.6"]);
    assert!(shown.contains("     VF 5  ") && !shown.contains("     VF 6  "), "{shown}");
    assert!(shown.ends_with("exit 3\n"), "{shown}");
}

#[test]
fn a_bad_configuration_neither_blinds_nor_soothes() {
    let host = Host::healthy();
    host.file("etc/ibprov/ibprov.toml", "[boot]\ndeadlin = \"5min\"\n");
    let bad = "error configuration-invalid /etc/ibprov/ibprov.toml:2:1".to_owned();
    assert_eq!(judged(&host), (Some(3), "not-ready".to_owned(), vec![bad]));
    let shown = host.show(&["status"]);
    assert!(shown.contains("  mlx5_0/1  0000:4b:00.0"), "the host is shown: {shown}");
    assert!(shown.contains("/etc/ibprov/ibprov.toml:2:1"), "the error is shown: {shown}");
    let shown = host.show(&["check"]);
    assert!(shown.starts_with("verdict: not-ready "), "{shown}");
    let first = shown.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(first.starts_with("error: configuration-invalid "), "{shown}");
    assert!(shown.ends_with("exit 3\n"), "{shown}");
    // No port is missing for that of a guest, and the rest of the configuration holds.
    host.file(
        "etc/ibprov/ibprov.toml",
        "boot.ignore = [\"4b:00.0\"]\n[[guest]]\ndomian = \"vm1\"\n",
    );
    let bad = "warning configuration-invalid /etc/ibprov/ibprov.toml:3:1".to_owned();
    assert_eq!(judged(&host), (Some(1), "exceptions".to_owned(), vec![bad]));
}

#[test]
fn an_empty_tree_is_not_a_node_without_cards() {
    let empty = tempfile::tempdir().expect("temporary directory");
    let out = crate::host::ibprov(empty.path(), &["status"]);
    assert_eq!(out.status.code(), Some(2));
    let shown = String::from_utf8_lossy(&out.stdout);
    assert!(shown.starts_with("UNKNOWN: "), "{shown}");
}

#[test]
fn a_node_description_is_compared_with_what_rdma_ndd_sets() {
    let host = Host::healthy();
    let path = format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0/node_desc");
    host.file(&path, "MT4123 ConnectX6   Mellanox Technologies\n");
    host.file("proc/sys/kernel/hostname", "node7.example.org\n");
    let shown = host.show(&["status", "-v"]);
    assert!(shown.starts_with("ready: 1 of 1"), "{shown}");
    let line = "  node description \"MT4123 ConnectX6   Mellanox Technologies\"\n";
    assert!(shown.contains(line), "{shown}");
    assert!(!shown.contains("rdma-ndd"), "it is not active: {shown}");
    host.link("run/systemd/units/invocation:rdma-ndd.service", "0123");
    let note = |sets: &str| {
        format!(
            "note: mlx5_0: the node description is \"MT4123 ConnectX6   Mellanox Technologies\", and rdma-ndd sets {sets:?}\n"
        )
    };
    let shown = host.show(&["status"]);
    assert!(shown.contains(&note("node7 mlx5_0")), "{shown}");
    assert!(shown.ends_with("exit 0\n"), "{shown}");
    assert_eq!(host.ibprov(&["check"]).status.code(), Some(0));
    host.file(
        "etc/systemd/system/rdma-ndd.service.d/format.conf",
        "[Service]\nEnvironment=\"RDMA_NDD_ND_FORMAT=%%h\"\n",
    );
    let shown = host.show(&["status"]);
    assert!(shown.contains(&note("node7")), "{shown}");
    host.file(&path, "node7\n");
    assert!(!host.show(&["status"]).contains("rdma-ndd"));
}

#[test]
fn several_names_and_patterns_are_shown_together() {
    let host = Host::with_hcas(3);
    let shown = |names: &[&str]| {
        let out = host.ibprov(&[&["status", "--format", "json"], names].concat());
        let report: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
        let hcas = report["hcas"].as_array().expect("adapters");
        let ports = hcas.iter().map(|hca| hca["rdma"].as_str().expect("a name").to_owned());
        ports.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(&["ib*"]), "mlx5_0 mlx5_1 mlx5_2 mlx5_3");
    assert_eq!(shown(&["mlx5_[12]/1", "ib3"]), "mlx5_1 mlx5_2 mlx5_3");
    assert_eq!(shown(&["0001:00:0?.0"]), "mlx5_1 mlx5_2 mlx5_3");
    for nothing in ["ib9*", "ib[", "ib0 ib1"] {
        let out = host.ibprov(&["status", "ib0", nothing]);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(2) && said.contains(nothing), "{nothing}: {said}");
    }
    // The short option is the same.
    let json = |format: &str| host.ibprov(&["status", format, "json", "ib*"]).stdout;
    assert!(!json("-o").is_empty() && json("-o") == json("--format"));
}
