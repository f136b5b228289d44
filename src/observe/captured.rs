//! Whether a file is part of the image that is made of a tree, or is mounted over it.

use super::Look;

/// Bytes of mountinfo that are read.
const LIMIT: u64 = 4 << 20;

/// File systems that no image has files of.
const IN_MEMORY: [&str; 6] = ["tmpfs", "ramfs", "devtmpfs", "proc", "sysfs", "cgroup2"];

/// False for the file at `path`, absolute, if it is mounted itself, as the `/etc/hostname` of a
/// build in a container, or lies in a file system in memory. A tree without `/proc` has no
/// mounts that could be seen.
pub fn is_captured(look: &mut Look<'_>, path: &str) -> bool {
    let text = look.root.text("/proc/self/mountinfo", LIMIT);
    let text = look.note(text).unwrap_or_default();
    let is_below = |at: &str| path.strip_prefix(at).is_some_and(|rest| rest.starts_with('/'));
    let covers = |(at, _): &(String, &str)| at == "/" || at == path || is_below(at);
    // Of two at one place the later one is seen.
    let nearest = text.lines().filter_map(mount).filter(covers).max_by_key(|(at, _)| at.len());
    nearest.is_none_or(|(at, fstype)| at != path && !IN_MEMORY.contains(&fstype))
}

/// Where a line of mountinfo (proc_pid_mountinfo(5)) is mounted, and its file system's type.
fn mount(line: &str) -> Option<(String, &str)> {
    let (front, back) = line.split_once(" - ")?;
    Some((front.split(' ').nth(4)?.replace("\\040", " "), back.split(' ').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Root;
    use crate::host::testing::tree;

    #[test]
    fn what_is_mounted_over_a_tree_is_no_part_of_its_image() {
        let mounts = "\
22 1 0:21 / / rw,relatime - overlay overlay rw
23 22 0:22 / /run rw - tmpfs tmpfs rw
24 22 8:1 / /etc rw - ext4 /dev/sda1 rw
25 24 8:2 /containers/7/hostname /etc/hostname rw,relatime shared:3 - ext4 /dev/sda2 rw
26 22 8:3 / /run/media\\040x rw - ext4 /dev/sda3 rw
";
        let dir = tree(&[("proc/self/mountinfo", mounts)], &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let is = |path: &str| is_captured(&mut Look::new(&root), path);
        for path in ["/etc/number", "/etc/hostname.d", "/runtime/number", "/run/media x/number"] {
            assert!(is(path), "{path}");
        }
        for path in ["/etc/hostname", "/run/number", "/run/site/number"] {
            assert!(!is(path), "{path}");
        }
        let bare = tree(&[("etc/hostname", "a\n")], &[]);
        let root = Root::copy_at(bare.path()).expect("root");
        assert!(is_captured(&mut Look::new(&root), "/etc/hostname"), "without /proc");
    }
}
