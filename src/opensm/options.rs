//! `opensm.conf`: one key and its value on each line.

use std::ops::Range;

use self::words::keys;
use super::text::Text;
use super::{Fault, FaultKind, number, shown};
use crate::names::nearest;

/// What opensm would make of a file.
#[derive(Debug, Clone, Default)]
pub struct Read {
    /// The file of the partitions, where the key for it is there.
    pub partitions: Option<String>,
    /// `allow_both_pkeys` is TRUE.
    pub allows_both: bool,
    /// What is not taken as it is meant, in the order of the file.
    pub faults: Vec<Fault>,
}

/// `char line[1024]`, of which `fgets()` is told one byte less.
const LONGEST: usize = 1022;

/// How the value of a key is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A number of so many bits.
    Number(u32),
    /// TRUE, and anything else for FALSE.
    Boolean,
    Text,
    /// By rules of its own, which are not looked at.
    Other,
}

/// The keys by what their values are.
const KEYS: [(Form, &[&str]); 7] = [
    (Form::Number(64), keys::NUMBER_64),
    (Form::Number(32), keys::NUMBER_32),
    (Form::Number(16), keys::NUMBER_16),
    (Form::Number(8), keys::NUMBER_8),
    (Form::Boolean, keys::BOOLEAN),
    (Form::Text, keys::TEXT),
    (Form::Other, keys::OTHER),
];

/// The keys of `options.toml`.
mod words {
    include!(concat!(env!("OUT_DIR"), "/options.rs"));
}

fn all_keys() -> impl Iterator<Item = (&'static str, Form)> {
    KEYS.iter().flat_map(|(form, keys)| keys.iter().map(|key| (*key, *form)))
}

pub fn read(content: &[u8]) -> Read {
    let mut read = Read::default();
    // Of the line before, so many bytes were read, and it has not ended.
    let mut is_rest = false;
    for line in Text::of(content).lines(LONGEST) {
        let (key, value) = line.before(b'#').before(0).word();
        if is_rest && form_of(key).is_some() {
            read.faults.push(
                Fault::new(
                    FaultKind::LineTooLong,
                    line.split_at(1).0.span(),
                    "opensm's buffer ends here",
                    format!("opensm would cut the line after {LONGEST} bytes, and read its rest as another line"),
                )
                .help("write the comment on several lines"),
            );
        } else if !is_rest && !key.is_empty() {
            read.line(key, unquoted(value.without(number::is_space)));
        }
        is_rest = !line.bytes.ends_with(b"\n");
    }
    read
}

fn form_of(key: Text<'_>) -> Option<(&'static str, Form)> {
    all_keys().find(|(name, _)| name.as_bytes() == key.bytes)
}

impl Read {
    fn line(&mut self, key: Text<'_>, value: Text<'_>) {
        let Some((name, form)) = form_of(key) else {
            // What a line end of Windows leaves of an empty line.
            if key.bytes != b"\r" {
                self.faults.push(unknown(key));
            }
            return;
        };
        let text = value.bytes;
        match name {
            "partition_config_file" if text != b"(null)" => {
                self.partitions = std::str::from_utf8(text).ok().map(str::to_owned);
            }
            "allow_both_pkeys" => self.allows_both = text == b"TRUE",
            _ => {}
        }
        let span = if value.is_empty() { key.span() } else { value.span() };
        self.faults.extend(judge(name, form, text, span));
    }
}

