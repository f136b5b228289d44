//! `partitions.conf`: the partitions that opensm would make of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::ops::Range;

use super::text::Text;
use super::{Fault, flags, number, shown};
use crate::model::opensm::{FaultKind, Member, Partition};
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

/// `char line[4096]`, of which `fgets()` fills one byte less than it is told.
const LONGEST: usize = 4094;

pub fn read(content: &[u8], known: &Known) -> Read {
    let mut reader = Reader {
        known,
        made: vec![Made::new(b"Default".to_vec(), DEFAULT)],
        by_key: BTreeMap::from([(DEFAULT, 0)]),
        by_name: BTreeMap::from([(b"Default".to_vec(), 0)]),
        last_generated: 0,
        open: None,
        defined: false,
        faults: Vec::new(),
    };
    let stands = reader.all(content).is_ok();
    reader.judged(stands)
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
        let is_host = |(who, _): &(&Who, _)| !matches!(who, Who::Switches | Who::Routers);
        let hosts = self.last.iter().filter(is_host).map(|(_, (_, span))| span);
        let (span, label) = match hosts.min_by_key(|span| span.start) {
            Some(span) => (span, "limited, as all others are"),
            // Another partition may be meant for switches alone.
            None if self.pkey == DEFAULT => {
                let all = self.last.values().map(|(_, span)| span);
                (all.min_by_key(|span| span.start)?, "no port of a host")
            }
            None => return None,
        };
        let consequence = format!(
            "opensm would make no port of a host a full member of {}: limited members do not reach each other",
            self.number()
        );
        let help = if self.last.contains_key(&Who::All) {
            "write ALL=full ; or, if all shall reach opensm's own port alone: ALL=limited, SELF=full ;"
        } else {
            "write =full behind a member that all others shall reach, or defmember=full before the colon"
        };
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
    /// Where it begins.
    start: usize,
}

/// The file is not read any further.
struct Stop;

