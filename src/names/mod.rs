//! The vocabulary of the field as types that cannot hold a bad value.
//!
//! Each type parses at the door ([`std::str::FromStr`]) and is never checked
//! again inside. Nothing here reads the host. A name that came from udev,
//! sysfs or a configuration is hostile until it is one of these.

mod administered;
mod colour;
mod driver;
mod firmware;
mod gid_kind;
mod guest;
mod guest_words;
mod guid;
mod guid_range;
pub mod host_number;
mod hostile;
mod ifname;
mod ipoib_name;
mod link_layer;
mod link_minimum;
mod link_state;
mod machine;
mod mode;
mod module;
mod netns_mode;
mod network_role;
mod path_state;
mod pattern;
mod pci;
mod pkey;
mod policy;
mod port_selector;
mod port_target;
mod port_type;
mod rate;
mod rdma;
mod rdma_modules;
mod rung;
mod similar;
pub mod template;
mod text;
mod vf;
mod vf_device;
mod vf_naming;
mod vf_owner;
mod vf_range;
mod words;

pub use administered::Administered;
pub use colour::Colour;
pub use driver::{VFIO, is_vfio, keeps_for_others};
pub use firmware::{FirmwareName, FirmwareNameError, FirmwareValue};
pub use gid_kind::GidKind;
pub use guest::{DomainName, DomainNameError, UnitName, UnitNameError};
pub use guest_words::{Connection, GuestVf, OnFailure, Ready};
pub use guid::{Guid, GuidError};
pub use guid_range::{GuidRange, GuidRangeError};
pub use host_number::{HostNumber, NameRule};
pub use hostile::{escaped, harmless, is_hostile, mark, mark_in_lines};
pub use ifname::{IfName, IfNameError, is_plain};
pub use ipoib_name::{is_ipoib_name, is_kernel_ipoib_name, may_be_ipoib_name};
pub use link_layer::LinkLayer;
pub use link_minimum::{
    FirmwareVersion, Gbps, LinkMinimum, LinkSpeed, LinkWidth, PcieSpeed, PcieWidth,
};
pub use link_state::{LinkState, PhysicalState};
pub use machine::{DmiDigest, DmiDigestError, Machine};
pub use mode::Mode;
pub use module::{ModuleName, ModuleNameError, ModuleState};
pub use netns_mode::NetnsMode;
pub use network_role::NetworkRole;
pub use path_state::{FileOwner, FileTime, PathState};
pub use pattern::{IfPattern, IfPatternError};
pub use pci::{PciAddress, PciAddressError};
pub use pkey::{GroupMtu, GroupRate, Membership, PKey, PKeyError, PKeyLack, TablePKey};
pub use policy::{Policy, VfDriver};
pub use port_selector::{PortChoice, PortSelector, PortSelectorError, PortWait};
pub use port_target::{Target, TargetError};
pub use port_type::PortType;
pub use rate::{Rate, RateError};
pub use rdma::{MadPort, PortNumber, PortNumberError, RdmaName, RdmaNameError};
pub use rdma_modules::{
    HCA_DRIVERS, IB_DRIVERS, RDMA_CORE, RDMA_MODULES, RDMA_MODULES_IN_TRACES, RDMA_USERS,
    is_rdma_module, rdma_half_of, roce_half_of,
};
pub use rung::{Rung, VfRung};
pub use similar::{few, nearest, present};
pub use template::{GuidKind, Template};
pub use vf::{VfIndex, VfIndexError, VfName, VfNameError, vf_ranges};
pub use vf_device::{BLUEFIELD, IsVf, MELLANOX, is_vf_hca_type, is_vf_id, is_vf_id_text};
pub use vf_naming::{
    BindOrder, BindReason, Binding, PfNames, VfNamePattern, VfNamePatternError, VfNames,
    is_given_by_kernel,
};
pub use vf_owner::VfOwner;
pub use vf_range::{VfRange, VfRangeError};
pub use words::Words;

/// Where the pins of a host are kept. Beside the configuration, since it is
/// part of what the administrator decided; never touched by packages.
pub const PINS_PATH: &str = "/etc/ibprov/guid-pins.toml";

/// The unit whose run of `wait-online` is of the boot: by hand, and in the prologs of jobs,
/// it is run for any port.
pub const WAIT_ONLINE_UNIT: &str = "ibprov-wait-online.service";

/// Where systemd looks for units and for the links by which one wants another, what counts
/// first (systemd.unit(5), "UNIT FILE LOAD PATH").
pub const UNIT_DIRS: [&str; 9] = [
    "/etc/systemd/system.control",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/run/systemd/system",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
];

/// Our unit that has the name openibd.service: it comes after ibprov.service, does
/// nothing and never fails, so that what requires openibd starts although a port is
/// missing, as it did with the vendor's.
pub const OPENIBD_STAND_IN: &str = "ibprov-openibd.service";
