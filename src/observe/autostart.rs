//! Guests that libvirt starts by itself as soon as it runs, and the PCI
//! functions that they are given (libvirt's domain XML, "Host device
//! assignment"); and those that libvirt-guests.service starts again because they ran
//! at shutdown.

use serde::{Deserialize, Serialize};

use crate::host::Root;
use crate::names::PciAddress;

const DIR: &str = "/etc/libvirt/qemu/autostart";
/// Where libvirt defines domains, `NAME.xml`.
const DOMAINS: &str = "/etc/libvirt/qemu";
/// No definition is larger.
const LIMIT: u64 = 1 << 20;

/// A guest that libvirt starts by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutostartGuest {
    pub name: String,
    /// The functions that it is given.
    pub functions: Vec<PciAddress>,
    pub file: String,
}

/// What libvirt-guests.service starts at the next boot (`libvirt-guests.sh`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// The domains that ran at shutdown and are to start again.
    pub domains: Vec<ResumedDomain>,
    pub file: String,
}

/// A domain that ran at shutdown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumedDomain {
    pub name: String,
    /// The functions that it is given.
    pub functions: Vec<PciAddress>,
}

/// What must be said in the configuration of libvirt-guests for it to start nobody.
pub const START_NOBODY: &str = "ON_BOOT=ignore";

/// The domains that libvirt-guests.service starts: it is enabled, ON_BOOT is `start`,
/// its default, and at shutdown it has written down who ran.
pub fn resumed(root: &Root) -> Resumed {
    const UNIT: &str = "libvirt-guests.service";
    let enabled = root.is_link(&format!("/etc/systemd/system/multi-user.target.wants/{UNIT}"));
    let masked = ["/etc/systemd/system", "/run/systemd/system"]
        .iter()
        .any(|dir| root.link_name(&format!("{dir}/{UNIT}")).is_ok_and(|target| target == "null"));
    if !enabled || masked {
        return Resumed::default();
    }
    let files = ["/etc/sysconfig/libvirt-guests", "/etc/default/libvirt-guests"];
    let file = files.into_iter().find(|file| root.exists(file)).unwrap_or(files[0]).to_owned();
    let settings = root.text(&file, LIMIT).unwrap_or_default();
    if on_boot(&settings) != "start" {
        return Resumed::default();
    }
    let list = root.text("/var/lib/libvirt/libvirt-guests", LIMIT).unwrap_or_default();
    // A line is a connection's URI and the UUIDs of its domains.
    let uuids: Vec<&str> = list.lines().flat_map(|l| l.split_whitespace().skip(1)).collect();
    if uuids.is_empty() {
        return Resumed::default();
    }
    let domains = root.list_or_empty(DOMAINS).unwrap_or_default();
    let domains = domains.into_iter().filter(|name| name.ends_with(".xml")).filter_map(|name| {
        let text = root.text(&format!("{DOMAINS}/{name}"), LIMIT).ok()?;
        let uuid = between(&text, "<uuid>", "</uuid>")?;
        let name = between(&text, "<name>", "</name>")?.to_owned();
        uuids.contains(&uuid).then(|| ResumedDomain { name, functions: functions(&text) })
    });
    Resumed { domains: domains.collect(), file }
}

/// The value of ON_BOOT: the last one holds, a shell reads it.
fn on_boot(settings: &str) -> &str {
    let mut values = settings.lines().filter_map(|l| l.trim().strip_prefix("ON_BOOT="));
    let last = values.next_back().map(|v| v.split('#').next().unwrap_or_default().trim());
    last.map_or("start", |v| v.trim_matches(['"', '\'']))
}

