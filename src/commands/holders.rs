//! `ibprov holders`: what keeps an HCA or its kernel modules busy.

use anyhow::bail;

use super::print;
use crate::cli::{Format, HoldersArgs};
use crate::host::{Root, links, process};
use crate::names::{IB_DRIVERS, PciAddress, RdmaName, Target, present};
use crate::observe::{Observed, Observer, PciFunction};
use crate::report::holders::{By, Holder, HoldersReport};
use crate::workers::{Answer, Client, Request};

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
    let observed = Observer::new(root).look([], &Default::default());
    let hcas = match &args.hca {
        Some(target) => vec![meant(&links::by_own_name(root, target), &observed)?],
        None => observed.functions.iter().filter(|f| is_hca(f)).map(|f| f.address).collect(),
    };
    let mut report = HoldersReport { problems: observed.problems.clone(), ..Default::default() };
    // A VF keeps its PF.
    let is_of_one = |f: &&PciFunction| {
        hcas.contains(&f.address) || f.physfn.is_some_and(|pf| hcas.contains(&pf))
    };
    report.hcas = observed.functions.iter().filter(is_of_one).map(|f| f.address).collect();
    if !report.hcas.is_empty() {
        let request = Request::Holders(report.hcas.clone());
        match Client::new(root).ask_all(&[request]).pop() {
            Some(Ok(Answer::Holders { holders, problems })) => {
                report.holders = holders;
                report.problems.extend(problems);
            }
            Some(Err(e)) => report.holders.push(unknown(e.to_string())),
            Some(Ok(_)) | None => report.holders.push(unknown("no answer".to_owned())),
        }
    }
    if !root.is_live() && !report.hcas.is_empty() {
        let why =
            "a copied tree has no kernel to ask for users of the HCA, and may lack its processes";
        report.problems.insert(why.to_owned());
    }
    print(&report.told(), format, |_| report.to_text())
}

/// A card that hangs is not free.
const fn unknown(why: String) -> Holder {
    Holder { hca: None, by: By::Unknown { why } }
}

fn is_hca(function: &PciFunction) -> bool {
    let is_driven = function.driver.as_deref().is_some_and(|d| IB_DRIVERS.contains(&d));
    function.class.is_infiniband() || is_driven || !function.rdma.is_empty()
}

/// The function that `target` names.
fn meant(target: &Target, observed: &Observed) -> anyhow::Result<PciAddress> {
    let hcas = || observed.functions.iter().filter(|f| is_hca(f));
    let is_meant = |function: &&PciFunction| {
        let has_device = |name: &RdmaName| function.rdma.iter().any(|d| d.name == *name);
        let mut ports = function.rdma.iter().flat_map(|device| &device.ports);
        match target {
            Target::Pci(pci, _) => function.address == *pci,
            Target::Rdma(name, _) => has_device(name),
            Target::Guid(guid) => ports.any(|port| port.guid == Some(*guid)),
            Target::Name(name) => {
                function.rdma.iter().any(|device| device.name.as_str() == name.as_str())
                    || ports.any(|port| {
                        let netdevs = [&port.netdev, &port.ethernet];
                        netdevs.into_iter().flatten().any(|netdev| netdev.name == *name)
                    })
            }
        }
    };
    match hcas().filter(is_meant).map(|function| function.address).next() {
        Some(hca) => Ok(hca),
        None => bail!(
            "{target} is not an HCA of this host; HCAs: {}",
            present(hcas().map(|function| function.address.to_string()))
        ),
    }
}
