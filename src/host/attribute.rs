#![allow(clippy::disallowed_methods, reason = "the one place where sysfs is written")]

//! Writing an attribute of the running system. May take as long as a driver's
//! probe or a firmware command: never in ibprov's own process, only in a child
//! ([`super::hand`]). What waits for RTNL alone is done where netlink is asked too.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

use crate::names::IfName;

/// Write `value` to the attribute at `path`, by one write(2).
///
/// # Errors
/// What open(2) or the attribute's own code answers.
pub fn write(path: &str, value: &str) -> io::Result<()> {
    let mut file = File::options().write(true).open(path)?;
    file.write_all(value.as_bytes())
}

/// Write `value` to the attribute of the netdev `name` if that has the index `index`: the
/// open folder stays that of one netdev, whoever is renamed meanwhile.
///
/// # Errors
/// ENODEV if the name is that of another netdev by now; else as [`write()`].
pub fn write_of_netdev(name: &IfName, index: u32, attribute: &str, value: &str) -> io::Result<()> {
    let flags = (OFlag::O_PATH | OFlag::O_DIRECTORY).bits();
    let folder =
        File::options().read(true).custom_flags(flags).open(format!("/sys/class/net/{name}"))?;
    let open = |file: &str, how| openat(&folder, file, how | OFlag::O_CLOEXEC, Mode::empty());
    let mut its = String::new();
    File::from(open("ifindex", OFlag::O_RDONLY)?).read_to_string(&mut its)?;
    if its.trim().parse() != Ok(index) {
        return Err(nix::errno::Errno::ENODEV.into());
    }
    File::from(open(attribute, OFlag::O_WRONLY)?).write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_not_written_to_a_netdev_that_has_the_name_of_another() {
        let lo: IfName = "lo".parse().expect("name");
        let errno = |ifindex| {
            let written = write_of_netdev(&lo, ifindex, "no_such_attribute", "1");
            written.expect_err("no such attribute").raw_os_error()
        };
        assert_eq!(errno(2), Some(nix::libc::ENODEV));
        assert_eq!(errno(1), Some(nix::libc::ENOENT), "it is the loopback interface's index");
    }
}
