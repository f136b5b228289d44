//! What a live host, or the tree of one, shows beyond logs and dumps: systemd's
//! graph, the ports' ladders, who is configured to set up which netdev.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::check::pattern::has_word;
use crate::graph::{Command, Graph, Unit};
use crate::model::common::{Code, Severity};
use crate::model::finding::Quote;
use crate::model::node::Judgement;
use crate::model::stack::ConfiguredNetdev;
use crate::model::status::Units;
use crate::model::{Cause, PortProgress};
use crate::names::{Guid, ModuleName};
use crate::observe::autostart::{AutostartGuest, Resumed};

/// A host that was looked at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// It runs; else it is the tree of one, and only its next boot can be judged.
    pub live: bool,
    /// systemd's units and orders; for a live host with their states.
    pub graph: Graph,
    /// Who answers to openibd.service, and whether ibprov runs at boot.
    #[serde(with = "units")]
    pub units: Option<Units>,
    pub ports: Vec<HostPort>,
    /// Modules that expected ports lack because the administrator denies them.
    pub denied: Vec<Denied>,
    /// Which unit is configured to set up which netdev, and where it says so.
    pub asked: Vec<ConfiguredNetdev>,
    /// Guests that libvirt starts by itself and that are given a VF.
    pub autostart: Vec<AutostartGuest>,
    /// Guests that libvirt-guests.service starts again.
    pub resumed: Resumed,
    /// Whether it is as it is meant to be; of one that runs.
    #[serde(with = "judgement")]
    pub judgement: Option<Judgement>,
    /// What opensm would not take as it is meant, where opensm is installed.
    #[serde(default)]
    pub opensm: Vec<OpensmFault>,
    /// What a unit names that uses the fabric.
    pub fabric: Fabric,
    /// What could not be read.
    pub problems: Vec<String>,
}

impl Host {
    /// What it shows, to be quoted.
    pub fn quote(&self, text: impl Into<String>) -> Quote {
        let source = if self.live { "live host" } else { "tree" }.to_owned();
        Quote { source, text: text.into(), ..Quote::default() }
    }
}

/// With their findings, which reports have elsewhere.
mod units {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::model::common::Finding;
    use crate::model::status::{Owner, Units};

    #[expect(clippy::ref_option, reason = "serde hands a reference")]
    pub(super) fn serialize<S: Serializer>(units: &Option<Units>, s: S) -> Result<S::Ok, S::Error> {
        units.as_ref().map(|u| (u.openibd, u.enabled, &u.findings)).serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Units>, D::Error> {
        let units = Option::<(Owner, bool, Vec<Finding>)>::deserialize(d)?;
        Ok(units.map(|(openibd, enabled, findings)| Units { openibd, enabled, findings }))
    }
}

/// With what every report has at its head.
mod judgement {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::model::common::{Finding, Verdict};
    use crate::model::node::{Count, Judgement, PortCount};

    #[expect(clippy::ref_option, reason = "serde hands a reference")]
    pub(super) fn serialize<S: Serializer>(
        judgement: &Option<Judgement>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        let parts = |j: &Judgement| (j.verdict, j.ports, j.vfs, j.findings.clone(), j.has_adapter);
        judgement.as_ref().map(parts).serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<Judgement>, D::Error> {
        type Parts = (Verdict, PortCount, Count, Vec<Finding>, bool);
        let parts = Option::<Parts>::deserialize(d)?;
        Ok(parts.map(|(verdict, ports, vfs, findings, has_adapter)| Judgement {
            verdict,
            ports,
            vfs,
            findings,
            of_ports: Vec::new(),
            of_pfs: Vec::new(),
            has_adapter,
            has_soft_roce: false,
        }))
    }
}

/// By what names and addresses the fabric is used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fabric {
    /// Of netdevs, RDMA devices, and hosts with an address in one of the subnets.
    pub names: Vec<String>,
    pub guids: Vec<Guid>,
    /// Addresses of the netdevs, with the lengths of their prefixes.
    pub subnets: Vec<(IpAddr, u8)>,
    /// The units that the inventory has, of those that need the ports.
    #[serde(default)]
    pub units: BTreeSet<String>,
}

impl Fabric {
    /// True if `unit`, a service or a mount that is neither ibprov's nor one that makes
    /// the fabric, names something of the fabric in its settings, in its source, in a command, or
    /// in a script of the site that it runs; of a unit that has failed, in any script.
    pub fn is_used_by(&self, unit: &Unit) -> bool {
        const MAKERS: [&str; 7] =
            ["ibprov", "openibd", "rdma-", "mlnx_", "systemd-", "ifup@", "opensm"];
        if MAKERS.iter().any(|maker| unit.name.starts_with(maker)) {
            return false;
        }
        const OF_SITES: [&str; 7] =
            ["/opt/", "/usr/local/", "/etc/", "/root/", "/home/", "/srv/", "/var/"];
        let failed = unit.now.active == "failed";
        let is_of_site = |command: &&Command| {
            let mut words = command.line.split_whitespace();
            words.any(|word| {
                OF_SITES
                    .iter()
                    .any(|dir| word.trim_start_matches(['-', '+', '!', '@', ':']).starts_with(dir))
            })
        };
        let scripts = unit.commands.iter().filter(|command| failed || is_of_site(command));
        let scripts = scripts.flat_map(|command| command.script.iter().flatten());
        let lines = unit.commands.iter().map(|command| &command.line);
        let texts = lines.chain(scripts).chain([&unit.what, &unit.options]).chain(&unit.settings);
        self.units.contains(&unit.name)
            || texts
                .filter(|text| !text.trim_start().starts_with('#'))
                .any(|text| self.is_named_in(text))
    }

