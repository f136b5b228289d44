//! What was seen of a host itself, as `ibprov collect` writes it and `check --log` reads it
//! back: the same values, so that the same is found.

use serde::{Deserialize, Serialize};

use super::account::begins_with_key;
use super::event::Origin;
use super::state::{Modules, NetdevSeen, PciSeen, PortSeen, State, UnitSeen};
use super::{Boot, Host};

/// The file in an archive.
pub const FILE: &str = "host.json";

/// No such file is longer: ten times what a large host has.
pub const LONGEST: u64 = 16 << 20;

/// The version of this form. It is no report: only the ibprov of one version, or of one
/// that knows its form, reads it.
const FORM: u32 = 1;

/// A host that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The version of this form.
    ibprov_host: u32,
    /// The boot in which it was looked at, by the journal's id.
    boot: Option<String>,
    host: Host,
    ports: Vec<PortSeen>,
    netdevs: Vec<NetdevSeen>,
    pci: Vec<PciSeen>,
    modules: Option<Modules>,
    units: Vec<UnitSeen>,
}

/// True if a JSON file that begins with `head` is such a record.
pub fn is_record(head: &[u8]) -> bool {
    begins_with_key(head, b"\"ibprov_host\"")
}

impl Record {
    /// What `state` and `host` show of the boot `boot`.
    pub fn of(boot: Option<String>, host: Host, state: State) -> Self {
        let State { ports, netdevs, pci, modules, units, .. } = state;
        Self { ibprov_host: FORM, boot, host, ports, netdevs, pci, modules, units }
    }

    /// The record in `json`.
    ///
    /// # Errors
    /// Another version of the form, or none.
    pub fn read(json: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            ibprov_host: u32,
        }
        let Head { ibprov_host } = serde_json::from_str(json).map_err(|e| e.to_string())?;
        if ibprov_host != FORM {
            return Err(format!(
                "the record of a host has format {ibprov_host}, but this ibprov reads format {FORM}"
            ));
        }
        serde_json::from_str(json).map_err(|e| e.to_string())
    }

    /// Put it to the boot that it is of, of `boots`; it is quoted as source number `source`.
    pub(super) fn attach(mut self, boots: &mut Vec<Boot>, source: u16) {
        let at = match &self.boot {
            Some(id) => boots.iter().position(|boot| boot.id.as_ref() == Some(id)),
            None => boots.len().checked_sub(1),
        };
        let boot = match at {
            Some(at) => boots.get_mut(at),
            // Not one line of the boot was kept.
            None => {
                boots.push(Boot { id: self.boot.clone(), ..Boot::default() });
                boots.last_mut()
            }
        };
        let Some(boot) = boot else { return };
        self.place(Origin { source, line: 0 });
        let state = &mut boot.state;
        state.ports.append(&mut self.ports);
        state.netdevs.append(&mut self.netdevs);
        state.pci.append(&mut self.pci);
        state.units.append(&mut self.units);
        if self.modules.is_some() {
            state.modules = self.modules;
        }
        boot.host = Some(Box::new(self.host));
    }

    fn place(&mut self, origin: Origin) {
        self.ports.iter_mut().for_each(|port| port.origin = origin);
        self.pci.iter_mut().for_each(|function| function.origin = origin);
        self.units.iter_mut().for_each(|unit| unit.origin = origin);
        for netdev in &mut self.netdevs {
            netdev.origin = origin;
            netdev.vfs.iter_mut().for_each(|vf| vf.origin = origin);
        }
    }
}

/// `json` with each text in it, keys too, as `change` makes it; all else, and the order, stays.
///
/// # Errors
/// A text in it is not one of JSON.
pub fn each_text(json: &str, change: &impl Fn(&str) -> String) -> serde_json::Result<String> {
    let mut new = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(begin) = rest.find('"') {
        let (head, text) = rest.split_at(begin);
        let mut is_escaped = false;
        let end = text.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            ends
        });
        let (text, tail) = text.split_at(end.map_or(text.len(), |(at, _)| at + 1));
        new.push_str(head);
        new.push_str(&serde_json::to_string(&change(&serde_json::from_str::<String>(text)?))?);
        rest = tail;
    }
    new.push_str(rest);
    Ok(new)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::graph::fixtures::graph;
    use crate::names::harmless;

    fn marked(json: &str) -> String {
        each_text(json, &harmless).expect("JSON")
    }

    fn record() -> Record {
        let mut host = Host { live: true, ..Host::default() };
        host.graph = graph("goal.target wants a.service\na.service before b.service\n");
        let mut state = State::default();
        state.ports.push(PortSeen { device: "mlx5_0".to_owned(), ..PortSeen::default() });
        state.modules = Some(Modules::all(["ib_core".to_owned()]));
        Record::of(Some("b7".to_owned()), host, state)
    }

    #[test]
    fn a_record_comes_back_as_it_was_and_lands_at_its_boot() {
        let record = record();
        let json = serde_json::to_string(&record).expect("JSON");
        assert!(is_record(json.as_bytes()), "{json}");
        assert_eq!(Record::read(&marked(&json)), Ok(record.clone()));
        let older = Boot { id: Some("b6".to_owned()), ..Boot::default() };
        let mut boots = vec![older, Boot { id: Some("b7".to_owned()), ..Boot::default() }];
        record.clone().attach(&mut boots, 3);
        assert!(boots[0].host.is_none() && boots[1].host.as_ref().is_some_and(|h| h.live));
        assert_eq!(boots[1].state.ports[0].origin.source, 3);
        boots.truncate(1);
        record.attach(&mut boots, 3);
        assert_eq!((boots.len(), boots[1].id.as_deref()), (2, Some("b7")));
    }

    #[test]
    fn another_form_is_refused() {
        let json = serde_json::to_string(&record()).expect("JSON").replace("host\":1", "host\":9");
        assert!(Record::read(&json).is_err_and(|e| e.contains("format 9,")));
    }

    #[test]
    fn nothing_in_a_record_moves_a_cursor() {
        let text = "a\u{1b}[2Jb\nc\u{202e}d\\\"e\u{9b}";
        let json = serde_json::to_string(text).expect("JSON");
        let read: String = serde_json::from_str(&marked(&json)).expect("JSON");
        assert_eq!(read, "a\u{fffd}[2Jb c\u{fffd}d\\\"e\u{fffd}");
        let escaped = r#""\u001b\u202E\b\u00e4\ud83d\ude00""#;
        let read: String = serde_json::from_str(&marked(escaped)).expect("JSON");
        assert_eq!(read, "\u{fffd}\u{fffd}\u{fffd}\u{e4}\u{1f600}");
    }

    proptest! {
        #[test]
        fn good_text_is_left_as_it_is(text in "[ -~äß\u{1f600}]{0,40}") {
            let json = serde_json::to_string(&text).expect("JSON");
            prop_assert_eq!(marked(&json), json);
        }

        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = each_text(&text, &str::to_owned);
            let _ = Record::read(&text);
        }
    }
}
