use proptest::prelude::*;

use super::kernel::{HOST, Kernel, either, index, pci, pf, wanted};
use super::*;
use crate::ladder::vf::{has_driver, has_other_guids, shows_other, vf_progress, wanted_driver};
use crate::model::{VfLack, VfStep, plan::Action};
use crate::names::{
    Administered, BindReason, Binding, Guid, Policy, Port2, VFIO, VfDriver, VfIndex, VfNames,
    VfOwner, VfRung,
};
use crate::observe::Undo;
use crate::plan::diff::diff;

fn overrides(kernel: &Kernel) -> Vec<String> {
    kernel.vfs.iter().map(|v| v.driver_override.clone()).collect()
}

proptest! {
    /// Applying and planning again gives an empty plan, and nothing else but
    /// what is wanted has changed.
    #[test]
    fn applied_means_nothing_left(before in either(), wanted in wanted()) {
        let before = before.with_vfs(wanted.vfs.len());
        let mut kernel = before.clone();
        prop_assert!(kernel.run(&wanted, usize::MAX));
        let plan = vf_steps(&wanted, &kernel.observe(), &kernel.uses());
        prop_assert_eq!(&plan.steps, &vec![]);
        prop_assert_eq!(kernel.autoprobe, before.autoprobe);
        prop_assert!(kernel.undo.is_empty());
        if before.vfs.iter().all(|v| !v.in_use) {
            prop_assert_eq!(&plan.deferred, &vec![]);
            prop_assert_eq!(kernel.vfs.len(), wanted.vfs.len());
            for (vf, want) in kernel.observe().vfs.iter().zip(&wanted.vfs) {
                let backend = kernel.observe().backend;
                prop_assert!(!has_other_guids(want, vf, &backend));
                prop_assert_eq!(shows_other(want, vf, &backend), None);
                let port2 = vf.admin.port2.and_then(|port2| port2.guid);
                prop_assert!(want.port2_guid.is_none() || port2.is_none_or(|is| want.port2_guid == Some(is)));
                prop_assert!(!vf.half_bound && !vf.ipoib_failed);
                prop_assert_eq!(vf.driver.clone(), wanted_driver(want, &kernel.observe()));
                prop_assert!(kernel.is_mlx4 || vf.admin.policy == Some(want.policy));
            }
        }
        if before.vfs.len() == kernel.vfs.len() {
            prop_assert!(kernel.vfs.len() != wanted.vfs.len() || overrides(&kernel) == overrides(&before));
        }
    }

    /// Killed after any part of any step, the next run reaches the end that
    /// an undisturbed one reaches.
    #[test]
    fn killed_anywhere_the_next_run_gets_there(
        before in either(),
        wanted in wanted(),
        first in 0_usize..60,
        second in 0_usize..60,
    ) {
        let before = before.with_vfs(wanted.vfs.len());
        let mut undisturbed = before.clone();
        prop_assert!(undisturbed.run(&wanted, usize::MAX));
        let mut kernel = before;
        kernel.run(&wanted, first);
        kernel.run(&wanted, second);
        prop_assert!(kernel.run(&wanted, usize::MAX));
        prop_assert_eq!(kernel, undisturbed);
    }

    /// A VF in use keeps its driver, its GUIDs and its life; its link too, unless
    /// the configuration says otherwise of that very VF.
    #[test]
    fn what_is_in_use_is_left_alone(before in either(), wanted in wanted()) {
        let before = before.with_vfs(wanted.vfs.len());
        let mut kernel = before.clone();
        kernel.run(&wanted, usize::MAX);
        for (n, vf) in before.vfs.iter().enumerate().filter(|(_, v)| v.in_use) {
            prop_assert_eq!(&kernel.vfs[n], vf);
            prop_assert_eq!(kernel.admin[n].node_guid, before.admin[n].node_guid);
            prop_assert_eq!(kernel.admin[n].port_guid, before.admin[n].port_guid);
            prop_assert_eq!(kernel.admin[n].port2, before.admin[n].port2);
            let (then, now) = (before.admin[n].policy, kernel.admin[n].policy);
            if wanted.vfs.get(n).is_none_or(|want| !want.policy_named) {
                prop_assert!(now == then || now != Some(Policy::Down));
                prop_assert!(now == then || then != Some(Policy::Up));
            }
        }
    }
}

