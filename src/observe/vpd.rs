//! What the vital product data of a PCI function say that it is for.
//!
//! On machines with NVSwitches of the fourth generation (HGX and DGX B200 and later) the
//! switches are managed through functions that are InfiniBand HCAs by class, vendor and
//! driver. nvidia-fabricmanager and nvlsm use them; no fabric is behind them. What tells
//! them apart is a vendor's field of their product data with `SMDL=SW_MNG`.
//!
//! Product data are read by a child process ([`crate::workers`]), once: the kernel asks
//! the card for four octets at a time and waits up to 125 ms for each
//! (`pci_vpd_wait()`, `drivers/pci/vpd.c`). What came of it is kept below
//! [`state::RUN_DIR`].

use serde::{Deserialize, Serialize};

use super::Look;
use crate::host::state::StateError;
use crate::host::{ReadError, Root, state};
use crate::names::{PciAddress, is_hostile};

/// What a function is for, by its product data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Product {
    #[serde(rename = "nvswitch-management")]
    NvSwitchManagement,
    /// Anything else: they say nothing of that, or there are none.
    Other,
    /// They could not be read.
    Unread,
}

/// Product data that are not as the PCI specification has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VpdError {
    /// Nothing came: the kernel found no valid beginning.
    #[error("the function has no valid product data, the kernel reports")]
    Empty,
    /// A resource or field reaches beyond the data.
    #[error("octet {at}: the field does not end within the {length} octets of product data")]
    CutOff {
        at: usize,
        /// How many octets there are.
        length: usize,
    },
    /// There is no such tag.
    #[error("octet {at}: 0x{tag:02x} is not a tag of product data")]
    NoTag { at: usize, tag: u8 },
}

/// Identifier string, read-only and read-write fields: large resources with a length of
/// two octets, the lower first (PCI Local Bus Specification 2.2, appendix I).
const LARGE_IDENTIFIER: u8 = 0x82;
const LARGE_READ_ONLY: u8 = 0x90;
const LARGE_READ_WRITE: u8 = 0x91;
/// The end, a small resource.
const SMALL_END: u8 = 0x78;

/// What the vendor writes there, one of several parts between colons.
const MANAGEMENT: &[u8] = b"SMDL=SW_MNG";

/// Read product data as `/sys/bus/pci/devices/ADDRESS/vpd` gives them. A field that says
/// it counts, whatever follows; that there is none is known only at the end tag.
///
/// # Errors
/// They are not as the specification has them.
pub fn product(data: &[u8]) -> Result<Product, VpdError> {
    let is_management = |_, [first, _]: [u8; 2], text: &[u8]| {
        let mut parts = text.split(|octet| *octet == b':');
        let says = first == b'V' && parts.any(|part| without_padding(part) == MANAGEMENT);
        says.then_some(Product::NvSwitchManagement)
    };
    Ok(first_field(data, is_management)?.unwrap_or(Product::Other))
}

/// The serial number (keyword SN) in product data, if they have one.
pub fn serial(data: &[u8]) -> Option<String> {
    let is_serial =
        |tag, keyword, text| (tag == LARGE_READ_ONLY && keyword == *b"SN").then_some(text);
    let text = first_field(data, is_serial).ok()??;
    let text = std::str::from_utf8(without_padding(text)).ok()?;
    Some(text.to_owned()).filter(|text| !text.is_empty() && !text.contains(is_hostile))
}

