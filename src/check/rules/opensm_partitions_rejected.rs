use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::OpensmPartitionsRejected,
    meaning: "opensm has rejected its partition configuration",
    page: "\
One line that opensm cannot read invalidates the whole partitions.conf: opensm reports
that, uses the built-in default, and continues. Every port is then a full member of
0x7fff alone: other partitions do not exist, P_Key children of IPoIB lose their carrier,
and partitions are not isolated any more. opensm nevertheless exits with 0 and reports
SUBNET UP.

Symptoms: \"PARSE ERROR partition conf file line 3\", \"Partition configuration in
error; retrying with default config\". A GUID with colons or without 0x, and a line
without its semicolon, are usual mistakes.

Remedy: correct the line, then send opensm SIGHUP. To see what opensm makes of each line
before it reads the file, and to print lines that it accepts:

    ibprov opensm check
    ibprov plan --partitions",
    needles: &[&["PARSE ERROR partition conf", "Partition configuration in error"]],
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
            format!("opensm has rejected partitions.conf, and every port is in the default partition alone: {}", first.text.trim()),
        ).about("partitions.conf")
        .quoting(seen::quotes(boot, lines))
        .look(["ibprov opensm check", "read the P_Keys of the ports: smpquery -C DEVICE -P PORT pkeys LID"])
        .permanent(["correct the line of /etc/opensm/partitions.conf (GUIDs as 0x and 16 digits, a semicolon at the end), then: pkill -HUP -x opensm"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn one_bad_line_is_an_error() {
        assert_eq!(
            severity(&RULE, &["OpenSM[9]: PARSE ERROR partition conf file line 3: bad PortGUID"]),
            Some(Severity::Error)
        );
        assert_eq!(severity(&RULE, &["OpenSM[9]: SUBNET UP"]), None);
    }
}
