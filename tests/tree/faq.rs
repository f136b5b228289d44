//! docs/faq.md leads from a message to the diagnosis that ibprov makes of it.

use std::fs;
use std::path::Path;

use ibprov::check::evidence::Intake;
use ibprov::check::{diagnose, rules};

/// What one message does not show: it takes a host, several lines or their times.
const NO_MESSAGE: &[&str] = &[
    "configuration-invalid",
    "driver-unload-under-remote-root",
    "healthy",
    "input-left-out",
    "mlnx-interface-mgr-armed",
    "module-loaded-late",
    "module-wrong-driver",
    "mount-before-network",
    "netdev-late",
    "not-as-expected",
    "not-infiniband",
    "ordering-missing",
    "port-degraded",
    "port-not-active",
    "port-not-ready",
    "required-unit-missing",
    "start-wait-deadlock",
    "unexplained",
    "unknown",
    "vf-port-not-active",
    "vf-setting-dropped",
    "vf-setting-refused",
];

/// The lines that the first cell of a row quotes: "`line`<br>`line`".
fn quoted(cell: &str) -> String {
    let lines = cell.split("<br>").map(|line| {
        let line = line.trim();
        let marks = line.bytes().take_while(|b| *b == b'`').count();
        let text =
            line.strip_prefix(&"`".repeat(marks)).and_then(|l| l.strip_suffix(&"`".repeat(marks)));
        assert!(marks > 0, "{cell}: a message in marks");
        text.expect(cell).trim().to_owned() + "\n"
    });
    lines.collect()
}

#[test]
fn each_message_leads_to_its_diagnosis() {
    let faq = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/faq.md");
    let faq = fs::read_to_string(faq).expect("docs/faq.md");
    let (_, index) = faq.split_once("\n## From a message to its diagnosis\n").expect("the index");
    let index = index.split("\n## ").next().expect("the index");
    let rows = index.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| message |"));
    let (mut wrong, mut seen) = (String::new(), Vec::new());
    for row in rows {
        let row = row.trim_matches(['|', ' ']);
        let (messages, link) = row.rsplit_once(" | ").expect(row);
        let code = link.strip_prefix('[').and_then(|l| l.split_once(']')).expect(row).0;
        let mut intake = Intake::new(rules::needles());
        intake.read("pasted", &mut quoted(messages).as_bytes());
        let found = diagnose(&intake.finish()).findings;
        let codes: Vec<&str> = found.iter().map(|finding| finding.code.name()).collect();
        if !codes.contains(&code) {
            wrong.push_str(&format!("{messages}\n    {codes:?}, not {code}\n"));
        }
        seen.push(code.to_owned());
    }
    assert!(wrong.is_empty(), "check finds another:\n{wrong}");
    let mut all: Vec<&str> = rules::ALL.iter().map(|rule| rule.code.name()).collect();
    all.retain(|code| seen.iter().any(|s| s == code) == NO_MESSAGE.contains(code));
    assert!(all.is_empty(), "neither in the index nor without a message, or both: {all:?}");
}
