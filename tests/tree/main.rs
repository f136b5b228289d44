//! ibprov on copies of host trees: what it sees, says and would do.

#![allow(clippy::disallowed_methods, clippy::expect_used)]
#![allow(clippy::indexing_slicing, clippy::missing_panics_doc)]

mod account;
mod active;
mod agreement;
mod apply;
mod archives;
mod boot;
mod check;
mod collect;
mod consumers;
mod dgx;
mod faq;
mod firmware;
mod health;
mod holders;
mod host;
mod hostile;
mod iface;
mod import;
mod ledger;
mod metrics;
mod migrate;
mod minimum;
mod nvswitch;
mod opensm;
mod pkeys;
mod plan;
mod readme;
mod real;
#[path = "../bed/reports.rs"]
mod reports;
mod roce;
mod sick;
mod sites;
mod sites_verbs;
mod smi;
mod soft_roce;
mod status;
mod subnet_manager;
mod terminal;
#[path = "../bed/told.rs"]
mod told;
mod vfs;
