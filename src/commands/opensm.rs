//! `ibprov opensm check`: what opensm would make of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::{fleet, print};
use crate::check::evidence::host::OpensmFault;
use crate::cli::{Format, OpensmArgs, OpensmProgram};
use crate::config::{Config, Loaded, Place, Problem, Problems, Source};
use crate::host::{ReadError, Root};
use crate::model::{
    Advice, Finding, Kind, Report, Severity, Verdict, not_read,
    opensm::{Checked, CheckedFile, FaultKind, OpensmFile, OpensmFinding, Partition},
};
use crate::names::harmless;
use crate::observe::Observer;
use crate::opensm::partitions::Known;
use crate::opensm::{Fault, options, partitions};
use crate::show;

/// More than such a file has, bytes.
const FILE_LIMIT: u64 = 64 << 20;

/// Where opensm looks: as it is built by its authors and by Debian, and by Fedora.
pub(super) const DIRECTORIES: [&str; 2] = ["/etc/opensm", "/etc/rdma"];

/// One file, and what opensm would make of it.
pub(super) struct Seen {
    kind: OpensmFile,
    source: Arc<Source>,
    partitions: Vec<Partition>,
    pub(super) faults: Vec<Fault>,
    /// Its bytes, where they are not the text of `source`.
    content: Vec<u8>,
}

/// Say what opensm would make of the files that were named, or of those of this host.
///
/// # Errors
/// The directory of the fleet cannot be read; standard output is gone.
pub fn run(args: &OpensmArgs, loaded: Option<&Loaded>, root: &Root, format: Format) -> Result<u8> {
    let mut unread = Vec::new();
    let mut known = known(loaded.map(|loaded| &loaded.config));
    if let Some(dir) = &args.fleet {
        let (guids, problems) = fleet_guids(dir, root)?;
        known.guids = Some(guids);
        unread.extend(problems);
    }
    let mut seen = match args.files.is_empty() {
        true => of_host(root, known, &mut unread),
        false => named(args, root, known, &mut unread)?,
    };
    if args.opensm == OpensmProgram::Nvidia {
        let is_judged = |fault: &Fault| fault.kind != FaultKind::KeyUnknown;
        seen.iter_mut().for_each(|file| file.faults.retain(is_judged));
    }
    let mut problems = Problems::default();
    let mut findings = Vec::new();
    for file in &seen {
        for fault in &file.faults {
            let problem = file.problem(fault);
            findings.extend(findings.len().lt(&MOST).then(|| file.finding(fault, &problem)));
            problems.push(problem);
        }
    }
    findings.sort_by_key(|found| found.finding.severity);
    let unread_files = not_read(&unread).into_iter();
    findings.extend(unread_files.map(|finding| OpensmFinding { finding, fault: None }));
    let has = |severity| {
        seen.iter().flat_map(|file| &file.faults).any(|fault| fault.kind.severity() == severity)
    };
    let verdict = if !unread.is_empty() {
        Verdict::NotBegun
    } else if has(Severity::Error) {
        Verdict::NotReady
    } else if has(Severity::Warning) {
        Verdict::Exceptions
    } else {
        Verdict::Ready
    };
    let count = problems.len();
    let body = Checked { count, files: seen.into_iter().map(checked).collect() };
    let report = Report::new(Kind::OpensmCheck, verdict, findings, body);
    print(&report, format, |screen| {
        let mut text = problems.frames(screen.colour);
        for why in &unread {
            text.push_str(&format!("cannot read {}\n", harmless(why)));
        }
        if unread.is_empty() || !report.body.files.is_empty() {
            text.push_str(&show::opensm::text(&report.body));
        }
        text
    })
}

/// More findings are counted.
const MOST: usize = 100;

/// What the configuration says of partitions.
pub(super) fn known(config: Option<&Config>) -> Known {
    let rules = config.into_iter().flat_map(|config| &config.interfaces);
    let children = rules.flat_map(|rule| &rule.partitions).map(|child| {
        let name = child.name.as_ref().map(ToString::to_string);
        let name = name.unwrap_or_else(|| format!("the P_Key child {}", child.pkey));
        (child.pkey.value() & 0x7fff, name)
    });
    Known { children: children.collect::<BTreeMap<_, _>>(), ..Known::default() }
}

