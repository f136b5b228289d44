//! One log line, and what kind of thing it tells.

use serde::{Deserialize, Serialize};

use super::super::pattern::{caught, caught_one, has_any, word};
use super::own::{self, Own};
use crate::names::Moment;

/// Where a line stands.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Origin {
    /// Index of the source.
    pub source: u16,
    /// Line number, from 1.
    pub line: u64,
}

/// When a line was written, by the clocks that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct When {
    /// By the kernel's clock.
    pub monotonic: Option<Moment>,
    /// Microseconds since 1970, in the zone of the log. Where the year is not
    /// written it is taken for 1972: differences within a log hold.
    pub wall: Option<u64>,
    /// The time as it is written.
    pub stamp: Box<str>,
}

impl When {
    /// Microseconds from `earlier` to this, by a clock that both name.
    pub fn since(&self, earlier: &Self) -> Option<i64> {
        let difference = |a: u64, b: u64| i64::try_from(i128::from(a) - i128::from(b)).ok();
        match (self.monotonic, earlier.monotonic, self.wall, earlier.wall) {
            (Some(a), Some(b), _, _) => difference(a.usec(), b.usec()),
            (_, _, Some(a), Some(b)) => difference(a, b),
            _ => None,
        }
    }
}

/// How grave the writer of a line takes it to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// `err` and worse.
    Error,
    Warning,
    /// Anything else.
    Other,
}

impl Level {
    /// Of a priority as `syslog(3)` numbers them.
    pub const fn of_priority(priority: u8) -> Self {
        match priority {
            0..=3 => Self::Error,
            4 => Self::Warning,
            _ => Self::Other,
        }
    }
}

/// A log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Where it stands.
    pub origin: Origin,
    /// When it was written.
    pub when: When,
    /// The program that wrote it: `kernel`, `systemd`, `network` ...; empty
    /// where the line does not say.
    pub program: Box<str>,
    /// The systemd unit it is about or from, where the journal says so.
    pub unit: Box<str>,
    /// The message, without time, host and program; control characters
    /// replaced.
    pub text: Box<str>,
    /// How grave its writer takes it to be, where the log says so.
    pub level: Option<Level>,
    pub kind: Kind,
}

impl Event {
    /// True if the kernel wrote it, or may have (dmesg names no program).
    pub fn from_kernel(&self) -> bool {
        self.program.is_empty() || &*self.program == "kernel"
    }
}

/// What kind of thing a line tells, where more than one rule asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Kind {
    /// Nothing that is shared; rules read the text.
    #[default]
    Other,
    /// ibprov has written down how something ended.
    Own(Own),
    /// systemd began to start a unit (named by unit or by description).
    UnitStarting(Box<str>),
    /// systemd has started a unit, or finished a oneshot.
    UnitStarted(Box<str>),
    UnitFailed(Box<str>),
    /// A kernel module was loaded or asked for by name.
    ModuleLoad(Box<str>),
    /// The kernel enumerated a PCI function.
    PciFunction {
        address: Box<str>,
        /// Vendor and device, `15b3:101b`.
        id: Box<str>,
        /// Class as six hex digits, `020700`.
        class: Box<str>,
    },
    /// A driver took a PCI function up (its first words on it).
    DriverProbe {
        driver: Box<str>,
        address: Box<str>,
    },
    /// A driver's probe of a device failed.
    ProbeFailed {
        driver: Box<str>,
        /// The device, a PCI address or an auxiliary device.
        device: Box<str>,
        /// The negated errno.
        errno: i32,
    },
    /// mlx5 made the netdev of an IPoIB port (its receive queue is sized).
    NetdevMade {
        address: Box<str>,
    },
    /// A netdev got its final name.
    NetdevRenamed {
        from: Box<str>,
        to: Box<str>,
    },
    LinkReady(Box<str>),
    /// A network service asked for an interface.
    InterfaceAsked {
        name: Box<str>,
        /// `None` while the line does not tell the outcome.
        worked: Option<bool>,
    },
}

/// What kind of line `text` of `program` is.
pub fn kind(program: &str, text: &str) -> Kind {
    if program == "ibprov" {
        return own::by_words(text).map_or(Kind::Other, Kind::Own);
    }
    if program.starts_with("systemd") {
        return of_systemd(text).unwrap_or_default();
    }
    of_kernel(text).or_else(|| of_service(text)).unwrap_or_default()
}

