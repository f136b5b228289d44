//! Which PCI functions have a driver with an InfiniBand side, by modprobe's
//! own `modules.alias` (`modules.alias(5)`, written by depmod).

use crate::names::{IB_DRIVERS, ModuleName, rdma_half_of};

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
