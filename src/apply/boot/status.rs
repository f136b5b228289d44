//! What a boot says of itself while it waits: systemd's status line.

use crate::ladder::{Facts, cause};
use crate::observe::Observed;
use crate::report::PortProgress;

/// How many ports are ready, and what is waited for most: a port, or, with all
/// of them ready, what `work` says. `since` tells since when a port is waited for.
pub(super) fn line(
    ports: &[PortProgress],
    since: impl Fn(&PortProgress) -> u64,
    work: Option<&str>,
    (observed, facts): (&Observed, &Facts),
    now: u64,
) -> String {
    let waited: Vec<&PortProgress> = ports.iter().filter(|p| !p.is_ethernet()).collect();
    let ready = waited.iter().filter(|p| p.is_ready()).count();
    let line = format!("{ready} of {} ports", waited.len());
    let says_why = |p: &PortProgress| {
        let log = p.pci.and_then(|pci| facts.functions.get(&pci));
        log.is_some_and(|l| l.firmware_wait.is_some())
    };
    // A card that waits for firmware may be what the others wait for: its
    // driver's module is not through before it is.
    let missing = waited.iter().filter(|p| !p.is_ready());
    match (missing.min_by_key(|p| (!says_why(p), since(p))), work) {
        (Some(port), _) => {
            let why = cause::cause(port, observed, facts).map(|c| c.text).unwrap_or_default();
            let seconds = now.saturating_sub(since(port)) / 1_000_000;
            format!("{line}: waiting for {}: {why}, {seconds} s", port.label())
        }
        (None, Some(work)) => format!("{line}: {work}"),
        (None, None) => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Rung;

    fn port(pci: &str, reached: Rung) -> PortProgress {
        let mut port = PortProgress::absent(pci.to_owned(), Rung::Named, String::new());
        port.pci = pci.parse().ok();
        port.reached = Some(reached);
        port
    }

    fn shown(ports: &[PortProgress], work: Option<&str>, facts: &Facts) -> String {
        let since =
            |p: &PortProgress| if p.expected.ends_with('0') { 1_000_000 } else { 2_000_000 };
        line(ports, since, work, (&Observed::default(), facts), 9_500_000)
    }

    #[test]
    fn the_port_that_waits_longest_is_named_or_one_that_waits_for_firmware() {
        let (first, second) = ("0000:4b:00.0", "0000:4b:00.1");
        let ports = [port(second, Rung::Pci), port(first, Rung::Pci)];
        let mut facts = Facts::default();
        let why = "no driver is bound to the function";
        let of = |pci, seconds| format!("0 of 2 ports: waiting for {pci}: {why}, {seconds} s");
        assert_eq!(shown(&ports, None, &facts), of(first, 8));
        cause::learn(&mut facts, 4, &format!("mlx5_core {second}: Waiting for FW initialization"));
        assert_eq!(shown(&ports, None, &facts), of(second, 7));
    }

    #[test]
    fn with_all_ports_ready_the_work_is_named() {
        let ports = [port("0000:4b:00.0", Rung::Named)];
        let facts = Facts::default();
        assert_eq!(
            shown(&ports, Some("waiting for modprobe"), &facts),
            "1 of 1 ports: waiting for modprobe"
        );
        assert_eq!(shown(&ports, None, &facts), "1 of 1 ports");
    }
}
