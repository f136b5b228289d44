//! Journal entries, as `journalctl -o json` and `-o export` write them.

use serde_json::Value;

use super::event::{Level, When};
use crate::model::duration::utc;
use crate::names::Moment;

/// The fields of one entry that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// `_BOOT_ID`.
    pub boot: String,
    pub when: When,
    /// `SYSLOG_IDENTIFIER`, else `_COMM`.
    pub program: String,
    /// `UNIT` (what PID 1 speaks of), else `_SYSTEMD_UNIT`.
    pub unit: String,
    pub message: String,
    /// `PRIORITY`.
    pub level: Option<Level>,
    /// `MESSAGE_ID`.
    pub id: String,
    /// `IBPROV_EXIT`.
    pub exit: Option<u8>,
}

impl Entry {
    /// An entry of one JSON line; `None` if it is not one.
    pub fn from_json(line: &str) -> Option<Self> {
        let Value::Object(fields) = serde_json::from_str(line).ok()? else { return None };
        let mut entry = Self::default();
        for (name, value) in &fields {
            entry.set(name, &text(value)?);
        }
        fields.contains_key("MESSAGE").then_some(entry)
    }

    /// The entry in the export form, as the `number`th of a file (systemd's
    /// JOURNAL_EXPORT_FORMATS).
    pub fn export(&self, number: u64) -> Vec<u8> {
        let mut out = format!("__CURSOR=s=0;i={number:x}\n").into_bytes();
        let mut field = |name: &str, value: &str| {
            out.extend_from_slice(name.as_bytes());
            if value.contains('\n') {
                out.push(b'\n');
                out.extend_from_slice(&(value.len() as u64).to_le_bytes());
            } else {
                out.push(b'=');
            }
            out.extend_from_slice(value.as_bytes());
            out.push(b'\n');
        };
        let number = |number: Option<u64>| number.map_or(String::new(), |n| n.to_string());
        let level = match self.level {
            Some(Level::Error) => "3",
            Some(Level::Warning) => "4",
            Some(Level::Other) => "6",
            None => "",
        };
        for (name, value) in [
            ("__REALTIME_TIMESTAMP", &*number(self.when.wall)),
            ("__MONOTONIC_TIMESTAMP", &*number(self.when.monotonic.map(Moment::usec))),
            ("_BOOT_ID", &self.boot),
            ("PRIORITY", level),
            ("SYSLOG_IDENTIFIER", &self.program),
            ("UNIT", &self.unit),
            ("MESSAGE_ID", &self.id),
            ("IBPROV_EXIT", &*number(self.exit.map(u64::from))),
        ] {
            if !value.is_empty() {
                field(name, value);
            }
        }
        field("MESSAGE", &self.message);
        out.push(b'\n');
        out
    }

    /// Take one field into account.
    pub fn set(&mut self, name: &str, value: &str) {
        match name {
            "_BOOT_ID" => value.clone_into(&mut self.boot),
            "__MONOTONIC_TIMESTAMP" => {
                self.when.monotonic = value.parse().ok().map(Moment::from_usec);
            }
            "__REALTIME_TIMESTAMP" => {
                self.when.wall = value.parse().ok();
                self.when.stamp = stamp(self.when.wall).into();
            }
            "SYSLOG_IDENTIFIER" => value.clone_into(&mut self.program),
            "_COMM" if self.program.is_empty() => value.clone_into(&mut self.program),
            "UNIT" => value.clone_into(&mut self.unit),
            "_SYSTEMD_UNIT" if self.unit.is_empty() => value.clone_into(&mut self.unit),
            "MESSAGE" => value.clone_into(&mut self.message),
            "PRIORITY" => self.level = value.parse().ok().map(Level::of_priority),
            "MESSAGE_ID" => value.clone_into(&mut self.id),
            "IBPROV_EXIT" => self.exit = value.parse().ok(),
            _ => {}
        }
    }
}

/// A field's value: text, an array of bytes where it is not UTF-8 or holds
/// control characters, or null where it was too long to be printed. Of several
/// values of one field the first counts.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Null => Some(String::new()),
        Value::Number(n) => Some(n.to_string()),
        Value::Array(items) => match items.first() {
            Some(Value::Number(_)) => {
                let bytes: Vec<u8> = items
                    .iter()
                    .filter_map(|v| v.as_u64().and_then(|n| u8::try_from(n).ok()))
                    .collect();
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            Some(first) => text(first),
            None => Some(String::new()),
        },
        Value::Bool(_) | Value::Object(_) => None,
    }
}

/// The wall clock's time, microseconds since 1970, in UTC.
fn stamp(wall: Option<u64>) -> String {
    wall.map(|usec| utc(usec / 1_000_000)).unwrap_or_default()
}

/// Puts the lines of `journalctl -o export` together to entries. A binary field
/// is its name alone on a line, eight bytes of length (little endian), the
/// value and a line break (systemd's JOURNAL_EXPORT_FORMATS).
#[derive(Debug, Default)]
pub struct Export {
    entry: Entry,
    any: bool,
    binary: Option<Binary>,
}

#[derive(Debug, Default)]
struct Binary {
    name: String,
    /// Its length and its value, as far as they are kept.
    bytes: Vec<u8>,
    /// How many bytes have come.
    come: u64,
    begun: bool,
}