struct Reader<'a> {
    known: &'a Known,
    made: Vec<Made>,
    by_key: BTreeMap<u16, usize>,
    /// The first partition of each name.
    by_name: BTreeMap<Vec<u8>, usize>,
    last_generated: u16,
    open: Option<Open>,
    defined: bool,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn all(&mut self, content: &[u8]) -> Result<(), Stop> {
        for line in Text::of(content).lines(LONGEST) {
            let text = line.before(b'\n');
            if text.bytes.len() >= LONGEST {
                self.fault(
                    FaultKind::LineTooLong,
                    text.split_at(LONGEST - 1).1,
                    "opensm's buffer ends here",
                    format!("opensm would cut the line after {LONGEST} bytes, and read its rest as another line"),
                )
                .help = Some("end the line after a comma, and continue on the next".to_owned());
            }
            let (text, comment) = text.cut(b'#');
            if let Some((read, _)) = text.split_once(0) {
                self.fault(
                    FaultKind::NulByte,
                    text.split_at(read.bytes.len()).1.split_at(1).0,
                    "byte 0",
                    "opensm would not read the rest of this line",
                );
            }
            self.line(text.before(0), comment)?;
        }
        self.close();
        Ok(())
    }

    fn line(&mut self, mut text: Text<'_>, comment: Option<Text<'_>>) -> Result<(), Stop> {
        while let Some((statement, behind)) = text.split_once(b';') {
            if statement.trimmed().is_empty() || self.statement(statement, None)? {
                let semicolon = text.split_at(statement.bytes.len()).1.split_at(1).0;
                let label = "opensm reads on behind this, in its memory of the lines before";
                let help = "put the semicolon behind a member, neither alone nor behind an mgid without flags";
                return Err(self.rejected(semicolon, label, Some(help.to_owned())));
            }
            self.close();
            text = behind;
        }
        if !text.trimmed().is_empty() {
            self.statement(text, comment)?;
        }
        Ok(())
    }

    /// Reads what stands up to a `;` or the end of the line. True if it ends with a multicast
    /// group without flags: opensm looks for these behind the end.
    fn statement(&mut self, text: Text<'_>, comment: Option<Text<'_>>) -> Result<bool, Stop> {
        let members = match self.open {
            Some(_) => text,
            None => self.head(text)?,
        };
        let mut behind = Some(members);
        while let Some(text) = behind {
            let (entry, more) = text.cut(b',');
            let (name, value) = entry.named();
            if name.bytes == b"mgid" {
                self.mgid(name, value, more, comment)?;
                return Ok(more.is_none());
            }
            self.member(name, value, text)?;
            behind = more;
        }
        Ok(false)
    }

    /// `NAME[=PKEY][,FLAG[=VALUE]]...:`, which ends on the line on which it begins. Gives what
    /// stands behind it.
    fn head<'t>(&mut self, text: Text<'t>) -> Result<Text<'t>, Stop> {
        let Some((head, members)) = text.split_once(b':') else {
            return Err(self.rejected(
                text.trimmed(),
                "no definition: no colon follows on this line",
                None,
            ));
        };
        let mut entries = head.split(b',');
        let (name, value) = entries.next().unwrap_or(head).named();
        let mut flags = flags::Flags::new();
        for entry in entries {
            flags.header(entry, &mut self.faults);
        }
        let made = self.partition(name, value)?;
        self.defined = true;
        let span = head.trim_start().span();
        let Some(partition) = self.made.get_mut(made) else { return Err(Stop) };
        partition.head.get_or_insert_with(|| span.clone());
        if flags.is_ipoib && partition.group.is_none() && flags.group.is_made() {
            partition.group = Some(flags.group);
            partition.group_at = span;
            flags.makes_group = true;
        }
        self.open = Some(Open { at: made, flags, has_mgid: false, start: head.span().start });
        Ok(members)
    }

    /// The partition that a definition is of.
    fn partition(&mut self, name: Text<'_>, value: Option<Text<'_>>) -> Result<usize, Stop> {
        let is_number = value.is_none() && name.bytes.first().is_some_and(u8::is_ascii_digit);
        let id = value.or(is_number.then_some(name));
        let title = if is_number { &[] } else { name.bytes };
        self.judge_name(name, title);
        let mut pkey = 0;
        if let Some(id) = id {
            let Some(number) = number::read(id.bytes).filter(|number| number.whole) else {
                return Err(self.rejected(id, &format!("{:?} is not a number", id.shown()), None));
            };
            pkey = u16::try_from(number.value & 0x7fff).unwrap_or_default();
            self.judge_pkey(id, number);
        }
        if pkey == 0 {
            if let Some(found) = self.by_name.get(title).filter(|_| !is_number) {
                return Ok(*found);
            }
            pkey = self.generated(name)?;
            let label = match id {
                Some(_) => "0 is no P_Key",
                None => "no P_Key, and no partition of this name before",
            };
            self.fault(
                FaultKind::PkeyMadeUp,
                id.unwrap_or(name),
                label,
                format!("opensm would take the first free P_Key, 0x{pkey:04x} now, and another when definitions are added before this one"),
            )
            .help = Some("write the P_Key behind the name: NAME=0x8010".to_owned());
        }
        if let Some(found) = self.by_key.get(&pkey) {
            return Ok(*found);
        }
        // char name[32]
        let title = title.get(..31).unwrap_or(title).to_vec();
        let at = self.made.len();
        self.by_key.insert(pkey, at);
        self.by_name.entry(title.clone()).or_insert(at);
        self.made.push(Made::new(title, pkey));
        Ok(at)
    }

    fn generated(&mut self, name: Text<'_>) -> Result<u16, Stop> {
        while self.last_generated < DEFAULT - 1 {
            self.last_generated += 1;
            if !self.by_key.contains_key(&self.last_generated) {
                return Ok(self.last_generated);
            }
        }
        Err(self.rejected(name, "no P_Key is left for it", None))
    }

    fn judge_name(&mut self, at: Text<'_>, name: &[u8]) {
        let Ok(name) = std::str::from_utf8(name) else { return };
        let plain = name.trim_matches(['"', '\'']).replace('-', "_");
        let own = WORDS.iter().map(|(word, _)| *word).chain(["Default"]);
        if let Some(meant) = own.into_iter().find(|own| *own == plain && *own != name) {
            self.fault(
                FaultKind::NameAsText,
                at,
                format!("not {meant}"),
                "opensm would take quotes and dashes as part of the name",
            )
            .help = Some(format!("write {meant}"));
        }
    }

    fn judge_pkey(&mut self, text: Text<'_>, number: number::Number) {
        if number.value > 0xffff {
            let kept = number.value & 0xffff;
            self.fault(
                FaultKind::PkeyCut,
                text,
                "more than 16 bits",
                format!("opensm would cut the P_Key {} to 0x{kept:04x}", text.shown()),
            );
        } else if number.is_octal {
            self.octal(text, number.value);
        }
    }

    fn octal(&mut self, text: Text<'_>, value: u64) {
        self.fault(
            FaultKind::Octal,
            text,
            "a number that begins with 0 is octal",
            format!("opensm would read {} as 0x{value:x}", text.shown()),
        )
        .help = Some(format!("write 0x{}", text.shown()));
    }

    /// A member of the open definition; `rest` begins with it and ends where the statement does.
    fn member(
        &mut self,
        name: Text<'_>,
        value: Option<Text<'_>>,
        rest: Text<'_>,
    ) -> Result<(), Stop> {
        if b"NONE".starts_with(name.bytes) {
            return Ok(());
        }
        let Some(mut membership) = self.open.as_ref().map(|open| open.flags.membership) else {
            return Ok(());
        };
        if let Some(word) = value {
            membership = flags::membership(word.bytes).unwrap_or(Membership::Limited);
        }
        let mut fitting = WORDS.iter().filter(|(word, _)| word.as_bytes().starts_with(name.bytes));
        let who = match fitting.next() {
            Some((word, who)) => {
                if fitting.next().is_some() && name.bytes != word.as_bytes() {
                    self.faults.push(flags::abbreviation(name, word));
                }
                *who
            }
            None => Who::Port(self.guid(name, rest)?),
        };
        if let Some(word) = value {
            self.judge_membership(word, name);
        }
        if membership == Membership::Both && !self.known.allows_both {
            self.fault(
                FaultKind::BothNotAllowed,
                name,
                "both",
                "opensm would take both for full, as allow_both_pkeys is not TRUE in opensm.conf",
            );
            membership = Membership::Full;
        }
        self.add(who, membership, name.span());
        Ok(())
    }

    fn judge_membership(&mut self, word: Text<'_>, member: Text<'_>) {
        if word.is_empty() {
            let consequence = format!("opensm would make {} a full member", member.shown());
            self.fault(FaultKind::MembershipEmpty, member, "nothing behind =", consequence);
        } else if flags::membership(word.bytes).is_none() {
            let consequence = format!("opensm would make {} a limited member", member.shown());
            let label = "not full, limited or both";
            self.fault(FaultKind::MembershipUnknown, word, label, consequence).help =
                line_end_help(word.bytes);
        }
    }

    fn guid(&mut self, text: Text<'_>, rest: Text<'_>) -> Result<u64, Stop> {
        let number = number::read(text.bytes).filter(|number| number.whole && number.value != 0);
        let Some(number) = number else {
            return Err(self.rejected_member(text, rest));
        };
        if number.is_wrapped {
            self.fault(
                FaultKind::GuidOutOfRange,
                text,
                "not 64 bits",
                format!("opensm would look for the port 0x{:016x}", number.value),
            );
        } else if number.is_octal {
            self.octal(text, number.value);
        } else if number.is_decimal && text.bytes.len() == 16 {
            self.fault(
                FaultKind::GuidDecimal,
                text,
                "decimal, as 0x is missing",
                format!("opensm would look for the port 0x{:016x}", number.value),
            )
            .help = Some(format!("write 0x{}", text.shown()));
        } else if self.known.guids.as_ref().is_some_and(|all| !all.contains(&number.value)) {
            self.fault(
                FaultKind::GuidUnknown,
                text,
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
        // A definition that adds groups to a partition has to name members again.
        let is_same = |(other, (_, place)): &&(Who, (_, Range<usize>))| {
            *other == who && place.start >= open.start
        };
        let same = before.iter().find(is_same);
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
            let help = match who {
                Who::All | Who::Cas => "write the exceptions behind it",
                _ => "remove one of the two",
            };
            self.faults.push(fault.also(place.clone(), format!("{other} here")).help(help));
        } else if let Some((_, (_, place))) = same {
            let consequence = format!("opensm would take {} once", who.words());
            let fault = Fault::new(FaultKind::MemberTwice, span, "again", consequence);
            self.faults.push(fault.also(place.clone(), "the first time"));
        }
    }

    /// A multicast group, with its flags; without flags, opensm looks for them in the comment.
    fn mgid(
        &mut self,
        name: Text<'_>,
        value: Option<Text<'_>>,
        flags: Option<Text<'_>>,
        comment: Option<Text<'_>>,
    ) -> Result<(), Stop> {
        let Some(value) = value else {
            self.fault(FaultKind::Crash, name, "no GID follows", "opensm would crash");
            return Err(Stop);
        };
        let Some(open) = &mut self.open else { return Ok(()) };
        open.has_mgid = true;
        let inherited = open.flags.group;
        let pkey = self.made.get(open.at).map_or(0, |partition| partition.pkey | 0x8000);
        let gid = std::str::from_utf8(value.bytes).ok().and_then(|t| t.parse::<Ipv6Addr>().ok());
        let Some(gid) = gid.filter(Ipv6Addr::is_multicast) else {
            self.fault(
                FaultKind::GroupLeftOut,
                value,
                "not the GID of a multicast group",
                "opensm would not make this group, and would read its flags as something else",
            );
            return Ok(());
        };
        let mut group = inherited.without_tclass();
        match (flags, comment) {
            (Some(flags), _) => group.take_all(flags, &mut self.faults),
            (None, Some(comment)) => self.faults.extend(flags::in_comment(comment)),
            (None, None) => {}
        }
        let segments = gid.segments();
        let [_, signature, of, ..] = segments;
        if matches!(signature, 0x401b | 0x601b) {
            let broadcast = segments == [0xff12, 0x401b, 0xffff, 0, 0, 0, 0xffff, 0xffff];
            let problem = if !broadcast && of != 0 && of != pkey {
                format!("its P_Key is not 0x{pkey:04x}")
            } else if group.rate() != inherited.rate() {
                "another rate than the broadcast group".to_owned()
            } else if group.mtu() != inherited.mtu() {
                "another mtu than the broadcast group".to_owned()
            } else {
                return Ok(());
            };
            let consequence = "opensm would not make this group";
            self.fault(FaultKind::GroupLeftOut, value, problem, consequence);
        }
        Ok(())
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
        at: Text<'_>,
        label: impl Into<String>,
        consequence: impl Into<String>,
    ) -> &mut Fault {
        let fault = Fault::new(kind, at.span(), label, consequence);
        self.faults.push(fault);
        self.faults.last_mut().unwrap_or_else(|| unreachable!("one was pushed"))
    }

    fn rejected_member(&mut self, text: Text<'_>, rest: Text<'_>) -> Stop {
        let digits: String =
            text.bytes.iter().filter(|b| **b != b':').map(|b| char::from(*b)).collect();
        let is_hex = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let help = if is_hex {
            format!("write 0x{digits}")
        } else if rest.split_once(b':').is_some() {
            "end the definition before it with a semicolon".to_owned()
        } else {
            let own = WORDS.map(|(word, _)| word).join(", ");
            format!(
                "write the GUID of a port, as `ibstat -p` prints it on the host of the port, or one of {own}"
            )
        };
        self.rejected(text, &format!("{:?} is not a port GUID", text.shown()), Some(help))
    }

    fn rejected(&mut self, at: Text<'_>, label: &str, help: Option<String>) -> Stop {
        let consequence = "opensm would throw away the whole file; every port would be a full member of 0x7fff alone";
        self.fault(FaultKind::Rejected, at, label, consequence).help =
            line_end_help(at.bytes).or(help);
        Stop
    }

    /// What is to be said when the whole file was read.
    fn judged(mut self, stands: bool) -> Read {
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
            self.faults.push(
                Fault::new(
                    FaultKind::DefaultMissing,
                    first,
                    "the file has no rule for 0x7fff",
                    "opensm would make every port a limited member of the default partition, its own a full one, and make no broadcast group for ib0",
                )
                .help("add a rule: Default=0x7fff,ipoib : ALL=full ; or, if that is meant: Default=0x7fff,ipoib : ALL=limited, SELF=full ;"),
            );
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
            membership: *membership,
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
