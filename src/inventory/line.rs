//! What a line of a script does to InfiniBand.

use std::sync::OnceLock;

use serde::Deserialize;

use super::Does;
use crate::model::data::data;
use crate::names::{NetnsMode, Words as _, is_ipoib_name, is_rdma_module};

/// All of `known.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    pub(super) places: Places,
    pub(super) words: Words,
    program: Vec<Program>,
    acting: Vec<Acting>,
    shipped: Vec<Shipped>,
}

/// Where it is looked; a path may be a folder or a file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Places {
    pub(super) rc_local: Vec<String>,
    pub(super) crontabs: Vec<String>,
    pub(super) interfaces: Vec<String>,
    pub(super) hooks: Vec<String>,
    /// A folder, how the names of its files end, what a line has, and what that does.
    pub(super) settings: Vec<(String, String, String, Does)>,
    pub(super) written: Vec<String>,
    pub(super) programs: Vec<String>,
    /// Units that start what is looked at by itself.
    pub(super) starters: Vec<String>,
}

/// Programs and key words of shells.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    /// They start another command.
    starters: Vec<String>,
    shells: Vec<String>,
    /// They write their words out.
    tellers: Vec<String>,
    /// They look at files only.
    readers: Vec<String>,
    /// They run the file that stands behind them.
    launchers: Vec<String>,
    /// Verbs of a service manager that start a unit.
    starting: Vec<String>,
    /// All of its verbs that change something.
    acting: Vec<String>,
    /// Modules for InfiniBand whose names do not say so.
    modules: Vec<String>,
    /// In the settings of a unit that creates VFs.
    vf_settings: Vec<String>,
    /// In a compiled program, with what it then does.
    strings: Vec<(String, Does)>,
}

impl Words {
    pub(super) fn launches(&self, word: &str) -> bool {
        self.launchers.iter().any(|launcher| is_like(launcher, word))
    }

    pub(super) fn is_shell(&self, word: &str) -> bool {
        has(&self.shells, word)
    }
}

fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|one| one == word)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    names: Vec<String>,
    does: Does,
    #[serde(default)]
    with: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Acting {
    names: Vec<String>,
    does: Does,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shipped {
    package: String,
    files: Vec<String>,
    does: Vec<Does>,
}

impl Known {
    pub(super) fn all() -> &'static Self {
        static KNOWN: OnceLock<Known> = OnceLock::new();
        KNOWN.get_or_init(|| data(include_bytes!(concat!(env!("OUT_DIR"), "/known.toml.gz"))))
    }

    /// What a unit of this name does, whatever it runs.
    pub(super) fn acting(&self, unit: &str) -> Option<Does> {
        let its = |row: &&Acting| row.names.iter().any(|name| is_like(name, unit));
        self.acting.iter().find(its).map(|row| row.does)
    }

    /// True if a package brings this file, and what it does is known.
    pub(super) fn is_shipped(&self, path: &str, does: Does) -> bool {
        let is_in = |dirs: &[&str]| dirs.iter().any(|dir| path.starts_with(dir));
        if is_in(&["/usr/local/", "/etc/rc", "/etc/cron", "/var/"]) {
            return false;
        }
        let is_packaged = is_in(&["/usr/lib/", "/lib/", "/run/systemd/", "/etc/init.d/"]);
        let name = path.rsplit('/').next().unwrap_or_default();
        self.shipped.iter().any(|row| {
            // In a site's folder only a whole name tells that.
            let whole = |file: &String| row.package != "distribution" && file == name;
            let is_its = |file: &String| whole(file) || is_packaged && is_like(file, name);
            row.does.contains(&does) && row.files.iter().any(is_its)
        })
    }

    pub(super) fn program(&self, name: &str, words: &[&str]) -> Option<Does> {
        if name.contains("exporter") {
            return Some(Does::Asks);
        }
        let row = self.program.iter().find(|row| row.names.iter().any(|n| n == name))?;
        let is_meant = row.with.is_empty() || words.iter().any(|w| row.with.iter().any(|x| x == w));
        Some(if is_meant { row.does } else { Does::Asks })
    }
}

/// `pattern` may end in `*`.
pub(super) fn is_like(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |begin| name.starts_with(begin))
}

/// A simple command of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command<'a> {
    /// The program with its arguments, without what only starts it.
    pub(super) words: Vec<&'a str>,
    /// Values of assignments before it.
    assigned: Vec<&'a str>,
    /// The files that it writes to.
    written: Vec<&'a str>,
}

