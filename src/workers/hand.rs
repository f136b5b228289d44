//! What is done in the child that may hang ([`crate::workers::socket`]): requests,
//! what becomes of them, and the answers, as lines of JSON.
//!
//! The child judges one thing only: right before it takes a VF away it looks
//! once more whether somebody uses it.

use std::io;

use serde::{Deserialize, Serialize};

use crate::host::netlink::{self, VfSetting};
use crate::host::{Root, answer, attribute, process};
use crate::names::{Guid, PciAddress, Policy, VFIO, VfIndex};
use crate::observe::Look;
use crate::observe::pf::{self, Asked, Backend, ObservedPf, ObservedVf, Own};
use crate::observe::uses::uses;
use crate::report::Use;
use crate::workers::socket;

/// How many requests the child works on at the same time. Most of what binding
/// in parallel gains is there with four to eight, and more would only queue at
/// the firmware (mlx5 registers its auxiliary devices under one mutex).
const AT_ONCE: usize = 8;

/// The verb of the child.
pub const VERB: &str = "hand";

/// A PF whose firmware has not answered for so long, microseconds, is judged
/// without it by those who only look.
pub const SILENCE_USEC: u64 = 5_000_000;

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Read what the PF administers and who may bind: index and PCI address.
    Ask {
        /// The PF.
        pf: String,
        /// How it is asked.
        backend: Backend,
        /// Its VFs.
        vfs: Vec<(u16, String)>,
    },
    /// Read who alone may bind a function.
    Override(String),
    /// Who uses these VFs.
    Uses(Vec<String>),
    /// Write an attribute, unless one of these VFs is in use.
    Write {
        /// The attribute.
        path: String,
        /// What is written.
        value: String,
        /// The VFs that it takes away.
        unless_used: Vec<String>,
    },
    /// Set something for a VF by netlink.
    SetVf {
        /// The PF's netdev.
        ifindex: u32,
        /// The VF.
        vf: u16,
        /// What.
        set: Set,
    },
    /// Give a function to a driver, whatever automatic probing says.
    Bind {
        /// The function.
        pci: String,
        /// The driver.
        driver: String,
        /// Its `driver_override` as it was; empty: none.
        before: String,
    },
    /// These, one after the other, all of them.
    Each(Vec<Request>),
}

impl Request {
    /// All questions for what a PF administers. By netlink it is one for all
    /// VFs; files can be read by several threads.
    #[must_use]
    pub fn all_of(observed: &ObservedPf) -> Vec<Self> {
        let chunk = match observed.backend {
            Backend::Netlink { .. } => observed.vfs.len().max(1),
            _ => observed.vfs.len().div_ceil(4).max(4),
        };
        let ask = |vfs: &[ObservedVf]| Self::Ask {
            pf: observed.pf.to_string(),
            backend: observed.backend.clone(),
            vfs: vfs.iter().map(|v| (v.index.get(), v.pci.to_string())).collect(),
        };
        observed.vfs.chunks(chunk).map(ask).collect()
    }
}

/// What can be set by netlink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// Node GUID.
    Node(u64),
    /// Port GUID.
    Port(u64),
    /// Policy, by its word.
    Policy(String),
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The system reported success.
    Done,
    /// It is bound; what it shows of itself since then, if all of it could be read.
    Bound(Option<Own>),
    /// The system refused.
    Failed {
        /// What was tried on what.
        tried: String,
        /// What the system answered.
        said: String,
        /// Its error number.
        errno: Option<i32>,
    },
    /// Not done: somebody uses the VF.
    InUse(Vec<Use>),
    /// What was asked for.
    Asked(Vec<Asked>),
    /// Who alone may bind it; empty: whoever can.
    Override(String),
    /// Who uses them.
    Uses(Vec<Vec<Use>>),
    /// One for each.
    Each(Vec<Answer>),
}

/// A request or an answer on its way, with the number that joins them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Numbered<T> {
    pub(crate) number: u64,
    pub(crate) what: T,
}

