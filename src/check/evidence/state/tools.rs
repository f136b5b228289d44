//! `lspci`, `lsmod`, `mlxconfig`, `systemctl`, and prompts.

use super::super::event::Origin;
use super::{LIMIT, State};
use crate::check::pattern::{caught_one, word};

/// A PCI function as `lspci` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PciSeen {
    /// Its address as written, perhaps without domain.
    pub address: String,
    /// The driver bound to it.
    pub driver: Option<String>,
    /// All its lines, the first of them whole.
    pub text: String,
    /// The lines below it.
    pub details: Vec<String>,
    /// Its line.
    pub origin: Origin,
}

impl PciSeen {
    /// True if it is an InfiniBand card or its VF, by class or by name.
    #[must_use]
    pub fn is_infiniband(&self) -> bool {
        let text = self.text.to_ascii_lowercase();
        text.contains("infiniband") || text.contains("[0207]") || text.contains("omni-path")
    }
}

/// An RDMA device as `ibv_devices` lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceSeen {
    /// Its name.
    pub name: String,
    /// Its node GUID, 16 hex digits.
    pub node_guid: String,
    /// Its line.
    pub origin: Origin,
    /// That line.
    pub text: String,
}

/// A firmware setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting {
    /// Its name, upper case.
    pub name: String,
    /// Its value as written.
    pub value: String,
    /// Its line.
    pub origin: Origin,
    /// That line.
    pub text: String,
}

/// A unit as systemctl shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitSeen {
    /// Its name.
    pub name: String,
    /// `enabled`, `disabled`, `static`, `masked` ...; empty where not shown.
    pub enabled: String,
    /// `active (exited)`, `failed (Result: exit-code)` ...; empty where not shown.
    pub active: String,
    /// The line that shows it.
    pub origin: Origin,
    /// That line.
    pub text: String,
}

/// What was typed at a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// What was typed.
    pub text: String,
    /// What came of it, line by line.
    pub output: Vec<(Origin, String)>,
    /// Its line.
    pub origin: Origin,
}

impl Command {
    /// The first line of output, trimmed.
    #[must_use]
    pub fn answer(&self) -> &str {
        self.output.first().map_or("", |(_, text)| text.trim())
    }
}

/// Lines of output that are kept with a command.
const OUTPUT: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Reader {
    in_pci: bool,
    in_modules: bool,
    in_unit: bool,
    in_command: bool,
}

impl Reader {
    pub(super) fn gap(&mut self) {
        *self = Self { in_command: self.in_command, ..Self::default() };
    }

    pub(super) fn line(&mut self, text: &str, origin: Origin, state: &mut State) {
        self.prompt(text, origin, &mut state.commands);
        let mut words = text.split_whitespace();
        if let (Some(name), Some(guid), None) = (words.next(), words.next(), words.next())
            && guid.len() == 16
            && guid.bytes().all(|b| b.is_ascii_hexdigit())
            && name.parse::<crate::names::RdmaName>().is_ok()
            && state.devices.len() < LIMIT
        {
            state.devices.push(DeviceSeen {
                name: name.to_owned(),
                node_guid: guid.to_owned(),
                origin,
                text: text.trim().to_owned(),
            });
        }
        self.module(text, &mut state.modules);
        self.pci(text, origin, &mut state.pci);
        self.unit(text, origin, &mut state.units);
        let mut words = text.split_whitespace();
        let mut name = words.next();
        if name == Some("*") {
            // `mlxconfig -e` marks what is not the default.
            name = words.next();
        }
        if let (
            Some(name @ ("SRIOV_EN" | "NUM_OF_VFS" | "LINK_TYPE_P1" | "LINK_TYPE_P2")),
            Some(value),
        ) = (name, words.next())
            && state.settings.len() < LIMIT
        {
            // `mlxconfig -e` shows default, current and next boot: the last counts.
            let value = words.last().unwrap_or(value);
            state.settings.push(Setting {
                name: name.to_owned(),
                value: value.trim_start_matches('=').to_owned(),
                origin,
                text: text.trim().to_owned(),
            });
        }
    }

    fn prompt(&mut self, text: &str, origin: Origin, commands: &mut Vec<Command>) {
        if let Some(typed) = typed(text) {
            self.in_command = commands.len() < LIMIT;
            if self.in_command {
                commands.push(Command { text: typed.to_owned(), output: Vec::new(), origin });
            }
        } else if self.in_command
            && let Some(command) = commands.last_mut()
            && command.output.len() < OUTPUT
        {
            command.output.push((origin, text.to_owned()));
        }
    }

    fn module(&mut self, text: &str, modules: &mut Option<Vec<String>>) {
        let words: Vec<&str> = text.split_whitespace().take(3).collect();
        if let ["Module", "Size", "Used"] = words.as_slice() {
            modules.get_or_insert_default();
            self.in_modules = true;
        } else if let (true, [name, size, uses]) = (self.in_modules, words.as_slice())
            && let (Ok(_), Ok(_)) = (size.parse::<u64>(), uses.parse::<i64>())
        {
            let modules = modules.get_or_insert_default();
            if modules.len() < LIMIT {
                modules.push((*name).to_owned());
            }
        } else {
            self.in_modules = false;
        }
    }

    fn pci(&mut self, text: &str, origin: Origin, pci: &mut Vec<PciSeen>) {
        let address = word(text);
        if is_pci_address(address) && text.contains(": ") && !text.starts_with(char::is_whitespace)
        {
            self.in_pci = pci.len() < LIMIT;
            if self.in_pci {
                pci.push(PciSeen {
                    address: address.to_owned(),
                    text: text.trim().to_owned(),
                    origin,
                    ..PciSeen::default()
                });
            }
        } else if self.in_pci && text.starts_with([' ', '\t']) {
            if let Some(function) = pci.last_mut().filter(|f| f.details.len() < 128) {
                if let Some(driver) = caught_one(text, "Kernel driver in use: {}") {
                    function.driver = Some(word(driver).to_owned());
                }
                function.details.push(text.trim().to_owned());
            }
        } else {
            self.in_pci = false;
        }
    }