    /// True if something of the fabric stands in `text`.
    fn is_named_in(&self, text: &str) -> bool {
        ["/dev/infiniband", "/sys/class/infiniband"].iter().any(|dir| text.contains(dir))
            || self.names.iter().any(|name| has_word(text, name))
            || addresses(text).any(|ip| self.has(ip))
            || guids(text).any(|guid| self.guids.contains(&guid))
    }

    fn has(&self, ip: IpAddr) -> bool {
        self.subnets.iter().any(|(net, len)| same(ip, *net, *len))
    }

    /// Add the names that `hosts` (hosts(5)) gives addresses of the fabric.
    pub fn add_hosts(&mut self, hosts: &str) {
        for line in hosts.lines() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            if words.next().and_then(|ip| ip.parse().ok()).is_some_and(|ip| self.has(ip)) {
                self.names.extend(words.map(str::to_owned));
            }
        }
    }
}

/// The GUIDs that stand in `text`: 16 digits, with 0x or with colons.
fn guids(text: &str) -> impl Iterator<Item = Guid> {
    let words = text.split(|c: char| !c.is_ascii_hexdigit() && !matches!(c, 'x' | ':'));
    words.filter(|word| word.len() >= 16).filter_map(|word| word.parse().ok())
}

/// The addresses that stand in `text`.
fn addresses(text: &str) -> impl Iterator<Item = IpAddr> {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '.' || c == ':';
    text.split(move |c| !is_part(c)).filter(|word| word.len() > 2).filter_map(|word| {
        // `10.0.0.1:/export`, `10.0.0.1:8008`.
        let host = word.trim_end_matches(':');
        host.parse().ok().or_else(|| host.rsplit_once(':')?.0.parse().ok())
    })
}

/// True if both addresses have the first `len` bits in common.
fn same(one: IpAddr, other: IpAddr, len: u8) -> bool {
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => (u128::from(ip.to_bits()), 32_u8),
        IpAddr::V6(ip) => (ip.to_bits(), 128),
    };
    let ((one, width), (other, of)) = (bits(one), bits(other));
    // A prefix of nothing would make every address one of the fabric's.
    width == of && (1..=width).contains(&len) && (one ^ other) >> (width - len) == 0
}

/// One thing in a file of opensm's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpensmFault {
    pub code: Code,
    pub severity: Severity,
    pub file: String,
    pub line: u64,
    /// What is wrong there.
    pub label: String,
    /// What opensm would do.
    pub consequence: String,
}

/// An expected port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPort {
    pub progress: PortProgress,
    /// Why it is no further.
    pub cause: Option<Cause>,
    /// Its netdev is up, administratively; none if it has no netdev.
    pub up: Option<bool>,
}

/// A module that is denied and that a port needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    pub module: ModuleName,
    /// File and line, or the kernel command line.
    pub by: String,
    /// boot waits for the port.
    pub at_boot: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_the_fabric_is_told_from_what_does_not() {
        let mut fabric = Fabric {
            names: ["ib0", "mlx5_0"].map(str::to_owned).to_vec(),
            guids: vec!["b859:9f03:0012:a480".parse().expect("GUID")],
            subnets: vec![("10.1.2.3".parse().expect("address"), 24)],
            units: BTreeSet::new(),
        };
        fabric.add_hosts("10.1.2.7 fs1.site fs1 # fs2\n10.1.3.7 fs3\n127.0.0.1 localhost\n");
        for text in [
            "10.1.2.9:/scratch",
            "/usr/sbin/x --bind 10.1.2.3:8008",
            "lnetctl net add --net tcp --if ib0",
            "x -d mlx5_0",
            "fs1:/scratch",
            "x -g 0xb8599f030012a480",
            "PORT=b859:9f03:0012:a480",
            "/dev/infiniband/uverbs0 rw",
        ] {
            assert!(fabric.is_named_in(text), "{text}");
        }
        for text in [
            "10.1.3.9:/scratch",
            "/usr/bin/x ib01",
            "fs2:/scratch",
            "fs3:/scratch",
            "0xb8599f030012a481",
            "",
            "::",
            "1.10.1.2.3",
        ] {
            assert!(!fabric.is_named_in(text), "{text}");
        }
    }
}
