use super::{Judge, Rule};
use crate::report::common::Code;

pub(super) const RULE: Rule = Rule {
    code: Code::PortDegraded,
    meaning: "the link of a port is slower or narrower than the configuration requires",
    page: "\
The configuration sets minimums for the link of a port (rate, width, speed, pcie-width
and pcie-speed of [[port]]), and the link of this port is below one of them. The port is
Active and works, but transfers are slow, and the other nodes of a job wait for this one.
A port that is not Active is not judged: until then the rate that the kernel shows has no
meaning (10 Gb/s in Polling).

Symptoms: ibstat shows another Rate than on other nodes; `ibprov status` exits with 1
and notes \"degraded\".

Causes: a cable or transceiver of a lower speed, or a damaged one whose link comes up
with fewer lanes; a switch port that is split or limited; for PCIe an adapter that
is not seated properly, a slot with fewer lanes, or a limit in the firmware setup.

Remedy: compare both ends of the link, exchange the cable, and look at the port counters:

    mlxlink -d PCI-ADDRESS -m
    ibprov status -v",
    needles: &[],
    judge: Judge::Host,
};

#[cfg(test)]
mod tests {
    use crate::check::evidence::Boot;
    use crate::check::evidence::host::Host;
    use crate::report::common::{Code, Finding as Told};
    use crate::report::finding::Severity;
    use crate::report::node::Judgement;

    #[test]
    fn it_is_told_beside_any_other_warning_and_only_once() {
        let told = vec![
            Told::warning(Code::PortDegraded, "degraded: the rate is less").about("mlx5_0 port 1"),
            Told::warning(Code::BootFailed, "deferred (exit code 1)"),
            Told::new(Code::PcieLinkReduced, Severity::Info, "the PCIe width is x8"),
        ];
        let judgement = Judgement::new(Vec::new(), Vec::new(), true, told);
        assert_eq!(judgement.exit_code, 1);
        let host = Host { live: true, judgement: Some(judgement), ..Host::default() };
        let boot = Boot { host: Some(Box::new(host)), ..Boot::default() };
        let all = crate::check::rank::judge(&boot);
        let of = |code| all.iter().filter(|f| f.code == code).count();
        assert_eq!((of(Code::PortDegraded), of(Code::PcieLinkReduced)), (1, 1), "{all:?}");
    }
}
