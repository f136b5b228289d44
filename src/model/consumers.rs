//! What uses InfiniBand in the next boot, and whether it comes after the ports.

use serde::Serialize;

use super::{Advice, Code, Exit, Finding, Kind, Report, Severity, ToDo, Verdict, migrate::Change};
use crate::names::PathState;

/// The unit of ours that waits for the netdevs, and that others are ordered after.
pub const PROVIDER: &str = "ibprov.service";

/// What uses InfiniBand in the next boot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConsumersReport {
    /// The unit that brings the ports up; `null` if the next boot starts none.
    pub provider: Option<String>,
    #[serde(skip)]
    pub has_no_goal: bool,
    /// The units that use them.
    pub consumers: Vec<Consumer>,
    /// The drop-ins that are written or removed, or would be.
    pub changes: Vec<Change>,
    /// They were, not only shown.
    pub applied: bool,
    /// What is wrong beside.
    #[serde(skip)]
    pub problems: Vec<Finding>,
}

/// A unit that uses InfiniBand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Consumer {
    pub unit: String,
    pub need: Need,
    pub order: Order,
    /// The units over which that is proved, both ends included.
    pub path: Vec<String>,
}

/// What a unit needs the netdevs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Sets interfaces up once and never again: what is not there stays down.
    NetworkOnce,
    /// Sets interfaces up whenever they come.
    NetworkHotplug,
    /// Waits until the network is there, under a time limit.
    WaitOnline,
    /// Mounts a file system over the network.
    Mount,
    Guests,
    /// A storage or job service that uses the fabric.
    Service,
    /// Starts containers, which may be given RDMA devices.
    Containers,
}

impl Need {
    /// Too early is a failure, not only a delay.
    pub const fn is_hard(self) -> bool {
        !matches!(self, Self::NetworkHotplug | Self::WaitOnline | Self::Containers)
    }

    /// What is wrong with coming too early, as a half sentence.
    pub const fn harm(self) -> &'static str {
        match self {
            Self::NetworkOnce => "an interface that the service does not find stays down",
            Self::NetworkHotplug => {
                "the service configures late interfaces, but units that wait for the service do not wait for them"
            }
            Self::WaitOnline => {
                "the service may report the network as online before the InfiniBand ports are present"
            }
            Self::Mount => "the mount fails or hangs",
            Self::Guests => "a guest fails to start without its VF",
            Self::Service => "the service fails, or runs without the fabric",
            Self::Containers => "a container that uses an RDMA device may start without it",
        }
    }
}

/// Where a unit stands to the one that brings the ports up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// It comes after it.
    After,
    /// Nothing orders the two.
    Missing,
    /// It comes before it.
    Before,
}

impl ConsumersReport {
    pub fn exit(&self, is_ordered: bool) -> Exit {
        let failed = self.problems.iter().any(|p| p.severity == Severity::Error);
        let pending = !self.applied && !self.changes.is_empty();
        let kept = self.problems.iter().any(|p| p.code == Code::ChangedSince);
        match &self.provider {
            _ if failed => Exit::NotReady,
            Some(_) if is_ordered && !pending && !kept => Exit::Good,
            // What was asked for is done: without the drop-ins nothing else can be.
            Some(_) if !is_ordered && self.applied && !kept && self.removed() => Exit::Good,
            _ => Exit::Exceptions,
        }
    }

    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let is_ordered = self.consumers.iter().all(|c| c.order == Order::After);
        let verdict = match &self.provider {
            Some(_) if is_ordered => Verdict::Ready,
            _ => Verdict::Exceptions,
        };
        let mut findings = self.problems.clone();
        let provider = self.provider.as_deref().unwrap_or(PROVIDER);
        for consumer in &self.consumers {
            let message = match consumer.order {
                Order::After => continue,
                Order::Missing => {
                    format!("is not ordered after {provider}: {}", consumer.need.harm())
                }
                Order::Before => format!(
                    "is ordered before {provider}, over {}: {}",
                    consumer.path.join(" > "),
                    consumer.need.harm()
                ),
            };
            let finding = Finding::warning(Code::OrderingMissing, message).about(&consumer.unit);
            findings.push(finding.advise([match consumer.order {
                Order::Before => {
                    Advice::permanent("remove one of these orders: a drop-in would close a cycle")
                }
                _ => Advice::permanent(ToDo::run("ibprov consumers --install")),
            }]));
        }
        if self.provider.is_none() {
            let finding = Finding::warning(Code::OrderingMissing, self.no_provider());
            findings.push(finding.permanent([ToDo::run("systemctl enable ibprov.service")]));
        }
        Finding::worst_first(&mut findings);
        let exit_code = self.exit(is_ordered).code();
        Report::new(Kind::Consumers, verdict, findings, self).exiting(exit_code)
    }

    pub const fn no_provider(&self) -> &'static str {
        match self.has_no_goal {
            true => "there is no default.target: the next boot cannot be judged",
            false => "no unit of the next boot brings the ports up",
        }
    }

    pub fn removed(&self) -> bool {
        !self.changes.is_empty() && self.changes.iter().all(|c| c.after == PathState::Absent)
    }
}
