//! What `cat` and `grep` show of the files of ports in sysfs
//! (`Documentation/ABI/stable/sysfs-class-infiniband`).

use std::collections::VecDeque;

use super::super::event::Origin;
use super::LIMIT;
use super::port::{PortSeen, STATES, physical, state};
use super::prompt::Line;
use crate::names::TablePKey;

/// A file of a port; device and port are empty where the shell was to find them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    device: String,
    port: String,
    attribute: String,
}

impl File {
    /// `/sys/class/infiniband/mlx5_0/ports/1/state`.
    fn parse(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix("/sys/class/infiniband/")?.split('/');
        let (device, ports) = (parts.next()?, parts.next()?);
        let (port, attribute) = (parts.next()?, parts.next()?);
        // Of those in a folder only the P_Keys are known: `pkeys/0`.
        let is_known = parts.next().is_none_or(|_| attribute == "pkeys" && parts.next().is_none());
        (ports == "ports" && is_known).then_some(())?;
        let known = |part: &str| {
            let fits = part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
            if fits { part.to_owned() } else { String::new() }
        };
        Some(Self { device: known(device), port: known(port), attribute: attribute.to_owned() })
    }

    fn is_one(&self) -> bool {
        !self.device.is_empty() && !self.port.is_empty()
    }

    /// Its port, if it is one of the last that were shown.
    fn port_in<'a>(&self, ports: &'a mut [PortSeen]) -> Option<&'a mut PortSeen> {
        let is_its = |p: &&mut PortSeen| p.device == self.device && p.port == self.port;
        ports.iter_mut().rev().take(FILES).filter(|_| self.is_one()).find(is_its)
    }
}

/// More files than this are not typed.
const FILES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct PortFileReader {
    /// The files whose lines are to come.
    files: VecDeque<File>,
}

impl PortFileReader {
    pub(super) fn gap(&mut self) {
        self.files.clear();
    }

    pub(super) fn typed(&mut self, line: &Line<'_>) {
        let files = line.arguments.iter().take(FILES).map(|path| File::parse(path));
        let files: Option<VecDeque<File>> = files.collect();
        self.files = files.filter(|_| line.program == "cat").unwrap_or_default();
    }

    /// Take a line if it is of such a file; whether it is.
    pub(super) fn line(&mut self, text: &str, origin: Origin, ports: &mut Vec<PortSeen>) -> bool {
        // `grep . /sys/class/infiniband/*/ports/*/state` names the file.
        if let Some((path, value)) = text.split_once(':')
            && let Some(file) = File::parse(path).filter(File::is_one)
        {
            self.files.clear();
            take(&file, value.trim(), text, origin, ports);
            return true;
        }
        let file = match self.files.front() {
            Some(file) if file.is_one() => self.files.pop_front(),
            // It may stand for any number of files.
            Some(file) => Some(file.clone()),
            None => None,
        };
        let Some(file) = file else { return false };
        let taken = take(&file, text, text, origin, ports);
        if !taken {
            self.files.clear();
        }
        taken
    }
}

