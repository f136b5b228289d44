//! The judgement of the node, for the verbs that show it: what is known is gathered here.

mod adapters;
mod fabric;
pub mod firmware;
pub mod history;
mod judge;
pub mod pf_preview;
mod ports;
pub mod soft_roce;
mod subnet_managers;
mod vfs;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

pub use self::adapters::roce_row;
pub use self::judge::unreadable;
pub use self::ports::JudgedPort;
use crate::apply::warnings::{foreseen_of_all, send_queue_warning};
use crate::apply::{in_use, ipoib};
use crate::config::Config;
use crate::config::pins::Pins;
use crate::config::timespan::TimeSpan;
use crate::host::{KernelLine, Root, answer, kernel_log};
use crate::inventory::{self, Entry, Inventory};
use crate::ladder::active::Activity;
use crate::ladder::expect::{candidate, expectation};
use crate::ladder::module_trouble::{self, Signs};
use crate::ladder::next_boot;
use crate::ladder::progress::progress;
use crate::ladder::roce::{self};
use crate::ladder::{Expectation, KernelLogFacts, cause};
use crate::model::{
    BootReport, Cause, Code, Finding, ModuleTrouble, NetDevState, NotExpected, PlannedPf,
    PortProgress, RxeReport, Severity, ToDo,
    hardware::VfStatus,
    netns::{Netns, OtherAgent},
    online::Lack,
    stack::ConfiguredNetdev,
    subnet_manager::SubnetManagerReport,
};
use crate::names::{
    IfName, ModuleName, ModuleState, NetnsMode, PciAddress, PortWait, Rung, is_ipoib_name,
};
use crate::observe::ipoib::{Interface, Interfaces};
use crate::observe::plan_host::{self, PlanHost};
use crate::observe::{self, Look, ModprobeRules, Observed, PciFunction, driver_modules};
use crate::plan::guid::{Resolved, pins_unreadable, resolve};
use crate::plan::settings::{Children, Settings, judge_settings, settings};
use crate::plan::{denied_modules, misnamed};
use crate::stacks;
use crate::workers::survey::{Survey, survey};

/// The node, looked at once: what is there, what the configuration expects, how far that is
/// and why it is no further.
#[derive(Debug)]
pub struct Node<'a> {
    pub root: &'a Root,
    pub config: &'a Config,
    pub observed: Observed,
    pub survey: Survey,
    pub soft_roce: Vec<RxeReport>,
    pub rules: ModprobeRules,
    /// Without what is left out.
    pub expectation: Expectation,
    pub left_out: BTreeMap<PciAddress, NotExpected>,
    pub interfaces: Interfaces,
    /// What the network stacks of this boot are configured to set up.
    pub asked: Vec<ConfiguredNetdev>,
    pub facts: KernelLogFacts,
    /// The expected ports, with their settings judged.
    pub ports: Vec<PortProgress>,
    /// What could not be read.
    pub problems: Vec<String>,
    inventory: OnceCell<Inventory>,
}

/// What is judged: the node, and what more than one judge or a verb needs besides.
#[derive(Debug)]
pub struct Account<'a> {
    pub node: &'a Node<'a>,
    /// The expected ports.
    pub ports: Vec<JudgedPort<'a>>,
    /// The plans, as far as they can be held against the host.
    pub pfs: Vec<PlannedPf>,
    pub subnet_managers: Vec<SubnetManagerReport>,
    /// What could not be read.
    pub problems: Vec<String>,
    /// Why the last run at a PF did not change the number of its VFs, if it failed in that.
    last_runs: BTreeMap<PciAddress, String>,
    /// The VFs of each PF.
    pub vfs: BTreeMap<PciAddress, Vec<VfStatus>>,
    /// The first run of ibprov.service in this boot is under way: how long it has.
    boot_has: Option<TimeSpan>,
    last_boot: Option<&'a BootReport>,
    /// Units of ibprov's, but for those of subnet managers.
    failed_units: Vec<String>,
    /// Guests that did not come up.
    guests: Vec<Finding>,
}

