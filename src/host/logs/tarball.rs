//! Members of a tar archive, one after another, in little memory: whatever a header
//! claims, no more than [`EXTENSION`] of it is ever held. ustar, GNU and pax.

use std::io::{self, Read};

/// The unit of everything in a tar archive, bytes.
const BLOCK: usize = 512;
/// More of a long name or of pax records is not held, bytes.
const EXTENSION: u64 = 64 << 10;
/// Longer names are cut, characters: nobody reads them, and an archive has many.
const LONGEST_NAME: usize = 4096;

/// What one header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name, as it is in the archive: hostile.
    pub path: String,
    /// It is a regular file, whose content can be read now.
    pub is_file: bool,
    /// Its headers were longer than is held, by so many bytes as this, and passed over.
    pub passed_over: Option<u64>,
}

/// An archive that is read from the front to the back. Reading gives the content of the
/// member that [`Members::next_member`] has given last.
#[derive(Debug)]
pub(super) struct Members<R> {
    stream: R,
    /// Bytes of this member that are not read.
    content: u64,
    /// Zeros that follow them, to the next block.
    padding: u64,
}

/// What pax records or GNU headers say of the next member.
#[derive(Debug, Default)]
struct Extended {
    path: Option<String>,
    size: Option<u64>,
    passed_over: Option<u64>,
    /// How long the last header was by itself.
    size_of_last: Option<u64>,
}

impl<R: Read> Members<R> {
    pub(super) const fn new(stream: R) -> Self {
        Self { stream, content: 0, padding: 0 }
    }

    /// Go on to the next member; `None` at the end.
    ///
    /// # Errors
    /// The archive cannot be read, or what is there is no header: then what follows
    /// cannot be found.
    pub(super) fn next_member(&mut self) -> io::Result<Option<Member>> {
        let mut extended = Extended::default();
        loop {
            self.pass_over()?;
            let Some(header) = self.header()? else {
                return match extended.size_of_last {
                    Some(bytes) => Err(bad(&format!(
                        "the archive ends after an extended header of {bytes} bytes, and has no file for it"
                    ))),
                    None => Ok(None),
                };
            };
            let kind = header.kind();
            let size = match kind {
                // An extension is as long as its own header says.
                b'L' | b'K' | b'x' | b'X' | b'g' => header.size()?,
                _ => extended.size.map_or_else(|| header.size(), Ok)?,
            };
            if matches!(kind, b'L' | b'K' | b'x' | b'X') {
                extended.size_of_last = Some(size);
            }
            self.content = size;
            self.padding = size.wrapping_neg() % BLOCK as u64;
            match kind {
                b'L' => {
                    if let Some(name) = self.extension(&mut extended)? {
                        extended.path = Some(text(&name));
                    }
                }
                b'x' | b'X' => {
                    if let Some(records) = self.extension(&mut extended)? {
                        pax(&records, &mut extended);
                    }
                }
                b'K' | b'g' => {}
                kind => {
                    if kind == b'S' {
                        self.sparse_map(&header)?;
                    }
                    let mut path = extended.path.unwrap_or_else(|| header.path());
                    if let Some((cut, _)) = path.char_indices().nth(LONGEST_NAME) {
                        path.truncate(cut);
                    }
                    let is_file = matches!(kind, b'0' | b'\0' | b'7') && !path.ends_with('/');
                    let passed_over = extended.passed_over;
                    return Ok(Some(Member { path, is_file, passed_over }));
                }
            }
        }
    }

