use super::{Boot, Confidence, Finding, Judge, Rule, Severity};

pub(super) const RULE: Rule = Rule {
    code: "unknown",
    meaning: "the evidence is too thin to tell",
    page: "\
What was read neither shows that InfiniBand came up nor why it did not. A guess
would cost more time than it saves. Collect the whole of one boot:

    journalctl -b -o short-precise --no-hostname > journal.txt
    (ibstat; ip -d link; lspci -nnk -d 15b3:; lsmod; systemctl --failed) > state.txt
    ibprov check --log journal.txt state.txt",
    needles: &[],
    causes: &[],
    judge: Judge::Rest(judge),
};

fn judge(_: &Boot, findings: &[Finding]) -> Vec<Finding> {
    if !findings.is_empty() {
        return Vec::new();
    }
    vec![
        Finding::new(
            "unknown",
            Severity::Info,
            Confidence::Low,
            "The evidence shows neither that InfiniBand came up nor why it did not.",
        )
        .advice([
            "journalctl -b -o short-precise > journal.txt",
            "(ibstat; ip -d link; lspci -nnk; lsmod; systemctl --failed) > state.txt",
            "ibprov check --log journal.txt state.txt",
        ]),
    ]
}
