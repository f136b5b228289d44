//! What a run at a PF has tried, and what it came to, VF by VF, and why. Pure.

use nix::errno::Errno;

use crate::ladder::KernelLogFacts;
use crate::ladder::vf::{goal, shows_other, vf_progress};
use crate::model::{
    Advice, Code, Deferred, Finding, Severity, StepDone, StepFailure, ToDo, VfLack, VfStep,
    WantedPf, WantedVf,
    pf::{DROPPED, REFUSED, Stage, VfOutcome},
};
use crate::names::{PciAddress, VfIndex, VfOwner, VfRung};
use crate::observe::{ObservedPf, ObservedVf};
use crate::plan::VfPlan;

/// The steps of a run, in order. None is tried twice.
#[derive(Debug, Default)]
pub(super) struct Attempts(pub(super) Vec<StepDone>);

impl Attempts {
    pub(super) fn add(&mut self, attempt: StepDone) {
        self.0.push(attempt);
    }

    /// The same change was tried, whatever it started from.
    pub(super) fn has(&self, step: &VfStep) -> bool {
        self.0.iter().any(|attempt| attempt.step.is_same(step))
    }

    /// To bind the VF was tried.
    pub(super) fn have_bound(&self, index: VfIndex) -> bool {
        self.of_vf(index).any(|attempt| matches!(attempt.step, VfStep::Bind { .. }))
    }

    /// What was tried with a VF.
    pub(super) fn of_vf(&self, index: VfIndex) -> impl Iterator<Item = &StepDone> {
        self.0.iter().filter(move |attempt| attempt.step.vf() == Some(index))
    }

    /// The VFs there are were made by this run.
    pub(super) fn have_made_vfs(&self) -> bool {
        self.counts().any(StepDone::is_done)
    }

    /// The change of the number of VFs that failed, and how.
    pub(super) fn failed_count(&self) -> Option<(&VfStep, &StepFailure)> {
        self.counts().find_map(|attempt| Some((&attempt.step, attempt.failure.as_ref()?)))
    }

    fn counts(&self) -> impl Iterator<Item = &StepDone> {
        self.0.iter().filter(|attempt| attempt.step.stage() == Stage::Count)
    }

    /// The steps that were a success.
    pub(super) fn done(&self) -> impl Iterator<Item = &VfStep> {
        self.0.iter().filter(|attempt| attempt.is_done()).map(|attempt| &attempt.step)
    }
}

/// The host at the end of a run.
#[derive(Clone, Copy)]
pub(super) struct LastLook<'a> {
    pub(super) observed: &'a ObservedPf,
    /// Which netdevs ib_ipoib has in other network namespaces is not known: RDMA netlink has
    /// not answered.
    pub(super) is_rdma_held: bool,
    /// udev has events to process, among which may be one of a name.
    pub(super) udev_works: bool,
}

/// The VFs of the plan as they are after the run.
pub(super) fn vfs(
    wanted: &WantedPf,
    LastLook { observed, is_rdma_held, udev_works }: LastLook<'_>,
    plan: &VfPlan,
    attempts: &Attempts,
    facts: &KernelLogFacts,
) -> Vec<VfOutcome> {
    let each = |want: &WantedVf| {
        let seen = observed.vf(want.index);
        let progress = vf_progress(want, seen, observed);
        let own = seen.and_then(|s| s.own.as_ref());
        let deferred = plan.deferred.iter().any(|d| match d {
            Deferred::Vf { vf, .. } => *vf == want.index,
            // What does not exist waits for the number.
            Deferred::Count { .. } => seen.is_none(),
        });
        let where_away: &[VfRung] = match want.owner {
            VfOwner::Plan => &[VfRung::Rdma],
            VfOwner::Cni => &[VfRung::Rdma, VfRung::Bound],
        };
        let away = progress.reached.is_some_and(|rung| where_away.contains(&rung))
            && !is_rdma_held
            && seen.is_some_and(|s| is_away(want, s, observed, attempts));
        let right = progress.lacks.is_none() || away;
        let cause = progress.lacks.map(|lack| {
            if away {
                let message =
                    "the netdev is in another network namespace, where it is not verified";
                return Finding::new(Code::Notice, Severity::Info, message);
            }
            let told = lacking(&lack, udev_works);
            if deferred {
                return Finding { code: Code::VfDeferred, severity: Severity::Warning, ..told };
            }
            if plan.problem.is_some() {
                return told;
            }
            let kernel = seen.and_then(|s| kernel(s.pci, facts));
            let kernel = kernel.or_else(|| kernel_of_pf(&lack, observed.pf, facts));
            with_kernel(explained(told, want, &lack, attempts), kernel)
        });
        VfOutcome {
            vf: want.index,
            pci: seen.map(|s| s.pci),
            right,
            deferred: deferred && !right,
            reached: progress.reached,
            goal: goal(want, progress.reached),
            node_guid: want.node_guid,
            port_guid: want.port_guid,
            port2_guid: want.port2_guid,
            rdma: own.map(|o| o.rdma.clone()),
            netdev: own.and_then(|o| o.netdev.clone()),
            cause,
        }
    };
    wanted.vfs.iter().map(each).collect()
}

