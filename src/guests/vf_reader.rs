use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;

use super::vf::{Need, judge};
use crate::config::Config;
use crate::host::Root;
use crate::ladder::WantedPf;
use crate::ladder::expect::candidate;
use crate::names::{PciAddress, VfIndex, VfName};
use crate::observe::pf::{self, dir};
use crate::observe::plan_host::{pins, plan_host};
use crate::observe::{Look, Observed, ObservedPf, Observer, Undo};
use crate::plan::guid::resolve;
use crate::report::GuestLack;
use crate::report::guests::VfState;
use crate::workers::{Answer, Client, Failure, Request};

/// Looks at VFs, again and again, without ever waiting: what asks firmware is
/// asked by a child.
#[derive(Debug)]
pub(super) struct VfReader<'a> {
    config: &'a Config,
    root: &'a Root,
    observer: Observer<'a>,
    worker: Client<'a>,
    /// The look under way.
    open: Option<Open>,
    /// What could not be read or asked, one line each.
    pub(super) problems: BTreeSet<String>,
}

#[derive(Debug)]
struct Open {
    needs: BTreeMap<Need, Found>,
    pfs: BTreeMap<PciAddress, ObservedPf>,
    planned: BTreeMap<PciAddress, Result<WantedPf, String>>,
    /// Requests that are not answered yet, with the PF that each is about.
    asked: BTreeMap<u64, PciAddress>,
}

/// What a need turned out to be.
#[derive(Debug)]
enum Found {
    Vf(VfName),
    /// Something else than an InfiniBand VF: none of our business.
    Other,
    Absent(PciAddress),
    /// What it is cannot be told, so no guest may be started on it.
    Unclear(PciAddress, String),
}

/// Which function is which VF, of the PFs that a look has come to.
type VfsOfPfs = BTreeMap<PciAddress, BTreeMap<PciAddress, VfIndex>>;

/// What a look has shown: nothing for what is no InfiniBand VF.
pub(super) type Seen = BTreeMap<Need, Option<VfState>>;

impl<'a> VfReader<'a> {
    pub(super) fn new(config: &'a Config, root: &'a Root) -> Self {
        let observer = Observer::new(root);
        Self {
            config,
            root,
            observer,
            worker: Client::new(root),
            open: None,
            problems: BTreeSet::new(),
        }
    }

    /// True while a look is under way.
    pub(super) const fn is_looking(&self) -> bool {
        self.open.is_some()
    }

