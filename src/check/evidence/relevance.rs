//! What a line is about: the RDMA stack, or a netdev that was asked for before it was there.

use std::cmp::Ordering;
use std::collections::BTreeSet;

pub use super::words::relevance::NOT_FOUND;
use super::words::relevance::{DEVICES, NOT_FOUND_PATTERNS};
use super::{Event, Kind};
use crate::check::pattern::{caught_one, has_any};
use crate::names::{PciAddress, RDMA_MODULES, is_ipoib_name};

/// True if a word of `text` is a module of the RDMA stack, an RDMA device of such a
/// driver, an IPoIB netdev or a call of librdmacm or libibverbs, or if it speaks of
/// InfiniBand or of an OFED.
pub fn concerns_rdma(text: &str) -> bool {
    if has_any(text, &["nfiniBand", "nfiniband", "RDMA", "OFED"]) {
        return true;
    }
    words(text).any(|word| {
        RDMA_MODULES.contains(&word)
            || is_ipoib_name(word)
            || is_rdma_device(word)
            || is_of_library(word)
    })
}

/// The first RDMA device that `text` names.
pub fn rdma_device_in(text: &str) -> Option<&str> {
    words(text).find(|word| is_rdma_device(word))
}

/// The PCI functions, RDMA devices and netdevs of the fabric that `text` names, and those that
/// are `known`.
pub fn objects_in<'a>(
    text: &'a (impl AsRef<[u8]> + ?Sized),
    known: &'a BTreeSet<Box<str>>,
) -> impl Iterator<Item = &'a str> {
    // Of the millions of words of a long log nearly all are none: bytes tell most of that.
    let ends = |b: &u8| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':'));
    text.as_ref().split(ends).filter_map(|mut word| {
        let may_be = match word {
            [b'b' | b'h' | b'i' | b'm' | b'o' | b'q' | b'r' | b's', rest @ ..] => {
                rest.iter().any(u8::is_ascii_digit)
            }
            [.., b':', _, _, b'.', _] | [.., b':', _, _, b'.', _, b'.' | b':'] => true,
            _ => false,
        };
        (may_be || !known.is_empty() && word.len() < 30).then_some(())?;
        while let [rest @ .., b'.' | b':'] = word {
            word = rest;
        }
        // The unit of a netdev is named after it.
        for unit in [&b".device"[..], b".service"] {
            word = word.strip_suffix(unit).unwrap_or(word);
        }
        let word = std::str::from_utf8(word).ok()?;
        // UCX and NCCL write `mlx5_0:1` of its first port.
        let word = match word.split_once(':') {
            Some((device, _)) if is_rdma_device(device) => device,
            _ => word,
        };
        let is_object = known.contains(word)
            || is_ipoib_name(word)
            || is_rdma_device(word)
            || word.len() > 11 && word.parse::<PciAddress>().is_ok();
        is_object.then_some(word)
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
    words.map(|word| word.trim_end_matches('.'))
}

/// True of a function of librdmacm or libibverbs, of these themselves, of the directory in
/// which an OFED has its sources, and of the transport of iSCSI over RDMA.
fn is_of_library(word: &str) -> bool {
    let starts = ["rdma_", "ibv_", "librdmacm", "libibverbs"];
    matches!(word, "ofa_kernel" | "iser") || starts.iter().any(|start| word.starts_with(start))
}

/// True of `mlx5_0` and its like, and of the names that rdma-core gives by slot or GUID, but for
/// those that IPoIB netdevs have too.
fn is_rdma_device(word: &str) -> bool {
    let driver = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let of_slot = || {
        let rest = ["roce", "iw", "opa", "rdma"].iter().find_map(|kind| word.strip_prefix(kind));
        rest.and_then(|rest| rest.strip_prefix(['p', 's', 'o', 'x', 'P']))
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()))
    };
    driver.len() < word.len() && DEVICES.contains(&driver) || of_slot()
}

