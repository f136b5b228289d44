//! What `ibprov check` gathers from a host itself, live or the tree of one, as
//! the same values that logs and dumps give.

use std::collections::BTreeSet;
use std::path::Path;

use super::opensm;
use crate::check::evidence::account;
use crate::check::evidence::host::{Denied, Host, HostPort};
use crate::check::evidence::state::{Modules, NetdevSeen, PciSeen, PortSeen, State, UnitSeen};
use crate::check::evidence::{Boot, Fabric, Kind, Origin};
use crate::config;
use crate::graph::{Graph, Load, Unit, consumers, files, show};
use crate::host::{Root, answer, state, systemctl};
use crate::ladder::progress::progress;
use crate::model::{ModuleTrouble, PortProgress, status::Role};
use crate::names::{LinkLayer, LinkState, PhysicalState, is_ipoib_name};
use crate::node::{Account, JudgedPort, Node};
use crate::observe::{self, Observed, PciFunction};
use crate::stacks;
use crate::workers::survey::Survey;

/// Look at the host and put what it shows into `boot`, the present one; its
/// quotes are of the source `live host`.
pub fn gather(boot: &mut Boot, root: &Root, configuration: Option<&Path>) {
    let mut host = Host { live: root.is_live(), ..Host::default() };
    let loaded = config::load(root, configuration);
    let invalid = super::config::errors(&loaded);
    let config = loaded.config;
    for path in outcomes(root, &mut host.problems) {
        match root.text(&path, account::LONGEST) {
            Ok(text) => {
                if let Err(e) = boot.accounts.take(&path, &text) {
                    host.problems.push(format!("{path}: {e}"));
                }
            }
            // boot has not run, or not on this host.
            Err(e) if e.is_absent() => {}
            Err(e) => host.problems.push(e.to_string()),
        }
    }
    let node = Node::look(root, &config, boot.accounts.boot.as_deref());
    let source = u16::try_from(boot.names.len()).unwrap_or(u16::MAX);
    boot.names.push(if host.live { "live host".to_owned() } else { "tree".to_owned() });
    let names = netdevs(&node.observed);
    host.fabric = fabric(&node.observed, &node.survey, &names);
    // One that did not come, or that of a tree, is known by its name alone.
    host.asked = stacks::KNOWN
        .asked(root, |name| names.iter().any(|netdev| netdev == name) || is_ipoib_name(name));
    // A netdev that is down, or of a tree, has no address of its own.
    for subnet in stacks::addresses::configured(root, &host.asked) {
        if !host.fabric.subnets.contains(&subnet) {
            host.fabric.subnets.push(subnet);
        }
    }
    // One that is not there, or has something else in it, names no hosts.
    host.fabric.add_hosts(&root.text("/etc/hosts", 1 << 20).unwrap_or_default());
    host.fabric.units = node.inventory().users_of_ports();
    let failed = failed_units(boot);
    host.graph = graph(root, &host.fabric, &failed, &mut host.problems);
    let transaction = host.graph.transaction();
    host.asked.retain(|asked| transaction.contains(host.graph.resolve(&asked.unit)));
    // A tree without devices shows no state, and tells nothing of the node.
    let shows_devices = host.live || root.exists("/sys/bus/pci/devices");
    let mut unread = Vec::new();
    let mut seen = Gathering { node: &node, source, host };
    if shows_devices {
        let account = node.account(boot.accounts.boot.as_deref());
        seen.ladders(&account);
        seen.state(&mut boot.state);
        seen.host.judgement = Some(account.judge(invalid));
        unread = account.problems;
    }
    seen.units(&mut boot.state);
    let mut host = seen.host;
    host.opensm = opensm::faults(root, &config, &mut host.problems);
    host.autostart = observe::autostart::guests(root);
    host.resumed = observe::autostart::resumed(root);
    host.units = Some(observe::units::units(root));
    host.problems.extend(node.problems);
    host.problems.append(&mut unread);
    host.problems.extend(node.survey.problems);
    boot.host = Some(Box::new(host));
}

/// The files in which ibprov leaves its reports.
pub(super) fn outcomes(root: &Root, problems: &mut Vec<String>) -> Vec<String> {
    let run = state::RUN_DIR;
    let mut paths: Vec<String> =
        ["boot", "online", "guests"].iter().map(|name| format!("{run}/{name}.json")).collect();
    for dir in [state::PORTS, "pf"] {
        let dir = format!("{run}/{dir}");
        match root.list_or_empty(&dir) {
            Ok(names) => {
                let reports = names.into_iter().filter(|name| name.ends_with(".json"));
                paths.extend(reports.map(|name| format!("{dir}/{name}")));
            }
            Err(e) => problems.push(e.to_string()),
        }
    }
    paths
}

