use super::*;
use crate::graph::files;
use crate::host::testing::tree;
use crate::inventory::not_run;
use crate::names::NetnsMode;

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
        ("etc/waagent.conf", "# OS.EnableRDMA=y\nOS.EnableRDMA=y\n"),
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
            "/etc/waagent.conf:2 SetsInterfaces",
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
            format!("/etc/rc.local:4 {both}"),
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
fn what_runs_by_something_else_is_followed() {
    let files = [
        (
            "etc/rc.local",
            "D=mlx5\nP=${D}_0\nfor f in node port; do\necho 1 >/sys/class/infiniband/\"$P\"/device/sriov/0/$f\ndone\nsh /opt/plain\n/opt/outer\nsystemctl --no-block start vfs@ib1\n/usr/bin/packaged\n",
        ),
        ("opt/plain", "modprobe ib_iser\n"),
        ("opt/outer", "#!/bin/sh\ncd /opt\n./inner\n"),
        (
            "opt/inner",
            "#!/bin/sh\nfor d in /sys/class/infiniband/mlx5_*/node_desc; do echo x >\"$d\"; done\n/opt/outer\n",
        ),
        // What packages call is theirs.
        ("usr/bin/packaged", "#!/bin/sh\n/usr/bin/other\n"),
        ("usr/bin/other", "#!/bin/sh\nmodprobe ib_iser\n"),
        ("etc/systemd/system/vfs@.service", "[Service]\nExecStart=/opt/vfs %i\n"),
        ("opt/vfs", "#!/bin/bash\necho ${mode[$i]} >/sys/class/net/$i/mode\n"),
        (
            "etc/infiniband/openib.conf",
            "ONBOOT=yes\nOPENIBD_POST_START=/opt/hook\nOPENIBD_POST_STOP=/opt/plain\n",
        ),
        (
            "opt/hook",
            "#!/usr/bin/python3\nopen(os.path.join(\"/sys/class/net\", dev, \"device/sriov_numvfs\"))\n",
        ),
    ];
    let mut found = acts(&files);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "/etc/rc.local:4 SetsVfs mlx5_0",
            "/etc/rc.local:6 LoadsModules",
            "/etc/rc.local:7 Tunes mlx5_*",
            "/etc/rc.local:8 SetsInterfaces ib1",
            "/opt/hook:2 SetsVfs?",
        ]
    );
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
    let path = "DRIVERS==\"mlx5_core\", ENV{ID_PATH}==\"pci-0000:44:00.0\", ATTR{device/sriov_numvfs}=\"3\"\n";
    assert_eq!(of(path), is("SetsVfs 0000:44:00.0"));
    let unit =
        "SUBSYSTEM==\"infiniband\", TAG+=\"systemd\", ENV{SYSTEMD_WANTS}+=\"x@%k.service\"\n";
    assert_eq!(
        acts(&[
            ("etc/udev/rules.d/9.rules", unit),
            (
                "etc/systemd/system/x@.service",
                "[Service]\nExecStart=/bin/rdma dev set %i name r0\n"
            ),
        ]),
        is("RenamesDevices")
    );
    let program = "SUBSYSTEM==\"platform\", RUN+=\"/opt/spark-mlnx-hotplug/handler removal\"\n";
    assert_eq!(of(program), is("NotUnderstood"));
    let by = "DRIVERS==\"mlx5_core\", RUN+=\"/bin/systemd-run --no-block /opt/rings %k\"\n";
    assert_eq!(of(by), is("NotUnderstood"));
    let rings = "DRIVERS==\"mlx5_core\", RUN+=\"/usr/sbin/ethtool -G %k rx 4096\"\n";
    assert_eq!(of(rings), is("Tunes"));
    let switch = "DRIVERS==\"mlx5_core\", RUN+=\"/usr/sbin/devlink dev eswitch set pci/0000:0f:00.0 mode switchdev\"\n";
    assert_eq!(of(switch), is("NotUnderstood 0000:0f:00.0"));
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
    assert_eq!(acts(&[(&file.replace("usr/lib/", "etc/"), rule)]).len(), 1, "it is the site's");
    let changed = format!("{rule}DRIVERS==\"mlx5_core\", ATTR{{device/sriov_numvfs}}=\"4\"\n");
    assert_eq!(acts(&[(file, &changed)]), [format!("/{file}:2 SetsVfs")]);
}