/// Without the lines of systemd's catalogue that `journalctl -x` puts below a message.
fn without_explanation(text: &str) -> &str {
    let begins = [" -- Subject: ", " -- The unit ", " -- Unit "];
    let at = begins.iter().filter_map(|begin| text.find(begin)).min();
    at.and_then(|at| text.get(..at)).unwrap_or(text)
}

fn of_systemd(text: &str) -> Option<Kind> {
    let text = without_explanation(text).trim();
    if let Some(module) = text.strip_prefix("Inserted module '") {
        return Some(Kind::ModuleLoad(module.trim_end_matches('\'').into()));
    }
    // Since v249 `openibd.service - what it is`: the unit's name comes first.
    let name = |rest: &str| -> Box<str> {
        let rest = rest.trim_end_matches("...").trim_end_matches('.');
        rest.split_once(" - ")
            .map_or(rest, |(unit, _)| if unit.contains('.') { unit } else { rest })
            .into()
    };
    if let Some(rest) = text.strip_prefix("Starting ") {
        return Some(Kind::UnitStarting(name(rest)));
    }
    if let Some(rest) = text.strip_prefix("Started ").or_else(|| text.strip_prefix("Finished ")) {
        return Some(Kind::UnitStarted(name(rest)));
    }
    if let Some(rest) = text.strip_prefix("Failed to start ") {
        return Some(Kind::UnitFailed(name(rest)));
    }
    if let Some(unit) = text
        .split_once(": Failed with result")
        .map(|(unit, _)| unit)
        .or_else(|| caught_one(text, "Unit {} entered failed state"))
    {
        return Some(Kind::UnitFailed(unit.into()));
    }
    None
}

fn of_kernel(text: &str) -> Option<Kind> {
    if let Some((head, to)) = text.split_once(": renamed from ") {
        let mut words = head.rsplit([' ', ':']);
        let new = words.next().filter(|w| !w.is_empty())?;
        return Some(Kind::NetdevRenamed { from: word(to).into(), to: new.into() });
    }
    if let Some((head, _)) = text.split_once(": link becomes ready") {
        return Some(Kind::LinkReady(head.rsplit([' ', ':']).next()?.into()));
    }
    if text.contains("MLX5E: StrdRq") {
        return Some(Kind::NetdevMade { address: function(text)?.into() });
    }
    if let Some([driver, device, errno]) = caught::<3>(text, "{}: probe of {} failed with error {}")
    {
        let errno = word(errno).parse().ok()?;
        let driver = driver.rsplit(' ').next().unwrap_or(driver);
        return Some(Kind::ProbeFailed { driver: driver.into(), device: device.into(), errno });
    }
    // Since 6.9: `mlx5_core 0000:4b:00.0: probe with driver mlx5_core failed with error -5`.
    if let Some([head, driver, errno]) =
        caught::<3>(text, "{}: probe with driver {} failed with error {}")
    {
        let errno = word(errno).parse().ok()?;
        let device = head.rsplit(' ').next().unwrap_or(head);
        return Some(Kind::ProbeFailed { driver: driver.into(), device: device.into(), errno });
    }
    if let Some([address, id, class]) = caught::<3>(text, "pci {}: [{}] type 0{}") {
        let class = caught_one(class, "class 0x{}").map_or("", word);
        // A missing leading zero: `class 0x20700` was never seen, but is cheap.
        return Some(Kind::PciFunction {
            address: address.into(),
            id: id.into(),
            class: class.into(),
        });
    }
    if text.contains(": firmware version:") {
        let (driver, _) = text.split_once(' ')?;
        return Some(Kind::DriverProbe { driver: driver.into(), address: function(text)?.into() });
    }
    None
}

fn of_service(text: &str) -> Option<Kind> {
    if let Some([name, outcome]) = caught::<2>(text, "Bringing up interface {}:{}") {
        let worked = if outcome.contains("OK") {
            Some(true)
        } else if has_any(outcome, &["FAILED", "ERROR", "rror:"]) {
            Some(false)
        } else {
            None
        };
        return Some(Kind::InterfaceAsked { name: name.trim().into(), worked });
    }
    let module =
        text.split_once("modprobe ").map(|(_, m)| m.trim_start_matches("-q ").trim_start());
    if let Some(module) = module
        && text.starts_with(['+', '/'])
    {
        return Some(Kind::ModuleLoad(word(module).into()));
    }
    None
}

