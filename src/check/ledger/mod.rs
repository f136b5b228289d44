//! What each line of the fabric is to a reader who asks whether it works: explained by a finding,
//! harmless, over, or a failure that nothing explains.
//!
//! A line is a failure if it is of the fabric, by who writes it or by an object that it names, and
//! says that something has failed. The words for both are data, `words.toml`.

mod entities;
mod flaps;
pub mod path;
pub mod words;

use super::evidence::event::function;
use super::evidence::fold::Object;
use super::evidence::fold::lines::{driven, ends};
use super::evidence::relevance::rdma_device_in;
use super::evidence::state::{Command, PortSeen};
use super::evidence::{Boot, Event, Kind, Level, Origin};
use super::pattern::caught_one;
use super::rules::messages::{is_harmless, is_quoted};
use crate::model::finding::{Confidence, Finding, Quote, Severity};
use crate::names::{RDMA_MODULES, is_ipoib_name};
use entities::Entities;
pub use flaps::Flap;
use words::{is_program, own_words, says_failure, says_recovery, words};

/// How the lines begin in which a message of Open MPI names its device.
pub const DEVICE_OF_MESSAGE: &[&str] = &["Local device: ", "Local adapter: ", "Device:        "];

/// Microseconds after a failure in which its consequences come.
const AFTER: i64 = 30_000_000;
/// Microseconds before it in which its cause was told.
const BEFORE: i64 = 5_000_000;

/// A failure that nothing explains.
#[derive(Debug, Clone)]
pub struct Failure<'a> {
    pub event: &'a Event,
    /// The object of the fabric that fails, if the line names one.
    pub object: Option<String>,
    /// The PCI function that it is or is of, or the object itself.
    path: String,
}

/// Lines of the fabric, by what each is.
#[derive(Debug, Default)]
pub struct Ledger<'a> {
    /// Failures that nothing explains, in the order of the log.
    pub failures: Vec<Failure<'a>>,
    pub explained: usize,
    pub harmless: usize,
    pub over: usize,
    pub flaps: Vec<Flap<'a>>,
}

/// Those of an object and a kind are one.
fn kind(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphabetic).take(80).collect()
}

impl<'a> Ledger<'a> {
    /// Of the lines of a boot, of which `findings` are made.
    pub fn of(book: &Book<'a>, findings: &[Finding]) -> Self {
        let boot = book.boot;
        let flaps = flaps::flaps(boot, &book.entities);
        let mut ledger = Self { flaps, ..Self::default() };
        for (at, failure) in &book.failures {
            if is_quoted(boot, failure.event, findings) {
                ledger.explained += 1;
            } else if is_harmless(failure.event) && !book.fails_beside(failure) {
                ledger.harmless += 1;
            } else if book.is_over(*at, failure) {
                ledger.over += 1;
            } else if !ledger.has(failure) {
                ledger.failures.push(failure.clone());
            }
        }
        ledger
    }

    fn has(&self, new: &Failure<'a>) -> bool {
        let is_it = |old: &Failure<'a>| {
            old.object == new.object && kind(&old.event.text) == kind(&new.event.text)
        };
        self.failures.iter().any(is_it)
    }
}

/// True if `other` was written so shortly before or after `event` that one may be the cause of
/// the other.
fn is_near(event: &Event, other: &Event) -> bool {
    is_within(event, other, BEFORE)
}

/// The same, if `other` is written at most `before` microseconds before `event`.
fn is_within(event: &Event, other: &Event, before: i64) -> bool {
    match other.when.since(&event.when) {
        Some(gap) => (-before..=AFTER).contains(&gap),
        None => {
            other.origin.source == event.origin.source
                && other.origin.line.abs_diff(event.origin.line) <= 5
        }
    }
}

/// Adds to each of `findings` that is grave what else of the same card, and of the PCIe path
/// above it, failed shortly before and after: the cause is among that.
pub fn quote_causes(book: &Book<'_>, findings: &mut [Finding]) {
    /// Of each, more prove nothing more.
    const MOST: usize = 4;
    let boot = book.boot;
    for finding in findings.iter_mut().filter(|f| f.severity != Severity::Info) {
        let first = boot.events.iter().find(|e| finding.evidence.contains(&boot.quote(e)));
        let address = first.and_then(|first| function(&first.text).map(|at| (first, at)));
        let Some((first, address)) = address else { continue };
        let card = path::card(address);
        let is_of = |f: &Failure<'_>| path::card(&f.path) == card && is_near(first, f.event);
        let beside =
            book.failures.iter().map(|(_, failure)| failure).filter(|failure| is_of(failure));
        let beside = beside.map(|failure| failure.event).take(MOST);
        let above = path::above(boot, address, first);
        // What failed above it first, is the cause, and not what a rule takes for it.
        if above.first().is_some_and(|above| above.origin < first.origin) {
            finding.confidence = finding.confidence.max(Some(Confidence::Medium));
        }
        let above = above.into_iter().take(MOST);
        let mut lines: Vec<&Event> = above.chain(beside).collect();
        lines.sort_by_key(|event| event.origin);
        let quotes: Vec<Quote> = lines.into_iter().map(|event| boot.quote(event)).collect();
        let known = std::mem::take(&mut finding.evidence);
        let mut evidence = quotes;
        evidence.extend(known);
        *finding = finding.clone().quoting(evidence);
    }
}

