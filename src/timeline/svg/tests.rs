use std::time::Duration;

use expect_test::expect_file;

use super::super::{Clock, Note, fixtures};
use super::draw;

/// A picture as it was looked at, and those that the browser test opens: it cannot draw them.
#[test]
fn the_picture_is_as_it_was_looked_at() {
    let failing = draw(&fixtures::seed_failing());
    expect_file!["../../../tests/picture/seed_failing.svg"].assert_eq(&failing);
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/target/pictures");
    std::fs::create_dir_all(dir).expect("folder");
    for (name, svg) in [
        ("seed_failing", failing),
        ("seed_good", draw(&fixtures::seed_good())),
        ("eight_ports", draw(&fixtures::many(8))),
        ("hundred_ports", draw(&fixtures::many(100))),
        ("hostile_names", draw(&fixtures::hostile())),
    ] {
        std::fs::write(format!("{dir}/{name}.svg"), svg).expect("picture");
    }
}

#[test]
fn a_good_boot_has_nothing_red_in_it() {
    let svg = draw(&fixtures::seed_good());
    for red in ["head bad", "gap missing", "class=\"band\"", "class=\"asked\"", "mark red"] {
        assert!(!svg.contains(red), "{red}");
    }
    assert!(svg.contains("head good"), "{svg}");
}

#[test]
fn a_hundred_ports_have_a_row_each() {
    let svg = draw(&fixtures::many(100));
    for i in 0..100 {
        assert!(svg.contains(&format!(">mlx5_{i} port 1 (")), "{i}");
    }
    let width = svg.split("viewBox=\"0 0 ").nth(1).and_then(|s| s.split('"').next());
    let (w, h) = width.and_then(|s| s.split_once(' ')).expect("size");
    assert_eq!(w, "1280");
    assert!(h.parse::<u32>().expect("height") < 2200, "{h}");
}

#[test]
fn nothing_at_all_is_still_a_picture() {
    let svg = draw(&super::Timeline::default());
    assert!(svg.contains(">Nothing that was read of this boot has a time"), "{svg}");
    assert!(svg.ends_with("</svg>\n"), "{svg}");
}

#[test]
fn hostile_names_stay_text() {
    let svg = draw(&fixtures::hostile());
    assert!(!svg.contains("<script"), "{svg}");
    assert!(svg.chars().all(|c| !c.is_control() || c == '\n'), "{svg:?}");
    assert!(!svg.contains('\u{202e}'));
    // Every "<" opens one of ours, every "&" is one of five entities.
    let ours = [
        "<?xml", "<svg", "</svg>", "<title>", "</title>", "<style>", "</style>", "<rect", "<line",
        "<text", "</text>", "<polygon", "<g>", "</g>",
    ];
    for (at, _) in svg.match_indices('<') {
        assert!(ours.iter().any(|o| svg[at..].starts_with(o)), "{}", &svg[at..at + 40]);
    }
    let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&apos;"];
    for (at, _) in svg.match_indices('&') {
        assert!(entities.iter().any(|e| svg[at..].starts_with(e)), "{}", &svg[at..at + 10]);
    }
}

/// As of a log, or of a report that was written half.
#[test]
fn any_number_is_a_time() {
    let mut timeline = fixtures::seed_failing();
    let at = Duration::from_micros(u64::MAX);
    timeline.notes.push(Note { at, text: "far away".to_owned() });
    assert!(draw(&timeline).contains("far away"));
    timeline.clock = Clock::SinceBoot;
    assert!(draw(&timeline).contains("far away"));
}
