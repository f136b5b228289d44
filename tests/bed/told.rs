//! What a command that a report tells to run must be: sh can read it, its programs are known ones,
//! it has no placeholder, and what it asks of ibprov is a command line of ibprov.

use std::process::Command;

use clap::Parser as _;

/// Programs that may be told of: those of the field, of systemd and of each distribution.
const PROGRAMS: &str = "
    audit2allow ausearch basename cat cd depmod devlink dkms dmesg dracut du df echo ethtool find findmnt for grep ibportstate
    ibprov ibstat ifup ip journalctl ln ls lsinitrd lsmod lspci mkdir mlxlink modinfo modprobe mokutil
    mount
    mstconfig mstflint mstfwreset mstlink nmcli opahfirev opainfo opensm pgrep printf ps rdma readlink setenforce sminfo
    sort swapon systemctl systemd-analyze udevadm uname virsh xargs";

/// Words in capitals that are no placeholders: settings in firmware.
const SETTINGS: [&str; 2] = ["SRIOV_EN", "NUM_OF_VFS"];

/// The simple commands of a command line.
fn simple(command: &str) -> impl Iterator<Item = Vec<&str>> {
    let parts = command.split([';', '|', '&']).flat_map(|part| part.split("$("));
    let parts = parts.map(|part| part.split_whitespace().filter(|w| *w != "do" && *w != "done"));
    parts.map(Iterator::collect::<Vec<_>>).filter(|words| !words.is_empty())
}

/// True if a reader would have to fill something in for a part of `word`.
fn is_placeholder(word: &str) -> bool {
    let is_capital = |c: char| c.is_ascii_uppercase() || c == '_';
    let mut parts = word.split('/').filter(|part| !part.is_empty());
    !SETTINGS.contains(&word) && parts.any(|part| part.chars().all(is_capital))
}

/// What is wrong with `command`.
pub(crate) fn faults(command: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let read = Command::new("sh").args(["-n", "-c", command]).output().expect("sh");
    if !read.status.success() || command.contains('`') {
        wrong.push(format!("{command}: {}", String::from_utf8_lossy(&read.stderr)));
    }
    // Quoted words are patterns of grep, and names.
    let bare: String = command.split('\'').step_by(2).collect::<Vec<_>>().join("'x'");
    for words in simple(&bare) {
        let program = words.first().copied().unwrap_or_default();
        if !PROGRAMS.split_whitespace().any(|known| known == program) {
            wrong.push(format!("{command}: {program} is no known program"));
        }
        // What grep looks for stands as it is.
        let before = std::iter::once("").chain(words.iter().copied());
        let mut given = words.iter().zip(before).filter(|(_, before)| *before != "-e");
        if let Some((word, _)) = given.find(|(word, _)| is_placeholder(word)) {
            wrong.push(format!("{command}: {word} is not filled in"));
        }
        if program == "ibprov"
            && let Err(e) = ibprov::cli::Cli::try_parse_from(&words)
        {
            wrong.push(format!("{command}: {e}"));
        }
    }
    wrong
}
