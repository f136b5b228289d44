//! Why a guest has not been started yet.

use std::fmt;

use super::libvirt::Trouble;
use crate::config::guest::What;
use crate::report::GuestLack;
use crate::report::guests::VfState;

/// What a guest waits for. Printed as a reason, it is `waits` of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Waiting {
    /// libvirt, without which nothing is known of it.
    Libvirt(Trouble),
    /// Its VFs that are not right; never empty.
    Vfs(Vec<WrongVf>),
    /// A guest that comes before it.
    After(What),
    /// The look at its VFs that is under way.
    Look,
    /// Others, as many as may be starting at the same time.
    Slot,
}

/// A VF that is not right for a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrongVf {
    label: String,
    lacks: GuestLack,
}

impl WrongVf {
    /// `None` for one that is right.
    pub(super) fn of(state: &VfState) -> Option<Self> {
        let lacks = state.lacks.clone()?;
        Some(Self { label: state.label(), lacks })
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Libvirt(trouble) => trouble.fmt(f),
            Self::Vfs(wrong) => {
                for (number, vf) in wrong.iter().enumerate() {
                    let between = if number == 0 { "" } else { "; " };
                    write!(f, "{between}{}: {}", vf.label, vf.lacks)?;
                }
                Ok(())
            }
            Self::After(what) => write!(f, "the guest starts after {what}, which is not up yet"),
            Self::Look => f.write_str("the VFs of the guest are being checked"),
            Self::Slot => f.write_str("other guests are being started"),
        }
    }
}