/// The simple commands of a line of a shell script; none of a comment.
pub(super) fn commands(line: &str) -> Vec<Command<'_>> {
    let line = line.trim_start();
    if line.starts_with('#') {
        return Vec::new();
    }
    let line = line.split_once(" #").map_or(line, |(line, _)| line);
    let parts = line.split([';', '&', '|', '(', ')', '`']);
    parts.map(command).filter(|c| *c != Command::default()).collect()
}

fn command(part: &str) -> Command<'_> {
    let known = &Known::all().words;
    let mut command = Command::default();
    let mut to_file = false;
    for word in part.split(|c: char| c.is_whitespace() || "\"'".contains(c)) {
        for (n, piece) in word.split('>').enumerate() {
            to_file |= n > 0;
            if piece.is_empty() {
                continue;
            }
            if to_file {
                command.written.push(piece);
                to_file = false;
                continue;
            }
            let is_first = command.words.is_empty();
            let bare = piece.trim_start_matches(['@', '-', ':', '+', '!']);
            let piece = if is_first && bare.starts_with('/') { bare } else { piece };
            let starter = base(piece);
            let is_option = piece.starts_with('-') || piece.bytes().all(|b| b.is_ascii_digit());
            if is_first && (has(&known.starters, starter) || known.is_shell(starter) || is_option) {
                continue;
            }
            match piece.split_once('=').filter(|_| is_first) {
                Some((name, value))
                    if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') =>
                {
                    command.assigned.push(value);
                }
                _ => command.words.push(piece),
            }
        }
    }
    if let Some(("tee", files)) =
        command.words.split_first().map(|(first, rest)| (base(first), rest))
    {
        let files = files.iter().filter(|file| !file.starts_with('-'));
        command.written.extend(files);
    }
    command
}

/// The name of a program.
pub(super) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

