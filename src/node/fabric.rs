//! What active ports and their netdevs lack of the fabric: membership of partitions, carrier, and
//! the netdevs that the network configuration means; and the ports of this host's VFs beside those
//! of their PFs.

use std::fmt;

use crate::names::{
    IfName, LinkState, MadPort, Object, PKey, PKeyLack, TablePKey, VfName, is_ipoib_name,
};
use crate::report::PortProgress;
use crate::report::advice::Advice;
use crate::report::common::{Code, Finding};
use crate::report::finding::Severity;
use crate::report::hardware::{NetDevState, PKeyEntry};
use crate::report::plan::{Action, PlannedPf};
use crate::report::stack::Asked;

/// An expected InfiniBand port that is active.
#[derive(Debug, Clone)]
pub struct ActivePort<'a> {
    pub port: &'a PortProgress,
    /// Its P_Key table; `None` where that was not read.
    pub pkeys: Option<&'a [PKeyEntry]>,
    /// The partitions of which it has to be a full member.
    pub needed: Vec<(PKey, NeededBy<'a>)>,
    /// Its netdev and the P_Key children of that.
    pub netdevs: Vec<FabricNetdev<'a>>,
}

/// What needs a port to be a member of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NeededBy<'a> {
    /// The `[[port]]` at this place.
    Row(&'a str),
    Netdev(&'a IfName),
    /// An `[[interface.partition]]` of this netdev, which is still to be created.
    Partition(&'a IfName),
}

impl fmt::Display for NeededBy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(place) => write!(f, "the [[port]] at {place}"),
            Self::Netdev(name) => name.fmt(f),
            Self::Partition(parent) => write!(f, "the [[interface.partition]] of {parent}"),
        }
    }
}

/// A netdev of an active port.
#[derive(Debug, Clone)]
pub struct FabricNetdev<'a> {
    pub name: &'a IfName,
    pub pkey: Option<PKey>,
    pub state: NetDevState,
    /// The network stack that is configured to set it up.
    pub claim: Option<&'a Asked>,
}

impl FabricNetdev<'_> {
    fn lacks_carrier(&self) -> bool {
        self.state.admin_up == Some(true) && self.state.carrier == Some(false)
    }
}

/// What an active port lacks.
pub fn judge(active: &ActivePort<'_>) -> Vec<Finding> {
    let severity = match active.port.optional {
        true => Severity::Info,
        false => Severity::Warning,
    };
    // The netdev of a port is in the partition of the first entry of the table, whatever the
    // membership (`ipoib_parent_init()`, drivers/infiniband/ulp/ipoib/ipoib_main.c). That one
    // is no full member says nothing against it as long as it has carrier.
    let dark = active.netdevs.iter().filter(|netdev| netdev.lacks_carrier());
    let dark = dark.filter_map(|netdev| Some((netdev.pkey?, NeededBy::Netdev(netdev.name))));
    let mut needed: Vec<(PKey, Vec<NeededBy<'_>>)> = Vec::new();
    for (pkey, by) in active.needed.iter().cloned().chain(dark) {
        match needed.iter_mut().find(|(other, _)| *other == pkey) {
            Some((_, all)) if all.contains(&by) => {}
            Some((_, all)) => all.push(by),
            None => needed.push((pkey, vec![by])),
        }
    }
    let is_asked = active.needed.iter().any(|(_, by)| matches!(by, NeededBy::Row(_)));
    let not_read = (is_asked && active.pkeys.is_none()).then(|| {
        let message = "P_Keys not judged: the P_Key table was not read";
        Finding::new(Code::PortNotJudged, Severity::Info, message).about(active.port.label())
    });
    let pkeys = needed.iter().filter_map(|(pkey, by)| {
        let lack = lack(active, *pkey)?;
        let by: Vec<String> = by.iter().map(ToString::to_string).collect();
        let message = format!("{lack}; needed by {}", by.join(", "));
        let finding = Finding::new(Code::PkeyMissing, severity, message);
        Some(
            finding
                .about(active.port.label())
                .advise([Advice::full_membership(*pkey, active.port.guid)]),
        )
    });
    let netdevs = active.netdevs.iter().filter_map(|netdev| {
        let (message, advice) = not_online(active, netdev)?;
        let finding = Finding::new(Code::InterfaceNotOnline, severity, message);
        Some(finding.about(netdev.name).advise(advice))
    });
    not_read.into_iter().chain(pkeys).chain(netdevs).collect()
}

/// What the port lacks of full membership; `None` if nothing, or if its table was not read.
fn lack(active: &ActivePort<'_>, pkey: PKey) -> Option<PKeyLack> {
    let table: Vec<TablePKey> = active.pkeys?.iter().map(|entry| entry.pkey).collect();
    pkey.lack_in(&table)
}

/// Why the fabric does not use a netdev that is meant to be used, and what to do.
fn not_online(active: &ActivePort<'_>, netdev: &FabricNetdev<'_>) -> Option<(String, Vec<Advice>)> {
    if netdev.lacks_carrier() {
        let look = || {
            vec![
                Advice::look(format!(
                    "dmesg | grep '{}: multicast join failed': status -110 means that the subnet manager does not answer, -22 that it refuses",
                    netdev.name
                )),
                Advice::look(format!("sminfo {}", active.port.mad_port())),
            ]
        };
        // What to do about a partition stands at the port.
        return Some(match netdev.pkey.and_then(|pkey| lack(active, pkey)) {
            Some(lack) if lack.is_limited => {
                (format!("up without carrier, probably because {lack}"), look())
            }
            Some(lack) => (format!("up without carrier, because {lack}"), Vec::new()),
            None => {
                ("up without carrier: IPoIB has not joined its broadcast group".to_owned(), look())
            }
        });
    }
    let asked = netdev.claim.filter(|_| netdev.state.admin_up == Some(false))?;
    let message = format!("down, and {} is configured to set it up ({})", asked.unit, asked.file);
    let look = [
        format!("ibprov iface {} --dry-run", netdev.name),
        format!("journalctl -b -u {}", asked.unit),
    ];
    Some((message, look.map(Advice::look).to_vec()))
}

/// What the network stacks are configured to set up, and the netdevs that there are.
#[derive(Debug, Clone, Default)]
pub struct NetworkConfiguration<'a> {
    pub asked: &'a [Asked],
    /// The netdevs of IPoIB.
    pub ipoib: Vec<&'a IfName>,
    /// The names of all netdevs.
    pub taken: &'a [String],
}