/// Write down what `file` says; whether it can be what such a file says.
fn take(file: &File, value: &str, text: &str, origin: Origin, ports: &mut Vec<PortSeen>) -> bool {
    // `4: ACTIVE`, `5: LinkUp`.
    let numbered = value
        .split_once(": ")
        .is_some_and(|(n, word)| n.parse::<u8>().is_ok() && !word.contains(' '));
    match file.attribute.as_str() {
        "state" if numbered => {
            let now = state(value);
            if STATES.contains(&now.as_str()) && ports.len() < LIMIT {
                ports.push(PortSeen {
                    device: file.device.clone(),
                    port: file.port.clone(),
                    state: now,
                    origin,
                    text: text.to_owned(),
                    ..PortSeen::default()
                });
            }
        }
        "phys_state" if numbered => {
            if let Some(port) = file.port_in(ports) {
                port.physical = physical(value);
            }
        }
        "link_layer" if value == "InfiniBand" || value == "Ethernet" => {
            if let Some(port) = file.port_in(ports) {
                port.infiniband = Some(value == "InfiniBand");
            }
        }
        "pkeys" if value.parse::<TablePKey>().is_ok() => {
            if let Some(port) = file.port_in(ports).filter(|port| port.pkeys.len() < LIMIT) {
                port.pkeys.extend(value.parse::<TablePKey>());
            }
        }
        "state" | "phys_state" | "link_layer" => return false,
        // Another file of a port, of one line.
        _ => return file.is_one(),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::prompt;
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<PortSeen> {
        let (mut reader, mut ports) = (PortFileReader::default(), Vec::new());
        prompt::feed(text, |line| match line {
            Ok(typed) => reader.typed(&typed),
            Err(line) => {
                reader.line(line, Origin::default(), &mut ports);
            }
        });
        ports
    }

    fn shown(text: &str) -> Vec<String> {
        read(text).iter().map(|p| format!("{} {} {}", p.name(), p.state, p.physical)).collect()
    }

    #[test]
    fn files_of_ports_are_read() {
        let table = read(
            "/sys/class/infiniband/a/ports/1/state:4: ACTIVE\n/sys/class/infiniband/a/ports/1/pkeys/0:0x7fff\n/sys/class/infiniband/a/ports/1/pkeys/1:0x0000\n/sys/class/infiniband/a/ports/1/pkeys/2:0x8012\n/sys/class/infiniband/a/ports/1/pkeys/2/x:0x8013\n",
        );
        let pkeys: Vec<String> = table[0].pkeys.iter().map(ToString::to_string).collect();
        assert_eq!(pkeys, ["0x7fff", "0x8012"]);
        assert_eq!(
            shown(
                "# cat /sys/class/infiniband/mlx5_0/ports/1/state\n2: INIT\n# cat /sys/class/infiniband/mlx5_0/ports/1/phys_state\n5: LinkUp\n"
            ),
            ["mlx5_0/1 init linkup"]
        );
        assert_eq!(
            shown(
                "$ cat /sys/class/infiniband/qib0/ports/1/state /sys/class/infiniband/qib0/ports/2/rate /sys/class/infiniband/qib0/ports/2/state\n4: ACTIVE\n40 Gb/sec (4X QDR)\n1: DOWN\n1: DOWN\n"
            ),
            ["qib0/1 active ", "qib0/2 down "]
        );
        assert_eq!(
            shown(
                "$ cat /sys/class/infiniband/*/ports/1/state\n4: ACTIVE\n1: DOWN\nwords\n2: INIT\n"
            ),
            ["a port 1 active ", "a port 1 down "]
        );
        assert_eq!(
            shown(
                "/sys/class/infiniband/mlx4_0/ports/1/state:1: DOWN\n/sys/class/infiniband/mlx4_0/ports/1/phys_state:2: Polling\n"
            ),
            ["mlx4_0/1 down polling"]
        );
        let port = &read(
            "/sys/class/infiniband/a/ports/1/state:4: ACTIVE\n/sys/class/infiniband/a/ports/1/link_layer:Ethernet\n",
        )[0];
        assert_eq!(port.infiniband, Some(false));
    }

    #[test]
    fn what_no_prompt_explains_is_no_port() {
        for text in [
            "4: ACTIVE\n",
            "# cat /sys/class/net/ib0/operstate\n4: ACTIVE\n",
            "# cat /sys/class/infiniband/a/ports/1/state > x\n4: ACTIVE\n",
            "# cat /sys/class/infiniband/a/ports/1/state; ls\n4: ACTIVE\n",
            "# cat /sys/class/infiniband/a/ports/1/state\ncat: no such file\n4: ACTIVE\n",
        ] {
            assert_eq!(read(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_file_panics(text in r"((# cat |/sys/class/infiniband/|a/|\*/|ports/|1/|state|:|4: ACTIVE|[a-zÄ0-9 :]){0,7}\n){0,8}") {
            read(&text);
        }
    }
}
