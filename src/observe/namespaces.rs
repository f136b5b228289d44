//! Network namespaces, and whether RDMA devices are shared by them.

use std::collections::BTreeSet;

use super::{Look, open_files};
use crate::host::Root;
use crate::names::NetnsMode;

/// Where the kernel has the mode. It follows each change.
const PARAMETER: &str = "/sys/module/ib_core/parameters/netns_mode";
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

#[cfg(test)]
mod tests {
    use super::*;

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
