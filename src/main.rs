//! ibprov: arguments, logging, one function per verb, exit code.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use ibprov::cli::{Cli, Internal, Verb};
use ibprov::commands::{self, exit};
use ibprov::host::{Root, journal, live_line, terminal};
use ibprov::workers::child;

fn main() -> ExitCode {
    let ended = run();
    live_line::end();
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            // A closed pipe is the reader's wish, not a failure.
            if is_broken_pipe(&e) {
                return ExitCode::SUCCESS;
            }
            drop(writeln!(std::io::stderr(), "{}{e:#}", journal::prefix(tracing::Level::ERROR)));
            ExitCode::from(exit::CANNOT_BEGIN)
        }
    }
}

fn run() -> anyhow::Result<u8> {
    // Their parents have read the configuration, and tell them all that they need.
    if let Some(internal) = Internal::of(std::env::args_os()) {
        drop(journal::install(false));
        match internal {
            Internal::Worker => child::run()?,
            Internal::NameRdma { pci, name } => commands::name_rdma::run(pci, &name)?,
        }
        return Ok(exit::GOOD);
    }
    let cli = Cli::parse();
    terminal::choose(cli.common.color);
    if let Some(problem) = journal::install(cli.common.verbose) {
        tracing::warn!(warning = problem, "{problem}");
    }
    let common = &cli.common;
    if let Verb::Completions { shell } = &cli.verb {
        commands::completions::run(*shell)?;
        return Ok(exit::GOOD);
    }
    // A diagnosis needs no configuration, and a bad one must not hinder it.
    if let Verb::Check(args) = &cli.verb {
        return commands::check::run(args, common);
    }
    let root = match &common.root {
        Some(dir) => Root::copy_at(dir)?,
        None => Root::live(),
    };
    if let Verb::Apply(args) = &cli.verb
        && args.undo
    {
        return commands::apply::undo(args, &root, common.format);
    }
    let loaded = ibprov::config::load(&root, common.config.as_deref());
    match (&cli.verb, loaded) {
        (Verb::Check(_), _) => Ok(exit::CANNOT_BEGIN),
        // A bad configuration is no reason not to read another.
        (Verb::Import { verb }, _) => commands::import::run(verb, &root),
        (Verb::Config { verb }, loaded) => commands::config::run(*verb, loaded, common.format),
        // It shows the host as the defaults would have it, and says so first.
        (Verb::Status(args), Err(problems)) => {
            commands::config::complain(&problems)?;
            commands::status::run(args, Err(&problems), &root, common)
        }
        // No other verb can begin with a bad configuration.
        (_, Err(problems)) => {
            commands::config::complain(&problems)?;
            Ok(exit::CANNOT_BEGIN)
        }
        (Verb::Apply(args), Ok(loaded)) => {
            let file = common.config.as_deref();
            commands::apply::run(args, &loaded.config, file, &root, common.format)
        }
        (Verb::Boot(args), Ok(loaded)) => {
            let file = common.config.as_deref();
            commands::boot::run(args, loaded.config, file, &root, common.format)
        }
        (Verb::Plan(args), Ok(loaded)) => {
            commands::plan::run(args, &loaded.config, &root, common.format)
        }
        (Verb::Iface(args), Ok(loaded)) => {
            commands::iface::run(args, &loaded.config, &root, common.format)
        }
        (Verb::Status(args), Ok(loaded)) => {
            commands::status::run(args, Ok(loaded.config), &root, common)
        }
        (Verb::WaitOnline(args), Ok(loaded)) => {
            commands::wait_online::run(args, &loaded.config, &root, common.format)
        }
        (Verb::Guests(args), Ok(loaded)) => {
            commands::guests::run(args, &loaded.config, &root, common.format)
        }
        (Verb::Completions { .. }, Ok(_)) => Ok(exit::GOOD),
    }
}

fn is_broken_pipe(e: &anyhow::Error) -> bool {
    e.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
