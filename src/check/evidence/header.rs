//! Time, host and program at the head of a line, in every form that dmesg,
//! journalctl, syslog daemons, opensm and libvirt write, also behind a mailer's
//! `> ` or a grep's `FILE:`.

use super::event::{Level, When};
use crate::names::Moment;

/// A line taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header<'a> {
    pub when: When,
    /// The host; empty where the line does not say.
    pub host: &'a str,
    /// The program, without its process id.
    pub program: &'a str,
    pub text: &'a str,
    /// How grave it is, where the line says so.
    pub level: Option<Level>,
}

impl Header<'_> {
    /// True if the line begins a log record, so that it continues no other.
    pub fn begins_record(&self) -> bool {
        !self.when.stamp.is_empty() || !self.program.is_empty()
    }
}

/// Take `line` apart. What is not understood is text.
pub fn header(line: &str) -> Header<'_> {
    let line = unquoted(line);
    if let Some(found) = stamped(line) {
        return found;
    }
    // `grep ... FILE...` puts the name of the file and a colon before a line.
    if let Some((name, rest)) = line.split_once(':')
        && !name.is_empty()
        && name.len() < 80
        && !name.contains(char::is_whitespace)
        // A blank after the colon is a program's: `ibwarn: [77] mad_rpc: ...`.
        && !rest.starts_with(' ')
        && let Some(found) = stamped(rest)
    {
        return found;
    }
    match program(line) {
        // Without a time only what looks like a program counts as one.
        Some((program, text)) if KNOWN.contains(&program) || line.contains("]: ") => {
            Header { program, text, ..Header::default() }
        }
        _ => Header { text: line.trim_end(), ..Header::default() },
    }
}

/// Programs that are believed without a time or process id beside them.
const KNOWN: [&str; 6] =
    ["kernel", "systemd", "systemd-udevd", "dracut", "NetworkManager", "opensm"];

/// Without what mailers and pagers put before a quoted line.
pub fn unquoted(line: &str) -> &str {
    let mut line = line.trim_end_matches(['\r', '\n']);
    while let Some(rest) = line.strip_prefix('>').or_else(|| line.strip_prefix("| ")) {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    line
}

fn stamped(line: &str) -> Option<Header<'_>> {
    let line = line.trim_start();
    let first = *line.as_bytes().first()?;
    match first {
        b'<' => {
            // `<6>[ 1.0] text`: the priority of /dev/kmsg and serial consoles.
            let (priority, rest) = line.get(1..)?.split_once('>')?;
            (priority.len() <= 3 && priority.bytes().all(|b| b.is_ascii_digit())).then_some(())?;
            // The facility stands above the three bits of the priority.
            let level = Level::of_priority((priority.parse::<u16>().ok()? % 8).try_into().ok()?);
            Some(Header { level: Some(level), ..stamped(rest)? })
        }
        b'[' => bracketed(line),
        b'0'..=b'9' => numeric(line).or_else(|| {
            // `grep -n` and pagers put a line number before a line.
            let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
            let rest = rest.trim_start_matches([':', ' ', '-']);
            (rest.starts_with('[')).then(|| bracketed(rest)).flatten()
        }),
        _ => decoded(line).or_else(|| named(line)),
    }
}

/// `kern  :err   : [   12.345678] text`, as `dmesg -x` writes it.
fn decoded(line: &str) -> Option<Header<'_>> {
    let (facility, rest) = line.split_once(':')?;
    let (level, rest) = rest.split_once(": ")?;
    FACILITIES.contains(&facility.trim_end()).then_some(())?;
    let priority = LEVELS.iter().position(|name| *name == level.trim_end())?;
    let level = Level::of_priority(priority.try_into().ok()?);
    Some(Header { level: Some(level), ..stamped(rest)? })
}

/// `[   12.345678] text`, `[Thu Oct 22 08:54:51 2020] text`, `[ +0.1] text`.
fn bracketed(line: &str) -> Option<Header<'_>> {
    let (stamp, rest) = line.get(1..)?.split_once(']')?;
    let inner = stamp.trim();
    let when = if let Some(usec) = seconds(inner.strip_prefix('+').unwrap_or(inner)) {
        /// No kernel runs for thirty years: UCX and NCCL write the seconds since 1970.
        const LONGEST: u64 = 30 * 365 * DAY;
        let (monotonic, wall) = match usec {
            // `dmesg -H` counts from the line before: no time at all for us.
            _ if inner.starts_with('+') => (None, None),
            ..LONGEST => (Some(Moment::from_usec(usec)), None),
            _ => (None, Some(usec)),
        };
        When { monotonic, wall, stamp: inner.into() }
    } else {
        // Open MPI's and NCCL's is as ISO 8601 has it, with a blank.
        let wall = c_time(inner).or_else(|| iso(&inner.replacen(' ', "T", 1)))?;
        When { monotonic: None, wall: Some(wall), stamp: inner.into() }
    };
    let mut rest = rest.strip_prefix(' ').unwrap_or(rest);
    // The caller's thread or CPU, CONFIG_PRINTK_CALLER: `[    T1] text`.
    if let Some((caller, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']'))
        && let Some(id) = caller.trim().strip_prefix(['T', 'C'])
        && !id.is_empty()
        && id.bytes().all(|b| b.is_ascii_digit())
    {
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    Some(tail_of_dmesg(when, rest))
}

