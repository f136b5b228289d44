//! Which parts of logs are one boot, and which boot is older: by the journal's boot ids, by the
//! numbers of rotated files, and by the clock.

use std::collections::{BTreeMap, BTreeSet};

use super::super::event::Event;
use super::part::Part;
use crate::names::Moment;

/// Two sources that tell of one start of the kernel tell of it within this, microseconds.
const START: u64 = 120_000_000;
/// Two sources that tell of one event agree on its time to this, microseconds.
const SAME: u64 = 2_000_000;
const DAY: u64 = 86_400_000_000;

/// When a year begins, microseconds since 1970.
const fn year_begins(year: u64) -> u64 {
    ((year - 1970) * 365 + (year - 1969) / 4) * DAY
}

/// The name that rotated files have in common, and how new one is among them: `messages-20260105`
/// is older than `messages.2`, `messages.1` and `messages`.
fn rotation(name: &str) -> (String, (u8, u64)) {
    let plain =
        [".gz", ".xz", ".bz2", ".zst", ".lz4"].iter().find_map(|end| name.strip_suffix(end));
    let plain = plain.unwrap_or(name);
    let number = |text: &str| text.parse::<u32>().ok().map(u64::from);
    let older = |n: u64| (1, u64::MAX - n);
    // As journald archives, and as `ibprov collect` calls the journals of boots.
    if let Some((stem, rest)) = plain.strip_suffix(".journal").and_then(|name| name.split_once('@'))
        && let Some(sequence) = rest.split('-').nth(1)
        && let Ok(sequence) = u64::from_str_radix(sequence, 16)
    {
        return (format!("{stem}.journal"), (0, sequence));
    }
    if let Some((stem, back)) =
        plain.strip_suffix(".export").and_then(|name| name.rsplit_once("journal"))
        && let Some(back) = number(back.trim_start_matches('-'))
    {
        return (format!("{stem}journal.export"), older(back));
    }
    if let Some((stem, end)) = plain.rsplit_once('.')
        && let Some(n) = if end == "old" { Some(1) } else { number(end).filter(|_| end.len() < 4) }
    {
        return (stem.to_owned(), older(n));
    }
    // `messages-20260105`, and with seconds behind it.
    let (mut stem, mut date) = (plain, None);
    while let Some((head, end)) = stem.rsplit_once('-')
        && end.len() >= 8
        && let Ok(n) = end.parse::<u64>()
    {
        (stem, date) = (head, Some(n));
    }
    (stem.to_owned(), date.map_or((2, 0), |date| (0, date)))
}

/// Parts of one boot.
#[derive(Default)]
struct Boot {
    parts: Vec<usize>,
    id: Option<String>,
    starts: bool,
    wall: Option<(u64, u64)>,
}

impl Boot {
    fn add(&mut self, at: usize, part: &Part) {
        self.starts |= self.parts.is_empty() && part.starts;
        self.parts.push(at);
        self.id = self.id.take().or_else(|| part.id.clone());
        let (old, new) = (self.wall.or(part.wall), part.wall.or(self.wall));
        self.wall = old.zip(new).map(|((first, a), (_, b))| (first, a.max(b)));
    }

    fn begins(&self) -> Option<u64> {
        self.wall.map(|(first, _)| first)
    }
}

/// A file among those that were rotated from it: how new it is, its name, and its part.
type Rotated<'a> = ((u8, u64), &'a str, usize);

