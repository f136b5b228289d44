//! The doors of a run at a PF: what it sees of this machine, hears of it and has done to it. Behind
//! them is [`Live`], or the world of a test.

use std::io;

use crate::host::events::{Events, Happened};
use crate::host::lock::{Held, LockError, Locks};
use crate::host::{Root, clock, persistent_names};
use crate::model::{Code, Finding, ToDo};
use crate::names::{Moment, PciAddress, PortNumber, RdmaName, VfIndex, VfNames};
use crate::observe::administered::alias_entries;
use crate::observe::pf::{self, dir};
use crate::observe::udev::is_settled;
use crate::observe::{Look, ObservedPf};
use crate::workers::undo::UndoRecord;
use crate::workers::{Client, Reply, Request};

/// Which child is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Responder {
    /// The one that holds the PF's lock.
    Child,
    /// One for RDMA netlink alone, so that a registration that hangs takes no thread of the other.
    RdmaNetlink,
}

/// What a wait listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ear {
    /// All that is listened to.
    All,
    /// Replies of this child, and signals. What else happens is kept for the next wait.
    Replies(Responder),
}

pub(super) trait Machine {
    /// Microseconds of CLOCK_MONOTONIC.
    fn now(&self) -> Moment;

    /// Take the PF's lock; who is at work there, if another process has it. Why the run goes on
    /// without a lock is added to `problems`.
    fn lock(&mut self, problems: &mut Vec<String>) -> Option<Finding>;

    /// Start the child, which holds the lock too. When this process has ended, by whatever end,
    /// it puts back what is left at the PF.
    fn start(&mut self) -> io::Result<()>;

    /// Wait until something happens, `until` at the latest.
    fn wait(&mut self, until: Moment, ear: Ear) -> io::Result<Happened>;

    /// Locks that are released are something that happens from now on; true if they were not
    /// before.
    fn listen_to_locks(&mut self) -> bool;

    /// Devices that come are something that happens from now on; true if they were not before.
    fn listen_to_devices(&mut self) -> bool;

    /// Ask a child for one thing. This does not wait; the number is that of the reply.
    fn ask(&mut self, who: Responder, request: &Request) -> u64;

    /// The replies that have come since the last call.
    fn replies(&mut self, who: Responder) -> Vec<(u64, Reply)>;

    /// The child's process id, while there is one.
    fn child(&self) -> Option<u32>;

    /// The PF and its VFs, as far as nobody waits for it.
    fn look(&mut self, problems: &mut Vec<String>) -> ObservedPf;

    /// As [`pf::look_at_vfs`].
    fn look_at_vfs(&mut self, pf: ObservedPf, problems: &mut Vec<String>) -> Option<ObservedPf>;

    /// As [`pf::autoprobe`].
    fn autoprobe(&mut self) -> Option<bool>;

    /// As [`pf::without_netdev`].
    fn without_netdev(&mut self, pf: &ObservedPf) -> Vec<(VfIndex, RdmaName)>;

    /// Take in the names that udev has given to devices of VFs since they were looked at.
    fn read_names(&mut self, pf: &mut ObservedPf, problems: &mut Vec<String>);

    /// The VF has its link at the PF.
    fn has_vf(&self, index: u16) -> bool;

    /// udev has nothing queued or in work.
    fn is_udev_settled(&self) -> bool;

    /// Where mlx4 keeps the alias GUID of a port of a VF.
    fn alias_entry(&self, iov: &str, vf: PciAddress, port: PortNumber) -> Option<String>;

    /// Have udev name the VFs, and no others of this PF.
    fn name_vfs(&mut self, names: &[(PciAddress, VfNames)]) -> Result<(), String>;

    /// What an earlier run has left to put back.
    fn record(&mut self, problems: &mut Vec<String>) -> UndoRecord;

    /// Write down what this run would leave.
    fn write(&mut self, record: &UndoRecord) -> Result<(), String>;
}

pub(super) struct Live<'a> {
    root: &'a Root,
    pf: PciAddress,
    pub(super) events: Events,
    locks: Option<Locks>,
    hears_locks: bool,
    child: Client<'a>,
    rdma_netlink: Client<'a>,
    /// The child shares it: who ends first leaves it to the other.
    held: Option<Held>,
}

impl<'a> Live<'a> {
    pub(super) fn open(root: &'a Root, pf: PciAddress, locks: Option<Locks>) -> io::Result<Self> {
        Ok(Self {
            root,
            pf,
            events: Events::open_quiet()?,
            locks,
            hears_locks: false,
            child: Client::new(root).patient().at(pf),
            rdma_netlink: Client::new(root).patient(),
            held: None,
        })
    }

