//! The plans of many hosts together: a fabric has each GUID once.
//!
//! Pure and lean: a GUID of a host takes 24 bytes, so that tens of thousands of
//! hosts are judged in one go.

use crate::config::pins::Pins;
use crate::model::{
    Code,
    plan_fleet::{FleetFinding, Holder, MOST_HOLDERS},
};
use crate::names::{Guid, GuidKind, PciAddress};

/// The GUIDs of many hosts.
#[derive(Debug, Default)]
pub struct Fleet {
    pub hosts: Vec<String>,
    pfs: Vec<PciAddress>,
    guids: Vec<Entry>,
    pub vfs: usize,
}

/// One GUID. Sorted by GUID, then by where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    guid: Guid,
    /// Index of the host.
    host: u32,
    /// Index of the PF, over all hosts.
    pf: u32,
    /// The VF, or the card itself.
    vf: Option<u16>,
    kind: GuidKind,
}

impl Fleet {
    /// Adds a host by what is pinned for it.
    pub fn add(&mut self, host: String, pins: &Pins) {
        let at = index(self.hosts.len());
        self.hosts.push(host);
        for pin in &pins.pfs {
            let pf = index(self.pfs.len());
            self.pfs.push(pin.pci);
            let mut entry = |guid, vf, kind| {
                self.guids.push(Entry { guid, host: at, pf, vf, kind });
            };
            if let Some(guid) = pin.node_guid {
                entry(guid, None, GuidKind::Node);
            }
            for guid in &pin.port_guids {
                entry(*guid, None, GuidKind::Port);
            }
            for (vf, guids) in (0_u16..).zip(&pin.vfs) {
                for (kind, guid) in GuidKind::ALL.into_iter().zip(guids) {
                    guid.inspect(|guid| entry(*guid, Some(vf), kind));
                }
            }
            self.vfs += pin.vfs.len();
        }
    }

    /// Everything that is wrong, at most `most` findings, and how many there
    /// are in all.
    pub fn judge(&mut self, most: usize) -> (Vec<FleetFinding>, usize) {
        self.guids.sort_unstable();
        let mut findings = Vec::new();
        let mut count = 0;
        let mut note = |finding: &dyn Fn() -> FleetFinding| {
            count += 1;
            if findings.len() < most {
                findings.push(finding());
            }
        };
        for same in self.guids.chunk_by(|a, b| a.guid == b.guid) {
            let Some(first) = same.first() else { continue };
            let guid = first.guid;
            if guid.is_zero() || guid.value() == u64::MAX {
                note(&|| FleetFinding::of(Code::GuidZero, guid, self.holders(same)));
            } else if !is_one_device(same) {
                note(&|| FleetFinding::of(Code::VfGuidDuplicate, guid, self.holders(same)));
            }
            // Each pair once, from its smaller one.
            let twin = guid.link_local_twin();
            let port = |e: &&Entry| e.kind != GuidKind::Node;
            if guid < twin
                && let Some(mine) = same.iter().find(port)
                && let Some(other) = self.with(twin).find(port)
                // No two cards are judged: nobody can change them.
                && (mine.vf.is_some() || other.vf.is_some())
            {
                let holders = || self.holders(&[*mine, *other]);
                note(&|| FleetFinding::of(Code::GuidLinkLocalTwin, guid, holders()));
            }
        }
        (findings, count)
    }

    fn with(&self, guid: Guid) -> impl Iterator<Item = &Entry> {
        let start = self.guids.partition_point(|e| e.guid < guid);
        let from = self.guids.get(start..).unwrap_or_default();
        from.iter().take_while(move |e| e.guid == guid)
    }

    fn holders(&self, entries: &[Entry]) -> Vec<Holder> {
        let at = |index: u32| usize::try_from(index).unwrap_or(usize::MAX);
        let holder = |entry: &Entry| {
            Some(Holder {
                host: self.hosts.get(at(entry.host))?.clone(),
                pci: *self.pfs.get(at(entry.pf))?,
                vf: entry.vf,
                kind: entry.kind,
            })
        };
        entries.iter().take(MOST_HOLDERS).filter_map(holder).collect()
    }
}

fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// True if one GUID is only that of one device: node and port of one VF, or of
/// one card.
fn is_one_device(same: &[Entry]) -> bool {
    let Some(first) = same.first() else { return true };
    let device = |e: &Entry| (e.host, e.pf, e.vf);
    let nodes = same.iter().filter(|e| e.kind == GuidKind::Node).count();
    same.iter().all(|e| device(e) == device(first)) && nodes <= 1 && same.len() - nodes <= 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PfSelector;
    use crate::config::pins::PinnedPf;

    fn pins(card: u64, vfs: &[[u64; 2]]) -> Pins {
        let pci: PciAddress = "0000:4b:00.0".parse().expect("address");
        let pf = PinnedPf {
            which: PfSelector::Pci(pci),
            pci,
            node_guid: Some(Guid::new(card)),
            port_guids: vec![Guid::new(card)],
            vfs: vfs
                .iter()
                .map(|guids| [Some(Guid::new(guids[0])), Some(Guid::new(guids[1])), None])
                .collect(),
        };
        Pins { pfs: vec![pf], ..Pins::default() }
    }

    fn shown(hosts: &[(&str, Pins)]) -> Vec<String> {
        let mut fleet = Fleet::default();
        for (host, pins) in hosts {
            fleet.add((*host).to_owned(), pins);
        }
        let (findings, count) = fleet.judge(10);
        assert_eq!(count, findings.len());
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_good_fleet_says_nothing() {
        let hosts = [("a", pins(1, &[[2 << 56, 2 << 56]])), ("b", pins(2, &[[3 << 56, 6 << 56]]))];
        assert_eq!(shown(&hosts), Vec::<String>::new());
    }

    #[test]
    fn each_kind_of_finding() {
        let hosts = [
            ("a", pins(0xa, &[[0x10, 0x11], [0x10, 0x12]])),
            ("b", pins(0xb, &[[0x20, 0xa], [0, 0x11 | 2 << 56]])),
            ("c", pins(0xc, &[[0x30 | 2 << 56, 0x20]])),
        ];
        assert_eq!(
            shown(&hosts),
            [
                "the GUID 0000:0000:0000:0000 is all zero, with which the port stays down or rdma_cm fails\n  b: node of VF 1 of 0000:4b:00.0",
                "0000:0000:0000:000a is used more than once\n  a: node of the adapter 0000:4b:00.0\n  a: port of the adapter 0000:4b:00.0\n  b: port of VF 0 of 0000:4b:00.0",
                "0000:0000:0000:0010 is used more than once\n  a: node of VF 0 of 0000:4b:00.0\n  a: node of VF 1 of 0000:4b:00.0",
                "0000:0000:0000:0011 and 0200:0000:0000:0011 map to the same IPv6 link-local address\n  a: port of VF 0 of 0000:4b:00.0\n  b: port of VF 1 of 0000:4b:00.0",
                "0000:0000:0000:0020 is used more than once\n  b: node of VF 0 of 0000:4b:00.0\n  c: port of VF 0 of 0000:4b:00.0",
            ]
        );
    }

    #[test]
    fn a_second_port_is_a_port() {
        let mut first = pins(0xa, &[[0x10, 0x11]]);
        first.pfs[0].vfs[0][2] = Some(Guid::new(0x11));
        let mut second = pins(0xb, &[[0x20, 0x21]]);
        second.pfs[0].vfs[0][2] = Some(Guid::new(0x11 | 2 << 56));
        assert_eq!(
            shown(&[("a", first), ("b", second)]),
            [
                "0000:0000:0000:0011 is used more than once\n  a: port of VF 0 of 0000:4b:00.0\n  a: port 2 of VF 0 of 0000:4b:00.0",
                "0000:0000:0000:0011 and 0200:0000:0000:0011 map to the same IPv6 link-local address\n  a: port of VF 0 of 0000:4b:00.0\n  b: port 2 of VF 0 of 0000:4b:00.0",
            ]
        );
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        let mut fleet = Fleet::default();
        let vfs: Vec<[u64; 2]> = (1..50).map(|n| [n << 8, n << 8]).collect();
        for host in ["a", "b"] {
            fleet.add(host.to_owned(), &pins(u64::from(host.as_bytes()[0]), &vfs));
        }
        let (findings, count) = fleet.judge(7);
        assert_eq!((findings.len(), count), (7, 49));
    }
}
