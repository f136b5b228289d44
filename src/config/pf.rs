//! `[host]` and `[[pf]]`: the PFs whose VFs are ours to make, and where their
//! GUIDs come from. What the host has to do with it is judged in
//! [`crate::plan::guid`].

use std::collections::BTreeMap;

use super::draft::{Row, one_way};
use super::keys::{HOST_NUMBER, HOST_NUMBER_FILE, HOST_NUMBER_RULE, HOST_SITE, Name, PF, pf, vf};
use super::merge::Merged;
use super::problem::{Place, Problem, Problems};
use crate::names::template::FieldName;
use crate::names::{
    BindOrder, Guid, GuidRange, HostNumber, IfName, PciAddress, PfNames, Policy, RdmaName,
    Template, VfDriver, VfIndex, VfNamePattern, VfOwner, VfRange, is_given_by_kernel,
};

/// One `[[pf]]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pf {
    pub which: PfSelector,
    /// How many VFs it shall have.
    pub vfs: u16,
    /// The link state of its VFs, unless an exception says otherwise.
    pub link_state: Policy,
    /// Who drives its VFs, unless an exception says otherwise.
    pub driver: VfDriver,
    /// The PF's number in templates.
    pub number: u64,
    /// The site's number in templates; given wherever a template has it.
    pub site: Option<u64>,
    /// The names of its VFs' netdevs.
    pub vf_name: Option<VfNamePattern>,
    /// The names of their RDMA devices.
    pub vf_rdma_name: Option<VfNamePattern>,
    /// In what order they are bound; `None`: as their names want it.
    pub bind: Option<BindOrder>,
    /// Where node GUIDs come from; `None` only if exceptions give them all.
    pub node: Option<GuidSource>,
    /// Where port GUIDs come from; `None` only if exceptions give them all.
    pub port: Option<GuidSource>,
    /// What differs for single VFs. No VF is in two of them.
    pub exceptions: Vec<VfException>,
    /// It has an error, or that is not known: the PF and its VFs are left as they are.
    pub is_withheld: bool,
    /// File and line, for messages: `/etc/ibprov/ibprov.toml:12`.
    pub origin: String,
}

/// The keys that have no say in the GUIDs of the VFs.
pub(super) const NOT_OF_GUIDS: [&str; 5] = [
    pf::DRIVER.path(),
    pf::LINK_STATE.path(),
    pf::BIND.path(),
    pf::VF_NAME.path(),
    pf::VF_RDMA_NAME.path(),
];

/// A [`Pf`], with where the configuration says it.
pub(super) struct Placed<'a> {
    pub(super) pf: Pf,
    pub(super) row: &'a Row,
    pub(super) at: &'a Place,
    pub(super) count: VfCount<'a>,
}

/// How many VFs a PF shall have, and what says so.
#[derive(Clone, Copy)]
pub(super) struct VfCount<'a> {
    vfs: u16,
    pub(super) at: &'a Place,
    /// By the length of a list of GUIDs.
    is_listed: bool,
}

impl<'a> VfCount<'a> {
    fn of(row: &'a Row) -> Option<Self> {
        if let Some((vfs, at)) = row.field(pf::VFS) {
            return Some(Self { vfs: u16::try_from(vfs).ok()?, at, is_listed: false });
        }
        let lists = [pf::GUID_LIST, pf::GUID_NODE_LIST, pf::GUID_PORT_LIST];
        let (list, at) = lists.into_iter().find_map(|key| row.list(key))?;
        Some(Self { vfs: u16::try_from(list.len()).ok()?, at, is_listed: true })
    }

    /// What is said at its place.
    pub(super) const fn label(&self) -> &'static str {
        if self.is_listed {
            "the length of the list of GUIDs is the number of VFs"
        } else {
            "the number of VFs, counted from 0"
        }
    }
}

/// How a PF is named in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, strum::Display)]
pub enum PfSelector {
    #[strum(to_string = "PF {0}")]
    Pci(PciAddress),
    /// By the port GUID of one of its ports.
    #[strum(to_string = "PF with port GUID {0}")]
    PortGuid(Guid),
    #[strum(to_string = "PF with node GUID {0}")]
    NodeGuid(Guid),
    /// By the name of its RDMA device.
    #[strum(to_string = "PF {0}")]
    Rdma(RdmaName),
}

