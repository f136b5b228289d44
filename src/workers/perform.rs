//! The doing. One thing only is judged here: right before a VF is taken away it is
//! looked at once more whether somebody uses it.

use std::io;

use super::request::{Answer, Request};
use crate::host::manager::Manager;
use crate::host::netlink::VfSetting;
use crate::host::unit::{JobEnd, UnitState};
use crate::host::{ReadError, Root, answer, attribute, links, netlink, process, systemctl};
use crate::model::{IfaceStep, Refusal, Use, iface::aside_name};
use crate::names::{Moment, PciAddress, RdmaName, UnitName, VFIO};
use crate::observe::administered::administered;
use crate::observe::holders::holders;
use crate::observe::pf::{self, dir, name_rdma};
use crate::observe::uses::{cm_uses, netdev_uses, uses};
use crate::observe::vpd::{self, NotRead};
use crate::observe::{Look, VfDevices, ipoib_netdevs, link, pcie_link};

type Outcome = Result<Answer, Refusal>;

/// Do it, here and now. On a copied tree only questions have a meaning.
pub(super) fn perform(root: &Root, request: &Request) -> Outcome {
    match request {
        Request::Administered(questions) => administered(root, questions)
            .map(Answer::Administered)
            .map_err(|e| refused("read the settings of the VFs at the PF", &e)),
        Request::Serial(pci) => vpd::read_serial(root, *pci)
            .map(Answer::Serial)
            .map_err(|e| unread(product_data(*pci), &e)),
        Request::Product(pci) => vpd::read(root, *pci).map(Answer::Product).map_err(|e| match e {
            NotRead::System(e) => unread(product_data(*pci), &e),
            NotRead::Bad(e) => {
                Refusal { tried: product_data(*pci), errno: None, said: e.to_string() }
            }
        }),
        Request::Override(pci) => pf::driver_override(root, *pci)
            .map(Answer::Override)
            .map_err(|e| unread("read driver_override", &e)),
        Request::Uses(vfs) => Ok(Answer::Uses(uses(root, vfs))),
        Request::NetdevUses(netdevs) => Ok(Answer::Uses(netdev_uses(root, netdevs))),
        Request::CmUses(netdevs) => Ok(Answer::Uses(cm_uses(root, netdevs))),
        Request::IpoibNetdevs(devices) => {
            let counts = devices.iter().map(|device| ipoib_netdevs(root, device)).collect();
            Ok(Answer::IpoibNetdevs(counts))
        }
        Request::Holders(functions) => {
            let mut look = Look::new(root);
            let holders = holders(&mut look, functions);
            Ok(Answer::Holders { holders, problems: look.problems.into_iter().collect() })
        }
        Request::Write { path, value, unless_used } => {
            let users = in_use(root, unless_used);
            if users.is_empty() { write(path, value) } else { Ok(Answer::InUse(users)) }
        }
        Request::Restore { path, value } => match write(path, value) {
            Err(refusal) if refusal.is_absent() => Ok(Answer::Done),
            other => other,
        },
        Request::SetVf { ifindex, vf, setting } => {
            netlink::set_vf(*ifindex, *vf, *setting).map(|()| Answer::Done).map_err(|e| {
                let what = match setting {
                    VfSetting::NodeGuid(_) => "node GUID",
                    VfSetting::PortGuid(_) => "port GUID",
                    VfSetting::Policy(_) => "link state",
                };
                refused(format!("set {what} of VF {vf} by netlink (netdev index {ifindex})"), &e)
            })
        }
        Request::Bind { pci, driver, before, rdma } => {
            bind(root, *pci, driver, before, rdma.as_ref())
        }
        Request::Port { pci, device, port } => {
            let mut look = Look::new(root);
            let answer = link::port(&mut look, *pci, device, *port);
            Ok(Answer::Port { answer, problems: look.problems.into_iter().collect() })
        }
        Request::PKeys { pci, device, port } => {
            let mut look = Look::new(root);
            let table = link::pkeys(&mut look, *pci, device, *port);
            Ok(Answer::PKeys { table, problems: look.problems.into_iter().collect() })
        }
        Request::Pcie(pci) => Ok(Answer::Pcie(pcie_link(root, *pci))),
        Request::Carrier(netdev) => Ok(Answer::Carrier(link::carrier(root, netdev))),
        Request::Addresses => netlink::addresses()
            .map(Answer::Addresses)
            .map_err(|e| refused("addresses: getifaddrs", &e)),
        Request::GlobalAddresses => netlink::global_addresses()
            .map(Answer::GlobalAddresses)
            .map_err(|e| refused("addresses by netlink", &e)),
        Request::IpoibSettings(ifindex) => links::ipoib_of(*ifindex)
            .map(|(mode, umcast)| Answer::IpoibSettings { mode, umcast })
            .map_err(|e| refused("settings by netlink", &e)),
        Request::SetInterface { ifindex, step } => set_interface(*ifindex, step)
            .map(|()| Answer::Done)
            .map_err(|e| refused(step.to_string(), &e)),
        Request::StartUnit { unit, wait, until } => {
            start(unit, *wait, *until).map(|()| Answer::Done).map_err(|e| Refusal {
                tried: format!("start {unit}"),
                errno: None,
                said: format!("{e:#}"),
            })
        }
        Request::Each(requests) => {
            Ok(Answer::Each(requests.iter().map(|r| perform(root, r)).collect()))
        }
    }
}

