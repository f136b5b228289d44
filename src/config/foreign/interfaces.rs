//! What the files of network stacks say of the mode, the MTU and the P_Keys of IPoIB
//! interfaces. It becomes `[[interface]]`: ibprov then checks what the stack, which keeps its
//! files and addresses, has set.

use std::collections::BTreeMap;

use super::shell::assignment;
use super::{Imported, port_guid, shown};
use crate::names::{Guid, IfName, Mode, PKey, beginning, harmless};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// What `[[interface]]` can say; `None` if that is nothing.
    pub interface: Option<Interface>,
    /// What it cannot, one line each.
    pub todo: Vec<String>,
    /// What stays with the stack, each by line and key.
    pub stays: Vec<String>,
}

/// What is left for a hand to do, and in which line.
pub(super) type Todo = (usize, String);

/// A key of a file with its value, and its line.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub line: usize,
    pub key: &'a str,
    pub text: &'a str,
}

impl Given<'_> {
    pub(super) fn todo(self, what: &str) -> Todo {
        (self.line, format!("{}={}{what}", self.key, shown(self.text)))
    }

    /// A name of an interface that needs no quoting and is no pattern.
    pub(super) fn name(self) -> Result<IfName, Todo> {
        let why = " is not a plain name of an interface";
        IfName::to_give(self.text).map_err(|_| self.todo(why))
    }

    pub(super) fn port(self) -> Result<Which, Todo> {
        port_guid(self.text).map(Which::PortGuid).map_err(|why| self.todo(&format!(": {why}")))
    }

    /// A P_Key and the number that stands there: decimal, `0x` or, with a zero before it, octal.
    pub(super) fn pkey(self) -> Result<(PKey, u16), Todo> {
        let text = self.text;
        let value = match (text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")), text) {
            (Some(hex), _) => u16::from_str_radix(hex, 16),
            (None, octal) if octal.len() > 1 && octal.starts_with('0') => {
                u16::from_str_radix(octal, 8)
            }
            (None, decimal) => decimal.parse(),
        };
        let pkey = value.ok().and_then(|value| Some((PKey::new(value)?, value)));
        pkey.ok_or_else(|| self.todo(" is not a P_Key"))
    }

    pub(super) fn lower(self) -> String {
        self.text.to_lowercase()
    }
}

impl Said {
    pub(super) fn todo(&mut self, line: usize, what: &str) {
        self.todo.push(format!("line {line}: {what}"));
    }

    /// Takes what a file says of an interface, or why it says nothing that can be done.
    pub(super) fn take(&mut self, interface: Result<Option<Interface>, Todo>) {
        match interface {
            Ok(interface) => self.interface = interface,
            Err((line, what)) => self.todo(line, &what),
        }
    }

    /// An MTU that is one of IPoIB in this mode; 0 is none.
    pub(super) fn mtu(&mut self, given: Option<Given<'_>>, mode: Option<Mode>) -> Option<u32> {
        let given = given?;
        let mtu = given.text.parse().ok().filter(|mtu| *mtu == 0 || (72..=65520).contains(mtu));
        let why = match (mtu, mode) {
            (Some(0), _) => return None,
            (Some(mtu), Some(mode)) if mtu > mode.largest_mtu(true) => {
                "too large for datagram mode, which has at most 4092 (10236 on Omni-Path)"
            }
            (Some(mtu), _) => return Some(mtu),
            (None, _) => "not an MTU of IPoIB",
        };
        let (line, what) = given.todo(&format!(": {why}"));
        self.todo(line, &what);
        None
    }

    /// The last assignment of each of the keys that are `ours`, with its line. The others stay
    /// with the stack, and `switch`, which says whether there is an interface at boot, does too.
    pub(super) fn assignments<'t>(
        &mut self,
        text: &'t str,
        ours: &[&str],
        switch: &str,
    ) -> BTreeMap<&'t str, (usize, String)> {
        let mut values = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            match assignment(line) {
                Ok(Some((key, value))) => {
                    if !ours.contains(&key) || key == switch {
                        self.stays(number, key);
                    }
                    if ours.contains(&key) {
                        values.insert(key, (number, value));
                    }
                }
                Ok(None) => {}
                Err(why) => {
                    let (key, _) = line.split_once('=').unwrap_or_default();
                    let key = key.trim_start().trim_start_matches("export ");
                    let is_key = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                    if key.is_empty() || !is_key || ours.contains(&key) && key != switch {
                        self.todo(number, &why);
                    } else {
                        self.stays(number, key);
                    }
                }
            }
        }
        values
    }

    pub(super) fn stays(&mut self, line: usize, key: &str) {
        self.stays.push(format!("{} (line {line})", beginning(key)));
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The interface of a port.
    pub which: Which,
    /// It is the child of that with this P_Key.
    pub child: Option<Child>,
    pub mode: Option<Mode>,
    pub umcast: Option<bool>,
    /// Its MTU in bytes.
    pub mtu: Option<u32>,
}

