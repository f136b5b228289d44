//! `ibprov guests`: what needs VFs starts when they are right, and only then.
//!
//! [`service`] is the loop, and has the parts: `members` (all guests; `member`
//! is one, [`order`] who is next and why another one waits), `libvirt` (what it has
//! said; [`domain`] reads that), `tasks` (the children at work; `failure` is how
//! one comes to nothing), `looks` (when VFs are looked at; `vf_reader` looks, [`vf`]
//! judges), `units` (what systemd is asked, and whether a unit's start can end before
//! ours) and `telling` (journal, report, status line).
//! All that decides is pure; all that may hang (virsh, firmware) is a child.
//! Nothing is ever stopped or restarted.

pub mod domain;
mod failure;
#[cfg(test)]
mod fixtures;
mod libvirt;
mod looks;
mod member;
mod members;
pub mod order;
pub mod service;
mod tasks;
mod telling;
mod units;
pub mod vf;
mod vf_reader;