/// The boots that these parts of sources of these names are of, the oldest first. In which order
/// the sources were read does not matter.
pub(super) fn order(parts: &[Part], names: &[&str]) -> Vec<Vec<usize>> {
    let mut files: BTreeMap<String, Vec<Rotated<'_>>> = BTreeMap::new();
    for (at, part) in parts.iter().enumerate() {
        let name = names.get(usize::from(part.source)).copied().unwrap_or_default();
        let (stem, age) = rotation(name);
        files.entry(stem).or_default().push((age, name, at));
    }
    // What tells most of boots comes first.
    let mut chains: Vec<(u8, Vec<Boot>)> = files.into_values().map(|f| chain(parts, f)).collect();
    chains.sort_by_key(|(class, _)| *class);
    let mut boots: Vec<Boot> = Vec::new();
    for (_, chain) in chains {
        let (mut next, last) = (0, chain.len().saturating_sub(1));
        for (n, boot) in chain.into_iter().enumerate() {
            let at = same(parts, &boots, &boot, next, n == last);
            next = 1 + match at {
                Some(at) => at,
                None => {
                    let is_newer = |b: &Boot| b.wall.map(|(_, l)| l) > boot.wall.map(|(_, l)| l);
                    let rest = boots.get(next..).unwrap_or_default();
                    let at = next + rest.iter().position(is_newer).unwrap_or(rest.len());
                    boots.insert(at, Boot::default());
                    at
                }
            };
            if let Some(known) = boots.get_mut(next - 1) {
                boot.parts
                    .iter()
                    .for_each(|at| parts.get(*at).into_iter().for_each(|p| known.add(*at, p)));
            }
        }
    }
    boots.into_iter().map(|boot| boot.parts).collect()
}

/// The boots of which one file and those that were rotated from it tell, and how much they tell
/// of boots.
fn chain(parts: &[Part], mut files: Vec<Rotated<'_>>) -> (u8, Vec<Boot>) {
    files.sort_unstable();
    let mut boots: Vec<Boot> = Vec::new();
    let mut source = None;
    for (_, _, at) in files {
        let Some(part) = parts.get(at) else { continue };
        let goes_on = match &part.id {
            Some(id) => boots.iter().position(|boot| boot.id.as_ref() == Some(id)),
            // A file that does not begin with a boot goes on where the older one ends.
            None if !part.starts && source != Some(part.source) => boots.len().checked_sub(1),
            None => None,
        };
        let goes_on = goes_on.unwrap_or_else(|| {
            boots.push(Boot::default());
            boots.len() - 1
        });
        boots.get_mut(goes_on).into_iter().for_each(|boot| boot.add(at, part));
        source = Some(part.source);
    }
    let class = boots.iter().map(|boot| match (&boot.id, boot.wall) {
        (Some(_), _) => 0,
        (None, Some(_)) if boot.starts => 1,
        (None, Some(_)) => 2,
        (None, None) => 3,
    });
    (class.min().unwrap_or(3), boots)
}

/// Which of `boots`, from number `next` on, `boot` is, the last of its file or not.
fn same(parts: &[Part], boots: &[Boot], boot: &Boot, next: usize, is_last: bool) -> Option<usize> {
    if boot.id.is_some() {
        return boots.iter().position(|known| known.id == boot.id);
    }
    let Some((first, last)) = boot.wall else {
        // What the kernel or a tool shows, it shows of the boot in which it is asked.
        let newest = boots.len().checked_sub(1).filter(|at| is_last && *at >= next)?;
        let known = boots.get(newest)?;
        let is_other = boot.starts && known.starts && known.wall.is_none();
        return (!is_other || share_a_line(parts, boot, known)).then_some(newest);
    };
    let begins = |known: &Boot| known.begins().filter(|_| known.starts);
    if boot.starts {
        let is_it = |known: &Boot| match begins(known) {
            Some(begin) => begin.abs_diff(first) <= START,
            None => known.begins().is_some_and(|begin| (first..=last).contains(&begin)),
        };
        let rest = boots.get(next..)?;
        return rest.iter().position(is_it).map(|at| next + at);
    }
    // The boot that had begun when its first line was written.
    let had_begun = |known: &Boot| known.begins().is_none_or(|begin| begin <= first);
    boots
        .iter()
        .rposition(had_begun)
        .or_else(|| boots.first().is_some_and(|oldest| begins(oldest).is_none()).then_some(0))
}

/// True if both have a line of the kernel at the same microsecond.
fn share_a_line(parts: &[Part], one: &Boot, other: &Boot) -> bool {
    let lines = |boot: &Boot| -> BTreeSet<(Moment, &str)> {
        let events =
            boot.parts.iter().filter_map(|at| parts.get(*at)).flat_map(|part| &part.events);
        let timed = events.filter_map(|e| Some((e.when.monotonic?, &*e.text)));
        timed.filter(|(at, _)| *at > Moment::START).collect()
    };
    !lines(one).is_disjoint(&lines(other))
}