/// The plans of all PFs, and what they are made from.
#[derive(Debug)]
pub struct Plans {
    pub facts: PlanHost,
    pub pins: Result<Pins, String>,
    pub resolved: Vec<Resolved>,
    /// What could not be read.
    pub problems: BTreeSet<String>,
}

impl<'a> Node<'a> {
    /// Look at the node below `root`. `last_boot` has tried to load modules, and of a refused
    /// signature the kernel log may say nothing.
    pub fn look(root: &'a Root, config: &'a Config, last_boot: Option<&BootReport>) -> Self {
        Self::look_for(Children::Counted, false, root, config, last_boot)
    }

    /// As a run of `ibprov iface` would find it; with `force` nothing counts as in use.
    pub fn look_as_iface(root: &'a Root, config: &'a Config, force: bool) -> Self {
        Self::look_for(Children::Counted, force, root, config, None)
    }

    /// As boot would find it.
    pub fn look_as_boot(root: &'a Root, config: &'a Config, force: bool) -> Self {
        Self::look_for(Children::Excused, force, root, config, None)
    }

    fn look_for(
        children: Children,
        force: bool,
        root: &'a Root,
        config: &'a Config,
        last_boot: Option<&BootReport>,
    ) -> Self {
        let modules: Vec<ModuleName> =
            config.modules.load.iter().cloned().chain(driver_modules()).collect();
        let is_asked = |f: &PciFunction| f.physfn.is_none() || f.driver.is_some();
        let is_roce = |f: &PciFunction| roce::is_expected(config, f);
        let soft_roce = soft_roce::judged(config, root);
        let mut interfaces = stacks::interfaces(root, config);
        let mut netdevs = soft_roce::netdevs(&soft_roce);
        let with_parent = interfaces.all.iter().filter(|interface| interface.parent.is_some());
        netdevs.extend(with_parent.map(|child| child.name.clone()));
        let (observed, survey) = survey(root, &modules, is_asked, is_roce, &netdevs);
        let rules = ModprobeRules::read(root);
        let mut problems: Vec<String> = observed.problems.iter().cloned().collect();
        let mut facts = KernelLogFacts::default();
        learn(&mut facts, root, config, &rules, &observed, last_boot, &mut problems);
        // Boot loads it, and waits for what it makes.
        let has_netdev = |f: &PciFunction| f.ports().any(|(_, port)| port.netdev.is_some());
        let is_without = children == Children::Counted
            && observed.is_absent("ib_ipoib")
            && !observed.functions.iter().any(has_netdev);
        facts.wants_ipoib = if is_without {
            ipoib::wanted(root, config, &rules)
        } else {
            ipoib::wanted_denied(root, config, &rules)
        };
        let mut expectation = expectation(config, &observed, &rules, facts.wants_ipoib.as_deref());
        expectation.is_whole = children == Children::Counted;
        if is_without && facts.wants_ipoib.is_none() {
            expectation.goal = Rung::Rdma;
        }
        let mut ports = progress(&expectation, &observed);
        // Of an RDMA device without ports a copy does not tell more than that it is there.
        for port in ports.iter_mut().filter(|port| port.port.is_none() && !root.is_live()) {
            port.reached = port.rdma.as_ref().map(|_| Rung::Rdma).or(port.reached);
        }
        let is_ipoib = |name: &str| {
            is_ipoib_name(name) || interfaces.all.iter().any(|i| i.name.as_str() == name)
        };
        let asked = stacks::KNOWN.claims(root, is_ipoib);
        if !force {
            in_use::learn(config, root, (&observed, &survey), &mut interfaces, &mut facts);
        }
        judge_settings(config, &interfaces, &mut ports, &mut facts, children);
        Node {
            root,
            config,
            soft_roce: soft_roce::with_lacks(soft_roce, root, &survey),
            observed,
            survey,
            left_out: std::mem::take(&mut expectation.left_out).into_iter().collect(),
            expectation,
            rules,
            interfaces,
            asked,
            facts,
            ports,
            problems,
            inventory: OnceCell::new(),
        }
    }

