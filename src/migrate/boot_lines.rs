//! Lines of an administrator's own scripts that bring InfiniBand up: in rc.local, in
//! crontabs as `@reboot`, and in units that the boot starts; and lines of udev rules that rename
//! RDMA devices.

use nix::errno::Errno;

use crate::graph::{Graph, files};
use crate::host::{ReadError, Root};
use crate::observe::boot_lines::{self, reason};
use crate::observe::udev;
use crate::report::common::Finding;
use crate::report::migrate::{Item, Reason};

const CRONTABS: [&str; 3] = ["/etc/cron.d", "/var/spool/cron", "/var/spool/cron/crontabs"];
/// No such file is larger, bytes.
const LIMIT: u64 = 1 << 20;
/// rdma-core's rule for names, which ibprov waits for.
const RDMA_CORE: &str = "60-rdma-persistent-naming.rules";
/// Units that load modules or bring VFs up by design, and are told of by themselves.
const KNOWN: [&str; 9] = [
    "ibprov",
    "openibd",
    "rdma",
    "mlnx_interface_mgr",
    "systemd-",
    "opensm",
    "rc-local",
    "rc.local",
    "cron",
];

/// All such lines, as they stand, and the files that could not be read: what is in them is
/// not known.
pub(super) fn items(root: &Root, graph: &Graph) -> (Vec<Item>, Vec<Finding>) {
    let mut items = Vec::new();
    let mut unread = Vec::new();
    let mut lines_of = |file: &str, counts: fn(&str) -> bool| match in_file(root, file, counts) {
        Ok(items) => items,
        Err(e) => {
            unread.extend(is_told(&e).then(|| Finding::not_read(e.to_string())));
            Vec::new()
        }
    };
    let is_run = boot_lines::runs_rc_local(root);
    for file in boot_lines::RC_LOCAL {
        // One that is a link to another counts there.
        if !root.is_link(file) {
            let lines = lines_of(file, |_| true).into_iter();
            items.extend(lines.map(|item| if is_run { item } else { item.of(Reason::NotRun) }));
        }
    }
    let at_boot = |line: &str| line.trim_start().starts_with("@reboot");
    items.extend(lines_of("/etc/crontab", at_boot));
    let mut unread_dirs = Vec::new();
    for dir in CRONTABS {
        let names = root.list_or_empty(dir).unwrap_or_else(|e| {
            unread_dirs.push(Finding::not_read(e.to_string()));
            Vec::new()
        });
        for name in names {
            items.extend(lines_of(&format!("{dir}/{name}"), at_boot));
        }
    }
    unread.extend(unread_dirs);
    let transaction = graph.transaction();
    for unit in graph.units().filter(|unit| transaction.contains(unit.name.as_str())) {
        let is_known = KNOWN.iter().any(|known| unit.name.starts_with(known));
        let by_name = match unit.name.as_str() {
            name if name.starts_with("sriov") => Some(Reason::SetsVfs),
            // Of Azure's images; its monitor starts it again.
            name if name.starts_with("azure_persistent_rdma_naming") => Some(Reason::RenamesRdma),
            _ => None,
        };
        let by_command = unit.commands.iter().find_map(|command| {
            let script = command.script.as_deref().unwrap_or_default();
            // To bring an interface up is what a network service is for, to start guests what
            // libvirt's units are.
            let lines = std::iter::once(command.line.as_str()).chain(script.lines());
            lines
                .filter_map(reason)
                .find(|reason| !matches!(reason, Reason::BringsUp | Reason::StartsGuest))
        });
        let reason = by_name.or(by_command);
        let reason = reason.filter(|reason| !is_known || *reason == Reason::RenamesRdma);
        items.extend(reason.map(|reason| Item::new(&unit.name, reason)));
    }
    let (rules, unread_rules) = udev::rules(root);
    unread.extend(unread_rules.into_iter().map(|e| Finding::not_read(e.to_string())));
    for (file, text) in rules.iter().filter(|n| *n != RDMA_CORE).filter_map(|n| udev::rule(root, n))
    {
        let renames = |(_, line): &(usize, &str)| reason(line) == Some(Reason::RenamesRdma);
        let lines = (1..).zip(text.lines()).filter(renames);
        items.extend(lines.map(|(n, line)| Item::new(&file, Reason::RenamesRdma).at_line(n, line)));
    }
    (items, unread)
}

/// The files and units that rename RDMA devices, and what could not be read.
pub fn rdma_renamers(root: &Root) -> (Vec<String>, Vec<Finding>) {
    let (items, unread) = items(root, &files::graph(root));
    let renamers = items.into_iter().filter(|item| item.reason == Reason::RenamesRdma);
    let mut renamers: Vec<String> = renamers.map(|item| item.object).collect();
    renamers.dedup();
    (renamers, unread)
}

/// Whether it is more than a file that is not there, or a directory among crontabs.
fn is_told(e: &ReadError) -> bool {
    !e.is_absent() && !matches!(e, ReadError::System { errno: Errno::EISDIR, .. })
}

/// The lines of `file` that count and bring InfiniBand up, by themselves or by a script.
fn in_file(root: &Root, file: &str, counts: impl Fn(&str) -> bool) -> Result<Vec<Item>, ReadError> {
    let text = root.text(file, LIMIT)?;
    let mut items = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| counts(line)) {
        let by_script = || {
            let programs = line.split_whitespace().filter(|word| word.starts_with('/'));
            let scripts = programs.filter_map(|program| files::script(root, program));
            scripts.into_iter().find_map(|script| script.lines().find_map(reason))
        };
        if line.trim_start().starts_with('#') {
            continue;
        }
        items.extend(
            reason(line).or_else(by_script).map(|why| Item::new(file, why).at_line(number, line)),
        );
    }
    Ok(items)
}