    fn unit(&mut self, text: &str, origin: Origin, units: &mut Vec<UnitSeen>) {
        let trimmed = text.trim().trim_start_matches(['●', '○', '×', '*', '↻']).trim_start();
        let name = word(trimmed);
        let is_unit =
            [".service", ".target", ".mount", ".socket"].iter().any(|s| name.ends_with(s));
        if is_unit && trimmed.contains(" - ") {
            self.begin(
                UnitSeen {
                    name: name.to_owned(),
                    origin,
                    text: text.trim().to_owned(),
                    ..UnitSeen::default()
                },
                units,
            );
            return;
        }
        // `systemctl list-unit-files`: `openibd.service   disabled [enabled]`.
        let mut words = trimmed.split_whitespace().skip(1);
        if is_unit
            && let Some(
                enabled @ ("enabled" | "disabled" | "static" | "masked" | "indirect"
                | "enabled-runtime"),
            ) = words.next()
        {
            let seen = UnitSeen {
                name: name.to_owned(),
                enabled: enabled.to_owned(),
                active: String::new(),
                origin,
                text: text.trim().to_owned(),
            };
            self.begin(seen, units);
            self.in_unit = false;
            return;
        }
        let Some(unit) = units.last_mut().filter(|_| self.in_unit) else { return };
        if let Some(loaded) = trimmed.strip_prefix("Loaded: ") {
            let inside = caught_one(loaded, "({})").unwrap_or_default();
            let mut parts = inside.split(';').map(str::trim);
            let enabled = if loaded.starts_with("masked") { Some("masked") } else { parts.nth(1) };
            enabled.unwrap_or_default().clone_into(&mut unit.enabled);
            if !unit.enabled.is_empty() {
                unit.origin = origin;
                text.trim().clone_into(&mut unit.text);
            }
        } else if let Some(active) = trimmed.strip_prefix("Active: ") {
            let active = active.split(" since ").next().unwrap_or(active);
            active.trim().clone_into(&mut unit.active);
        }
    }

    fn begin(&mut self, unit: UnitSeen, units: &mut Vec<UnitSeen>) {
        self.in_unit = units.len() < LIMIT;
        if self.in_unit {
            units.push(unit);
        }
    }
}

/// What was typed behind a shell's prompt: `# x`, `$ x`, `[root@n1 ~]# x`,
/// `root@n1:/sys# x`.
fn typed(text: &str) -> Option<&str> {
    let text = text.trim();
    let bare = text.strip_prefix("# ").or_else(|| text.strip_prefix("$ "));
    let typed = bare.or_else(|| {
        let (head, rest) = text.split_once("# ").or_else(|| text.split_once("$ "))?;
        let prompt = head.contains('@') || head.ends_with(['~', ']']);
        (prompt && head.len() < 128).then_some(rest)
    })?;
    // `# ` also begins a comment in a configuration file.
    let first = word(typed);
    let program = !first.is_empty() && !first.starts_with(|c: char| c.is_ascii_uppercase());
    program.then_some(typed.trim())
}

/// `04:00.0` or `0000:04:00.0`.
fn is_pci_address(word: &str) -> bool {
    let full = if word.len() == 7 { format!("0000:{word}") } else { word.to_owned() };
    full.parse::<crate::names::PciAddress>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> State {
        let mut reader = Reader::default();
        let mut state = State::default();
        for line in text.lines() {
            if line.is_empty() {
                reader.gap();
            } else {
                reader.line(line, Origin::default(), &mut state);
            }
        }
        state
    }

    #[test]
    fn dumps_are_read() {
        let state = read(
            "[root@n1 ~]# lspci -k\n04:00.0 Infiniband controller: Mellanox X\n\tKernel driver in use: mlx5_core\n\nModule                  Size  Used by\nib_ipoib              131072  0\nmlx5_ib  10 1 x\n\n● openibd.service - openibd - configure Mellanox devices\n   Loaded: loaded (/usr/lib/systemd/system/openibd.service; disabled; vendor preset: enabled)\n   Active: inactive (dead)\n\nib.service   static\n         SRIOV_EN       False(0)\n* NUM_OF_VFS 0 0 8\nroot@n1:/sys# cat sriov_totalvfs\n0\n",
        );
        assert_eq!(state.pci[0].driver.as_deref(), Some("mlx5_core"));
        assert!(state.pci[0].is_infiniband());
        assert_eq!(
            state.modules.as_deref(),
            Some(&["ib_ipoib".to_owned(), "mlx5_ib".to_owned()][..])
        );
        let unit = state.unit("openibd.service").expect("unit");
        assert_eq!((unit.enabled.as_str(), unit.active.as_str()), ("disabled", "inactive (dead)"));
        let settings: Vec<_> =
            state.settings.iter().map(|s| (s.name.as_str(), s.value.as_str())).collect();
        assert_eq!(settings, [("SRIOV_EN", "False(0)"), ("NUM_OF_VFS", "8")]);
        let last = state.commands.last().expect("command");
        assert_eq!((last.text.as_str(), last.answer()), ("cat sriov_totalvfs", "0"));
    }

    proptest! {
        #[test]
        fn no_dump_panics(text in r"((# |\$ |@|04:00\.0|: |Module|a\.service| - |Loaded: |\(;|Active: |SRIOV_EN |\t|[a-zÄ0-9 ]){0,5}\n){0,8}") {
            read(&text);
        }
    }
}
