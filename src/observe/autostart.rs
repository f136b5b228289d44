//! Guests that libvirt starts by itself as soon as it runs, and the PCI
//! functions that they are given (libvirt's domain XML, "Host device
//! assignment"); and those that libvirt-guests.service starts again because they ran
//! at shutdown.

use roxmltree::{Document, Node};
use serde::{Deserialize, Serialize};

use crate::host::Root;
use crate::names::PciAddress;

const DIR: &str = "/etc/libvirt/qemu/autostart";
/// Where libvirt defines domains, `NAME.xml`.
const DOMAINS: &str = "/etc/libvirt/qemu";
/// No definition is larger.
const LIMIT: u64 = 1 << 20;

/// A guest that is started by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutostartGuest {
    pub name: String,
    /// The functions that it is given.
    pub functions: Vec<PciAddress>,
    /// The file that defines it.
    pub file: String,
}

/// What libvirt-guests.service starts at the next boot (`libvirt-guests.sh`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// The domains that ran at shutdown and are to start again.
    pub domains: Vec<AutostartGuest>,
    pub file: String,
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
    let is_started = |uuid: &str| uuids.contains(&uuid);
    Resumed { domains: defined(root, DOMAINS, is_started), file }
}

/// The value of ON_BOOT: the last one holds, a shell reads it.
fn on_boot(settings: &str) -> &str {
    let mut values = settings.lines().filter_map(|l| l.trim().strip_prefix("ON_BOOT="));
    let last = values.next_back().map(|v| v.split('#').next().unwrap_or_default().trim());
    last.map_or("start", |v| v.trim_matches(['"', '\'']))
}

/// The guests with a function of their own.
pub fn guests(root: &Root) -> Vec<AutostartGuest> {
    let mut guests = defined(root, DIR, |_| true);
    guests.retain(|guest| !guest.functions.is_empty());
    guests
}

/// The domains that the files of `dir` define, of whose UUIDs `is_meant` is true.
fn defined(root: &Root, dir: &str, is_meant: impl Fn(&str) -> bool) -> Vec<AutostartGuest> {
    let names = root.list_or_empty(dir).unwrap_or_default();
    let files = names.into_iter().filter(|n| n.ends_with(".xml")).map(|n| format!("{dir}/{n}"));
    let domain = |file: String| {
        let text = root.text(&file, LIMIT).ok()?;
        let document = Document::parse(&text).ok()?;
        let text_of = |tag| child(document.root_element(), tag)?.text();
        // A guest is started although an address in its definition is none.
        let functions = functions(&document).unwrap_or_default();
        let name = text_of("name")?.to_owned();
        is_meant(text_of("uuid").unwrap_or_default().trim()).then_some(AutostartGuest {
            name,
            functions,
            file,
        })
    };
    files.filter_map(domain).collect()
}

/// The PCI functions of the host that a domain is given, from its XML.
///
/// # Errors
/// It is no XML, or an address in it is none.
pub fn hostdevs(xml: &str) -> Result<Vec<PciAddress>, String> {
    functions(&Document::parse(xml).map_err(|e| e.to_string())?)
}

fn child<'a, 'i>(node: Node<'a, 'i>, tag: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| child.has_tag_name(tag))
}

/// Of hostdev devices, and of interfaces of type hostdev (libvirt, `formatdomain`).
fn functions(document: &Document<'_>) -> Result<Vec<PciAddress>, String> {
    let mut found: Vec<PciAddress> = Vec::new();
    let devices = document.root_element().children().filter(|n| n.has_tag_name("devices"));
    for device in devices.flat_map(|d| d.children()) {
        let given = device.has_tag_name("hostdev") && device.attribute("type") == Some("pci")
            || device.has_tag_name("interface") && device.attribute("type") == Some("hostdev");
        if !given {
            continue;
        }
        let source = child(device, "source");
        let Some(address) = source.and_then(|s| child(s, "address")) else { continue };
        let number = |name: &str| {
            let text = address.attribute(name).unwrap_or("0");
            match text.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => text.parse(),
            }
            .map_err(|_| format!("{name}={text:?} of a hostdev is not a number"))
        };
        let text = format!(
            "{:04x}:{:02x}:{:02x}.{:x}",
            number("domain")?,
            number("bus")?,
            number("slot")?,
            number("function")?
        );
        let address = text.parse().map_err(|e| format!("{e}"))?;
        if !found.contains(&address) {
            found.push(address);
        }
    }
    Ok(found)
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
        let all = hostdevs(xml).expect("XML");
        assert_eq!(all.iter().map(ToString::to_string).collect::<Vec<_>>(), ["0000:4b:00.3"]);
        assert!(hostdevs("<source><address uuid='x'/></source><source>").is_err());
    }

    const XML: &str = "<domain type='kvm'><name>vm09</name><devices>
        <hostdev mode='subsystem' type='pci' managed='yes'>
          <driver name='vfio'/>
          <source><address domain='0x0000' bus='0x4b' slot='0x00' function='0x3'/></source>
          <address type='pci' domain='0x0000' bus='0x07' slot='0x00' function='0x0'/>
        </hostdev>
        <hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/></source></hostdev>
        <interface type='hostdev' managed='yes'>
          <source><address type='pci' domain='0' bus='75' slot='0' function='4'/></source>
        </interface>
        <interface type='network'><source network='default'/></interface>
        </devices></domain>";

    #[test]
    fn hostdevs_are_read_from_the_source_address() {
        let found: Vec<String> =
            hostdevs(XML).expect("XML").iter().map(ToString::to_string).collect();
        assert_eq!(found, ["0000:4b:00.3", "0000:4b:00.4"]);
    }

    #[test]
    fn what_is_no_domain_is_an_error_or_nothing() {
        assert!(hostdevs("<domain><devices>").is_err());
        assert_eq!(hostdevs("<domain/>"), Ok(Vec::new()));
        let bad = XML.replace("slot='0x00' function='0x3'", "slot='0x20' function='0x3'");
        assert!(hostdevs(&bad).is_err());
        let dir = crate::host::testing::tree(&[("etc/libvirt/qemu/vm09.xml", &bad)], &[]);
        let guests = defined(&Root::copy_at(dir.path()).expect("root"), DOMAINS, |_| true);
        assert_eq!(guests.first().map(|guest| guest.name.as_str()), Some("vm09"));
        // Entities could blow up what is read.
        assert!(hostdevs("<!DOCTYPE x [<!ENTITY a 'aa'>]><domain>&a;</domain>").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,200}") {
            let _devices = hostdevs(&text);
        }
    }
}
