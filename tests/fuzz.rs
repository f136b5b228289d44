//! Each fuzz target (`fuzz/`, by hand and in `make test-all`) with every one of its seeds, so
//! that it is built and true between two campaigns.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "the targets are tests, which read and write files"
)]

#[path = "../fuzz/src/seed.rs"]
mod seed;
#[path = "../fuzz/src/targets.rs"]
mod targets;
#[path = "../fuzz/src/tree.rs"]
mod tree;

#[test]
fn every_target_takes_its_seeds() {
    for (name, target) in targets::ALL {
        let begin = std::time::Instant::now();
        let (seeds, _) = seed::of(name);
        seeds.iter().for_each(|seed| target(seed));
        println!("{name}: {} seeds, {:.1} s", seeds.len(), begin.elapsed().as_secs_f64());
    }
}
