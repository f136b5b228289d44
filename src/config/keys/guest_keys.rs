//! The keys of `[[guest]]`, and the kinds of words that they hold.

use super::kinds::{Key, Kind, Spelling, Word, one_of, quote, text, word};
use crate::config::value::Value;
use crate::names::{DomainName, GuestVf, OnFailure, Ready, UnitName, Words};

const DOMAIN: Word = Word {
    what: "a libvirt domain",
    example: "vm09",
    spelling: Spelling::Pattern(
        "^[^/\\s\\x00-\\x1f\\x7f-\\x9f]([^/\\x00-\\x1f\\x7f-\\x9f]{0,253}[^/\\s\\x00-\\x1f\\x7f-\\x9f])?$",
    ),
    parse: text::<DomainName>,
};

const UNIT: Word = Word {
    what: "a systemd unit",
    example: "vm@9.service",
    spelling: Spelling::Loose(
        "^[A-Za-z0-9:_.\\\\-]([A-Za-z0-9:_.@\\\\-]*[A-Za-z0-9:_.\\\\-])?[.](service|target|socket|mount|scope|path|timer)$",
    ),
    parse: text::<UnitName>,
};

const GUEST_NAME: Word = Word { what: "a guest of the list", example: "vm08", ..DOMAIN };

const GUEST_VF: Word = Word {
    what: "a VF",
    example: "0000:4b:00.0/3",
    spelling: Spelling::Pattern(
        "^(auto|([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7]/0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-4]))$",
    ),
    parse: text::<GuestVf>,
};

const ON_FAILURE: Word =
    Word { parse: not_one_of::<OnFailure>, ..one_of::<OnFailure>("what to do", "report") };

const READY: Word =
    Word { parse: not_one_of::<Ready>, ..one_of::<Ready>("what counts as up", "agent") };

fn not_one_of<T: Words + Send + Sync>(_: &Word, text: &str) -> Result<Value, String> {
    let why = || format!("{} is not one of {}", quote(text), T::all_typed().join(", "));
    word::<T>(text).ok_or_else(why)
}

/// The keys of one `[[guest]]`.
pub(crate) mod guest {
    use super::{
        DOMAIN as NAME, GUEST_NAME, GUEST_VF, Key, Kind, ON_FAILURE as WHAT_TO_DO, READY as UP,
        UNIT as UNIT_NAME,
    };
    use crate::names::{DomainName, GuestVf, OnFailure, Ready, UnitName};
    use std::time::Duration;

    keys! { KEYS:
        DOMAIN: DomainName = "domain", Kind::OneOrMore(&NAME), "",
            "The libvirt domain, by name or UUID, or a list of them.";
        UNIT: UnitName = "unit", Kind::OneOrMore(&UNIT_NAME), "",
            "The systemd unit, or a list of them.";
        VFS: GuestVf = "vfs", Kind::Words(&GUEST_VF), "",
            "The VFs that it needs, each as PF/INDEX; \"auto\" takes those of the domain's hostdev devices, and is the default for a domain.";
        AFTER: DomainName = "after", Kind::Words(&GUEST_NAME), "[]",
            "Guests of this list that are started before it.";
        TIMEOUT: Duration = "timeout", Kind::Span, "\"2min\"",
            "Maximum time that the start may take.";
        ON_FAILURE: OnFailure = "on-failure", Kind::Word(&WHAT_TO_DO), "\"retry\"",
            "If the VFs are not ready: retry (start it once they are) or report (do not start it).";
        READY: Ready = "ready", Kind::Word(&UP), "\"running\"",
            "When a domain is up: running, or agent (once its guest agent answers).";
    }
}