/// The guests with a function of their own.
pub fn guests(root: &Root) -> Vec<AutostartGuest> {
    let names = root.list_or_empty(DIR).unwrap_or_default();
    let files = names.into_iter().filter(|n| n.ends_with(".xml")).map(|n| format!("{DIR}/{n}"));
    files
        .filter_map(|file| {
            let text = root.text(&file, LIMIT).ok()?;
            let functions = functions(&text);
            let name = between(&text, "<name>", "</name>").unwrap_or_default().to_owned();
            (!functions.is_empty()).then_some(AutostartGuest { name, functions, file })
        })
        .collect()
}

/// The source addresses of `<hostdev>` and `<interface type='hostdev'>`. Not an
/// XML parser: libvirt itself writes these files, one element a line.
fn functions(text: &str) -> Vec<PciAddress> {
    let mut functions = Vec::new();
    for source in text.split("<source>").skip(1) {
        let source = source.split("</source>").next().unwrap_or_default();
        let Some(address) = between(source, "<address ", ">") else { continue };
        let number = |name: &str| {
            let value = between(address, &format!("{name}='"), "'")?;
            u32::from_str_radix(value.trim_start_matches("0x"), 16).ok()
        };
        let parts = [number("domain"), number("bus"), number("slot"), number("function")];
        if let [domain, Some(bus), Some(slot), Some(function)] = parts {
            let domain = domain.unwrap_or_default();
            let text = format!("{domain:04x}:{bus:02x}:{slot:02x}.{function:x}");
            functions.extend(text.parse::<PciAddress>());
        }
    }
    functions
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    text.split_once(begin)?.1.split_once(end).map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resumed_with(settings: Option<&str>, links: &[(&str, &str)]) -> Resumed {
        let xml = "<domain>\n  <name>vm09</name>\n  <uuid>4dea22b3-1d52-d8f3-2516-782e98ab3fa0</uuid>\n</domain>\n";
        let list =
            "default 4dea22b3-1d52-d8f3-2516-782e98ab3fa0 00000000-1d52-d8f3-2516-782e98ab3fa0\n";
        let mut files =
            vec![("etc/libvirt/qemu/vm09.xml", xml), ("var/lib/libvirt/libvirt-guests", list)];
        files.extend(settings.map(|text| ("etc/default/libvirt-guests", text)));
        let enabled = "etc/systemd/system/multi-user.target.wants/libvirt-guests.service";
        let mut all = vec![(enabled, "/lib/systemd/system/libvirt-guests.service")];
        all.extend(links);
        let dir = crate::host::testing::tree(&files, &all);
        resumed(&Root::copy_at(dir.path()).expect("root"))
    }

    #[test]
    fn who_ran_at_shutdown_is_started_unless_the_site_says_otherwise() {
        let by_default = resumed_with(None, &[]);
        let names: Vec<&str> = by_default.domains.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["vm09"]);
        let said = resumed_with(Some("#ON_BOOT=ignore\nON_BOOT=\"start\"\n"), &[]);
        assert_eq!((said.domains.len(), said.file.as_str()), (1, "/etc/default/libvirt-guests"));
        assert_eq!(resumed_with(Some("ON_BOOT=ignore # ours\n"), &[]), Resumed::default());
        let mask = ("etc/systemd/system/libvirt-guests.service", "/dev/null");
        assert_eq!(resumed_with(None, &[mask]), Resumed::default());
    }

    #[test]
    fn functions_that_a_guest_is_given() {
        let xml = "<domain><name>n1</name><devices>
    <hostdev mode='subsystem' type='pci' managed='yes'>
      <source>
        <address domain='0x0000' bus='0x4b' slot='0x00' function='0x3'/>
      </source>
      <address type='pci' domain='0x0000' bus='0x07' slot='0x00' function='0x0'/>
    </hostdev>
    <disk type='file'><source file='/x'/></disk></devices></domain>";
        let all: Vec<String> = functions(xml).iter().map(ToString::to_string).collect();
        assert_eq!(all, ["0000:4b:00.3"]);
        assert_eq!(functions("<source><address uuid='x'/></source><source>"), []);
    }
}
