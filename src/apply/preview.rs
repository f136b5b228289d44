//! `ibprov boot --dry-run`: the same look and the same plan, without the doing.

use std::collections::BTreeSet;

use super::iface::{planned, seen_for_plan, would_defer};
use super::in_use;
use super::pfs::{self, Plans};
use super::rtnl::Rtnl;
use super::warnings::foreseen_of_all;
use crate::config::Config;
use crate::host::Root;
use crate::ladder::{Expectation, Facts, cause, expect, progress};
use crate::names::{IfName, ModuleName, PciAddress, Rung};
use crate::observe::ipoib::Interfaces;
use crate::observe::rxe::rxe;
use crate::observe::{ModprobeRules, Observer, driver_modules, namespaces};
use crate::plan::preview::{DryRunVerdict, PfSteps};
use crate::plan::rxe::judge_rxe;
use crate::plan::settings::{Children, judge_settings};
use crate::plan::{Done, boot_steps, denied_modules, needed_modules};
use crate::report::advice::Advice;
use crate::report::boot::{LeftOut, Step};
use crate::report::common::{Code, Finding, Kind, Report};
use crate::report::iface::{DeferredSettings, IfaceStep};
use crate::report::netns::Netns;
use crate::report::pf::Unresolved;
use crate::report::rxe::{RxeReport, RxeState};
use crate::report::{Cause, ModuleTrouble, NotExpected, PortProgress};
use crate::stacks;
use crate::workers::products::Products;

/// What `boot` would do and wait for, seen from now.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Preview {
    /// The steps that would be taken at once.
    pub steps: Vec<Step>,
    /// The soft RoCE devices, if any is configured.
    pub rxe: Vec<RxeReport>,
    /// Configured modules that would not be loaded, and where the site denies them.
    pub denied: Vec<DeniedModule>,
    /// The ports that would be waited for.
    pub ports: Vec<PortProgress>,
    /// Of each of the ports why it cannot come by waiting, if that is seen already.
    #[serde(skip)]
    hopeless: Vec<Option<Cause>>,
    /// How long each of them would be waited for, seconds.
    pub timeout_sec: u64,
    /// The interfaces that would be set.
    pub settings: Vec<Settings>,
    /// The PFs of the configuration, as far as it is clear which they are.
    pub pfs: Vec<PfSteps>,
    /// The others.
    pub unresolved: Vec<Unresolved>,
    /// What would not be waited for.
    pub left_out: Vec<LeftOut>,
    /// What will not stay as it is wanted.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// The RDMA network namespace mode, where one is configured.
    #[serde(skip)]
    pub netns: Option<Netns>,
}

impl Preview {
    fn verdict(&self) -> DryRunVerdict {
        // A device that cannot be created, a setting that an interface cannot have.
        let is_refused = self.settings.iter().any(|set| !set.refused.is_empty());
        if is_refused || self.rxe.iter().any(RxeReport::is_refused) {
            return DryRunVerdict::WouldFail;
        }
        match DryRunVerdict::of(&self.pfs, &self.unresolved) {
            DryRunVerdict::NothingToDo | DryRunVerdict::Deferred if self.is_pending() => {
                DryRunVerdict::WouldChange
            }
            DryRunVerdict::NothingToDo if self.is_deferred() => DryRunVerdict::Deferred,
            verdict => verdict,
        }
    }

    /// What `port` lacks is a module that would be loaded.
    fn would_load(&self, port: &PortProgress) -> Option<Cause> {
        let modules = self.steps.iter().flat_map(|step| match step {
            Step::LoadModules { modules } => modules.as_slice(),
            Step::LoadModule { module } => std::slice::from_ref(module),
            _ => &[],
        });
        let ipoib = modules.into_iter().find(|module| module.as_str() == "ib_ipoib")?;
        (port.missing() == Some(Rung::Netdev) && !port.must_be_ethernet)
            .then(|| Cause::not_loaded(ipoib))
    }