/// The interface of the line in which a network service did not find it.
pub fn not_found(event: &Event) -> Option<&str> {
    if let Kind::InterfaceAsked { name, worked: Some(false) } = &event.kind
        && has_any(
            &event.text,
            &["does not seem to be present", "not present", "Cannot find device"],
        )
    {
        return Some(name);
    }
    let caught = NOT_FOUND_PATTERNS.iter().filter_map(|pattern| caught_one(&event.text, pattern));
    let mut names = caught.map(|name| name.rsplit(' ').next().unwrap_or(name));
    names.find(|name| !name.is_empty() && name.len() < 16)
}

/// Whether a netdev came too late for who asked for it. `found` is what the asker
/// says: whether it was there; `None` if it says neither. `came` is when the netdev came, beside
/// the ask.
///
/// An asker that did not find what was there already came for another reason: the
/// netdev had another name, or something else was wrong. Logs of whole seconds can
/// have both in the same one; then the asker's word counts.
pub const fn came_too_late(found: Option<bool>, came: Ordering) -> bool {
    match found {
        Some(true) => false,
        Some(false) => came.is_ge(),
        None => came.is_gt(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Ordering, came_too_late, concerns_rdma, objects_in, rdma_device_in};

    #[test]
    fn the_device_that_is_named() {
        assert_eq!(rdma_device_in("cannot open mlx5_12: No such device"), Some("mlx5_12"));
        assert_eq!(rdma_device_in("mlx5_core 0000:01:00.0: mlx5_ib"), None);
    }

    #[test]
    fn the_names_of_rdma_devices() {
        for name in ["mlx5_0", "mlx5_bond_0", "rocep33s0f0", "rocex0c42a10300c6", "opap4s0", "rxe0"]
        {
            assert_eq!(rdma_device_in(name), Some(name));
        }
        for name in [
            "mlx5_ib",
            "mlx5_core",
            "rocev2",
            "roce",
            "rdmap",
            "opensm",
            "iwpmd",
            "rxe",
            "sriov_numvfs",
        ] {
            assert_eq!(rdma_device_in(name), None, "{name}");
        }
        let of_port = "Transport retry count exceeded on mlx5_0:1/IB";
        assert_eq!(objects_in(of_port, &BTreeSet::new()).last(), Some("mlx5_0"));
        let unit = "sys-devices-pci0000:00-0000:00:10.0-0000:01:00.1-net-ib2.device";
        assert_eq!(objects_in(unit, &BTreeSet::new()).last(), Some("ib2"));
    }

    #[test]
    fn the_objects_that_are_named() {
        let known = BTreeSet::from(["storage0".into()]);
        let text = "mlx5_core 0000:4b:00.0 storage0: renamed from ib0 (mlx5_3/1), 10000:e1:00.1: veth1: x.";
        let named: Vec<&str> = objects_in(text, &known).collect();
        assert_eq!(named, ["0000:4b:00.0", "storage0", "ib0", "mlx5_3", "10000:e1:00.1"]);
    }

    #[test]
    fn lines_of_the_stack_are_told_from_others() {
        for text in [
            "mlx5_core 0000:01:00.0: x",
            "infiniband mlx5_0: x",
            "ib0: multicast join failed",
            "mlx5_3: x",
            "irdma: x",
            "bnxt_en 0000:61:00.0 bnxt_re0: x",
            "listen: rdma_create_event_channel failed",
            "ibv_get_device_list() fails",
            "OFED_INCLUDE_PATH = [/usr/src/ofa_kernel/default/include]",
        ] {
            assert!(concerns_rdma(text), "{text}");
        }
        for text in ["ata1: x", "eth0: x", "nouveau 0000:01:00.0: x", "calib0 x", ""] {
            assert!(!concerns_rdma(text), "{text}");
        }
    }

    #[test]
    fn the_askers_word_counts_within_the_same_second() {
        for (found, came, late) in [
            (Some(false), Ordering::Greater, true),
            (Some(false), Ordering::Equal, true),
            (Some(false), Ordering::Less, false),
            (None, Ordering::Greater, true),
            (None, Ordering::Equal, false),
            (Some(true), Ordering::Greater, false),
        ] {
            assert_eq!(came_too_late(found, came), late, "{found:?} {came:?}");
        }
    }
}
