#![allow(clippy::disallowed_methods, reason = "what systemd keeps in /run is watched")]

//! The links that systemd keeps of its units while they are neither inactive nor
//! failed, `/run/systemd/units/invocation:NAME` (`unit_export_state_files()`,
//! `src/core/unit.c`), which journald reads too. To ask systemctl costs ten times what
//! a look at a link does, and a change of a link is an event without the system bus.

use std::io;
use std::os::fd::AsFd;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use super::Root;
use super::clock;
use crate::names::Moment;

const DIR: &str = "/run/systemd/units";

/// The unit is neither inactive nor failed.
pub fn is_up(root: &Root, unit: &str) -> bool {
    root.is_link(&format!("{DIR}/invocation:{unit}"))
}

/// The services that are neither inactive nor failed.
pub fn up_services(root: &Root) -> Vec<String> {
    let links = root.list_or_empty(DIR).unwrap_or_default().into_iter();
    let names = links.filter_map(|link| Some(link.strip_prefix("invocation:")?.to_owned()));
    names.filter(|name| name.ends_with(".service")).collect()
}

/// Wait until the unit is inactive or has failed; false if it is not at `until`.
///
/// # Errors
/// systemd's directory cannot be watched.
pub fn wait_until_down(root: &Root, unit: &str, until: Moment) -> io::Result<bool> {
    if !is_up(root, unit) {
        return Ok(true);
    }
    let events = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
    let changes = AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM;
    events.add_watch(&root.path().join(DIR.trim_start_matches('/')), changes)?;
    // Looked at again after the watch is there: nothing falls between.
    while is_up(root, unit) {
        if clock::now() >= until {
            return Ok(false);
        }
        clock::readable(&[events.as_fd()], until)?;
        // Which link it was does not matter.
        while events.read_events().is_ok_and(|events| !events.is_empty()) {}
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::host::testing::tree;

    #[test]
    fn the_end_of_a_unit_is_heard() {
        let path = "run/systemd/units/invocation:a.service";
        let dir = tree(&[], &[(path, "1f2e")]);
        let root = Root::copy_at(dir.path()).expect("root");
        assert!(is_up(&root, "a.service"));
        let until = clock::now() + Duration::from_millis(20);
        assert!(!wait_until_down(&root, "a.service", until).expect("watch"));
        let link = dir.path().join(path);
        let remover = std::thread::spawn(move || std::fs::remove_file(link));
        let until = clock::now() + Duration::from_secs(20);
        assert!(wait_until_down(&root, "a.service", until).expect("watch"));
        remover.join().expect("thread").expect("removed");
        assert!(wait_until_down(&root, "a.service", Moment::START).expect("gone"));
    }
}
