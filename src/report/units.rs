//! How systemd's links for ibprov and openibd stand.

use serde::Serialize;

/// ibprov's standing with systemd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Units {
    /// Who answers to openibd.service.
    pub openibd: Owner,
    /// `sysinit.target` wants ibprov.service and nothing masks it: it runs at boot.
    pub enabled: bool,
    /// What is wrong, each with what to do.
    pub findings: Vec<UnitFinding>,
}

/// Who answers to openibd.service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

/// Something wrong with the links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitFinding {
    /// The name by which programs know it; it never changes.
    pub code: &'static str,
    /// What is wrong.
    pub text: String,
    /// What to do.
    pub advice: String,
}
