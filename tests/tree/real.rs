//! Real machines: each file of `tests/real` has what a public source says of one, and what a
//! knowledgeable operator expects of ibprov there. `docs/real-machines.md` lists them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::host::Host;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Machine {
    machine: String,
    kind: Kind,
    /// Repository, commit and path; of a report, its thread.
    source: String,
    /// The machine that a state is laid on.
    on: Option<String>,
    #[serde(default)]
    said: Facts,
    #[serde(default)]
    filled: Facts,
    expect: Vec<Expected>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Dump,
    Report,
    State,
}

/// Facts in the order in which they are laid.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Facts {
    /// What is not there, of what the facts before have laid.
    absent: Vec<String>,
    modules: Vec<String>,
    adapter: Vec<Adapter>,
    port: Vec<Port>,
    netdev: Vec<Netdev>,
    file: BTreeMap<String, String>,
}

/// A PCI function.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Adapter {
    pci: String,
    /// The bridges above it, the root port first.
    #[serde(default)]
    below: Vec<String>,
    /// When udev finished with it, in microseconds.
    udev: Option<u64>,
    id: String,
    subsystem: Option<String>,
    class: String,
    driver: Option<String>,
    rdma: Option<String>,
    /// Its device nodes: the character devices in sysfs.
    #[serde(default)]
    nodes: Vec<String>,
}

/// A port of each RDMA device in `of`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Port {
    of: Vec<String>,
    #[serde(default = "first")]
    number: Vec<u8>,
    layer: Option<String>,
    state: Option<String>,
    phys: Option<String>,
    rate: Option<String>,
    /// The LID of the first; the next one has the next LID.
    lid: Option<u32>,
    sm_lid: Option<u32>,
    /// The port GUID of the first, likewise.
    guid: Option<String>,
}

fn first() -> Vec<u8> {
    vec![1]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Netdev {
    name: String,
    /// Without it, one of an adapter that no file describes.
    pci: Option<String>,
    index: u32,
    r#type: u32,
    dev_port: Option<u32>,
    /// When udev finished with it, in microseconds.
    udev: Option<u64>,
    #[serde(default)]
    file: BTreeMap<String, String>,
}

/// What one command has to answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    run: String,
    exit: i32,
    /// The configuration file of this run.
    config: Option<String>,
    /// Other files of it.
    #[serde(default)]
    file: BTreeMap<String, String>,
    /// Lines, or parts of them.
    #[serde(default)]
    says: Vec<String>,
    #[serde(default)]
    never: Vec<String>,
}

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real")
}

fn read(name: &str) -> Machine {
    let path = dir().join(format!("{name}.toml"));
    let text = fs::read_to_string(&path).expect("a file of a machine");
    toml::from_str(&text).expect(name)
}

fn names() -> Vec<String> {
    let files = fs::read_dir(dir()).expect("tests/real").map(|file| file.expect("a file").path());
    let is_machine = |path: &PathBuf| path.extension().is_some_and(|end| end == "toml");
    let name = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let mut names: Vec<String> = files.filter(is_machine).map(name).collect();
    names.sort_unstable();
    names
}

fn lay(host: &Host, machine: &Machine) {
    if let Some(on) = &machine.on {
        lay(host, &read(on));
    }
    let all = [&machine.said, &machine.filled];
    all.into_iter().for_each(|facts| facts.lay_adapters(host));
    all.into_iter().for_each(|facts| facts.lay_ports(host));
}

impl Facts {
    fn lay_adapters(&self, host: &Host) {
        for path in &self.absent {
            host.remove(path);
        }
        for module in &self.modules {
            host.file(&format!("sys/module/{module}/initstate"), "live\n");
        }
        for adapter in &self.adapter {
            adapter.lay(host);
        }
    }

    fn lay_ports(&self, host: &Host) {
        for port in &self.port {
            port.lay(host);
        }
        for netdev in &self.netdev {
            netdev.lay(host);
        }
        for (path, text) in &self.file {
            host.file(path, &format!("{text}\n"));
        }
    }
}

