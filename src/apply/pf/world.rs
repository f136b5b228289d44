//! A PF's machine that has a time of its own, for tests: a kernel, udev, a child whose requests
//! take their time, and faults at moments that are drawn. What a run comes to is judged by what
//! this machine is then, not by what the run says.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::io;

use proptest::prelude::*;

use super::machine::{Ear, Machine, Responder};
use super::{NAMES, run_at};
use crate::host::KernelLine;
use crate::host::events::Happened;
use crate::host::netlink::VfSetting;
use crate::ladder::vf::has_driver;
use crate::model::{Code, Finding, Refusal, Use, Verdict, WantedPf};
use crate::names::{
    BindOrder, LinkLayer, Moment, PciAddress, Policy, PortNumber, RdmaName, VfDriver, VfIndex,
    VfName, VfNames, is_vfio, usec,
};
use crate::observe::administered::AdministeredVf;
use crate::observe::{Backend, ObservedPf, Undo, VfDevices};
use crate::plan::vf::kernel::{self, HOST, Kernel};
use crate::workers::undo::{UndoRecord, restore};
use crate::workers::{Answer, Reply, Request};

const MSEC: u64 = 1_000;
const BEGIN: u64 = 1_000_000 * MSEC;
const LIMIT: u64 = 60_000 * MSEC;
/// So many requests the child works on at the same time.
const AT_ONCE: usize = 8;

/// How long after its deadline, or a signal, a run may still put things back and look.
const GRACE: u64 = 4_000 * MSEC;

/// The child of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChildIs {
    Absent,
    AtWork,
    /// The run is gone: what was begun comes to its end, and then what it has left is put back.
    Ending,
    /// It was killed. What the kernel has begun it brings to its end.
    Killed,
}

/// Who has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// A run of which nothing else is known.
    Other,
    Run,
}

/// What happens to the machine, whatever the run does.
#[derive(Debug, Clone)]
enum Fault {
    /// Somebody begins to use a VF.
    Use(usize),
    /// The PF's driver goes, with the VFs, and comes back so much later.
    Reload(u64),
    Unplug,
    /// The RDMA device of the PF goes, and with it for so long the link layer.
    NotReady(u64),
    /// udev has so long to do.
    Udev(u64),
    KernelLine,
    Stop,
}

/// How a run ends that does not come to its end.
#[derive(Debug, Clone, Copy)]
struct Kill {
    /// Before it goes through its door so many times.
    doors: u32,
    /// Its child is killed too.
    and_child: bool,
}

#[derive(Debug, Clone)]
struct Story {
    before: Kernel,
    wanted: WantedPf,
    /// The PF is administered by netlink.
    netlink: bool,
    /// How long requests, devices and udev take, one after the other.
    latencies: Vec<u64>,
    /// What happens, so many microseconds after the begin.
    faults: Vec<(u64, Fault)>,
    /// The changes that are refused, and those that hang, by their number.
    refused: Option<usize>,
    hung: Option<usize>,
    /// The VF whose netdev never comes.
    lost: Option<usize>,
    /// Another run has the lock for so long.
    busy: u64,
    kill: Option<Kill>,
}