/// Times without a year, which are taken for 1972, get the one of the latest that has one, so
/// that logs can be compared.
pub(super) fn add_years(parts: &mut [Part]) {
    let has_year = |wall: &u64| *wall >= year_begins(1973);
    let latest = parts.iter().filter_map(|part| part.wall).map(|(_, last)| last).max();
    let Some(latest) = latest.filter(has_year) else { return };
    let year = (1970..).take_while(|year| year_begins(*year) <= latest).last().unwrap_or(1970);
    let add = |wall: u64| {
        let since = wall.saturating_sub(year_begins(1972));
        let of = |year: u64| {
            let no_leap_day = !year.is_multiple_of(4) && since >= 60 * DAY;
            year_begins(year) + since - if no_leap_day { DAY } else { 0 }
        };
        match has_year(&wall) {
            true => wall,
            false if of(year) <= latest + DAY => of(year),
            false => of(year - 1),
        }
    };
    for part in parts {
        part.wall = part.wall.map(|(first, last)| (add(first), add(last)));
        part.events.iter_mut().for_each(|event| event.when.wall = event.when.wall.map(add));
    }
}

/// A journal has UTC, and other logs have the time of the host: where one start of the kernel
/// stands in both, a quarter of an hour or a multiple of it apart, they are put together.
pub(super) fn add_zone(parts: &mut [Part]) {
    const QUARTER: u64 = 900_000_000;
    const MOST: u64 = 14 * 4 * QUARTER;
    const NEAR: u64 = START / 4;
    let starts = |is_journal: bool| {
        let of = parts.iter().filter(move |p| p.starts && p.id.is_some() == is_journal);
        of.filter_map(|part| part.wall).map(|(first, _)| first)
    };
    let gaps: Vec<i64> = starts(true)
        .flat_map(|utc| starts(false).map(move |local| (utc, local)))
        .filter(|(utc, local)| utc.abs_diff(*local) <= MOST + NEAR)
        .filter_map(|(utc, local)| i64::try_from(i128::from(utc) - i128::from(local)).ok())
        .collect();
    let zone = |gap: &i64| {
        let quarters = (gap.unsigned_abs() + NEAR) / QUARTER;
        let rest = gap.unsigned_abs().abs_diff(quarters * QUARTER);
        (rest <= NEAR).then(|| gap.signum() * (quarters * QUARTER).cast_signed())
    };
    // Where one fits as it is, all do.
    let zones: Vec<i64> = gaps.iter().filter_map(zone).collect();
    let Some(zone) = zones.iter().min_by_key(|zone| zone.abs()) else { return };
    for part in parts.iter_mut().filter(|part| part.id.is_none()) {
        let add = |wall: u64| wall.saturating_add_signed(*zone);
        part.wall = part.wall.map(|(first, last)| (add(first), add(last)));
        part.events.iter_mut().for_each(|event| event.when.wall = event.when.wall.map(add));
    }
}

/// Parts that do not know of boots are cut where others have one begin.
pub(super) fn cut(parts: &mut Vec<Part>) {
    let knows = |part: &Part| part.id.is_some() || part.starts;
    let mut begins: Vec<u64> =
        parts.iter().filter(|p| knows(p)).filter_map(|p| Some(p.wall?.0)).collect();
    begins.sort_unstable();
    let mut cut = Vec::new();
    for part in parts.iter_mut().filter(|part| !knows(part)) {
        for begin in begins.iter().rev() {
            let older = |event: &Event| event.when.wall.is_some_and(|wall| wall + START < *begin);
            let Some(last) = part.events.iter().rposition(older) else { continue };
            let events = part.events.split_off(last + 1);
            let ends = |events: &[Event]| {
                let mut walls = events.iter().filter_map(|event| event.when.wall);
                let first = walls.next()?;
                Some((first, walls.next_back().unwrap_or(first)))
            };
            let begins = events.first().map(|e| e.when.stamp.to_string()).unwrap_or_default();
            let wall = ends(&events);
            part.wall = ends(&part.events);
            if !events.is_empty() {
                cut.push(Part { source: part.source, begins, wall, events, ..Part::default() });
            }
        }
    }
    // Those of a source stand in the order of its lines.
    parts.extend(cut.into_iter().rev());
}

