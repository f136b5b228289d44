use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};
use crate::report::node::NodeVerdict;

pub(super) const RULE: Rule = Rule {
    code: Code::Unknown,
    meaning: "the evidence is not sufficient for a diagnosis",
    page: "\
The evidence shows neither that InfiniBand came up nor why it did not. Collect the whole
log of one boot:

    journalctl -b -o short-precise --no-hostname > journal.txt
    (ibstat; ip -d link; lspci -nnk -d 15b3:; lsmod; systemctl --failed) > state.txt
    ibprov check --log journal.txt state.txt",
    needles: &[],
    judge: Judge::Rest(judge),
};

pub(super) const COLLECT: [&str; 3] = [
    "journalctl -b -o short-precise > journal.txt",
    "(ibstat; ip -d link; lspci -nnk; lsmod; systemctl --failed) > state.txt",
    "ibprov check --log journal.txt state.txt",
];

fn judge(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    // A netdev that was not there when it was wanted is a failure, whose cause
    // nobody here has found.
    let is_ipoib = |name: &str| boot.fold().is_ipoib(name);
    let absent: Vec<_> =
        boot.events.iter().filter(|e| seen::not_found(e).is_some_and(is_ipoib)).collect();
    let explained = findings.iter().any(|f| f.severity != Severity::Info);
    if let Some(first) = absent.first()
        && !explained
        && seen::sign_of_life(boot).is_none()
    {
        let netdev = seen::not_found(first).unwrap_or("the netdev");
        return vec![
            Finding::new(
                RULE.code,
                Severity::Warning,
                Confidence::Low,
                format!(
                    "{netdev} did not exist when the network service looked for it, and the log does not show why: the driver is missing or late, ib_ipoib is not loaded, or the netdev has another name."
                ),
            )
            .quoting(seen::quotes(boot, absent))
            .look(COLLECT),
        ];
    }
    // These say nothing of whether it works.
    const ASIDE: [Code; 4] =
        [Code::Unexplained, Code::HarmlessWarning, Code::PcieLinkReduced, Code::FirmwareTooOld];
    let proved = findings.iter().any(|f| f.severity != Severity::Info || !ASIDE.contains(&f.code));
    // What the host itself shows is judged without logs.
    if let Some(judgement) = boot.host.as_ref().and_then(|host| host.judgement.as_ref()) {
        let is_ready = judgement.verdict == NodeVerdict::Ready && !judgement.is_in_use();
        let text = "No port of this host is in use by the fabric, and none is missed: nothing shows whether InfiniBand works.";
        let idle = || {
            Finding::new(RULE.code, Severity::Info, Confidence::High, text)
                .look(["ibprov status -v"])
        };
        return (is_ready && !explained).then(idle).into_iter().collect();
    }
    if proved || seen::sign_of_life(boot).is_some() {
        return Vec::new();
    }
    vec![
        Finding::new(
            RULE.code,
            Severity::Info,
            Confidence::Low,
            "The evidence shows neither that InfiniBand came up nor why it did not.",
        )
        .look(COLLECT),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{GOOD, severity};
    use super::{RULE, Severity};

    #[test]
    fn a_line_that_proves_nothing() {
        assert_eq!(
            severity(&RULE, &["[ 5.1] mlx5_core 0000:03:00.0: firmware version: 20.36.1010",]),
            Some(Severity::Info)
        );
        assert_eq!(severity(&RULE, GOOD), None);
    }
}