#[derive(Debug)]
enum Event {
    Finish(Job),
    /// Devices of a VF come or are named.
    Device(&'static str, usize),
    Fault(Fault),
    DriverBack,
    Ready,
    /// The run that had the lock has ended.
    Unlock,
    Nothing,
}

#[derive(Debug, Clone)]
struct Job {
    who: Responder,
    number: u64,
    request: Request,
}

/// When what a VF shows came or comes.
#[derive(Debug, Clone, Copy, Default)]
struct Devices {
    rdma: u64,
    netdev: u64,
    named: u64,
}

#[derive(Debug)]
struct World {
    now: u64,
    kernel: Kernel,
    driver: bool,
    present: bool,
    ready: bool,
    netlink: bool,
    /// `driver_override` of the VFs, as the site has it.
    overrides: Vec<String>,
    devices: Vec<Devices>,
    rules: BTreeMap<PciAddress, VfNames>,
    udev_until: u64,
    /// `/run/ibprov/pf/PCI.undo`.
    file: Undo,
    lock: Option<Holder>,
    timeline: BTreeMap<(u64, u64), Event>,
    latencies: VecDeque<u64>,
    numbers: u64,
    heard: Happened,
    hears_devices: bool,
    hears_locks: bool,
    queue: VecDeque<Job>,
    at_work: usize,
    hanging: Vec<Job>,
    replies: Vec<(Responder, u64, Reply)>,
    doors: u32,
    kill: Option<Kill>,
    is_killed: bool,
    child: ChildIs,
    refused: Option<usize>,
    hung: Option<usize>,
    lost: Option<usize>,
    /// What was changed since the last event that can undo it.
    changes: Vec<Request>,
    number_of_changes: usize,
    /// When something happened last that a run can wait for; that undid what was there; and when
    /// the run last saw the machine.
    last_event: u64,
    last_fault: u64,
    last_seen: u64,
    stopped: Option<u64>,
    /// What no run may do, which was done.
    wrong: Vec<String>,
    story: Vec<String>,
    deadline: u64,
}

impl World {
    fn new(story: &Story) -> Self {
        let mut world = Self {
            now: BEGIN,
            devices: vec![Devices::default(); usize::from(story.before.total)],
            kernel: story.before.clone(),
            driver: true,
            present: true,
            ready: true,
            netlink: story.netlink,
            overrides: story.before.vfs.iter().map(|vf| vf.driver_override.clone()).collect(),
            rules: BTreeMap::new(),
            udev_until: 0,
            file: Undo::default(),
            lock: (story.busy > 0).then_some(Holder::Other),
            timeline: BTreeMap::new(),
            latencies: story.latencies.iter().copied().collect(),
            numbers: 0,
            heard: Happened::default(),
            hears_devices: false,
            hears_locks: false,
            queue: VecDeque::new(),
            at_work: 0,
            hanging: Vec::new(),
            replies: Vec::new(),
            doors: 0,
            kill: story.kill,
            is_killed: false,
            child: ChildIs::Absent,
            refused: story.refused,
            hung: story.hung,
            lost: story.lost,
            changes: Vec::new(),
            number_of_changes: 0,
            last_event: BEGIN,
            last_fault: 0,
            last_seen: 0,
            stopped: None,
            wrong: Vec::new(),
            story: Vec::new(),
            deadline: 0,
        };
        for (at, fault) in &story.faults {
            world.at(BEGIN + at, Event::Fault(fault.clone()));
        }
        if story.busy > 0 {
            world.at(BEGIN + story.busy, Event::Unlock);
        }
        world
    }

    fn tell(&mut self, what: impl Display) {
        let msec = (self.now - BEGIN) / MSEC;
        self.story.push(format!("{}.{:03} s: {what}", msec / 1000, msec % 1000));
    }

    fn told(&self) -> String {
        self.story.iter().rev().take(20).rev().map(|line| format!("\n    {line}")).collect()
    }

    fn latency(&mut self) -> u64 {
        self.latencies.rotate_left(1);
        self.latencies.front().copied().unwrap_or(MSEC)
    }

    fn at(&mut self, at: u64, event: Event) {
        self.numbers += 1;
        self.timeline.insert((at, self.numbers), event);
    }

    /// Let what is due by `until` happen, up to the first thing for which `is_enough` is true.
    fn pass(&mut self, until: u64, is_enough: impl Fn(&Self) -> bool) {
        while !is_enough(self) {
            let due = self.timeline.first_entry().filter(|entry| entry.key().0 <= until);
            let Some(((at, _), event)) = due.map(|entry| entry.remove_entry()) else {
                self.now = self.now.max(until);
                return;
            };
            self.now = self.now.max(at);
            self.happen(event);
        }
    }

    fn door(&mut self) {
        self.doors += 1;
        assert!(self.doors < 5_000, "the run comes to no end:{}", self.told());
    }

    fn device_event(&mut self) {
        // Any device event will do: what it tells is not read.
        self.heard.udev_overrun |= self.hears_devices;
    }

    fn happen(&mut self, event: Event) {
        self.last_event = self.now;
        match event {
            Event::Finish(job) => self.finish(&job),
            Event::Device(what, vf) => {
                self.tell(format!("VF {vf}: {what}"));
                self.device_event();
            }
            Event::DriverBack => {
                self.tell("the PF has its driver again".to_owned());
                self.driver = true;
                self.device_event();
            }
            Event::Ready => {
                self.tell("the PF has its RDMA device again".to_owned());
                self.ready = true;
                self.device_event();
            }
            Event::Unlock => {
                self.tell("the lock is released".to_owned());
                self.unlock();
            }
            Event::Nothing => {}
            Event::Fault(fault) => {
                self.tell(format!("{fault:?}"));
                match fault {
                    Fault::Use(vf) => {
                        if let Some(vf) = self.kernel.vfs.get_mut(vf) {
                            vf.in_use |= vf.driver.is_some();
                        }
                        self.last_fault = self.now;
                    }
                    Fault::Reload(back) => {
                        self.lose_vfs();
                        self.driver = false;
                        self.at(self.now + back, Event::DriverBack);
                    }
                    Fault::Unplug => {
                        self.lose_vfs();
                        (self.driver, self.present) = (false, false);
                    }
                    Fault::NotReady(back) => {
                        self.ready = false;
                        self.last_fault = self.now;
                        self.at(self.now + back, Event::Ready);
                    }
                    Fault::Udev(long) => {
                        self.udev_until = self.udev_until.max(self.now + long);
                        self.at(self.udev_until, Event::Nothing);
                    }
                    Fault::KernelLine => self.heard.kernel.push(KernelLine {
                        at: Moment::from_usec(self.now),
                        level: 4,
                        text: "audit: something".to_owned(),
                    }),
                    Fault::Stop => {
                        self.heard.stop = true;
                        self.stopped = Some(self.now);
                    }
                }
            }
        }
    }

