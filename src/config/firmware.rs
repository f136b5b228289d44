//! `[[firmware]]`: settings in the firmware of adapters, which `ibprov firmware` compares and
//! writes. Held against what the rest of the configuration expects of the same adapter.

use super::draft::Row;
use super::keys::{FIRMWARE, INTERFACE, PORT, firmware as key, interface, port};
use super::merge::Merged;
use super::pf::{PfSelector, Placed};
use super::problem::{Place, Problem, Problems};
use crate::names::{FirmwareName, FirmwareValue, LinkLayer, PciAddress};

/// An adapter, and the settings that its firmware is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirmwareCard {
    /// One of its functions.
    pub pci: PciAddress,
    pub settings: Vec<FirmwareSetting>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirmwareSetting {
    pub name: FirmwareName,
    pub value: FirmwareValue,
    /// File and line, for messages.
    pub origin: String,
}

impl FirmwareCard {
    /// The adapter of `all` that has this function.
    pub fn of(all: &[Self], pci: PciAddress) -> Option<&Self> {
        all.iter().find(|card| card.pci.is_beside(pci))
    }

    pub fn setting(&self, name: &str) -> Option<&FirmwareSetting> {
        self.settings.iter().find(|setting| setting.name.as_str() == name)
    }

    /// NUM_OF_VFS is set, and SRIOV_EN = false leaves it without effect.
    pub fn is_without_sriov(&self) -> bool {
        let is_off = |setting: &FirmwareSetting| setting.value.number() == Some(0);
        self.setting(FirmwareName::NUM_OF_VFS).is_some()
            && self.setting(FirmwareName::SRIOV_EN).is_some_and(is_off)
    }
}

/// A setting, and where it is given for which adapter.
struct Given<'a> {
    pci: PciAddress,
    setting: FirmwareSetting,
    at: &'a Place,
}

