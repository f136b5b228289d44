//! What is wrong with the GUIDs of the `[[pf]]`, as far as it is so on each host: too few for
//! the VFs, or one for two VFs. What the host has to do with it is judged in
//! [`crate::plan::guid`].

use std::collections::{BTreeMap, BTreeSet};

use super::draft::Row;
use super::keys::{HOST_NUMBER, pf, vf};
use super::merge::Merged;
use super::pf::{GuidSource, NOT_OF_GUIDS, Pf, Placed, SOURCES, ways};
use super::problem::{Place, Problem, Problems};
use crate::names::template::{FieldName, Numbers};
use crate::names::{Guid, GuidKind, VfIndex};

/// So many GUIDs are compared here, whatever the configuration asks for; on its host each is
/// looked at anyhow.
const MOST_GUIDS: usize = 100_000;

/// The numbers of two hosts, which fit into each field. What two VFs have in common on both,
/// they have in common on every host.
const TWO_HOSTS: [u64; 2] = [0, 1];

/// What gives the VFs of a row their GUIDs of one kind.
struct Source<'a> {
    /// For all of them, with its place and its key; none if exceptions give each.
    way: Option<(GuidSource, &'a Place, &'static str)>,
    /// The place of each GUID of a list.
    items: Vec<&'a Place>,
    /// What exceptions give single VFs instead.
    exceptions: BTreeMap<VfIndex, (Guid, &'a Place)>,
}

/// A GUID that a VF would have, on each of two hosts.
struct Given<'a> {
    guids: [Guid; 2],
    /// Whose it is: which of the PFs, and which VF of that.
    owner: (usize, VfIndex),
    at: &'a Place,
}

