//! The samples in README.md, and its pictures, are what ibprov prints: of the files of a node
//! and of a log, both beside this file. `UPDATE_EXPECT=1` writes them again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// What a command of README prints in the project's folder, on a terminal of 80 columns; of
/// `| head -N` the first lines.
fn printed(command: &str) -> String {
    let (command, lines) = match command.split_once(" | head -") {
        Some((command, lines)) => (command, lines.parse().expect("a number of lines")),
        None => (command, usize::MAX),
    };
    let output = Command::new(env!("CARGO_BIN_EXE_ibprov"))
        .args(command.split(' '))
        .env("COLUMNS", "80")
        .env_remove("NO_COLOR")
        .current_dir(project())
        .output()
        .expect("ibprov");
    String::from_utf8_lossy(&output.stdout).split_inclusive('\n').take(lines).collect()
}

#[test]
fn the_samples_are_what_ibprov_prints() {
    let path = project().join("README.md");
    let readme = fs::read_to_string(&path).expect("README.md");
    let (mut real, mut samples) = (String::new(), 0);
    for (number, part) in readme.split("```").enumerate() {
        let sample = part.strip_prefix("console\n$ ibprov ").filter(|_| number % 2 == 1);
        let command = sample.and_then(|sample| sample.lines().next());
        if number > 0 {
            real.push_str("```");
        }
        match command {
            Some(command) => {
                real.push_str(&format!("console\n$ ibprov {command}\n{}", printed(command)));
                samples += 1;
            }
            None => real.push_str(part),
        }
    }
    expect_test::expect_file![path].assert_eq(&real);
    assert!(samples > 0, "README.md has a sample");
}

/// The numbers of a terminal for what the pictures have.
const COLOURS: [(&str, &str); 4] =
    [("1", "bold"), ("31", "red"), ("32", "green"), ("33", "yellow")];

/// A terminal with `command` and what was printed in colour, as an SVG.
fn screen(command: &str, printed: &str) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let (mut rows, mut row) = (String::new(), 0);
    for line in std::iter::once(format!("$ {command}").as_str()).chain(printed.lines()) {
        row += 1;
        let mut spans = String::new();
        let mut class = Vec::new();
        for (number, part) in line.split("\u{1b}[").enumerate() {
            let (code, text) = match number {
                0 => ("", part),
                _ => part.split_once('m').expect("colour and nothing else"),
            };
            match code {
                "" => {}
                "0" => class.clear(),
                code => {
                    let known = COLOURS.iter().find(|(number, _)| *number == code);
                    class.push(known.expect("a colour that is known").1);
                }
            }
            match class.is_empty() {
                true => spans.push_str(&escaped(text)),
                false if text.is_empty() => {}
                false => spans.push_str(&format!(
                    "<tspan class=\"{}\">{}</tspan>",
                    class.join(" "),
                    escaped(text)
                )),
            }
        }
        rows.push_str(&format!(
            "<text x=\"16\" y=\"{}\" xml:space=\"preserve\">{spans}</text>\n",
            12 + 18 * row
        ));
    }
    let (width, height) = (708, 28 + 18 * row);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">
<title>{command}</title>
<style>
text{{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#ddd;white-space:pre}}
.bold{{font-weight:bold}}.red{{fill:#ff6b61}}.green{{fill:#7bc97b}}.yellow{{fill:#e5c453}}
</style>
<rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"#1e1e1e\"/>
{rows}</svg>
"
    )
}

/// Each picture of docs/pictures is drawn here, and README.md shows it.
#[test]
fn the_pictures_are_what_ibprov_draws() {
    let here = project().join("docs/pictures");
    let status = printed("--root tests/tree/node --color always status");
    let log = "tests/tree/logs/openibd-disabled.log";
    let drawn = Path::new(env!("CARGO_TARGET_TMPDIR")).join("boot.svg");
    printed(&format!("check --log {log} --svg {}", drawn.display()));
    let pictures = [
        ("status.svg", screen("ibprov status", &status)),
        ("boot.svg", fs::read_to_string(drawn).expect("a picture of the boot")),
    ];
    let readme = fs::read_to_string(project().join("README.md")).expect("README.md");
    let mut bytes = 0;
    for (name, picture) in &pictures {
        expect_test::expect_file![here.join(name)].assert_eq(picture);
        assert!(readme.contains(&format!("](docs/pictures/{name})")), "README.md shows {name}");
        bytes += picture.len();
    }
    assert_eq!(fs::read_dir(&here).expect("docs/pictures").count(), pictures.len());
    assert!(bytes < 60_000, "{bytes} bytes of pictures");
}