/// The PCI address that stands in `text`, domain and all: of a path in sysfs, and of the unit that
/// systemd names after it, the last one. Those before it are of the bridges above.
pub fn function(text: &str) -> Option<&str> {
    let is_address = |part: &&str| part.parse::<crate::names::PciAddress>().is_ok();
    text.split([' ', '[', ']', '(', ')', ',', '\'', '"', '=']).find_map(|word| {
        word.rsplit(['/', '-']).map(|w| w.trim_end_matches([':', '.'])).find(is_address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::at;

    #[test]
    fn what_journalctl_explains_is_no_part_of_a_units_name() {
        let started = "Started mlnx_interface_mgr@ib0. -- Subject: Unit mlnx_interface_mgr@ib0.service has finished start-up -- Unit x has finished starting up.";
        assert_eq!(kind("systemd", started), Kind::UnitStarted("mlnx_interface_mgr@ib0".into()));
        let other = "Started Foo -- Bar.";
        assert_eq!(kind("systemd", other), Kind::UnitStarted("Foo -- Bar".into()));
    }

    #[test]
    fn the_kernels_clock_counts_where_both_are_written() {
        // The other one is set while the system starts.
        let by = |monotonic, wall| When { monotonic, wall, stamp: "".into() };
        let (first, second) = (by(Some(at(10)), Some(9_000)), by(Some(at(30)), Some(1_000)));
        assert_eq!(second.since(&first), Some(20));
        assert_eq!(by(None, Some(9_500)).since(&first), Some(500));
        assert_eq!(by(None, Some(1)).since(&by(Some(at(1)), None)), None);
    }

    #[test]
    fn a_path_leads_to_its_last_function() {
        for text in [
            "mlx5_core 0000:01:00.1: above is 0000:00:10.0",
            "cannot read /sys/devices/pci0000:00/0000:00:10.0/0000:01:00.1/net/ib2: EIO",
            "Timed out waiting for device sys-devices-pci0000:00-0000:00:10.0-0000:01:00.1-net-ib2.device",
            "pci=0000:01:00.1",
        ] {
            assert_eq!(function(text), Some("0000:01:00.1"), "{text}");
        }
    }

    #[test]
    fn shared_kinds_are_known() {
        let renamed = kind("kernel", "mlx5_core 0000:01:00.0 ibp1s0: renamed from ib0");
        assert_eq!(renamed, Kind::NetdevRenamed { from: "ib0".into(), to: "ibp1s0".into() });
        for text in [
            "mlx5_core: probe of 0000:0b:00.0 failed with error -22",
            "mlx5_core 0000:0b:00.0: probe with driver mlx5_core failed with error -22",
        ] {
            let failed = Kind::ProbeFailed {
                driver: "mlx5_core".into(),
                device: "0000:0b:00.0".into(),
                errno: -22,
            };
            assert_eq!(kind("kernel", text), failed);
        }
        assert_eq!(
            kind("kernel", "pci 0000:4b:00.0: [15b3:101b] type 00 class 0x020700"),
            Kind::PciFunction {
                address: "0000:4b:00.0".into(),
                id: "15b3:101b".into(),
                class: "020700".into()
            }
        );
        assert_eq!(
            kind("systemd", "Started openibd.service - openibd - configure Mellanox devices."),
            Kind::UnitStarted("openibd.service".into())
        );
        assert_eq!(
            kind("systemd", "Starting LSB: Bring up/down networking..."),
            Kind::UnitStarting("LSB: Bring up/down networking".into())
        );
        assert_eq!(
            kind("network", "Bringing up interface ib0:  ERROR     : [/x] Device ib0 does not"),
            Kind::InterfaceAsked { name: "ib0".into(), worked: Some(false) }
        );
        assert_eq!(
            kind("openibd", "+ /sbin/modprobe ib_ipoib"),
            Kind::ModuleLoad("ib_ipoib".into())
        );
        assert_eq!(
            kind("kernel", "IPv6: ADDRCONF(NETDEV_CHANGE): ibs4f1: link becomes ready"),
            Kind::LinkReady("ibs4f1".into())
        );
    }
}
