//! What of a plan does not come about, whatever `apply` does: known before the step.

use std::fmt;

use super::advice::Advice;
use super::common::{Code, Finding, Severity};
use super::vf_lack::VfLack;
use crate::names::{PciAddress, VfIndex, VfName, vf_ranges};

/// One of them, at a VF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub vf: VfName,
    pub why: Refused,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It has another name than planned, which a new bind alone gives it.
    #[error("{lack}")]
    Name { lack: VfLack, driver: String },
    /// mlx4_core binds no more VFs on this host than its parameter probe_vf says.
    #[error(
        "mlx4_core refuses to bind them on this host: its parameter num_vfs is {num_vfs}, and probe_vf is {}",
        if .probe_vf.is_empty() { "not set" } else { .probe_vf.as_str() }
    )]
    NotProbed { num_vfs: String, probe_vf: String },
    /// vfio gives no function away alone that shares its IOMMU group with one that a driver of
    /// the host has.
    #[error("no guest can have one: IOMMU group {group} also has {with}, which {driver} drives")]
    SharedGroup { group: u32, with: PciAddress, driver: String },
}

impl Refusal {
    /// The VF does not become as planned; else it does, and is of no use.
    pub const fn is_error(&self) -> bool {
        !matches!(self.why, Refused::SharedGroup { .. })
    }

    /// True if both can be told in one sentence.
    fn is_like(&self, other: &Self) -> bool {
        match (&self.why, &other.why) {
            (Refused::Name { driver: a, .. }, Refused::Name { driver: b, .. }) => a == b,
            (a, b) => a == b,
        }
    }

    /// Those of one PF as findings, one for all that are alike.
    pub fn findings(refusals: &[Self]) -> Vec<Finding> {
        let mut kinds: Vec<(&Self, Vec<VfIndex>)> = Vec::new();
        for refusal in refusals {
            match kinds.iter_mut().find(|(first, _)| first.is_like(refusal)) {
                Some((_, vfs)) => vfs.push(refusal.vf.index),
                None => kinds.push((refusal, vec![refusal.vf.index])),
            }
        }
        kinds.into_iter().map(|(first, vfs)| first.finding(&vfs)).collect()
    }

    /// That it is so of all `vfs`.
    fn finding(&self, vfs: &[VfIndex]) -> Finding {
        let which = vf_ranges(vfs.iter().copied());
        let pf = self.vf.pf;
        let severity = if self.is_error() { Severity::Error } else { Severity::Warning };
        let (code, message, advice) = match &self.why {
            Refused::Name { driver, .. } => {
                let vfs: Vec<String> = vfs.iter().map(ToString::to_string).collect();
                let unbind = format!(
                    "if they are not in use: for n in {}; do basename $(readlink /sys/bus/pci/devices/{pf}/virtfn$n) >/sys/bus/pci/drivers/{driver}/unbind; done; ibprov apply {pf}",
                    vfs.join(" ")
                );
                let message =
                    format!("{which}: not named as planned; names are given when a VF is bound");
                let advice = vec![Advice::look("ibprov plan"), Advice::now(unbind)];
                (Code::VfNotAsPlanned, message, advice)
            }
            Refused::NotProbed { num_vfs, .. } => {
                let line = format!(
                    "write `options mlx4_core probe_vf={num_vfs}` to a file in /etc/modprobe.d, rebuild the initramfs if it contains mlx4_core, and reboot"
                );
                (Code::VfNotProbed, format!("{which}: {}", self.why), vec![Advice::permanent(line)])
            }
            Refused::SharedGroup { group, .. } => {
                let advice = vec![
                    Advice::look(format!("ls /sys/kernel/iommu_groups/{group}/devices")),
                    Advice::permanent(
                        "enable ACS and ARI in the firmware setup, or move the adapter to a slot of its own root port",
                    ),
                ];
                (Code::IommuGroupShared, format!("{which}: {}", self.why), advice)
            }
        };
        Finding::new(code, severity, message).about(pf).advise(advice)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VF {}: {}", self.vf.index, self.why)
    }
}
