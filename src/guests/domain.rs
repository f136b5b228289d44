//! What libvirt says of domains, as `virsh` prints it.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::DomainName;

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

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,200}") {
            let _domains = Domains::parse(&text, &text, &text);
        }
    }
}
