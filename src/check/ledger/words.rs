//! What a line says: whether something of it fails, and which of its words are its own.

use std::borrow::Cow;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use serde::Deserialize;

use crate::model::data::data;

/// All of `words.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    failing: Vec<String>,
    negating: Vec<String>,
    recovering: Vec<String>,
    pub path: Vec<String>,
    nothing: Vec<String>,
    pub programs: Vec<String>,
    pub heads: Vec<String>,
    pub fabric: Vec<String>,
    pub begins: Vec<String>,
    pub ends: Vec<String>,
    pub phrases: Vec<String>,
    pub managers: Vec<String>,
    pub strangers: Vec<String>,
    fields: Vec<String>,
    pub needles: Vec<String>,
}

pub fn words() -> &'static Words {
    static WORDS: OnceLock<Words> = OnceLock::new();
    WORDS.get_or_init(|| data(include_bytes!(concat!(env!("OUT_DIR"), "/words.toml.gz"))))
}

/// Finds each of some phrases, whatever their case.
struct Phrases(Option<AhoCorasick>);

impl Phrases {
    fn of(phrases: &[String]) -> Self {
        Self(AhoCorasick::builder().ascii_case_insensitive(true).build(phrases).ok())
    }

    /// Where the phrases stand in `text`: begin and end.
    fn all<'t>(&'t self, text: &'t str) -> impl Iterator<Item = (usize, usize)> {
        let found = self.0.iter().flat_map(move |finder| finder.find_overlapping_iter(text));
        found.map(|hit| (hit.start(), hit.end()))
    }

    fn has(&self, text: &str) -> bool {
        self.all(text).next().is_some()
    }
}

/// True if only what is of the fabric is written by the program `name`.
pub fn is_program(name: &str) -> bool {
    let is_one = |known: &String| {
        let rest = name.strip_prefix(known.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_', '@']))
    };
    words().programs.iter().any(is_one) || name == "OpenSM"
}

/// The program of which the kernel says that it has crashed (`show_signal_msg()` of arch/x86 and
/// arch/powerpc, `do_trap()` of arch/x86): `opensm[6062]: segfault at 0 ip ...`.
pub fn crashed(text: &str) -> Option<&str> {
    let (name, rest) = text.trim_start_matches("traps: ").split_once('[')?;
    let said = rest.split_once(']')?.1.trim_start_matches([':', ' ']);
    let begins = ["segfault ", "general protection", "trap "];
    begins.iter().any(|begin| said.starts_with(begin)).then_some(name)
}

/// True if `text` says that something has failed.
pub fn says_failure(text: &str) -> bool {
    static FAILING: OnceLock<[Phrases; 2]> = OnceLock::new();
    let made = || [&words().failing, &words().negating].map(|phrases| Phrases::of(phrases));
    let [failing, negating] = FAILING.get_or_init(made);
    // `err=0` and `corrected` negate, and `err=0x5` and `uncorrected` do not.
    let is_whole = |(begin, end)| {
        let (before, after) =
            (text.get(..begin).unwrap_or_default(), text.get(end..).unwrap_or_default());
        let is_number = text.get(begin..end).is_some_and(|word| word.ends_with('0'));
        !(before.ends_with(char::is_alphabetic)
            || is_number && after.starts_with(char::is_alphanumeric))
    };
    failing.all(text).any(|(begin, end)| is_predicate(text, begin, end))
        && !negating.all(text).any(is_whole)
}

/// True if `text` says that what failed works again.
pub fn says_recovery(text: &str) -> bool {
    static RECOVERING: OnceLock<Phrases> = OnceLock::new();
    RECOVERING.get_or_init(|| Phrases::of(&words().recovering)).has(text)
}

/// True if the words of `text` from `begin` to `end` are not part of a word, nor of a count of
/// nothing: `errors: 0x0`, `no error`.
fn is_predicate(text: &str, begin: usize, end: usize) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let (before, after) =
        (text.get(..begin).unwrap_or_default(), text.get(end..).unwrap_or_default());
    if before.ends_with(is_part) || after.starts_with(is_part) {
        return false;
    }
    let is_nothing = |word: &str| words().nothing.iter().any(|n| n.eq_ignore_ascii_case(word));
    let rest = after.trim_start_matches([':', '=', ' ', '[', '(']);
    let value = rest.split(|c: char| c.is_whitespace() || ",;])".contains(c)).next();
    let value = value.filter(|_| after.starts_with([':', '=', '[', '(', ' ']));
    let has_number = value.is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()));
    // `timeout 1000` is a setting; `0 error` counts none, and `port 0 error 733` is one.
    if has_number && text.get(begin..end).is_some_and(|word| word.eq_ignore_ascii_case("timeout")) {
        return false;
    }
    let counted = !has_number && before.split_whitespace().next_back().is_some_and(is_nothing);
    // `error: no RDMA device` goes on after the word.
    let ends = |value: &str| {
        let is_word = value.starts_with(|c: char| c.is_alphabetic());
        !is_word || !rest.get(value.len()..).unwrap_or_default().starts_with(' ')
    };
    !(counted || value.is_some_and(|value| is_nothing(value) && ends(value)))
}

