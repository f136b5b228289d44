//! Carries plans out through [`crate::host`], watches what comes of them and
//! fills the report. No step is believed: what it was for is read back.

pub mod boot;
pub mod bring_up;
pub mod children;
pub mod iface;
pub mod in_use;
pub mod ipoib;
mod machine;
pub mod pf;
pub mod pfs;
pub mod preview;
pub mod rtnl;
pub mod rxe;
mod steps;
pub mod warnings;

use crate::host::lock::Locks;

/// The locks; without a place for them, ibprov tells so and works without.
fn locks(problems: &mut Vec<String>) -> Option<Locks> {
    match Locks::in_run() {
        Ok(locks) => Some(locks),
        Err(e) => {
            problems.push(format!("{e}: continuing without locks"));
            None
        }
    }
}
