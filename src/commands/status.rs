//! `ibprov status`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use super::config::{complain, errors};
use super::{print, screen};
use crate::cli::{Common, Format, StatusArgs};
use crate::config::{Config, Loaded};
use crate::host::events::Events;
use crate::host::{Root, clock, kernel_log, state, terminal};
use crate::ladder::active::{self, Activity};
use crate::model::{
    self, BootReport, Finding, NotExpected, PcieLink, PortProgress, PortStatus, ReadError,
    RxeReport, Status,
    status::{Absent, Child, Hca, Ladder, LastBoot, ModuleNow, Named, Role, SoftRoce},
};
use crate::names::{LinkLayer, MadPort, PhysicalState, Rung, Target, Targets};
use crate::node::{Account, JudgedPort, Node, history, soft_roce};
use crate::observe::link::PortAnswer;
use crate::observe::target::{NoSuch, meant};
use crate::observe::{self, Look, Observer, PciFunction, Port, RdmaDevice};
use crate::plan::settings::{Settings, parent_of_missing, settings};
use crate::show;
use crate::show::status::Detail;
use crate::stacks;

/// Show the state of the host.
///
/// # Errors
/// Standard output is gone.
pub fn run(args: &StatusArgs, loaded: &Loaded, root: &Root, common: &Common) -> Result<u8> {
    let invalid = errors(loaded);
    if !invalid.is_empty() {
        complain(&loaded.problems)?;
    }
    let look = || {
        let mut status = gather(args.gids, &loaded.config, invalid.clone(), root);
        if !args.names.is_empty() {
            keep(&mut status, &args.names, &loaded.config, root)?;
        }
        Ok(status)
    };
    let detail = match (args.problems, common.verbose) {
        (true, _) => Detail::Problems,
        (false, _) if !args.names.is_empty() => Detail::Named,
        (false, true) => Detail::All,
        (false, false) => Detail::Ports,
    };
    if args.watch {
        return watch(look, detail, root, common.format);
    }
    let status = look()?;
    print(&status.to_report(), common.format, |screen| show::status::text(&status, screen, detail))
}

/// Keep what has one of these names.
fn keep(status: &mut Status, names: &[Targets], config: &Config, root: &Root) -> Result<()> {
    let observed = Observer::new(root).look([], &BTreeSet::new());
    let mut targets = Vec::new();
    for name in names {
        let before = targets.len();
        match name {
            Targets::One(target) => targets.push(target.clone()),
            Targets::Like(pattern) => {
                let is_like = |name: &String| pattern.matches(name);
                let like = status.names().into_iter().filter(is_like);
                targets.extend(like.filter_map(|name| name.parse().ok()));
            }
        }
        if targets.len() == before {
            return Err(NoSuch::new(name, &observed).into());
        }
    }
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for target in &targets {
        let name = target.to_string();
        let mut absent = status.absent.iter().map(|absent| absent.expected.clone());
        let mut soft = status.soft_roce.iter().map(|soft| &soft.rxe);
        let is_soft = |rxe: &RxeReport| {
            rxe.name.to_string() == name
                || rxe.netdev.as_ref().is_some_and(|netdev| netdev.to_string() == name)
        };
        if absent.any(|expected| expected == name) || soft.any(is_soft) {
            others.push(name);
            continue;
        }
        let meant = meant(target, root, &observed).or_else(|none| {
            let Target::Name(child) = target else { return Err(none) };
            let parent = parent_of_missing(config, &stacks::interfaces(root, config), child);
            parent.map_or(Err(none), |parent| meant(&Target::Name(parent), root, &observed))
        });
        named.extend(meant?.into_iter().map(|meant| Named {
            pci: meant.function.address,
            ports: meant.ports.iter().map(|(_, port)| port.number).collect(),
        }));
    }
    status.keep(&named, &others);
    if root.is_live() {
        add_history(status);
    }
    Ok(())
}

