//! What users read: text for people, versioned JSON for programs, journal
//! events with stable MESSAGE_IDs. Pure: values in, text out.

pub mod advice;
pub mod boot;
mod boot_step;
pub mod collect;
pub mod common;
pub mod config;
pub mod consumers;
pub mod data;
pub mod degraded;
pub mod duration;
pub mod events;
pub mod finding;
pub mod firmware;
pub mod guests;
pub mod hardware;
pub mod holders;
pub mod iface;
mod iface_step;
pub mod initrd;
pub mod migrate;
mod module_trouble;
pub mod netns;
pub mod node;
pub mod online;
pub mod opensm;
pub mod pf;
pub mod plan;
pub mod plan_fleet;
mod planned_vf;
pub mod port;
pub mod preview;
mod read;
mod refused;
#[cfg(test)]
mod round_trip;
pub mod rxe;
mod silence;
pub mod stack;
pub mod status;
pub mod subnet_manager;
mod uses;
mod vf_cause;
mod vf_lack;
pub mod vf_step;

pub use advice::{Advice, ToDo};
pub use boot::{BootReport, LeftOut, ModuleOutcome, ModuleReport, PortReport, Step, StepReport};
pub use common::{
    Code, Confidence, Exit, Finding, Kind, NotBegun, Quote, Report, SCHEMA, Severity, Verdict,
    listed, not_read,
};
pub use degraded::{Degraded, NarrowLink, PcieLink};
pub use duration::seconds;
pub use guests::GuestsReport;
pub use hardware::{Gid, Link, NetDevState, PKeyEntry};
pub use iface::{
    BringUp, ChildCreator, DeferredSettings, IfaceReport, IfaceStep, WantedChild, WantedInterface,
};
pub use module_trouble::{ModuleTrouble, Said};
pub use node::{Judgement, Standing};
pub use online::OnlineReport;
pub use pf::{Deferred, PfReport, StepDone, StepFailure, Unresolved, VfStep};
pub use plan::{PlannedPf, PlannedVf, WantedPf, WantedVf};
pub use port::{Awaited, Cause, NotExpected, PortProgress, port_span};
pub use read::{ReadError, check_schema, read, unpacked};
pub use refused::Refusal;
pub use rxe::{RxeReport, RxeState};
pub use silence::Silence;
pub use stack::{StackName, StackSetting};
pub use status::{PortStatus, Status};
pub use uses::{Away, Use, used_by};
pub use vf_lack::VfLack;
