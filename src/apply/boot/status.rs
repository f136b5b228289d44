//! What a boot says of itself while it waits: systemd's status line.

use super::{Boot, GRACE_SEC};
use crate::host::systemd;
use crate::ladder::cause;
use crate::observe::Observed;
use crate::report::PortProgress;

impl Boot<'_> {
    pub(super) fn tell(&mut self, status: &str) {
        if !std::mem::replace(&mut self.extended, true)
            && let Err(e) = systemd::extend_start(self.config.boot.deadline.as_secs() + GRACE_SEC)
        {
            log::debug!("cannot tell systemd the deadline: {e}");
        }
        if let Err(e) = systemd::status(status) {
            log::debug!("cannot tell systemd the status: {e}");
        }
    }

    pub(super) fn status_line(
        &self,
        ports: &[PortProgress],
        observed: &Observed,
        now: u64,
    ) -> String {
        let waited: Vec<&PortProgress> = ports.iter().filter(|p| !p.is_ethernet()).collect();
        let ready = waited.iter().filter(|p| p.is_ready()).count();
        let mut line = format!("{ready} of {} ports", waited.len());
        let since = |p: &PortProgress| self.since.get(&p.expected).copied().unwrap_or(now);
        let says_why = |p: &PortProgress| {
            let log = p.pci.and_then(|pci| self.facts.functions.get(&pci));
            log.is_some_and(|l| l.firmware_wait.is_some())
        };
        // A card that waits for firmware may be what the others wait for: its
        // driver's module is not through before it is.
        let missing = waited.iter().filter(|p| !p.is_ready());
        if let Some(port) = missing.min_by_key(|p| (!says_why(p), since(p))) {
            let why = cause::cause(port, observed, &self.facts).map(|c| c.text);
            let seconds = now.saturating_sub(since(port)) / 1_000_000;
            line = format!(
                "{line}: waiting for {}: {}, {seconds} s",
                port.label(),
                why.unwrap_or_default()
            );
        } else if self.done.modules_in_flight() {
            line.push_str(": waiting for modprobe");
        } else if let Some(waiting) = self.vfs.waiting() {
            line = format!("{line}: {waiting}");
        }
        line
    }
}