/// Add what the kernel log has. That it cannot be read is a note already.
fn add_history(status: &mut Status) {
    let log = kernel_log().unwrap_or_default();
    let now = clock::now();
    for hca in &mut status.hcas {
        hca.history = history::of(&log, &hca.names(), now);
        let Some(device) = &hca.rdma else { continue };
        for port in &mut hca.ports {
            port.link_change = history::link_change(&log, device, port.port, now);
        }
    }
}

/// How often ports are looked at although nothing was heard: the kernel has no event for
/// their state.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Events come in bursts: one look is enough for those of so long.
const BURST: Duration = Duration::from_millis(250);

/// Show what `look` sees, and again when it is something else: on a terminal in the place of
/// what was shown before, elsewhere below it; JSON is one line each time.
fn watch(
    look: impl Fn() -> Result<Status>,
    detail: Detail,
    root: &Root,
    format: Format,
) -> Result<u8> {
    if !root.is_live() {
        anyhow::bail!("--watch cannot be combined with --root: nothing changes in a copied tree");
    }
    let outcomes = state::outcomes_dir(state::PORTS);
    let watched: Vec<&Path> = outcomes.iter().map(PathBuf::as_path).collect();
    let mut events = Events::open(&watched)?;
    events.listen_to_links();
    let mut out = terminal::stdout();
    let mut shown = String::new();
    loop {
        let looked = clock::now();
        let status = look()?;
        let text = match format {
            Format::Text => show::status::text(&status, screen(&out), detail),
            Format::Json => {
                format!("{}\n", status.to_report().to_json_line()?)
            }
        };
        if text != shown {
            match (format, terminal::is_terminal(&out), shown.is_empty()) {
                (Format::Text, true, _) => out.clear()?,
                (Format::Text, false, false) => writeln!(out)?,
                _ => {}
            }
            write!(out, "{text}")?;
            out.flush()?;
            if out.is_closed() {
                return Ok(status.judgement.verdict.exit().code());
            }
            shown = text;
        }
        let mut until = looked + LOOK_EVERY;
        while clock::now() < until {
            let happened = events.wait(until)?;
            if happened.stop {
                return Ok(status.judgement.verdict.exit().code());
            }
            // Children end with each look.
            if happened.links || happened.files || happened.to_devices() {
                until = until.min(clock::now() + BURST);
            }
        }
    }
}

/// The state of the host; `gids`: with the GID tables. `invalid` is what is wrong with the
/// configuration, and not in `config`.
pub(super) fn gather(gids: bool, config: &Config, invalid: Vec<Finding>, root: &Root) -> Status {
    let mut problems = Vec::new();
    let last_boot = last_boot(root, &mut problems);
    let node = Node::look(root, config, last_boot.as_ref());
    let account = node.account(last_boot.as_ref());
    let judgement = account.judge(invalid);
    let observed = &node.observed;
    let absent = node.ports.iter().filter(|port| port.reached.is_none());
    let absent =
        absent.map(|port| Absent { expected: port.expected.to_string(), optional: port.optional });
    let modules = observed.modules.iter().filter(|(name, _)| config.modules.load.contains(name));
    let modules = modules.map(|(name, state)| ModuleNow { name: name.clone(), state: *state });
    let soft_roce = node.soft_roce.iter().cloned();
    let soft_roce = soft_roce.map(|rxe| SoftRoce { gids: soft_roce::gids(gids, root, &rxe), rxe });
    let mut view = View { gids, account: &account, look: Look::new(root) };
    let shown = observed.functions.iter().filter(|f| node.is_shown(f));
    let hcas = shown.map(|f| view.hca(f, node.left_out.get(&f.address).cloned())).collect();
    let unread = view.look.problems;
    Status {
        judgement,
        kernel: observed.kernel.clone(),
        units: observe::units::units(root),
        last_boot: last_boot
            .as_ref()
            .map(|boot| LastBoot { verdict: boot.verdict, exit_code: boot.verdict.exit().code() }),
        modules: modules.collect(),
        udev: observed.udev.clone(),
        absent: absent.collect(),
        hcas,
        soft_roce: soft_roce.collect(),
        subnet_managers: account.subnet_managers.clone(),
        software_devices: observe::link::software_devices(root, &observed.functions),
        problems: node
            .problems
            .iter()
            .chain(&problems)
            .chain(&account.problems)
            .chain(&unread)
            .chain(&node.survey.problems)
            .cloned()
            .collect(),
    }
}

