//! The guest's journal, as `journalctl -o json` prints it.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value};

/// One journal entry.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Time since the guest's kernel began.
    pub(crate) at: Duration,
    /// The text.
    pub(crate) message: String,
    /// Every field, as journald has it.
    pub(crate) fields: Map<String, Value>,
}

impl Entry {
    /// A field's text; empty when the entry has no such field.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether the entry was written by `unit`, or by systemd about it, as
    /// `journalctl --unit` tells.
    pub(crate) fn of(&self, unit: &str) -> bool {
        self.field("_SYSTEMD_UNIT") == unit
            || self.field("UNIT") == unit
            || self.field("_UID") == "0" && self.field("OBJECT_SYSTEMD_UNIT") == unit
    }
}

/// All entries of one boot, in the order of their writing.
#[derive(Debug)]
pub(crate) struct Journal(pub(crate) Vec<Entry>);

impl Journal {
    /// Reads one JSON object a line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let entries = text.lines().map(|line| {
            let fields: Map<String, Value> =
                serde_json::from_str(line).map_err(|e| format!("journal line {line:?}: {e}"))?;
            let usec = ["_SOURCE_MONOTONIC_TIMESTAMP", "__MONOTONIC_TIMESTAMP"]
                .iter()
                .find_map(|name| fields.get(*name)?.as_str()?.parse().ok())
                .ok_or_else(|| format!("journal line without a monotonic time: {line}"))?;
            Ok(Entry {
                at: Duration::from_micros(usec),
                message: text_of(fields.get("MESSAGE")),
                fields,
            })
        });
        entries.collect::<Result<_, String>>().map(Self)
    }

    /// Entries written by `unit`, or by systemd about it.
    pub(crate) fn unit<'a>(&'a self, unit: &str) -> impl Iterator<Item = &'a Entry> {
        self.0.iter().filter(move |e| e.of(unit))
    }

    /// Kernel messages.
    pub(crate) fn kernel(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(|e| e.field("_TRANSPORT") == "kernel")
    }

    /// First entry whose message holds `text`.
    pub(crate) fn find(&self, text: &str) -> Option<&Entry> {
        self.0.iter().find(|e| e.message.contains(text))
    }

    /// First entry of `unit` whose message holds `text`.
    ///
    /// # Panics
    /// When there is none; the message shows all the unit wrote.
    pub(crate) fn expect(&self, unit: &str, text: &str) -> &Entry {
        match self.unit(unit).find(|e| e.message.contains(text)) {
            Some(entry) => entry,
            None => {
                panic!("{unit} wrote nothing with {text:?}, but:\n{}", listing(self.unit(unit)))
            }
        }
    }

    /// When the start job of `unit` was done; for a target, when it was reached.
    ///
    /// # Panics
    /// When it never was.
    pub(crate) fn started(&self, unit: &str) -> Duration {
        let done = |e: &&Entry| {
            e.field("UNIT") == unit
                && e.field("JOB_TYPE") == "start"
                && e.field("JOB_RESULT") == "done"
        };
        match self.0.iter().find(done) {
            Some(entry) => entry.at,
            None => panic!("{unit} was never started:\n{}", listing(self.unit(unit))),
        }
    }

    /// When the start job of `unit` failed.
    ///
    /// # Panics
    /// When it did not.
    pub(crate) fn failed(&self, unit: &str) -> Duration {
        let failed = |e: &&Entry| {
            e.field("UNIT") == unit
                && e.field("JOB_TYPE") == "start"
                && e.field("JOB_RESULT") == "failed"
        };
        match self.0.iter().find(failed) {
            Some(entry) => entry.at,
            None => panic!("{unit} did not fail:\n{}", listing(self.unit(unit))),
        }
    }
}

/// Asserts that the instants come one after the other, each with its name.
///
/// # Panics
/// At the first that does not.
pub(crate) fn assert_in_order(instants: &[(&str, Duration)]) {
    for pair in instants.windows(2) {
        let [(first, a), (second, b)] = pair else { continue };
        assert!(a <= b, "{first} ({a:?}) should come before {second} ({b:?})");
    }
}

/// Entries as text, a line each, for a person to read.
pub(crate) fn listing<'a>(entries: impl Iterator<Item = &'a Entry>) -> String {
    let mut text = String::new();
    for e in entries {
        let who = match e.field("SYSLOG_IDENTIFIER") {
            "" => e.field("_COMM"),
            name => name,
        };
        let _ = writeln!(text, "[{:10.6}] {who}: {}", e.at.as_secs_f64(), e.message);
    }
    text
}

/// A message that is not UTF-8 comes as an array of bytes.
fn text_of(message: Option<&Value>) -> String {
    match message {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(bytes)) => {
            let bytes: Vec<u8> =
                bytes.iter().filter_map(|b| u8::try_from(b.as_u64()?).ok()).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => String::new(),
    }
}
