//! `ibprov config`: what the configuration is, and what is wrong with it.

use std::io::Write;

use super::{generate, print};
use crate::apply::boot;
use crate::cli::{ConfigVerb, Format};
use crate::config::{self, Loaded, Part, PortRow, Problems, Setting};
use crate::host::{Root, persistent_names, terminal};
use crate::ladder::minimum::means;
use crate::model::{
    Advice, Code, Exit, Finding, Kind, NotBegun, PortProgress, Report, Severity, ToDo, Verdict,
    config::{Checked, NotRead, Shown, ShownSetting},
};
use crate::node;
use crate::show::{advice, screen};

/// Answer for the configuration that [`config::load`] gave.
///
/// # Errors
/// The answer cannot be written.
pub fn run(verb: ConfigVerb, loaded: Loaded, root: &Root, format: Format) -> anyhow::Result<u8> {
    let mut out = terminal::stdout();
    if verb == ConfigVerb::UdevRules {
        if format == Format::Json {
            anyhow::bail!("config udev-rules prints a file for udev: leave --format json out");
        }
        // For an image, which is to be made all the same.
        let file = persistent_names::file(&boot::names(&loaded.config));
        write!(out, "{}", file.map(|(_, rules)| rules).unwrap_or_default())?;
        if loaded.problems.is_empty() {
            return Ok(Exit::Good.code());
        }
        complain(&loaded.problems)?;
        return Ok(Exit::Exceptions.code());
    }
    match (loaded.whole(), verb) {
        (Ok(loaded), ConfigVerb::Show { changed }) => {
            let shown = shown(&loaded, changed);
            let settings = shown.iter().map(ShownSetting::of).collect();
            let body = Shown { files: loaded.files, settings };
            let verdict = Verdict::Ready;
            let report: Report<_> = Report::new(Kind::ConfigShow, verdict, vec![], body);
            print(&report, format, |_| config::to_toml(&shown))
        }
        (Ok(loaded), ConfigVerb::Generate) => {
            if format == Format::Json {
                anyhow::bail!("config generate prints a file: leave --format json out");
            }
            let (text, is_all) = generate::tables(root, &loaded.config)?;
            write!(out, "{text}")?;
            Ok(if is_all { Exit::Good } else { Exit::Exceptions }.code())
        }
        (Ok(loaded), _) => {
            let (dark, of_host) = node::of_host(&loaded.config, root);
            let is_error = |finding: &Finding| finding.severity == Severity::Error;
            let head = good_text(&loaded, of_host.iter().any(is_error));
            let mut report = checked(&loaded.files, &loaded.not_read, of_host.clone());
            report.body.dark_ports = dark.iter().map(|port| port.label().to_string()).collect();
            let dark = dark_text(&dark, &loaded.config.ports);
            print(&report, format, |screen| {
                head + &dark + &screen::text(advice::findings(&of_host, "", screen))
            })
        }
        // `show` was asked for something that a pipe may be waiting for.
        (Err(problems), ConfigVerb::Show { .. } | ConfigVerb::Generate) => {
            refuse(&problems, format)
        }
        (Err(problems), _) => {
            let pins = node::unreadable_pins(root);
            let all = findings(&problems).into_iter().chain(pins.clone());
            let report = checked(&problems.files, &problems.not_read, all.collect());
            print(&report, format, |screen| {
                let files = files_text(&problems.files, &problems.not_read);
                let told = screen::text(advice::findings(&pins, "", screen));
                format!("{}\n{files}{told}", problems.render(screen.colour))
            })
        }
    }
}

/// Print what is wrong with the configuration to standard error, in colour where that is
/// wanted; for programs as a report on standard output. For any verb that cannot begin
/// because of it.
///
/// # Errors
/// The stream cannot be written to.
pub fn refuse(problems: &Problems, format: Format) -> anyhow::Result<u8> {
    if format == Format::Text {
        complain(problems)?;
    }
    print(&NotBegun::of(findings(problems)), format, |_| String::new())
}

/// Print what is wrong with the configuration to standard error, in colour
/// where that is wanted.
///
/// # Errors
/// Standard error cannot be written to.
pub fn complain(problems: &Problems) -> std::io::Result<()> {
    let mut err = terminal::stderr();
    let colour = terminal::wants_colour(&err);
    writeln!(err, "{}", problems.render(colour))
}

/// So many errors are told one by one by runs that leave out what has them.
const MOST_TOLD: usize = 10;