fn last_boot(root: &Root, problems: &mut Vec<String>) -> Option<BootReport> {
    let path = format!("{}/boot.json", state::RUN_DIR);
    let text = root.text(&path, 16 << 20).ok()?;
    match model::read::<BootReport>(&text) {
        Ok(report) => Some(report),
        Err(e @ ReadError::Schema { .. }) => {
            problems.push(format!("{path}: {e}"));
            None
        }
        Err(ReadError::Json(e)) => {
            tracing::debug!(cause = %e, "{path}: {e}");
            problems.push(format!("{path} is not a boot report"));
            None
        }
    }
}

/// All that the lines are made of.
struct View<'a> {
    gids: bool,
    account: &'a Account<'a>,
    /// Notes what could not be read.
    look: Look<'a>,
}

impl View<'_> {
    fn hca(&mut self, function: &PciFunction, left_out: Option<NotExpected>) -> Hca {
        let device = function.rdma.first();
        let pci = function.address;
        let bound = function.driver.is_some();
        let Account { node, ports, .. } = self.account;
        let judged = ports.iter().find(|port| port.progress.pci == Some(pci));
        Hca {
            pci,
            id: format!("{:04x}:{:04x}", function.vendor, function.device),
            driver: function.driver.clone(),
            rdma: device.map(|d| d.name.clone()),
            node_guid: device.and_then(|d| d.node_guid),
            card: device
                .map(|d| observe::link::card(&mut self.look, pci, &d.name))
                .unwrap_or_default(),
            node_description: device
                .and_then(|d| observe::link::node_description(node.root, pci, &d.name)),
            pcie: node.survey.pcie.get(&pci).copied().filter(|link| *link != PcieLink::default()),
            role: role(left_out.as_ref(), judged),
            planned: self.account.pfs.iter().find(|pf| pf.pci == Some(pci)).cloned(),
            history: None,
            ports: function
                .ports()
                .map(|(d, p)| self.port(function, d, p, left_out.as_ref()))
                .collect(),
            left_out,
            ladder: Ladder::of(
                &Rung::ALL,
                |rung| match rung {
                    Rung::Pci => true,
                    Rung::Driver => bound,
                    Rung::Rdma => device.is_some(),
                    _ => false,
                },
                judged.and_then(why),
            ),
            vfs: self.account.vfs.get(&pci).cloned().unwrap_or_default(),
        }
    }

    /// Why the fabric does not use a port: an expected one, or an InfiniBand port beside them.
    fn why_not_active(
        &self,
        function: &PciFunction,
        layer: LinkLayer,
        at: &MadPort,
        judged: Option<&JudgedPort<'_>>,
        told: Option<&PortAnswer>,
    ) -> Option<String> {
        if let Some(port) = judged {
            return match &port.activity {
                Activity::Lacks(_, words) => Some(words.text.clone()),
                Activity::Active | Activity::NotTold | Activity::NotShown => None,
            };
        }
        let answer = told.filter(|_| layer != LinkLayer::Ethernet)?;
        active::lack(&answer.link, Rung::Active)?;
        let subject = self.account.node.subject(Some(function), function.address, at.clone());
        Some(active::words(&subject, answer).text)
    }

    /// The P_Key children of the netdev `parent`.
    fn children(&self, parent: u32) -> Vec<Child> {
        let children = self.account.node.interfaces.all.iter().filter(|i| i.parent == Some(parent));
        children
            .map(|child| Child {
                name: child.name.clone(),
                pkey: child.pkey,
                state: self.account.node.netdev(&child.name),
            })
            .collect()
    }

    fn port(
        &self,
        function: &PciFunction,
        device: &RdmaDevice,
        port: &Port,
        left_out: Option<&NotExpected>,
    ) -> PortStatus {
        let (pci, name) = (function.address, &device.name);
        let Account { node, ports, .. } = self.account;
        let told = node.survey.port(pci, name, port.number);
        let link = told.map(|told| told.link.clone()).unwrap_or_default();
        let judged = ports.iter().find(|p| {
            p.progress.rdma.as_ref() == Some(name) && p.progress.port == Some(port.number)
        });
        let progress = judged.map(|port| port.progress);
        let is_roce = progress.is_some_and(|p| p.must_be_ethernet);
        let netdev = if is_roce { &port.ethernet } else { &port.netdev }.as_ref();
        let up = link.physical == Some(PhysicalState::LinkUp);
        let why = judged
            .and_then(why)
            .or_else(|| told.is_none().then(|| "its state was not reported".to_owned()))
            .or_else(|| {
                let at = MadPort { device: Some(name.clone()), port: Some(port.number) };
                self.why_not_active(function, port.link_layer, &at, judged, told)
            });
        let roce = progress.filter(|_| is_roce).map(|p| node.roce(p)).unwrap_or_default();
        let reached = |rung| match rung {
            Rung::Pci | Rung::Driver | Rung::Rdma => true,
            Rung::Configured => netdev.is_some_and(|n| {
                let name = &n.name;
                // Whose settings another program makes lacks none of the configuration's.
                let none_is_wanted = node.expectation.goal < Rung::Configured;
                let made = || settings(node.config, &node.interfaces, name) == Settings::Made;
                n.named && (none_is_wanted || made() && !node.facts.unset.contains_key(name))
            }),
            Rung::Netdev => netdev.is_some(),
            Rung::Named => netdev.is_some_and(|n| n.named),
            Rung::Link => up,
            Rung::Active => link.is_active(),
            Rung::Carrier => roce.up && roce.carrier == Some(true),
            Rung::Gid => roce.has_gid,
        };
        let is_of_other_type = progress.is_some_and(PortProgress::is_of_other_type);
        let rungs: &[Rung] = match netdev {
            _ if is_roce && !is_of_other_type => &Rung::ROCE,
            None if node.expectation.goal == Rung::Rdma => &Rung::WITHOUT_IPOIB,
            _ => &Rung::ALL,
        };
        let ladder = Ladder::of(rungs, reached, why);
        PortStatus {
            link_change: None,
            port: port.number,
            role: role(left_out, judged),
            guid: port.guid,
            link_layer: port.link_layer,
            degraded: judged.map(|port| port.degraded.clone()).unwrap_or_default(),
            is_of_other_type,
            is_roce,
            netdev: netdev.or(port.ethernet.as_ref()).map(|n| n.name.clone()),
            children: port.netdev.as_ref().map(|n| self.children(n.ifindex)).unwrap_or_default(),
            netdev_state: netdev.map(|n| node.netdev(&n.name)),
            addresses: node
                .survey
                .addresses
                .iter()
                .filter(|(n, _)| netdev.is_some_and(|d| d.name.as_str() == n))
                .map(|(_, a)| a.clone())
                .collect(),
            ladder,
            pkeys: node.survey.pkeys(pci, name, port.number).map(<[_]>::to_vec),
            gids: self
                .gids
                .then(|| observe::link::gids(node.root, pci, name, (port.number, port.link_layer))),
            link,
        }
    }
}

fn why(port: &JudgedPort<'_>) -> Option<String> {
    port.cause.as_ref().map(|cause| cause.text.clone())
}

/// What is expected of what is `left_out`, or was judged.
fn role(left_out: Option<&NotExpected>, judged: Option<&JudgedPort<'_>>) -> Role {
    match (judged, left_out) {
        (Some(port), _) if port.progress.optional => Role::Optional,
        (Some(_), _) => Role::Expected,
        (None, None | Some(NotExpected::NotListed)) => Role::Unexpected,
        (None, Some(_)) => Role::Ignored,
    }
}