    fn lose_vfs(&mut self) {
        self.kernel.vfs.clear();
        self.overrides.clear();
        self.changes.clear();
        self.last_fault = self.now;
        self.device_event();
    }

    fn vf(&self, pci: PciAddress) -> Option<usize> {
        (0..self.kernel.vfs.len()).find(|n| kernel::pci(*n) == pci)
    }

    // The child.

    fn changes(request: &Request) -> bool {
        match request {
            Request::Each(each) => each.iter().any(Self::changes),
            Request::Write { .. } | Request::SetVf { .. } | Request::Bind { .. } => true,
            _ => false,
        }
    }

    /// What it binds to which driver.
    fn bound(request: &Request) -> Option<(PciAddress, &str)> {
        let Request::Each(each) = request else { return None };
        each.iter().find_map(|one| match one {
            Request::Bind { pci, driver, .. } => Some((*pci, driver.as_str())),
            _ => None,
        })
    }

    fn is_restore(request: &Request) -> bool {
        match request {
            Request::Each(each) => each.iter().all(Self::is_restore),
            request => matches!(request, Request::Restore { .. }),
        }
    }

    fn work(&mut self) {
        while self.at_work < AT_ONCE {
            let Some(job) = self.queue.pop_front() else { return };
            self.begin(job);
        }
    }

    fn begin(&mut self, job: Job) {
        self.at_work += 1;
        if let Some((pci, driver)) = Self::bound(&job.request)
            && let Some(vf) = self.vf(pci)
        {
            self.kernel.vfs[vf].driver_override = driver.to_owned();
        }
        // The write of that attribute takes no lock, and no time.
        let is_at_once = format!("{:?}", job.request).contains("sriov_drivers_autoprobe");
        let is_change = Self::changes(&job.request) && !is_at_once;
        self.number_of_changes += usize::from(is_change);
        // A probe has the lock of its VF.
        let needs_device = matches!(job.request, Request::Override(_))
            || Self::is_restore(&job.request)
                && format!("{:?}", job.request).contains("driver_override");
        let is_at = |pci: PciAddress| format!("{:?}", job.request).contains(&pci.to_string());
        let probes = self.hanging.iter().filter_map(|hanging| Self::bound(&hanging.request));
        let waits_for_a_probe = needs_device && probes.map(|(pci, _)| pci).any(is_at);
        if is_change && self.hung == Some(self.number_of_changes) || waits_for_a_probe {
            self.tell(format!("hangs: {}", short(&job.request)));
            self.hanging.push(job);
            return;
        }
        let mut at = self.now + if is_at_once { 0 } else { self.latency() };
        if matches!(job.request, Request::IpoibNetdevs(_)) {
            // It waits for registrations of RDMA devices.
            let comes = self.devices.iter().map(|devices| devices.netdev);
            at = comes.filter(|at| *at < u64::MAX).fold(at, u64::max);
        }
        self.at(at, Event::Finish(job));
    }

    fn finish(&mut self, job: &Job) {
        self.at_work -= 1;
        let is_refused = Self::changes(&job.request) && {
            let number = self.refused.as_mut().map(|number| {
                *number = number.wrapping_sub(1);
                *number
            });
            number == Some(0)
        };
        let answer = self.perform(&job.request, is_refused);
        let answer = answer.map_err(crate::workers::Failure::Refused);
        if self.child == ChildIs::AtWork {
            self.replies.push((job.who, job.number, answer));
        }
        self.work();
        self.end_child();
    }

    /// Once nothing is at work, put back what the run has left.
    fn end_child(&mut self) {
        if self.child != ChildIs::Ending || self.at_work > 0 {
            return;
        }
        let mut record = UndoRecord::of(kernel::pf(), self.file.clone());
        for step in record.steps() {
            if let Some(request) = restore(kernel::pf(), &step) {
                self.tell(format!("the child: {step}"));
                drop(self.perform(&request, false));
                record.forget(&step);
            }
        }
        self.file = record.undo().clone();
        self.child = ChildIs::Absent;
        self.unlock();
    }

    fn unlock(&mut self) {
        self.lock = None;
        self.heard.files |= self.hears_locks;
    }

