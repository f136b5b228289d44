//! Logs and what has to be said of each: `cases.toml`, which needs no Rust for one more.

use serde::Deserialize;

use crate::check::evidence::Intake;
use crate::report::finding::Finding;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    what: String,
    log: String,
    /// Findings that are told: severity, code and object, or less of it from the left.
    #[serde(default)]
    told: Vec<String>,
    /// Codes, or severities and codes, that are not told.
    #[serde(default)]
    never: Vec<String>,
    /// Codes of findings that have no cause.
    #[serde(default)]
    root: Vec<String>,
    /// Confidences with codes.
    #[serde(default)]
    sure: Vec<String>,
    /// Words of a summary or of advice.
    #[serde(default)]
    says: Vec<String>,
    /// Words of neither.
    #[serde(default)]
    unsaid: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

impl Case {
    /// What is not as it has to be.
    fn faults(&self, findings: &[Finding]) -> Vec<String> {
        let line = |f: &Finding| {
            let object = f.object.as_deref().unwrap_or("-");
            format!("{} {} {object}", f.severity, f.code)
        };
        let is = |told: &String, wanted: &str| {
            *told == wanted || told.starts_with(&format!("{wanted} "))
        };
        let told: Vec<String> = findings.iter().map(line).collect();
        let codes: Vec<String> = findings.iter().map(|f| f.code.to_string()).collect();
        let text: String = findings
            .iter()
            .flat_map(|f| {
                [&f.summary].into_iter().chain(f.advice.iter().map(|advice| &advice.text))
            })
            .map(|text| format!("{text}\n"))
            .collect();
        let missing = self.told.iter().filter(|wanted| !told.iter().any(|told| is(told, wanted)));
        let wrong = self
            .never
            .iter()
            .filter(|never| codes.contains(never) || told.iter().any(|told| is(told, never)));
        let roots: Vec<String> =
            findings.iter().filter(|f| f.caused_by.is_none()).map(|f| f.code.to_string()).collect();
        let sure: Vec<String> = findings
            .iter()
            .map(|f| format!("{} {}", format!("{:?}", f.confidence).to_lowercase(), f.code))
            .collect();
        let all_roots = self.root.iter().filter(|code| !roots.contains(code));
        let unsure = self.sure.iter().filter(|one| !sure.contains(one));
        let unsaid = self.says.iter().filter(|words| !text.contains(words.as_str()));
        let said = self.unsaid.iter().filter(|words| text.contains(words.as_str()));
        let mut faults: Vec<String> = missing.map(|wanted| format!("not told: {wanted}")).collect();
        faults.extend(wrong.map(|wrong| format!("told: {wrong}")));
        if !self.root.is_empty() && self.root.len() != roots.len() {
            faults.push(format!("roots: {roots:?}"));
        }
        faults.extend(all_roots.map(|code| format!("has a cause: {code}")));
        faults.extend(unsure.map(|one| format!("not so sure: {one}, but {sure:?}")));
        faults.extend(unsaid.map(|words| format!("not said: {words}")));
        faults.extend(said.map(|words| format!("said: {words}")));
        if !faults.is_empty() {
            faults.push(format!("of {}:\n  {}", self.what, told.join("\n  ")));
            faults.push(text);
        }
        faults
    }
}

#[test]
fn each_log_is_told_as_it_has_to_be() {
    let cases: Cases = toml::from_str(include_str!("cases.toml")).expect("cases.toml");
    let mut faults = Vec::new();
    for case in &cases.case {
        let mut intake = Intake::new(super::needles());
        intake.read("log", &mut case.log.as_bytes());
        let findings = crate::check::diagnose(&intake.finish()).findings;
        faults.extend(case.faults(&findings));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
