//! `ibprov check` on logs: the two boots of one node, one of which lost its
//! network to a disabled openibd; forms of input; exit codes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use expect_test::expect;
use serde_json::Value;

use crate::host::assert_report;

fn log(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tree/logs").join(name)
}

fn ibprov(args: &[&str], dir: &Path, stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ibprov"))
        .arg("check")
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ibprov");
    // It may end before it has read all.
    drop(child.stdin.take().expect("standard input").write_all(stdin));
    let output = child.wait_with_output().expect("ibprov");
    assert_report(args, &output);
    output
}

fn here(args: &[&str]) -> Output {
    ibprov(args, &log(""), b"")
}

fn shown(output: &Output) -> String {
    let code = output.status.code().expect("exit code");
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    format!("{text}{said}exit {code}\n")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn codes(output: &Output) -> Vec<String> {
    let findings = json(output)["findings"].as_array().expect("findings").clone();
    findings.iter().map(|f| f["code"].as_str().expect("code").to_owned()).collect()
}

#[test]
fn the_boot_without_openibd_is_explained() {
    expect![[r#"
        verdict: not-ready (errors: 1, warnings: 0)
        read: openibd-disabled.log: 26 lines, 1 boot, Mar 18 10:29:41 to Mar 22 16:56:38

        error: openibd-disabled (confidence medium)
          openibd did not run, so that ib0 was created only at Mar 18 10:31:13, 80 s too late, after the network service had looked for it at Mar 18 10:29:53.
          Cause:
            1. openibd did not run, probably because it is not enabled: this boot has no line of it
            2. at Mar 18 10:29:53 the network service looked for ib0, which did not exist
            3. another process loaded ib_ipoib, which created ib0 at Mar 18 10:31:13
            4. mlnx_interface_mgr considers the system to be booting and leaves the interface to the network service
            5. no unit tried again: ib0 stayed down until Mar 22 16:56:38
          Evidence:
            openibd-disabled.log:13: [Mar 18 10:29:53] Bringing up interface ib0:  ERROR     : [/etc/sysconfig/network-scripts/ifup-eth] Device ib0 does not seem to be present, delaying initialization.
            openibd-disabled.log:15: [Mar 18 10:31:13] mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024) StrdSz(256) RxCqeCmprss(0)
            openibd-disabled.log:22: [Mar 18 10:31:14] OS is booting, will not run ifup on ib0
          Look:
            run: systemctl is-enabled openibd.service
          Fix now:
            do: run ifup for the interface, or restart the network service
          Fix permanently:
            do: run systemctl enable ibprov.service (or openibd.service), then reboot

            error: ifup-skipped-os-booting (confidence high, caused by openibd-disabled)
              mlnx_interface_mgr did not bring ib0 up, and the network service had already given up on it.

            error: module-loaded-late (confidence medium, caused by openibd-disabled)
              ib0 was created 80 s after the network service had looked for it, and no network service brought the netdev up.
        exit 1
    "#]].assert_eq(&shown(&here(&["--log", "openibd-disabled.log"])));
}

#[test]
fn the_good_boot_is_healthy_although_ifup_was_skipped() {
    expect![[r#"
        verdict: ready (errors: 0, warnings: 0)
        read: openibd-enabled.log: 17 lines, 1 boot, Apr 02 11:09:27 to Apr 02 11:09:43

        info: healthy (confidence high)
          InfiniBand came up.
          Evidence:
            openibd-enabled.log:17: [Apr 02 11:09:43] Bringing up interface ib0:  [  OK  ]

        info: harmless-warning (confidence high)
          1 harmless message that looks like an error: the network service brings the interface up.
          Details:
            1. the network service brings the interface up
          Evidence:
            openibd-enabled.log:16: [Apr 02 11:09:34] + log_msg 'OS is booting, will not run ifup on ib0'
        exit 0
    "#]].assert_eq(&shown(&here(&["--log", "openibd-enabled.log"])));
}

#[test]
fn the_text_is_as_wide_as_the_screen_and_coloured_where_that_is_wanted() {
    let run = |columns: &str, colour: &str| {
        let out = Command::new(env!("CARGO_BIN_EXE_ibprov"))
            .args(["check", "--color", colour, "--log"])
            .arg(log("openibd-disabled.log"))
            .env("COLUMNS", columns)
            .output()
            .expect("ibprov");
        String::from_utf8(out.stdout).expect("text")
    };
    for columns in [80, 100] {
        let text = run(&columns.to_string(), "never");
        let is_path = |line: &str| line.contains("/tests/tree/logs/");
        let long = |line: &&str| line.chars().count() > columns && !is_path(line);
        assert_eq!(text.lines().find(long), None, "{text}");
        assert!(!text.contains('\u{1b}'));
    }
    let coloured = run("80", "always");
    assert!(coloured.starts_with("\u{1b}[1m\u{1b}[31mverdict: not-ready"), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[1m  Evidence:\u{1b}[0m\n"), "{coloured:?}");
}

#[test]
fn that_a_log_has_no_times_is_said() {
    let dir = tempfile::tempdir().expect("directory");
    let said = "mlx5_core 0000:4b:00.0: probe with driver mlx5_core failed with error -5\n";
    std::fs::write(dir.path().join("log"), said).expect("file");
    let text = shown(&ibprov(&["--log", "log"], dir.path(), b""));
    assert!(text.contains("read: log: 1 line, 1 boot, without times\n"), "{text}");
}

#[test]
fn two_boots_in_one_log_are_told_apart() {
    let both = [log("openibd-disabled.log"), log("openibd-enabled.log")]
        .map(|path| std::fs::read(path).expect("log"))
        .concat();
    let dir = tempfile::tempdir().expect("directory");
    std::fs::write(dir.path().join("both"), &both).expect("file");
    let run = |args: &[&str]| ibprov(args, dir.path(), b"");
    let all = run(&["--format", "json", "--log", "both"]);
    assert_eq!(json(&all)["verdict"], "not-ready");
    let boots: Vec<_> = json(&all)["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|f| {
            format!("{}: {}", f["boot"].as_str().expect("boot"), f["code"].as_str().expect("code"))
        })
        .collect();
    assert!(boots.contains(&"Mar 18 10:29:41: openibd-disabled".to_owned()), "{boots:?}");
    assert!(boots.contains(&"Apr 02 11:09:27: healthy".to_owned()), "{boots:?}");
    let last = run(&["--format", "json", "--boot", "0", "--log", "both"]);
    assert_eq!((json(&last)["verdict"].as_str(), last.status.code()), (Some("ready"), Some(0)));
    let first = run(&["--format", "json", "--boot", "-1", "--log", "both"]);
    assert_eq!((codes(&first)[0].as_str(), first.status.code()), ("openibd-disabled", Some(1)));
    assert_eq!(run(&["--boot", "-7", "--log", "both"]).status.code(), Some(2));
}

#[test]
fn the_form_of_the_log_does_not_matter() {
    let text = std::fs::read_to_string(log("openibd-disabled.log")).expect("log");
    let dir = tempfile::tempdir().expect("directory");
    let seconds = |line: &str| {
        let clock = line.get(7..15)?;
        let mut parts = clock.split(':').map(|p| p.parse::<u64>().ok());
        Some(parts.next()?? * 3600 + parts.next()?? * 60 + parts.next()??)
    };
    let mut forms: Vec<(&str, String)> = vec![("syslog", text.clone())];
    forms.push(("crlf", text.replace('\n', "\r\n")));
    // mlnx_interface_mgr tells whose netdev it is.
    forms.push(("a name of the administrator's own", text.replace("ib0", "storage0")));
    forms.push(("quoted", text.lines().map(|l| format!("> {l}\n")).collect()));
    forms.push(("colour", text.lines().map(|l| format!("\u{1b}[0;31m{l}\u{1b}[0m\n")).collect()));
    let lines = || text.lines().filter(|l| l.starts_with("Mar 18"));
    forms.push((
        "iso",
        lines().map(|l| format!("2024-03-18T{}.000000+08:00{}\n", &l[7..15], &l[15..])).collect(),
    ));
    let entry = |l: &str| {
        let usec = seconds(l).expect("time") * 1_000_000 + 1_700_000_000_000_000;
        let (program, message) =
            l[16..].split_once(' ').expect("host").1.split_once(": ").expect("program");
        let program = program.split('[').next().expect("program").to_owned();
        (usec, program, message.to_owned())
    };
    forms.push((
        "json",
        lines()
            .map(|l| {
                let (usec, program, message) = entry(l);
                let value = serde_json::json!({"__REALTIME_TIMESTAMP": usec.to_string(), "_BOOT_ID": "b0", "SYSLOG_IDENTIFIER": program, "MESSAGE": message});
                format!("{value}\n")
            })
            .collect(),
    ));
    forms.push((
        "export",
        lines()
            .map(|l| {
                let (usec, program, message) = entry(l);
                format!("__CURSOR=c\n__REALTIME_TIMESTAMP={usec}\n_BOOT_ID=b0\nSYSLOG_IDENTIFIER={program}\nMESSAGE={message}\n\n")
            })
            .collect(),
    ));
    for (name, content) in forms {
        std::fs::write(dir.path().join(name), &content).expect("file");
        let output = ibprov(&["--format", "json", "--log", name], dir.path(), b"");
        assert_eq!(codes(&output)[0], "openibd-disabled", "{name}");
        // By standard input too.
        let output = ibprov(&["--format", "json", "--log", "-"], dir.path(), content.as_bytes());
        assert_eq!(codes(&output)[0], "openibd-disabled", "{name} by standard input");
    }
}

/// A node on `day`, whose cable is unplugged at last if it is `lost`.
fn node(day: u8, lost: bool) -> String {
    let mut texts = vec![
        "kernel: Linux version 6.1.0-13-amd64 (x)",
        "kernel: mlx5_core 0000:4b:00.0: firmware version: 20.31.1014",
        "kernel: mlx5_core 0000:4b:00.0 ibp75s0: renamed from ib0",
        "kernel: IPv6: ADDRCONF(NETDEV_CHANGE): ibp75s0: link becomes ready",
    ];
    texts.extend(lost.then_some("systemd-networkd[9]: ibp75s0: Lost carrier"));
    let lines = texts.into_iter().zip(5..);
    lines.map(|(text, second)| format!("Jan {day:02} 00:00:{second:02} n9 {text}\n")).collect()
}

#[test]
fn the_newest_boot_of_rotated_files_is_boot_0() {
    for (lost, code, exit) in [(20, "link-down-cable", 1), (5, "healthy", 0)] {
        let dir = tempfile::tempdir().expect("directory");
        let logs = dir.path().join("nodes/n9/var/log");
        std::fs::create_dir_all(&logs).expect("directory");
        for (name, day) in [("messages.1", 5), ("messages", 20)] {
            std::fs::write(logs.join(name), node(day, day == lost)).expect("file");
        }
        for source in [["--log", "nodes/n9"], ["--root", "nodes/n9"]] {
            let told = |boot| {
                let args = [["--format", "json"], ["--boot", boot], source].concat();
                let output = ibprov(&args, dir.path(), b"");
                (codes(&output)[0].clone(), output.status.code())
            };
            assert_eq!(told("0"), (code.to_owned(), Some(exit)), "{source:?}");
            assert_ne!(told("-1").0, code, "{source:?}");
        }
    }
}

#[test]
fn archives_and_mounted_systems_are_read() {
    let dir = tempfile::tempdir().expect("directory");
    let root = dir.path().join("root/var/log");
    std::fs::create_dir_all(&root).expect("directory");
    std::fs::copy(log("openibd-disabled.log"), root.join("messages")).expect("file");
    let output = ibprov(&["--format", "json", "--root", "root"], dir.path(), b"");
    assert_eq!(codes(&output)[0], "openibd-disabled");
    let tar =
        Command::new("tar").args(["-czf", "r.tar.gz", "root"]).current_dir(dir.path()).status();
    assert!(tar.expect("tar").success());
    let output = ibprov(&["--format", "json", "--log", "r.tar.gz"], dir.path(), b"");
    assert_eq!(codes(&output)[0], "openibd-disabled");
    let source = json(&output)["findings"][0]["evidence"][0]["source"].clone();
    assert_eq!(source, "r.tar.gz:root/var/log/messages");
}

#[test]
fn what_cannot_be_looked_at_is_exit_2() {
    expect![[r#"
        error: nothing could be read: none.log: ENOENT: No such file or directory
        exit 2
    "#]]
    .assert_eq(&shown(&here(&["--log", "none.log"])));
    expect![[r#"
        warning: cannot read all input: gone.log: ENOENT: No such file or directory
        error: nothing could be read: none.log: ENOENT: No such file or directory
        exit 2
    "#]]
    .assert_eq(&shown(&here(&["--log", "none.log", "gone.log"])));
    let dir = tempfile::tempdir().expect("directory");
    std::fs::create_dir(dir.path().join("root")).expect("directory");
    let told = shown(&ibprov(&["--root", "root"], dir.path(), b""));
    let why = "nothing could be read: the tree has no log, and /sys/bus/pci/devices does not exist in it\nexit 2\n";
    assert!(told.ends_with(why), "{told}");
    assert_eq!(here(&["--explain", "no-such-code"]).status.code(), Some(2));
}

#[test]
fn json_is_as_promised() {
    let output = here(&["--format", "json", "--log", "openibd-disabled.log"]);
    let value = json(&output);
    assert_eq!((&value["schema"], &value["report"]), (&1.into(), &"check".into()));
    for finding in value["findings"].as_array().expect("findings") {
        for key in ["code", "severity", "confidence", "message"] {
            assert!(finding[key].is_string(), "{key} of {finding}");
        }
        assert!(finding["advice"].is_array(), "{finding}");
        for key in ["chain", "evidence"] {
            // What it has none of it does not name.
            let list = finding.get(key).map(|list| list.as_array().expect(key));
            assert!(list.is_none_or(|list| !list.is_empty()), "{key} of {finding}");
        }
        for step in finding["advice"].as_array().expect("advice") {
            let purpose = step["purpose"].as_str().expect("purpose");
            assert!(["look", "now", "permanent"].contains(&purpose), "{step}");
            assert!(step["do"].is_string() || step["run"].is_string(), "{step}");
        }
        for quote in finding["evidence"].as_array().into_iter().flatten() {
            assert!(
                quote["source"].is_string() && (quote["line"].is_u64() || quote["line"].is_null()),
                "{quote}"
            );
            assert!(quote["time"].is_string() && quote["text"].is_string(), "{quote}");
        }
    }
}

/// The codes of findings by topic.
const TOPICS: &[(&str, &str)] = &[
    (
        "ibprov and its configuration",
        "\
         bluefield-system boot-failed boot-in-progress configuration-invalid host-unreadable \
         ibprov-disabled ibprov-masked ibprov-not-wanted ibprov-switched-off interrupted \
         not-as-expected not-begun not-converted not-installed not-read notice \
         one-host-only port-not-ready report-lost run-full step-failed unit-failed usage",
    ),
    (
        "The order of the boot",
        "\
         next-boot-at-risk next-boot-not-whole ordering-cycle ordering-missing \
         rdma-service-failed required-unit-missing start-wait-deadlock \
         wait-online-timeout",
    ),
    (
        "openibd and mlnx_interface_mgr",
        "\
         changed-since ifup-skipped-os-booting mlnx-interface-mgr-armed needs-decision \
         openibd-alias-broken openibd-disabled openibd-drop-in openibd-failed \
         openibd-skips-inbox-modules openibd-want-left rc-local-not-run two-agents",
    ),
    (
        "Kernel modules",
        "\
         initrd-names-differ initrd-without-fabric initrd-without-module module-denied \
         module-init-slow module-is-a-dummy module-load-interrupted module-load-order \
         module-loaded-late module-missing-for-kernel module-missing-in-initrd \
         module-not-loaded module-parameter module-signature-refused \
         module-symbol-mismatch module-wrong-driver",
    ),
    (
        "Adapter, firmware, driver",
        "\
         adapter-silent driver-regression driver-unload-under-remote-root \
         firmware-below-minimum firmware-fatal firmware-not-as-configured \
         firmware-not-set firmware-reset-pending firmware-too-old firmware-unreadable \
         fw-init-timeout hca-held pci-bar-unassigned pcie-below-minimum \
         pcie-link-reduced rdma-name-differs rdma-other-namer udev-timeout",
    ),
    (
        "Port, subnet manager, partitions",
        "\
         device-node-missing link-down-cable no-subnet-manager no-such-gid no-such-port node-description \
         opensm-misconfigured opensm-other-port opensm-other-unit \
         opensm-partitions-rejected opensm-skipped opensm-virt-disabled pkey-missing \
         port-absent port-degraded port-not-active port-not-judged port-not-online \
         selinux-denies-subnet subnet-manager-not-enabled subnet-manager-not-running \
         umad-zero-guid",
    ),
    (
        "VFs and virtual machines",
        "\
         autostart-guest-on-vf guest-failed guest-waits iommu-group-shared iommu-off \
         sriov-mmio sriov-not-enabled-fw sriov-not-exposed-kernel sriov-vf-unreachable \
         too-many-vfs vf-deferred vf-guid-duplicate vf-guid-zero vf-not-as-planned \
         vf-not-probed vf-orphaned vf-other-writer vf-plan-blocked vf-policy-down \
         vf-port-not-active vf-probe-failed vf-setting-dropped vf-setting-refused \
         vm-before-vf",
    ),
    (
        "GUIDs and names of VFs, and PFs of the plan",
        "\
         does-not-fit drift drift-other-card guid-all-ones guid-group-bit \
         guid-link-local-twin guid-missing guid-not-local guid-of-hardware guid-zero \
         host-name-transient name-of-kernel name-twice name-unfit no-host-number \
         no-pf-guid offset-overflow pf-absent pf-ambiguous pf-ethernet pf-is-vf \
         pf-name-unknown pf-no-hca pf-nvswitch pf-twice pins-of-another-host \
         pf-not-ready pins-undecided pins-unreadable",
    ),
    (
        "Interfaces and network services",
        "\
         ifcfg-mismatch interface-not-configured interface-not-online interface-not-up \
         ipoib-parent-down netdev-admin-down netdev-late netdev-renamed netns-mode \
         network-stack-bug rtnl-held rxe-not-ready setting-contradicted setting-deferred \
         setting-refused",
    ),
    (
        "Mounts and services on the fabric",
        "\
         consumer-before-address mount-before-ipoib mount-before-network",
    ),
    (
        "No fault, or none that is known",
        "\
         harmless-warning healthy input-left-out not-infiniband unexplained unknown",
    ),
];

/// docs/diagnoses.md lists the pages of docs/diagnoses by topic. `UPDATE_EXPECT=1` writes it
/// again.
#[test]
fn the_documentation_lists_every_diagnosis() {
    let list = here(&["--explain"]);
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let known = list.lines().filter_map(|line| line.split_once(' '));
    let mut known: BTreeMap<&str, &str> = known.map(|(c, told)| (c, told.trim_start())).collect();
    let mut page = "# Codes of findings\n\nEach finding has a code, and each code a page, which `ibprov check --explain CODE` prints\ntoo. From a message to its diagnosis: [faq.md](faq.md#from-a-message-to-its-diagnosis).\n".to_owned();
    for (topic, codes) in TOPICS {
        page.push_str(&format!("\n## {topic}\n\n"));
        for code in codes.split(' ') {
            let meaning = known.remove(code).unwrap_or_else(|| panic!("{code} is no code"));
            page.push_str(&format!("- [{code}](diagnoses/{code}.md): {meaning}\n"));
        }
    }
    assert!(known.is_empty(), "codes without a topic: {known:?}");
    expect_test::expect_file!["../../docs/diagnoses.md"].assert_eq(&page);
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/diagnoses");
    let pages = fs::read_dir(pages).expect("docs/diagnoses").count();
    assert_eq!(pages, page.matches("\n- [").count(), "a page of no code");
    let told = here(&["--explain", "port-absent"]);
    assert_eq!(told.stdout, include_bytes!("../../docs/diagnoses/port-absent.md"));
}

/// Logs that people have published, each with what was wrong.
pub const PUBLIC: &[(&str, &str)] = &[
    ("001-ipoib-intf-alloc-failed-cmd-entry.log", "driver-regression"),
    ("002-mlx5-cmd-entry-warning-but-ipoib-ok.log", "harmless-warning"),
    ("003-ipoib-wq-eintr-initrd-switch-root.log", "module-load-interrupted"),
    ("004-connectx2-no-ib-device-after-5.14.log", "driver-regression"),
    ("005-mlx5-vf-probe-fails-6.8-rc1.log", "vf-probe-failed"),
    ("006-mlx5-eq-create-failed-probe.log", "driver-regression"),
    ("007-ipoib-child-up-parent-down.log", "ipoib-parent-down"),
    ("008-ib-umad-ipoib-load-order-pkey.log", "module-load-order"),
    ("009-qib-sysfs-duplicate-no-ports.log", "driver-regression"),
    ("010-qib-networkmanager-ipoib-oops.log", "driver-regression"),
    ("011-mlx5-reload-under-iscsi-root.log", "driver-unload-under-remote-root"),
    ("012-hfi1-5.10rc1-dma-warning.log", "driver-regression"),
    ("013-mlx5-boot-hang-affinity-oops.log", "driver-regression"),
    ("014-irdma-netns-hang-6.1.2.log", "driver-regression"),
    ("015-mthca-oops-after-rename.log", "driver-regression"),
    ("016-ifcfg-hwaddr-mismatch-network-failed.log", "ifcfg-mismatch"),
    ("017-hyperv-vf-removed-while-probing.log", "fw-init-timeout"),
    ("018-hfi1-opa-boot-link-training.log", "healthy"),
    ("019-vf-intremap-blocked-create-eq.log", "vf-probe-failed"),
    ("020-mlx5-failed-alloc-irqs.log", "driver-regression"),
    ("021-sriov-numvfs-missing-efi-mmio.log", "sriov-not-exposed-kernel"),
    ("022-rk3399-vfio-no-iommu-and-vf-type7f.log", "iommu-off"),
    ("023-mixed-hca-ibs4f0-renamed-ready.log", "healthy"),
    ("058-rdma-ndd-missing-in-initramfs.log", "rdma-service-failed"),
    ("059-ibacm-no-ib-umad.log", "module-not-loaded"),
    ("060-dracut-missing-xprtrdma.log", "module-missing-in-initrd"),
    ("061-umad-appeared-twice.log", "harmless-warning"),
    ("070-ipoib-open-oops-5.4.21-t630.log", "driver-regression"),
    ("085-iwpmd-fails-ipv6-disabled.log", "rdma-service-failed"),
];

fn public(name: &str) -> String {
    std::fs::read_to_string(log("public").join(name)).expect("log")
}

#[test]
fn every_public_log_has_its_diagnosis_first_and_the_good_ones_are_healthy() {
    for (name, code) in PUBLIC {
        let output = here(&["--format", "json", "--log", &format!("public/{name}")]);
        assert_eq!(codes(&output).first().map(String::as_str), Some(*code), "{name}");
        let verdict = json(&output)["verdict"].as_str().expect("verdict").to_owned();
        let expected = match *code {
            "healthy" => ("ready", 0),
            // It proves nothing of the rest.
            "harmless-warning" => ("unknown", 0),
            _ if verdict == "exceptions" => ("exceptions", 1),
            _ => ("not-ready", 1),
        };
        assert_eq!(output.status.code(), Some(expected.1), "{name}: {verdict}");
        assert!(expected.0.is_empty() || expected.0 == verdict, "{name}: {verdict}");
    }
}

/// The verdict on `log`, its first code, and its last word on each object, as `last-words.txt`
/// has them.
fn last_words(log: &str) -> (&'static str, &'static str, String) {
    use ibprov::check::evidence::Intake;
    use ibprov::check::evidence::fold::What;
    use ibprov::check::{diagnose, rules};
    use ibprov::graph::consumers::uses_fabric_by_name;
    let mut intake = Intake::new(rules::needles());
    intake.read("log", &mut log.as_bytes());
    let evidence = intake.finish();
    let diagnosis = diagnose(&evidence);
    let first = diagnosis.findings.first().map_or("-", |finding| finding.code.name());
    let mut words = String::new();
    let is_healthy = diagnosis.findings.iter().any(|finding| finding.code.name() == "healthy");
    let bad = evidence.boots.iter().flat_map(|boot| boot.fold().bad()).next();
    assert!(!is_healthy || bad.is_none(), "{bad:?}, and healthy:\n{log}");
    for object in evidence.boots.iter().flat_map(|boot| boot.fold().objects()) {
        if object.what == What::Unit && !uses_fabric_by_name(&object.name) {
            continue;
        }
        let ever = object.ever.map(|rung| format!(", ever {rung}")).unwrap_or_default();
        let (line, state) = (object.last.quote.line, object.last.state);
        words.push_str(&format!("> {} {}: {state} at {line}{ever}\n", object.what, object.title()));
    }
    (diagnosis.verdict.word(), first, words)
}

#[test]
fn the_last_word_of_a_log_on_each_object_counts() {
    let table = std::fs::read_to_string(log("last-words.txt")).expect("table");
    let mut wrong = String::new();
    for case in table.split("\n=== ").skip(1) {
        let (name, case) = case.split_once('\n').expect("name");
        let (words, lines): (Vec<&str>, Vec<&str>) =
            case.lines().partition(|line| line.starts_with("> "));
        let text = match lines.iter().all(|line| line.is_empty()) {
            true => std::fs::read_to_string(log(name)).expect(name),
            false => lines.join("\n"),
        };
        let (verdict, first, objects) = last_words(&text);
        // Which code is the first is for others to test where a case does not name it.
        let head = match words.first().expect(name).split(' ').count() {
            2 => verdict.to_owned(),
            _ => format!("{verdict} {first}"),
        };
        let found = format!("> {head}\n{objects}");
        if found.trim_end() != words.join("\n") {
            wrong.push_str(&format!("=== {name}\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "what check finds of these is another:\n{wrong}");
}

#[test]
fn no_log_with_a_failed_unit_of_ours_is_healthy() {
    let dir = tempfile::tempdir().expect("directory");
    let own = [
        "Nov 30 01:25:59 n9 systemd[1]: ibprov.service: Failed with result 'exit-code'.",
        "Nov 30 01:25:59 n9 systemd[1]: Failed to start Bring up InfiniBand ports.",
        "Nov 30 01:25:59 n9 systemd[1]: ibprov-guests.service: Failed with result 'exit-code'.",
        "Nov 30 01:25:59 n9 ibprov[44]: boot incomplete after 1.1 s: PF 0000:01:00.0: 0 of 2 VFs as planned (sriov_numvfs: ENOSPC); 1 of 1 expected ports ready",
    ];
    let good = PUBLIC.iter().filter(|(_, code)| *code == "healthy").map(|(name, _)| public(name));
    for good in good.chain([std::fs::read_to_string(log("openibd-enabled.log")).expect("log")]) {
        for own in own {
            let log = format!("{}\n{own}\n", good.trim_end());
            let output = ibprov(&["--format", "json", "--log", "-"], dir.path(), log.as_bytes());
            assert_eq!(json(&output)["verdict"], "not-ready", "{log}");
            assert_eq!(codes(&output)[0], "not-as-expected", "{log}");
            assert_eq!(output.status.code(), Some(1), "{log}");
        }
    }
}

#[test]
fn an_error_that_nothing_explains_is_quoted_and_makes_an_exception() {
    let dir = tempfile::tempdir().expect("directory");
    let lines = "kern  :err   : [    8.0] mlx5_core 0000:06:00.0: the flux is out of tune\n\
        kern  :info  : [    9.0] hfi1 0000:05:00.0: hfi1_0: logical state changed to PORT_ACTIVE (0x4)\n";
    let journal = r#"{"_BOOT_ID":"b","__REALTIME_TIMESTAMP":"1577836801000000","MESSAGE":"mlx5_core 0000:05:00.0: the flux is out of tune","SYSLOG_IDENTIFIER":"kernel","PRIORITY":"3"}
{"_BOOT_ID":"b","__REALTIME_TIMESTAMP":"1577836802000000","MESSAGE":"IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready","SYSLOG_IDENTIFIER":"kernel","PRIORITY":"6"}
"#;
    for log in [lines, journal] {
        let run = |more: &[&str]| {
            ibprov(
                &[&["--format", "json", "--log", "-"], more].concat(),
                dir.path(),
                log.as_bytes(),
            )
        };
        let output = run(&[]);
        assert_eq!(json(&output)["verdict"], "unknown", "{log}");
        assert_eq!(output.status.code(), Some(1), "{log}");
        let text = json(&output)["findings"][0]["evidence"][0]["text"].to_string();
        assert!(text.contains("out of tune"), "{text}");
        assert_eq!(run(&["--strict"]).status.code(), Some(1), "{log}");
    }
}

#[test]
fn a_log_that_does_not_mention_infiniband_proves_nothing() {
    let disk = "Jan 02 10:00:09 n9 kernel: ata1.00: failed command: READ DMA\n";
    let own = "Jan 02 10:00:05 n9 ibprov[400]: this host has no InfiniBand: no PCI function needs it and none is configured; nothing done\n";
    let failed = "Jan 02 10:00:09 n9 store-client[77]: OFED_INCLUDE_PATH = [/usr/src/ofa_kernel/default/include]\nJan 02 10:00:09 n9 systemd[1]: store-client.service: Failed with result 'exit-code'.\n";
    for (text, verdict, first) in [
        (disk.to_owned(), "unknown", "not-infiniband"),
        (format!("{own}{disk}"), "ready", "not-infiniband"),
        (format!("{disk}{failed}"), "unknown", "unexplained"),
    ] {
        let dir = tempfile::tempdir().expect("directory");
        let output = ibprov(&["--format", "json", "--log", "-"], dir.path(), text.as_bytes());
        assert_eq!(json(&output)["verdict"], verdict, "{text}: {}", shown(&output));
        assert_eq!(codes(&output).first().map(String::as_str), Some(first), "{text}");
        assert_eq!(output.status.code(), Some((first == "unexplained").into()), "{text}");
    }
}

#[test]
fn what_no_diagnosis_explains_is_known() {
    use ibprov::check::evidence::Intake;
    use ibprov::check::ledger::{Book, Ledger};
    use ibprov::check::{rank, rules};
    let mut unexplained = String::new();
    let (mut all, mut left) = (0, 0);
    for (name, _) in PUBLIC {
        let mut intake = Intake::new(rules::needles());
        intake.read(name, &mut public(name).as_bytes());
        for boot in intake.finish().boots {
            let book = Book::of(&boot);
            let findings = rank::judge(&book);
            let ledger = Ledger::of(&book, &findings);
            all += ledger.explained + ledger.harmless + ledger.over + ledger.failures.len();
            for failure in &ledger.failures {
                left += 1;
                unexplained.push_str(&format!("{name}: {}\n", failure.event.text.trim()));
            }
        }
    }
    println!("{} of {all} alarming lines are explained; these are not:\n{unexplained}", all - left);
    assert!(all > 20 && left * 10 <= all, "{left} of {all}:\n{unexplained}");
}

/// Files as sosreport lays them, of the node whose openibd is disabled.
fn sosreport() -> Vec<(&'static str, Vec<u8>)> {
    let messages = std::fs::read(log("openibd-disabled.log")).expect("log");
    let status = "● openibd.service - openibd - configure Mellanox devices\n   \
        Loaded: loaded (/usr/lib/systemd/system/openibd.service; disabled; vendor preset: \
        disabled)\n   Active: inactive (dead)\n";
    let ibstat = "CA 'mlx5_0'\n\tCA type: MT4123\n\tNumber of ports: 1\n\tNode GUID: \
        0x0c42a103007b1c5a\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\t\
        Base lid: 7\n\t\tSM lid: 1\n\t\tLink layer: InfiniBand\n";
    let lsmod = "Module                  Size  Used by\nib_ipoib              131072  0\n\
        mlx5_ib               397312  0\nmlx5_core            1495040  1 mlx5_ib\n";
    let text = |s: &str| s.as_bytes().to_vec();
    vec![
        ("date", text("Mon Mar 18 10:40:00 UTC 2024\n")),
        ("var/log/messages", messages),
        ("var/log/wtmp", b"\x07\0\0\0pts/0\0\0".to_vec()),
        ("sos_commands/systemd/systemctl_status_--all", text(status)),
        ("sos_commands/infiniband/ibstat", text(ibstat)),
        ("sos_commands/kernel/lsmod", text(lsmod)),
        ("sos_commands/kernel/uname_-a", text("Linux node-9 4.18.0-372.9.1.el8.x86_64\n")),
        ("sos_logs/sos.log", text("2024-03-18 ERROR: ib0: no such device\n")),
        ("sos_reports/sos.html", text("<p>Device ib1 does not seem to be present</p>\n")),
        ("etc/sysconfig/network-scripts/ifcfg-ib0", text("DEVICE=ib0\nONBOOT=yes\n")),
        ("proc/cmdline", text("quiet\n")),
    ]
}

#[test]
fn a_sosreport_is_read_as_directory_and_packed_in_every_way() {
    let dir = tempfile::tempdir().expect("directory");
    let name = "sosreport-node-9-2024-03-18-abcdefg";
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in sosreport() {
        let at = dir.path().join(name).join(path);
        std::fs::create_dir_all(at.parent().expect("parent")).expect("directory");
        std::fs::write(&at, &content).expect("file");
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, format!("{name}/{path}"), &content[..]).expect("entry");
    }
    let tar = tar.into_inner().expect("archive");
    std::fs::write(dir.path().join("sos.tar"), &tar).expect("file");
    let run = |what: &str| ibprov(&["--format", "json", "--log", what], dir.path(), b"");
    let unpacked = run(name);
    let told = codes(&unpacked);
    assert_eq!(told[0], "openibd-disabled", "{told:?}");
    assert_eq!(String::from_utf8_lossy(&unpacked.stderr), "");
    assert_eq!(json(&unpacked)["findings"][0]["confidence"], "high", "its status is read too");
    assert!(!String::from_utf8_lossy(&unpacked.stdout).contains("ib1"), "sos's own pages are none");
    let mut forms = vec!["sos.tar"];
    for (program, packed) in [
        ("gzip", "sos.tar.gz"),
        ("xz", "sos.tar.xz"),
        ("bzip2", "sos.tar.bz2"),
        ("zstd", "sos.tar.zst"),
    ] {
        let output = Command::new(program)
            .args(["-q", "-1", "-c", "sos.tar"])
            .current_dir(dir.path())
            .output()
            .unwrap_or_else(|e| panic!("{program}, which `make test-tree` installs: {e}"));
        assert!(output.status.success(), "{program}");
        std::fs::write(dir.path().join(packed), output.stdout).expect("file");
        forms.push(packed);
    }
    for form in forms {
        let packed = run(form);
        assert_eq!(
            (codes(&packed), String::from_utf8_lossy(&packed.stderr).as_ref()),
            (told.clone(), ""),
            "{form}"
        );
    }

    // A damaged one says so; what could be read of it counts.
    let mut cut = std::fs::read(dir.path().join("sos.tar.xz")).expect("file");
    cut.truncate(cut.len() - 40);
    std::fs::write(dir.path().join("cut.tar.xz"), cut).expect("file");
    let said = String::from_utf8_lossy(&run("cut.tar.xz").stderr).into_owned();
    assert!(said.contains("cut.tar.xz is cut off or damaged, or needs more memory than ibprov allows: xz: exit status: 1"), "{said}");
}

#[test]
fn a_service_that_uses_an_address_of_the_configured_subnet_is_found_below_a_root() {
    let host = crate::host::Host::healthy();
    let unit = |name: &str, text: &str| {
        host.file(&format!("usr/lib/systemd/system/{name}"), text);
    };
    unit(
        "ibprov.service",
        "[Unit]\nDefaultDependencies=no\nBefore=network-pre.target\n[Service]\nType=oneshot\nExecStart=/usr/sbin/ibprov boot\n",
    );
    unit("sysinit.target", "[Unit]\nWants=ibprov.service\n");
    unit("multi-user.target", "[Unit]\nRequires=sysinit.target\nWants=site.service\n");
    unit(
        "site.service",
        "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/bin/site --bind 10.9.8.1:77\n",
    );
    host.link("etc/systemd/system/default.target", "/usr/lib/systemd/system/multi-user.target");
    let is_found = |network: &str| {
        let stanza = format!("auto ib0\niface ib0 inet static\n address {network}\n");
        host.file("etc/network/interfaces", &stanza);
        let report = json(&host.ibprov(&["check", "--format", "json"]));
        let findings = report["findings"].as_array().expect("findings").iter();
        let mut units = findings.filter(|f| f["code"] == "ordering-missing").map(|f| &f["object"]);
        units.any(|unit| unit == "site.service")
    };
    assert!(is_found("10.9.8.1/24"));
    assert!(!is_found("10.1.8.1/24"));
}

#[test]
fn the_first_finding_is_the_headline_of_a_picture_of_any_fault() {
    let mut faults = 0;
    for log in fs::read_dir(log("public")).expect("logs") {
        let log = log.expect("log").path();
        let log = log.to_str().expect("UTF-8");
        let report = ibprov(&["--log", log, "--format", "json"], Path::new("/"), b"");
        let picture = ibprov(&["--log", log, "--svg", "-"], Path::new("/"), b"");
        assert_eq!(picture.status, report.status, "{log}");
        let picture = String::from_utf8(picture.stdout).expect("UTF-8");
        assert!(
            picture.starts_with("<?xml") && picture.trim_end().ends_with("</svg>"),
            "{picture}"
        );
        let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
        let findings = report["findings"].as_array().expect("findings");
        let wrong = findings.iter().any(|finding| finding["severity"] != "info");
        assert_eq!(picture.contains("\"head bad\""), wrong, "{log}: {findings:#?}");
        faults += usize::from(wrong);
    }
    assert!(faults > 5, "{faults}");
}