    /// The process of the run ends, and its child does or is killed too. The faults are over.
    fn end_run(&mut self, is_child_killed: bool) {
        let how = if self.is_killed { "is killed" } else { "ends" };
        self.tell(format!(
            "the run {how}{}",
            if is_child_killed { ", with its child" } else { "" }
        ));
        self.queue.clear();
        self.replies.clear();
        (self.refused, self.hung, self.lost, self.kill) = (None, None, None, None);
        self.timeline.retain(|_, event| {
            !matches!(event, Event::Fault(_) | Event::DriverBack | Event::Ready)
        });
        (self.driver, self.ready, self.is_killed) = (true, true, false);
        let hanging = std::mem::take(&mut self.hanging);
        if is_child_killed && self.child == ChildIs::AtWork {
            self.child = ChildIs::Killed;
            self.at_work -= hanging.len();
            for job in hanging {
                drop(self.perform(&job.request, true));
            }
            self.pass(u64::MAX / 2, |world| world.at_work == 0);
            self.child = ChildIs::Absent;
            self.unlock();
        } else if self.child == ChildIs::AtWork {
            self.child = ChildIs::Ending;
            let late = self.now + 1_000 * MSEC;
            for job in hanging {
                self.at(late, Event::Finish(job));
            }
            self.end_child();
        }
        self.heard = Happened::default();
        (self.hears_devices, self.hears_locks) = (false, false);
        (self.last_fault, self.doors, self.stopped) = (0, 0, None);
        self.changes.clear();
    }

    fn refuse(what: &Request) -> Refusal {
        Refusal { tried: short(what), errno: Some(5), said: "EIO: Input/output error".to_owned() }
    }

    fn perform(&mut self, request: &Request, is_refused: bool) -> Result<Answer, Refusal> {
        if let Request::Each(each) = request {
            return Ok(Answer::Each(
                each.iter().map(|one| self.perform(one, is_refused)).collect(),
            ));
        }
        if let Request::Write { unless_used, .. } = request {
            let used = unless_used
                .iter()
                .filter(|pci| self.vf(**pci).is_some_and(|vf| self.kernel.vfs[vf].in_use));
            let used: Vec<_> = used.map(|pci| (*pci, vec![in_use()])).collect();
            if !used.is_empty() {
                return Ok(Answer::InUse(used));
            }
        }
        if Self::changes(request) {
            self.tell(format!("{}{}", short(request), if is_refused { " is refused" } else { "" }));
            if self.child == ChildIs::AtWork {
                if self.changes.contains(request) {
                    self.wrong.push(format!("done twice: {}", short(request)));
                }
                self.changes.push(request.clone());
            }
        }
        match request {
            Request::Administered(all) if self.driver => {
                let vf = |(index, _): &(VfIndex, PciAddress)| {
                    let index_of = usize::from(index.get());
                    let has_it = index_of < self.kernel.vfs.len();
                    let admin = *self.kernel.admin.get(index_of).filter(|_| has_it)?;
                    let vf = VfName { pf: kernel::pf(), index: *index };
                    Some(AdministeredVf { vf, admin, problems: Vec::new() })
                };
                Ok(Answer::Administered(all.iter().flat_map(|q| &q.vfs).filter_map(vf).collect()))
            }
            Request::Override(pci) => {
                let vf = self.vf(*pci).ok_or_else(|| Self::refuse(request))?;
                let set = self.kernel.vfs[vf].driver_override.clone();
                Ok(Answer::Override(Some(set).filter(|set| !set.is_empty())))
            }
            Request::Uses(all) => {
                let is_used =
                    |pci: &PciAddress| self.vf(*pci).is_some_and(|vf| self.kernel.vfs[vf].in_use);
                let uses = |pci| if is_used(pci) { vec![in_use()] } else { Vec::new() };
                Ok(Answer::Uses(all.iter().map(uses).collect()))
            }
            Request::IpoibNetdevs(all) => {
                let count = |name: &RdmaName| {
                    let vf = name.as_str().strip_prefix("mlx5_")?.parse::<usize>().ok()?;
                    let has_failed = self.kernel.vfs.get(vf)?.ipoib_failed;
                    Some(usize::from(!has_failed && self.devices[vf].netdev <= self.now))
                };
                Ok(Answer::IpoibNetdevs(all.iter().map(count).collect()))
            }
            Request::Write { path, value, .. } | Request::Restore { path, value } => {
                self.write(request, path, value, is_refused)
            }
            Request::SetVf { vf, setting, .. } if !is_refused && self.driver => {
                let admin = self.kernel.admin.get_mut(usize::from(vf.get()));
                let admin = admin.ok_or_else(|| Self::refuse(request))?;
                match setting {
                    VfSetting::NodeGuid(guid) => admin.node_guid = Some(*guid),
                    VfSetting::PortGuid(guid) => admin.port_guid = Some(*guid),
                    VfSetting::Policy(policy) => admin.policy = Some(*policy),
                }
                Ok(Answer::Done)
            }
            Request::Bind { pci, driver, before, .. } => {
                let vf = self.vf(*pci).ok_or_else(|| Self::refuse(request))?;
                let read = self.kernel.admin[vf];
                let state = &mut self.kernel.vfs[vf];
                if self.child != ChildIs::Killed {
                    state.driver_override.clone_from(before);
                }
                if is_refused || state.driver.is_some() {
                    return Err(Self::refuse(request));
                }
                (state.driver, state.read) = (Some(driver.clone()), read);
                self.devices_come(vf);
                Ok(Answer::Bound(self.own(vf)))
            }
            _ => Err(Self::refuse(request)),
        }
    }

