//! The boot pictures in a real browser: every text inside the paper, none over
//! another, red where it must be. `make test-picture`; what the browser drew is
//! left in the folder that is printed, to be looked at.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops at the first thing that is not as it should be, and runs a browser"
)]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Asks the browser where each text is, and counts red pixels of what it drew.
const JUDGE: &str = include_str!("judge.html");

/// Where the unit tests of the picture draw them.
const DRAWN: &str = "target/pictures";

fn browser(out: &Path, arguments: &[String]) -> String {
    // A profile of its own, or two at a time would wait for each other.
    let profile = tempfile::tempdir().expect("temporary folder");
    let output = Command::new("chromium-headless-shell")
        .args(["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .current_dir(out)
        .output()
        .expect("chromium-headless-shell runs (make test-picture installs it)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the browser says of the picture `name` in that folder.
fn judged(folder: &str, name: &str) -> Value {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("picture");
    std::fs::create_dir_all(&out).expect("folder");
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(format!("{name}.svg"));
    let svg = std::fs::read_to_string(picture).expect("a picture (make test-picture draws it)");
    let file = out.join(format!("{name}.svg"));
    std::fs::write(&file, &svg).expect("file");
    // As a JSON text it cannot end the script that it is put into.
    let text = serde_json::to_string(&svg).expect("JSON").replace('<', "\\u003c");
    let page = out.join(format!("{name}.html"));
    std::fs::write(&page, JUDGE.replace("\"PICTURE\"", &text)).expect("file");

    let dom = browser(&out, &["--dump-dom".into(), format!("file://{}", page.display())]);
    let json = dom.split("<pre id=\"verdict\">").nth(1).and_then(|s| s.split("</pre>").next());
    let json = json.expect("a verdict").replace("&lt;", "<").replace("&gt;", ">");
    let verdict: Value = serde_json::from_str(&json.replace("&amp;", "&")).expect("JSON");

    let height = verdict["height"].as_f64().expect("height");
    let shot = out.join(format!("{name}.png"));
    let size = format!("--window-size=1280,{height:.0}");
    let to = format!("--screenshot={}", shot.display());
    browser(&out, &[to, size, format!("file://{}", file.display())]);
    println!("to be looked at: {}", shot.display());
    verdict
}

fn assert_readable(verdict: &Value) {
    assert!(verdict["texts"].as_u64().expect("texts") > 10, "{verdict:#}");
    assert_eq!(verdict["outside"], serde_json::json!([]), "outside the paper");
    assert_eq!(verdict["overlapping"], serde_json::json!([]), "one over the other");
    assert!(verdict["smallest"].as_f64().expect("size") >= 9.0, "{verdict:#}");
}

/// How much of the picture is red, per mille.
fn red(verdict: &Value) -> f64 {
    verdict["red"].as_f64().expect("red")
}

#[test]
fn the_failing_boot_is_red_at_first_sight() {
    let verdict = judged(DRAWN, "seed_failing");
    assert_readable(&verdict);
    assert!(red(&verdict) > 150.0, "{verdict:#}");
}

#[test]
fn the_good_boot_is_not() {
    let verdict = judged(DRAWN, "seed_good");
    assert_readable(&verdict);
    // The legend's.
    assert!(red(&verdict) < 1.0, "{verdict:#}");
}

#[test]
fn eight_and_a_hundred_ports_can_be_read() {
    for name in ["eight_ports", "hundred_ports"] {
        let verdict = judged(DRAWN, name);
        assert_readable(&verdict);
        assert!(red(&verdict) > 50.0, "{verdict:#}");
    }
}

/// Those of README.md.
#[test]
fn the_pictures_that_are_shown_can_be_read() {
    for name in ["boot", "status"] {
        assert_readable(&judged("docs/pictures", name));
    }
}

#[test]
fn hostile_names_are_text_to_a_browser() {
    let verdict = judged(DRAWN, "hostile_names");
    assert_readable(&verdict);
    assert_eq!(verdict["scripts"], 0);
}
