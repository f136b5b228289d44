//! The lines of opensm's `partitions.conf` that make VFs members of a partition.
//!
//! The format is opensm's `doc/partition-config.txt`: `NAME=PKEY : GUID=full,
//! GUID=limited ;`, `#` begins a comment, and a partition may be defined in
//! several pieces if each gives its P_Key.

use super::guid::Resolved;
use crate::names::{Membership, PKey};

/// A partition to put VFs in: its P_Key and how they are members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// Its P_Key; how the VFs are members is not taken from it.
    pub pkey: PKey,
    /// Limited members reach only full ones.
    pub membership: Membership,
}

/// The partition that opensm always makes.
const DEFAULT_PARTITION: u16 = 0x7fff;

/// opensm makes `Default=0x7fff : ALL=limited, SELF=full` where no rule names
/// that partition; ours would be such a rule.
const NOTE: &str = "# For a partitions.conf with a rule for ALL in Default: these lines alone would\n# remove opensm's built-in rule, Default=0x7fff : ALL=limited, SELF=full ;\n";

/// One line for each VF of a good plan, so that they can be sorted, compared
/// and merged by other tools. `host` goes into the comments.
pub fn lines(plans: &[Resolved], partition: Partition, host: Option<&str>) -> String {
    let Partition { pkey, membership } = partition;
    // The comment must stay one: nothing of the name may end the line.
    let clean = |name: &str| -> String {
        name.chars().filter(|c| c.is_ascii_graphic() && *c != '#').take(64).collect()
    };
    let host = host.map(clean).filter(|name| !name.is_empty()).unwrap_or_else(|| "host".to_owned());
    // The membership bit is no part of a partition's number.
    let number = pkey.partition();
    let name = if number == DEFAULT_PARTITION { "Default" } else { "vfs" };
    let mut text = String::new();
    for wanted in plans.iter().filter_map(|plan| plan.wanted.as_ref().ok()) {
        for vf in &wanted.vfs {
            let guid = vf.port_guid.value();
            text.push_str(&format!(
                "{name}=0x{number:04x} : 0x{guid:016x}={membership} ; # {host} {} VF {}\n",
                wanted.pf, vf.index
            ));
        }
    }
    if number == DEFAULT_PARTITION && !text.is_empty() {
        text.insert_str(0, NOTE);
    }
    text
}