/// The events of the parts of a boot in the order of time; what several sources tell is told
/// once.
pub(super) fn join(parts: Vec<Part>) -> Vec<Event> {
    let mut sources: BTreeMap<usize, Vec<Event>> = BTreeMap::new();
    let mut places: Vec<u16> = Vec::new();
    for part in parts {
        let place = places.iter().position(|source| *source == part.source);
        let place = place.unwrap_or_else(|| {
            places.push(part.source);
            places.len() - 1
        });
        sources.entry(place).or_default().extend(part.events);
    }
    if sources.len() < 2 {
        return sources.into_values().flatten().collect();
    }
    let began = began(sources.values());
    let clock = |event: &Event| {
        event.when.wall.or_else(|| event.when.monotonic?.usec().checked_add_signed(began?))
    };
    let mut all: Vec<(u64, Event)> = Vec::new();
    for events in sources.into_values() {
        let is_timed = |e: &Event| e.when.wall.is_some() || e.when.monotonic.is_some();
        // What has no times shows how it is when somebody asks.
        let mut now = if events.iter().any(is_timed) { 0 } else { u64::MAX };
        for event in events {
            now = clock(&event).map_or(now, |at| at.max(now));
            all.push((now, event));
        }
    }
    all.sort_by_key(|(now, _)| *now);
    once(all.into_iter().map(|(_, event)| event).collect(), clock)
}

/// When the kernel's clock was 0 by the other one, microseconds since 1970.
fn began<'a>(sources: impl Iterator<Item = &'a Vec<Event>>) -> Option<i64> {
    let between = |wall: u64, monotonic: Moment| {
        i64::try_from(wall).ok()?.checked_sub_unsigned(monotonic.usec())
    };
    // Lines that a source has once, by their texts: each clock by which they were written.
    let mut lines: BTreeMap<&str, (Option<u64>, Option<Moment>)> = BTreeMap::new();
    let mut both = None;
    for events in sources {
        let mut seen: BTreeMap<&str, Option<&Event>> = BTreeMap::new();
        for event in events.iter().filter(|event| event.from_kernel()) {
            seen.entry(&*event.text).and_modify(|only| *only = None).or_insert(Some(event));
        }
        for event in seen.into_values().flatten() {
            let (wall, monotonic) = lines.entry(&*event.text).or_default();
            *wall = wall.or(event.when.wall);
            *monotonic = monotonic.or(event.when.monotonic);
        }
        let last = events.iter().rev().find_map(|e| e.when.wall.zip(e.when.monotonic));
        both = both.or(last);
    }
    // A program that writes the kernel's lines down may be late, and never early.
    let told = lines.into_values().filter_map(|(wall, monotonic)| between(wall?, monotonic?)).min();
    both.and_then(|(wall, monotonic)| between(wall, monotonic)).or(told)
}

/// Each of `events` once. The n-th line of a text in one source is the n-th of another where no
/// clock tells more.
fn once(events: Vec<Event>, clock: impl Fn(&Event) -> Option<u64>) -> Vec<Event> {
    let mut told: Vec<Event> = Vec::with_capacity(events.len());
    // Where a text stands in `told`, and the sources that have told it there.
    let mut places: BTreeMap<Box<str>, Vec<(usize, Vec<u16>)>> = BTreeMap::new();
    for event in events {
        let source = event.origin.source;
        let is_same = |other: &Event| {
            let program =
                other.from_kernel() && event.from_kernel() || other.program == event.program;
            let usec = |event: &Event| event.when.monotonic.map(Moment::usec);
            let times = usec(other).zip(usec(&event));
            let times = times.or_else(|| clock(other).zip(clock(&event)));
            program && times.is_none_or(|(one, other)| one.abs_diff(other) <= SAME)
        };
        let known = places.entry(event.text.clone()).or_default();
        let again = known
            .iter_mut()
            .find(|(at, sources)| !sources.contains(&source) && told.get(*at).is_some_and(is_same));
        match again {
            Some((at, sources)) => {
                sources.push(source);
                if let Some(first) = told.get_mut(*at) {
                    first.level = first.level.or(event.level);
                    first.when.monotonic = first.when.monotonic.or(event.when.monotonic);
                    first.when.wall = first.when.wall.or(event.when.wall);
                }
            }
            None => {
                known.push((told.len(), vec![source]));
                told.push(event);
            }
        }
    }
    told
}
