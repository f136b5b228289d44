//! Network namespaces, and what else sets whether RDMA devices are shared by them.

use std::collections::BTreeSet;

use super::{Look, ModprobeRules, open_files};
use crate::host::Root;
use crate::names::NetnsMode;

/// Where the kernel has the mode. It follows each change.
const PARAMETER: &str = "/sys/module/ib_core/parameters/netns_mode";
/// Where units and scripts stand that may set the mode.
const SCRIPTS: [&str; 6] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/etc/udev/rules.d",
    "/usr/lib/udev/rules.d",
];
const RC_LOCAL: &str = "/etc/rc.local";

/// The mode; `None` without ib_core, and before Linux 5.2.
pub(super) fn mode(look: &mut Look<'_>) -> Option<NetnsMode> {
    NetnsMode::from_parameter(&look.attribute(PARAMETER)?)
}

/// The network namespaces beside that of this process, as far as they are shown: by the unit
/// or the process that is in it, or by its name below `/run/netns`.
#[must_use]
pub fn others(root: &Root) -> Vec<String> {
    let mut others = BTreeSet::new();
    let own = root.link_target("/proc/self/ns/net").ok();
    for pid in root.list("/proc").unwrap_or_default() {
        let Ok(pid) = pid.parse::<u32>() else { continue };
        // Without CAP_SYS_PTRACE those of many a process are not shown.
        let Ok(of) = root.link_target(&format!("/proc/{pid}/ns/net")) else { continue };
        if Some(&of) != own.as_ref() {
            let unit = open_files::unit(root, pid);
            let process = || format!("process {pid} ({})", open_files::name(root, pid));
            others.insert(unit.unwrap_or_else(process));
        }
    }
    let named = root.list_or_empty("/run/netns").unwrap_or_default();
    others.extend(named.iter().map(|name| format!("/run/netns/{name}")));
    others.into_iter().collect()
}

/// What is to be done where the mode cannot be set while the host runs.
#[must_use]
pub fn remedy(mode: NetnsMode) -> String {
    format!(
        "put `options ib_core netns_mode={}` into a file of /etc/modprobe.d, so that ib_core has the mode when it is loaded (if the initramfs contains ib_core, rebuild the initramfs: update-initramfs -u or dracut -f)",
        mode.number()
    )
}

/// What sets the mode beside ibprov: where, and to what.
#[must_use]
pub fn settings(root: &Root, rules: &ModprobeRules) -> Vec<(String, NetnsMode)> {
    let option = rules
        .option("ib_core", "netns_mode")
        .and_then(|(value, origin)| Some((origin.to_owned(), NetnsMode::from_parameter(value)?)));
    let mut settings: Vec<_> = option.into_iter().collect();
    let mut files = vec![RC_LOCAL.to_owned()];
    for dir in SCRIPTS {
        let names = root.list_or_empty(dir).unwrap_or_default();
        files.extend(names.into_iter().map(|name| format!("{dir}/{name}")));
    }
    let mut seen = BTreeSet::new();
    for path in files {
        let Ok(text) = root.text(&path, 1 << 16) else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            // /lib may be a link to /usr/lib.
            let place = path.trim_start_matches("/usr").to_owned();
            if let Some(mode) = in_line(line).filter(|_| seen.insert((place, number))) {
                settings.push((format!("{path}:{number}"), mode));
            }
        }
    }
    settings
}

/// `rdma system set netns exclusive`; `system` may be shortened to `sys` (rdma(8)).
fn in_line(line: &str) -> Option<NetnsMode> {
    if line.trim_start().starts_with(['#', ';']) {
        return None;
    }
    let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || "\"';".contains(c)).collect();
    let is_set = |window: &&[&str]| match window {
        [rdma, sys, "set", "netns", _] => rdma.ends_with("rdma") && sys.starts_with("sys"),
        _ => false,
    };
    use crate::names::Words as _;
    let found = words.windows(5).find(is_set)?;
    NetnsMode::from_typed(found.last()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_agent_is_found_with_file_and_line() {
        let files = [
            ("etc/modprobe.d/sriov.conf", "# x\noptions ib_core netns_mode=0\n"),
            (
                "etc/systemd/system/rdma-netns.service",
                "[Service]\n#ExecStart=/bin/rdma system set netns shared\nExecStart=/usr/sbin/rdma system set netns shared\n",
            ),
            ("etc/rc.local", "#!/bin/sh\n/bin/sh -c 'rdma sys set netns exclusive'\n"),
            ("etc/systemd/system/other.service", "[Service]\nExecStart=rdma system show\n"),
        ];
        let dir = crate::host::testing::tree(&files, &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let found = settings(&root, &ModprobeRules::read(&root));
        let want = [
            ("/etc/modprobe.d/sriov.conf:2", NetnsMode::Exclusive),
            ("/etc/rc.local:2", NetnsMode::Exclusive),
            ("/etc/systemd/system/rdma-netns.service:3", NetnsMode::Shared),
        ];
        let want = want.map(|(place, mode)| (place.to_owned(), mode));
        assert_eq!(found, want);
    }

    #[test]
    fn namespaces_are_named_by_their_units() {
        let files = [
            ("proc/7/cgroup", "0::/system.slice/x.service\n"),
            ("proc/8/comm", "sleep\n"),
            ("run/netns/blue", ""),
        ];
        let links = [
            ("proc/self/ns/net", "net:[1]"),
            ("proc/6/ns/net", "net:[1]"),
            ("proc/7/ns/net", "net:[2]"),
            ("proc/8/ns/net", "net:[3]"),
        ];
        let dir = crate::host::testing::tree(&files, &links);
        let root = Root::copy_at(dir.path()).expect("root");
        assert_eq!(others(&root), ["/run/netns/blue", "process 8 (sleep)", "x.service"]);
    }
}
