//! Running steps: children, their locks, and what their failures mean.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::{Span, debug, error_span, warn};

use super::machine::{Child, Machine};
use crate::host::lock::{LockError, Locks};
use crate::host::process::{self, Ended};
use crate::host::{self, KernelLine, Root, alarm};
use crate::ladder::KernelLogFacts;
use crate::ladder::module_trouble::{Signs, diagnose};
use crate::model::{Cause, Exit, ModuleTrouble, Step, StepReport, events as kinds, listed};
use crate::names::{ModuleName, ModuleState, Moment, PciAddress, RdmaName, usec};
use crate::observe::{ModprobeRules, Observed, PciFunction, is_built};
use crate::plan::Done;

/// So many lines of the kernel are remembered while steps run.
const KERNEL_LINES: usize = 2_000;

/// The steps of one run.
#[derive(Debug)]
pub(super) struct Steps<'a> {
    machine: &'a dyn Machine,
    root: &'a Root,
    /// What the site says about modules.
    rules: &'a ModprobeRules,
    locks: Option<&'a Locks>,
    /// The configuration file that was given; children read the same.
    config_file: Option<&'a Path>,
    /// Do also what interrupts the traffic of who uses an interface or an adapter.
    force: bool,
    /// systemd has started this run, as ibprov.service.
    of_unit: bool,
    pub(super) done: Done,
    running: Vec<(Step, Worker)>,
    pub(super) reports: Vec<StepReport>,
    kernel_lines: Vec<String>,
    last_stderr: String,
    pub(super) forks: u32,
}

#[derive(Debug)]
enum Worker {
    /// A child of this run.
    Ours(Box<dyn Child>),
    /// A child that an earlier run left behind, known by the lock it holds.
    Stranded { lock: String, pid: u32 },
}

impl<'a> Steps<'a> {
    pub(super) fn new(
        machine: &'a dyn Machine,
        root: &'a Root,
        rules: &'a ModprobeRules,
        locks: Option<&'a Locks>,
        config_file: Option<&'a Path>,
        force: bool,
    ) -> Self {
        Self {
            machine,
            root,
            rules,
            locks,
            config_file,
            force,
            of_unit: alarm::is_of_unit(),
            done: Done::default(),
            running: Vec::new(),
            reports: Vec::new(),
            kernel_lines: Vec::new(),
            last_stderr: String::new(),
            forks: 0,
        }
    }

    /// Remember what the kernel says while modules load.
    pub(super) fn hear(&mut self, line: &KernelLine) {
        if self.running.is_empty() {
            return;
        }
        // The first lines and the last ones are kept: a module that hangs may fill the log.
        if self.kernel_lines.len() >= KERNEL_LINES {
            self.kernel_lines.remove(KERNEL_LINES / 2);
        }
        self.kernel_lines.push(line.text.clone());
    }

    /// A child of an earlier run is at work, of whose end its lock tells.
    pub(super) fn watches_another_run(&self) -> bool {
        self.running.iter().any(|(_, worker)| matches!(worker, Worker::Stranded { .. }))
    }

    /// When a child of this run began with such a step, if it is at work.
    pub(super) fn at_work_since(&self, is_it: impl Fn(&Step) -> bool) -> Option<Moment> {
        self.running.iter().find_map(|(step, worker)| match worker {
            Worker::Ours(child) if is_it(step) => Some(child.started()),
            Worker::Ours(_) | Worker::Stranded { .. } => None,
        })
    }

    /// The driver of `pci` is being loaded. What the kernel said of an earlier probe tells
    /// nothing of the one that is to come.
    pub(super) fn is_loading_driver(&self, pci: PciAddress) -> bool {
        let is_it = |step: &Step| matches!(step, Step::LoadDriver { pci: of, .. } if *of == pci);
        self.running.iter().any(|(step, _)| is_it(step))
    }