impl Command<'_> {
    pub(super) fn program(&self) -> &str {
        self.words.first().map_or("", |word| base(word))
    }

    /// It runs nothing that its words name.
    pub(super) fn only_tells(&self) -> bool {
        let known = &Known::all().words;
        let program = self.program();
        has(&known.tellers, program)
            || has(&known.readers, program)
            || Known::all().program(program, &[]).is_some()
    }

    /// `cd`: later commands run in `folder`.
    pub(super) fn changes_folder(&self, folder: &mut Option<String>) -> bool {
        let is_cd = self.program() == "cd";
        if is_cd {
            *folder = self.words.get(1).map(|&dir| dir.to_owned());
        }
        is_cd
    }

    /// The units that it starts.
    pub(super) fn started_units(&self) -> Option<impl Iterator<Item = &str>> {
        let starting = &Known::all().words.starting;
        let is_manager = matches!(self.program(), "systemctl" | "service");
        let starts = is_manager && self.has(starting);
        let words = self.words.iter().skip(1).copied();
        let units = words.filter(|word| !word.starts_with('-') && !has(starting, word));
        starts.then_some(units)
    }

    fn has(&self, any: &[impl AsRef<str>]) -> bool {
        self.words.iter().any(|word| any.iter().any(|one| one.as_ref() == *word))
    }

    /// What it does, and whether that is sure; `ours` is text that tells whose a file of any
    /// PCI driver is.
    pub(super) fn does(&self, ours: &str) -> Option<(Does, bool)> {
        let known = &Known::all().words;
        let sure = |does| Some((does, true));
        let written = self.written.iter().find_map(|path| of_written(path, &self.words, ours));
        if written.is_some() {
            return written.map(|does| (does, true));
        }
        let (program, words) = (self.program(), self.words.get(1..).unwrap_or_default());
        let touched = || {
            let all = words.iter().chain(&self.assigned).chain(self.words.first());
            all.filter_map(|word| of_path(word)).min()
        };
        if has(&known.tellers, program) {
            return None;
        }
        let mut kept =
            self.assigned.iter().filter_map(|value| Known::all().program(base(value), &[]));
        if let Some(does) = kept.find(|does| *does != Does::Asks) {
            return Some((does, false));
        }
        if has(&known.readers, program) || program.is_empty() || program == "tee" {
            let does = touched()?;
            // A path that is kept for later may be written to there.
            let is_kept = self.words.is_empty() && does != Does::NotUnderstood;
            return Some(if is_kept { (does, false) } else { (Does::Asks, true) });
        }
        if let Some(does) = self.service() {
            return sure(does);
        }
        let has_interface = words.iter().any(|word| is_ipoib_word(word));
        let shows = self.has(&["show", "list", "-s", "-d", "-br", "status"]) || words.is_empty();
        let does = match program {
            "ip" if self.has(&["vf"]) && !shows => Does::SetsVfs,
            "ip" | "ifconfig" | "ifup" | "ifdown" | "nmcli" | "ethtool" | "wicked"
                if has_interface =>
            {
                let asks = shows || program == "ifconfig" && words.len() < 2;
                if asks { Does::Asks } else { Does::SetsInterfaces }
            }
            "rdma" if self.has(&["name"]) && self.has(&["set"]) => Does::RenamesDevices,
            "rdma" if self.has(&["set", "add", "delete", "del"]) => Does::SetsPorts,
            "rdma" => Does::Asks,
            "devlink" if self.has(&["flash"]) => Does::SetsFirmware,
            "devlink" if self.has(&["set", "reload", "add"]) && ours.contains("mlx") => {
                Does::NotUnderstood
            }
            "modprobe" | "insmod" | "rmmod" => {
                let modules =
                    words.iter().map(|word| base(word).split('.').next().unwrap_or_default());
                let mut modules = modules.filter(|module| is_module(module));
                modules.next()?;
                let has_vfs = words.iter().any(|word| word.starts_with("num_vfs="));
                if has_vfs { Does::SetsVfs } else { Does::LoadsModules }
            }
            "ethtool" if is_ours(ours) && self.has(&["-A", "-C", "-G", "-K", "-L"]) => Does::Tunes,
            "virsh" if self.has(&["start"]) => Does::StartsGuests,
            "driverctl" if self.has(&["set-override"]) && is_ours(ours) => Does::BindsDrivers,
            _ if program.starts_with("rdma_rename") => Does::RenamesDevices,
            _ => match Known::all().program(program, words) {
                Some(does) => does,
                None => return touched().map(|does| (does, false)),
            },
        };
        sure(does)
    }

    /// What a call of a service manager or of a start script does.
    fn service(&self) -> Option<Does> {
        let of = |name: &str| match name.trim_end_matches(".service") {
            "openibd" | "mlnxofedctl" => Some(Does::CallsOpenibd),
            name if name.starts_with("opensm") => Some(Does::RunsOpensm),
            _ => None,
        };
        let (program, is_done) = (self.program(), self.has(&Known::all().words.acting));
        let does = match program {
            "systemctl" | "service" | "invoke-rc.d" | "rcctl" | "chkconfig" => {
                self.words.get(1..)?.iter().find_map(|word| of(word))?
            }
            "openibd" | "opensmd" | "mlnxofedctl" => of(program)?,
            _ => return None,
        };
        let stops = does == Does::RunsOpensm && self.has(&["stop", "disable"]);
        Some(if is_done && !stops { does } else { Does::Asks })
    }
}

/// The most telling of what a line does.
pub fn does(line: &str) -> Option<Does> {
    commands(line).iter().filter_map(|command| command.does(line)).map(|(does, _)| does).min()
}

/// The RDMA network namespace mode that a line sets (rdma-system(8)).
pub(super) fn netns_mode(line: &str) -> Option<NetnsMode> {
    commands(line).iter().find_map(|command| match command.words.as_slice() {
        [rdma, system, "set", "netns", mode]
            if base(rdma) == "rdma" && system.starts_with("sys") =>
        {
            NetnsMode::from_typed(mode)
        }
        _ => None,
    })
}

/// True of the name of an InfiniBand netdev, or of what stands for any.
fn is_ipoib_word(word: &str) -> bool {
    let word = word.split('@').next().unwrap_or_default();
    is_ipoib_name(word) || ["ib$", "ib*", "ib{"].iter().any(|begin| word.starts_with(begin))
}

/// True of a module for InfiniBand.
pub fn is_module(name: &str) -> bool {
    is_rdma_module(name) || has(&Known::all().words.modules, name)
}

/// The text is about an adapter for InfiniBand.
fn is_ours(text: &str) -> bool {
    ["mlx4", "mlx5", "infiniband", "hfi1", "qib", "15b3"].iter().any(|word| text.contains(word))
}