/// The port GUIDs of the fleet and of this host.
fn fleet_guids(dir: &Path, root: &Root) -> Result<(BTreeSet<u64>, Vec<String>)> {
    let (hosts, problems) = fleet::hosts(dir)?;
    let pfs = hosts.iter().flat_map(|(_, pins)| &pins.pfs);
    let planned = pfs.flat_map(|pf| {
        pf.port_guids
            .iter()
            .copied()
            .chain(pf.vfs.iter().flat_map(|[_, ports @ ..]| ports.iter().copied().flatten()))
    });
    let observed = Observer::new(root).look([], &BTreeSet::new());
    let devices = observed.functions.iter().flat_map(|function| &function.rdma);
    let here = devices.flat_map(|device| &device.ports).filter_map(|port| port.guid);
    Ok((planned.chain(here).map(|guid| guid.value()).collect(), problems))
}

/// What opensm would read on this host; a file that is not there is none.
pub(super) fn of_host(root: &Root, mut known: Known, unread: &mut Vec<String>) -> Vec<Seen> {
    let mut all = Vec::new();
    for dir in DIRECTORIES {
        // Fedora's launcher starts one opensm for each opensm.conf.N.
        let mut names = root.list_or_empty(dir).unwrap_or_default();
        names.retain(|name| {
            let rest = name.strip_prefix("opensm.conf");
            rest.is_some_and(|rest| {
                let digits = rest.strip_prefix('.').unwrap_or(rest);
                digits.bytes().all(|b| b.is_ascii_digit())
            })
        });
        names.sort();
        let default = format!("{dir}/partitions.conf");
        let mut paths = BTreeSet::new();
        for name in names {
            let path = format!("{dir}/{name}");
            let Some(content) = content(root, &path, unread) else { continue };
            let options = options::read(&content);
            known.allows_both |= options.allows_both;
            let named = options.partitions.filter(|path| path.starts_with('/'));
            paths.insert(named.unwrap_or_else(|| default.clone()));
            let (kind, faults) = (OpensmFile::Opensm, options.faults);
            all.push(Seen::new(path, content, kind, Vec::new(), faults));
        }
        if paths.is_empty() {
            paths.insert(default);
        }
        for path in paths {
            let Some(content) = content(root, &path, unread) else { continue };
            let read = partitions::read(&content, &known);
            let kind = OpensmFile::Partitions;
            all.push(Seen::new(path, content, kind, read.partitions, read.faults));
        }
    }
    all
}

/// What is wrong with the partitions file at `path`, and how many errors that are.
///
/// # Errors
/// It cannot be read.
pub(super) fn judge_partitions(
    root: &Root,
    path: &str,
    known: &Known,
) -> Result<(Problems, usize), ReadError> {
    let content = root.bytes(path, FILE_LIMIT)?;
    let read = partitions::read(&content, known);
    let kind = OpensmFile::Partitions;
    let seen = Seen::new(path.to_owned(), content, kind, read.partitions, read.faults);
    let mut problems = Problems::default();
    for fault in &seen.faults {
        problems.push(seen.problem(fault));
    }
    let is_error = |fault: &&Fault| fault.kind.severity() == Severity::Error;
    Ok((problems, seen.faults.iter().filter(is_error).count()))
}

/// The same for `ibprov check`, where opensm is installed. Which keys are known is not judged:
/// it may be NVIDIA's opensm.
pub(super) fn faults(root: &Root, config: &Config, problems: &mut Vec<String>) -> Vec<OpensmFault> {
    if !root.exists("/usr/sbin/opensm") {
        return Vec::new();
    }
    let seen = of_host(root, known(Some(config)), problems);
    let faults = seen.iter().flat_map(|file| file.faults.iter().map(move |fault| (file, fault)));
    let is_judged = |fault: &Fault| fault.kind != FaultKind::KeyUnknown;
    let told = faults.filter(|(_, fault)| is_judged(fault)).take(MOST).map(|(file, fault)| {
        let told = file.problem(fault).told();
        let place = told.places.into_iter().next();
        OpensmFault {
            code: fault.code(),
            severity: fault.kind.severity(),
            file: harmless(file.path()),
            line: place.as_ref().map_or(0, |place| place.line as u64),
            label: place.map(|place| place.label).unwrap_or_default(),
            consequence: told.message,
        }
    });
    told.collect()
}

