//! A tree in which every text is hostile: no verb prints it as it is.

use std::process::Output;

use crate::host::{Host, PF, PortSpec};

/// It clears a screen, and turns and hides text.
const TEXT: &str = "\u{1b}[2J\u{202e}x\u{200b}\u{9b}8m\u{feff}x";

/// The same as the name of a file.
const NAME: &str = "\u{1b}[2J\u{202e}x\u{200b}";

/// What would be taken for a line of ours.
const FORGED: &str = "forged: ready";

fn hostile_host() -> Host {
    let host = Host::healthy();
    let rdma = format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0");
    for file in
        ["node_desc", "fw_ver", "board_id", "hca_type", "ports/1/rate", "ports/1/phys_state"]
    {
        host.file(&format!("{rdma}/{file}"), &format!("{TEXT}\n{FORGED} {TEXT}"));
    }
    for file in ["mode", "operstate", "umcast", "ifalias"] {
        host.file(&format!("sys/class/net/ib0/{file}"), TEXT);
    }
    host.file(&format!("sys/class/net/{NAME}/type"), "32\n");
    host.file(&format!("sys/class/infiniband/{NAME}/node_guid"), TEXT);
    host.file(&format!("sys/bus/pci/devices/{NAME}/class"), TEXT);
    host.file("etc/hostname", TEXT);
    host.file(
        "proc/cmdline",
        &format!("ibprov={NAME} ibprov.timeout={NAME} systemd.hostname={NAME}"),
    );
    host.file("proc/modules", &format!("{TEXT} 1 0 - Live 0\n"));
    host.file(
        &format!("etc/modprobe.d/{NAME}.conf"),
        &format!(
            "blacklist mlx5_core\noptions ib_ipoib send_queue_size={NAME}\ninstall ib_umad {NAME}\n"
        ),
    );
    let unit = format!(
        "[Unit]\nAfter=c{TEXT}.service\nBefore=c.service sysinit.target\nRequires=openibd.service\n[Service]\nType=oneshot\nExecStart=/etc/init.d/openibd {TEXT}\nExecStart=/bin/x mlx5_0 ib0\n"
    );
    for name in [format!("a{NAME}.service"), "c.service".to_owned()] {
        host.file(&format!("etc/systemd/system/{name}"), &unit);
        host.link(
            &format!("etc/systemd/system/sysinit.target.wants/{name}"),
            &format!("../{name}"),
        );
    }
    host.file(&format!("etc/systemd/system/openibd.service.d/{NAME}.conf"), "[Unit]\n");
    host.file("etc/fstab", "mgs@o2ib:/fs\u{1b}[2J\u{202e} /mnt/\u{1b}[2J lustre _netdev,x-systemd.requires=openibd.service 0 0\n");
    host.file(
        "etc/rc.local",
        "#!/bin/sh\nmodprobe ib_ipoib \u{1b}[2J\u{202e}\u{200b}\nmodprobe ib_umad \r\u{9b}8m\n",
    );
    host.file(&format!("etc/cron.d/{NAME}"), "@reboot modprobe ib_umad\n");
    host.file(
        "etc/sysconfig/network-scripts/ifcfg-ib0",
        "DEVICE=ib0\nTYPE=InfiniBand\nCONNECTED_MODE=\u{1b}[2J\u{202e}\nMTU=\u{1b}[2J\n",
    );
    host.file(
        &format!("etc/sysconfig/network-scripts/ifcfg-{NAME}"),
        "DEVICE=ib0\nTYPE=InfiniBand\nMTU=2044\n",
    );
    host.file("etc/network/interfaces", &format!("auto ib0\niface ib0 inet static\n  address 10.0.0.1{NAME}\n  mode \u{1b}[2J\n  pre-up \u{202e}{NAME}\nsource {NAME}\n"));
    host.file(
        &format!("etc/NetworkManager/system-connections/{NAME}.nmconnection"),
        "[connection]\nid=\u{202e}\ntype=\u{1b}[2J\u{202e}\ninterface-name=ib0\n",
    );
    host.file(
        &format!("etc/systemd/network/{NAME}.network"),
        "[Match]\nName=ib0\n[Network]\nAddress=10.0.0.1/\u{202e}\n",
    );
    host.file(
        "etc/infiniband/openib.conf",
        "ONBOOT=\u{1b}[2J\nIPOIB_MTU=\u{202e}\nX\u{202e}=1\nSET_IPOIB_CM=\u{1b}\n",
    );
    host.file(&format!("var/log/{NAME}.log"), &format!("Nov 1 00:00:00 n kernel: mlx5_core 0000:01:00.0: Port module event[error]: module 0, Cable error, {NAME}\nNov 1 00:00:01 n kernel: mlx5_core 0000:01:00.0: mlx5_function_setup: {TEXT} failed\n"));
    let json = |text: &str| serde_json::to_string(text).expect("JSON");
    host.file("run/ibprov/boot.json", &format!("{{\"schema\":1,\"report\":\"boot\",\"verdict\":\"not-ready\",\"exit_code\":3,\"findings\":[{{\"code\":{0},\"severity\":\"error\",\"object\":{0},\"message\":{0},\"advice\":[]}}]}}", json(TEXT)));
    host.file("run/ibprov/ports/2.json", &json(TEXT));
    host.file("run/ibprov/guests.json", &json(TEXT));
    host.file(&format!("run/ibprov/pf/{NAME}.json"), "{}");
    host.file("etc/ibprov/guid-pins.toml", "schema = 1\nhost = \"\\u001b[2J\\u202e\"\n[[pf]]\n");
    host.file(&format!("etc/ibprov/ibprov.d/{NAME}"), "");
    for (file, text) in [("comm", TEXT), ("cmdline", TEXT), ("stat", TEXT)] {
        host.file(&format!("proc/7/{file}"), text);
    }
    host.link("proc/7/fd/3", "/dev/infiniband/uverbs0");
    host
}

