//! `ibprov consumers`: which units of the next boot use InfiniBand, whether each comes after
//! the ports, and the drop-ins that see to it.

use super::check_host;
use super::print;
use crate::check::evidence::Boot;
use crate::check::predict;
use crate::cli::{Common, ConsumersArgs};
use crate::graph::Unit;
use crate::graph::consumers::{self, DropIn, PROVIDER, Proof};
use crate::host::lock::Locks;
use crate::host::{Root, process, site_files};
use crate::migrate::carry_out;
use crate::model::{
    Code, Finding, Severity, ToDo,
    consumers::{Consumer, ConsumersReport, Order},
    migrate::Change,
    not_read,
};
use crate::names::{PathState, sh};
use crate::show;
use crate::stacks::netplan;

/// The object of the lock of a run that changes something.
const LOCK: &str = "consumers";

/// List the units, or write or remove their drop-ins.
///
/// # Errors
/// It cannot begin; standard output is gone.
pub fn run(args: &ConsumersArgs, root: &Root, common: &Common) -> anyhow::Result<u8> {
    let changes_host = (args.install || args.remove) && !args.dry_run;
    if changes_host && !root.is_live() {
        let flag = if args.install { "--install" } else { "--remove" };
        anyhow::bail!(
            "{flag} cannot be combined with --root: run it in that system, with chroot, or add --dry-run to see what would be changed"
        );
    }
    if changes_host && !process::is_root() {
        anyhow::bail!(
            "drop-ins below {} belong to root: use sudo, or --dry-run to see what would be changed",
            DropIn::UNITS
        );
    }
    let _lock = match changes_host {
        true => Some(
            Locks::in_run()
                .and_then(|locks| locks.try_take(LOCK))
                .map_err(|e| anyhow::anyhow!("{e}"))?,
        ),
        false => None,
    };
    let mut report = look(root, common);
    let mut kept = Vec::new();
    if args.install {
        if report.provider.as_deref() != Some(PROVIDER) {
            anyhow::bail!(
                "the next boot does not start {PROVIDER}, so that no unit can be ordered after it, and no drop-in was written: run `ibprov migrate` on a node with openibd, else `systemctl enable {PROVIDER}`"
            );
        }
        (report.changes, kept) = installs(root, &report.consumers);
    } else if args.remove {
        (report.changes, kept) = removals(root);
    }
    if changes_host && !report.changes.is_empty() {
        let (done, failed) = carry_out::carry_out(root, &report.changes);
        kept.extend(failed);
        kept.extend(not_read(&site_files::reload(root)));
        report = ConsumersReport { changes: done, applied: true, ..look(root, common) };
    }
    report.problems.extend(kept);
    print(&report.to_report(), common.format, |screen| show::consumers::text(&report, screen))
}

/// What the next boot starts.
fn look(root: &Root, common: &Common) -> ConsumersReport {
    let mut boot = Boot::default();
    check_host::gather(&mut boot, root, common.config.as_deref());
    let Some(host) = boot.host else {
        let problem = Finding::not_read("the host could not be read");
        return ConsumersReport { problems: vec![problem], ..ConsumersReport::default() };
    };
    let consumer = |judged: consumers::JudgedUnit| {
        let (order, path) = match judged.proof {
            Proof::Ordered(path) => (Order::After, path),
            Proof::Before(path) => (Order::Before, path),
            Proof::Missing(_) => (Order::Missing, Vec::new()),
        };
        Consumer { unit: judged.unit, need: judged.need, order, path }
    };
    let mut problems = not_read(&host.problems);
    problems.extend(netplan::not_judged(root));
    let judged = predict::consumers(&host);
    let units = judged.iter().filter_map(|judged| host.graph.get(&judged.unit));
    problems.extend(units.filter_map(locked_memory));
    problems.extend(without_peermem(root).filter(|_| !host.ports.is_empty()));
    ConsumersReport {
        provider: consumers::provider(&host.graph).map(|unit| unit.name.clone()),
        has_no_goal: !host.graph.has_goal(),
        consumers: judged.into_iter().map(consumer).collect(),
        changes: Vec::new(),
        applied: false,
        problems,
    }
}

