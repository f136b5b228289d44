//! `lsmod`, whole or through a grep.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::limit::LIMIT;
use super::prompt::{Line, Stage};

/// The kernel modules that a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modules {
    names: BTreeSet<String>,
    asked: Vec<Asked>,
}

/// What would have been shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Asked {
    /// Every module.
    All,
    /// Those that a grep lets through.
    Matching(Vec<Word>),
}

/// A word of a grep's pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Word {
    text: String,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    Anywhere,
    /// `^`.
    Beginning,
    /// `-w`.
    Whole,
}

impl Word {
    fn matches(&self, name: &str) -> bool {
        match self.place {
            Place::Anywhere => name.contains(&self.text),
            Place::Beginning => name.starts_with(&self.text),
            Place::Whole => name == self.text,
        }
    }
}

impl Modules {
    /// The whole list.
    #[must_use]
    pub fn all(names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().collect(), asked: vec![Asked::All] }
    }

    /// True if module `name` is shown to be loaded.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// True if module `name` is shown not to be loaded: a list that would have
    /// it has it not. That a part of a list lacks it proves nothing.
    #[must_use]
    pub fn lacks(&self, name: &str) -> bool {
        let would_show = |asked: &Asked| match asked {
            Asked::All => true,
            Asked::Matching(words) => words.iter().any(|w| w.matches(name)),
        };
        !self.has(name) && self.asked.iter().any(would_show)
    }

    fn add(&mut self, name: &str) {
        if self.names.len() < LIMIT && is_name(name) {
            self.names.insert(name.to_owned());
        }
    }

    fn ask(&mut self, asked: Asked) {
        if self.asked.len() < LIMIT {
            self.asked.push(asked);
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

#[derive(Debug, Default)]
pub(super) struct LsmodReader {
    /// Rows may follow.
    in_list: bool,
    /// The list goes through something, or into a file.
    filtered: bool,
    /// What the list would show, once it is sure that its output is here.
    pending: Option<Asked>,
}

impl LsmodReader {
    pub(super) fn gap(&mut self) {
        *self = Self::default();
    }

    pub(super) fn typed(&mut self, line: &Line, modules: &mut Option<Modules>) {
        // The next prompt comes at once: a grep found nothing.
        if let Some(asked) = self.pending.take() {
            modules.get_or_insert_default().ask(asked);
        }
        self.gap();
        let Some((_, piped)) = line.of("lsmod").next() else { return };
        self.in_list = true;
        self.filtered = !piped.is_empty() || line.redirected;
        let alone = line.pipelines.len() == 1 && !line.redirected;
        if let [stage] = piped
            && alone
        {
            self.pending = words(stage).map(Asked::Matching);
        }
    }

    pub(super) fn line(&mut self, text: &str, modules: &mut Option<Modules>) {
        let words: Vec<&str> = text.split_whitespace().take(4).collect();
        if let ["Module", "Size", "Used"] = words.get(..3).unwrap_or_default() {
            self.in_list = true;
            let modules = modules.get_or_insert_default();
            // `lsmod | head` shows the header too.
            if !self.filtered {
                modules.ask(Asked::All);
            }
        } else if let (true, [name, size, uses, users @ ..]) = (self.in_list, words.as_slice())
            && let (Ok(_), Ok(_)) = (size.parse::<u64>(), uses.parse::<i64>())
        {
            let modules = modules.get_or_insert_default();
            modules.add(name);
            // What uses a module is a module that is loaded.
            for user in users.iter().flat_map(|u| u.split(',')) {
                modules.add(user);
            }
            if let Some(asked) = self.pending.take() {
                modules.ask(asked);
            }
        } else {
            self.gap();
        }
    }
}

/// The words of the pattern of a grep; `None` if it is none, or one of which it
/// is not known what it lets through.
fn words(stage: &Stage) -> Option<Vec<Word>> {
    let (program, arguments) = stage.split_first()?;
    let program = program.rsplit('/').next()?;
    ["grep", "egrep", "fgrep"].contains(&program).then_some(())?;
    let (mut extended, mut fixed) = (program == "egrep", program == "fgrep");
    let mut whole = false;
    let (mut patterns, mut bare) = (Vec::new(), Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix('-') {
            None => bare.push(argument),
            // Names of modules have no capitals.
            Some("i" | "-color" | "-color=auto" | "-color=never" | "-ignore-case") => {}
            Some("E" | "iE" | "Ei" | "P") => extended = true,
            Some("F" | "iF" | "Fi") => fixed = true,
            Some("w" | "iw" | "wi") => whole = true,
            Some("e" | "ie") => patterns.push(arguments.next()?),
            Some(_) => return None,
        }
    }
    // The first is the pattern if there is no other; then come files.
    match (patterns.is_empty(), bare.as_slice()) {
        (true, [pattern]) => patterns.push(*pattern),
        (false, []) => {}
        _ => return None,
    }
    let words = patterns.into_iter().flat_map(|pattern| {
        let bar = if extended { "|" } else { "\\|" };
        let bar = if fixed { "\n" } else { bar };
        pattern.split(bar).map(|part| {
            let bare = part.strip_prefix('^').filter(|_| !fixed);
            let place = match (whole, bare) {
                (true, _) => Place::Whole,
                (false, Some(_)) => Place::Beginning,
                (false, None) => Place::Anywhere,
            };
            let text = bare.unwrap_or(part).to_ascii_lowercase();
            is_name(&text).then_some(Word { text, place })
        })
    });
    let words: Vec<Word> = words.collect::<Option<_>>()?;
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::super::prompt::typed;
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<Modules> {
        let mut reader = LsmodReader::default();
        let mut modules = None;
        for line in text.lines() {
            if line.is_empty() {
                reader.gap();
            } else if let Some(typed) = typed(line) {
                reader.typed(&Line::parse(typed), &mut modules);
            } else {
                reader.line(line, &mut modules);
            }
        }
        modules
    }

    #[test]
    fn a_whole_list_proves_what_is_not_in_it() {
        let modules = read(
            "Module                  Size  Used by\nib_ipoib              131072  0\nib_core  425984  2 ib_ipoib,rdma_cm\nsome words\nmlx4_ib 10 0\n",
        )
        .expect("modules");
        assert!(modules.has("ib_ipoib") && modules.has("rdma_cm"));
        assert!(!modules.has("mlx4_ib"), "the list had ended");
        assert!(modules.lacks("mlx5_core") && !modules.lacks("ib_core"));
    }

    #[test]
    fn a_part_of_a_list_proves_what_it_would_have_shown() {
        let rows = "mlx5_ib               397312  0\nmlx5_core            1830912  1 mlx5_ib\n";
        for (typed, lacks, says_nothing) in [
            ("lsmod | grep mlx", "mlx4_core", "ib_ipoib"),
            ("lsmod | grep -i MLX", "mlx4_core", "ib_ipoib"),
            ("sudo lsmod|egrep 'ipoib|mlx'", "ib_ipoib", "ib_umad"),
            ("lsmod | grep -e mlx -e ipoib", "ib_ipoib", "ib_umad"),
            ("lsmod | grep 'mlx\\|ipoib'", "ib_ipoib", "ib_umad"),
            ("lsmod | grep ^mlx", "mlx4_core", "x_mlx"),
            ("lsmod | grep -w mlx4_core", "mlx4_core", "mlx4_ib"),
        ] {
            let modules = read(&format!("[root@n1 ~]# {typed}\n{rows}")).expect(typed);
            assert!(modules.has("mlx5_core"), "{typed}");
            assert!(modules.lacks(lacks), "{typed}");
            assert!(!modules.lacks(says_nothing), "{typed}");
        }
        for typed in [
            "lsmod",
            "lsmod | head",
            "lsmod | grep -v xfs",
            "lsmod | grep mlx.*",
            "lsmod | grep mlx files",
            "lsmod | grep mlx | head -2",
            "lsmod | grep mlx; uptime",
        ] {
            let modules = read(&format!("$ {typed}\n{rows}")).expect(typed);
            assert!(modules.has("mlx5_core") && !modules.lacks("mlx4_core"), "{typed}");
        }
        let head = read(&format!("$ lsmod | head\nModule Size Used by\n{rows}")).expect("head");
        assert!(head.has("mlx5_ib") && !head.lacks("mlx4_core"));
    }

    #[test]
    fn a_grep_that_finds_nothing_proves_it_where_the_next_prompt_follows() {
        let lacks = |text: &str| read(text).is_some_and(|m| m.lacks("ib_ipoib"));
        assert!(lacks("# lsmod | grep ib_ipoib\n# ip link\n"));
        // The output may have been cut off.
        assert!(!lacks("# lsmod | grep ib_ipoib\n"));
        assert!(!lacks("# lsmod | grep ib_ipoib\n\n# ip link\n"));
        assert!(!lacks("# lsmod | grep ib_ipoib\nsh: lsmod: not found\n# ip link\n"));
        assert!(!lacks("# lsmod | grep ib_ipoib > x\n# ip link\n"));
        assert!(!lacks("# lsmod | grep -c ib_ipoib\n# ip link\n"));
    }

    proptest! {
        #[test]
        fn no_list_panics(text in r"((# lsmod|\| grep |-[a-z] |Module Size Used by|[a-z_]{1,6} [0-9]{1,3} -?[0-9] |[a-z,|^ Ä]){0,5}\n){0,8}") {
            read(&text);
        }
    }
}