    /// With the keys that every report has.
    pub fn told(&self) -> Report<DryRunVerdict, &Self> {
        let mut findings: Vec<Finding> =
            self.unresolved.iter().flat_map(Unresolved::findings).collect();
        let ports = self.ports.iter().zip(&self.hopeless);
        findings.extend(ports.filter_map(|(port, hopeless)| {
            let to_be_loaded = || self.would_load(port);
            port.finding(hopeless.clone().or_else(to_be_loaded).as_ref())
        }));
        let rxe = self.rxe.iter().filter(|rxe| rxe.state != RxeState::Absent);
        findings.extend(rxe.filter_map(RxeReport::finding));
        findings.extend(self.pfs.iter().flat_map(PfSteps::findings));
        for DeniedModule { name, trouble } in &self.denied {
            findings.push(trouble.finding(name));
        }
        for set in &self.settings {
            // Of a port's own interface the port's finding tells.
            let mut ports = self.ports.iter().zip(&self.hopeless);
            let is_told = ports.any(|(port, hopeless)| {
                let refused = Some(Code::SettingRefused);
                port.netdev.as_ref() == Some(&set.netdev)
                    && hopeless.as_ref().is_some_and(|cause| cause.code == refused)
            });
            let refused = set.refused.iter().filter(|_| !is_told);
            let refused = refused.map(|why| Finding::error(Code::SettingRefused, why));
            findings.extend(refused.map(|finding| finding.about(&set.netdev)));
            let deferred = set.deferred.iter().map(|deferred| {
                Finding::warning(Code::SettingDeferred, deferred.sentence(&set.netdev))
                    .advise([Advice::now(DeferredSettings::command(&set.netdev))])
            });
            findings.extend(deferred.map(|finding| finding.about(&set.netdev)));
        }
        Finding::worst_first(&mut findings);
        findings.extend(self.warnings.iter().map(|w| Finding::warning(Code::Notice, w)));
        findings.extend(self.netns.iter().flat_map(Netns::contradictions));
        Report::new(Kind::BootDryRun, self.verdict(), findings, self)
    }
}

/// A module that would not be loaded, as the site denies it.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeniedModule {
    /// Its name.
    pub name: ModuleName,
    /// Where the site denies it.
    pub trouble: ModuleTrouble,
}

/// What would be set at an interface.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Settings {
    /// The interface.
    pub netdev: IfName,
    /// In this order.
    pub steps: Vec<IfaceStep>,
    /// What would be left undone, because it is in use.
    pub deferred: Option<DeferredSettings>,
    /// What is asked for and cannot be.
    #[serde(skip)]
    pub refused: Vec<String>,
    /// Where it is asked for.
    pub origins: Vec<String>,
}

/// Look, and say what would be done; nothing is changed. The steps at the PFs of the
/// plans are for the caller to add: reading those takes a child.
pub fn preview(config: &Config, root: &Root, force: bool) -> (Preview, Plans) {
    let rules = ModprobeRules::read(root);
    let modules: Vec<ModuleName> =
        config.modules.load.iter().cloned().chain(driver_modules()).collect();
    let mut observed = Observer::new(root).look(&modules, &BTreeSet::new());
    // What could not be read is taken for an HCA, and shown as one.
    Products::new(root).with_overrides().learn_all(&mut observed);
    let expectation = expect::expectation(config, &observed, &rules);
    let mut ports = progress::progress(&expectation, &observed);
    let mut steps = boot_steps(config, &rules, &observed, &expectation, &ports, &Done::default());
    let needed = needed_modules(config, &observed, !ports.is_empty());
    let denials = denied_modules(config, &rules, &observed);
    let denied = denials.iter().filter(|(name, _)| needed.contains(name));
    let denied = denied
        .map(|(name, trouble)| (name.clone(), trouble.clone()))
        .map(|(name, trouble)| DeniedModule { name, trouble })
        .collect();
    let mut interfaces = stacks::interfaces(root, config);
    let mut facts = Facts::default();
    facts.modules = denials;
    if !force {
        in_use::learn(config, root, &observed, &mut interfaces, &mut facts);
    }
    let is_left = |step: &Step| matches!(step, Step::PortTypes { pci, .. } if facts.types_in_use.contains_key(pci));
    steps.retain(|step| !is_left(step));
    judge_settings(config, &interfaces, &mut ports, &mut facts, Children::Excused);
    let why =
        |port: &PortProgress| cause::cause(port, &observed, &facts).filter(|cause| cause.is_final);
    let settings = settings(config, root, &interfaces, force);
    // A run of boot would wait for the interface's own run, which cannot make them.
    let refused = |port: &PortProgress| {
        let mut own = settings.iter().filter(|set| port.netdev.as_ref() == Some(&set.netdev));
        let set = own.find(|set| set.steps.is_empty() && !set.refused.is_empty())?;
        (port.missing() == Some(Rung::Configured))
            .then(|| Cause::refused(&set.netdev, set.refused.join("; ")))
    };
    let hopeless = ports.iter().map(|port| why(port).or_else(|| refused(port))).collect();
    let plans = pfs::resolve(config, root, &observed);
    let warnings = foreseen_of_all(root, config, &interfaces);
    let netns = config.netns_mode;
    let netns = netns.map(|wanted| namespaces::netns(root, &rules, observed.netns_mode, wanted));
    let preview = Preview {
        steps,
        rxe: soft_roce(config, root),
        denied,
        ports,
        hopeless,
        timeout_sec: config.boot.adapter_timeout.as_secs(),
        settings,
        pfs: Vec::new(),
        unresolved: plans.unresolved.clone(),
        left_out: left_out(expectation, &plans),
        warnings,
        netns,
    };
    (preview, plans)
}

