//! Debian's ifupdown, and ifupdown2 in its place: interfaces(5), its record of what is up, and the unit that
//! its udev rule starts for an interface that is marked `allow-hotplug`.

use super::files::{Files, LIMIT, folder, mtu_setting, setting};
use super::stack::{
    Command, Facts, OwnUnit, Owner, Phases, Stack, StackUnit, phase_of_unit, program,
};
use crate::host::Root;
use crate::host::unit::UnitState;
use crate::model::{
    StackName, StackSetting,
    stack::{Action, Answer, Claim, Phase, SettingValue},
};
use crate::names::{IfName, NetworkRole};
use crate::observe::ipoib::Interface;

#[derive(Debug)]
pub struct Ifupdown;

const SERVICE: &str = "networking.service";
const FILE: &str = "/etc/network/interfaces";
/// What Debian's [`FILE`] sources.
const DIR: &str = "/etc/network/interfaces.d";
/// `IFACE=LOGICAL` lines, written when an interface has come up.
const RECORD: &str = "/run/network/ifstate";
/// The record of ifupdown2, objects of Python (protocol 4 of pickle: length and text of each
/// string) of all that it was asked for, and the file by which it marks that it has run in this boot.
const RECORD_2: [&str; 2] = ["/var/tmp/network/ifstatenew", "/run/network/ifstatelock"];
/// As deep as `source` may go.
const DEEPEST: u32 = 8;

static FACTS: Facts = Facts {
    log_programs: &["networking"],
    looks_once: true,
    keeps_record: true,
    // `ip addr add` fails then with EEXIST, after which `ifup --force` ends with
    // success and nothing done.
    stumbles_over_addresses: true,
    own_unit: Some(OwnUnit { template: "ifup", phase: phase_of_own }),
    ..Facts::new(
        StackName::new("ifupdown", "ifupdown"),
        SERVICE,
        &[
            StackUnit::new(SERVICE, NetworkRole::SetsUpOnce, &["Raise network interfaces"]),
            StackUnit::new("ifupdown-wait-online.service", NetworkRole::WaitsOnline, &[]),
        ],
    )
};

/// Where the unit of an interface is. It is a simple service that remains: active
/// from its first moment, and at it while its process runs.
fn phase_of_own(unit: &UnitState) -> Phase {
    match phase_of_unit(unit) {
        Phase::Active if unit.sub == "running" => Phase::Starting,
        phase => phase,
    }
}

impl Stack for Ifupdown {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn claim(&self, root: &Root, interface: &Interface, _: Phase, _: Phases<'_>) -> Claim {
        let name = interface.name.as_str();
        let interfaces = read(root);
        let matches = |list: &[String]| list.iter().any(|p| fits(p, name));
        if !matches(&interfaces.stanzas) {
            let told = matches(&interfaces.auto) || matches(&interfaces.hotplug);
            return if told {
                Claim::new(
                    Answer::Missed,
                    format!(
                        "{FILE} marks the interface auto or allow-hotplug, but has no iface stanza for it"
                    ),
                )
            } else {
                Claim::new(Answer::No, format!("{FILE} does not name the interface"))
            };
        }
        if matches(&interfaces.auto) {
            Claim::new(Answer::Yes, format!("auto in {FILE}"))
        } else if matches(&interfaces.hotplug) {
            Claim::new(Answer::Hotplug, format!("allow-hotplug in {FILE}"))
        } else {
            Claim::new(
                Answer::ByHand,
                format!("{FILE} has the interface, but neither auto nor allow-hotplug"),
            )
        }
    }

    /// By its own record, which knows an interface by name alone.
    fn has_brought_up(&self, root: &Root, interface: &Interface) -> bool {
        let text = root.text(RECORD, LIMIT).unwrap_or_default();
        let name = interface.name.as_str();
        let is_recorded = text.lines().any(|l| l.split_once('=').is_some_and(|(i, _)| i == name));
        let [record, mark] = RECORD_2;
        is_recorded
            || root.exists(mark) && {
                let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
                let string = [&[length], name.as_bytes()].concat();
                let objects = root.bytes(record, LIMIT).unwrap_or_default();
                memchr::memmem::find(&objects, &string).is_some()
            }
    }