/// A boot that is gone through.
#[derive(Debug)]
pub struct Book<'a> {
    pub boot: &'a Boot,
    entities: Entities,
    /// Everything of the fabric that fails, with its place in the boot.
    failures: Vec<(usize, Failure<'a>)>,
}

impl<'a> Book<'a> {
    pub fn of(boot: &'a Boot) -> Self {
        let mut book = Self { boot, entities: Entities::of(boot), failures: Vec::new() };
        let mut is_ending = false;
        for (at, event) in boot.events.iter().enumerate() {
            is_ending = ends(&event.text).unwrap_or(is_ending);
            let failure = book.failure(event).filter(|_| !is_ending);
            book.failures.extend(failure.map(|failure| (at, failure)));
        }
        book
    }

    /// What fails by `event`, if anything of the fabric does.
    fn failure(&self, event: &'a Event) -> Option<Failure<'a>> {
        let is_own = matches!(event.kind, Kind::Own(_)) || &*event.program == "ibprov";
        if is_own || is_strange(event) || is_row(event) {
            return None;
        }
        let is_grave = event.level == Some(Level::Error) && event.from_kernel();
        if !is_grave && !says_failure(&event.text) {
            return None;
        }
        let own = own_words(&event.text);
        let named = self.entities.named(&own).or_else(|| self.named_beside(event));
        let is_of_fabric = || {
            is_sender(event)
                || self.is_in_dump(event)
                || has_word_of_fabric(&own) && !self.entities.has_other(&own)
        };
        if named.is_none() && !is_of_fabric() {
            return None;
        }
        let object = named.or_else(|| function(&own).filter(|_| !self.entities.has_other(&own)));
        let path = object.map(|object| self.entities.path(object)).or_else(|| peer(&event.text));
        let path = path.unwrap_or(&event.program);
        Some(Failure { event, path: path.to_owned(), object: object.map(str::to_owned) })
    }

    /// True if a tool of the fabric prints `event` beside what it prints of a port.
    fn is_in_dump(&self, event: &Event) -> bool {
        /// The state of a port stands so far from its device at most.
        const LINES: u64 = 24;
        let is_near = |port: &PortSeen| {
            let Origin { source, line } = port.origin;
            source == event.origin.source && line.abs_diff(event.origin.line) < LINES
        };
        let is_bare = event.when.stamp.is_empty() && event.program.is_empty();
        is_bare && self.boot.state.ports.iter().any(is_near)
    }

    /// The device of which Open MPI tells in lines of their own below a message, and that for which
    /// a tool was started.
    fn named_beside(&self, event: &Event) -> Option<&str> {
        let is_above = |typed: &&Command| {
            typed.origin.source == event.origin.source && typed.origin < event.origin
        };
        if event.when.stamp.is_empty() && is_program(&event.program) {
            let typed = self.boot.state.commands.iter().rfind(is_above)?;
            return rdma_device_in(&typed.text);
        }
        /// A help text of Open MPI is no longer.
        const LINES: u64 = 12;
        let is_below = |other: &&Event| {
            let lines = event.origin.line + 1..event.origin.line + LINES;
            other.origin.source == event.origin.source && lines.contains(&other.origin.line)
        };
        let names = |other: &&Event| {
            DEVICE_OF_MESSAGE.iter().any(|head| other.text.trim_start().starts_with(head))
        };
        let is_of_mpi = event.text.contains("OpenFabrics");
        let below = self.boot.events.iter().filter(is_below).find(names);
        below.filter(|_| is_of_mpi).and_then(|other| rdma_device_in(&other.text))
    }

    /// True if what fails was well again later, and has not failed so again.
    fn is_over(&self, at: usize, failure: &Failure<'a>) -> bool {
        let path = failure.path.as_str();
        let is_its = |name: &str| self.entities.path(name) == path;
        let recovers = |event: &Event| {
            let is_of = || self.entities.in_text(&event.text).any(is_its);
            says_recovery(&event.text) && (peer(&event.text) == Some(path) || is_of())
        };
        let later = self.boot.events.get(at + 1..).unwrap_or_default();
        if later.iter().any(recovers) {
            return true;
        }
        let is_of = |object: &Object| {
            object.adapter.as_deref() == Some(path)
                || is_its(object.name.split(' ').next().unwrap_or_default())
        };
        // That a port is up proves nothing of what a program wanted of it.
        let is_of_system = failure.event.from_kernel() && !failure.event.program.is_empty()
            || is_of_driver(&failure.event.text)
            || words().managers.iter().any(|name| failure.event.program.starts_with(name.as_str()));
        // A dump in a log stands where it was made.
        let own = self.boot.quote(failure.event);
        let is_later = |object: &Object| match (object.last.event, &object.last.quote) {
            (Some(good), _) => good > at,
            (None, shown) => shown.source != own.source || shown.line > own.line,
        };
        is_of_system && self.boot.fold().good().any(|object| is_of(object) && is_later(object))
    }

    /// True if something else of the same object fails beside what is harmless alone, if the
    /// kernel stumbles there, or if it is the provider of an adapter of this boot that is missing.
    fn fails_beside(&self, one: &Failure<'a>) -> bool {
        let provider = caught_one(&one.event.text, "couldn't load driver 'lib{}-rdmav");
        let is_driven = |e: &Event, by: &str| driven(&e.text).is_some() && e.text.starts_with(by);
        if provider.is_some_and(|by| self.boot.events.iter().any(|e| is_driven(e, by))) {
            return true;
        }
        let is_near = |event: &Event| is_near(one.event, event);
        let is_beside = |other: &Failure<'a>| {
            one.object.is_some()
                && other.path == one.path
                && !is_harmless(other.event)
                && is_near(other.event)
        };
        let stumbles = |event: &Event| {
            event.text.contains("kernel BUG at")
                && is_near(event)
                && event.origin >= one.event.origin
        };
        self.failures.iter().any(|(_, other)| is_beside(other))
            || self.boot.events.iter().any(stumbles)
    }
}