    /// Why `port`, one that is expected, is no further.
    pub fn cause(&self, port: &PortProgress) -> Option<Cause> {
        let cause = cause::cause(port, &self.observed, &self.facts)?;
        match self.missing_module(port) {
            Some((name, trouble)) if !trouble.tells() => Some(Cause::not_loaded(&name)),
            _ => Some(cause),
        }
    }

    /// The module that the next rung of `port` needs and that is not there.
    pub fn missing_module(&self, port: &PortProgress) -> Option<(ModuleName, ModuleTrouble)> {
        let name = self.next_module(port)?;
        let trouble = self.facts.modules.get(&name)?.clone();
        Some((name, trouble))
    }

    /// The module that the next rung of `port` needs.
    fn next_module(&self, port: &PortProgress) -> Option<ModuleName> {
        let function = self.function(port.pci?);
        match port.missing()? {
            Rung::Driver => function?.ib_driver?.parse().ok(),
            Rung::Rdma => observe::rdma_half(function?.driver.as_deref()?),
            Rung::Netdev if !port.must_be_ethernet => "ib_ipoib".parse().ok(),
            _ => None,
        }
    }

    /// The next rung of a port needs `module`, so that what is said of it is said of the port.
    pub fn is_lacked_by_a_port(&self, module: &ModuleName) -> bool {
        self.ports.iter().any(|port| self.next_module(port).as_ref() == Some(module))
    }

    /// What touches InfiniBand at boot beside ibprov, once it is asked for.
    pub fn inventory(&self) -> &Inventory {
        self.inventory.get_or_init(|| Inventory::read(self.root))
    }

    pub fn function(&self, pci: PciAddress) -> Option<&PciFunction> {
        self.observed.functions.iter().find(|f| f.address == pci)
    }

    /// True if `function` is shown by itself: VFs of this host are shown below their PF.
    pub fn is_shown(&self, function: &PciFunction) -> bool {
        let is_expected = self.ports.iter().any(|port| port.pci == Some(function.address));
        let is_hca = candidate(function).is_some() || !function.rdma.is_empty();
        function.physfn.is_none() && (is_hca || is_expected)
    }

    /// Whether the netdev of that name is up and has carrier.
    pub fn netdev(&self, name: &IfName) -> NetDevState {
        observe::link::netdev(self.root, name, self.survey.carriers.get(name).copied())
    }

    fn planned(&self, problems: &mut Vec<String>) -> Vec<PlannedPf> {
        if self.config.pf.is_empty() {
            return Vec::new();
        }
        let (pfs, unread) = self.held_against(self.plans());
        problems.extend(unread);
        pfs
    }

    /// The plans of all PFs.
    pub fn plans(&self) -> Plans {
        let mut look = Look::new(self.root);
        let facts = plan_host::plan_host(&mut look, &self.observed, self.config);
        let pins = plan_host::pins(self.root);
        let resolved = resolve(self.config, pins.as_ref().map_err(String::as_str), &facts);
        Plans { facts, pins, resolved, problems: look.problems }
    }

    /// `plans`, held against the host, and what could not be read. An adapter that has just been
    /// silent is not asked again.
    pub fn held_against(&self, plans: Plans) -> (Vec<PlannedPf>, BTreeSet<String>) {
        let (rtnl, is_rdma_held) = (self.survey.rtnl, self.survey.is_rdma_held);
        let mut hanging = self.survey.silent.clone();
        hanging.extend(self.survey.unread.iter().map(|pci| (*pci, rtnl)));
        let mut preview = pf_preview::PfPreview::new(self.root, hanging, is_rdma_held);
        preview.problems = plans.problems;
        let inventory = self.inventory();
        preview.problems.extend(inventory.problems.iter().cloned());
        let with_writers = |plan| {
            let mut pf = preview.report(plan, &plans.facts);
            if let Some(function) = pf.pci.and_then(|pci| self.function(pci)) {
                let places: Vec<String> =
                    inventory.vf_writers(function).map(Entry::to_string).collect();
                pf.warnings.extend((!places.is_empty()).then(|| other_writer(&places.join(", "))));
            }
            pf
        };
        let pfs = plans.resolved.iter().map(with_writers).collect();
        (pfs, preview.problems)
    }

