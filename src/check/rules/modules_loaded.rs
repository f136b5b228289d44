//! Modules that are not loaded, too late, or not to the end.

use super::consumers::ib_here;
use super::words::module_not_loaded::{
    NO_DEVICES, NO_NODE, NO_TRANSPORT, NOT_LOADED, NVME, UCM, UMAD, UVERBS,
};
use super::{Boot, Code, Confidence, Event, Finding, Kind, Severity, row, seen};
use crate::check::evidence::relevance::rdma_device_in;
use crate::check::pattern::{caught, has_any};
use crate::model::advice::ToDo;
use crate::names::{IB_DRIVERS, is_ipoib_name, may_be_ipoib_name, rdma_half_of};

/// Words by which a program says that a module is missing, and the module.
const SAID: [(&[&str], &str); 4] =
    [(UMAD, "ib_umad"), (UVERBS, "ib_uverbs"), (UCM, "rdma_ucm"), (NVME, "nvme_rdma")];
/// The module without which a program of the fabric does not find what it names: a module and
/// a word of absence in one clause, or a node of /dev/infiniband and one.
fn absence(text: &str) -> Option<&'static str> {
    text.split(';').find_map(|clause| {
        if has_any(clause, NOT_LOADED) {
            return seen::rdma_module(clause);
        }
        let is_absent = has_any(clause, NO_NODE);
        let of_node = || {
            let node = clause.split_once("/dev/infiniband/")?.1;
            makes(node)
        };
        // "device rdma_cm not found"; the name before a colon is the program's own.
        let named = || {
            let mut words = clause.split_whitespace().filter(|word| !word.ends_with(':'));
            let is_device = has_any(clause, &["device rdma_cm", "character device"]);
            words
                .find_map(|word| makes(word.trim_matches(['"', '\'', ',', '.'])))
                .filter(|_| is_device)
        };
        is_absent.then(|| of_node().or_else(named)).flatten()
    })
}

/// The module that makes the node `name` of /dev/infiniband.
fn makes(name: &str) -> Option<&'static str> {
    let all = [
        ("rdma_cm", "rdma_ucm"),
        ("umad", "ib_umad"),
        ("issm", "ib_umad"),
        ("uverbs", "ib_uverbs"),
    ];
    all.into_iter().find(|(node, _)| name.starts_with(node)).map(|(_, module)| module)
}

pub(super) fn module_not_loaded(boot: &Boot) -> Option<Finding> {
    let said: Vec<_> = boot
        .events
        .iter()
        .filter_map(|e| {
            let said = SAID.iter().find(|(words, _)| has_any(&e.text, words)).map(|(_, m)| *m);
            // `modprobe: ERROR: could not insert 'ib_ipoib': Cannot allocate memory`; symbols
            // and signatures are other findings.
            let refused = || {
                let name = e.text.split_once("could not insert '")?.1.split('\'').next()?;
                let others = ["symbol", "format", "No such device", "ey was rejected", "key not"];
                (!others.iter().any(|w| e.text.contains(w)))
                    .then(|| seen::rdma_module(name))
                    .flatten()
            };
            said.or_else(refused).or_else(|| absence(&e.text)).map(|m| (e, m))
        })
        .collect();
    let listed = boot.state.modules.as_ref().and_then(|modules| {
        let has = |name: &str| modules.has(name);
        for (core, half) in IB_DRIVERS.into_iter().filter_map(|d| Some((d, rdma_half_of(d)?))) {
            if has(core) && modules.lacks(half) && boot.state.ports.is_empty() {
                return Some(half);
            }
        }
        let any = IB_DRIVERS.into_iter().any(|d| has(rdma_half_of(d).unwrap_or(d)));
        let ethernet = !boot.state.ports.is_empty()
            && boot.state.ports.iter().all(|p| p.infiniband == Some(false));
        (any && modules.lacks("ib_ipoib") && !ethernet).then_some("ib_ipoib")
    });
    let listed = listed.or_else(|| shown_by_ls(boot).then_some("ib_ipoib"));
    let modules =
        seen::each(said.iter().map(|(_, m)| *m).chain(listed.filter(|_| said.is_empty())));
    if modules.is_empty() {
        return no_transport(boot).or_else(|| no_device(boot)).or_else(|| absent(boot));
    }
    let alive = seen::sign_of_life(boot).is_some();
    let missed = !said.is_empty() || is_infiniband(boot);
    let severity = if alive || !missed { Severity::Warning } else { Severity::Error };
    let confidence = if said.is_empty() { Confidence::Medium } else { Confidence::High };
    let (is, all) = if modules.len() == 1 { ("is", "") } else { ("are", "-a ") };
    let told = format!("{} {is} not loaded.", seen::all_of("module", &modules));
    let lines = said.iter().map(|(e, _)| *e);
    let (as_named, judged) = ((Code::ModuleNotLoaded, "named"), (severity, confidence));
    let finding = row::told_as(boot, as_named, judged, told, &modules, lines);
    Some(finding.now([ToDo::run(format!("modprobe {all}{}", modules.join(" ")))]))
}

