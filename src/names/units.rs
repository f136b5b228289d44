//! systemd units: their names, where they are, and which ones ibprov or a network stack has.

/// The unit whose run of `wait-online` is of the boot: by hand, and in the prologs of jobs,
/// it is run for any port.
pub const WAIT_ONLINE_UNIT: &str = "ibprov-wait-online.service";

/// Where systemd looks for units and for the links by which one wants another, what counts
/// first (systemd.unit(5), "UNIT FILE LOAD PATH").
pub const UNIT_DIRS: [&str; 9] = [
    "/etc/systemd/system.control",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/run/systemd/system",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
];

/// Those that hold files of administrators and packages, what counts first.
pub const UNIT_FILE_DIRS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// Our unit that has the name openibd.service: it comes after ibprov.service, does
/// nothing and never fails, so that what requires openibd starts although a port is
/// missing, as it did with the vendor's.
pub const OPENIBD_STAND_IN: &str = "ibprov-openibd.service";

/// The name of a systemd unit that can be started, with its suffix
/// (`systemd.unit(5)`): at most 255 of ASCII letters, digits and `:-_.\@`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitName(String);

as_it_is!(UnitName);

const NOT_A_UNIT: &str = "is not a unit name: expected the full name, e.g. vm@9.service, of ASCII letters, digits and :-_.\\@ (systemd-escape makes one of any text)";

/// What can be started and be up.
const SUFFIXES: [&str; 7] =
    [".service", ".target", ".socket", ".mount", ".scope", ".path", ".timer"];

parsed!(UnitName, NOT_A_UNIT, |text| {
    let stem = SUFFIXES.iter().find_map(|suffix| text.strip_suffix(suffix))?;
    // A template without an instance cannot be started.
    let good = !stem.is_empty()
        && !stem.ends_with('@')
        && !stem.starts_with('@')
        && text.len() <= 255
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b":-_.\\@".contains(&b));
    good.then(|| Self(text.to_owned()))
});

/// What a unit of a network stack does for interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkRole {
    /// It sets interfaces up once and never again: what is not there stays down.
    SetsUpOnce,
    /// It sets interfaces up whenever they come.
    SetsUpWhatComes,
    /// It waits until the network is there, under a time limit.
    WaitsOnline,
}

/// A text as the instance of a unit, as `systemd-escape` does it
/// (`systemd.unit(5)`, "String escaping for inclusion in unit names").
pub fn unit_escape(text: &str) -> String {
    let mut escaped = String::new();
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'/' => escaped.push('-'),
            b'.' if i == 0 => escaped.push_str("\\x2e"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'_' | b'.' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("\\x{byte:02x}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_names_need_a_suffix_and_an_instance() {
        for text in ["vm.service", "vm@9.service", "vm@a\\x2fb.service", "vms.target"] {
            assert!(text.parse::<UnitName>().is_ok(), "{text}");
        }
        for text in
            ["", "vm", ".service", "vm@.service", "vm;reboot.service", "a b.service", "x.device"]
        {
            assert!(text.parse::<UnitName>().is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _unit: Result<UnitName, _> = text.parse();
        }
    }
}
