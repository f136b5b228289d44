//! What the host itself tells, beyond logs: what will go wrong at the next boot
//! by the order of systemd's units, and what is wrong now by the ports' ladders.
//!
//! Each file is one question. Pure: [`super::evidence::Host`] in, findings out.
//! A finding about the next boot is a warning, as this one may have gone well;
//! it is an error where the host shows that it has happened.

mod cycle;
mod findings;
mod guests;
mod node;
mod opensm;
mod order;
mod provider;
mod requires;
mod wait;

use super::evidence::Boot;
use crate::report::finding::Finding;

pub use findings::merge;
pub use node::account;
pub use order::consumers;

/// What follows from the host that was looked at; nothing if none was.
pub fn findings(boot: &Boot) -> Vec<Finding> {
    let Some(host) = boot.host.as_deref() else { return Vec::new() };
    let mut all = Vec::new();
    for judge in [
        provider::judge,
        cycle::judge,
        requires::judge,
        wait::judge,
        guests::judge,
        opensm::judge,
        order::judge,
    ] {
        all.extend(judge(host));
    }
    all
}

#[cfg(test)]
mod fixtures;
