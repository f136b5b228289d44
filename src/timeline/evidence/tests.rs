use std::time::Duration;

use super::*;
use crate::check::evidence::Intake;
use crate::model::Code;

fn boots(log: &str) -> Vec<Timeline> {
    let mut intake = Intake::new(crate::check::rules::needles());
    intake.read("messages", &mut log.as_bytes());
    let evidence = intake.finish();
    evidence.boots.iter().map(|boot| timeline(boot, &[])).collect()
}

const FAILING: &str = "\
Mar 18 10:29:41 node-9.domain.tld kernel: pci 0000:4b:00.0: [15b3:101b] type 00 class 0x020700
Mar 18 10:29:43 node-9.domain.tld kernel: mlx5_core 0000:4b:00.0: firmware version: 20.36.1010
Mar 18 10:29:53 node-9.domain.tld network[2914]: Bringing up interface ib0:  ERROR     : [/etc/sysconfig/network-scripts/ifup-eth] Device ib0 does not seem to be present, delaying initialization.
Mar 18 10:29:53 node-9.domain.tld /etc/sysconfig/network-scripts/ifup-eth[4014]: Device ib0 does not seem to be present, delaying initialization.
Mar 18 10:31:13 node-9.domain.tld kernel: mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024) StrdSz(256) RxCqeCmprss(0)
Mar 18 10:31:13 node-9.domain.tld kernel: mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024) StrdSz(256) RxCqeCmprss(0)
Mar 18 10:31:14 node-9.domain.tld systemd[1]: Started mlnx_interface_mgr - configure ib0.
Mar 18 10:31:14 node-9.domain.tld mlnx_interface_mgr[13399]: Setting up Mellanox network interface: ib0
Mar 18 10:31:14 node-9.domain.tld mlnx_interface_mgr[13548]: OS is booting, will not run ifup on ib0
Mar 22 16:56:38 node-9.domain.tld network[58003]: Bringing up interface ib0:  [  OK  ]
";

#[test]
fn the_failing_boot_of_the_log_shows_both_gaps() {
    let all = boots(FAILING);
    let [timeline] = &all[..] else { panic!("{all:?}") };
    let (bad, headline) = timeline.headline().expect("headline");
    assert!(bad);
    assert_eq!(
        headline,
        "ib0 appeared 80 s after network.service asked for it, and stayed down 4 d 6 h longer because no service configured it"
    );
}

#[test]
fn the_good_boot_is_good_although_it_prints_the_same() {
    let all = boots(
        "\
Apr 02 11:09:27 node-9.domain.tld kernel: pci 0000:4b:00.0: [15b3:101b] type 00 class 0x020700
Apr 02 11:09:28 node-9.domain.tld kernel: mlx5_core 0000:4b:00.0: firmware version: 20.36.1010
Apr 02 11:09:34 node-9.domain.tld openibd[2319]: + /sbin/modprobe ib_ipoib
Apr 02 11:09:34 node-9.domain.tld kernel: mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024) StrdSz(256) RxCqeCmprss(0)
Apr 02 11:09:34 node-9.domain.tld mlnx_interface_mgr.sh[2861]: + log_msg 'OS is booting, will not run ifup on ib0'
Apr 02 11:09:43 node-9.domain.tld network[3256]: Bringing up interface ib0:  [  OK  ]
",
    );
    let [timeline] = &all[..] else { panic!("{all:?}") };
    assert_eq!(timeline.headline().map(|(bad, _)| bad), Some(false), "{timeline:?}");
    let module = timeline.modules.iter().find(|m| m.name == "ib_ipoib").expect("ib_ipoib");
    assert_eq!(module.remark, "by openibd");
    // The trace of a shell script quotes what it says.
    let ports: Vec<&str> = timeline.ports.iter().map(|port| port.label.as_str()).collect();
    assert!(ports.iter().all(|name| !name.contains('\'')), "{ports:?}");
}

#[test]
fn an_ethernet_port_of_the_same_driver_is_no_port_here() {
    let all = boots(
        "\
Mar 18 10:29:41 n kernel: pci 0000:3b:00.0: [15b3:1015] type 00 class 0x020000
Mar 18 10:29:43 n kernel: mlx5_core 0000:3b:00.0: firmware version: 14.32.1010
Mar 18 10:29:44 n kernel: mlx5_core 0000:3b:00.0: MLX5E: StrdRq(1) RqSz(8) StrdSz(2048) RxCqeCmprss(0)
",
    );
    assert!(all.iter().all(|t| t.ports.is_empty()), "{all:?}");
}

#[test]
fn renamed_netdevs_belong_to_their_functions() {
    let all = boots(
        "\
[    1.0] pci 0000:01:00.0: [15b3:101b] type 00 class 0x020700
[    1.1] pci 0000:02:00.0: [15b3:101b] type 00 class 0x020700
[    2.0] mlx5_core 0000:01:00.0: firmware version: 20.1.1
[    5.0] mlx5_core 0000:02:00.0 ibp2s0: renamed from ib0
[    5.5] mlx5_core 0000:01:00.0 ibp1s0: renamed from ib1
[    9.0] IPv6: ADDRCONF(NETDEV_CHANGE): ibp1s0: link becomes ready
",
    );
    let [timeline] = &all[..] else { panic!("{all:?}") };
    let of = |netdev| timeline.port_of(netdev).expect("port");
    assert_eq!(of("ibp1s0").label, "0000:01:00.0");
    assert_eq!(of("ibp1s0").highest(), Some(Rung::Active));
    assert_eq!(of("ibp2s0").label, "0000:02:00.0");
    assert_eq!(timeline.ports.len(), 2, "{timeline:?}");
}