/// What is wrong with the configuration, for runs that leave it out: errors if ports, names,
/// settings or VFs may be missing for it.
pub fn errors(loaded: &Loaded) -> Vec<Finding> {
    let severity = match loaded.config.withheld.has(Part::Ports) {
        true => Severity::Error,
        false => Severity::Warning,
    };
    let look = || Advice::look(ToDo::run("ibprov config check"));
    let all = loaded.problems.told();
    let finding = |problem: &config::ProblemTold| {
        let place = problem.places.first();
        let message = format!("{}; what this concerns is left out", problem.message);
        Finding::new(Code::ConfigurationInvalid, severity, message)
            .about_all(place.map(|at| format!("{}:{}:{}", at.file, at.line, at.column)))
            .advise(problem.help.clone().map(Advice::permanent))
            .advise([look()])
    };
    let mut findings: Vec<Finding> = all.iter().take(MOST_TOLD).map(finding).collect();
    if let Some(more @ 1..) = loaded.problems.len().checked_sub(MOST_TOLD) {
        let message = format!("the configuration has {more} more errors, which are not listed");
        findings.push(Finding::new(Code::ConfigurationInvalid, severity, message).advise([look()]));
    }
    findings
}

/// What is wrong with the configuration, with the places.
fn findings(problems: &Problems) -> Vec<Finding> {
    let finding = |problem: config::ProblemTold| {
        let config::ProblemTold { message, places, help } = problem;
        let finding = Finding::error(Code::ConfigurationInvalid, message);
        let finding = finding.about_all(places.first().map(|place| &place.file));
        Finding { places, ..finding }.advise(help.map(Advice::permanent))
    };
    let mut findings: Vec<Finding> = problems.told().into_iter().map(finding).collect();
    if problems.more > 0 {
        let message =
            format!("the configuration has {} more errors, which are not listed", problems.more);
        findings.push(Finding::error(Code::ConfigurationInvalid, message));
    }
    findings
}

/// What to write into the configuration where expected ports are dark and that is meant.
fn dark_text(dark: &[PortProgress], rows: &[PortRow]) -> String {
    let mut text = match dark.len() {
        0 => return String::new(),
        1 => "an expected port has no link. If it is meant to be dark, add:\n".to_owned(),
        n => format!("{n} expected ports have no link. For each that is meant to be dark, add:\n"),
    };
    for port in dark {
        let (Some(pci), Some(number)) = (port.pci, port.port) else { continue };
        let label = port.label();
        let own = format!("pci = \"{pci}\"\n  port = {number}\n  required = false");
        let row = rows.iter().find(|row| means(row, port));
        text.push_str(&match row.map(|row| row.origin.as_str()) {
            None => format!("\n  [[port]]  # {label}\n  {own}\n"),
            Some(at) if rows.iter().filter(|row| row.origin == at).count() == 1 => {
                format!("\n  required = false  # at {at}: {label}\n")
            }
            Some(at) => format!(
                "\n  take {pci} out of the list at {at}, and add:\n\n  [[port]]  # {label}\n  {own}\n"
            ),
        });
    }
    text
}

impl NotRead {
    fn all(files: &[(String, String)]) -> Vec<Self> {
        let one = |(file, why): &(String, String)| Self { file: file.clone(), reason: why.clone() };
        files.iter().map(one).collect()
    }
}

fn checked(
    files: &[String],
    not_read: &[(String, String)],
    findings: Vec<Finding>,
) -> Report<Checked> {
    let is_error = |finding: &Finding| finding.severity == Severity::Error;
    let is_bad = findings.iter().any(is_error);
    let (verdict, exit) =
        if is_bad { (Verdict::NotReady, Exit::NotBegun) } else { (Verdict::Ready, Exit::Good) };
    let (files, not_read) = (files.to_vec(), NotRead::all(not_read));
    let body = Checked { files, not_read, dark_ports: Vec::new() };
    Report::new(Kind::ConfigCheck, verdict, findings, body).exiting(exit.code())
}

impl ShownSetting {
    fn of(setting: &Setting) -> Self {
        let (file, line) = match &setting.origin {
            config::SettingOrigin::Default => (None, None),
            config::SettingOrigin::File { path, line } => (Some(path.clone()), Some(*line)),
        };
        Self { key: setting.key.clone(), value: setting.value.clone(), file, line }
    }
}

fn shown(loaded: &Loaded, changed: bool) -> Vec<Setting> {
    if changed { config::changed(&loaded.effective()) } else { loaded.effective() }
}

fn good_text(loaded: &Loaded, is_bad_here: bool) -> String {
    let what = match (is_bad_here, loaded.files.is_empty()) {
        (true, _) => "the configuration files are valid; what is wrong besides is listed below",
        (false, true) => "the configuration is valid: no file exists, and the defaults apply",
        (false, false) => "the configuration is valid",
    };
    format!("{what}\n{}", files_text(&loaded.files, &loaded.not_read))
}

/// The files that were read and those that were ignored, under a heading each.
fn files_text(files: &[String], not_read: &[(String, String)]) -> String {
    let mut lines = Vec::new();
    if !files.is_empty() {
        lines.push("files, in the order in which they apply:".to_owned());
    }
    lines.extend(files.iter().map(|file| format!("  {file}")));
    if !not_read.is_empty() {
        lines.push("ignored files:".to_owned());
    }
    lines.extend(not_read.iter().map(|(file, why)| format!("  {file}: {why}")));
    screen::text(lines)
}
