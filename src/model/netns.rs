//! The RDMA network namespace mode, in every report that tells of it.

use std::fmt;

use serde::Serialize;

use super::{Code, Finding, ToDo};
use crate::names::NetnsMode;

/// The mode, where one is configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Netns {
    /// As it is configured.
    pub wanted: NetnsMode,
    /// As it is; `null` without ib_core, or where the kernel has none.
    pub is: Option<NetnsMode>,
    /// Who else sets another one.
    pub others: Vec<OtherAgent>,
}

/// Who else sets the mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OtherAgent {
    /// File and line.
    pub place: String,
    /// The mode that it sets.
    pub mode: NetnsMode,
}

impl Netns {
    /// It is another one than is configured.
    pub fn differs(&self) -> bool {
        self.is.is_some_and(|is| is != self.wanted)
    }

    /// What the mode is, where it differs.
    pub fn deviation(&self) -> Option<Finding> {
        let Self { wanted, is, .. } = self;
        let is = is.filter(|_| self.differs())?;
        let message =
            format!("the RDMA network namespace mode is {is}, but {wanted} is configured");
        Some(self.finding(message))
    }

    /// What each of the others sets.
    pub fn contradictions(&self) -> impl Iterator<Item = Finding> {
        let wanted = self.wanted;
        self.others.iter().map(move |OtherAgent { place, mode }| {
            self.finding(format!(
                "{place} sets the RDMA network namespace mode to {mode}, but {wanted} is configured"
            ))
        })
    }

    fn finding(&self, message: String) -> Finding {
        let finding = Finding::warning(Code::NetnsMode, message);
        finding.look([ToDo::run("rdma system")]).permanent([remedy(self.wanted)])
    }
}

impl fmt::Display for Netns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = self.wanted;
        f.write_str("RDMA network namespace mode: ")?;
        match self.is {
            Some(is) if is == wanted => write!(f, "{is}, as configured"),
            Some(is) => write!(f, "{is}, would be set to {wanted}"),
            None => write!(
                f,
                "unknown, because ib_core is not loaded or has no such mode (before Linux 5.2); boot sets {wanted} as soon as ib_core is loaded"
            ),
        }
    }
}

/// What is to be done where the mode cannot be set while the host runs.
pub fn remedy(mode: NetnsMode) -> String {
    format!(
        "put `options ib_core netns_mode={}` into a file of /etc/modprobe.d, so that ib_core has the mode when it is loaded (if the initramfs contains ib_core, rebuild the initramfs: update-initramfs -u or dracut -f)",
        mode.number()
    )
}
