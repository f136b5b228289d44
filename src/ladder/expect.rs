//! Which ports have to come.

use crate::config::{Config, Expect, ExpectedPort, PortSelector};
use crate::names::{IB_DRIVERS, ModuleName, PciAddress, PortNumber, Rung, keeps_for_others};
use crate::observe::{ModprobeRules, Observed, PciFunction};
use crate::report::NotExpected;

/// Who has to climb, and how high.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The HCAs or ports that are waited for.
    pub expected: Vec<Expected>,
    /// Functions that look like HCAs and are not waited for, and why.
    pub left_out: Vec<(PciAddress, NotExpected)>,
    /// The rung that `boot` waits for.
    pub goal: Rung,
}

/// One HCA, or one port of it, that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// How it is found on the host.
    pub which: PortSelector,
    /// Only this port.
    pub port: Option<PortNumber>,
    /// Missing it is no failure.
    pub optional: bool,
    /// Somebody has named it, so that it is no good as an Ethernet port.
    pub named: bool,
    /// Why it is expected, as a phrase: `class 0x020700`.
    pub why: String,
}

/// Who has to climb on this host: nobody whose driver the site denies, by its
/// `rules` for modprobe or by `modules.skip`.
#[must_use]
pub fn expectation(config: &Config, observed: &Observed, rules: &ModprobeRules) -> Expectation {
    let ipoib = config.modules.load.iter().any(|m| m.as_str() == "ib_ipoib");
    // With nothing to set, a port that is named is configured.
    let goal = match (ipoib, config.interfaces.is_empty()) {
        (false, _) => Rung::Rdma,
        (true, true) => Rung::Named,
        (true, false) => Rung::Configured,
    };
    let mut left_out = Vec::new();
    let expected = match &config.expect {
        Expect::List(ports) => {
            let expected: Vec<Expected> = ports.iter().map(listed).collect();
            // What is listed by name is the site's word against the card's.
            let others = observed.functions.iter().filter(|f| {
                f.physfn.is_none()
                    && candidate(f).is_some()
                    && !expected.iter().any(|e| is_meant(&e.which, f))
            });
            left_out.extend(others.map(|f| {
                let bridge = f.manages_nvswitch().then_some(NotExpected::NvSwitchManagement);
                (f.address, bridge.unwrap_or(NotExpected::NotListed))
            }));
            expected
        }
        Expect::Auto => {
            let mut expected = Vec::new();
            for function in &observed.functions {
                let Some(why) = candidate(function) else { continue };
                match not_expected(function, config, rules) {
                    Some(reason) => left_out.push((function.address, reason)),
                    None => expected.push(Expected {
                        which: PortSelector::Pci(function.address),
                        port: None,
                        optional: false,
                        named: false,
                        why,
                    }),
                }
            }
            expected
        }
    };
    Expectation { expected, left_out, goal }
}

fn is_meant(which: &PortSelector, function: &PciFunction) -> bool {
    match which {
        PortSelector::Pci(address) => function.address == *address,
        PortSelector::Rdma(name) => function.rdma.iter().any(|device| device.name == *name),
        PortSelector::PortGuid(guid) => {
            let mut ports = function.rdma.iter().flat_map(|device| &device.ports);
            ports.any(|port| port.guid == Some(*guid))
        }
    }
}

fn listed(port: &ExpectedPort) -> Expected {
    Expected {
        which: port.which.clone(),
        port: port.port,
        optional: port.optional,
        named: true,
        why: format!("listed in {}", port.origin),
    }
}

/// Why this function may have InfiniBand ports, bound or not; `None` if not.
#[must_use]
pub fn candidate(function: &PciFunction) -> Option<String> {
    if function.class.is_infiniband() {
        return Some(format!("class {}", function.class));
    }
    match function.ib_driver {
        // The same driver serves Ethernet cards; the class tells them apart.
        Some("mlx5_core") if function.class.is_ethernet() => None,
        Some(driver) => Some(format!("its driver is {driver}")),
        None => None,
    }
}

