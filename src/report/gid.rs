//! `ibprov gid`: the index of one GID.

use serde::Serialize;

use super::common::{Code, Exit, Finding, Kind, Report};
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

/// How it went, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GidVerdict {
    /// One entry fits.
    Found,
    /// No entry fits.
    NotFound,
    /// Several entries fit.
    Ambiguous,
}

impl GidReport {
    /// The index, if one entry fits.
    pub fn index(&self) -> Option<u32> {
        match self.gids.as_slice() {
            [gid] => Some(gid.index),
            _ => None,
        }
    }
}

impl Report for GidReport {
    const KIND: Kind = Kind::Gid;
    type Verdict = GidVerdict;
    type Finding = Finding;

    fn verdict(&self) -> GidVerdict {
        match self.gids.len() {
            0 => GidVerdict::NotFound,
            1 => GidVerdict::Found,
            _ => GidVerdict::Ambiguous,
        }
    }

    fn exit_code(&self) -> u8 {
        match self.verdict() {
            GidVerdict::Found => Exit::Good.code(),
            GidVerdict::NotFound | GidVerdict::Ambiguous => Exit::NotReady.code(),
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let wanted = &self.wanted;
        let message = match self.verdict() {
            GidVerdict::Found => return Vec::new(),
            GidVerdict::NotFound => format!(
                "none of the {} entries of the GID table is {wanted}: `ibprov status --gids` shows them",
                self.entries
            ),
            GidVerdict::Ambiguous => {
                let each: Vec<String> = self
                    .gids
                    .iter()
                    .map(|gid| format!("{} ({}, {})", gid.index, gid.kind.word(), gid.gid))
                    .collect();
                format!(
                    "several entries of the GID table are {wanted}: {}; give --type and --address",
                    each.join(", ")
                )
            }
        };
        let object = format!("{}/{}", self.rdma, self.port);
        vec![Finding::error(Code::NoSuchGid, message).about(object)]
    }
}
