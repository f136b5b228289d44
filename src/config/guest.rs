//! `[guests]` and `[[guest]]`: what starts when its VFs are right.

use std::time::Duration;

use super::draft::Row;
use super::keys::{GUEST, GUESTS_CONNECTION, GUESTS_PARALLEL, GUESTS_TIMEOUT, guest as key};
use super::merge::Merged;
use super::pf::{PfSelector, Placed};
use super::problem::{Place, Problem, Problems};
use crate::names::{Connection, DomainName, GuestVf, OnFailure, Ready, UnitName, VfName};

/// The guests, and what holds for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guests {
    pub connection: Connection,
    /// How many may be starting at the same time.
    pub max_parallel: usize,
    /// How long the first pass may take.
    pub timeout: Duration,
    /// The guests, in the order in which they are started.
    pub list: Vec<Guest>,
}

/// Which guest: its position in [`Guests::list`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuestIndex(usize);

impl GuestIndex {
    /// The guest at `position`, counted from 0.
    pub const fn new(position: usize) -> Self {
        Self(position)
    }

    /// Its position in the list, counted from 0.
    pub const fn position(self) -> usize {
        self.0
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    pub what: What,
    pub vfs: Needs,
    /// The guests that come before it.
    pub after: Vec<GuestIndex>,
    /// Maximum time that the start may take.
    pub timeout: Duration,
    /// What to do if its VFs are not right.
    pub on_failure: OnFailure,
    pub ready: Ready,
    /// It has an error: it is not started.
    pub is_withheld: bool,
    /// File and line, for messages.
    pub origin: String,
}

#[derive(Debug, Clone, PartialEq, Eq, strum::Display)]
pub enum What {
    #[strum(to_string = "domain {0}")]
    Domain(DomainName),
    #[strum(to_string = "unit {0}")]
    Unit(UnitName),
}

impl What {
    pub fn name(&self) -> &str {
        match self {
            Self::Domain(name) => name.as_str(),
            Self::Unit(name) => name.as_str(),
        }
    }
}

/// The VFs that a guest needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needs {
    /// Those of the domain's hostdev devices.
    Auto,
    These(Vec<VfName>),
}

impl Needs {
    /// It needs VFs, or may.
    pub fn are_any(&self) -> bool {
        match self {
            Self::Auto => true,
            Self::These(vfs) => !vfs.is_empty(),
        }
    }
}

const TIMEOUT: Duration = Duration::from_secs(120);

/// The guests, judged together.
pub(super) fn guests(merged: &Merged, pfs: &[Placed<'_>], problems: &mut Problems) -> Guests {
    let mut named: Vec<(What, &Row)> = Vec::new();
    // A guest that could not be read may be the one that is meant.
    let mut complete = !merged.is_broken(&GUEST);
    for row in merged.all(GUEST) {
        // What is wrong with one that is left out is said.
        let mut said = Problems::default();
        let problems = if row.is_left_out { &mut said } else { &mut *problems };
        let guests = what(row, problems);
        complete &= !guests.is_empty();
        vfs_exist(row, pfs, problems);
        for (what, at) in guests {
            match named.iter().find(|(other, _)| other.name() == what.name()) {
                Some((_, other)) => Problem::new("the same guest is listed twice")
                        .repeated(at, &other.place)
                        .help("keep one of the two; `guest = []` in a file between them clears the list before it").add_to(problems),
                None => named.push((what, row)),
            }
        }
    }
    let names: Vec<&str> = named.iter().map(|(what, _)| what.name()).collect();
    let mut list: Vec<Guest> = Vec::new();
    let mut judged: Option<&Row> = None;
    for (what, row) in &named {
        // What is wrong with a row of several guests is said once.
        let mut said = Problems::default();
        let again = judged.replace(row).is_some_and(|last| std::ptr::eq(last, *row));
        let problems = if again || row.is_left_out { &mut said } else { &mut *problems };
        list.push(Guest {
            what: what.clone(),
            vfs: needs(what, row, problems),
            after: if row.is_left_out {
                Vec::new()
            } else {
                after(row, &names, complete, problems)
            },
            timeout: row.value(key::TIMEOUT).unwrap_or(TIMEOUT),
            on_failure: row.value(key::ON_FAILURE).unwrap_or(OnFailure::Retry),
            ready: ready(what, row, problems),
            is_withheld: row.is_left_out,
            origin: row.place.to_string(),
        });
    }
    circles(&list, &named, problems);
    Guests {
        connection: merged.set(GUESTS_CONNECTION).0,
        max_parallel: if merged.is_lost(&GUESTS_PARALLEL) {
            1
        } else {
            usize::try_from(merged.set(GUESTS_PARALLEL).0).unwrap_or(1)
        },
        timeout: merged.set(GUESTS_TIMEOUT).0,
        list,
    }
}

/// What the row starts: all domains, or all units.
fn what<'a>(row: &'a Row, problems: &mut Problems) -> Vec<(What, &'a Place)> {
    let (_, domains) = row.way(key::DOMAIN, What::Domain);
    let (_, units) = row.way(key::UNIT, What::Unit);
    if let ([(_, domain_at), ..], [(_, unit_at), ..]) = (domains.as_slice(), units.as_slice()) {
        Problem::new("guest is both a domain and a unit")
            .at(domain_at, "a domain")
            .at(unit_at, "and a unit")
            .help("keep one; use a second [[guest]] for the other")
            .add_to(problems);
        return Vec::new();
    }
    if row.lacks(&[&key::DOMAIN, &key::UNIT]) {
        Problem::new("guest names neither a domain nor a unit")
            .at(&row.place, "names nothing")
            .help("give domain or unit")
            .add_to(problems);
    }
    domains.into_iter().chain(units).collect()
}

