//! Names and addresses replaced in texts that leave the host: consistently, so that what
//! was equal stays equal, and in their own form, so that what was read is read again.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::evidence::Needles;
use crate::names::{RDMA_MODULES, is_ipoib_name};

/// What replaces names and addresses. Each [`Mask`] has a key of its own, which nobody
/// knows: two archives of one host have other addresses.
///
/// An address keeps its beginning (of an IPv4 address 8 bits, of an IPv6 address 16, of a
/// MAC address and of a GUID the 24 of its vendor), and two that agree in more bits agree
/// in as many afterwards: what was in one subnet still is. Zero, all ones, loopback and
/// multicast stay as they are.
#[derive(Debug, Clone)]
pub struct Mask {
    key: RandomState,
    /// Names of hosts in lower case, and what stands for them.
    hosts: BTreeMap<String, String>,
    /// Domains, each with a dot before it: names in them are of hosts too.
    domains: Vec<String>,
}

/// The bit that tells an EUI-64 from the interface identifier that is made of it
/// (RFC 4291, appendix A).
const LOCAL: u64 = 0x02 << 56;

/// No name of a host is longer (RFC 1035, 2.3.4), and no address, bytes: a long word is not
/// searched anew from each of its parts to its end.
const LONGEST: usize = 256;

impl Mask {
    /// One that replaces the names `hosts`, in this order, and every name in `domains`. Those that stand in messages that
    /// `needles` look for cannot be replaced without losing these; they are given too.
    pub fn new<'a>(
        hosts: impl IntoIterator<Item = &'a str>,
        domains: impl IntoIterator<Item = String>,
        needles: &Needles,
    ) -> (Self, Vec<String>) {
        let domains = domains.into_iter().map(|d| d.trim_matches('.').to_ascii_lowercase());
        // `service` is no domain, and a name in `local` may be anything.
        let domains = domains.filter(|domain| domain.contains('.')).map(|d| format!(".{d}"));
        let mut mask =
            Self { key: RandomState::new(), hosts: BTreeMap::new(), domains: domains.collect() };
        let mut kept = Vec::new();
        for name in hosts {
            let name = name.trim_matches('.').to_ascii_lowercase();
            if !is_host_name(&name) || mask.hosts.contains_key(&name) {
                continue;
            }
            if is_ipoib_name(&name)
                || RDMA_MODULES.contains(&name.as_str())
                || needles.has_word(&name)
            {
                if !kept.contains(&name) {
                    kept.push(name);
                }
                continue;
            }
            // With and without its domain it is one host.
            let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
            let known = mask.hosts.iter().find(|(known, _)| short(known) == short(&name));
            let new = match known {
                Some((_, new)) => new.clone(),
                None => {
                    let numbers: BTreeSet<&String> = mask.hosts.values().collect();
                    format!("host-{}", numbers.len() + 1)
                }
            };
            mask.hosts.insert(name, new);
        }
        (mask, kept)
    }

    /// `text` with every name and address replaced.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = String::new();
        // Up to here `text` is in `out`.
        let mut done = 0;
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let length = match self.word(text, at) {
                Some((length, new)) => {
                    out.push_str(text.get(done..at).unwrap_or_default());
                    out.push_str(&new);
                    done = at + length;
                    length
                }
                // No word begins here, or one that stays.
                None => match rest.find(|c: char| !is_plain(c)) {
                    Some(0) => rest.chars().next().map_or(1, char::len_utf8),
                    end => end.unwrap_or(rest.len()),
                },
            };
            at += length;
        }
        if done == 0 && out.is_empty() {
            return Cow::Borrowed(text);
        }
        out.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// What begins at `at` and is replaced: its length, and what it becomes.
    fn word(&self, text: &str, at: usize) -> Option<(usize, String)> {
        let rest = text.get(at..)?;
        let rest = (0..4).find_map(|less| rest.get(..LONGEST - less)).unwrap_or(rest);
        let before = text.get(..at)?.chars().next_back();
        if before.is_some_and(is_plain) {
            return None;
        }
        let is_name = |c: char| is_plain(c) || matches!(c, '.' | '-');
        let name = rest.split(|c: char| !is_name(c)).next()?;
        if let Some((known, new)) = self.host(name) {
            return Some((known, new));
        }
        if let Some(found) = self.named_by_address(name).or_else(|| self.grouped(name)) {
            return Some(found);
        }
        // `0x` stands before a number, and is no part of it.
        let (prefix, number) = match rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
            Some(number) => (2, number),
            None => (0, rest),
        };
        // `1.2.3.4.5` is no address, and nor is its end.
        let head = text.get(..at)?.strip_suffix('.');
        if head.is_some_and(|head| head.ends_with(|c: char| c.is_ascii_digit())) {
            return None;
        }
        let end = number.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(number.len());
        let run = number.get(..end)?.trim_end_matches('.');
        if let Ok(ip) = run.parse::<Ipv4Addr>()
            && !number.get(end..)?.starts_with(is_plain)
        {
            // `24.10-1.1.4.0` is a version.
            let is_version = before == Some('-') && {
                let head = text.get(..at - 1)?;
                let head = head.rsplit(|c: char| !(c.is_ascii_digit() || c == '.')).next()?;
                !head.is_empty() && head.parse::<Ipv4Addr>().is_err()
            };
            return (!is_version).then(|| (prefix + run.len(), self.v4(ip).to_string()));
        }
        let end = number
            .find(|c: char| !(c.is_ascii_hexdigit() || c == ':' || c == '.'))
            .unwrap_or(number.len());
        // Words go on: `deadbeef_x`, `fe.service`.
        if number.get(end..)?.starts_with(is_plain) {
            return None;
        }
        let shown = number.get(..end)?;
        let run = shown.trim_end_matches(['.', ':']);
        // `fe80::` ends with colons that belong to it.
        let run = if shown.get(run.len()..)?.starts_with("::") {
            shown.get(..run.len() + 2)?
        } else {
            run
        };
        let new = self.hex(run, prefix > 0)?;
        Some((prefix + run.len(), format!("{}{new}", rest.get(..prefix)?)))
    }

    /// The host whose name, perhaps with its domain, `name` is.
    fn host(&self, name: &str) -> Option<(usize, String)> {
        let name = name.trim_end_matches(['.', '-', '_']);
        let low = name.to_ascii_lowercase();
        if let Some(new) = self.hosts.get(&low) {
            return Some((name.len(), new.clone()));
        }
        if self.domains.iter().any(|domain| low.ends_with(domain.as_str())) {
            let number = self.key.hash_one(&low) & 0xff_ffff;
            return Some((name.len(), format!("host-{number:06x}")));
        }
        // Its own domain says where it is.
        let (short, domain) = low.split_once('.')?;
        let is_unit = ["service", "mount", "target", "socket", "timer", "device", "slice", "scope"]
            .contains(&domain);
        let is_file = ["json", "log", "conf", "toml", "xml", "gz", "d"].contains(&domain);
        let new = self.hosts.get(short)?;
        Some(match is_unit || is_file {
            true => (name.len(), format!("{new}.{domain}")),
            false => (name.len(), new.clone()),
        })
    }

    /// A netdev or an RDMA device that is named by its MAC address or GUID (systemd's
    /// `enx`, rdma-core's `ibx` and `rocex`).
    fn named_by_address(&self, name: &str) -> Option<(usize, String)> {
        let (kind, hex) = ["enx", "wlx", "wwx", "ibx", "rocex", "iwx", "opax"]
            .iter()
            .find_map(|kind| Some((*kind, name.strip_prefix(kind)?)))?;
        let number = u64::from_str_radix(hex, 16).ok()?;
        let new = match hex.len() {
            12 => format!("{:012x}", self.mac(number)),
            16 => format!("{:016x}", self.guid(number)),
            _ => return None,
        };
        Some((name.len(), format!("{kind}{new}")))
    }

    /// A MAC address or a GUID whose groups have other signs between them than colons.
    fn grouped(&self, name: &str) -> Option<(usize, String)> {
        let name = name.trim_end_matches(['.', '-']);
        let groups: Vec<&str> = match name.contains('-') {
            true => name.split('-').collect(),
            false => name.split('.').collect(),
        };
        let number = u64::from_str_radix(&groups.concat(), 16).ok()?;
        let digits: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        let new = match digits[..] {
            [2, 2, 2, 2, 2, 2] | [4, 4, 4] => self.mac(number),
            [2, 2, 2, 2, 2, 2, 2, 2] | [4, 4, 4, 4] | [6, 6, 4] => self.guid(number),
            _ => return None,
        };
        Some((name.len(), written(new.into(), name)))
    }

    /// A MAC address, a GUID, the address of an IPoIB netdev or an IPv6 address.
    fn hex(&self, run: &str, prefixed: bool) -> Option<String> {
        let groups: Vec<&str> = run.split(':').collect();
        let each = |digits| groups.iter().all(|group| group.len() == digits);
        let number = |groups: &[&str]| u64::from_str_radix(&groups.concat(), 16).ok();
        let guid = |groups: &[&str]| Some(u128::from(self.guid(number(groups)?)));
        match groups.len() {
            1 if run.len() == 16 => Some(written(guid(&groups)?, run)),
            _ if prefixed => None,
            4 if each(4) => Some(written(guid(&groups)?, run)),
            6 if each(2) => Some(written(self.mac(number(&groups)?).into(), run)),
            8 if each(2) => Some(written(guid(&groups)?, run)),
            20 if each(2) => {
                let (_, of_guid) = groups.split_at(12);
                let (head, tail) = run.split_at_checked(run.len() - 23)?;
                Some(format!("{head}{}", written(guid(of_guid)?, tail)))
            }
            _ => {
                let ip: Ipv6Addr = run.parse().ok()?;
                let is_gid = groups.len() == 8 && each(4);
                // `dead::beef` may be a name of C++.
                (is_gid || run.bytes().any(|b| b.is_ascii_digit())).then_some(())?;
                let new = self.v6(ip);
                Some(if is_gid { written(new.to_bits(), run) } else { new.to_string() })
            }
        }
    }

    fn v4(&self, ip: Ipv4Addr) -> Ipv4Addr {
        let bits = ip.to_bits();
        // A mask of a network has no address in it.
        let is_mask = bits.leading_ones() + bits.trailing_zeros() == 32;
        if ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_mask {
            return ip;
        }
        let new = self.scrambled(u128::from(bits), 32, 8, "v4");
        Ipv4Addr::from_bits(u32::try_from(new).unwrap_or(bits))
    }

    fn v6(&self, ip: Ipv6Addr) -> Ipv6Addr {
        if ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() {
            return ip;
        }
        if let Some(v4) = ip.to_ipv4_mapped() {
            return self.v4(v4).to_ipv6_mapped();
        }
        let bits = ip.to_bits();
        let low = u64::try_from(bits & u128::from(u64::MAX)).unwrap_or_default();
        // A GID, or a link-local address that is made of a GUID.
        let high = match ip.segments() {
            [0xfe80, 0, 0, 0, ..] => bits >> 64,
            _ => self.scrambled(bits >> 64, 64, 16, "v6"),
        };
        Ipv6Addr::from_bits(high << 64 | u128::from(self.guid(low)))
    }

    fn guid(&self, guid: u64) -> u64 {
        match guid {
            0 | u64::MAX => guid,
            // Whether the bit is set makes no other GUID.
            _ => {
                let new = self.scrambled(u128::from(guid & !LOCAL), 64, 24, "guid");
                u64::try_from(new).unwrap_or(guid) | guid & LOCAL
            }
        }
    }

    fn mac(&self, mac: u64) -> u64 {
        match mac {
            0 | 0xffff_ffff_ffff => mac,
            _ => u64::try_from(self.scrambled(u128::from(mac), 48, 24, "mac")).unwrap_or(mac),
        }
    }

    /// `bits`, of which there are `width`, with each bit behind the first `keep` turned over
    /// or not by what stands before it: no two become one, and common beginnings stay common
    /// (as in Xu, Fan, Ammar, Moon: Prefix-Preserving IP Address Anonymization, 2002).
    fn scrambled(&self, bits: u128, width: u32, keep: u32, what: &str) -> u128 {
        (keep..width).fold(bits, |new, at| {
            let before = bits >> (width - at);
            let turned = u128::from(self.key.hash_one((what, at, before)) & 1);
            new ^ turned << (width - 1 - at)
        })
    }
}