/// What it means to write to `path`, where `words` are what writes.
pub(super) fn of_written(path: &str, words: &[&str], ours: &str) -> Option<Does> {
    let is_mode = words.iter().any(|word| matches!(*word, "connected" | "datagram"));
    let ends = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    // A driver that the path names is another's, or takes anybody's.
    let driver = path.split("/drivers/").nth(1).and_then(|rest| rest.split('/').next());
    let takes_ours =
        |driver: &str| is_ours(driver) || driver.starts_with('$') || driver.starts_with("vfio");
    if ends(&["/bind", "/unbind", "/driver_override", "/new_id", "/remove_id", "/drivers_probe"])
        && is_ours(ours)
        && driver.is_none_or(takes_ours)
    {
        return Some(Does::BindsDrivers);
    }
    // No other netdev has these files.
    if ends(&["/create_child", "/delete_child"])
        || is_mode && (ends(&["/mode"]) || path == "mode")
        || ends(&["/mode"]) && path.contains("class/net/")
    {
        return Some(Does::SetsInterfaces);
    }
    if ends(&["/node_desc"])
        || path.contains("/tc/")
        || path.contains("/sys/module/mlx")
        || path.contains("/sys/module/ib_")
    {
        return Some(Does::Tunes);
    }
    of_path(path)
}

/// What a path, or a word of a program, belongs to.
pub(super) fn of_path(path: &str) -> Option<Does> {
    let has = |any: &[&str]| any.iter().any(|part| path.contains(part));
    if has(&["sriov_numvfs", "mlx5_num_vfs", "/sriov/", "admin_guids", "/iov/"]) {
        return Some(Does::SetsVfs);
    }
    if has(&["mlx4_port"]) {
        return Some(Does::SetsPortTypes);
    }
    let of_interface = path.split("class/net/").nth(1).map(|rest| rest.split('/').next());
    if of_interface.flatten().is_some_and(is_ipoib_word) {
        return Some(Does::SetsInterfaces);
    }
    let any = ["class/infiniband", "/dev/infiniband", "/sys/bus/pci/drivers/mlx"];
    has(&any).then_some(Does::NotUnderstood)
}

/// What a line of a script in another language than a shell's does, guessed by its words.
pub(super) fn of_other_language(line: &str) -> Option<Does> {
    if line.trim_start().starts_with(['#', '/']) {
        return None;
    }
    let words: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || "\"'()[],".contains(c))
        .filter(|w| !w.is_empty())
        .collect();
    let paths = words.iter().filter_map(|word| of_path(word));
    let programs = words.iter().enumerate().filter_map(|(at, word)| {
        let rest = words.get(at + 1..).unwrap_or_default();
        let is_name = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
        Known::all().program(base(word), rest).filter(|_| is_name)
    });
    paths.chain(programs).filter(|does| *does != Does::NotUnderstood).min()
}

/// What the settings of a unit say that its program does, whatever that is.
pub(super) fn of_settings(text: &str) -> Option<Does> {
    let text = text.to_ascii_lowercase();
    Known::all().words.vf_settings.iter().any(|word| text.contains(word)).then_some(Does::SetsVfs)
}