/// That what a unit starts may lock little memory, which RDMA needs.
fn locked_memory(unit: &Unit) -> Option<Finding> {
    let soft = unit.memlock.split(':').next().filter(|limit| !matches!(*limit, "" | "infinity"))?;
    let message = format!(
        "LimitMEMLOCK={soft}: a process that it starts can register no more memory than that for RDMA, unless it has CAP_IPC_LOCK or a limit of its own"
    );
    let dir = format!("{}/{}.d", DropIn::UNITS, unit.name);
    let file = format!("{dir}/memlock.conf");
    let command = format!(
        "mkdir -p {} && printf '[Service]\\nLimitMEMLOCK=infinity\\n' >{} && systemctl daemon-reload",
        sh(&dir),
        sh(&file)
    );
    let finding = Finding::new(Code::Notice, Severity::Info, message).about(&unit.name);
    let restart = format!("systemctl restart {}", sh(&unit.name));
    let restart = ToDo::with("once nothing that it has started runs", restart);
    consumers::passes_limits_on(unit).then(|| finding.permanent([ToDo::run(command), restart]))
}

/// That a node with NVIDIA's driver has no nvidia_peermem.
fn without_peermem(root: &Root) -> Option<Finding> {
    let is_loaded = |module: &str| root.exists(&format!("/sys/module/{module}"));
    let is_without =
        is_loaded("nvidia") && !["nvidia_peermem", "nv_peer_mem"].iter().any(|m| is_loaded(m));
    let message = "not loaded, and the nvidia driver is: programs that do not use DMA-BUF for GPUDirect RDMA copy through the memory of the host";
    let finding = Finding::new(Code::Notice, Severity::Info, message).about("nvidia_peermem");
    is_without.then(|| {
        finding
            .now([ToDo::run("modprobe nvidia_peermem")])
            .permanent([ToDo::run("echo nvidia_peermem >/etc/modules-load.d/nvidia-peermem.conf")])
    })
}

/// The drop-ins that are missing, and those that somebody has put there otherwise.
fn installs(root: &Root, all: &[Consumer]) -> (Vec<Change>, Vec<Finding>) {
    let (mut changes, mut kept) = (Vec::new(), Vec::new());
    for consumer in all.iter().filter(|c| c.order == Order::Missing) {
        // The vendor's unit waits for nothing, so ours is what comes before.
        let DropIn { dir, path, text, .. } = DropIn::new(&consumer.unit, PROVIDER);
        match site_files::state(root, &path) {
            Ok(PathState::Absent) => {}
            // A link to /dev/null is how a site masks it.
            Ok(state) => {
                let message =
                    format!("the path is {state}, which --install did not write, and is left");
                kept.push(Finding::warning(Code::ChangedSince, message).about(path));
                continue;
            }
            Err(e) => {
                kept.push(Finding::not_read(format!("{path}: {}", crate::host::answer(&e))));
                continue;
            }
        }
        if !root.exists(&dir) {
            changes.push(Change {
                path: dir,
                before: PathState::Absent,
                after: PathState::Directory,
            });
        }
        changes.push(Change { path, before: PathState::Absent, after: PathState::own_file(text) });
    }
    (changes, kept)
}

/// The drop-ins of ours that are there, and those that somebody has changed.
fn removals(root: &Root) -> (Vec<Change>, Vec<Finding>) {
    let (mut changes, mut kept) = (Vec::new(), Vec::new());
    let dirs = root.list_or_empty(DropIn::UNITS).unwrap_or_else(|e| {
        kept.push(Finding::not_read(e.to_string()));
        Vec::new()
    });
    for unit in dirs.iter().filter_map(|dir| dir.strip_suffix(".d")) {
        let DropIn { dir, path, text, .. } = DropIn::new(unit, PROVIDER);
        let state = match site_files::state(root, &path) {
            Ok(PathState::Absent) => continue,
            Ok(state) => state,
            Err(_) if !root.exists(&path) => continue,
            Err(e) => {
                kept.push(Finding::not_read(format!("{path}: {}", crate::host::answer(&e))));
                continue;
            }
        };
        if !state.is_same(&PathState::own_file(text)) {
            let message = "the drop-in was changed after --install wrote it, and is left";
            kept.push(Finding::warning(Code::ChangedSince, message).about(path));
            continue;
        }
        changes.push(Change { path, before: state, after: PathState::Absent });
        if root.list_or_empty(&dir).unwrap_or_default() == [DropIn::NAME] {
            changes.push(Change {
                path: dir,
                before: PathState::Directory,
                after: PathState::Absent,
            });
        }
    }
    (changes, kept)
}
