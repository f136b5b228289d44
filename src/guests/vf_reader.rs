use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;

use super::vf::{Need, absent, judge};
use crate::config::Config;
use crate::host::Root;
use crate::ladder::expect::candidate;
use crate::model::{WantedPf, guests::VfState};
use crate::names::{Moment, PciAddress, VfIndex, VfName};
use crate::observe::pf::{self, dir};
use crate::observe::plan_host::{pins, plan_host};
use crate::observe::{Look, Observed, ObservedPf, Observer};
use crate::plan::guid::resolve;
use crate::workers::{Answer, Client, Failure, Request, SILENCE};

/// Looks at VFs, again and again, without ever waiting: what asks firmware is
/// asked by a child, one for each PF.
#[derive(Debug)]
pub(super) struct VfReader<'a> {
    config: &'a Config,
    root: &'a Root,
    observer: Observer<'a>,
    /// The children that ask PFs what they administer. Each has one question at a time: a query
    /// that hangs keeps a process, so a PF is asked anew when it has answered.
    children: BTreeMap<PciAddress, Client<'a>>,
    /// The look that is under way.
    open: Option<Open>,
    /// How the VFs were bound when the last look began.
    bound: BTreeMap<Need, (VfName, Bound)>,
    /// What could not be read or asked, one line each.
    pub(super) problems: BTreeSet<String>,
}

#[derive(Debug)]
struct Open {
    needs: BTreeMap<Need, Found>,
    pfs: BTreeMap<PciAddress, ObservedPf>,
    planned: BTreeMap<PciAddress, Result<WantedPf, String>>,
    /// The PFs whose answers are waited for, each until a time.
    asked: BTreeMap<PciAddress, Moment>,
}

/// What can be read of a VF without a wait and without a child.
#[derive(Debug, PartialEq, Eq)]
struct Bound {
    /// Its function and its driver.
    vf: Option<(PciAddress, Option<String>)>,
    /// The driver of its PF.
    pf_driver: Option<String>,
}

/// What a need turned out to be.
#[derive(Debug)]
enum Found {
    Vf(VfName),
    /// Something else than an InfiniBand VF: none of our business.
    Other,
    /// It does not exist, or what it is cannot be told: no guest may be started on it.
    Unclear(VfState),
}

/// Which function is which VF, of the PFs that a look has come to.
type VfsOfPfs = BTreeMap<PciAddress, BTreeMap<PciAddress, VfIndex>>;

/// What a look has shown: nothing for what is no InfiniBand VF.
pub(super) type VfStates = BTreeMap<Need, Option<VfState>>;

impl<'a> VfReader<'a> {
    pub(super) fn new(config: &'a Config, root: &'a Root) -> Self {
        let observer = Observer::new(root);
        Self {
            config,
            root,
            observer,
            children: BTreeMap::new(),
            open: None,
            bound: BTreeMap::new(),
            problems: BTreeSet::new(),
        }
    }

    /// True while a look is under way.
    pub(super) const fn is_looking(&self) -> bool {
        self.open.is_some()
    }

    /// What can be read when an answer has come.
    pub(super) fn answers_come(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.children.values().filter_map(Client::fd)
    }

    /// When a look under way is given up.
    pub(super) fn until(&self) -> Option<Moment> {
        let asked = &self.open.as_ref()?.asked;
        // Where nobody has to be asked, it is over as soon as it has begun.
        let Some(until) = asked.values().min().copied() else { return Some(Moment::START) };
        let children = self.children.values().filter_map(Client::until);
        Some(children.fold(until, Moment::min))
    }

    /// Begin to look at these, and at no other VF.
    pub(super) fn begin(&mut self, needs: impl Iterator<Item = Need>, now: Moment) {
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
        self.children.retain(|pf, child| pfs.contains(pf) || !child.is_idle());
        for address in pfs {
            let is_meant = |index| vfs.contains(&VfName { pf: address, index });
            let pf = pf::look(&mut look, address, is_meant);
            // Each costs firmware three commands.
            let question = pf.question(is_meant);
            if !question.vfs.is_empty() {
                let root = self.root;
                let child = self.children.entry(address);
                let child = child.or_insert_with(|| Client::new(root).patient());
                if child.is_idle() {
                    child.ask(&Request::Administered(vec![question]));
                    open.asked.insert(address, now + SILENCE);
                }
            }
            open.pfs.insert(address, pf);
        }
        self.problems.extend(look.problems);
        let bound = |(need, found): (&Need, &Found)| match found {
            Found::Vf(vf) => Some((*need, (*vf, Bound::of(*vf, open.pfs.get(&vf.pf)?)))),
            _ => None,
        };
        self.bound = open.needs.iter().filter_map(bound).collect();
        self.open = Some(open);
    }

    /// True if these VFs are still bound as the last look has found them.
    pub(super) fn are_bound_as_seen(&self, needs: &BTreeSet<Need>) -> bool {
        let mut seen = needs.iter().filter_map(|need| self.bound.get(need));
        seen.all(|(vf, seen)| Bound::now(self.root, *vf) == *seen)
    }