/// What `found` makes of the first field of which it makes something, by the tag of its resource,
/// its keyword and its text. A field is a keyword of two letters, one octet of length, its text.
fn first_field<'a, T>(
    data: &'a [u8],
    found: impl Fn(u8, [u8; 2], &'a [u8]) -> Option<T>,
) -> Result<Option<T>, VpdError> {
    if data.is_empty() {
        return Err(VpdError::Empty);
    }
    // What begins so many octets before the end does not end within it.
    let cut_off = |left: usize| VpdError::CutOff { at: data.len() - left, length: data.len() };
    let mut rest = data;
    loop {
        let start = cut_off(rest.len());
        let (tag, after) = rest.split_first().ok_or(start)?;
        match *tag {
            SMALL_END => return Ok(None),
            LARGE_IDENTIFIER | LARGE_READ_ONLY | LARGE_READ_WRITE => {}
            tag => return Err(VpdError::NoTag { at: data.len() - rest.len(), tag }),
        }
        let (length, after) = after.split_first_chunk::<2>().ok_or(start)?;
        let (mut fields, next) =
            after.split_at_checked(u16::from_le_bytes(*length).into()).ok_or(start)?;
        while *tag != LARGE_IDENTIFIER && !fields.is_empty() {
            let start = cut_off(fields.len() + next.len());
            let ([first, second, size], text) = fields.split_first_chunk::<3>().ok_or(start)?;
            let (text, others) = text.split_at_checked((*size).into()).ok_or(start)?;
            if let Some(found) = found(*tag, [*first, *second], text) {
                return Ok(Some(found));
            }
            fields = others;
        }
        rest = next;
    }
}

/// Without the blanks and zeros that fill a field up.
fn without_padding(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|octet| !matches!(octet, 0 | b' ')).map_or(0, |last| last + 1);
    text.get(..end).unwrap_or_default().trim_ascii_start()
}

const DEVICES: &str = "/sys/bus/pci/devices";

/// More than product data can be: an address of theirs has 15 bits.
const LIMIT: u64 = 32 * 1024;

/// Read the product data of a function. This may take long, or for ever.
///
/// # Errors
/// They cannot be read, or make no sense.
pub fn read(root: &Root, pci: PciAddress) -> Result<Product, NotRead> {
    match bytes(root, pci)? {
        Some(data) => Ok(product(&data)?),
        None => Ok(Product::Other),
    }
}

/// Read the serial number of a function. This may take long, or for ever.
///
/// # Errors
/// The product data cannot be read.
pub fn read_serial(root: &Root, pci: PciAddress) -> Result<Option<String>, ReadError> {
    Ok(bytes(root, pci)?.as_deref().and_then(serial))
}

/// The product data of a function; without the capability there is no file.
fn bytes(root: &Root, pci: PciAddress) -> Result<Option<Vec<u8>>, ReadError> {
    match root.bytes(&format!("{DEVICES}/{pci}/vpd"), LIMIT) {
        Err(e) if e.is_absent() => Ok(None),
        data => data.map(Some),
    }
}

/// Why product data say nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    #[error(transparent)]
    System(#[from] ReadError),
    #[error(transparent)]
    Bad(#[from] VpdError),
}

/// What is kept of a function.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// Which function it was: another card in the same slot is asked anew.
    modalias: String,
    product: Product,
}

/// Where it is kept, below [`state::RUN_DIR`].
fn file(pci: PciAddress) -> String {
    format!("vpd/{pci}.json")
}

/// Keep what the product data of a function say, for every run of ibprov in this boot.
///
/// # Errors
/// The path that could not be written, with the system's answer.
pub fn keep(pci: PciAddress, modalias: &str, product: Product) -> Result<(), StateError> {
    let kept = Kept { modalias: modalias.to_owned(), product };
    // Plain values: there is no JSON that they do not make.
    let text = serde_json::to_string(&kept).unwrap_or_default();
    state::write(&file(pci), &text).map(drop)
}

/// What was kept of the function, which has this `modalias` now.
pub(super) fn kept(look: &mut Look<'_>, pci: PciAddress, modalias: &str) -> Option<Product> {
    let path = format!("{}/{}", state::RUN_DIR, file(pci));
    let reading = look.root.text(&path, 64 * 1024);
    let text = look.note(reading)?;
    match serde_json::from_str::<Kept>(&text) {
        Ok(kept) => (kept.modalias == modalias).then_some(kept.product),
        Err(e) => {
            look.problems.insert(format!("{path}: {e}"));
            None
        }
    }
}

