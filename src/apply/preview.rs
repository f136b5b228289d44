//! `ibprov boot --dry-run`: the same look and the same plan, without the doing.

use std::collections::{BTreeMap, BTreeSet};

use super::warnings::foreseen_of_all;
use crate::config::Config;
use crate::host::Root;
use crate::ladder::{Facts, cause, expect, progress};
use crate::names::{ModuleName, ModuleState, Rung};
use crate::observe::ipoib::Interfaces;
use crate::observe::{ModprobeRules, Observed, Observer, driver_modules};
use crate::plan::{Done, boot_steps, needed_modules};
use crate::report::boot::LeftOut;
use crate::report::{ModuleTrouble, PortProgress};
use crate::workers::products::learn_all;

/// What `boot` would do and wait for, seen from now.
#[derive(Debug, serde::Serialize)]
pub struct Preview {
    /// Version of this format.
    pub schema: u32,
    /// The steps that would be taken at once.
    pub steps: Vec<crate::report::boot::Step>,
    /// Configured modules that would not be loaded, and where the site denies them.
    pub denied: BTreeMap<ModuleName, ModuleTrouble>,
    /// The ports that would be waited for.
    pub ports: Vec<PortProgress>,
    /// Of each of the ports why it cannot come by waiting, if that is seen already.
    #[serde(skip)]
    hopeless: Vec<Option<String>>,
    /// What would not be waited for.
    pub left_out: Vec<LeftOut>,
    /// What will not stay as it is wanted.
    pub warnings: Vec<String>,
}

/// Look, and say what would be done; nothing is changed.
#[must_use]
pub fn preview(config: &Config, root: &Root) -> Preview {
    let rules = ModprobeRules::read(root);
    let modules: Vec<ModuleName> =
        config.modules.load.iter().cloned().chain(driver_modules()).collect();
    let mut observed = Observer::new(root).look(&modules, &BTreeSet::new());
    // What could not be read is taken for an HCA, and shown as one.
    learn_all(root, &mut observed);
    let expectation = expect::expectation(config, &observed, &rules);
    let ports = progress::progress(&expectation, &observed);
    let steps = boot_steps(config, &rules, &observed, &expectation, &ports, &Done::default());
    let needed = needed_modules(config, &observed, !ports.is_empty());
    let denied = denied(needed, &rules, &observed);
    let left_out = expectation.left_out.into_iter();
    let no_facts = Facts::default();
    let why = |port: &PortProgress| {
        let cause = cause::cause(port, &observed, &no_facts)?;
        cause.is_final.then_some(cause.text)
    };
    let hopeless = ports.iter().map(why).collect();
    Preview {
        schema: crate::report::SCHEMA,
        steps,
        denied,
        ports,
        hopeless,
        left_out: left_out.map(|(pci, reason)| LeftOut { pci, reason }).collect(),
        warnings: foreseen_of_all(root, config, &Interfaces::look(root)),
    }
}

impl Preview {
    /// The text of it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut lines = Vec::new();
        if self.ports.is_empty() {
            let nothing = if self.steps.is_empty() { ": nothing would be done" } else { "" };
            lines.push(format!("no InfiniBand port is expected{nothing}"));
        }
        for step in &self.steps {
            lines.push(format!("would {step}"));
        }
        for (module, trouble) in &self.denied {
            lines.push(format!("would not load {module}: {trouble}"));
        }
        let ports = self.ports.iter().zip(&self.hopeless);
        for (port, hopeless) in ports.filter(|(port, _)| !port.is_ethernet()) {
            let reached = port.reached.map_or("nothing", Rung::word);
            let label = port.label();
            lines.push(match (port.missing(), hopeless) {
                (None, _) => format!("{label}: has {reached}, nothing to wait for"),
                (Some(_), Some(why)) => format!("would not wait for {label}: {why}"),
                (Some(_), None) => {
                    format!("would wait for {label}: reached {reached}, wanted {}", port.goal)
                }
            });
        }
        for out in &self.left_out {
            lines.push(format!("would not wait for {}: {}", out.pci, out.reason));
        }
        lines.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.push(String::new());
        lines.join("\n")
    }
}

/// Those of `modules` that are absent because the site denies them.
pub(super) fn denied<'m>(
    modules: impl IntoIterator<Item = &'m ModuleName>,
    rules: &ModprobeRules,
    observed: &Observed,
) -> BTreeMap<ModuleName, ModuleTrouble> {
    let absent = |m: &&ModuleName| observed.modules.get(m) == Some(&ModuleState::Absent);
    let denial = |m: &ModuleName| {
        let by = rules.denied(m)?.to_owned();
        Some((m.clone(), ModuleTrouble::Denied { by }))
    };
    modules.into_iter().filter(absent).filter_map(denial).collect()
}