    /// Begin a step. One whose object is still held by an earlier run's child
    /// is not begun again, only watched.
    pub(super) fn begin(&mut self, step: Step, facts: &mut KernelLogFacts) {
        let _step = span_of(&step).entered();
        let started_usec = self.machine.now();
        self.done.begun.insert(step.clone());
        if let Step::PortTypes { pci, .. } = &step {
            facts.setting_types.insert(*pci);
        }
        let what = Recipe::of(&step, self.config_file, self.force, self.of_unit);
        let name = what.lock;
        let lock = match self.locks.map(|l| l.try_take(&name)) {
            Some(Ok(held)) => Some(held),
            Some(Err(LockError::Busy { owner })) => {
                let pid = owner.unwrap_or_default();
                warn!(pid, "{step}: process {pid} of an earlier run is still running");
                self.running.push((step.clone(), Worker::Stranded { lock: name, pid }));
                self.note(step, started_usec, None);
                return;
            }
            Some(Err(e)) => {
                debug!(cause = %e, "{step}: without a lock: {e}");
                None
            }
            None => None,
        };
        let program = match what.is_modprobe {
            true => self.machine.find("modprobe").ok_or("modprobe is not installed (package kmod)"),
            false => Ok(PathBuf::from("/proc/self/exe")),
        };
        let begun = program.map_err(str::to_owned).and_then(|program| {
            let child = self.machine.start(&program, &what.arguments, lock);
            child.map_err(|e| format!("cannot run {}: {}", program.display(), host::answer(&e)))
        });
        match begun {
            Ok(child) => {
                self.forks += 1;
                self.running.push((step.clone(), Worker::Ours(child)));
                self.note(step, started_usec, None);
            }
            Err(failure) => {
                self.done.ended.insert(step.clone());
                if let Step::PortTypes { pci, .. } = &step {
                    facts.setting_types.remove(pci);
                    facts.unset_types.insert(*pci, failure.clone());
                }
                for module in step.modules() {
                    let said = failure.clone().into();
                    facts.modules.insert(module.clone(), ModuleTrouble::Other { said });
                }
                self.note(step, started_usec, Some(failure));
            }
        }
    }

    /// Note that a step was begun, or could not be.
    fn note(&mut self, step: Step, started_usec: Moment, failure: Option<String>) {
        let took_usec = failure.is_some().then_some(0);
        self.reports.push(StepReport { step, started_usec, took_usec, failure });
    }

    /// The steps that have ended since the last call.
    pub(super) fn collect_ended(&mut self) -> Vec<(Step, Ended)> {
        let mut ended = Vec::new();
        let locks = self.locks;
        self.running.retain_mut(|(step, worker)| match has_ended(worker, locks) {
            Some(end) => {
                ended.push((step.clone(), end));
                false
            }
            None => true,
        });
        ended
    }

    /// What a step came to, by a look at the host after it ended: its exit code
    /// alone proves nothing.
    pub(super) fn judge(
        &mut self,
        step: &Step,
        end: &Ended,
        facts: &mut KernelLogFacts,
        observed: &Observed,
    ) {
        self.done.ended.insert(step.clone());
        self.last_stderr.clone_from(&end.stderr);
        let failure = self.failure(step, end, facts, observed);
        tell(step, end.took, failure.as_deref());
        if let Some(report) = self.reports.iter_mut().find(|r| r.step == *step) {
            report.took_usec = Some(usec(end.took));
            report.failure = failure;
        }
    }

    /// What went wrong with a step that has ended, if anything did; the facts
    /// learn it.
    fn failure(
        &self,
        step: &Step,
        end: &Ended,
        facts: &mut KernelLogFacts,
        observed: &Observed,
    ) -> Option<String> {
        let is_loaded =
            |module: &ModuleName| observed.modules.get(module) == Some(&ModuleState::Loaded);
        for module in step.modules().iter().filter(|m| is_loaded(m)) {
            facts.modules.remove(module);
        }
        match step {
            // Each is tried alone next, to learn why.
            Step::LoadModules { modules } => {
                let absent = modules.iter().filter(|m| !is_loaded(m)).cloned();
                let modules: Vec<ModuleName> = absent.collect();
                (!modules.is_empty()).then(|| format!("did not bring {}", listed(&modules)))
            }
            Step::LoadModule { module } | Step::LoadRdmaHalf { module, .. } => {
                if is_loaded(module) {
                    return None;
                }
                let trouble = self.trouble(module, observed);
                let failure = format!("{module}: {trouble}");
                facts.modules.insert(module.clone(), trouble);
                Some(failure)
            }
            Step::LoadDriver { pci, .. } => {
                let failure = ended(end)?;
                let of = |f: &PciFunction| f.address == *pci && f.driver.is_some();
                if !observed.functions.iter().any(of) {
                    facts.no_driver.insert(*pci);
                }
                Some(failure)
            }
            Step::NetnsMode { .. } => ended(end),
            Step::NameRdma { .. } => ended_or_left(end),
            Step::PortTypes { pci, .. } => {
                facts.setting_types.remove(pci);
                let failure = ended_or_left(end)?;
                match left(end) {
                    Some(said) => facts.types_in_use.insert(*pci, said.to_owned()),
                    None => facts.unset_types.insert(*pci, failure.clone()),
                };
                Some(failure)
            }
            Step::CreateRxe { .. } => ended(end),
            Step::Configure { netdev, .. } => {
                let failure = ended_or_left(end)?;
                // Its outcome says by what it is in use, or that it has disappeared.
                if left(end).is_none() {
                    let unset = Cause::not_made(netdev, failure.clone());
                    facts.unset.insert(netdev.clone(), unset);
                }
                Some(failure)
            }
        }
    }

