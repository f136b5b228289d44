//! Seeing that an interface comes up, by the stack that it belongs to.

use log::Level;

use super::iface::{Ask, look};
use crate::host::bus::{At, Bus, BusError, Changes, ObjectPath};
use crate::host::links::LinkWatch;
use crate::host::manager::{Apart, JobEnd, Manager, UnitState};
use crate::host::{Root, answer, clock, journal, netlink, process};
use crate::observe::ipoib::Interface;
use crate::report::events as kinds;
use crate::report::iface::{BringUp, IfaceReport};
use crate::report::stack::{Action, Decision, Phase, Stack, View};
use crate::stacks::{
    Live, decide, hotplug_unit, network_manager, networkd, unit_escape, units, views,
};

/// How long a stack that runs may take to notice a new interface at all,
/// before its "not mine" is believed.
const NOTICE_USEC: u64 = 3_000_000;

/// How a look at the stacks ended.
enum Next {
    /// It is over.
    End(BringUp),
    /// Something happened: look again.
    Again,
}

/// A run under way.
struct Run<'a> {
    root: &'a Root,
    deadline: u64,
    notice_until: u64,
    manager: Manager,
    interface: Interface,
    report: &'a mut IfaceReport,
    /// What was done last: nothing is done twice.
    acted: Option<Action>,
}

/// Decide who brings the interface up, and see that it happens.
pub fn bring_up(
    root: &Root,
    ask: Ask<'_>,
    deadline: u64,
    interface: &Interface,
    report: &mut IfaceReport,
) {
    let (manager, states) = match ask_systemd(interface, ask.no_bus) {
        Ok(answer) => answer,
        Err(e) => {
            report.failures.push(format!("who brings {} up: {e}", ask.name));
            report.bring_up = BringUp::Failed;
            tell(report);
            return;
        }
    };
    report.asked_by.clone_from(&manager.way);
    let notice_until = clock::monotonic_usec() + NOTICE_USEC;
    let interface = interface.clone();
    let mut run = Run { root, deadline, notice_until, manager, interface, report, acted: None };
    let mut states = Some(states);
    run.report.bring_up = loop {
        match run.step(states.take()) {
            Ok(Next::End(end)) => break end,
            Ok(Next::Again) => {}
            Err(e) => {
                run.report.failures.push(format!("{}: {e}", run.interface.name));
                break BringUp::Failed;
            }
        }
    };
    tell(run.report);
}

/// Decide how to ask systemd, and ask it.
///
/// # Errors
/// It does not answer.
pub fn ask_systemd(
    interface: &Interface,
    no_bus: bool,
) -> anyhow::Result<(Manager, Vec<UnitState>)> {
    let names = units(interface);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if no_bus {
        let mut manager = Manager::by_systemctl();
        let states = manager.units(&names)?;
        return Ok((manager, states));
    }
    Ok(Manager::open(&names)?)
}

/// What the stacks that run say themselves, and where to hear of changes.
///
/// # Errors
/// The bus broke.
pub fn live(
    root: &Root,
    manager: &mut Manager,
    states: &[UnitState],
    interface: &Interface,
) -> Result<(Live, Vec<Changes>), BusError> {
    let runs = |stack: Stack| {
        states
            .iter()
            .any(|u| u.name == stack.unit() && crate::stacks::phase_of(stack, u) == Phase::Active)
    };
    let (nm, nd) = (runs(Stack::NetworkManager), runs(Stack::SystemdNetworkd));
    let mut live = Live::default();
    let mut changes = Vec::new();
    // NetworkManager can be asked in no other way.
    let bus = if nm { manager.bus_by_all_means() } else { manager.bus() };
    match bus {
        Some(bus) => {
            if nm {
                live.network_manager = Some(nm_device(bus, interface, &mut changes)?);
            }
            if nd {
                live.networkd = Some(networkd_link(root, bus, interface, &mut changes)?);
            }
        }
        None if nd => live.networkd = Some(networkd_record(root, interface)),
        None => {}
    }
    Ok((live, changes))
}

const NM: &str = "org.freedesktop.NetworkManager";
const NM_PATH: &str = "/org/freedesktop/NetworkManager";

