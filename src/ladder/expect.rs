//! Which ports have to come.

use crate::config::{AtLeast, Config, Ignored, PortRow};
use crate::model::NotExpected;
use crate::names::{
    IB_DRIVERS, LinkLayer, ModuleName, ModuleState, PciAddress, PortChoice, PortNumber,
    PortSelector, PortWait, Rung, keeps_for_others,
};
use crate::observe::{ModprobeRules, Observed, PciFunction, rdma_half};

/// Who has to climb, and how high.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The HCAs or ports that are waited for.
    pub expected: Vec<Expected>,
    /// Functions that look like HCAs and are not waited for, and why.
    pub left_out: Vec<(PciAddress, NotExpected)>,
    /// The rung that `boot` waits for.
    pub goal: Rung,
    /// The same for a port in Ethernet mode that is expected.
    pub roce_goal: Rung,
    /// So many ports have to come, whichever.
    pub at_least: Option<AtLeast>,
    /// The VFs that other programs create.
    pub vfs: Vec<ExpectedVfs>,
    /// What other programs create is waited for too, as boot does not.
    pub is_whole: bool,
}

/// VFs of an adapter that another program creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedVfs {
    pub pf: PortSelector,
    /// How many there have to be, each bound to a driver.
    pub count: usize,
    /// Missing them is no failure.
    pub optional: bool,
    /// Where the configuration says so.
    pub origin: String,
}

/// One HCA, or one port of it, that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// How it is found on the host.
    pub which: PortSelector,
    /// Only this port.
    pub port: Option<PortNumber>,
    /// Not these ports.
    pub except: Vec<PortNumber>,
    /// Missing it is no failure.
    pub optional: bool,
    /// Where it is waited for.
    pub wait: PortWait,
    /// Somebody has named it, so that it is no good as an Ethernet port.
    pub named: bool,
    /// The link layer that it has to have: InfiniBand or Ethernet.
    pub link_layer: LinkLayer,
    /// Why it is expected, as a phrase: `class 0x020700`.
    pub why: String,
}

/// The ports that are expected on this host: none of a driver that `modules.exclude` names.
/// What `rules` for modprobe deny is expected all the same, but for IPoIB where nobody has
/// `wants_ipoib`: a port is in use without it.
pub fn expectation(
    config: &Config,
    observed: &Observed,
    rules: &ModprobeRules,
    wants_ipoib: Option<&str>,
) -> Expectation {
    let ipoib = config.modules.load.iter().find(|m| m.as_str() == "ib_ipoib").is_some_and(|m| {
        let is_absent = observed.modules.get(m) == Some(&ModuleState::Absent);
        wants_ipoib.is_some() || !is_absent || rules.denied(m).is_none()
    });
    // With nothing to set, a port that is named is configured.
    let goal = match (ipoib, config.interfaces.is_empty()) {
        (false, _) => Rung::Rdma,
        (true, true) => Rung::Named,
        (true, false) => Rung::Configured,
    };
    // What has a row is the site's word against the card's.
    let mut expected: Vec<Expected> = config.ports.iter().map(described).collect();
    let rows = expected.len();
    let mut left_out = Vec::new();
    for function in &observed.functions {
        let Some(why) = candidate(function) else { continue };
        let described = expected.get(..rows).unwrap_or_default();
        if described.iter().any(|row| row.is_all_of(function)) {
            continue;
        }
        let has_row = described.iter().any(|row| is_meant(&row.which, function));
        match found(function, config) {
            Ok(except) => expected.push(Expected {
                which: PortSelector::Pci(function.address),
                port: None,
                except,
                optional: false,
                wait: PortWait::Boot,
                named: false,
                link_layer: LinkLayer::InfiniBand,
                why,
            }),
            Err(NotExpected::NotListed) if function.physfn.is_some() => {}
            Err(_) if has_row => {}
            Err(reason) => left_out.push((function.address, reason)),
        }
    }
    let roce_goal = Rung::Named;
    let vfs = config.ports.iter().filter_map(|row| {
        let (pf, origin) = (row.which.clone(), row.origin.clone());
        Some(ExpectedVfs { pf, count: row.vfs_expected?, optional: !row.required, origin })
    });
    Expectation {
        expected,
        left_out,
        goal,
        roce_goal,
        at_least: config.boot.at_least.clone(),
        vfs: vfs.collect(),
        is_whole: true,
    }
}

