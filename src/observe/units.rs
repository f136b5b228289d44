//! Who owns the name openibd.service, as the links in systemd's unit
//! directories say (`systemctl enable` is nothing but these links).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::host::Root;

/// ibprov's standing with systemd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Units {
    /// Who answers to openibd.service.
    pub openibd: Owner,
    /// `sysinit.target` wants ibprov.service and nothing masks it: it runs at boot.
    pub enabled: bool,
    /// What is wrong, each with what to do.
    pub findings: Vec<UnitFinding>,
}

/// Who answers to openibd.service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// ibprov, by its alias.
    Ibprov,
    /// The vendor's unit or start script.
    Vendor,
    /// It is masked.
    Masked,
    /// Nobody.
    Nobody,
}

/// Something wrong with the links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitFinding {
    /// Stable name.
    pub code: &'static str,
    /// What is wrong.
    pub text: String,
    /// What to do.
    pub advice: String,
}

const ETC: &str = "/etc/systemd/system";
const VENDOR_DIRS: [&str; 4] = [
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
const WANTS: &str = "/etc/systemd/system/sysinit.target.wants";
const INIT_SCRIPT: &str = "/etc/init.d/openibd";

/// Look at the links.
#[must_use]
pub fn units(root: &Root) -> Units {
    let etc = format!("{ETC}/openibd.service");
    let alias_target = root.link_name(&etc).ok();
    let is_ours = alias_target.as_deref() == Some("ibprov.service");
    let masked = alias_target.as_deref() == Some("null");
    let file_in_etc = alias_target.is_none() && root.exists(&etc);
    let vendor_unit =
        file_in_etc || VENDOR_DIRS.iter().any(|dir| root.exists(&format!("{dir}/openibd.service")));
    let own_mask = [ETC, VENDOR_DIRS[0]]
        .map(|dir| format!("{dir}/ibprov.service"))
        .into_iter()
        .find(|path| root.link_name(path).is_ok_and(|target| target == "null"));
    let wanted = root.link_name(&format!("{WANTS}/ibprov.service")).is_ok();
    let enabled = wanted && own_mask.is_none();
    let vendor_want = root.link_name(&format!("{WANTS}/openibd.service")).ok();
    let script = root.exists(INIT_SCRIPT);
    let openibd = if is_ours {
        Owner::Ibprov
    } else if masked {
        Owner::Masked
    } else if vendor_unit || script {
        Owner::Vendor
    } else {
        Owner::Nobody
    };
    let mut findings = Vec::new();
    let mut find = |code, text: String, advice: String| {
        findings.push(UnitFinding { code, text, advice });
    };
    if let Some(mask) = &own_mask {
        find(
            "ibprov-masked",
            format!("ibprov does not run at boot: {mask} masks it"),
            "systemctl unmask ibprov.service".to_owned(),
        );
    }
    if enabled && !is_ours {
        let (why, advice) = alias_trouble(&etc, alias_target.as_deref(), file_in_etc);
        find(
            "openibd-alias-broken",
            format!(
                "ibprov is half enabled: it runs at boot, but openibd.service is not its alias, so what orders on that name does not wait: {why}"
            ),
            advice,
        );
    }
    if !wanted && is_ours {
        find(
            "ibprov-not-wanted",
            "ibprov is half enabled: openibd.service is its alias, but nothing starts it at boot"
                .to_owned(),
            "systemctl reenable ibprov.service".to_owned(),
        );
    }
    if !wanted && !is_ours {
        find(
            "ibprov-disabled",
            "ibprov does not run at boot: it is not enabled, or `systemctl disable openibd` took its links away".to_owned(),
            "systemctl enable ibprov.service (after, not before, `systemctl disable openibd`)".to_owned(),
        );
    }
    if let Some(target) = vendor_want
        && target != "ibprov.service"
    {
        let harm = match openibd {
            Owner::Ibprov => "it starts openibd again once openibd.service is not ibprov's alias",
            Owner::Masked => "it starts openibd again once the mask is gone",
            Owner::Vendor | Owner::Nobody => "it starts openibd at boot",
        };
        find(
            "openibd-want-left",
            format!("the vendor's link {WANTS}/openibd.service is left over: {harm}"),
            // Disabling openibd while the alias is there removes ibprov's links
            // and leaves this one.
            "systemctl disable ibprov.service && systemctl disable openibd.service && systemctl enable ibprov.service".to_owned(),
        );
    }
    let drop_ins = if is_ours { drop_ins(root) } else { Vec::default() };
    if !drop_ins.is_empty() {
        let files = drop_ins.join(" ");
        find(
            "openibd-drop-in",
            format!("what was made for openibd applies to ibprov, which has its name now: {files}"),
            format!("check that ibprov needs it; if not: rm {files} && systemctl daemon-reload"),
        );
    }
    let callers = if script { script_callers(root, openibd, vendor_unit) } else { Vec::default() };
    if !callers.is_empty() {
        find(
            "openibd-script-called",
            format!("{INIT_SCRIPT} is still called by {}", callers.join(", ")),
            "remove that call: the script loads and unloads the modules behind ibprov's back"
                .to_owned(),
        );
    }
    Units { openibd, enabled, findings }
}

/// Why openibd.service is not ibprov's alias, and what to do.
fn alias_trouble(etc: &str, target: Option<&str>, file_in_etc: bool) -> (String, String) {
    const REENABLE: &str = "systemctl reenable ibprov.service";
    match target {
        Some("null") => (
            format!("{etc} masks the name"),
            format!("systemctl unmask openibd.service && {REENABLE}"),
        ),
        Some(other) => (format!("{etc} is a link to {other}"), format!("rm {etc} && {REENABLE}")),
        None if file_in_etc => (
            format!("{etc} is a file of its own, so the alias could not be made"),
            format!("rm {etc} && {REENABLE}"),
        ),
        None => (format!("the link {etc} is gone"), REENABLE.to_owned()),
    }
}

/// Drop-ins of openibd.service, which systemd takes for those of the unit that
/// has that name, as an alias too.
fn drop_ins(root: &Root) -> Vec<String> {
    // Of two with the same name the first counts.
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for unit_dir in [ETC].into_iter().chain(VENDOR_DIRS) {
        let dir = format!("{unit_dir}/openibd.service.d");
        for name in root.list_or_empty(&dir).unwrap_or_default() {
            if name.ends_with(".conf") {
                let path = format!("{dir}/{name}");
                found.entry(name).or_insert(path);
            }
        }
    }
    found.into_values().collect()
}

/// What starts the script at boot: rc links, rc.local, enabled units.
fn script_callers(root: &Root, openibd: Owner, vendor_unit: bool) -> Vec<String> {
    let mut callers = Vec::new();
    // systemd-sysv-generator(8) makes a unit of a script with rc links only
    // if no unit file, alias or mask has that name.
    if openibd == Owner::Vendor && !vendor_unit {
        for level in ["rcS.d", "rc2.d", "rc3.d", "rc4.d", "rc5.d"] {
            for dir in [format!("/etc/{level}"), format!("/etc/rc.d/{level}")] {
                for name in root.list_or_empty(&dir).unwrap_or_default() {
                    if name.starts_with('S') && name.ends_with("openibd") {
                        callers.push(format!("{dir}/{name}"));
                    }
                }
            }
        }
    }
    for script in ["/etc/rc.local", "/etc/rc.d/rc.local"] {
        if root.text(script, 1 << 20).is_ok_and(|t| shell_calls(&t)) {
            callers.push(script.to_owned());
        }
    }
    for dir in root.list_or_empty(ETC).unwrap_or_default() {
        let wants = dir.ends_with(".wants") || dir.ends_with(".requires");
        if !wants && !dir.ends_with(".service.d") {
            continue;
        }
        let path = format!("{ETC}/{dir}");
        for unit in root.list_or_empty(&path).unwrap_or_default() {
            // systemd goes by the name, not by the file that the link shows.
            if wants && unit == "openibd.service" && openibd != Owner::Vendor {
                continue;
            }
            let file = format!("{path}/{unit}");
            if root.text(&file, 1 << 20).is_ok_and(|t| unit_calls(&t)) {
                callers.push(file);
            }
        }
    }
    callers
}

fn shell_calls(text: &str) -> bool {
    text.lines().any(|l| !l.trim_start().starts_with('#') && l.contains(INIT_SCRIPT))
}

/// True if the script is in a command of the unit, not only in a condition.
fn unit_calls(text: &str) -> bool {
    let joined = text.replace("\\\n", " ");
    joined.lines().any(|l| l.trim_start().starts_with("Exec") && l.contains(INIT_SCRIPT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_call_the_script() {
        assert!(unit_calls("[Service]\nExecStart=/bin/sh -c \\\n  '/etc/init.d/openibd start'\n"));
        assert!(unit_calls("ExecStartPre=-/etc/init.d/openibd restart"));
        assert!(!unit_calls("#ExecStart=/etc/init.d/openibd start"));
        assert!(!unit_calls("ConditionPathExists=!/etc/init.d/openibd"));
        assert!(shell_calls("sleep 5; /etc/init.d/openibd restart"));
        assert!(!shell_calls("  # /etc/init.d/openibd restart"));
    }
}
