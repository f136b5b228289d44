//! Modules that do not exist where they are needed, or not for this hardware.

use super::words::module_missing_for_kernel::{BUILDS, GONE, OPTIONAL};
use super::{Boot, Code, Confidence, Event, Finding, Severity, row, seen};
use crate::check::evidence::words::adapters;
use crate::check::pattern::{caught_one, has_any, word};
use crate::model::advice::ToDo;
use crate::names::HCA_DRIVERS;

/// True if something else here is of InfiniBand: a driver, a netdev, a port, a card.
fn has_infiniband(boot: &Boot) -> bool {
    let names_driver = |e: &Event| missing(e).is_none() && has_any(&e.text, HCA_DRIVERS);
    seen::shows_infiniband(boot) || boot.events.iter().any(names_driver)
}

/// The RDMA module that was not found, according to this line.
fn missing(event: &Event) -> Option<&'static str> {
    let text = &event.text;
    if text.contains("not built for the running kernel") {
        // ibprov's own words.
        return seen::rdma_module(text.split_once("module ").map_or(text, |(_, rest)| rest));
    }
    let name = [
        "Module {} not found",
        "Failed to find module '{}'",
        "Module {} does not exist, skipping",
        "could not find module by name='{}'",
    ]
    .iter()
    .find_map(|p| caught_one(text, p))?;
    let name = word(name.trim_matches(['\'', '"'])).replace('-', "_");
    seen::rdma_module(&name)
}

/// True if the line was written in the initramfs or while it was made.
fn in_initramfs(boot: &Boot, event: &Event) -> bool {
    // Only the newest of these belong to no kernel's own list, and the
    // initramfs takes the list from the root file system without the modules.
    let listed = has_any(&event.text, &["xprtrdma", "svcrdma"])
        && event.text.contains("Failed to find module");
    let program = event.program.starts_with("dracut") || event.text.starts_with("dracut");
    let leaves =
        |e: &&Event| has_any(&e.text, &["Switching root", "Switch Root", "initrd-switch-root"]);
    // systemd says at its start where it runs.
    let enters =
        |e: &&Event| has_any(&e.text, &["Running in initrd", "Running in initial RAM disk"]);
    let (above, below): (Vec<&Event>, Vec<&Event>) =
        boot.events.iter().partition(|e| e.origin < event.origin);
    let inside = above.iter().any(enters) && !above.iter().any(leaves);
    listed || program || inside || below.iter().any(leaves)
}

pub(super) fn module_missing_for_kernel(boot: &Boot) -> Option<Finding> {
    let lines =
        boot.lines(|e| missing(e).is_some_and(|m| !GONE.contains(&m)) && !in_initramfs(boot, e));
    let builds: Vec<_> = boot
        .with_any(BUILDS)
        .filter(|e| has_any(&e.text, &["mlnx", "Bad return status"]))
        .filter(|_| boot.events.iter().any(|e| has_any(&e.text, &["mlnx-ofed", "mlnx-ofa"])))
        .collect();
    if lines.is_empty() && builds.is_empty() {
        return None;
    }
    let modules = seen::each(lines.iter().filter_map(|e| missing(e)));
    let does = if modules.len() > 1 { "do" } else { "does" };
    let of = match &modules[..] {
        [] => "the OFED stack".to_owned(),
        modules => seen::all_of("module", modules),
    };
    let optional = builds.is_empty()
        && lines.iter().all(|e| missing(e).is_some_and(|m| OPTIONAL.contains(&m)));
    let severity = match (optional, seen::sign_of_life(boot).is_some()) {
        (true, _) if !has_infiniband(boot) => Severity::Info,
        (true, _) | (_, true) => Severity::Warning,
        (false, false) => Severity::Error,
    };
    let told = format!("{of} {does} not exist for the running kernel.");
    let judged = (severity, Confidence::High);
    let find = "find /lib/modules/$(uname -r) -name '{}.ko*'";
    Some(
        row::told(boot, Code::ModuleMissingForKernel, judged, told, &modules, lines)
            .quoting(seen::quotes(boot, builds))
            .look(seen::for_each(find, &modules, "ib_core")),
    )
}

