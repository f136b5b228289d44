//! From the configuration, the pins and the host to what each PF's VFs shall be.
//!
//! Pure. [`resolve`] finds everything that is wrong before anything is
//! touched; a PF with an error is left alone, the others are not.

mod compute;
mod judge;

pub(super) use judge::ethernet;

use crate::config::pins::{PinnedPf, Pins};
use crate::config::{Config, FirmwareCard, Pf, PfSelector};
use crate::model::{Code, Finding, ToDo, WantedPf, WantedVf, listed};
use crate::names::{
    Binding, Machine, Object, PINS_PATH, PciAddress, VfDriver, VfGuids, VfIndex, VfNames,
};
use crate::observe::plan_host::{PlanFunction, PlanHost};

/// What became of one `[[pf]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// How the configuration names the PF.
    pub which: PfSelector,
    /// Where it does so: `/etc/ibprov/ibprov.toml:12`.
    pub origin: String,
    /// The PF on this host, where it is clear which it is.
    pub pci: Option<PciAddress>,
    /// How many VFs it shall have.
    pub vfs: usize,
    /// What its VFs shall be, or every error.
    pub wanted: Result<WantedPf, Vec<Finding>>,
    /// What to know all the same, drift too.
    pub warnings: Vec<Finding>,
    /// VFs from 0 on that have a pin, which holds.
    pub pinned: usize,
    /// Which of the pins' PFs it is.
    pub pin: Option<usize>,
}

impl Resolved {
    /// What is wrong with it, and what to know all the same.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.wanted.as_ref().err().into_iter().flatten().chain(&self.warnings)
    }
}

/// What each `[[pf]]` of the configuration comes to on this host, in their
/// order. `pins` are what [`Pins::parse`] gave, an empty [`Pins`] if there is
/// no file. Where the pins are another host's, no PF has a plan.
pub fn resolve(config: &Config, pins: Result<&Pins, &str>, host: &PlanHost) -> Vec<Resolved> {
    let number = compute::host_number(&config.host_number, host);
    let empty = Pins::default();
    let foreign = pins.ok().and_then(|pins| judge::foreign_pins(pins, host));
    let mut drafts: Vec<Draft<'_>> = config
        .pf
        .iter()
        .map(|pf| {
            let mut draft = Draft::new(pf, host, &config.firmware);
            draft.errors.extend(pins.err().map(pins_unreadable));
            draft.errors.extend(foreign.clone());
            draft
        })
        .collect();
    judge::same_pf(&mut drafts);
    let pins = pins.ok().filter(|_| foreign.is_none()).unwrap_or(&empty);
    for at in 0..drafts.len() {
        let pin = find_pin(&drafts, at, pins);
        let Some(draft) = drafts.get_mut(at) else { continue };
        draft.pin = pin;
        draft.fill(pin.and_then(|pin| pins.pfs.get(pin)), &number);
    }
    judge::guids(&mut drafts, host);
    compute::names(&mut drafts, host);
    drafts.into_iter().map(Draft::finish).collect()
}