    fn write(
        &mut self,
        request: &Request,
        path: &str,
        value: &str,
        is_refused: bool,
    ) -> Result<Answer, Refusal> {
        let refused = || Err(Self::refuse(request));
        let names: Vec<&str> = path.split('/').skip(1).collect();
        if is_refused || !self.present {
            return refused();
        }
        match *names.as_slice() {
            [.., "sriov_drivers_autoprobe"] => self.kernel.autoprobe = value == "1",
            [.., "sriov_numvfs"] if self.driver => {
                if self.kernel.vfs.iter().any(|vf| vf.in_use) {
                    self.wrong.push("a VF in use was destroyed".to_owned());
                }
                let number: usize = value.parse().expect("a number");
                let autoprobe = self.kernel.autoprobe;
                self.kernel.make(number, autoprobe);
                self.overrides = vec![String::new(); number];
                (0..number).filter(|_| autoprobe).for_each(|vf| self.devices_come(vf));
                self.device_event();
            }
            [.., "drivers", driver, "unbind"] => {
                let vf = value.parse().ok().and_then(|pci| self.vf(pci));
                let Some(vf) = vf else { return refused() };
                let state = &mut self.kernel.vfs[vf];
                if state.in_use {
                    self.wrong.push(format!("VF {vf} in use was unbound"));
                }
                if state.driver.as_deref() != Some(driver) {
                    return refused();
                }
                (state.driver, state.half_bound, state.ipoib_failed) = (None, false, false);
                self.device_event();
            }
            [.., pci, "driver_override"] => {
                let vf = pci.parse().ok().and_then(|pci| self.vf(pci));
                // What is gone needs nothing.
                let Some(vf) = vf else { return Ok(Answer::Done) };
                self.kernel.vfs[vf].driver_override = value.trim_end().to_owned();
            }
            [.., "sriov", vf, what] if self.driver => {
                let admin = vf.parse().ok().and_then(|vf: usize| self.kernel.admin.get_mut(vf));
                let Some(admin) = admin else { return refused() };
                match what {
                    "node" => admin.node_guid = value.parse().ok(),
                    "port" => admin.port_guid = value.parse().ok(),
                    _ => admin.policy = Policy::from_word(value),
                }
            }
            _ => return refused(),
        }
        Ok(Answer::Done)
    }

    /// The driver of a VF has bound it.
    fn devices_come(&mut self, vf: usize) {
        if self.kernel.vfs[vf].driver.as_deref() != Some(HOST) {
            return;
        }
        let rdma = self.now + self.latency();
        let mut netdev = rdma + self.latency();
        let named = netdev + self.latency();
        self.at(rdma, Event::Device("its RDMA device comes", vf));
        if self.lost == Some(vf) {
            netdev = u64::MAX;
        } else {
            self.at(netdev, Event::Device("its netdev comes", vf));
            self.at(named, Event::Device("udev has named it", vf));
            self.udev_until = self.udev_until.max(named);
        }
        self.devices[vf] = Devices { rdma, netdev, named };
    }

    // What is seen.

    fn observe(&self) -> ObservedPf {
        let mut seen = self.kernel.observe();
        seen.undo = Undo::default();
        for (n, vf) in seen.vfs.iter_mut().enumerate() {
            let Devices { rdma, netdev, named } = self.devices[n];
            vf.admin = Default::default();
            vf.driver_override = None;
            vf.ipoib_failed = false;
            vf.own = vf.own.take().filter(|_| rdma <= self.now);
            let Some(own) = &mut vf.own else { continue };
            if netdev > self.now {
                (own.netdev, own.netdev_guid) = (None, None);
            }
            let name = self.rules.get(&vf.pci).and_then(|names| names.netdev.clone());
            if own.netdev.is_some() && named <= self.now && name.is_some() {
                own.netdev = name;
            }
        }
        ObservedPf {
            present: self.present,
            driver: Some(HOST.to_owned()).filter(|_| self.driver),
            link_layer: Some(LinkLayer::InfiniBand).filter(|_| self.driver && self.ready),
            backend: match self.netlink {
                true => Backend::Netlink { ifindex: Some(7).filter(|_| self.driver && self.ready) },
                false => Backend::OfedSysfs,
            },
            autoprobe: Some(self.kernel.autoprobe).filter(|_| self.present),
            ..seen
        }
    }

