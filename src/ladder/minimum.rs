//! What the link of a port has to be at least, and what of it is less.

use crate::config::{Config, PortRow};
use crate::model::{Degraded, Link, PcieLink, PortProgress};
use crate::names::{LinkMinimum, LinkSpeed, LinkState, PKey, PhysicalState, PortSelector, Words};

/// What the rows that mean `port` say of its link, all of them together.
pub fn minimum(config: &Config, port: &PortProgress) -> LinkMinimum {
    let rows = config.ports.iter().filter(|row| means(row, port));
    rows.fold(LinkMinimum::default(), |all, row| all.and(row.minimum))
}

/// The partitions of which the rows that mean `port` ask for full membership, each with where
/// that stands.
pub fn pkeys<'a>(config: &'a Config, port: &PortProgress) -> Vec<(PKey, &'a str)> {
    let rows = config.ports.iter().filter(|row| means(row, port));
    rows.flat_map(|row| row.pkeys.iter().map(|pkey| (*pkey, row.origin.as_str()))).collect()
}

/// True if `row` names `port`.
pub fn means(row: &PortRow, port: &PortProgress) -> bool {
    let is_it = match &row.which {
        PortSelector::Pci(pci) => port.pci == Some(*pci),
        PortSelector::PortGuid(guid) => port.guid == Some(*guid),
        PortSelector::Rdma(name) => port.rdma.as_ref() == Some(name),
    };
    is_it && row.port.is_none_or(|number| port.port == Some(number))
}

/// What of the link is less than `minimum`. Nothing is said of a port that is not Active:
/// before, its rate means nothing, a port in Polling shows 10 Gb/s.
pub fn degraded_port(minimum: &LinkMinimum, link: &Link) -> Vec<Degraded> {
    if link.state != Some(LinkState::Active) || link.physical != Some(PhysicalState::LinkUp) {
        return Vec::new();
    }
    let is = link.rate.as_ref();
    let mut all = Vec::new();
    if let Some(minimum) = minimum.rate.filter(|m| !is.is_some_and(|rate| m.is_met_by(rate))) {
        all.push(Degraded::Rate { is: is.cloned(), minimum });
    }
    if let Some(minimum) = minimum.width.map(|width| width.lanes())
        && is.is_none_or(|rate| rate.width < minimum)
    {
        all.push(Degraded::Width { is: is.map(|rate| rate.width), minimum });
    }
    // A speed that is not known here may be less.
    if let Some(minimum) = minimum.speed
        && is.and_then(|rate| LinkSpeed::from_typed(&rate.speed)).is_none_or(|s| s < minimum)
    {
        all.push(Degraded::Speed { is: is.map(|rate| rate.speed.clone()), minimum });
    }
    all
}

/// What of the PCIe link is less than `minimum`.
pub fn degraded_pcie(minimum: &LinkMinimum, link: &PcieLink) -> Vec<Degraded> {
    let mut all = Vec::new();
    if let Some(minimum) = minimum.pcie_width.filter(|m| link.width.is_none_or(|w| w < *m)) {
        all.push(Degraded::PcieWidth { is: link.width, minimum });
    }
    if let Some(minimum) = minimum.pcie_speed.filter(|m| link.speed.is_none_or(|s| s < *m)) {
        all.push(Degraded::PcieSpeed { is: link.speed, minimum });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(state: &str, physical: &str, rate: &str) -> Link {
        Link {
            state: Some(LinkState::from_word(state)),
            physical: Some(PhysicalState::from_word(physical)),
            rate: rate.parse().ok(),
            ..Link::default()
        }
    }

    #[test]
    fn a_port_that_is_not_active_has_no_rate() {
        let minimum = LinkMinimum { rate: "400 Gb/s".parse().ok(), ..LinkMinimum::default() };
        let of = |state, physical, rate| {
            Degraded::phrase(&degraded_port(&minimum, &link(state, physical, rate)))
        };
        assert_eq!(of("DOWN", "Polling", "10 Gb/sec (4X SDR)"), "");
        assert_eq!(of("INIT", "LinkUp", "200 Gb/sec (4X HDR)"), "");
        assert_eq!(of("ACTIVE", "LinkUp", "400 Gb/sec (4X NDR)"), "");
        let less = "rate 200 Gb/sec (2X NDR), minimum 400 Gb/s";
        assert_eq!(of("ACTIVE", "LinkUp", "200 Gb/sec (2X NDR)"), less);
        let unknown = "rate unknown, minimum 400 Gb/s";
        assert_eq!(of("ACTIVE", "LinkUp", ""), unknown);
    }

    #[test]
    fn width_and_speed_are_judged_by_themselves() {
        let minimum = LinkMinimum {
            width: "4x".parse().ok(),
            speed: LinkSpeed::from_typed("ndr"),
            ..LinkMinimum::default()
        };
        let of = |rate| Degraded::phrase(&degraded_port(&minimum, &link("ACTIVE", "LinkUp", rate)));
        assert_eq!(of("400 Gb/sec (4X NDR)"), "");
        assert_eq!(of("800 Gb/sec (4X XDR)"), "");
        assert_eq!(
            of("100 Gb/sec (2X HDR)"),
            "link width 2x, minimum 4x, link speed HDR, minimum NDR"
        );
        assert_eq!(of("900 Gb/sec (4X ZDR)"), "link speed ZDR, minimum NDR");
    }
}
