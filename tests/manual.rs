//! The manual pages (`docs/NAME.SECTION.md`) say what the program takes: each verb has a page
//! with each of its options and exit codes, and each event of the journal is explained.

#![allow(clippy::disallowed_methods, reason = "tests read files")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic in its helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command, CommandFactory as _};
use ibprov::cli::Cli;
use regex::Regex;

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(project(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The pages by name and section: `ibprov-plan` and `8`.
fn pages() -> BTreeMap<(String, String), String> {
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(project("docs")).expect("docs") {
        let path = entry.expect("entry").path();
        let file = path.file_name().and_then(|f| f.to_str()).expect("a name");
        let page = file.strip_suffix(".md").and_then(|page| page.rsplit_once('.'));
        if let Some((name, section)) = page {
            let text = fs::read_to_string(&path).expect("a page");
            pages.insert((name.to_owned(), section.to_owned()), text);
        }
    }
    pages
}

/// What stands below a heading of the first level.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) = page
        .split_once(&format!("\n# {heading}\n"))
        .unwrap_or_else(|| panic!("no {heading} in {page}"));
    rest.split_once("\n# ").map_or(rest, |(section, _)| section)
}

/// The terms of a section, each with what is said of it.
fn terms(section: &str) -> BTreeMap<String, String> {
    let (mut terms, mut last) = (BTreeMap::new(), None);
    let mut lines = section.lines().peekable();
    while let Some(line) = lines.next() {
        if lines.peek().is_some_and(|next| next.starts_with(":   ")) {
            assert_eq!(terms.insert(line.to_owned(), String::new()), None, "{line} twice");
            last = Some(line);
        } else if line.starts_with('#') {
            last = None;
        } else if let Some(told) = last.and_then(|term| terms.get_mut(term)) {
            told.push_str(line.trim_start_matches(':').trim());
            told.push('\n');
        }
    }
    terms
}

fn matches(pattern: &str, text: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).expect("a pattern");
    let all = pattern.captures_iter(text);
    all.map(|c| c.get(1).map_or_else(String::new, |group| group.as_str().to_owned())).collect()
}

fn cli() -> Command {
    let mut cli = Cli::command();
    cli.build();
    cli
}

fn verbs(of: &Command) -> impl Iterator<Item = &Command> {
    of.get_subcommands().filter(|verb| verb.get_name() != "help")
}

/// The verb itself, and those below it, such as `opensm check`.
fn whole(verb: &Command) -> impl Iterator<Item = &Command> {
    std::iter::once(verb).chain(verbs(verb))
}

/// What is not the same for all verbs.
fn own(verb: &Command) -> impl Iterator<Item = &Arg> {
    let all = whole(verb).flat_map(Command::get_arguments);
    all.filter(|arg| !arg.is_global_set() && !arg.is_hide_set() && is_ours(arg))
}

fn is_ours(arg: &Arg) -> bool {
    !matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    )
}

/// An option or operand as OPTIONS has it: `**--log** *FILE*...`.
fn term(arg: &Arg) -> String {
    let range = arg.get_num_args().expect("a built command");
    let mut term = arg.get_long().map_or_else(String::new, |long| format!("**--{long}**"));
    if let Some(short) = arg.get_short() {
        term = format!("**-{short}**, {term}");
    }
    if range.takes_values() {
        let names = arg.get_value_names().expect("a name");
        let name = names.first().expect("a name").to_ascii_uppercase();
        let [before, value] = match (term.as_str(), range.min_values()) {
            ("", _) => ["", &format!("*{name}*")],
            (_, 0) => [" ", &format!("[*{name}*]")],
            _ => [" ", &format!("*{name}*")],
        };
        let more = if range.max_values() > 1 { "..." } else { "" };
        term.push_str(&format!("{before}{value}{more}"));
    }
    term
}

/// OPTIONS has these and no other, with each value that can be chosen.
fn assert_options(page: &str, args: &[&Arg], below: impl Iterator<Item = String>) {
    let told = terms(section(page, "OPTIONS"));
    let mut real: BTreeSet<String> = args.iter().map(|arg| term(arg)).collect();
    real.extend(below.map(|verb| format!("**{verb}**")));
    assert_eq!(told.keys().cloned().collect::<BTreeSet<_>>(), real);
    for arg in args {
        let told = told.get(&term(arg)).expect("just compared");
        for value in arg.get_possible_values().iter().filter(|_| arg.get_action().takes_values()) {
            let value = format!("**{}**", value.get_name());
            assert!(told.contains(&value), "{}: no {value} in {told}", term(arg));
        }
    }
}

#[test]
fn each_verb_has_its_page_and_its_line() {
    let cli = cli();
    let about = |verb: &Command| verb.get_about().expect("a line").to_string();
    let real: BTreeMap<String, String> = verbs(&cli)
        .map(|verb| (format!("**{}**", verb.get_name()), format!("{}.", about(verb))))
        .collect();
    let told = terms(section(&text("docs/ibprov.8.md"), "VERBS"));
    let told = told.into_iter().map(|(verb, told)| (verb, told.trim().to_owned())).collect();
    assert_eq!(real, told, "the program on the left, ibprov(8) on the right");

    let pages = pages();
    let of_verbs = pages.keys().filter_map(|(name, _)| name.strip_prefix("ibprov-"));
    let of_verbs: BTreeSet<String> = of_verbs.map(|verb| format!("**{verb}**")).collect();
    let others = ["**images**", "**vf**"].map(str::to_owned).into();
    assert_eq!(&of_verbs - &others, real.into_keys().collect());
    for verb in verbs(&cli) {
        let name = format!("ibprov-{}", verb.get_name());
        let page = pages.get(&(name.clone(), "8".to_owned())).expect("a page");
        let about = about(verb);
        let about = format!("{}{}", about[..1].to_lowercase(), &about[1..]);
        assert_eq!(section(page, "NAME").trim(), format!("{name} - {about}"));
    }
}

