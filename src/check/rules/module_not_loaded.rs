use super::mount_before_ipoib::ib_here;
use super::{Boot, Code, Confidence, Event, Finding, Judge, Kind, Rule, Severity, seen};
use crate::names::{IB_DRIVERS, is_ipoib_name, may_be_ipoib_name, rdma_half_of};

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleNotLoaded,
    meaning: "a module that is needed is not loaded",
    page: "\
The adapter's driver is loaded, and a module above it is not: ib_umad (ibstat, opensm,
ibacm), ib_uverbs and rdma_ucm (applications), ib_ipoib (netdevs), mlx5_ib or
mlx4_ib (any RDMA device at all). udev and rdma-core load them when an RDMA
device appears; without rdma-core, with a minimal module list or with openibd disabled,
no service loads them.

Symptoms: \"is ib_umad module loaded?\", \"couldn't read uverbs ABI version\", lsmod
without the module, \"mount.nfs: Protocol not supported\" without rpcrdma. If a network
service does not find ib0, and no line of the log shows that a netdev was created or
ib_ipoib was loaded, the finding has low confidence.

Remedy: load the module, and enable ibprov.service or name the module in
/etc/modules-load.d:

    modprobe MODULE",
    needles: &[&[
        "could not insert '",
        "umad_init: can't read ABI version",
        "can't open /sys/class/infiniband_mad",
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
        "no handler found for transport rdma",
        "not loaded",
        "not been loaded",
        "/dev/infiniband/",
        "device rdma_cm",
        "character device",
        NO_DEVICES,
        NO_TRANSPORT,
    ]],
    judge: Judge::Boot(judge),
};

const NO_DEVICES: &str = "no RDMA devices found";
/// The kernel knows no such transport: EPROTONOSUPPORT, net/sunrpc/xprt.c.
const NO_TRANSPORT: &str = "mount.nfs: Protocol not supported";

/// Words by which a program says that a module is missing, and the module.
const SAID: [(&str, &str); 11] = [
    ("can't open /sys/class/infiniband_mad", "ib_umad"),
    ("umad_init: can't read ABI version", "ib_umad"),
    ("is ib_umad module loaded", "ib_umad"),
    ("Error opening UMAD", "ib_umad"),
    ("couldn't read uverbs ABI version", "ib_uverbs"),
    ("unable to open RDMA device", "rdma_ucm"),
    ("librdmacm: couldn't read ABI version", "rdma_ucm"),
    ("librdmacm: Warning: couldn't read ABI version", "rdma_ucm"),
    ("librdmacm: Fatal: couldn't read ABI version", "rdma_ucm"),
    ("/dev/infiniband/rdma_cm", "rdma_ucm"),
    // drivers/nvme/host/fabrics.c, nvmf_create_ctrl().
    ("no handler found for transport rdma", "nvme_rdma"),
];

/// Words by which any program says that a module is not there.
const NOT_LOADED: [&str; 5] =
    ["not loaded", "not been loaded", "n't loaded", "not be loaded", "is missing"];
/// ... that a device node is not there.
const NO_NODE: [&str; 5] = ["No such file", "no such", "not found", "does not exist", "is missing"];

/// The module without which a program of the fabric does not find what it names: a module and
/// a word of absence in one clause, or a node of /dev/infiniband and one.
fn absence(text: &str) -> Option<&'static str> {
    text.split(';').find_map(|clause| {
        if NOT_LOADED.iter().any(|w| clause.contains(w)) {
            return seen::rdma_module(clause);
        }
        let is_absent = NO_NODE.iter().any(|w| clause.contains(w));
        let of_node = || {
            let node = clause.split_once("/dev/infiniband/")?.1;
            makes(node)
        };
        // "device rdma_cm not found"; the name before a colon is the program's own.
        let named = || {
            let mut words = clause.split_whitespace().filter(|word| !word.ends_with(':'));
            let is_device =
                clause.contains("device rdma_cm") || clause.contains("character device");
            words
                .find_map(|word| makes(word.trim_matches(['"', '\'', ',', '.'])))
                .filter(|_| is_device)
        };
        is_absent.then(|| of_node().or_else(named)).flatten()
    })
}

