//! Kernel modules: which are loaded or built, and, by modprobe's own `modules.alias`
//! (`modules.alias(5)`, written by depmod), which PCI functions have a driver with an InfiniBand
//! side.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use super::Look;
use crate::host::Root;
use crate::names::{IB_DRIVERS, ModuleName, ModuleState, rdma_half_of};

/// `/sys/module/NAME` says it; a built-in module without parameters has no
/// such directory, so `modules.builtin` is asked as well. `None` of a copy without /sys/module.
pub(super) fn state(
    look: &mut Look<'_>,
    builtin: &OnceCell<BTreeSet<String>>,
    kernel: &str,
    name: &ModuleName,
) -> Option<ModuleState> {
    let dir = format!("/sys/module/{name}");
    if look.root.exists(&dir) {
        return Some(match look.attribute(&format!("{dir}/initstate")).as_deref() {
            Some("coming") => ModuleState::Loading,
            Some("going") => ModuleState::Absent,
            _ => ModuleState::Loaded,
        });
    }
    let builtin = builtin.get_or_init(|| {
        let reading = look.root.text(&format!("/lib/modules/{kernel}/modules.builtin"), 4 << 20);
        look.note(reading).map(|text| names(&text)).unwrap_or_default()
    });
    if builtin.contains(name.as_str()) {
        return Some(ModuleState::Loaded);
    }
    if look.root.is_live() || look.root.exists("/sys/module") {
        return Some(ModuleState::Absent);
    }
    look.problems.insert(
        "/sys/module: missing in this copy, which modules are loaded is not known".to_owned(),
    );
    None
}

/// Whether `modules.dep` of `kernel` has `name`; `None` if it cannot be read.
pub fn is_built(root: &Root, kernel: &str, name: &ModuleName) -> Option<bool> {
    module_file(root, kernel, name).map(|file| file.is_some())
}

/// The file of the module `name`, in `modules.dep` of `kernel`; `None` if that cannot be read.
pub fn module_file(root: &Root, kernel: &str, name: &ModuleName) -> Option<Option<String>> {
    let text = root.text(&format!("/lib/modules/{kernel}/modules.dep"), 64 << 20).ok()?;
    let mut files = text.lines().filter_map(|line| Some(line.split_once(':')?.0));
    let file = files.find(|path| {
        let file = path.rsplit('/').next().unwrap_or(path);
        let stem = file.split_once(".ko").map_or(file, |(stem, _)| stem);
        stem.replace('-', "_") == name.as_str()
    });
    Some(file.map(str::to_owned))
}

/// `modules.builtin` has a path a line: `kernel/drivers/base/x-y.ko`.
fn names(text: &str) -> BTreeSet<String> {
    let files = text.lines().map(|line| line.rsplit('/').next().unwrap_or(line));
    files.filter_map(|file| file.strip_suffix(".ko")).map(|stem| stem.replace('-', "_")).collect()
}

/// The module that registers the RDMA device, for drivers that are only the
/// core of the card: mlx5 and mlx4.
pub fn rdma_half(driver: &str) -> Option<ModuleName> {
    rdma_half_of(driver)?.parse().ok()
}

/// The modules that boot looks at beside those of the configuration.
pub fn driver_modules() -> Vec<ModuleName> {
    let cores = IB_DRIVERS.into_iter().filter_map(|d| d.parse().ok());
    cores.chain(IB_DRIVERS.into_iter().filter_map(rdma_half)).collect()
}

/// The InfiniBand lines of a `modules.alias` file.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    lines: Vec<(String, &'static str)>,
}

impl Aliases {
    /// Keeps only the lines of [`IB_DRIVERS`]: a full file has 25,000.
    pub(super) fn parse(text: &str) -> Self {
        let of_ib_driver = |line: &str| {
            let rest = line.strip_prefix("alias pci:")?;
            let (pattern, module) = rest.rsplit_once(' ')?;
            let driver = IB_DRIVERS.into_iter().find(|d| *d == module.trim())?;
            Some((format!("pci:{}", pattern.trim()), driver))
        };
        Self { lines: text.lines().filter_map(of_ib_driver).collect() }
    }

    /// The InfiniBand driver that `modalias` resolves to.
    pub(super) fn driver(&self, modalias: &str) -> Option<&'static str> {
        self.lines.iter().find(|(p, _)| glob(p, modalias)).map(|(_, driver)| *driver)
    }
}

/// depmod writes PCI patterns with `*` as the only wildcard
/// (`scripts/mod/file2alias.c`, `do_pci_entry()`).
fn glob(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut open_end = !pattern.contains('*');
    for piece in pieces {
        open_end = piece.is_empty();
        match rest.find(piece) {
            Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    open_end || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_module_is_found_under_either_spelling() {
        let core = |text: &str| names(text).contains("ib_core");
        assert!(core("kernel/a.ko\nkernel/drivers/infiniband/core/ib_core.ko\n"));
        assert!(core("kernel/ib-core.ko"));
        assert!(!core("kernel/xib_core.ko\nkernel/ib_core.ko.xz"));
    }

    const TABLE: &str = "# Aliases extracted from modules themselves.\n\
        alias pci:v00001077d00007322sv*sd*bc*sc*i* ib_qib\n\
        alias pci:v000015B3d00001003sv*sd*bc*sc*i* mlx4_core\n\
        alias pci:v000015B3d0000101Bsv*sd*bc*sc*i* mlx5_core\n\
        alias pci:v00008086d00001533sv*sd*bc*sc*i* igb\n\
        alias pci:v*d*sv*sd*bc02sc07i00* mlx5_core\n\
        alias usb:v0B95p1790d*dc*dsc*dp*ic*isc*ip*in* ax88179_178a\n\
        broken";

    #[test]
    fn a_modalias_finds_its_infiniband_driver() {
        let aliases = Aliases::parse(TABLE);
        assert_eq!(aliases.lines.len(), 4);
        let find = |m| aliases.driver(m);
        assert_eq!(
            find("pci:v000015B3d00001003sv000015B3sd00000055bc02sc80i00"),
            Some("mlx4_core")
        );
        assert_eq!(
            find("pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00"),
            Some("mlx5_core")
        );
        assert_eq!(find("pci:v00001234d00000001sv0sd0bc02sc07i00"), Some("mlx5_core"));
        assert_eq!(find("pci:v00008086d00001533sv000015B3sd00000055bc02sc00i00"), None);
        assert_eq!(find(""), None);
    }
}
