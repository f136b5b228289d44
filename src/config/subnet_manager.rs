//! `[[subnet-manager]]`: ports of this host on which an opensm runs.

use std::collections::BTreeMap;

use super::keys::{SUBNET_MANAGER, subnet_manager as key};
use super::merge::Merged;
use super::problem::{Place, Problem, Problems};
use crate::names::Guid;

/// An opensm on one port of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubnetManager {
    pub port_guid: Guid,
    /// 0 to 15: of several subnet managers of a fabric the highest is the master.
    pub priority: u8,
    /// The partitions file; `None`: the one that opensm was built for.
    pub partitions: Option<String>,
    /// The port GUIDs of other hosts that may be the master.
    pub peers: Vec<Guid>,
    /// Further keys of opensm.conf.
    pub options: BTreeMap<String, String>,
    /// File and line, for messages.
    pub origin: String,
}

/// The entries, judged together.
pub(super) fn entries(merged: &Merged, problems: &mut Problems) -> Vec<SubnetManager> {
    let mut entries: Vec<(SubnetManager, Place)> = Vec::new();
    for row in merged.tables(SUBNET_MANAGER) {
        for (key, example) in [(&*key::PORT_GUID, "\"98039b0300a1b0c1\""), (&*key::PRIORITY, "14")]
        {
            row.require("subnet-manager", key, &format!("add {key} = {example}"), problems);
        }
        let (Some((port_guid, at)), Some((priority, _))) =
            (row.field(key::PORT_GUID), row.field(key::PRIORITY))
        else {
            continue;
        };
        if port_guid.is_zero() {
            problems.push(
                Problem::new("subnet-manager.port-guid is an all-zero GUID")
                    .at(at, "no port can be told from others by it")
                    .help("`ibprov status` shows the port GUIDs of this host"),
            );
            continue;
        }
        let entry = SubnetManager {
            port_guid,
            priority: u8::try_from(priority).unwrap_or(u8::MAX),
            partitions: row.value(key::PARTITIONS),
            peers: row.list(key::PEERS).map(|(peers, _)| peers).unwrap_or_default(),
            options: row.value(key::OPTIONS).unwrap_or_default(),
            origin: row.place.to_string(),
        };
        match entries.iter().find(|(other, _)| other.port_guid == port_guid) {
            Some((_, other)) => problems.push(
                Problem::new(format!("two [[subnet-manager]] have the port {port_guid}"))
                    .repeated(at, other)
                    .help("one opensm runs on a port: keep one of the two; `subnet-manager = []` in a file between them clears the list before it"),
            ),
            None => entries.push((entry, at.clone())),
        }
    }
    entries.into_iter().map(|(entry, _)| entry).collect()
}