    /// What can be read when an answer has come.
    pub(super) fn answers_come(&self) -> Option<BorrowedFd<'_>> {
        self.worker.fd()
    }

    /// When a look under way is given up.
    pub(super) fn until_usec(&self) -> Option<u64> {
        // Where nobody has to be asked, it is over as soon as it has begun.
        let is_over = self.open.as_ref()?.asked.is_empty();
        if is_over { Some(0) } else { self.worker.until_usec() }
    }

    /// Begin to look at these, and at no other VF.
    pub(super) fn begin(&mut self, needs: impl Iterator<Item = Need>) {
        let observed = self.observer.look_at_pfs();
        let mut look = Look::new(self.root);
        let mut vfs = VfsOfPfs::new();
        let mut open = Open {
            needs: needs
                .map(|need| (need, self.find(need, &observed, &mut vfs, &mut look)))
                .collect(),
            pfs: BTreeMap::new(),
            planned: self.planned(&observed, &mut look),
            asked: BTreeMap::new(),
        };
        let vfs: BTreeSet<VfName> = open
            .needs
            .values()
            .filter_map(|found| if let Found::Vf(vf) = found { Some(*vf) } else { None })
            .collect();
        let pfs: BTreeSet<PciAddress> = vfs.iter().map(|vf| vf.pf).collect();
        for address in pfs {
            let is_meant = |index| vfs.contains(&VfName { pf: address, index });
            let pf = pf::look_at_some(&mut look, address, Undo::default(), is_meant);
            // Each costs firmware three commands.
            let question = pf.question(is_meant);
            if !question.vfs.is_empty() {
                let number = self.worker.ask(&Request::Administered(vec![question]));
                open.asked.insert(number, address);
            }
            open.pfs.insert(address, pf);
        }
        self.problems.extend(look.problems);
        self.open = Some(open);
    }

    /// True if this is an InfiniBand VF of this host.
    pub(super) fn is_hca_vf(&self, pci: PciAddress) -> bool {
        let observed = self.observer.look_at_pfs();
        let mut look = Look::new(self.root);
        let found = self.find(Need::Function(pci), &observed, &mut VfsOfPfs::new(), &mut look);
        matches!(found, Found::Vf(_))
    }

    /// What has been seen, once all has been answered or too much time passed.
    pub(super) fn seen(&mut self) -> Option<Seen> {
        self.take_answers();
        if self.open.as_ref().is_none_or(|open| !open.asked.is_empty()) {
            return None;
        }
        let open = self.open.take()?;
        let state = |found: &Found| match found {
            Found::Other => None,
            Found::Absent(pci) => Some(VfState::no_function(*pci)),
            Found::Unclear(pci, why) => Some(VfState::unclear(*pci, why.clone())),
            Found::Vf(vf) => Some(open.state(*vf)),
        };
        Some(open.needs.iter().map(|(need, found)| (*need, state(found))).collect())
    }

    fn take_answers(&mut self) {
        for (number, reply) in self.worker.replies() {
            let Some(open) = &mut self.open else { continue };
            let Some(address) = open.asked.remove(&number) else { continue };
            match reply {
                Ok(Answer::Administered(told)) => {
                    let mut problems = Vec::new();
                    if let Some(pf) = open.pfs.get_mut(&address) {
                        pf.learn(told, &mut problems);
                    }
                    self.problems.extend(problems);
                }
                Ok(other) => {
                    self.problems.insert(format!("PF {address}: an unexpected answer: {other:?}"));
                }
                Err(Failure::Silent) => {
                    let what = "did not report the settings of its VFs within 5 s";
                    self.problems.insert(format!("PF {address} {what}"));
                }
                Err(Failure::Refused(refusal)) => {
                    self.problems.insert(refusal.to_string());
                }
                Err(e @ Failure::NoChild(_)) => {
                    self.problems.insert(format!("cannot query PFs: {e}"));
                }
            }
        }
    }

    fn find(
        &self,
        need: Need,
        observed: &Observed,
        vfs: &mut VfsOfPfs,
        look: &mut Look<'_>,
    ) -> Found {
        let pci = match need {
            Need::Vf(vf) => return Found::Vf(vf),
            Need::Function(pci) => pci,
        };
        if !self.root.exists(&dir(pci)) {
            return Found::Absent(pci);
        }
        let pf = match self.root.link_name(&format!("{}/physfn", dir(pci))) {
            Ok(name) => match name.parse::<PciAddress>() {
                Ok(pf) => pf,
                Err(e) => return Found::Unclear(pci, format!("its physfn: {e}")),
            },
            // No VF, or one that was passed through to this machine.
            Err(e) if e.is_absent() => return Found::Other,
            Err(e) => {
                return Found::Unclear(
                    pci,
                    format!("cannot determine whether the function is a VF: {e}"),
                );
            }
        };
        // The VF of a network or storage card that is no HCA.
        let is_hca = observed.functions.iter().any(|f| f.address == pf && candidate(f).is_some());
        if !is_hca {
            return Found::Other;
        }
        let vfs = vfs.entry(pf).or_insert_with(|| {
            let known = pf::addresses(look, pf);
            known.into_iter().map(|(index, pci)| (pci, index)).collect()
        });
        match vfs.get(&pci) {
            Some(index) => Found::Vf(VfName { pf, index: *index }),
            None => Found::Unclear(pci, format!("the PF {pf} has no such VF")),
        }
    }

    fn planned(
        &self,
        observed: &Observed,
        look: &mut Look<'_>,
    ) -> BTreeMap<PciAddress, Result<WantedPf, String>> {
        if self.config.pf.is_empty() {
            return BTreeMap::new();
        }
        let host = plan_host(look, observed, self.config);
        let pins = pins(self.root);
        let resolved = resolve(self.config, pins.as_ref().map_err(String::as_str), &host);
        let entry = |one: crate::plan::guid::Resolved| {
            let wanted = one.wanted.map_err(|errors| {
                let first = errors.first().map(ToString::to_string).unwrap_or_default();
                format!("the plan of its PF has an error, see `ibprov plan`: {first}")
            });
            Some((one.pci?, wanted))
        };
        resolved.into_iter().filter_map(entry).collect()
    }
}

impl Open {
    fn state(&self, vf: VfName) -> VfState {
        let Some(pf) = self.pfs.get(&vf.pf) else {
            let lacks = Some(GuestLack::NoPf(vf.pf));
            return VfState { vf: Some(vf), pci: None, reached: None, lacks };
        };
        match self.planned.get(&vf.pf) {
            Some(Err(error)) => {
                let state = judge(vf, None, pf);
                VfState { lacks: Some(GuestLack::Plan(error.clone())), ..state }
            }
            Some(Ok(plan)) => judge(vf, plan.vfs.iter().find(|w| w.index == vf.index), pf),
            None => judge(vf, None, pf),
        }
    }
}
