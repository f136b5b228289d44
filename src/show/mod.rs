//! Reports as text for people, and as metrics. Pure: values in, text out.

pub mod advice;
pub mod boot;
pub mod check;
pub mod consumers;
pub mod firmware;
pub mod guests;
pub mod holders;
pub mod initrd;
pub mod metrics;
pub mod migrate;
pub mod online;
pub mod opensm;
pub mod pf;
pub mod plan;
pub mod preview;
pub mod screen;
pub mod status;

use crate::model::collect::Collected;

/// The text of `ibprov collect`.
pub fn collected(report: &Collected) -> String {
    let Collected { file, files, bytes, anonymized, .. } = report;
    let kib = bytes.div_ceil(1024);
    let names = match anonymized {
        true => "host names and addresses are replaced",
        false => "the archive contains host names and addresses (see --anonymize)",
    };
    format!("{file}: {files} files, {kib} KiB; {names}\nTo read it: ibprov check --log {file}\n")
}