#[test]
fn netdevs_and_modules_are_of_the_stack_by_the_same_names_as_in_check() {
    let all = boots(
        "\
Mar 18 10:29:53 n9 network[29]: Device mlx5_ib0 does not seem to be present, delaying initialization.
Mar 18 10:29:54 n9 network[29]: Device ibft0 does not seem to be present, delaying initialization.
Mar 18 10:29:55 n9 openibd[23]: + /sbin/modprobe bnxt_re
",
    );
    let [timeline] = &all[..] else { panic!("{all:?}") };
    let asked: Vec<&str> = timeline.asks.iter().map(|ask| ask.netdev.as_str()).collect();
    assert_eq!(asked, ["mlx5_ib0"]);
    let modules: Vec<&str> = timeline.modules.iter().map(|module| module.name.as_str()).collect();
    assert_eq!(modules, ["bnxt_re"]);
}

#[test]
fn what_is_late_in_the_picture_is_late_in_check() {
    const MADE: &str =
        "kernel: mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024) StrdSz(256) RxCqeCmprss(0)";
    const PRESENT: &str = "network[29]: Device ib0 does not seem to be present, delaying.";
    const EXISTS: &str = "ifup[29]: interface ib0 does not exist";
    const FAILED: &str = "network[29]: Bringing up interface ib0:  [FAILED]";
    for (first, second, late) in [
        (PRESENT, MADE, true),
        (EXISTS, MADE, true),
        // It was there, and was called otherwise, or something else was wrong.
        (MADE, PRESENT, false),
        (MADE, FAILED, false),
    ] {
        let log = format!(
            "Mar 18 10:29:41 n9 kernel: pci 0000:4b:00.0: [15b3:101b] type 00 class 0x020700\n\
             Mar 18 10:29:43 n9 {first}\nMar 18 10:30:53 n9 {second}\n"
        );
        let mut intake = Intake::new(crate::check::rules::needles());
        intake.read("messages", &mut log.as_bytes());
        let evidence = intake.finish();
        let of_check = crate::check::diagnose(&evidence).findings;
        let in_check = of_check.iter().any(|f| f.code == Code::ModuleLoadedLate);
        assert_eq!(in_check, late, "{first} {second}: {of_check:?}");
        let timeline = timeline(&evidence.boots[0], &[]);
        assert_eq!(!timeline.gaps().is_empty(), late, "{first} {second}: {:?}", timeline.gaps());
    }
}

#[test]
fn a_unit_that_failed_for_want_of_a_port_is_drawn_with_its_question() {
    let log = "\
Nov 23 10:00:01 n9 kernel: pci 0000:4b:00.0: [15b3:101b] type 00 class 0x020700
Nov 23 10:00:02 n9 systemd[1]: Starting site-agent.service - the site's agent...
Nov 23 10:00:03 n9 site-agent[77]: cannot parse interface ib0: No such device
Nov 23 10:00:03 n9 systemd[1]: site-agent.service: Failed with result 'exit-code'.
Nov 23 10:00:08 n9 kernel: mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024) StrdSz(256) RxCqeCmprss(0)
Nov 23 10:00:15 n9 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready
Nov 23 10:00:17 n9 systemd-networkd[55]: ib0: DHCPv4 address 10.9.8.1/24, gateway 10.9.8.254 acquired from 10.9.8.2
";
    let mut intake = Intake::new(crate::check::rules::needles());
    intake.read("messages", &mut log.as_bytes());
    let evidence = intake.finish();
    let findings = crate::check::diagnose(&evidence).findings;
    let timeline = timeline(&evidence.boots[0], &findings);
    let unit = timeline.units.iter().find(|unit| unit.name == "site-agent.service");
    let unit = unit.map(|unit| (unit.outcome, unit.ended.zip(unit.began)));
    assert_eq!(
        unit,
        Some((Outcome::Failed, Some((Duration::from_secs(2), Duration::from_secs(1))))),
        "{findings:?}"
    );
    let want = "site-agent.service asked for ib0, which appeared 5 s later and was active after 12 s, and had an address 14 s after that";
    assert!(timeline.notes.iter().any(|note| note.text == want), "{:?}", timeline.notes);
    let headline = timeline.headline().expect("a headline");
    assert!(
        headline.0 && headline.1.contains("after site-agent.service asked for it"),
        "{headline:?}"
    );
    let svg = crate::timeline::svg::draw(&timeline);
    assert!(svg.contains("site-agent.service") && svg.contains("address at"), "{svg}");
}

#[test]
fn an_address_is_known_by_wait_onlines_line_and_by_a_lease() {
    let online = r#"{"_BOOT_ID":"b","__MONOTONIC_TIMESTAMP":"14000000","__REALTIME_TIMESTAMP":"1577836814000000","MESSAGE_ID":"c4c1e49464c14be7a491a490554e7009","MESSAGE":"ib0, mlx5_0/1 (0000:4b:00.0): online, LID 4, 10.9.8.1/24","SYSLOG_IDENTIFIER":"ibprov","PRIORITY":"6"}"#;
    let lease = "[   14.000000] NetworkManager[9]: <info> dhcp4 (ib0): state changed new lease, address=10.9.8.1";
    let address = |log: &str| {
        let mut intake = Intake::new(crate::check::rules::needles());
        intake.read("log", &mut log.as_bytes());
        let evidence = intake.finish();
        let timeline = timeline(&evidence.boots[0], &[]);
        timeline.port_of("ib0").and_then(|port| port.address)
    };
    assert_eq!(address(online), Some(Duration::from_secs(14)));
    assert_eq!(address(lease), Some(Duration::from_secs(14)));
    assert_eq!(address(&online.replace(", 10.9.8.1/24", "")), None, "online without an address");
    assert_eq!(address(&lease.replace("10.9.8.1", "soon")), None);
}