/// A VF without a netdev that this run has not bound, that shows nothing but the plan's
/// GUIDs, and whose devices may exist: a container has them.
fn is_away(want: &WantedVf, seen: &ObservedVf, pf: &ObservedPf, attempts: &Attempts) -> bool {
    let may_come_no_more = seen.half_bound || seen.ipoib_failed;
    pf.ipoib
        && !may_come_no_more
        && shows_other(want, seen, &pf.backend).is_none()
        && !attempts.have_bound(seen.index)
}

/// That a VF lacks this; `udev_works`: udev has events to process.
fn lacking(lack: &VfLack, udev_works: bool) -> Finding {
    let finding = |message| Finding::error(Code::VfNotAsPlanned, message);
    match lack {
        VfLack::Name { is, planned, .. } if udev_works => finding(format!(
            "udev has not renamed {is} to {planned} and was still processing events"
        ))
        .look([ToDo::run("journalctl -b -u systemd-udevd")]),
        VfLack::Name { .. } => finding(lack.to_string()).now([
            "unbind the VF from its driver (`echo PCI-ADDRESS >/sys/bus/pci/drivers/DRIVER/unbind`) and run `ibprov apply`",
        ]),
        _ => finding(lack.to_string()),
    }
}

/// The same with what the kernel said.
fn with_kernel(finding: Finding, line: Option<String>) -> Finding {
    match line {
        Some(line) => {
            Finding { message: format!("{}; the kernel: {line}", finding.message), ..finding }
        }
        None => finding,
    }
}

/// What the kernel said of a VF: that its probe failed, if it did, and why.
fn kernel(vf: PciAddress, facts: &KernelLogFacts) -> Option<String> {
    let log = facts.functions.get(&vf)?;
    log.failed_probe().or_else(|| log.last_error.clone())
}

/// What the kernel said of the PF that its VF may lack this for: a fatal error of the
/// card, and any error where the PF's firmware is what has not answered.
fn kernel_of_pf(lack: &VfLack, pf: PciAddress, facts: &KernelLogFacts) -> Option<String> {
    let log = facts.functions.get(&pf)?;
    let is_unread =
        matches!(lack, VfLack::GuidsAtPf(guids) if guids.iter().any(|guid| guid.is.is_none()));
    if is_unread { log.last_trouble().cloned() } else { log.fatal_error.clone() }
}

