use super::{Boot, Code, Confidence, Finding, Judge, Kind, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::WaitOnlineTimeout,
    meaning: "the boot waits for a network that never gets online",
    page: "\
A wait-online service reached its time limit: an interface that it waits for never got
carrier or an address. That may be an IPoIB netdev whose port is not active, a
second port without cable, or any other interface that is configured and not
connected. Every unit after network-online.target starts later by
that time, or does not start.

Symptoms: \"Timeout occurred while waiting for network connectivity\",
NetworkManager-wait-online.service failed, \"A start job is running for Wait for
Network to be Configured\".

Remedy: find the interface with networkctl or nmcli device. Set RequiredForOnline=no (or
ipv4.may-fail, connection.autoconnect no) for interfaces that are not required, or run
systemd-networkd-wait-online --any.",
    needles: &[&[
        "wait-online",
        "Timeout occurred while waiting for network connectivity",
        "Event loop failed: Connection timed out",
        "Wait for Network to be",
        "Network Manager Wait Online",
        "NetworkManager Wait Online",
        "Event loop failed",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot
        .events
        .iter()
        .filter(|e| {
            let t = &e.text;
            let of = t.contains("wait-online")
                || e.program.contains("wait-online")
                || t.contains("Wait Online")
                || t.contains("Wait for Network to be");
            t.contains("Timeout occurred while waiting for network connectivity")
                || of
                    && (matches!(e.kind, Kind::UnitFailed(_))
                        || [
                            "status=1",
                            "imed out",
                            "Failed to start",
                            "A start job is running",
                            "Failed with result",
                            "failed.",
                        ]
                        .iter()
                        .any(|w| t.contains(w)))
        })
        .collect();
    let shown = boot
        .state
        .units
        .iter()
        .find(|u| u.name.contains("wait-online") && u.active.starts_with("failed"));
    if lines.is_empty() && shown.is_none() {
        return Vec::new();
    }
    let only_waiting = shown.is_none()
        && lines.iter().all(|e| {
            e.text.contains("A start job is running")
                && e.text.contains("no limit")
                && !e.text.contains("min")
        });
    let severity = if only_waiting { Severity::Warning } else { Severity::Error };
    let ib = boot.events.iter().any(|e| seen::ib_netdev_in(&e.text).is_some());
    let which = if ib { "" } else { "; the log does not name the interface" };
    vec![
        Finding::new(
            RULE.code,
            severity,
            Confidence::High,
            format!("The boot waited in vain for the network to be online{which}."),
        )
        .quoting(seen::quotes(boot, lines))
        .quoting(shown.map(|u| boot.quote_at(u.origin, "", &format!("{} {}", u.name, u.active))))
        .look(["find the interface that is being configured or has no carrier: networkctl list, or nmcli device", "for an IPoIB port, check that it is Active: ibstat"]).permanent(["if the interface is not required: set RequiredForOnline=no in its .network file, or autoconnect no in its profile"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_wait_that_ran_out() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "systemd-networkd-wait-online[69]: Timeout occurred while waiting for network connectivity.",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["systemd[1]: Finished Wait for Network to be Configured.",]),
            None
        );
    }
}
