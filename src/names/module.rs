//! Kernel modules: their names, and which ones are of the RDMA stack or drive its adapters.

use serde::{Deserialize, Serialize};

/// The name of a kernel module, in the kernel's own spelling: `-` is `_`.
///
/// Letters, digits and `_` only, at most 55 bytes (`MODULE_NAME_LEN` in
/// `include/linux/module.h`), and never starting with `-`, so that it can
/// stand on modprobe's command line and in a sysfs path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleName(String);

as_it_is!(ModuleName);

const NOT_A_MODULE: &str = "is not a kernel module name: expected letters, digits, '_' or '-', as `lsmod` prints it, without path or .ko";

parsed!(ModuleName, NOT_A_MODULE, |text| {
    let good = (1..=55).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    good.then(|| Self(text.replace('-', "_")))
});

/// Whether a kernel module is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ModuleState {
    /// Not loaded and not built in.
    Absent,
    /// Its init function is running (`initstate` is `coming`).
    Loading,
    /// Loaded, or built into the kernel.
    Loaded,
}

macro_rules! rdma_modules {
    (
        core { $($core:literal,)+ } drivers { $($driver:literal,)+ } others { $($other:literal,)+ }
        users { $($user:literal,)+ }
    ) => {
        /// Those that stand below and beside the drivers of HCAs and go with them.
        pub const RDMA_CORE: &[&str] = &[$($core),+];

        /// Drivers of HCAs, by the name they have on the PCI or auxiliary bus. Those of
        /// [`RDMA_MODULES`] that find their cards through an Ethernet driver instead
        /// (`i40iw`, `ocrdma`, `iw_cxgb3`) are on no bus.
        pub const HCA_DRIVERS: &[&str] = &[$($driver),+];

        /// The kernel modules of the RDMA stack: cores, HCA drivers, upper layers.
        pub const RDMA_MODULES: &[&str] = &[$($core,)+ $($driver,)+ $($other),+];

        /// [`RDMA_MODULES`] as they stand behind a function in a stack trace of the
        /// kernel (`%pS`, `Documentation/core-api/printk-formats.rst`).
        pub const RDMA_MODULES_IN_TRACES: &[&str] = &[
            $(concat!(" [", $core, "]"),)+
            $(concat!(" [", $driver, "]"),)+
            $(concat!(" [", $other, "]")),+
        ];

        /// Modules that are built on the host and use the RDMA stack, or serve only with it.
        pub const RDMA_USERS: &[&str] = &[$($user),+];
    };
}

rdma_modules! {
    core {
        "ib_core", "ib_cm", "ib_mad", "ib_sa", "ib_addr", "ib_umad", "ib_uverbs",
        "ib_uverbs_support", "ib_ucm", "ib_ipoib", "iw_cm", "rdma_cm", "rdma_ucm",
        "mlx4_en", "mlx_compat",
    }
    drivers {
        "mlx4_core", "mlx5_core", "mlx5_ib", "mlx4_ib", "ib_mthca", "ib_qib",
        "ib_ipath", "hfi1", "hfi2", "irdma", "bnxt_re", "qedr", "iw_cxgb4", "iw_nes",
        "hns_roce", "hns_roce_hw_v2", "efa", "erdma", "mana_ib", "usnic_verbs",
        "vmw_pvrdma",
    }
    others {
        "ib_srp", "ib_srpt", "ib_iser", "ib_isert", "rdmavt", "mlx5_vdpa", "opa_vnic",
        "i40iw", "iw_cxgb3", "ocrdma", "rdma_rxe", "siw", "rpcrdma", "xprtrdma",
        "svcrdma", "nvme_rdma", "nvmet_rdma", "ko2iblnd", "smc",
    }
    users {
        "lnet", "nvidia_peermem", "nv_peer_mem", "beegfs", "knem", "drbd_transport_rdma",
        "hv_network_direct",
    }
}

/// PCI drivers that give, alone or with a second half, an RDMA device whose
/// ports can be InfiniBand or Omni-Path (`drivers/infiniband/hw` and
/// `drivers/net/ethernet/mellanox`).
pub const IB_DRIVERS: [&str; 7] =
    ["mlx5_core", "mlx4_core", "ib_mthca", "ib_qib", "hfi1", "hfi2", "ib_ipath"];

/// The module that registers the RDMA device, for drivers that are only the
/// core of the card: mlx5 and mlx4.
pub fn rdma_half_of(driver: &str) -> Option<&'static str> {
    match driver {
        "mlx5_core" => Some("mlx5_ib"),
        "mlx4_core" => Some("mlx4_ib"),
        _ => None,
    }
}

/// The module that registers RDMA devices for the adapters of an Ethernet driver, by which
/// their ports do RoCE or iWARP.
pub fn roce_half_of(driver: &str) -> Option<&'static str> {
    Some(match driver {
        "mlx4_en" => "mlx4_ib",
        "bnxt_en" => "bnxt_re",
        "ice" | "i40e" => "irdma",
        "qede" => "qedr",
        "hns3" => "hns_roce",
        "ena" => "efa",
        _ => return rdma_half_of(driver),
    })
}

/// True for the name of a module of the RDMA stack, also of one that is not in
/// [`RDMA_MODULES`], by how its name begins. Only for what is known to be a
/// module: in the text of a log, many a word begins like this.
pub fn is_rdma_module(name: &str) -> bool {
    RDMA_MODULES.contains(&name)
        || ["ib_", "iw_", "mlx", "rdma"].iter().any(|b| name.starts_with(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_become_underscores() {
        assert_eq!("ib-ipoib".parse::<ModuleName>().map(|m| m.to_string()), Ok("ib_ipoib".into()));
    }

    #[test]
    fn options_paths_and_blanks_are_refused() {
        for text in ["", "-r", "--all", "ib_umad.ko", "a/b", "ib umad", "ib_umad;reboot"] {
            assert!(text.parse::<ModuleName>().is_err(), "{text}");
        }
    }

    #[test]
    fn each_infiniband_driver_drives_an_hca_and_is_of_the_stack() {
        for driver in IB_DRIVERS {
            assert!(HCA_DRIVERS.contains(&driver), "{driver}");
        }
        for half in IB_DRIVERS.into_iter().filter_map(rdma_half_of) {
            assert!(HCA_DRIVERS.contains(&half), "{half}");
        }
        for driver in HCA_DRIVERS {
            assert!(RDMA_MODULES.contains(driver), "{driver}");
        }
    }

    #[test]
    fn a_module_is_of_the_stack_by_list_or_by_how_it_begins() {
        for name in ["bnxt_re", "ib_ipoib", "ib_sdp", "mlx5_fpga_tools", "rdma_rxe"] {
            assert!(is_rdma_module(name), "{name}");
        }
        for name in ["igb", "nfs", "ibmveth", "rds", ""] {
            assert!(!is_rdma_module(name), "{name}");
        }
    }
}