fn plan_of(n: usize, driver: VfDriver) -> WantedPf {
    let vf = |n: usize| WantedVf {
        index: index(n),
        node_guid: Guid::new(0x0200_0000_0000_0000 + n as u64),
        port_guid: Guid::new(0x0200_0000_0000_0100 + n as u64),
        port2_guid: None,
        policy: Policy::Follow,
        policy_named: false,
        driver,
        owner: VfOwner::Plan,
        guids_from: String::new(),
        names: VfNames::default(),
    };
    WantedPf { pf: pf(), vfs: (0..n).map(vf).collect(), binding: Binding::default() }
}

fn fresh() -> Kernel {
    let admin = Administered {
        node_guid: Some(Guid::new(0)),
        port_guid: Some(Guid::new(0)),
        policy: Some(Policy::Down),
        granted: None,
        port2: None,
        is_answered: true,
    };
    Kernel {
        total: 4,
        is_mlx4: false,
        autoprobe: true,
        undo: Undo::default(),
        admin: vec![admin; 4],
        vfs: Vec::new(),
    }
}

fn texts(plan: &VfPlan) -> Vec<String> {
    plan.steps.iter().map(ToString::to_string).collect()
}

/// From its first GUIDs on, whatever the CNI plugin makes of it is no drift.
#[test]
fn a_vf_of_the_cni_gets_its_first_guids_and_no_others() {
    let mut wanted = plan_of(1, VfDriver::Host);
    let ours = vf_steps(&wanted, &fresh().observe(), &Uses::new());
    wanted.vfs[0].owner = VfOwner::Cni;
    let mut kernel = fresh();
    assert_eq!(vf_steps(&wanted, &kernel.observe(), &Uses::new()), ours);
    kernel.run(&wanted, usize::MAX);
    assert_eq!(kernel.admin[0].port_guid, Some(wanted.vfs[0].port_guid));

    let mut of_plan = wanted.clone();
    of_plan.vfs[0].owner = VfOwner::Plan;
    let steps = |wanted: &WantedPf, kernel: &Kernel| {
        texts(&vf_steps(wanted, &kernel.observe(), &Uses::new()))
    };
    assert_eq!(steps(&wanted, &kernel), [""; 0]);
    let planned = kernel.clone();
    kernel.admin[0].policy = Some(Policy::Up);
    assert_eq!(steps(&wanted, &kernel), [""; 0], "the link state of a pod");
    kernel.vfs[0].driver = Some(VFIO.to_owned());
    assert_eq!(steps(&wanted, &kernel), [""; 0], "the driver of a virtual machine in a pod");
    assert_ne!(steps(&of_plan, &kernel), [""; 0]);
    kernel.vfs[0].driver = Some(HOST.to_owned());
    for guid in [0x0200_0000_0000_0999, u64::MAX] {
        let given = Administered {
            node_guid: Some(Guid::new(guid)),
            port_guid: Some(Guid::new(guid)),
            ..kernel.admin[0]
        };
        (kernel.admin[0], kernel.vfs[0].read) = (given, given);
        assert_eq!(steps(&wanted, &kernel), [""; 0], "{guid:x}");
        assert_ne!(steps(&of_plan, &kernel), [""; 0]);
        kernel.vfs[0].driver = None;
        assert_eq!(steps(&wanted, &kernel), [""; 0], "{guid:x}, while the CNI binds it again");
        kernel.vfs[0].driver = Some(HOST.to_owned());
    }

    // Made anew it has no GUIDs.
    let mut kernel = planned;
    kernel.admin[0] = fresh().admin[0];
    assert_eq!(steps(&wanted, &kernel), steps(&of_plan, &kernel));
    assert_ne!(steps(&wanted, &kernel), [""; 0]);
}

#[test]
fn a_fresh_pf_gets_vfs_guids_and_one_bind_each_in_this_order() {
    let plan = vf_steps(&plan_of(2, VfDriver::Host), &fresh().observe(), &Uses::new());
    assert_eq!(
        texts(&plan),
        [
            "disable sriov_drivers_autoprobe",
            "change the number of VFs from 0 to 2",
            "set node GUID of VF 0 to 0200:0000:0000:0000",
            "set port GUID of VF 0 to 0200:0000:0000:0100",
            "set link state of VF 0 to follow",
            "set node GUID of VF 1 to 0200:0000:0000:0001",
            "set port GUID of VF 1 to 0200:0000:0000:0101",
            "set link state of VF 1 to follow",
            "bind VF 0 to mlx5_core",
            "bind VF 1 to mlx5_core",
            "restore sriov_drivers_autoprobe to 1",
        ]
    );
}

