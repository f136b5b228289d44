//! `ibprov gid`: the index of one GID.

use serde::Serialize;

use super::common::{Code, Finding, Kind, Report, verdicts};
use super::hardware::Gid;
use crate::names::{PortNumber, RdmaName};

/// What was found in the GID table of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GidReport {
    /// The RDMA device.
    pub rdma: RdmaName,
    /// The port of it.
    pub port: PortNumber,
    /// What was looked for, in words.
    #[serde(skip)]
    pub wanted: String,
    /// The entries that fit.
    pub gids: Vec<Gid>,
    /// How many entries the table has.
    pub entries: usize,
}

verdicts! {
    /// How it went, in one word.
    pub GidVerdict {
        /// One entry fits.
        Found = "found" => Good,
        /// No entry fits.
        NotFound = "not-found" => NotReady,
        /// Several entries fit.
        Ambiguous = "ambiguous" => NotReady,
    }
}

impl GidReport {
    /// With the keys that every report has.
    pub fn told(&self) -> Report<GidVerdict, &Self> {
        let wanted = &self.wanted;
        let (verdict, wrong) = match self.gids.as_slice() {
            [_] => (GidVerdict::Found, None),
            [] => {
                let message = format!(
                    "none of the {} entries of the GID table is {wanted}: `ibprov status --gids` shows them",
                    self.entries
                );
                (GidVerdict::NotFound, Some(message))
            }
            several => {
                let of = |gid: &Gid| format!("{} ({}, {})", gid.index, gid.kind.word(), gid.gid);
                let each: Vec<String> = several.iter().map(of).collect();
                let message = format!(
                    "several entries of the GID table are {wanted}: {}; give --type and --address",
                    each.join(", ")
                );
                (GidVerdict::Ambiguous, Some(message))
            }
        };
        let object = format!("{}/{}", self.rdma, self.port);
        let wrong = wrong.map(|wrong| Finding::error(Code::NoSuchGid, wrong).about(object));
        Report::new(Kind::Gid, verdict, wrong.into_iter().collect(), self)
    }
}