/// How each soft RoCE device of the configuration stands.
fn soft_roce(config: &Config, root: &Root) -> Vec<RxeReport> {
    match config.rxe.as_slice() {
        [] => Vec::new(),
        rows => judge_rxe(rows, &rxe(root, rows)),
    }
}

/// What would be set at the interfaces that are there.
fn settings(config: &Config, root: &Root, interfaces: &Interfaces, force: bool) -> Vec<Settings> {
    if config.interfaces.is_empty() {
        return Vec::new();
    }
    let mut rtnl = Rtnl::to_look();
    let all = interfaces.all.iter();
    all.filter_map(|interface| {
        let seen = seen_for_plan(config, root, interfaces, interface, &mut rtnl);
        let (wanted, mut plan) = planned(config, &seen);
        match interfaces.uses.get(&seen.interface.ifindex) {
            Some(uses) => plan.defer(uses.clone()),
            // Its mode has just been asked for.
            None => would_defer(force, root, &seen, &mut rtnl, &mut plan),
        }
        let is_set = plan.steps.is_empty() && plan.deferred.is_none() && plan.refused.is_empty();
        (!is_set).then(|| Settings {
            netdev: seen.interface.name.clone(),
            steps: plan.steps,
            deferred: plan.deferred,
            refused: plan.refused,
            origins: wanted.origins,
        })
    })
    .collect()
}

/// VFs for which there is a plan are waited for by it.
fn left_out(expectation: Expectation, plans: &Plans) -> Vec<LeftOut> {
    let has_plan = |pf: &PciAddress| plans.wanted.iter().any(|(wanted, _)| wanted.pf == *pf);
    let left_out = expectation.left_out.into_iter().filter(
        |(_, reason)| !matches!(reason, NotExpected::VfOfThisHost { physfn } if has_plan(physfn)),
    );
    left_out.map(|(pci, reason)| LeftOut { pci, reason }).collect()
}

impl Preview {
    /// Something would be done, or waited for, beside what the plans of VFs ask for.
    pub fn is_pending(&self) -> bool {
        let is_in_use = |hopeless: &Option<Cause>| hopeless.as_ref().is_some_and(|c| c.in_use);
        let mut ports = self.ports.iter().zip(&self.hopeless);
        let is_set = |set: &Settings| !set.steps.is_empty() || !set.refused.is_empty();
        !self.steps.is_empty()
            || ports.any(|(port, hopeless)| !port.is_ready() && !is_in_use(hopeless))
            || self.settings.iter().any(is_set)
            || self.rxe.iter().any(|rxe| matches!(rxe.state, RxeState::Absent | RxeState::NotNamed))
    }

