//! Why a VF is not as planned after a run, how a step at it failed, and why a PF has not the
//! number of VFs of the plan. Values that print themselves: in JSON they are their texts.

use std::fmt;

use nix::errno::Errno;

use super::Use;
use super::uses::used_by;
use super::vf_lack::VfLack;
use super::vf_step::{Stage, VfStep};

/// How a step failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepFailure {
    #[error("{tried}: {said}")]
    Refused {
        /// What was tried on what: `write "8" to /sys/...`.
        tried: String,
        said: String,
        /// Its error number, where it gave one.
        errno: Option<Errno>,
    },
    #[error("{}", used_by(.0))]
    InUse(Vec<Use>),
    /// It had not ended when the deadline came; the child is still at it.
    #[error("the step did not finish before the deadline; a child process is still running")]
    Unfinished,
    /// The child that does it cannot be started, or was killed.
    #[error("cannot start a child process: {why}")]
    NoChild { why: String },
    /// It was not tried: a probe of another driver holds the VF.
    #[error("cannot read driver_override: a probe by another driver hangs")]
    ProbeHangs,
    /// It was not tried: there was no time left.
    #[error("the deadline or a signal ended the run before this step")]
    NotBegun,
    /// It was not tried: the VF is not there any more.
    #[error("the VF has disappeared")]
    NoSuchVf,
    /// The child answered something else.
    #[error("the child process gave an unexpected answer: {answer}")]
    Unexpected { answer: String },
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

    /// mlx4_core would not be bound: it leaves VFs from number probe_vf on to virtual machines.
    fn is_left_to_guests(&self) -> bool {
        matches!(self, Self::Failed { step: VfStep::Bind { driver, .. }, failure }
            if driver == "mlx4_core" && failure.errno() == Some(Errno::ENODEV))
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
                    Some(why @ WhyLacking::Failed { step, failure }) => {
                        match why.is_refused() {
                            true => write!(f, ", {REFUSED}")?,
                            false => f.write_str(": ")?,
                        }
                        write!(f, "{step}: {failure}")?;
                        if why.is_left_to_guests() {
                            write!(f, "; mlx4_core does not bind VFs from number probe_vf on")?;
                        }
                    }
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
