#![allow(clippy::disallowed_methods, reason = "the one place where sysfs is written")]

//! Writing an attribute of the running system. May take as long as a driver's
//! probe or a firmware command: never in ibprov's own process, only in a child
//! ([`super::hand`]). What waits for RTNL alone is done where netlink is asked too.

use std::fs::File;
use std::io::{self, Write};

/// Write `value` to the attribute at `path`, by one write(2).
///
/// # Errors
/// What open(2) or the attribute's own code answers.
pub fn write(path: &str, value: &str) -> io::Result<()> {
    let mut file = File::options().write(true).open(path)?;
    file.write_all(value.as_bytes())
}