impl Adapter {
    fn lay(&self, host: &Host) {
        let Self { pci, class, driver, .. } = self;
        let domain = pci.split(':').next().expect("a domain");
        let top = self.below.first().unwrap_or(pci);
        let bus = top.split(':').nth(1).expect("a bus");
        let mut device = format!("devices/pci{domain}:{bus}");
        // A function can have several RDMA devices, and facts of several kinds.
        let link = |link: &str, target: &str| {
            if !host.path(link).is_symlink() {
                host.link(link, target);
            }
        };
        for part in self.below.iter().chain([pci]) {
            device = format!("{device}/{part}");
            link(&format!("sys/bus/pci/devices/{part}"), &format!("../../../{device}"));
        }
        let dir = format!("sys/{device}");
        let file =
            |name: &str, text: &str| host.file(&format!("{dir}/{name}"), &format!("{text}\n"));
        let mut modalias = String::from("pci:");
        let ids = [(Some(&self.id), "", "vd"), (self.subsystem.as_ref(), "subsystem_", "")];
        for (id, prefix, short) in ids {
            let Some((vendor, model)) = id.and_then(|id| id.split_once(':')) else { continue };
            file(&format!("{prefix}vendor"), &format!("0x{vendor}"));
            file(&format!("{prefix}device"), &format!("0x{model}"));
            let [v, d] = if short.is_empty() { ["sv", "sd"] } else { ["v", "d"] };
            modalias += &format!("{v}0000{}{d}0000{}", vendor.to_uppercase(), model.to_uppercase());
        }
        file("class", &format!("0x{class}"));
        file("modalias", &format!("{modalias}bc{}sc{}i{}", &class[..2], &class[2..4], &class[4..]));
        if let Some(usec) = self.udev {
            host.file(&format!("run/udev/data/+pci:{pci}"), &format!("I:{usec}\n"));
        }
        if let Some(driver) = driver {
            link(&format!("{dir}/driver"), &format!("/sys/bus/pci/drivers/{driver}"));
        }
        for node in &self.nodes {
            let class = if node.starts_with("uverbs") { "verbs" } else { "mad" };
            let name = format!("{dir}/infiniband_{class}/{node}");
            link(
                &format!("sys/class/infiniband_{class}/{node}"),
                &format!("../../{device}/infiniband_{class}/{node}"),
            );
            host.file(&format!("{name}/uevent"), &format!("DEVNAME=infiniband/{node}\n"));
            // The two lines that the kernel has for each.
            if let Some(rdma) = &self.rdma {
                host.file(&format!("{name}/ibdev"), &format!("{rdma}\n"));
            }
            if class == "mad" {
                host.file(&format!("{name}/port"), "1\n");
            }
        }
        if let Some(rdma) = &self.rdma {
            file(&format!("infiniband/{rdma}/uevent"), &format!("NAME={rdma}"));
            link(
                &format!("sys/class/infiniband/{rdma}"),
                &format!("../../{device}/infiniband/{rdma}"),
            );
        }
    }
}

impl Port {
    fn lay(&self, host: &Host) {
        let guid = self
            .guid
            .as_ref()
            .map(|guid| u64::from_str_radix(&guid.replace(':', ""), 16).expect("a port GUID"));
        let each = self.of.iter().flat_map(|of| self.number.iter().map(move |n| (of, n)));
        for (n, (of, number)) in each.enumerate() {
            let dir = format!("sys/class/infiniband/{of}/ports/{number}");
            let file = |name: &str, text: Option<String>| {
                if let Some(text) = text {
                    host.file(&format!("{dir}/{name}"), &format!("{text}\n"));
                }
            };
            file("link_layer", self.layer.clone());
            file("state", self.state.clone());
            file("phys_state", self.phys.clone());
            file("rate", self.rate.clone());
            file("lid", self.lid.map(|lid| format!("{:#x}", lid + u32::try_from(n).expect("few"))));
            file("sm_lid", self.sm_lid.map(|lid| format!("{lid:#x}")));
            let gid = |guid: u64| {
                let hex = format!("{:016x}", guid + 16 * n as u64);
                let [a, b, c, d] = [0, 4, 8, 12].map(|at| &hex[at..at + 4]);
                format!("fe80:0000:0000:0000:{a}:{b}:{c}:{d}")
            };
            file("gids/0", guid.map(gid));
        }
    }
}

