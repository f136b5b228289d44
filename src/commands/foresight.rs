//! What `apply` would do at a PF, for who only shows it: the same look and the
//! same plan, without the doing.
//!
//! As `apply` does, it has a child read what may hang, and waits for it only so
//! long. A copied tree is read in this process.

use std::collections::BTreeSet;

use crate::host::{Root, answer, clock};
use crate::ladder::WantedPf;
use crate::names::PciAddress;
use crate::observe::{Look, ObservedPf, Undo, pf};
use crate::plan::VfPlan;
use crate::plan::vf::{Uses, disturbed, vf_steps};
use crate::report::Use;
use crate::report::pf::PfProblem;
use crate::workers::hand;
use crate::workers::hand::{Answer, Numbered, Request, SILENCE_USEC};
use crate::workers::socket::Hand;

/// Looks at PFs, one after the other.
pub(super) struct Foresight<'a> {
    root: &'a Root,
    child: Option<Hand>,
    number: u64,
    /// What could not be read of VFs, one line each.
    pub(super) problems: BTreeSet<String>,
}

/// A PF at one moment.
pub(super) struct Seen {
    /// The PF and its VFs.
    pub(super) pf: ObservedPf,
    /// Why it is not known what it administers for them.
    unreadable: Option<String>,
}

impl<'a> Foresight<'a> {
    pub(super) const fn new(root: &'a Root) -> Self {
        Self { root, child: None, number: 0, problems: BTreeSet::new() }
    }

    /// The PF with all that is administered there.
    pub(super) fn look(&mut self, pci: PciAddress) -> Seen {
        let mut look = Look::new(self.root);
        let mut pf = pf::look(&mut look, pci, Undo::default());
        let mut problems: Vec<String> = look.problems.into_iter().collect();
        let mut unreadable = None;
        for answer in self.ask(Request::all_of(&pf)) {
            match answer {
                Ok(Answer::Asked(asked)) => pf.learn(asked, &mut problems),
                Ok(other) => unreadable = Some(format!("an unexpected answer: {other:?}")),
                Err(why) => unreadable = Some(why),
            }
        }
        self.problems.extend(problems);
        Seen { pf, unreadable }
    }

    /// What would be done, with who uses the VFs that it would disturb.
    pub(super) fn steps(&mut self, wanted: &WantedPf, seen: &Seen) -> VfPlan {
        if let Some(why) = &seen.unreadable {
            let problem = Some(PfProblem::Unreadable { why: why.clone() });
            return VfPlan { problem, ..VfPlan::default() };
        }
        let observed = &seen.pf;
        let plan = vf_steps(wanted, observed, &Uses::new());
        let touched = disturbed(&plan, observed);
        if touched.is_empty() {
            return plan;
        }
        let of = |vf| observed.vfs.iter().find(|v| v.index == vf).map(|v| v.pci.to_string());
        let pcis = touched.iter().filter_map(|vf| of(*vf)).collect();
        let uses = match self.ask(vec![Request::Uses(pcis)]).pop() {
            Some(Ok(Answer::Uses(uses))) => uses,
            Some(Err(why)) => vec![vec![Use::Unknown { why }]; touched.len()],
            other => {
                let why = format!("an unexpected answer: {other:?}");
                vec![vec![Use::Unknown { why }]; touched.len()]
            }
        };
        vf_steps(wanted, observed, &touched.into_iter().zip(uses).collect())
    }

    /// An answer for each, or why there is none.
    fn ask(&mut self, requests: Vec<Request>) -> Vec<Result<Answer, String>> {
        let said = |answer| match answer {
            Answer::Failed { tried, said, .. } => Err(format!("{tried}: {said}")),
            other => Ok(other),
        };
        if !self.root.is_live() {
            return requests.iter().map(|r| said(hand::perform(self.root, r))).collect();
        }
        let (first, count) = (self.number, requests.len());
        let mut answers: Vec<Option<Answer>> = vec![None; count];
        let why = match self.ask_child(requests, first, &mut answers) {
            Ok(()) => format!("no answer in {} s", SILENCE_USEC / 1_000_000),
            Err(e) => format!("by a child process: {}", answer(&e)),
        };
        if answers.iter().any(Option::is_none) {
            // Who hangs is left to the kernel; the next question has a child anew.
            self.child = None;
        }
        answers.into_iter().map(|a| a.map_or_else(|| Err(why.clone()), said)).collect()
    }

    /// Fills `answers`, as far as they come in time.
    fn ask_child(
        &mut self,
        requests: Vec<Request>,
        first: u64,
        answers: &mut [Option<Answer>],
    ) -> std::io::Result<()> {
        if requests.is_empty() {
            return Ok(());
        }
        let child = match &mut self.child {
            Some(child) => child,
            none => none.insert(Hand::start(hand::VERB, None)?),
        };
        for what in requests {
            let line = serde_json::to_string(&Numbered { number: self.number, what })?;
            self.number += 1;
            child.ask(&line)?;
        }
        let until = clock::monotonic_usec() + SILENCE_USEC;
        while answers.iter().any(Option::is_none) && child.wait(until)? {
            let said = child.said()?;
            for line in &said.lines {
                let answer: Numbered<Answer> = serde_json::from_str(line)?;
                let place = answer.number.checked_sub(first).and_then(|n| usize::try_from(n).ok());
                if let Some(slot) = place.and_then(|n| answers.get_mut(n)) {
                    *slot = Some(answer.what);
                }
            }
            if said.gone {
                return Err(std::io::Error::other("it was killed"));
            }
        }
        Ok(())
    }
}