fn unquoted(value: Text<'_>) -> Text<'_> {
    match value.bytes {
        [b'"', inside @ .., b'"'] | [b'\'', inside @ .., b'\''] => {
            value.split_at(1).1.split_at(inside.len()).0
        }
        _ => value,
    }
}

fn unknown(key: Text<'_>) -> Fault {
    let span = key.span();
    let key = key.shown();
    let fault = Fault::new(
        FaultKind::KeyUnknown,
        span,
        "no key of opensm 3.3",
        format!("opensm would ignore {key}"),
    );
    if key.starts_with("virt_") {
        return fault.help("only NVIDIA's opensm (--opensm nvidia), UFM and switches have it: with this opensm, VFs become active only with the policy Up");
    }
    if let Some((key, value)) = key.split_once('=') {
        return fault.help(format!("write a blank between key and value: {key} {value}"));
    }
    let lower = key.to_ascii_lowercase();
    match nearest(&lower, all_keys().map(|(key, _)| key)) {
        Some(near) => fault.help(format!("did you mean {near}?")),
        None => fault.help("opensm -c FILE writes all keys that this opensm knows"),
    }
}

/// What is wrong with the value of the key `name`.
fn judge(name: &str, form: Form, text: &[u8], span: Range<usize>) -> Option<Fault> {
    let said = shown(text);
    if text.first() == Some(&b'=') {
        let fault = Fault::new(
            FaultKind::ValueUnknown,
            span,
            "no = between key and value",
            format!("opensm would take \"{said}\" for the value of {name}"),
        );
        return Some(fault.help(format!("write {name} {}", said.trim_start_matches(['=', ' ']))));
    }
    match form {
        Form::Number(bits) => judge_number(name, bits, text, span),
        Form::Boolean => {
            let falsy = ["FALSE", "NO", "OFF", "0", "F", "N"];
            let is_meant =
                text == b"TRUE" || falsy.iter().any(|word| said.eq_ignore_ascii_case(word));
            (!is_meant).then(|| {
                let consequence = format!("opensm would take {name} for FALSE");
                Fault::new(FaultKind::NotTrue, span, "not TRUE in capitals", consequence)
                    .help(format!("write {name} TRUE or {name} FALSE"))
            })
        }
        Form::Text => {
            let (words, default): (&[&str], _) = match name {
                "part_enforce" => (&["both", "in", "out", "off"], "both"),
                "console" => (&["off", "local", "loopback", "socket"], "off"),
                _ => return None,
            };
            (!words.contains(&said.as_str())).then(|| {
                Fault::new(
                    FaultKind::ValueUnknown,
                    span,
                    format!("not one of {}", words.join(", ")),
                    format!("opensm would use its default: {name} {default}"),
                )
            })
        }
        Form::Other => None,
    }
}

fn judge_number(name: &str, bits: u32, text: &[u8], span: Range<usize>) -> Option<Fault> {
    let said = shown(text);
    let ignored = match name {
        "guid" => "opensm would ignore guid, and run on the first port whose link is up".to_owned(),
        _ => format!("opensm would ignore {name}, and use its default"),
    };
    let most = u64::MAX >> (64 - bits);
    let number = number::read(text).filter(|number| number.whole);
    let Some(number) = number else {
        if name == "guid" && text.split(|b| matches!(b, b',' | b' ' | b'\t')).count() > 1 {
            let fault = Fault::new(FaultKind::GuidList, span, "more than one", ignored);
            return Some(fault.help("run one opensm for each port, as opensm@GUID.service does"));
        }
        let fault = Fault::new(FaultKind::NotANumber, span, "not a number", ignored);
        let is_hex = !text.is_empty() && text.iter().all(|b| b.is_ascii_hexdigit() || *b == b':');
        return Some(if is_hex {
            fault.help(format!("write {name} 0x{}", said.replace(':', "")))
        } else {
            fault
        });
    };
    if number.value > most || number.is_wrapped {
        let label = format!("more than {bits} bits");
        return Some(Fault::new(FaultKind::OutOfRange, span, label, ignored));
    }
    if number.is_octal {
        let consequence = format!("opensm would read {said} as 0x{:x}", number.value);
        return Some(
            Fault::new(FaultKind::Octal, span, "a number that begins with 0 is octal", consequence)
                .help(format!("write 0x{said}")),
        );
    }
    let value = number.value;
    let (is_valid, range, default) = match name {
        "lmc" => (value <= 7, "0 to 7", "0"),
        "sm_priority" => (value <= 15, "0 to 15", "0"),
        "m_key_protection_level" => (value <= 3, "0 to 3", "2"),
        "fdr10" => (value <= 2, "0 to 2", "1"),
        "force_link_speed" => (value <= 7 || value == 15, "0 to 7, or 15", "15"),
        "force_link_speed_ext" => {
            (value <= 15 || matches!(value, 30 | 31), "0 to 15, 30 or 31", "31")
        }
        "force_link_width" => (value <= 31 || value == 255, "0 to 31, or 255", "255"),
        "max_wire_smps" | "max_wire_smps2" => (value <= 0x7fff_ffff, "31 bits", "its default"),
        _ => return None,
    };
    (!is_valid).then(|| {
        let consequence = format!("opensm would take {default} for {name}");
        Fault::new(FaultKind::OutOfRange, span, format!("not {range}"), consequence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<FaultKind> {
        read(text.as_bytes()).faults.iter().map(|fault| fault.kind).collect()
    }

    #[test]
    fn what_opensm_takes_as_meant_is_not_named() {
        let text = "# a comment\n\nguid 0x98039b0300a1b0c1 # port 1\n\tsm_priority\t14\n\
            qos TRUE\r\n\r\ndaemon FALSE\nsweep_on_trap no\nlog_file /var/log/my opensm.log\n\
            routing_engine updn,minhop\nevent_plugin_options (null)\nlmc 0x7\n\
            partition_config_file \"/etc/opensm/p.conf\"\nallow_both_pkeys TRUE\n\
            cc_cct (null)\nqos_vlarb_high 0:4,1:0\nm_key_lease_period 0x003c\nlog_flags 3";
        let read = read(text.as_bytes());
        assert_eq!(read.faults, []);
        assert_eq!(read.partitions.as_deref(), Some("/etc/opensm/p.conf"));
        assert!(read.allows_both);
    }

    #[test]
    fn what_opensm_does_not_take_is_named() {
        use FaultKind::{
            GuidList, KeyUnknown, LineTooLong, NotANumber, NotTrue, Octal, OutOfRange, ValueUnknown,
        };
        for (text, expected) in [
            ("guid 0x1,0x2", GuidList),
            ("guid 0x1 0x2", GuidList),
            ("guid 98039b0300a1b0c1", NotANumber),
            ("guid", NotANumber),
            ("guid 0x198039b0300a1b0c1", OutOfRange),
            ("guid 0123456701234567", Octal),
            ("sm_priority 16", OutOfRange),
            ("sm_priority 256", OutOfRange),
            ("sm_priority -1", OutOfRange),
            ("sm_priority high", NotANumber),
            ("sm_priority = 5", ValueUnknown),
            ("sm_priority=5", KeyUnknown),
            ("SM_PRIORITY 5", KeyUnknown),
            ("virt_enabled 2", KeyUnknown),
            ("qos true", NotTrue),
            ("qos", NotTrue),
            ("part_enforce none", ValueUnknown),
            ("console telnet", ValueUnknown),
            ("lmc 8", OutOfRange),
            (&format!("#{}\nlmc 1", "x".repeat(LONGEST - 1) + "lmc 3"), LineTooLong),
        ] {
            assert_eq!(kinds(text), [expected], "{text}");
        }
        assert_eq!(kinds(&format!("#{} more", "x".repeat(LONGEST))), []);
    }

    #[test]
    fn each_key_is_there_once() {
        let all: Vec<&str> = all_keys().map(|(key, _)| key).collect();
        let once: std::collections::BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), once.len());
        assert_eq!(all.len(), 162);
    }
}