    /// The RDMA network namespace mode, where one is configured.
    pub fn netns(&self) -> Option<Netns> {
        let (wanted, is) = (self.config.netns_mode?, self.observed.netns_mode);
        let option = self.rules.option("ib_core", "netns_mode").and_then(|(value, origin)| {
            Some((origin.to_owned(), NetnsMode::from_parameter(value)?))
        });
        let others = option.into_iter().chain(self.inventory().netns_modes());
        let others = others.filter(|(_, mode)| *mode != wanted);
        let others = others.map(|(place, mode)| OtherAgent { place, mode }).collect();
        Some(Netns { wanted, is, others })
    }

    /// The settings of interfaces that cannot be made, or are left as they are.
    fn settings(&self) -> Vec<Finding> {
        let of = |interface: &Interface| match settings(
            self.config,
            &self.interfaces,
            &interface.name,
        ) {
            Settings::Left(why) | Settings::Open { refused: Some(why), .. } => why.of_settings(),
            _ => Vec::new(),
        };
        let is_asked = !self.config.interfaces.is_empty();
        self.interfaces.all.iter().filter(|_| is_asked).flat_map(of).collect()
    }

    /// The RDMA devices that have another name than their `[[port]]` says.
    fn misnamed(&self) -> impl Iterator<Item = Finding> {
        misnamed(self.config, &self.observed).map(|(device, _)| {
            let message = "another name is configured (rdma-name), which a restart of ibprov sets";
            let finding = Finding::warning(Code::RdmaNameDiffers, message).about(&device.name);
            let look = ToDo::run("ibprov boot --dry-run");
            finding.look([look]).now([ToDo::run("systemctl restart ibprov")])
        })
    }

    /// What network stacks are configured to set otherwise than it is wanted, and who renames
    /// RDMA devices that the configuration names.
    pub fn contradictions(&self) -> Vec<Finding> {
        let mut findings = foreseen_of_all(self.root, self.config, &self.interfaces);
        findings.extend(inventory::not_run(self.root));
        findings.extend(send_queue_warning(self.root, &self.rules, &self.observed));
        // A driver that comes after the boot is loaded by another program, whose deny-list it may be.
        let is_late = self.expectation.expected.iter().any(|e| e.wait == PortWait::Online);
        let ports = if is_late { &[][..] } else { &self.ports };
        findings.extend(next_boot::findings(self.root, &self.rules, &self.observed, ports));
        let origins = self.config.rdma_names();
        if origins.is_empty() {
            return findings;
        }
        let inventory = self.inventory();
        findings.extend(inventory.problems.iter().map(Finding::not_read));
        let renamers = inventory.rdma_renamers();
        if !renamers.is_empty() {
            let message = format!(
                "RDMA devices are renamed here, so that the name in {} may be of no RDMA device, or of another one",
                origins.join(", ")
            );
            let finding = Finding::warning(Code::RdmaOtherNamer, message).about_all(&renamers);
            findings.push(finding.permanent([
                "name adapters by pci or port-guid in the configuration, or remove the other program",
            ]));
        }
        findings
    }

    /// The soft RoCE devices, where any is configured.
    pub fn configured_rxe(&self) -> Vec<RxeReport> {
        if self.config.rxe.is_empty() { Vec::new() } else { self.soft_roce.clone() }
    }
}