/// What rdma-core brings on every distribution: the names of its files, and what a line of each
/// does.
const RDMA_CORE: [(&str, &str); 13] = [
    (
        "usr/lib/udev/rules.d/60-rdma-ndd.rules",
        "KERNEL==\"umad*\", ENV{SYSTEMD_WANTS}+=\"rdma-ndd.service\"\n",
    ),
    (
        "usr/lib/udev/rules.d/60-rdma-persistent-naming.rules",
        "SUBSYSTEM==\"infiniband\", PROGRAM=\"rdma_rename %k NAME_FALLBACK\"\n",
    ),
    (
        "usr/lib/udev/rules.d/60-srp_daemon.rules",
        "KERNEL==\"umad*\", ENV{SYSTEMD_WANTS}=\"srp_daemon_port@$attr{ibdev}:$attr{port}.service\"\n",
    ),
    (
        "usr/lib/udev/rules.d/75-rdma-description.rules",
        "SUBSYSTEM==\"infiniband\", IMPORT{builtin}=\"net_id\"\n",
    ),
    (
        "usr/lib/udev/rules.d/90-rdma-hw-modules.rules",
        "ENV{ID_NET_DRIVER}==\"mlx5_core\", RUN{builtin}+=\"kmod load mlx5_ib\"\n",
    ),
    (
        "usr/lib/udev/rules.d/90-rdma-ulp-modules.rules",
        "SUBSYSTEM==\"infiniband\", ENV{SYSTEMD_WANTS}+=\"rdma-load-modules@infiniband.service\"\n",
    ),
    ("usr/lib/udev/rules.d/90-rdma-umad.rules", "KERNEL==\"umad*\", SYMLINK+=\"infiniband/%k\"\n"),
    (
        "usr/lib/udev/rules.d/90-iwpmd.rules",
        "SUBSYSTEM==\"infiniband\", ENV{SYSTEMD_WANTS}+=\"iwpmd.service\"\n",
    ),
    (
        "usr/lib/systemd/system/rdma-load-modules@.service",
        "[Service]\nExecStart=/lib/systemd/systemd-modules-load /etc/rdma/modules/%I.conf\n",
    ),
    (
        "usr/lib/systemd/system/rdma-ndd.service",
        "[Service]\nExecStart=/usr/sbin/rdma-ndd --systemd\n",
    ),
    ("usr/lib/systemd/system/iwpmd.service", "[Service]\nExecStart=/usr/sbin/iwpmd --systemd\n"),
    ("usr/lib/systemd/system/ibacm.service", "[Service]\nExecStart=/usr/sbin/ibacm --systemd\n"),
    (
        "usr/lib/systemd/system/srp_daemon.service",
        "[Service]\nExecStart=/usr/sbin/srp_daemon -e -c -n\n",
    ),
];