/// A dmesg line names no program but what user space wrote there:
/// `systemd[1]: text`. `journalctl -o short-monotonic` adds host and program.
fn tail_of_dmesg(when: When, rest: &str) -> Header<'_> {
    if let Some((host, after)) = rest.split_once(' ')
        && is_host(host)
        && let Some((program, text)) = program(after)
        && (KNOWN.contains(&program)
            || after.split_once(": ").is_some_and(|(p, _)| p.ends_with(']')))
    {
        return Header { when, host, program, text, level: None };
    }
    match rest.split_once(": ") {
        // Of a program that has crashed the kernel writes so itself.
        Some((head, text)) if head.ends_with(']') && !text.starts_with("segfault ") => {
            match program(rest) {
                Some((program, _)) => Header { when, host: "", program, text, level: None },
                None => Header { when, text: rest, ..Header::default() },
            }
        }
        _ => Header { when, text: rest, ..Header::default() },
    }
}

/// `2020-10-22T08:54:51.1+00:00 host program: text` and its relatives.
fn numeric(line: &str) -> Option<Header<'_>> {
    let (first, rest) = line.split_once(char::is_whitespace)?;
    if let Some(wall) = iso(first) {
        return Some(tail_of_syslog(wall, first, rest));
    }
    // `2020-10-22 08:54:51.123+0000: 1234: error : text` is libvirt's.
    if let Some((wall, stamp, text)) = dated(line) {
        return Some(tail_of_syslog(wall, &stamp, text));
    }
    // `2020 Oct 22 08:54:51 host ...`
    if first.len() == 4 && first.bytes().all(|b| b.is_ascii_digit()) {
        return named(rest);
    }
    // `journalctl -o short-unix`.
    if first.len() >= 16 && first.find('.') == Some(10) {
        return Some(tail_of_syslog(seconds(first)?, first, rest));
    }
    None
}

/// `Oct 22 08:54:51 host program[1]: text`, and with a weekday before it
/// (`journalctl -o short-full`).
fn named(line: &str) -> Option<Header<'_>> {
    let word = line.get(..3)?;
    if month(word).is_none() {
        DAYS.contains(&word).then_some(())?;
        let rest = line.get(3..)?.strip_prefix(' ')?;
        if let Some((wall, stamp, rest)) = dated(rest) {
            // The zone's name follows.
            let rest = rest.split_once(' ').map_or("", |(_, r)| r);
            return Some(tail_of_syslog(wall, &stamp, rest));
        }
        return month(rest.get(..3)?).and_then(|_| named(rest));
    }
    let rest = line.get(3..)?;
    let day = rest.strip_prefix(' ')?.trim_start();
    let (day, rest) = day.split_once(' ')?;
    let rest = rest.trim_start();
    let (clock, rest) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    let usec = clock_usec(clock)?;
    let (year, rest) = match rest.split_once(' ') {
        // `Oct 22 08:54:51 2020 host ...`.
        Some((year, after)) if is_year(year) => (year.parse().ok(), after),
        _ => (None, rest),
    };
    let wall = days(year.unwrap_or(1972), month(word)?, day.parse().ok()?)? * DAY + usec;
    let used = line.len() - rest.len();
    let stamp = line.get(..used)?.trim_end();
    Some(tail_of_syslog(wall, stamp, rest))
}

/// A date and a time with a blank between them: when that is, as it is written, and what follows.
fn dated(text: &str) -> Option<(u64, String, &str)> {
    let (date, rest) = text.split_once(' ')?;
    (date.len() == 10 && date.as_bytes().get(4) == Some(&b'-')).then_some(())?;
    let (clock, rest) = rest.trim_start().split_once(' ')?;
    let clock = clock.trim_end_matches(':');
    Some((iso(&format!("{date}T{clock}"))?, format!("{date} {clock}"), rest))
}

