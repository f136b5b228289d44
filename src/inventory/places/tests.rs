use super::*;
use crate::graph::files;
use crate::host::testing::tree;
use crate::inventory::not_run;

/// `FILE[:LINE] does` of all that acts, with a `?` where it is guessed.
fn acts(files: &[(&str, &str)]) -> Vec<String> {
    let dir = tree(files, &[]);
    let root = Root::copy_at(dir.path()).expect("root");
    let found = read(&root, &files::enabled(&root));
    assert_eq!(found.problems, [""; 0]);
    let entries = found.entries.iter().filter(|e| e.does != Does::Asks && !e.is_shipped);
    let one = |e: &Entry| {
        let guess = if e.is_sure { "" } else { "?" };
        format!("{} {:?}{guess} {}", e.at(), e.does, e.objects.join(",")).trim().to_owned()
    };
    entries.map(one).collect()
}

#[test]
fn what_nothing_runs_is_told_apart() {
    let rc = ("etc/rc.local", "#!/bin/sh\nmodprobe ib_ipoib\ntrue\nifup ib0\n");
    let generators = "usr/lib/systemd/system-generators";
    let other: &str = &format!("{generators}/systemd-fstab-generator");
    let local: &str = &format!("{generators}/systemd-rc-local-generator");
    let unit = ("etc/systemd/system/rc-local.service", "");
    for (files, runs) in [
        (vec![rc], true),
        (vec![rc, (other, "")], false),
        (vec![rc, (local, "")], true),
        (vec![rc, (other, ""), unit], true),
    ] {
        let dir = tree(&files, &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let told: Vec<String> = not_run(&root).into_iter().map(|f| f.message).collect();
        assert_eq!(told.iter().any(|text| text.contains("in lines 2, 4 ")), !runs, "{told:?}");
        let found = read(&root, &files::enabled(&root));
        let when = if runs { When::AtBoot } else { When::Never };
        assert!(found.entries.iter().all(|entry| entry.when == when), "{files:?}");
        assert_eq!(found.entries.len(), 2, "{files:?}");
    }
    // One that cannot be read may have such lines.
    let dir = tree(&[("etc/rc.local/x", ""), (other, "")], &[]);
    let told = not_run(&Root::copy_at(dir.path()).expect("root"));
    assert!(told.len() == 1 && told[0].message.contains("/etc/rc.local"), "{told:?}");
}

#[test]
fn each_place_is_looked_at() {
    let vfs = "echo 4 >/sys/class/infiniband/mlx5_0/device/sriov_numvfs\n";
    let script: &str = &format!("#!/bin/sh\n{vfs}");
    let of_settings = [
        (
            "etc/sysfs.d/v.conf",
            "# class/net/ib0/device/sriov_numvfs = 2\nclass/net/ib0/device/sriov_numvfs = 4\n",
        ),
        ("etc/tmpfiles.d/v.conf", "w /sys/class/net/ib00/device/sriov_numvfs - - - - 4\n"),
        (
            "etc/systemd/network/25.link",
            "[Match]\nOriginalName=ib0\n[Link]\nSR-IOVVirtualFunctions=4\n",
        ),
        (
            "etc/netplan/10.yaml",
            "network:\n  ethernets:\n    ib0:\n      virtual-function-count: 4\n",
        ),
        ("etc/sriov-operator/x.yaml", "- pciAddress: 0000:4b:00.0\n  numVfs: 8\n"),
        (
            "etc/modprobe.d/m.conf",
            "options mlx4_core num_vfs=4\ninstall ib_ipoib /opt/x; modprobe --ignore-install ib_ipoib\nsoftdep mlx5_core post: ib_srp\ninstall ib_srp /bin/false\n",
        ),
    ];
    assert_eq!(
        acts(&of_settings),
        [
            "/etc/systemd/network/25.link:4 SetsVfs ib0",
            "/etc/netplan/10.yaml:4 SetsVfs ib0",
            "/etc/sriov-operator/x.yaml:2 SetsVfs 0000:4b:00.0",
            "/etc/sysfs.d/v.conf:2 SetsVfs ib0",
            "/etc/tmpfiles.d/v.conf:1 SetsVfs ib00",
            "/etc/modprobe.d/m.conf:1 SetsVfs",
            "/etc/modprobe.d/m.conf:2 NotUnderstood",
            "/etc/modprobe.d/m.conf:3 LoadsModules",
        ]
    );
    let of_scripts = [
        ("etc/cron.d/v", "@reboot root /opt/v\n* * * * * root modprobe ib_iser\n"),
        ("opt/v", script),
        ("etc/NetworkManager/dispatcher.d/60-v", script),
        ("etc/networkd-dispatcher/routable.d/v", script),
        ("etc/network/if-up.d/v", script),
        (
            "etc/network/interfaces",
            "iface ib0 inet static\n pre-up echo connected >/sys/class/net/ib0/mode\n post-up /opt/v\n",
        ),
        ("etc/infiniband/post-start-hook.sh", script),
        (
            "etc/rc.local",
            "cd /opt; ./v 4\nbash /opt/v\nV=/opt/v\n$V\n. /opt/v\nmodprobe ib_iser && /opt/v\ncat /opt/v\n",
        ),
    ];
    let both = "SetsVfs mlx5_0";
    assert_eq!(
        acts(&of_scripts),
        [
            format!("/etc/rc.local:1 {both}"),
            format!("/etc/rc.local:2 {both}"),
            format!("/etc/rc.local:5 {both}"),
            "/etc/rc.local:6 LoadsModules".to_owned(),
            format!("/etc/rc.local:6 {both}"),
            format!("/etc/cron.d/v:1 {both}"),
            format!("/etc/NetworkManager/dispatcher.d/60-v:2 {both}"),
            format!("/etc/networkd-dispatcher/routable.d/v:2 {both}"),
            format!("/etc/network/if-up.d/v:2 {both}"),
            format!("/etc/infiniband/post-start-hook.sh:2 {both}"),
            "/etc/network/interfaces:3 SetsVfs mlx5_0".to_owned(),
        ]
    );
}

#[test]
fn units_count_with_what_starts_them() {
    let wants = "etc/systemd/system/default.target.wants";
    let dir = tree(
        &[
            ("usr/lib/systemd/system/default.target", "[Unit]\n"),
            ("etc/systemd/system/a.timer", "[Timer]\nOnBootSec=9\n"),
            ("etc/systemd/system/a.service", "[Service]\nExecStart=/opt/v 4\n"),
            ("opt/v", "#!/bin/sh\necho $1 >/sys/class/infiniband/mlx5_0/device/sriov_numvfs\n"),
            (
                "etc/systemd/system/b.service",
                "[Service]\nEnvironmentFile=/etc/b\nExecStart=/opt/b\n",
            ),
            ("etc/b", "PF=0000:4b:00.0\n"),
            ("opt/b", "\x7fELF\0/sys/bus/pci/devices/%s/sriov_numvfs\0"),
            ("etc/systemd/system/c.service", "[Service]\nExecStart=/opt/b\n"),
        ],
        &[
            (&format!("{wants}/a.timer"), "../a.timer"),
            (&format!("{wants}/b.service"), "../b.service"),
            ("etc/systemd/system/other.target.wants/c.service", "../c.service"),
        ],
    );
    let root = Root::copy_at(dir.path()).expect("root");
    let found = Inventory::read(&root);
    let told: Vec<_> =
        found.entries.iter().map(|e| (e.to_string(), e.when, e.objects.join(","))).collect();
    let is = |name: &str, when, objects: &str| (name.to_owned(), when, objects.to_owned());
    assert_eq!(
        told,
        [
            is("a.timer", When::AtBoot, "mlx5_0"),
            is("b.service (guessed)", When::AtBoot, "0000:4b:00.0"),
            is("c.service (guessed)", When::NotByBoot, ""),
        ]
    );
    assert!(found.entries.iter().all(|e| e.does == Does::SetsVfs));
}

#[test]
fn a_rule_of_udev_counts_for_what_it_may_be_for() {
    let of = |rule: &str| {
        acts(&[
            ("etc/udev/rules.d/9.rules", rule),
            ("opt/x", "#!/bin/sh\nip link set ib0 vf 0 state auto\n"),
        ])
    };
    let is = |does: &str| vec![format!("/etc/udev/rules.d/9.rules:1 {does}")];
    assert_eq!(
        of(
            "SUBSYSTEM==\"pci\", DRIVER==\"mlx5_core\", \\\n ATTR{sriov_totalvfs}!=\"0\", ATTR{sriov_numvfs}=\"2\"\n"
        ),
        is("SetsVfs")
    );
    assert_eq!(of("KERNEL==\"eth0\", ATTR{device/sriov_numvfs}=\"4\"\n"), is("SetsVfs eth0"));
    assert_eq!(of("SUBSYSTEM==\"infiniband\", RUN+=\"/opt/x\"\n"), is("SetsVfs ib0"));
    assert_eq!(of("SUBSYSTEM==\"infiniband\", RUN+=\"/opt/unknown %k\"\n"), is("NotUnderstood"));
    let run = "SUBSYSTEM==\"infiniband\", KERNEL==\"mlx5_[0-9]*\", RUN+=\"/bin/sh -c 'echo 8 >/sys/class/infiniband/%k/device/sriov_numvfs'\"\n";
    assert_eq!(of(run), is("SetsVfs mlx5_*"));
    assert_eq!(of("KERNEL==\"ib*\", ATTR{mode}=\"connected\"\n"), is("SetsInterfaces ib*"));
    for other in [
        "DRIVERS==\"i40e\", ATTR{device/sriov_numvfs}=\"4\"\n",
        "DRIVERS==\"mlx5_core\", ATTR{sriov_numvfs}==\"4\", GOTO=\"x\"\n",
        "# SUBSYSTEM==\"infiniband\", RUN+=\"/opt/x\"\n",
        "SUBSYSTEM==\"usb\", RUN+=\"/opt/unknown\"\n",
    ] {
        assert_eq!(of(other), [""; 0], "{other}");
    }
}

#[test]
fn what_a_package_brings_is_known_until_it_is_changed() {
    let rule = "SUBSYSTEM==\"infiniband\", PROGRAM=\"rdma_rename %k NAME_FALLBACK\"\n";
    let file = "usr/lib/udev/rules.d/60-rdma-persistent-naming.rules";
    assert_eq!(acts(&[(file, rule)]), [""; 0]);
    assert_eq!(acts(&[(&file.replace("60-", "61-"), rule)]).len(), 1);
    let changed = format!("{rule}DRIVERS==\"mlx5_core\", ATTR{{device/sriov_numvfs}}=\"4\"\n");
    assert_eq!(acts(&[(file, &changed)]), [format!("/{file}:2 SetsVfs")]);
}
