//! The guest's journal, as `journalctl -o json` prints it.

use std::fmt::Write as _;
use std::time::Duration;

use ibprov::model::events as kinds;
use serde_json::{Map, Value};

/// One journal entry.
#[derive(Debug)]
pub(crate) struct Entry {
    /// When it was sent: time since the guest's kernel began.
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

/// When an entry was sent, microseconds. journald may get to it much later: for each
/// kernel message about a device it reads that device's `uevent` file, which on some
/// kernels waits for the device's lock, and a probe that hangs holds that.
fn sent(fields: &Map<String, Value>) -> Option<u64> {
    let usec = |name: &str| fields.get(name)?.as_str()?.parse::<u64>().ok();
    let received = usec("__MONOTONIC_TIMESTAMP")?;
    let late = || usec("__REALTIME_TIMESTAMP")?.checked_sub(usec("_SOURCE_REALTIME_TIMESTAMP")?);
    let sent = usec("_SOURCE_MONOTONIC_TIMESTAMP");
    sent.or_else(|| received.checked_sub(late()?)).or(Some(received))
}

/// All entries of one boot, in the order of their writing.
#[derive(Debug)]
pub(crate) struct Journal(pub(crate) Vec<Entry>);

impl Journal {
    /// Reads one JSON object a line; what ibprov wrote must have the fields that are
    /// promised to programs.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let entries = text.lines().map(|line| {
            let fields: Map<String, Value> =
                serde_json::from_str(line).map_err(|e| format!("journal line {line:?}: {e}"))?;
            let usec = sent(&fields)
                .ok_or_else(|| format!("journal line without a monotonic time: {line}"))?;
            Ok(Entry {
                at: Duration::from_micros(usec),
                message: text_of(fields.get("MESSAGE")),
                fields,
            })
        });
        let entries: Vec<Entry> = entries.collect::<Result<_, String>>()?;
        match entries.iter().find_map(|e| Some((e, broken_promise(e)?))) {
            Some((entry, what)) => Err(format!("the message {:?} {what}", entry.message)),
            None => Ok(Self(entries)),
        }
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

/// What programs read of our events, each without its prefix `IBPROV_`: an event of
/// this kind has all the fields of one of these sets, and of others only those after
/// them. Any event may have those in `GAINED` too.
type Promise = (&'static str, &'static [&'static [&'static str]], &'static [&'static str]);

const PORT: &[&str] = &["PCI", "RDMA", "PORT", "GUID", "NETDEV", "RUNG"];
const PORT_LACK: &[&str] = &["PCI", "RDMA", "PORT", "GUID", "NETDEV", "RUNG", "MISSING", "CAUSE"];
const VF: &[&[&str]] = &[&["PF", "VF", "GUID", "CAUSE"]];

const PROMISED: &[Promise] = &[
    (kinds::STARTED, &[&["VERSION", "TIMEOUT_SEC"]], &[]),
    (
        kinds::STEP_DONE,
        &[&["STEP", "PCI"], &["STEP", "NETDEV", "TOOK_USEC"], &["STEP", "TOOK_USEC"]],
        &[],
    ),
    (
        kinds::STEP_FAILED,
        &[
            &["STEP", "PCI", "CAUSE"],
            &["STEP", "NETDEV", "TOOK_USEC", "CAUSE"],
            &["STEP", "TOOK_USEC", "CAUSE"],
        ],
        &[],
    ),
    (kinds::PORT_READY, &[&["EXPECTED"]], PORT),
    (kinds::PORT_NOT_READY, &[&["EXPECTED"]], PORT_LACK),
    (kinds::WARNING, &[&["WARNING"], &["GUEST"]], &[]),
    (kinds::PORT_ONLINE, &[&["EXPECTED"]], PORT),
    (kinds::PORT_NOT_ONLINE, &[&["EXPECTED", "MISSING"]], PORT_LACK),
    (kinds::WAIT_FINISHED, &[&["VERDICT", "EXIT", "TOOK_USEC"]], &[]),
    (kinds::GUEST_STARTING, &[&["GUEST"]], &[]),
    (kinds::GUEST_UP, &[&["GUEST", "TOOK_USEC"]], &[]),
    (kinds::GUEST_WAITS, &[&["GUEST", "CAUSE"]], &[]),
    (kinds::GUEST_FAILED, &[&["GUEST", "CAUSE"]], &[]),
    (kinds::GUESTS_READY, &[&[]], &[]),
    (kinds::IFUP, &[&["NETDEV", "UNIT"]], &[]),
    (kinds::IFACE_DONE, &[&["NETDEV", "STACK"]], &["CAUSE"]),
    (kinds::IFACE_FAILED, &[&["NETDEV", "STACK"]], &["CAUSE"]),
    (kinds::FINISHED, &[&["VERDICT", "EXIT", "TOOK_USEC", "CPU_USEC"]], &[]),
    (kinds::PF_FINISHED, &[&["PF", "VERDICT", "EXIT", "TOOK_USEC"]], &[]),
    (kinds::VF_NOT_RIGHT, VF, &["PCI", "RUNG"]),
    (kinds::VF_DEFERRED, VF, &["PCI", "RUNG"]),
];

/// Fields that an event has of the spans it is said in, and of messages before it that
/// journald did not take.
const GAINED: &[&str] = &["MODULE", "PCI", "PF", "VF", "NETDEV", "GUEST", "LOST_BEFORE"];

/// Fields of the program's inside, which no message of ours has.
const INSIDE: &[&str] = &["TARGET", "SPAN_NAME", "CODE_FILE", "CODE_LINE", "CODE_MODULE"];

/// What is wrong with an entry of ours, if anything is.
fn broken_promise(entry: &Entry) -> Option<String> {
    let ours = entry.field("SYSLOG_IDENTIFIER") == "ibprov"
        && entry.field("_TRANSPORT") == "journal"
        && entry.field("_COMM") == "ibprov";
    if !ours {
        return None;
    }
    if let Some(name) = INSIDE.iter().find(|name| entry.fields.contains_key(**name)) {
        return Some(format!("has the field {name}"));
    }
    let priority = entry.field("PRIORITY");
    if !["3", "4", "5", "6"].contains(&priority) {
        return Some(format!("has priority {priority:?}"));
    }
    let id = entry.fields.get("MESSAGE_ID")?.as_str()?;
    let Some((_, sets, more)) = PROMISED.iter().find(|(kind, ..)| *kind == id) else {
        return Some(format!("has the unknown MESSAGE_ID {id}"));
    };
    let has: Vec<&str> =
        entry.fields.keys().filter_map(|name| name.strip_prefix("IBPROV_")).collect();
    let is_kept = sets.iter().any(|set| {
        let may = |name: &&str| set.contains(name) || more.contains(name) || GAINED.contains(name);
        set.iter().all(|name| has.contains(name)) && has.iter().all(may)
    });
    (!is_kept).then(|| format!("of kind {id} has the fields {has:?}"))
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