fn nm_device(
    bus: &mut Bus,
    interface: &Interface,
    changes: &mut Vec<Changes>,
) -> Result<network_manager::Device, BusError> {
    changes.push(bus.changes(NM, NM_PATH)?);
    let at = At { service: NM, path: NM_PATH, interface: NM };
    let name = interface.name.as_str();
    let path: ObjectPath = match bus.call(at, "GetDeviceByIpIface", &name) {
        Ok(path) => path,
        // It does not know the device yet, or has taken its name on the bus and
        // has put nothing there yet.
        Err(BusError::Refused { .. }) => return Ok(network_manager::Device::default()),
        Err(e) => return Err(e),
    };
    changes.push(bus.changes(NM, path.as_str())?);
    let at = At { path: path.as_str(), interface: "org.freedesktop.NetworkManager.Device", ..at };
    let device = bus.properties(at)?;
    let active = device.path("ActiveConnection").filter(|p| p != "/");
    let active = active.and_then(|path| {
        let interface = "org.freedesktop.NetworkManager.Connection.Active";
        // It may have gone meanwhile.
        let properties = bus.properties(At { path: &path, interface, ..at }).ok()?;
        Some(properties.text("Id").chars().filter(|c| !c.is_control()).collect())
    });
    Ok(network_manager::Device {
        state: device.get("State").unwrap_or_default(),
        reason: 0,
        managed: device.get("Managed").unwrap_or_default(),
        profiles: device.count("AvailableConnections"),
        active,
    })
}

const NETWORKD: &str = "org.freedesktop.network1";

fn networkd_link(
    root: &Root,
    bus: &mut Bus,
    interface: &Interface,
    changes: &mut Vec<Changes>,
) -> Result<networkd::Link, BusError> {
    let path = "/org/freedesktop/network1";
    let at = At { service: NETWORKD, path, interface: "org.freedesktop.network1.Manager" };
    changes.push(bus.changes(NETWORKD, path)?);
    let index = i32::try_from(interface.ifindex).unwrap_or_default();
    let found: Result<(String, ObjectPath), BusError> = bus.call(at, "GetLinkByIndex", &index);
    let path = match found {
        Ok((_, path)) => path,
        // It has not heard of the link yet.
        Err(BusError::Refused { .. }) => return Ok(networkd::Link::default()),
        Err(e) => return Err(e),
    };
    changes.push(bus.changes(NETWORKD, path.as_str())?);
    let at = At { path: path.as_str(), interface: "org.freedesktop.network1.Link", ..at };
    let state = bus.properties(at)?.text("AdministrativeState");
    Ok(networkd::Link { state, file: networkd_record(root, interface).file })
}

/// systemd-networkd's own record of a link, as `sd_network_link_get_setup_state`
/// reads it.
fn networkd_record(root: &Root, interface: &Interface) -> networkd::Link {
    let path = format!("/run/systemd/netif/links/{}", interface.ifindex);
    let text = root.attribute(&path).unwrap_or_default();
    let value = |key: &str| {
        text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('=').map(str::to_owned))
    };
    networkd::Link { state: value("ADMIN_STATE").unwrap_or_default(), file: value("NETWORK_FILE") }
}