/// The units of the next boot by their files; of a live system also how those
/// that matter here are now.
fn graph(root: &Root, fabric: &Fabric, failed: &[String], problems: &mut Vec<String>) -> Graph {
    /// More than a node has; each costs systemd time.
    const MOST: usize = 64;
    /// Of them, those that have failed.
    const MOST_FAILED: usize = 32;
    let mut graph = files::graph(root);
    problems.append(&mut graph.problems);
    if !root.is_live() {
        return graph;
    }
    let provider = |n: &str| matches!(n, "ibprov.service" | "openibd.service" | "rdma.service");
    let mut matter: Vec<String> = graph
        .units()
        .filter(|u| u.load == Load::Loaded)
        .filter(|u| {
            provider(&u.name)
                || consumers::need(u, stacks::network_role).is_some()
                || runs_systemctl(u)
                || fabric.is_used_by(u)
        })
        .map(|u| u.name.clone())
        .filter(|name| !failed.contains(name))
        .collect();
    // Whether they are still so, the log does not say. One may have no file any more.
    matter.splice(0..0, failed.iter().take(MOST_FAILED).cloned());
    // Those are asked for although no boot starts them.
    for name in ["ibprov.service", "openibd.service"] {
        if graph.get(name).is_none() {
            matter.push(name.to_owned());
        }
    }
    matter.truncate(MOST);
    match systemctl::shown(show::PROPERTIES, &matter) {
        Ok(text) => show::graph(&text, "").into_units().for_each(|unit| graph.learn(unit)),
        Err(e) => problems.push(format!("systemd's units: {}", answer(&e))),
    }
    graph.settle();
    graph
}

/// The units that systemd said have failed in this boot.
fn failed_units(boot: &Boot) -> Vec<String> {
    let failed = boot.events.iter().filter_map(|event| match &event.kind {
        Kind::UnitFailed(unit) if unit.contains('.') => Some(unit.to_string()),
        Kind::UnitFailed(_) if !event.unit.is_empty() => Some(event.unit.to_string()),
        _ => None,
    });
    failed.collect::<BTreeSet<String>>().into_iter().collect()
}

/// The names and addresses of the fabric.
fn fabric(observed: &Observed, survey: &Survey, names: &[String]) -> Fabric {
    let devices = || observed.functions.iter().flat_map(|f| &f.rdma);
    let ports = devices().flat_map(|device| &device.ports);
    let mut fabric = Fabric {
        names: names.iter().cloned().chain(devices().map(|d| d.name.to_string())).collect(),
        guids: ports.filter_map(|port| port.guid).filter(|guid| !guid.is_zero()).collect(),
        ..Fabric::default()
    };
    // Whoever asks the kernel for addresses waits for the RTNL lock: the survey's child has.
    for (netdev, address) in &survey.addresses {
        let Some((ip, length)) = address.split_once('/') else { continue };
        let (Ok(ip), Ok(length)) = (ip.parse(), length.parse()) else { continue };
        if names.contains(netdev) {
            fabric.subnets.push((ip, length));
        }
    }
    fabric
}

/// True if it may start another unit and wait for it.
fn runs_systemctl(unit: &Unit) -> bool {
    unit.commands.iter().any(|c| {
        let scripts = c.script.iter().flatten();
        scripts.chain([&c.line]).any(|t| t.contains("systemctl") || t.contains("nm-online"))
    })
}

/// What is gathered of one host, and what it is gathered from.
struct Gathering<'a> {
    node: &'a Node<'a>,
    source: u16,
    host: Host,
}