/// `number` in the form of `like`: as many hexadecimal digits, large or small, in its groups.
fn written(number: u128, like: &str) -> String {
    let digits = like.bytes().filter(u8::is_ascii_hexdigit).count();
    let text = if like.bytes().any(|b| b.is_ascii_uppercase()) {
        format!("{number:0digits$X}")
    } else {
        format!("{number:0digits$x}")
    };
    let mut digits = text.chars();
    let of = |c: char| if c.is_ascii_hexdigit() { digits.next().unwrap_or(c) } else { c };
    like.chars().map(of).collect()
}

/// A character that no address begins or ends beside.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_host_name(name: &str) -> bool {
    let fits = name.len() >= 2
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && name.bytes().any(|b| b.is_ascii_alphabetic());
    let is_local = name.starts_with("localhost") || name.starts_with("ip6-");
    fits && !is_local && name.parse::<IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::rules;
    use super::*;
    use crate::names::Guid;

    fn mask(hosts: &[&str]) -> Mask {
        Mask::new(hosts.iter().copied(), [], rules::needles()).0
    }

    fn changed(mask: &Mask, text: &str) -> String {
        let new = mask.text(text).into_owned();
        assert_ne!(new, text);
        new
    }

    #[test]
    fn every_form_of_a_guid_becomes_the_same_guid() {
        let mask = mask(&[]);
        let colons = changed(&mask, "b8:59:9f:03:00:12:a4:fe");
        let guid: Guid = colons.parse().expect("a GUID");
        assert!(colons.starts_with("b8:59:9f:"), "{colons}");
        let plain = colons.replace(':', "");
        assert_eq!(mask.text("0xb8599f030012a4fe, x"), format!("0x{plain}, x"));
        assert_eq!(mask.text("(B8599F030012A4FE)"), format!("({})", plain.to_uppercase()));
        let sysfs = format!("{}:{}:{}:{}", &plain[..4], &plain[4..8], &plain[8..12], &plain[12..]);
        assert_eq!(mask.text("b859:9f03:0012:a4fe"), sysfs);
        let gid = mask.text("gid fe80:0000:0000:0000:b859:9f03:0012:a4fe").into_owned();
        assert_eq!(gid, format!("gid fe80:0000:0000:0000:{sysfs}"));
        let netdev = "80:00:00:08:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:12:a4:fe";
        let want = format!("80:00:00:08:fe:80:00:00:00:00:00:00:{colons}");
        assert_eq!(mask.text(netdev), want);
        assert_eq!(mask.text("rocexb8599f030012a4fe:"), format!("rocex{plain}:"));
        let dashed = colons.to_uppercase().replace(':', "-");
        assert_eq!(mask.text("B8-59-9F-03-00-12-A4-FE."), format!("{dashed}."));
        let dotted = format!("{}.{}.{}", &plain[..6], &plain[6..12], &plain[12..]);
        assert_eq!(mask.text("b8599f.030012.a4fe"), dotted);
        // The interface identifier has the other bit.
        let link_local: Ipv6Addr = mask.text("fe80::ba59:9f03:12:a4fe").parse().expect("IPv6");
        assert_eq!(link_local.to_bits() as u64, guid_bits(guid) ^ LOCAL);
    }

    fn guid_bits(guid: Guid) -> u64 {
        u64::from_str_radix(&guid.to_string().replace(':', ""), 16).expect("hex")
    }

    #[test]
    fn what_is_no_address_stays() {
        let mask = mask(&["node17.example.org", "node17"]);
        for text in [
            "0000:4b:00.0: mlx5_0 port 1",
            "10:00:09 2026-11-23T10:00:09.123456+00:00",
            "[15b3:101b] type 00 class 0x020700",
            "MLNX_OFED_LINUX-24.10-1.1.4.0, firmware 20.31.1014",
            "00:00:00:00:00:00:00:00 ffff:ffff:ffff:ffff 0x0000000000000000 0xffffffffffffffff",
            "ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -110",
            "127.0.0.1 0.0.0.0 255.255.255.0 ::1 :: std::fmt ib0.8001 enx1 lnet.service a.b.c.d",
            "deadbeef_x fe.service node170 xnode17 10.0.0.1.2 status=0x7",
        ] {
            assert_eq!(mask.text(text), text);
        }
    }

    #[test]
    fn addresses_and_hosts_are_replaced_wherever_they_stand() {
        let mask = mask(&["node17.example.org", "node17", "fs1"]);
        let ip = changed(&mask, "10.1.2.3");
        assert!(ip.starts_with("10.") && ip.parse::<Ipv4Addr>().is_ok(), "{ip}");
        assert_eq!(mask.text("mount 10.1.2.3:/scratch"), format!("mount {ip}:/scratch"));
        assert_eq!(mask.text("--bind=10.1.2.3:8008."), format!("--bind={ip}:8008."));
        assert_eq!(mask.text("[10.1.2.3/24]"), format!("[{ip}/24]"));
        assert_eq!(mask.text("fs1:/x on NODE17, root@node17"), "host-2:/x on host-1, root@host-1");
        assert_eq!(mask.text("node17.example.org."), "host-1.");
        assert_eq!(mask.text("node17.elsewhere.net"), "host-1");
        assert_eq!(mask.text("node17.service node17.json"), "host-1.service host-1.json");
        assert!(changed(&mask, "enx001122334455").starts_with("enx001122"));
        let mac = changed(&mask, "00:11:22:33:44:55");
        assert!(mac.starts_with("00:11:22:"), "{mac}");
        assert_eq!(
            mask.text("link/ether 00-11-22-33-44-55"),
            format!("link/ether {}", mac.replace(':', "-"))
        );
        let digits = mac.replace(':', "");
        let dotted = format!("{}.{}.{}", &digits[..4], &digits[4..8], &digits[8..]);
        assert_eq!(mask.text("(0011.2233.4455)"), format!("({dotted})"));
        assert_eq!(mask.text("iscsi:@10.1.2.3::3260::iqn"), format!("iscsi:@{ip}::3260::iqn"));
        let v6 = changed(&mask, "[2001:db8::7]:80");
        assert!(v6.starts_with("[2001:") && v6.ends_with("]:80"), "{v6}");
    }

    #[test]
    fn a_name_in_a_known_domain_is_one_of_a_host() {
        let domains = ["example.org".to_owned(), "local".to_owned()];
        let (mask, _) = Mask::new([], domains, rules::needles());
        let new = changed(&mask, "mds1.example.org:/x");
        assert!(new.starts_with("host-") && new.ends_with(":/x"), "{new}");
        assert_eq!(mask.text("mds1.example.org"), new.trim_end_matches(":/x"));
        assert_eq!(mask.text("a.local b.service"), "a.local b.service");
    }

    #[test]
    fn a_host_that_is_called_as_a_word_of_messages_is_said() {
        let (mask, kept) =
            Mask::new(["device", "ib0", "n9", "7", "a", "localhost"], [], rules::needles());
        assert_eq!(kept, ["device", "ib0"]);
        assert_eq!(
            mask.text("Cannot find device \"ib0\" on n9"),
            "Cannot find device \"ib0\" on host-1"
        );
    }

    #[test]
    fn a_subnet_stays_a_subnet_and_no_two_become_one() {
        let mask = mask(&[]);
        let of = |text: &str| -> IpAddr {
            match text.parse().expect("address") {
                IpAddr::V4(ip) => mask.v4(ip).into(),
                IpAddr::V6(ip) => mask.v6(ip).into(),
            }
        };
        let bits = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => ip.to_bits(),
            IpAddr::V6(_) => 0,
        };
        let (one, two) = (bits(of("10.1.2.3")), bits(of("10.1.2.130")));
        assert_eq!((one ^ two).leading_zeros(), 24);
        let all: std::collections::BTreeSet<u32> =
            (0..=255).map(|n| bits(of(&format!("10.7.7.{n}")))).collect();
        assert_eq!(all.len(), 256);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_masking_keeps_lines(text in "[ -~\nä]{0,80}") {
            let mask = mask(&["node17"]);
            let new = mask.text(&text);
            prop_assert_eq!(new.lines().count(), text.lines().count());
        }

        #[test]
        fn a_guid_in_any_text_is_replaced(guid in 1_u64..u64::MAX, head in "[ (='\"\n]{0,3}", tail in "[ ),'\"\n]{0,3}") {
            let hex = format!("{guid:016x}");
            let text = format!("{head}{hex}{tail}");
            let mask = mask(&[]);
            let new = mask.text(&text).into_owned();
            prop_assert_eq!(new.len(), text.len());
            prop_assert_eq!(&new[head.len()..head.len() + 6], &hex[..6]);
        }
    }
}