/// The files of packages on three systems, by the lists of the packages: nothing of them is for a
/// site to decide.
#[test]
fn of_what_distributions_and_doca_ship_nothing_is_left_not_understood() {
    let ubuntu: &[(&str, &str)] = &[
        ("etc/modprobe.d/mlx4.conf", "softdep mlx4_core post: mlx4_en mlx4_ib\n"),
        (
            "usr/lib/udev/rules.d/80-ifupdown.rules",
            "SUBSYSTEM==\"net\", RUN+=\"ifupdown-hotplug\"\n",
        ),
        ("usr/lib/udev/ifupdown-hotplug", "#!/bin/sh\nifup --allow=hotplug ib0\n"),
        (
            "etc/udev/rules.d/90-cloud-init-hook-hotplug.rules",
            "SUBSYSTEM==\"net\", RUN+=\"/usr/lib/cloud-init/hook-hotplug\"\n",
        ),
        (
            "usr/lib/udev/rules.d/66-azure-ephemeral.rules",
            "DRIVERS==\"mlx5_core\", ENV{NM_UNMANAGED}=\"1\"\n",
        ),
        ("etc/network/if-up.d/ethtool", "#!/bin/sh\nethtool -s $IFACE wol g\n"),
        ("etc/network/if-up.d/openssh-server", "#!/bin/sh\nsystemctl reload ssh\n"),
        ("etc/init.d/ibacm", "#!/bin/sh\nstart-stop-daemon --start --exec /usr/sbin/ibacm\n"),
        ("etc/init.d/srpd", "#!/bin/sh\n/usr/sbin/srp_daemon.sh &\n"),
        ("usr/lib/systemd/system/opensm.service", "[Service]\nExecStart=/usr/sbin/opensm\n"),
    ];
    let rhel: &[(&str, &str)] = &[
        (
            "usr/lib/modprobe.d/libmlx4.conf",
            "install mlx4_core modprobe --ignore-install mlx4_core && /usr/libexec/mlx4-setup.sh </etc/rdma/mlx4.conf; modprobe mlx4_ib\n",
        ),
        (
            "usr/lib/udev/rules.d/84-nm-drivers.rules",
            "SUBSYSTEM==\"net\", PROGRAM=\"/bin/sh -c 'ethtool -i $1' -- $env{INTERFACE}\"\n",
        ),
        ("usr/lib/NetworkManager/dispatcher.d/20-chrony-dhcp", "#!/bin/sh\nchronyc online\n"),
        (
            "usr/lib/udev/rules.d/98-kexec.rules",
            "SUBSYSTEM==\"memory\", RUN+=\"/bin/sh -c 'systemctl try-restart kdump'\"\n",
        ),
        (
            "usr/lib/systemd/system/rdma.service",
            "[Service]\nExecStart=/usr/libexec/rdma-init-kernel\n",
        ),
    ];
    let doca: &[(&str, &str)] = &[
        (
            "usr/lib/systemd/system/openibd.service",
            "[Service]\nExecStart=/etc/init.d/openibd start bootid=%b\n",
        ),
        (
            "etc/init.d/openibd",
            "#!/bin/bash\nmodprobe mlx5_core\nmodprobe ib_ipoib\nmlnx_tune -p x\n",
        ),
        (
            "etc/udev/rules.d/90-ib.rules",
            "DRIVERS==\"*mlx*\", SUBSYSTEM==\"net\", RUN+=\"/bin/systemctl --no-block start mlnx_interface_mgr@$name.service\"\n",
        ),
        (
            "usr/lib/udev/rules.d/82-net-setup-link.rules",
            "DRIVERS==\"mlx5_core\", PROGRAM=\"/usr/lib/udev/mlnx_bf_udev\"\n",
        ),
        (
            "usr/lib/udev/rules.d/83-mlnx-sf-name.rules",
            "DRIVERS==\"mlx5_core\", IMPORT{program}=\"/lib/udev/auxdev-sf-netdev-rename $env{DEVPATH}\"\n",
        ),
        (
            "etc/modprobe.d/mlnx-bf.conf",
            "install ib_umad modprobe --ignore-install ib_umad && /sbin/mlnx_bf_configure\n",
        ),
        (
            "etc/modprobe.d/mlnx.conf",
            "blacklist ib_iser\noptions mlx4_core log_num_mgm_entry_size=-1\n",
        ),
        (
            "usr/lib/systemd/system/mlnx_interface_mgr@.service",
            "[Service]\nExecStart=/usr/bin/mlnx_interface_mgr.sh %i\n",
        ),
        ("usr/bin/mlnx_interface_mgr.sh", "#!/bin/bash\necho connected >/sys/class/net/ib0/mode\n"),
        ("usr/lib/systemd/system/mst.service", "[Service]\nExecStart=/usr/bin/mst start\n"),
        ("etc/init.d/opensmd", "#!/bin/bash\n/usr/sbin/opensm -B\n"),
        (
            "usr/lib/systemd/system/nvidia-fabricmanager.service",
            "[Service]\nExecStart=/usr/bin/nv-fabricmanager -c /usr/share/nvidia/nvswitch/fabricmanager.cfg\n",
        ),
        (
            "usr/lib/systemd/system/nvidia-peermem-loader.service",
            "[Service]\nExecStart=/sbin/modprobe nvidia-peermem\n",
        ),
        (
            "usr/lib/systemd/system/sharp_am.service",
            "[Service]\nExecStart=/opt/mellanox/sharp/bin/sharp_am -O /etc/sharp/sharp_am.cfg\n",
        ),
    ];
    let wanted = "etc/systemd/system/default.target.wants";
    for own in [ubuntu, rhel, doca] {
        let files: Vec<(&str, &str)> = RDMA_CORE.iter().chain(own).copied().collect();
        let names =
            files.iter().filter_map(|(path, _)| path.strip_prefix("usr/lib/systemd/system/"));
        let links: Vec<(String, String)> = names
            .map(|n| (format!("{wanted}/{n}"), format!("/usr/lib/systemd/system/{n}")))
            .collect();
        let mut links: Vec<(&str, &str)> = links.iter().map(|(a, b)| (&**a, &**b)).collect();
        for script in ["ibacm", "srpd", "openibd", "opensmd"] {
            let at = own.iter().any(|(path, _)| path.ends_with(&format!("init.d/{script}")));
            links.extend(at.then_some(match script {
                "ibacm" => ("etc/rc3.d/S20ibacm", "../init.d/ibacm"),
                "srpd" => ("etc/rc3.d/S20srpd", "../init.d/srpd"),
                "openibd" => ("etc/rc3.d/S05openibd", "../init.d/openibd"),
                _ => ("etc/rc3.d/S09opensmd", "../init.d/opensmd"),
            }));
        }
        let files: Vec<(&str, &str)> = files
            .into_iter()
            .chain([("usr/lib/systemd/system/default.target", "[Unit]\n")])
            .collect();
        let dir = tree(&files, &links);
        let root = Root::copy_at(dir.path()).expect("root");
        let found = Inventory::read(&root);
        let left = found.entries.iter().filter(|e| e.does != Does::Asks && !e.is_shipped);
        let left: Vec<String> = left.map(|e| format!("{} {:?}", e.at(), e.does)).collect();
        assert_eq!(left, [""; 0]);
        let known = found.entries.iter().filter(|e| e.does != Does::Asks).count();
        assert!(known > 1, "what they do is seen: {:?}", found.entries);
    }
}