#[test]
fn one_wrong_guid_is_one_rebind() {
    let mut kernel = fresh();
    let wanted = plan_of(3, VfDriver::Host);
    assert!(kernel.run(&wanted, usize::MAX));
    kernel.admin[1].port_guid = Some(Guid::new(7));
    let plan = vf_steps(&wanted, &kernel.observe(), &Uses::new());
    assert_eq!(
        texts(&plan),
        [
            "unbind VF 1 from mlx5_core",
            "set port GUID of VF 1 to 0200:0000:0000:0101 (was 0000:0000:0000:0007)",
            "bind VF 1 to mlx5_core",
        ]
    );
    assert_eq!(disturbed(&wanted, &plan, &kernel.observe()), [index(1)]);
}

/// A dual-port ConnectX-3, whose VFs have as many ports as said, without GUIDs.
fn connectx3(two_ports: &[bool]) -> (Kernel, WantedPf) {
    let mut wanted = plan_of(two_ports.len(), VfDriver::Host);
    for (n, vf) in (0..).zip(&mut wanted.vfs) {
        vf.port2_guid = Some(Guid::new(0x0200_0000_0000_0200 + n));
    }
    let mut kernel = Kernel { is_mlx4: true, ..fresh() };
    let none = Some(Guid::new(0));
    for (admin, two) in kernel.admin.iter_mut().zip(two_ports) {
        admin.port2 = two.then_some(Port2 { guid: none, granted: none });
    }
    (kernel.with_vfs(two_ports.len()), wanted)
}

#[test]
fn each_port_of_a_vf_of_mlx4_gets_its_guid() {
    let (mut kernel, wanted) = connectx3(&[true, false]);
    kernel.vfs.iter_mut().for_each(|vf| vf.driver = None);
    let steps = texts(&vf_steps(&wanted, &kernel.observe(), &Uses::new()));
    assert_eq!(
        steps,
        [
            "set port GUID of VF 0 to 0200:0000:0000:0100 (was 0000:0000:0000:0000)",
            "set GUID of port 2 of VF 0 to 0200:0000:0000:0200 (was 0000:0000:0000:0000)",
            "set port GUID of VF 1 to 0200:0000:0000:0101 (was 0000:0000:0000:0000)",
            "bind VF 0 to mlx5_core",
            "bind VF 1 to mlx5_core",
        ]
    );
    assert!(kernel.run(&wanted, usize::MAX));
    assert_eq!(texts(&vf_steps(&wanted, &kernel.observe(), &Uses::new())), [""; 0]);
    let right = |kernel: &Kernel| {
        let seen = kernel.observe();
        vf_progress(&wanted.vfs[0], seen.vf(index(0)), &seen).lacks.map(|lack| lack.to_string())
    };
    assert_eq!(right(&kernel), None);
    // Another GUID of the second port alone.
    let mut other = kernel.clone();
    other.admin[0].port2 = Some(Port2 { guid: Some(Guid::new(7)), granted: Some(Guid::new(7)) });
    let lack = right(&other).expect("another");
    assert_eq!(
        lack,
        "the GUID of port 2 at the PF is 0000:0000:0000:0007 instead of 0200:0000:0000:0200"
    );
    let rebind = [
        "unbind VF 0 from mlx5_core",
        "set GUID of port 2 of VF 0 to 0200:0000:0000:0200 (was 0000:0000:0000:0007)",
        "bind VF 0 to mlx5_core",
    ];
    assert_eq!(texts(&vf_steps(&wanted, &other.observe(), &Uses::new())), rebind);
    let plan = vf_steps(&wanted, &other.observe(), &used(0));
    assert_eq!((plan.steps, plan.deferred.len()), (vec![], 1), "it is in use");
    // The VF has read another.
    kernel.vfs[0].read.port2 = other.admin[0].port2;
    let lack = right(&kernel).expect("another");
    assert_eq!(
        lack,
        "the GUID of port 2 of the VF is 0000:0000:0000:0007 instead of 0200:0000:0000:0200"
    );
}

#[test]
fn a_dark_second_port_holds_up_no_vf_and_one_that_is_active_is_waited_for() {
    let (mut kernel, wanted) = connectx3(&[true]);
    kernel.admin[0].port2 = Some(Port2 { guid: Some(Guid::new(0)), granted: None });
    kernel.vfs[0].driver = None;
    assert!(kernel.run(&wanted, usize::MAX));
    let mut seen = kernel.observe();
    let right = |seen: &ObservedPf| vf_progress(&wanted.vfs[0], seen.vf(index(0)), seen);
    assert_eq!(seen.vfs[0].own.as_ref().and_then(|own| own.port2_guid), Some(Guid::new(0)));
    assert_eq!((right(&seen).lacks, kernel.vfs[0].driver.as_deref()), (None, Some(HOST)));
    assert_eq!(texts(&vf_steps(&wanted, &seen, &Uses::new())), [""; 0], "nothing is bound again");
    // Its subnet manager has not answered.
    let port2 = seen.vfs[0].admin.port2.as_mut().expect("a second port");
    port2.granted = Some(Guid::new(0));
    (seen.vfs[0].driver, seen.vfs[0].own) = (None, None);
    assert_eq!(texts(&vf_steps(&wanted, &seen, &Uses::new())), [""; 0]);
    assert!(may_come(&wanted.vfs[0], &seen.vfs[0], &seen));
    let lack = right(&seen).lacks.expect("a grant").to_string();
    assert_eq!(
        lack,
        "the subnet manager has not granted the port GUID 0200:0000:0000:0200: 0000:0000:0000:0000 is in force"
    );
}

