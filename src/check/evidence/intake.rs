//! From a stream of bytes to events, one boot at a time, in bounded memory.
//!
//! The first megabytes of a source are taken apart line by line, so that any
//! dump in them is read. What follows is searched for the needles first, and
//! only the lines around a hit are looked at.

mod boots;
mod lines;

use crate::names::harmless;
use std::io::{self, Cursor, Read};

use aho_corasick::{AhoCorasick, Input};
use memchr::{memchr, memchr_iter, memrchr};

use super::account::{self, Accounts};
use super::event::{self, Event, Kind, Level, Origin, When};
use super::header::{Header, header, unquoted};
use super::journal::{Entry, Export};
use super::needles::Needles;
use super::own;
use super::record::{self, Record, is_record};
use super::relevance::concerns_rdma;
use super::state::DumpReader;
use super::{Boot, Evidence, Source};

use lines::{JOINED, clean, joint, line_around, lines, window};

/// How much of a source is taken apart line by line.
const CLOSELY: u64 = 2 * 1024 * 1024;
/// Bytes read at once.
const BLOCK: usize = 256 * 1024;
/// Events kept of one needle in one boot.
const EACH: u32 = 1000;
/// Events kept of those that no rule has a word for, in one boot: units and
/// modules, for the picture.
const NAMELESS: u32 = 4000;
/// Events kept in all.
const ALL: usize = 40_000;
/// Boots told apart; more are put together with the last.
const BOOTS: usize = 64;

/// Reads sources into [`Evidence`].
#[derive(Debug)]
pub struct Intake {
    needles: &'static Needles,
    evidence: Evidence,
    state: DumpReader,
    /// The boot that lines belong to, by index.
    boot: usize,
    /// Events kept of each needle in this boot.
    kept: Vec<u32>,
    kept_nameless: u32,
    kept_in_all: usize,
    source: u16,
    /// The record that may go on on the next line.
    open: Option<Open>,
    export: Option<Export>,
    /// First PCI enumeration of each function in this boot, to tell boots apart.
    enumerated: Vec<(Box<str>, When)>,
    /// The last kernel time seen.
    last_monotonic: Option<u64>,
    /// The reports that ibprov has left on the host.
    accounts: Accounts,
    /// What was seen of the host itself, and the source that tells it.
    record: Option<(u16, Record)>,
}

/// A line taken apart.
struct Line<'a> {
    when: When,
    program: &'a str,
    unit: &'a str,
    level: Option<Level>,
    text: &'a str,
    kind: Kind,
}

/// A record that may go on on the next line.
#[derive(Debug)]
struct Open {
    line: u64,
    text: String,
    /// The last physical line of it.
    last: String,
    begins_record: bool,
    lines: usize,
}

impl Intake {
    /// Nothing read yet. Only lines with one of `needles` will be kept.
    pub fn new(needles: &'static Needles) -> Self {
        Self {
            needles,
            evidence: Evidence { sources: Vec::new(), boots: vec![Boot::default()] },
            state: DumpReader::default(),
            boot: 0,
            kept: Vec::new(),
            kept_nameless: 0,
            kept_in_all: 0,
            source: 0,
            open: None,
            export: None,
            enumerated: Vec::new(),
            last_monotonic: None,
            accounts: Accounts::default(),
            record: None,
        }
    }

    /// Read all of `stream`, which is called `name` in quotes. A stream that
    /// breaks off is a problem of its source, not a failure.
    pub fn read(&mut self, name: &str, stream: &mut dyn Read) {
        self.source = u16::try_from(self.evidence.sources.len()).unwrap_or(u16::MAX);
        self.evidence.sources.push(Source { name: name.to_owned(), ..Source::default() });
        self.last_monotonic = None;
        if !name.ends_with(".json") {
            self.log(stream);
            return;
        }
        let mut head = Vec::with_capacity(64);
        // A stream that cannot be read says so again to whoever goes on.
        let broken = Read::take(&mut *stream, 64).read_to_end(&mut head).err();
        let whole = &mut Cursor::new(&head).chain(stream);
        let told = match broken {
            None if is_record(&head) => self.record(whole),
            None if account::is_report(&head) => self.report(name, whole),
            _ => {
                self.log(whole);
                broken.map_or(Ok(()), |e| Err(e.to_string()))
            }
        };
        if let (Err(problem), Some(source)) = (told, self.evidence.sources.last_mut()) {
            source.problem = Some(problem);
        }
    }

