//! Debian's ifupdown: interfaces(5), and its record of what is up.

use crate::host::Root;
use crate::observe::ipoib::Interface;
use crate::report::stack::{Answer, Claim};

const FILE: &str = "/etc/network/interfaces";
/// `IFACE=LOGICAL` lines, written when an interface has come up.
const RECORD: &str = "/run/network/ifstate";
const LIMIT: u64 = 1 << 20;
/// As deep as `source` may go.
const DEEPEST: u32 = 8;

/// What interfaces(5) says of interfaces.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Patterns of `auto` lines.
    auto: Vec<String>,
    /// Patterns of `allow-hotplug` lines.
    hotplug: Vec<String>,
    /// Names of `iface` stanzas.
    stanzas: Vec<String>,
}

/// What a line of interfaces(5) leads to.
enum More {
    File(String),
    Dir(String),
}

/// The stack's claim to `interface`.
#[must_use]
pub fn claim(root: &Root, interface: &Interface) -> Claim {
    let name = interface.name.as_str();
    let interfaces = read(root);
    let matches = |list: &[String]| list.iter().any(|p| fits(p, name));
    if !matches(&interfaces.stanzas) {
        let told = matches(&interfaces.auto) || matches(&interfaces.hotplug);
        return match told {
            true => Claim::new(
                Answer::Missed,
                format!("{FILE} marks it auto or allow-hotplug, but has no iface stanza for it"),
            ),
            false => Claim::new(Answer::No, format!("{FILE} does not name it")),
        };
    }
    if matches(&interfaces.auto) {
        Claim::new(Answer::Yes, format!("auto in {FILE}"))
    } else if matches(&interfaces.hotplug) {
        Claim::new(Answer::Hotplug, format!("allow-hotplug in {FILE}"))
    } else {
        Claim::new(Answer::ByHand, format!("{FILE} has it, neither auto nor allow-hotplug"))
    }
}

/// By ifupdown's own record, the interface is up.
#[must_use]
pub fn is_recorded(root: &Root, interface: &Interface) -> bool {
    let text = root.text(RECORD, LIMIT).unwrap_or_default();
    let name = interface.name.as_str();
    text.lines().any(|l| l.split_once('=').is_some_and(|(i, _)| i == name))
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
    for more in parse(&text, into) {
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
fn parse(text: &str, into: &mut Interfaces) -> Vec<More> {
    let mut more = Vec::new();
    let joined = text.replace("\\\n", " ");
    for line in joined.lines().filter(|l| !l.trim_start().starts_with('#')) {
        let mut words = line.split_whitespace().map(str::to_owned);
        match words.next().as_deref() {
            Some("auto" | "allow-auto") => into.auto.extend(words),
            Some("allow-hotplug") => into.hotplug.extend(words),
            Some("iface") => into.stanzas.extend(words.next()),
            Some("source") => more.extend(words.next().map(More::File)),
            Some("source-directory") => more.extend(words.next().map(More::Dir)),
            _ => {}
        }
    }
    more
}
