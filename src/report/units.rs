//! How systemd's links for ibprov and openibd stand.

use serde::{Deserialize, Serialize};

use super::common::Finding;

/// ibprov's standing with systemd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Units {
    /// Who answers to openibd.service.
    pub openibd: Owner,
    /// `sysinit.target` wants ibprov.service and nothing masks it: it runs at boot.
    pub enabled: bool,
    /// What is wrong, each with what to do.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// Who answers to openibd.service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// ibprov, by its alias.
    Ibprov,
    /// The vendor's unit or start script.
    Vendor,
    /// It is masked.
    Masked,
    /// No unit answers to that name.
    Nobody,
}