/// `text` without commands, paths and fields that hold a name: what these name is another's.
pub fn own_words(text: &str) -> Cow<'_, str> {
    let text = ["COMMAND=", "comm=", "cmd=", "cmdline="]
        .iter()
        .filter_map(|begin| text.find(begin))
        .min()
        .and_then(|at| text.get(..at))
        .unwrap_or(text);
    if !text.contains(['=', '/']) {
        return Cow::Borrowed(text);
    }
    let mut own = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| !c.is_whitespace()) {
        let (_, word) = rest.split_at(at);
        let end = end_of_word(word);
        let (word, tail) = word.split_at(end);
        if is_own(word) {
            own.push_str(word);
            own.push(' ');
        }
        rest = tail;
    }
    Cow::Owned(own)
}

/// Where the first word of `text` ends; the quoted value of a field is part of it.
fn end_of_word(text: &str) -> usize {
    let space = text.find(char::is_whitespace).unwrap_or(text.len());
    let Some(open) = text.find("=\"").filter(|open| *open < space) else { return space };
    let value = text.get(open + 2..).unwrap_or_default();
    value.find('"').map_or(text.len(), |close| open + 2 + close + 1)
}

fn is_own(word: &str) -> bool {
    const OURS: [&str; 4] =
        ["/infiniband", "/sys/bus/pci/devices/", "/sys/class/net/", "/sys/devices/pci"];
    if let Some((field, value)) = word.split_once('=')
        && field.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
    {
        let is_name = value.starts_with('"') || value.contains('/');
        return !is_name || words().fields.iter().any(|own| own == field);
    }
    let bare = word.trim_start_matches(['"', '\'', '(', '[', '<']);
    let is_path = bare.starts_with('/') || bare.matches('/').count() > 1;
    !is_path || OURS.iter().any(|ours| bare.contains(ours))
}

#[cfg(test)]
mod tests {
    use super::{own_words, says_failure, words};
    use crate::check::evidence::Intake;
    use crate::check::rules::needles;

    #[test]
    fn what_fails_is_told_from_what_does_not() {
        for text in [
            "ibv_create_cq failed: Cannot allocate memory",
            "osm_vendor_send: ERR 5430: x",
            "error=\"no such file\"",
            "Error: no RDMA device was found",
            "PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
            "IBV_WC_RETRY_EXC_ERR (vendor_err=0xa)",
            "closed connection on port 1 fabnum 0 error 733 index 10",
        ] {
            assert!(says_failure(text), "{text}");
        }
        for text in [
            "per-lane errors: 0x0",
            "RX errors 0, error: 0x0",
            "no error",
            "errors: none, drops: 0",
            "severity=Corrected, error",
            "PCIe Bus Error: severity=Correctable, type=Physical Layer",
            "CREATE_EQ(0x301) timeout, recovered after timeout",
            "probe failed with error -517",
            "failover_mac is set, terror",
            "umad_send: fd 3 timeout 1000",
        ] {
            assert!(!says_failure(text), "{text}");
        }
    }

    #[test]
    fn how_a_line_of_the_fabric_begins_is_looked_for() {
        for head in &words().heads {
            for line in [format!("{head}: x failed"), format!("[ 9.0] {head}: x failed")] {
                let mut intake = Intake::new(needles());
                intake.read("log", &mut line.as_bytes());
                assert!(intake.finish().boots.iter().any(|boot| !boot.events.is_empty()), "{line}");
            }
        }
    }

    #[test]
    fn the_names_in_commands_and_fields_are_not_a_lines_own() {
        for (text, own) in [
            ("root : COMMAND=/usr/bin/grep mlx5", "root : "),
            (
                "\"Error syncing\" pod=\"net/rdma-x\" err=\"no uverbs0\"",
                "\"Error syncing\" err=\"no uverbs0\" ",
            ),
            ("open /dev/infiniband/uverbs0 for /opt/mlx5_0/x", "open /dev/infiniband/uverbs0 for "),
            ("mlx5_0/1: state DOWN", "mlx5_0/1: state DOWN "),
        ] {
            assert_eq!(own_words(text), own);
        }
    }
}
