//! The journal catalog (`packaging/ibprov.catalog`) explains each kind of event that ibprov
//! reports, with fields that the event has; and the versions of the packages are ours.

#![allow(clippy::disallowed_methods, reason = "tests read files")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic in its helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regex::Regex;

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every match of group 1 and, if there is one, group 2.
fn pairs(pattern: &str, text: &str) -> Vec<(String, String)> {
    let pattern = Regex::new(pattern).expect("a pattern");
    let all = pattern.captures_iter(text);
    let group =
        |c: &regex::Captures<'_>, n| c.get(n).map_or_else(String::new, |m| m.as_str().into());
    all.map(|c| (group(&c, 1), group(&c, 2))).collect()
}

#[test]
fn the_catalog_explains_each_kind_of_event() {
    let events = text("src/model/events.rs");
    let kinds = pairs(r#"pub const [A-Z_]+: &str =\s+"([0-9a-f]{32})";"#, &events);
    assert_eq!(kinds.len(), events.matches("pub const ").count());
    let kinds: BTreeSet<String> = kinds.into_iter().map(|(id, _)| id).collect();

    let catalog = text("packaging/ibprov.catalog");
    let mut entries = BTreeMap::new();
    for entry in catalog.split("\n-- ").skip(1) {
        let (id, rest) = entry.split_once('\n').expect("an id");
        let (head, body) = rest.split_once("\n\n").expect("headers, and what is said");
        assert!(head.starts_with("Subject: "), "{id}: {head}");
        assert!(head.contains("\nDefined-By: ibprov\n"), "{id}: {head}");
        assert!(body.trim().ends_with(['.', '@']), "{id}: {body}");
        assert!(entries.insert(id.to_owned(), body.to_owned()).is_none(), "{id} twice");
    }
    assert_eq!(entries.keys().cloned().collect::<BTreeSet<_>>(), kinds);

    // journalctl leaves a field that an event does not have as it is written.
    let known: BTreeSet<String> =
        pairs(r"\b(IBPROV_[A-Z_]+)", &events).into_iter().map(|(field, _)| field).collect();
    for (id, body) in &entries {
        for (field, _) in pairs("@([^@]+)@", body) {
            assert!(known.contains(&field), "{id}: no event has {field}");
        }
    }
}

#[test]
fn packages_have_the_version_of_the_program() {
    let spec = text("packaging/rpm/ibprov.spec");
    let version = pairs(r"(?m)^Version: +(\S+)$", &spec);
    assert_eq!(version, [(env!("CARGO_PKG_VERSION").to_owned(), String::new())]);
}
