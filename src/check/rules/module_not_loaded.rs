use super::{Boot, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: "module-not-loaded",
    meaning: "a module that is needed is not loaded",
    page: "\
The HCA's driver is there, and a module above it is not: ib_umad (ibstat, opensm,
ibacm), ib_uverbs and rdma_ucm (applications), ib_ipoib (netdevs), mlx5_ib or
mlx4_ib (any RDMA device at all). udev and rdma-core load them when they see an
RDMA device; without rdma-core, with a minimal module list or with openibd off
nobody does.

How it shows: \"is ib_umad module loaded?\", \"couldn't read uverbs ABI version\",
lsmod without the module.

What to do: modprobe it now; enable ibprov.service, or name it in
/etc/modules-load.d.",
    needles: &[&[
        "could not insert '",
        "umad_init: can't read ABI version",
        "is ib_umad module loaded",
        "couldn't read uverbs ABI version",
        "unable to open RDMA device",
        "couldn't read ABI version",
        "/dev/infiniband/rdma_cm",
        "Error opening UMAD",
        "unable to open /dev/infiniband",
        "module is not loaded",
        "modules are not loaded",
        "module not loaded",
    ]],
    causes: &["rdma-service-failed", "opensm-misconfigured", "mount-before-ipoib"],
    judge: Judge::Boot(judge),
};

/// Words by which a program says that a module is missing, and the module.
const SAID: [(&str, &str); 9] = [
    ("umad_init: can't read ABI version", "ib_umad"),
    ("is ib_umad module loaded", "ib_umad"),
    ("Error opening UMAD", "ib_umad"),
    ("couldn't read uverbs ABI version", "ib_uverbs"),
    ("unable to open RDMA device", "rdma_ucm"),
    ("librdmacm: couldn't read ABI version", "rdma_ucm"),
    ("librdmacm: Warning: couldn't read ABI version", "rdma_ucm"),
    ("librdmacm: Fatal: couldn't read ABI version", "rdma_ucm"),
    ("/dev/infiniband/rdma_cm", "rdma_ucm"),
];

fn judge(boot: &Boot) -> Vec<Finding> {
    let said: Vec<_> = boot
        .events
        .iter()
        .filter_map(|e| {
            let said = SAID.iter().find(|(w, _)| e.text.contains(w)).map(|(_, m)| *m);
            // `modprobe: ERROR: could not insert 'ib_ipoib': Key was rejected`; that
            // symbols do not match is another finding.
            let refused = || {
                let name = e.text.split_once("could not insert '")?.1.split('\'').next()?;
                (!["symbol", "format", "No such device"].iter().any(|w| e.text.contains(w)))
                    .then(|| seen::rdma_module(name))
                    .flatten()
            };
            said.or_else(refused).map(|m| (e, m))
        })
        .collect();
    let listed = boot.state.modules.as_ref().and_then(|modules| {
        let has = |name: &str| modules.has(name);
        for (core, half) in [("mlx5_core", "mlx5_ib"), ("mlx4_core", "mlx4_ib")] {
            if has(core) && modules.lacks(half) && boot.state.ports.is_empty() {
                return Some(half);
            }
        }
        let any = ["mlx5_ib", "mlx4_ib", "ib_mthca", "ib_qib", "hfi1"].iter().any(|m| has(m));
        let ethernet = !boot.state.ports.is_empty()
            && boot.state.ports.iter().all(|p| p.infiniband == Some(false));
        (any && modules.lacks("ib_ipoib") && !ethernet).then_some("ib_ipoib")
    });
    let listed = listed.or_else(|| shown_by_ls(boot).then_some("ib_ipoib"));
    let Some(module) = said.first().map(|(_, m)| *m).or(listed) else { return Vec::new() };
    let alive = seen::sign_of_life(boot).is_some();
    let severity = if alive { Severity::Warning } else { Severity::Error };
    let confidence = if said.is_empty() { Confidence::Medium } else { Confidence::High };
    vec![
        Finding::new(RULE.code, severity, confidence, format!("{module} is not loaded."))
            .quoting(seen::quotes(boot, said.iter().map(|(e, _)| *e)))
            .advice([
                format!("modprobe {module}"),
                "systemctl enable ibprov.service (it loads the modules before the network), or name it in /etc/modules-load.d".to_owned(),
                "without an HCA in this host: disable the service that asks for it".to_owned(),
            ]),
    ]
}

/// True if `ls` shows an RDMA device and no IPoIB netdev.
fn shown_by_ls(boot: &Boot) -> bool {
    let listed = |dir: &str| {
        let command =
            boot.state.commands.iter().find(|c| {
                c.text.starts_with("ls ") && c.text.trim_end_matches('/').ends_with(dir)
            })?;
        let names = command.output.iter().flat_map(|(_, line)| line.split_whitespace());
        Some(names.map(str::to_owned).collect::<Vec<_>>())
    };
    let is_device = |n: &String| !n.contains(':') && !n.contains('/');
    listed("/sys/class/infiniband").is_some_and(|names| names.iter().any(is_device))
        && listed("/sys/class/net").is_some_and(|names| {
            names.iter().any(|n| n == "lo") && !names.iter().any(|n| n.starts_with("ib"))
        })
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_program_that_misses_its_module() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "ibacm[17]: ibwarn: [17] umad_init: can't read ABI version from /sys/class/infiniband_mad/abi_version (No such file or directory): is ib_umad module loaded?",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "Module                  Size  Used by",
                    "mlx5_ib  10 0",
                    "mlx5_core 10 1 mlx5_ib",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "Module                  Size  Used by",
                    "mlx5_ib  10 0",
                    "mlx5_core 10 1 mlx5_ib",
                    "ib_ipoib 10 0",
                ]
            ),
            None
        );
    }
}
