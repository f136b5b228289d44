//! Network namespaces, and what else sets whether RDMA devices are shared by them.

use std::collections::BTreeSet;
use std::io::Read as _;

use super::{Look, ModprobeRules, open_files};
use crate::host::Root;
use crate::names::NetnsMode;
use crate::report::netns::{Netns, OtherAgent};

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
/// Of each file so much is read, bytes.
const LIMIT: u64 = 1 << 16;

/// The mode; `None` without ib_core, and before Linux 5.2.
pub(super) fn mode(look: &mut Look<'_>) -> Option<NetnsMode> {
    NetnsMode::from_parameter(&look.attribute(PARAMETER)?)
}

/// The network namespaces beside that of this process, as far as they are shown: by the unit
/// or the process that is in it, or by its name below `/run/netns`.
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

/// The mode as `wanted` and as it is, and who else sets another one. Read are modprobe.d, units with their
/// drop-ins, udev rules, rc.local, and the scripts of the root file system that these call.
pub fn netns(
    root: &Root,
    rules: &ModprobeRules,
    is: Option<NetnsMode>,
    wanted: NetnsMode,
) -> Netns {
    let others = settings(root, rules).into_iter().filter(|(_, mode)| *mode != wanted);
    let others = others.map(|(place, mode)| OtherAgent { place, mode }).collect();
    Netns { wanted, is, others }
}

/// What sets the mode beside ibprov: where, and to what.
fn settings(root: &Root, rules: &ModprobeRules) -> Vec<(String, NetnsMode)> {
    let option = rules
        .option("ib_core", "netns_mode")
        .and_then(|(value, origin)| Some((origin.to_owned(), NetnsMode::from_parameter(value)?)));
    let mut settings: Vec<_> = option.into_iter().collect();
    let mut files = vec![RC_LOCAL.to_owned()];
    for dir in SCRIPTS {
        for name in root.list_or_empty(dir).unwrap_or_default() {
            let path = format!("{dir}/{name}");
            if name.ends_with(".d") {
                let drop_ins = root.list_or_empty(&path).unwrap_or_default();
                files.extend(drop_ins.into_iter().map(|name| format!("{path}/{name}")));
            } else {
                files.push(path);
            }
        }
    }
    let mut seen = BTreeSet::new();
    let mut scripts = BTreeSet::new();
    for path in files {
        // /lib may be a link to /usr/lib.
        if !seen.insert(path.trim_start_matches("/usr").to_owned()) {
            continue;
        }
        let Ok(text) = root.text(&path, LIMIT) else { continue };
        settings.extend(in_text(&path, &text));
        scripts.extend(text.lines().filter(|line| !is_comment(line)).flat_map(called));
    }
    for path in scripts {
        let is_new = seen.insert(path.trim_start_matches("/usr").to_owned());
        if let Some(text) = is_new.then(|| script(root, &path)).flatten() {
            settings.extend(in_text(&path, &text));
        }
    }
    settings
}

/// The text of the script at `path`; `None` for every other file.
fn script(root: &Root, path: &str) -> Option<String> {
    let mut file = root.own_file(path).ok().flatten()?;
    let mut text = vec![0; 2];
    file.read_exact(&mut text).ok().filter(|()| text == b"#!")?;
    file.take(LIMIT).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The lines of the file at `path` that set the mode.
fn in_text(path: &str, text: &str) -> Vec<(String, NetnsMode)> {
    let lines = (1..).zip(text.lines());
    lines.filter_map(|(number, line)| Some((format!("{path}:{number}"), in_line(line)?))).collect()
}

/// The words of `line` that are absolute paths, as those of programs are in `ExecStart=`,
/// with its prefixes, and in `RUN+=`.
fn called(line: &str) -> impl Iterator<Item = String> {
    let words = line.split(|c: char| c.is_whitespace() || "\"';,".contains(c));
    let paths = words.map(|word| word.rsplit_once('=').map_or(word, |(_, value)| value));
    let paths = paths.map(|path| path.trim_start_matches(['-', '@', ':', '+', '!', '|']));
    paths.filter(|path| path.starts_with('/')).map(str::to_owned)
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with(['#', ';'])
}

/// `rdma system set netns exclusive`; `system` may be shortened to `sys` (rdma(8)).
fn in_line(line: &str) -> Option<NetnsMode> {
    if is_comment(line) {
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
            (
                "etc/systemd/system/other.service.d/rails.conf",
                "[Service]\nExecStartPre=-/bin/rdma system set netns exclusive\nExecStartPost=-/opt/rails/start --all\n#ExecStart=/opt/rails/old\n",
            ),
            ("opt/rails/start", "#!/bin/sh\nrdma system set netns shared\n"),
            ("opt/rails/old", "#!/bin/sh\nrdma system set netns shared\n"),
            (
                "etc/udev/rules.d/70-site.rules",
                "SUBSYSTEM==\"infiniband\", RUN+=\"/opt/site %k\"\n",
            ),
            ("opt/site", "#!/bin/sh\n\nrdma sys set netns exclusive\n"),
        ];
        let dir = crate::host::testing::tree(&files, &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let found = settings(&root, &ModprobeRules::read(&root));
        let want = [
            ("/etc/modprobe.d/sriov.conf:2", NetnsMode::Exclusive),
            ("/etc/rc.local:2", NetnsMode::Exclusive),
            ("/etc/systemd/system/other.service.d/rails.conf:2", NetnsMode::Exclusive),
            ("/etc/systemd/system/rdma-netns.service:3", NetnsMode::Shared),
            ("/opt/rails/start:2", NetnsMode::Shared),
            ("/opt/site:3", NetnsMode::Exclusive),
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
