//! Start scripts with rc links, of which systemd-sysv-generator(8) makes units.

use super::planned::Tree;
use super::{Command, Load, Unit};
use crate::host::SYSV_GENERATOR;

/// No start script is larger.
const LIMIT: u64 = 256 * 1024;

/// The units of scripts that have a start link and no unit file of their name.
pub(super) fn scripts(tree: Tree<'_>, has_unit: impl Fn(&str) -> bool) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    if !tree.root.has_generator(SYSV_GENERATOR) {
        return units;
    }
    for level in ["rc2.d", "rc3.d", "rc4.d", "rc5.d"] {
        for dir in [format!("/etc/{level}"), format!("/etc/rc.d/{level}")] {
            for link in tree.list_or_empty(&dir).unwrap_or_default() {
                let digits = link.get(1..3).is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()));
                let Some(name) = link.get(3..).filter(|_| digits && link.starts_with('S')) else {
                    continue;
                };
                let unit = format!("{name}.service");
                if has_unit(&unit) || units.iter().any(|u| u.name == unit) {
                    continue;
                }
                if let Ok(text) = tree.text(&format!("{dir}/{link}"), LIMIT) {
                    units.push(unit_of(&unit, &format!("/etc/init.d/{name}"), &text));
                }
            }
        }
    }
    units
}

fn unit_of(name: &str, path: &str, text: &str) -> Unit {
    let mut unit = Unit {
        name: name.to_owned(),
        load: Load::Loaded,
        kind: "forking".to_owned(),
        file_state: "generated".to_owned(),
        fragment: path.to_owned(),
        commands: vec![Command {
            phase: "ExecStart".to_owned(),
            line: format!("{path} start"),
            script: Some(text.lines().map(str::to_owned).collect()),
        }],
        ..Unit::default()
    };
    unit.requires.insert("sysinit.target".to_owned());
    unit.after.extend(["sysinit.target", "basic.target"].map(str::to_owned));
    unit.before.insert("shutdown.target".to_owned());
    let header = text
        .lines()
        .skip_while(|l| !l.starts_with("### BEGIN INIT INFO"))
        .take_while(|l| !l.starts_with("### END INIT INFO"));
    for (key, value) in header.filter_map(|l| l.trim_start_matches('#').trim().split_once(':')) {
        let words = value.split_whitespace();
        match key.trim() {
            // What provides a facility comes before its target.
            "Provides" => {
                for target in words.filter(|w| w.starts_with('$')).filter_map(facility) {
                    let early =
                        (target == "network-online.target").then(|| "network.target".to_owned());
                    for target in early.into_iter().chain([target]) {
                        unit.before.insert(target.clone());
                        unit.wants.insert(target);
                    }
                }
            }
            "Required-Start" | "Should-Start" => {
                for target in words.filter_map(facility) {
                    if target == "network-online.target" {
                        unit.wants.insert(target.clone());
                    }
                    unit.after.insert(target);
                }
            }
            "X-Start-Before" => unit.before.extend(words.filter_map(facility)),
            _ => {}
        }
    }
    unit.after.remove(name);
    unit
}

/// The unit of a facility (`sysv_translate_facility()` of
/// `src/sysv-generator/sysv-generator.c`).
fn facility(name: &str) -> Option<String> {
    Some(match name {
        "$network" => "network-online.target".to_owned(),
        "$named" => "nss-lookup.target".to_owned(),
        "$portmap" => "rpcbind.target".to_owned(),
        "$remote_fs" => "remote-fs.target".to_owned(),
        "$time" => "time-sync.target".to_owned(),
        _ if name.starts_with('$') => return None,
        name => format!("{name}.service"),
    })
}
