//! Trees of files made of an input: sections, each begun by the byte 0x1e and a letter
//! that says which file of a table it is. What stands before the first is the first's.

use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ibprov::host::Root;

/// Begins a section.
const SECTION: u8 = 0x1e;

/// Units, drop-ins, mounts, start scripts.
pub const UNITS: &[&str] = &[
    "/etc/systemd/system/default.target",
    "/etc/systemd/system/a.service",
    "/usr/lib/systemd/system/a.service",
    "/usr/lib/systemd/system/openibd.service",
    "/etc/systemd/system/a.service.d/10-first.conf",
    "/etc/systemd/system/service.d/20-all.conf",
    "/usr/lib/systemd/system/b@.service",
    "/usr/lib/systemd/system/c.mount",
    "/etc/fstab",
    "/etc/init.d/openibd",
    "/etc/rc3.d/S20openibd",
    "/etc/rc.local",
    "/usr/bin/script",
];

/// What each network stack reads.
pub const STACKS: &[&str] = &[
    "/etc/NetworkManager/system-connections/ib0.nmconnection",
    "/etc/NetworkManager/NetworkManager.conf",
    "/run/NetworkManager/devices/7",
    "/etc/systemd/network/10-ib.network",
    "/etc/systemd/network/10-ib.network.d/more.conf",
    "/etc/systemd/network/20-ib.netdev",
    "/etc/systemd/network/30-ib.link",
    "/run/systemd/netif/links/7",
    "/etc/network/interfaces",
    "/etc/network/interfaces.d/ib",
    "/run/network/ifstate",
    "/etc/sysconfig/network-scripts/ifcfg-ib0",
    "/etc/sysconfig/network/ifcfg-ib0",
    "/run/udev/data/n7",
];

/// What is there of a host besides.
pub const HOST: &[&str] = &[
    "/etc/modprobe.d/site.conf",
    "/proc/cmdline",
    "/etc/hostname",
    "/proc/sys/kernel/osrelease",
    "/etc/ibprov/ibprov.toml",
    "/etc/ibprov/pins.toml",
    "/run/ibprov/boot.json",
    "/run/ibprov/guests.json",
    "/etc/libvirt/qemu/autostart/vm.xml",
    "/etc/sysconfig/libvirt-guests",
    "/var/lib/libvirt/libvirt-guests",
    "/etc/infiniband/openib.conf",
    "/etc/udev/rules.d/90-ib.rules",
    "/sys/bus/pci/devices/0000:4b:00.0/class",
    "/sys/bus/pci/devices/0000:4b:00.0/vendor",
    "/sys/bus/pci/devices/0000:4b:00.0/modalias",
    "/sys/bus/pci/devices/0000:4b:00.0/sriov_totalvfs",
    "/sys/bus/pci/devices/0000:4b:00.0/infiniband/mlx5_0/node_guid",
    "/sys/bus/pci/devices/0000:4b:00.0/infiniband/mlx5_0/ports/1/gids/0",
    "/sys/bus/pci/devices/0000:4b:00.0/infiniband/mlx5_0/ports/1/link_layer",
    "/sys/bus/pci/devices/0000:4b:00.0/net/ib0/address",
    "/sys/bus/pci/devices/0000:4b:00.0/net/ib0/dev_port",
    "/sys/bus/pci/devices/0000:4b:00.0/vpd",
    "/lib/modules/6.1.0/modules.alias",
    "/lib/modules/6.1.0/modules.dep",
    "/lib/modules/6.1.0/modules.builtin",
    "/proc/modules",
    "/etc/os-release",
];

/// What every tree has besides: an IPoIB netdev and the stacks' services, by which they
/// count as installed.
const ALWAYS: &[(&str, &str)] = &[
    ("/sys/class/net/ib0/ifindex", "7\n"),
    ("/sys/class/net/ib0/type", "32\n"),
    ("/sys/class/net/ib0/flags", "0x1003\n"),
    ("/sys/class/net/ib0/address", "80:00:10:49:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:12:a4:80\n"),
    ("/lib/systemd/system/NetworkManager.service", ""),
    ("/lib/systemd/system/systemd-networkd.service", ""),
    ("/lib/systemd/system/networking.service", ""),
    ("/lib/systemd/system/network.service", ""),
    ("/lib/systemd/system/wickedd.service", ""),
    ("/lib/systemd/system/wicked.service", ""),
];

const LINKS: &[(&str, &str)] = &[
    ("/etc/systemd/system/default.target.wants/a.service", "../a.service"),
    ("/etc/systemd/system/default.target.requires/c.mount", "/usr/lib/systemd/system/c.mount"),
    (
        "/etc/systemd/system/multi-user.target.wants/b@x.service",
        "/usr/lib/systemd/system/b@.service",
    ),
];

/// A tree below a directory of this process.
pub struct Tree {
    root: Root,
}

impl Tree {
    /// The files of `table` that `data` has, and no others of it.
    pub fn of(table: &[&str], data: &[u8]) -> Self {
        let top = top();
        for path in table {
            let _absent = fs::remove_file(below(top, path));
        }
        for (at, section) in data.split(|b| *b == SECTION).enumerate() {
            let (which, content) = match (at, section.split_first()) {
                (0, _) => (0, section),
                (_, Some((letter, content))) => (usize::from(letter.wrapping_sub(b'A')), content),
                (_, None) => continue,
            };
            if let Some(path) = table.get(which) {
                fs::write(below(top, path), content).expect("a file of the tree");
            }
        }
        Self { root: Root::copy_at(top).expect("the tree") }
    }

    pub const fn root(&self) -> &Root {
        &self.root
    }

    /// A file without a name that holds `data`, by its path.
    pub fn file(data: &[u8]) -> PathBuf {
        static FILE: OnceLock<fs::File> = OnceLock::new();
        let mut file = FILE.get_or_init(|| {
            let flags = nix::sys::memfd::MFdFlags::empty();
            nix::sys::memfd::memfd_create("fuzz", flags).expect("memory").into()
        });
        file.set_len(0).expect("emptied");
        nix::unistd::lseek(file, 0, nix::unistd::Whence::SeekSet).expect("its begin");
        file.write_all(data).expect("written");
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }
}

fn below(top: &Path, path: &str) -> PathBuf {
    top.join(path.trim_start_matches('/'))
}

/// The directory, with what is always there; `run.sh` says where and removes it.
fn top() -> &'static Path {
    static TOP: OnceLock<PathBuf> = OnceLock::new();
    TOP.get_or_init(|| {
        let top = std::env::temp_dir().join(format!("ibprov-fuzz-{}", std::process::id()));
        let parents = |path: &str| {
            let path = below(&top, path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directory");
            path
        };
        for path in [UNITS, STACKS, HOST].into_iter().flatten() {
            parents(path);
        }
        for (path, content) in ALWAYS {
            fs::write(parents(path), content).expect("file");
        }
        for (path, target) in LINKS {
            let _again = std::os::unix::fs::symlink(target, parents(path));
        }
        top
    })
}
