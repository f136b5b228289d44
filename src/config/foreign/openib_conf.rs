//! `/etc/infiniband/openib.conf` of MLNX_OFED and DOCA: shell assignments.
//!
//! It is sourced by a shell there, and only read here: what a shell would have
//! to compute is left to do by hand. Of a key given twice the last counts, as
//! installers append to the file.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::shell::assignment;
use super::{Imported, shown};
use crate::model::data::data;
use crate::names::IfName;

pub const PATH: &str = "/etc/infiniband/openib.conf";

/// `openib.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    key: Vec<Key>,
}

#[derive(Debug, Deserialize)]
struct Key {
    names: Vec<String>,
    #[serde(flatten)]
    meaning: Meaning,
}

/// What a key means to ibprov.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Meaning {
    Load(Vec<String>),
    Skip(String),
    If(String, String),
    Unless(String, String),
    #[expect(dead_code, reason = "the reason is for the next developer")]
    Nothing(String),
}

fn meaning(name: &str) -> Option<&'static Meaning> {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    let read = || data(include_bytes!(concat!(env!("OUT_DIR"), "/openib.toml.gz")));
    let Keys { key } = KEYS.get_or_init(read);
    key.iter().find(|key| key.names.iter().any(|known| known == name)).map(|key| &key.meaning)
}

/// Reads the file for a host whose interfaces `datagram_only` cannot have connected mode, which
/// mlnx_interface_mgr does not set there either.
pub fn import(text: &str, datagram_only: &[IfName]) -> Imported {
    import_with(text, &[], None, datagram_only)
}

/// Reads a file of such keys, of which one may be `ignored`. What reads the file loads the modules
/// `always`, whatever it says.
pub(super) fn import_with(
    text: &str,
    always: &[&'static str],
    ignored: Option<&str>,
    datagram_only: &[IfName],
) -> Imported {
    let mut imported = Imported::default();
    let mut values: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        // What rdma-ndd does by itself, and every file has.
        let description =
            line.trim().strip_prefix("NODE_DESC=").map(|value| value.trim_matches('"'));
        if matches!(description, Some("$(hostname -s)" | "`hostname -s`")) {
            values.remove("NODE_DESC");
            continue;
        }
        match assignment(line) {
            Ok(Some((key, value))) => {
                values.insert(key, (number, value));
            }
            Ok(None) => {}
            Err(why) => imported.todo(number, &why),
        }
    }
    let mut given: Vec<(&str, usize, &str)> =
        values.iter().map(|(key, (line, value))| (*key, *line, value.as_str())).collect();
    given.sort_by_key(|(_, line, _)| *line);
    let (mut load, mut skip) = (always.to_vec(), Vec::new());
    for (key, line, value) in given.into_iter().filter(|(key, ..)| Some(*key) != ignored) {
        let mut todo = |what: &str| imported.todo(line, &format!("{key}={}: {what}", shown(value)));
        let is = |word: &str| value.eq_ignore_ascii_case(word);
        match meaning(key) {
            Some(Meaning::Load(modules)) if is("yes") => {
                load.extend(modules.iter().map(String::as_str));
            }
            Some(Meaning::Skip(module)) if is("no") => skip.push(module.as_str()),
            Some(Meaning::Load(_) | Meaning::Skip(_)) if !is("yes") && !is("no") => {
                todo("neither yes nor no");
            }
            Some(Meaning::If(word, what)) if is(word) => todo(what),
            Some(Meaning::Unless(word, what)) if !is(word) => todo(what),
            Some(_) => {}
            None => todo("ibprov does not know this key"),
        }
    }
    for modules in [&mut load, &mut skip] {
        let mut seen = Vec::new();
        modules.retain(|module| {
            !seen.contains(module) && {
                seen.push(*module);
                true
            }
        });
    }
    let list = |modules: &[&str]| {
        modules.iter().map(|m| format!("\"{m}\"")).collect::<Vec<_>>().join(", ")
    };
    if !load.is_empty() || !skip.is_empty() {
        imported.toml.push_str("[modules]\n");
        if !load.is_empty() {
            imported.toml.push_str(&format!("load = [{}]\n", list(&load)));
        }
        if !skip.is_empty() {
            imported.toml.push_str(&format!("exclude = [{}]\n", list(&skip)));
        }
        imported.toml.push('\n');
    }
    match (values.get("SET_IPOIB_CM"), datagram_only.first()) {
        (Some((line, value)), Some(name)) if value == "yes" => imported.todo(
            *line,
            &format!(
                "SET_IPOIB_CM=yes and IPOIB_MTU are left out, because the driver of {name} does not support connected mode; for an interface whose driver does, add an [[interface]] with mode = \"connected\""
            ),
        ),
        _ => ipoib(&mut imported, &values),
    }
    imported.todo.sort_by_key(|todo| line_of(todo));
    imported
}

fn line_of(todo: &str) -> usize {
    let number = todo.strip_prefix("line ").and_then(|rest| rest.split(':').next());
    number.and_then(|n| n.parse().ok()).unwrap_or(usize::MAX)
}

/// `SET_IPOIB_CM` and `IPOIB_MTU`, which was the MTU of connected mode.
fn ipoib(imported: &mut Imported, values: &BTreeMap<&str, (usize, String)>) {
    let value = |key| values.get(key).map(|(line, value)| (*line, value.as_str()));
    let mode = match value("SET_IPOIB_CM") {
        Some((_, "yes")) => "connected",
        Some((_, "no")) => "datagram",
        // auto: what the driver chose; what ibprov is not told, it leaves alone.
        Some((_, "auto" | "")) | None => "",
        Some((line, other)) => {
            let what =
                format!("SET_IPOIB_CM={} is not a mode: expected yes, no or auto", shown(other));
            imported.todo(line, &what);
            ""
        }
    };
    if !mode.is_empty() {
        imported.toml.push_str(&format!("[[interface]]\nmatch.name = \"*\"\nmode = \"{mode}\"\n"));
    }
    if let Some((line, text)) = value("IPOIB_MTU") {
        match text.parse::<u32>() {
            Ok(mtu) if (72..=65520).contains(&mtu) && mode == "connected" => {
                imported.toml.push_str(&format!("mtu = {mtu}\n"));
            }
            _ if mode != "connected" => {
                imported.todo(line, "IPOIB_MTU is the MTU of connected mode, which is not set");
            }
            _ => imported.todo(line, &format!("IPOIB_MTU={} is not an MTU of IPoIB", shown(text))),
        }
    }
}