    fn command(&self, how: Action, name: &IfName) -> Result<Command, String> {
        let (ifup, name) = (program("ifup")?, name.to_string());
        Ok(match how {
            Action::IfupAgain => {
                Command { shown: "ifup", words: vec![ifup, "--force".to_owned(), name] }
            }
            // The names are arguments of the script, not words in it.
            Action::IfupAnew => {
                let script = r#""$1" --force "$3"; exec "$2" "$3""#;
                let words = ["/bin/sh", "-c", script, "sh", &program("ifdown")?, &ifup, &name];
                Command { shown: "ifdown, then ifup", words: words.map(str::to_owned).to_vec() }
            }
            _ => Command { shown: "ifup", words: vec![ifup, name] },
        })
    }

    /// `mtu` is an option of its methods. For the mode it has none: what people write is
    /// a command that writes to the file in sysfs.
    fn writes(&self, root: &Files<'_>, interface: &Interface, _: Phases<'_>) -> Vec<StackSetting> {
        let name = interface.name.as_str();
        let interfaces = read(root);
        let options = interfaces.options.iter().filter(|o| fits(&o.of, name));
        let written = options.filter_map(|option| {
            let Written { file, key, text, .. } = option;
            match key.as_str() {
                "mtu" => mtu_setting(Some(text), file, "mtu"),
                "pre-up" => written_to_sysfs(text, name, file, "pre-up"),
                "up" => written_to_sysfs(text, name, file, "up"),
                "post-up" => written_to_sysfs(text, name, file, "post-up"),
                _ => None,
            }
        });
        // What is written last stays.
        let (mut mode, mut mtu) = (None, None);
        for setting in written {
            match setting.value {
                SettingValue::Mode(_) => mode = Some(setting),
                SettingValue::Mtu(_) => mtu = Some(setting),
            }
        }
        [mode, mtu].into_iter().flatten().collect()
    }

    fn asked(&self, root: &Root) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for file in files(root) {
            for line in root.text(&file, LIMIT).unwrap_or_default().lines() {
                // What only hot plug brings up is not asked for at boot.
                let names = line.trim().strip_prefix("auto ").unwrap_or_default();
                found.extend(names.split_whitespace().map(|n| (n.to_owned(), file.clone())));
            }
        }
        found
    }

    fn owner(&self, root: &Root, netdev: &IfName, _ifindex: u32) -> Option<Owner> {
        let names_it =
            |file: &String| root.text(file, LIMIT).is_ok_and(|text| has_stanza(&text, netdev));
        let file = files(root).into_iter().find(names_it)?;
        Some(Owner::File(format!("ifupdown ({file})")))
    }
}

/// The files that interfaces are usually in.
fn files(root: &Root) -> Vec<String> {
    let mut files = vec![FILE.to_owned()];
    files.extend(folder(root, DIR));
    files
}

/// interfaces(5): `iface NAME FAMILY METHOD`.
fn has_stanza(text: &str, netdev: &IfName) -> bool {
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("iface") && words.next() == Some(netdev.as_str())
    })
}

/// What interfaces(5) says of interfaces.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Patterns of `auto` lines.
    auto: Vec<String>,
    /// Patterns of `allow-hotplug` lines.
    hotplug: Vec<String>,
    /// Names of `iface` stanzas.
    stanzas: Vec<String>,
    options: Vec<Written>,
}

/// An option of an `iface` stanza.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    of: String,
    /// The file that it is in.
    file: String,
    key: String,
    text: String,
}

/// What a line of interfaces(5) leads to.
enum More {
    File(String),
    Dir(String),
}

fn fits(pattern: &str, name: &str) -> bool {
    // `/ib*` and `/ib*/N` are patterns; without a slash the name is meant, and
    // newer versions take wildcards there too.
    let bare = pattern.strip_prefix('/').map_or(pattern, |p| p.split('/').next().unwrap_or(p));
    bare == name || glob::Pattern::new(bare).is_ok_and(|p| p.matches(name))
}

fn read(root: &Root) -> Interfaces {
    let mut interfaces = Interfaces::default();
    file(root, FILE, &mut interfaces, 0);
    interfaces
}