/// A `[[pf]]` on its way.
struct Draft<'a> {
    config: &'a Pf,
    function: Option<&'a PlanFunction>,
    /// The GUIDs of each VF, as they shall be; without a node or a port GUID an error says why.
    guids: Vec<VfGuids>,
    /// What each VF is called.
    names: Vec<VfNames>,
    pinned: usize,
    pin: Option<usize>,
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl<'a> Draft<'a> {
    fn new(config: &'a Pf, host: &'a PlanHost, firmware: &[FirmwareCard]) -> Self {
        let mut errors = Vec::new();
        let function = match find_pf(&config.which, host) {
            found if config.is_withheld => {
                let message = "the PF and its VFs are left as they are, because the configuration has an error that concerns this [[pf]] or may concern it";
                let finding = Finding::error(Code::ConfigurationInvalid, message);
                errors.push(finding.look([ToDo::run("ibprov config check")]));
                found.ok()
            }
            Ok(function) => {
                errors.extend(judge::function(config, function, firmware));
                Some(function)
            }
            Err(finding) => {
                errors.push(finding);
                None
            }
        };
        let (guids, names, warnings) = (Vec::new(), Vec::new(), Vec::new());
        Self { config, function, guids, names, pinned: 0, pin: None, errors, warnings }
    }

    /// Sets the GUIDs: where there is a pin, it holds.
    fn fill(&mut self, pin: Option<&PinnedPf>, number: &Result<u64, Finding>) {
        let (computed, problems) = compute::guids(self.config, self.function, number);
        let count = usize::from(self.config.vfs);
        self.guids.clone_from(&computed);
        let Some(pin) = pin else {
            self.errors.extend(problems);
            return;
        };
        for (guids, pinned) in self.guids.iter_mut().zip(&pin.vfs) {
            for (guid, pinned) in guids.iter_mut().zip(pinned) {
                *guid = pinned.or(*guid);
            }
        }
        self.pinned = pin.vfs.len().min(count);
        if self.pinned == count {
            // A name that is not used says nothing against the pins.
            let drift = problems.into_iter().filter(|p| p.code != Code::HostNameTransient);
            self.warnings.extend(drift.map(|p| {
                let message = format!(
                    "drift: the configuration no longer gives GUIDs; the pinned ones stay in use: {}",
                    p.message
                );
                Finding::warning(Code::Drift, message).advise(p.advice)
            }));
        } else {
            self.errors.extend(problems);
        }
        self.warnings.extend(judge::drift(pin, &computed, self.function));
    }

    fn finish(self) -> Resolved {
        let pci = self.function.map(|f| f.pci);
        let named = || Object::from(self.config.which.to_string());
        let object = pci.map_or_else(named, Object::Function);
        let about = |findings: Vec<Finding>| -> Vec<Finding> {
            findings.into_iter().map(|finding| finding.about(&object)).collect()
        };
        let wanted = match (pci, self.errors.is_empty()) {
            (Some(pf), true) => {
                let vfs = wanted_vfs(self.config, &self.guids, &self.names, self.pinned);
                let on_host = vfs.iter().filter(|vf| vf.driver == VfDriver::Host);
                let binding = Binding::of(self.config.bind, on_host.map(|vf| &vf.names));
                Ok(WantedPf { pf, vfs, binding })
            }
            _ => Err(about(self.errors)),
        };
        Resolved {
            which: self.config.which.clone(),
            origin: self.config.origin.clone(),
            pci,
            vfs: usize::from(self.config.vfs),
            wanted,
            warnings: about(self.warnings),
            pinned: self.pinned,
            pin: self.pin,
        }
    }
}

/// The first so many VFs that are `pinned` have their GUIDs from the pins.
fn wanted_vfs(config: &Pf, guids: &[VfGuids], names: &[VfNames], pinned: usize) -> Vec<WantedVf> {
    let each = VfIndex::first(config.vfs).zip(guids).zip(names);
    let vfs = each.filter_map(|((index, [node, port, port2]), names)| {
        let exception = config.exceptions.iter().find(|e| e.vfs.contains(index));
        let is_pinned = usize::from(index.get()) < pinned;
        Some(WantedVf {
            index,
            node_guid: (*node)?,
            port_guid: (*port)?,
            port2_guid: *port2,
            policy: exception.and_then(|e| e.link_state).unwrap_or(config.link_state),
            policy_named: exception.is_some_and(|e| e.link_state.is_some()),
            driver: exception.and_then(|e| e.driver).unwrap_or(config.driver),
            owner: exception.map(|e| e.owner).unwrap_or_default(),
            guids_from: if is_pinned { "pin".to_owned() } else { compute::source(config, index) },
            names: names.clone(),
        })
    });
    vfs.collect()
}

/// The function that `which` names.
fn find_pf<'h>(which: &PfSelector, host: &'h PlanHost) -> Result<&'h PlanFunction, Finding> {
    let is = |f: &&PlanFunction| match which {
        PfSelector::Pci(pci) => f.pci == *pci,
        PfSelector::PortGuid(guid) => f.port_guids.contains(guid),
        PfSelector::NodeGuid(guid) => f.node_guid == Some(*guid),
        PfSelector::Rdma(name) => f.rdma.contains(name),
    };
    let found: Vec<_> = host.functions.iter().filter(is).collect();
    // A VF may bear its PF's GUID by mistake; the PF is meant.
    let pfs: Vec<_> = found.iter().filter(|f| f.physfn.is_none()).copied().collect();
    match (pfs.as_slice(), found.as_slice()) {
        ([pf], _) => Ok(pf),
        ([], [vf]) => Ok(vf),
        ([], []) => {
            let there = || host.functions.iter().filter(|f| f.hca && f.physfn.is_none());
            let is_by_pci = matches!(which, PfSelector::Pci(_));
            let may_be_it = !is_by_pci && there().any(|f| f.rdma.is_empty());
            let shown = if may_be_it { ", or has not registered its RDMA device" } else { "" };
            let there: Vec<PciAddress> = there().map(|f| f.pci).collect();
            let there = if there.is_empty() { "no PF".to_owned() } else { listed(&there) };
            let message =
                format!("the PF is absent{shown}; it may appear later. PFs of this host: {there}");
            Err(Finding::error(Code::PfAbsent, message).look([ToDo::run("lspci -Dnn -d 15b3:")]))
        }
        ([], several) | (several, _) => {
            let several: Vec<PciAddress> = several.iter().map(|f| f.pci).collect();
            let message = format!("the name fits several PFs: {}", listed(&several));
            let finding = Finding::error(Code::PfAmbiguous, message);
            Err(finding.permanent(["name the PF by its PCI address"]))
        }
    }
}