    /// What a VF shows, if that is all.
    fn own(&self, vf: usize) -> Option<VfDevices> {
        let own = self.observe().vfs.get(vf)?.own.clone()?;
        own.netdev.is_some().then_some(own)
    }

    /// Why the machine is not as it was wanted to be.
    fn lacks(&self, story: &Story) -> Vec<String> {
        let mut lacks = self.left(story);
        let wanted = &story.wanted.vfs;
        if self.kernel.vfs.len() != wanted.len() {
            lacks.push(format!("{} VFs instead of {}", self.kernel.vfs.len(), wanted.len()));
        }
        for ((n, want), vf) in wanted.iter().enumerate().zip(&self.observe().vfs) {
            let (admin, state) = (&self.kernel.admin[n], &self.kernel.vfs[n]);
            let target = match want.driver {
                VfDriver::Host => Some(HOST),
                VfDriver::VfioPci => Some("vfio-pci"),
                VfDriver::None => None,
            };
            let is_on_vfio = vf.driver.as_deref().is_some_and(is_vfio) && target.is_some();
            let mut say = |what: &str| lacks.push(format!("VF {n}: {what}"));
            if (admin.node_guid, admin.port_guid) != (Some(want.node_guid), Some(want.port_guid)) {
                say("other GUIDs at the PF");
            }
            if admin.policy != Some(want.policy) {
                say("another link state");
            }
            if !is_on_vfio && !has_driver(vf.driver.as_deref(), target) {
                say("another driver");
            }
            if vf.driver.as_deref() != Some(HOST) {
                continue;
            }
            let read = (state.read.node_guid, state.read.port_guid);
            if read != (Some(want.node_guid), Some(want.port_guid)) {
                say("it shows other GUIDs");
            }
            match vf.own.as_ref().map(|own| &own.netdev) {
                None => say("no RDMA device"),
                Some(None) => say("no netdev"),
                Some(name) if want.names.netdev.is_some() && *name != want.names.netdev => {
                    say("another name");
                }
                Some(_) => {}
            }
        }
        lacks
    }

    /// What was changed for the time of the work and is not as the site had it.
    fn left(&self, story: &Story) -> Vec<String> {
        let mut left = Vec::new();
        if self.present && self.kernel.autoprobe != story.before.autoprobe {
            left.push("sriov_drivers_autoprobe is left".to_owned());
        }
        if !self.file.is_empty() {
            left.push(format!("the record is left: {:?}", self.file));
        }
        for ((n, vf), before) in self.kernel.vfs.iter().enumerate().zip(&self.overrides) {
            if vf.driver_override != *before {
                left.push(format!("driver_override of VF {n} is {:?}", vf.driver_override));
            }
        }
        left
    }
}

fn in_use() -> Use {
    Use::Unknown { why: "test".to_owned() }
}

fn short(request: &Request) -> String {
    match request {
        Request::Write { path, value, .. } | Request::Restore { path, value } => {
            format!("{} to {}", value.trim_end(), path.trim_start_matches("/sys/bus/pci/"))
        }
        request => format!("{request:?}").replace("PciAddress", ""),
    }
}

impl Machine for &mut World {
    fn now(&self) -> Moment {
        Moment::from_usec(self.now)
    }

    fn lock(&mut self, _: &mut Vec<String>) -> Option<Finding> {
        if self.lock.is_some() {
            return Some(Finding::error(Code::VfPlanBlocked, "process 7 is at work".to_owned()));
        }
        self.lock = Some(Holder::Run);
        None
    }

    fn start(&mut self) -> io::Result<()> {
        self.child = ChildIs::AtWork;
        Ok(())
    }

    fn wait(&mut self, until: Moment, ear: Ear) -> io::Result<Happened> {
        self.door();
        self.is_killed |= self.kill.is_some_and(|kill| self.doors > kill.doors);
        if self.is_killed {
            return Err(io::Error::other("killed"));
        }
        let until = until.usec();
        assert!(until < BEGIN + 10 * LIMIT, "nothing ends this wait:{}", self.told());
        let has_come = |world: &World| match ear {
            Ear::All => world.heard != Happened::default(),
            Ear::Replies(who) => {
                world.heard.stop || world.replies.iter().any(|(of, ..)| *of == who)
            }
        };
        self.pass(until, has_come);
        Ok(match ear {
            Ear::All => std::mem::take(&mut self.heard),
            Ear::Replies(_) => {
                Happened { stop: std::mem::take(&mut self.heard.stop), ..Happened::default() }
            }
        })
    }

    fn listen_to_locks(&mut self) -> bool {
        !std::mem::replace(&mut self.hears_locks, true)
    }

    fn listen_to_devices(&mut self) -> bool {
        !std::mem::replace(&mut self.hears_devices, true)
    }

