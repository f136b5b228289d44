//! `make demo`: boots one machine twice, without and with ibprov, and shows
//! what came of it side by side. All that is printed is what the two guests
//! brought out.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a program to watch, which runs other programs"
)]
#![allow(dead_code, reason = "the bed is shared by two lanes, neither of which needs all of it")]

#[path = "../bed/mod.rs"]
mod bed;
mod machine;

use std::time::Duration;

use bed::journal::Entry;
use bed::outcome::Outcome;

/// Columns of each half.
const WIDTH: usize = 76;

fn main() {
    println!("Booting the machine without ibprov ...");
    let without = machine::boot("late_rdma_no_agent");
    println!("Booting the same machine with ibprov ...\n");
    let with = machine::boot("late_rdma");

    side_by_side("WITHOUT IBPROV", "WITH IBPROV");
    rule("The boot, in seconds since the start of the kernel");
    side_by_side(&timeline(&without), &timeline(&with));
    rule("What the network service came to");
    side_by_side(&network(&without), &network(&with));
    rule("ip -br addr");
    side_by_side(&without.file("addr"), &with.file("addr"));

    println!("\n== With ibprov: its report in the journal\n");
    for e in
        with.journal.unit("ibprov.service").filter(|e| e.field("SYSLOG_IDENTIFIER") == "ibprov")
    {
        println!("[{:7.3}] {}", e.at.as_secs_f64(), e.message);
    }
    println!("\n== With ibprov: ibprov status\n\n{}", with.file("status"));
    println!(
        "Everything the two machines brought out: {} and {}",
        without.out.display(),
        with.out.display()
    );
    println!("\nWithout ibprov: {}\nWith ibprov:    {}", proved(&without), proved(&with));
}

/// In one line, when the network service began, and what became of `ib0`.
fn proved(guest: &Outcome) -> String {
    let began = guest.journal.unit("networking.service").next().expect("networking began").at;
    let ib0 = ib0_seen(guest);
    let order = if began < ib0 { "before" } else { "after" };
    let addr = guest.file("addr");
    let line = addr.lines().find(|line| line.starts_with("ib0 ")).expect("ib0 is there");
    let address = match line.split_whitespace().nth(2) {
        Some(address) => format!("has {address}"),
        None => "has no address".to_owned(),
    };
    let (began, ib0, network) =
        (began.as_secs_f64(), ib0.as_secs_f64(), guest.file("networking").trim().to_owned());
    format!(
        "networking.service began at {began:.1} s, {order} ib0 was there ({ib0:.1} s): {network}; ib0 {address}."
    )
}

/// When udev saw `ib0`, since the start of the kernel.
fn ib0_seen(guest: &Outcome) -> Duration {
    Duration::from_micros(guest.file("ib0-usec").trim().parse().expect("udev's time for ib0"))
}

/// The lines of the journal that tell the story: the card, the network
/// service, ibprov, and the targets between them.
fn timeline(guest: &Outcome) -> String {
    let told = |e: &&Entry| {
        let about = |name: &str| e.field("UNIT") == name && !e.field("JOB_RESULT").is_empty();
        let kernel = e.field("_TRANSPORT") == "kernel"
            && !e.message.contains("ommand line")
            && ["mlx5", "ib0", "InfiniBand"].iter().any(|word| e.message.contains(word));
        kernel
            || [
                "ibprov.service",
                "network-pre.target",
                "networking.service",
                "network.target",
                "multi-user.target",
            ]
            .iter()
            .any(|name| about(name))
            || (e.of("networking.service") && e.message.contains("ib0"))
    };
    let line = |at: Duration, what: &str| (at, format!("{:7.3} {what}\n", at.as_secs_f64()));
    let mut lines: Vec<_> =
        guest.journal.0.iter().filter(told).map(|e| line(e.at, &e.message)).collect();
    lines.push(line(ib0_seen(guest), "udev sees ib0"));
    lines.sort();
    lines.into_iter().map(|(_, text)| text).collect()
}

fn network(guest: &Outcome) -> String {
    let said: String = guest
        .journal
        .unit("networking.service")
        .filter(|e| e.field("_SYSTEMD_UNIT") == "networking.service")
        .map(|e| format!("{}\n", e.message))
        .collect();
    format!("networking.service: {}{said}", guest.file("networking"))
}

fn rule(title: &str) {
    println!("\n== {title}\n");
}

/// Two texts next to each other, long lines broken.
fn side_by_side(left: &str, right: &str) {
    let (left, right) = (fold(left), fold(right));
    for n in 0..left.len().max(right.len()) {
        let cell = |side: &[String]| side.get(n).cloned().unwrap_or_default();
        println!("{:WIDTH$} | {}", cell(&left), cell(&right));
    }
}

fn fold(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let chars: Vec<char> = line.trim_end().chars().collect();
        if chars.is_empty() {
            lines.push(String::new());
        }
        lines.extend(chars.chunks(WIDTH).map(|c| c.iter().collect::<String>()));
    }
    lines
}