/// The module that makes the node `name` of /dev/infiniband.
fn makes(name: &str) -> Option<&'static str> {
    let all = [
        ("rdma_cm", "rdma_ucm"),
        ("umad", "ib_umad"),
        ("issm", "ib_umad"),
        ("uverbs", "ib_uverbs"),
    ];
    all.into_iter().find(|(node, _)| name.starts_with(node)).map(|(_, module)| module)
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let said: Vec<_> = boot
        .events
        .iter()
        .filter_map(|e| {
            let said = SAID.iter().find(|(w, _)| e.text.contains(w)).map(|(_, m)| *m);
            // `modprobe: ERROR: could not insert 'ib_ipoib': Cannot allocate memory`; symbols
            // and signatures are other findings.
            let refused = || {
                let name = e.text.split_once("could not insert '")?.1.split('\'').next()?;
                let others = ["symbol", "format", "No such device", "ey was rejected", "key not"];
                (!others.iter().any(|w| e.text.contains(w)))
                    .then(|| seen::rdma_module(name))
                    .flatten()
            };
            said.or_else(refused).or_else(|| absence(&e.text)).map(|m| (e, m))
        })
        .collect();
    let listed = boot.state.modules.as_ref().and_then(|modules| {
        let has = |name: &str| modules.has(name);
        for (core, half) in IB_DRIVERS.into_iter().filter_map(|d| Some((d, rdma_half_of(d)?))) {
            if has(core) && modules.lacks(half) && boot.state.ports.is_empty() {
                return Some(half);
            }
        }
        let any = IB_DRIVERS.into_iter().any(|d| has(rdma_half_of(d).unwrap_or(d)));
        let ethernet = !boot.state.ports.is_empty()
            && boot.state.ports.iter().all(|p| p.infiniband == Some(false));
        (any && modules.lacks("ib_ipoib") && !ethernet).then_some("ib_ipoib")
    });
    let listed = listed.or_else(|| shown_by_ls(boot).then_some("ib_ipoib"));
    let modules =
        seen::each(said.iter().map(|(_, m)| *m).chain(listed.filter(|_| said.is_empty())));
    if modules.is_empty() {
        return no_transport(boot).or_else(|| no_device(boot)).unwrap_or_else(|| absent(boot));
    }
    let alive = seen::sign_of_life(boot).is_some();
    let missed = !said.is_empty() || is_infiniband(boot);
    let severity = if alive || !missed { Severity::Warning } else { Severity::Error };
    let confidence = if said.is_empty() { Confidence::Medium } else { Confidence::High };
    let (is, load) = match modules.len() {
        1 => ("is", "modprobe"),
        _ => ("are", "modprobe -a"),
    };
    let told = format!("{} {is} not loaded.", seen::all_of("module", &modules));
    vec![
        Finding::new(RULE.code, severity, confidence, told)
            .about_if(seen::joined(&modules))
            .quoting(seen::quotes(boot, said.iter().map(|(e, _)| *e)))
            .now([format!("{load} {}", modules.join(" "))])
            .permanent([
                "systemctl enable ibprov.service, which loads the modules before the network, or name the module in /etc/modules-load.d",
                "if this host has no adapter: disable the service that needs one",
            ]),
    ]
}

/// An NFS mount failed as one over RDMA does without the module of that transport.
fn no_transport(boot: &Boot) -> Option<Vec<Finding>> {
    let is_loaded = |name| boot.state.modules.as_ref().is_some_and(|modules| modules.has(name));
    let lines: Vec<_> = boot.with(NO_TRANSPORT).collect();
    let (severity, confidence) = match lines.iter().any(|e| e.text.contains("rdma")) {
        _ if lines.is_empty() || ["rpcrdma", "xprtrdma"].into_iter().any(is_loaded) => return None,
        true => (Severity::Error, Confidence::Medium),
        false if ib_here(boot) => (Severity::Warning, Confidence::Low),
        false => return None,
    };
    let told = "An NFS mount failed. If it is over RDMA (proto=rdma), rpcrdma is not loaded.";
    Some(vec![
        Finding::new(RULE.code, severity, confidence, told)
            .about("rpcrdma")
            .quoting(seen::quotes(boot, lines))
            .look(["grep rdma /etc/fstab"])
            .now(["modprobe rpcrdma"])
            .permanent(["modules.load = [\"rpcrdma\"] in ibprov.toml"]),
    ])
}

