//! `[[subnet-manager]]`: ports of this host on which an opensm runs.

use std::collections::BTreeMap;

use super::keys::{SUBNET_MANAGER, subnet_manager as key};
use super::merge::Merged;
use super::problem::{Place, Problem, Problems};
use crate::names::{Guid, HIDDEN, is_fabric_secret};

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
    /// It has an error: no opensm is started on the port.
    pub is_withheld: bool,
    /// File and line, for messages.
    pub origin: String,
}

impl SubnetManager {
    /// The entry as it may be shown: without the keys of the fabric.
    pub fn without_secrets(&self) -> Self {
        let mut shown = self.clone();
        for (_, value) in shown.options.iter_mut().filter(|(key, _)| is_fabric_secret(key)) {
            HIDDEN.clone_into(value);
        }
        shown
    }
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
            Problem::new("subnet-manager.port-guid is an all-zero GUID")
                .at(at, "no port can be told from others by it")
                .help("`ibprov status` shows the port GUIDs of this host")
                .add_to(problems);
            continue;
        }
        let entry = SubnetManager {
            port_guid,
            priority: u8::try_from(priority).unwrap_or(u8::MAX),
            partitions: row.value(key::PARTITIONS),
            peers: row.list(key::PEERS).map(|(peers, _)| peers).unwrap_or_default(),
            options: row.value(key::OPTIONS).unwrap_or_default(),
            is_withheld: false,
            origin: row.place.to_string(),
        };
        match entries.iter().find(|(other, _)| other.port_guid == port_guid) {
            Some((_, other)) => Problem::new(format!("two [[subnet-manager]] have the port {port_guid}"))
                    .repeated(at, other)
                    .help("one opensm runs on a port: keep one of the two; `subnet-manager = []` in a file between them clears the list before it").add_to(problems),
            None => entries.push((entry, at.clone())),
        }
    }
    let left_out = merged.all(SUBNET_MANAGER).iter().filter(|row| row.is_left_out);
    let withheld = left_out.filter_map(|row| {
        Some(SubnetManager {
            port_guid: row.value(key::PORT_GUID)?,
            priority: 0,
            partitions: None,
            peers: Vec::new(),
            options: BTreeMap::new(),
            is_withheld: true,
            origin: row.place.to_string(),
        })
    });
    withheld.chain(entries.into_iter().map(|(entry, _)| entry)).collect()
}
