//! `ibprov plan --partitions`: what it says, and the lines of a fleet.

use std::io::Write as _;
use std::path::Path;

use serde::Serialize;

use super::fleet::{self, FleetVerdict};
use super::print;
use crate::cli::Format;
use crate::host::terminal;
use crate::plan::partitions::{self, Partition};
use crate::report::common::{Kind, Report, verdicts};

/// What `ibprov plan --partitions` says.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Partitions {
    /// Lines for opensm's partitions.conf.
    pub(super) lines: String,
}

verdicts! {
    /// Whether all VFs have their lines.
    pub(super) PartitionsVerdict {
        /// All that are planned.
        Complete = "complete" => Good,
        /// A PF cannot be planned, or a fleet has a GUID twice.
        WouldFail = "would-fail" => NotReady,
        /// The fleet was not seen whole, so there are no lines.
        Unknown = "unknown" => NotBegun,
    }
}

/// Print the lines of all hosts of `dir` for the one host with the subnet manager. Of a fleet
/// that was not seen whole there are none: the ports that they lack would lose their partition.
///
/// # Errors
/// `dir` cannot be read; standard output is gone.
pub(super) fn of_fleet(dir: &Path, partition: Partition, format: Format) -> anyhow::Result<u8> {
    let (hosts, problems) = fleet::hosts(dir)?;
    let judged = fleet::judged(&hosts, problems);
    let told = judged.told();
    let verdict = match told.verdict {
        FleetVerdict::Good => PartitionsVerdict::Complete,
        FleetVerdict::Conflicts => PartitionsVerdict::WouldFail,
        FleetVerdict::Unknown => PartitionsVerdict::Unknown,
    };
    let lines = match told.verdict {
        FleetVerdict::Unknown => String::new(),
        _ => partitions::lines(&partitions::of_fleet(&hosts), partition),
    };
    let findings = told.findings.into_iter().map(|told| told.finding).collect();
    let report = Report::new(Kind::PlanPartitions, verdict, findings, Partitions { lines });
    let code = print(&report, format, |_| report.body.lines.clone())?;
    if format == Format::Text && verdict != PartitionsVerdict::Complete {
        write!(terminal::stderr(), "{}", judged.to_text())?;
    }
    Ok(code)
}