#[test]
fn who_sets_the_mode_of_network_namespaces_is_known_with_its_place() {
    let dir = tree(
        &[
            (
                "etc/rc.local",
                "#!/bin/sh\n/bin/sh -c 'rdma sys set netns exclusive'\nrdma system show\n",
            ),
            ("usr/lib/systemd/system/default.target", "[Unit]\n"),
            (
                "etc/systemd/system/other.service",
                "[Service]\nExecStartPre=-/bin/rdma system set netns exclusive\nExecStart=-/opt/rails --all\n#ExecStart=/opt/old\n",
            ),
            (
                "etc/systemd/system/disabled.service",
                "[Service]\nExecStart=rdma system set netns shared\n",
            ),
            ("opt/rails", "#!/bin/sh\nrdma system set netns shared\n"),
            ("opt/old", "#!/bin/sh\nrdma system set netns shared\n"),
            (
                "etc/udev/rules.d/70-site.rules",
                "SUBSYSTEM==\"infiniband\", RUN+=\"/opt/rails %k\"\n",
            ),
        ],
        &[("etc/systemd/system/default.target.wants/other.service", "../other.service")],
    );
    let root = Root::copy_at(dir.path()).expect("root");
    let found: Vec<_> = Inventory::read(&root).netns_modes().collect();
    let want = [
        ("/etc/rc.local:2", NetnsMode::Exclusive),
        ("other.service", NetnsMode::Exclusive),
        ("other.service", NetnsMode::Shared),
        ("/etc/udev/rules.d/70-site.rules:1", NetnsMode::Shared),
    ];
    assert_eq!(found, want.map(|(place, mode)| (place.to_owned(), mode)));
}

#[test]
fn what_a_script_takes_from_a_variable_is_no_adapter_that_it_names_elsewhere() {
    let rc = "#!/bin/sh
PF=ib0
/etc/init.d/openibd start
for pf in $(ibdev2netdev | awk '/mlx5/{print $5}'); do
  echo 8 > /sys/class/net/$pf/device/sriov_numvfs
  bdf=$(basename $(readlink /sys/class/net/$pf/device/virtfn0))
  echo $bdf > /sys/bus/pci/drivers/mlx5_core/unbind
done
echo connected > /sys/class/net/$PF/mode
";
    assert_eq!(
        acts(&[("etc/rc.local", rc)]),
        [
            "/etc/rc.local:3 CallsOpenibd",
            "/etc/rc.local:5 SetsVfs",
            "/etc/rc.local:7 BindsDrivers",
            "/etc/rc.local:9 SetsInterfaces ib0",
        ]
    );
}