/// `host program[1]: [   12.3] text`, or what opensm and libvirt write.
fn tail_of_syslog<'a>(wall: u64, stamp: &str, rest: &'a str) -> Header<'a> {
    let mut when = When { monotonic: None, wall: Some(wall), stamp: stamp.into() };
    let rest = rest.trim_start();
    // `123456 [A1B2C3D4] 0x02 -> osm_x: text`
    if let Some((_, text)) = rest.split_once(" -> ")
        && rest.split(' ').nth(1).is_some_and(|w| w.starts_with('[') && w.ends_with(']'))
    {
        return Header { when, host: "", program: "opensm", text, level: None };
    }
    // `1234: error : qemuProcess:12 : text`
    if let Some((thread, after)) = rest.split_once(": ")
        && !thread.is_empty()
        && thread.bytes().all(|b| b.is_ascii_digit())
    {
        return Header { when, host: "", program: "libvirtd", text: after, level: None };
    }
    if let Some((host, after)) = rest.split_once(' ')
        && is_host(host)
    {
        // A facility may stand between: `host kern.info kernel: text`.
        let after = after.trim_start();
        let after = match after.split_once(' ') {
            Some((facility, next))
                if facility.split_once('.').is_some_and(|(f, _)| FACILITIES.contains(&f)) =>
            {
                next
            }
            _ => after,
        };
        if let Some((program, text)) = program(after) {
            let mut text = text;
            if program == "kernel"
                && let Some(inner) = bracketed(text)
            {
                when.monotonic = inner.when.monotonic;
                text = inner.text;
            }
            return Header { when, host, program, text, level: None };
        }
    }
    match program(rest) {
        Some((program, text)) => Header { when, host: "", program, text, level: None },
        None => Header { when, text: rest, ..Header::default() },
    }
}

/// `program[1]: text` or `program: text`.
fn program(text: &str) -> Option<(&str, &str)> {
    let (head, rest) = text.split_once(':')?;
    let rest = rest.strip_prefix(' ').or_else(|| rest.is_empty().then_some(rest))?;
    let name = match head.split_once('[') {
        Some((name, pid)) if pid.ends_with(']') => name,
        Some(_) => return None,
        None => head,
    };
    let fits = !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./@()+".contains(&b));
    fits.then_some((name.trim_matches(['(', ')']), rest))
}

fn is_host(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= 255
        && !word.ends_with(':')
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
}

fn is_year(word: &str) -> bool {
    word.len() == 4
        && (word.starts_with("19") || word.starts_with("20"))
        && word.parse::<u16>().is_ok()
}

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// Facilities and levels by their names in `dmesg -x` (util-linux, `sys-utils/dmesg.c`).
const FACILITIES: [&str; 6] = ["kern", "user", "daemon", "auth", "syslog", "local0"];
const LEVELS: [&str; 8] = ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"];
const DAY: u64 = 86_400_000_000;

fn month(word: &str) -> Option<u64> {
    let at = MONTHS.iter().position(|m| m.eq_ignore_ascii_case(word))?;
    u64::try_from(at + 1).ok()
}

/// `Thu Oct 22 08:54:51 2020`, as `dmesg -T` writes it.
fn c_time(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let day_name = words.next()?;
    DAYS.contains(&day_name).then_some(())?;
    let month = month(words.next()?)?;
    let day = words.next()?.parse().ok()?;
    let clock = clock_usec(words.next()?)?;
    let year = words.next()?.parse().ok()?;
    Some(days(year, month, day)? * DAY + clock)
}

/// `2020-10-22T08:54:51[.,]123456+00:00`; the zone is left out of account.
fn iso(text: &str) -> Option<u64> {
    let (date, clock) = text.split_once('T')?;
    let mut parts = date.split('-');
    let year = parts.next()?.parse().ok()?;
    let month = parts.next()?.parse().ok()?;
    let day = parts.next()?.parse().ok()?;
    let clock = clock.trim_end_matches('Z');
    let clock = clock.split_once(['+', '-']).map_or(clock, |(c, _)| c);
    Some(days(year, month, day)? * DAY + clock_usec(clock)?)
}

/// `08:54:51.123456` in microseconds.
fn clock_usec(text: &str) -> Option<u64> {
    let (hours, rest) = text.split_once(':')?;
    let (minutes, rest) = rest.split_once(':')?;
    let [hours, minutes] = [hours, minutes].map(|t| t.parse::<u64>().ok().filter(|n| *n < 60));
    let rest = seconds(&rest.replace(',', "."))?;
    Some((hours? * 3600 + minutes? * 60) * 1_000_000 + rest)
}

/// `12.345678` in microseconds.
fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().ok().filter(|w| *w < 100_000_000_000)?;
    let digits = |b: u8| b.is_ascii_digit();
    fraction.bytes().all(digits).then_some(())?;
    let micros: u64 = format!("{:0<6}", fraction.get(..6).unwrap_or(fraction)).parse().ok()?;
    Some(whole * 1_000_000 + micros)
}

