//! The ports of this host's VFs, beside the ports of their PFs.

use crate::names::{LinkState, MadPort, VfName};
use crate::report::advice::Advice;
use crate::report::common::{Code, Finding};
use crate::report::plan::{Action, PlannedPf};

/// A port of a VF that this host drives, whose PF's port is active, and that the PF does not
/// keep down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VfPort {
    /// `mlx5_1 port 1 (0000:4b:00.1)`.
    pub object: String,
    pub vf: VfName,
    pub state: LinkState,
    /// The port of its PF.
    pub pf: MadPort,
    /// Its GUID is an alias that the subnet manager grants (mlx4).
    pub has_alias: bool,
}

impl VfPort {
    /// Its VF is as planned, or nothing is planned for it: else the plan says why it is not active.
    pub fn is_as_planned(&self, pfs: &[PlannedPf]) -> bool {
        let pf = pfs.iter().find(|pf| pf.pci == Some(self.vf.pf));
        let mut planned = pf.into_iter().flat_map(|pf| &pf.vfs);
        planned
            .find(|vf| vf.index == self.vf.index)
            .is_none_or(|vf| matches!(vf.action, Action::Keep | Action::Refuse))
    }

    /// That it is not active, if so: whatever serves the PF's port does not serve this one.
    pub fn finding(&self) -> Option<Finding> {
        let state = match self.state {
            LinkState::Active | LinkState::ActiveDefer => return None,
            LinkState::Down => "Down",
            LinkState::Init => "Initializing",
            LinkState::Armed => "Armed",
            LinkState::Nop | LinkState::Unknown => "in an unknown state",
        };
        let (why, advice) = match self.has_alias {
            true => (
                "has probably not granted the alias GUID of this VF",
                Advice::look("see the log of the subnet manager"),
            ),
            false => (
                "probably serves no virtual ports",
                Advice::permanent(
                    "use a subnet manager with virtualization support: NVIDIA's OpenSM with `virt_enabled 2` in its opensm.conf, UFM, or a managed switch where it is enabled; the OpenSM of distributions has none",
                ),
            ),
        };
        let message =
            format!("{state}, although the port of its PF is Active: the subnet manager {why}");
        let look = Advice::look(format!("ask which subnet manager it is: sminfo {}", self.pf));
        let finding = Finding::warning(Code::VfPortNotActive, message).about(&self.object);
        Some(finding.advise([look, advice]))
    }
}
