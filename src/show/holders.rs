//! The text of `ibprov holders`.

use super::screen;
use crate::model::common::Verdict;
use crate::model::holders::{Holder, HoldersReport};
use crate::names::{PciAddress, counted, few, grouped};

/// For people: the HCAs, then a line for each holder.
pub fn text(report: &HoldersReport) -> String {
    let subject = report.subject();
    let mut lines = Vec::new();
    if report.hcas.is_empty() {
        lines.push("this host has no HCA".to_owned());
    } else {
        lines.push(match report.verdict() {
            Verdict::Ready => {
                format!("{subject}: not busy, nor are the kernel modules")
            }
            Verdict::Unknown => {
                format!(
                    "{subject}: not known: no user was found, but not all could be read (see below)"
                )
            }
            _ => format!("{subject}: kept busy by:"),
        });
    }
    // What is said of many VFs is said once.
    for (by, held) in grouped(&report.holders, |holder| &holder.by) {
        let name =
            |holder: &&Holder| holder.hca.map_or_else(|| "host".to_owned(), |hca| report.name(hca));
        let objects: Vec<String> = held.iter().map(name).collect();
        lines.push(format!("  {}: {by}", few(&objects)));
    }
    lines.extend(report.problems.iter().map(|problem| format!("warning: not read: {problem}")));
    screen::text(lines)
}

impl HoldersReport {
    /// What people know an HCA by.
    fn name(&self, hca: PciAddress) -> String {
        match self.devices.get(&hca) {
            Some(device) => format!("{device} ({hca})"),
            None => hca.to_string(),
        }
    }

    /// The HCAs by name where they are few, and how many VFs they have.
    fn subject(&self) -> String {
        let names = match (self.pfs.len(), self.pfs.as_slice()) {
            (0..=4, pfs) => pfs.iter().map(|pf| self.name(*pf)).collect::<Vec<_>>().join(", "),
            (n, _) => format!("{n} HCAs"),
        };
        match self.hcas.len().saturating_sub(self.pfs.len()) {
            0 => names,
            vfs => format!("{names} with {}", counted(vfs, "VF")),
        }
    }
}