impl Run<'_> {
    /// Look, decide and do one thing.
    fn step(&mut self, states: Option<Vec<UnitState>>) -> anyhow::Result<Next> {
        let mut watch = LinkWatch::open()?;
        let states = match states {
            Some(states) => states,
            None => {
                let names = units(&self.interface);
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                self.manager.units(&names)?
            }
        };
        let (mut live, mut changes) = live(self.root, &mut self.manager, &states, &self.interface)?;
        // After the stacks, which may take long to answer: one that says that it is
        // done has set it up, and does not tell again.
        self.interface =
            look(self.root, &self.interface.name).map_err(|e| anyhow::anyhow!("{e}"))?.interface;
        if self.interface.ifindex != self.report.ifindex {
            anyhow::bail!("it went away, and another one has its name");
        }
        live.addressed = is_addressed(&self.interface)?;
        let views = views(self.root, &self.interface, &states, &live);
        let decision = decide(&views, &self.interface);
        if self.report.decided_usec == 0 {
            self.report.decided_usec = clock::monotonic_usec();
        }
        if self.report.decision.as_ref() != Some(&decision) {
            log::debug!("{}: {}", self.interface.name, decision.why);
        }
        self.report.stacks = views;
        self.report.decision = Some(decision.clone());
        let unit = decision.stack.map(Stack::unit).unwrap_or_default();
        match decision.action {
            Action::Nothing => Ok(Next::End(BringUp::Up)),
            Action::Leave => Ok(Next::End(BringUp::Left)),
            Action::WaitForService => self.wait_for(unit),
            Action::WaitForHotplug => self.wait_for_hotplug(&mut watch),
            // An ifup for a former interface of that name may have left addresses
            // after our look: that alone is worth a second try.
            Action::IfupAnew if self.acted != Some(Action::IfupAnew) => self.ifup(&decision),
            Action::Ifup | Action::IfupAgain | Action::IfupAnew | Action::StartHotplug
                if self.acted.is_some() =>
            {
                Ok(self.failed(&format!("{}, and is still not up after that", decision.why)))
            }
            Action::Ifup | Action::IfupAgain | Action::IfupAnew => self.ifup(&decision),
            Action::StartHotplug => {
                self.acted = Some(decision.action);
                let unit = hotplug_unit(&self.interface);
                let end = self.manager.start(&unit, self.deadline)?;
                Ok(self.after(&unit, end))
            }
            Action::Verify => self.verify(&live, &decision, &mut changes, &mut watch),
            // What a stack says in its first moments is not its last word.
            Action::Nobody | Action::Stuck if undecided(&live) => {
                match self.wait(self.notice_until, &mut changes, &mut watch)? {
                    true => Ok(Next::Again),
                    false => Ok(self.concluded(&decision)),
                }
            }
            Action::Nobody | Action::Stuck => Ok(self.concluded(&decision)),
        }
    }

    fn concluded(&mut self, decision: &Decision) -> Next {
        match decision.is_wrong {
            true => self.failed(&decision.why),
            false => Next::End(BringUp::Nobody),
        }
    }

    fn failed(&mut self, why: &str) -> Next {
        self.report.failures.push(format!("{}: {why}", self.interface.name));
        Next::End(BringUp::Failed)
    }

    fn wait_for(&mut self, unit: &str) -> anyhow::Result<Next> {
        match self.manager.wait_for_job(unit, self.deadline)? {
            JobEnd::Pending => Ok(self.failed(&format!(
                "{unit} is still starting at the deadline (network.deadline): systemctl status {unit}"
            ))),
            JobEnd::Done | JobEnd::Failed => Ok(Next::Again),
        }
    }

    /// ifupdown's own unit has no job while it works: its change is waited for,
    /// or, where the bus is not up, that of the interface.
    fn wait_for_hotplug(&mut self, watch: &mut LinkWatch) -> anyhow::Result<Next> {
        let unit = hotplug_unit(&self.interface);
        let mut changes = Vec::new();
        if let Some(bus) = self.manager.bus() {
            changes.push(bus.unit_changes(&unit)?);
        }
        // Asked again after the signals are on.
        let state = self.manager.units(&[&unit])?;
        if state.first().is_some_and(|u| u.job != 0) {
            return self.wait_for(&unit);
        }
        let works =
            state.first().is_some_and(|u| crate::stacks::phase_of_hotplug(u) == Phase::Starting);
        if !works || self.wait(self.deadline, &mut changes, watch)? {
            return Ok(Next::Again);
        }
        Ok(self.failed(&format!(
            "{unit} is still at it at the deadline (network.deadline): systemctl status '{unit}'"
        )))
    }

    /// After a unit that should have brought it up.
    fn after(&mut self, unit: &str, end: JobEnd) -> Next {
        match end {
            JobEnd::Done => Next::Again,
            JobEnd::Failed => self.failed(&format!("{unit} failed: journalctl -u '{unit}'")),
            JobEnd::Pending => self.failed(&format!(
                "{unit} has not ended at the deadline (network.deadline): journalctl -u '{unit}'"
            )),
        }
    }

    /// `ifup`, in a unit of its own: a DHCP client that it starts outlives us.
    fn ifup(&mut self, decision: &Decision) -> anyhow::Result<Next> {
        let before = self.acted.replace(decision.action);
        let name = self.interface.name.as_str().to_owned();
        let program = |name: &str| match process::find(name) {
            Some(path) => Ok(path.display().to_string()),
            None => Err(anyhow::anyhow!("{}: there is no {name} program", decision.why)),
        };
        let ifup = program("ifup")?;
        let (what, command) = match decision.action {
            Action::IfupAgain => ("ifup", vec![ifup, "--force".to_owned(), name.clone()]),
            // The names are arguments of the script, not words in it.
            Action::IfupAnew => {
                let script = r#""$1" --force "$3"; exec "$2" "$3""#;
                let words = ["/bin/sh", "-c", script, "sh", &program("ifdown")?, &ifup, &name];
                ("ifdown, then ifup", words.map(str::to_owned).to_vec())
            }
            _ => ("ifup", vec![ifup, name.clone()]),
        };
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        // Its index tells it from a former interface of that name.
        let unit = format!("ibprov-ifup-{}-{}.service", unit_escape(&name), self.interface.ifindex);
        // One that was begun by a run of ours that was killed goes on.
        let state = self.manager.units(&[&unit])?;
        match state.first().map(crate::stacks::phase_of_unit) {
            Some(Phase::Starting | Phase::Queued) => {
                self.acted = before;
                return self.wait_for(&unit);
            }
            Some(Phase::Active | Phase::Stopped) => {
                self.manager.stop(&unit, self.deadline)?;
            }
            _ => {}
        }
        let description = format!("ifup {name}, which its network service has missed");
        let device = format!("sys-subsystem-net-devices-{}.device", unit_escape(&name));
        journal::emit(
            kinds::IFUP,
            Level::Info,
            &format!("{name}: {}: running {what}", decision.why),
            &[("IBPROV_NETDEV", name.clone()), ("IBPROV_UNIT", unit.clone())],
        );
        let left = self.deadline.saturating_sub(clock::monotonic_usec());
        let apart = Apart {
            name: &unit,
            description: &description,
            command: &command,
            device: &device,
            timeout_usec: left,
        };
        let end = self.manager.run_apart(&apart, self.deadline)?;
        Ok(self.after(&unit, end))
    }

    /// A stack that takes interfaces by itself: see that it does.
    fn verify(
        &mut self,
        live: &Live,
        decision: &Decision,
        changes: &mut [Changes],
        watch: &mut LinkWatch,
    ) -> anyhow::Result<Next> {
        let failed = match decision.stack {
            Some(Stack::NetworkManager) => {
                let device = live.network_manager.clone().unwrap_or_default();
                if device.state == 100 {
                    return Ok(Next::End(BringUp::Up));
                }
                device.state == 120
            }
            Some(Stack::SystemdNetworkd) => {
                let link = live.networkd.clone().unwrap_or_default();
                if link.state == "configured" && self.interface.up {
                    return Ok(Next::End(BringUp::Up));
                }
                link.state == "failed"
            }
            _ if self.interface.up => return Ok(Next::End(BringUp::Up)),
            _ => false,
        };
        let stack = decision.stack.map(Stack::word).unwrap_or_default();
        if failed {
            return Ok(self.failed(&format!("{stack} tried and failed: {}", decision.why)));
        }
        if self.wait(self.deadline, changes, watch)? {
            return Ok(Next::Again);
        }
        if self.interface.up && !self.interface.carrier {
            return Ok(Next::End(BringUp::Waiting));
        }
        Ok(self.failed(&format!(
            "{stack} has not brought it up by the deadline (network.deadline): {}",
            decision.why
        )))
    }

    /// Wait until something changes; false at `until`.
    fn wait(
        &mut self,
        until: u64,
        changes: &mut [Changes],
        watch: &mut LinkWatch,
    ) -> anyhow::Result<bool> {
        match self.manager.bus() {
            Some(bus) if !changes.is_empty() => Ok(bus.wait(changes, until)?),
            _ => Ok(watch.wait(until)?),
        }
    }
}