/// An NFS mount failed as one over RDMA does without the module of that transport.
fn no_transport(boot: &Boot) -> Option<Finding> {
    let is_loaded = |name| boot.state.modules.as_ref().is_some_and(|modules| modules.has(name));
    let lines: Vec<_> = boot.with_any(NO_TRANSPORT).collect();
    let (severity, confidence) = match lines.iter().any(|e| e.text.contains("rdma")) {
        _ if lines.is_empty() || ["rpcrdma", "xprtrdma"].into_iter().any(is_loaded) => return None,
        true => (Severity::Error, Confidence::Medium),
        false if ib_here(boot) => (Severity::Warning, Confidence::Low),
        false => return None,
    };
    let told = "An NFS mount failed. If it is over RDMA (proto=rdma), rpcrdma is not loaded.";
    let as_transport = (Code::ModuleNotLoaded, "transport");
    let judged = (severity, confidence);
    Some(row::told_as(boot, as_transport, judged, told, &["rpcrdma"], lines))
}

/// librdmacm found no RDMA device: mostly nobody loaded the second half of a driver.
fn no_device(boot: &Boot) -> Option<Finding> {
    let lines: Vec<_> = boot.with_any(NO_DEVICES).collect();
    if lines.is_empty() || seen::sign_of_life(boot).is_some() {
        return None;
    }
    let told = "A program found no RDMA device. Mostly the RDMA half of the adapter's driver is not loaded.";
    let judged = (Severity::Warning, Confidence::Low);
    Some(row::told_as(boot, (Code::ModuleNotLoaded, "device"), judged, told, &[], lines))
}

/// Something tells that the ports are InfiniBand: the same drivers serve Ethernet,
/// where nobody loads ib_ipoib.
fn is_infiniband(boot: &Boot) -> bool {
    boot.state.ports.iter().any(|p| p.infiniband == Some(true))
        || boot.state.pci.iter().any(|f| f.is_infiniband())
        || boot.events.iter().any(|e| seen::ib_netdev_in(&e.text).is_some())
        || shown_by_ls(boot)
}

/// The network service found no IPoIB netdev, and nothing in the log has made one or
/// loaded ib_ipoib: the commonest cause, where no other is seen.
fn absent(boot: &Boot) -> Option<Finding> {
    let asked = |e: &&Event| seen::not_found(e).is_some_and(is_ipoib_name);
    let lines: Vec<_> = boot.events.iter().filter(asked).collect();
    let name = lines.first().and_then(|e| seen::not_found(e))?;
    let came = boot.events.iter().any(|e| match &e.kind {
        Kind::NetdevMade { .. } | Kind::NetdevRenamed { .. } => true,
        Kind::ModuleLoad(module) => &**module == "ib_ipoib",
        _ => false,
    });
    // Of a host that was looked at its ports tell more.
    let shown = boot.host.is_some() || boot.state.netdevs.iter().any(|n| n.infiniband);
    if came || shown || seen::late(boot).is_some() || seen::sign_of_life(boot).is_some() {
        return None;
    }
    let told = format!(
        "{name} did not exist when the network service looked for it, and this log does not show that ib_ipoib was loaded. A driver that failed and another name of the netdev have the same symptom."
    );
    let judged = (Severity::Warning, Confidence::Low);
    Some(row::told_as(boot, (Code::ModuleNotLoaded, "absent"), judged, told, &[name], lines))
}

