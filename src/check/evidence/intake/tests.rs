use super::lines::LINE_LIMIT;
use super::*;
use proptest::prelude::*;

fn read(text: &[u8]) -> Evidence {
    let mut intake = Intake::new(crate::check::rules::needles());
    intake.read("log", &mut &*text);
    intake.finish()
}

fn texts(evidence: &Evidence) -> Vec<(u64, String)> {
    let events = evidence.boots.iter().flat_map(|b| &b.events);
    events.map(|e| (e.origin.line, e.text.to_string())).collect()
}

const WRAPPED: &str = "[   94.866908] mlx5_core 0000:0b:00.0: init_one:1329:(pid 13): mlx5_load_one\nfailed with error code -22\n[   94.879657] mlx5_core: probe of 0000:0b:00.0 failed with error -22\n";

#[test]
fn a_long_log_gives_what_a_short_one_gives() {
    let filler = "Mar 18 10:29:41 n9 sshd[1]: session opened for user root by (uid=0)\n";
    let lines = 3 * 1024 * 1024 / filler.len();
    let long = [&filler.repeat(lines), WRAPPED, &filler.repeat(lines), WRAPPED].concat();
    let short: Vec<_> = texts(&read(WRAPPED.as_bytes()));
    assert_eq!(short.len(), 2);
    assert!(short[0].1.ends_with("mlx5_load_one failed with error code -22"), "{short:?}");
    let moved = |by: usize| short.iter().map(move |(line, text)| (line + by as u64, text.clone()));
    let want: Vec<_> = moved(lines).chain(moved(2 * lines + 3)).collect();
    let evidence = read(long.as_bytes());
    assert_eq!(texts(&evidence), want);
    assert_eq!(evidence.sources[0].lines, 2 * lines as u64 + 6);
}

#[test]
fn what_is_kept_is_bounded() {
    let mut log = Vec::new();
    for n in 0..60_000 {
        log.extend(format!("[ {n}.0] ib{}: multicast join failed for ff12, {n}\n", n % 7).bytes());
    }
    log.extend(vec![b'x'; 3 * BLOCK]);
    log.extend(b"\n[ 9.0] ib0: ipoib_intf_alloc failed -11\n");
    let evidence = read(&log);
    let kept = texts(&evidence);
    assert!(kept.len() < 10_000, "{}", kept.len());
    assert!(kept.iter().any(|(_, t)| t.contains("ipoib_intf_alloc")), "what comes late is lost");
    assert!(kept.iter().all(|(_, t)| t.len() <= LINE_LIMIT));
}

#[test]
fn a_journals_fields_are_cleaned_too() {
    let entry = "{\"_BOOT_ID\":\"b\\u001b[2J\",\"UNIT\":\"u\\u0007\",\"MESSAGE\":\"ib0: ipoib_intf_alloc failed\"}";
    let evidence = read(entry.as_bytes());
    assert_eq!(evidence.boots[0].id.as_deref(), Some("b"));
    assert_eq!(&*evidence.boots[0].events[0].unit, "u\u{fffd}");
}

#[test]
fn control_characters_do_not_pass() {
    let kept = texts(&read(
        b"[ 1.0] mlx5_core: \x1b[31mred\x1b]0;title\x07 \xff\xfe \xe2\x80\xae probe with driver\n",
    ));
    let (_, text) = &kept[0];
    assert!(text.contains("red") && !text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
}

/// Logs that exercise every parser, to be mangled.
const SEEDS: [&str; 6] = [
    WRAPPED,
    include_str!("../../../../tests/tree/logs/openibd-disabled.log"),
    "{\"_BOOT_ID\":\"b\",\"__MONOTONIC_TIMESTAMP\":\"5\",\"SYSLOG_IDENTIFIER\":\"kernel\",\"MESSAGE\":\"ib0: ipoib_intf_alloc failed -11\"}\n",
    "__CURSOR=s\n_BOOT_ID=b0\nMESSAGE\n\x09\0\0\0\0\0\0\0ib0: a\nbc\n\n__CURSOR=t\nMESSAGE=probe of 0000:00:00.0 failed with error -1\n\n",
    "CA 'mlx5_0'\n\tCA type: MT4123\n\tNode GUID: 0x0\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling\n4: ib0.1@ib0: <UP,M-DOWN> mtu 1\n    vf 0 link/infiniband 0, NODE_GUID 00:00:00:00:00:00:00:00, link-state disable\n",
    "[root@n ~]# cat sriov_totalvfs\n0\nModule                  Size  Used by\nmlx5_core 1 0\n04:00.0 Infiniband controller: x [ConnectX-3]\n\tKernel driver in use: a\n  SRIOV_EN False(0)\n* a.service - b\n   Loaded: loaded (x; disabled;\n",
];

/// A seed with some of its bytes cut, moved, doubled or changed.
fn mangled() -> impl Strategy<Value = Vec<u8>> {
    let edit =
        (any::<proptest::sample::Index>(), any::<proptest::sample::Index>(), 0..5_u8, any::<u8>());
    (0..SEEDS.len(), 0..SEEDS.len(), proptest::collection::vec(edit, 0..12)).prop_map(
        |(a, b, edits)| {
            let mut bytes = [SEEDS[a].as_bytes(), SEEDS[b].as_bytes()].concat();
            for (from, to, kind, byte) in edits {
                if bytes.is_empty() {
                    break;
                }
                let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
                let (from, to) = (from.min(to), from.max(to));
                match kind {
                    0 => drop(bytes.drain(from..to)),
                    1 => bytes[from] = byte,
                    2 => bytes.insert(from, byte),
                    3 => {
                        let copy = bytes[from..to].to_vec();
                        bytes.splice(from..from, copy);
                    }
                    _ => bytes[from..to].reverse(),
                }
            }
            bytes
        },
    )
}

proptest! {
    /// `PROPTEST_CASES` says how many logs; `make test-all` takes 20,000.
    #[test]
    fn no_log_panics_and_nothing_hostile_is_printed(log in mangled()) {
        let diagnosis = crate::check::diagnose(&read(&log));
        let text = crate::show::check::text(&diagnosis, Default::default());
        let harmless = |c: char| !c.is_control() || c == '\n' || c == '\t';
        prop_assert!(text.chars().all(harmless), "{text:?}");
        prop_assert!(!diagnosis.findings.is_empty());
    }

    /// However the stream is cut into reads, the same is read.
    #[test]
    fn reads_of_any_size_give_the_same(log in mangled(), size in 1..200_usize) {
        struct Slow<'a>(&'a [u8], usize);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let n = self.1.min(self.0.len()).min(buffer.len());
                buffer[..n].copy_from_slice(&self.0[..n]);
                self.0 = &self.0[n..];
                Ok(n)
            }
        }
        let mut intake = Intake::new(crate::check::rules::needles());
        intake.read("log", &mut Slow(&log, size));
        prop_assert_eq!(texts(&intake.finish()), texts(&read(&log)));
    }
}