/// The interface is down and has addresses.
fn is_addressed(interface: &Interface) -> anyhow::Result<bool> {
    if interface.up {
        return Ok(false);
    }
    let addresses = netlink::global_addresses()
        .map_err(|e| anyhow::anyhow!("ask for its addresses by rtnetlink: {}", answer(&e)))?;
    Ok(addresses.iter().any(|(ifindex, ..)| *ifindex == interface.ifindex))
}

/// A stack that runs has not made up its mind.
fn undecided(live: &Live) -> bool {
    let nm = live.network_manager.as_ref();
    nm.is_some_and(|d| matches!(d.state, 0..=30))
        || live.networkd.as_ref().is_some_and(networkd::Link::is_undecided)
}

fn tell(report: &IfaceReport) {
    let stack = report.decision.as_ref().and_then(|d| d.stack);
    let fields = [
        ("IBPROV_NETDEV", report.netdev.clone()),
        ("IBPROV_STACK", stack.map(|s| s.to_string()).unwrap_or_default()),
        ("IBPROV_CAUSE", report.failures.join("; ")),
    ];
    let (kind, level) = match report.bring_up {
        BringUp::Failed => (kinds::IFACE_FAILED, Level::Error),
        BringUp::Waiting => (kinds::IFACE_DONE, Level::Warn),
        _ => (kinds::IFACE_DONE, Level::Info),
    };
    let count = if report.failures.is_empty() { 2 } else { 3 };
    let text = report.to_text();
    journal::emit(kind, level, text.trim_end(), fields.get(..count).unwrap_or_default());
}

/// Every stack's view and the decision, for `--dry-run`.
///
/// # Errors
/// systemd or the bus does not answer.
pub fn explain(
    root: &Root,
    interface: &Interface,
    no_bus: bool,
) -> anyhow::Result<(String, Vec<View>, Decision)> {
    let (mut manager, states) = ask_systemd(interface, no_bus)?;
    let (mut live, _) = live(root, &mut manager, &states, interface)?;
    live.addressed = is_addressed(interface)?;
    let views = views(root, interface, &states, &live);
    let decision = decide(&views, interface);
    Ok((manager.way, views, decision))
}