    /// Take what `ibprov collect` has seen of a host.
    fn record(&mut self, stream: &mut dyn Read) -> Result<(), String> {
        let text = self.document(stream, record::LONGEST)?;
        let record = Record::read(&text)?;
        if self.record.is_some() {
            return Err("the input has several hosts: only the first one is used".to_owned());
        }
        self.record = Some((self.source, record));
        Ok(())
    }

    /// Take a report that ibprov has left on a host.
    fn report(&mut self, name: &str, stream: &mut dyn Read) -> Result<(), String> {
        let text = self.document(stream, account::LONGEST)?;
        self.accounts.take(name, &text).map(|_| ())
    }

    /// A whole file of JSON, at most `longest` bytes.
    fn document(&mut self, stream: &mut dyn Read, longest: u64) -> Result<String, String> {
        let mut bytes = Vec::new();
        Read::take(stream, longest + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        self.consume(bytes.len());
        if bytes.len() as u64 > longest {
            return Err(format!("the file is longer than {} MiB, and was not read", longest >> 20));
        }
        if let Some(source) = self.evidence.sources.last_mut() {
            source.lines = memchr_iter(b'\n', &bytes).count() as u64 + 1;
        }
        let text = String::from_utf8_lossy(&bytes);
        // Its texts get into lines, and none of these files has a text of several lines. What is
        // not JSON is refused by who reads it.
        Ok(record::each_text(&text, &harmless).unwrap_or_else(|_| text.into_owned()))
    }

    /// Read all of `stream` as a log.
    fn log(&mut self, stream: &mut dyn Read) {
        let mut buffer = vec![0_u8; BLOCK];
        let mut held = 0;
        let mut line = 0;
        let mut skipping = false;
        loop {
            let read = match stream.read(buffer.get_mut(held..).unwrap_or_default()) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    if let Some(source) = self.evidence.sources.last_mut() {
                        source.problem = Some(e.to_string());
                    }
                    break;
                }
            };
            let before = self.consume(read);
            let full = held + read;
            let block = buffer.get(..full).unwrap_or_default();
            let Some(end) = memrchr(b'\n', block).map(|at| at + 1) else {
                held = full;
                if held == buffer.len() {
                    // A line longer than a block: its beginning counts.
                    if !skipping {
                        self.block(block, &mut line, before);
                    }
                    skipping = true;
                    held = 0;
                }
                continue;
            };
            let mut whole = block.get(..end).unwrap_or_default();
            if skipping {
                let rest = memchr(b'\n', whole).map_or(0, |at| at + 1);
                whole = whole.get(rest..).unwrap_or_default();
                skipping = false;
            }
            self.block(whole, &mut line, before);
            buffer.copy_within(end..full, 0);
            held = full - end;
        }
        if held > 0 && !skipping {
            let rest = buffer.get(..held).unwrap_or_default().to_vec();
            let before = self.consume(0);
            self.block(&rest, &mut line, before);
        }
        self.close();
        if let Some(entry) = self.export.take().and_then(|mut e| e.end()) {
            self.entry(entry, line);
        }
        self.state.gap();
        if let Some(source) = self.evidence.sources.last_mut() {
            source.lines = line;
        }
    }

    pub fn finish(mut self) -> Evidence {
        let names: Vec<String> = self.evidence.sources.iter().map(|s| s.name.clone()).collect();
        let state = self.state.finish();
        // Journals come in the order of their names.
        if self.evidence.boots.iter().all(|b| b.id.is_some()) {
            self.evidence.boots.sort_by_key(|b| b.events.first().and_then(|e| e.when.wall));
        }
        if let Some(last) = self.evidence.boots.last_mut() {
            last.state = state;
        }
        if let Some((source, record)) = self.record.take() {
            record.attach(&mut self.evidence.boots, source);
        }
        if let Some(last) = self.evidence.boots.last_mut() {
            last.accounts = self.accounts;
        }
        for boot in &mut self.evidence.boots {
            boot.names.clone_from(&names);
            boot.looked_for = Some(self.needles);
        }
        self.evidence
    }

    /// Count `read` bytes; how many there were before.
    fn consume(&mut self, read: usize) -> u64 {
        let Some(source) = self.evidence.sources.last_mut() else { return 0 };
        let before = source.bytes;
        source.bytes += read as u64;
        before
    }

    /// Take a block of whole lines. `line` is the number of the line before it.
    fn block(&mut self, block: &[u8], line: &mut u64, before: u64) {
        let searched = before >= CLOSELY && self.export.is_none();
        let needles = self.needles;
        let finder = match searched.then(|| needles.scanner()).flatten() {
            Some(finder) => finder,
            None => {
                for text in lines(block) {
                    *line += 1;
                    self.line(text, *line);
                }
                return;
            }
        };
        // Where lines are numbered up to, and taken up to.
        let (mut counted, mut taken) = (0, 0);
        let mut from = 0;
        while let Some(hit) = finder.find(Input::new(block).range(from..)) {
            if self.enough_of(hit.pattern().as_usize()) {
                // Most hits in a long log are of kinds of which enough is kept.
                let line = line_around(block, hit.start());
                let end = line.end;
                if self.nothing_new(finder, block.get(line).unwrap_or_default()) {
                    from = end.max(hit.end());
                    if from >= block.len() {
                        break;
                    }
                    continue;
                }
            }
            let window = window(block, hit.start());
            let start = window.start.max(taken);
            if start > taken {
                self.gap();
            }
            let skipped = block.get(counted..start).unwrap_or_default();
            *line += memchr_iter(b'\n', skipped).count() as u64;
            for text in lines(block.get(start..window.end).unwrap_or_default()) {
                *line += 1;
                self.line(text, *line);
            }
            counted = window.end.max(counted);
            taken = counted;
            from = taken.max(hit.end());
            if from >= block.len() {
                break;
            }
        }
        if counted < block.len() {
            self.gap();
            *line += memchr_iter(b'\n', block.get(counted..).unwrap_or_default()).count() as u64;
        }
    }

    /// True if more of needle `pattern` would not be kept.
    fn enough_of(&self, pattern: usize) -> bool {
        self.kept.get(pattern).is_some_and(|kept| *kept >= EACH)
    }

    /// True if enough is kept of all that stands in `line`.
    fn nothing_new(&mut self, finder: &AhoCorasick, line: &[u8]) -> bool {
        let nothing =
            finder.find_overlapping_iter(line).all(|h| self.enough_of(h.pattern().as_usize()));
        if nothing && let Some(source) = self.evidence.sources.last_mut() {
            source.left_out += 1;
        }
        nothing
    }

    /// Lines were left out: nothing goes on.
    fn gap(&mut self) {
        self.close();
        self.state.gap();
    }

    fn line(&mut self, raw: &[u8], number: u64) {
        if let Some(export) = &mut self.export {
            if let Some(entry) = export.line(raw) {
                self.entry(entry, number);
            }
            return;
        }
        if raw.starts_with(b"__CURSOR=") {
            self.close();
            let mut export = Export::default();
            export.line(raw);
            self.export = Some(export);
            return;
        }
        if raw.starts_with(b"{") && raw.ends_with(b"}") && memchr(b'"', raw).is_some() {
            let text = String::from_utf8_lossy(raw);
            if let Some(entry) = Entry::from_json(&text) {
                self.close();
                self.entry(entry, number);
                return;
            }
        }
        let text = clean(raw);
        let head = header(&text);
        if let Some(open) = &mut self.open
            && open.lines < JOINED
            && let Some(joint) = joint(open.begins_record, &open.last, &head)
        {
            open.text.truncate(open.text.trim_end().len());
            open.text.push_str(joint);
            open.text.push_str(head.text.trim());
            open.last.clone_from(&text);
            open.lines += 1;
            return;
        }
        self.close();
        if head.text.is_empty() {
            self.state.gap();
            return;
        }
        let begins_record = head.begins_record();
        if !begins_record {
            self.state.line(unquoted(&text), Origin { source: self.source, line: number });
        }
        self.open = Some(Open { line: number, last: text.clone(), text, begins_record, lines: 1 });
    }

    /// The open record is whole.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let Header { when, program, text, level, .. } = header(&open.text);
        if text.is_empty() {
            return;
        }
        let kind = event::kind(program, text);
        self.event(Line { when, program, unit: "", level, text, kind }, open.line);
    }

    fn entry(&mut self, entry: Entry, number: u64) {
        let Entry { boot, when, program, unit, message, level, id, exit } = entry;
        // All of it may be printed.
        let [boot, program, unit] = [boot, program, unit].map(|text| clean(text.as_bytes()));
        if !boot.is_empty() {
            self.boot_of(boot, &when);
        }
        for (at, text) in message.lines().take(64).enumerate() {
            let text = clean(text.as_bytes());
            let own = (at == 0).then(|| own::by_id(&id, exit, &text)).flatten();
            let own = own.filter(|own| own.is_evidence(&unit));
            let kind = match own {
                Some(own) => Kind::Own(own),
                // What has fields is not told by its words.
                None if program == "ibprov" => Kind::Other,
                None => event::kind(&program, &text),
            };
            let when = when.clone();
            let line = Line { when, program: &program, unit: &unit, level, text: &text, kind };
            self.event(line, number);
        }
    }

    fn event(&mut self, line: Line<'_>, number: u64) {
        let Line { when, program, unit, level, text, kind } = line;
        // Boots begin with lines that may say nothing else.
        self.tell_boots_apart(&when, text, &kind);
        let shared = kind != Kind::Other || level == Some(Level::Error) && concerns_rdma(text);
        if !self.wanted(text, shared) {
            return;
        }
        let origin = Origin { source: self.source, line: number };
        let Some(boot) = self.evidence.boots.get_mut(self.boot) else { return };
        if boot.begins.is_empty() {
            boot.begins = when.stamp.to_string();
        }
        boot.events.push(Event {
            origin,
            when,
            program: program.into(),
            unit: unit.into(),
            text: text.into(),
            level,
            kind,
        });
    }

    /// True if something is kept of `entry`, unless there is too much of its kind.
    pub fn matters(needles: &Needles, entry: &Entry) -> bool {
        let has_needle = |text: &str| needles.finder.as_ref().is_none_or(|f| f.is_match(text));
        own::by_id(&entry.id, entry.exit, &entry.message).is_some()
            || has_needle(&entry.message)
            || entry.level == Some(Level::Error) && concerns_rdma(&entry.message)
            || entry.message.lines().any(|text| event::kind(&entry.program, text) != Kind::Other)
    }

    /// True if a needle stands in `text` of which not too many are kept, or if it is of
    /// a kind that several rules ask for.
    fn wanted(&mut self, text: &str, shared: bool) -> bool {
        let Some(finder) = &self.needles.finder else { return self.kept_in_all < ALL };
        if self.kept.is_empty() {
            self.kept = vec![0; finder.patterns_len()];
        }
        let mut hits = 0;
        let mut room = false;
        for hit in finder.find_overlapping_iter(text) {
            hits += 1;
            if let Some(kept) = self.kept.get_mut(hit.pattern().as_usize()) {
                *kept += 1;
                room |= *kept <= EACH;
            }
        }
        if hits == 0 && shared {
            self.kept_nameless += 1;
            room = self.kept_nameless <= NAMELESS;
        }
        let any = hits > 0 || shared;
        let wanted = any && room && self.kept_in_all < ALL;
        if wanted {
            self.kept_in_all += 1;
        } else if any && let Some(source) = self.evidence.sources.last_mut() {
            source.left_out += 1;
        }
        wanted
    }
}

#[cfg(test)]
mod tests;