fn content(root: &Root, path: &str, unread: &mut Vec<String>) -> Option<Vec<u8>> {
    match root.bytes(path, FILE_LIMIT) {
        Ok(content) => Some(content),
        Err(e) if e.is_absent() => None,
        Err(e) => {
            unread.push(e.to_string());
            None
        }
    }
}

/// The files that were named.
fn named(
    args: &OpensmArgs,
    root: &Root,
    mut known: Known,
    unread: &mut Vec<String>,
) -> Result<Vec<Seen>> {
    let mut all = Vec::new();
    for file in &args.files {
        let path = file.display().to_string();
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let kind = match (args.kind, name.contains("partition"), name.contains("opensm")) {
            (Some(kind), ..) => kind,
            (None, true, _) => OpensmFile::Partitions,
            (None, false, true) => OpensmFile::Opensm,
            (None, false, false) => anyhow::bail!(
                "{} is named neither partitions.conf nor opensm.conf: add --as partitions or --as opensm",
                harmless(&path)
            ),
        };
        match root.bytes(&path, FILE_LIMIT) {
            Ok(content) => all.push(Seen::new(path, content, kind, Vec::new(), Vec::new())),
            Err(e) => unread.push(e.to_string()),
        }
    }
    // What opensm.conf says counts for the other files, wherever it stands among them.
    for file in all.iter_mut().filter(|file| file.kind == OpensmFile::Opensm) {
        let read = options::read(&file.content);
        known.allows_both |= read.allows_both;
        file.faults = read.faults;
    }
    for file in all.iter_mut().filter(|file| file.kind == OpensmFile::Partitions) {
        let read = partitions::read(&file.content, &known);
        (file.partitions, file.faults) = (read.partitions, read.faults);
    }
    Ok(all)
}

impl Seen {
    fn new(
        path: String,
        content: Vec<u8>,
        kind: OpensmFile,
        partitions: Vec<Partition>,
        faults: Vec<Fault>,
    ) -> Self {
        let text = String::from_utf8_lossy(&content).into_owned();
        Self { kind, source: Arc::new(Source { path, text }), partitions, faults, content }
    }

    pub(super) fn path(&self) -> &str {
        &self.source.path
    }

    /// The place of the bytes `span`.
    fn place(&self, span: &std::ops::Range<usize>) -> Place {
        let before = |at: usize| {
            let bytes = self.content.get(..at).unwrap_or(&self.content);
            if self.source.text.len() == self.content.len() {
                at
            } else {
                String::from_utf8_lossy(bytes).len()
            }
        };
        Place::new(&self.source, before(span.start)..before(span.end))
    }

    fn problem(&self, fault: &Fault) -> Problem {
        let problem = Problem::new(fault.consequence.clone());
        let mut problem = problem.at(&self.place(&fault.span), fault.label.clone());
        if let Some((span, label)) = &fault.also {
            problem = problem.at(&self.place(span), label);
        }
        if let Some(help) = &fault.help {
            problem = problem.help(help.clone());
        }
        match fault.kind.severity() {
            Severity::Error => problem,
            _ => problem.warning(),
        }
    }

    fn finding(&self, fault: &Fault, problem: &Problem) -> OpensmFinding {
        let told = problem.told();
        let finding = Finding::new(fault.code(), fault.kind.severity(), told.message)
            .about(harmless(self.path()))
            .advise(told.help.map(Advice::permanent));
        let finding = Finding { places: told.places, ..finding };
        OpensmFinding { finding, fault: Some(fault.kind) }
    }
}

fn checked(seen: Seen) -> CheckedFile {
    let with =
        |severity| seen.faults.iter().filter(|fault| fault.kind.severity() == severity).count();
    CheckedFile {
        file: harmless(seen.path()),
        kind: seen.kind,
        errors: with(Severity::Error),
        warnings: with(Severity::Warning),
        partitions: seen.partitions,
    }
}