/// Where the GUIDs of a PF's VFs come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuidSource {
    /// One for each VF, from VF 0 on.
    List(Vec<Guid>),
    /// VF n gets the first plus n.
    Range(GuidRange),
    /// VF n gets the PF's port GUID plus this plus n.
    Offset(i64),
    Template(Template),
}

/// One `[[pf.vf]]`: what differs for some VFs of a PF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VfException {
    pub vfs: VfRange,
    /// The node GUID, for a single VF.
    pub node_guid: Option<Guid>,
    /// The port GUID, for a single VF.
    pub port_guid: Option<Guid>,
    /// The GUID of its second port, for a single VF.
    pub port2_guid: Option<Guid>,
    pub link_state: Option<Policy>,
    pub driver: Option<VfDriver>,
    pub owner: VfOwner,
}

/// What is offered where a `[[pf]]` says nothing of GUIDs: locally
/// administered, no group bit, room for 65536 hosts and VFs.
pub(crate) const GOOD_TEMPLATE: &str = "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}";

pub(crate) fn host_number(merged: &Merged, problems: &mut Problems) -> HostNumber {
    let number = merged.one(HOST_NUMBER);
    let file = merged.one(HOST_NUMBER_FILE);
    match (number, file) {
        (Some((_, Some(number_at))), Some((_, Some(file_at)))) => {
            Problem::new("host.number and host.number-file are both set")
                .at(file_at, "the number is to be read from a file")
                .at(number_at, "the number is given")
                .help("keep one of the two")
                .add_to(problems);
        }
        (Some((number, _)), _) => return HostNumber::Given(number.unsigned_abs()),
        (None, Some((path, _))) => return HostNumber::File(path),
        (None, None) => {}
    }
    HostNumber::Name(merged.set(HOST_NUMBER_RULE).0)
}

pub(super) fn pfs<'a>(merged: &'a Merged, problems: &mut Problems) -> Vec<Placed<'a>> {
    let mut pfs: Vec<Placed<'a>> = Vec::new();
    let mut names = LiteralNames::default();
    let site = merged.one(HOST_SITE).map(|(site, at)| (site.unsigned_abs(), at));
    let mut position = 0;
    for row in merged.all(PF) {
        // What is wrong with one that is left out is said. It keeps its number.
        let mut said = Problems::default();
        let problems = if row.is_left_out { &mut said } else { &mut *problems };
        site_fits(row, site.as_ref(), problems);
        let whichs = selectors(row, problems);
        let number = position;
        position += u64::try_from(whichs.len()).unwrap_or(u64::MAX).max(1);
        let made = if row.is_left_out {
            whichs.first().map(|(which, _)| withheld(row, which))
        } else {
            one(row, &whichs, number, problems)
        };
        let Some((first, count)) = made else { continue };
        for (further, (which, at)) in (0..).zip(&whichs) {
            let (which, number) = (which.clone(), first.number.saturating_add(further));
            let site = site.as_ref().map(|(site, _)| *site);
            let pf = Pf { which, number, site, ..first.clone() };
            names.add(&pf, row, &pfs, problems);
            match pfs.iter().find(|other| other.pf.which == pf.which) {
                Some(other) => Problem::new(format!("{} is given twice", pf.which))
                        .repeated(at, other.at)
                        .help("keep one of the two; `pf = []` in a file between them clears the list before it").add_to(problems),
                None => pfs.push(Placed { pf, row, at, count }),
            }
        }
    }
    pfs
}

/// A PF of a row that is left out.
fn withheld<'a>(row: &'a Row, which: &PfSelector) -> (Pf, VfCount<'a>) {
    let pf = Pf {
        which: which.clone(),
        vfs: 0,
        link_state: Policy::Follow,
        driver: VfDriver::Host,
        number: 0,
        site: None,
        vf_name: None,
        vf_rdma_name: None,
        bind: None,
        node: None,
        port: None,
        exceptions: Vec::new(),
        is_withheld: true,
        origin: row.place.to_string(),
    };
    (pf, VfCount { vfs: 0, at: &row.place, is_listed: false })
}

