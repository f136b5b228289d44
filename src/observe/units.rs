//! Who owns the name openibd.service, as the links in systemd's unit
//! directories say (`systemctl enable` is nothing but these links).

use std::collections::BTreeMap;

use crate::host::{Root, SYSV_GENERATOR};
use crate::model::{
    Code, Finding, ToDo,
    status::{Owner, Units},
};
use crate::names::{OPENIBD_STAND_IN as STAND_IN, UNIT_DIRS, UNIT_FILE_DIRS};
use crate::observe::interface_manager;

const ETC: &str = "/etc/systemd/system";
const WANTS: &str = "/etc/systemd/system/sysinit.target.wants";
const UNIT: &str = "ibprov.service";
const INIT_SCRIPT: &str = "/etc/init.d/openibd";

pub fn units(root: &Root) -> Units {
    let links = Links::read(root);
    let openibd = links.owner();
    let mut findings = Vec::new();
    if is_run_by_openibd(root, &links) {
        let text = "this node is run by openibd".to_owned();
        let step = ToDo::with("to hand it over", "ibprov migrate");
        findings.push(finding(Code::IbprovDisabled, text, step));
    } else if other_agents_of(root, &links).is_none() {
        findings.extend(own_findings(&links));
        findings.extend(vendor_findings(root, &links));
    }
    Units { openibd, enabled: links.wanted && links.own_mask.is_none(), findings }
}

/// That openibd or the agent of MLNX_OFED brings InfiniBand up at boot beside ibprov.
pub fn other_agents(root: &Root) -> Option<Finding> {
    other_agents_of(root, &Links::read(root))
}

fn other_agents_of(root: &Root, links: &Links) -> Option<Finding> {
    // Where ibprov is not enabled, the ports are theirs alone.
    if !links.wanted || links.own_mask.is_some() {
        return None;
    }
    let is_started = links.vendor_wanted && links.owner() == Owner::Vendor;
    let mut by = if links.script { script_callers(root, links) } else { Vec::default() };
    by.extend(is_started.then(|| format!("{WANTS}/openibd.service")));
    let openibd = (!by.is_empty()).then(|| format!("openibd (by {})", by.join(", ")));
    // It does not depend on openibd.
    let agent =
        interface_manager::armed(root).map(|rule| format!("mlnx_interface_mgr (by {rule})"));
    let agents: Vec<String> = openibd.into_iter().chain(agent).collect();
    let text = format!(
        "ibprov and {} bring InfiniBand up at boot: each loads modules, or sets modes and MTUs, that the other has set",
        agents.join(" and ")
    );
    let finding = Finding::warning(Code::TwoAgents, text).look([ToDo::run("ibprov migrate")]);
    let finding = finding.permanent([ToDo::run("ibprov migrate --apply")]);
    (!agents.is_empty()).then_some(finding)
}

/// The links by which systemd starts `unit` at boot: of `systemctl enable`, `--runtime` too, of
/// an image that brings one along in /usr, and of generators, as that of `systemd.wants=` on
/// the kernel's command line (systemd-debug-generator(8)). The rule of udev tests the same.
fn links_to(unit: &str) -> impl Iterator<Item = String> {
    let dirs = UNIT_DIRS.into_iter().map(|dir| format!("{dir}/sysinit.target.wants"));
    let dirs = dirs.chain(["/run/systemd/generator.early/default.target.wants".to_owned()]);
    dirs.map(move |dir| format!("{dir}/{unit}"))
}

fn is_wanted(root: &Root, unit: &str) -> bool {
    links_to(unit).any(|link| root.is_link(&link))
}

/// What is in systemd's directories.
struct Links {
    /// Last component of what openibd.service is a link to, in /etc, or as ibprov's alias in
    /// the first other directory that has the name.
    alias: Option<String>,
    /// /etc's openibd.service is a file.
    file_in_etc: bool,
    /// Some directory has a unit file of that name.
    vendor_unit: bool,
    /// There is a start script.
    script: bool,
    /// The boot starts ibprov.service.
    wanted: bool,
    /// The boot starts the unit that has openibd's name.
    stand_in_wanted: bool,
    /// The link that masks ibprov.service.
    own_mask: Option<String>,
    /// `sysinit.target` wants the vendor's unit.
    vendor_wanted: bool,
}

impl Links {
    fn read(root: &Root) -> Self {
        let etc = format!("{ETC}/openibd.service");
        let in_etc = root.link_name(&etc).ok();
        let file_in_etc = !root.is_link(&etc) && root.exists(&etc);
        let [_, vendor @ ..] = UNIT_FILE_DIRS.map(|dir| format!("{dir}/openibd.service"));
        let is_ours = |path: &String| root.link_name(path).is_ok_and(|target| target == STAND_IN);
        let next = || vendor.iter().find(|path| root.exists(path) || is_ours(path));
        let alias = match in_etc {
            None if !file_in_etc => {
                next().filter(|path| is_ours(path)).map(|_| STAND_IN.to_owned())
            }
            in_etc => in_etc,
        };
        let masks = [UNIT_FILE_DIRS[0], UNIT_FILE_DIRS[1]].map(|dir| format!("{dir}/{UNIT}"));
        let vendor_want = root.link_name(&format!("{WANTS}/openibd.service"));
        Self {
            alias,
            file_in_etc,
            vendor_unit: file_in_etc
                || vendor.iter().any(|path| !is_ours(path) && root.exists(path)),
            script: root.exists(INIT_SCRIPT),
            wanted: is_wanted(root, UNIT),
            stand_in_wanted: is_wanted(root, STAND_IN),
            own_mask: masks
                .into_iter()
                .find(|path| root.link_name(path).is_ok_and(|target| target == "null")),
            vendor_wanted: vendor_want.is_ok_and(|target| target != STAND_IN),
        }
    }

