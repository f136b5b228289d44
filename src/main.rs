//! ibprov: arguments, logging, one function per verb, exit code.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use ibprov::cli::{Cli, Format, Internal, Verb};
use ibprov::commands;
use ibprov::host::{Root, alarm, journal, live_line, terminal};
use ibprov::report::common::{Code, Exit, NotBegun, to_json};
use ibprov::workers::child;

fn main() -> ExitCode {
    let cli = match Internal::of(std::env::args_os()) {
        // Their parents have read the configuration, and tell them all that they need.
        Some(internal) => return ended(run_internal(internal), Format::Text),
        None => match Cli::try_parse() {
            Ok(cli) => cli,
            Err(e) => return refused(&e),
        },
    };
    let ran = run(&cli);
    live_line::end();
    ended(ran, cli.common.format)
}

/// What the process ends with.
fn ended(ran: anyhow::Result<u8>, format: Format) -> ExitCode {
    match ran {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            // A closed pipe is the reader's wish, not a failure.
            if is_broken_pipe(&e) {
                return ExitCode::SUCCESS;
            }
            not_begun(format, Code::NotBegun, &format!("{e:#}"));
            ExitCode::from(Exit::NotBegun.code())
        }
    }
}

/// What was typed is not understood, or asks for help.
fn refused(e: &clap::Error) -> ExitCode {
    if e.use_stderr() && asks_for_json(std::env::args_os().skip(1)) {
        let text = e.render().to_string();
        let first = text.lines().next().unwrap_or_default();
        let message = first.strip_prefix("error: ").unwrap_or(first);
        not_begun(Format::Json, Code::Usage, message);
        return ExitCode::from(Exit::NotBegun.code());
    }
    if e.use_stderr() {
        drop(write!(terminal::stderr(), "{}", e.render()));
        return ExitCode::from(Exit::NotBegun.code());
    }
    e.exit()
}

/// True if `--format json` is among the arguments, as far as they can be told apart.
fn asks_for_json(arguments: impl Iterator<Item = OsString>) -> bool {
    let arguments: Vec<OsString> = arguments.take_while(|argument| argument != "--").collect();
    let pairs = arguments.windows(2);
    arguments.iter().any(|argument| argument == "--format=json")
        || pairs.into_iter().any(|pair| *pair == ["--format", "json"])
}

/// Say why nothing was done: to people on standard error, to programs on standard output.
fn not_begun(format: Format, code: Code, message: &str) {
    match (format, to_json(&NotBegun::because(code, message))) {
        (Format::Json, Ok(json)) => drop(writeln!(terminal::stdout(), "{json}")),
        _ => {
            drop(writeln!(
                terminal::stderr(),
                "{}{message}",
                journal::prefix(tracing::Level::ERROR)
            ));
        }
    }
}

fn run_internal(internal: Internal) -> anyhow::Result<u8> {
    drop(journal::install(false));
    match internal {
        Internal::Worker { pf } => child::run(pf)?,
        Internal::SetPortType { pci, force, types } => {
            return commands::set_port_type::run(pci, &types, force);
        }
        Internal::CreateRxe { name, netdev } => commands::create_rxe::run(&name, &netdev)?,
        Internal::NameRxe { name, netdev } => commands::create_rxe::name(&name, &netdev)?,
        Internal::SetNetnsMode { mode } => commands::set_netns_mode::run(mode)?,
        Internal::NameRdma { pci, name } => commands::name_rdma::run(pci, &name)?,
    }
    Ok(Exit::Good.code())
}

fn run(cli: &Cli) -> anyhow::Result<u8> {
    if cli.verb.is_of_units() {
        alarm::begin();
    }
    terminal::choose(cli.common.color);
    if let Some(problem) = journal::install(cli.common.verbose) {
        tracing::warn!(warning = problem, "{problem}");
    }
    let common = &cli.common;
    match &cli.verb {
        Verb::Completions { shell } => {
            commands::completions::run(*shell, common.format)?;
            return Ok(Exit::Good.code());
        }
        Verb::Schema { report } => {
            commands::schema::run(report.as_deref())?;
            return Ok(Exit::Good.code());
        }
        _ => {}
    }
    // A diagnosis needs no configuration, and a bad one must not hinder it.
    if let Verb::Check(args) = &cli.verb
        && args.initrd.is_none()
    {
        return match &args.fleet {
            Some(dir) => commands::check_fleet::run(dir, common.format),
            None => commands::check::run(args, common),
        };
    }
    if let Verb::Collect(args) = &cli.verb {
        return commands::collect::run(args, common);
    }
    let root = match &common.root {
        Some(dir) => Root::copy_at(dir)?,
        None => Root::live(),
    };
    if let Verb::Gid(args) = &cli.verb {
        return commands::gid::run(args, &root, common.format);
    }
    if let Verb::Holders(args) = &cli.verb {
        return commands::holders::run(args, &root, common.format);
    }
    if let Verb::Consumers(args) = &cli.verb {
        return commands::consumers::run(args, &root, common);
    }
    // It judges the configuration as it would be.
    if let Verb::Migrate(args) = &cli.verb {
        return commands::migrate::run(args, &root, common);
    }
    if let Verb::Apply(args) = &cli.verb
        && args.undo
    {
        return commands::apply::undo(args, &root, common.format);
    }
    let loaded = ibprov::config::load(&root, common.config.as_deref());
    match (&cli.verb, loaded) {
        (
            Verb::Collect(_)
            | Verb::Consumers(_)
            | Verb::Completions { .. }
            | Verb::Gid(_)
            | Verb::Holders(_)
            | Verb::Schema { .. }
            | Verb::Migrate(_),
            _,
        ) => Ok(Exit::Good.code()),
        // A bad configuration is no reason not to read another.
        (Verb::Import { verb }, _) => commands::import::run(verb, &root, common.format),
        (Verb::Config { verb }, loaded) => commands::config::run(*verb, loaded, common.format),
        // It shows the host as the defaults would have it, and says so first.
        (Verb::Status(args), Err(problems)) => {
            commands::config::complain(&problems)?;
            commands::status::run(args, Err(&problems), &root, common)
        }
        // That the configuration has errors is one of them.
        (Verb::Metrics(args), loaded) => {
            commands::metrics::run(args, loaded.as_ref(), &root, common.format)
        }
        // No other verb can begin with a bad configuration.
        (_, Err(problems)) => {
            commands::config::refuse(&problems, common.format)?;
            Ok(Exit::NotBegun.code())
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
        (Verb::Check(args), Ok(loaded)) => {
            commands::initrd::run(args, &loaded.config, &root, common.format)
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
    }
}

fn is_broken_pipe(e: &anyhow::Error) -> bool {
    e.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
