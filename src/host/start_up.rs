//! The start of user space, as systemd tells of it, through `systemctl`: before the bus is up
//! too. A soft-reboot (systemd 254 and newer) is another start in the same boot of the kernel.

use std::io;
use std::time::Duration;

use super::state::{RUN_DIR, StateError, write};
use super::systemctl::shown;
use super::{Root, systemd};
use crate::names::Moment;

/// What runs `ibprov boot`.
pub const BOOT_UNIT: &str = "ibprov.service";

/// In [`RUN_DIR`], the first run of ibprov.service since the kernel has started.
const FIRST_RUN: &str = "boot.first";

/// One start of user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartUp {
    /// When systemd began with it (`UserspaceTimestampMonotonic`, `org.freedesktop.systemd1(5)`),
    /// and began anew after a soft-reboot (`manager_timestamp_shall_serialize()`,
    /// src/core/manager-serialize.c).
    pub began: Moment,
    /// The jobs that it has queued have ended (`FinishTimestampMonotonic`).
    pub is_over: bool,
}

impl StartUp {
    /// The one that is, or was the last.
    ///
    /// # Errors
    /// systemd cannot be asked.
    pub fn ask() -> io::Result<Self> {
        let answer = shown("UserspaceTimestampMonotonic,FinishTimestampMonotonic", &[])?;
        let began = moment(&answer, "UserspaceTimestampMonotonic")?.unwrap_or_default();
        let is_over = moment(&answer, "FinishTimestampMonotonic")?.is_some();
        Ok(Self { began, is_over })
    }
}

/// When ibprov.service last began in this start of user space; `None` if it has not. One that
/// failed or was killed has begun.
///
/// # Errors
/// systemd cannot be asked.
pub fn boot_began() -> io::Result<Option<Moment>> {
    const BEGAN: &str = "ExecMainStartTimestampMonotonic";
    moment(&shown(BEGAN, &[BOOT_UNIT.to_owned()])?, BEGAN)
}

/// The boot of the kernel that this is.
pub fn boot_id(root: &Root) -> Option<String> {
    root.attribute("/proc/sys/kernel/random/boot_id").ok().filter(|id| !id.is_empty())
}

/// The first run of ibprov.service in a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstRun {
    boot_id: String,
    pid: u32,
    started: Moment,
    deadline: Moment,
}

impl FirstRun {
    /// Note that this process is it, which ends by `deadline`: unless it is another service,
    /// or none, or the service has begun in this boot before.
    ///
    /// # Errors
    /// As [`write`].
    pub fn begin(root: &Root, started: Moment, deadline: Moment) -> Result<(), StateError> {
        let Some(boot_id) = boot_id(root) else { return Ok(()) };
        let is_again = Self::read(root).is_some_and(|first| first.boot_id == boot_id);
        let own = systemd::own_unit(root).unwrap_or_default();
        if is_again || own.as_deref() != Some(BOOT_UNIT) {
            return Ok(());
        }
        let pid = std::process::id();
        write(FIRST_RUN, &format!("{boot_id} {pid} {} {}\n", started.usec(), deadline.usec()))
            .map(drop)
    }

    /// How long the first run of this boot has, if it is running and its deadline
    /// has not passed at `now`.
    pub fn under_way(root: &Root, now: Moment) -> Option<Duration> {
        let first = Self::read(root)?;
        let is_running = root.exists(&format!("/proc/{}", first.pid));
        let is_it = Some(&first.boot_id) == boot_id(root).as_ref() && is_running;
        (is_it && now < first.deadline).then(|| first.deadline.since(first.started))
    }

    fn read(root: &Root) -> Option<Self> {
        let text = root.text(&format!("{RUN_DIR}/{FIRST_RUN}"), 1 << 10).ok()?;
        let mut words = text.split_whitespace();
        Some(Self {
            boot_id: words.next()?.to_owned(),
            pid: words.next()?.parse().ok()?,
            started: Moment::from_usec(words.next()?.parse().ok()?),
            deadline: Moment::from_usec(words.next()?.parse().ok()?),
        })
    }
}

/// What `systemctl show` printed of `property`; none for what has not happened.
fn moment(answer: &str, property: &str) -> io::Result<Option<Moment>> {
    let value = |line: &str| line.strip_prefix(property)?.strip_prefix('=')?.parse().ok();
    answer.lines().find_map(value).map(Moment::of_systemd).ok_or_else(|| {
        io::Error::other(format!("systemctl show {property}: cannot understand {answer:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing;
    use crate::names::at;

    #[test]
    fn an_answer_without_the_property_is_no_time() {
        let answer = "FinishTimestampMonotonic=0\nUserspaceTimestampMonotonic=1234567\n";
        let read = |property| moment(answer, property).map_err(|e| e.to_string());
        assert_eq!(read("UserspaceTimestampMonotonic"), Ok(Some(at(1_234_567))));
        assert_eq!(read("FinishTimestampMonotonic"), Ok(None));
        let e = read("ExecMainStartTimestampMonotonic").expect_err("not there");
        assert!(e.contains("cannot understand"), "{e}");
    }

    #[test]
    fn the_first_run_is_under_way_until_its_end_or_its_deadline_in_its_own_boot() {
        let of = |boot_id: &str, pid: u32| {
            let first = format!("{boot_id} {pid} 1000 5000\n");
            let dir = testing::tree(
                &[
                    ("run/ibprov/boot.first", first.as_str()),
                    ("proc/sys/kernel/random/boot_id", "b\n"),
                    ("proc/7/stat", ""),
                ],
                &[],
            );
            let root = Root::copy_at(dir.path()).expect("root");
            [1000, 4999, 5000, 9000].map(|now| FirstRun::under_way(&root, at(now)))
        };
        let limit = Duration::from_millis(4);
        assert_eq!(of("b", 7), [Some(limit), Some(limit), None, None]);
        assert_eq!(of("b", 8), [None; 4], "it has ended");
        assert_eq!(of("a", 7), [None; 4], "of another boot");
        let dir = testing::tree(&[("run/ibprov/boot.first", "b 7 1000\n")], &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        assert_eq!(FirstRun::under_way(&root, at(1000)), None, "cut");
    }
}