#[test]
fn a_vf_whose_rdma_half_did_not_come_is_bound_anew_unless_it_is_in_use() {
    let mut kernel = fresh();
    let wanted = plan_of(2, VfDriver::Host);
    assert!(kernel.run(&wanted, usize::MAX));
    kernel.vfs[1].half_bound = true;
    let plan = vf_steps(&wanted, &kernel.observe(), &Uses::new());
    assert_eq!(texts(&plan), ["unbind VF 1 from mlx5_core", "bind VF 1 to mlx5_core"]);
    assert_eq!(disturbed(&wanted, &plan, &kernel.observe()), [index(1)]);
    kernel.vfs[1].in_use = true;
    let plan = vf_steps(&wanted, &kernel.observe(), &kernel.uses());
    let deferred: Vec<String> = plan.deferred.iter().map(ToString::to_string).collect();
    assert_eq!((texts(&plan), deferred.len()), (vec![], 1));
    let said = "VF 1 is left alone: the driver mlx5_core is bound, but the VF has no RDMA device";
    assert!(deferred[0].starts_with(said), "{deferred:?}");
}

#[test]
fn a_vf_for_which_ipoib_made_no_netdev_is_bound_anew_unless_it_is_in_use() {
    let mut kernel = fresh();
    let wanted = plan_of(2, VfDriver::Host);
    assert!(kernel.run(&wanted, usize::MAX));
    kernel.vfs[1].ipoib_failed = true;
    let plan = vf_steps(&wanted, &kernel.observe(), &Uses::new());
    assert_eq!(texts(&plan), ["unbind VF 1 from mlx5_core", "bind VF 1 to mlx5_core"]);
    assert_eq!(disturbed(&wanted, &plan, &kernel.observe()), [index(1)]);
    kernel.vfs[1].in_use = true;
    let plan = vf_steps(&wanted, &kernel.observe(), &kernel.uses());
    let deferred: Vec<String> = plan.deferred.iter().map(ToString::to_string).collect();
    assert_eq!((texts(&plan), deferred.len()), (vec![], 1));
    let said =
        "VF 1 is left alone: ib_ipoib has not created a netdev for the VF; it may be in use: ";
    assert!(deferred[0].starts_with(said), "{deferred:?}");
}

/// A CNI plugin that has given it GUIDs may have its devices elsewhere, and would not get it
/// back: what is left to it is not bound again.
#[test]
fn a_vf_that_is_left_to_the_cni_is_not_even_unbound() {
    let mut kernel = fresh();
    let mut wanted = plan_of(2, VfDriver::Host);
    assert!(kernel.run(&wanted, usize::MAX));
    wanted.vfs[1].owner = VfOwner::Cni;
    let pod = Some(Guid::new(0x0200_0000_0000_0999));
    kernel.admin[1].port_guid = pod;
    kernel.vfs[1].read.port_guid = pod;
    for (half_bound, ipoib_failed) in [(true, false), (false, true)] {
        let vf = &mut kernel.vfs[1];
        (vf.half_bound, vf.ipoib_failed) = (half_bound, ipoib_failed);
        assert_eq!(texts(&vf_steps(&wanted, &kernel.observe(), &Uses::new())), [""; 0]);
    }
}

#[test]
fn vfs_for_virtual_machines_never_see_the_hosts_driver() {
    let mut kernel = fresh();
    assert!(kernel.run(&plan_of(2, VfDriver::VfioPci), usize::MAX));
    let none = Administered::default();
    assert!(kernel.vfs.iter().all(|v| v.driver.as_deref() == Some(VFIO) && v.read != none));
}

#[test]
fn a_vf_that_a_virtual_machine_has_is_as_wanted() {
    let mut kernel = fresh();
    let wanted = plan_of(1, VfDriver::Host);
    assert!(kernel.run(&wanted, usize::MAX));
    kernel.vfs[0].driver = Some(VFIO.to_owned());
    kernel.vfs[0].in_use = true;
    let plan = vf_steps(&wanted, &kernel.observe(), &kernel.uses());
    assert_eq!((plan.steps, plan.deferred), (vec![], vec![]));
}

