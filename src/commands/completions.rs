//! `ibprov completions`.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::cli::Cli;

/// Print what `shell` completes `ibprov` by.
///
/// # Errors
/// Standard output is gone.
pub fn run(shell: clap_complete::Shell) -> std::io::Result<()> {
    // The generator panics where it cannot write.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ibprov", &mut text);
    std::io::stdout().write_all(&text)
}