pub(super) fn module_missing_in_initrd(boot: &Boot) -> Option<Finding> {
    let lines =
        seen::found(boot.events.iter().filter(|e| missing(e).is_some() && in_initramfs(boot, e)))?;
    let modules = seen::each(lines.iter().filter_map(|e| missing(e)));
    let of = seen::all_of("module", &modules);
    let rest = if modules.len() > 1 {
        "are listed for the initramfs, and are"
    } else {
        "is listed for the initramfs, and is"
    };
    // That a port works does not prove that storage over it does.
    let is_storage = |m: &&str| ["rpcrdma", "xprtrdma", "svcrdma", "ib_iser", "ib_srp"].contains(m);
    let severity = match seen::sign_of_life(boot) {
        Some(_) if !modules.iter().any(is_storage) => Severity::Info,
        _ => Severity::Warning,
    };
    let told = format!("{of} {rest} not in it.");
    let judged = (severity, Confidence::Medium);
    let add = format!(
        "dracut -f --add-drivers '{}', or remove the names from /etc/rdma/modules/rdma.conf",
        modules.join(" ")
    );
    let finding = row::told(boot, Code::ModuleMissingInInitrd, judged, told, &modules, lines);
    Some(finding.permanent([add]))
}

pub(super) fn initrd_without_fabric(boot: &Boot) -> Option<Finding> {
    let asks = |text: &str| {
        text.contains("ommand line: ")
            && text.split_whitespace().any(|word| {
                ["ip=", "ifname=", "bootdev=", "rd.route="].iter().any(|key| word.starts_with(key))
                    && seen::ib_netdev_in(word).is_some()
            })
    };
    let asked = boot.with("ommand line: ").find(|e| asks(&e.text))?;
    let gave_up: Vec<_> = boot
        .with_any(&["dracut-initqueue", "Could not boot"])
        .filter(|e| has_any(&e.text, &["imeout", "Could not boot"]))
        .collect();
    let has_driver = boot.events.iter().any(|e| {
        e.from_kernel()
            && e.origin != asked.origin
            && !e.text.contains("ommand line")
            && (seen::rdma_module(&e.text).is_some() || e.text.contains("IPoIB"))
    });
    if gave_up.is_empty() || has_driver {
        return None;
    }
    let told = "The initramfs waits for an InfiniBand interface, and has loaded no driver of the RDMA stack.";
    let judged = (Severity::Error, Confidence::Medium);
    let lines = [asked].into_iter().chain(gave_up);
    Some(row::told(boot, Code::InitrdWithoutFabric, judged, told, &[], lines))
}

pub(super) fn module_is_a_dummy(boot: &Boot) -> Option<Finding> {
    let described: Vec<_> = boot.with("dummy kernel module").collect();
    let refused: Vec<_> = boot
        .with("rotocol not supported")
        .filter(|e| has_any(&e.text, &["rdma", "20049"]))
        .collect();
    let loaded = boot.state.modules.as_ref().is_some_and(|m| {
        ["rpcrdma", "xprtrdma"].iter().any(|name| m.has(name)) && m.has("mlx_compat")
    });
    let (lines, confidence) = match (described.is_empty(), refused.is_empty()) {
        (false, _) => (described.into_iter().chain(refused).collect::<Vec<_>>(), Confidence::High),
        (true, false) if loaded => (refused, Confidence::Medium),
        _ => return None,
    };
    let told =
        "A module of the vendor's stack is an empty one, so that the service that needs it fails.";
    Some(row::told(boot, Code::ModuleIsADummy, (Severity::Error, confidence), told, &[], lines))
}

/// What lspci calls the cards of each driver.
const FAMILIES: [(&str, &[&str]); 5] = [
    ("mlx4_core", adapters::MLX4_CORE),
    ("mlx5_core", adapters::MLX5_CORE),
    ("ib_mthca", adapters::IB_MTHCA),
    ("ib_qib", adapters::IB_QIB),
    ("hfi1", adapters::HFI1),
];

pub(super) fn module_wrong_driver(boot: &Boot) -> Option<Finding> {
    let modules = boot.state.modules.as_ref()?;
    for function in &boot.state.pci {
        let Some((right, _)) = FAMILIES.iter().find(|(_, names)| has_any(&function.text, names))
        else {
            continue;
        };
        let Some((wrong, _)) =
            FAMILIES.iter().find(|(driver, _)| driver != right && modules.has(driver))
        else {
            continue;
        };
        if function.driver.is_none() && modules.lacks(right) {
            let told = format!("{} needs {right}, and {wrong} is loaded.", function.address);
            return Some(
                Finding::of(Code::ModuleWrongDriver, Severity::Error, Confidence::Medium, told)
                    .about(function.address.as_str())
                    .quoting([boot.quote_at(function.origin, &function.text)])
                    .now([ToDo::run(format!("modprobe {right}"))])
                    .permanent([format!("name {right} instead of {wrong} in /etc/modules-load.d")]),
            );
        }
    }
    None
}