impl Expectation {
    /// Without what is created by programs that may start after boot.
    #[must_use]
    pub fn of_boot(self) -> Self {
        Self { is_whole: false, ..self }
    }
}

impl Expected {
    /// True if it is every port of `function` that can be expected. An InfiniBand port beside
    /// Ethernet ports is expected as without a row.
    fn is_all_of(&self, function: &PciFunction) -> bool {
        let is_one = self.link_layer == LinkLayer::Ethernet
            || self.port.is_some()
            || matches!(self.which, PortSelector::PortGuid(_));
        !is_one && is_meant(&self.which, function)
    }
}

/// The ports of a candidate that are not expected although the function is.
///
/// # Errors
/// Why none of them is.
fn found(function: &PciFunction, config: &Config) -> Result<Vec<PortNumber>, NotExpected> {
    if config.boot.ports == PortChoice::Listed {
        let bridge = function.manages_nvswitch().then_some(NotExpected::NvSwitchManagement);
        return Err(bridge.unwrap_or(NotExpected::NotListed));
    }
    if let Some(reason) = not_expected(function, config) {
        return Err(reason);
    }
    let by = |ignored: &Ignored| NotExpected::Ignored { by: ignored.origin.clone() };
    let (ports, all): (Vec<&Ignored>, Vec<&Ignored>) =
        config.boot.ignore.iter().partition(|i| matches!(i.which, PortSelector::PortGuid(_)));
    if let Some(ignored) = all.into_iter().find(|ignored| is_meant(&ignored.which, function)) {
        return Err(by(ignored));
    }
    let mut except = Vec::new();
    let mut last = None;
    let there = || function.rdma.iter().flat_map(|device| &device.ports);
    for port in there() {
        let ignored =
            ports.iter().find(|i| port.guid.map(PortSelector::PortGuid).as_ref() == Some(&i.which));
        if let Some(ignored) = ignored {
            except.push(port.number);
            last = Some(ignored);
        }
    }
    match last {
        Some(ignored) if except.len() == there().count() => Err(by(ignored)),
        _ => Ok(except),
    }
}

/// True if `which` is of this function.
pub fn is_meant(which: &PortSelector, function: &PciFunction) -> bool {
    match which {
        PortSelector::Pci(address) => function.address == *address,
        PortSelector::Rdma(name) => function.rdma.iter().any(|device| device.name == *name),
        PortSelector::PortGuid(guid) => {
            let mut ports = function.rdma.iter().flat_map(|device| &device.ports);
            ports.any(|port| port.guid == Some(*guid))
        }
    }
}

/// An error of the configuration is about a `[[port]]` that names a port of `function`, or may:
/// the driver is not for ibprov to load.
pub fn is_withheld(config: &Config, function: &PciFunction) -> bool {
    let is_its = |row: &PortRow| row.is_withheld && is_meant(&row.which, function);
    config.withheld.has_all_ports() || config.ports.iter().any(is_its)
}

fn described(port: &PortRow) -> Expected {
    Expected {
        which: port.which.clone(),
        port: port.port,
        except: Vec::new(),
        optional: !port.required,
        wait: port.wait,
        named: true,
        link_layer: port.link_layer,
        why: format!("listed in {}", port.origin),
    }
}

