//! Which processes have which files open.

use crate::host::Root;

/// The open files of all processes that were asked for.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    /// The process, its name, and the file as it is called in its own mount namespace.
    pub(super) files: Vec<(u32, String, String)>,
    /// Why it is not the whole truth.
    pub(super) unknown: Option<String>,
}

/// The open files of every process that are `wanted`, by what `/proc/PID/fd` links to.
pub(super) fn open_files(root: &Root, wanted: impl Fn(&str) -> bool) -> OpenFiles {
    let mut open = OpenFiles::default();
    let processes = match root.list("/proc") {
        Ok(names) => names,
        Err(e) => {
            open.unknown = Some(e.to_string());
            return open;
        }
    };
    for pid in processes.iter().filter_map(|n| n.parse::<u32>().ok()) {
        let dir = format!("/proc/{pid}/fd");
        let files = match root.list(&dir) {
            Ok(files) => files,
            // It has ended meanwhile.
            Err(e) if e.is_absent() => continue,
            Err(e) => {
                open.unknown = Some(format!("the open files of process {pid}: {e}"));
                continue;
            }
        };
        for file in files {
            match root.link_target(&format!("{dir}/{file}")) {
                Ok(target) if wanted(&target) => {
                    open.files.push((pid, name(root, pid), target));
                }
                Ok(_) => {}
                // It was closed meanwhile.
                Err(e) if e.is_absent() => {}
                // Without CAP_SYS_PTRACE the names are listed, and what they lead to is not
                // shown (`proc_fd_access_allowed()`, fs/proc/base.c).
                Err(e) => {
                    let name = name(root, pid);
                    open.unknown = Some(format!("the open files of process {pid} ({name}): {e}"));
                    break;
                }
            }
        }
    }
    open
}

/// The name of a process (`comm`); empty if it has ended.
pub(super) fn name(root: &Root, pid: u32) -> String {
    root.attribute(&format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// The unit of systemd that a process belongs to.
pub(super) fn unit(root: &Root, pid: u32) -> Option<String> {
    let groups = root.attribute(&format!("/proc/{pid}/cgroup")).ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let is_unit = |part: &&str| part.ends_with(".service") || part.ends_with(".scope");
    path.rsplit('/').find(is_unit).map(str::to_owned)
}
