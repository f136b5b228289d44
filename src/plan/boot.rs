use std::collections::{BTreeMap, BTreeSet};

use crate::config::{Config, RXE_MODULE};
use crate::ladder::Expectation;
use crate::ladder::expect::{denied, is_withheld};
use crate::model::{ModuleTrouble, PortProgress, Step};
use crate::names::{ModuleName, ModuleState, PortNumber, PortSelector, RdmaName, Rung};
use crate::observe::{ModprobeRules, Observed, PciFunction, RdmaDevice, rdma_half};

/// What boot has done so far: no step is taken twice.
#[derive(Debug, Clone, Default)]
pub struct Done {
    pub begun: BTreeSet<Step>,
    /// Steps that have come to their end.
    pub ended: BTreeSet<Step>,
}

impl Done {
    /// True while a step that loads configured modules runs.
    pub fn modules_in_flight(&self) -> bool {
        self.begun
            .difference(&self.ended)
            .any(|step| matches!(step, Step::LoadModules { .. } | Step::LoadModule { .. }))
    }

    /// True while a soft RoCE device is being created.
    pub fn rxe_in_flight(&self) -> bool {
        let mut open = self.begun.difference(&self.ended);
        open.any(|step| matches!(step, Step::CreateRxe { .. }))
    }
}

/// The modules of the configuration that this host needs: none where no port is
/// expected, but that of soft RoCE if a device of it is configured. What manages NVSwitches
/// needs all but IPoIB: nvlsm and nvidia-fabricmanager send management packets.
pub fn needed_modules<'c>(
    config: &'c Config,
    observed: &Observed,
    is_expecting: bool,
) -> Vec<&'c ModuleName> {
    let manages = observed.functions.iter().any(PciFunction::manages_nvswitch);
    let is_needed = |m: &&ModuleName| {
        let is_of_rxe = !config.rxe.is_empty() && matches!(m.as_str(), RXE_MODULE | "ib_uverbs");
        is_expecting || is_of_rxe || manages && m.as_str() != "ib_ipoib"
    };
    config.modules.load.iter().filter(is_needed).collect()
}

/// The modules that boot looks at and that are absent because the site denies them. What no
/// step is taken for nothing else would say.
pub fn denied_modules(
    config: &Config,
    rules: &ModprobeRules,
    observed: &Observed,
) -> BTreeMap<ModuleName, ModuleTrouble> {
    let absent = observed.modules.iter().filter(|(_, state)| **state == ModuleState::Absent);
    let denial = |(module, _): (&ModuleName, _)| {
        let by = denied(module, config, rules)?;
        Some((module.clone(), ModuleTrouble::Denied { by }))
    };
    absent.filter_map(denial).collect()
}

/// The steps to take now. Nothing is done on a host that needs no module.
pub fn boot_steps(
    config: &Config,
    rules: &ModprobeRules,
    observed: &Observed,
    expectation: &Expectation,
    progress: &[PortProgress],
    done: &Done,
) -> Vec<Step> {
    let needed = needed_modules(config, observed, !expectation.expected.is_empty());
    let mut steps = modules(&needed, rules, observed, done);
    steps.extend(netns_mode(config, observed));
    for function in &observed.functions {
        steps.extend(port_types(config, function));
    }
    for port in progress {
        steps.extend(driver(config, rules, observed, port));
    }
    steps.extend(misnamed(config, observed).map(|(_, step)| step));
    steps.retain(|step| !done.begun.contains(step));
    steps.dedup();
    steps
}

/// The RDMA devices that have another name than their `[[port]]` says, each with the step that
/// names it.
pub fn misnamed<'a>(
    config: &'a Config,
    observed: &'a Observed,
) -> impl Iterator<Item = (&'a RdmaDevice, Step)> {
    config.ports.iter().filter_map(|row| {
        let (pci, name) = row.rdma_name()?;
        let function = observed.functions.iter().find(|f| f.address == pci)?;
        let device = function.rdma.first().filter(|device| device.name != *name)?;
        Some((device, Step::NameRdma { pci, name: name.clone() }))
    })
}

