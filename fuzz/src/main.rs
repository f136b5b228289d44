//! All fuzz targets in one program: `IBPROV_FUZZ` says which. One program, because linking
//! costs more than to choose. With `IBPROV_FUZZ_SEEDS` and `IBPROV_FUZZ_WORDS` it writes
//! seeds and a dictionary for the target there, and ends.

#![no_main]

use std::sync::OnceLock;

mod seed;
mod targets;
mod tree;

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 14] = [
    ("config", targets::config),
    ("pins", targets::pins),
    ("names", targets::names),
    ("logs", targets::logs),
    ("intake", targets::intake),
    ("kernel", targets::kernel),
    ("netlink", targets::netlink),
    ("udev", targets::udev),
    ("units", targets::units),
    ("guests", targets::guests),
    ("import", targets::import),
    ("stacks", targets::stacks),
    ("reports", targets::reports),
    ("host", targets::host),
];

static CHOSEN: OnceLock<Target> = OnceLock::new();

fn choose() {
    let name = std::env::var("IBPROV_FUZZ").unwrap_or_default();
    let known = TARGETS.iter().find(|(known, _)| *known == name);
    let Some((name, target)) = known else {
        let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("IBPROV_FUZZ={name:?}: want one of {}", names.join(" "));
        std::process::exit(2);
    };
    if let (Ok(seeds), Ok(words)) =
        (std::env::var("IBPROV_FUZZ_SEEDS"), std::env::var("IBPROV_FUZZ_WORDS"))
    {
        seed::write(name, seeds.as_ref(), words.as_ref());
        std::process::exit(0);
    }
    CHOSEN.get_or_init(|| *target);
}

libfuzzer_sys::fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(target) = CHOSEN.get() {
        target(data);
    }
});
