//! The start of user space, as systemd tells of it, through `systemctl`: before the bus is up
//! too. A soft-reboot (systemd 254 and newer) is another start in the same boot of the kernel.

use std::io;

use super::systemctl::shown;

/// What runs `ibprov boot`.
pub const BOOT_UNIT: &str = "ibprov.service";

/// One start of user space; times in microseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartUp {
    /// When systemd began with it (`UserspaceTimestampMonotonic`, `org.freedesktop.systemd1(5)`),
    /// and began anew after a soft-reboot (`manager_timestamp_shall_serialize()`,
    /// src/core/manager-serialize.c).
    pub began_usec: u64,
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
        let began_usec = number(&answer, "UserspaceTimestampMonotonic")?;
        let is_over = number(&answer, "FinishTimestampMonotonic")? != 0;
        Ok(Self { began_usec, is_over })
    }
}

/// When ibprov.service last began in this start of user space; `None` if it has not. One that
/// failed or was killed has begun.
///
/// # Errors
/// systemd cannot be asked.
pub fn boot_began() -> io::Result<Option<u64>> {
    const BEGAN: &str = "ExecMainStartTimestampMonotonic";
    let began = number(&shown(BEGAN, &[BOOT_UNIT.to_owned()])?, BEGAN)?;
    Ok(Some(began).filter(|usec| *usec != 0))
}

fn number(answer: &str, property: &str) -> io::Result<u64> {
    let value = |line: &str| line.strip_prefix(property)?.strip_prefix('=')?.parse().ok();
    answer.lines().find_map(value).ok_or_else(|| {
        io::Error::other(format!("systemctl show {property}: cannot understand {answer:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_the_property_is_no_time() {
        let answer = "FinishTimestampMonotonic=0\nUserspaceTimestampMonotonic=1234567\n";
        let read = |property| number(answer, property).map_err(|e| e.to_string());
        assert_eq!(read("UserspaceTimestampMonotonic"), Ok(1_234_567));
        assert_eq!(read("FinishTimestampMonotonic"), Ok(0));
        let e = read("ExecMainStartTimestampMonotonic").expect_err("not there");
        assert!(e.contains("cannot understand"), "{e}");
    }
}
