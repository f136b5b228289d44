//! Guests that libvirt starts by itself as soon as it runs, and the PCI
//! functions that they are given (libvirt's domain XML, "Host device
//! assignment").

use crate::host::Root;
use crate::names::PciAddress;

const DIR: &str = "/etc/libvirt/qemu/autostart";
/// No definition is larger.
const LIMIT: u64 = 1 << 20;

/// A guest that libvirt starts by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutostartGuest {
    /// Its name.
    pub name: String,
    /// The functions that it is given.
    pub functions: Vec<PciAddress>,
    /// Its definition.
    pub file: String,
}

/// The guests with a function of their own.
#[must_use]
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
