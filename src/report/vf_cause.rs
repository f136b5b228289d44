//! What a VF lacks to be as planned, why it does after a run, and why a PF has not the number of
//! VFs of the plan. Values that print themselves: in JSON they are their texts.

use std::fmt;

use nix::errno::Errno;
use serde::{Serialize, Serializer};

use super::Use;
use super::uses::used_by;
use super::vf_step::{Stage, VfStep};
use crate::names::{Guid, IfName, Policy, RdmaName};

/// What is not as planned at a VF: the first that counts on its way up the ladder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VfLack {
    /// The VF does not exist.
    Absent,
    /// The PF administers other GUIDs for it; at least one.
    GuidsAtPf(Vec<GuidAtPf>),
    /// The subnet manager has not granted its alias GUID (mlx4).
    NotGranted {
        /// The port GUID of the plan, which the PF has asked for.
        planned: Guid,
        in_force: Guid,
    },
    /// Its link state at the PF.
    Policy {
        /// As the PF administers it.
        is: Policy,
        /// The policy of the plan.
        planned: Policy,
    },
    /// The driver bound to it.
    Driver(OtherDriver),
    /// Its driver has registered no RDMA device.
    NoRdmaDevice {
        /// The driver that is bound to it.
        driver: String,
    },
    /// Its driver is bound, and no RDMA device comes by waiting.
    HalfBound {
        /// The driver that is bound to it.
        driver: String,
    },
    /// ib_ipoib is loaded and has made no netdev for it.
    NoNetdev,
    /// It shows another GUID than the plan's, which its PF has.
    Shows(OtherGuid),
    /// A GUID that it shows cannot be read, which proves nothing.
    Unread(VfGuid),
    /// Its netdev is called otherwise than `vf-name` says.
    Netdev { is: IfName, planned: IfName },
    /// Its RDMA device is called otherwise than `vf-rdma-name` says.
    RdmaDevice { is: RdmaName, planned: RdmaName },
    /// A device of it is called otherwise than planned, and udev, which renames it, had not
    /// done all that it had to do.
    NotRenamed {
        /// The name that it has.
        is: String,
        /// The name that it shall have.
        planned: String,
    },
}

/// One of the GUIDs by which a VF is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VfGuid {
    /// The node GUID, at the PF or of the VF's RDMA device.
    Node,
    /// The port GUID: at the PF, or the low half of GID 0.
    Port,
    /// The last 8 bytes of the netdev's address.
    Netdev,
}

/// A GUID as the PF administers it, other than planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuidAtPf {
    pub which: VfGuid,
    /// As it is, if it can be read.
    pub is: Option<Guid>,
    /// The GUID of the plan.
    pub planned: Guid,
}

/// A GUID as the VF shows it, other than planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherGuid {
    /// The GUID that is meant.
    pub which: VfGuid,
    pub is: Guid,
    /// The GUID of the plan.
    pub planned: Guid,
}

/// A VF's driver, other than planned. `None` is no driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherDriver {
    /// The one bound to it.
    pub is: Option<String>,
    /// The one that it shall have.
    pub planned: Option<String>,
}

impl fmt::Display for VfGuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "node GUID",
            Self::Port => "port GUID",
            Self::Netdev => "netdev's GUID",
        })
    }
}

impl fmt::Display for GuidAtPf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { which, is, planned } = self;
        match is {
            Some(is) => write!(f, "the {which} at the PF is {is} instead of {planned}"),
            None => write!(f, "the {which} at the PF cannot be read; planned is {planned}"),
        }
    }
}

impl fmt::Display for OtherGuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} of the VF is {} instead of {}", self.which, self.is, self.planned)
    }
}

impl fmt::Display for OtherDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn name(driver: Option<&String>) -> &str {
            driver.map_or("none", String::as_str)
        }
        let (is, planned) = (name(self.is.as_ref()), name(self.planned.as_ref()));
        write!(f, "the driver is {is} instead of {planned}")
    }
}

/// How a VF gets its names.
const ANEW: &str = "unbind the VF from its driver (`echo PCI-ADDRESS >/sys/bus/pci/drivers/DRIVER/unbind`) and run `ibprov apply`";

