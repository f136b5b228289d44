//! `ibprov collect`: one archive with all that `check --log` reads, to be mailed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::check_host;
use super::print;
use crate::check::evidence::journal::{Entry, Export};
use crate::check::evidence::record::{self, Record};
use crate::check::evidence::{Boot, Host, Intake};
use crate::check::mask::Mask;
use crate::check::rules;
use crate::check::secrets::without_secrets;
use crate::cli::{CollectArgs, Common};
use crate::host::archive::{Archive, Written};
use crate::host::{Root, answer, clock, config_files, logs};
use crate::model::{Kind, Report, Verdict, collect::Collected, not_read};
use crate::names::{Moment, PINS_PATH};
use crate::show;

/// The folder that all files of an archive are in.
const TOP: &str = "ibprov-collect";

/// How long it may take, unless it is told otherwise.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Bytes of a log that are kept whole; behind them only what `check` has a word for.
const WHOLE: usize = 16 << 20;

/// Bytes that are kept of a log at all.
const MOST: usize = 48 << 20;

/// A longer line is cut, bytes.
const LINE: u64 = 1 << 20;

/// No other file is longer, bytes.
const FILE: u64 = 1 << 20;

/// Small files that tell a reader of the archive what the host is; `check` has what it needs
/// of them in the record of the host.
const FILES: [&str; 6] = [
    "/etc/os-release",
    "/proc/cmdline",
    "/proc/modules",
    "/proc/version",
    "/etc/infiniband/openib.conf",
    PINS_PATH,
];

/// And those of these directories.
const DIRECTORIES: [&str; 4] =
    ["/etc/modprobe.d", "/etc/modules-load.d", "/etc/rdma/modules", "/etc/udev/rules.d"];

/// Write the archive that `args` name.
///
/// # Errors
/// It cannot be written; standard output is gone.
pub fn run(args: &CollectArgs, common: &Common) -> anyhow::Result<u8> {
    let root = match &common.root {
        Some(dir) => Root::copy_at(dir)?,
        None => Root::live(),
    };
    let until = clock::now() + args.timeout.unwrap_or(TIMEOUT);
    let cannot = || format!("cannot write the archive {}", args.file.display());
    let archive = Archive::create(&args.file, TOP).with_context(cannot)?;
    let (boot, mut problems) = look(&root, common.config.as_deref());
    let host = boot.host.as_deref();
    problems.extend(host.iter().flat_map(|host| host.problems.iter().cloned()));
    let mask = args.anonymize.then(|| {
        let (hosts, domains) = host_names(&root, host);
        let names = hosts.iter().map(String::as_str);
        let (mask, kept) = Mask::new(names, domains, rules::needles());
        problems.extend(kept.iter().map(|name| {
            format!("the host name {name:?} is not replaced, because it is a word of messages that check looks for")
        }));
        mask
    });
    let mut collecting = Collecting { root: &root, archive, mask, until, problems, boots: 0 };
    collecting.host(boot).with_context(cannot)?;
    collecting.files(common.config.as_deref()).with_context(cannot)?;
    collecting.logs(args.boots).with_context(cannot)?;
    let Collecting { archive, mask, problems, boots, .. } = collecting;
    let Written { files, bytes } = archive.finish().with_context(cannot)?;
    let file = args.file.display().to_string();
    let collected = Collected { file, files, bytes, boots, anonymized: mask.is_some() };
    for problem in &problems {
        tracing::warn!(warning = problem, "{problem}");
    }
    let verdict = match problems.is_empty() {
        true => Verdict::Done,
        false => Verdict::Exceptions,
    };
    let report = Report::new(Kind::Collect, verdict, not_read(&problems), collected);
    print(&report, common.format, |_| show::collected(&report.body))
}

/// The host as `check` sees it, and what could not be read.
fn look(root: &Root, config: Option<&Path>) -> (Boot, Vec<String>) {
    let mut intake = Intake::new(rules::needles());
    let mut read = |name: &str, stream: &mut dyn Read| intake.read(name, stream);
    let problems = match root.is_live() {
        true => logs::journal(0, &mut read).err().into_iter().collect(),
        false => logs::of_system(root, &mut read),
    };
    let mut boot = intake.finish().boots.pop().unwrap_or_default();
    // What dumps among the logs show is read from the logs again.
    boot.state = crate::check::evidence::State::default();
    check_host::gather(&mut boot, root, config);
    (boot, problems)
}

