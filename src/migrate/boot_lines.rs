//! Lines of an administrator's own scripts that bring InfiniBand up: in rc.local, in
//! crontabs as `@reboot`, and in units that the boot starts.

use nix::errno::Errno;

use crate::graph::{Graph, files};
use crate::host::{ReadError, Root};
use crate::names::is_ipoib_name;
use crate::report::common::Finding;
use crate::report::migrate::{Item, Reason};

const RC_LOCAL: [&str; 4] =
    ["/etc/rc.local", "/etc/rc.d/rc.local", "/etc/init.d/boot.local", "/etc/rc.d/boot.local"];
const CRONTABS: [&str; 3] = ["/etc/cron.d", "/var/spool/cron", "/var/spool/cron/crontabs"];
/// No such file is larger, bytes.
const LIMIT: u64 = 1 << 20;
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
    for file in RC_LOCAL {
        // One that is a link to another counts there.
        if !root.is_link(file) {
            items.extend(lines_of(file, |_| true));
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
        if KNOWN.iter().any(|known| unit.name.starts_with(known)) {
            continue;
        }
        let by_name = unit.name.starts_with("sriov").then_some(Reason::SetsVfs);
        let by_command = unit.commands.iter().find_map(|command| {
            let script = command.script.as_deref().unwrap_or_default();
            // To bring an interface up is what a network service is for.
            let lines = std::iter::once(command.line.as_str()).chain(script.lines());
            lines.filter_map(reason).find(|reason| *reason != Reason::BringsUp)
        });
        items.extend(by_name.or(by_command).map(|reason| Item::new(&unit.name, reason)));
    }
    (items, unread)
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

/// What a line of a script does to InfiniBand, if anything.
fn reason(line: &str) -> Option<Reason> {
    if line.trim_start().starts_with('#') {
        return None;
    }
    let is_end = |c: char| c.is_whitespace() || ";&|()`\"'{}".contains(c);
    let words: Vec<&str> = line.split(is_end).filter(|word| !word.is_empty()).collect();
    let program = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let runs = |names: &[&str]| words.iter().any(|word| names.contains(&program(word).as_str()));
    let is_openibd = |word: &&str| {
        matches!(program(word).trim_end_matches(".service"), "openibd" | "mlnxofedctl")
    };
    if words.iter().any(is_openibd) {
        return Some(Reason::CallsOpenibd);
    }
    let vf_words = ["sriov_numvfs", "/sriov/", "mlx5_num_vfs", "node_guid", "port_guid"];
    let by_ip = runs(&["ip"]) && words.contains(&"vf");
    if by_ip || vf_words.iter().any(|word| line.contains(word)) {
        return Some(Reason::SetsVfs);
    }
    if runs(&["modprobe", "insmod"]) && words.iter().any(|word| is_rdma_module(&program(word))) {
        return Some(Reason::LoadsModules);
    }
    let names = |word: &&str| is_ipoib_name(word);
    let brings_up = runs(&["ifup", "ifconfig", "ip", "nmcli"]) && words.iter().any(names);
    brings_up.then_some(Reason::BringsUp)
}

fn is_rdma_module(name: &str) -> bool {
    let begins = ["ib_", "mlx4_", "mlx5_", "rdma_", "rds_rdma", "hfi1", "qib", "opa_vnic"];
    let whole = ["rpcrdma", "xprtrdma", "svcrdma", "iw_cm"];
    begins.iter().any(|begin| name.starts_with(begin)) || whole.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_bring_infiniband_up_are_told_from_others() {
        for (line, why) in [
            ("/etc/init.d/openibd restart", Reason::CallsOpenibd),
            ("sleep 60; systemctl start openibd.service", Reason::CallsOpenibd),
            ("modprobe -a ib_umad ib_ipoib", Reason::LoadsModules),
            ("/sbin/modprobe mlx5_ib && sleep 1", Reason::LoadsModules),
            ("insmod /lib/modules/x/ib_ipoib.ko", Reason::LoadsModules),
            ("echo 4 > /sys/class/infiniband/mlx5_0/device/sriov_numvfs", Reason::SetsVfs),
            ("echo Follow >/sys/class/infiniband/mlx5_0/device/sriov/0/policy", Reason::SetsVfs),
            ("ip link set ib0 vf 0 node_guid 02:00:00:00:00:00:00:01", Reason::SetsVfs),
            ("ip link set dev ib0 vf 3 state auto", Reason::SetsVfs),
            ("ifup ib0", Reason::BringsUp),
            ("ip link set ib0.8001 up", Reason::BringsUp),
        ] {
            assert_eq!(reason(line), Some(why), "{line}");
        }
        for line in [
            "# modprobe ib_ipoib",
            "modprobe nvidia",
            "ip link set eth0 up",
            "touch /var/lock/subsys/local",
            "echo ib_ipoib",
            "exit 0",
        ] {
            assert_eq!(reason(line), None, "{line}");
        }
    }
}