/// The last look before something is taken away: those of these VFs that are in use.
fn in_use(root: &Root, vfs: &[PciAddress]) -> Vec<(PciAddress, Vec<Use>)> {
    if vfs.is_empty() {
        return Vec::new();
    }
    let all = vfs.iter().copied().zip(uses(root, vfs));
    all.filter(|(_, uses)| !uses.is_empty()).collect()
}

fn write(path: &str, value: &str) -> Outcome {
    attribute::write(path, value)
        .map(|()| Answer::Done)
        .map_err(|e| refused(format!("write {:?} to {path}", value.trim_end()), &e))
}

fn set_interface(ifindex: u32, step: &IfaceStep) -> io::Result<()> {
    match step {
        IfaceStep::Rename { to, aside } => {
            if let Some(holder) = aside {
                links::rename(*holder, &aside_name(*holder))?;
            }
            links::rename(ifindex, to.as_str())
        }
        IfaceStep::SetMode { mode } => links::set_mode(ifindex, *mode),
        IfaceStep::SetMtu { mtu } => links::set_mtu(ifindex, *mtu),
        IfaceStep::SetUmcast { umcast } => links::set_umcast(ifindex, *umcast),
        IfaceStep::AddChild { pkey, name } => links::add_child(ifindex, name, *pkey),
    }
}

/// Has `work` done while `driver_override`, written by `write`, is `driver`, and puts it back,
/// whatever became of the work. It lets a driver bind while automatic probing is off
/// (`pci_device_can_probe()`, drivers/pci/pci-driver.c) and names the one that
/// vfio-pci otherwise would not match. Left behind it would break libvirt.
fn overridden<T>(
    write: impl Fn(&str) -> Outcome,
    driver: &str,
    before: &str,
    work: impl FnOnce() -> T,
) -> Result<(T, Outcome), Refusal> {
    write(driver)?;
    let done = work();
    // A line break is the way to write nothing.
    Ok((done, write(if before.is_empty() { "\n" } else { before })))
}

fn bind(
    root: &Root,
    pci: PciAddress,
    driver: &str,
    before: &str,
    rdma: Option<&RdmaName>,
) -> Outcome {
    let to_drivers = format!("/sys/bus/pci/drivers/{driver}");
    if driver == VFIO && !root.exists(&to_drivers) {
        // Here it may take as long as it takes: who asked does not wait for ever.
        let args = ["-b", "--", VFIO];
        process::output_until("modprobe", &args, Moment::NEVER)
            .and_then(|said| said.into_text("modprobe", &args))
            .map_err(|e| refused("load vfio-pci", &e))?;
    }
    let own = format!("{}/driver_override", dir(pci));
    let work = || {
        let bound = write(&format!("{to_drivers}/bind"), &pci.to_string());
        // First of all: udev starts a program for an RDMA device that has not its name yet.
        let named = match rdma {
            Some(name) if bound.is_ok() => name_rdma(root, pci, name).map_err(|e| {
                refused(
                    format!("set the name of the RDMA device of {pci} to {name} by netlink"),
                    &e,
                )
            }),
            _ => Ok(()),
        };
        (bound, named)
    };
    let ((bound, named), back) = overridden(|value| write(&own, value), driver, before, work)?;
    bound?;
    back?;
    named?;
    Ok(Answer::Bound(shown(root, pci)))
}

/// Looked at here, while others are still being bound: the parent would be kept
/// waiting by all that goes on once the last is.
fn shown(root: &Root, pci: PciAddress) -> Option<VfDevices> {
    let mut look = Look::new(root);
    let own = pf::own(&mut look, pci);
    // Who cannot read something looks for itself, and tells why.
    own.filter(|own| own.is_whole() && look.problems.is_empty())
}