/// The finding with why the VF lacks this, as far as the steps tell.
fn explained(told: Finding, want: &WantedVf, lack: &VfLack, attempts: &Attempts) -> Finding {
    let because = |code, why: &str| Finding {
        code,
        message: format!("{}{why}", told.message),
        ..told.clone()
    };
    let failed = attempts.of_vf(want.index).find_map(|t| Some((&t.step, t.failure.as_ref()?)));
    if let Some((step, failure)) = failed {
        let is_refused =
            step.stage() == Stage::Administer && matches!(failure, StepFailure::Refused(_));
        if is_refused {
            let why = format!(", {REFUSED}{step}: {failure}");
            return because(Code::VfSettingRefused, &why);
        }
        // mlx4_core leaves VFs from number probe_vf on to virtual machines.
        let is_left = failure.errno() == Some(Errno::ENODEV)
            && matches!(step, VfStep::Bind { driver, .. } if driver == "mlx4_core");
        let left = "; mlx4_core does not bind VFs from number probe_vf on";
        let left = if is_left { left } else { "" };
        return because(Code::VfNotAsPlanned, &format!(": {step}: {failure}{left}"));
    }
    let did = |is: fn(&VfStep) -> bool| attempts.of_vf(want.index).any(|t| is(&t.step));
    let set_guid = || did(|s| matches!(s, VfStep::NodeGuid { .. } | VfStep::PortGuid { .. }));
    let is_bound = attempts.have_bound(want.index);
    let is_dropped = match lack {
        // What cannot be read has not been dropped: firmware may have ceased to answer.
        VfLack::GuidsAtPf(guids) => guids.iter().any(|guid| guid.is.is_some()) && set_guid(),
        VfLack::Policy { .. } => did(|s| matches!(s, VfStep::Policy { .. })),
        // What mlx5 shows at the PF is its own copy: that firmware took nothing is seen at
        // the VF alone, which has no GUID at all then.
        VfLack::Shows { is, .. } => is_bound && set_guid() && is.is_zero(),
        _ => false,
    };
    if is_dropped {
        return because(Code::VfSettingDropped, &format!(", although the {DROPPED}"));
    }
    match lack {
        VfLack::Shows { .. } if is_bound => because(
            Code::VfNotAsPlanned,
            ", although the VF was bound after its GUIDs were set. The firmware of the VF still uses other GUIDs",
        )
        .now(["reset the VF or the adapter"]),
        _ => told,
    }
}

