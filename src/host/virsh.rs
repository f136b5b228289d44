//! virsh, found when it is needed: ibprov links no libvirt.
//!
//! A domain is always one argument behind `--`, so that no name is taken for
//! an option, and no shell sees it.

use std::io;
use std::path::PathBuf;

use super::process::{self, Running};

/// virsh of this host, with its connection.
#[derive(Debug, Clone)]
pub struct Virsh {
    program: PathBuf,
    connection: String,
}

impl Virsh {
    /// virsh for `connection`; `None` if it is not installed.
    pub fn find(connection: &str) -> Option<Self> {
        let program = process::find("virsh")?;
        Some(Self { program, connection: connection.to_owned() })
    }

    /// Start `virsh COMMAND... -- OPERANDS...`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, command: &[&str], operands: &[&str]) -> io::Result<Running> {
        process::start_collecting(&self.program, &self.arguments(command, operands))
    }

    fn arguments(&self, command: &[&str], operands: &[&str]) -> Vec<String> {
        let head = ["--connect", &self.connection, "--quiet"];
        let dashes: &[&str] = if operands.is_empty() { &[] } else { &["--"] };
        let all = head.iter().chain(command).chain(dashes).chain(operands);
        all.map(|word| (*word).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_argument_behind_two_dashes() {
        let virsh = Virsh { program: "virsh".into(), connection: "qemu:///system".to_owned() };
        for name in ["--help", "vm; reboot", "$(id)", "-c", "--"] {
            let arguments = virsh.arguments(&["start"], &[name]);
            assert_eq!(arguments, ["--connect", "qemu:///system", "--quiet", "start", "--", name]);
        }
        let arguments = virsh.arguments(&["list", "--name"], &[]);
        assert_eq!(arguments.last().map(String::as_str), Some("--name"));
    }
}
