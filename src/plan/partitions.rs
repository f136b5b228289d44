//! The lines of opensm's `partitions.conf` that make VFs members of a partition.
//!
//! The format is opensm's `doc/partition-config.txt`: `NAME=PKEY : GUID=full,
//! GUID=limited ;`, `#` begins a comment, and a partition may be defined in
//! several pieces if each gives its P_Key.

use super::guid::Resolved;
use crate::config::pins::Pins;
use crate::model::{WantedPf, WantedVf};
use crate::names::{GroupMtu, GroupRate, Guid, Membership, PKey};

/// A partition to put VFs in: its P_Key, its flags, and how they are members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// Its P_Key; how the VFs are members is not taken from it.
    pub pkey: PKey,
    /// Limited members reach only full ones.
    pub membership: Membership,
    /// The broadcast group that it has to have for IPoIB.
    pub group: Option<BroadcastGroup>,
}

/// A broadcast group. Each line has its flags, so that the order of lines does not matter:
/// opensm makes the group by the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BroadcastGroup {
    /// In bytes.
    pub mtu: Option<GroupMtu>,
    pub rate: Option<GroupRate>,
}

/// One VF to be a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its host, for the comment.
    pub host: String,
    /// Its PF, for the comment.
    pub pf: String,
    /// Its number.
    pub vf: u16,
    pub port_guid: Guid,
}

/// The partition that opensm always makes.
const DEFAULT_PARTITION: u16 = 0x7fff;

/// opensm makes `Default=0x7fff : ALL=limited, SELF=full` where no rule names
/// that partition; ours would be such a rule.
const NOTE: &str = "# For a partitions.conf with a rule for ALL in Default: these lines alone would\n# remove opensm's built-in rule, Default=0x7fff : ALL=limited, SELF=full ;\n";

/// The VFs of good plans.
pub fn planned(plans: &[Resolved], host: Option<&str>) -> Vec<Member> {
    let host = host.unwrap_or_default();
    let of = |wanted: &WantedPf| {
        let (host, pf) = (host.to_owned(), wanted.pf.to_string());
        let ports = |vf: &WantedVf| [Some(vf.port_guid), vf.port2_guid].into_iter().flatten();
        let member = |vf: &WantedVf, port_guid| Member {
            host: host.clone(),
            pf: pf.clone(),
            vf: vf.index.get(),
            port_guid,
        };
        let members = |vf| ports(vf).map(move |guid| member(vf, guid)).collect::<Vec<_>>();
        wanted.vfs.iter().flat_map(members).collect::<Vec<_>>()
    };
    plans.iter().filter_map(|plan| plan.wanted.as_ref().ok()).flat_map(of).collect()
}

/// The VFs of a fleet, by the names of the hosts.
pub fn of_fleet(hosts: &[(String, Pins)]) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    for (host, pins) in hosts {
        for pf in &pins.pfs {
            for (vf, [_, ports @ ..]) in (0_u16..).zip(&pf.vfs) {
                members.extend(ports.iter().flatten().map(|port_guid| Member {
                    host: host.clone(),
                    pf: pf.pci.to_string(),
                    vf,
                    port_guid: *port_guid,
                }));
            }
        }
    }
    members.sort_by(|a, b| (&a.host, &a.pf, a.vf).cmp(&(&b.host, &b.pf, b.vf)));
    members
}

/// One line for each VF, so that they can be sorted, compared and merged by other tools.
pub fn lines(members: &[Member], partition: Partition) -> String {
    let Partition { pkey, membership, group } = partition;
    // The comment must stay one: nothing of the name may end the line.
    let clean = |name: &str| -> String {
        let name: String =
            name.chars().filter(|c| c.is_ascii_graphic() && *c != '#').take(64).collect();
        if name.is_empty() { "host".to_owned() } else { name }
    };
    // The membership bit is no part of a partition's number.
    let number = pkey.partition();
    let name = if number == DEFAULT_PARTITION { "Default" } else { "vfs" };
    let mut flags = String::new();
    if let Some(BroadcastGroup { mtu, rate }) = group {
        flags.push_str(",ipoib");
        flags.extend(mtu.map(|mtu| format!(",mtu={}", mtu.code())));
        flags.extend(rate.map(|rate| format!(",rate={}", rate.code())));
    }
    let mut text = String::new();
    for Member { host, pf, vf, port_guid } in members {
        text.push_str(&format!(
            "{name}=0x{number:04x}{flags} : 0x{:016x}={membership} ; # {} {pf} VF {vf}\n",
            port_guid.value(),
            clean(host)
        ));
    }
    if number == DEFAULT_PARTITION && !text.is_empty() {
        text.insert_str(0, NOTE);
    }
    text
}
