//! `ibprov holders`: what keeps an HCA or its kernel modules busy.

use anyhow::bail;

use super::print;
use crate::cli::{Format, HoldersArgs};
use crate::host::{Root, process};
use crate::model::holders::{By, Holder, HoldersReport};
use crate::names::{IB_DRIVERS, Resource};
use crate::node::unreadable;
use crate::observe::target::meant;
use crate::observe::{Observer, PciFunction};
use crate::show;
use crate::workers::{Answer, Client, Failure, Request};

/// List what keeps the HCA of `args`, or all, busy.
///
/// # Errors
/// There is no such HCA; not root; what holds it cannot be looked up; standard output is gone.
pub fn run(args: &HoldersArgs, root: &Root, format: Format) -> anyhow::Result<u8> {
    if root.is_live() && !process::is_root() {
        bail!(
            "holders must be run as root, which alone can see the open files of other processes: use sudo"
        );
    }
    if let Some(why) = unreadable(root) {
        bail!(why);
    }
    let observed = Observer::new(root).look([], &Default::default());
    let mut hcas = Vec::new();
    for target in &args.hcas {
        let meant = meant(target, root, &observed)?.into_iter();
        hcas.extend(meant.map(|meant| meant.function.address));
    }
    if args.hcas.is_empty() {
        hcas.extend(observed.functions.iter().filter(|f| is_hca(f)).map(|f| f.address));
    }
    let mut report = HoldersReport { problems: observed.problems.clone(), ..Default::default() };
    // A VF keeps its PF.
    let is_of_one = |f: &&PciFunction| {
        hcas.contains(&f.address) || f.physfn.is_some_and(|pf| hcas.contains(&pf))
    };
    for function in observed.functions.iter().filter(is_of_one) {
        let pci = function.address;
        report.hcas.push(pci);
        report.pfs.extend(function.physfn.is_none_or(|pf| !hcas.contains(&pf)).then_some(pci));
        report.devices.extend(function.rdma.first().map(|device| (pci, device.name.clone())));
    }
    if !report.hcas.is_empty() {
        let request = Request::Holders(report.hcas.clone());
        match Client::new(root).querying(Resource::RdmaNetlink).ask_one(&request) {
            Ok(Answer::Holders { holders, problems }) => {
                report.holders = holders;
                report.problems.extend(problems);
            }
            other => report.holders.push(unknown(Failure::of(other).to_string())),
        }
    }
    if !root.is_live() && !report.hcas.is_empty() {
        let why =
            "a copied tree has no kernel to ask for users of the HCA, and may lack its processes";
        report.problems.insert(why.to_owned());
    }
    print(&report.to_report(), format, |screen| screen.page(&show::holders::text(&report)))
}

/// A card that hangs is not free.
const fn unknown(why: String) -> Holder {
    Holder { hca: None, by: By::Unknown { why } }
}

fn is_hca(function: &PciFunction) -> bool {
    let is_driven = function.driver.as_deref().is_some_and(|d| IB_DRIVERS.contains(&d));
    function.class.is_infiniband() || is_driven || !function.rdma.is_empty()
}