#[test]
fn the_kernels_variant_of_vfio_pci_is_as_good() {
    let mut kernel = fresh();
    let wanted = plan_of(1, VfDriver::VfioPci);
    assert!(kernel.run(&wanted, usize::MAX));
    kernel.vfs[0].driver = Some("mlx5_vfio_pci".to_owned());
    let plan = vf_steps(&wanted, &kernel.observe(), &Uses::new());
    assert_eq!((plan.steps, plan.deferred), (vec![], vec![]));
    // Its GUIDs are set below it, as with vfio-pci: it has read none.
    kernel.admin[0].port_guid = Some(Guid::new(7));
    let steps = texts(&vf_steps(&wanted, &kernel.observe(), &Uses::new()));
    assert!(steps.len() == 1 && steps[0].starts_with("set port GUID"), "{steps:?}");
    // A plan for the host's own driver takes it back.
    kernel.vfs[0].driver = Some("mlx5_vfio_pci".to_owned());
    let back = texts(&vf_steps(&plan_of(1, VfDriver::Host), &kernel.observe(), &Uses::new()));
    assert_eq!(back.first().map(String::as_str), Some("unbind VF 0 from mlx5_vfio_pci"));
    assert!(!has_driver(Some("mlx5_core"), Some(VFIO)) && !has_driver(None, Some(VFIO)));
}

#[test]
fn what_stops_everything_is_said_with_what_to_do() {
    let said = |change: &dyn Fn(&mut ObservedPf)| {
        let mut observed = fresh().observe();
        change(&mut observed);
        let plan = vf_steps(&plan_of(2, VfDriver::Host), &observed, &Uses::new());
        assert_eq!(plan.steps, []);
        plan.problem.expect("a problem").with_remedy()
    };
    assert!(said(&|o| o.present = false).starts_with("no PCI function has this address"));
    assert!(said(&|o| o.driver = None).starts_with("no driver is bound to the PF"));
    assert!(said(&|o| o.link_layer = Some(LinkLayer::Ethernet)).contains("Ethernet mode"));
    assert!(said(&|o| o.backend = Backend::Mlx4 { iov: None }).contains("num_vfs=2 probe_vf=2"));
}

#[test]
fn by_netlink_what_a_vf_does_not_show_is_told_again() {
    let mut kernel = fresh();
    let wanted = plan_of(1, VfDriver::Host);
    assert!(kernel.run(&wanted, usize::MAX));
    kernel.vfs[0].read.node_guid = Some(Guid::new(7));
    let mut observed = kernel.observe();
    let rebind = ["unbind VF 0 from mlx5_core", "bind VF 0 to mlx5_core"];
    assert_eq!(texts(&vf_steps(&wanted, &observed, &Uses::new())), rebind);
    observed.backend = Backend::Netlink { ifindex: Some(3) };
    let steps = texts(&vf_steps(&wanted, &observed, &Uses::new()));
    assert_eq!(steps.len(), 4, "{steps:?}");
    assert!(steps[1].starts_with("set node GUID") && steps[2].starts_with("set port GUID"));
    // The same when it was unbound meanwhile, and nobody can see it any more.
    (observed.vfs[0].driver, observed.vfs[0].own) = (None, None);
    let plan = vf_steps(&wanted, &observed, &Uses::new());
    let repeated: Vec<bool> = plan.steps.iter().map(VfStep::is_repeated).collect();
    assert_eq!(repeated, [true, true, false], "{:?}", texts(&plan));
}