/// Keep of the steps that name RDMA devices those whose name no device has, as long as there is
/// one: it may free the name for another.
pub fn free_names_first(steps: &mut Vec<Step>, observed: &Observed) {
    let names: BTreeSet<&RdmaName> =
        observed.functions.iter().flat_map(|f| &f.rdma).map(|device| &device.name).collect();
    let is_taken =
        |step: &Step| matches!(step, Step::NameRdma { name, .. } if names.contains(name));
    let is_free = |step: &Step| matches!(step, Step::NameRdma { .. }) && !is_taken(step);
    if steps.iter().any(is_free) {
        steps.retain(|step| !is_taken(step));
    }
}

/// Hold each port whose RDMA device is still to be named below `named`, or without IPoIB below
/// `rdma`: until that was tried.
pub fn hold_misnamed(
    config: &Config,
    observed: &Observed,
    ports: &mut [PortProgress],
    done: &Done,
) {
    let open: Vec<Step> = misnamed(config, observed)
        .map(|(_, step)| step)
        .chain(done.begun.iter().cloned())
        .filter(|step| !done.ended.contains(step))
        .collect();
    let is_open = |port: &&mut PortProgress| {
        open.iter().any(|step| matches!(step, Step::NameRdma { pci, .. } if port.pci == Some(*pci)))
    };
    for port in ports.iter_mut().filter(is_open) {
        let below = if port.goal == Rung::Rdma { Rung::Driver } else { Rung::Netdev };
        port.reached = port.reached.min(Some(below));
    }
}

/// True if what is done next can depend on whether udev has finished with a
/// card: its driver or its RDMA device is missing.
pub fn waits_for_udev(progress: &[PortProgress]) -> bool {
    progress.iter().any(|p| matches!(p.missing(), Some(Rung::Driver | Rung::Rdma)))
}

