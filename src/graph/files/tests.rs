use super::super::fixtures::{role_of, waited_for};
use super::super::{consumers, cycles, deadlock};
use super::*;
use crate::host::testing::tree;

const ETC: &str = "/etc/systemd/system";
const LIB: &str = "/usr/lib/systemd/system";

/// A small system with ibprov, ifupdown, slurmd and an NFS mount.
fn node(more: &[(&str, &str)], links: &[(&str, &str)]) -> (tempfile::TempDir, Graph) {
    let ibprov = include_str!("../../../units/ibprov.service");
    let lib = |name: &str| format!("{LIB}/{name}");
    let mut files: Vec<(String, String)> = [
        ("multi-user.target", "[Unit]\nRequires=basic.target\nAfter=basic.target\nAllowIsolate=yes\n"),
        ("basic.target", "[Unit]\nRequires=sysinit.target\nAfter=sysinit.target\n"),
        ("sysinit.target", "[Unit]\nDefaultDependencies=no\nWants=local-fs.target\nAfter=local-fs.target\n"),
        ("local-fs.target", "[Unit]\nDefaultDependencies=no\n"),
        ("network-pre.target", "[Unit]\nAfter=\n"),
        ("network.target", "[Unit]\nAfter=network-pre.target\n"),
        ("network-online.target", "[Unit]\nAfter=network.target\n"),
        ("remote-fs.target", "[Unit]\n"),
        ("networking.service", "[Unit]\nDefaultDependencies=no\nRequires=ifupdown-pre.service\nWants=network.target\nAfter=local-fs.target network-pre.target\nBefore=network.target shutdown.target network-online.target\n[Service]\nType=oneshot\nExecStart=/sbin/ifup -a\n"),
        ("slurmd.service", "[Unit]\nAfter=munge.service network-online.target\n[Service]\nType=notify\nExecStart=/usr/sbin/slurmd -D\n"),
        ("worker@.service", "[Unit]\nAfter=openibd.service %i.service\n[Service]\nExecStart=/bin/true\n"),
    ]
    .map(|(name, text)| (lib(name), text.to_owned()))
    .to_vec();
    files.push((lib("ibprov.service"), ibprov.to_owned()));
    let openibd = include_str!("../../../units/ibprov-openibd.service");
    files.push((lib("ibprov-openibd.service"), openibd.to_owned()));
    files.push(("/etc/fstab".to_owned(), "10.0.0.1:/s /scratch nfs4 rdma 0 0\n".to_owned()));
    files.extend(more.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())));
    let mut all = vec![
        (format!("{LIB}/default.target"), "multi-user.target".to_owned()),
        (format!("{ETC}/openibd.service"), format!("{LIB}/ibprov-openibd.service")),
        (format!("{ETC}/sysinit.target.wants/ibprov.service"), format!("{LIB}/ibprov.service")),
        (format!("{ETC}/sysinit.target.wants/ibprov-openibd.service"), "x".to_owned()),
        (format!("{ETC}/multi-user.target.wants/networking.service"), "x".to_owned()),
        (format!("{ETC}/multi-user.target.wants/slurmd.service"), "x".to_owned()),
        (format!("{ETC}/multi-user.target.wants/remote-fs.target"), "x".to_owned()),
        (format!("{ETC}/multi-user.target.wants/worker@slurmd.service"), "x".to_owned()),
    ];
    all.extend(links.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())));
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let all: Vec<(&str, &str)> = all.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let dir = tree(&files, &all);
    let graph = graph(&Root::copy_at(dir.path()).expect("root"));
    (dir, graph)
}

fn chain(graph: &Graph, unit: &str) -> Vec<String> {
    let judged = consumers::judge(graph, role_of, |_| false);
    match judged.into_iter().find(|j| j.unit == unit).map(|j| j.proof) {
        Some(consumers::Proof::Ordered(chain)) => chain,
        other => panic!("{unit}: {other:?}"),
    }
}

