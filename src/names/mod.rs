//! The vocabulary of the field as types that cannot hold a bad value.
//!
//! Each type parses at the door ([`std::str::FromStr`]) and is never checked
//! again inside. Nothing here reads the host. A name that came from udev,
//! sysfs or a configuration is hostile until it is one of these.

/// Declares that a name, which holds a text, is displayed and handed on as that text.
macro_rules! as_it_is {
    ($name:ident) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

/// How a type is read from text: `$read` gives the value, or none where the text `$why`.
macro_rules! parsed {
    ($name:ident, $why:expr, $read:expr) => {
        impl std::str::FromStr for $name {
            type Err = $crate::names::BadText;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let read: fn(&str) -> Option<Self> = $read;
                read(text).ok_or_else(|| $crate::names::BadText::new(text, $why))
            }
        }
    };
}

/// How a type is written: the parts of the value, and their format.
macro_rules! displayed {
    ($name:ty, $parts:pat => $($format:tt)+) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $parts = self;
                write!(f, $($format)+)
            }
        }
    };
}

pub(crate) use displayed;

mod firmware;
mod guest;
mod guid;
pub mod host_number;
mod ifname;
mod ipoib;
mod lines;
mod link;
mod link_minimum;
mod machine;
mod module;
mod moment;
mod object;
mod path_state;
mod pci;
mod pkey;
mod port;
mod rdma;
mod resource;
mod rung;
pub mod template;
mod terminal;
mod text;
mod units;
mod vf;
mod vf_naming;
mod vf_settings;
mod words;

pub use self::{
    firmware::*, guest::*, guid::*, ifname::*, ipoib::*, lines::*, link::*, link_minimum::*,
    machine::*, module::*, moment::*, object::*, path_state::*, pci::*, pkey::*, port::*, rdma::*,
    resource::*, rung::*, terminal::*, units::*, vf::*, vf_naming::*, vf_settings::*, words::*,
};
pub use host_number::{HostNumber, NameRule};
pub use template::{GuidKind, Template, VfGuids};

/// Where the pins of a host are kept. Beside the configuration, since it is
/// part of what the administrator decided; never touched by packages.
pub const PINS_PATH: &str = "/etc/ibprov/guid-pins.toml";

/// What stands for a value that is not shown.
pub const HIDDEN: &str = "***";

/// True of a key of opensm.conf whose value is a secret of the fabric (`m_key`, `sa_key`): who has
/// it can do what the subnet manager does.
pub fn is_fabric_secret(option: &str) -> bool {
    option.ends_with("_key")
}
