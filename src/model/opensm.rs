//! What `ibprov opensm check` says.

use serde::Serialize;

use super::{Finding, Severity};
use crate::names::Membership;

/// A finding of `ibprov opensm check`: its message says what opensm would do.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpensmFinding {
    #[serde(flatten)]
    pub finding: Finding,
    /// What kind of thing is wrong there; `null` for a file that was not read.
    pub fault: Option<FaultKind>,
}

/// What `ibprov opensm check` says.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Checked {
    /// Findings in all, those that are not listed too.
    pub count: usize,
    /// The files that were read.
    pub files: Vec<CheckedFile>,
}

/// One of them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckedFile {
    pub file: String,
    /// What it was read as.
    pub kind: OpensmFile,
    /// The partitions that opensm would have of it, beside the default one where that is not
    /// defined; none of a file that it throws away.
    pub partitions: Vec<Partition>,
    pub errors: usize,
    pub warnings: usize,
}

/// A file of opensm's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OpensmFile {
    /// partitions.conf
    Partitions,
    /// opensm.conf
    Opensm,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Partition {
    /// Its name; the first that it was given.
    pub name: String,
    /// Its P_Key without the membership bit: `0x0010`.
    pub pkey: String,
    /// It has a broadcast group for IPoIB.
    pub ipoib: bool,
    /// Code of the MTU of that group.
    pub mtu: Option<u64>,
    /// Code of its rate.
    pub rate: Option<u64>,
    /// Its members, in the order in which they apply: the last mention of a port counts.
    pub members: Vec<Member>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Member {
    /// A port GUID, or ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF.
    pub port: String,
    /// As it counts.
    pub membership: Membership,
}

macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $name:literal, $severity:ident;)+) => {
        /// What kind of thing opensm would not take as it is meant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub enum FaultKind {
            $($(#[$doc])+ #[serde(rename = $name)] $kind,)+
        }

        impl FaultKind {
            /// How much it matters: a warning leaves opensm's tables as they are meant.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$kind => Severity::$severity,)+
                }
            }
        }
    };
}

kinds! {
    /// opensm throws the whole file away.
    Rejected = "rejected", Error;
    /// opensm ends by a signal.
    Crash = "crash", Error;
    /// A line is longer than opensm's buffer.
    LineTooLong = "line-too-long", Error;
    /// A byte 0 ends the line for opensm.
    NulByte = "nul-byte", Error;
    /// A P_Key has more than 16 bits.
    PkeyCut = "pkey-cut", Error;
    /// opensm takes a P_Key that nobody wrote.
    PkeyMadeUp = "pkey-made-up", Error;
    /// A number begins with 0 and is octal.
    Octal = "octal", Error;
    /// A GUID of 16 digits is read as decimal.
    GuidDecimal = "guid-decimal", Error;
    /// A GUID has more than 64 bits, or a sign.
    GuidOutOfRange = "guid-out-of-range", Error;
    /// A flag that opensm does not know.
    FlagUnknown = "flag-unknown", Error;
    /// A flag has a value that it cannot have.
    FlagValue = "flag-value", Error;
    /// A flag comes after the broadcast group was made without it.
    FlagTooLate = "flag-too-late", Error;
    /// A text is the beginning of several names, and opensm takes the first.
    Abbreviation = "abbreviation", Error;
    /// A membership that opensm does not know.
    MembershipUnknown = "membership-unknown", Error;
    /// A membership is empty.
    MembershipEmpty = "membership-empty", Error;
    /// A later member overrides an earlier one.
    MemberOverridden = "member-overridden", Error;
    /// Text that is no flag is read as one.
    CommentRead = "comment-read", Error;
    /// A multicast group is not made.
    GroupLeftOut = "group-left-out", Error;
    /// After all lines no port of a host is a full member of the partition.
    NoFullMember = "no-full-member", Error;
    /// Nothing is said of the default partition.
    DefaultMissing = "default-missing", Error;
    /// A P_Key child of this host has no broadcast group.
    ChildWithoutIpoib = "child-without-ipoib", Warning;
    /// A flag of a broadcast group, and no such group.
    FlagWithoutIpoib = "flag-without-ipoib", Warning;
    /// `both` counts as full.
    BothNotAllowed = "both-not-allowed", Warning;
    /// A member is mentioned twice.
    MemberTwice = "member-twice", Warning;
    /// No plan, pin or port of the fleet has this GUID.
    GuidUnknown = "guid-unknown", Warning;
    /// A name of opensm's is written in another way.
    NameAsText = "name-as-text", Warning;
    /// A key that opensm does not know.
    KeyUnknown = "key-unknown", Error;
    /// Several GUIDs where one is read.
    GuidList = "guid-list", Error;
    /// No number where opensm reads one.
    NotANumber = "not-a-number", Error;
    /// A number out of its range.
    OutOfRange = "out-of-range", Error;
    /// A value that opensm takes for FALSE.
    NotTrue = "not-true", Error;
    /// A word that is none of those that opensm knows.
    ValueUnknown = "value-unknown", Error;
}