impl fmt::Display for VfLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => write!(f, "the VF does not exist"),
            Self::GuidsAtPf(guids) => {
                let guids: Vec<String> = guids.iter().map(ToString::to_string).collect();
                f.write_str(&guids.join(", "))
            }
            Self::NotGranted { planned, in_force } => write!(
                f,
                "the subnet manager has not granted the port GUID {planned}: {in_force} is in force"
            ),
            Self::Policy { is, planned } => {
                write!(f, "the link state is {is} instead of {planned}")
            }
            Self::Driver(driver) => driver.fmt(f),
            Self::NoRdmaDevice { driver } => {
                write!(f, "the driver {driver} is bound, but has registered no RDMA device")
            }
            Self::HalfBound { driver } => write!(
                f,
                "the driver {driver} is bound, but the VF has no RDMA device, because the probe of the auxiliary RDMA device or the recovery of the VF failed"
            ),
            Self::NoNetdev => write!(f, "ib_ipoib has not created a netdev for the VF"),
            Self::Shows(guid) => guid.fmt(f),
            Self::Unread(VfGuid::Port) => {
                write!(f, "the port GUID (GID 0) cannot be read, so that the VF is not verified")
            }
            Self::Netdev { is, planned } => write!(
                f,
                "the netdev is named {is} instead of {planned}; a netdev is renamed only when it appears. To fix: {ANEW}"
            ),
            Self::RdmaDevice { is, planned } => {
                write!(f, "the RDMA device is named {is} instead of {planned}. To fix: {ANEW}")
            }
            Self::NotRenamed { is, planned } => write!(
                f,
                "udev has not renamed {is} to {planned} and was still processing events; see `journalctl -b -u systemd-udevd`"
            ),
            Self::Unread(which) => {
                write!(f, "the {which} cannot be read, so that the VF is not verified")
            }
        }
    }
}

impl Serialize for VfLack {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// How a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepFailure {
    Refused {
        /// What was tried on what: `write "8" to /sys/...`.
        tried: String,
        said: String,
        /// Its error number, where it gave one.
        errno: Option<Errno>,
    },
    InUse(Vec<Use>),
    /// It had not ended when the deadline came; the child is still at it.
    Unfinished,
    /// The child that does it cannot be started, or was killed.
    NoChild {
        why: String,
    },
    /// It was not tried: a probe of another driver holds the VF.
    ProbeHangs,
    /// It was not tried: the VF is not there any more.
    NoSuchVf,
    /// The child answered something else.
    Unexpected {
        answer: String,
    },
}

impl StepFailure {
    /// The system's error number, where it refused with one.
    pub const fn errno(&self) -> Option<Errno> {
        match self {
            Self::Refused { errno, .. } => *errno,
            _ => None,
        }
    }
}

impl fmt::Display for StepFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { tried, said, .. } => write!(f, "{tried}: {said}"),
            Self::InUse(uses) => f.write_str(&used_by(uses)),
            Self::Unfinished => write!(
                f,
                "the step did not finish before the deadline; a child process is still running"
            ),
            Self::NoChild { why } => write!(f, "cannot start a child process: {why}"),
            Self::ProbeHangs => {
                write!(f, "cannot read driver_override: a probe by another driver hangs")
            }
            Self::NoSuchVf => write!(f, "the VF has disappeared"),
            Self::Unexpected { answer } => {
                write!(f, "the child process gave an unexpected answer: {answer}")
            }
        }
    }
}

impl Serialize for StepFailure {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// What is to be said of a VF after a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VfCause {
    /// It is right as far as it can be seen: a container has its netdev.
    NetdevAway,
    Lacks {
        lack: VfLack,
        /// Why, if this run tells.
        why: Option<WhyLacking>,
        /// What the kernel said of it.
        kernel: Option<String>,
    },
}

/// What the text of a dropped setting says, by which it is known in a log.
pub const DROPPED: &str = "write succeeded: the firmware ignored it";

/// What the text of a refused setting says, by which it is known in a log.
pub const REFUSED: &str = "and the change was refused: ";

