use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::OpensmOtherPort,
    meaning: "opensm runs on another port than the configuration means",
    page: "\
opensm serves one port for each process. For a list of GUIDs, or a value that is not a
number, opensm prints an error and runs on the first port that it finds. With a GUID that
is absent opensm ends with exit code 0, so that the unit looks successful.

Symptoms: \"Parsing error in field guid\", then \"SUBNET UP\"; or \"Unable to find
requested CA guid\".

Remedy: run one opensm for each port (opensm -g GUID, or the distribution's opensm@GUID
units), each with its own cache directory.",
    needles: &[&["Parsing error in field guid"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot.with_any_of(RULE.needles).collect();
    let Some(first) = lines.first() else { return Vec::new() };
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::High,
            format!(
                "opensm could not read the GUID of its port, and runs on the first port: {}",
                first.text.trim()
            ),
        )
        .about("opensm.service")
        .quoting(seen::quotes(boot, lines))
        .look(["ibstat -p; grep -n guid /etc/opensm/opensm.conf /etc/default/opensm"])
        .permanent([
            "run one opensm for each port: opensm -g GUID, each with its own OSM_CACHE_DIR",
        ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_list_of_guids_is_no_guid() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "OpenSM[9]: -E- Parsing error in field guid, expected numeric input received: 0x1,0x2"
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(severity(&RULE, &["OpenSM[9]: SUBNET UP"]), None);
    }
}
