use super::{Boot, Code, Confidence, Event, Finding, Judge, Kind, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::OpenibdFailed,
    meaning: "openibd ran and failed",
    page: "\
openibd.service ended with an error or was killed by its time limit (180 s). The modules
that it had loaded until then stay loaded; the rest is missing. The network service
starts nevertheless, because no unit requires openibd. openibd is not tried again.

Symptoms: \"Failed to start openibd\", \"Loading HCA driver and Access Layer\"
with FAILED. The reason is in the lines of openibd itself and of the kernel before
it: a module that is missing for the kernel, symbols that do not match, firmware
that does not answer. Other findings name the reason if the log does.

A restart unloads the modules first. A module that is in use (rpcrdma, ko2iblnd, ib_isert
with open sessions) cannot be unloaded, and the script gives up with a part of the old
modules loaded.

Remedy: find the step that fails. Before a restart, unmount NFS over RDMA and Lustre,
and log out of iSER and SRP sessions.

    journalctl -b -u openibd
    /etc/init.d/openibd restart",
    needles: &[&["openibd", "Loading HCA driver and Access Layer"], UNLOAD],
    judge: Judge::Boot(judge),
};

/// What the script writes when modules do not go: a module that is used, sessions of
/// storage that are open.
const UNLOAD: &[&str] = &["Cannot unload driver while", "Unloading ", "is in use by: "];

/// `openibd restart` could not take a module of ours away, so it loaded none anew.
fn is_kept(event: &Event) -> bool {
    let text = &event.text;
    let failed = text.trim_end().ends_with("[FAILED]") || text.trim_end().ends_with("[  FAILED  ]");
    text.contains("Cannot unload driver while")
        || text.contains("Unloading ")
            && failed
            && (seen::rdma_module(text).is_some() || text.contains("HCA driver"))
}

fn failed(event: &Event) -> bool {
    let of_unit = matches!(&event.kind, Kind::UnitFailed(u) if u.contains("openibd"));
    let text = &event.text;
    let no_unit = [
        "Failed to restart openibd",
        "Failed to start openibd.service",
        "openibd.service not found",
    ];
    of_unit
        || no_unit.iter().any(|w| text.contains(w))
        || text.contains("openibd.service")
            && ["status=1", "code=killed", "timed out", "failed."].iter().any(|w| text.contains(w))
        || text.contains("Access Layer") && (text.contains("FAILED") || text.contains("[FAIL"))
        || is_kept(event)
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let unit = boot.state.unit("openibd.service").filter(|u| u.active.starts_with("failed"));
    let lines: Vec<_> = boot.events.iter().filter(|e| failed(e)).collect();
    if lines.is_empty() && unit.is_none() {
        return Vec::new();
    }
    let recovered = lines.last().is_some_and(|last| {
        boot.events.iter().any(|e| {
            e.origin > last.origin
                && matches!(&e.kind, Kind::UnitStarted(u) if u.contains("openibd"))
        })
    });
    let (severity, end) =
        if recovered { (Severity::Warning, ", and started later") } else { (Severity::Error, "") };
    let said = boot.events.iter().filter(|e| {
        let told = &*e.program == "openibd" || &*e.unit == "openibd.service";
        told && ["rror", "ail", "FATAL", "skipping"].iter().any(|w| e.text.contains(w))
            || e.text.contains("is in use by: ") && seen::rdma_module(&e.text).is_some()
    });
    let shown = unit.map(|u| boot.quote_at(u.origin, "", &format!("{} {}", u.text, u.active)));
    vec![
        Finding::new(
            RULE.code,
            severity,
            Confidence::High,
            format!("openibd.service failed{end}."),
        )
        .about("openibd.service")
        .quoting(seen::quotes(boot, lines))
        .quoting(seen::quotes(boot, said))
        .quoting(shown)
        .look(["journalctl -b -u openibd.service; dmesg | grep -i -e mlx -e symbol"])
        .now(["after the reason is corrected: systemctl restart openibd.service"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_failure_counts_until_a_start_that_works() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "systemd[1]: openibd.service: Main process exited, code=exited, status=1/FAILURE",
                    "systemd[1]: Failed to start openibd - configure Mellanox devices.",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "systemd[1]: Failed to start openibd - configure Mellanox devices.",
                    "systemd[1]: Started openibd - configure Mellanox devices.",
                ]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(&RULE, &["systemd[1]: Started openibd - configure Mellanox devices.",]),
            None
        );
    }

    #[test]
    fn modules_in_use_keep_a_restart_from_loading_them_anew() {
        for lines in [
            &[
                "Unloading rdma_cm                                          [FAILED]",
                "rmmod: ERROR: Module rdma_cm is in use by: rpcrdma",
            ][..],
            &["n9 openibd[4]: Unloading HCA driver:[FAILED]"],
            &["Cannot unload driver while ib_isert is loaded..."],
        ] {
            assert_eq!(severity(&RULE, lines), Some(Severity::Error), "{lines:?}");
        }
        for line in [
            "n9 openibd[4]: Unloading HCA driver:[  OK  ]",
            "n9 openibd[4]: Module ib_isert does not exist, skipping...[FAILED]",
            "n9 fw[4]: Unloading iptables modules: [FAILED]",
        ] {
            assert_eq!(severity(&RULE, &[line]), None, "{line}");
        }
    }
}