fn not_expected(
    function: &PciFunction,
    config: &Config,
    rules: &ModprobeRules,
) -> Option<NotExpected> {
    if function.manages_nvswitch() {
        return Some(NotExpected::NvSwitchManagement);
    }
    if let Some(driver) = function.driver.as_ref().filter(|d| keeps_for_others(d)) {
        return Some(NotExpected::HandedOver { driver: driver.clone() });
    }
    if let Some(physfn) = function.physfn {
        return Some(NotExpected::VfOfThisHost { physfn });
    }
    if let Some(driver) = &function.driver_override {
        // An override that names the function's own driver changes nothing.
        let own = function
            .ib_driver
            .map_or_else(|| IB_DRIVERS.contains(&driver.as_str()), |own| own == driver);
        if !own {
            return Some(NotExpected::DriverOverride { driver: driver.clone() });
        }
    }
    let module: ModuleName = function.ib_driver?.parse().ok()?;
    // One that is bound all the same is there.
    if function.driver.is_some() {
        return None;
    }
    let by = denied(&module, config, rules)?;
    Some(NotExpected::DriverDenied { module, by })
}

/// Where the site says that `module` is not to be loaded, if it does.
fn denied(module: &ModuleName, config: &Config, rules: &ModprobeRules) -> Option<String> {
    if config.modules.skip.contains(module) {
        return Some("modules.skip of the configuration".to_owned());
    }
    rules.denied(module).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::PciClass;

    fn function(class: u32, ib_driver: Option<&'static str>) -> PciFunction {
        PciFunction { class: PciClass(class), ib_driver, ..PciFunction::connectx6() }
    }

    #[test]
    fn candidates_are_told_by_class_or_driver() {
        let is = |class, driver| candidate(&function(class, driver)).is_some();
        assert!(is(0x02_0700, Some("mlx5_core")), "ConnectX-6 in InfiniBand mode");
        assert!(is(0x02_0700, None), "InfiniBand class, driver not installed");
        assert!(is(0x02_0800, Some("hfi1")), "Omni-Path");
        assert!(is(0x0c_0600, Some("ib_qib")), "old serial bus class");
        assert!(is(0x02_8000, Some("mlx4_core")), "ConnectX-3");
        assert!(!is(0x02_0000, Some("mlx5_core")), "ConnectX in Ethernet mode");
        assert!(!is(0x02_0000, None), "any Ethernet card");
        assert!(!is(0x02_8000, None), "any other network card");
    }

    #[test]
    fn what_somebody_else_decides_on_is_left_out() {
        let reason = |change: fn(&mut PciFunction), denied: Option<&str>| {
            let mut f = function(0x02_0700, Some("mlx5_core"));
            change(&mut f);
            let rules = denied.map(|file| ModprobeRules::of(file, "blacklist mlx5_core\n"));
            not_expected(&f, &Config::default(), &rules.unwrap_or_default()).map(|r| r.to_string())
        };
        assert_eq!(reason(|_| (), None), None);
        assert_eq!(
            reason(|f| f.driver = Some("vfio-pci".into()), None).as_deref(),
            Some("it is bound to vfio-pci")
        );
        assert_eq!(
            reason(|f| f.driver_override = Some("vfio-pci".into()), None).as_deref(),
            Some("its driver_override is \"vfio-pci\"")
        );
        assert_eq!(reason(|f| f.driver_override = Some("mlx5_core".into()), None), None);
        assert_eq!(
            reason(|f| f.physfn = "0000:4b:00.1".parse().ok(), None).as_deref(),
            Some("it is a VF of 0000:4b:00.1 on this host")
        );
        assert_eq!(
            reason(|_| (), Some("/etc/modprobe.d/site.conf")).as_deref(),
            Some("its driver mlx5_core is deny-listed by /etc/modprobe.d/site.conf:1")
        );
        let bound = |f: &mut PciFunction| f.driver = Some("mlx5_core".into());
        assert_eq!(reason(bound, Some("x")), None, "bound all the same, so it counts");
    }

    #[test]
    fn a_driver_that_the_configuration_skips_is_denied() {
        let mut config = Config::default();
        config.modules.skip = vec!["mlx5_core".parse().expect("name")];
        let unbound = function(0x02_0700, Some("mlx5_core"));
        let bound = PciFunction { driver: Some("mlx5_core".to_owned()), ..unbound.clone() };
        let who = |function: PciFunction| {
            let observed = Observed { functions: vec![function], ..Observed::default() };
            let found = expectation(&config, &observed, &ModprobeRules::default());
            let reasons: Vec<_> = found.left_out.iter().map(|(_, r)| r.to_string()).collect();
            (found.expected.len(), reasons)
        };
        let why = "its driver mlx5_core is deny-listed by modules.skip of the configuration";
        assert_eq!(who(unbound), (0, vec![why.to_owned()]));
        assert_eq!(who(bound), (1, Vec::new()), "bound all the same, so it counts");
    }
}