    /// Why `module` is absent, by all that was heard so far.
    pub(super) fn trouble(&self, module: &ModuleName, observed: &Observed) -> ModuleTrouble {
        let stuck = self.running.iter().find(|(step, _)| step.modules().contains(module));
        if let Some((_, worker)) = stuck {
            return ModuleTrouble::Stuck { pid: worker.pid() };
        }
        let built = is_built(self.root, &observed.kernel, module);
        diagnose(
            module,
            Signs {
                rules: self.rules,
                kernel: &observed.kernel,
                built,
                stderr: &self.last_stderr,
                kernel_lines: &self.kernel_lines,
            },
        )
    }

    /// The deadline has come: what still runs is stuck.
    pub(super) fn give_up(&self, facts: &mut KernelLogFacts) {
        for (step, worker) in &self.running {
            if !self.done.ended.contains(step) {
                for module in step.modules() {
                    facts
                        .modules
                        .insert(module.clone(), ModuleTrouble::Stuck { pid: worker.pid() });
                }
            }
        }
    }

    pub(super) fn creations_of(&self, name: &RdmaName) -> impl Iterator<Item = &StepReport> {
        let is_it =
            move |step: &Step| matches!(step, Step::CreateRxe { name: of, .. } if of == name);
        self.reports.iter().filter(move |report| is_it(&report.step))
    }
}

fn tell(step: &Step, took: Duration, failure: Option<&str>) {
    let took_usec = usec(took);
    let _step = span_of(step).entered();
    match failure {
        None => debug!(message_id = kinds::STEP_DONE, took_usec, "done: {step}"),
        Some(cause) => {
            warn!(message_id = kinds::STEP_FAILED, took_usec, cause, "failed: {step}: {cause}");
        }
    }
}

/// What is said of a step is said in this span.
fn span_of(step: &Step) -> Span {
    let (pci, module, netdev) = match step {
        Step::LoadModules { .. } => (None, None, None),
        Step::LoadModule { module } => (None, Some(module), None),
        Step::LoadDriver { pci, .. } => (Some(pci), None, None),
        Step::LoadRdmaHalf { pci, module } => (Some(pci), Some(module), None),
        Step::NetnsMode { .. } => (None, None, None),
        Step::PortTypes { pci, .. } | Step::NameRdma { pci, .. } => (Some(pci), None, None),
        Step::Configure { netdev, .. } | Step::CreateRxe { netdev, .. } => {
            (None, None, Some(netdev))
        }
    };
    error_span!(
        "step",
        %step,
        pci = pci.map(display),
        module = module.map(display),
        netdev = netdev.map(display)
    )
}

/// How the program of a step failed, if it did, and what it wrote to standard error.
fn ended(end: &Ended) -> Option<String> {
    Some(format!("{}: {}", end.failure?, end.stderr))
}

/// What a child of our own kind has left undone, as what would interrupt somebody's traffic: it ends
/// with exit status 1 then. Nothing where it wrote to the journal.
fn left(end: &Ended) -> Option<&str> {
    let is_left = end.failure?.exit_code() == Some(Exit::Exceptions.code());
    is_left.then_some(end.stderr.as_str())
}

/// As [`ended`], of a child that may leave something undone.
fn ended_or_left(end: &Ended) -> Option<String> {
    match left(end) {
        Some("") => Some("left undone".to_owned()),
        Some(said) => Some(format!("left undone: {said}")),
        None => ended(end),
    }
}

impl Worker {
    fn pid(&self) -> u32 {
        match self {
            Self::Ours(child) => child.pid(),
            Self::Stranded { pid, .. } => *pid,
        }
    }
}

fn has_ended(worker: &mut Worker, locks: Option<&Locks>) -> Option<Ended> {
    match worker {
        Worker::Ours(child) => child
            .ended()
            .unwrap_or_else(|e| Some(Ended::unseen(Some(process::Failure::not_seen(&e))))),
        // Free again: the lock is dropped at once, the next step takes its own.
        Worker::Stranded { lock, .. } => {
            locks?.try_take(lock).ok().map(|_free| Ended::unseen(None))
        }
    }
}