/// Before Linux 5.5 netlink has no GUIDs: a VF of the host shows its own, and of another
/// nothing is known.
#[test]
fn where_the_kernel_tells_no_guids_what_the_vf_shows_counts() {
    let mut kernel = fresh();
    let wanted = plan_of(1, VfDriver::Host);
    assert!(kernel.run(&wanted, usize::MAX));
    let mut observed = kernel.observe();
    observed.backend = Backend::Netlink { ifindex: Some(3) };
    let admin = &mut observed.vfs[0].admin;
    (admin.node_guid, admin.port_guid) = (None, None);
    let steps = |wanted: &WantedPf, observed: &ObservedPf, used: bool| {
        let uses = vec![Use::Unknown { why: "test".into() }];
        let uses = if used { Uses::from([(index(0), uses)]) } else { Uses::new() };
        let plan = vf_steps(wanted, observed, &uses);
        (texts(&plan), plan.deferred.len())
    };
    assert_eq!(steps(&wanted, &observed, false), (vec![], 0), "it shows the plan's");
    // Its devices are still to come.
    let mut comes = observed.clone();
    comes.vfs[0].own = None;
    assert_eq!(steps(&wanted, &comes, false), (vec![], 0));
    let mut stale = observed.clone();
    stale.vfs[0].own.as_mut().expect("own").port_guid = Some(Guid::new(7));
    assert_eq!(steps(&wanted, &stale, false).0.len(), 4, "unbind, both GUIDs, bind");
    assert_eq!(steps(&wanted, &stale, true), (vec![], 1), "it is in use");
    // One that nobody on this host has is told, unless somebody has it.
    let vfio = plan_of(1, VfDriver::VfioPci);
    let mut handed = observed.clone();
    (handed.vfs[0].driver, handed.vfs[0].own) = (Some(VFIO.to_owned()), None);
    let told = steps(&vfio, &handed, false).0;
    assert!(told.len() == 2 && told[0].starts_with("set node GUID"), "{told:?}");
    let plan = vf_steps(&vfio, &handed, &Uses::new());
    assert_eq!(disturbed(&vfio, &plan, &handed), [index(0)], "who has it is asked first");
    let shown = diff(&vfio, &handed, &plan, &[]);
    assert_eq!(shown[0].action, Action::Keep, "no change is known: {shown:?}");
    assert_eq!(steps(&vfio, &handed, true), (vec![], 0));
    // What was told stands for what is not told back (apply/pf/untold.rs).
    let admin = &mut handed.vfs[0].admin;
    admin.node_guid = Some(vfio.vfs[0].node_guid);
    admin.port_guid = Some(vfio.vfs[0].port_guid);
    assert_eq!(steps(&vfio, &handed, false), (vec![], 0));
}

/// All as planned, of which the PF answers nothing, by this interface.
fn unanswered(wanted: &WantedPf, backend: Backend) -> ObservedPf {
    let mut kernel = fresh();
    assert!(kernel.run(wanted, usize::MAX));
    let mut observed = kernel.observe();
    observed.backend = backend;
    observed.vfs.iter_mut().for_each(|vf| vf.admin = Administered::default());
    observed
}

fn backends() -> [Backend; 3] {
    let iov = Some("/sys/iov".to_owned());
    [Backend::OfedSysfs, Backend::Netlink { ifindex: Some(3) }, Backend::Mlx4 { iov }]
}

fn used(n: usize) -> Uses {
    Uses::from([(index(n), vec![Use::Unknown { why: "test".into() }])])
}

#[test]
fn what_the_pf_does_not_answer_is_no_reason_to_unbind_a_vf() {
    let wanted = plan_of(2, VfDriver::Host);
    for backend in backends() {
        let mut observed = unanswered(&wanted, backend);
        for uses in [Uses::new(), used(1)] {
            let plan = vf_steps(&wanted, &observed, &uses);
            assert_eq!((&plan.steps, &plan.deferred), (&vec![], &vec![]), "{:?}", observed.backend);
        }
        for vf in &wanted.vfs {
            let progress = vf_progress(vf, observed.vf(vf.index), &observed);
            assert_eq!((progress.reached, progress.lacks), (Some(VfRung::Verified), None));
        }
        // What it shows is a reason.
        observed.vfs[1].own.as_mut().expect("own").port_guid = Some(Guid::new(7));
        let steps = texts(&vf_steps(&wanted, &observed, &Uses::new()));
        assert_eq!(steps.first().map(String::as_str), Some("unbind VF 1 from mlx5_core"));
        assert!(steps.iter().any(|step| step.starts_with("set port GUID of VF 1")), "{steps:?}");
        assert_eq!(vf_steps(&wanted, &observed, &used(1)).steps, vec![]);
        // So is a GUID that the PF does answer.
        let mut partly = unanswered(&wanted, observed.backend);
        partly.vfs[0].admin.port_guid = Some(Guid::new(7));
        let steps = texts(&vf_steps(&wanted, &partly, &Uses::new()));
        assert_eq!(steps.first().map(String::as_str), Some("unbind VF 0 from mlx5_core"));
    }
}

#[test]
fn a_vf_without_a_driver_is_told_all_and_bound_although_the_pf_answers_nothing() {
    let wanted = plan_of(2, VfDriver::Host);
    let mut observed = unanswered(&wanted, Backend::Netlink { ifindex: Some(3) });
    (observed.vfs[1].driver, observed.vfs[1].own) = (None, None);
    assert_eq!(
        texts(&vf_steps(&wanted, &observed, &Uses::new())),
        [
            "set node GUID of VF 1 to 0200:0000:0000:0001",
            "set port GUID of VF 1 to 0200:0000:0000:0101",
            "set link state of VF 1 to follow",
            "bind VF 1 to mlx5_core",
        ]
    );
}

