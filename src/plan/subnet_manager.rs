//! What an opensm of ours is given, and when it may start.

use std::fmt::Write as _;

use crate::config::SubnetManager;
use crate::names::Guid;

/// The file that opensm reads: what is ours, then what the entry adds. `partitions` is the
/// partitions file, `dir` the directory for what opensm keeps.
pub fn opensm_conf(entry: &SubnetManager, partitions: &str, dir: &str) -> String {
    let guid = entry.port_guid.value();
    let mut text = format!(
        "# Written by ibprov at each start, from {}.\nguid 0x{guid:016x}\nsm_priority {}\npartition_config_file {partitions}\nlog_file stdout\ndump_files_dir {dir}\ndaemon FALSE\nconsole off\n",
        entry.origin, entry.priority
    );
    for (key, value) in &entry.options {
        // Writing to a String cannot fail.
        let _ok = writeln!(text, "{key} {value}");
    }
    text
}

/// What an opensm says of itself in the file that `opensm -c` writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    /// `3.3.23`.
    pub version: Option<String>,
    /// Where it looks for partitions.
    pub partitions: Option<String>,
    keys: Vec<String>,
}

impl Template {
    /// Reads it, with what opensm prints beside it.
    pub fn read(text: &str) -> Self {
        let pairs = || text.lines().filter_map(|line| line.split_once(' '));
        let value = |key: &str| {
            let (_, value) = pairs().find(|(name, _)| *name == key)?;
            Some(value.trim().to_owned())
        };
        Self {
            version: value("OpenSM"),
            partitions: value("partition_config_file").filter(|path| path.starts_with('/')),
            keys: pairs().map(|(key, _)| key.to_owned()).collect(),
        }
    }

    /// The options of `entry` that this opensm would ignore.
    pub fn unknown<'a>(&self, entry: &'a SubnetManager) -> Vec<&'a str> {
        let keys = entry.options.keys().map(String::as_str);
        keys.filter(|key| !self.keys.iter().any(|known| known == key)).collect()
    }
}

/// Who answers as the subnet manager of a port, by `sminfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sminfo {
    Manager {
        guid: Guid,
        lid: u32,
        priority: u8,
        /// Else it is on its way to be, or no longer.
        is_master: bool,
    },
    /// No answer within the time that sminfo gives.
    Nobody,
    /// It could not be asked, and why.
    NotAsked(String),
}

impl Sminfo {
    /// What sminfo has printed.
    pub fn read(stdout: &str, stderr: &str) -> Self {
        Self::manager(stdout).unwrap_or_else(|| {
            // The library warns on standard error; sminfo's last word is on standard output.
            let is_query = stdout.contains("failed: query") || stderr.contains("failed: query");
            if stderr.contains("_do_madrpc failed") && is_query {
                return Self::Nobody;
            }
            let said = stderr.lines().chain(stdout.lines()).find(|line| !line.trim().is_empty());
            Self::NotAsked(format!("sminfo: {}", said.unwrap_or("no answer").trim()))
        })
    }

    /// `sminfo: sm lid 1 sm guid 0x100001, activity count 89 priority 5 state 3 SMINFO_MASTER`
    fn manager(stdout: &str) -> Option<Self> {
        let line = stdout.lines().find_map(|line| line.strip_prefix("sminfo: "))?;
        let after = |word: &str| {
            let rest = line.split_once(word)?.1;
            rest.split([' ', ',']).next()
        };
        let guid = u64::from_str_radix(after("sm guid 0x")?, 16).ok()?;
        Some(Self::Manager {
            guid: Guid::new(guid),
            lid: after("sm lid ")?.parse().ok()?,
            priority: after("priority ")?.parse().ok()?,
            is_master: after("state ")? == "3",
        })
    }
}

/// Whether opensm may start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    Now,
    /// Whoever answered is no master: soon there is one.
    AskAgain,
    /// It waits, and why.
    Wait(String),
}