    /// True if this is an InfiniBand VF of this host.
    pub(super) fn is_hca_vf(&self, pci: PciAddress) -> bool {
        let observed = self.observer.look_at_pfs();
        let mut look = Look::new(self.root);
        let found = self.find(Need::Function(pci), &observed, &mut VfsOfPfs::new(), &mut look);
        matches!(found, Found::Vf(_))
    }

    /// What has been seen, once all has been answered or too much time passed.
    pub(super) fn seen(&mut self) -> Option<VfStates> {
        if self.open.as_ref().is_none_or(|open| !open.asked.is_empty()) {
            return None;
        }
        let open = self.open.take()?;
        let state = |found: &Found| match found {
            Found::Other => None,
            Found::Unclear(state) => Some(state.clone()),
            Found::Vf(vf) => Some(open.state(*vf)),
        };
        Some(open.needs.iter().map(|(need, found)| (*need, state(found))).collect())
    }

    /// Take the answers that have come, and give up on those that are too late. True if one
    /// has come that was given up: what it says is of then, and the PF can be asked anew.
    pub(super) fn take_answers(&mut self, now: Moment) -> bool {
        let mut replies = Vec::new();
        for (address, child) in &mut self.children {
            replies.extend(child.replies().into_iter().map(|(_, reply)| (*address, reply)));
        }
        let mut is_late = false;
        for (address, reply) in replies {
            let open = self.open.as_mut();
            let open = open.and_then(|open| open.asked.remove(&address).map(|_| open));
            let Some(open) = open else {
                is_late = true;
                continue;
            };
            match reply {
                Ok(Answer::Administered(told)) => {
                    let mut problems = Vec::new();
                    if let Some(pf) = open.pfs.get_mut(&address) {
                        pf.learn(told, &mut problems);
                    }
                    self.problems.extend(problems);
                }
                Err(Failure::Refused(refusal)) => {
                    self.problems.insert(refusal.to_string());
                }
                other => {
                    let e = Failure::of(other);
                    self.problems.insert(format!("cannot query PF {address}: {e}"));
                }
            }
        }
        if let Some(open) = &mut self.open {
            open.asked.retain(|address, until| {
                if *until <= now {
                    self.problems.insert(silence(*address));
                }
                *until > now
            });
        }
        is_late
    }

    /// PF `pf` is asked by this one.
    #[cfg(test)]
    pub(super) fn ask_by(&mut self, pf: PciAddress, client: Client<'a>) {
        self.children.insert(pf, client);
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
        let unclear = |why: String| Found::Unclear(VfState::unclear(pci, why));
        if !self.root.exists(&dir(pci)) {
            return Found::Unclear(VfState::no_function(pci));
        }
        let pf = match self.root.link_name(&format!("{}/physfn", dir(pci))) {
            Ok(name) => match name.parse::<PciAddress>() {
                Ok(pf) => pf,
                Err(e) => return unclear(format!("its physfn: {e}")),
            },
            // No VF, or one that was passed through to this machine.
            Err(e) if e.is_absent() => return Found::Other,
            Err(e) => {
                return unclear(format!("cannot determine whether the function is a VF: {e}"));
            }
        };
        // The VF of a network or storage card that is no HCA.
        let is_hca = observed.functions.iter().any(|f| f.address == pf && candidate(f).is_some());
        if !is_hca {
            return Found::Other;
        }
        let vfs = vfs.entry(pf).or_insert_with(|| {
            let known = pf::addresses(look, pf, |_| true);
            known.into_iter().map(|(index, pci)| (pci, index)).collect()
        });
        match vfs.get(&pci) {
            Some(index) => Found::Vf(VfName { pf, index: *index }),
            None => unclear(format!("the PF {pf} has no such VF")),
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

impl Bound {
    fn of(vf: VfName, pf: &ObservedPf) -> Self {
        Self {
            vf: pf.vf(vf.index).map(|vf| (vf.pci, vf.driver.clone())),
            pf_driver: pf.driver.clone(),
        }
    }

    fn now(root: &Root, vf: VfName) -> Self {
        let mut look = Look::new(root);
        let function = pf::function(&mut look, vf);
        Self {
            vf: function.map(|pci| (pci, pf::driver(&mut look, pci))),
            pf_driver: pf::driver(&mut look, vf.pf),
        }
    }
}

/// That a PF has not answered in time.
fn silence(pf: PciAddress) -> String {
    format!(
        "PF {pf} did not report the settings of its VFs within {} s: its driver or firmware does not answer, or another process holds a lock for which the query waits. No guest is started on its VFs until it has answered",
        SILENCE.as_secs()
    )
}

impl Open {
    fn state(&self, vf: VfName) -> VfState {
        let Some(pf) = self.pfs.get(&vf.pf) else {
            let lacks = Some(absent(vf.pf));
            return VfState { vf: Some(vf), pci: None, reached: None, lacks };
        };
        match self.planned.get(&vf.pf) {
            Some(Err(error)) => {
                let state = judge(vf, None, pf);
                VfState { lacks: Some(error.clone()), ..state }
            }
            Some(Ok(plan)) => judge(vf, plan.vfs.iter().find(|w| w.index == vf.index), pf),
            None => judge(vf, None, pf),
        }
    }
}
