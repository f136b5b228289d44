//! Questions about a boot that several rules ask.

use serde::Deserialize;

use super::super::evidence::event::function;
use super::super::evidence::relevance::came_too_late;
use super::super::evidence::relevance::concerns_rdma;
pub(super) use super::super::evidence::relevance::{NOT_FOUND, not_found};
use super::super::evidence::state::{PciSeen, PortSeen, UnitSeen};
use super::super::evidence::{Boot, Event, Kind, fold};
use super::super::pattern::{caught_one, has_any, word};
use crate::graph::consumers::uses_fabric_by_name;
use crate::model::advice::ToDo;
use crate::model::common::Code;
use crate::model::finding::{Quote, Severity};
use crate::names::{
    Object, PciAddress, RDMA_MODULES, RDMA_USERS, grouped, is_ipoib_name, is_vf_id_text,
};

/// The module of the RDMA stack that stands in square brackets in a stack
/// frame or at the instruction pointer.
pub(super) fn module_in_frame(text: &str) -> Option<&'static str> {
    let inside = text.split('[').skip(1).map(|t| word(t).trim_end_matches(']'));
    inside.filter_map(|name| RDMA_MODULES.iter().copied().find(|m| *m == name)).next()
}

/// The modules of the RDMA stack that are words of `text`.
pub(super) fn rdma_modules(text: &str) -> impl Iterator<Item = &'static str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter_map(|w| RDMA_MODULES.iter().copied().find(|m| *m == w))
}

/// The first of them.
pub(in crate::check) fn rdma_module(text: &str) -> Option<&'static str> {
    rdma_modules(text).next()
}

/// False if lines show that the function at `address` has a driver that is none of the RDMA
/// stack's, `ixgbe 0000:04:00.0: ...`, or is no adapter of a network: what is advised for
/// adapters of the fabric is not for it.
pub(super) fn may_be_of_fabric(boot: &Boot, address: &str) -> bool {
    /// What of the kernel names a function too, whoever drives it.
    const BUS: [&str; 5] = ["pci", "pcieport", "vfio-pci", "DMAR", "kernel"];
    let drivers = || {
        boot.events.iter().filter_map(|event| {
            let (head, rest) = event.text.split_once(address)?;
            let driver = head.split_whitespace().next_back()?;
            let is_driver = driver.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
            (is_driver && rest.starts_with([':', ' ']) && !BUS.contains(&driver)).then_some(driver)
        })
    };
    let is_other = |event: &Event| {
        matches!(&event.kind, Kind::PciFunction { address: at, class, .. }
            if &**at == address && !class.is_empty() && !class.starts_with("02") && &**class != "0c0600")
    };
    let may_be = drivers().next().is_none() && !boot.events.iter().any(is_other);
    may_be || drivers().any(|driver| rdma_module(driver).is_some())
}

/// True if lines show that the function at `address` is an adapter of the fabric: by its driver,
/// by its class or by its vendor.
pub(super) fn is_of_fabric(boot: &Boot, address: &str) -> bool {
    boot.events.iter().any(|event| match &event.kind {
        Kind::PciFunction { address: at, id, class } => {
            &**at == address && (class.starts_with("0207") || id.starts_with("15b3:"))
        }
        _ => fold::lines::driven(&event.text) == Some(address),
    })
}

/// `all`, if there are any.
pub(super) fn found<T>(all: impl IntoIterator<Item = T>) -> Option<Vec<T>> {
    let all: Vec<T> = all.into_iter().collect();
    (!all.is_empty()).then_some(all)
}

/// Names and lines with the key that they share, each key once, in the order of the first.
pub(super) fn by_key<'a, K: PartialEq>(
    all: impl IntoIterator<Item = (K, Option<&'a str>, Vec<&'a Event>)>,
) -> Vec<(K, Vec<&'a str>, Vec<&'a Event>)> {
    let mut groups: Vec<(K, Vec<&str>, Vec<&Event>)> = Vec::new();
    for (key, name, more) in all {
        match groups.iter_mut().find(|(known, ..)| *known == key) {
            Some((_, names, lines)) => {
                names.extend(name.filter(|name| !names.contains(name)));
                lines.extend(more);
            }
            None => groups.push((key, name.into_iter().collect(), more)),
        }
    }
    groups
}

