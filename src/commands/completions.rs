//! `ibprov completions`.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::cli::{Cli, Format};
use crate::host::terminal;
use crate::report::Exit;

/// Print what `shell` completes `ibprov` by.
///
/// # Errors
/// JSON is asked for; standard output is gone.
pub fn run(shell: clap_complete::Shell, format: Format) -> anyhow::Result<u8> {
    if format == Format::Json {
        anyhow::bail!("completions prints a script for a shell: leave --format json out");
    }
    // The generator panics where it cannot write.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ibprov", &mut text);
    terminal::stdout().write_all(&text)?;
    Ok(Exit::Good.code())
}
