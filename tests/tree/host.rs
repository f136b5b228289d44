//! Lays out the part of a host's tree that ibprov reads.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::{fs, io};

use crate::reports::assert_valid;
use crate::told;

/// The HCA of a healthy node.
pub const PF: &str = "0000:4b:00.0";

pub struct Host {
    dir: tempfile::TempDir,
    next_ifindex: u32,
}

/// A port to lay out.
pub struct PortSpec<'a> {
    pub number: u8,
    pub link_layer: &'a str,
    pub state: &'a str,
    pub physical: &'a str,
    pub lid: &'a str,
    pub guid: &'a str,
    /// Netdev name, if there is one.
    pub netdev: Option<&'a str>,
    /// udev has finished with the netdev.
    pub named: bool,
}

impl Default for PortSpec<'_> {
    fn default() -> Self {
        Self {
            number: 1,
            link_layer: "InfiniBand",
            state: "4: ACTIVE",
            physical: "5: LinkUp",
            lid: "0x7",
            guid: "b859:9f03:0012:a480",
            netdev: Some("ib0"),
            named: true,
        }
    }
}

impl Host {
    /// An empty tree.
    pub fn bare() -> Self {
        Self { dir: tempfile::tempdir().expect("temporary directory"), next_ifindex: 2 }
    }

    /// A host with kernel, udev and the three modules, without any card.
    pub fn new() -> Self {
        let host = Self::bare();
        host.file("proc/sys/kernel/osrelease", "6.1.0-9-amd64\n");
        host.file("proc/cmdline", "quiet\n");
        host.file("run/udev/control", "");
        host.file("sys/bus/pci/devices/.keep", "");
        fs::remove_file(host.path("sys/bus/pci/devices/.keep")).expect("remove");
        host.file(
            "lib/modules/6.1.0-9-amd64/modules.alias",
            "alias pci:v000015B3d00001003sv*sd*bc*sc*i* mlx4_core\n\
             alias pci:v000015B3d0000101Bsv*sd*bc*sc*i* mlx5_core\n",
        );
        host.file(
            "lib/modules/6.1.0-9-amd64/modules.dep",
            "kernel/ib_umad.ko:\nkernel/ib_uverbs.ko.xz:\nkernel/ib_ipoib.ko:\n",
        );
        for module in ["ib_umad", "ib_uverbs", "ib_ipoib"] {
            host.file(&format!("sys/module/{module}/initstate"), "live\n");
        }
        host
    }

    /// MLNX_OFED's udev rule for its own agent, with what that needs.
    pub fn mlnx_interface_manager(&self) {
        self.file("etc/infiniband/openib.conf", "ONBOOT=yes\n");
        self.file("lib/systemd/system/mlnx_interface_mgr@.service", "[Service]\nType=simple\n");
        self.file(
            "lib/udev/rules.d/90-ib.rules",
            "DRIVERS==\"*mlx*\", SUBSYSTEM==\"net\", ACTION==\"add\", RUN+=\"/bin/systemctl --no-block start mlnx_interface_mgr@$name.service\"\n",
        );
    }

    /// A host without HCA on which ibprov is enabled, and whose last boot was good.
    pub fn enabled() -> Self {
        let host = Self::new();
        let unit = |name: &str| format!("/usr/lib/systemd/system/{name}");
        host.link("etc/systemd/system/openibd.service", &unit("ibprov-openibd.service"));
        for wanted in ["ibprov-openibd.service", "ibprov.service"] {
            let at = format!("etc/systemd/system/sysinit.target.wants/{wanted}");
            host.link(&at, &unit(wanted));
        }
        host.file(
            "run/ibprov/boot.json",
            r#"{"schema":1,"report":"boot","verdict":"ready","exit_code":0}"#,
        );
        host
    }

    /// As [`Self::enabled`], with one HCA that is up and running.
    pub fn healthy() -> Self {
        let mut host = Self::enabled();
        host.function(PF, "15b3:101b", "020700", Some("mlx5_core"));
        host.rdma(PF, "mlx5_0", "b859:9f03:0012:a480", &[PortSpec::default()]);
        host
    }

