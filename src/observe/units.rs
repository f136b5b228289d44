//! Who owns the name openibd.service, as the links in systemd's unit
//! directories say (`systemctl enable` is nothing but these links).

use serde::Serialize;

use crate::host::Root;

/// ibprov's standing with systemd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Units {
    /// Who answers to openibd.service.
    pub openibd: Owner,
    /// `sysinit.target` wants ibprov.service: it runs at boot.
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
        VENDOR_DIRS.iter().map(|d| format!("{d}/openibd.service")).find(|p| root.exists(p));
    let enabled = root.link_name(&format!("{WANTS}/ibprov.service")).is_ok();
    let vendor_want = root.link_name(&format!("{WANTS}/openibd.service")).ok();
    let script = root.exists(INIT_SCRIPT);
    let openibd = if is_ours {
        Owner::Ibprov
    } else if masked {
        Owner::Masked
    } else if file_in_etc || vendor_unit.is_some() || script {
        Owner::Vendor
    } else {
        Owner::Nobody
    };
    let mut findings = Vec::new();
    let mut find = |code, text: String, advice: &str| {
        findings.push(UnitFinding { code, text, advice: advice.to_owned() });
    };
    if enabled && !is_ours {
        let why = if masked {
            format!("{etc} masks the name")
        } else if file_in_etc {
            format!("{etc} is a file of its own, so the alias could not be made")
        } else {
            format!("the link {etc} is gone")
        };
        find(
            "openibd-alias-broken",
            format!(
                "ibprov is half enabled: it runs at boot, but openibd.service is not its alias, so what orders on that name does not wait: {why}"
            ),
            "remove that file or mask, then: systemctl reenable ibprov.service",
        );
    }
    if !enabled && is_ours {
        find(
            "ibprov-not-wanted",
            "ibprov is half enabled: openibd.service is its alias, but nothing starts it at boot"
                .to_owned(),
            "systemctl reenable ibprov.service",
        );
    }
    if !enabled && !is_ours {
        find(
            "ibprov-disabled",
            "ibprov does not run at boot: it is not enabled, or `systemctl disable openibd` took its links away".to_owned(),
            "systemctl enable ibprov.service (after, not before, `systemctl disable openibd`)",
        );
    }
    if let Some(target) = vendor_want
        && target != "ibprov.service"
    {
        find(
            "openibd-want-left",
            format!(
                "{WANTS}/openibd.service is left over from the vendor's openibd (it points to {target})"
            ),
            "systemctl disable openibd, then: systemctl reenable ibprov.service",
        );
    }
    if script {
        for called in init_script_callers(root) {
            find(
                "openibd-script-called",
                format!("{INIT_SCRIPT} is still called by {called}"),
                "remove that call: the script loads and unloads the modules behind ibprov's back",
            );
        }
    }
    Units { openibd, enabled, findings }
}

/// rc links that start the script, and enabled units whose file names it.
fn init_script_callers(root: &Root) -> Vec<String> {
    let mut callers = Vec::new();
    for level in ["rcS.d", "rc2.d", "rc3.d", "rc4.d", "rc5.d"] {
        for dir in [format!("/etc/{level}"), format!("/etc/rc.d/{level}")] {
            for name in root.list_or_empty(&dir).unwrap_or_default() {
                if name.starts_with('S') && name.ends_with("openibd") {
                    callers.push(format!("{dir}/{name}"));
                }
            }
        }
    }
    for script in ["/etc/rc.local", "/etc/rc.d/rc.local"] {
        if root.text(script, 1 << 20).is_ok_and(|t| calls_script(&t)) {
            callers.push(script.to_owned());
        }
    }
    for dir in root.list_or_empty(ETC).unwrap_or_default() {
        let path = format!("{ETC}/{dir}");
        if dir.ends_with(".wants") || dir.ends_with(".requires") {
            for unit in root.list_or_empty(&path).unwrap_or_default() {
                let file = format!("{path}/{unit}");
                if root.text(&file, 1 << 20).is_ok_and(|t| calls_script(&t)) {
                    callers.push(file);
                }
            }
        }
    }
    callers
}

fn calls_script(text: &str) -> bool {
    text.lines().any(|l| !l.trim_start().starts_with('#') && l.contains(INIT_SCRIPT))
}
