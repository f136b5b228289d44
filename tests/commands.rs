//! Each command that a report tells to run, as the sources and the data of the rules have it.

#![allow(clippy::disallowed_methods, reason = "tests read the sources")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic in its helpers too")]

use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

#[path = "bed/told.rs"]
mod told;

/// A string literal as it is meant; in `format!` with a value for each argument.
fn filled(literal: &str) -> String {
    let mut text = String::new();
    let mut rest = literal;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        if from.starts_with("{{") || from.starts_with("}}") {
            text.push_str(&from[..1]);
            rest = &from[2..];
            continue;
        }
        let (name, after) = from[1..].split_once('}').expect("an argument");
        text.push_str(match name {
            "pci" | "pf" | "at" | "address" | "adapter" => "0000:4b:00.0",
            "netdev" | "name" | "to" | "by" | "NETDEV" => "ib0",
            "MODULE" => "ib_umad",
            "n" | "pid" | "number" => "1",
            _ => "0000:4b:00.0",
        });
        rest = after;
    }
    text + rest
}

/// The string literal that `argument` is, or the one of its `format!`.
fn literal(argument: TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = argument.into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Literal(text), ..] => match syn::parse_str(&text.to_string()).ok()? {
            syn::Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        [TokenTree::Ident(name), _, TokenTree::Group(group)] if name == "format" => {
            literal(group.stream())
        }
        _ => None,
    }
}

/// The last of the arguments in `tokens`.
fn last_argument(tokens: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
    let mut arguments = tokens.split(is_comma).filter(|argument| !argument.is_empty());
    arguments.next_back().unwrap_or_default().iter().cloned().collect()
}

/// The commands of `ToDo::run(...)` and `ToDo::with(...)` in `tokens`.
fn commands(tokens: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        commands(group.stream(), found);
        let before: String = tokens
            .get(at.saturating_sub(4)..at)
            .into_iter()
            .flatten()
            .map(ToString::to_string)
            .collect();
        if before == "ToDo::run" || before == "ToDo::with" {
            found.extend(literal(last_argument(group.stream())).map(|text| filled(&text)));
        }
    }
}

/// The commands of the steps in `value`, which are data of the rules of `check`.
fn in_data(value: &toml::Value, found: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            let run = table.get("run").and_then(toml::Value::as_str);
            found.extend(run.map(filled));
            table.values().for_each(|value| in_data(value, found));
        }
        toml::Value::Array(values) => values.iter().for_each(|value| in_data(value, found)),
        _ => {}
    }
}

fn below(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            below(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            commands(text.parse().expect("Rust"), found);
        }
    }
}

#[test]
fn each_command_that_is_told_is_one() {
    let mut all = Vec::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    below(&sources, &mut all);
    let in_rust = all.len();
    let rules = fs::read_to_string(sources.join("check/rules/rules.toml")).expect("the rules");
    in_data(&rules.parse().map(toml::Value::Table).expect("TOML"), &mut all);
    let in_rows = all.len() - in_rust;
    assert!(in_rust > 80 && in_rows > 15, "{in_rust} and {in_rows} commands were found");
    let wrong: Vec<String> = all.iter().flat_map(|command| told::faults(command)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