/// Each of `all` once.
pub(super) fn each<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut each = Vec::new();
    for one in all {
        if !each.contains(&one) {
            each.push(one);
        }
    }
    each
}

/// The module that the loading of failed, as `modprobe`, systemd or the kernel says: one of
/// the RDMA stack, or one that uses it.
pub(super) fn refused_module(text: &str) -> Option<&'static str> {
    let quoted = ["could not insert '", "insert module '"]
        .iter()
        .find_map(|before| text.split_once(before)?.1.split('\'').next());
    let name = quoted.or_else(|| text.split([':', ' ']).next())?.replace('-', "_");
    let all = RDMA_MODULES.iter().chain(RDMA_USERS).copied();
    all.clone().find(|module| *module == name).or_else(|| match quoted {
        Some(_) => None,
        None => rdma_module(text),
    })
}

/// The IPoIB netdev that a word of `text` names.
pub fn ib_netdev_in(text: &str) -> Option<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'))
        .map(|w| w.trim_end_matches('.'))
        .find(|w| is_ipoib_name(w))
}

pub(super) fn quotes<'a>(boot: &Boot, events: impl IntoIterator<Item = &'a Event>) -> Vec<Quote> {
    /// More of a kind prove nothing more.
    const ENOUGH: usize = 12;
    events.into_iter().take(ENOUGH).map(|e| boot.quote(e)).collect()
}

/// The commands of which, with the first line of their output, `is_it` is true.
pub(super) fn answered(boot: &Boot, is_it: impl Fn(&str, &str) -> bool) -> Vec<Quote> {
    let all = boot.state.commands.iter().filter(|c| is_it(&c.text, c.answer()));
    all.map(|c| boot.quote_at(c.origin, &format!("{}: {}", c.text, c.answer()))).collect()
}

/// True if a dump or a line of the log shows InfiniBand on this host.
pub(super) fn shows_infiniband(boot: &Boot) -> bool {
    let state = &boot.state;
    state.ports.iter().any(PortSeen::may_be_infiniband)
        || state.netdevs.iter().any(|netdev| netdev.infiniband)
        || state.pci.iter().any(PciSeen::is_infiniband)
        || boot.events.iter().any(|e| ib_netdev_in(&e.text).is_some())
}

/// `events` by the PCI function that each names, in the order of the log.
pub(super) fn by_function<'a>(
    events: impl IntoIterator<Item = &'a Event>,
) -> Vec<(Option<&'a str>, Vec<&'a Event>)> {
    grouped(events, |event| function(&event.text))
}

/// The PCI functions that `events` name, each once.
pub(super) fn functions<'a, 'b>(events: impl IntoIterator<Item = &'b &'a Event>) -> Vec<&'a str>
where
    'a: 'b,
{
    each(events.into_iter().filter_map(|event| function(&event.text)))
}

/// `objects` of a `kind` as a sentence names them: a single one alone, several with their number.
pub(super) fn all_of(kind: &str, objects: &[&str]) -> String {
    match objects {
        [] => format!("the {kind}"),
        [one] => (*one).to_owned(),
        several => format!("{} {kind}s ({})", several.len(), several.join(", ")),
    }
}

/// `command` for each of `objects`, which stands in it as `{}`.
pub(super) fn for_each(command: &str, objects: &[&str], unknown: &str) -> Vec<String> {
    let all = if objects.is_empty() { &[unknown][..] } else { objects };
    all.iter().map(|object| command.replace("{}", object)).collect()
}

/// What has to be proven of a PCI function before a step is advised that only such a one takes.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Needs {
    /// mstflint, mstconfig and their namesakes of MFT know no other adapter.
    Mellanox,
    /// mlxlink and mstfwreset know ConnectX-4 and later.
    Mlx5,
    Vf,
}