impl Netdev {
    fn lay(&self, host: &Host) {
        let Self { name, index, .. } = self;
        let class = format!("sys/class/net/{name}");
        let dir = match &self.pci {
            Some(pci) => {
                host.link(&class, &format!("../../bus/pci/devices/{pci}/net/{name}"));
                host.link(
                    &format!("sys/bus/pci/devices/{pci}/net/{name}/device"),
                    &format!("/sys/bus/pci/devices/{pci}"),
                );
                format!("sys/bus/pci/devices/{pci}/net/{name}")
            }
            None => class,
        };
        let mut files = self.file.clone();
        files.insert("ifindex".to_owned(), index.to_string());
        files.insert("type".to_owned(), self.r#type.to_string());
        files.extend(self.dev_port.map(|port| ("dev_port".to_owned(), port.to_string())));
        for (file, text) in files {
            host.file(&format!("{dir}/{file}"), &format!("{text}\n"));
        }
        if let Some(usec) = self.udev {
            host.file(&format!("run/udev/data/n{index}"), &format!("I:{usec}\n"));
        }
    }
}

#[test]
fn what_an_operator_expects_of_each_is_said() {
    let mut wrong = String::new();
    for name in names() {
        let machine = read(&name);
        for Expected { run, exit, config, file, says, never } in &machine.expect {
            let host = Host::bare();
            lay(&host, &machine);
            if let Some(config) = config {
                host.file("etc/ibprov/ibprov.toml", config);
            }
            for (path, text) in file {
                host.file(path, text);
            }
            let words: Vec<&str> = run.split(' ').collect();
            let shown = host.show_on(&[("COLUMNS", "100")], &words);
            // Wherever the lines end.
            let flat: Vec<&str> = shown.split_whitespace().collect();
            let flat = flat.join(" ");
            let is_said =
                |said: &&String| shown.contains(said.as_str()) || flat.contains(said.as_str());
            let lacks = says.iter().filter(|said| !is_said(said));
            let mut all: Vec<String> = lacks.map(|said| format!("does not say {said:?}")).collect();
            let told = never.iter().filter(is_said);
            all.extend(told.map(|said| format!("says {said:?}")));
            if !shown.ends_with(&format!("exit {exit}\n")) {
                all.push(format!("does not exit with {exit}"));
            }
            if !all.is_empty() {
                wrong += &format!("{name}: {run}: {}:\n{shown}\n", all.join("; "));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// What `config generate` prints is a configuration with which nothing changes, and by which an
/// adapter that is lost is missed.
#[test]
fn what_is_generated_is_the_node_as_it_is() {
    for name in names() {
        let machine = read(&name);
        let host = Host::bare();
        lay(&host, &machine);
        if !host.path("sys/bus/pci/devices").exists() {
            continue;
        }
        let dry_run = host.show(&["boot", "--dry-run"]);
        let shown = host.show(&["config", "generate"]);
        let (text, end) = shown.rsplit_once("exit ").expect("an exit code");
        let is_all = end == "0\n";
        assert_eq!(
            text.contains("# Expected and not active") || text.contains("none"),
            !is_all,
            "{name}: {shown}"
        );
        host.file("etc/ibprov/ibprov.d/ports.toml", text);
        let checked = host.show(&["config", "check"]);
        assert!(checked.ends_with("exit 0\n"), "{name}: {checked}");
        // A RoCE port is expected by a table alone.
        if !text.contains("ethernet") {
            assert_eq!(host.show(&["boot", "--dry-run"]), dry_run, "{name}");
        }
        let tables: toml::Table = toml::from_str(text).expect("TOML");
        let tables = tables.get("port").and_then(|all| all.as_array()).cloned().unwrap_or_default();
        let adapters = tables.iter().flat_map(|table| match &table["pci"] {
            toml::Value::Array(all) => all.clone(),
            one => vec![one.clone()],
        });
        let adapters: Vec<String> =
            adapters.map(|pci| pci.as_str().expect("text").to_owned()).collect();
        let status = host.show(&["status"]);
        let headline = status.lines().next().unwrap_or_default();
        let n = headline.split_whitespace().find(|word| word.parse::<usize>().is_ok());
        let whole = n.map(|n| format!(" {n} of {n} expected ports active")).unwrap_or_default();
        assert!(!is_all || headline.contains(&whole), "{name}: {status}");
        for pci in adapters {
            let link = host.path(&format!("sys/bus/pci/devices/{pci}"));
            let target = fs::read_link(&link).expect("a link");
            fs::remove_file(&link).expect("removed");
            let status = host.show(&["status"]);
            assert!(status.starts_with("NOT READY"), "{name} without {pci}: {status}");
            std::os::unix::fs::symlink(target, &link).expect("as it was");
        }
    }
}

/// Facts are marked, and the page lists each machine below its kind.
#[test]
fn each_is_described() {
    let page = dir().join("../../docs/real-machines.md");
    let page = fs::read_to_string(page).expect("the page");
    for name in names() {
        let Machine { machine, kind, source, on, .. } = read(&name);
        let mark = |of| if kind == of { "yes" } else { "" };
        let [dump, report, state] = [Kind::Dump, Kind::Report, Kind::State].map(mark);
        let row = format!("| `{name}` | {machine} | {dump} | {report} | {state} |");
        assert!(page.contains(&row), "docs/real-machines.md lacks: {row}");
        assert!(!source.is_empty(), "{name}");
        assert_eq!(on.is_some(), kind == Kind::State, "{name}");
    }
}
