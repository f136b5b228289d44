use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};

use super::vf::{Need, judge};
use crate::config::Config;
use crate::host::{Root, answer, clock};
use crate::ladder::WantedPf;
use crate::ladder::expect::candidate;
use crate::names::{PciAddress, VfName};
use crate::observe::pf::{self, dir};
use crate::observe::plan_host::{pins, plan_host};
use crate::observe::{Look, Observed, ObservedPf, Observer, Undo};
use crate::plan::guid::resolve;
use crate::report::GuestLack;
use crate::report::guests::VfState;
use crate::workers::hand::{Answer, Numbered, Request, SILENCE_USEC, VERB};
use crate::workers::socket::Hand;

/// Looks at VFs, again and again, without ever waiting: what asks firmware is
/// asked by a child.
#[derive(Debug)]
pub(super) struct Sight<'a> {
    config: &'a Config,
    root: &'a Root,
    observer: Observer<'a>,
    hand: Option<Hand>,
    number: u64,
    /// The look under way.
    open: Option<Open>,
    /// What could not be read or asked, one line each.
    pub(super) problems: BTreeSet<String>,
}

#[derive(Debug)]
struct Open {
    since_usec: u64,
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

/// What a look has shown: nothing for what is no InfiniBand VF.
pub(super) type Seen = BTreeMap<Need, Option<VfState>>;

impl<'a> Sight<'a> {
    pub(super) fn new(config: &'a Config, root: &'a Root) -> Self {
        let observer = Observer::new(root);
        Self {
            config,
            root,
            observer,
            hand: None,
            number: 0,
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
        self.hand.as_ref().map(AsFd::as_fd)
    }

    /// When a look under way is given up.
    pub(super) fn until_usec(&self) -> Option<u64> {
        // Where nobody has to be asked, it is over as soon as it has begun.
        let patience = |open: &Open| if open.asked.is_empty() { 0 } else { SILENCE_USEC };
        self.open.as_ref().map(|open| open.since_usec + patience(open))
    }

    /// Begin to look at these.
    pub(super) fn begin(&mut self, needs: impl Iterator<Item = Need>) {
        let observed = self.observer.look([], &BTreeSet::new());
        let mut look = Look::new(self.root);
        let mut open = Open {
            since_usec: clock::monotonic_usec(),
            needs: needs.map(|need| (need, self.find(need, &observed, &mut look))).collect(),
            pfs: BTreeMap::new(),
            planned: self.planned(&observed, &mut look),
            asked: BTreeMap::new(),
        };
        let vfs: Vec<VfName> = open
            .needs
            .values()
            .filter_map(|found| if let Found::Vf(vf) = found { Some(*vf) } else { None })
            .collect();
        let pfs: BTreeSet<PciAddress> = vfs.iter().map(|vf| vf.pf).collect();
        for address in pfs {
            let pf = pf::look(&mut look, address, Undo::default());
            // Of a PF with many VFs only these are asked for: each costs
            // firmware three commands.
            let wanted = pf
                .addresses()
                .into_iter()
                .filter(|(index, _)| vfs.iter().any(|vf| vf.pf == address && vf.index == *index));
            let wanted: Vec<(u16, String)> =
                wanted.map(|(index, pci)| (index.get(), pci.to_string())).collect();
            if !wanted.is_empty() {
                let backend = pf.backend.clone();
                let request = Request::Ask { pf: address.to_string(), backend, vfs: wanted };
                if let Some(number) = self.ask(&request) {
                    open.asked.insert(number, address);
                }
            }
            open.pfs.insert(address, pf);
        }
        self.problems.extend(look.problems);
        self.open = Some(open);
    }

    /// True if this is an InfiniBand VF of this host.
    pub(super) fn is_hca_vf(&self, pci: PciAddress) -> bool {
        let observed = self.observer.look([], &BTreeSet::new());
        let mut look = Look::new(self.root);
        matches!(self.find(Need::Function(pci), &observed, &mut look), Found::Vf(_))
    }

    fn ask(&mut self, what: &Request) -> Option<u64> {
        self.number += 1;
        let number = self.number;
        let mut attempt = || {
            let line = serde_json::to_string(&Numbered { number, what })?;
            let hand = match &mut self.hand {
                Some(hand) => hand,
                none => none.insert(Hand::start(VERB, None)?),
            };
            hand.ask(&line)
        };
        match attempt() {
            Ok(()) => Some(number),
            Err(e) => {
                self.hand = None;
                self.problems.insert(format!("PFs cannot be asked: {}", answer(&e)));
                None
            }
        }
    }

    /// What has been seen, once all has been answered or too much time passed.
    pub(super) fn seen(&mut self) -> Option<Seen> {
        self.take_answers();
        let open = self.open.as_ref()?;
        let silent = clock::monotonic_usec() >= open.since_usec + SILENCE_USEC;
        if !open.asked.is_empty() && !silent {
            return None;
        }
        let open = self.open.take()?;
        if !open.asked.is_empty() {
            // Who hangs is left to the kernel; the next look has a child anew.
            self.hand = None;
            for pf in open.asked.values() {
                let what = "has not said in 5 s what it administers for its VFs";
                self.problems.insert(format!("PF {pf} {what}"));
            }
        }
        let state = |found: &Found| match found {
            Found::Other => None,
            Found::Absent(pci) => Some(VfState::no_function(*pci)),
            Found::Unclear(pci, why) => Some(VfState::unclear(*pci, why.clone())),
            Found::Vf(vf) => Some(open.state(*vf)),
        };
        Some(open.needs.iter().map(|(need, found)| (*need, state(found))).collect())
    }

    fn take_answers(&mut self) {
        let Some(hand) = &mut self.hand else { return };
        let said = match hand.said() {
            Ok(said) => said,
            Err(e) => {
                self.problems.insert(format!("PFs cannot be asked: {}", answer(&e)));
                self.hand = None;
                return;
            }
        };
        for line in said.lines {
            let Ok(answer) = serde_json::from_str::<Numbered<Answer>>(&line) else { continue };
            let Some(open) = &mut self.open else { continue };
            let Some(pf) = open.asked.remove(&answer.number) else { continue };
            let mut problems = Vec::new();
            match answer.what {
                Answer::Asked(asked) => {
                    if let Some(pf) = open.pfs.get_mut(&pf) {
                        pf.learn(asked, &mut problems);
                    }
                }
                Answer::Failed { tried, said, .. } => problems.push(format!("{tried}: {said}")),
                _ => {}
            }
            self.problems.extend(problems);
        }
        if said.gone {
            self.hand = None;
            if let Some(open) = &mut self.open {
                open.asked.clear();
            }
        }
    }

    fn find(&self, need: Need, observed: &Observed, look: &mut Look<'_>) -> Found {
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
            Err(e) => return Found::Unclear(pci, format!("whether it is a VF: {e}")),
        };
        // The VF of a network or storage card that is no HCA.
        let is_hca = observed.functions.iter().any(|f| f.address == pf && candidate(f).is_some());
        if !is_hca {
            return Found::Other;
        }
        let vfs = pf::look(look, pf, Undo::default()).addresses();
        match vfs.into_iter().find(|(_, own)| *own == pci) {
            Some((index, _)) => Found::Vf(VfName { pf, index }),
            None => Found::Unclear(pci, format!("its PF {pf} does not have it among its VFs")),
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
                format!("its PF's plan is in error, see `ibprov plan`: {first}")
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
