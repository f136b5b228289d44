//! Files that nobody means well with.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use proptest::prelude::*;

use super::loaded;
use crate::config::{Config, Problems, Source, resolve, to_toml};

#[test]
fn hostile_files_are_answered_in_time() {
    // A busy machine is none of its faults.
    let own = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock"));
    let started = own();
    let inline =
        format!("boot = {{ {} }}\n", (0..60_000).map(|i| format!("k{i}=1,")).collect::<String>());
    let ports = "[[port]]\npci=\"x\"\n".repeat(40_000);
    for text in [
        "a\n".repeat(300_000),
        "a.".repeat(400_000),
        "[".repeat(900_000),
        format!("a = {}", "[".repeat(900_000)),
        format!("a = {}", "{a=".repeat(300_000)),
        "\u{1b}[2J\u{7}\u{9b}31m = \"\u{202e}\"\n".repeat(10_000),
        inline,
        ports,
        format!("\"{}\" = 1\n", "k".repeat(900_000)),
    ] {
        let problems = loaded(&[&text]).expect_err("bad");
        let shown = problems.render(false);
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'));
        assert!(!shown.contains('\u{202e}'));
        assert!(shown.len() < 200_000, "{}", shown.len());
    }
    let took = own() - started;
    assert!(took < Duration::from_secs(15), "{took:?}");
}

#[test]
fn a_list_longer_than_any_host_needs_is_refused() {
    let text = |n: usize| format!("modules.load = [{}]\n", "\"ib_srp\", ".repeat(n));
    assert!(loaded(&[&text(1000)]).is_ok());
    let problems = loaded(&[&text(1001)]).expect_err("bad").to_string();
    assert!(problems.starts_with("error: the list modules.load is too long\n"), "{problems}");
}

#[test]
fn a_line_too_long_for_a_frame_is_named_only() {
    let text = format!("# first\n{} = 1\nboot.timeout = {}0\n", "k".repeat(5000), " ".repeat(5000));
    expect_test::expect![[r#"
        error: unknown key "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
        --> /etc/0.toml:2:1
         = help: possible are boot, modules, rdma, port, network, interface, wait-online, host, pf, firmware, rxe, subnet-manager, metrics, health, guests, guest

        error: bad value for boot.timeout
        --> /etc/0.toml:3:5016
         = note: 0 is out of range: expected 1s to 1h

        the configuration is not valid: 2 errors"#]]
    .assert_eq(&loaded(&[&text]).expect_err("bad").to_string());
}

/// Text that is often nearly right.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("[boot]\n".to_owned()),
        Just("timeout = \"4min\"\n".to_owned()),
        Just("boot.adapter-timeout = 999\n".to_owned()),
        Just("[[port]]\n".to_owned()),
        Just("pci = \"0000:4b:00.0\"\n".to_owned()),
        Just("rdma = \"mlx5_0\"\nport = 1\n".to_owned()),
        Just("[modules]\nload = [".to_owned()),
        Just("\"ib_umad\", ".to_owned()),
        Just("]\n".to_owned()),
        Just("exclude = []\n".to_owned()),
        "(?s).{0,8}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_panics_or_reaches_the_terminal(a in nearly(), b in "(?s).{0,60}") {
        if let Err(problems) = loaded(&[&a, &b]) {
            let shown = problems.render(false);
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{:?}", shown);
            prop_assert!(!problems.told().is_empty());
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(source) = Source::new("/a".to_owned(), bytes) {
            let _answer = resolve(vec![source], Problems::default());
        }
    }

    #[test]
    fn what_is_shown_reads_back(
        timeout in 1_u64..3600, adapter in 1_u64..3600,
        // Not empty: that takes the default away, which pasting cannot repeat.
        load in proptest::collection::vec("[a-z_]{1,8}", 1..4),
        skip in proptest::collection::vec("[0-9]{1,3}", 0..4),
        ports in proptest::collection::btree_set(1_u8..=254, 0..4), required: bool,
    ) {
        let ports: String = ports
            .iter()
            .map(|n| format!("[[port]]\npci = \"0000:4b:00.0\"\nport = {n}\nrequired = {required}\n"))
            .collect();
        let text = format!(
            "boot.timeout = {timeout}\nboot.adapter-timeout = {}\nmodules.load = {load:?}\nmodules.exclude = {skip:?}\n{ports}",
            adapter.min(timeout),
        );
        let first = loaded(&[&text]).expect("good");
        let second = loaded(&[&to_toml(&first.effective())]).expect("good");
        let strip = |mut config: Config| {
            config.ports.iter_mut().for_each(|port| port.origin.clear());
            config
        };
        prop_assert_eq!(strip(first.config), strip(second.config));
    }
}
