use super::Words;

/// Transport mode of an IPoIB interface (`IFLA_IPOIB_MODE`).
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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
