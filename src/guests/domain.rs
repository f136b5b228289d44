//! What libvirt says of domains, as `virsh` prints it.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::{DomainName, PciAddress};

/// The domains of a libvirt at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Domains {
    /// Each one's name by its UUID.
    names: BTreeMap<String, String>,
    /// The names of those that are active: running, paused or about to stop.
    pub active: BTreeSet<String>,
    /// The names of those that libvirt starts by itself.
    pub autostart: BTreeSet<String>,
}

impl Domains {
    /// From the output of `virsh list --all --uuid --name`, of `list --name`
    /// and of `list --all --autostart --name`.
    pub fn parse(all: &str, active: &str, autostart: &str) -> Self {
        let names = |text: &str| {
            let names = text.lines().map(str::trim_end).filter(|l| !l.is_empty());
            names.map(str::to_owned).collect()
        };
        let pair = |line: &str| {
            let (uuid, name) = line.trim_end().split_once(' ')?;
            is_uuid(uuid).then(|| (uuid.to_owned(), name.trim_start().to_owned()))
        };
        Self {
            names: all.lines().filter_map(pair).collect(),
            active: names(active),
            autostart: names(autostart),
        }
    }

    /// UUID and name of the domain that the configuration calls `wanted`.
    /// Names come first: a domain may be named like another's UUID.
    pub fn find(&self, wanted: &DomainName) -> Option<(&str, &str)> {
        let wanted = wanted.as_str();
        let by_name = self.names.iter().find(|(_, name)| *name == wanted);
        let by_uuid = || self.names.get_key_value(wanted.to_ascii_lowercase().as_str());
        by_name.or_else(by_uuid).map(|(uuid, name)| (uuid.as_str(), name.as_str()))
    }

    /// True if the domain of this name is active.
    pub fn is_active(&self, name: &str) -> bool {
        self.active.contains(name)
    }

    /// Name and UUID of each domain that libvirt starts by itself.
    pub fn autostarted(&self) -> impl Iterator<Item = (&str, &str)> {
        let autostart = self.names.iter().filter(|(_, name)| self.autostart.contains(*name));
        autostart.map(|(uuid, name)| (name.as_str(), uuid.as_str()))
    }
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|g| g.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|g| g.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The PCI functions of the host that a domain is given, from its XML: hostdev
/// devices, and interfaces of type hostdev (libvirt, `formatdomain`).
///
/// # Errors
/// It is no XML, or an address in it is none.
pub fn hostdevs(xml: &str) -> Result<Vec<PciAddress>, String> {
    let document = roxmltree::Document::parse(xml).map_err(|e| e.to_string())?;
    let mut found: Vec<PciAddress> = Vec::new();
    let devices = document.root_element().children().filter(|n| n.has_tag_name("devices"));
    for device in devices.flat_map(|d| d.children()) {
        let given = device.has_tag_name("hostdev") && device.attribute("type") == Some("pci")
            || device.has_tag_name("interface") && device.attribute("type") == Some("hostdev");
        if !given {
            continue;
        }
        let source = device.children().find(|n| n.has_tag_name("source"));
        let address = source.and_then(|s| s.children().find(|n| n.has_tag_name("address")));
        let Some(address) = address else { continue };
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

    fn domains() -> Domains {
        Domains::parse(
            "6695eb01-f6a4-8304-79aa-97f2502e193f test                          \n\
             11111111-2222-3333-4444-555555555555 vm; reboot\n\
             aaaaaaaa-2222-3333-4444-555555555555 11111111-2222-3333-4444-555555555555\n\n",
            "test\n\n",
            "vm; reboot\n",
        )
    }

    #[test]
    fn a_domain_is_found_by_name_then_by_uuid() {
        let domains = domains();
        let find = |text: &str| domains.find(&text.parse().expect("name")).map(|(uuid, _)| uuid);
        assert_eq!(find("vm; reboot"), Some("11111111-2222-3333-4444-555555555555"));
        assert_eq!(
            find("11111111-2222-3333-4444-555555555555"),
            Some("aaaaaaaa-2222-3333-4444-555555555555"),
            "a name that is another's UUID"
        );
        assert_eq!(
            find("6695EB01-F6A4-8304-79AA-97F2502E193F"),
            Some("6695eb01-f6a4-8304-79aa-97f2502e193f")
        );
        assert_eq!(find("test"), Some("6695eb01-f6a4-8304-79aa-97f2502e193f"));
        assert_eq!(find("nobody"), None);
        assert!(domains.is_active("test") && !domains.is_active("vm; reboot"));
        assert_eq!(domains.autostarted().map(|(name, _)| name).collect::<Vec<_>>(), ["vm; reboot"]);
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
        // Entities could blow up what is read.
        assert!(hostdevs("<!DOCTYPE x [<!ENTITY a 'aa'>]><domain>&a;</domain>").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,200}") {
            let _devices = hostdevs(&text);
            let _domains = Domains::parse(&text, &text, &text);
        }
    }
}