/// The child: `ibprov hand`, started by whoever asks PFs.
///
/// # Errors
/// Standard input is not the socket that `apply` gives it.
pub fn serve() -> io::Result<()> {
    socket::serve(AT_ONCE, |line| {
        let answer = match serde_json::from_str::<Numbered<Request>>(line) {
            Ok(request) => {
                Numbered { number: request.number, what: perform(&Root::live(), &request.what) }
            }
            Err(e) => Numbered { number: 0, what: refused("understand the request", &e.into()) },
        };
        // Plain values: there is no JSON that they do not make.
        serde_json::to_string(&answer).unwrap_or_default()
    })
}

/// Do it, here and now. On a copied tree only questions have a meaning.
pub(crate) fn perform(root: &Root, request: &Request) -> Answer {
    match request {
        Request::Ask { pf, backend, vfs } => ask(root, pf, backend, vfs),
        Request::Override(pci) => {
            let read = pci
                .parse()
                .map_err(io::Error::other)
                .and_then(|pci| pf::driver_override(root, pci).map_err(io::Error::other));
            match read {
                Ok(text) => Answer::Override(text.unwrap_or_default()),
                Err(e) => refused("read driver_override", &e),
            }
        }
        Request::Uses(vfs) => match addresses(vfs) {
            Ok(vfs) => Answer::Uses(uses(root, &vfs)),
            Err(e) => refused("look who uses the VFs", &e),
        },
        Request::Write { path, value, unless_used } => {
            if let Some(refusal) = in_use(root, unless_used) {
                return refusal;
            }
            write(path, value)
        }
        Request::SetVf { ifindex, vf, set } => set_vf(*ifindex, *vf, set),
        Request::Bind { pci, driver, before } => bind(root, pci, driver, before),
        Request::Each(requests) => {
            Answer::Each(requests.iter().map(|r| perform(root, r)).collect())
        }
    }
}

/// The last look before something is taken away.
fn in_use(root: &Root, vfs: &[String]) -> Option<Answer> {
    if vfs.is_empty() {
        return None;
    }
    match addresses(vfs) {
        Ok(vfs) => {
            let used: Vec<Use> = uses(root, &vfs).into_iter().flatten().collect();
            (!used.is_empty()).then_some(Answer::InUse(used))
        }
        Err(e) => Some(refused("look who uses the VFs", &e)),
    }
}

fn addresses(texts: &[String]) -> io::Result<Vec<PciAddress>> {
    texts.iter().map(|t| t.parse().map_err(io::Error::other)).collect()
}

fn ask(root: &Root, pf: &str, backend: &Backend, vfs: &[(u16, String)]) -> Answer {
    let read = || -> io::Result<Vec<Asked>> {
        let pf: PciAddress = pf.parse().map_err(io::Error::other)?;
        let mut known = Vec::new();
        for (index, pci) in vfs {
            let index = VfIndex::new(*index).ok_or_else(|| io::Error::other("no VF index"))?;
            known.push((index, pci.parse().map_err(io::Error::other)?));
        }
        let administered = match backend {
            // A copied tree has no kernel to ask.
            Backend::Netlink { ifindex: Some(ifindex) } if root.is_live() => {
                netlink::administered_vfs()?
                    .into_iter()
                    .find(|(index, _)| index == ifindex)
                    .map(|(_, vfs)| vfs)
                    .unwrap_or_default()
            }
            _ => Vec::new(),
        };
        Ok(pf::ask(root, pf, backend, &known, &administered))
    };
    match read() {
        Ok(asked) => Answer::Asked(asked),
        Err(e) => refused("read what the PF administers for its VFs", &e),
    }
}

