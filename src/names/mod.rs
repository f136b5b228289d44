//! The vocabulary of the field as types that cannot hold a bad value.
//!
//! Each type parses at the door ([`std::str::FromStr`]) and is never checked
//! again inside. Nothing here reads the host. A name that came from udev,
//! sysfs or a configuration is hostile until it is one of these.

mod guest;
mod guid;
mod guid_range;
mod ifname;
mod module;
mod pattern;
mod pci;
mod pkey;
mod rdma;
mod vf;
mod vf_range;

pub use guest::{DomainName, DomainNameError, UnitName, UnitNameError};
pub use guid::{Guid, GuidError};
pub use guid_range::{GuidRange, GuidRangeError};
pub use ifname::{IfName, IfNameError};
pub use module::{ModuleName, ModuleNameError};
pub use pattern::{IfPattern, IfPatternError};
pub use pci::{PciAddress, PciAddressError};
pub use pkey::{PKey, PKeyError};
pub use rdma::{PortNumber, PortNumberError, RdmaName, RdmaNameError};
pub use vf::{VfIndex, VfIndexError, VfName, VfNameError};
pub use vf_range::{VfRange, VfRangeError};
