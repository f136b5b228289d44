//! `ibprov completions`.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::cli::{Cli, Format};
use crate::host::terminal;
use crate::model::Exit;

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
    let mut out = terminal::stdout();
    out.write_all(&text)?;
    match shell {
        clap_complete::Shell::Bash => out.write_all(bash().as_bytes())?,
        clap_complete::Shell::Fish => writeln!(
            out,
            "complete -c ibprov -n '__fish_ibprov_using_subcommand {}' -a \"({NAMES})\"",
            VERBS.join(" ")
        )?,
        _ => {}
    }
    Ok(Exit::Good.code())
}

/// The verbs that take the name of a port or of an adapter.
const VERBS: [&str; 7] = ["status", "apply", "holders", "wait-online", "iface", "firmware", "gid"];

/// Prints the names of RDMA devices and of their netdevs.
const NAMES: &str = "ls -d /sys/class/infiniband/* /sys/class/infiniband/*/device/net/* 2>/dev/null | sed 's:.*/::'";

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
