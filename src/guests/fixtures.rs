//! Guests and answers for the tests of this room.

use std::time::Duration;

use super::failure::{Failure, output};
use crate::config::Config;
use crate::config::guest::{Guest, GuestIndex, Guests, Needs, What};
use crate::host::process::{self, Ended};
use crate::names::{OnFailure, Ready};

/// How long a start may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// A guest with the VFs of its domain, or with none if it is a unit.
pub(super) fn guest(name: &str) -> Guest {
    let (what, vfs) = if name.ends_with(".service") {
        (What::Unit(name.parse().expect("unit")), Needs::These(Vec::new()))
    } else {
        (What::Domain(name.parse().expect("domain")), Needs::Auto)
    };
    Guest {
        is_withheld: false,
        what,
        vfs,
        after: Vec::new(),
        timeout: TIMEOUT,
        on_failure: OnFailure::Retry,
        ready: Ready::Running,
        origin: "/etc/0.toml:1".to_owned(),
    }
}

/// The same, after others.
pub(super) fn after(name: &str, others: &[usize]) -> Guest {
    let after = others.iter().copied().map(GuestIndex::new).collect();
    Guest { after, ..guest(name) }
}

pub(super) fn guests(list: Vec<Guest>, max_parallel: usize) -> Guests {
    Guests { list, max_parallel, ..Config::default().guests }
}

/// What comes of a virsh that fails and says this.
pub(super) fn refusal(words: &str) -> Failure {
    let (failure, stderr) = (process::Failure::of_raw(0x100), format!("error: {words}\n"));
    let ended = Ended { failure, stderr, stdout: String::new(), took: Duration::ZERO };
    output(ended, "virsh x").expect_err("a failure")
}

/// One line of `virsh list --all --uuid --name`, and its UUID.
pub(super) fn listed(name: &str, number: u8) -> (String, String) {
    let uuid = format!("11111111-2222-3333-4444-5555555555{number:02}");
    (format!("{uuid} {name}\n"), uuid)
}