/// The names by which this host and its servers are known, this host's first, and the
/// domains that they are in.
fn host_names(root: &Root, host: Option<&Host>) -> (Vec<String>, Vec<String>) {
    let text = |path: &str| root.text(path, FILE).unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for path in ["/proc/sys/kernel/hostname", "/etc/hostname"] {
        names.extend(text(path).split_whitespace().map(str::to_owned));
    }
    let without_comment = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    for line in text("/etc/hosts").lines().map(without_comment) {
        names.extend(line.split_whitespace().skip(1).map(str::to_owned));
    }
    // `server:/export`, `a,b:/export`, `mgs@o2ib:/fs`.
    for unit in host.iter().flat_map(|host| host.graph.units()) {
        if let Some((servers, _)) = unit.what.split_once(":/") {
            let servers = servers.split([',', ':']);
            names.extend(servers.filter_map(|s| s.split('@').next()).map(str::to_owned));
        }
    }
    let resolv = text("/etc/resolv.conf");
    let listed = resolv
        .lines()
        .filter_map(|line| line.strip_prefix("search ").or_else(|| line.strip_prefix("domain ")));
    let listed = listed.flat_map(str::split_whitespace).map(str::to_owned);
    let of_names = names.iter().filter_map(|name| Some(name.split_once('.')?.1.to_owned()));
    let domains: BTreeSet<String> = listed.chain(of_names).collect();
    (names, domains.into_iter().collect())
}

/// What is collected, and into what.
struct Collecting<'a> {
    root: &'a Root,
    archive: Archive,
    mask: Option<Mask>,
    /// When it has to be done, CLOCK_MONOTONIC.
    until: Moment,
    problems: Vec<String>,
    boots: usize,
}