/// What the row says of the first of its PFs, all of which it says of each, but for the number.
fn one<'a>(
    row: &'a Row,
    whichs: &[(PfSelector, &Place)],
    position: u64,
    problems: &mut Problems,
) -> Option<(Pf, VfCount<'a>)> {
    let sources = sources(row, problems);
    let exceptions = exceptions(row, problems);
    let [node, port] = sources?;
    let exceptions = exceptions?;
    let Some(count) = VfCount::of(row) else {
        if !row.lacks(&[&pf::VFS, &pf::GUID_LIST, &pf::GUID_NODE_LIST, &pf::GUID_PORT_LIST]) {
            return None;
        }
        Problem::new("pf does not set the number of VFs")
            .at(&row.place, "no vfs, and no list of GUIDs to count")
            .help("add, for example, `vfs = 8`")
            .add_to(problems);
        return None;
    };
    let vfs = count.vfs;
    // Without VFs they are only out of use for now.
    if let Some((_, at)) = past_the_end(row, vfs).filter(|_| vfs > 0) {
        Problem::new("pf.vf is for a VF that the PF does not have")
            .at(at, format!("the last VF is {}", vfs - 1))
            .at(count.at, count.label())
            .add_to(problems);
        return None;
    }
    let all = |of: fn(&VfException) -> Option<Guid>| {
        VfIndex::first(vfs)
            .all(|vf| exceptions.iter().any(|e| e.vfs.contains(vf) && of(e).is_some()))
    };
    let missing = [
        (node.is_none() && !all(|e| e.node_guid), "node"),
        (port.is_none() && !all(|e| e.port_guid), "port"),
    ];
    let missing: Vec<&str> =
        missing.into_iter().filter(|(missing, _)| *missing).map(|(_, kind)| kind).collect();
    if !missing.is_empty() && !row.is_broken_beside(&NOT_OF_GUIDS) {
        let kinds = missing.join(" and ");
        let problem = Problem::new(format!(
            "pf has no source for the {kinds} GUIDs of its VFs"
        ))
        .at(
            if count.is_listed { &row.place } else { count.at },
            "each VF needs a node GUID and a port GUID, or its port stays down and rdma_cm fails",
        );
        problems.push(match missing.len() {
            2 => problem.help(format!("recommended, with 00 for your site: `{} = \"{GOOD_TEMPLATE}\"`", &*pf::GUID_TEMPLATE)),
            _ => problem.help("give the other kind in the same way, or both at once with guid.list, guid.range, guid.offset or guid.template"),
        });
        return None;
    }
    let [vf_name, vf_rdma_name] = patterns(row, vfs, problems)?;
    if let [_, (_, second), ..] = whichs
        && !is_for_several(row, second, problems)
    {
        return None;
    }
    let (which, _) = whichs.first()?;
    let number = row.value(pf::NUMBER).map(|number| number.unsigned_abs());
    let pf = Pf {
        which: which.clone(),
        vfs,
        vf_name,
        vf_rdma_name,
        bind: row.value(pf::BIND),
        link_state: row.value(pf::LINK_STATE).unwrap_or(Policy::Follow),
        driver: row.value(pf::DRIVER).unwrap_or(VfDriver::Host),
        site: None,
        number: number.unwrap_or(position),
        node,
        port,
        exceptions,
        is_withheld: false,
        origin: row.place.to_string(),
    };
    Some((pf, count))
}

/// True if what the row says can be said of several PFs, of which `second` names the second:
/// no GUID in it is for a VF of each.
fn is_for_several(row: &Row, second: &Place, problems: &mut Problems) -> bool {
    let mut good = true;
    for (source, at, key) in SOURCES.into_iter().flat_map(|keys| ways(row, keys)) {
        let label = match source {
            GuidSource::List(_) | GuidSource::Range(_) => "the same GUIDs for each PF",
            GuidSource::Template(template) if template.field(FieldName::Pf).is_none() => {
                "has no {pf:BITS}"
            }
            GuidSource::Template(_) | GuidSource::Offset(_) => continue,
        };
        good = false;
        Problem::new(format!("pf.{key} would give VFs of several PFs the same GUIDs"))
            .at(at, label)
            .at(second, "the second PF")
            .help(format!(
                "recommended, with 00 for your site: \"{GOOD_TEMPLATE}\"; or a [[pf]] for each PF"
            ))
            .add_to(problems);
    }
    for row in row.tables(pf::VF) {
        for key in [vf::NODE_GUID, vf::PORT_GUID, vf::PORT2_GUID] {
            let Some((_, at)) = row.field(key) else { continue };
            good = false;
            Problem::new("VFs of several PFs cannot have one GUID")
                .at(at, "a single GUID")
                .at(second, "the second PF")
                .help("a PF with such a VF needs a [[pf]] of its own")
                .add_to(problems);
        }
    }
    good
}