/// What a compiled program does, guessed by its strings.
pub(super) fn of_program(bytes: &[u8]) -> Option<Does> {
    let has = |text: &str| memchr::memmem::find(bytes, text.as_bytes()).is_some();
    Known::all().words.strings.iter().find(|(text, _)| has(text)).map(|(_, does)| *does)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acts(line: &str) -> Option<(Does, bool)> {
        let all = commands(line).into_iter().filter_map(|c| c.does("mlx5"));
        all.filter(|(does, _)| *does != Does::Asks).min()
    }

    #[test]
    fn lines_that_touch_infiniband_are_told_from_others() {
        use Does::*;
        for (line, what) in [
            ("/etc/init.d/openibd restart", CallsOpenibd),
            ("sleep 60; systemctl start openibd.service", CallsOpenibd),
            ("modprobe -a ib_umad ib_ipoib", LoadsModules),
            ("/sbin/modprobe mlx5_ib && sleep 1", LoadsModules),
            ("insmod /lib/modules/x/ib_ipoib.ko", LoadsModules),
            ("echo 4 > /sys/class/infiniband/mlx5_0/device/sriov_numvfs", SetsVfs),
            ("echo 0 | sudo tee /sys/class/net/$pf/device/sriov_numvfs >/dev/null", SetsVfs),
            ("cd /sys/bus/pci/devices/$1; echo 4 | tee sriov_numvfs", SetsVfs),
            ("echo Follow >/sys/class/infiniband/mlx5_0/device/sriov/0/policy", SetsVfs),
            ("ip link set ib0 vf 0 node_guid 02:00:00:00:00:00:00:01", SetsVfs),
            ("ip link set dev ib0 vf 3 state auto", SetsVfs),
            ("/usr/sbin/rdma_rename_55.0 mlx5_0 NAME_FIXED mlx5_ib0", RenamesDevices),
            ("/usr/bin/rdma dev set %k name rail0", RenamesDevices),
            ("ifup ib0", SetsInterfaces),
            ("/usr/bin/virsh -c qemu:///system start vm09", StartsGuests),
            ("ip link set ib0.8001 up", SetsInterfaces),
            ("for i in ib0 ib1; do echo connected > /sys/class/net/$i/mode; done", SetsInterfaces),
            ("echo 0x8001 >/sys/class/net/ib0/create_child", SetsInterfaces),
            ("/bin/sh -c \"echo 4092 >/sys/class/net/ib0/mtu\"", SetsInterfaces),
            ("mstconfig -y -d 4b:00.0 set SRIOV_EN=1", SetsFirmware),
            ("mlxfwreset -d 4b:00.0 -y reset", SetsFirmware),
            ("[ -x /usr/sbin/opensm ] && /usr/sbin/opensm -B -g 0x1", RunsOpensm),
            ("nohup nice -n 10 opensm &", RunsOpensm),
            ("systemctl enable --now opensmd", RunsOpensm),
            ("rdma system set netns exclusive", SetsPorts),
            ("ibportstate -C mlx5_0 -P 1 -D 0 1 speed 32", SetsPorts),
            ("echo ib > /sys/bus/pci/devices/0000:03:00.0/mlx4_port1", SetsPortTypes),
            ("echo 0000:4b:00.1 >/sys/bus/pci/drivers/mlx5_core/unbind", BindsDrivers),
            ("echo 0000:4b:00.1 >/sys/bus/pci/drivers/vfio-pci/bind", BindsDrivers),
            ("echo ${m[$i]} >/sys/class/net/$i/mode", SetsInterfaces),
            ("ethtool -G $i rx 8192", Tunes),
            ("echo 1 >/sys/class/infiniband/mlx5_0/ports/1/x", NotUnderstood),
            ("mlnx_tune -p HIGH_THROUGHPUT", Tunes),
        ] {
            assert_eq!(acts(line), Some((what, true)), "{line}");
        }
        assert_eq!(acts("F=/sys/class/net/ib0/device/sriov_numvfs"), Some((SetsVfs, false)));
        assert_eq!(acts("/opt/x /sys/class/infiniband"), Some((NotUnderstood, false)));
        for line in [
            "# modprobe ib_ipoib",
            "modprobe nvidia",
            "echo 0000:15:00.0 >/sys/bus/pci/drivers/nvidia/unbind",
            "pushd /sys/bus/pci/drivers/mlx4_core",
            "ethtool -i $i",
            "virsh list --all",
            "ip link set eth0 up",
            "ip addr show ib0 | grep inet",
            "touch /var/lock/subsys/local",
            "echo ib_ipoib",
            "echo \"starting opensm\"; exit 0",
            "if [ $(cat /sys/class/infiniband/mlx5_0/device/sriov_numvfs) -eq 0 ]; then",
            "for d in /sys/class/infiniband/*; do",
            "DEV=$(ls /sys/class/infiniband | head -1)",
            "mstconfig -d 4b:00.0 query",
            "pgrep opensm || true",
            "systemctl is-active openibd",
            "systemctl stop opensmd",
            "ibportstate -D 0 1 query",
            "echo 0000:4b:00.1 > $x",
            "/opt/x/infiniband-exporter --p=/usr/sbin/ibnetdiscover",
            "exit 0",
        ] {
            assert_eq!(acts(line), None, "{line}");
        }
    }

    #[test]
    fn a_sites_file_is_no_packages_because_its_name_begins_so() {
        let is_shipped = |path, does| Known::all().is_shipped(path, does);
        assert!(is_shipped("/usr/lib/systemd/system/openibd.service", Does::CallsOpenibd));
        assert!(is_shipped("/etc/udev/rules.d/90-ib.rules", Does::CallsOpenibd));
        assert!(!is_shipped("/etc/systemd/system/openibd-vfs.service", Does::SetsVfs));
        assert!(!is_shipped("/etc/udev/rules.d/99-dgx-site.rules", Does::Tunes));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(echo |>|\"|/sys/class/net/ib0/mode|[ -~]|é|\n)*") {
            acts(&text);
            of_other_language(&text);
        }
    }
}