    fn ask(&mut self, who: Responder, request: &Request) -> u64 {
        self.door();
        let end = self.stopped.map_or(self.deadline, |at| self.deadline.min(at + 20 * MSEC));
        // From one number of VFs to another the way is by none, in one step.
        let is_second_half = short(request).contains("sriov_numvfs");
        if World::changes(request) && !is_second_half && self.now > end {
            self.wrong.push(format!("begun after the end: {}", short(request)));
        }
        self.numbers += 1;
        let number = self.numbers;
        let job = Job { who, number, request: request.clone() };
        if World::is_restore(request) {
            self.begin(job);
        } else {
            self.queue.push_back(job);
            self.work();
        }
        number
    }

    fn replies(&mut self, who: Responder) -> Vec<(u64, Reply)> {
        let now = self.now;
        self.last_seen = now;
        let (come, rest) =
            std::mem::take(&mut self.replies).into_iter().partition(|(of, ..)| *of == who);
        self.replies = rest;
        let come: Vec<(Responder, u64, Reply)> = come;
        come.into_iter().map(|(_, number, reply)| (number, reply)).collect()
    }

    fn child(&self) -> Option<u32> {
        Some(8)
    }

    fn look(&mut self, _: &mut Vec<String>) -> ObservedPf {
        self.door();
        let until = self.now + 5 * MSEC;
        self.pass(until, |_| false);
        self.last_seen = self.now;
        self.observe()
    }

    fn look_at_vfs(&mut self, pf: ObservedPf, _: &mut Vec<String>) -> Option<ObservedPf> {
        Some(ObservedPf { vfs: self.observe().vfs, ..pf })
    }

    fn autoprobe(&mut self) -> Option<bool> {
        Some(self.kernel.autoprobe).filter(|_| self.present)
    }

    fn without_netdev(&mut self, pf: &ObservedPf) -> Vec<(VfIndex, RdmaName)> {
        let own = pf.vfs.iter().filter_map(|vf| Some((vf.index, vf.own.as_ref()?)));
        let lacking = own.filter(|(_, own)| own.netdev.is_none());
        lacking.map(|(index, own)| (index, own.rdma.clone())).collect()
    }

    fn read_names(&mut self, pf: &mut ObservedPf, _: &mut Vec<String>) {
        for (vf, now) in pf.vfs.iter_mut().zip(self.observe().vfs) {
            if let (Some(own), Some(now)) = (&mut vf.own, now.own)
                && own.netdev.is_some()
            {
                own.netdev = now.netdev;
            }
        }
    }

    fn has_vf(&self, index: u16) -> bool {
        usize::from(index) < self.kernel.vfs.len()
    }

    fn is_udev_settled(&self) -> bool {
        self.now >= self.udev_until
    }

    fn alias_entry(&self, _: &str, _: PciAddress, _: PortNumber) -> Option<String> {
        unreachable!("no mlx4 is here")
    }

    fn name_vfs(&mut self, names: &[(PciAddress, VfNames)]) -> Result<(), String> {
        self.rules = names.iter().cloned().collect();
        Ok(())
    }

    fn record(&mut self, _: &mut Vec<String>) -> UndoRecord {
        UndoRecord::of(kernel::pf(), self.file.clone())
    }