/// The number of VFs was not changed: that was tried in vain, or `plan` still has it. What it
/// means, and what to do about it (`sriov_numvfs_store()`, drivers/pci/pci-sysfs.c, `sriov_enable()`,
/// drivers/pci/iov.c, and what mlx5's firmware answers).
pub(super) fn number_failed(
    plan: &VfPlan,
    attempts: &Attempts,
    facts: &KernelLogFacts,
    pf: PciAddress,
) -> Option<Finding> {
    let left = || plan.steps.iter().find(|s| s.stage() == Stage::Count && !attempts.has(s));
    let not_begun = || left().map(|step| (step, &StepFailure::NotBegun));
    let (step, failure) = attempts.failed_count().or_else(not_begun)?;
    let log = ToDo::run(format!("dmesg | grep {pf}"));
    let (meaning, remedy) = match (failure, failure.errno()) {
        (StepFailure::NotBegun, _) => {
            ("nothing was changed", Advice::now(ToDo::run(format!("ibprov apply {pf}"))))
        }
        (StepFailure::Unfinished, _) => {
            ("the driver hangs while it creates or removes VFs", Advice::look(log))
        }
        (_, Some(Errno::ENOSPC)) => (
            "the firmware has no room for so many VFs",
            Advice::permanent("lower the number, or raise NUM_OF_VFS: `ibprov firmware` shows it"),
        ),
        (_, Some(Errno::ERANGE)) => (
            "the number exceeds sriov_totalvfs",
            Advice::permanent("raise NUM_OF_VFS, which `ibprov firmware` shows"),
        ),
        (_, Some(Errno::ENOMEM)) => (
            "the PCI bridge above the adapter has no room for the VFs' memory",
            Advice::permanent("enable SR-IOV in the firmware setup, or boot with pci=realloc"),
        ),
        (_, Some(Errno::EBUSY)) => (
            "another process has changed the number in the meantime",
            Advice::now(ToDo::run(format!("ibprov apply {pf}"))),
        ),
        (_, Some(Errno::ENOENT)) => (
            "the driver was unbound from the PF, or does not support SR-IOV",
            Advice::look(ToDo::run(format!("lspci -k -s {pf}"))),
        ),
        _ => ("the driver of the PF may have reported why", Advice::look(log)),
    };
    let kernel = facts.functions.get(&pf).and_then(|log| log.last_error.clone());
    let finding =
        Finding::error(Code::VfPlanBlocked, format!("cannot {step}: {failure}: {meaning}"));
    Some(with_kernel(finding, kernel).about(pf).advise([remedy]))
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;
    use crate::ladder::cause;
    use crate::ladder::fixtures;
    use crate::names::{Guid, Policy, PortNumber, VfDriver};
    use crate::observe::VfDevices;

    const NODE: Guid = Guid::new(0x0200_0000_0000_0001);
    const OTHER: Guid = Guid::new(7);

    fn index() -> VfIndex {
        VfIndex::new(0).expect("index")
    }

    fn wanted() -> WantedPf {
        fixtures::wanted(&[VfDriver::Host])
    }

    fn right() -> ObservedPf {
        fixtures::right(&wanted())
    }

    fn bind(driver: &str) -> VfStep {
        VfStep::Bind { vf: index(), driver: driver.to_owned(), after: None, rdma: None }
    }

    fn node_guid() -> VfStep {
        VfStep::NodeGuid { vf: index(), from: None, to: NODE }
    }

    fn refused(errno: Errno) -> StepFailure {
        let said = format!("{errno:?}: {}", errno.desc());
        let errno = Some(errno as i32);
        crate::model::Refusal { tried: "write \"8\" to /sys/x".to_owned(), said, errno }.into()
    }

    /// What is said of the VF after these steps, on a host that differs by `change`
    /// from what is right.
    fn said(
        change: impl FnOnce(&mut ObservedVf),
        steps: &[(VfStep, Option<StepFailure>)],
    ) -> String {
        let mut observed = right();
        change(&mut observed.vfs[0]);
        let mut attempts = Attempts::default();
        for (step, failure) in steps {
            attempts.add(StepDone { step: step.clone(), failure: failure.clone() });
        }
        let facts = KernelLogFacts::default();
        let vfs = vfs(&wanted(), asked(&observed), &VfPlan::default(), &attempts, &facts);
        vfs[0].cause.as_ref().map(Finding::with_remedy).unwrap_or_default()
    }

    const fn asked(observed: &ObservedPf) -> LastLook<'_> {
        LastLook { observed, is_rdma_held: false, udev_works: false }
    }

    /// Its registration may hang in ib_ipoib.
    #[test]
    fn a_netdev_is_in_another_namespace_only_if_that_was_answered() {
        let mut observed = right();
        let own = observed.vfs[0].own.as_mut().expect("own");
        (own.netdev, own.netdev_guid) = (None, None);
        for (is_rdma_held, right) in [(false, true), (true, false)] {
            let seen = LastLook { is_rdma_held, ..asked(&observed) };
            let (plan, attempts) = (VfPlan::default(), Attempts::default());
            let vfs = vfs(&wanted(), seen, &plan, &attempts, &KernelLogFacts::default());
            assert_eq!(vfs[0].right, right, "{:?}", vfs[0].cause);
        }
    }

    #[test]
    fn a_name_that_udev_may_still_give_needs_no_other_bind() {
        let observed = right();
        let mut wanted = wanted();
        wanted.vfs[0].names.netdev = "ib0v0".parse().ok();
        let said = |udev_works| {
            let seen = LastLook { udev_works, ..asked(&observed) };
            let (plan, attempts) = (VfPlan::default(), Attempts::default());
            let vfs = vfs(&wanted, seen, &plan, &attempts, &KernelLogFacts::default());
            vfs[0].cause.as_ref().map(Finding::with_remedy).unwrap_or_default()
        };
        let text = said(true);
        assert!(
            text.contains("has not renamed ib1 to ib0v0") && !text.contains("unbind"),
            "{text}"
        );
        assert!(said(false).contains("unbind"));
    }

    /// With `netns = "exclusive"` a pod has the RDMA device too.
    #[test]
    fn a_vf_of_the_cni_may_have_both_devices_elsewhere() {
        let mut observed = right();
        observed.vfs[0].own = None;
        let judged = |owner, attempts: &Attempts| {
            let mut wanted = wanted();
            wanted.vfs[0].owner = owner;
            let facts = KernelLogFacts::default();
            vfs(&wanted, asked(&observed), &VfPlan::default(), attempts, &facts)[0].right
        };
        let mut bound = Attempts::default();
        bound.add(StepDone { step: bind("mlx5_core"), failure: None });
        assert!(judged(VfOwner::Cni, &Attempts::default()));
        assert!(!judged(VfOwner::Cni, &bound), "this run has bound it");
        assert!(!judged(VfOwner::Plan, &Attempts::default()));
    }

    #[test]
    fn what_is_right_has_no_cause() {
        assert_eq!(said(|_| (), &[(bind("mlx5_core"), None)]), "");
    }

    #[test]
    fn what_was_set_and_is_not_there_was_dropped_by_the_firmware() {
        assert_eq!(
            said(|vf| vf.admin.node_guid = Some(OTHER), &[(node_guid(), None)]),
            "the node GUID at the PF is 0000:0000:0000:0007 instead of 0200:0000:0000:0001, although the write succeeded: the firmware ignored it"
        );
        assert_eq!(
            said(unread, &[(node_guid(), None)]),
            "the node GUID at the PF cannot be read; planned is 0200:0000:0000:0001"
        );
        let policy = VfStep::Policy { vf: index(), from: None, to: Policy::Follow };
        let down = |vf: &mut ObservedVf| vf.admin.policy = Some(Policy::Down);
        assert_eq!(
            said(down, &[(policy, None)]),
            "the link state is down instead of follow, although the write succeeded: the firmware ignored it"
        );
    }

    /// Nothing of this host shows the GUIDs, and the PF does not answer for the node GUID.
    fn unread(vf: &mut ObservedVf) {
        (vf.driver, vf.own) = (Some("vfio-pci".to_owned()), None);
        (vf.admin.node_guid, vf.admin.is_answered) = (None, false);
    }

    #[test]
    fn guids_that_cannot_be_read_are_told_with_the_error_of_the_pf() {
        let mut observed = right();
        unread(&mut observed.vfs[0]);
        let mut facts = KernelLogFacts::default();
        cause::learn(&mut facts, 3, "mlx5_core 0000:4b:00.0: QUERY_HCA_VPORT_CONTEXT failed");
        let attempts = Attempts::default();
        let vfs = vfs(&wanted(), asked(&observed), &VfPlan::default(), &attempts, &facts);
        let said = vfs[0].cause.as_ref().map(Finding::with_remedy).unwrap_or_default();
        assert!(
            said.ends_with("; the kernel: mlx5_core 0000:4b:00.0: QUERY_HCA_VPORT_CONTEXT failed"),
            "{said}"
        );
    }

    #[test]
    fn the_firmware_is_not_blamed_for_what_nobody_has_set() {
        let down = |vf: &mut ObservedVf| vf.admin.policy = Some(Policy::Down);
        assert_eq!(said(down, &[]), "the link state is down instead of follow");
        assert_eq!(
            said(down, &[(bind("mlx5_core"), None)]),
            "the link state is down instead of follow"
        );
    }

    #[test]
    fn what_was_bound_and_shows_others_goes_on_with_them() {
        let stale = |vf: &mut ObservedVf| {
            vf.own = vf.own.take().map(|own| VfDevices { port_guid: Some(OTHER), ..own });
        };
        let want = "the port GUID of the VF is 0000:0000:0000:0007 instead of 0200:0000:0000:0101";
        assert_eq!(said(stale, &[]), want);
        assert_eq!(
            said(stale, &[(bind("mlx5_core"), None)]),
            format!(
                "{want}, although the VF was bound after its GUIDs were set. The firmware of the VF still uses other GUIDs. To fix: reset the VF or the adapter"
            )
        );
    }

    #[test]
    fn what_was_set_and_bound_and_shows_none_was_dropped() {
        let none = |vf: &mut ObservedVf| {
            vf.own = vf.own.take().map(|own| VfDevices { port_guid: Some(Guid::new(0)), ..own });
        };
        let set = VfStep::PortGuid {
            vf: VfIndex::new(0).expect("a VF"),
            port: PortNumber::FIRST,
            from: None,
            to: OTHER,
        };
        let dropped = said(none, &[(set, None), (bind("mlx5_core"), None)]);
        assert!(dropped.ends_with("the write succeeded: the firmware ignored it"), "{dropped}");
        // One that was set in an earlier run may show what it had before.
        let stale = said(none, &[(bind("mlx5_core"), None)]);
        assert!(stale.contains("still uses other GUIDs"), "{stale}");
    }

    #[test]
    fn a_driver_that_has_gone_again_is_no_matter_of_guids() {
        let unbound = |vf: &mut ObservedVf| (vf.driver, vf.own) = (None, None);
        assert_eq!(
            said(unbound, &[(bind("mlx5_core"), None)]),
            "the driver is none instead of mlx5_core"
        );
    }

    #[test]
    fn a_step_that_failed_is_the_reason() {
        let unbound = |vf: &mut ObservedVf| (vf.driver, vf.own) = (None, None);
        assert_eq!(
            said(unbound, &[(bind("mlx5_core"), Some(refused(Errno::EIO)))]),
            "the driver is none instead of mlx5_core: bind VF 0 to mlx5_core: write \"8\" to /sys/x: EIO: I/O error"
        );
        let left = said(unbound, &[(bind("mlx4_core"), Some(refused(Errno::ENODEV)))]);
        assert!(
            left.ends_with(
                "ENODEV: No such device; mlx4_core does not bind VFs from number probe_vf on"
            ),
            "{left}"
        );
        let late = said(unbound, &[(bind("mlx5_core"), Some(StepFailure::Unfinished))]);
        assert!(late.ends_with("before the deadline; a child process is still running"), "{late}");
    }

    #[test]
    fn why_the_number_could_not_be_changed_is_told_by_the_error_number() {
        let pf = wanted().pf;
        let mut facts = KernelLogFacts::default();
        cause::learn(&mut facts, 3, "mlx5_core 0000:4b:00.0: no room");
        let told = |failure: StepFailure| {
            let mut attempts = Attempts::default();
            let step = VfStep::Count { from: 0, to: 8 };
            attempts.add(StepDone { step, failure: Some(failure) });
            number_failed(&VfPlan::default(), &attempts, &facts, pf)
                .map(|n| n.with_remedy())
                .unwrap_or_default()
        };
        let no_room = told(refused(Errno::ENOSPC));
        assert!(
            no_room.starts_with(
                "cannot change the number of VFs from 0 to 8: write \"8\" to /sys/x: ENOSPC: No space left on device: the firmware has no room for so many VFs; the kernel: mlx5_core 0000:4b:00.0: no room. To fix: lower the number, or raise NUM_OF_VFS: `ibprov firmware` shows it"
            ),
            "{no_room}"
        );
        let killed = StepFailure::Other("the child was killed".to_owned());
        for (failure, want) in [
            (refused(Errno::ERANGE), "the number exceeds sriov_totalvfs"),
            (refused(Errno::ENOMEM), "pci=realloc"),
            (refused(Errno::EBUSY), "another process"),
            (refused(Errno::ENOENT), "the driver was unbound from the PF"),
            (refused(Errno::EIO), "the driver of the PF may have reported why"),
            (StepFailure::Unfinished, "the driver hangs while it creates or removes VFs"),
            (killed, "the child was killed: the driver of the PF may have reported why"),
        ] {
            let said = told(failure);
            assert!(said.contains(want), "{said}");
        }
        assert_eq!(number_failed(&VfPlan::default(), &Attempts::default(), &facts, pf), None);
    }
}