/// Whether the opensm of `entry` may start, by what its port `heard`. `own` are the port GUIDs
/// of this host.
pub fn turn(entry: &SubnetManager, own: &[Guid], heard: &Sminfo) -> Turn {
    match heard {
        Sminfo::Nobody => Turn::Now,
        Sminfo::Manager { is_master: false, .. } => Turn::AskAgain,
        Sminfo::Manager { guid, .. } if own.contains(guid) || entry.peers.contains(guid) => {
            Turn::Now
        }
        Sminfo::Manager { guid, lid, priority, .. } => Turn::Wait(format!(
            "0x{:016x} (priority {priority}, LID {lid}) is the subnet manager of this fabric and not one of peers",
            guid.value()
        )),
        Sminfo::NotAsked(why) => {
            Turn::Wait(format!("it is not known whether this fabric has a subnet manager: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> SubnetManager {
        SubnetManager {
            is_withheld: false,
            port_guid: Guid::new(0x9803_9b03_00a1_b0c1),
            priority: 14,
            partitions: None,
            peers: vec![Guid::new(0x10_0003)],
            options: [("routing_engine".to_owned(), "updn".to_owned())].into(),
            origin: "/etc/ibprov/ibprov.toml:3".to_owned(),
        }
    }

    #[test]
    fn a_master_that_is_neither_ours_nor_a_peer_is_waited_for() {
        let line = |guid: &str, state: &str| {
            format!("sminfo: sm lid 4 sm guid {guid}, activity count 89 priority 5 state {state}\n")
        };
        let own = [Guid::new(0x10_0001)];
        let turn = |stdout: &str, stderr: &str| turn(&entry(), &own, &Sminfo::read(stdout, stderr));
        assert_eq!(turn(&line("0x100001", "3 SMINFO_MASTER"), ""), Turn::Now);
        assert_eq!(turn(&line("0x100003", "3 SMINFO_MASTER"), ""), Turn::Now);
        assert_eq!(turn(&line("0x100005", "2 SMINFO_STANDBY"), ""), Turn::AskAgain);
        let foreign = "0x0000000000100005 (priority 5, LID 4) is the subnet manager of this fabric and not one of peers";
        let waits = turn(&line("0x100005", "3 SMINFO_MASTER"), "");
        assert_eq!(waits, Turn::Wait(foreign.to_owned()));
        let silent = "ibwarn: [9] _do_madrpc: recv failed: Connection timed out\nibwarn: [9] mad_rpc: _do_madrpc failed; dport (Lid 1)\n";
        assert_eq!(turn("sminfo: iberror: failed: query\n", silent), Turn::Now);
        let broken = "ibwarn: [9] mad_rpc_open_port: can't open UMAD port (mlx5_0:1)\nsminfo: iberror: failed: Failed to open 'mlx5_0' port '1'\n";
        assert!(
            matches!(turn("", broken), Turn::Wait(why) if why.ends_with("sminfo: ibwarn: [9] mad_rpc_open_port: can't open UMAD port (mlx5_0:1)"))
        );
        assert!(matches!(turn("", ""), Turn::Wait(_)));
    }

    #[test]
    fn an_option_that_this_opensm_does_not_have_is_known() {
        let text = "OpenSM 3.3.23\nCommand Line Arguments:\n# routing\nrouting_engine (null)\n\npartition_config_file /etc/rdma/partitions.conf\n";
        let template = Template::read(text);
        assert_eq!(template.version.as_deref(), Some("3.3.23"));
        assert_eq!(template.partitions.as_deref(), Some("/etc/rdma/partitions.conf"));
        assert_eq!(template.unknown(&entry()), [""; 0]);
        let mut entry = entry();
        entry.options.insert("virt_enabled".to_owned(), "2".to_owned());
        assert_eq!(template.unknown(&entry), ["virt_enabled"]);
    }
}
