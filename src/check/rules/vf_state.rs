//! What the dumps show of VFs that are down while their PF works: three rules
//! draw different conclusions from it.

use super::super::evidence::state::{PortSeen, VfSeen};
use super::{Advice, Boot, Quote, seen};
use crate::names::IsVf;

/// VF ports that are not active beside a PF that is. Of one that was passed through to this
/// machine the PF is not seen.
pub(super) fn dead_ports(boot: &Boot) -> Vec<&PortSeen> {
    let ports = &boot.state.ports;
    let active = || ports.iter().filter(|p| p.is_active() && p.may_be_infiniband() && !p.is_vf());
    let pf_works = |port: &PortSeen| match port.vf {
        IsVf::OfThisHost(pf) => active().any(|p| p.function == Some(pf)),
        IsVf::OfUnknownPf => port.physical == "linkup" || active().next().is_some(),
        IsVf::PassedThrough | IsVf::No => false,
    };
    let is_dead = |p: &&PortSeen| {
        p.may_be_infiniband() && matches!(p.state.as_str(), "down" | "init" | "initializing")
    };
    ports.iter().filter(is_dead).filter(|port| pf_works(port)).collect()
}

/// VFs as the PF's netdev shows them in logs and dumps: those of a host are in its judgement.
pub(super) fn vfs(boot: &Boot) -> impl Iterator<Item = &VfSeen> {
    boot.state.netdevs.iter().flat_map(|n| &n.vfs)
}

/// The netdev of the PF of `vf`.
fn pf_of<'a>(boot: &'a Boot, vf: &VfSeen) -> &'a str {
    let netdevs = &boot.state.netdevs;
    let of = netdevs.iter().find(|n| n.vfs.iter().any(|known| std::ptr::eq(known, vf)));
    of.map_or("PF_NETDEV", |netdev| &netdev.name)
}

/// `vfs` by their PF and number, each once.
pub(super) fn named(boot: &Boot, vfs: &[&VfSeen]) -> Vec<String> {
    seen::each(vfs.iter().map(|vf| format!("VF {} of {}", vf.index, pf_of(boot, vf))))
}

/// What repairs `vfs`: `command` for each, in which `{pf}` and `{vf}` stand for the netdev and
/// the number.
pub(super) fn repaired(boot: &Boot, vfs: &[&VfSeen], command: &str) -> Vec<Advice> {
    /// More are all alike.
    const ENOUGH: usize = 4;
    let mut steps: Vec<Advice> = Vec::new();
    for vf in vfs {
        let step = command.replace("{pf}", pf_of(boot, vf)).replace("{vf}", &vf.index);
        let step = Advice::now(step);
        if !steps.contains(&step) && steps.len() < ENOUGH {
            steps.push(step);
        }
    }
    if steps.is_empty() {
        steps.push(Advice::now(command.replace("{pf}", "PF_NETDEV").replace("{vf}", "N")));
    }
    steps
}

/// True if a GUID is nothing but zeros.
pub(super) fn is_zero(guid: &str) -> bool {
    let digits = guid.trim_start_matches("0x").chars().filter(char::is_ascii_hexdigit);
    digits.clone().count() >= 8 && digits.into_iter().all(|c| c == '0')
}

/// Lines to quote for VFs.
pub(super) fn quote_vfs<'a>(
    boot: &'a Boot,
    vfs: &'a [&'a VfSeen],
) -> impl Iterator<Item = Quote> + 'a {
    vfs.iter().take(12).map(|v| boot.quote_at(v.origin, "", &v.text))
}

/// Lines to quote for ports.
pub(super) fn quote_ports<'a>(
    boot: &'a Boot,
    ports: &'a [&'a PortSeen],
) -> impl Iterator<Item = Quote> + 'a {
    ports.iter().take(12).map(|p| boot.quote_at(p.origin, "", &p.told()))
}
