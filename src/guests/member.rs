use std::collections::BTreeSet;

use super::domain::Domains;
use super::vf::Need;
use crate::config::guest::{Guest, Needs, What};
use crate::report::guests::{GuestReport, Phase, VfState};

/// One guest of the configuration, and all that is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// As it is configured.
    pub guest: Guest,
    /// How far it is.
    pub phase: Phase,
    /// UUID and name of the domain, once libvirt has told.
    pub domain: Option<(String, String)>,
    /// What it needs, once that is known.
    pub needs: Option<BTreeSet<Need>>,
    /// How its VFs are, once they were looked at.
    pub vfs: Option<Vec<VfState>>,
    /// When its start is given up, microseconds of CLOCK_MONOTONIC.
    pub until_usec: Option<u64>,
    /// When its start was first asked for.
    pub started_usec: Option<u64>,
    /// When it was seen to be up.
    pub up_usec: Option<u64>,
    /// Whatever keeps it from being looked at: libvirt does not answer.
    pub trouble: Option<String>,
}

impl Member {
    /// Nothing known yet.
    #[must_use]
    pub fn new(guest: Guest) -> Self {
        let needs = match &guest.vfs {
            Needs::Auto => None,
            Needs::These(vfs) => Some(vfs.iter().map(|vf| Need::Vf(*vf)).collect()),
        };
        let vfs = needs.as_ref().filter(|n: &&BTreeSet<_>| n.is_empty()).map(|_| Vec::new());
        Self {
            guest,
            phase: Phase::Idle,
            domain: None,
            needs,
            vfs,
            until_usec: None,
            started_usec: None,
            up_usec: None,
            trouble: None,
        }
    }

    /// It is a libvirt domain.
    #[must_use]
    pub const fn is_domain(&self) -> bool {
        matches!(self.guest.what, What::Domain(_))
    }

    /// What it is called where it is started: the domain's UUID, the unit.
    #[must_use]
    pub fn handle(&self) -> &str {
        match (&self.guest.what, &self.domain) {
            (What::Domain(_), Some((uuid, _))) => uuid,
            (what, _) => what.name(),
        }
    }

    /// It needs devices that may be VFs.
    #[must_use]
    pub fn has_vfs(&self) -> bool {
        self.needs.as_ref().is_some_and(|needs| !needs.is_empty())
    }

    /// All that it needs is known, and right.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.trouble.is_none()
            && (self.domain.is_some() || !self.is_domain())
            && self.vfs.as_ref().is_some_and(|vfs| vfs.iter().all(VfState::is_right))
    }

    /// What is wrong with its VFs; `None` if nothing, or if that is not known.
    #[must_use]
    pub fn wrong_vfs(&self) -> Option<String> {
        let wrong = self.vfs.as_ref()?.iter().filter(|vf| !vf.is_right());
        let wrong: Vec<String> = wrong.map(|vf| format!("{}: {}", vf.label(), vf.lacks)).collect();
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }

    /// What is told of it; `waits` is why it is not started yet.
    #[must_use]
    pub fn report(&self, waits: Option<String>) -> GuestReport {
        GuestReport {
            name: self.guest.what.name().to_owned(),
            kind: if self.is_domain() { "domain" } else { "unit" },
            uuid: self.domain.as_ref().map(|(uuid, _)| uuid.clone()),
            phase: self.phase.clone(),
            waits,
            vfs: self.vfs.clone(),
            up_usec: self.up_usec,
            origin: self.guest.origin.clone(),
        }
    }

    /// Take in what libvirt says of domains, unless its fate is sealed.
    pub fn learn(&mut self, domains: &Domains, now: u64) {
        let What::Domain(name) = &self.guest.what else { return };
        self.trouble = None;
        if self.phase != Phase::Idle {
            return;
        }
        match domains.find(name) {
            Some((uuid, name)) => {
                self.domain = Some((uuid.to_owned(), name.to_owned()));
                if domains.is_active(name) {
                    // libvirt may have gone away in the middle of our start.
                    self.phase = Phase::Up { already: self.started_usec.is_none() };
                    self.up_usec = Some(now);
                }
            }
            None => {
                let why = "libvirt has no domain of this name or UUID: see `virsh list --all`";
                self.phase = Phase::Failed { why: why.to_owned() };
            }
        }
    }
}