/// Why a VF lacks something, as far as a run tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyLacking {
    Failed {
        step: VfStep,
        failure: StepFailure,
    },
    /// mlx4_core would not be bound: it leaves VFs from number probe_vf on to
    /// virtual machines.
    LeftToGuests {
        /// The step that was to bind it.
        step: VfStep,
        failure: StepFailure,
    },
    /// It was set at the PF with success, and the PF has it no more, or the VF has none.
    Dropped,
    /// The VF was bound with success after its GUIDs were set, and shows others.
    OthersGoOn,
}

impl VfCause {
    /// What was set at the PF with success is not there.
    pub const fn is_dropped(&self) -> bool {
        matches!(self, Self::Lacks { why: Some(WhyLacking::Dropped), .. })
    }

    /// The driver or the firmware refused to set a GUID or a link state at the PF.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Lacks { why: Some(why), .. } if why.is_refused())
    }
}

impl WhyLacking {
    fn is_refused(&self) -> bool {
        matches!(self, Self::Failed { step, failure: StepFailure::Refused { .. } }
            if step.stage() == Stage::Administer)
    }
}

/// The number of VFs could not be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberFailed {
    /// From which to which number.
    pub step: VfStep,
    pub failure: StepFailure,
    /// What the kernel said of the PF last.
    pub kernel: Option<String>,
}

/// `; the kernel: LINE`, or nothing.
struct Kernel<'a>(Option<&'a String>);

impl fmt::Display for Kernel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(line) => write!(f, "; the kernel: {line}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for VfCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NetdevAway => {
                write!(f, "the netdev is in another network namespace, where it is not verified")
            }
            Self::Lacks { lack, why, kernel } => {
                write!(f, "{lack}")?;
                match why {
                    None => {}
                    Some(WhyLacking::Failed { step, failure }) if self.is_refused() => {
                        write!(f, ", {REFUSED}{step}: {failure}")?;
                    }
                    Some(WhyLacking::Failed { step, failure }) => write!(f, ": {step}: {failure}")?,
                    Some(WhyLacking::LeftToGuests { step, failure }) => write!(
                        f,
                        ": {step}: {failure}; mlx4_core does not bind VFs from number probe_vf on"
                    )?,
                    Some(WhyLacking::Dropped) => {
                        write!(f, ", although the {DROPPED}")?;
                    }
                    Some(WhyLacking::OthersGoOn) => write!(
                        f,
                        ", although the VF was bound after its GUIDs were set. The firmware of the VF still uses other GUIDs. To fix: reset the VF or the adapter"
                    )?,
                }
                write!(f, "{}", Kernel(kernel.as_ref()))
            }
        }
    }
}

impl NumberFailed {
    /// What failed, in few words: `sriov_numvfs: ENOSPC`.
    pub fn short(&self) -> String {
        match self.failure.errno() {
            Some(errno) => format!("sriov_numvfs: {errno:?}"),
            None => format!("sriov_numvfs: {}", self.failure),
        }
    }

    /// What it means, and what to do about it (`sriov_numvfs_store()`,
    /// drivers/pci/pci-sysfs.c, `sriov_enable()`, drivers/pci/iov.c, and what
    /// mlx5's firmware answers).
    const fn meaning(&self) -> &'static str {
        match (&self.failure, self.failure.errno()) {
            (StepFailure::Unfinished, _) => {
                "the driver hangs while it creates or removes VFs; see dmesg"
            }
            (_, Some(Errno::ENOSPC)) => {
                "the firmware has no room for so many VFs: lower the number, or raise NUM_OF_VFS: `ibprov firmware` shows it"
            }
            (_, Some(Errno::ERANGE)) => {
                "the number exceeds sriov_totalvfs: raise NUM_OF_VFS, which `ibprov firmware` shows"
            }
            (_, Some(Errno::ENOMEM)) => {
                "the PCI bridge above the adapter has no room for the VFs' memory: enable SR-IOV in the firmware setup, or boot with pci=realloc"
            }
            (_, Some(Errno::EBUSY)) => "another process has changed the number in the meantime",
            (_, Some(Errno::ENOENT)) => {
                "the driver was unbound from the PF, or does not support SR-IOV"
            }
            _ => "dmesg may show what the driver of the PF reported",
        }
    }
}

impl fmt::Display for NumberFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, failure, kernel } = self;
        write!(f, "cannot {step}: {failure}: {}{}", self.meaning(), Kernel(kernel.as_ref()))
    }
}

impl Serialize for VfCause {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