/// Why this function may have InfiniBand ports, bound or not; `None` if not.
pub fn candidate(function: &PciFunction) -> Option<String> {
    if function.class.is_infiniband() {
        return Some(format!("class {}", function.class));
    }
    match function.ib_driver {
        // The same driver serves Ethernet cards; the class tells them apart.
        Some("mlx5_core") if function.class.is_ethernet() => None,
        // Of mlx4, one of that class may have InfiniBand ports: its types say so.
        Some("mlx4_core") if function.class.is_ethernet() && function.is_all_ethernet() => None,
        Some(driver) => Some(format!("its driver is {driver}")),
        None => None,
    }
}

fn not_expected(function: &PciFunction, config: &Config) -> Option<NotExpected> {
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
    // One that is bound all the same is there.
    let module = match function.driver.as_deref() {
        None => function.ib_driver?.parse().ok()?,
        Some(driver) if function.rdma.is_empty() => rdma_half(driver)?,
        Some(_) => return None,
    };
    let by = config.modules.excludes(&module).then(|| EXCLUDED.to_owned())?;
    Some(NotExpected::DriverDenied { module, by })
}

/// How the configuration denies a module.
const EXCLUDED: &str = "modules.exclude of the configuration";

/// Where the site says that `module` is not to be loaded, if it does.
pub fn denied(module: &ModuleName, config: &Config, rules: &ModprobeRules) -> Option<String> {
    if config.modules.excludes(module) {
        return Some(EXCLUDED.to_owned());
    }
    rules.denied(module).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::PortType;
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
        let of_types = |types: &[PortType]| {
            let mlx4_types = types.iter().copied().map(Some).collect();
            let ethernet = function(0x02_0000, Some("mlx4_core"));
            candidate(&PciFunction { mlx4_types, ..ethernet }).is_some()
        };
        assert!(!of_types(&[PortType::Eth, PortType::Eth]), "ConnectX-3 EN");
        assert!(of_types(&[PortType::Eth, PortType::Ib]) && of_types(&[]));
    }

    #[test]
    fn what_somebody_else_decides_on_is_left_out() {
        let reason = |change: fn(&mut PciFunction)| {
            let mut f = function(0x02_0700, Some("mlx5_core"));
            change(&mut f);
            not_expected(&f, &Config::default()).map(|r| r.to_string())
        };
        assert_eq!(reason(|_| ()), None);
        assert_eq!(
            reason(|f| f.driver = Some("vfio-pci".into())).as_deref(),
            Some("bound to vfio-pci")
        );
        assert_eq!(
            reason(|f| f.driver_override = Some("vfio-pci".into())).as_deref(),
            Some("driver_override is \"vfio-pci\"")
        );
        assert_eq!(reason(|f| f.driver_override = Some("mlx5_core".into())), None);
        assert_eq!(
            reason(|f| f.physfn = "0000:4b:00.1".parse().ok()).as_deref(),
            Some("VF of 0000:4b:00.1 on this host")
        );
    }

    #[test]
    fn what_modprobe_denies_is_expected_but_for_ipoib_that_nobody_wants() {
        let with = |denied: &str, state: ModuleState, wants: Option<&str>| {
            let observed = Observed {
                functions: vec![function(0x02_0700, Some("mlx5_core"))],
                modules: [("ib_ipoib".parse().expect("name"), state)].into(),
                ..Observed::default()
            };
            let rules = ModprobeRules::of("x.conf", &format!("blacklist {denied}\n"));
            let found = expectation(&Config::default(), &observed, &rules, wants);
            (found.expected.len(), found.goal)
        };
        let absent = ModuleState::Absent;
        assert_eq!(with("mlx5_core", absent, None), (1, Rung::Named));
        assert_eq!(with("mlx5_ib", absent, None), (1, Rung::Named));
        assert_eq!(with("ib_ipoib", absent, None), (1, Rung::Rdma));
        assert_eq!(with("ib_ipoib", absent, Some("ifup")), (1, Rung::Named));
        assert_eq!(with("ib_ipoib", ModuleState::Loaded, None), (1, Rung::Named), "all the same");
    }

    #[test]
    fn a_driver_that_the_configuration_skips_is_denied() {
        let unbound = function(0x02_0700, Some("mlx5_core"));
        let bound = PciFunction { driver: Some("mlx5_core".to_owned()), ..unbound.clone() };
        let device = host().functions.into_iter().flat_map(|f| f.rdma).take(1);
        let whole = PciFunction { rdma: device.collect(), ..bound.clone() };
        let who = |excluded: &str, function: &PciFunction| {
            let mut config = Config::default();
            config.modules.exclude = vec![excluded.parse().expect("name")];
            let observed = Observed { functions: vec![function.clone()], ..Observed::default() };
            let found = expectation(&config, &observed, &ModprobeRules::default(), None);
            let reasons: Vec<_> = found.left_out.iter().map(|(_, r)| r.to_string()).collect();
            (found.expected.len(), reasons.join("; "))
        };
        let why = |module: &str| {
            format!("the driver {module} is deny-listed by modules.exclude of the configuration")
        };
        assert_eq!(who("mlx5_core", &unbound), (0, why("mlx5_core")));
        assert_eq!(
            who("mlx5_core", &bound),
            (1, String::new()),
            "bound all the same, so it counts"
        );
        assert_eq!(who("mlx5_ib", &bound), (0, why("mlx5_ib")));
        assert_eq!(who("mlx5_ib", &whole), (1, String::new()));
    }

    fn config(text: &str) -> Config {
        let source =
            crate::config::Source { path: "/etc/x.toml".to_owned(), text: text.to_owned() };
        let problems = crate::config::Problems::default();
        crate::config::resolve(vec![source], problems).expect("configuration").config
    }

    /// Two adapters, the second with two ports.
    fn host() -> Observed {
        let with = |address: &str, device: &str, guids: &[u64]| {
            let ports = (1..).zip(guids).map(|(number, guid)| crate::observe::Port {
                number: PortNumber::new(number).expect("number"),
                link_layer: crate::names::LinkLayer::InfiniBand,
                guid: Some(crate::names::Guid::new(*guid)),
                netdev: None,
                ethernet: None,
            });
            let device = crate::observe::RdmaDevice {
                name: device.parse().expect("name"),
                node_guid: None,
                ports: ports.collect(),
            };
            PciFunction {
                address: address.parse().expect("address"),
                rdma: vec![device],
                ..function(0x02_0700, Some("mlx5_core"))
            }
        };
        let functions =
            vec![with("0000:4b:00.0", "mlx5_0", &[1]), with("0000:5e:00.0", "mlx4_0", &[2, 3])];
        Observed { functions, ..Observed::default() }
    }

    /// Each port that is expected, and whether it is required.
    fn expected(text: &str) -> Vec<(String, bool)> {
        let (config, host) = (config(text), host());
        let expectation = expectation(&config, &host, &ModprobeRules::default(), None);
        let ports = crate::ladder::progress::progress(&expectation, &host);
        let name = |p: &crate::model::PortProgress| match (&p.rdma, p.port) {
            (Some(rdma), Some(port)) => format!("{rdma}/{port}"),
            _ => p.expected.to_string(),
        };
        let mut list: Vec<_> = ports.iter().map(|p| (name(p), !p.optional)).collect();
        list.sort();
        list
    }

    #[test]
    fn a_row_describes_a_port_and_chooses_none() {
        let all = [("mlx4_0/1", true), ("mlx4_0/2", true), ("mlx5_0/1", true)];
        let with = |text: &str, want: &[(&str, bool)]| {
            let want: Vec<_> = want.iter().map(|(port, req)| ((*port).to_owned(), *req)).collect();
            assert_eq!(expected(text), want, "{text}");
        };
        with("", &all);
        for row in [
            "pci = \"0000:5e:00.0\"",
            "pci = \"0000:5e:00.0\"\nport = 2",
            "rdma = \"mlx4_0\"",
            "port-guid = \"0000:0000:0000:0003\"",
            "pci = [\"0000:5e:00.0\", \"0000:4b:00.0\"]\nrequired = true",
        ] {
            with(&format!("[[port]]\n{row}\n"), &all);
        }
        let second = [("mlx4_0/1", true), ("mlx4_0/2", false), ("mlx5_0/1", true)];
        for row in ["pci = \"0000:5e:00.0\"\nport = 2", "port-guid = \"0000:0000:0000:0003\""] {
            with(&format!("[[port]]\n{row}\nrequired = false\n"), &second);
            with(&format!("boot.ports = \"listed\"\n[[port]]\n{row}\n"), &[("mlx4_0/2", true)]);
        }
        let both = [("mlx4_0/1", false), ("mlx4_0/2", false), ("mlx5_0/1", true)];
        with("[[port]]\nrdma = \"mlx4_0\"\nrequired = false\n", &both);
        // One that is not there is expected by its row alone.
        let absent =
            [("0000:99:00.0", true), ("mlx4_0/1", true), ("mlx4_0/2", true), ("mlx5_0/1", true)];
        with("[[port]]\npci = \"0000:99:00.0\"\n", &absent);
    }

    #[test]
    fn what_is_ignored_is_not_expected_unless_a_row_names_it() {
        let with = |ignore: &str, want: &[&str]| {
            let text = format!("boot.ignore = [{ignore}]\n");
            let ports: Vec<String> = expected(&text).into_iter().map(|(port, _)| port).collect();
            assert_eq!(ports, want, "{text}");
            let expectation = expectation(&config(&text), &host(), &ModprobeRules::default(), None);
            expectation
                .left_out
                .iter()
                .map(|(pci, why)| format!("{pci}: {why}"))
                .collect::<Vec<_>>()
        };
        let why = |pci: &str| [format!("{pci}: ignored by boot.ignore (/etc/x.toml:1)")];
        let no_mlx4 = ["mlx5_0/1"];
        assert_eq!(with("\"0000:5e:00.0\"", &no_mlx4), why("0000:5e:00.0"));
        assert_eq!(with("\"mlx4_0\"", &no_mlx4), why("0000:5e:00.0"));
        let guids = "\"0000:0000:0000:0002\", \"0000:0000:0000:0003\"";
        assert_eq!(with(guids, &no_mlx4), why("0000:5e:00.0"));
        let none: [String; 0] = [];
        assert_eq!(with("\"0000:0000:0000:0003\"", &["mlx4_0/1", "mlx5_0/1"]), none);
        assert_eq!(with("\"0000:99:00.0\"", &["mlx4_0/1", "mlx4_0/2", "mlx5_0/1"]), none);
        let row = "boot.ignore = [\"mlx4_0\"]\n[[port]]\npci = \"0000:5e:00.0\"\nport = 1\n";
        let want = [("mlx4_0/1".to_owned(), true), ("mlx5_0/1".to_owned(), true)];
        assert_eq!(expected(row), want);
    }

    #[test]
    fn so_many_ports_are_enough_and_fewer_are_not() {
        // Nothing of these ports is further than their RDMA device.
        let with = |ready: usize, at_least: usize| {
            let config = config(&format!("boot.at-least = {at_least}\n"));
            let expectation = expectation(&config, &host(), &ModprobeRules::default(), None);
            let mut ports = crate::ladder::progress::progress(&expectation, &host());
            ports.iter_mut().take(ready).for_each(|port| port.reached = Some(port.goal));
            crate::ladder::progress::excuse_beyond(config.boot.at_least.as_ref(), &mut ports);
            let missing = ports.iter().filter(|port| !port.is_ready() && !port.optional).count();
            (ports.len(), missing, ports.last().map(|port| port.label().to_string()))
        };
        assert_eq!((with(3, 3).1, with(2, 2).1, with(2, 3).1, with(0, 1).1), (0, 0, 1, 3));
        // What is not seen is missing too.
        assert_eq!(with(3, 5), (4, 1, Some("2 more ports".to_owned())));
        assert_eq!(with(3, 4), (4, 1, Some("1 more port".to_owned())));
    }
}