#[test]
fn each_page_has_its_title_and_refers_to_pages() {
    let pages = pages();
    assert!(pages.len() > 20, "{:?}", pages.keys());
    let refers = Regex::new(r"(?:([A-Z][A-Z ]+) in )?\*\*(ibprov[a-z.-]*)\*\*\((\d)\)");
    let refers = refers.expect("a pattern");
    for ((name, number), page) in &pages {
        let title = format!("% {}({number}) ibprov\n", name.to_uppercase());
        assert!(page.starts_with(&title), "{name}: no {title}");
        let summary = section(page, "NAME").trim();
        assert!(summary.starts_with(&format!("{name} - ")), "{name}: {summary}");
        let flat = page.replace('\n', " ").replace("    ", "");
        for of in refers.captures_iter(&flat) {
            let [heading, to, number] = [1, 2, 3].map(|n| of.get(n).map_or("", |m| m.as_str()));
            let to = pages.get(&(to.to_owned(), number.to_owned()));
            let to = to.unwrap_or_else(|| panic!("{name} refers to {:?}", of.get(0)));
            assert!(heading.is_empty() || to.contains(&format!("\n# {heading}\n")), "{heading}");
        }
    }
    let mut by_units = text("packaging/ibprov.catalog");
    for entry in fs::read_dir(project("units")).expect("units") {
        by_units.push_str(&fs::read_to_string(entry.expect("entry").path()).expect("a unit"));
    }
    let named = matches(r"man:(ibprov\S*)", &by_units);
    assert!(named.len() > 30, "{named:?}");
    for page in named {
        let page = page.trim_end_matches(')').replace('(', ".");
        assert!(project(&format!("docs/{page}.md")).exists(), "no {page}");
    }
}

#[test]
fn pages_have_each_option_and_no_other() {
    let cli = cli();
    let common = text("docs/ibprov.8.md");
    let global: Vec<&Arg> = cli.get_arguments().filter(|arg| arg.is_global_set()).collect();
    assert_options(&common, &global, std::iter::empty());
    for verb in verbs(&cli) {
        let page = text(&format!("docs/ibprov-{}.8.md", verb.get_name()));
        let args: Vec<&Arg> = own(verb).collect();
        assert_options(&page, &args, verbs(verb).map(|below| below.get_name().to_owned()));

        let synopsis = section(&page, "SYNOPSIS");
        let told: BTreeSet<String> =
            matches(r"\*\*(--[a-z-]+)\*\*", synopsis).into_iter().collect();
        let real = args.iter().filter_map(|arg| arg.get_long()).map(|long| format!("--{long}"));
        assert_eq!(told, real.collect(), "SYNOPSIS of {}", verb.get_name());
        for below in verbs(verb) {
            assert!(synopsis.contains(&format!("**{}**", below.get_name())), "{synopsis}");
        }
    }
}

/// ibprov(8) has those that mean the same for every verb; a page has what differs, and the
/// help of a verb has all.
#[test]
fn pages_have_exit_codes_of_the_verb_and_no_other() {
    let codes = |page: &str| -> BTreeSet<String> {
        let told = terms(section(page, "EXIT STATUS"));
        told.keys().map(|term| term.trim_matches('*').to_owned()).collect()
    };
    let common = codes(&text("docs/ibprov.8.md"));
    assert_eq!(common, ["0", "1", "2", "3"].map(str::to_owned).into());
    let rows = |pattern, text: &str| matches(pattern, text).join("\n").replace([' ', '|'], "");
    for verb in verbs(&cli()) {
        let name = verb.get_name();
        let page = text(&format!("docs/ibprov-{name}.8.md"));
        let help = whole(verb).filter_map(|verb| verb.get_after_help());
        let help: String = help.map(|help| help.to_string()).collect();
        let exits = matches(r"(?s)(Exit codes.*?)(?:\n\n|$)", &help).join("\n");
        let real: BTreeSet<String> = matches(r"[:;]\s+(\d+)\b", &exits).into_iter().collect();
        let told = codes(&page);
        assert!(told.is_subset(&real), "{name}: {told:?}, and --help {real:?}");
        let special: BTreeSet<String> = &real - &common;
        assert!(special.is_subset(&told), "{name}: {told:?}, and --help {real:?}");
        // Those of health are a table.
        let table = rows(r"(?m)((?: +\d){3})$", &exits);
        assert_eq!(rows(r"(?m)((?:\| \d ){3})\|$", &page), table, "{name}");
    }
}

#[test]
fn the_journal_s_page_has_each_event_and_its_fields() {
    let events = text("src/model/events.rs");
    let kinds = matches(r#"pub const [A-Z_]+: &str = "([0-9a-f]{32})";"#, &events);
    assert_eq!(kinds.len(), events.matches("pub const ").count());
    let page = text("docs/ibprov.journal.7.md");
    let told: Vec<String> = matches(r"(?m)^([0-9a-f]{32})\n:   ", &page);
    let as_set = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(as_set(&told), as_set(&kinds));
    assert_eq!(told.len(), kinds.len(), "one is told twice");
    // Below the first event.
    let (_, told) = page.split_once("\n# BOOT\n").expect("the events");
    let fields = |text| as_set(&matches(r"\b(IBPROV_[A-Z_]+)", text));
    assert_eq!(fields(told), fields(&events));
}