/// What the kernel reaches over the fabric: `nvme nvme2: ...`, `scsi host11: ...`, `10.1.1.5@o2ib`.
fn peer(text: &str) -> Option<&str> {
    let mut words = text.split([' ', ',', ';']).map(|word| word.trim_end_matches([':', '.', ')']));
    let of_kernel = match (words.next()?, words.next()) {
        ("nvme" | "scsi", second) => second,
        _ => None,
    };
    // A target stands before the address of its server: `fs-OST0001@10.1.1.5@o2ib`.
    let before = || words.find_map(|word| word.split_once("@o2ib")?.0.rsplit('@').next());
    of_kernel.or_else(before)
}

/// True of what a tool shows of a port, which is read as such.
fn is_row(event: &Event) -> bool {
    let key = event.text.split_once(':').map_or("", |(key, _)| key.trim());
    let is_state = |known: &&str| known.eq_ignore_ascii_case(key);
    event.when.stamp.is_empty()
        && ["state", "physical state", "phys state", "phys_state"].iter().any(is_state)
}

/// True of programs whose lines name the objects of others.
fn is_strange(event: &Event) -> bool {
    let program = &*event.program;
    words().strangers.iter().any(|name| name == program) || event.text.starts_with("audit: ")
}

/// True if only what is of the fabric is written by who writes `event`.
fn is_sender(event: &Event) -> bool {
    is_program(&event.program) || event.from_kernel() && is_of_driver(&event.text)
}

/// True if `text` begins as the lines of a driver of the fabric do.
fn is_of_driver(text: &str) -> bool {
    let head = text.trim_start_matches('<').split([' ', ':', '>', '(']).next().unwrap_or_default();
    let name = head.replace('-', "_");
    RDMA_MODULES.contains(&name.as_str())
        || is_ipoib_name(head)
        || words::crashed(text).is_some_and(is_program)
        || words().heads.iter().any(|known| *known == name || known == head)
}

pub fn has_word_of_fabric(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let has_phrase = || words().phrases.iter().any(|phrase| text.contains(phrase.as_str()));
    text.split(|c| !is_part(c)).any(|whole| {
        let word = whole.trim_matches(['.', '-', '/']);
        words().fabric.iter().any(|known| known == word || known == whole)
            // Source files and functions: `nvme_rdma.c`.
            || word.split(['_', '.']).any(|part| part == "rdma")
            || words().begins.iter().any(|begin| word.starts_with(begin.as_str()))
            || words().ends.iter().any(|end| word.ends_with(end.as_str()))
            || word.contains("/infiniband")
            || RDMA_MODULES.contains(&word)
    }) || has_phrase()
}
