//! What is changed at a PF only for the time of the work, written down before it is changed:
//! `/run/ibprov/pf/PCI.undo`. If the run is killed, its child puts it back, which holds the
//! PF's lock until then; if the child is killed too, the next run does.

use tracing::{info, warn};

use super::perform::perform;
use super::request::Request;
use crate::host::{Root, state};
use crate::model::{VfStep, events as kinds};
use crate::names::PciAddress;
use crate::observe::pf::{self, dir};
use crate::observe::{Look, Undo};

/// What is to be put back at a PF, and the file that says so.
#[derive(Debug)]
pub struct UndoRecord {
    file: String,
    undo: Undo,
    /// VFs whose `driver_override` was not told when it was asked for last: a
    /// driver's probe hangs there.
    hung: Vec<PciAddress>,
}

impl UndoRecord {
    /// What an earlier run has left. Why it cannot be read is added to `problems`.
    pub fn read(root: &Root, pf: PciAddress, problems: &mut Vec<String>) -> Self {
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

    /// One that holds what was written down so.
    #[cfg(test)]
    pub(crate) fn of(pf: PciAddress, undo: Undo) -> Self {
        Self { file: format!("pf/{pf}.undo"), undo, hung: Vec::new() }
    }

    /// What is to be put back.
    pub const fn undo(&self) -> &Undo {
        &self.undo
    }

    /// The steps that put it back.
    pub fn steps(&self) -> Vec<VfStep> {
        let autoprobe = self.undo.autoprobe.map(|on| VfStep::RestoreAutoprobe { on });
        let overrides = self
            .undo
            .overrides
            .iter()
            .map(|(pci, to)| VfStep::RestoreOverride { pci: *pci, to: to.clone() });
        autoprobe.into_iter().chain(overrides).collect()
    }

    /// Automatic probing is about to be switched off.
    pub const fn probing_goes_off(&mut self) {
        self.undo.autoprobe = Some(true);
    }

    /// `driver_override` of these VFs is about to be changed.
    pub fn overrides_change(&mut self, now: impl IntoIterator<Item = (PciAddress, String)>) {
        self.undo.overrides.extend(now);
    }

    /// The VFs there were are gone. False if nothing was to be put back at them.
    pub fn vfs_are_gone(&mut self) -> bool {
        !std::mem::take(&mut self.undo.overrides).is_empty()
    }

    /// `driver_override` of these was asked for and not told.
    pub fn hang(&mut self, vfs: Vec<PciAddress>) {
        self.hung = vfs;
    }

    /// A driver's probe hangs at this VF.
    pub fn is_hung(&self, vf: PciAddress) -> bool {
        self.hung.contains(&vf)
    }

    /// What `step` has put back need not be remembered. That is written down with the end of
    /// the run, since to put it back once more does no harm.
    pub fn forget(&mut self, step: &VfStep) {
        match step {
            VfStep::RestoreAutoprobe { .. } => self.undo.autoprobe = None,
            VfStep::RestoreOverride { pci, .. } => {
                self.undo.overrides.remove(pci);
            }
            _ => {}
        }
    }

    /// All that was seen is as it was; nobody knows where a probe hangs.
    pub fn forget_what_was_seen(&mut self) {
        self.undo.autoprobe = None;
        self.undo.overrides.retain(|pci, _| self.hung.contains(pci));
    }

    /// Write it down, or take the file away if nothing is left.
    ///
    /// # Errors
    /// Why it cannot be written, and what that means.
    pub fn write(&self) -> Result<(), String> {
        let result = if self.undo.is_empty() {
            state::remove(&self.file)
        } else {
            // Plain values: there is no JSON that they do not make.
            let text = serde_json::to_string(&self.undo).unwrap_or_default();
            state::write(&self.file, &text).map(drop)
        };
        result.map_err(|e| format!("{e}: if this run is killed, sriov_drivers_autoprobe stays off"))
    }
}

/// What the child is asked for to do a `step` that puts something back at `pf`; `None` for
/// any other.
pub fn restore(pf: PciAddress, step: &VfStep) -> Option<Request> {
    let (of, attribute, value) = match step {
        VfStep::RestoreAutoprobe { on } => {
            (pf, "sriov_drivers_autoprobe", if *on { "1" } else { "0" })
        }
        // A line break is the way to write nothing.
        VfStep::RestoreOverride { pci, to } => {
            (*pci, "driver_override", if to.is_empty() { "\n" } else { to })
        }
        _ => return None,
    };
    let path = format!("{}/{attribute}", dir(of));
    Some(Request::Restore { path, value: value.to_owned() })
}

/// Put back what the run at `pf` has left, which has ended: it was killed, or has not waited for
/// a probe. The caller holds the PF's lock.
pub(super) fn put_back(root: &Root, pf: PciAddress) {
    let mut problems = Vec::new();
    let mut record = UndoRecord::read(root, pf, &mut problems);
    let steps = record.steps();
    for step in &steps {
        if is_back(root, pf, step) {
            record.forget(step);
            continue;
        }
        match restore(pf, step).map(|request| perform(root, &request)) {
            Some(Err(cause)) => {
                warn!(message_id = kinds::STEP_FAILED, %pf, %step, %cause, "PF {pf}: failed after the end of the run: {step}: {cause}");
            }
            _ => {
                info!(message_id = kinds::STEP_DONE, %pf, %step, "PF {pf}: done after the end of the run: {step}");
                record.forget(step);
            }
        }
    }
    if !steps.is_empty() {
        problems.extend(record.write().err());
    }
    for problem in problems {
        warn!(%pf, "PF {pf}: {problem}");
    }
}

/// The host shows already what `step` puts back: mostly what a bind has put back itself.
fn is_back(root: &Root, pf: PciAddress, step: &VfStep) -> bool {
    match step {
        VfStep::RestoreAutoprobe { on } => pf::autoprobe(&mut Look::new(root), pf) == Some(*on),
        VfStep::RestoreOverride { pci, to } => {
            pf::driver_override(root, *pci).is_ok_and(|now| now.unwrap_or_default() == *to)
        }
        _ => false,
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
    fn that_probing_goes_off_is_put_back() {
        let (mut record, _) = read("{}");
        record.probing_goes_off();
        let steps = record.steps();
        assert!(matches!(steps.as_slice(), [VfStep::RestoreAutoprobe { on: true }]), "{steps:?}");
    }

    #[test]
    fn what_is_as_it_was_is_not_put_back() {
        let pf = "0000:4b:00.0".parse().expect("address");
        let vf: PciAddress = "0000:4b:00.1".parse().expect("address");
        let autoprobe = format!("{}/sriov_drivers_autoprobe", dir(pf));
        let own = format!("{}/driver_override", dir(vf));
        let steps = [
            VfStep::RestoreAutoprobe { on: true },
            VfStep::RestoreOverride { pci: vf, to: String::new() },
        ];
        for (on, driver, expected) in [("1\n", "(null)\n", true), ("0\n", "mlx5_core\n", false)] {
            let host = tree(&[(&autoprobe, on), (&own, driver)], &[]);
            let root = Root::copy_at(host.path()).expect("root");
            assert!(steps.iter().all(|step| is_back(&root, pf, step) == expected), "{driver}");
        }
        let empty = tree(&[], &[]);
        let root = Root::copy_at(empty.path()).expect("root");
        assert!(!steps.iter().any(|step| is_back(&root, pf, step)), "to write tells what is gone");
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