/// True if `ls` shows an RDMA device and no IPoIB netdev.
fn shown_by_ls(boot: &Boot) -> bool {
    let listed = |dir: &str| {
        let command =
            boot.state.commands.iter().find(|c| {
                c.text.starts_with("ls ") && c.text.trim_end_matches('/').ends_with(dir)
            })?;
        let names = command.output.iter().flat_map(|(_, line)| line.split_whitespace());
        Some(names.map(str::to_owned).collect::<Vec<_>>())
    };
    let is_device = |n: &String| !n.contains(':') && !n.contains('/');
    listed("/sys/class/infiniband").is_some_and(|names| names.iter().any(is_device))
        && listed("/sys/class/net").is_some_and(|names| {
            names.iter().any(|n| n == "lo") && !names.iter().any(|n| may_be_ipoib_name(n))
        })
}

pub(super) fn module_load_interrupted(boot: &Boot) -> Option<Finding> {
    let lines = boot.lines(|e| {
        let t = &e.text;
        t.contains("rescuer kthread") && t.contains("-EINTR")
            || t.contains("rdma-load-modules@") && has_any(t, &["code=killed", "signal"])
            || t.contains("Interrupted system call")
                && (seen::rdma_module(t).is_some() || e.program.contains("modules-load"))
    });
    let first = lines.first()?;
    let port = boot
        .after(first.origin)
        .filter(|e| has_any(&e.text, &["ipoib", "failed to allocate device WQ"]));
    let severity = if first.text.contains("rescuer") || port.clone().next().is_some() {
        Severity::Error
    } else {
        Severity::Warning
    };
    let mut devices: Vec<&str> = port.clone().filter_map(|e| rdma_device_in(&e.text)).collect();
    devices.dedup();
    let told = match &devices[..] {
        [] => "The loading of a module was interrupted while it set up a port, so that the port has no netdev.".to_owned(),
        known => format!(
            "The loading of a module was interrupted while it set up a port, so that {} has no netdev.",
            known.join(", ")
        ),
    };
    let judged = (severity, Confidence::High);
    Some(
        row::told(boot, Code::ModuleLoadInterrupted, judged, told, &devices, lines)
            .chain([
                "the process that loads the modules was stopped, which systemd does before it switches to the root file system",
                "the kernel could not create a thread (EINTR) and gave the port up",
                "no service loads the module again, because it counts as loaded",
            ])
            .quoting(seen::quotes(boot, port)),
    )
}

pub(super) fn module_load_order(boot: &Boot) -> Option<Finding> {
    let lost: Vec<_> = boot
        .events
        .iter()
        .filter_map(|e| {
            let [netdev, _] = caught::<2>(&e.text, "{}: P_Key 0x{} is not found")?;
            Some((e, netdev.rsplit(' ').next().unwrap_or(netdev)))
        })
        .filter(|(e, netdev)| {
            !boot
                .after(e.origin)
                .any(|l| matches!(&l.kind, Kind::LinkReady(name) if &**name == *netdev))
        })
        .collect();
    if lost.is_empty() {
        return None;
    }
    let netdevs = seen::each(lost.iter().map(|(_, netdev)| *netdev));
    let was = if netdevs.len() > 1 { "were" } else { "was" };
    let of = seen::all_of("interface", &netdevs);
    let told = format!(
        "{of} {was} brought up before the port had its P_Key, which has appeared unnoticed since."
    );
    let judged = (Severity::Error, Confidence::Medium);
    let lines = lost.iter().map(|(e, _)| *e);
    Some(row::told(boot, Code::ModuleLoadOrder, judged, told, &netdevs, lines))
}

pub(super) fn module_loaded_late(boot: &Boot) -> Option<Finding> {
    let late = seen::late(boot)?;
    let gap = late.seconds().map_or(String::new(), |gap| format!(" {gap} s"));
    let netdev = late.netdev;
    let (severity, end) = if late.recovered {
        (Severity::Warning, "the netdev was brought up later")
    } else {
        (Severity::Error, "no network service brought the netdev up")
    };
    let told = format!(
        "{netdev} was created{gap} after the network service had looked for it, and {end}."
    );
    let judged = (severity, Confidence::Medium);
    let lines = [late.asked, late.made];
    Some(row::told(boot, Code::ModuleLoadedLate, judged, told, &[netdev], lines))
}