/// All missing modules at once, then one by one what did not come.
fn modules(
    needed: &[&ModuleName],
    rules: &ModprobeRules,
    observed: &Observed,
    done: &Done,
) -> Vec<Step> {
    let absent = |m: &&ModuleName| observed.modules.get(*m) == Some(&ModuleState::Absent);
    // modprobe would leave a deny-listed one out without a word.
    let missing: Vec<ModuleName> = needed
        .iter()
        .copied()
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

/// As soon as ib_core is there: each unit with a network namespace of its own that starts
/// meanwhile keeps the mode as it is.
fn netns_mode(config: &Config, observed: &Observed) -> Option<Step> {
    let mode = config.netns_mode?;
    observed.netns_mode.filter(|is| *is != mode).map(|_| Step::NetnsMode { mode })
}

/// The types that ports of a ConnectX-3 shall have and do not have: before anything else of
/// its ports, since the driver registers them anew.
pub fn port_types(config: &Config, function: &PciFunction) -> Option<Step> {
    let pci = function.address;
    let rows = || config.ports.iter().filter(|row| row.which == PortSelector::Pci(pci));
    let mut types = Vec::new();
    for (number, is) in (1..).zip(&function.mlx4_types) {
        let number = PortNumber::new(number).ok()?;
        let mut own = rows().filter(|row| row.port.is_none_or(|port| port == number));
        let wanted = own.find_map(|row| row.port_type);
        types.extend(wanted.filter(|wanted| Some(*wanted) != *is).map(|wanted| (number, wanted)));
    }
    (!types.is_empty()).then_some(Step::PortTypes { pci, types })
}

fn driver(
    config: &Config,
    rules: &ModprobeRules,
    observed: &Observed,
    port: &PortProgress,
) -> Option<Step> {
    let pci = port.pci?;
    let function = observed.functions.iter().find(|f| f.address == pci)?;
    if is_withheld(config, function) {
        return None;
    }
    match port.missing()? {
        // udev loads it by the same modalias: only what it left undone is ours.
        Rung::Driver if observed.udev.is_done_with(&pci.to_string()) => {
            // A driver that is loaded and did not bind has had its chance.
            let loaded = function.ib_driver.is_some_and(|d| {
                observed.modules.iter().any(|(m, s)| m.as_str() == d && *s != ModuleState::Absent)
            });
            let driver = function.ib_driver.and_then(|driver| driver.parse().ok());
            let skipped = driver.is_some_and(|driver| denied(&driver, config, rules).is_some());
            (!skipped && !loaded && !function.modalias.is_empty())
                .then(|| Step::LoadDriver { pci, modalias: function.modalias.clone() })
        }
        Rung::Rdma if function.rdma.is_empty() => {
            let module = rdma_half(function.driver.as_deref()?)?;
            let absent = observed.modules.get(&module) == Some(&ModuleState::Absent);
            let skipped = denied(&module, config, rules).is_some();
            // With an auxiliary device udev is about to load it by itself.
            let device = function.rdma_auxiliary.clone().unwrap_or_else(|| pci.to_string());
            let udev_is_done = observed.udev.is_done_with(&device);
            (absent && !skipped && udev_is_done).then_some(Step::LoadRdmaHalf { pci, module })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::ladder::expect::expectation;
    use crate::ladder::progress::progress;
    use crate::model::status::Udev;
    use crate::names::{NetnsMode, PortType};
    use crate::observe::Product;

    fn name(text: &str) -> ModuleName {
        text.parse().expect("module name")
    }

    /// A host with one card, its driver as given, and these modules loaded.
    fn host(driver: Option<&str>, auxiliary: bool, loaded: &[&str]) -> Observed {
        let all = ["ib_umad", "ib_uverbs", "ib_ipoib", "mlx5_ib"];
        let state = |m| if loaded.contains(m) { ModuleState::Loaded } else { ModuleState::Absent };
        Observed {
            kernel: "6.1.0".to_owned(),
            functions: vec![PciFunction {
                driver: driver.map(str::to_owned),
                rdma_auxiliary: auxiliary.then(|| "mlx5_core.rdma.0".to_owned()),
                ..PciFunction::connectx6()
            }],
            modules: all.iter().map(|m| (name(m), state(m))).collect::<BTreeMap<_, _>>(),
            netns_mode: None,
            udev: Udev { running: Some(true), settled: false, heard: BTreeSet::new() },
            problems: BTreeSet::new(),
        }
    }

    fn steps(observed: &Observed, done: &Done) -> Vec<String> {
        let config = Config::default();
        let rules = ModprobeRules::default();
        let expectation = expectation(&config, observed, &rules, None);
        let ports = progress(&expectation, observed);
        boot_steps(&config, &rules, observed, &expectation, &ports, done)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    const ALL: [&str; 3] = ["ib_ipoib", "ib_umad", "ib_uverbs"];

    #[test]
    fn missing_modules_are_loaded_at_once_then_one_by_one() {
        let before = host(Some("mlx5_core"), false, &["ib_umad"]);
        let mut done = Done::default();
        assert_eq!(steps(&before, &done), ["load ib_ipoib, ib_uverbs"]);
        let together = Step::LoadModules { modules: vec![name("ib_ipoib"), name("ib_uverbs")] };
        done.begun.insert(together.clone());
        assert_eq!(steps(&before, &done), [""; 0], "it is still running");
        done.ended.insert(together);
        let after = host(Some("mlx5_core"), false, &["ib_umad", "ib_uverbs"]);
        assert_eq!(steps(&after, &done), ["load ib_ipoib"]);
        done.begun.insert(Step::LoadModule { module: name("ib_ipoib") });
        assert_eq!(steps(&after, &done), [""; 0], "nothing is tried a third time");
    }

    #[test]
    fn a_driver_is_udevs_to_load_until_udev_is_done() {
        let mut observed = host(None, false, &ALL);
        let done = Done::default();
        assert_eq!(steps(&observed, &done), [""; 0]);
        observed.udev.heard.insert("0000:4b:00.0".to_owned());
        assert_eq!(steps(&observed, &done), ["load the driver of 0000:4b:00.0"]);
        observed.udev.heard.clear();
        observed.udev.settled = true;
        assert_eq!(steps(&observed, &done), ["load the driver of 0000:4b:00.0"]);
    }

    #[test]
    fn a_driver_that_is_loaded_and_did_not_bind_is_not_loaded_again() {
        let mut observed = host(None, false, &ALL);
        observed.udev.settled = true;
        observed.modules.insert(name("mlx5_core"), ModuleState::Loaded);
        assert_eq!(steps(&observed, &Done::default()), [""; 0]);
    }

    #[test]
    fn the_rdma_half_is_udevs_while_its_auxiliary_device_is_being_processed() {
        let done = Done::default();
        let mut with = host(Some("mlx5_core"), true, &ALL);
        with.udev.heard.insert("0000:4b:00.0".to_owned());
        assert_eq!(steps(&with, &done), [""; 0]);
        let mut without = host(Some("mlx5_core"), false, &ALL);
        without.udev.heard.insert("0000:4b:00.0".to_owned());
        assert_eq!(steps(&without, &done), ["load mlx5_ib for 0000:4b:00.0"]);
        with.udev.heard.insert("mlx5_core.rdma.0".to_owned());
        assert_eq!(steps(&with, &done), ["load mlx5_ib for 0000:4b:00.0"]);
    }

    #[test]
    fn the_types_of_a_connectx_3_are_set_where_they_differ() {
        let text = "[[port]]\npci = \"0000:4b:00.0\"\ntype = \"eth\"\n";
        let source =
            crate::config::Source { path: "/etc/x.toml".to_owned(), text: text.to_owned() };
        let problems = crate::config::Problems::default();
        let config = crate::config::resolve(vec![source], problems).expect("good").config;
        let with = |types: &[Option<PortType>]| {
            let function = PciFunction {
                driver: Some("mlx4_core".to_owned()),
                mlx4_types: types.to_vec(),
                ..PciFunction::connectx6()
            };
            port_types(&config, &function).map(|step| step.to_string())
        };
        let (ib, eth) = (Some(PortType::Ib), Some(PortType::Eth));
        assert_eq!(
            with(&[ib, None]).as_deref(),
            Some("set the port type of 0000:4b:00.0: port 1 to eth, port 2 to eth")
        );
        assert_eq!(
            with(&[ib, eth]).as_deref(),
            Some("set the port type of 0000:4b:00.0: port 1 to eth")
        );
        assert_eq!(with(&[eth, eth]), None);
        assert_eq!(with(&[]), None, "another driver");
    }

    #[test]
    fn the_network_namespace_mode_is_set_as_soon_as_ib_core_is_there() {
        let with = |wanted, is| {
            let config = Config { netns_mode: wanted, ..Config::default() };
            let observed = Observed { netns_mode: is, ..host(None, false, &[]) };
            netns_mode(&config, &observed).map(|step| step.to_string())
        };
        let (exclusive, shared) = (Some(NetnsMode::Exclusive), Some(NetnsMode::Shared));
        let set = "set the RDMA network namespace mode to exclusive";
        assert_eq!(with(exclusive, shared).as_deref(), Some(set));
        assert_eq!(with(exclusive, exclusive), None);
        assert_eq!(with(exclusive, None), None, "ib_core is not loaded");
        assert_eq!(with(None, shared), None, "it is not configured");
    }

    #[test]
    fn a_host_without_cards_is_left_alone() {
        let mut observed = host(None, false, &[]);
        observed.functions.clear();
        assert_eq!(steps(&observed, &Done::default()), [""; 0]);
    }

    #[test]
    fn what_manages_nvswitches_alone_gets_all_but_ipoib() {
        let mut observed = host(Some("mlx5_core"), false, &[]);
        observed.functions[0].product = Some(Product::NvSwitchManagement);
        assert_eq!(steps(&observed, &Done::default()), ["load ib_umad, ib_uverbs"]);
        observed.functions.push(PciFunction {
            address: "0000:5e:00.0".parse().expect("address"),
            ..PciFunction::connectx6()
        });
        let steps = steps(&observed, &Done::default());
        assert_eq!(steps, ["load ib_ipoib, ib_umad, ib_uverbs"]);
    }

    proptest! {
        /// Whatever the host shows and whenever a step ends, boot comes to rest
        /// and takes no step twice.
        #[test]
        fn planning_comes_to_rest(
            loaded in proptest::sample::subsequence(ALL.to_vec(), 0..=3),
            driver in proptest::option::of(Just("mlx5_core")),
            auxiliary: bool,
            settled: bool,
            ends in proptest::collection::vec(any::<bool>(), 12),
        ) {
            let mut observed = host(driver, auxiliary, &loaded);
            observed.udev.settled = settled;
            let config = Config::default();
            let rules = ModprobeRules::default();
            let mut done = Done::default();
            for end in ends {
                let expectation = expectation(&config, &observed, &rules, None);
                let ports = progress(&expectation, &observed);
                for step in boot_steps(&config, &rules, &observed, &expectation, &ports, &done) {
                    prop_assert!(done.begun.insert(step), "a step was planned twice");
                }
                if end {
                    done.ended.extend(done.begun.iter().cloned());
                }
            }
            prop_assert!(done.begun.len() <= 6, "too many steps: {:?}", done.begun);
        }
    }
}