fn file(root: &Root, path: &str, into: &mut Interfaces, depth: u32) {
    let Ok(text) = root.text(path, LIMIT) else { return };
    for more in parse(path, &text, into) {
        if depth >= DEEPEST {
            return;
        }
        let here = path.rsplit_once('/').map_or("", |(dir, _)| dir);
        let absolute = |p: String| if p.starts_with('/') { p } else { format!("{here}/{p}") };
        match more {
            More::File(pattern) => {
                for path in expand(root, &absolute(pattern)) {
                    file(root, &path, into, depth + 1);
                }
            }
            More::Dir(pattern) => {
                for dir in expand(root, &absolute(pattern)) {
                    for name in root.list_or_empty(&dir).unwrap_or_default() {
                        // As run-parts(8) has it.
                        let good = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
                        if name.bytes().all(good) {
                            file(root, &format!("{dir}/{name}"), into, depth + 1);
                        }
                    }
                }
            }
        }
    }
}

/// The files that a path with wildcards in its last part stands for, or, without
/// any, the files of the directory that it names.
fn expand(root: &Root, pattern: &str) -> Vec<String> {
    let Some((dir, last)) = pattern.rsplit_once('/') else { return Vec::new() };
    if !last.contains(['*', '?', '[']) {
        return vec![pattern.to_owned()];
    }
    let Ok(glob) = glob::Pattern::new(last) else { return Vec::new() };
    let names = root.list_or_empty(dir).unwrap_or_default();
    let fits = names.into_iter().filter(|n| glob.matches(n) && !n.starts_with('.'));
    fits.map(|n| format!("{dir}/{n}")).collect()
}

/// Takes in one file; gives what it leads to.
fn parse(path: &str, text: &str, into: &mut Interfaces) -> Vec<More> {
    let mut more = Vec::new();
    // The stanza that the lines are options of.
    let mut stanza: Option<String> = None;
    let joined = text.replace("\\\n", " ");
    for line in joined.lines().filter(|l| !l.trim_start().starts_with('#')) {
        let mut words = line.split_whitespace().map(str::to_owned);
        let key = words.next();
        let is_option = !matches!(
            key.as_deref(),
            None | Some("auto" | "iface" | "mapping" | "source" | "source-directory" | "rename")
        ) && !key.as_deref().unwrap_or_default().starts_with("allow-");
        if !is_option && key.is_some() {
            stanza = None;
        }
        match key.as_deref() {
            Some("auto" | "allow-auto") => into.auto.extend(words),
            Some("allow-hotplug") => into.hotplug.extend(words),
            Some("iface") => {
                stanza = words.next();
                into.stanzas.extend(stanza.clone());
            }
            Some("source") => more.extend(words.next().map(More::File)),
            Some("source-directory") => more.extend(words.next().map(More::Dir)),
            Some(key) => {
                let (key, text) = (key.to_owned(), words.collect::<Vec<_>>().join(" "));
                let file = path.to_owned();
                into.options.extend(stanza.clone().map(|of| Written { of, file, key, text }));
            }
            None => {}
        }
    }
    more
}

/// What a command like `echo connected > /sys/class/net/$IFACE/mode` writes; nothing
/// of any other.
fn written_to_sysfs(
    command: &str,
    name: &str,
    file: &str,
    key: &'static str,
) -> Option<StackSetting> {
    let (echo, path) = command.split_once('>')?;
    let mut words = echo.split_whitespace();
    let (Some("echo" | "/bin/echo"), Some(word), None) = (words.next(), words.next(), words.next())
    else {
        return None;
    };
    let word = word.trim_matches(['"', '\'']);
    let path = path.split_whitespace().next()?.trim_matches(['"', '\'']);
    let (netdev, attribute) = path.strip_prefix("/sys/class/net/")?.split_once('/')?;
    if netdev != name && netdev != "$IFACE" && netdev != "${IFACE}" {
        return None;
    }
    match attribute {
        "mode" => Some(setting(SettingValue::Mode(word.parse().ok()?), file, key)),
        "mtu" => mtu_setting(Some(word), file, key),
        _ => None,
    }
}
