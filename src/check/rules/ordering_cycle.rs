use super::super::pattern::caught_one;
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::OrderingCycle,
    meaning: "units form an ordering cycle, and systemd drops a job to break it",
    page: "\
Unit A is ordered before B, B before C, and C before A. systemd cannot start all of them
and deletes one job of the cycle; which one may differ from boot to boot. If the deleted
job is the network's, the network is missing; if the deleted job affects neither the
network nor RDMA, the finding is a warning.

Symptoms: \"Found ordering cycle on X/start\", \"Job Y/start deleted to break
ordering cycle\". A unit with default dependencies (After=sysinit.target) that is
also Before=network-pre.target meets cloud-init's units, which are before
sysinit.target: the usual cycle.

Remedy: add DefaultDependencies=no to the unit that closes the cycle, or remove its
After= or Before= with a drop-in. To show the cycle:

    systemd-analyze verify UNIT",
    needles: &[&["ordering cycle", "Found dependency on"]],
    judge: Judge::Boot(judge),
};

/// Words of the units without which the network, the RDMA stack or what lies on them
/// does not work: what systemd itself, the message bus and every target carry too.
const MISSED: [&str; 30] = [
    ".target",
    ".mount",
    "systemd-",
    "dbus",
    "udev",
    "network",
    "Network",
    "wicked",
    "netplan",
    "ifup",
    "dhc",
    "bond",
    "team",
    "openvswitch",
    "ovs",
    "cloud-init",
    "rdma",
    "openib",
    "ibprov",
    "opensm",
    "srp",
    "iscsi",
    "nvme",
    "nfs",
    "rpc",
    "lnet",
    "lustre",
    "libvirt",
    "virt",
    "slurm",
];

/// True if the network or RDMA lacks something when `job` (`x.service/start`) is left
/// out. At a shutdown nothing is.
fn is_missed(job: &str) -> bool {
    !job.ends_with("/stop") && MISSED.iter().any(|w| job.contains(w))
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot.with_any_of(RULE.needles).collect();
    let deleted: Vec<&str> = lines
        .iter()
        .filter_map(|e| {
            caught_one(&e.text, "Job {} deleted to break")
                .or_else(|| caught_one(&e.text, "deleting job {}"))
                .or_else(|| caught_one(&e.text, "by deleting job {}"))
        })
        .map(|j| j.trim_end_matches(['.', ' ']))
        .collect();
    if !lines.iter().any(|e| e.text.contains("ordering cycle")) {
        return Vec::new();
    }
    let broken = lines.iter().any(|e| {
        e.text.contains("deleted")
            || e.text.contains("deleting")
            || e.text.contains("Found ordering cycle")
            || e.text.contains("Breaking")
    });
    let harmless = !deleted.is_empty() && !deleted.iter().any(|job| is_missed(job));
    let severity = if broken && !harmless { Severity::Error } else { Severity::Warning };
    let what = deleted
        .first()
        .map_or("the log does not name the job that was deleted".to_owned(), |job| {
            format!("systemd deleted the job of {job}")
        });
    vec![
        Finding::new(RULE.code, severity, Confidence::High, format!("Units form an ordering cycle; {what}.")).about_if(deleted.first().map(|job| job.split('/').next().unwrap_or(job)))
            .quoting(seen::quotes(boot, lines))
            .look(["show the cycle: systemd-analyze verify UNIT"]).permanent(["in the unit that closes the cycle, set DefaultDependencies=no, or remove the ordering with a drop-in"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn systemd_names_the_job_it_drops() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "systemd[1]: sysinit.target: Found ordering cycle on ibx.service/start",
                    "systemd[1]: sysinit.target: Job networking.service/start deleted to break ordering cycle starting with sysinit.target/start",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(severity(&RULE, &["systemd[1]: Reached target Network.",]), None);
    }

    #[test]
    fn a_job_that_the_network_does_not_miss_is_a_warning() {
        let dropped = |job: &str| {
            let found = "systemd[1]: x.service: Found ordering cycle on y.service/start";
            let line = format!(
                "systemd[1]: x.service: Job {job} deleted to break ordering cycle starting with x.service/start"
            );
            severity(&RULE, &[found, &line])
        };
        assert_eq!(dropped("plymouth-start.service/start"), Some(Severity::Warning));
        assert_eq!(dropped("local-fs.target/stop"), Some(Severity::Warning));
        for job in ["dbus.socket/start", "rpcbind.socket/start", "NetworkManager.service/start"] {
            assert_eq!(dropped(job), Some(Severity::Error), "{job}");
        }
    }
}
