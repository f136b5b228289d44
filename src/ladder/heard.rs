//! What was heard while ports were waited for: udev's events, and the kernel's
//! words.

use std::collections::BTreeSet;

use super::cause::{self, KernelLogFacts};
use crate::host::KernelLine;
use crate::host::events::Happened;

/// What was heard so far. What it tells of PCI functions goes to the [`KernelLogFacts`].
#[derive(Debug, Default)]
pub struct UdevHistory {
    pub devices: BTreeSet<String>,
    knows_history: bool,
}

impl UdevHistory {
    /// Take in what has happened. True if the kernel has said something that matters.
    pub fn learn(&mut self, happened: &Happened, facts: &mut KernelLogFacts) -> bool {
        for event in &happened.udev {
            if event.action == "remove" {
                self.devices.remove(&event.sysname);
            } else {
                self.devices.insert(event.sysname.clone());
            }
        }
        let matters = |line: &&KernelLine| cause::learn(facts, line.level, &line.text);
        happened.kernel.iter().filter(matters).count() > 0
    }

    /// Take in what the kernel said before it was listened to. `log` is read
    /// once; who cannot read it was told so when the listening began.
    pub fn read_history<E>(
        &mut self,
        facts: &mut KernelLogFacts,
        log: impl FnOnce() -> Result<Vec<KernelLine>, E>,
    ) {
        if std::mem::replace(&mut self.knows_history, true) {
            return;
        }
        for line in log().unwrap_or_default() {
            cause::learn(facts, line.level, &line.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::UdevEvent;
    use crate::names::Moment;

    #[test]
    fn a_device_that_was_removed_is_not_heard_of_any_more() {
        let event = |action: &str, sysname: &str| UdevEvent {
            action: action.to_owned(),
            subsystem: "net".to_owned(),
            sysname: sysname.to_owned(),
        };
        let udev = vec![event("add", "ib0"), event("bind", "mlx5_0"), event("remove", "ib0")];
        let mut heard = UdevHistory::default();
        heard.learn(&Happened { udev, ..Happened::default() }, &mut KernelLogFacts::default());
        assert_eq!(heard.devices.iter().collect::<Vec<_>>(), ["mlx5_0"]);
    }

    #[test]
    fn history_is_read_once() {
        let line = "mlx5_core: probe of 0000:4b:00.0 failed with error -110";
        let (mut heard, mut facts) = (UdevHistory::default(), KernelLogFacts::default());
        let mut reads = 0;
        for _ in 0..2 {
            heard.read_history(&mut facts, || {
                reads += 1;
                Ok::<_, ()>(vec![KernelLine { at: Moment::START, level: 4, text: line.to_owned() }])
            });
        }
        assert_eq!((reads, facts.functions.len()), (1, 1));
    }
}