/// What is known of a function, without asking it.
pub fn known(root: &Root, pci: PciAddress) -> Option<Product> {
    let mut look = Look::new(root);
    let modalias = look.attribute(&format!("{DEVICES}/{pci}/modalias"))?;
    kept(&mut look, pci, &modalias)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::host::testing::tree;

    fn field(keyword: &str, text: &str) -> Vec<u8> {
        let size = u8::try_from(text.len()).expect("a short text");
        [keyword.as_bytes(), &[size], text.as_bytes()].concat()
    }

    fn large(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).expect("a short resource").to_le_bytes();
        [&[tag], &length[..], content].concat()
    }

    fn data(fields: &[Vec<u8>], tag: u8) -> Vec<u8> {
        let name = large(LARGE_IDENTIFIER, b"Nvidia ConnectX-7 SMDL=SW_MNG");
        [name, large(tag, &fields.concat()), vec![SMALL_END]].concat()
    }

    #[test]
    fn a_field_of_the_vendor_says_that_a_function_manages_an_nvswitch() {
        let told = |fields: &[(&str, &str)], tag| {
            let fields: Vec<_> = fields.iter().map(|(k, t)| field(k, t)).collect();
            product(&data(&fields, tag))
        };
        let (yes, no) = (Ok(Product::NvSwitchManagement), Ok(Product::Other));
        let (part, serial) = (("PN", "MCX750500B-0D0K"), ("SN", "MT2350X01234"));
        let said = ("V3", "SMDL=SW_MNG");
        assert_eq!(told(&[part, serial, said, ("RV", "\0")], LARGE_READ_ONLY), yes);
        assert_eq!(told(&[part, said, ("RW", "")], LARGE_READ_WRITE), yes);
        let among = ("VA", "MLX:MN=MLNX:SMDL=SW_MNG :PCI=V0");
        assert_eq!(told(&[part, among], LARGE_READ_ONLY), yes);
        assert_eq!(told(&[("V3", "SMDL=SW_MNG\0\0")], LARGE_READ_ONLY), yes);
        assert_eq!(told(&[part, serial], LARGE_READ_ONLY), no);
        assert_eq!(told(&[], LARGE_READ_ONLY), no);
        assert_eq!(told(&[("V3", "SMDL=SW_MNGR")], LARGE_READ_ONLY), no, "another word");
        assert_eq!(told(&[("V3", "XSMDL=SW_MNG")], LARGE_READ_ONLY), no, "another word");
        assert_eq!(told(&[("PN", "SMDL=SW_MNG")], LARGE_READ_ONLY), no, "no field of a vendor's");
        assert_eq!(told(&[("SN", "1V3\u{b}SMDL=SW_MNG")], LARGE_READ_ONLY), no, "within a field");
    }

    #[test]
    fn the_serial_number_is_a_field_that_cannot_be_written() {
        let told = |fields: &[(&str, &str)], tag| {
            let fields: Vec<_> = fields.iter().map(|(k, t)| field(k, t)).collect();
            serial(&data(&fields, tag))
        };
        let given = [("PN", "SN\u{2}MT"), ("SN", "MT2350X01234   "), ("V3", "x")];
        assert_eq!(told(&given, LARGE_READ_ONLY).as_deref(), Some("MT2350X01234"));
        assert_eq!(told(&given, LARGE_READ_WRITE), None);
        for none in ["", "  ", "a\u{1b}b"] {
            assert_eq!(told(&[("SN", none)], LARGE_READ_ONLY), None);
        }
        assert_eq!(serial(&[LARGE_READ_ONLY, 9, 0, b'S', b'N', 200, b'x']), None);
    }

    #[test]
    fn product_data_that_make_no_sense_say_nothing() {
        let whole = data(&[field("V3", "SMDL=SW_MNG")], LARGE_READ_ONLY);
        assert_eq!(product(&[]), Err(VpdError::Empty));
        assert_eq!(product(&[0xff; 8]), Err(VpdError::NoTag { at: 0, tag: 0xff }));
        for cut in 1..whole.len() - 1 {
            let e = product(&whole[..cut]).expect_err("no end");
            assert!(matches!(e, VpdError::CutOff { .. }), "{cut}: {e}");
        }
        // The field ends beyond its resource, though not beyond the data.
        let mut beyond = whole.clone();
        let size = whole.len() - "SMDL=SW_MNG".len() - 2;
        assert_eq!(beyond[size], 11);
        beyond[size] = 12;
        assert_eq!(product(&beyond), Err(VpdError::CutOff { at: size - 2, length: whole.len() }));
        let no_end = [&whole[..whole.len() - 1], &[0xff; 4]].concat();
        assert_eq!(product(&no_end), Ok(Product::NvSwitchManagement), "what follows");
        let other = data(&[field("V3", "SMDL=NIC")], LARGE_READ_ONLY);
        let no_end = [&other[..other.len() - 1], &[0xff; 4]].concat();
        let at = other.len() - 1;
        assert_eq!(product(&no_end), Err(VpdError::NoTag { at, tag: 0xff }));
        let end = [other, vec![0xff; 4]].concat();
        assert_eq!(product(&end), Ok(Product::Other), "what is behind the end");
    }

    #[test]
    fn what_is_kept_holds_for_this_card_only() {
        let path = "run/ibprov/vpd/0000:4b:00.0.json";
        let kept_of = |text: &str, modalias: &str| {
            let dir = tree(&[(path, text)], &[]);
            let root = Root::copy_at(dir.path()).expect("root");
            let mut look = Look::new(&root);
            let pci = "0000:4b:00.0".parse().expect("address");
            (kept(&mut look, pci, modalias), look.problems.len())
        };
        let text = r#"{"modalias":"pci:a","product":"nvswitch-management"}"#;
        assert_eq!(kept_of(text, "pci:a"), (Some(Product::NvSwitchManagement), 0));
        assert_eq!(kept_of(text, "pci:b"), (None, 0));
        assert_eq!(kept_of("{", "pci:a"), (None, 1));
        assert_eq!(kept_of(r#"{"modalias":"pci:a","product":"x"}"#, "pci:a"), (None, 1));
    }

    proptest! {
        #[test]
        fn hostile_product_data_never_hang_nor_panic(data: Vec<u8>) {
            let _serial = serial(&data);
            prop_assert!(product(&data) != Ok(Product::Other) || data.contains(&SMALL_END));
        }

        /// As above, with what a parser goes into.
        #[test]
        fn nor_do_those_that_look_right(
            parts in proptest::collection::vec(
                (
                    prop::sample::select(vec![0x82_u8, 0x90, 0x91, 0x78]),
                    prop::num::u16::ANY.prop_map(|n| n % 64),
                    proptest::collection::vec(prop::sample::select(b"V3\x0bSMDL=SW_MNG:\0\xff".to_vec()), 0..64),
                ),
                0..8,
            ),
        ) {
            let mut data = Vec::new();
            for (tag, length, content) in parts {
                data.push(tag);
                data.extend(length.to_le_bytes());
                data.extend(content);
            }
            match product(&data) {
                Ok(Product::NvSwitchManagement) => {
                    let has = data.windows(MANAGEMENT.len()).any(|w| w == MANAGEMENT);
                    prop_assert!(has);
                }
                Ok(_) => prop_assert!(data.contains(&SMALL_END)),
                Err(VpdError::CutOff { at, length }) => {
                    prop_assert!(at <= length && length == data.len());
                }
                Err(VpdError::NoTag { at, tag }) => prop_assert_eq!(data[at], tag),
                Err(VpdError::Empty) => prop_assert!(data.is_empty()),
            }
        }

        /// Whatever else a card says, and wherever.
        #[test]
        fn the_field_is_found_wherever_it_is(
            before in proptest::collection::vec(("[A-Z][A-Z0-9]", "[ -~]{0,40}"), 0..6),
            after in proptest::collection::vec(("[A-UW-Z][A-Z0-9]", "[ -~]{0,40}"), 0..6),
            is_there: bool,
        ) {
            let without = |f: &&(String, String)| !f.1.contains("SMDL=SW_MNG");
            let mut fields: Vec<_> =
                before.iter().filter(without).map(|(k, t)| field(k, t)).collect();
            if is_there {
                fields.push(field("V3", "SMDL=SW_MNG"));
            }
            fields.extend(after.iter().map(|(k, t)| field(k, t)));
            let want = if is_there { Product::NvSwitchManagement } else { Product::Other };
            prop_assert_eq!(product(&data(&fields, LARGE_READ_ONLY)), Ok(want));
        }
    }
}