    fn client(&mut self, who: Responder) -> &mut Client<'a> {
        match who {
            Responder::Child => &mut self.child,
            Responder::RdmaNetlink => &mut self.rdma_netlink,
        }
    }

    /// Look; what could not be read is added to `problems`.
    fn see<T>(&self, problems: &mut Vec<String>, see: impl FnOnce(&mut Look<'_>) -> T) -> T {
        let mut look = Look::new(self.root);
        let seen = see(&mut look);
        problems.extend(look.problems);
        seen
    }
}

impl Machine for Live<'_> {
    fn now(&self) -> Moment {
        clock::now()
    }

    fn lock(&mut self, problems: &mut Vec<String>) -> Option<Finding> {
        let locks = self.locks.as_ref()?;
        let name = format!("pf-{}", self.pf);
        match locks.try_take(&name) {
            Ok(held) => self.held = Some(held),
            Err(LockError::Busy { owner }) => {
                let lock = locks.dir().join(name).display().to_string();
                let who = owner
                    .map_or_else(|| "an unknown process".to_owned(), |o| format!("process {o}"));
                let busy = Finding::error(Code::VfPlanBlocked, format!("{who} holds {lock}"));
                return Some(busy.about(self.pf).look([ToDo::run("journalctl -u 'ibprov-pf@*'")]));
            }
            Err(e) => problems.push(format!("{e}: continuing without it")),
        }
        None
    }

    fn start(&mut self) -> io::Result<()> {
        self.child.start(self.held.as_ref())?;
        if let Some((lock, child)) = self.held.as_mut().zip(self.child.pid()) {
            lock.set_owner(child);
        }
        Ok(())
    }

    fn wait(&mut self, until: Moment, ear: Ear) -> io::Result<Happened> {
        let Self { events, child, rdma_netlink, .. } = self;
        let client = match ear {
            Ear::All => return events.wait(until),
            Ear::Replies(Responder::Child) => child,
            Ear::Replies(Responder::RdmaNetlink) => rdma_netlink,
        };
        events.wait_only(until, client.fd().into_iter().collect())
    }

    fn listen_to_locks(&mut self) -> bool {
        let Some(locks) = self.locks.as_ref().filter(|_| !self.hears_locks) else { return false };
        self.events.watch_closed(&[locks.dir()]);
        self.hears_locks = true;
        true
    }

    fn listen_to_devices(&mut self) -> bool {
        self.events.listen_to_kernel_devices()
    }

    fn ask(&mut self, who: Responder, request: &Request) -> u64 {
        self.client(who).ask(request)
    }

    fn replies(&mut self, who: Responder) -> Vec<(u64, Reply)> {
        self.client(who).replies()
    }

    fn child(&self) -> Option<u32> {
        self.child.pid()
    }

    fn look(&mut self, problems: &mut Vec<String>) -> ObservedPf {
        self.see(problems, |look| pf::look(look, self.pf, |_| true))
    }

    fn look_at_vfs(&mut self, pf: ObservedPf, problems: &mut Vec<String>) -> Option<ObservedPf> {
        self.see(problems, |look| pf::look_at_vfs(look, pf))
    }

    fn autoprobe(&mut self) -> Option<bool> {
        pf::autoprobe(&mut Look::new(self.root), self.pf)
    }

    fn without_netdev(&mut self, pf: &ObservedPf) -> Vec<(VfIndex, RdmaName)> {
        pf::without_netdev(&mut Look::new(self.root), pf)
    }

    fn read_names(&mut self, pf: &mut ObservedPf, problems: &mut Vec<String>) {
        self.see(problems, |look| {
            for vf in &mut pf.vfs {
                if let Some(own) = &mut vf.own {
                    pf::read_names(look, vf.pci, own);
                }
            }
        });
    }

    fn has_vf(&self, index: u16) -> bool {
        self.root.exists(&format!("{}/virtfn{index}", dir(self.pf)))
    }

    fn is_udev_settled(&self) -> bool {
        is_settled(self.root)
    }

    fn alias_entry(&self, iov: &str, vf: PciAddress, port: PortNumber) -> Option<String> {
        let entries = alias_entries(&mut Look::new(self.root), iov, vf);
        entries.into_iter().nth(usize::from(port.get()) - 1).map(|(_, entry)| entry)
    }

    fn name_vfs(&mut self, names: &[(PciAddress, VfNames)]) -> Result<(), String> {
        persistent_names::establish_for_vfs(self.pf, names)
    }

    fn record(&mut self, problems: &mut Vec<String>) -> UndoRecord {
        UndoRecord::read(self.root, self.pf, problems)
    }

    fn write(&mut self, record: &UndoRecord) -> Result<(), String> {
        record.write()
    }
}
