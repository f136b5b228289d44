//! Images of an initramfs: which files are in one, and what the small ones say.
//!
//! An image is one or more cpio archives, one after the other with zeros between: first
//! those with microcode, which are not packed, then the rest, packed
//! (`Documentation/driver-api/early-userspace/buffer-format.rst`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use cpio::newc;
use flate2::read::GzDecoder;

use super::answer;
use super::logs::format::Magic;
use super::logs::program::expander;

/// Bytes of an image after it was expanded.
const EXPANDED: u64 = 8 << 30;
/// Files of an image.
const FILES: usize = 500_000;
/// No file is kept that is longer, bytes.
const KEPT: u32 = 1 << 20;

/// What an image holds: each path without a slash before it, and the content of those that
/// were asked for.
pub type Image = BTreeMap<String, Option<String>>;

/// Read the image at `path`, with the content of the files that `keep` names.
///
/// # Errors
/// A sentence: it cannot be read, or is no image.
pub fn read(path: &Path, keep: impl Fn(&str) -> bool) -> Result<Image, String> {
    let name = path.display();
    let told = |e: io::Error| match e.raw_os_error() {
        Some(_) => format!("{name}: {}", answer(&e)),
        None => format!("{name}: not an initramfs image, or cut off: {e}"),
    };
    let mut image = Image::new();
    let mut input = BufReader::new(
        File::options().read(true).custom_flags(nix::libc::O_NOCTTY).open(path).map_err(told)?,
    );
    let mut archives = 0_usize;
    while skip_zeros(&mut input).map_err(told)? {
        let head = input.fill_buf().map_err(told)?.iter().take(16).copied().collect::<Vec<_>>();
        let packed = Magic::of(&head);
        if head.starts_with(b"0707") {
            archives += 1;
            archive(&mut input, &mut image, &keep).map_err(told)?;
            continue;
        }
        // What is packed goes to the end.
        let at = input.stream_position().map_err(told)?;
        let mut file = input.into_inner();
        file.seek(SeekFrom::Start(at)).map_err(told)?;
        let packed_archives = match packed {
            Magic::Gzip => archives_of(GzDecoder::new(BufReader::new(file)), &mut image, &keep),
            Magic::Other(program) => {
                let mut stream = expander(program, file).map_err(|e| format!("{name}: {e}"))?;
                let read = archives_of(&mut stream, &mut image, &keep);
                // What was read of a damaged image is the whole of an archive at best.
                if read.is_ok() {
                    stream.ended().map_err(|e| format!("{name}: {e}"))?;
                }
                read
            }
            _ => {
                return Err(format!(
                    "{name}: the data at byte {at} is neither a cpio archive nor compressed with gzip, xz, zstd or bzip2"
                ));
            }
        }
        .map_err(told)?;
        archives += packed_archives;
        break;
    }
    if archives == 0 {
        return Err(format!("{name} does not contain an archive"));
    }
    Ok(image)
}

/// All archives of an expanded stream, and how many there are.
fn archives_of(
    stream: impl Read,
    image: &mut Image,
    keep: &impl Fn(&str) -> bool,
) -> io::Result<usize> {
    let mut input = BufReader::new(stream.take(EXPANDED));
    let mut archives = 0;
    while skip_zeros(&mut input)? {
        archive(&mut input, image, keep)?;
        archives += 1;
    }
    Ok(archives)
}

/// Go on to what is no zero; false at the end.
fn skip_zeros(input: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(false);
        }
        let zeros = buffer.iter().take_while(|byte| **byte == 0).count();
        let all = zeros == buffer.len();
        input.consume(zeros);
        if !all {
            return Ok(true);
        }
    }
}

/// One archive, to the end of it.
fn archive(
    input: &mut impl Read,
    image: &mut Image,
    keep: &impl Fn(&str) -> bool,
) -> io::Result<()> {
    loop {
        let mut reader = newc::Reader::new(&mut *input)?;
        let entry = reader.entry();
        if entry.is_trailer() {
            reader.finish()?;
            return Ok(());
        }
        let name = entry.name().trim_start_matches("./").trim_start_matches('/').to_owned();
        let is_file = entry.mode() & 0o170_000 == 0o100_000;
        let mut content = None;
        if is_file && entry.file_size() <= KEPT && keep(&name) {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes)?;
            content = Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        reader.finish()?;
        image.insert(name, content);
        if image.len() > FILES {
            return Err(io::Error::other(format!("the image has more than {FILES} files")));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(files: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, content) in files {
            let entry = newc::Builder::new(name).mode(0o100_644);
            let length = u32::try_from(content.len()).expect("short");
            let mut writer = entry.write(&mut out, length);
            writer.write_all(content.as_bytes()).expect("memory");
            writer.finish().expect("memory");
        }
        newc::trailer(&mut out).expect("memory");
        out
    }

    fn image(bytes: &[u8]) -> Result<Image, String> {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(bytes).expect("written");
        read(file.path(), |name| name.ends_with(".conf"))
    }

    #[test]
    fn microcode_is_before_what_is_packed() {
        let mut bytes = packed(&[("kernel/x86/microcode/GenuineIntel.bin", "x")]);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        let rest = packed(&[("./etc/modprobe.d/a.conf", "options a b=1\n"), ("lib/x.ko", "ELF")]);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&rest).expect("memory");
        bytes.extend(gzip.finish().expect("memory"));
        let image = image(&bytes).expect("an image");
        let names: Vec<_> = image.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["etc/modprobe.d/a.conf", "kernel/x86/microcode/GenuineIntel.bin", "lib/x.ko"]
        );
        assert_eq!(image["etc/modprobe.d/a.conf"].as_deref(), Some("options a b=1\n"));
        assert_eq!(image["lib/x.ko"], None);
    }

    #[test]
    fn what_is_no_image_or_not_a_whole_one_is_told() {
        for (bytes, said) in [
            (&b""[..], "does not contain an archive"),
            (b"\0\0\0\0", "does not contain an archive"),
            (b"#!/bin/sh\n", "at byte 0 is neither"),
            (&packed(&[("a", "content")])[..120], "cut off"),
        ] {
            let e = image(bytes).expect_err("no image");
            assert!(e.contains(said), "{e}");
        }
        let all = packed(&[("a", "content"), ("b", "")]);
        for end in 1..all.len() - 1 {
            // Behind a whole entry too: the trailer is missing.
            assert!(image(&all[..end]).is_err(), "{end} of {}", all.len());
        }
    }
}