    fn owner(&self) -> Owner {
        match self.alias.as_deref() {
            Some(STAND_IN) => Owner::Ibprov,
            Some("null") => Owner::Masked,
            _ if self.vendor_unit || self.script => Owner::Vendor,
            _ => Owner::Nobody,
        }
    }
}

fn finding(code: Code, text: String, advice: impl Into<ToDo>) -> Finding {
    Finding::warning(code, text).permanent([advice])
}

/// The boot starts openibd, and not ibprov: nothing is wrong with a node that was not migrated.
fn is_run_by_openibd(root: &Root, links: &Links) -> bool {
    let is_openibds = links.owner() == Owner::Vendor && !links.wanted && links.own_mask.is_none();
    is_openibds && (links.vendor_wanted || !script_callers(root, links).is_empty())
}

/// What is wrong with ibprov's own links.
fn own_findings(links: &Links) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(mask) = &links.own_mask {
        findings.push(finding(
            Code::IbprovMasked,
            format!("ibprov.service does not run at boot: the unit is masked by {mask}"),
            ToDo::run("systemctl unmask ibprov.service"),
        ));
    }
    let is_ours = links.owner() == Owner::Ibprov;
    let has_name = links.alias.as_deref() == Some(STAND_IN) && links.stand_in_wanted;
    match (links.wanted, is_ours) {
        (true, _) if links.own_mask.is_none() && !has_name => {
            let (why, advice) = alias_trouble(links);
            let text = if is_ours && links.alias.as_deref() != Some(STAND_IN) {
                format!("units that require openibd.service fail when a port is missing: {why}")
            } else {
                format!(
                    "ibprov is partly enabled: it runs at boot, but units ordered after openibd.service do not wait for it: {why}"
                )
            };
            findings.push(finding(Code::OpenibdAliasBroken, text, ToDo::run(advice)));
        }
        (false, true) => findings.push(finding(
            Code::IbprovNotWanted,
            "ibprov is partly enabled: openibd.service is its alias, but ibprov.service itself is not enabled"
                .to_owned(),
            ToDo::run("systemctl reenable ibprov.service"),
        )),
        (false, false) => findings.push(finding(
            Code::IbprovDisabled,
            "ibprov.service does not run at boot: the unit is not enabled, and udev starts none of ibprov's units"
                .to_owned(),
            // In this order: both units are openibd.service to systemctl.
            ToDo::run(if links.vendor_wanted {
                "systemctl disable openibd.service && systemctl enable ibprov.service"
            } else {
                "systemctl enable ibprov.service"
            }),
        )),
        (true, _) => {}
    }
    findings
}

/// What of the vendor's is still in the way.
fn vendor_findings(root: &Root, links: &Links) -> Vec<Finding> {
    let mut findings = Vec::new();
    let openibd = links.owner();
    if links.vendor_wanted {
        let harm = match openibd {
            Owner::Ibprov => {
                "the link starts openibd once openibd.service is no longer ibprov's alias"
            }
            Owner::Masked => "the link starts openibd once the mask is removed",
            Owner::Vendor => "the link starts openibd at boot",
            Owner::Nobody => "openibd is not installed any more: the link starts nothing",
        };
        findings.push(finding(
            Code::OpenibdWantLeft,
            format!("the vendor's link {WANTS}/openibd.service is left: {harm}"),
            // Disabling openibd while the alias is there removes the alias and
            // leaves this one.
            ToDo::run(
                "systemctl disable ibprov.service && systemctl disable openibd.service && systemctl enable ibprov.service",
            ),
        ));
    }
    let drop_ins = if openibd == Owner::Ibprov { drop_ins(root) } else { Vec::default() };
    if !drop_ins.is_empty() {
        let files = drop_ins.join(" ");
        findings.push(finding(
            Code::OpenibdDropIn,
            format!("drop-ins for openibd apply to {STAND_IN}, which now has its name: {files}"),
            format!(
                "check whether the drop-ins are needed; if not: rm {files} && systemctl daemon-reload"
            ),
        ));
    }
    findings
}