#[test]
fn a_good_node_is_proved() {
    let (_dir, graph) = node(&[], &[]);
    assert_eq!(graph.problems, [""; 0]);
    assert_eq!(consumers::provider(&graph).map(|u| u.name.as_str()), Some("ibprov.service"));
    assert_eq!(chain(&graph, "networking.service").len(), 2);
    assert_eq!(chain(&graph, "slurmd.service").last().map(String::as_str), Some("slurmd.service"));
    assert!(chain(&graph, "scratch.mount").len() >= 3);
    let worker = graph.get("worker@slurmd.service").expect("instance");
    let after = ["ibprov-openibd.service", "slurmd.service"];
    assert!(after.iter().all(|unit| worker.after.contains(*unit)), "{worker:?}");
    assert_eq!(graph.resolve("openibd.service"), "ibprov-openibd.service");
    assert_eq!(cycles::cycles(&graph), []);
    assert_eq!(deadlock::deadlocks(&graph, waited_for), []);
}

#[test]
fn a_drop_in_that_closes_a_cycle_and_one_that_waits_are_seen() {
    let (_dir, graph) = node(
        &[
            (
                "/etc/systemd/system/ibprov.service.d/x.conf",
                "[Unit]\nAfter=network-online.target\n",
            ),
            (
                "/etc/systemd/system/slurmd.service.d/a.conf",
                "[Service]\nExecStartPre=/usr/local/sbin/w\n",
            ),
            ("/usr/local/sbin/w", "#!/bin/sh\nsystemctl start worker@slurmd\n"),
        ],
        &[],
    );
    let cycles = cycles::cycles(&graph);
    assert_eq!(cycles.len(), 1, "{cycles:?}");
    assert!(cycles[0].candidates.contains(&"ibprov.service".to_owned()), "{cycles:?}");
    let deadlocks = deadlock::deadlocks(&graph, waited_for);
    assert_eq!(deadlocks.len(), 1, "{deadlocks:?}");
    assert_eq!(deadlocks[0].waits_for, "worker@slurmd.service");
}

#[test]
fn a_mask_and_an_empty_file_take_a_unit_out() {
    let (_dir, graph) = node(&[], &[("/etc/systemd/system/ibprov.service", "/dev/null")]);
    assert_eq!(graph.get("ibprov.service").map(|u| u.load), Some(Load::Masked));
    assert!(consumers::provider(&graph).is_none());
    let (_dir, graph) = node(&[("/run/systemd/system/slurmd.service", "")], &[]);
    assert_eq!(graph.get("slurmd.service").map(|u| u.load), Some(Load::Masked));
}

#[test]
fn a_start_script_with_rc_links_is_a_unit() {
    let (_dir, graph) = node(
        &[(
            "/etc/init.d/network",
            "#!/bin/sh\n### BEGIN INIT INFO\n# Provides: $network\n# Required-Start: $local_fs openibd\n### END INIT INFO\n",
        )],
        &[("/etc/rc3.d/S10network", "../init.d/network")],
    );
    let network = graph.get("network.service").expect("network.service");
    assert!(network.before.contains("network.target"), "{network:?}");
    assert!(network.after.contains("ibprov-openibd.service"), "{network:?}");
    // A script of a name that a unit has is none.
    assert_eq!(chain(&graph, "network.service").len(), 2);
}

#[test]
fn links_in_a_circle_end() {
    let (_dir, graph) = node(
        &[],
        &[
            ("/etc/systemd/system/a.service", "b.service"),
            ("/etc/systemd/system/b.service", "a.service"),
            ("/etc/systemd/system/multi-user.target.wants/a.service", "b.service"),
        ],
    );
    assert!(graph.get("multi-user.target").is_some());
}

#[test]
fn a_drop_in_that_cannot_be_read_is_said() {
    let (_dir, graph) = node(&[("/etc/systemd/system/slurmd.service.d/a.conf/x", "")], &[]);
    let [problem] = &graph.problems[..] else { panic!("{:?}", graph.problems) };
    assert!(
        problem.starts_with("/etc/systemd/system/slurmd.service.d/a.conf: EISDIR"),
        "{problem}"
    );
}