    /// The content of an extension header, unless it is longer than anybody's name.
    fn extension(&mut self, extended: &mut Extended) -> io::Result<Option<Vec<u8>>> {
        if self.content > EXTENSION {
            extended.passed_over = Some(self.content);
            return Ok(None);
        }
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// The blocks of a GNU sparse file's map that follow its header.
    fn sparse_map(&mut self, header: &Header) -> io::Result<()> {
        let mut more = header.field(482, 1) != [0];
        while more {
            let mut block = [0; BLOCK];
            if let Err(e) = self.stream.read_exact(&mut block) {
                return Err(if e.kind() == io::ErrorKind::UnexpectedEof { cut_off() } else { e });
            }
            more = block.get(504).is_some_and(|flag| *flag != 0);
        }
        Ok(())
    }

    fn pass_over(&mut self) -> io::Result<()> {
        let left = self.content.saturating_add(self.padding);
        (self.content, self.padding) = (0, 0);
        let passed = io::copy(&mut (&mut self.stream).take(left), &mut io::sink())?;
        if passed < left { Err(cut_off()) } else { Ok(()) }
    }

    /// The next header; `None` at the end, which is a block of zeros or nothing at all.
    fn header(&mut self) -> io::Result<Option<Header>> {
        let mut block = Vec::with_capacity(BLOCK);
        (&mut self.stream).take(BLOCK as u64).read_to_end(&mut block)?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let block = <[u8; BLOCK]>::try_from(block).map_err(|_| cut_off())?;
        let header = Header(block);
        if header.is_sound() {
            Ok(Some(header))
        } else {
            Err(bad("the data is not a tar header: the rest of the archive was not read"))
        }
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&mut self.stream).take(self.content).read(buffer)?;
        self.content = self.content.saturating_sub(read as u64);
        Ok(read)
    }
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the archive is cut off")
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

struct Header([u8; BLOCK]);

impl Header {
    fn field(&self, at: usize, len: usize) -> &[u8] {
        self.0.get(at..at + len).unwrap_or_default()
    }

    fn kind(&self) -> u8 {
        self.field(156, 1).first().copied().unwrap_or_default()
    }

    /// Its checksum is that of its bytes, the checksum's own taken for spaces.
    fn is_sound(&self) -> bool {
        let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        let all = sum(&self.0) - sum(self.field(148, 8)) + 8 * u64::from(b' ');
        octal(self.field(148, 8)) == Some(all)
    }

    /// How long its content is: in octal digits, or in binary with the first bit set.
    fn size(&self) -> io::Result<u64> {
        let field = self.field(124, 12);
        let size = match field.split_first() {
            Some((0x80, rest)) => {
                let (high, low) = rest.split_at(3);
                let low = <[u8; 8]>::try_from(low).ok().map(u64::from_be_bytes);
                low.filter(|_| high == [0; 3])
            }
            _ => octal(field),
        };
        size.ok_or_else(|| bad("a tar header without a size: the rest was not read"))
    }