/// Note what is wrong with the GUIDs of `pfs`.
pub(super) fn judge(pfs: &[Placed<'_>], merged: &Merged, problems: &mut Problems) {
    let host = merged.one(HOST_NUMBER).map(|(number, at)| (number.unsigned_abs(), at));
    let hosts = host.map_or(TWO_HOSTS, |(number, _)| [number; 2]);
    let mut given: Vec<Given<'_>> = Vec::new();
    // What is wrong with a row is said once, not for each kind and each of its PFs.
    let mut said = BTreeSet::new();
    for (at, placed) in pfs
        .iter()
        .enumerate()
        .filter(|(_, placed)| !placed.pf.is_withheld && !placed.row.is_broken_beside(&NOT_OF_GUIDS))
    {
        for kind in GuidKind::ALL {
            let source = Source::of(placed.row, kind);
            let number_at = placed.row.field(pf::NUMBER).map_or(placed.at, |(_, at)| at);
            let found = [
                source.too_few(placed),
                source.unfit(FieldName::Pf, placed.pf.number, Some(number_at)),
                host.and_then(|(number, at)| source.unfit(FieldName::Host, number, at)),
            ];
            for (what, problem) in found.into_iter().enumerate() {
                let Some((place, problem)) = problem else { continue };
                if said.insert((std::ptr::from_ref(place), what)) {
                    problems.push(problem);
                }
            }
            let room = MOST_GUIDS.saturating_sub(given.len());
            given.extend(VfIndex::first(placed.pf.vfs).take(room).filter_map(|vf| {
                let (guids, place) = source.guids(&placed.pf, kind, vf, hosts)?;
                Some(Given { guids, owner: (at, vf), at: place })
            }));
        }
    }
    twice(pfs, given, problems);
}

/// Note the VFs that would have one GUID. One VF may have one for both kinds.
fn twice(pfs: &[Placed<'_>], mut given: Vec<Given<'_>>, problems: &mut Problems) {
    given.sort_unstable_by_key(|given| (given.guids, given.owner));
    let name = |(pf, vf): (usize, VfIndex)| {
        let which = pfs.get(pf).map(|placed| placed.pf.which.to_string()).unwrap_or_default();
        format!("VF {vf} of {which}")
    };
    // A range or a template says it of many VFs.
    let mut said = BTreeSet::new();
    for same in given.chunk_by(|one, other| one.guids == other.guids) {
        let Some((first, others)) = same.split_first() else { continue };
        for other in others.iter().filter(|other| other.owner != first.owner) {
            let pair = [first.at, other.at].map(std::ptr::from_ref);
            if !said.insert(pair) {
                continue;
            }
            let [guid, on_another] = first.guids;
            let problem = Problem::new(if guid == on_another {
                format!("two VFs would have the GUID {guid}")
            } else {
                "two VFs would have the same GUID".to_owned()
            });
            let [first_name, other_name] = [first, other].map(|given| name(given.owner));
            let problem = match pair {
                [one, another] if one == another => {
                    problem.at(other.at, format!("{other_name}, and {first_name}"))
                }
                _ => problem.at(other.at, other_name).at(first.at, first_name),
            };
            problems
                .push(problem.help("a GUID has to be unique in its fabric: change one of them"));
        }
    }
}

impl<'a> Source<'a> {
    fn of(row: &'a Row, kind: GuidKind) -> Self {
        let [both, node, port] = SOURCES;
        let (keys, exception) = match kind {
            GuidKind::Node => (vec![both, node], vf::NODE_GUID),
            GuidKind::Port => (vec![both, port], vf::PORT_GUID),
            // What a template gives is judged on the host, where it is known which VFs have one.
            GuidKind::Port2 => (Vec::new(), vf::PORT2_GUID),
        };
        let way = keys.iter().flat_map(|keys| ways(row, *keys)).next();
        let items = keys.iter().flat_map(|keys| row.each(keys.0));
        let exceptions = row.tables(pf::VF).iter().filter_map(|row| {
            let (vfs, _) = row.field(vf::INDEX)?;
            Some((vfs.last(), row.field(exception)?))
        });
        Self { items: items.map(|(_, at)| at).collect(), exceptions: exceptions.collect(), way }
    }

    /// What `vf` would have on each of `hosts`; `None` where that is not known without its host.
    fn guids(
        &self,
        pf: &Pf,
        kind: GuidKind,
        vf: VfIndex,
        hosts: [u64; 2],
    ) -> Option<([Guid; 2], &'a Place)> {
        if let Some((guid, at)) = self.exceptions.get(&vf) {
            return Some(([*guid; 2], at));
        }
        let (source, at, _) = self.way.as_ref()?;
        let (index, number) = (usize::from(vf.get()), u64::from(vf.get()));
        match source {
            GuidSource::List(list) => Some(([*list.get(index)?; 2], self.items.get(index)?)),
            GuidSource::Range(range) => Some(([range.get(number)?; 2], at)),
            GuidSource::Offset(_) => None,
            GuidSource::Template(template) => {
                let [one, another] = hosts.map(|host| {
                    let (host, site) = (Some(host), pf.site);
                    template.guid(&Numbers { host, site, pf: pf.number, vf: number }, kind).ok()
                });
                Some(([one?, another?], at))
            }
        }
    }

    /// That it has no GUID for a VF, with its place.
    fn too_few(&self, placed: &Placed<'_>) -> Option<(&'a Place, Problem)> {
        let (source, at, key) = self.way.as_ref()?;
        let (room, field) = match source {
            GuidSource::List(list) => (u64::try_from(list.len()).ok()?, None),
            GuidSource::Range(range) => (range.count(), None),
            GuidSource::Offset(_) => return None,
            GuidSource::Template(template) => {
                let field = template.field(FieldName::Vf)?;
                (field.largest().saturating_add(1), Some(field))
            }
        };
        let rest = u16::try_from(room).ok()?..placed.pf.vfs;
        let vf = rest.filter_map(VfIndex::new).find(|vf| !self.exceptions.contains_key(vf))?;
        let problem = match field {
            Some(field) => {
                let why = field.encode(u64::from(vf.get())).err()?;
                Problem::new(why.to_string()).at(at, "the field")
            }
            None => Problem::new(format!("pf.{key} has no GUID for VF {vf}")).at(
                at,
                match room {
                    1 => "1 GUID".to_owned(),
                    room => format!("{room} GUIDs"),
                },
            ),
        };
        let count = &placed.count;
        Some((at, problem.at(count.at, count.label())))
    }

    /// That the number, given there, does not fit the field of that name.
    fn unfit(
        &self,
        name: FieldName,
        number: u64,
        number_at: Option<&Place>,
    ) -> Option<(&'a Place, Problem)> {
        let (GuidSource::Template(template), at, _) = self.way.as_ref()? else { return None };
        let why = template.field(name)?.encode(number).err()?;
        let problem = Problem::new(why.to_string()).at(at, "the field");
        Some((
            at,
            match number_at {
                Some(number_at) => problem.at(number_at, format!("the number is {number}")),
                None => problem,
            },
        ))
    }
}