/// librdmacm found no RDMA device: mostly nobody loaded the second half of a driver.
fn no_device(boot: &Boot) -> Option<Vec<Finding>> {
    let lines: Vec<_> = boot.with(NO_DEVICES).collect();
    if lines.is_empty() || seen::sign_of_life(boot).is_some() {
        return None;
    }
    Some(vec![
        Finding::new(
            RULE.code,
            Severity::Warning,
            Confidence::Low,
            "A program found no RDMA device. Mostly the RDMA half of the adapter's driver is not loaded.",
        )
        .quoting(seen::quotes(boot, lines))
        .look(["check whether there is an RDMA device: ls /sys/class/infiniband; lspci -nnk -d ::0207"])
        .now(["load the RDMA half of the adapter's driver: modprobe mlx5_ib (mlx4_ib, irdma, bnxt_re)"])
        .permanent(["systemctl enable ibprov.service, which loads the modules before the network"]),
    ])
}

/// Something tells that the ports are InfiniBand: the same drivers serve Ethernet,
/// where nobody loads ib_ipoib.
fn is_infiniband(boot: &Boot) -> bool {
    boot.state.ports.iter().any(|p| p.infiniband == Some(true))
        || boot.state.pci.iter().any(|f| f.is_infiniband())
        || boot.events.iter().any(|e| seen::ib_netdev_in(&e.text).is_some())
        || shown_by_ls(boot)
}

/// The network service found no IPoIB netdev, and nothing in the log has made one or
/// loaded ib_ipoib: the commonest cause, where no other is seen.
fn absent(boot: &Boot) -> Vec<Finding> {
    let asked = |e: &&Event| seen::not_found(e).is_some_and(is_ipoib_name);
    let lines: Vec<_> = boot.events.iter().filter(asked).collect();
    let Some(name) = lines.first().and_then(|e| seen::not_found(e)) else { return Vec::new() };
    let came = boot.events.iter().any(|e| match &e.kind {
        Kind::NetdevMade { .. } | Kind::NetdevRenamed { .. } => true,
        Kind::ModuleLoad(module) => &**module == "ib_ipoib",
        _ => false,
    });
    // Of a host that was looked at its ports tell more.
    let shown = boot.host.is_some() || boot.state.netdevs.iter().any(|n| n.infiniband);
    if came || shown || seen::late(boot).is_some() || seen::sign_of_life(boot).is_some() {
        return Vec::new();
    }
    vec![
        Finding::new(
            RULE.code,
            Severity::Warning,
            Confidence::Low,
            format!(
                "{name} did not exist when the network service looked for it, and this log does not show that ib_ipoib was loaded. A driver that failed and another name of the netdev have the same symptom."
            ),
        ).about(name)
        .quoting(seen::quotes(boot, lines))
        .look(["check whether there is an RDMA device: ls /sys/class/infiniband; lsmod | grep ib_ipoib", "check that one of the two units that load ib_ipoib is enabled: systemctl is-enabled openibd.service ibprov.service", "read the log of the whole boot: journalctl -b -o short-precise"]).now(["modprobe ib_ipoib"]),
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
            names.iter().any(|n| n == "lo") && !names.iter().any(|n| may_be_ipoib_name(n))
        })
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn nvme_over_rdma_names_its_module() {
        let line = "[ 39.7] nvme_fabrics: no handler found for transport rdma.";
        assert_eq!(severity(&RULE, &[line]), Some(Severity::Error));
        let other = "[ 39.7] nvme_fabrics: no handler found for transport tcp.";
        assert_eq!(severity(&RULE, &[other]), None);
    }

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
                    "01:00.0 Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6]",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["Module                  Size  Used by", "ib_ipath  10 0"]),
            Some(Severity::Warning)
        );
        // It may be an Ethernet card.
        assert_eq!(
            severity(
                &RULE,
                &[
                    "Module                  Size  Used by",
                    "mlx5_ib  10 0",
                    "mlx5_core 10 1 mlx5_ib",
                ]
            ),
            Some(Severity::Warning)
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

    #[test]
    fn a_netdev_that_nothing_made_is_most_often_that() {
        let asked = "ifup-ib[32]: Device ib0 does not seem to be present, delaying initialization.";
        assert_eq!(severity(&RULE, &[asked]), Some(Severity::Warning));
        let ethernet =
            "ifup-eth[32]: Device eth0 does not seem to be present, delaying initialization.";
        assert_eq!(severity(&RULE, &[ethernet]), None);
        for line in [
            "[ 90.0] mlx5_core 0000:01:00.0 ibp1s0: renamed from ib1",
            "openibd[23]: + /sbin/modprobe ib_ipoib",
            "[ 90.0] IPv6: ADDRCONF(NETDEV_CHANGE): ib1: link becomes ready",
        ] {
            assert_eq!(severity(&RULE, &[asked, line]), None, "{line}");
        }
    }
}
