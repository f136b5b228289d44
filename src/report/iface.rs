//! What `ibprov iface` did with one interface:
//! `/run/ibprov/ports/IFINDEX.json`, and its text.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use super::iface_step::{IfaceStep, WantedChild, WantedInterface, aside_name};

use super::as_text;
use super::duration::seconds;

use crate::report::stack::{Decision, View};

/// How far bringing it up is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BringUp {
    /// Only the settings were asked for.
    NotAsked,
    /// Not looked at yet, or being waited for.
    Pending,
    /// A stack that is still to come does it.
    Left,
    /// It is up, by its stack.
    Up,
    /// Its stack has it and waits for carrier.
    Waiting,
    /// No stack claims it.
    Nobody,
    /// It did not come up.
    Failed,
}

/// One interface's report. Times are microseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IfaceReport {
    /// Version of this format.
    pub schema: u32,
    /// Version of ibprov.
    #[serde(default)]
    pub version: Cow<'static, str>,
    /// The interface's name.
    pub netdev: String,
    /// Its index; 0 if it is not there.
    pub ifindex: u32,
    /// When ibprov began.
    #[serde(default)]
    pub started_usec: u64,
    /// When the settings were as wanted, or could not be made so.
    #[serde(default)]
    pub settled_usec: u64,
    /// When it decided who brings it up.
    #[serde(default)]
    pub decided_usec: u64,
    /// When it ended.
    #[serde(default)]
    pub finished_usec: u64,
    /// Mode, MTU, umcast and P_Key children are as wanted.
    pub configured: bool,
    /// What was wanted.
    #[serde(default)]
    pub wanted: WantedInterface,
    /// What was done.
    #[serde(default)]
    pub steps: Vec<IfaceStepReport>,
    /// The MTU that was written to it, if any ever was.
    pub mtu_asked: Option<u32>,
    /// What could not be: settings, or bringing it up.
    #[serde(default)]
    pub failures: Vec<String>,
    /// Advice, and what could not be read.
    #[serde(default)]
    pub notes: Vec<String>,
    /// How systemd was asked.
    #[serde(default)]
    pub asked_by: String,
    /// Every stack's view, as it was decided on last. Not read back: only
    /// `crate::stacks` knows the stacks.
    #[serde(skip_deserializing)]
    pub stacks: Vec<View>,
    /// Who brings it up, and why. Not read back either.
    #[serde(skip_deserializing)]
    pub decision: Option<Decision>,
    /// How far that is.
    pub bring_up: BringUp,
    /// The exit code.
    pub exit_code: u8,
}

/// A step and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IfaceStepReport {
    /// What was done.
    #[serde(flatten)]
    pub step: IfaceStep,
    /// How long it took, microseconds.
    #[serde(default)]
    pub took_usec: u64,
    /// What went wrong; JSON has an empty text where nothing did.
    #[serde(default, serialize_with = "as_text::or_empty", deserialize_with = "as_text::if_any")]
    pub failure: Option<String>,
}

impl IfaceReport {
    /// Nothing done yet.
    #[must_use]
    pub fn blank(netdev: &str, started_usec: u64) -> Self {
        Self {
            schema: super::SCHEMA,
            version: Cow::Borrowed(env!("CARGO_PKG_VERSION")),
            netdev: netdev.to_owned(),
            ifindex: 0,
            started_usec,
            settled_usec: 0,
            decided_usec: 0,
            finished_usec: started_usec,
            configured: false,
            wanted: WantedInterface::default(),
            steps: Vec::new(),
            mtu_asked: None,
            failures: Vec::new(),
            notes: Vec::new(),
            asked_by: String::new(),
            stacks: Vec::new(),
            decision: None,
            bring_up: BringUp::Pending,
            exit_code: 0,
        }
    }

    /// The exit code that it comes to: 0 configured, and up or left to who
    /// brings it up; 1 configured and without carrier; 3 anything else.
    #[must_use]
    pub const fn judge(&self) -> u8 {
        match (self.configured, self.bring_up) {
            (false, _) | (true, BringUp::Failed) => 3,
            (true, BringUp::Waiting) => 1,
            (true, _) => 0,
        }
    }

    /// The sentence that says it all.
    #[must_use]
    pub fn headline(&self) -> String {
        let name = shown(&self.netdev);
        let set = match (self.configured, self.wanted.origins.is_empty()) {
            (true, true) => "nothing is configured for it",
            (true, false) => "configured",
            (false, _) => "NOT CONFIGURED",
        };
        let why = self.decision.as_ref().map(|d| d.why.as_str()).unwrap_or_default();
        let up = match self.bring_up {
            BringUp::NotAsked | BringUp::Pending => String::new(),
            BringUp::Left => format!("; left to its stack: {why}"),
            BringUp::Up => format!("; up: {why}"),
            BringUp::Waiting => format!("; no carrier yet: {why}"),
            BringUp::Nobody => format!("; nobody brings it up: {why}"),
            BringUp::Failed => "; NOT UP".to_owned(),
        };
        format!("{name}: {set}{up}")
    }

    /// The text of it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n", self.headline());
        let mut line = |l: String| {
            text.push_str(&l);
            text.push('\n');
        };
        for failure in &self.failures {
            line(format!("  why: {failure}"));
        }
        for step in &self.steps {
            line(match &step.failure {
                None => format!("done: {} in {}", step.step, seconds(step.took_usec)),
                Some(failure) => format!("failed: {}: {failure}", step.step),
            });
        }
        for note in &self.notes {
            line(format!("note: {note}"));
        }
        text.push_str(&stacks_text(&self.stacks));
        text
    }
}

/// Which stacks are there, and whether each claims the interface.
#[must_use]
pub fn stacks_text(views: &[View]) -> String {
    let mut text = String::new();
    for view in views.iter().filter(|v| v.phase != crate::report::stack::Phase::Absent) {
        let answer = match view.claim.answer {
            crate::report::stack::Answer::Yes | crate::report::stack::Answer::Hotplug => {
                "claims it"
            }
            crate::report::stack::Answer::ByHand => "knows it, by hand only",
            crate::report::stack::Answer::No => "does not claim it",
            crate::report::stack::Answer::Missed => "does not claim it, and should",
            crate::report::stack::Answer::Later => "cannot tell yet",
        };
        let (stack, phase) = (view.stack, view.phase.text());
        text.push_str(&format!("stack {stack} ({phase}): {answer}: {}\n", view.claim.why));
    }
    text
}

/// A name as it may be printed.
fn shown(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