impl NetworkConfiguration<'_> {
    /// The names of IPoIB netdevs that are set up and that no netdev has. A network stack creates
    /// P_Key children and aliases of a netdev that is there.
    pub fn unmatched(&self) -> Vec<Finding> {
        let is_taken = |name: &str| self.taken.iter().any(|taken| taken == name);
        let here: Vec<&str> = self.ipoib.iter().map(|name| name.as_str()).collect();
        let here = if here.is_empty() { "none".to_owned() } else { here.join(", ") };
        let mut findings: Vec<Finding> = Vec::new();
        for Asked { unit, netdev, file } in self.asked {
            let parent = netdev.split(['.', ':']).next().unwrap_or_default();
            let is_told = findings.iter().any(|f| f.objects == [netdev.into()]);
            let is_name = is_ipoib_name(netdev) && !netdev.contains(['*', '?', '[']);
            if !is_name || is_told || is_taken(netdev) || is_taken(parent) {
                continue;
            }
            let message = format!(
                "no interface has this name, and {unit} is configured to set it up ({file}); IPoIB interfaces: {here}"
            );
            let advice = [
                Advice::look("ibprov status -v"),
                Advice::permanent(format!("correct the name in {file}, or remove the file")),
            ];
            let finding = Finding::warning(Code::IfcfgMismatch, message);
            findings.push(finding.about(netdev).advise(advice));
        }
        findings
    }
}

/// A port of a VF that this host drives, whose PF's port is active, and that the PF does not
/// keep down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VfPort {
    pub object: Object,
    pub vf: VfName,
    pub state: LinkState,
    /// The port of its PF.
    pub pf: MadPort,
    /// Its GUID is an alias that the subnet manager grants (mlx4).
    pub has_alias: bool,
}

impl VfPort {
    /// Its VF is as planned, or nothing is planned for it: else the plan says why it is not active.
    pub fn is_as_planned(&self, pfs: &[PlannedPf]) -> bool {
        let pf = pfs.iter().find(|pf| pf.pci == Some(self.vf.pf));
        let mut planned = pf.into_iter().flat_map(|pf| &pf.vfs);
        planned
            .find(|vf| vf.index == self.vf.index)
            .is_none_or(|vf| matches!(vf.action, Action::Keep | Action::Refuse))
    }

    /// That it is not active, if so: whatever serves the PF's port does not serve this one.
    pub fn finding(&self) -> Option<Finding> {
        let state = match self.state {
            LinkState::Active | LinkState::ActiveDefer => return None,
            LinkState::Down => "Down",
            LinkState::Init => "Initializing",
            LinkState::Armed => "Armed",
            LinkState::Nop | LinkState::Unknown => "in an unknown state",
        };
        let (why, advice) = match self.has_alias {
            true => (
                "has probably not granted the alias GUID of this VF",
                Advice::look("see the log of the subnet manager"),
            ),
            false => (
                "probably serves no virtual ports",
                Advice::permanent(
                    "use a subnet manager with virtualization support: NVIDIA's OpenSM with `virt_enabled 2` in its opensm.conf, UFM, or a managed switch where it is enabled; the OpenSM of distributions has none",
                ),
            ),
        };
        let message =
            format!("{state}, although the port of its PF is Active: the subnet manager {why}");
        let look = Advice::look(format!("ask which subnet manager it is: sminfo {}", self.pf));
        let finding = Finding::warning(Code::VfPortNotActive, message).about(&self.object);
        Some(finding.advise([look, advice]))
    }
}