/// The pins cannot be read, so it is not known what the VFs were given.
pub fn pins_unreadable(why: &str) -> Finding {
    Finding::error(Code::PinsUnreadable, format!("cannot read the pin file {PINS_PATH}: {why}"))
        .permanent(["correct the file, or remove it to use the GUIDs of the configuration"])
}

/// A hostile name as it may be printed.
fn quoted(name: &str) -> String {
    let shown: String = name.chars().take(64).collect();
    format!("{shown:?}")
}

/// The pin of draft `at`: that of its name in the configuration; failing that,
/// that of its card or its place, unless another `[[pf]]` bears its name. An
/// RDMA name can be another card's tomorrow, so there the card comes first.
fn find_pin(drafts: &[Draft<'_>], at: usize, pins: &Pins) -> Option<usize> {
    let draft = drafts.get(at)?;
    let find = |is: &dyn Fn(&PinnedPf) -> bool| pins.pfs.iter().position(is);
    let ports = draft.function.map_or(&[][..], |f| &f.port_guids);
    let pci = draft.function.map(|f| f.pci);
    let card = find(&|pin| pin.is_card(ports));
    if matches!(draft.config.which, PfSelector::Rdma(_)) && card.is_some() {
        return card;
    }
    let free = |pin: &PinnedPf| drafts.iter().all(|d| d.config.which != pin.which);
    find(&|pin| pin.which == draft.config.which)
        .or_else(|| find(&|pin| pin.is_card(ports) && free(pin)))
        .or_else(|| find(&|pin| Some(pin.pci) == pci && free(pin)))
}

/// The pins that hold these plans. PFs of `old` that no plan is for are kept.
/// So are the GUIDs of VFs that a PF had and shall not have now, unless
/// `replace`. Of the pins of another host nothing is kept.
pub fn pins_of(plans: &[Resolved], old: &Pins, host: &PlanHost, replace: bool) -> Pins {
    let none = Pins::default();
    let old = if judge::foreign_pins(old, host).is_some() { &none } else { old };
    let mut new = old.clone();
    new.host.clone_from(&host.name);
    if host.machine != Machine::default() {
        new.machine = host.machine;
    }
    for plan in plans {
        let Ok(wanted) = &plan.wanted else { continue };
        let function = host.functions.iter().find(|f| f.pci == wanted.pf);
        let guids = |vf: &WantedVf| [Some(vf.node_guid), Some(vf.port_guid), vf.port2_guid];
        let mut vfs: Vec<VfGuids> = wanted.vfs.iter().map(guids).collect();
        let before = plan.pin.and_then(|at| old.pfs.get(at));
        if let Some(before) = before.filter(|_| !replace) {
            vfs.extend(before.vfs.iter().skip(vfs.len()));
        }
        let pin = PinnedPf {
            which: plan.which.clone(),
            pci: wanted.pf,
            node_guid: function.and_then(|f| f.node_guid),
            port_guids: function.map(|f| f.port_guids.clone()).unwrap_or_default(),
            vfs,
        };
        match plan.pin.and_then(|at| new.pfs.get_mut(at)) {
            Some(place) => *place = pin,
            None => new.pfs.push(pin),
        }
    }
    new
}

/// True if `pins` show that they are this host's, by its own name or by one of its
/// adapters. Others are not to be written: the next run takes them for another host's.
pub fn is_recognized(pins: &Pins, host: &PlanHost) -> bool {
    judge::foreign_pins(pins, host).is_none()
}

/// What the configuration alone gives, whatever is pinned; each plan still
/// knows its pin. To replace pins.
pub fn resolve_anew(config: &Config, pins: &Pins, host: &PlanHost) -> Vec<Resolved> {
    let with = resolve(config, Ok(pins), host);
    let without = resolve(config, Ok(&Pins::default()), host);
    let known = without.into_iter().zip(with);
    known.map(|(plan, with)| Resolved { pin: with.pin, ..plan }).collect()
}

#[cfg(test)]
mod tests;