    fn write(&mut self, record: &UndoRecord) -> Result<(), String> {
        self.file = record.undo().clone();
        Ok(())
    }
}

fn story() -> impl Strategy<Value = Story> {
    let rare = || prop::bool::weighted(0.15);
    let at = || prop_oneof![0..8_000 * MSEC, 0..50 * MSEC];
    let back = || (1_u64..6_000).prop_map(|msec| msec * MSEC);
    let fault = prop_oneof![
        (0_usize..4).prop_map(Fault::Use),
        back().prop_map(Fault::Reload),
        Just(Fault::Unplug),
        back().prop_map(Fault::NotReady),
        back().prop_map(Fault::Udev),
        Just(Fault::KernelLine),
        Just(Fault::Stop),
    ];
    let latency = prop_oneof![Just(0), 1..20 * MSEC, 1..20 * MSEC, 1..2_500 * MSEC];
    let machine = (kernel::kernel(), any::<bool>(), prop::collection::vec(latency, 1..12));
    let wanted = (kernel::wanted(), any::<bool>(), rare());
    let faults = prop::collection::vec((at(), fault), 0..3);
    let some = || prop::option::weighted(0.2, 1_usize..12);
    let kill = prop::option::weighted(0.4, (0_u32..80, any::<bool>()));
    let rest = (some(), some(), prop::option::weighted(0.1, 0_usize..4), back(), rare(), kill);
    (machine, wanted, faults, rest).prop_map(
        |((before, netlink, latencies), (mut wanted, is_in_order, is_named), faults, rest)| {
            let (refused, hung, lost, busy, is_busy, kill) = rest;
            if is_in_order {
                wanted.binding.order = BindOrder::InOrder;
            }
            for vf in wanted.vfs.iter_mut().filter(|_| is_named) {
                vf.names.netdev = format!("ibv{}", vf.index.get()).parse().ok();
            }
            let busy = if is_busy { busy } else { 0 };
            let kill = kill.map(|(doors, and_child)| Kill { doors, and_child });
            let (refused, hung) = (refused, hung.filter(|_| refused.is_none()));
            Story { before, wanted, netlink, latencies, faults, refused, hung, lost, busy, kill }
        },
    )
}

/// Run it, run it once more on a machine that is well, and a third time.
fn is_good(story: &Story) -> Result<(), String> {
    let mut world = World::new(story);
    match world.run(story, true) {
        Ok(_) => {}
        Err(e) if !world.is_killed => return Err(format!("{e}:{}", world.told())),
        // Whoever has the lock until then is waited for.
        Err(_) => {}
    }
    let is_child_killed = world.is_killed && story.kill.is_some_and(|kill| kill.and_child);
    world.end_run(is_child_killed);
    // A machine that is well is quick enough for the plan: what it takes is below the deadline.
    for latency in &mut world.latencies {
        *latency = (*latency).min(500 * MSEC);
    }
    if !world.present {
        return Ok(());
    }
    for is_last in [false, true] {
        let say = |world: &World, what: String| Err(format!("{what}:{}", world.told()));
        let verdict = world.run(story, false).map_err(|e| format!("{e}:{}", world.told()))?;
        if is_last && !world.changes.is_empty() {
            let changes: Vec<String> = world.changes.iter().map(short).collect();
            return say(&world, format!("after a ready run one does {}", changes.join("; ")));
        }
        let is_used = world.kernel.vfs.iter().any(|vf| vf.in_use);
        let lacks = if is_used { world.left(story) } else { world.lacks(story) };
        if !(verdict == Verdict::Done || verdict == Verdict::Deferred && is_used)
            || !lacks.is_empty()
        {
            return say(&world, format!("the next run is {verdict:?}: {}", lacks.join("; ")));
        }
        world.end_run(false);
        if world.lock == Some(Holder::Run) {
            return say(&world, "the lock is left".to_owned());
        }
    }
    Ok(())
}

impl World {
    /// A run, and how it ends. Whether it was right is judged by what this machine is then.
    fn run(&mut self, story: &Story, is_first: bool) -> anyhow::Result<Verdict> {
        self.tell("a run begins".to_owned());
        let deadline = self.now + LIMIT;
        self.deadline = deadline;
        let (report, _) = run_at(&mut *self, &story.wanted, Moment::from_usec(deadline))?;
        self.tell(format!("it ends: {:?}", report.verdict));
        let end = self.stopped.unwrap_or(deadline).min(deadline);
        anyhow::ensure!(self.wrong.is_empty(), "{}", self.wrong.join("; "));
        anyhow::ensure!(self.now <= end + GRACE, "it ended {} ms late", (self.now - end) / MSEC);
        let is_given_up = !self.hanging.is_empty() || self.lost.is_some();
        let waited = self.now - self.last_event.max(deadline - LIMIT);
        anyhow::ensure!(
            is_given_up || waited < usec(NAMES) + 500 * MSEC,
            "it waited {} ms for nothing",
            waited / MSEC
        );
        let passes = |(_, fault): &(u64, Fault)| {
            matches!(fault, Fault::NotReady(_) | Fault::Udev(_) | Fault::KernelLine)
        };
        let is_well = story.refused.is_none() && !is_given_up && story.faults.iter().all(passes);
        let is_used = self.kernel.vfs.iter().any(|vf| vf.in_use);
        let lacks = self.lacks(story);
        anyhow::ensure!(
            !is_first || !is_well || is_used || report.verdict == Verdict::Done,
            "nothing is in its way, and it is {:?}: {}",
            report.verdict,
            lacks.join("; ")
        );
        let is_seen = self.last_fault == 0 || self.last_fault + 200 * MSEC < self.last_seen;
        anyhow::ensure!(
            report.verdict != Verdict::Done || lacks.is_empty() || !is_seen,
            "it is done, but {}",
            lacks.join("; ")
        );
        Ok(report.verdict)
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16 * ProptestConfig::default().cases,
        ..ProptestConfig::default()
    })]

    /// It ends when nothing is awaited any more, at the latest at its deadline; it is done only
    /// if the machine is as it was wanted; it takes no VF from who uses it; it does nothing twice;
    /// after a kill anywhere one more run gets there, and leaves nothing behind; and after that
    /// there is nothing to do.
    #[test]
    fn whatever_happens_a_run_tells_the_truth_and_the_next_one_gets_there(story in story()) {
        if let Err(why) = is_good(&story) {
            prop_assert!(false, "{why}");
        }
    }
}