/// What the kernel log and modprobe's files tell of why a port is no further.
fn learn(
    facts: &mut KernelLogFacts,
    root: &Root,
    config: &Config,
    rules: &ModprobeRules,
    observed: &Observed,
    last_boot: Option<&BootReport>,
    problems: &mut Vec<String>,
) {
    let log = if root.is_live() { kernel_log() } else { Ok(Vec::new()) };
    let lines: Vec<KernelLine> = log.unwrap_or_else(|e| {
        let e = answer(&e);
        problems.push(format!("cannot read /dev/kmsg, so causes may be missing: {e}"));
        Vec::new()
    });
    for line in &lines {
        cause::learn(facts, line.level, &line.text);
    }
    let kernel_lines: Vec<String> = lines.into_iter().map(|l| l.text).collect();
    let kernel = observed.kernel.as_str();
    let is_absent = |m: &&ModuleName| observed.modules.get(*m) == Some(&ModuleState::Absent);
    facts.modules = denied_modules(config, rules, observed);
    for module in config.modules.load.iter().filter(is_absent) {
        if facts.modules.contains_key(module) {
            continue;
        }
        let built = observe::is_built(root, kernel, module);
        // A copied tree may lack the folder of modules, which says nothing of the host's.
        if built.is_none() && !root.is_live() {
            continue;
        }
        // Nobody has tried: what can be told without trying.
        let signs = Signs { rules, kernel, built, stderr: "", kernel_lines: &kernel_lines };
        let mut trouble = module_trouble::diagnose(module, signs);
        if let (ModuleTrouble::Other { said }, Some(tried)) =
            (&trouble, last_boot.and_then(|report| report.trouble_of(module)))
            && said.is_nothing()
        {
            trouble = tried.clone();
        }
        facts.modules.insert(module.clone(), trouble);
    }
}

/// What a valid configuration may have to say of this host: the expected ports that have no link
/// now, of which it does not say that this is meant, and what is wrong with the pins and with
/// subnet managers.
pub fn of_host(config: &Config, root: &Root) -> (Vec<PortProgress>, Vec<Finding>) {
    let node = Node::look(root, config, None);
    let mut problems = Vec::new();
    let mut failed = node.failed_units(&mut problems);
    let subnet_managers = node.subnet_managers(&mut failed, &mut problems);
    let mut findings: Vec<Finding> = unreadable_pins(root).into_iter().collect();
    findings.extend(node.subnet_manager_findings(&subnet_managers));
    findings.extend(unknown_to_nvshmem(config, &node.observed));
    let is_dark = |port: &&PortProgress| {
        !port.optional
            && port.is_ready()
            && match node.activity(port) {
                Activity::Lacks(lack, _) => matches!(lack, Lack::Link | Lack::Carrier),
                Activity::Active | Activity::NotTold | Activity::NotShown => false,
            }
    };
    (node.ports.iter().filter(is_dark).cloned().collect(), findings)
}

/// The names of RDMA devices by which NVSHMEM does not know an adapter of mlx5 (`strstr(name,
/// "mlx5")` in the transports ibrc, ibgda and ibdevx up to 3.3.9).
fn unknown_to_nvshmem(config: &Config, observed: &Observed) -> Option<Finding> {
    let is_mlx5 = |pci| {
        let mut functions = observed.functions.iter();
        functions.any(|f| f.address == pci && f.ib_driver == Some("mlx5_core"))
    };
    let rows = config.ports.iter().filter_map(|row| Some((row, row.rdma_name()?)));
    let mut unknown =
        rows.filter(|(_, (pci, name))| is_mlx5(*pci) && !name.as_str().contains("mlx5"));
    let (row, (_, name)) = unknown.next()?;
    let message = format!(
        "NVSHMEM up to 3.3.9, and DeepEP with it, use only RDMA devices whose names contain mlx5: not {name}{}",
        match unknown.count() {
            0 => String::new(),
            n => format!(", and {n} more"),
        }
    );
    let advice = format!("if programs on this node use NVSHMEM: name them mlx5_{name} ...");
    let finding = Finding::new(Code::Notice, Severity::Info, message).about(&row.origin);
    Some(finding.permanent([advice]))
}

/// That the pins cannot be read, if so.
pub fn unreadable_pins(root: &Root) -> Option<Finding> {
    let why = plan_host::pins(root).err()?;
    // The message has the path.
    Some(pins_unreadable(&why))
}

/// The lines of files at `place` set the number of a PF's VFs too.
fn other_writer(place: &str) -> Finding {
    let message = format!(
        "VFs are created, or given GUIDs, by {place} too: of two writers the later is refused, or replaces what the other has set"
    );
    Finding::warning(Code::VfOtherWriter, message)
        .permanent([format!("remove what {place} does, or the [[pf]] of this PF")])
}