impl Gathering<'_> {
    fn origin(&self) -> Origin {
        Origin { source: self.source, line: 0 }
    }

    /// How far each expected port is, and why no further.
    fn ladders(&mut self, account: &Account<'_>) {
        let node = self.node;
        let at_boot = progress(&node.expectation.clone().of_boot(), &node.observed);
        for JudgedPort { progress: port, cause, .. } in &account.ports {
            if let Some((module, ModuleTrouble::Denied { by })) = node.missing_module(port) {
                let at_boot = at_boot.iter().any(|waited| waited.pci == port.pci);
                self.host.denied.push(Denied { module, by, at_boot });
            }
            let up = |netdev| observe::link::netdev(node.root, netdev, None).admin_up;
            self.host.ports.push(HostPort {
                cause: cause.clone(),
                up: port.netdev.as_ref().and_then(up),
                progress: (*port).clone(),
            });
        }
    }

    /// What `ibstat`, `ip link`, `lspci` and `lsmod` would show.
    fn state(&mut self, seen: &mut State) {
        let functions = &self.node.observed.functions;
        let origin = self.origin();
        for ((pci, device, number), said) in &self.node.survey.ports {
            // No fabric is behind what manages an NVSwitch.
            let function = self.node.function(*pci).filter(|f| !f.manages_nvswitch());
            let rdma = function.and_then(|f| f.rdma.iter().find(|d| d.name == *device));
            let port = rdma.and_then(|d| d.ports.iter().find(|p| p.number == *number));
            let Some(port) = port else { continue };
            let link = &said.link;
            let is_it = |p: &PortProgress| p.pci == Some(*pci) && p.port == Some(*number);
            let role = match self.node.ports.iter().find(|p| is_it(p)) {
                Some(port) if port.optional => Role::Optional,
                Some(_) => Role::Expected,
                None => Role::Unexpected,
            };
            seen.ports.push(PortSeen {
                role: Some(role),
                device: device.to_string(),
                port: number.to_string(),
                state: link.state.map_or("", LinkState::word).to_ascii_lowercase(),
                physical: link.physical.map_or("", PhysicalState::word).to_ascii_lowercase(),
                infiniband: match port.link_layer {
                    LinkLayer::InfiniBand => Some(true),
                    LinkLayer::Ethernet => Some(false),
                    LinkLayer::Unknown => None,
                },
                // One that answers and knows no subnet manager says 0.
                sm_lid: match (link.sm_lid, link.state) {
                    (Some(lid), _) => lid.to_string(),
                    (None, Some(_)) => "0".to_owned(),
                    (None, None) => String::new(),
                },
                guid: port.guid.map_or(String::new(), |g| g.to_string().replace(':', "")),
                node_guid: rdma
                    .and_then(|d| d.node_guid)
                    .map_or(String::new(), |g| g.to_string().replace(':', "")),
                vf: function.map(PciFunction::is_vf).unwrap_or_default(),
                policy: said.policy,
                // What they lack is in the judgement.
                pkeys: Vec::new(),
                function: Some(*pci),
                origin,
                text: format!(
                    "{device}/{number}: state {}, physical state {}, sm_lid {}",
                    link.state.map_or("?", LinkState::word),
                    link.physical.map_or("?", PhysicalState::word),
                    link.sm_lid.map_or_else(|| "?".to_owned(), |lid| lid.to_string()),
                ),
            });
        }
        self.netdev_state(seen);
        for function in functions {
            let driver = function.driver.clone();
            seen.pci.push(PciSeen {
                address: function.address.to_string(),
                text: format!(
                    "{} class {} [{:04x}:{:04x}] driver {}",
                    function.address,
                    function.class,
                    function.vendor,
                    function.device,
                    driver.as_deref().unwrap_or("none")
                ),
                driver,
                details: Vec::new(),
                origin,
            });
        }
        // A copied tree may have no /proc, which says nothing of its modules.
        match self.node.root.text("/proc/modules", 1 << 20) {
            Ok(modules) => {
                let names = modules.lines().filter_map(|l| l.split(' ').next()).map(str::to_owned);
                seen.modules = Some(Modules::all(names));
            }
            Err(e) if e.is_absent() => {}
            Err(e) => self.host.problems.push(e.to_string()),
        }
    }

    /// What VFs lack is in the judgement.
    fn netdev_state(&mut self, seen: &mut State) {
        let origin = self.origin();
        for function in &self.node.observed.functions {
            let netdevs = function.ports().filter_map(|(d, p)| Some((d, p, p.netdev.as_ref()?)));
            for (device, port, netdev) in netdevs {
                let now = self.node.netdev(&netdev.name);
                // One that is down is the judgement's business.
                if now.admin_up != Some(true) {
                    continue;
                }
                seen.netdevs.push(NetdevSeen {
                    name: netdev.name.to_string(),
                    up: true,
                    carrier: now.carrier,
                    infiniband: true,
                    port: Some((device.name.to_string(), port.number.to_string())),
                    origin,
                    text: format!(
                        "{}: up, {}",
                        netdev.name,
                        match now.carrier {
                            Some(true) => "carrier",
                            Some(false) => "no carrier",
                            None => "carrier unknown",
                        }
                    ),
                    ..NetdevSeen::default()
                });
            }
        }
    }

    /// What `systemctl status` would show of the units that bring ports up.
    fn units(&self, seen: &mut State) {
        for name in ["ibprov.service", "openibd.service", "rdma.service", "opensm.service"] {
            let Some(unit) = self.host.graph.get(name).filter(|u| u.name == name) else { continue };
            if unit.load == Load::NotFound {
                continue;
            }
            let active = match unit.now.active.as_str() {
                "failed" => format!("failed (Result: {})", unit.now.result),
                other => other.to_owned(),
            };
            seen.units.push(UnitSeen {
                name: name.to_owned(),
                enabled: unit.file_state.clone(),
                text: format!("{name}: {}, {active}", unit.file_state),
                active,
                origin: self.origin(),
            });
        }
    }
}

/// The names of the IPoIB netdevs that are there.
fn netdevs(observed: &Observed) -> Vec<String> {
    let ports = observed.functions.iter().flat_map(PciFunction::ports);
    ports.filter_map(|(_, port)| Some(port.netdev.as_ref()?.name.to_string())).collect()
}
