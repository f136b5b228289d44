//! Logs and dumps as plain values, whatever form they came in.
//!
//! [`intake`] streams bytes to lines and keeps what a rule has a word for;
//! [`header`] takes time, host and program off a line; [`event`] names the
//! kinds of message that several rules (and the picture) need; [`state`] reads
//! the dumps of tools; [`fold`] tells what became of each object. Nothing here judges. No input makes it fail, hang, or
//! keep more than a bounded amount.

pub mod account;
pub mod event;
pub mod fold;
pub mod header;
pub mod host;
pub mod intake;
pub mod journal;
pub mod needles;
pub mod own;
pub mod record;
pub mod relevance;
pub mod state;
/// The lists of `words.toml`, as constants.
pub mod words {
    include!(concat!(env!("OUT_DIR"), "/words.rs"));
}

pub use account::Accounts;
pub use event::{Event, Kind, Level, Origin, When};
pub use fold::Fold;
pub use host::{Fabric, Host};
pub use intake::Intake;
pub use needles::Needles;
pub use state::State;

use std::sync::OnceLock;

use crate::model::finding::Quote;
use crate::model::node::Judgement;

/// Everything that was seen.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Where it came from, in the order it was read.
    pub sources: Vec<Source>,
    /// Boot by boot, the oldest first.
    pub boots: Vec<Boot>,
}

/// A file, a stream or the live host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// Its name as it was given.
    pub name: String,
    /// How many lines were read.
    pub lines: u64,
    /// How many bytes were read.
    pub bytes: u64,
    /// What could not be read of it, if anything.
    pub problem: Option<String>,
}

/// What belongs to one boot.
#[derive(Debug, Clone, Default)]
pub struct Boot {
    /// The journal's boot id, where known.
    pub id: Option<String>,
    /// When its first line was written, as it was written.
    pub begins: String,
    /// Log lines that a rule has a word for, in the order of time.
    pub events: Vec<Event>,
    /// What of the log was left out and may matter.
    pub left_out: LeftOut,
    /// What the dumps of tools show. They are taken for the last boot.
    pub state: State,
    /// The host itself, if it was looked at; for the last boot only.
    pub host: Option<Box<Host>>,
    /// The reports that ibprov has left of it; for the last boot only.
    pub accounts: Accounts,
    /// Names of the sources, by index.
    pub names: Vec<String>,
    /// The words that were looked for in logs, where logs were read.
    pub looked_for: Option<&'static Needles>,
    /// What [`Boot::fold`] has made of all that.
    pub folded: OnceLock<Fold>,
}

/// What is not known of a log because it is too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Older boots.
    pub boots: usize,
    /// The last word on an object, perhaps.
    pub words: bool,
}

impl Boot {
    /// What became of each object; made when it is first asked for.
    pub fn fold(&self) -> &Fold {
        self.folded.get_or_init(|| Fold::of(self))
    }

    /// How the host that was looked at was judged.
    pub fn judgement(&self) -> Option<&Judgement> {
        self.host.as_ref()?.judgement.as_ref()
    }

    /// The events of which `is_it` is true.
    pub fn lines(&self, is_it: impl Fn(&Event) -> bool) -> Vec<&Event> {
        self.events.iter().filter(|event| is_it(event)).collect()
    }

    /// The events behind `origin`.
    pub fn after(&self, origin: Origin) -> impl Iterator<Item = &Event> + Clone {
        self.events.iter().filter(move |event| event.origin > origin)
    }

    /// True if a unit that `is_it` was started behind `origin`.
    pub fn starts_after(&self, origin: Origin, is_it: impl Fn(&str) -> bool) -> bool {
        self.after(origin).any(|e| matches!(&e.kind, Kind::UnitStarted(unit) if is_it(unit)))
    }

    /// The events in which `needle` stands. It must be one of the words that
    /// are looked for ([`Needles`]), or the line may not have been kept.
    pub fn with<'a>(&'a self, needle: &'a str) -> impl Iterator<Item = &'a Event> {
        self.assert_looked_for(needle);
        self.events.iter().filter(move |e| e.text.contains(needle))
    }

    /// The events in which one of `words` stands, each of which must be looked for.
    pub fn with_any<'a>(&'a self, words: &'a [&'a str]) -> impl Iterator<Item = &'a Event> {
        words.iter().for_each(|word| self.assert_looked_for(word));
        self.events.iter().filter(move |e| words.iter().any(|n| e.text.contains(n)))
    }

    fn assert_looked_for(&self, word: &str) {
        debug_assert!(
            self.looked_for.is_none_or(|needles| needles.knows(word)),
            "no rule declares the needle {word:?}"
        );
    }

    /// True if `needle` stands in an event.
    pub fn says(&self, needle: &str) -> bool {
        self.with(needle).next().is_some()
    }

    /// The line of `event`, to be quoted.
    pub fn quote(&self, event: &Event) -> Quote {
        let time = event.when.stamp.to_string();
        Quote { time, ..self.quote_at(event.origin, &event.text) }
    }

    /// A line of a dump, to be quoted.
    pub fn quote_at(&self, origin: Origin, text: &str) -> Quote {
        let source = self.names.get(usize::from(origin.source)).cloned().unwrap_or_default();
        Quote { source, line: origin.line, time: String::new(), text: text.to_owned() }
    }
}
