use super::*;
use std::io::Write;

fn collect(path: &Path) -> (Vec<(String, String)>, Vec<String>) {
    let mut seen = Vec::new();
    let problems = read(path, &mut |name, stream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("text");
        seen.push((name.rsplit('/').next().unwrap_or(name).to_owned(), text));
    });
    (seen, problems)
}

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, *content).expect("entry");
    }
    tar.into_inner().expect("archive")
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(content).expect("gzip");
    gz.finish().expect("gzip")
}

#[test]
fn archives_and_directories_are_read_and_links_are_not_followed() {
    let dir = tempfile::tempdir().expect("directory");
    let inner = gzip(b"rotated\n");
    let tar = archive(&[
        ("sos-n1/var/log/messages", b"one\n"),
        ("sos-n1/var/log/messages.1.gz", &inner),
        ("sos-n1/etc/motd", b"not a log\n"),
    ]);
    let path = dir.path().join("sos.tar.gz");
    std::fs::write(&path, gzip(&tar)).expect("file");
    let (seen, problems) = collect(&path);
    let texts: Vec<_> = seen.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!((texts, problems), (vec!["one\n", "rotated\n"], vec![]));

    std::fs::create_dir(dir.path().join("logs")).expect("directory");
    std::fs::write(dir.path().join("logs/dmesg"), "two\n").expect("file");
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("logs/out")).expect("link");
    std::fs::write(dir.path().join("logs/binary"), b"a\0b").expect("file");
    let (seen, problems) = collect(&dir.path().join("logs"));
    assert_eq!((seen, problems), (vec![("dmesg".to_owned(), "two\n".to_owned())], vec![]));
}

#[test]
fn a_tree_with_links_to_itself_is_read_once() {
    let links = [(".", "here"), ("..", "up"), ("/", "root"), ("./", "slash"), ("a/..", "both")];
    let links = links.map(|(target, name)| (format!("a/{name}"), target));
    let links: Vec<_> = links.iter().map(|(path, target)| (path.as_str(), *target)).collect();
    let dir = crate::host::testing::tree(&[("a/dmesg", "one\n")], &links[..1]);
    assert_eq!(collect(dir.path()), (vec![("dmesg".to_owned(), "one\n".to_owned())], vec![]));
    // Each link more is another way through each of 24 levels.
    let dir = crate::host::testing::tree(&[("a/dmesg", "one\n")], &links);
    assert_eq!(collect(dir.path()), (vec![("dmesg".to_owned(), "one\n".to_owned())], vec![]));
}

#[test]
fn no_tree_is_too_deep_or_too_wide() {
    let dir = tempfile::tempdir().expect("directory");
    let mut deepest = dir.path().to_owned();
    for _ in 0..=LEVELS {
        deepest.push("d");
        std::fs::create_dir(&deepest).expect("directory");
    }
    std::fs::write(deepest.join("messages"), "deep\n").expect("file");
    std::fs::write(dir.path().join("messages"), "here\n").expect("file");
    let (seen, problems) = collect(dir.path());
    assert_eq!(seen, [("messages".to_owned(), "here\n".to_owned())]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].ends_with("has more than 24 levels of directories: those below were not read"),
        "{problems:?}"
    );

    let mut left = 3;
    let none: &mut dyn FnMut(&str, &mut dyn Read) = &mut |_, _| {};
    let mut feed = Feed::new(none);
    for _ in 0..3 {
        left -= usize::from(feed.enters("d", 1));
    }
    assert_eq!((left, feed.problems.len()), (0, 0));
    feed.directories = DIRECTORIES;
    assert!(!feed.enters("d", 1) && !feed.enters("d", 1));
    assert_eq!(feed.problems, ["d has more than 20000 directories: the rest was not read"]);
}

#[test]
fn why_there_is_no_log_is_said() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("x.tar");
    let why = |archive: &[u8]| {
        std::fs::write(&path, archive).expect("file");
        let (seen, problems) = collect(&path);
        assert!(seen.is_empty(), "{seen:?}");
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        let (_, why) = problem.split_once("x.tar").expect("its name");
        why.to_owned()
    };
    let none = " has no log in it, nor another file that check reads";
    assert_eq!(why(&archive(&[("etc/motd", b"no log\n")])), none);
    assert_eq!(why(&gzip(&archive(&[("etc/motd", b"no log\n")]))), none);
    let empty = tempfile::tempdir().expect("directory");
    let (_, problems) = collect(empty.path());
    assert!(problems[0].ends_with(none), "{problems:?}");
}

#[test]
fn what_cannot_be_read_is_said() {
    let dir = tempfile::tempdir().expect("directory");
    let (_, problems) = collect(&dir.path().join("none"));
    assert!(problems[0].ends_with("none: ENOENT: No such file or directory"), "{problems:?}");
    let tar = archive(&[("a.log", &[b'x'; 2048])]);
    let path = dir.path().join("cut.tar");
    std::fs::write(&path, &tar[..700]).expect("file");
    let (seen, problems) = collect(&path);
    assert_eq!(seen, [("cut.tar:a.log".to_owned(), "x".repeat(700 - 512))]);
    assert!(
        problems[0].contains("cut.tar: the rest of the archive was not read: "),
        "{problems:?}"
    );
}

