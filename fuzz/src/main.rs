//! All fuzz targets in one program: `IBPROV_FUZZ` says which. One program, because linking
//! costs more than to choose. With `IBPROV_FUZZ_SEEDS` and `IBPROV_FUZZ_WORDS` it writes
//! seeds and a dictionary for the target there, and ends; with `IBPROV_FUZZ_KEEP`, a directory
//! of inputs, it adds these to those that the repository keeps.

#![no_main]

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

mod seed;
mod targets;
mod tree;

static CHOSEN: OnceLock<targets::OneTarget> = OnceLock::new();

fn choose() {
    let name = std::env::var("IBPROV_FUZZ").unwrap_or_default();
    let known = targets::ALL.iter().find(|(known, _)| *known == name);
    let Some((name, target)) = known else {
        let names: Vec<&str> = targets::ALL.iter().map(|(name, _)| *name).collect();
        eprintln!("IBPROV_FUZZ={name:?}, not one of {}", names.join(" "));
        std::process::exit(2);
    };
    if let (Ok(seeds), Ok(words)) =
        (std::env::var("IBPROV_FUZZ_SEEDS"), std::env::var("IBPROV_FUZZ_WORDS"))
    {
        write(name, seeds.as_ref(), words.as_ref());
        std::process::exit(0);
    }
    if let Ok(found) = std::env::var("IBPROV_FUZZ_KEEP") {
        keep(name, found.as_ref());
        std::process::exit(0);
    }
    CHOSEN.get_or_init(|| *target);
}

/// Writes seeds for `target` into the directory `corpus`, and words.
fn write(target: &str, corpus: &Path, dictionary: &Path) {
    fs::create_dir_all(corpus).expect("the corpus");
    let (seeds, words) = seed::of(target);
    for (at, seed) in seeds.iter().enumerate() {
        fs::write(corpus.join(format!("seed-{at:05}")), seed).expect("a seed");
    }
    let lines: String = words.iter().map(|word| format!("\"{}\"\n", escaped(word))).collect();
    fs::write(dictionary, lines).expect("the dictionary");
    println!("{target}: {} seeds, {} words", seeds.len(), words.len());
}

/// Adds the inputs of the directory `found` to the kept ones of `target`.
fn keep(target: &str, found: &Path) {
    let mut inputs = seed::kept(target);
    let before = inputs.len();
    for entry in fs::read_dir(found).expect("the inputs") {
        inputs.insert(fs::read(entry.expect("an entry").path()).expect("an input"));
    }
    let lines: String = inputs.iter().map(|input| format!("{}\n", input.escape_ascii())).collect();
    fs::write(seed::kept_file(target), lines).expect("the kept inputs");
    println!("{target}: {} inputs kept, {} more", inputs.len(), inputs.len() - before);
}

fn escaped(word: &[u8]) -> String {
    let shown = |b: &u8| match b {
        b'"' | b'\\' => format!("\\{}", char::from(*b)),
        0x20..0x7f => char::from(*b).to_string(),
        _ => format!("\\x{b:02x}"),
    };
    word.iter().map(shown).collect()
}

libfuzzer_sys::fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(target) = CHOSEN.get() {
        target(data);
    }
});