/// The adapters that the rows name.
pub(super) fn cards(
    merged: &Merged,
    pfs: &[Placed<'_>],
    problems: &mut Problems,
) -> Vec<FirmwareCard> {
    let mut given: Vec<Given<'_>> = Vec::new();
    for row in merged.tables(FIRMWARE) {
        let cards = named(row, problems);
        for (name, item) in row.settings(key::SET) {
            let (Some(value), at) = (item.get(), item.place.as_ref().unwrap_or(&row.place)) else {
                continue;
            };
            if name.lacks_port() {
                Problem::new(format!("{name} is a setting of a port, and names none"))
                        .at(at, "of which port?")
                        .help(format!("write {name}_P1 for the first port of the adapter, {name}_P2 for the second")).add_to(problems);
                continue;
            }
            let setting = FirmwareSetting { name: name.clone(), value, origin: at.to_string() };
            for pci in &cards {
                match given.iter().find(|g| g.pci.is_beside(*pci) && g.setting.name == *name) {
                    Some(other) => problems.push(twice(*pci, &setting, at, other)),
                    None => given.push(Given { pci: *pci, setting: setting.clone(), at }),
                }
            }
        }
    }
    for one in &given {
        against_ports(one, merged, pfs, problems);
        against_vfs(one, &given, pfs, problems);
    }
    let mut cards: Vec<FirmwareCard> = Vec::new();
    for Given { pci, setting, .. } in given {
        match cards.iter_mut().find(|card| card.pci.is_beside(pci)) {
            Some(card) => card.settings.push(setting),
            None => cards.push(FirmwareCard { pci, settings: vec![setting] }),
        }
    }
    cards
}

/// The adapters of a row, each once.
fn named(row: &Row, problems: &mut Problems) -> Vec<PciAddress> {
    for (key, example) in
        [(&*key::PCI, "pci = \"4b:00.0\""), (&key::SET, "set = { NUM_OF_VFS = 8 }")]
    {
        let help = format!("give both pci and set, e.g. {example}");
        row.require("firmware", key, &help, problems);
    }
    let mut cards: Vec<(PciAddress, &Place)> = Vec::new();
    for (pci, at) in row.each(key::PCI) {
        match cards.iter().find(|(other, _)| other.is_beside(pci)) {
            Some((_, other)) => Problem::new("firmware.pci names one adapter twice")
                .repeated(at, other)
                .help("the settings are of the whole adapter: keep one of its functions")
                .add_to(problems),
            None => cards.push((pci, at)),
        }
    }
    cards.into_iter().map(|(pci, _)| pci).collect()
}

fn twice(pci: PciAddress, setting: &FirmwareSetting, at: &Place, other: &Given<'_>) -> Problem {
    let what = if setting.value == other.setting.value { "twice" } else { "two different values" };
    Problem::new(format!("{} of adapter {pci} is given {what}", setting.name))
        .repeated(at, other.at)
        .help("keep one of the two; both functions of an adapter have the same settings, and `firmware = []` in a file between them clears the list before it")
}

/// The type of the link against what else is said of the same port.
fn against_ports(given: &Given<'_>, merged: &Merged, pfs: &[Placed<'_>], problems: &mut Problems) {
    let name = &given.setting.name;
    let (Some(number), Some(layer)) = (name.link_type_of(), given.setting.value.link_layer())
    else {
        return;
    };
    // Each function of an adapter has one port of it, and calls it port 1.
    let is_meant = |pci: PciAddress, port: Option<i64>| {
        let further = port.map_or(0, |port| port.saturating_sub(1));
        pci.is_beside(given.pci) && i64::from(pci.port_of_adapter()) + further == i64::from(number)
    };
    let mut contradicts = |at: &Place, label: &str| {
        Problem::new(format!(
            "{name} makes a port of {} one that the configuration does not expect",
            given.pci
        ))
        .at(
            given.at,
            format!("port {number} of the adapter is set to {}", Into::<&str>::into(layer)),
        )
        .at(at, label)
        .help("change the one or the other")
        .add_to(problems);
    };
    for row in merged.tables(PORT) {
        let wanted = row.value(port::LINK_LAYER).unwrap_or(LinkLayer::InfiniBand);
        let numbers: Vec<i64> = row.each(port::PORT).into_iter().map(|(n, _)| n).collect();
        let is_meant = |pci| match numbers.as_slice() {
            [] => is_meant(pci, None),
            numbers => numbers.iter().any(|number| is_meant(pci, Some(*number))),
        };
        for (_, at) in row.each(port::PCI).into_iter().filter(|(pci, _)| is_meant(*pci)) {
            if wanted != layer {
                contradicts(at, &format!("this [[port]] expects {}", Into::<&str>::into(wanted)));
            }
        }
    }
    if layer != LinkLayer::Ethernet {
        return;
    }
    for row in merged.tables(INTERFACE) {
        let number = row.value(interface::MATCH_PORT);
        let pcis = row.each(interface::MATCH_PCI).into_iter();
        for (_, at) in pcis.filter(|(pci, _)| is_meant(*pci, number)) {
            contradicts(at, "this [[interface]] is an IPoIB interface");
        }
    }
    for pf in pfs {
        if matches!(pf.pf.which, PfSelector::Pci(pci) if is_meant(pci, None)) {
            contradicts(pf.at, "the VFs of this [[pf]] have GUIDs, which need InfiniBand");
        }
    }
}

/// The number of VFs against the plans, and against the other way to give one.
fn against_vfs(given: &Given<'_>, all: &[Given<'_>], pfs: &[Placed<'_>], problems: &mut Problems) {
    let (FirmwareName::NUM_OF_VFS, Some(most)) =
        (given.setting.name.as_str(), given.setting.value.number())
    else {
        return;
    };
    for pf in pfs.iter().filter(|pf| u64::from(pf.pf.vfs) > most) {
        if matches!(pf.pf.which, PfSelector::Pci(pci) if pci.is_beside(given.pci)) {
            Problem::new(format!("{} has more VFs than its firmware is set to allow", pf.pf.which))
                .at(pf.count.at, format!("{} VFs are planned", pf.pf.vfs))
                .at(given.at, "the most that each PF of the adapter can have")
                .help("raise NUM_OF_VFS, or plan fewer VFs")
                .add_to(problems);
        }
    }
    let of_pf = all.iter().find(|other| {
        other.setting.name.as_str() == FirmwareName::PER_PF && other.pci.is_beside(given.pci)
    });
    if let Some(other) = of_pf.filter(|other| other.setting.value.number() != Some(0)) {
        Problem::new(format!(
            "{} has no effect beside {} = true",
            FirmwareName::NUM_OF_VFS,
            FirmwareName::PER_PF
        ))
        .at(given.at, "the number of VFs of each PF")
        .at(other.at, "each PF has a number of its own, PF_NUM_OF_VF")
        .help("keep one of the two")
        .add_to(problems);
    }
}
