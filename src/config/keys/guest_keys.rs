//! The keys of `[[guest]]`, and the kinds of words that they hold.

use super::kinds::{Key, Kind, Spelling, Word};
use crate::config::value::Value;
use crate::names::{Connection, DomainName, GuestVf, OnFailure, Ready, UnitName, Words};

/// The keys of one `[[guest]]`.
pub(crate) mod guest {
    pub(crate) const DOMAIN: &str = "domain";
    pub(crate) const UNIT: &str = "unit";
    pub(crate) const VFS: &str = "vfs";
    pub(crate) const AFTER: &str = "after";
    pub(crate) const TIMEOUT: &str = "timeout";
    pub(crate) const ON_FAILURE: &str = "on-failure";
    pub(crate) const READY: &str = "ready";
}

const DOMAIN: Word = Word {
    what: "a libvirt domain",
    example: "vm09",
    spelling: Spelling::Pattern("^[!-.0-~]([ -.0-~]{0,253}[!-.0-~])?$"),
    parse: |text| text.parse::<DomainName>().map(Value::Domain).map_err(|e| e.to_string()),
};

const UNIT: Word = Word {
    what: "a systemd unit",
    example: "vm@9.service",
    spelling: Spelling::Pattern(
        "^[A-Za-z0-9:_.-]{1,100}(@[A-Za-z0-9:_.-]{1,100})?[.](service|target|socket|mount|scope|path|timer)$",
    ),
    parse: |text| text.parse::<UnitName>().map(Value::Unit).map_err(|e| e.to_string()),
};

const GUEST_NAME: Word = Word {
    what: "a guest of the list",
    example: "vm08",
    spelling: Spelling::Pattern("^[!-.0-~]([ -.0-~]{0,253}[!-.0-~])?$"),
    parse: |text| text.parse::<DomainName>().map(Value::Domain).map_err(|e| e.to_string()),
};

const GUEST_VF: Word = Word {
    what: "a VF",
    example: "0000:4b:00.0/3",
    spelling: Spelling::Pattern(
        "^(auto|([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7]/(0|[1-9][0-9]{0,3}))$",
    ),
    parse: |text| text.parse::<GuestVf>().map(Value::GuestVf),
};

const ON_FAILURE: Word = Word {
    what: "what to do",
    example: "report",
    spelling: Spelling::OneOf(OnFailure::all_typed),
    parse: |text| text.parse::<OnFailure>().map(Value::OnFailure),
};

const READY: Word = Word {
    what: "what counts as up",
    example: "agent",
    spelling: Spelling::OneOf(Ready::all_typed),
    parse: |text| text.parse::<Ready>().map(Value::Ready),
};

pub(super) const CONNECTION: Word = Word {
    what: "a libvirt connection",
    example: "qemu:///session",
    spelling: Spelling::Pattern("^[a-z][a-z0-9+.-]{0,30}:[!-~]{1,200}$"),
    parse: |text| text.parse::<Connection>().map(Value::Connection),
};

pub(super) static GUEST_KEYS: &[Key] = &[
    Key {
        path: guest::DOMAIN,
        kind: Kind::Word(&DOMAIN),
        default: "",
        doc: "The libvirt domain, by name or UUID.",
    },
    Key { path: guest::UNIT, kind: Kind::Word(&UNIT), default: "", doc: "The systemd unit." },
    Key {
        path: guest::VFS,
        kind: Kind::Words(&GUEST_VF),
        default: "",
        doc: "The VFs it needs, each as PF/INDEX; \"auto\" takes those of the domain's hostdev devices, and is the default for a domain.",
    },
    Key {
        path: guest::AFTER,
        kind: Kind::Words(&GUEST_NAME),
        default: "[]",
        doc: "Guests of this list that are started before it.",
    },
    Key {
        path: guest::TIMEOUT,
        kind: Kind::Span { min: 1, max: 86400 },
        default: "\"2min\"",
        doc: "How long its start may take.",
    },
    Key {
        path: guest::ON_FAILURE,
        kind: Kind::Word(&ON_FAILURE),
        default: "\"retry\"",
        doc: "If its VFs are not right: retry (start it when they are) or report (leave it).",
    },
    Key {
        path: guest::READY,
        kind: Kind::Word(&READY),
        default: "\"running\"",
        doc: "What counts as up: running, or agent (its guest agent answers).",
    },
];