/// What the names of netdevs and of RDMA devices are, and how long they may be, bytes
/// (`IFNAMSIZ`, `IB_DEVICE_NAME_MAX`, less the end of the string).
const NAMED: [(Name<VfNamePattern>, &str, usize); 2] =
    [(pf::VF_NAME, "netdev", 15), (pf::VF_RDMA_NAME, "RDMA device", 63)];

/// The patterns for its VFs' names; `None` if one cannot be.
fn patterns(row: &Row, vfs: u16, problems: &mut Problems) -> Option<[Option<VfNamePattern>; 2]> {
    let mut good = true;
    let patterns = NAMED.map(|(key, what, most)| {
        let (pattern, at) = row.field(key)?;
        let last = VfIndex::first(vfs).last()?;
        let literal = pattern.name(PfNames::default(), last);
        let is_name = |name: &String| {
            if key.path() == pf::VF_NAME.path() {
                IfName::to_give(name).is_ok()
            } else {
                name.parse::<RdmaName>().is_ok()
            }
        };
        let shown = literal.clone().unwrap_or_else(|| pattern.to_string());
        let problem = if vfs > 1 && !pattern.has_vf() {
            let start = Problem::new(format!("the VFs of the PF would all have one {what} name"));
            Some(start.at(at, "has no {vf}").help("a good one is \"{netdev}v{vf}\""))
        } else if pattern.shortest(last) > most {
            let start = Problem::new(format!("the {what} name of VF {last} would be too long"));
            let length = pattern.shortest(last);
            Some(
                start
                    .at(at, format!("{shown:?} has {length} bytes or more: the maximum is {most}")),
            )
        } else if literal.as_ref().is_some_and(|name| !is_name(name)) {
            let start = Problem::new(format!("bad {what} name for VF {last}"));
            Some(start.at(at, format!("{shown:?} is none")))
        } else if literal.as_deref().is_some_and(is_given_by_kernel) {
            let start = Problem::new(format!("bad {what} name for VF {last}"));
            Some(
                start
                    .at(
                        at,
                        format!(
                            "{shown:?} is the name that the kernel assigns to the first device"
                        ),
                    )
                    .help("choose another, such as \"{netdev}v{vf}\""),
            )
        } else {
            None
        };
        good &= problem.is_none();
        if let Some(problem) = problem {
            problems.push(problem);
        }
        Some(pattern)
    });
    good.then_some(patterns)
}

/// So many names are compared here, whatever the configuration asks for; on its host each
/// is looked at anyhow.
const MOST_NAMES: usize = 100_000;

/// The names that the patterns alone give VFs, each with the PF's place among the others.
#[derive(Default)]
struct LiteralNames([BTreeMap<String, usize>; 2]);

