//! What the next boot would not load although it is loaded now: drivers that modprobe.d denies
//! since, those that a newer kernel has not, and those that come after vfio-pci has taken the
//! adapter.

use crate::host::Root;
use crate::model::{Code, Finding, PortProgress, ToDo};
use crate::names::{ModuleName, ModuleState, few, natural, sh};
use crate::observe::{ModprobeRules, Observed, PciFunction, module_file};

/// Of the modules behind `ports`.
pub fn findings(
    root: &Root,
    rules: &ModprobeRules,
    observed: &Observed,
    ports: &[PortProgress],
) -> Vec<Finding> {
    let loaded = loaded(root, observed, ports);
    let mut findings = denied(root, rules, &loaded);
    findings.extend(taken(root, rules, observed, ports));
    if let Some(kernel) = newer_kernel(root, &observed.kernel) {
        findings.extend(of_kernel(root, &observed.kernel, &kernel, &loaded));
    }
    findings
}

/// The modules behind the ports, of those that are loaded and not built in.
fn loaded(root: &Root, observed: &Observed, ports: &[PortProgress]) -> Vec<ModuleName> {
    let is_behind = |module: &&ModuleName| {
        observed.functions.iter().any(|function| {
            let mut own = ports.iter().filter(|port| port.pci == Some(function.address));
            let driver = function.driver.as_deref();
            match module.as_str() {
                "ib_ipoib" => own.any(|port| port.netdev.is_some() && !port.is_ethernet()),
                name => {
                    let half = driver.and_then(crate::observe::rdma_half);
                    own.next().is_some() && (driver == Some(name) || half.as_ref() == Some(*module))
                }
            }
        })
    };
    let known = observed.modules.iter().filter(|(_, state)| **state == ModuleState::Loaded);
    let modules = known.map(|(module, _)| module).filter(is_behind);
    modules.filter(|m| root.exists(&format!("/sys/module/{m}/initstate"))).cloned().collect()
}

/// Those that a file denies which is newer than this boot. An older one has not kept the module
/// from being loaded.
fn denied(root: &Root, rules: &ModprobeRules, loaded: &[ModuleName]) -> Vec<Finding> {
    let finding = |module: &ModuleName| {
        let by = rules.denied(module)?;
        let message = format!(
            "is loaded now, and {by} denies it: the next boot does not load it, unless the initrd or another program does"
        );
        let remedy = format!("if the port is to come up: remove {by}, and rebuild the initrd");
        let finding = Finding::warning(Code::NextBootAtRisk, message).about(module);
        is_newer(root, by).then(|| finding.permanent([remedy]))
    };
    loaded.iter().filter_map(finding).collect()
}

/// `FILE:LINE` was changed since this boot began.
fn is_newer(root: &Root, origin: &str) -> bool {
    let file = origin.rsplit_once(':').map(|(file, _)| file).filter(|file| file.starts_with('/'));
    let changed = file.and_then(|file| root.changed_sec(file));
    changed.zip(root.boot_sec()).is_some_and(|(at, began)| at >= began)
}

/// The adapters that vfio-pci takes, since it is loaded before their driver and given their IDs:
/// two lines, of which one is newer than this boot.
fn taken(
    root: &Root,
    rules: &ModprobeRules,
    observed: &Observed,
    ports: &[PortProgress],
) -> Vec<Finding> {
    let Some((ids, given)) = rules.option("vfio_pci", "ids") else { return Vec::new() };
    let finding = |function: &PciFunction| {
        let driver = function.driver.as_deref()?;
        let first = rules.loads_before("vfio_pci", driver)?;
        let id = format!("{:04x}:{:04x}", function.vendor, function.device);
        let is_its = ids.split(',').any(|one| one.to_ascii_lowercase().starts_with(&id));
        let is_new = is_newer(root, given) || is_newer(root, first);
        let message = format!(
            "{driver} drives it now, and at the next boot vfio-pci takes it: {given} gives it {id}, and {first} has it loaded before {driver}"
        );
        let remedy = format!(
            "if its ports are to come up: remove {id} from {given}, and rebuild the initrd; set driver_override of a single VF instead"
        );
        let finding = Finding::warning(Code::NextBootAtRisk, message).about(function.address);
        (is_its && is_new).then(|| finding.permanent([remedy]))
    };
    let is_expected =
        |function: &&PciFunction| ports.iter().any(|port| port.pci == Some(function.address));
    observed.functions.iter().filter(is_expected).filter_map(finding).collect()
}

/// The newest kernel of the running one's flavour that is installed, if it is newer.
fn newer_kernel(root: &Root, running: &str) -> Option<String> {
    let flavour = |name: &str| -> Vec<String> {
        let words = name.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    // Without the folder there is none.
    let names = root.list_or_empty("/lib/modules").unwrap_or_default().into_iter();
    let newest =
        names.filter(|name| flavour(name) == flavour(running)).max_by_key(|name| natural(name))?;
    (natural(&newest) > natural(running)).then_some(newest)
}

/// What `kernel` has not of `loaded`, or as its own where the running one has a module built on
/// the host.
fn of_kernel(root: &Root, running: &str, kernel: &str, loaded: &[ModuleName]) -> Option<Finding> {
    let (mut absent, mut other) = (Vec::new(), Vec::new());
    for module in loaded {
        let file = module_file(root, kernel, module)?;
        let now = module_file(root, running, module)??;
        match file {
            None => absent.push(module.to_string()),
            Some(file) if file.starts_with("kernel/") && !now.starts_with("kernel/") => {
                other.push(format!("{module} ({now} now)"));
            }
            Some(_) => {}
        }
    }
    let what = match (absent.as_slice(), other.as_slice()) {
        ([], []) => return None,
        ([], other) => format!("its own {} in place of what is built on this host", few(other)),
        (absent, _) => format!("no {}, without which the ports do not come up", few(absent)),
    };
    let message = format!("installed, and newer than the running kernel: it has {what}");
    let finding = Finding::warning(Code::NextBootAtRisk, message).about(format!("kernel {kernel}"));
    Some(finding.look([ToDo::run(format!("find /lib/modules/{} -name 'mlx5*' -o -name 'ib_ipoib*'; dkms status", sh(kernel)))]).permanent([format!(
            "install the modules for it before it is booted (dkms autoinstall -k {kernel}, or the package of the drivers), and rebuild its initrd"
        )]))
}
