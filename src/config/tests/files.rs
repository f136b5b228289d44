//! Every configuration of the tree: examples, and what the tests' guests boot with.

#![allow(clippy::disallowed_methods, reason = "it reads the tree that it is built from")]

use std::fs;
use std::path::{Path, PathBuf};

use super::loaded;

pub(in crate::config) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub(in crate::config) fn tree(below: &str) -> Vec<PathBuf> {
    fn add(dir: &Path, list: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).expect("directory").flatten() {
            let path = entry.path();
            // Links lead out of the tree, or to what is there anyway.
            match entry.file_type().expect("type") {
                t if t.is_dir() => add(&path, list),
                t if t.is_file() => list.push(path),
                _ => {}
            }
        }
    }
    let mut list = Vec::new();
    add(&Path::new(env!("CARGO_MANIFEST_DIR")).join(below), &mut list);
    list.sort();
    list
}

fn is_configuration(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
        && ["etc", "run", "usr/lib"]
            .iter()
            .any(|dir| path.to_string_lossy().contains(&format!("/root/{dir}/ibprov/ibprov")))
}

/// The host's own part of a configuration is merged as on a host: all files of one root.
#[test]
fn every_guest_s_configuration_is_good() {
    let files: Vec<PathBuf> = tree("tests").into_iter().filter(|p| is_configuration(p)).collect();
    assert!(files.len() > 30, "{files:?}");
    for path in files {
        let text = read(&path);
        let answer = loaded(&[&text]);
        if path.to_string_lossy().contains("/bad_configuration/") {
            assert_eq!(answer.expect_err("bad").len(), 2, "{}", path.display());
        } else if let Err(problems) = answer {
            panic!("{}: {problems}", path.display());
        }
    }
}

#[test]
fn every_example_of_the_documentation_is_good() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| read(&root.join(path));
    let readme = read("README.md");
    let mut examples: Vec<String> = readme
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .map(str::to_owned)
        .collect();
    for page in ["docs/ibprov.toml.5.md", "docs/ibprov-vf.5.md"] {
        let page = read(page);
        let (_, page) = page.split_once("\n# EXAMPLES\n").expect("examples");
        let page = page.split("\n# ").next().expect("a section");
        let mut example = String::new();
        for line in page.lines() {
            match line.strip_prefix("    ") {
                Some(code) => example.push_str(&format!("{code}\n")),
                None if line.is_empty() => example.push('\n'),
                None => examples.push(std::mem::take(&mut example)),
            }
        }
        assert_eq!(example.trim(), "", "a sentence ends the examples");
    }
    examples.retain(|example| !example.trim().is_empty());
    assert!(examples.len() >= 8, "{examples:?}");
    for example in examples {
        if let Err(problems) = loaded(&[&example]) {
            panic!("{example}{problems}");
        }
    }
}

/// A whole site is a screen at most. Each was more than twice as long with the names and
/// the rows of before.
#[test]
fn the_examples_of_whole_sites_are_good_and_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples");
    let site = |name: &str, most: usize| {
        let text = read(&root.join(name));
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let lines = lines.count();
        assert!(lines <= most, "{name}: {lines} lines");
        match loaded(&[&text]) {
            Ok(loaded) => loaded.config,
            Err(problems) => panic!("{name}: {problems}"),
        }
    };
    let dgx = site("dgx.toml", 20);
    assert_eq!(dgx.interfaces.iter().filter(|rule| rule.name.is_some()).count(), 8);
    let kvm = site("kvm-host.toml", 20);
    assert_eq!((kvm.guests.list.len(), kvm.pf[0].vfs), (16, 16));
    assert!(kvm.guests.list.iter().skip(1).all(|guest| guest.after.len() == 1));
    let lustre = site("lustre-client.toml", 6);
    assert_eq!(lustre.interfaces[0].partitions.len(), 2);
    let roce = site("roce.toml", 7);
    assert_eq!(roce.ports.len(), 2);
    assert_eq!(site("subnet-manager.toml", 12).subnet_managers.len(), 2);
    let fleet = site("fleet.toml", 10);
    assert_eq!((fleet.pf.len(), fleet.pf[0].site), (2, Some(3)));
    let manual = read(&root.join("../ibprov.toml.5.md"));
    let examples = tree("docs/examples");
    let toml = examples.iter().filter(|path| path.extension().is_some_and(|e| e == "toml"));
    let toml: Vec<&str> = toml.filter_map(|path| path.file_name()?.to_str()).collect();
    assert_eq!(toml.len(), 6, "each is loaded here");
    for name in toml {
        assert!(manual.contains(&format!("*{name}*")), "ibprov.toml(5) does not name {name}");
    }
}