impl LiteralNames {
    /// Take in those of `pf`, which is the next; two PFs that give VFs the same name are a
    /// problem. Of patterns with names of the PFs it is the host that tells.
    fn add(&mut self, pf: &Pf, row: &Row, others: &[Placed<'_>], problems: &mut Problems) {
        let patterns = [&pf.vf_name, &pf.vf_rdma_name];
        for ((taken, pattern), (key, what, _)) in self.0.iter_mut().zip(patterns).zip(NAMED) {
            let Some(pattern) = pattern.as_ref().filter(|pattern| pattern.is_literal()) else {
                continue;
            };
            let names =
                VfIndex::first(pf.vfs).filter_map(|vf| pattern.name(PfNames::default(), vf));
            let room = MOST_NAMES.saturating_sub(taken.len());
            for name in names.take(room).collect::<Vec<_>>() {
                let Some(other) = taken.get(&name).and_then(|at| others.get(*at)) else {
                    taken.insert(name, others.len());
                    continue;
                };
                let place = |row: &Row| match row.field(key) {
                    Some((_, at)) => at.clone(),
                    None => row.place.clone(),
                };
                let other_at =
                    if std::ptr::eq(row, other.row) { other.at.clone() } else { place(other.row) };
                Problem::new(format!("VFs of two PFs would have the same {what} name {name}"))
                    .at(&place(row), format!("{} here", pf.which))
                    .at(&other_at, format!("and {} here", other.pf.which))
                    .help(
                        "use {netdev} or {rdma} to have names that differ by PF: \"{netdev}v{vf}\"",
                    )
                    .add_to(problems);
                break;
            }
        }
    }
}

fn past_the_end(row: &Row, vfs: u16) -> Option<(VfRange, &Place)> {
    let ranges = row.tables(pf::VF).iter().filter_map(|row| row.field(vf::INDEX));
    ranges.into_iter().find(|(range, _)| range.last().get() >= vfs)
}

/// The PFs that the row names, each with its place; none, and told, if it does so in no way or
/// in several.
fn selectors<'a>(row: &'a Row, problems: &mut Problems) -> Vec<(PfSelector, &'a Place)> {
    if row.lacks(&[&pf::PCI_ADDRESS, &pf::PORT_GUID, &pf::NODE_GUID, &pf::RDMA_NAME]) {
        Problem::new("pf does not name a PF")
                .at(&row.place, "names no PF")
                .help("give exactly one of pci, port-guid, node-guid, rdma; a port or node GUID still applies if the adapter moves to another slot").add_to(problems);
    }
    let ways = [
        row.way(pf::PCI_ADDRESS, PfSelector::Pci),
        row.way(pf::PORT_GUID, PfSelector::PortGuid),
        row.way(pf::NODE_GUID, PfSelector::NodeGuid),
        row.way(pf::RDMA_NAME, PfSelector::Rdma),
    ];
    let mut named = one_way("pf names its PF", ways, problems);
    let is_zero = |which: &PfSelector| matches!(which, PfSelector::PortGuid(guid) | PfSelector::NodeGuid(guid) if guid.is_zero());
    for (_, at) in named.iter().filter(|(which, _)| is_zero(which)) {
        Problem::new("bad value for the GUID of a PF")
            .at(at, "an all-zero GUID means that a port has no GUID")
            .add_to(problems);
    }
    named.retain(|(which, _)| !is_zero(which));
    // Of a row with one PF, the row is the place.
    if let [(_, at)] = named.as_mut_slice() {
        *at = &row.place;
    }
    named
}

/// The keys of a source: a list, a range, an offset, a template.
pub(super) type Keys = (Name<Guid>, Name<GuidRange>, Name<i64>, Name<Template>);

/// The keys of a source: for both kinds, for node GUIDs, for port GUIDs.
pub(super) const SOURCES: [Keys; 3] = [
    (pf::GUID_LIST, pf::GUID_RANGE, pf::GUID_OFFSET, pf::GUID_TEMPLATE),
    (pf::GUID_NODE_LIST, pf::GUID_NODE_RANGE, pf::GUID_NODE_OFFSET, pf::GUID_NODE_TEMPLATE),
    (pf::GUID_PORT_LIST, pf::GUID_PORT_RANGE, pf::GUID_PORT_OFFSET, pf::GUID_PORT_TEMPLATE),
];

/// Every way in which the row gives GUIDs by the keys of one source, with its key.
pub(super) fn ways(
    row: &Row,
    (list, range, offset, template): Keys,
) -> Vec<(GuidSource, &Place, &'static str)> {
    let list = row.list(list).map(|(l, at)| (GuidSource::List(l), at, list.path()));
    let range = row.field(range).map(|(r, at)| (GuidSource::Range(r), at, range.path()));
    let offset = row.field(offset).map(|(o, at)| (GuidSource::Offset(o), at, offset.path()));
    let template =
        row.field(template).map(|(t, at)| (GuidSource::Template(t), at, template.path()));
    [list, range, offset, template].into_iter().flatten().collect()
}