fn is_hostile(c: char) -> bool {
    let invisible = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    (c.is_control() && c != '\n' && c != '\t') || invisible
}

fn harmless(verb: &[&str], output: &Output) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(bytes).expect("UTF-8");
        let hostile: Vec<char> = text.chars().filter(|c| is_hostile(*c)).collect();
        assert!(hostile.is_empty(), "{verb:?}: {hostile:?}: {text}");
        assert!(!text.lines().any(|line| line.starts_with(FORGED)), "{verb:?}: {text}");
    }
}

#[test]
fn no_text_of_a_tree_reaches_a_terminal_as_it_is() {
    let host = hostile_host();
    let log = host.path("var/log").display().to_string();
    let verbs: [&[&str]; 23] = [
        &["status"],
        &["status", "-v", "--gids"],
        &["check"],
        &["check", "--log", &log],
        &["check", "--initrd"],
        &["plan"],
        &["plan", "--pin"],
        &["plan", "--seal"],
        &["boot", "--dry-run"],
        &["apply", "--dry-run"],
        &["iface", "ib0", "--dry-run"],
        &["iface", "ib\u{202e}0", "--dry-run"],
        &["guests", "--dry-run"],
        &["wait-online"],
        &["migrate"],
        &["consumers"],
        &["holders"],
        &["gid", "--port", "mlx5_0/1"],
        &["config", "check"],
        &["config", "show"],
        &["metrics"],
        &["import", "openib"],
        &["nonsense\u{202e}\u{1b}[2J"],
    ];
    for verb in verbs {
        harmless(verb, &host.ibprov(verb));
        let json = [verb, &["--format", "json"]].concat();
        if !verb.contains(&"metrics") {
            harmless(&json, &host.ibprov(&json));
        }
    }
    // A program gets what is there.
    let report = host.ibprov(&["status", "--format", "json"]);
    let report = String::from_utf8(report.stdout).expect("UTF-8");
    assert!(report.contains(r"\u001b[2J\u202ex\u200b\u009b8m\ufeffx\nforged: ready"), "{report}");
}

/// Names that sh would obey, or break in two.
#[test]
fn a_name_in_a_command_is_one_word_of_sh() {
    let mut host = Host::enabled();
    host.function(PF, "15b3:101b", "020700", Some("mlx5_core"));
    let port = PortSpec { netdev: Some("ib$(id)"), ..PortSpec::default() };
    host.rdma(PF, "mlx5_0", "b859:9f03:0012:a480", &[port]);
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[interface]]\nmatch.port-guid = \"b859:9f03:0012:a480\"\nname = \"rail0\"\n",
    );
    let units = "etc/systemd/system";
    host.link(&format!("{units}/default.target"), "multi-user.target");
    host.file(&format!("{units}/multi-user.target"), "[Unit]\nDescription=x\n");
    let needs =
        "[Unit]\nRequires=none.service\n[Mount]\nWhat=mgs:/a-b\nWhere=/mnt/a-b\nType=lustre\n";
    for (name, text) in [
        (r"mnt-a\x2db.mount", needs),
        ("libvirtd.service", "[Service]\nExecStart=/usr/sbin/libvirtd\n"),
    ] {
        host.file(&format!("{units}/{name}"), text);
        host.link(&format!("{units}/multi-user.target.wants/{name}"), &format!("../{name}"));
    }
    host.file(
        "etc/libvirt/qemu/autostart/vm.xml",
        "<domain><name>vm $(id) it's</name><devices><hostdev type='pci'><source><address domain='0x0000' bus='0x4b' slot='0x00' function='0x1'/></source></hostdev></devices></domain>\n",
    );
    let told = ["status", "check"].map(|verb| host.show(&[verb]));
    for command in [
        "ip link set 'ib$(id)' down && ibprov iface 'ib$(id)'\n",
        r"systemctl cat 'mnt-a\x2db.mount' | grep",
        r"virsh autostart --disable 'vm $(id) it'\''s'",
    ] {
        let line = format!("run: {command}");
        assert!(told.iter().any(|text| text.contains(&line)), "{line}: {}", told.join("\n"));
    }
}
