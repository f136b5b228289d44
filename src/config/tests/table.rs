//! The table of keys against everything that must agree with it.

use super::super::keys::{FIRMWARE, HOST_SITE, KEYS, Key, Kind, PF, RXE, SUBNET_MANAGER};
use super::super::{merge, validate};
use super::{good, loaded};
use crate::config::{Config, Problems};

/// Every row of the table of keys, with the path that people see.
fn all_keys() -> Vec<(String, &'static Key)> {
    fn add(list: &mut Vec<(String, &'static Key)>, above: &str, keys: &'static [Key]) {
        for key in keys {
            let path = format!("{above}{}", key.path);
            list.push((path.clone(), key));
            if let Kind::Tables(fields) = key.kind {
                add(list, &format!("{path}."), fields);
            }
        }
    }
    let mut list = Vec::new();
    add(&mut list, "", KEYS);
    list
}

#[test]
fn every_key_has_an_effect() {
    fn sample(kind: &Kind) -> String {
        match kind {
            Kind::Span => "1".to_owned(),
            Kind::Flag => "true".to_owned(),
            Kind::Options => "{ routing_engine = \"updn\" }".to_owned(),
            Kind::Number { max, .. } => max.to_string(),
            Kind::Vfs => "0".to_owned(),
            Kind::Settings => "{ NUM_OF_VFS = 8 }".to_owned(),
            Kind::Word(word) | Kind::OneOrMore(word) => format!("{:?}", word.example),
            Kind::Words(word) => format!("[{:?}]", word.example),
            Kind::Tables(keys) => {
                let word =
                    keys.iter().find(|key| matches!(key.kind, Kind::Word(_) | Kind::OneOrMore(_)));
                let key = word.expect("a key that names something");
                format!("[{{ {} = {} }}]", key.path, sample(&key.kind))
            }
        }
    }
    // What host.site does is seen in a template alone.
    for key in KEYS.iter().filter(|key| key.path != HOST_SITE.path()) {
        let mut text = format!("{} = {}", key.path, sample(&key.kind));
        if key.path == RXE.path() {
            text = text.replace(" }", ", netdev = \"eth1\" }");
        }
        if key.path == FIRMWARE.path() {
            text = text.replace(" }", ", set = { NUM_OF_VFS = 8 } }");
        }
        if key.path == SUBNET_MANAGER.path() {
            text = text.replace(" }", ", priority = 14 }");
        }
        if key.path == PF.path() {
            text = text.replace(" }", ", vfs = 0 }");
        }
        assert_ne!(good(&[&text]), Config::default(), "{text}");
    }
}

#[test]
fn the_table_s_defaults_are_the_defaults() {
    let with_default = KEYS.iter().filter(|key| !key.default.is_empty());
    let text: String =
        with_default.map(|key| format!("{} = {}\n", key.path, key.default)).collect();
    assert_eq!(good(&[&text]), Config::default());
    assert_eq!(
        validate::build(&merge::Merged::defaults(), &mut Problems::default()),
        Config::default()
    );
}

#[test]
fn the_manual_page_has_every_key_and_default() {
    let page = include_str!("../../../docs/ibprov.toml.5.md");
    for (path, key) in all_keys() {
        let head = format!("`{path}`\n");
        let (_, entry) = page.split_once(&head).unwrap_or_else(|| panic!("no entry {head}"));
        let entry = entry.split("\n`").next().expect("entry");
        assert!(key.default.is_empty() || entry.contains(&format!("`{}`", key.default)), "{path}");
    }
}

#[test]
fn the_vendor_file_changes_nothing_and_its_examples_are_good() {
    let file = include_str!("../../../packaging/ibprov.toml");
    assert_eq!(good(&[file]), Config::default());
    // Examples are commented out without a blank, prose with one. After two
    // marks stands what another example excludes. What is not a list and not in a table
    // that can be there several times is the default, where there is one.
    let example = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.starts_with([' ', '#']) => format!("{rest}\n"),
        _ => "\n".to_owned(),
    };
    let examples: String = file.lines().map(example).collect();
    let loaded = loaded(&[&examples]).unwrap_or_else(|problems| panic!("{problems}"));
    let shown = format!("{examples}{}", file.replace("\n##", "\n"));
    for (path, key) in all_keys() {
        let name = match key.path.rsplit_once('.') {
            Some((_, name)) if path == key.path => name,
            _ => key.path,
        };
        let head = format!("[[{path}]]");
        assert!(shown.contains(&format!("\n{name} = ")) || shown.contains(&head), "{path}");
        if let Some((table, name)) = path.split_once('.')
            && let Some((_, rest)) = examples.split_once(&format!("\n[{table}]\n"))
            && !key.default.is_empty()
            && !key.default.starts_with('[')
        {
            let line = format!("\n{name} = {}", key.default);
            let table = rest.split("\n[").next().expect("table");
            assert!(format!("\n{table}").contains(&line), "{path}: not the default: {table}");
        }
    }
    assert_ne!(loaded.config, Config::default());
}
