use super::*;
use crate::host::testing::tree;

const PF: &str = "sys/bus/pci/devices/0000:4b:00.0";
const VF: &str = "sys/bus/pci/devices/0000:4b:00.1";

fn address(text: &str) -> PciAddress {
    text.parse().expect("address")
}

#[test]
fn a_copied_tree_tells_ports_and_what_its_pf_administers() {
    let file = |dir: &str, name: &str| format!("{dir}/{name}");
    let device = |name: &str| format!("{PF}/infiniband/mlx5_0/{name}");
    let files = [
        (file(PF, "class"), "0x020700\n"),
        (file(PF, "vendor"), "0x15b3\n"),
        (file(PF, "device"), "0x101b\n"),
        (file(VF, "class"), "0x020700\n"),
        (file(VF, "vendor"), "0x15b3\n"),
        (file(VF, "device"), "0x101c\n"),
        (file(VF, "driver_override"), "vfio-pci\n"),
        (file(PF, "sriov/0/node"), "00:02:00:00:00:00:00:0a\n"),
        (file(PF, "sriov/0/port"), "none\n"),
        (file(PF, "sriov/0/policy"), "Up\n"),
        (device("node_guid"), "0002:c903:000e:8acd\n"),
        (device("ports/1/link_layer"), "InfiniBand\n"),
        (device("ports/1/state"), "4: ACTIVE\n"),
        (device("ports/1/phys_state"), "5: LinkUp\n"),
    ];
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let links = [
        (file(PF, "driver"), "../../drivers/mlx5_core"),
        (file(PF, "virtfn0"), "../0000:4b:00.1"),
        (file(VF, "physfn"), "../0000:4b:00.0"),
    ];
    let links: Vec<(&str, &str)> = links.iter().map(|(path, to)| (path.as_str(), *to)).collect();
    let dir = tree(&files, &links);
    let root = Root::copy_at(dir.path()).expect("root");
    let (observed, survey) = survey(&root, &[], |f| f.physfn.is_none(), |_| false, &[]);
    let pf = address("0000:4b:00.0");
    let port = survey.port(pf, &"mlx5_0".parse().expect("name"), PortNumber::new(1).expect("port"));
    assert_eq!(port.and_then(|p| p.link.state), Some(crate::names::LinkState::Active));
    let vf = observed.functions.iter().find(|f| f.physfn == Some(pf)).expect("VF");
    assert_eq!(vf.driver_override.as_deref(), Some("vfio-pci"));
    let vfs = survey.vfs(&mut Look::new(&root), pf);
    let [vf] = vfs.as_slice() else { panic!("{vfs:?}") };
    assert_eq!(vf.node_guid.map(|g| g.value()), Some(0x0002_0000_0000_000a));
    assert_eq!((vf.port_guid, vf.policy), (None, Some(crate::names::Policy::Up)));
    let problems: Vec<&String> = survey.problems.iter().collect();
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert!(problem.contains("sriov/0/port: \"none\" is not a GUID"), "{problem}");
}

#[test]
fn who_does_not_answer_is_named_once_with_all_that_was_asked() {
    let (one, other) = (address("0000:4b:00.0"), address("0000:b1:00.0"));
    let mut missing = Missing::default();
    for number in 1..=5 {
        let device = "mlx5_0".parse().expect("name");
        let port = PortNumber::new(number).expect("port");
        missing.add(&[one], &Request::Port { pci: one, device, port }, &Failure::SILENT);
    }
    let administered = Request::Administered(Vec::new());
    missing.add(&[one, other], &administered, &Failure::SILENT);
    missing.add(&[other], &Request::Addresses, &Failure::SILENT);
    missing.add(&[other], &administered, &Failure::NoChild("EAGAIN: Try again".to_owned()));
    let lines: Vec<String> = missing.lines().collect();
    assert_eq!(
        lines,
        [
            "adapter 0000:4b:00.0 did not answer within 5 s when asked for the state of mlx5_0/1, the state of mlx5_0/2, the state of mlx5_0/3, the state of mlx5_0/4, 2 more",
            "adapter 0000:b1:00.0 did not answer within 5 s when asked for the settings of its VFs, the addresses of its netdevs",
            "cannot query adapter 0000:b1:00.0 for the settings of its VFs: cannot start a child process: EAGAIN: Try again",
        ]
    );
}

/// The lock belongs to the whole host, and one process holds it.
#[test]
fn who_waits_for_the_rtnl_lock_is_no_adapter_that_does_not_answer() {
    let pf = address("0000:4b:00.0");
    let (mut survey, mut missing) = (Survey::default(), Missing::default());
    let mut observed = Observed::default();
    let netdev: IfName = "ib0".parse().expect("name");
    let administered =
        |backend| Request::Administered(vec![VfInfoQuery { pf, backend, vfs: Vec::new() }]);
    for (request, by_rtnl) in [
        (Request::Carrier(netdev), true),
        (Request::Addresses, true),
        (administered(Backend::Netlink { ifindex: Some(3) }), true),
        (administered(Backend::OfedSysfs), false),
    ] {
        let question = Question { request, hcas: vec![pf] };
        survey.record(question, Err(Failure::SILENT), &mut observed, &mut missing);
        assert!(survey.rtnl.is_some() && survey.unread.contains(&pf));
        assert_eq!(missing.0.is_empty(), by_rtnl);
    }
}

/// A registration that hangs holds that lock against all.
#[test]
fn rdma_netlink_that_does_not_answer_is_told_and_no_adapter_is_to_blame() {
    let device: RdmaName = "mlx5_1".parse().expect("name");
    let question =
        || Question { request: Request::IpoibNetdevs(vec![device.clone()]), hcas: Vec::new() };
    let (mut survey, mut missing) = (Survey::default(), Missing::default());
    let mut observed = Observed::default();
    let answer = Ok(Answer::IpoibNetdevs(vec![Some(1)]));
    survey.record(question(), answer, &mut observed, &mut missing);
    assert_eq!(survey.ipoib_netdevs, BTreeMap::from([(device.clone(), Some(1))]));
    assert!(!survey.is_rdma_held && survey.problems.is_empty());
    survey.record(question(), Err(Failure::SILENT), &mut observed, &mut missing);
    assert!(survey.is_rdma_held && missing.0.is_empty());
    let problems: Vec<&String> = survey.problems.iter().collect();
    assert!(
        problems.len() == 1 && problems[0].ends_with(&rdma_held(&Failure::SILENT)),
        "{problems:?}"
    );
}