fn set_vf(ifindex: u32, vf: u16, set: &Set) -> Answer {
    let (word, setting) = match set {
        Set::Node(guid) => ("node GUID", Some(VfSetting::NodeGuid(Guid::new(*guid)))),
        Set::Port(guid) => ("port GUID", Some(VfSetting::PortGuid(Guid::new(*guid)))),
        Set::Policy(word) => ("link state", Policy::from_word(word).map(VfSetting::Policy)),
    };
    let tried = format!("set {word} of VF {vf} by netlink (netdev index {ifindex})");
    let Some((vf, setting)) = VfIndex::new(vf).zip(setting) else {
        return refused(&tried, &io::Error::other("no such VF or policy"));
    };
    match netlink::set_vf(ifindex, vf, setting) {
        Ok(()) => Answer::Done,
        Err(e) => refused(&tried, &e),
    }
}

fn write(path: &str, value: &str) -> Answer {
    match attribute::write(path, value) {
        Ok(()) => Answer::Done,
        Err(e) => refused(&format!("write {:?} to {path}", value.trim_end()), &e),
    }
}

/// `driver_override` lets a driver bind while automatic probing is off
/// (`pci_device_can_probe()`, drivers/pci/pci-driver.c) and names the one that
/// vfio-pci otherwise would not match. Left behind it would break libvirt.
fn bind(root: &Root, pci: &str, driver: &str, before: &str) -> Answer {
    let to_drivers = format!("/sys/bus/pci/drivers/{driver}");
    if driver == VFIO
        && !root.exists(&to_drivers)
        && let Err(e) = process::output("modprobe", &["-b", "--", VFIO])
    {
        return refused("load vfio-pci", &e);
    }
    let own = format!("/sys/bus/pci/devices/{pci}/driver_override");
    let set = write(&own, driver);
    if set != Answer::Done {
        return set;
    }
    let bound = write(&format!("{to_drivers}/bind"), pci);
    // A line break is the way to write nothing.
    let back = write(&own, if before.is_empty() { "\n" } else { before });
    match (bound, back) {
        (Answer::Done, Answer::Done) => Answer::Bound(shown(root, pci)),
        (Answer::Done, back) => back,
        (bound, _) => bound,
    }
}

/// Looked at here, while others are still being bound: the parent would be kept
/// waiting by all that goes on once the last is.
fn shown(root: &Root, pci: &str) -> Option<Own> {
    let mut look = Look::new(root);
    let own = pf::own(&mut look, pci.parse().ok()?);
    // Who cannot read something looks for itself, and tells why.
    own.filter(|own| own.is_whole() && look.problems.is_empty())
}

fn refused(tried: &str, e: &io::Error) -> Answer {
    Answer::Failed { tried: tried.to_owned(), said: answer(e), errno: e.raw_os_error() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_survive_the_way() {
        let request = Request::Each(vec![
            Request::Ask {
                pf: "0000:01:00.0".into(),
                backend: Backend::Netlink { ifindex: Some(3) },
                vfs: vec![(0, "0000:01:00.1".into())],
            },
            Request::SetVf { ifindex: 3, vf: 0, set: Set::Node(u64::MAX) },
            Request::Bind {
                pci: "0000:01:00.1".into(),
                driver: "mlx5_core".into(),
                before: String::new(),
            },
        ]);
        let line = serde_json::to_string(&Numbered { number: 7, what: request.clone() });
        let line = line.expect("JSON");
        assert!(!line.contains('\n'));
        let back: Numbered<Request> = serde_json::from_str(&line).expect("request");
        assert_eq!((back.number, back.what), (7, request));
        let used = Use::Vfio { file: "/dev/vfio/7".into(), pid: 4, name: "qemu".into() };
        let answer = Answer::Each(vec![Answer::Done, Answer::InUse(vec![used])]);
        let line = serde_json::to_string(&answer).expect("JSON");
        assert_eq!(serde_json::from_str::<Answer>(&line).expect("answer"), answer);
    }

    #[test]
    fn a_refused_write_says_what_was_tried_and_the_answer() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("node").display().to_string();
        let want = Answer::Failed {
            tried: format!("write \"1\" to {path}"),
            said: "ENOENT: No such file or directory".into(),
            errno: Some(2),
        };
        assert_eq!(write(&path, "1"), want);
    }
}
