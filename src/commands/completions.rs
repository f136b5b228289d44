//! `ibprov completions`.

use std::io::Write as _;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory as _, ValueHint};
use clap_complete::Shell;

use crate::cli::{Cli, Format};
use crate::host::terminal;
use crate::model::Exit;
use crate::model::common::Code;

/// Print what `shell` completes `ibprov` by.
///
/// # Errors
/// JSON is asked for; standard output is gone.
pub fn run(shell: Shell, format: Format) -> anyhow::Result<u8> {
    if format == Format::Json {
        anyhow::bail!("completions prints a script for a shell: leave --format json out");
    }
    let mut command = Cli::command();
    command.build();
    let codes = PossibleValuesParser::new(Code::ALL.iter().map(|code| code.name()));
    let mut command = command
        .mut_subcommand("check", |check| check.mut_arg("explain", |arg| arg.value_parser(codes)));
    for verb in VERBS {
        let named = |arg: Arg| match arg.is_positional() || arg.get_id() == "port" {
            true => arg.value_hint(ValueHint::Hostname),
            false => arg,
        };
        command = command.mut_subcommand(verb, |verb| verb.mut_args(named));
    }
    // The generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "ibprov", &mut script);
    let script = without_hidden(&command, String::from_utf8(script)?);
    let mut out = terminal::stdout();
    match shell {
        Shell::Bash => out.write_all((script + &bash()).as_bytes())?,
        Shell::Zsh => out.write_all(zsh(&script).as_bytes())?,
        Shell::Fish => writeln!(
            out,
            r#"{script}complete -c ibprov -n '__fish_ibprov_using_subcommand {}' -a "(sh -c \"{NAMES}\")""#,
            VERBS.join(" ")
        )?,
        _ => out.write_all(script.as_bytes())?,
    }
    Ok(Exit::Good.code())
}

/// The verbs that take the name of a port or of an adapter.
const VERBS: [&str; 7] = ["status", "apply", "holders", "wait-online", "iface", "firmware", "gid"];

/// Prints the names of RDMA devices and of their netdevs.
const NAMES: &str = "ls -d /sys/class/infiniband/* /sys/class/infiniband/*/device/net/* 2>/dev/null | sed 's:.*/::'";

/// `script` without what it offers of the options that only units give, which the generators do
/// not leave out: words for bash, a line for each other shell.
fn without_hidden(command: &Command, script: String) -> String {
    let options = command.get_subcommands().flat_map(Command::get_arguments);
    let hidden = options.filter(|arg| arg.is_hide_set()).filter_map(Arg::get_long);
    hidden.fold(script, |script, name| {
        let signs = [format!("--{name}["), format!("--{name}="), format!(" -l {name} ")];
        let is_shown = |line: &&str| !signs.iter().any(|sign| line.contains(sign));
        let lines = script.lines().filter(is_shown).map(|line| format!("{line}\n"));
        lines.collect::<String>().replace(&format!(" --{name} "), " ")
    })
}

/// `script` with those names.
fn zsh(script: &str) -> String {
    // Where there is no file, zsh itself would fail.
    let names =
        format!("#compdef ibprov\n\n_ibprov_names() {{\n    compadd -- $(sh -c \"{NAMES}\")\n}}\n");
    script.replacen("#compdef ibprov\n", &names, 1).replace(":_hosts'", ":_ibprov_names'")
}

/// Adds those names to what the script of the generator completes.
fn bash() -> String {
    format!(
        r#"
_ibprov_names() {{
    _ibprov "$@"
    local word
    for word in "${{COMP_WORDS[@]}}"; do
        case "$word" in
            {})
                COMPREPLY+=( $(compgen -W "$({NAMES})" -- "$2") )
                return
                ;;
        esac
    done
}}
complete -F _ibprov_names -o bashdefault -o default ibprov
"#,
        VERBS.join("|")
    )
}