impl Binary {
    /// Take a line; true if the field is whole with it.
    fn line(&mut self, line: &[u8]) -> bool {
        // The length may have a line break in it as well.
        if std::mem::replace(&mut self.begun, true) {
            self.take(b"\n");
        }
        self.take(line);
        let length = self.bytes.get(..8).and_then(|b| <[u8; 8]>::try_from(b).ok());
        length.is_some_and(|b| self.come >= u64::from_le_bytes(b).saturating_add(8))
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = (FIELD_LIMIT + 8).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        self.come += bytes.len() as u64;
    }
}

/// No field is kept beyond this many bytes.
const FIELD_LIMIT: usize = 16 * 1024;

impl Export {
    /// Take one line, without its line break. Gives an entry when it ends.
    pub fn line(&mut self, line: &[u8]) -> Option<Entry> {
        // A line too long to be kept whole has lost its length.
        if line.starts_with(b"__CURSOR=s=") {
            self.binary = None;
        }
        if let Some(binary) = &mut self.binary {
            if binary.line(line) {
                let text = String::from_utf8_lossy(binary.bytes.get(8..).unwrap_or_default());
                self.entry.set(&binary.name, &text);
                self.binary = None;
            }
            return None;
        }
        if line.is_empty() {
            let whole = std::mem::take(&mut self.entry);
            return std::mem::take(&mut self.any).then_some(whole);
        }
        self.any = true;
        match line.iter().position(|b| *b == b'=') {
            Some(at) => {
                let name = String::from_utf8_lossy(line.get(..at).unwrap_or_default());
                let value = line.get(at + 1..).unwrap_or_default();
                let value = value.get(..FIELD_LIMIT).unwrap_or(value);
                self.entry.set(&name, &String::from_utf8_lossy(value));
            }
            None => {
                let name = String::from_utf8_lossy(line.get(..64).unwrap_or(line)).into_owned();
                self.binary = Some(Binary { name, ..Binary::default() });
            }
        }
        None
    }

    /// The entry that the end of the stream cut short.
    pub fn end(&mut self) -> Option<Entry> {
        let whole = std::mem::take(&mut self.entry);
        std::mem::take(&mut self.any).then_some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::at;
    use proptest::prelude::*;

    #[test]
    fn json_entries_are_read_bytes_and_all() {
        let line = r#"{"_BOOT_ID":"b0","__REALTIME_TIMESTAMP":"1577836801000000","__MONOTONIC_TIMESTAMP":"12","MESSAGE":[105,98,48,27],"SYSLOG_IDENTIFIER":"kernel","_COMM":"x","UNIT":"a.service","_SYSTEMD_UNIT":"init.scope","X":["1","2"]}"#;
        let entry = Entry::from_json(line).expect("entry");
        assert_eq!((entry.boot.as_str(), entry.program.as_str()), ("b0", "kernel"));
        assert_eq!((entry.unit.as_str(), entry.message.as_str()), ("a.service", "ib0\u{1b}"));
        assert_eq!(
            (entry.when.monotonic, &*entry.when.stamp),
            (Some(at(12)), "2020-01-01 00:00:01")
        );
        assert_eq!(Entry::from_json("{\"a\":1}"), None);
    }

    #[test]
    fn export_entries_are_read_binary_fields_and_all() {
        let mut export = Export::default();
        let mut stream = b"__CURSOR=s\n_BOOT_ID=b0\nMESSAGE\n".to_vec();
        stream.extend(11_u64.to_le_bytes());
        stream.extend(b"two\nlines\x1b!\n_COMM=ib\n\n");
        let entries: Vec<Entry> =
            stream.split(|b| *b == b'\n').filter_map(|line| export.line(line)).collect();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].message, "two\nlines\u{1b}!");
        assert_eq!(entries[0].program, "ib");
    }

    #[test]
    fn a_binary_field_of_any_length_is_read_and_nothing_in_it_is_a_field() {
        for length in [0, 1, 9, 10, 11, 2570, FIELD_LIMIT + 5000] {
            let value = "MESSAGE=forged\n".repeat(length / 15 + 1);
            let value = &value.as_bytes()[..length];
            let mut stream = b"__CURSOR=s\nUNIT\n".to_vec();
            stream.extend((length as u64).to_le_bytes());
            stream.extend(value);
            stream.extend(b"\nMESSAGE=true\n\n");
            let mut export = Export::default();
            let entries: Vec<Entry> =
                stream.split(|b| *b == b'\n').filter_map(|line| export.line(line)).collect();
            assert_eq!(entries.len(), 1, "{length}");
            assert_eq!(entries[0].message, "true", "{length}");
            assert_eq!(entries[0].unit.len(), length.min(FIELD_LIMIT), "{length}");
        }
    }

    proptest! {
        #[test]
        fn what_is_exported_is_read_back(
            message in "[a-zÄ=\n ]{0,40}", program in "[a-z=]{0,8}", unit in "[a-z]{0,8}", level in 0_u8..7,
            wall in any::<Option<u64>>(), exit in any::<Option<u8>>(),
        ) {
            let level = Some(Level::of_priority(level));
            let stamp = stamp(wall).into();
            let when = When { monotonic: wall.map(at), wall, stamp };
            let (boot, id) = ("b0".to_owned(), "m".to_owned());
            let entry = Entry { boot, when, program, unit, message, level, id, exit };
            let mut export = Export::default();
            let text = entry.export(7);
            let read: Vec<Entry> =
                text.split(|b| *b == b'\n').filter_map(|line| export.line(line)).collect();
            prop_assert_eq!(read, [entry]);
        }

        #[test]
        fn no_stream_panics(lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20)) {
            let mut export = Export::default();
            for line in &lines {
                export.line(line);
                let _ = Entry::from_json(&String::from_utf8_lossy(line));
            }
            export.end();
        }
    }
}