impl Collecting<'_> {
    fn masked(&self, text: &str) -> String {
        let text = without_secrets(text);
        match &self.mask {
            Some(mask) => mask.text(&text).into_owned(),
            None => text.into_owned(),
        }
    }

    /// What `check` has seen of the host, and what ibprov has written down of it.
    fn host(&mut self, boot: Boot) -> std::io::Result<()> {
        let Boot { id, host, state, .. } = boot;
        let record = Record::of(id, host.map(|host| *host).unwrap_or_default(), state);
        let text = serde_json::to_string(&record).map_err(std::io::Error::other)?;
        let text = self.json(&text).map_err(std::io::Error::other)?;
        self.archive.add(record::FILE, text.as_bytes())?;
        for path in check_host::outcomes(self.root, &mut Vec::new()) {
            let Ok(text) = self.root.text(&path, crate::check::evidence::account::LONGEST) else {
                // The record tells what could not be read.
                continue;
            };
            // One that is damaged is read by nobody but people.
            let text = self.json(&text).unwrap_or_else(|_| self.masked(&text));
            self.archive.add(&path, text.as_bytes())?;
        }
        Ok(())
    }

    /// `json` without secrets, and perhaps without names.
    fn json(&self, json: &str) -> serde_json::Result<String> {
        record::each_text(json, &|text| self.masked(text))
    }

    /// The configuration, and what else tells a reader what the host is.
    fn files(&mut self, config: Option<&Path>) -> std::io::Result<()> {
        let found = config_files::read(self.root, config);
        for (path, content) in found.files {
            let text = self.masked(&String::from_utf8_lossy(&content));
            self.archive.add(&path, text.as_bytes())?;
        }
        let mut paths: Vec<String> = FILES.map(str::to_owned).to_vec();
        for dir in DIRECTORIES {
            match self.root.list_or_empty(dir) {
                Ok(names) => paths.extend(names.into_iter().map(|name| format!("{dir}/{name}"))),
                Err(e) => self.problems.push(e.to_string()),
            }
        }
        for path in paths {
            match self.root.text(&path, FILE) {
                Ok(text) => {
                    let text = self.masked(&text);
                    self.archive.add(&path, text.as_bytes())?;
                }
                Err(e) if e.is_absent() => {}
                Err(e) => self.problems.push(e.to_string()),
            }
        }
        Ok(())
    }

    /// The logs: of a host that runs the journals of this boot and of `earlier` ones.
    fn logs(&mut self, earlier: u16) -> std::io::Result<()> {
        if !self.root.is_live() {
            let root = self.root;
            let prefix = root.path().display().to_string();
            let mut failed = Ok(());
            let problems = logs::of_system(root, &mut |name, stream| {
                let name = name.strip_prefix(&prefix).unwrap_or(name);
                if failed.is_ok() {
                    failed = self.log(&format!("logs/{name}"), name, stream).map(|_| ());
                }
            });
            self.problems.extend(problems);
            return failed;
        }
        let mut kernel = true;
        for boot in (-i32::from(earlier)..=0).rev() {
            let mut written = Ok(false);
            let name = format!("logs/journal{boot}.export");
            let what = format!("the journal of boot {boot}");
            let read = logs::journal_until(boot, self.until, &mut |_, stream| {
                written = self.log(&name, &what, stream);
            });
            match read {
                Ok(true) if written? => {
                    self.boots += 1;
                    kernel &= boot != 0;
                }
                // There is no earlier one; without this boot's, the kernel log must not be
                // taken for that of another.
                Ok(_) => break,
                Err(e) => {
                    self.problems.push(format!("{what} is not in the archive: {e}"));
                    break;
                }
            }
        }
        self.kernel_log(kernel)
    }

    /// The kernel's ring buffer: `is_read` where no journal has its lines; else it is there
    /// for people, at a place where `check` reads no log.
    fn kernel_log(&mut self, is_read: bool) -> std::io::Result<()> {
        let lines = match crate::host::kernel_log() {
            Ok(lines) => lines,
            Err(e) => {
                self.problems.push(format!("cannot read /dev/kmsg: {}", answer(&e)));
                return Ok(());
            }
        };
        let mut text = String::new();
        for line in lines {
            let at = line.at.since(Moment::START);
            let (seconds, usec) = (at.as_secs(), at.subsec_micros());
            let said = self.masked(&line.text);
            text.push_str(&format!("<{}>[{seconds:5}.{usec:06}] {said}\n", line.level));
        }
        let name = if is_read { "logs/dmesg" } else { "proc/kmsg" };
        self.archive.add(name, text.as_bytes())
    }

    /// A log, which problems call `what`; false if it is empty.
    fn log(&mut self, name: &str, what: &str, stream: &mut dyn Read) -> std::io::Result<bool> {
        let mut kept = Kept::default();
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        let mut is_export = None;
        let mut export = Export::default();
        for at in 0_u64.. {
            line.clear();
            if let Err(e) = (&mut reader).take(LINE).read_until(b'\n', &mut line) {
                self.problems.push(format!("{what}: cut off: {}", answer(&e)));
                break;
            }
            let Some((last, text)) = line.split_last() else { break };
            let text = if *last == b'\n' { text } else { &line };
            if *last != b'\n' && line.len() as u64 == LINE {
                skip_line(&mut reader)?;
            }
            if at % 1024 == 1023 && clock::now() >= self.until {
                self.problems
                    .push(format!("{what} is cut off, because the timeout has passed (--timeout)"));
                break;
            }
            if *is_export.get_or_insert_with(|| text.starts_with(b"__CURSOR=")) {
                if let Some(entry) = export.line(text) {
                    self.entry(entry, &mut kept);
                }
            } else {
                let text = String::from_utf8_lossy(text);
                let matters =
                    || rules::needles().finder.as_ref().is_none_or(|f| f.is_match(&*text));
                if kept.takes(matters) {
                    kept.bytes.extend_from_slice(self.masked(&text).as_bytes());
                    kept.bytes.push(b'\n');
                }
            }
            if kept.bytes.len() > MOST {
                self.problems.push(format!("{what} is cut off at {} MiB", MOST >> 20));
                break;
            }
        }
        if let Some(entry) = export.end() {
            self.entry(entry, &mut kept);
        }
        if kept.left_out > 0 {
            self.problems.push(format!(
                "{what}: after the first {} MiB the archive contains only lines that check looks for",
                WHOLE >> 20
            ));
        }
        if kept.bytes.is_empty() {
            return Ok(false);
        }
        self.archive.add(name, &kept.bytes)?;
        Ok(true)
    }

    fn entry(&self, entry: Entry, kept: &mut Kept) {
        if !kept.takes(|| Intake::matters(rules::needles(), &entry)) {
            return;
        }
        let (message, unit) = (self.masked(&entry.message), self.masked(&entry.unit));
        kept.entries += 1;
        kept.bytes.extend(Entry { message, unit, ..entry }.export(kept.entries));
    }
}

/// What is kept of a log.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    entries: u64,
    left_out: u64,
}

impl Kept {
    /// True if a line is to be kept, which `matters` to `check` or not.
    fn takes(&mut self, matters: impl FnOnce() -> bool) -> bool {
        let takes = self.bytes.len() < WHOLE || matters();
        self.left_out += u64::from(!takes);
        takes
    }
}

/// Pass over the rest of a line.
fn skip_line(reader: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let block = reader.fill_buf()?;
        let end = memchr::memchr(b'\n', block);
        let (used, done) =
            (end.map_or(block.len(), |at| at + 1), end.is_some() || block.is_empty());
        reader.consume(used);
        if done {
            return Ok(());
        }
    }
}
