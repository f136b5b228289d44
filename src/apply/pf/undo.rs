//! What is changed only for the time of the work, written down before it is changed:
//! `/run/ibprov/pf/PCI.undo`. The next run puts it back if this one is killed.

use super::attempts::Attempts;
use crate::host::{Root, answer, state};
use crate::names::PciAddress;
use crate::observe::Undo;
use crate::report::pf::VfStep;

/// What is to be put back at a PF, and the file that says so.
pub(super) struct UndoRecord {
    file: String,
    undo: Undo,
    /// VFs whose `driver_override` was not told when it was asked for last: a
    /// driver's probe hangs there.
    hung: Vec<PciAddress>,
}

impl UndoRecord {
    /// What an earlier run has left. Why it cannot be read is added to `problems`.
    pub(super) fn read(root: &Root, pf: PciAddress, problems: &mut Vec<String>) -> Self {
        let file = format!("pf/{pf}.undo");
        let path = format!("{}/{file}", state::RUN_DIR);
        let undo = match root.text(&path, 1 << 20) {
            Ok(text) => serde_json::from_str(&text).unwrap_or_else(|e| {
                problems
                    .push(format!("the changes of an interrupted run are not undone, because {path} cannot be read: {e}"));
                Undo::default()
            }),
            Err(e) if e.is_absent() => Undo::default(),
            Err(e) => {
                problems.push(e.to_string());
                Undo::default()
            }
        };
        Self { file, undo, hung: Vec::new() }
    }

    /// What is to be put back.
    pub(super) const fn undo(&self) -> &Undo {
        &self.undo
    }

    /// Automatic probing is about to be switched off.
    pub(super) const fn probing_goes_off(&mut self) {
        self.undo.autoprobe = Some(true);
    }

    /// `driver_override` of these VFs is about to be changed.
    pub(super) fn overrides_change(&mut self, now: impl IntoIterator<Item = (PciAddress, String)>) {
        self.undo.overrides.extend(now);
    }

    /// The VFs there were are gone.
    pub(super) fn vfs_are_gone(&mut self) {
        self.undo.overrides.clear();
    }

    /// `driver_override` of these was asked for and not told.
    pub(super) fn hang(&mut self, vfs: Vec<PciAddress>) {
        self.hung = vfs;
    }

    /// A driver's probe hangs at this VF.
    pub(super) fn is_hung(&self, vf: PciAddress) -> bool {
        self.hung.contains(&vf)
    }

    /// What was put back need not be remembered. That is written down with the end of
    /// the run, since to put it back once more does no harm.
    pub(super) fn forget_what_is_back(&mut self, attempts: &Attempts) {
        for step in attempts.done() {
            match step {
                VfStep::RestoreAutoprobe { .. } => self.undo.autoprobe = None,
                VfStep::RestoreOverride { pci, .. } => {
                    self.undo.overrides.remove(pci);
                }
                _ => {}
            }
        }
    }

    /// All that was seen is as it was; nobody knows where a probe hangs.
    pub(super) fn forget_what_was_seen(&mut self) {
        self.undo.autoprobe = None;
        self.undo.overrides.retain(|pci, _| self.hung.contains(pci));
    }

    /// Write it down, or take the file away if nothing is left.
    ///
    /// # Errors
    /// Why it cannot be written, and what that means.
    pub(super) fn write(&self) -> Result<(), String> {
        let result = if self.undo.is_empty() {
            state::remove(&self.file)
        } else {
            // Plain values: there is no JSON that they do not make.
            let text = serde_json::to_string(&self.undo).unwrap_or_default();
            state::write(&self.file, &text).map(drop)
        };
        result.map_err(|(path, e)| {
            format!(
                "{}: {}: if this run is killed, sriov_drivers_autoprobe stays off",
                path.display(),
                answer(&e)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;

    const FILE: &str = "/run/ibprov/pf/0000:4b:00.0.undo";

    fn read(text: &str) -> (UndoRecord, Vec<String>) {
        let dir = tree(&[(FILE, text)], &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let mut problems = Vec::new();
        let pf = "0000:4b:00.0".parse().expect("address");
        (UndoRecord::read(&root, pf, &mut problems), problems)
    }

    #[test]
    fn what_an_earlier_run_has_written_is_read_and_written_as_it_was() {
        let text =
            r#"{"autoprobe":true,"overrides":{"0000:4b:00.1":"","0000:4b:00.2":"vfio-pci"}}"#;
        let (record, problems) = read(text);
        assert_eq!(problems, [""; 0]);
        let vf = "0000:4b:00.2".parse().expect("address");
        assert_eq!(record.undo().overrides.get(&vf).map(String::as_str), Some("vfio-pci"));
        assert_eq!(serde_json::to_string(record.undo()).expect("JSON"), text);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let (record, problems) = read("{");
        assert!(record.undo().is_empty());
        assert!(problems.iter().any(|p| p.contains("are not undone")), "{problems:?}");
    }

    #[test]
    fn what_hangs_is_still_to_be_put_back_at_the_end() {
        let text = r#"{"autoprobe":true,"overrides":{"0000:4b:00.1":"a","0000:4b:00.2":"b"}}"#;
        let (mut record, _) = read(text);
        let vf = "0000:4b:00.2".parse().expect("address");
        record.hang(vec![vf]);
        record.forget_what_was_seen();
        assert_eq!(record.undo().autoprobe, None);
        assert_eq!(record.undo().overrides.keys().collect::<Vec<_>>(), [&vf]);
    }
}
