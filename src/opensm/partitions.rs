//! `partitions.conf`: the partitions that opensm would make of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::ops::Range;

use serde::Serialize;

use super::lines::{LONGEST, Lines};
use super::{Fault, FaultKind, count, flags, number, shown};
use crate::names::Membership;
use flags::{Group, Stated};

/// What the file is judged by, beside itself.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The P_Keys of IPoIB children of this host, without the membership bit, and the
    /// interfaces.
    pub children: BTreeMap<u16, String>,
    /// `allow_both_pkeys` is TRUE in opensm.conf.
    pub allows_both: bool,
    /// The port GUIDs of the whole fleet, where they are known.
    pub guids: Option<BTreeSet<u64>>,
}

/// What opensm would make of a file.
#[derive(Debug, Clone, Default)]
pub struct Read {
    /// In the order in which they are defined; none of a file that is thrown away.
    pub partitions: Vec<Partition>,
    /// What is not taken as it is meant, in the order of the file.
    pub faults: Vec<Fault>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Partition {
    /// Its name; the first that it was given.
    name: String,
    /// Its P_Key without the membership bit: `0x0010`.
    pkey: String,
    /// It has a broadcast group for IPoIB.
    ipoib: bool,
    /// Code of the MTU of that group.
    mtu: Option<u64>,
    /// Code of its rate.
    rate: Option<u64>,
    /// Its members, in the order in which they apply: the last mention of a port counts.
    members: Vec<Member>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Member {
    /// A port GUID, or ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF.
    port: String,
    /// full, limited or both, as it counts.
    membership: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    All,
    Cas,
    Switches,
    Routers,
    Own,
    Port(u64),
}

impl Who {
    /// Whom it means.
    fn words(self) -> String {
        match self {
            Self::All => "every port".to_owned(),
            Self::Cas => "every port of an adapter".to_owned(),
            Self::Switches => "every switch".to_owned(),
            Self::Routers => "every router".to_owned(),
            Self::Own => "its own port".to_owned(),
            Self::Port(guid) => format!("0x{guid:016x}"),
        }
    }
}

/// The names of members, in the order in which opensm compares.
const WORDS: [(&str, Who); 5] = [
    ("ALL", Who::All),
    ("ALL_CAS", Who::Cas),
    ("ALL_SWITCHES", Who::Switches),
    ("ALL_ROUTERS", Who::Routers),
    ("SELF", Who::Own),
];

const DEFAULT: u16 = 0x7fff;

pub fn read(content: &[u8], known: &Known) -> Read {
    let mut reader = Reader {
        known,
        content,
        lines: Lines::new(content),
        made: vec![Made::new(b"Default".to_vec(), DEFAULT)],
        by_key: BTreeMap::from([(DEFAULT, 0)]),
        by_name: BTreeMap::from([(b"Default".to_vec(), 0)]),
        last_generated: 0,
        open: None,
        defined: false,
        faults: Vec::new(),
    };
    let stands = reader.all();
    reader.told(stands)
}

/// A partition while the file is read.
struct Made {
    name: Vec<u8>,
    pkey: u16,
    group: Option<Group>,
    /// The definition that has made the group.
    group_at: Range<usize>,
    /// The first definition; none of the one that opensm always makes.
    head: Option<Range<usize>>,
    /// Flags of a group, of definitions that have not made it.
    stated: Vec<Stated>,
    last: BTreeMap<Who, (Membership, Range<usize>)>,
    members: Vec<(Who, Membership)>,
}

impl Made {
    fn new(name: Vec<u8>, pkey: u16) -> Self {
        Self {
            name,
            pkey,
            group: None,
            group_at: 0..0,
            head: None,
            stated: Vec::new(),
            last: BTreeMap::new(),
            members: Vec::new(),
        }
    }

    fn number(&self) -> String {
        format!("0x{:04x}", self.pkey)
    }

    /// What is wrong if all lines together make only limited members. A line that makes opensm's
    /// own port a full one says that the others shall reach that port alone.
    fn without_full_member(&self) -> Option<Fault> {
        let is_full = |(who, (membership, _)): (&Who, &(Membership, _))| {
            *membership != Membership::Limited && !matches!(who, Who::Switches | Who::Routers)
        };
        if self.last.iter().any(is_full) {
            return None;
        }
        let (_, span) = self.last.values().min_by_key(|(_, span)| span.start)?;
        let consequence = format!(
            "opensm would make no port of a host a full member of {}: limited members do not reach each other",
            self.number()
        );
        let help = match self.last.contains_key(&Who::All) {
            true => {
                "write ALL=full ; or, if all shall reach opensm's own port alone: ALL=limited, SELF=full ;"
            }
            false => {
                "write =full behind a member that all others shall reach, or defmember=full before the colon"
            }
        };
        let label = "limited, as all others are";
        Some(Fault::new(FaultKind::NoFullMember, span.clone(), label, consequence).help(help))
    }
}

/// A definition that has not ended.
struct Open {
    /// Its partition, by the place in the list.
    at: usize,
    flags: flags::Flags,
    /// It has a line that begins with mgid.
    has_mgid: bool,
}

/// The file is not read any further.
struct Stop;

struct Reader<'a> {
    known: &'a Known,
    content: &'a [u8],
    lines: Lines<'a>,
    made: Vec<Made>,
    by_key: BTreeMap<u16, usize>,
    /// Of the partitions of one name, the one that opensm finds.
    by_name: BTreeMap<Vec<u8>, usize>,
    last_generated: u16,
    open: Option<Open>,
    defined: bool,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    /// True if opensm keeps what it has read.
    fn all(&mut self) -> bool {
        while self.lines.next() {
            self.judge_line();
            if let Some(comment) = self.lines.find(0, b'#') {
                self.lines.cut(comment);
            }
            if self.line().is_err() {
                return false;
            }
        }
        self.close();
        true
    }

    /// What is wrong with a line as such.
    fn judge_line(&mut self) {
        let line = self.lines.line();
        if line.len() >= LONGEST {
            let span = self.lines.span(&(LONGEST - 1..LONGEST));
            self.fault(
                FaultKind::LineTooLong,
                span,
                "opensm's buffer ends here",
                format!("opensm would cut the line after {LONGEST} bytes, and read its rest as another line"),
            )
            .help = Some("end the line after a comma, and continue on the next".to_owned());
        }
        let comment = line.iter().position(|b| *b == b'#').unwrap_or(line.len());
        if let Some(at) = line.iter().take(comment).position(|b| *b == 0) {
            let span = self.lines.span(&(at..at + 1));
            self.fault(
                FaultKind::NulByte,
                span,
                "byte 0",
                "opensm would not read the rest of this line",
            );
        }
    }

    fn line(&mut self) -> Result<(), Stop> {
        let mut at = 0;
        loop {
            at = self.lines.skip_blanks(at);
            if self.lines.at(at) == 0 {
                return Ok(());
            }
            let end = self.lines.find(at, b';');
            if let Some(end) = end {
                self.lines.cut(end);
            }
            at += self.statement(at)?;
            if end.is_none() {
                return Ok(());
            }
            self.close();
        }
    }

    /// Reads what stands up to the next `;` or the end of the line, and gives how far opensm
    /// goes on: it may be behind that end.
    fn statement(&mut self, start: usize) -> Result<usize, Stop> {
        let mut at = start;
        if matches!(self.lines.at(at), b'\t' | b'\n' | 0) {
            at += 1;
        }
        if self.open.is_none() {
            at = self.head(at)?;
        }
        loop {
            let comma = self.lines.find(at, b',');
            if let Some(comma) = comma {
                self.lines.cut(comma);
            }
            let token = self.lines.token(at);
            at += token.step;
            if self.lines.text(&token.name) == b"mgid" {
                return Ok(at + self.mgid(at, &token.name, token.value)? - start);
            }
            self.member(&token.name, token.value)?;
            if comma.is_none() {
                return Ok(at - start);
            }
        }
    }

    /// `NAME[=PKEY][,FLAG[=VALUE]]...:`, which ends on the line on which it begins.
    fn head(&mut self, start: usize) -> Result<usize, Stop> {
        let Some(colon) = self.lines.find(start, b':') else {
            let text = start..self.lines.end(start);
            return Err(self.rejected(&text, "no definition: no colon follows on this line"));
        };
        self.lines.cut(colon);
        let mut more = self.lines.find(start, b',');
        if let Some(comma) = more {
            self.lines.cut(comma);
        }
        let token = self.lines.token(start);
        let mut at = start + token.step;
        let mut flags = flags::Flags::new();
        while more.is_some() {
            more = self.lines.find(at, b',');
            if let Some(comma) = more {
                self.lines.cut(comma);
            }
            let flag = self.lines.token(at);
            at += flag.step;
            flags.header(&self.lines, &flag, &mut self.faults);
        }
        let made = self.partition(&token.name, token.value)?;
        self.defined = true;
        let head = self.lines.span(&(start..colon));
        let Some(partition) = self.made.get_mut(made) else { return Err(Stop) };
        partition.head.get_or_insert_with(|| head.clone());
        if flags.is_ipoib && partition.group.is_none() && flags.group.is_made() {
            partition.group = Some(flags.group);
            partition.group_at = head;
            flags.makes_group = true;
        }
        self.open = Some(Open { at: made, flags, has_mgid: false });
        Ok(at)
    }

    /// The partition that a definition is of.
    fn partition(
        &mut self,
        name: &Range<usize>,
        value: Option<Range<usize>>,
    ) -> Result<usize, Stop> {
        let is_number = value.is_none() && self.lines.at(name.start).is_ascii_digit();
        let text = self.lines.text(name);
        let (id, name_text) = match value {
            Some(value) => (Some(value), Some(text)),
            None if is_number => (Some(name.clone()), None),
            None => (None, Some(text)),
        };
        self.judge_name(name, name_text.as_deref());
        let mut pkey = 0;
        if let Some(id) = &id {
            let text = self.lines.text(id);
            let Some(number) = number::read(&text).filter(|number| number.whole) else {
                return Err(self.rejected(id, &format!("{:?} is not a number", shown(&text))));
            };
            pkey = u16::try_from(number.value & 0x7fff).unwrap_or_default();
            self.judge_pkey(id, &text, number);
        }
        if pkey == 0 {
            let known = name_text.as_ref().and_then(|name| self.by_name.get(name));
            if let Some(found) = known {
                return Ok(*found);
            }
            pkey = self.generated(name)?;
            let span = self.lines.span(id.as_ref().unwrap_or(name));
            let label = match id {
                Some(_) => "0 is no P_Key",
                None => "no P_Key, and no partition of this name before",
            };
            self.fault(
                FaultKind::PkeyMadeUp,
                span,
                label,
                format!("opensm would take the first free P_Key, 0x{pkey:04x} now, and another when definitions are added before this one"),
            )
            .help = Some("write the P_Key behind the name: NAME=0x8010".to_owned());
        }
        if let Some(found) = self.by_key.get(&pkey) {
            return Ok(*found);
        }
        let mut name = name_text.filter(|name| !name.is_empty()).unwrap_or_default();
        // char name[32]
        name.truncate(31);
        let at = self.made.len();
        self.by_key.insert(pkey, at);
        // opensm looks at all partitions, in the order of the bytes on the wire.
        let earlier = self.by_name.get(&name).and_then(|other| self.made.get(*other));
        if earlier.is_none_or(|other| pkey.swap_bytes() < other.pkey.swap_bytes()) {
            self.by_name.insert(name.clone(), at);
        }
        self.made.push(Made::new(name, pkey));
        Ok(at)
    }

    fn generated(&mut self, name: &Range<usize>) -> Result<u16, Stop> {
        while self.last_generated < DEFAULT - 1 {
            self.last_generated += 1;
            if !self.by_key.contains_key(&self.last_generated) {
                return Ok(self.last_generated);
            }
        }
        Err(self.rejected(name, "no P_Key is left for it"))
    }

    fn judge_name(&mut self, at: &Range<usize>, name: Option<&[u8]>) {
        const NAMES: [&str; 6] =
            ["Default", "ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "SELF"];
        let Some(Ok(name)) = name.map(std::str::from_utf8) else { return };
        let plain = name.trim_matches(['"', '\'']).replace('-', "_");
        if let Some(meant) = NAMES.iter().find(|own| **own == plain && **own != name) {
            let span = self.lines.span(at);
            self.fault(
                FaultKind::NameAsText,
                span,
                format!("not {meant}"),
                "opensm would take quotes and dashes as part of the name",
            )
            .help = Some(format!("write {meant}"));
        }
    }

    fn judge_pkey(&mut self, at: &Range<usize>, text: &[u8], number: number::Number) {
        let span = self.lines.span(at);
        if number.value > 0xffff {
            let kept = number.value & 0xffff;
            self.fault(
                FaultKind::PkeyCut,
                span,
                "more than 16 bits",
                format!("opensm would cut the P_Key {} to 0x{kept:04x}", shown(text)),
            );
        } else if number.is_octal {
            self.octal(span, text, number.value);
        }
    }

    fn octal(&mut self, span: Range<usize>, text: &[u8], value: u64) {
        let text = shown(text);
        self.fault(
            FaultKind::Octal,
            span,
            "a number that begins with 0 is octal",
            format!("opensm would read {text} as 0x{value:x}"),
        )
        .help = Some(format!("write 0x{text}"));
    }

    /// A member of the open definition.
    fn member(&mut self, name: &Range<usize>, value: Option<Range<usize>>) -> Result<(), Stop> {
        let text = self.lines.text(name);
        if b"NONE".starts_with(&text) {
            return Ok(());
        }
        let Some(mut membership) = self.open.as_ref().map(|open| open.flags.membership) else {
            return Ok(());
        };
        let word = value.as_ref().map(|value| self.lines.text(value));
        if let Some(word) = &word {
            membership = flags::membership(word).unwrap_or(Membership::Limited);
        }
        let mut fitting = WORDS.iter().filter(|(word, _)| word.as_bytes().starts_with(&text));
        let who = match fitting.next() {
            Some((word, who)) => {
                if fitting.next().is_some() && text != word.as_bytes() {
                    let span = self.lines.span(name);
                    self.faults.push(flags::abbreviation(span, &text, word));
                }
                *who
            }
            None => Who::Port(self.guid(name, &text)?),
        };
        if let (Some(value), Some(word)) = (value, word) {
            self.judge_membership(&value, name, &word);
        }
        if membership == Membership::Both && !self.known.allows_both {
            let span = self.lines.span(name);
            self.fault(
                FaultKind::BothNotAllowed,
                span,
                "both",
                "opensm would take both for full, as allow_both_pkeys is not TRUE in opensm.conf",
            );
            membership = Membership::Full;
        }
        self.add(who, membership, self.lines.span(name));
        Ok(())
    }

    fn judge_membership(&mut self, at: &Range<usize>, name: &Range<usize>, word: &[u8]) {
        let member = shown(&self.lines.text(name));
        if word.is_empty() {
            let span = self.lines.span(&(name.start..at.end.max(name.end + 1)));
            self.fault(
                FaultKind::MembershipEmpty,
                span,
                "nothing behind =",
                format!("opensm would make {member} a full member"),
            );
        } else if flags::membership(word).is_none() {
            let span = self.lines.span(at);
            let fault = self.fault(
                FaultKind::MembershipUnknown,
                span,
                "not full, limited or both",
                format!("opensm would make {member} a limited member"),
            );
            fault.help = line_end_help(word);
        }
    }

    fn guid(&mut self, at: &Range<usize>, text: &[u8]) -> Result<u64, Stop> {
        let number = number::read(text).filter(|number| number.whole && number.value != 0);
        let Some(number) = number else {
            return Err(self.rejected_member(at, text));
        };
        let span = self.lines.span(at);
        if number.is_wrapped {
            self.fault(
                FaultKind::GuidOutOfRange,
                span,
                "not 64 bits",
                format!("opensm would look for the port 0x{:016x}", number.value),
            );
        } else if number.is_octal {
            self.octal(span, text, number.value);
        } else if number.is_decimal && text.len() == 16 {
            self.fault(
                FaultKind::GuidDecimal,
                span,
                "decimal, as 0x is missing",
                format!("opensm would look for the port 0x{:016x}", number.value),
            )
            .help = Some(format!("write 0x{}", shown(text)));
        } else if self.known.guids.as_ref().is_some_and(|all| !all.contains(&number.value)) {
            self.fault(
                FaultKind::GuidUnknown,
                span,
                "of no host of the fleet",
                "opensm would ignore this member as long as no port has this GUID",
            );
        }
        Ok(number.value)
    }

    fn add(&mut self, who: Who, membership: Membership, span: Range<usize>) {
        let Some(open) = &self.open else { return };
        let Some(partition) = self.made.get_mut(open.at) else { return };
        partition.members.push((who, membership));
        let covered = |other: &Who| match who {
            Who::All => true,
            Who::Cas => matches!(other, Who::Cas | Who::Own | Who::Port(_)),
            _ => *other == who,
        };
        // Of many, the lost are looked for only where all are covered.
        let before: Vec<_> = match who {
            Who::All | Who::Cas => {
                let (out, rest) = std::mem::take(&mut partition.last)
                    .into_iter()
                    .partition::<BTreeMap<_, _>, _>(|(other, _)| covered(other));
                partition.last = rest;
                out.into_iter().collect()
            }
            _ => partition.last.remove_entry(&who).into_iter().collect(),
        };
        partition.last.insert(who, (membership, span.clone()));
        let lost = before.iter().find(|(_, (other, _))| *other != membership);
        let same = before.iter().find(|(other, _)| *other == who);
        if let Some((_, (other, place))) = lost {
            let fault = Fault::new(
                FaultKind::MemberOverridden,
                span,
                format!("{membership} here"),
                format!(
                    "opensm would make {} a {membership} member: the last mention of a port counts",
                    who.words()
                ),
            );
            let label = match other {
                Membership::Full => "full here",
                Membership::Limited => "limited here",
                Membership::Both => "both here",
            };
            let help = match who {
                Who::All | Who::Cas => "write the exceptions behind it",
                _ => "remove one of the two",
            };
            self.faults.push(fault.also(place.clone(), label).help(help));
        } else if let Some((_, (_, place))) = same {
            let consequence = format!("opensm would take {} once", who.words());
            let fault = Fault::new(FaultKind::MemberTwice, span, "again", consequence);
            self.faults.push(fault.also(place.clone(), "the first time"));
        }
    }

    /// A multicast group; `at` is where its flags begin. Gives their length.
    fn mgid(
        &mut self,
        at: usize,
        name: &Range<usize>,
        value: Option<Range<usize>>,
    ) -> Result<usize, Stop> {
        let Some(value) = value else {
            let span = self.lines.span(name);
            self.fault(FaultKind::Crash, span, "no GID follows", "opensm would crash");
            return Err(Stop);
        };
        let Some(open) = &mut self.open else { return Ok(0) };
        open.has_mgid = true;
        let inherited = open.flags.group;
        let text = self.lines.text(&value);
        let gid = std::str::from_utf8(&text).ok().and_then(|t| t.parse::<Ipv6Addr>().ok());
        let Some(gid) = gid.filter(|gid| gid.octets()[0] == 0xff) else {
            let span = self.lines.span(&value);
            self.fault(
                FaultKind::GroupLeftOut,
                span,
                "not the GID of a multicast group",
                "opensm would not make this group, and would read its flags as something else",
            );
            return Ok(0);
        };
        let pkey = self.made.get(open.at).map_or(0, |partition| partition.pkey | 0x8000);
        // What stands behind is of the comment, or of another line.
        let end = self.lines.line();
        let end = end.iter().position(|b| *b == b'#').unwrap_or(end.len());
        let (group, step) = flags::of_mgid(&mut self.lines, at, end, inherited, &mut self.faults);
        let segments = gid.segments();
        let [_, signature, of, ..] = segments;
        if matches!(signature, 0x401b | 0x601b) {
            let broadcast = segments == [0xff12, 0x401b, 0xffff, 0, 0, 0, 0xffff, 0xffff];
            let problem = if !broadcast && of != 0 && of != pkey {
                Some(format!("its P_Key is not 0x{pkey:04x}"))
            } else if group.rate() != inherited.rate() {
                Some("another rate than the broadcast group".to_owned())
            } else if group.mtu() != inherited.mtu() {
                Some("another mtu than the broadcast group".to_owned())
            } else {
                None
            };
            if let Some(problem) = problem {
                let span = self.lines.span(&value);
                self.fault(
                    FaultKind::GroupLeftOut,
                    span,
                    problem,
                    "opensm would not make this group",
                );
            }
        }
        Ok(step)
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let Some(partition) = self.made.get_mut(open.at) else { return };
        if !open.flags.makes_group && !open.has_mgid {
            partition.stated.extend(open.flags.stated);
        }
    }

    fn fault(
        &mut self,
        kind: FaultKind,
        span: Range<usize>,
        label: impl Into<String>,
        consequence: impl Into<String>,
    ) -> &mut Fault {
        let at = self.faults.len();
        self.faults.push(Fault::new(kind, span, label, consequence));
        // One was pushed.
        self.faults.get_mut(at).unwrap_or_else(|| unreachable!("a fault"))
    }

    fn rejected_member(&mut self, at: &Range<usize>, text: &[u8]) -> Stop {
        let stop = self.rejected(at, &format!("{:?} is not a port GUID", shown(text)));
        let digits: String = text.iter().filter(|b| **b != b':').map(|b| char::from(*b)).collect();
        let is_hex = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let help = if is_hex {
            Some(format!("write 0x{digits}"))
        } else if self.has_colon_behind(at.start) {
            Some("end the definition before it with a semicolon".to_owned())
        } else {
            let own = WORDS.map(|(word, _)| word).join(", ");
            Some(format!(
                "write the GUID of a port, as `ibstat -p` prints it on the host of the port, or one of {own}"
            ))
        };
        if let Some(fault) = self.faults.last_mut()
            && fault.help.is_none()
        {
            fault.help = help;
        }
        stop
    }

    /// Another definition begins between `at` and the next semicolon of the line.
    fn has_colon_behind(&self, at: usize) -> bool {
        let rest = self.lines.line().get(at..).unwrap_or_default();
        rest.iter().take_while(|b| !matches!(b, b';' | b'#')).any(|b| *b == b':')
    }

    fn rejected(&mut self, at: &Range<usize>, label: &str) -> Stop {
        let all = definitions(self.content);
        let what = match all {
            0 => "this file".to_owned(),
            1 => "the partition of this file".to_owned(),
            _ => format!("all {} of this file", count(all, "partition")),
        };
        let consequence = format!(
            "opensm would throw away {what}; every port would be a full member of 0x7fff alone"
        );
        let is_behind = self.lines.is_behind(at.start);
        let span = self.lines.span(at);
        let (label, help) = match is_behind {
            true => (
                "opensm reads on behind this, in its memory of the lines before",
                Some("put the semicolon behind a member, neither alone nor behind an mgid without flags".to_owned()),
            ),
            false => (label, line_end_help(&self.lines.text(at))),
        };
        self.fault(FaultKind::Rejected, span, label, consequence).help = help;
        Stop
    }

    /// What is to be said when the whole file was read.
    fn told(mut self, stands: bool) -> Read {
        if stands && self.defined {
            self.judge_default();
            let without = self.made.iter().filter_map(Made::without_full_member);
            // It may come of a word that opensm misreads, or of a later ALL: that is said already.
            let is_cause = |fault: &Fault, of: &Fault| {
                matches!(fault.kind, FaultKind::MembershipUnknown | FaultKind::FlagValue)
                    || fault.span == of.span
            };
            let without = without.filter(|of| !self.faults.iter().any(|f| is_cause(f, of)));
            let without: Vec<Fault> = without.collect();
            self.faults.extend(without);
            let children = &self.known.children;
            for partition in &self.made {
                let Some(head) = &partition.head else { continue };
                let child = children.get(&partition.pkey);
                if let Some(child) = child.filter(|_| partition.group.is_none()) {
                    self.faults.push(
                        Fault::new(
                            FaultKind::ChildWithoutIpoib,
                            head.clone(),
                            "no ipoib",
                            format!("opensm would make no broadcast group: {} of this host's configuration would have no carrier", crate::names::harmless(child)),
                        )
                        .help("write ipoib behind the P_Key: NAME=0x8010,ipoib"),
                    );
                }
                let of = (partition.number(), partition.group.as_ref(), &partition.group_at);
                for stated in &partition.stated {
                    self.faults.extend(stated.judged(of.0.as_str(), of.1, of.2));
                }
            }
        }
        self.faults.sort_by_key(|fault| fault.span.start);
        let made = if stands { self.made } else { Vec::new() };
        let partitions = made.iter().filter(|partition| partition.head.is_some());
        Read { partitions: partitions.map(Partition::of).collect(), faults: self.faults }
    }

    fn judge_default(&mut self) {
        let first = self
            .made
            .iter()
            .filter_map(|partition| partition.head.clone())
            .min_by_key(|head| head.start);
        let has_default = self.made.first().is_some_and(|default| default.head.is_some());
        if let Some(first) = first.filter(|_| !has_default) {
            self.fault(
                FaultKind::DefaultMissing,
                first,
                "the file has no rule for 0x7fff",
                "opensm would make every port a limited member of the default partition, its own a full one, and make no broadcast group for ib0",
            )
            .help = Some("add a rule: Default=0x7fff,ipoib : ALL=full ; or, if that is meant: Default=0x7fff,ipoib : ALL=limited, SELF=full ;".to_owned());
        }
    }
}

impl Partition {
    fn of(made: &Made) -> Self {
        let member = |(who, membership): &(Who, Membership)| Member {
            port: match who {
                Who::Port(guid) => format!("0x{guid:016x}"),
                who => WORDS.iter().find(|(_, w)| w == who).map_or("", |(word, _)| word).to_owned(),
            },
            membership: match membership {
                Membership::Full => "full",
                Membership::Limited => "limited",
                Membership::Both => "both",
            },
        };
        Self {
            name: shown(&made.name),
            pkey: made.number(),
            ipoib: made.group.is_some(),
            mtu: made.group.as_ref().map(Group::mtu),
            rate: made.group.as_ref().map(Group::rate),
            members: made.members.iter().map(member).collect(),
        }
    }
}

/// How to get rid of the carriage return that `text` may have.
fn line_end_help(text: &[u8]) -> Option<String> {
    text.contains(&b'\r').then(|| {
        "the line ends with a carriage return, as on Windows: sed -i 's/\\r$//' FILE".to_owned()
    })
}

/// How many partitions the author of `content` has defined.
fn definitions(content: &[u8]) -> usize {
    let lines = content.split(|b| *b == b'\n');
    let plain = lines.map(|line| line.split(|b| *b == b'#').next().unwrap_or_default());
    let text = plain.collect::<Vec<_>>().join(&b'\n');
    let statements = text.split(|b| *b == b';').filter(|text| text.contains(&b':'));
    let heads = statements.filter_map(|text| text.split(|b| matches!(b, b':' | b',')).next());
    let keys = heads.map(|head| {
        let value = head.split(|b| *b == b'=').next_back().unwrap_or_default().trim_ascii();
        number::read(value).map_or_else(
            || String::from_utf8_lossy(value).into_owned(),
            |number| (number.value & 0x7fff).to_string(),
        )
    });
    keys.collect::<BTreeSet<_>>().len()
}