/// Days since 1970 of a date.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    ((1970..3000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day))
        .then_some(())?;
    // Howard Hinnant's days_from_civil, for years after 1970.
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (shifted / 400, shifted % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_form_of_head_is_taken_off() {
        for (line, monotonic, host, program, text) in [
            ("[   12.345678] mlx5_core: x", Some(12_345_678), "", "", "mlx5_core: x"),
            ("<6>[    1.5] a", Some(1_500_000), "", "", "a"),
            ("[    1.5][    T1] a b", Some(1_500_000), "", "", "a b"),
            ("[    1.5] systemd[1]: Started x.", Some(1_500_000), "", "systemd", "Started x."),
            ("[    1.5] n9 kernel: ib0: y", Some(1_500_000), "n9", "kernel", "ib0: y"),
            ("> [    1.5] a", Some(1_500_000), "", "", "a"),
            ("Mar 18 10:29:41 n9.x.tld kernel: pci x", None, "n9.x.tld", "kernel", "pci x"),
            (
                "Mar  8 10:29:41 n9 kernel: [   12.5] ib0: y",
                Some(12_500_000),
                "n9",
                "kernel",
                "ib0: y",
            ),
            (
                "messages-1:Mar 18 10:29:41 n9 network[2914]: Bringing up",
                None,
                "n9",
                "network",
                "Bringing up",
            ),
            (
                "Mar 18 10:29:53 n9 /etc/x/ifup-eth[4014]: Device ib0",
                None,
                "n9",
                "/etc/x/ifup-eth",
                "Device ib0",
            ),
            ("2020-10-22T08:54:51.5+00:00 n9 systemd[1]: a", None, "n9", "systemd", "a"),
            ("2020-10-22T08:54:51+0000 n9 kernel: a", None, "n9", "kernel", "a"),
            ("Thu 2020-10-22 08:54:51 UTC n9 kernel: a", None, "n9", "kernel", "a"),
            ("1571042618.115800 n9 kernel: a", None, "n9", "kernel", "a"),
            (
                "2019-10-14 08:43:38.123+0000: 1234: error : f:1 : a",
                None,
                "",
                "libvirtd",
                "error : f:1 : a",
            ),
            ("Nov 17 01:12:58 123456 [A1B2C3D4] 0x02 -> osm_x: a", None, "", "opensm", "osm_x: a"),
            ("kernel: ib0: a", None, "", "kernel", "ib0: a"),
            ("ibacm[1796]: a", None, "", "ibacm", "a"),
            ("Oct 22 08:54:51 n9 kern.info kernel: a", None, "n9", "kernel", "a"),
            ("ib0: a", None, "", "", "ib0: a"),
        ] {
            let got = header(line);
            assert_eq!(
                (got.when.monotonic.map(Moment::usec), got.host, got.program, got.text),
                (monotonic, host, program, text),
                "{line}"
            );
        }
    }

    #[test]
    fn the_level_is_read_where_it_is_written() {
        for (line, level) in [
            ("kern  :err   : [    1.5] mlx5_core: x", Some(Level::Error)),
            ("kern  :warn  : [Wed Jan 01 00:00:00 2020] mlx5_core: x", Some(Level::Warning)),
            ("kern  :info  : [    1.5] mlx5_core: x", Some(Level::Other)),
            ("<3>[    1.5] mlx5_core: x", Some(Level::Error)),
            ("<30>[    1.5] mlx5_core: x", Some(Level::Other)),
            ("[    1.5] mlx5_core: x", None),
        ] {
            let got = header(line);
            assert_eq!((got.level, got.text), (level, "mlx5_core: x"), "{line}");
            assert!(!got.when.stamp.is_empty(), "{line}");
        }
    }

    #[test]
    fn times_are_told_apart() {
        let wall = |line| header(line).when.wall.expect("a time");
        let a = wall("Mar 18 10:29:53 n9 kernel: a");
        assert_eq!(wall("Mar 18 10:31:13 n9 kernel: a") - a, 80_000_000);
        assert_eq!(wall("2020-01-01T00:00:00Z n9 kernel: a"), 1_577_836_800_000_000);
        assert_eq!(wall("[Wed Jan 01 00:00:00 2020] a"), 1_577_836_800_000_000);
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "(?s).{0,120}") {
            let _ = header(&line);
        }

        #[test]
        fn no_near_miss_panics(
            line in r"[<\[>]?[ +]?[0-9T:.,\-]{0,24}[\]> ](Mar|Thu|1972) ?[0-9 :\-.]{0,20}[a-z\[\]:() 0-9>-]{0,30}",
        ) {
            let _ = header(&line);
        }
    }
}