    /// Something is left as it is, because it is in use.
    fn is_deferred(&self) -> bool {
        self.settings.iter().any(|set| set.deferred.is_some())
            || self.hopeless.iter().flatten().any(|cause| cause.in_use)
    }

    /// The text of it: what would be done, in this order, and what would not.
    pub fn to_text(&self) -> String {
        let mut stages = vec![self.loads(), self.creates(), self.waits(), self.sets()];
        let pfs = self.pfs.iter().filter(|pf| pf.is_pending()).map(PfSteps::lines);
        stages.extend(pfs.chain(self.unresolved.iter().map(Unresolved::lines)));
        stages.retain(|stage| !stage.is_empty());
        let is_complete = self.ports.iter().all(PortProgress::is_ready);
        let head = match (stages.is_empty(), self.ports.is_empty()) {
            (false, _) => "boot would do this, in this order:",
            (true, true) => "boot would do nothing: no InfiniBand port is expected",
            (true, false) if is_complete => "boot would do nothing, and would not wait",
            (true, false) if self.is_deferred() => {
                "boot would do nothing: what is not as configured is in use"
            }
            (true, false) => {
                "boot would do nothing: the ports that are missing cannot appear by waiting"
            }
        };
        let mut lines = vec![head.to_owned()];
        for (at, stage) in stages.iter().enumerate() {
            let number = format!("{}. ", at + 1);
            for (line, first) in
                stage.iter().zip([true].into_iter().chain(std::iter::repeat(false)))
            {
                let indent = if first { number.clone() } else { " ".repeat(number.len()) };
                lines.push(format!("{indent}{line}"));
            }
        }
        for port in self.ports.iter().filter(|port| port.is_ready() && !port.is_ethernet()) {
            let netdev = port.netdev.as_ref().map(|netdev| format!(" as {netdev}"));
            lines.push(format!("ready: {}{}", port.label(), netdev.unwrap_or_default()));
        }
        for pf in self.pfs.iter().filter(|pf| !pf.is_pending()) {
            lines.extend(pf.lines());
        }
        for DeniedModule { name: module, trouble } in &self.denied {
            lines.push(format!("not loaded: {module}: {trouble}"));
        }
        let told = self.rxe.iter().filter(|rxe| rxe.state != RxeState::Absent);
        lines.extend(told.map(ToString::to_string));
        lines.extend(self.deferred());
        lines.extend(self.not_waited_for());
        lines.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        let others = self.netns.iter().flat_map(Netns::contradictions);
        lines.extend(others.map(|other| format!("warning: {}", other.message)));
        lines.push(String::new());
        lines.join("\n")
    }

    fn loads(&self) -> Vec<String> {
        match self.steps.as_slice() {
            [step] => vec![step.to_string()],
            [] => Vec::new(),
            steps => {
                let steps = steps.iter().map(|step| format!("  {step}"));
                ["in parallel:".to_owned()].into_iter().chain(steps).collect()
            }
        }
    }

    fn creates(&self) -> Vec<String> {
        let created = self.rxe.iter().filter(|rxe| rxe.state == RxeState::Absent);
        let line = |rxe: &RxeReport| {
            let netdev = rxe.netdev.as_ref()?;
            Some(format!("create the soft RoCE device {} on {netdev}", rxe.name))
        };
        created.filter_map(line).collect()
    }

    fn waits(&self) -> Vec<String> {
        let waited = self.ports.iter().zip(&self.hopeless);
        let waited = waited.filter(|(port, hopeless)| !port.is_ready() && hopeless.is_none());
        let mut lines: Vec<String> = waited
            .map(|(port, _)| {
                let optional = if port.optional { " (optional)" } else { "" };
                let state = port.missing().map_or("", Rung::lacking);
                format!("  {}{optional}: {state}; expected state: {}", port.label(), port.goal)
            })
            .collect();
        if !lines.is_empty() {
            lines.insert(0, format!("wait up to {} s for each adapter:", self.timeout_sec));
        }
        lines
    }

