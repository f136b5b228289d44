//! ibprov: arguments, logging, one function per verb, exit code.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use clap::error::ErrorKind;
use ibprov::cli::{Cli, Common, Format, Internal, OpensmVerb, Verb};
use ibprov::commands;
use ibprov::config::{self, Config, Loaded};
use ibprov::host::{Root, alarm, answer, journal, live_line, terminal};
use ibprov::model::common::{Code, Exit, NotBegun};
use ibprov::workers::child;

fn main() -> ExitCode {
    let cli = match Internal::of(std::env::args_os()) {
        // Their parents have read the configuration, and tell them all that they need.
        Some(internal) => return ExitCode::from(ended(run_internal(internal), Format::Text)),
        None => match Cli::try_parse() {
            Ok(cli) => cli,
            Err(e) => return refused(&e),
        },
    };
    let ran = run(&cli);
    live_line::end();
    let code = ended(ran, cli.common.format);
    let becomes_opensm = matches!(cli.verb, Verb::Opensm { verb: OpensmVerb::Run(_) });
    ExitCode::from(match code == Exit::NotBegun.code() && becomes_opensm {
        true => commands::opensm_run::NOT_BEGUN,
        false => code,
    })
}

/// What the process ends with.
fn ended(ran: Result<u8>, format: Format) -> u8 {
    match ran {
        Ok(code) => code,
        Err(e) => {
            let said = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
                Some(error) => answer(error),
                None => cause.to_string(),
            };
            let message: Vec<String> = e.chain().map(said).collect();
            not_begun(format, Code::NotBegun, &message.join(": "));
            Exit::NotBegun.code()
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
    if e.kind() == ErrorKind::MissingSubcommand {
        not_begun(Format::Text, Code::Usage, "no verb is given: ibprov --help lists them");
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
    match (format, NotBegun::because(code, message).to_json()) {
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

fn run_internal(internal: Internal) -> Result<u8> {
    drop(journal::install(false));
    match internal {
        Internal::Worker { pf, queries } => child::run(pf, queries.is_some())?,
        Internal::SetPortType { pci, force, types } => {
            return commands::internal::set_port_type(pci, &types, force);
        }
        Internal::MayAct { unit } => return Ok(commands::internal::may_act(&unit).code()),
        Internal::CreateRxe { name, netdev } => commands::internal::create_rxe(&name, &netdev)?,
        Internal::NameRxe { name, netdev } => commands::internal::name_rxe(&name, &netdev)?,
        Internal::SetNetnsMode { mode } => commands::internal::set_netns_mode(mode)?,
        Internal::NameRdma { unless_used, pci, name } => {
            return commands::internal::name_rdma(pci, &name, unless_used);
        }
    }
    Ok(Exit::Good.code())
}

fn run(cli: &Cli) -> Result<u8> {
    if cli.verb.is_of_units() {
        alarm::begin();
    }
    let common = &cli.common;
    terminal::choose(common.color, common.verbose);
    if let Some(problem) = journal::install(common.verbose) {
        tracing::warn!(warning = problem, "{problem}");
    }
    let (format, file) = (common.format, common.config.as_deref());
    match &cli.verb {
        Verb::Completions { shell } => commands::completions::run(*shell, format),
        Verb::Collect(args) => commands::collect::run(args, common),
        Verb::Gid(args) => commands::gid::run(args, &root(common)?, format),
        Verb::Holders(args) => commands::holders::run(args, &root(common)?, format),
        Verb::Consumers(args) => commands::consumers::run(args, &root(common)?, common),
        // A bad configuration is no reason not to read another.
        Verb::Import { verb } => commands::import::run(verb, &root(common)?, format),
        Verb::Opensm { verb: OpensmVerb::Check(args) } => loaded(common, |loaded, root| {
            commands::opensm::run(args, loaded.whole().ok().as_ref(), &root, format)
        }),
        Verb::Opensm { verb: OpensmVerb::Run(args) } => of_unit(common, |loaded, root| {
            commands::opensm_run::run(args, &loaded.config, root, format)
        }),
        // It judges the configuration as it would be.
        Verb::Migrate(args) => commands::migrate::run(args, &root(common)?, common),
        Verb::Check(args) => match args.initrd {
            // A diagnosis needs no configuration, and a bad one must not hinder it.
            None => commands::check::run(args, common),
            Some(_) => {
                configured(common, |config, root| commands::initrd::run(args, config, root, format))
            }
        },
        Verb::Config { verb } => {
            loaded(common, |loaded, root| commands::config::run(*verb, loaded, &root, format))
        }
        Verb::Status(args) => {
            loaded(common, |loaded, root| commands::status::run(args, &loaded, &root, common))
        }
        Verb::Metrics(args) => {
            loaded(common, |loaded, root| commands::metrics::run(args, &loaded, &root, format))
        }
        Verb::Health(args) => {
            loaded(common, |loaded, root| commands::health::run(args, loaded, root, format))
        }
        Verb::Apply(args) if args.undo => commands::apply::undo(args, &root(common)?, format),
        Verb::Apply(args) if args.in_turn => of_unit(common, |loaded, root| {
            commands::apply::run(args, &loaded.config, file, root, format)
        }),
        // boot, which has started it, has said what is wrong.
        Verb::Apply(args) if args.timeout_msec.is_some() => loaded(common, |loaded, root| {
            commands::apply::run(args, &loaded.config, file, &root, format)
        }),
        Verb::Apply(args) => configured(common, |config, root| {
            commands::apply::run(args, config, file, root, format)
        }),
        Verb::Boot(args) => {
            of_unit(common, |loaded, root| commands::boot::run(args, loaded, file, root, format))
        }
        Verb::Plan(args) => {
            configured(common, |config, root| commands::plan::run(args, config, root, format))
        }
        Verb::Firmware(args) => {
            configured(common, |config, root| commands::firmware::run(args, config, root, format))
        }
        Verb::Iface(args) if args.device.is_some() || args.children || args.settings_only => {
            of_unit(common, |loaded, root| commands::iface::run(args, &loaded.config, root, format))
        }
        Verb::Iface(args) => {
            configured(common, |config, root| commands::iface::run(args, config, root, format))
        }
        Verb::WaitOnline(args) => {
            of_unit(common, |loaded, root| commands::wait_online::run(args, &loaded, root, format))
        }
        Verb::Guests(args) => of_unit(common, |loaded, root| {
            commands::guests::run(args, &loaded.config, root, format)
        }),
    }
}

fn root(common: &Common) -> Result<Root> {
    Ok(match &common.root {
        Some(dir) => Root::copy_at(dir).map_err(|e| anyhow::anyhow!("--root {e}"))?,
        None => Root::live(),
    })
}

/// Runs a verb with the configuration as it is, good or bad.
fn loaded(common: &Common, verb: impl FnOnce(Loaded, Root) -> Result<u8>) -> Result<u8> {
    let root = root(common)?;
    verb(config::load(&root, common.config.as_deref()), root)
}

/// Runs a verb as its unit does: with what is right of a bad configuration.
fn of_unit(common: &Common, verb: impl FnOnce(Loaded, &Root) -> Result<u8>) -> Result<u8> {
    loaded(common, |loaded, root| {
        for error in commands::config::errors(&loaded) {
            tracing::error!("{}", error.sentence());
        }
        verb(loaded, &root)
    })
}

/// Runs a verb that cannot begin with a bad configuration.
fn configured(common: &Common, verb: impl FnOnce(&Config, &Root) -> Result<u8>) -> Result<u8> {
    loaded(common, |loaded, root| match loaded.whole() {
        Ok(loaded) => verb(&loaded.config, &root),
        Err(problems) => commands::config::refuse(&problems, common.format),
    })
}