    fn path(&self) -> String {
        let name = text(self.field(0, 100));
        // GNU tar has other things where POSIX has the beginning of the name.
        let prefix = if self.field(257, 6) == b"ustar\0" { self.field(345, 155) } else { &[] };
        match text(prefix) {
            prefix if prefix.is_empty() => name,
            prefix => format!("{prefix}/{name}"),
        }
    }
}

/// The text up to the first zero byte.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

fn octal(field: &[u8]) -> Option<u64> {
    let text = text(field);
    let digits = text.trim();
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

/// `LENGTH KEY=VALUE\n`, one after another; LENGTH counts itself. What is no such record
/// ends them.
fn pax(mut records: &[u8], extended: &mut Extended) {
    let record = |bytes: &[u8]| -> Option<(usize, Vec<u8>)> {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let length = std::str::from_utf8(bytes.get(..space)?).ok()?.parse().ok()?;
        let content = bytes.get(space + 1..length)?.strip_suffix(b"\n")?;
        Some((length, content.to_vec()))
    };
    while let Some((length, content)) = record(records) {
        if let Some(path) = content.strip_prefix(b"path=") {
            extended.path = Some(text(path));
        } else if let Some(size) = content.strip_prefix(b"size=") {
            extended.size = std::str::from_utf8(size).ok().and_then(|size| size.parse().ok());
        }
        records = records.get(length..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Seen = Vec<(String, bool, Vec<u8>)>;

    fn all(archive: &[u8]) -> (Seen, Option<String>) {
        let mut members = Members::new(archive);
        let mut seen = Vec::new();
        loop {
            match members.next_member() {
                Ok(None) => return (seen, None),
                Err(e) => return (seen, Some(e.to_string())),
                Ok(Some(member)) => {
                    let mut content = Vec::new();
                    members.read_to_end(&mut content).expect("a slice");
                    seen.push((member.path, member.is_file, content));
                }
            }
        }
    }

    fn entry(kind: u8, name: &str, content: &[u8], size: u64) -> Vec<u8> {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(tar::EntryType::new(kind));
        header.set_size(size);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }

    fn pax_record(key: &str, value: &str) -> String {
        let rest = format!(" {key}={value}\n");
        let mut length = rest.len() + 1;
        while length != rest.len() + length.to_string().len() {
            length = rest.len() + length.to_string().len();
        }
        format!("{length}{rest}")
    }

    #[test]
    fn a_pax_record_gives_name_and_size_and_a_lie_ends_the_archive() {
        let long = "a/".repeat(200) + "messages";
        let records = pax_record("path", &long) + &pax_record("size", "5");
        let extension = entry(b'x', "pax", records.as_bytes(), records.len() as u64);
        // Its own header says 0, as for files of more than 8 GiB.
        let file = entry(b'0', "short", b"hello", 0);
        let next = entry(b'0', "next", b"x", 1);
        let archive = [extension, file.clone(), next.clone()].concat();
        let want = vec![(long, true, b"hello".to_vec()), ("next".to_owned(), true, b"x".to_vec())];
        assert_eq!(all(&archive), (want, None));
        for size in ["18446744073709551615", "99999999999"] {
            let lie = pax_record("size", size);
            let lie = entry(b'x', "pax", lie.as_bytes(), lie.len() as u64);
            let (seen, why) = all(&[lie, file.clone(), next.clone()].concat());
            assert_eq!((seen.len(), why.as_deref()), (1, Some("the archive is cut off")));
        }
        for size in ["-1", "1e9", "x"] {
            let none = pax_record("size", size);
            let none = entry(b'x', "pax", none.as_bytes(), none.len() as u64);
            let (seen, _) = all(&[none, next.clone()].concat());
            assert_eq!(seen, [("next".to_owned(), true, b"x".to_vec())], "{size}");
        }
    }

    #[test]
    fn what_others_write_is_read_and_a_sparse_file_is_passed_over() {
        let mut sparse = entry(b'S', "core", b"", 3);
        sparse[482] = 1;
        let mut map = [0_u8; BLOCK];
        map[504] = 1;
        // The header counts the flag too.
        let mut header = tar::Header::from_byte_slice(&sparse[..BLOCK]).clone();
        header.set_cksum();
        sparse = header.as_bytes().to_vec();
        sparse.extend(map);
        sparse.extend([0; BLOCK]);
        sparse.extend(b"abc");
        sparse.resize(sparse.len().next_multiple_of(BLOCK), 0);
        let link = entry(b'2', "link", b"", 0);
        let mut gnu = tar::Builder::new(Vec::new());
        let (long, mut header) = ("b".repeat(300), tar::Header::new_gnu());
        header.set_size(4);
        gnu.append_data(&mut header, &long, &b"long"[..]).expect("entry");
        let archive = [sparse, link, gnu.into_inner().expect("archive")].concat();
        let (seen, why) = all(&archive);
        let seen: Vec<_> = seen.iter().map(|(path, file, _)| (path.as_str(), *file)).collect();
        assert_eq!(seen, [("core", false), ("link", false), (long.as_str(), true)]);
        assert_eq!(why, None);
    }

    #[test]
    fn binary_sizes_are_read_and_bad_ones_end_the_archive() {
        let mut header = tar::Header::new_gnu();
        header.set_size(9 << 30);
        header.set_cksum();
        assert_eq!(Header(*header.as_bytes()).size().ok(), Some(9 << 30));
        for field in [
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x80\x01\0\0\0\0\0\0\0\0\0\0",
            b"99999999999\0",
        ] {
            header.as_mut_bytes()[124..136].copy_from_slice(field);
            header.set_cksum();
            assert!(Header(*header.as_bytes()).size().is_err(), "{field:?}");
        }
    }

    proptest! {
        #[test]
        fn what_was_packed_is_unpacked(
            files in prop::collection::vec(("[a-z/]{0,30}[a-z]{1,200}", prop::collection::vec(any::<u8>(), 0..1500)), 0..6)
        ) {
            let mut builder = tar::Builder::new(Vec::new());
            for (name, content) in &files {
                let mut header = tar::Header::new_gnu();
                header.set_size(content.len() as u64);
                let name = name.trim_start_matches('/');
                builder.append_data(&mut header, name, content.as_slice()).expect("entry");
            }
            let (seen, why) = all(&builder.into_inner().expect("archive"));
            prop_assert_eq!(why, None);
            prop_assert_eq!(seen.len(), files.len());
            for ((_, is_file, content), (_, packed)) in seen.iter().zip(&files) {
                prop_assert!(*is_file);
                prop_assert_eq!(content, packed);
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..2048), at in 0_usize..512) {
            let _bytes = all(&bytes);
            let mut archive = entry(b'x', "pax", &bytes, bytes.len() as u64);
            archive.extend(entry(b'0', "x", b"x", 1));
            archive[at] ^= 1;
            let _archive = all(&archive);
        }
    }
}