impl Needs {
    /// True if it is proven of the function at `address`; of any, where that is empty.
    pub(super) fn is_met(self, boot: &Boot, address: &str) -> bool {
        let words: &[&str] = match self {
            Self::Mellanox => &["mlx", "mthca", "Mellanox", "[15b3:", "to load new configurations"],
            Self::Mlx5 => &["mlx5"],
            Self::Vf => return is_vf(boot, address),
        };
        let is_told = |text: &str| text.contains(address) && has_any(text, words);
        let is_it = |at: &str| address.is_empty() || address.ends_with(at);
        let state = &boot.state;
        boot.events.iter().any(|e| is_told(&e.text))
            || state.commands.iter().any(|c| is_told(&c.text))
            || state.pci.iter().any(|f| is_it(&f.address) && has_any(&f.text, words))
            || state.ports.iter().any(|p| {
                let at = p.function.map(|at| at.to_string());
                is_it(at.as_deref().unwrap_or("?")) && has_any(&p.device, words)
            })
            // mlxconfig has answered.
            || matches!(self, Self::Mellanox) && state.settings.iter().any(|s| is_it(&s.device))
    }
}

pub(super) fn named(address: &str) -> &str {
    if address.is_empty() { "ADDRESS" } else { address }
}

/// True if one of `lines` speaks of firmware: only then it is what has to be replaced.
pub(super) fn names_firmware(lines: &[&Event]) -> bool {
    lines.iter().any(|e| has_any(&e.text, &["irmware", "FW"]))
}

/// The commands that ask the firmware of the adapters at `addresses`, of which `lines` tell,
/// for its version: the vendors have tools of their own.
pub(super) fn firmware_query(lines: &[&Event], addresses: &[&str]) -> Vec<ToDo> {
    let of = |address: &&str| {
        let is_of = |drivers: &[&str]| {
            lines.iter().any(|e| e.text.contains(address) && has_any(&e.text, drivers))
        };
        let at = named(address);
        let command = match () {
            () if is_of(&["mlx", "mthca"]) => format!("mstflint -d {at} query"),
            () if is_of(&["hfi1"]) => "opahfirev".to_owned(),
            () => format!("devlink dev info pci/{at}"),
        };
        if address.is_empty() { command.into() } else { ToDo::run(command) }
    };
    if addresses.is_empty() { &[""] } else { addresses }.iter().map(of).collect()
}

/// A network service asked for an IPoIB netdev that came later.
#[derive(Debug, Clone, Copy)]
pub(super) struct Late<'a> {
    /// It was asked for here.
    pub asked: &'a Event,
    pub netdev: &'a str,
    pub made: &'a Event,
    /// Somebody brought it up after all, soon enough to be part of the boot.
    pub recovered: bool,
}

/// What comes later than this after the netdev is no longer the boot,
/// microseconds.
const SOON: i64 = 300_000_000;

impl Late<'_> {
    /// How long after the question the netdev was there, in whole seconds.
    pub(super) fn seconds(&self) -> Option<i64> {
        Some(self.made.when.since(&self.asked.when)? / 1_000_000)
    }
}

/// The first netdev that came too late.
pub(super) fn late(boot: &Boot) -> Option<Late<'_>> {
    boot.events.iter().enumerate().find_map(|(at, asked)| {
        let netdev = not_found(asked).filter(|n| boot.fold().is_ipoib(n))?;
        let after = boot.events.get(at + 1..).unwrap_or_default();
        let made = after.iter().find(|e| {
            // Another netdev's coming would say nothing of this one; mlx5 does
            // not name it.
            let comes = match &e.kind {
                Kind::NetdevMade { .. } => true,
                Kind::ModuleLoad(module) => &**module == "ib_ipoib",
                Kind::LinkReady(name) => &**name == netdev,
                Kind::NetdevRenamed { from, to } => &**from == netdev || &**to == netdev,
                _ => {
                    caught_one(&e.text, "Setting up Mellanox network interface: {}").map(word)
                        == Some(netdev)
                }
            };
            let is_late = |gap: i64| came_too_late(Some(false), gap.cmp(&0));
            comes && e.when.since(&asked.when).is_none_or(is_late)
        })?;
        let recovered = came_up_after(boot, netdev, made);
        Some(Late { asked, netdev, made, recovered })
    })
}