/// The plugin may have given it GUIDs, and then another driver.
#[test]
fn a_vf_of_the_cni_of_which_the_pf_answers_nothing_keeps_the_driver_that_it_has() {
    let mut wanted = plan_of(1, VfDriver::Host);
    wanted.vfs[0].owner = VfOwner::Cni;
    for backend in backends() {
        let mut observed = unanswered(&wanted, backend);
        (observed.vfs[0].driver, observed.vfs[0].own) = (Some(VFIO.to_owned()), None);
        for uses in [Uses::new(), used(0)] {
            let plan = vf_steps(&wanted, &observed, &uses);
            assert_eq!((&plan.steps, &plan.deferred), (&vec![], &vec![]), "{:?}", observed.backend);
        }
    }
}

/// Nobody on this host sees its GUIDs: a virtual machine may have it with others.
#[test]
fn a_vf_of_vfio_of_which_the_pf_answers_nothing_is_told_its_guids_unless_it_is_in_use() {
    let wanted = plan_of(1, VfDriver::VfioPci);
    for backend in backends() {
        let observed = unanswered(&wanted, backend);
        let plan = vf_steps(&wanted, &observed, &Uses::new());
        let is_guid =
            |step: &VfStep| matches!(step, VfStep::NodeGuid { .. } | VfStep::PortGuid { .. });
        assert!(!plan.steps.is_empty() && plan.steps.iter().all(is_guid), "{:?}", texts(&plan));
        assert_eq!(disturbed(&wanted, &plan, &observed), [index(0)], "who has it is asked first");
        let plan = vf_steps(&wanted, &observed, &used(0));
        let deferred: Vec<String> = plan.deferred.iter().map(ToString::to_string).collect();
        assert_eq!(plan.steps, vec![]);
        let said = "VF 0 is left alone: the ";
        assert!(deferred.len() == 1 && deferred[0].starts_with(said), "{deferred:?}");
        assert!(deferred[0].contains(" GUID at the PF cannot be read; "), "{deferred:?}");
        let progress = vf_progress(&wanted.vfs[0], observed.vf(index(0)), &observed);
        assert!(matches!(progress.lacks, Some(VfLack::GuidsAtPf(_))), "{progress:?}");
    }
}

/// Found by the child right before it changes the number.
#[test]
fn a_vf_that_is_taken_before_the_number_changes_is_named_itself() {
    let mut kernel = fresh();
    assert!(kernel.run(&plan_of(3, VfDriver::Host), usize::MAX));
    let observed = kernel.observe();
    let taken = vec![(pci(1), vec![Use::Unknown { why: "test".into() }])];
    let uses: Uses = uses_by_index(&observed, taken).collect();
    assert_eq!(uses, used(1));
    let plan = vf_steps(&plan_of(4, VfDriver::Host), &observed, &uses);
    let deferred: Vec<String> = plan.deferred.iter().map(ToString::to_string).collect();
    let said = "the number of VFs stays 3 instead of 4; VF 1 may be in use: ";
    assert!(deferred.len() == 1 && deferred[0].starts_with(said), "{deferred:?}");
}

/// A VF that is as planned, in use, and has this policy.
fn in_use_with(policy: Policy) -> Kernel {
    let mut kernel = fresh();
    assert!(kernel.run(&plan_of(1, VfDriver::Host), usize::MAX));
    kernel.admin[0].policy = Some(policy);
    kernel.vfs[0].in_use = true;
    kernel
}

