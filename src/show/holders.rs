//! The text of `ibprov holders`.

use super::screen;
use crate::model::common::Verdict;
use crate::model::holders::{By, Holder, HoldersReport};
use crate::names::{PciAddress, few};

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
    let mut held: Vec<(&By, Vec<String>)> = Vec::new();
    for Holder { hca, by } in &report.holders {
        let object = hca.map_or_else(|| "host".to_owned(), |hca| report.name(hca));
        match held.iter_mut().find(|(other, _)| *other == by) {
            Some((_, objects)) => objects.push(object),
            None => held.push((by, vec![object])),
        }
    }
    lines.extend(held.into_iter().map(|(by, objects)| format!("  {}: {by}", few(&objects))));
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
            1 => format!("{names} with 1 VF"),
            vfs => format!("{names} with {vfs} VFs"),
        }
    }
}
