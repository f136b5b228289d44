//! The flags of a definition, and those of a multicast group.

use std::ops::Range;

use super::text::Text;
use super::{Fault, FaultKind, number};
use crate::names::{GroupMtu, GroupRate, Membership};

/// Flags of a group, in the order in which opensm compares them.
const GROUP: [&str; 7] = ["mtu", "rate", "scope", "Q_Key", "TClass", "sl", "FlowLabel"];
const MTU: usize = 0;
const RATE: usize = 1;
const SCOPE: usize = 2;
const Q_KEY: usize = 3;
const TCLASS: usize = 4;
const SL: usize = 5;
const FLOW_LABEL: usize = 6;
/// What follows them; `indx0` is compared as a whole.
const OTHER: [&str; 3] = ["ipoib", "defmember", "indx0"];

/// The values of a group's flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group([u64; 7]);

/// A flag of a definition that has not made the group.
#[derive(Debug, Clone)]
pub(super) struct Stated {
    flag: usize,
    value: u64,
    span: Range<usize>,
}

/// The flags of one definition.
#[derive(Debug, Clone)]
pub(super) struct Flags {
    pub group: Group,
    pub is_ipoib: bool,
    /// The group is made by this definition.
    pub makes_group: bool,
    pub membership: Membership,
    pub stated: Vec<Stated>,
}

impl Group {
    pub(super) const fn mtu(&self) -> u64 {
        self.0[MTU]
    }

    pub(super) const fn rate(&self) -> u64 {
        self.0[RATE]
    }

    /// True if opensm makes a group with these.
    pub(super) fn is_made(&self) -> bool {
        is_mtu(self.mtu()) && is_rate(self.rate())
    }
}

const fn is_mtu(code: u64) -> bool {
    matches!(code, 1..=5)
}

const fn is_rate(code: u64) -> bool {
    matches!(code, 2..=22)
}

impl Flags {
    pub(super) const fn new() -> Self {
        let mut values = [0; 7];
        values[MTU] = 4;
        values[RATE] = 3;
        Self {
            group: Group(values),
            is_ipoib: false,
            makes_group: false,
            membership: Membership::Limited,
            stated: Vec::new(),
        }
    }

    /// Takes one flag of the head of a definition.
    pub(super) fn header(&mut self, entry: Text<'_>, faults: &mut Vec<Fault>) {
        let (name, value) = entry.named();
        let whole = entry.trimmed();
        if whole.is_empty() {
            return;
        }
        judge_abbreviation(name, faults);
        if let Some(flag) = group_flag(name.bytes) {
            let fault = self.group.take(flag, value, whole);
            if fault.is_none() && flag != SL {
                let value = self.group.0.get(flag).copied().unwrap_or_default();
                self.stated.push(Stated { flag, value, span: whole.span() });
            }
            faults.extend(fault);
        } else if b"ipoib".starts_with(name.bytes) {
            self.is_ipoib = true;
        } else if b"defmember".starts_with(name.bytes) {
            let word = value.map(|value| value.bytes).unwrap_or_default();
            let read = membership(word).filter(|_| value.is_some());
            self.membership = read.unwrap_or(self.membership);
            if word.is_empty() || read.is_none() {
                let member = self.membership;
                faults.push(Fault::new(
                    FaultKind::FlagValue,
                    whole.span(),
                    "not full, limited or both",
                    format!("opensm would make members that say nothing else {member} members"),
                ));
            }
        } else if name.bytes != b"indx0" {
            faults.push(unknown(name));
        }
    }
}

impl Stated {
    /// What becomes of it in the partition `pkey` with the broadcast group `group`.
    pub(super) fn judged(
        &self,
        pkey: &str,
        group: Option<&Group>,
        at: &Range<usize>,
    ) -> Option<Fault> {
        let name = GROUP.get(self.flag)?;
        let Some(group) = group else {
            return Some(
                Fault::new(
                    FaultKind::FlagWithoutIpoib,
                    self.span.clone(),
                    "no ipoib",
                    format!("opensm would not use {name}, as it makes no group for this partition"),
                )
                .help("write ipoib beside it, or remove it"),
            );
        };
        let made = group.0.get(self.flag)?;
        (*made != self.value).then(|| {
            Fault::new(
                FaultKind::FlagTooLate,
                self.span.clone(),
                "too late",
                format!("opensm would make the broadcast group of {pkey} without this {name}, by the first definition that has ipoib"),
            )
            .also(at.clone(), "the group is made here")
            .help("write the same flags in each definition of a P_Key")
        })
    }
}

impl Group {
    pub(super) const fn without_tclass(mut self) -> Self {
        self.0[TCLASS] = 0;
        self
    }

    /// Takes the flags behind an mgid.
    pub(super) fn take_all(&mut self, flags: Text<'_>, faults: &mut Vec<Fault>) {
        for entry in flags.split(b',').map(Text::trimmed).filter(|entry| !entry.is_empty()) {
            let (name, value) = entry.named();
            match group_flag(name.bytes) {
                Some(flag) => {
                    judge_abbreviation(name, faults);
                    faults.extend(self.take(flag, value, entry));
                }
                None => faults.push(unknown(name)),
            }
        }
    }