fn member(kind: u8, name: &str, content: &[u8], size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(tar::EntryType::new(kind));
    header.set_size(size);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
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
fn headers_are_bounded_and_a_lie_ends_the_archive() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("x.tar");
    let read = |members: &[Vec<u8>]| {
        std::fs::write(&path, members.concat()).expect("file");
        let (seen, problems) = collect(&path);
        (seen.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), problems.len())
    };
    let pax = |records: &str| member(b'x', "pax", records.as_bytes(), records.len() as u64);
    let next = member(b'0', "dmesg", b"next\n", 5);
    // Its own header says 0, as for files of more than 8 GiB.
    let file = member(b'0', "short", b"hello", 0);
    let records = pax_record("path", &("a/".repeat(200) + "messages")) + &pax_record("size", "5");
    let both = vec!["hello".to_owned(), "next\n".to_owned()];
    assert_eq!(read(&[pax(&records), file.clone(), next.clone()]), (both, 0));
    for size in ["18446744073709551615", "99999999999"] {
        let lie = pax(&(pax_record("path", "messages") + &pax_record("size", size)));
        assert_eq!(read(&[lie, file.clone(), next.clone()]).1, 1, "{size}");
    }
    for length in [HEADERS / 2, 2 * HEADERS] {
        let name = vec![b'a'; usize::try_from(length).expect("small")];
        let long = member(b'L', "././@LongLink", &name, length);
        let (seen, problems) = read(&[long, member(b'0', "x", b"", 0), next.clone()]);
        assert_eq!((seen.len(), problems), if length < HEADERS { (2, 0) } else { (0, 1) });
    }
    // A large member takes nothing from the headers of the next.
    let large = vec![0; usize::try_from(2 * HEADERS).expect("small")];
    let large = member(b'0', "large.bin", &large, 2 * HEADERS);
    assert_eq!(read(&[large, next.clone()]), (vec!["next\n".to_owned()], 0));
    // A sparse file, with holes without end.
    let mut sparse = tar::Header::new_gnu();
    sparse.set_entry_type(tar::EntryType::GNUSparse);
    sparse.set_size(0);
    sparse.as_gnu_mut().expect("GNU").set_real_size(0);
    sparse.set_cksum();
    let read = read(&[sparse.as_bytes().to_vec(), next]);
    assert_eq!(read, (vec!["next\n".to_owned()], 0));
}

proptest::proptest! {
    #[test]
    fn no_archive_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2048), at in 0_usize..512) {
        let none: &mut dyn FnMut(&str, &mut dyn Read) = &mut |_, stream| {
            std::io::copy(stream, &mut std::io::sink()).expect("read");
        };
        let mut feed = Feed::new(none);
        let mut archive = member(b'x', "pax", &bytes, bytes.len() as u64);
        archive.extend(member(b'0', "messages", b"x", 1));
        archive[at] ^= 1;
        feed.archive("x", archive.as_slice(), DEPTH);
        feed.archive("x", bytes.as_slice(), DEPTH);
    }
}

#[test]
fn a_bomb_of_archives_is_not_opened_without_end() {
    let mut content = b"deep\n".to_vec();
    for _ in 0..8 {
        content = gzip(&content);
    }
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("bomb.gz");
    std::fs::write(&path, content).expect("file");
    let (seen, problems) = collect(&path);
    assert!(seen.is_empty());
    assert!(problems[0].contains("is nested too deep"), "{problems:?}");
}

#[test]
fn utf_16_is_refused_and_a_mark_of_utf_8_is_not() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("dmesg.txt");
    let mark = "\u{feff}ib0: \u{1f600}\r\n";
    let bare = "ib0: ipoib_intf_alloc failed\r\n";
    for (text, of) in [
        (mark, u16::to_le_bytes as fn(u16) -> [u8; 2]),
        (mark, u16::to_be_bytes),
        (bare, u16::to_le_bytes),
        (bare, u16::to_be_bytes),
    ] {
        std::fs::write(&path, text.encode_utf16().flat_map(of).collect::<Vec<_>>()).expect("file");
        // In a tree too, where binary files are passed over.
        for place in [path.as_path(), dir.path()] {
            let (seen, problems) = collect(place);
            assert!(seen.is_empty(), "{seen:?}");
            assert!(problems[0].contains("is UTF-16 text, and was not read"), "{problems:?}");
        }
    }
    std::fs::write(&path, "\u{feff}ib0\n").expect("file");
    assert_eq!(collect(&path).0, [("dmesg.txt".to_owned(), "ib0\n".to_owned())]);
}

#[test]
fn an_archive_in_an_archive_is_read_and_what_is_binary_is_not() {
    let inner = archive(&[
        ("messages", b"inner\n"),
        ("wtmp", b"a\0b"),
        ("lib/x", b"no log\n"),
        ("sosreport-n1/sos_commands/ibprov/ibprov_status_-v", b"ib_umad (NOT LOADED)\n"),
    ]);
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("mail.tar");
    std::fs::write(&path, archive(&[("logs.tar.gz", &gzip(&inner))])).expect("file");
    let (seen, problems) = collect(&path);
    assert_eq!((seen.len(), problems), (1, vec![]));
    assert_eq!(seen[0].1, "inner\n");
}