/// A template with the site's number in it needs one that fits.
fn site_fits(row: &Row, site: Option<&(u64, Option<&Place>)>, problems: &mut Problems) {
    let ways = SOURCES.into_iter().flat_map(|keys| ways(row, keys));
    for (source, at, key) in ways {
        let GuidSource::Template(template) = source else { continue };
        let Some(field) = template.field(FieldName::Site) else { continue };
        match site {
            None => Problem::new(format!("pf.{key} needs the site's number, but host.site is not set"))
                    .at(at, format!("{field} is that number"))
                    .help("add, for example, `[host] site = 1`: use different numbers for clusters whose fabrics may be joined one day").add_to(problems),
            Some((site, site_at)) => {
                if let Err(why) = field.encode(*site) {
                    let problem = Problem::new(why.to_string()).at(at, "the field");
                    problems.push(match site_at {
                        Some(site_at) => problem.at(site_at, "the number"),
                        None => problem,
                    });
                }
            }
        }
    }
}

/// Where node and port GUIDs come from; `None` if it is said twice.
fn sources(row: &Row, problems: &mut Problems) -> Option<[Option<GuidSource>; 2]> {
    let [both, node, port] = SOURCES.map(|keys| ways(row, keys));
    let mut good = true;
    for (_, at, key) in [&both, &node, &port].into_iter().flatten().filter(|(source, ..)| {
        matches!(source, GuidSource::Template(t) if t.field(FieldName::Vf).is_none())
    }) {
        if row.value(pf::VFS).is_some_and(|vfs| vfs > 1) {
            Problem::new(format!("pf.{key} would give all VFs of the PF the same GUID"))
                    .at(at, "has no {vf:BITS}")
                    .help(format!("a good one is \"{GOOD_TEMPLATE}\"")).add_to(problems);
            good = false;
        }
    }
    let sources = [node, port].map(|own| {
        let ways: Vec<_> = both.iter().cloned().chain(own).collect();
        if let [(_, first_at, first), (_, second_at, second), ..] = ways.as_slice() {
            // Two keys for both kinds are one mistake, not two.
            if good {
                Problem::new("pf has two sources for the GUIDs of its VFs")
                    .at(second_at, format!("{second} is one"))
                    .at(first_at, format!("{first} is another"))
                    .help("keep one of the two; use [[pf.vf]] for exceptions")
                    .add_to(problems);
            }
            good = false;
        }
        ways.into_iter().next().map(|(source, ..)| source)
    });
    good.then_some(sources)
}

fn exceptions(row: &Row, problems: &mut Problems) -> Option<Vec<VfException>> {
    let mut good = true;
    let mut list: Vec<(VfException, &Row)> = Vec::new();
    for row in row.tables(pf::VF) {
        let Some((vfs, at)) = row.field(vf::INDEX) else {
            good = false;
            if !row.lacks(&[&vf::INDEX]) {
                continue;
            }
            Problem::new("pf.vf does not name a VF")
                .at(&row.place, "names no VF")
                .help("add `index = 0`, or `index = \"0-7\"`")
                .add_to(problems);
            continue;
        };
        let guids = [vf::NODE_GUID, vf::PORT_GUID, vf::PORT2_GUID];
        if let Some((_, guid_at)) = guids.into_iter().find_map(|key| row.field(key))
            && !vfs.is_one()
        {
            Problem::new("several VFs cannot have one GUID")
                .at(guid_at, "a single GUID")
                .at(at, "more than one VF")
                .add_to(problems);
            good = false;
        }
        if let Some((_, other)) = list.iter().find(|(other, _)| other.vfs.meets(vfs)) {
            Problem::new("a VF has two exceptions")
                .repeated(&row.place, &other.place)
                .help("merge the two, or separate their ranges")
                .add_to(problems);
            good = false;
        }
        let exception = VfException {
            vfs,
            node_guid: row.value(vf::NODE_GUID),
            port_guid: row.value(vf::PORT_GUID),
            port2_guid: row.value(vf::PORT2_GUID),
            link_state: row.value(vf::LINK_STATE),
            driver: row.value(vf::DRIVER),
            owner: row.value(vf::OWNER).unwrap_or_default(),
        };
        list.push((exception, row));
    }
    good.then(|| list.into_iter().map(|(exception, _)| exception).collect())
}