fn needs(what: &What, row: &Row, problems: &mut Problems) -> Needs {
    let Some((given, at)) = row.list(key::VFS) else {
        return match what {
            What::Domain(_) => Needs::Auto,
            What::Unit(_) => Needs::These(Vec::new()),
        };
    };
    if given.contains(&GuestVf::Auto) {
        if matches!(what, What::Unit(_)) {
            Problem::new("the VFs of a unit cannot be determined automatically")
                .at(at, "auto stands for the hostdev devices of a domain")
                .help("name each VF as PF/INDEX")
                .add_to(problems);
        } else if given.len() > 1 {
            Problem::new("vfs names VFs beside auto")
                .at(at, "auto and others")
                .help("either \"auto\" alone, or every VF by name")
                .add_to(problems);
        }
        return Needs::Auto;
    }
    let mut vfs: Vec<VfName> = Vec::new();
    for vf in given {
        if let GuestVf::One(vf) = vf
            && !vfs.contains(&vf)
        {
            vfs.push(vf);
        }
    }
    Needs::These(vfs)
}

/// A VF of a PF whose VFs are planned is one of those. Without VFs, the PF is only out of use
/// for now.
fn vfs_exist(row: &Row, pfs: &[Placed<'_>], problems: &mut Problems) {
    for (vf, at) in row.each(key::VFS) {
        let GuestVf::One(vf) = vf else { continue };
        let named = PfSelector::Pci(vf.pf);
        let placed = pfs.iter().find(|placed| placed.pf.which == named && placed.pf.vfs > 0);
        let Some(placed) = placed.filter(|placed| vf.index.get() >= placed.pf.vfs) else {
            continue;
        };
        Problem::new(format!(
            "guest needs VF {} of {named}, which has none of that number",
            vf.index
        ))
        .at(at, format!("the last VF is {}", placed.pf.vfs - 1))
        .at(placed.count.at, placed.count.label())
        .add_to(problems);
    }
}

fn after(row: &Row, names: &[&str], complete: bool, problems: &mut Problems) -> Vec<GuestIndex> {
    let Some((given, at)) = row.list(key::AFTER) else { return Vec::new() };
    let mut before = Vec::new();
    for name in given {
        let found = names.iter().position(|other| *other == name.as_str()).map(GuestIndex);
        match found {
            Some(guest) if !before.contains(&guest) => before.push(guest),
            Some(_) => {}
            None if complete => {
                Problem::new(format!("guest is after {:?}, which is not a guest", name.as_str()))
                    .at(at, "there is no [[guest]] of this name")
                    .help("write the domain or unit exactly as its own [[guest]] does")
                    .add_to(problems);
            }
            None => {}
        }
    }
    before
}

fn ready(what: &What, row: &Row, problems: &mut Problems) -> Ready {
    let Some((ready, at)) = row.field(key::READY) else { return Ready::Running };
    if ready == Ready::Agent && matches!(what, What::Unit(_)) {
        Problem::new("a unit has no guest agent")
            .at(at, "for domains only")
            .help("use a unit that reports when it is ready (Type=notify)")
            .add_to(problems);
    }
    ready
}

/// Guests that come after themselves, through whatever others.
fn circles(list: &[Guest], named: &[(What, &Row)], problems: &mut Problems) {
    for (start, (what, row)) in named.iter().enumerate() {
        let before = |guest: GuestIndex| list.get(guest.0).map(|g| g.after.clone());
        let start = GuestIndex(start);
        let mut reached: Vec<GuestIndex> = Vec::new();
        let mut open = before(start).unwrap_or_default();
        while let Some(guest) = open.pop() {
            if !reached.contains(&guest) {
                reached.push(guest);
                open.extend(before(guest).unwrap_or_default());
            }
        }
        if reached.contains(&start) {
            Problem::new(format!("{what} comes after itself"))
                .at(&row.place, "here the cycle begins")
                .help("remove one of the guests from an `after` list")
                .add_to(problems);
            // One circle is told once.
            return;
        }
    }
}
