//! From a stream of bytes to events, one boot at a time, in bounded memory.
//!
//! The first megabytes of a source are taken apart line by line, so that any
//! dump in them is read. What follows is searched for the needles first, and
//! only the lines around a hit are looked at.

mod boots;
mod kept;
mod lines;
mod order;
mod part;

use crate::names::{Moment, harmless, is_ipoib_name};
use std::collections::BTreeSet;
use std::io::{self, Cursor, Read};
use std::thread;

use aho_corasick::AhoCorasick;
use memchr::{memchr, memchr_iter, memrchr};

use super::account::{self, Accounts};
use super::event::{self, Event, Kind, Level, Origin, When};
use super::header::{Header, header, unquoted};
use super::journal::{Entry, Export};
use super::needles::Needles;
use super::record::{self, Record, is_record};
use super::relevance::{concerns_rdma, objects_in, rdma_device_in};
use super::state::DumpReader;
use super::{Boot, Evidence, LeftOut, Source, fold, own};
use crate::check::ledger::has_word_of_fabric;
use crate::check::ledger::words::{crashed, is_program, says_failure, says_recovery};
use crate::graph::consumers::uses_fabric_by_name;

use kept::Word;
use lines::{JOINED, LINE_LIMIT, clean, joint, line_around, lines, window};
use part::Part;

/// How much of a source is taken apart line by line.
const CLOSELY: u64 = 2 * 1024 * 1024;
/// Bytes read at once.
const BLOCK: usize = 1024 * 1024;
/// Netdevs and PCI functions whose names are kept.
const NAMED: usize = 4096;
/// Boots that are judged, the newest.
const BOOTS: usize = 64;

