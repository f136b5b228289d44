use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::config::Config;
use crate::ladder::{Expectation, PortProgress, Rung};
use crate::names::{ModuleName, PciAddress};
use crate::observe::{ModprobeRules, ModuleState, Observed, rdma_half};

/// One thing that `boot` does to the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// Load these modules with one `modprobe -a`.
    LoadModules {
        /// In this order.
        modules: Vec<ModuleName>,
    },
    /// Load one module that the step above did not bring, to learn why.
    LoadModule {
        /// Which.
        module: ModuleName,
    },
    /// Load whatever drives a function that udev left without a driver.
    LoadDriver {
        /// The function.
        pci: PciAddress,
        /// Its modalias.
        modalias: String,
    },
    /// Load the RDMA half of a driver whose core is bound and that has
    /// registered no RDMA device.
    LoadRdmaHalf {
        /// The function that needs it.
        pci: PciAddress,
        /// `mlx5_ib` or `mlx4_ib`.
        module: ModuleName,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoadModules { modules } => {
                let names: Vec<&str> = modules.iter().map(ModuleName::as_str).collect();
                write!(f, "load {}", names.join(", "))
            }
            Self::LoadModule { module } => write!(f, "load {module}"),
            Self::LoadDriver { pci, .. } => write!(f, "load the driver of {pci}"),
            Self::LoadRdmaHalf { pci, module } => write!(f, "load {module} for {pci}"),
        }
    }
}

/// What boot has done so far: no step is taken twice.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// Steps that were begun.
    pub begun: BTreeSet<Step>,
    /// Steps that have come to their end.
    pub ended: BTreeSet<Step>,
    /// Auxiliary devices and PCI functions that udev was seen to finish with.
    pub processed: BTreeSet<String>,
}

impl Done {
    /// True while a step that loads configured modules runs.
    #[must_use]
    pub fn modules_in_flight(&self) -> bool {
        self.begun
            .difference(&self.ended)
            .any(|step| matches!(step, Step::LoadModules { .. } | Step::LoadModule { .. }))
    }
}

/// The steps to take now. Nothing is done on a host that expects no port.
#[must_use]
pub fn boot_steps(
    config: &Config,
    rules: &ModprobeRules,
    observed: &Observed,
    expectation: &Expectation,
    progress: &[PortProgress],
    done: &Done,
) -> Vec<Step> {
    if expectation.expected.is_empty() {
        return Vec::new();
    }
    let mut steps = modules(config, rules, observed, done);
    for port in progress {
        steps.extend(driver(config, observed, port, done));
    }
    steps.retain(|step| !done.begun.contains(step));
    steps.dedup();
    steps
}

/// All missing modules at once, then one by one what did not come.
fn modules(config: &Config, rules: &ModprobeRules, observed: &Observed, done: &Done) -> Vec<Step> {
    let absent = |m: &&ModuleName| observed.modules.get(m) == Some(&ModuleState::Absent);
    // modprobe would leave a deny-listed one out without a word.
    let missing: Vec<ModuleName> = config
        .modules
        .load
        .iter()
        .filter(absent)
        .filter(|m| rules.denied(m).is_none())
        .cloned()
        .collect();
    let all_at_once = done.begun.iter().find(|s| matches!(s, Step::LoadModules { .. }));
    match all_at_once {
        _ if missing.is_empty() => Vec::new(),
        None => vec![Step::LoadModules { modules: missing }],
        Some(step) if !done.ended.contains(step) => Vec::new(),
        Some(_) => missing.into_iter().map(|module| Step::LoadModule { module }).collect(),
    }
}

fn driver(config: &Config, observed: &Observed, port: &PortProgress, done: &Done) -> Option<Step> {
    let pci = port.pci?;
    let function = observed.functions.iter().find(|f| f.address == pci)?;
    let finished = |id: &str| observed.udev.settled || done.processed.contains(id);
    match port.missing()? {
        // udev loads it by the same modalias: only what it left undone is ours.
        Rung::Driver if function.processed || finished(&pci.to_string()) => {
            let skipped = function
                .ib_driver
                .is_some_and(|d| config.modules.skip.iter().any(|m| m.as_str() == d));
            (!skipped && !function.modalias.is_empty())
                .then(|| Step::LoadDriver { pci, modalias: function.modalias.clone() })
        }
        Rung::Rdma if function.rdma.is_empty() => {
            let module = rdma_half(function.driver.as_deref()?)?;
            let absent = observed.modules.get(&module) == Some(&ModuleState::Absent);
            let skipped = config.modules.skip.contains(&module);
            // With an auxiliary device udev is about to load it by itself.
            let udev_is_done = match &function.rdma_auxiliary {
                Some(auxiliary) => finished(auxiliary),
                None => function.processed || finished(&pci.to_string()),
            };
            (absent && !skipped && udev_is_done).then_some(Step::LoadRdmaHalf { pci, module })
        }
        _ => None,
    }
}
