//! IPoIB: its transport modes, and what the names of its netdevs look like.

use super::Words;

/// Transport mode of an IPoIB interface (`IFLA_IPOIB_MODE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Mode {
    /// Unreliable datagrams; the MTU is the link's, less 4.
    Datagram,
    /// Reliable connections; MTU up to 65520.
    Connected,
}

impl Mode {
    /// The word for it, in sysfs and as users type it.
    pub fn word(self) -> &'static str {
        self.typed()
    }

    /// The largest MTU that this mode can have: 4096 bytes of an InfiniBand packet or 10240
    /// of one of Omni-Path (`opa_mtu_enum_to_int`, `include/rdma/opa_port_info.h`), less
    /// IPoIB's header of 4; 64 KiB less what the kernel keeps (`IPOIB_CM_MTU`,
    /// `drivers/infiniband/ulp/ipoib/ipoib.h`).
    pub const fn largest_mtu(self, omni_path: bool) -> u32 {
        match (self, omni_path) {
            (Self::Datagram, false) => 4092,
            (Self::Datagram, true) => 10236,
            (Self::Connected, _) => 65520,
        }
    }
}

/// True of an MTU that a broadcast group can have: that of a packet (`ib_mtu_enum_to_int`,
/// `opa_mtu_enum_to_int`) less IPoIB's header.
pub const fn is_group_mtu(mtu: u32) -> bool {
    matches!(mtu, 252 | 508 | 1020 | 2044 | 4092 | 8188 | 10236)
}

// What the names of IPoIB netdevs look like, where nothing but the name is known. Three things,
// each wider than the one before: how the kernel numbers them, what is one, and what may be one.

/// `ib` and a number: the name by which the kernel makes a port's netdev, and
/// numbers them in this order (`ipoib_add_port()`,
/// `drivers/infiniband/ulp/ipoib/ipoib_main.c`).
pub fn is_kernel_ipoib_name(name: &str) -> bool {
    name.strip_prefix("ib").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// True for the names of IPoIB netdevs: those that the kernel and udev give,
/// and those that administrators make of the driver's name and the fabric's,
/// `mlx5_ib0` and `hfi1_opa0`. Behind a dot may stand the P_Key of a child.
/// A diagnosis can rest on it.
pub fn is_ipoib_name(name: &str) -> bool {
    let numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    if let Some(rest) = name.strip_prefix("ib") {
        return numbered(rest.strip_prefix(['p', 's', 'o', 'x', 'P', 'v']).unwrap_or(rest));
    }
    let Some((driver, rest)) = name.split_once('_') else { return false };
    ["mlx4", "mlx5", "mthca", "qib", "ipath", "hfi1", "hfi2"].contains(&driver)
        && rest.strip_prefix("ib").or_else(|| rest.strip_prefix("opa")).is_some_and(numbered)
}

/// True for what [`is_ipoib_name`] knows, and for every name of an administrator's
/// own that begins with `ib`: where to take a netdev for IPoIB too easily costs
/// nothing, or something else says that it is RDMA's. `ibft0` is not one: dracut
/// calls the netdev so from which iSCSI boots (iBFT); nor is `ibmveth`, IBM's
/// virtual Ethernet.
pub fn may_be_ipoib_name(name: &str) -> bool {
    let other = || ["ibft", "ibmveth"].iter().any(|b| name.starts_with(b));
    is_ipoib_name(name) || name.starts_with("ib") && !other()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netdevs_of_infiniband_are_known_by_name() {
        for name in ["ib0", "ibp1s0", "ibs4f1", "mlx5_ib0", "mlx5_ib0.8002", "hfi1_opa0", "qib_ib1"]
        {
            assert!(is_ipoib_name(name) && may_be_ipoib_name(name), "{name}");
        }
        for name in ["eth0", "mlx5_0", "mlx5_ib", "hfi1_0", "bond_ib0", "ibmveth", "opa0", "mlx5_"]
        {
            assert!(!is_ipoib_name(name) && !may_be_ipoib_name(name), "{name}");
        }
    }

    #[test]
    fn the_kernels_numbers_are_the_narrowest_and_what_begins_with_ib_the_widest() {
        for (name, kernel, is, may_be) in [
            ("ib0", true, true, true),
            ("ib12", true, true, true),
            ("ib0.8001", false, true, true),
            ("ibp1s0", false, true, true),
            ("ib", false, false, true),
            ("ibdata", false, false, true),
            ("ibft0", false, false, false),
            ("xib0", false, false, false),
        ] {
            assert_eq!(is_kernel_ipoib_name(name), kernel, "{name}");
            assert_eq!(is_ipoib_name(name), is, "{name}");
            assert_eq!(may_be_ipoib_name(name), may_be, "{name}");
        }
    }
}