/// What a step is done by.
struct Recipe {
    /// By modprobe, or else by a child of our own kind, which can be stuck where it waits for a
    /// sick driver.
    is_modprobe: bool,
    arguments: Vec<String>,
    /// One lock per object: the module set, one module, one PCI function.
    lock: String,
}

impl Recipe {
    fn of(step: &Step, config_file: Option<&Path>, force: bool, of_unit: bool) -> Self {
        let modprobe = |arguments: Vec<String>, lock| {
            // It honours deny-lists as udev does.
            let arguments = ["-b".to_owned()].into_iter().chain(arguments).collect();
            Self { is_modprobe: true, arguments, lock }
        };
        let one = |name: &str| vec!["--".to_owned(), name.to_owned()];
        let ibprov = |arguments: Vec<String>, lock| Self { is_modprobe: false, arguments, lock };
        let force = force.then(|| "--force".to_owned());
        match step {
            Step::LoadModules { modules } => {
                let options = ["-a", "--"].map(str::to_owned).into_iter();
                let names = modules.iter().map(ToString::to_string);
                modprobe(options.chain(names).collect(), "modules".to_owned())
            }
            Step::LoadModule { module } => {
                modprobe(one(module.as_str()), format!("module-{module}"))
            }
            Step::LoadDriver { pci, modalias } => modprobe(one(modalias), format!("driver-{pci}")),
            Step::LoadRdmaHalf { pci, module } => {
                modprobe(one(module.as_str()), format!("{module}-{pci}"))
            }
            Step::NetnsMode { mode } => {
                let arguments = vec!["set-netns-mode".to_owned(), mode.to_string()];
                ibprov(arguments, "netns-mode".to_owned())
            }
            Step::PortTypes { pci, types } => {
                let words = ["set-port-type".to_owned(), pci.to_string()].into_iter();
                let types = types.iter().map(|(port, of)| format!("{port}={of}"));
                ibprov(words.chain(force).chain(types).collect(), format!("port-types-{pci}"))
            }
            Step::NameRdma { pci, name } => {
                let unless_used = force.is_none().then(|| "--unless-used".to_owned());
                let words = ["name-rdma".to_owned()].into_iter().chain(unless_used);
                let arguments = words.chain([pci.to_string(), name.to_string()]);
                ibprov(arguments.collect(), format!("name-rdma-{pci}"))
            }
            Step::CreateRxe { name, netdev } => {
                let words = ["create-rxe", "--", name.as_str(), netdev.as_str()];
                ibprov(words.map(str::to_owned).to_vec(), format!("rxe-{name}"))
            }
            Step::Configure { netdev, ifindex } => {
                let words = ["iface", "--settings-only"].map(str::to_owned).into_iter();
                let file = config_file.map(|file| format!("--config={}", file.display()));
                let of_boot = of_unit.then(|| "--of-boot".to_owned());
                let options = words.chain(file).chain(force).chain(of_boot);
                let arguments = options.chain(one(netdev.as_str()));
                // Not the interface's own, which the child takes.
                ibprov(arguments.collect(), format!("configure-{ifindex}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::Live;
    use super::*;

    #[test]
    fn of_a_flood_of_kernel_lines_the_first_and_the_last_are_remembered() {
        let dir = crate::host::testing::tree(&[], &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let rules = ModprobeRules::default();
        let mut steps = Steps::new(&Live, &root, &rules, None, None, false);
        let step = Step::LoadModule { module: "ib_ipoib".parse().expect("name") };
        steps.running.push((step, Worker::Stranded { lock: String::new(), pid: 1 }));
        for number in 0..10_000 {
            steps.hear(&KernelLine { at: Moment::START, level: 4, text: number.to_string() });
        }
        assert_eq!(steps.kernel_lines.len(), KERNEL_LINES);
        let ends = [steps.kernel_lines.first(), steps.kernel_lines.last()];
        assert_eq!(ends.map(|line| line.map(String::as_str)), [Some("0"), Some("9999")]);
    }

    #[test]
    fn a_child_reads_the_configuration_that_its_parent_was_given() {
        let step = Step::Configure { netdev: "ib0".parse().expect("name"), ifindex: 7 };
        let file = Path::new("/etc/site.toml");
        let arguments =
            |file, force, of_unit| Recipe::of(&step, file, force, of_unit).arguments.join(" ");
        assert_eq!(
            arguments(Some(file), true, true),
            "iface --settings-only --config=/etc/site.toml --force --of-boot -- ib0"
        );
        assert_eq!(arguments(None, false, false), "iface --settings-only -- ib0");
    }
}