/// True if `netdev` was brought up within minutes after `event`.
pub(super) fn came_up_after(boot: &Boot, netdev: &str, event: &Event) -> bool {
    boot.events.iter().any(|e| {
        let up = match &e.kind {
            Kind::InterfaceAsked { name, worked: Some(true) } | Kind::LinkReady(name) => {
                &**name == netdev
            }
            _ => false,
        };
        up && e.origin > event.origin
            && e.when.since(&event.when).is_none_or(|gap| (0..SOON).contains(&gap))
    })
}

/// The last word of each unit that failed in this boot and was not started after it. Of a
/// host that runs, systemd's word is the last.
pub(super) fn failed_units(boot: &Boot) -> Vec<&Event> {
    let mut at: Vec<usize> = boot.fold().failed_units().filter_map(|u| u.last.event).collect();
    at.sort_unstable();
    at.into_iter().filter_map(|at| boot.events.get(at)).collect()
}

/// The unit that a dump shows as failed, of those whose names are so.
pub(super) fn shown_failed(boot: &Boot, is_it: impl Fn(&str) -> bool) -> Option<&UnitSeen> {
    boot.state.units.iter().find(|unit| is_it(&unit.name) && unit.active.starts_with("failed"))
}

pub(super) fn quote_unit(boot: &Boot, unit: &UnitSeen) -> Quote {
    boot.quote_at(unit.origin, &format!("{} {}", unit.name, unit.active))
}

/// True if the unit whose failure `failed` tells has to do with InfiniBand: its name
/// says so, or what it wrote, or it missed an interface that does not exist.
pub(super) fn concerns_fabric(boot: &Boot, failed: &Event) -> bool {
    concerns_rdma(&failed.text)
        || uses_fabric_by_name(&fold::unit_name(failed))
        || words_of_unit(boot, failed).any(|e| {
            concerns_rdma(&e.text) || not_found(e).is_some_and(|n| boot.fold().is_ipoib(n))
        })
}

/// What the unit whose failure `failed` tells has written.
pub(super) fn words_of_unit<'a>(
    boot: &'a Boot,
    failed: &'a Event,
) -> impl Iterator<Item = &'a Event> {
    let unit = match &failed.kind {
        Kind::UnitFailed(unit) => &**unit,
        _ => "",
    };
    let stem = unit.rsplit_once('.').map_or(unit, |(stem, _)| stem);
    boot.events.iter().filter(move |e| {
        let is_its = match &*e.unit {
            // Text names the program alone: `lnetctl` of lnet.service.
            "" => e.program.starts_with(stem) || e.text.starts_with(unit),
            of => of == unit || of == &*failed.unit,
        };
        e.origin != failed.origin && stem.len() >= 3 && is_its
    })
}

/// An error, or a warning where a sign of life shows that InfiniBand works nevertheless.
pub(super) fn error_unless_alive(boot: &Boot) -> Severity {
    match sign_of_life(boot) {
        Some(_) => Severity::Warning,
        None => Severity::Error,
    }
}

/// A sign that IPoIB or a port works at the end of this boot.
pub(super) fn sign_of_life(boot: &Boot) -> Option<Quote> {
    boot.fold().good().next().map(|object| object.last.quote.clone())
}

/// How grave it is that expected ports are not active; `None` where no host was judged, and
/// where what is not active is meant to be.
pub(super) fn inactive(boot: &Boot) -> Option<Severity> {
    let judgement = boot.judgement()?;
    let named = judgement.findings.iter().filter(|f| f.code == Code::PortNotActive);
    named.map(|finding| finding.severity).min().filter(|severity| *severity < Severity::Info)
}

