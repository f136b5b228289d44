//! The samples in README.md are what ibprov prints.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What a command of README prints on a terminal of 90 columns; of `| head -N` the first
/// lines. Logs are beside the files of the node that the other samples are of, which has two
/// adapters: four VFs of the first are still to be created, and the fabric of the second has
/// no subnet manager.
fn printed(command: &str) -> String {
    let (command, lines) = match command.split_once(" | head -") {
        Some((command, lines)) => (command, lines.parse().expect("a number of lines")),
        None => (command, usize::MAX),
    };
    let mut ibprov = Command::new(env!("CARGO_BIN_EXE_ibprov"));
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tree");
    if !command.contains("--log") {
        ibprov.args(["--root", "../node"]);
    }
    let output = ibprov
        .args(command.split(' '))
        .env("COLUMNS", "90")
        .current_dir(here.join("logs"))
        .output()
        .expect("ibprov");
    String::from_utf8_lossy(&output.stdout).split_inclusive('\n').take(lines).collect()
}

#[test]
fn the_samples_are_what_ibprov_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).expect("README.md");
    let (mut real, mut commands) = (String::new(), Vec::new());
    for (number, part) in readme.split("```").enumerate() {
        let sample = part.strip_prefix("console\n$ ibprov ").filter(|_| number % 2 == 1);
        let command = sample.and_then(|sample| sample.lines().next());
        if number > 0 {
            real.push_str("```");
        }
        match command {
            Some(command) => {
                real.push_str(&format!("console\n$ ibprov {command}\n{}", printed(command)));
                commands.push(command);
            }
            None => real.push_str(part),
        }
    }
    expect_test::expect_file![path].assert_eq(&real);
    let verbs: Vec<&str> = commands.iter().filter_map(|c| c.split(' ').next()).collect();
    assert_eq!(verbs, ["status", "plan", "check"]);
}
