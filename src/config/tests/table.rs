//! The table of keys against everything that must agree with it.

use std::path::Path;

use super::super::keys::{FIRMWARE, HOST_SITE, KEYS, Key, Kind, PF, RXE, SUBNET_MANAGER};
use super::files::read;
use super::good;
use crate::config::Config;
use crate::config::schema::spelling;

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
            Kind::Number { max, .. } | Kind::Numbers { max, .. } => max.to_string(),
            Kind::Vfs => "0".to_owned(),
            Kind::Settings => "{ NUM_OF_VFS = 8 }".to_owned(),
            Kind::Word(word) | Kind::OneOrMore(word) => format!("{:?}", spelling::of(word).0),
            Kind::Words(word) => format!("[{:?}]", spelling::of(word).0),
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
fn a_file_of_all_defaults_is_the_default() {
    let with_default = KEYS.iter().filter(|key| !key.default.is_empty());
    let text: String =
        with_default.map(|key| format!("{} = {}\n", key.path, key.default)).collect();
    assert_eq!(good(&[&text]), Config::default());
}

/// A key has one entry in both pages together, below one or more keys that it tells of, and no
/// entry is of a key that does not exist.
#[test]
fn the_manual_pages_have_every_key_once_and_its_default() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let pages = ["ibprov.toml.5.md", "ibprov-vf.5.md"].map(|page| read(&docs.join(page)));
    let mut entries: Vec<(&str, &str)> = Vec::new();
    for page in &pages {
        let keys =
            page.split_once("\n# KEYS\n").expect("keys").1.split("\n# ").next().expect("them");
        for (head, text) in keys.split("\n`").skip(1).filter_map(|e| e.split_once("\n:   ")) {
            let text = text.split("\n\n").next().expect("an entry");
            entries.extend(head.split("`, `").map(|key| (key.trim_end_matches('`'), text)));
        }
    }
    for (path, key) in all_keys() {
        let of: Vec<&str> = entries.iter().filter(|e| e.0 == path).map(|e| e.1).collect();
        let [entry] = of[..] else { panic!("{path}: {} entries", of.len()) };
        assert!(key.default.is_empty() || entry.contains(&format!("`{}`", key.default)), "{path}");
    }
    assert_eq!(entries.len(), all_keys().len(), "{entries:?}");
}

/// After `#` stands a default, after `##` an example, after `# ` prose.
#[test]
fn the_vendor_file_shows_the_defaults_and_good_examples() {
    let file = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/ibprov.toml"));
    assert_eq!(good(&[&file]), Config::default());
    let uncommented = |of: fn(&str) -> Option<&str>| -> String {
        file.lines().map(|line| of(line).unwrap_or_default().to_owned() + "\n").collect()
    };
    let defaults = uncommented(|l| l.strip_prefix('#').filter(|l| !l.starts_with([' ', '#'])));
    assert_eq!(good(&[&defaults]), Config::default(), "{defaults}");
    let examples = uncommented(|l| {
        l.strip_prefix("##").or_else(|| l.strip_prefix('#').filter(|l| l.starts_with('[')))
    });
    assert_ne!(good(&[&examples]), Config::default());
    for key in KEYS {
        let shown = match key.path.split_once('.') {
            None => examples.contains(&format!("\n[[{}]]\n", key.path)),
            Some((table, name)) => {
                let (_, rest) = defaults.split_once(&format!("\n[{table}]\n")).expect(table);
                let rest = rest.split("\n[").next().expect("table");
                match key.default {
                    "" => file.contains(name),
                    default => format!("\n{rest}").contains(&format!("\n{name} = {default}\n")),
                }
            }
        };
        assert!(shown, "{}", key.path);
    }
}