/// Start `unit` and, with `wait`, see its job to its end.
///
/// # Errors
/// systemd could not be asked, or the unit did not come up, and why.
fn start(unit: &UnitName, wait: bool, until: Moment) -> anyhow::Result<()> {
    let name = unit.as_str();
    if !wait {
        return Ok(systemctl::queue_start(name)?);
    }
    let end = systemctl::start(name, until)?;
    let (_, states) = Manager::open_until(&[name], until)?;
    let Some(state) = states.first() else { anyhow::bail!("systemd reports no reason") };
    started(end, state)
}

/// Whether a unit was started whose job has ended so.
fn started(end: JobEnd, state: &UnitState) -> anyhow::Result<()> {
    match end {
        // It came up as the wait was given up.
        JobEnd::Pending if state.is_active() => Ok(()),
        JobEnd::Pending => {
            anyhow::bail!("the start has not finished before its timeout ({})", state.active)
        }
        // A condition that did not hold ends the job well, and starts nothing.
        JobEnd::Done if state.is_active() || state.condition => Ok(()),
        JobEnd::Done => anyhow::bail!("a condition of the unit failed"),
        JobEnd::Failed => {
            let result = state.result.as_deref().unwrap_or("see its log");
            anyhow::bail!("the start failed ({result}): journalctl -u {}", state.name)
        }
    }
}

fn product_data(pci: PciAddress) -> String {
    format!("read the vital product data of {pci}")
}

fn refused(tried: impl Into<String>, e: &io::Error) -> Refusal {
    Refusal { tried: tried.into(), errno: e.raw_os_error(), said: answer(e) }
}

fn unread(tried: impl Into<String>, e: &ReadError) -> Refusal {
    let errno = match e {
        ReadError::System { errno, .. } => Some(*errno as i32),
        _ => None,
    };
    Refusal { tried: tried.into(), errno, said: e.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;
    use crate::host::unit::ActiveState;

    #[test]
    fn a_unit_that_is_up_was_started_though_systemd_has_told_no_end_of_its_job() {
        let unit = |active| UnitState { active, ..UnitState::default() };
        assert!(started(JobEnd::Pending, &unit(ActiveState::Active)).is_ok());
        let why = started(JobEnd::Pending, &unit(ActiveState::Activating)).expect_err("not up");
        assert_eq!(why.to_string(), "the start has not finished before its timeout (activating)");
        assert!(started(JobEnd::Failed, &unit(ActiveState::Active)).is_err());
    }

    #[test]
    fn driver_override_is_put_back_though_the_driver_did_not_bind() {
        for (before, back) in [("vfio-pci", "vfio-pci"), ("", "\n")] {
            let written = std::cell::RefCell::new(Vec::new());
            let write = |value: &str| {
                written.borrow_mut().push(value.to_owned());
                Ok(Answer::Done)
            };
            let fails = || Err::<(), _>("ENODEV");
            let done = overridden(write, "mlx5_core", before, fails).map(|(done, _)| done);
            assert_eq!(done, Ok(Err("ENODEV")));
            assert_eq!(*written.borrow(), ["mlx5_core", back]);
        }
    }

    #[test]
    fn of_several_vfs_the_one_in_use_is_named() {
        let dir = |n: u8| format!("sys/bus/pci/devices/0000:4b:00.{n}/driver");
        let links = [(dir(1), "../../drivers/mlx5_core"), (dir(2), "../../drivers/pciback")];
        let links: Vec<(&str, &str)> =
            links.iter().map(|(path, to)| (path.as_str(), *to)).collect();
        let copy = tree(&[], &links);
        let root = Root::copy_at(copy.path()).expect("root");
        let pci = |n: u8| format!("0000:4b:00.{n}").parse().expect("address");
        let used: Vec<PciAddress> =
            in_use(&root, &[pci(1), pci(2)]).into_iter().map(|(vf, _)| vf).collect();
        assert_eq!(used, [pci(2)]);
    }

    #[test]
    fn a_refused_write_says_what_was_tried_and_the_answer() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("node").display().to_string();
        let refusal = write(&path, "1\n").expect_err("no such file");
        assert_eq!(refusal.errno, Some(2));
        let want = format!("write \"1\" to {path}: ENOENT: No such file or directory");
        assert_eq!(refusal.to_string(), want);
    }
}