/// Reads sources into [`Evidence`].
#[derive(Debug)]
pub struct Intake {
    needles: &'static Needles,
    sources: Vec<Source>,
    state: DumpReader,
    parts: Vec<Part>,
    /// The part that lines belong to, if the source has one yet.
    part: Option<usize>,
    /// Lines kept in all.
    kept: usize,
    /// What is not kept: whole boots, and sources of the newest one.
    left_out: LeftOut,
    /// The needles of the line that is looked at.
    words: Vec<Word>,
    /// Netdevs of adapters, by the names that they were given.
    netdevs: BTreeSet<Box<str>>,
    source: u16,
    /// The record that may go on on the next line.
    open: Option<Open>,
    export: Option<Export>,
    /// First PCI enumeration of each function in this boot, to tell boots apart.
    enumerated: Vec<(Box<str>, When)>,
    /// The last kernel time seen.
    last_monotonic: Option<Moment>,
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
    /// What has printed it, if it is no log record.
    program: Box<str>,
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
            sources: Vec::new(),
            state: DumpReader::default(),
            parts: Vec::new(),
            part: None,
            kept: 0,
            left_out: LeftOut::default(),
            words: Vec::new(),
            netdevs: BTreeSet::new(),
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
        self.source = u16::try_from(self.sources.len()).unwrap_or(u16::MAX);
        self.sources.push(Source { name: name.to_owned(), ..Source::default() });
        // Most files of an archive have nothing to tell.
        if let Some(at) = self.part.take()
            && self.parts.get(at).is_some_and(|part| part.kept.len() == 0 && part.id.is_none())
        {
            self.parts.remove(at);
        }
        self.last_monotonic = None;
        self.enumerated.clear();
        self.state.begin(name);
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
        if let (Err(problem), Some(source)) = (told, self.sources.last_mut()) {
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
        if let Some(source) = self.sources.last_mut() {
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
                    if let Some(source) = self.sources.last_mut() {
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
        if let Some(source) = self.sources.last_mut() {
            source.lines = line;
        }
    }

    pub fn finish(mut self) -> Evidence {
        let names: Vec<String> = self.sources.iter().map(|s| s.name.clone()).collect();
        for part in &mut self.parts {
            part.left_out = part.kept.left_out;
            part.events = part.kept.take().filter_map(Held::event).collect();
            let walls = |e: &Event| e.when.wall;
            let last = part.events.iter().rev().find_map(walls);
            part.wall = part.wall.map(|(first, seen)| (first, last.map_or(seen, |l| l.max(seen))));
        }
        order::add_years(&mut self.parts);
        order::add_zone(&mut self.parts);
        order::cut(&mut self.parts);
        let order =
            order::order(&self.parts, &names.iter().map(String::as_str).collect::<Vec<_>>());
        let too_many = order.len().saturating_sub(BOOTS);
        let mut boots: Vec<Boot> = Vec::new();
        for of_boot in order.into_iter().skip(too_many) {
            let take = |at: usize| self.parts.get_mut(at).map(std::mem::take);
            boots.push(Boot::of(of_boot.into_iter().filter_map(take).collect()));
        }
        if boots.is_empty() {
            boots.push(Boot::default());
        }
        if let Some(oldest) = boots.first_mut() {
            oldest.left_out.boots = self.left_out.boots + too_many;
        }
        if let Some(last) = boots.last_mut() {
            last.left_out.words |= self.left_out.words;
            last.state = self.state.finish();
        }
        if let Some((source, record)) = self.record.take() {
            record.attach(&mut boots, source);
        }
        if let Some(last) = boots.last_mut() {
            last.accounts = self.accounts;
        }
        for boot in &mut boots {
            boot.names.clone_from(&names);
            boot.looked_for = Some(self.needles);
        }
        Evidence { sources: self.sources, boots }
    }

    /// Count `read` bytes; how many there were before.
    fn consume(&mut self, read: usize) -> u64 {
        let Some(source) = self.sources.last_mut() else { return 0 };
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
        // Up to where lines are numbered and taken.
        let mut taken = 0;
        let mut hits = found(finder, block).into_iter().peekable();
        while let Some((at, word)) = hits.next() {
            if at < taken {
                continue;
            }
            let range = line_around(block, at);
            self.words.clear();
            self.words.push(word);
            while let Some((_, word)) = hits.next_if(|&(at, _)| at < range.end) {
                self.words.push(word);
            }
            // Whether a line with a general word says a failure is told where it is taken apart.
            let has_enough =
                |&word: &Word| needles.general(word).is_none() && self.has_enough_of(word);
            if self.words.iter().all(has_enough) {
                // Most hits in a long log are of kinds of which enough is kept: such a line is
                // taken apart only if it is one of the last.
                self.close();
                *line += newlines(block.get(taken..range.start)) + 1;
                self.hold(block.get(range.clone()).unwrap_or_default(), *line);
                taken = (range.end + 1).min(block.len());
                continue;
            }
            let window = window(block, at);
            let start = window.start.max(taken);
            if start > taken {
                self.gap();
            }
            *line += newlines(block.get(taken..start));
            for text in lines(block.get(start..window.end).unwrap_or_default()) {
                *line += 1;
                self.line(text, *line);
            }
            taken = window.end;
        }
        if taken < block.len() {
            self.gap();
            *line += newlines(block.get(taken..));
        }
    }

    /// True if as many lines of needle `pattern` are kept of this boot as may be.
    fn has_enough_of(&self, pattern: usize) -> bool {
        self.current().is_some_and(|part| part.kept.has_enough_of(pattern))
    }

    /// Keep `line` as it is, in place of older ones with its words.
    fn hold(&mut self, line: &[u8], number: u64) {
        let line = line.get(..LINE_LIMIT).unwrap_or(line);
        let held = Held::Line(Origin { source: self.source, line: number }, line.into());
        self.keep(line, None, held);
    }

    /// Keep a line with this `text` for its `words`, and for the objects that it names, `unit`
    /// among them.
    fn keep(&mut self, text: &[u8], unit: Option<&str>, held: Held) {
        self.words.sort_unstable();
        self.words.dedup();
        let objects = objects_in(text, &self.netdevs).chain(unit);
        let Some(part) = self.part.and_then(|at| self.parts.get_mut(at)) else { return };
        let before = part.kept.len();
        part.kept.put(&self.words, objects, held);
        self.kept = self.kept + part.kept.len() - before;
        self.make_room();
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
            // What by itself reports a failure of the fabric goes on from nothing.
            && !(says_failure(head.text)
                && (has_word_of_fabric(head.text)
                    || objects_in(head.text, &self.netdevs).next().is_some()))
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
        match begins_record {
            true => self.state.record(),
            false => {
                self.state.line(unquoted(&text), Origin { source: self.source, line: number });
            }
        }
        let program = self.state.program().into();
        let last = text.clone();
        self.open = Some(Open { line: number, program, last, text, begins_record, lines: 1 });
    }

    /// The open record is whole.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let Header { when, program, text, level, .. } = header(&open.text);
        if text.is_empty() {
            return;
        }
        let kind = event::kind(program, text);
        let program = if open.begins_record { program } else { &open.program };
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
        let finder = self.needles.finder.as_ref();
        let hits = finder.iter().flat_map(|finder| finder.find_overlapping_iter(text));
        self.words.clear();
        let mut general = None;
        for pattern in hits.map(|hit| hit.pattern().as_usize()) {
            match self.needles.general(pattern) {
                Some(word) => general = Some(word),
                None => self.words.push(pattern),
            }
        }
        let is_of_tool = is_program(program) || crashed(text).is_some_and(is_program);
        // The needles of netdevs have what stands before these in a line.
        let head = text.split([':', ' ']).next().unwrap_or_default();
        if is_of_tool || is_ipoib_name(head) || self.netdevs.contains(head) {
            general = self.needles.general(Word::MAX);
        }
        // What a tool shows of the state of ports is read as that.
        let tells = |text| says_failure(text) || !is_of_tool && says_recovery(text);
        self.words.extend(general.filter(|_| tells(text)));
        if self.words.is_empty() {
            let shared = kind != Kind::Other || level == Some(Level::Error) && concerns_rdma(text);
            if !shared && finder.is_some() && !(general.is_some() && self.names_anew(text)) {
                return;
            }
            self.words.push(Word::MAX);
        }
        if let Kind::NetdevRenamed { to, .. } = &kind
            && event::function(text).is_some()
            && self.netdevs.len() < NAMED
        {
            self.netdevs.insert(to.clone());
        }
        let origin = Origin { source: self.source, line: number };
        let [program, unit, text] = [program, unit, text].map(Box::from);
        let event = Event { origin, when, program, unit, text, level, kind };
        let unit = fold::unit_name(&event);
        // Units of which there is one for each connection are many.
        let is_one = uses_fabric_by_name(&unit) || !unit.contains(['@', ' ']);
        let is_known = || self.current().is_some_and(|part| part.kept.knows(&unit));
        let counts = matches!(event.kind, Kind::UnitFailed(_)) && is_one
            || !unit.is_empty() && (uses_fabric_by_name(&unit) || is_known());
        let text = event.text.clone();
        self.keep(text.as_bytes(), counts.then_some(&unit), Held::Event(Box::new(event)));
    }

    /// True if `text` is the first of this part that names the fabric, or that tells of a PCI
    /// function that it is of the fabric.
    fn names_anew(&mut self, text: &str) -> bool {
        let Some(part) = self.part.and_then(|at| self.parts.get_mut(at)) else { return false };
        let function = fold::lines::driven(text)
            .or_else(|| rdma_device_in(text).and_then(|_| event::function(text)));
        let names_it = || has_word_of_fabric(text) || concerns_rdma(text);
        let is_named = function.is_some()
            || part.named.is_empty() && names_it() && !text.contains("Modules linked in");
        is_named
            && part.named.len() < NAMED
            && part.named.insert(function.unwrap_or_default().into())
    }

    /// True if something is kept of `entry`, unless there is too much of its kind.
    pub fn matters(needles: &Needles, entry: &Entry) -> bool {
        let has_needle = |text: &str| needles.finder.as_ref().is_none_or(|f| f.is_match(text));
        own::by_id(&entry.id, entry.exit, &entry.message).is_some()
            || has_needle(&entry.message)
            || entry.level == Some(Level::Error) && concerns_rdma(&entry.message)
            || entry.message.lines().any(|text| event::kind(&entry.program, text) != Kind::Other)
    }
}

/// A line that is kept.
#[derive(Debug)]
enum Held {
    /// As it stands in a log.
    Line(Origin, Box<[u8]>),
    /// Taken apart.
    Event(Box<Event>),
}

impl Held {
    fn event(self) -> Option<Event> {
        let (origin, line) = match self {
            Self::Event(event) => return Some(*event),
            Self::Line(origin, line) => (origin, clean(&line)),
        };
        let Header { when, program, text, level, .. } = header(&line);
        let kind = event::kind(program, text);
        let [program, unit, text] = [program, "", text].map(Box::from);
        let event = Event { origin, when, program, unit, text, level, kind };
        (!event.text.is_empty()).then_some(event)
    }
}

/// Where in `block` the words of `finder` begin, and which they are. Its halves are searched at
/// the same time: this is most of what a long log costs.
fn found(finder: &AhoCorasick, block: &[u8]) -> Vec<(usize, Word)> {
    let middle = block.get(..block.len() / 2).unwrap_or_default();
    // No word goes over the end of a line.
    let half = memrchr(b'\n', middle).map_or(0, |at| at + 1);
    let (first, second) = block.split_at(half);
    let words = |of: &[u8], before: usize| -> Vec<(usize, Word)> {
        let hits = finder.find_overlapping_iter(of);
        hits.map(|hit| (before + hit.start(), hit.pattern().as_usize())).collect()
    };
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, || words(second, half));
        let mut all = words(first, 0);
        let rest = other.ok().and_then(|thread| thread.join().ok());
        all.extend(rest.unwrap_or_else(|| words(second, half)));
        all
    })
}

/// How many lines end in `block`.
fn newlines(block: Option<&[u8]>) -> u64 {
    memchr_iter(b'\n', block.unwrap_or_default()).count() as u64
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod guards;