/// Which interface of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// That with this name, of letters, digits, `.`, `_` and `-`.
    Name(IfName),
    /// That of the port with this GUID.
    PortGuid(Guid),
}

/// The interface of a port on this host.
#[derive(Debug)]
pub struct Seen {
    pub name: IfName,
    pub can_connect: bool,
    pub omni_path: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    pub pkey: PKey,
    /// Its name; `None`: as the kernel names it.
    pub name: Option<IfName>,
}

/// What files say, each with its path, as one configuration.
pub fn import(files: &[(String, Said)]) -> Imported {
    let mut imported = Imported::default();
    for (_, said) in files {
        imported.todo.extend(said.todo.iter().cloned());
        imported.stays.extend(said.stays.iter().cloned());
    }
    let all: Vec<&Interface> =
        files.iter().filter_map(|(_, said)| said.interface.as_ref()).collect();
    // What is said of a port's interface holds for its children: those come after it.
    for (file, said) in files {
        if let Some(interface) = said.interface.as_ref().filter(|i| i.child.is_none()) {
            imported.toml.push_str(&interface.to_toml(file, &all));
        }
    }
    for (file, said) in files {
        if let Some(interface) = said.interface.as_ref().filter(|i| i.child.is_some()) {
            imported.toml.push_str(&interface.to_toml(file, &all));
        }
    }
    imported
}

impl Said {
    /// Takes out what would be refused on this host, where the port has the interface `seen`.
    pub fn fit(&mut self, seen: Option<&Seen>) {
        let Some(interface) = &mut self.interface else { return };
        let refusing = seen.filter(|seen| !seen.can_connect);
        let connected =
            refusing.filter(|_| interface.mode.take_if(|m| *m == Mode::Connected).is_some());
        // Without a mode the kernel has datagram.
        let mode = interface.mode.unwrap_or(Mode::Datagram);
        let largest = mode.largest_mtu(seen.is_some_and(|seen| seen.omni_path));
        let mtu = interface.mtu.take_if(|mtu| *mtu > largest);
        let why = match (connected, mtu) {
            (None, None) => return,
            (Some(Seen { name, .. }), mtu) => {
                let mtu = mtu.map_or_else(String::new, |mtu| format!(" and MTU {mtu}"));
                format!(
                    "connected mode{mtu} left out, because the driver of {name} does not support connected mode"
                )
            }
            (None, Some(mtu)) => {
                let unless = match seen {
                    None if mtu <= Mode::Datagram.largest_mtu(true) => {
                        " unless the port is one of Omni-Path, and this host has no such interface now"
                    }
                    _ => "",
                };
                format!(
                    "MTU {mtu} left out: the file does not set connected mode, and datagram mode has at most {largest}{unless}"
                )
            }
        };
        self.todo.push(why);
        if interface.child.is_none()
            && interface.umcast.is_none()
            && interface.mtu.is_none()
            && interface.mode.is_none()
        {
            self.interface = None;
        }
    }
}

impl Interface {
    fn to_toml(&self, file: &str, all: &[&Self]) -> String {
        let mut toml = format!("# {}\n[[interface]]\n", harmless(file));
        toml.push_str(&match &self.which {
            Which::Name(name) => format!("match.name = \"{name}\"\n"),
            Which::PortGuid(guid) => format!("match.port-guid = \"{guid}\"\n"),
        });
        let mut mtu = self.mtu.map(|mtu| format!("mtu = {mtu}\n"));
        if let Some(Child { pkey, name }) = &self.child {
            toml.push_str(&format!("[[interface.partition]]\npkey = \"{pkey}\"\n"));
            if let Some(name) = name {
                toml.push_str(&format!("name = \"{name}\"\n"));
            }
            let parents =
                all.iter().filter(|other| other.child.is_none() && other.which == self.which);
            let of_parent = parents.filter_map(|parent| parent.mtu).max();
            if mtu.is_none()
                && self.mode == Some(Mode::Datagram)
                && of_parent > Some(Mode::Datagram.largest_mtu(false))
            {
                mtu = Some("mtu = 2044 # its parent's would be too large\n".to_owned());
            }
        }
        if let Some(mode) = self.mode {
            toml.push_str(&format!("mode = \"{}\"\n", mode.word()));
        }
        if let Some(umcast) = self.umcast {
            toml.push_str(&format!("umcast = {umcast}\n"));
        }
        toml.push_str(&mtu.unwrap_or_default());
        toml.push('\n');
        toml
    }
}