/// The ports of VFs that the judgement of the host names as not active; `None` where no host
/// was judged.
pub(super) fn dark_vf_ports(boot: &Boot) -> Option<Vec<&Object>> {
    let judgement = boot.judgement()?;
    let named = judgement.findings.iter().filter(|f| f.code == Code::VfPortNotActive);
    Some(named.flat_map(|finding| &finding.objects).collect())
}

/// True for a VF of a ConnectX-3, whose port GUID is an alias.
pub(super) fn has_alias(boot: &Boot, port: &PortSeen) -> bool {
    let function = port.function.map(|function| function.to_string());
    let mut known = boot.state.pci.iter().filter(|f| Some(&f.address) == function.as_ref());
    let is_mlx4 = |driver: Option<&str>| driver == Some("mlx4_core");
    port.device.starts_with("mlx4_") || known.any(|f| is_mlx4(f.driver.as_deref()))
}

/// True if lines prove that the PCI function at `address` is a VF. Its number proves nothing:
/// there are adapters with four PFs, and in guests PFs have any number.
pub(super) fn is_vf(boot: &Boot, address: &str) -> bool {
    let by_id = boot.events.iter().any(|e| {
        matches!(&e.kind, Kind::PciFunction { address: a, id, .. }
            if &**a == address && is_vf_id_text(id))
    });
    let by_words = || {
        boot.events.iter().any(|e| {
            e.text.contains(address)
                && has_any(
                    &e.text,
                    &["running in slave mode", "Assigned random MAC address", "irtual function"],
                )
        })
    };
    let by_lspci = || {
        boot.state
            .pci
            .iter()
            .any(|f| address.ends_with(f.address.as_str()) && f.text.contains("Virtual Function"))
    };
    // Where SR-IOV is enabled on a card of that bus, its functions beyond the first two are VFs.
    let by_sriov = || {
        let place = address.rsplit(':').next().unwrap_or_default();
        let bus = address.get(..address.len() - place.len()).unwrap_or_default();
        let enables = |e: &Event| has_any(&e.text, &["E-Switch: Enable", "Enabling SR-IOV with"]);
        let is_parent = |at: &str| at != address && at.starts_with(bus);
        address.parse::<PciAddress>().is_ok()
            && boot.events.iter().any(|e| enables(e) && function(&e.text).is_some_and(is_parent))
    };
    by_id || by_words() || by_lspci() || by_sriov()
}

#[cfg(test)]
mod tests {
    use super::super::super::evidence::{Host, Intake};
    use super::*;

    fn boot(log: &str) -> Boot {
        let mut intake = Intake::new(super::super::needles());
        intake.read("log", &mut log.as_bytes());
        intake.finish().boots.remove(0)
    }

    #[test]
    fn of_a_host_that_runs_systemd_has_the_last_word_on_a_failure() {
        use crate::graph::fixtures::graph;
        let log = "Jan 02 10:00:09 n9 systemd[1]: a.service: Failed with result 'exit-code'.";
        let boot = boot(log);
        let failed = |host: Option<&Host>| {
            let host = host.map(|host| Box::new(host.clone()));
            failed_units(&Boot { host, ..boot.clone() }).len()
        };
        assert_eq!(failed(None), 1);
        let mut host =
            Host { live: true, graph: graph("goal.target wants a.service\n"), ..Host::default() };
        assert_eq!(failed(Some(&host)), 0);
        host.graph.get_mut("a.service").expect("unit").now.active = "failed".to_owned();
        assert_eq!(failed(Some(&host)), 1);
    }

    #[test]
    fn a_vf_is_known_by_its_device_id() {
        for (id, is) in [("101e", true), ("a2d3", true), ("a2d2", false), ("101b", false)] {
            let log = format!("[ 1.0] pci 0000:4b:00.0: [15b3:{id}] type 00 class 0x020700");
            assert_eq!(is_vf(&boot(&log), "0000:4b:00.0"), is, "{id}");
        }
    }

    #[test]
    fn the_frames_of_each_rdma_module_are_looked_for() {
        for module in RDMA_MODULES {
            let frame = format!(" [{module}]");
            assert!(super::super::needles().knows(&frame), "{frame}");
        }
    }
}