#[test]
fn the_link_of_a_vf_in_use_is_taken_down_only_if_the_vf_is_named() {
    let with = |to, policy_named| {
        let mut wanted = plan_of(1, VfDriver::Host);
        wanted.vfs[0].policy = to;
        wanted.vfs[0].policy_named = policy_named;
        wanted
    };
    for (from, to, left, said) in [
        (Policy::Up, Policy::Follow, true, "the link state is up instead of follow"),
        (Policy::Up, Policy::Down, true, "the link state is up instead of down"),
        (Policy::Follow, Policy::Down, true, "the link state is follow instead of down"),
        (Policy::Follow, Policy::Up, false, ""),
        (Policy::Down, Policy::Follow, false, ""),
        (Policy::Down, Policy::Up, false, ""),
    ] {
        let kernel = in_use_with(from);
        let observed = kernel.observe();
        let nobody = vf_steps(&with(to, false), &observed, &Uses::new());
        let step = format!("set link state of VF 0 to {to} (was {from})");
        assert_eq!(texts(&nobody), [step.as_str()]);
        // Who uses it has to be asked first.
        let asked = if left { vec![index(0)] } else { vec![] };
        assert_eq!(disturbed(&with(to, false), &nobody, &observed), asked, "{from} to {to}");
        let plan = vf_steps(&with(to, false), &observed, &kernel.uses());
        let deferred: Vec<String> = plan.deferred.iter().map(ToString::to_string).collect();
        if left {
            let said = format!("VF 0 is left alone: {said}; it may be in use: ");
            assert!(deferred[0].starts_with(&said), "{deferred:?}");
            assert_eq!((texts(&plan), deferred.len()), (vec![], 1));
        } else {
            assert_eq!((texts(&plan), deferred.len()), (vec![step.clone()], 0));
        }
        let named = vf_steps(&with(to, true), &observed, &kernel.uses());
        assert_eq!((texts(&named), named.deferred.len()), (vec![step], 0));
        assert_eq!(disturbed(&with(to, true), &named, &observed), []);
    }
}

fn in_order(n: usize) -> WantedPf {
    let binding = Binding { order: BindOrder::InOrder, why: BindReason::KernelNumbers };
    WantedPf { binding, ..plan_of(n, VfDriver::Host) }
}

/// The VFs that are bound at the same time, round by round; `late` is one whose RDMA
/// device comes only after as many rounds with nothing else to do.
fn rounds(wanted: &WantedPf, kernel: &mut Kernel, late: Option<usize>) -> Vec<Vec<u16>> {
    let mut rounds = Vec::new();
    let mut comes = late;
    while rounds.len() < 20 {
        let seen = kernel.observe();
        let plan = vf_steps(wanted, &seen, &kernel.uses());
        let is_awaited = |vf: VfIndex| {
            comes.map(index) == Some(vf) && seen.vf(vf).is_some_and(|vf| vf.driver.is_some())
        };
        let steps = due(&plan.steps, is_awaited);
        match steps.is_empty() {
            true if comes.is_some() => comes = None,
            true => break,
            false => {}
        }
        let binds = |step: &VfStep| matches!(step, VfStep::Bind { .. });
        if steps.iter().any(binds) {
            rounds.push(steps.iter().filter_map(VfStep::vf).map(VfIndex::get).collect());
        }
        for step in steps {
            for part in Kernel::parts(&step) {
                part(kernel);
            }
        }
    }
    rounds
}

#[test]
fn in_order_each_is_bound_when_the_one_before_has_its_devices() {
    assert_eq!(rounds(&in_order(3), &mut fresh(), None), [[0], [1], [2]]);
    assert_eq!(rounds(&plan_of(3, VfDriver::Host), &mut fresh(), None), [[0, 1, 2]]);
    // One whose device takes its time is waited for, and then the next is bound.
    assert_eq!(rounds(&in_order(3), &mut fresh(), Some(1)), [[0], [1], [2]]);
    // What gets no names on this host waits for nobody.
    let mut mixed = in_order(4);
    mixed.vfs[1].driver = VfDriver::VfioPci;
    mixed.vfs[2].driver = VfDriver::None;
    assert_eq!(rounds(&mixed, &mut fresh(), None), [vec![0, 1], vec![3]]);
    // One that is there has its names: the others come after each other.
    let mut kernel = fresh();
    assert!(kernel.run(&in_order(3), usize::MAX));
    kernel.vfs[0].driver = None;
    kernel.vfs[2].driver = None;
    assert_eq!(rounds(&in_order(3), &mut kernel, None), [[0], [2]]);
}

#[test]
fn a_bind_that_is_lost_holds_up_nobody() {
    let wanted = in_order(3);
    let mut kernel = fresh();
    let count = vf_steps(&wanted, &kernel.observe(), &kernel.uses());
    for step in count.steps.into_iter().filter(|step| !matches!(step, VfStep::Bind { .. })) {
        for part in Kernel::parts(&step) {
            part(&mut kernel);
        }
    }
    let plan = vf_steps(&wanted, &kernel.observe(), &kernel.uses());
    // Who runs the plan has taken out what was in vain: VF 0.
    let left: Vec<VfStep> = plan
        .steps
        .into_iter()
        .filter(|step| matches!(step, VfStep::Bind { .. }) && step.vf() != Some(index(0)))
        .collect();
    let now: Vec<_> = due(&left, |_| false).iter().filter_map(VfStep::vf).collect();
    assert_eq!(now, [index(1)]);
}
