//! The keys of `[[guest]]`, and the kinds of words that they hold.

use super::kinds::{Key, Kind, Spelling, Word};
use crate::config::value::Value;
use crate::names::{DomainName, GuestVf, OnFailure, Ready, UnitName, Words};

const DOMAIN: Word = Word {
    what: "a libvirt domain",
    example: "vm09",
    spelling: Spelling::Pattern(
        "^[^/\\s\\x00-\\x1f\\x7f-\\x9f]([^/\\x00-\\x1f\\x7f-\\x9f]{0,253}[^/\\s\\x00-\\x1f\\x7f-\\x9f])?$",
    ),
    parse: |text| text.parse::<DomainName>().map(Value::Domain).map_err(|e| e.to_string()),
};

const UNIT: Word = Word {
    what: "a systemd unit",
    example: "vm@9.service",
    spelling: Spelling::Loose(
        "^[A-Za-z0-9:_.\\\\-]([A-Za-z0-9:_.@\\\\-]*[A-Za-z0-9:_.\\\\-])?[.](service|target|socket|mount|scope|path|timer)$",
    ),
    parse: |text| text.parse::<UnitName>().map(Value::Unit).map_err(|e| e.to_string()),
};

const GUEST_NAME: Word = Word {
    what: "a guest of the list",
    example: "vm08",
    spelling: Spelling::Pattern(
        "^[^/\\s\\x00-\\x1f\\x7f-\\x9f]([^/\\x00-\\x1f\\x7f-\\x9f]{0,253}[^/\\s\\x00-\\x1f\\x7f-\\x9f])?$",
    ),
    parse: |text| text.parse::<DomainName>().map(Value::Domain).map_err(|e| e.to_string()),
};

const GUEST_VF: Word = Word {
    what: "a VF",
    example: "0000:4b:00.0/3",
    spelling: Spelling::Pattern(
        "^(auto|([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7]/0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-4]))$",
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

/// The keys of one `[[guest]]`.
pub(crate) mod guest {
    use super::{
        DOMAIN as NAME, GUEST_NAME, GUEST_VF, Key, Kind, ON_FAILURE as WHAT_TO_DO, READY as UP,
        UNIT as UNIT_NAME,
    };

    keys! { KEYS:
        DOMAIN = "domain", Kind::OneOrMore(&NAME), "",
            "The libvirt domain, by name or UUID, or a list of them.";
        UNIT = "unit", Kind::OneOrMore(&UNIT_NAME), "",
            "The systemd unit, or a list of them.";
        VFS = "vfs", Kind::Words(&GUEST_VF), "",
            "The VFs that it needs, each as PF/INDEX; \"auto\" takes those of the domain's hostdev devices, and is the default for a domain.";
        AFTER = "after", Kind::Words(&GUEST_NAME), "[]",
            "Guests of this list that are started before it.";
        TIMEOUT = "timeout", Kind::Span, "\"2min\"",
            "Maximum time that the start may take.";
        ON_FAILURE = "on-failure", Kind::Word(&WHAT_TO_DO), "\"retry\"",
            "If the VFs are not ready: retry (start it once they are) or report (do not start it).";
        READY = "ready", Kind::Word(&UP), "\"running\"",
            "When a domain is up: running, or agent (once its guest agent answers).";
    }
}