    /// Takes the value of a flag as opensm does, and says if it cannot be meant.
    fn take(&mut self, flag: usize, value: Option<Text<'_>>, whole: Text<'_>) -> Option<Fault> {
        let name = GROUP.get(flag)?;
        let fault = |label: &str, consequence: String| {
            Some(Fault::new(FaultKind::FlagValue, whole.span(), label, consequence))
        };
        let Some(text) = value else {
            return fault("no value", format!("opensm would keep its default for {name}"));
        };
        let number = number::read(text.bytes);
        let read = number.map_or(0, |number| number.value);
        let whole = number.is_some_and(|number| number.whole);
        let kept = || format!("opensm would ignore {name}");
        match flag {
            SCOPE if !(1..=15).contains(&read) => return fault("not 1 to 15", kept()),
            SL if read > 15 || !whole => return fault("not 0 to 15", kept()),
            FLOW_LABEL if read > 0xf_ffff || !whole => return fault("not 20 bits", kept()),
            _ => {}
        }
        match flag {
            SCOPE => self.0[SCOPE] |= 1 << read,
            _ => *self.0.get_mut(flag)? = read,
        }
        let no_group =
            || format!("opensm would make no broadcast group, or one with another {name}");
        match flag {
            MTU if !is_mtu(read) => {
                let fault = fault("not one of the codes 1 to 5", no_group())?;
                Some(match GroupMtu::of(read) {
                    Some(mtu) => fault.help(format!("write mtu={} for {read} bytes", mtu.code())),
                    None => {
                        fault.help("codes: 1 = 256, 2 = 512, 3 = 1024, 4 = 2048, 5 = 4096 bytes")
                    }
                })
            }
            RATE if !is_rate(read) => {
                let fault = fault("not one of the codes 2 to 22", no_group())?;
                Some(match GroupRate::of(read) {
                    Some(rate) => fault.help(format!("write rate={} for {read} Gb/s", rate.code())),
                    None => fault.help(
                        "codes: 3 = 10, 6 = 20, 7 = 40, 12 = 56, 16 = 100, 17 = 200, 21 = 400 Gb/s",
                    ),
                })
            }
            Q_KEY if read > 0xffff_ffff => fault(
                "more than 32 bits",
                format!("opensm would cut {name} to 0x{:08x}", read & 0xffff_ffff),
            ),
            TCLASS if read > 0xff => {
                fault("more than 8 bits", format!("opensm would cut {name} to {}", read & 0xff))
            }
            _ if !whole => fault("not a number", format!("opensm would take {name}={read}")),
            _ => None,
        }
    }
}

/// Which flag of a group opensm takes `name` for.
fn group_flag(name: &[u8]) -> Option<usize> {
    GROUP.iter().position(|flag| flag.as_bytes().starts_with(name))
}

fn judge_abbreviation(name: Text<'_>, faults: &mut Vec<Fault>) {
    let all = GROUP.iter().chain(&OTHER);
    let fitting: Vec<&str> =
        all.copied().filter(|flag| flag.as_bytes().starts_with(name.bytes)).collect();
    let is_meant = fitting.len() == 1 || fitting.iter().any(|flag| flag.as_bytes() == name.bytes);
    let taken = fitting.first().filter(|_| !is_meant);
    faults.extend(taken.map(|taken| abbreviation(name, taken)));
}

/// `text` is taken for `word`.
pub(super) fn abbreviation(text: Text<'_>, word: &str) -> Fault {
    let label = if text.is_empty() { "nothing before =" } else { "the beginning of several names" };
    let consequence = format!("opensm would take {:?} for {word}", text.shown());
    Fault::new(FaultKind::Abbreviation, text.span(), label, consequence)
        .help("write the whole name")
}

fn unknown(name: Text<'_>) -> Fault {
    let fault = Fault::new(
        FaultKind::FlagUnknown,
        name.span(),
        "no flag of opensm's",
        format!("opensm would ignore {:?}", name.shown()),
    );
    let text = String::from_utf8_lossy(name.bytes);
    let same = GROUP.iter().chain(&OTHER).find(|flag| flag.eq_ignore_ascii_case(&text));
    match same {
        Some(flag) => fault.help(format!("write {flag}: upper and lower case differ")),
        None => fault.help("members stand behind the colon, or on lines of their own"),
    }
}

/// Which membership opensm takes `word` for.
pub(super) fn membership(word: &[u8]) -> Option<Membership> {
    [("full", Membership::Full), ("both", Membership::Both), ("limited", Membership::Limited)]
        .iter()
        .find(|(name, _)| name.as_bytes().starts_with(word))
        .map(|(_, membership)| *membership)
}

/// What a comment says that opensm reads as flags, which it does behind an mgid without flags.
pub(super) fn in_comment(comment: Text<'_>) -> impl Iterator<Item = Fault> {
    comment.split(b',').filter_map(|entry| {
        let (name, value) = entry.named();
        let flag = GROUP.get(group_flag(name.bytes).filter(|_| value.is_some())?)?;
        let consequence =
            format!("opensm would read on here, and take this for {flag} of the group");
        let label = "behind an mgid without flags";
        let fault = Fault::new(FaultKind::CommentRead, entry.trimmed().span(), label, consequence);
        Some(fault.help("write a flag behind the mgid, as sl=0"))
    })
}
