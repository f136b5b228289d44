//! What a file or stream is: by its first bytes, and by its place in a tree.

/// What a stream is, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::host) enum Magic {
    Text,
    /// UTF-8 with the mark that Windows puts before it.
    Marked,
    /// UTF-16, which Windows' editors and mailers make of a log.
    Utf16,
    Gzip,
    Tar,
    Journal,
    /// The program that expands it.
    Other(&'static str),
}

impl Magic {
    pub(in crate::host) fn of(head: &[u8]) -> Self {
        let is = |magic: &[u8]| head.starts_with(magic);
        if is(&[0x1f, 0x8b]) {
            Self::Gzip
        } else if is(b"LPKSHHRH") {
            Self::Journal
        } else if is(b"\xfd7zXZ\0") {
            Self::Other("xz")
        } else if is(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Self::Other("zstd")
        } else if is(b"BZh") && head.get(4..10) == Some(b"1AY&SY") {
            Self::Other("bzip2")
        } else if is(&[0xef, 0xbb, 0xbf]) {
            Self::Marked
        } else if is(&[0xff, 0xfe]) || is(&[0xfe, 0xff]) || is_utf16(head) {
            Self::Utf16
        } else if head.get(257..262) == Some(b"ustar") {
            Self::Tar
        } else {
            Self::Text
        }
    }
}

/// Without a byte order mark: each other byte of ASCII is 0.
fn is_utf16(head: &[u8]) -> bool {
    let all = |nul: usize| {
        let mut bytes = head.iter().take(16).enumerate();
        bytes.all(|(at, b)| if at % 2 == nul { *b == 0 } else { (b' '..=b'~').contains(b) })
    };
    head.len() >= 16 && (all(0) || all(1))
}

/// True for what begins with `head` and is neither text nor packed text.
pub(super) fn is_binary(head: &[u8]) -> bool {
    Magic::of(head) == Magic::Text && head.contains(&0)
}

/// True unless a file of a tree or archive is surely no log and no dump.
pub(super) fn is_log(path: &str) -> bool {
    const NOT_IN: [&str; 14] = [
        "usr",
        "lib",
        "lib64",
        "boot",
        "bin",
        "sbin",
        "etc",
        "proc",
        "sys",
        "dev",
        "sos_reports",
        "sos_logs",
        ".git",
        "installed-debs",
    ];
    const NOT_SO: [&str; 12] = [
        ".ko",
        ".so",
        ".rpm",
        ".deb",
        ".png",
        ".jpg",
        ".pcap",
        ".html",
        ".xml",
        ".json.sig",
        ".db",
        ".core",
    ];
    // The first component of a sosreport is its own name.
    let mut components = path.trim_start_matches(['.', '/']).split('/');
    let name = components.next_back().unwrap_or_default();
    // What ibprov printed for sos is a judgement, and no line of a log.
    !path.contains("sos_commands/ibprov/")
        && !components.take(2).any(|c| NOT_IN.contains(&c))
        && !NOT_SO.iter().any(|end| name.ends_with(end))
}