/// Why openibd.service is not ibprov's alias, and what to do.
fn alias_trouble(links: &Links) -> (String, String) {
    let etc = format!("{ETC}/openibd.service");
    const REENABLE: &str = "systemctl reenable ibprov.service";
    match links.alias.as_deref() {
        Some("null") => (
            format!("the name is masked by {etc}"),
            format!("systemctl unmask openibd.service && {REENABLE}"),
        ),
        Some(STAND_IN) => (format!("no unit starts {STAND_IN} at boot"), REENABLE.to_owned()),
        Some(other) => (format!("{etc} is a link to {other}"), format!("rm {etc} && {REENABLE}")),
        None if links.file_in_etc => (
            format!("{etc} is a regular file, so that the alias could not be created"),
            format!("rm {etc} && {REENABLE}"),
        ),
        None => (format!("the link {etc} does not exist"), REENABLE.to_owned()),
    }
}

/// Drop-ins of openibd.service, which systemd takes for those of the unit that
/// has that name, as an alias too.
fn drop_ins(root: &Root) -> Vec<String> {
    // Of two with the same name the first counts.
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for unit_dir in UNIT_FILE_DIRS {
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
fn script_callers(root: &Root, links: &Links) -> Vec<String> {
    let openibd = links.owner();
    let mut callers = Vec::new();
    // systemd-sysv-generator(8) makes a unit of a script with rc links only
    // if no unit file, alias or mask has that name.
    if openibd == Owner::Vendor && !links.vendor_unit && root.has_generator(SYSV_GENERATOR) {
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
    let runs_rc_local = root.runs_rc_local();
    for script in ["/etc/rc.local", "/etc/rc.d/rc.local"].into_iter().filter(|_| runs_rc_local) {
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
    use crate::host::state;
    use crate::host::testing::tree;

    #[test]
    fn udevs_rule_and_status_mean_the_same_by_enabled() {
        let rule = include_str!("../../udev-rules/90-ibprov.rules");
        for link in links_to(UNIT) {
            let line = format!("TEST==\"{link}\", GOTO=\"ibprov_enabled\"");
            assert!(rule.lines().any(|l| l == line), "no {line}");
            let unit = "/usr/lib/systemd/system/ibprov.service";
            let host = tree(&[], &[(link.trim_start_matches('/'), unit)]);
            assert!(is_wanted(&Root::copy_at(host.path()).expect("root"), UNIT), "{link}");
        }
        let tests = rule.lines().filter(|l| l.starts_with("TEST==\"") && l.contains(UNIT));
        assert_eq!(tests.count(), links_to(UNIT).count());
        let masks = rule.lines().filter(|l| l.starts_with("TEST{0002}") && l.contains(UNIT));
        assert_eq!(masks.count(), 2, "{ETC} and {}", UNIT_FILE_DIRS[1]);
        assert!(rule.contains(&format!("TEST==\"{}/{}\"", state::RUN_DIR, state::RUNNING)));
        let other = tree(
            &[("etc/systemd/system/ibprov.service.d/site.conf", "")],
            &[("etc/systemd/system/site.target.wants/a.service", "/x")],
        );
        assert!(!is_wanted(&Root::copy_at(other.path()).expect("root"), UNIT));
    }

    /// `systemctl enable --runtime`, a generator, an image.
    #[test]
    fn links_beside_those_in_etc_enable_it_too() {
        let ours = format!("/usr/lib/systemd/system/{STAND_IN}");
        for (dir, is_alias) in [
            ("run/systemd/system", true),
            ("usr/lib/systemd/system", true),
            ("usr/local/lib/systemd/system", true),
            ("run/systemd/generator.early", false),
        ] {
            let links = [
                (
                    format!("{dir}/sysinit.target.wants/{UNIT}"),
                    "/usr/lib/systemd/system/ibprov.service",
                ),
                (format!("{dir}/sysinit.target.wants/{STAND_IN}"), ours.as_str()),
                (format!("{dir}/openibd.service"), ours.as_str()),
            ];
            let links: Vec<(&str, &str)> =
                links.iter().map(|(path, target)| (path.as_str(), *target)).collect();
            let unit = ("usr/lib/systemd/system/ibprov-openibd.service", "[Service]\n");
            let host = tree(&[unit], links.get(..if is_alias { 3 } else { 2 }).expect("links"));
            let units = units(&Root::copy_at(host.path()).expect("root"));
            assert!(units.enabled, "{dir}");
            assert_eq!(units.openibd == Owner::Ibprov, is_alias, "{dir}");
            assert_eq!(units.findings.is_empty(), is_alias, "{dir}: {:?}", units.findings);
            // What /etc has comes first, and so does the vendor's unit before one in a later
            // directory.
            let vendor = ("etc/systemd/system/openibd.service", "[Service]\n");
            let host = tree(&[unit, vendor], &links);
            let units = super::units(&Root::copy_at(host.path()).expect("root"));
            assert_eq!(units.openibd, Owner::Vendor, "{dir}");
        }
        let vendor = ("usr/local/lib/systemd/system/openibd.service", "[Service]\n");
        let host = tree(&[vendor], &[("usr/lib/systemd/system/openibd.service", &ours)]);
        assert_eq!(units(&Root::copy_at(host.path()).expect("root")).openibd, Owner::Vendor);
    }

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