    fn sets(&self) -> Vec<String> {
        let set = |set: &Settings| {
            let steps: Vec<String> = set.steps.iter().map(ToString::to_string).collect();
            let steps = (!steps.is_empty()).then(|| {
                format!("{}: {} ({})", set.netdev, steps.join(", "), set.origins.join(", "))
            });
            let refused = set.refused.iter().map(|why| format!("error: {why}"));
            steps.into_iter().chain(refused).collect::<Vec<_>>()
        };
        self.settings.iter().flat_map(set).collect()
    }

    /// What would be left undone, because it is in use.
    fn deferred(&self) -> Vec<String> {
        let set = |set: &Settings| {
            let deferred = set.deferred.as_ref()?.sentence(&set.netdev);
            let command = DeferredSettings::command(&set.netdev);
            Some(format!("deferred: {deferred}; to do it now: {command}"))
        };
        self.settings.iter().filter_map(set).collect()
    }

    /// One line for each reason.
    fn not_waited_for(&self) -> Vec<String> {
        let is_told = |port: &PortProgress| {
            let of_it = |set: &&Settings| Some(&set.netdev) == port.netdev.as_ref();
            self.settings.iter().find(of_it).is_some_and(|set| set.deferred.is_some())
        };
        let hopeless = self.ports.iter().zip(&self.hopeless).filter_map(|(port, hopeless)| {
            let why = hopeless.as_ref().filter(|_| !port.is_ready() && !is_told(port))?;
            Some(format!("not waited for: {}: {}", port.label(), why.text))
        });
        let mut lines: Vec<String> = hopeless.collect();
        let mut reasons: Vec<(String, Vec<PciAddress>)> = Vec::new();
        for LeftOut { pci, reason } in &self.left_out {
            let reason = reason.to_string();
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, functions)) => functions.push(*pci),
                None => reasons.push((reason, vec![*pci])),
            }
        }
        lines.extend(reasons.iter().map(|(reason, functions)| {
            let first = functions.first().map(ToString::to_string).unwrap_or_default();
            let more = match functions.len() - 1 {
                0 => String::new(),
                n => format!(" and {n} more functions"),
            };
            format!("not waited for: {first}{more}: {reason}")
        }));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Problems, Source, resolve};
    use crate::host::testing::{reads, tree};

    /// What the preview of a host with so many P_Key children, which all are to have other names
    /// and settings, reads.
    fn reads_of(children: u32) -> u64 {
        let mut files = Vec::new();
        let mut text = "[[interface]]\nmatch.name = \"ib0\"\numcast = true\n".to_owned();
        let mut netdev = |name: &str, index: u32, parent: u32, pkey: u32| {
            let broadcast = format!(
                "00:ff:ff:ff:ff:12:40:1b:{:02x}:{:02x}:00:00:00:00:00:00:ff:ff:ff:ff",
                pkey >> 8,
                pkey & 0xff
            );
            for (attribute, value) in [
                ("ifindex", index.to_string()),
                ("iflink", parent.to_string()),
                ("type", "32".to_owned()),
                ("uevent", String::new()),
                ("umcast", "0".to_owned()),
                ("mode", "datagram".to_owned()),
                ("broadcast", broadcast),
            ] {
                files.push((format!("sys/class/net/{name}/{attribute}"), value));
            }
        };
        netdev("ib0", 3, 3, 0xffff);
        for child in 1..=children {
            let pkey = 0x8000 + child;
            netdev(&format!("ib0.{pkey:x}"), 3 + child, 3, pkey);
            text.push_str(&format!(
                "[[interface.partition]]\npkey = \"0x{pkey:04x}\"\nname = \"p{child}\"\n"
            ));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        let dir = tree(&files, &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let source = Source { path: "/c.toml".to_owned(), text };
        let config = match resolve(vec![source], Problems::default()) {
            Ok(loaded) => loaded.config,
            Err(problems) => panic!("{problems}"),
        };
        let before = reads();
        let (preview, _) = preview(&config, &root, false);
        assert_eq!(preview.settings.len(), 1 + usize::try_from(children).expect("few"));
        reads() - before
    }

    /// Each P_Key child is read once, however many others there are.
    #[test]
    fn what_is_read_grows_with_the_number_of_children() {
        let [some, more, most] = [10, 20, 40].map(reads_of);
        assert_eq!(most - more, 2 * (more - some), "{some}, {more}, {most}");
    }
}