    /// A healthy host with `count` HCAs more, each with a netdev.
    pub fn with_hcas(count: u32) -> Self {
        let mut host = Self::healthy();
        for n in 0..count {
            let pci = format!("0001:{:02x}:{:02x}.0", n / 32, n % 32);
            host.function(&pci, "15b3:101b", "020700", Some("mlx5_core"));
            let (guid, name) = (format!("b859:9f03:0013:{n:04x}"), format!("ib{}", n + 1));
            let port = PortSpec { guid: &guid, netdev: Some(&name), ..PortSpec::default() };
            host.rdma(&pci, &format!("mlx5_{}", n + 1), &guid, &[port]);
        }
        host
    }

    pub fn path(&self, path: &str) -> std::path::PathBuf {
        self.dir.path().join(path)
    }

    pub fn file(&self, path: &str, content: &str) {
        self.bytes(path, content.as_bytes());
    }

    pub fn bytes(&self, path: &str, content: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("directory");
        fs::write(path, content).expect("file");
    }

    pub fn link(&self, path: &str, target: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("directory");
        symlink(target, path).expect("link");
    }

    pub fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() {
            fs::remove_dir_all(path).expect("remove");
        } else {
            fs::remove_file(path).expect("remove");
        }
    }

    /// A PCI function.
    pub fn function(&self, pci: &str, id: &str, class: &str, driver: Option<&str>) {
        let (vendor, device) = id.split_once(':').expect("id");
        let dir = format!("sys/bus/pci/devices/{pci}");
        self.file(&format!("{dir}/class"), &format!("0x{class}\n"));
        self.file(&format!("{dir}/vendor"), &format!("0x{vendor}\n"));
        self.file(&format!("{dir}/device"), &format!("0x{device}\n"));
        self.file(&format!("{dir}/driver_override"), "(null)\n");
        let (vendor, device) = (vendor.to_uppercase(), device.to_uppercase());
        let (base, rest) = class.split_at(2);
        self.file(
            &format!("{dir}/modalias"),
            &format!(
                "pci:v0000{vendor}d0000{device}sv000015B3sd00000007bc{base}sc{}i00\n",
                &rest[..2]
            ),
        );
        self.file(&format!("run/udev/data/+pci:{pci}"), "I:100\nE:X=1\n");
        if let Some(driver) = driver {
            self.link(&format!("{dir}/driver"), &format!("../../drivers/{driver}"));
        }
    }

    /// The RDMA device of a function, with its ports and netdevs.
    pub fn rdma(&mut self, pci: &str, name: &str, node_guid: &str, ports: &[PortSpec<'_>]) {
        let dir = format!("sys/bus/pci/devices/{pci}/infiniband/{name}");
        self.file(&format!("{dir}/node_guid"), &format!("{node_guid}\n"));
        self.file(&format!("{dir}/hca_type"), "MT4123\n");
        self.file(&format!("{dir}/fw_ver"), "20.36.1010\n");
        for port in ports {
            let at = format!("{dir}/ports/{}", port.number);
            self.file(&format!("{at}/link_layer"), &format!("{}\n", port.link_layer));
            self.file(&format!("{at}/state"), &format!("{}\n", port.state));
            self.file(&format!("{at}/phys_state"), &format!("{}\n", port.physical));
            self.file(&format!("{at}/rate"), "200 Gb/sec (4X HDR)\n");
            self.file(&format!("{at}/lid"), &format!("{}\n", port.lid));
            // Who has not been configured knows no subnet manager.
            let sm_lid = if port.state.ends_with("INIT") { "0x0\n" } else { "0x1\n" };
            self.file(&format!("{at}/sm_lid"), sm_lid);
            let gid = format!("fe80:0000:0000:0000:{}", port.guid);
            self.file(&format!("{at}/gids/0"), &format!("{gid}\n"));
            self.file(&format!("{at}/gid_attrs/types/0"), "IB/RoCE v1\n");
            if let Some(netdev) = port.netdev {
                self.netdev(pci, netdev, port);
            }
        }
    }

    /// The P_Key table of port 1 of `device`, with an empty entry behind these.
    pub fn pkeys(&self, pci: &str, device: &str, table: &[&str]) {
        let dir = format!("sys/bus/pci/devices/{pci}/infiniband/{device}/ports/1/pkeys");
        for (index, value) in table.iter().chain([&"0x0000"]).enumerate() {
            self.file(&format!("{dir}/{index}"), &format!("{value}\n"));
        }
    }

    fn netdev(&mut self, pci: &str, name: &str, port: &PortSpec<'_>) {
        let index = self.next_ifindex;
        self.next_ifindex += 1;
        let dir = format!("sys/bus/pci/devices/{pci}/net/{name}");
        let hex: String = port.guid.chars().filter(|c| *c != ':').collect();
        let tail: Vec<&str> = (0..8).map(|i| &hex[2 * i..2 * i + 2]).collect();
        for (attribute, value) in [
            ("type", "32".to_owned()),
            ("ifindex", index.to_string()),
            ("dev_port", (port.number - 1).to_string()),
            ("address", format!("00:00:10:49:fe:80:00:00:00:00:00:00:{}", tail.join(":"))),
            ("mode", "datagram".to_owned()),
            ("mtu", "2044".to_owned()),
            ("flags", "0x1043".to_owned()),
            ("carrier", "1".to_owned()),
        ] {
            self.file(&format!("{dir}/{attribute}"), &format!("{value}\n"));
        }
        self.link(
            &format!("sys/class/net/{name}"),
            &format!("../../bus/pci/devices/{pci}/net/{name}"),
        );
        if port.named {
            self.file(&format!("run/udev/data/n{index}"), "I:5221000\nE:ID_BUS=pci\n");
        }
    }

    /// Run ibprov on this tree.
    pub fn ibprov(&self, arguments: &[&str]) -> Output {
        ibprov(self.dir.path(), arguments)
    }

    /// Standard output, and how often the process has read from a file. Times say less: other
    /// work on the machine adds to them.
    pub fn reads(&self, arguments: &[&str]) -> (String, u32) {
        let mut command = command(self.dir.path(), arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("ibprov runs");
        let out = io::read_to_string(child.stdout.take().expect("a pipe")).expect("text");
        // It has ended, or will without another read.
        let io = fs::read_to_string(format!("/proc/{}/io", child.id())).expect("not waited for");
        assert!(child.wait().expect("ibprov").success(), "{out}");
        let reads = io.lines().find_map(|l| l.strip_prefix("syscr: ")).expect("reads");
        (out, reads.parse().expect("a number"))
    }

    /// Standard output and exit code.
    pub fn show(&self, arguments: &[&str]) -> String {
        self.show_on(&[], arguments)
    }

    /// The same with these in the environment.
    pub fn show_on(&self, environment: &[(&str, &str)], arguments: &[&str]) -> String {
        let mut command = command(self.dir.path(), arguments);
        let out = command.envs(environment.iter().copied()).output().expect("ibprov runs");
        assert_report(arguments, &out);
        let stderr = String::from_utf8_lossy(&out.stderr);
        let stdout = String::from_utf8_lossy(&out.stdout);
        let shown = format!("{stdout}{stderr}exit {}\n", out.status.code().expect("exit code"));
        shown.replace(&self.dir.path().display().to_string(), "ROOT")
    }
}

/// Run ibprov on the tree `root`.
pub fn ibprov(root: &Path, arguments: &[&str]) -> Output {
    let out = command(root, arguments).output().expect("ibprov runs");
    assert_report(arguments, &out);
    out
}

/// What ibprov prints as JSON is a report, as its schema has it; each command that text tells to
/// run is one.
pub fn assert_report(arguments: &[&str], out: &Output) {
    static GOOD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let text = [&out.stdout[..], &out.stderr].map(String::from_utf8_lossy);
    let lines = text.iter().flat_map(|text| text.lines());
    for command in lines.filter_map(|line| line.trim_start().strip_prefix("run: ")) {
        if GOOD.lock().expect("a lock").insert(command.to_owned()) {
            assert_eq!(told::faults(command), <[String; 0]>::default(), "{arguments:?}");
        }
    }
    if !arguments.windows(2).any(|pair| pair == ["--format", "json"]) {
        return;
    }
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_valid(&report);
    assert_eq!(report["exit_code"].as_i64(), out.status.code().map(i64::from), "{report:#}");
}

/// A pipe, whatever the tests run on.
fn command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibprov"));
    command.env_remove("COLUMNS").env_remove("LINES").arg("--root").arg(root).args(arguments);
    command
}
