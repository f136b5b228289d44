//! `ibprov plan --seal`: what makes an image this host's own is taken out of it before it
//! is captured.

use std::io::Write;

use serde::Serialize;

use crate::cli::Format;
use crate::config::{Config, GuidSource, InterfaceSelector, Pf, PfSelector};
use crate::host::{Root, answer, pins_file, process};
use crate::names::{HostNumber, PINS_PATH};
use crate::report::common::{Code, Exit, Finding, Kind, Report, to_json};

/// Remove the pins; say what else is one host's in the configuration, which is not ours
/// to change.
///
/// # Errors
/// The pins cannot be removed; this is not root; standard output is gone.
pub fn run(
    config: &Config,
    root: &Root,
    dry_run: bool,
    format: Format,
    out: &mut impl Write,
) -> anyhow::Result<u8> {
    if !root.is_live() {
        anyhow::bail!("--seal cannot be combined with --root: run it in the image, with chroot");
    }
    if !dry_run && !process::is_root() {
        anyhow::bail!(
            "{PINS_PATH} belongs to root: use sudo, or --dry-run to see what would be removed"
        );
    }
    let files = pins_file::files(PINS_PATH)
        .map_err(|e| anyhow::anyhow!("cannot look for {PINS_PATH}: {}", answer(&e)))?;
    if !dry_run {
        for file in &files {
            pins_file::remove(file)
                .map_err(|e| anyhow::anyhow!("cannot remove {}: {}", file.display(), answer(&e)))?;
        }
    }
    let report = Sealed {
        files: files.iter().map(|file| file.display().to_string()).collect(),
        removed: !dry_run,
        left: of_one_host(config),
    };
    match format {
        Format::Text => write!(out, "{}", report.to_text())?,
        Format::Json => writeln!(out, "{}", to_json(&report)?)?,
    }
    Ok(report.exit_code())
}

/// What `ibprov plan --seal` says.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Sealed {
    /// The files with pins that were there.
    files: Vec<String>,
    /// They were removed, not only looked for.
    removed: bool,
    #[serde(skip)]
    left: Vec<String>,
}

/// Whether an image has pins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(super) enum SealVerdict {
    /// It has none.
    Sealed,
    /// They would be removed.
    WouldChange,
}

impl Sealed {
    fn to_text(&self) -> String {
        let done = if self.removed { "removed" } else { "would be removed" };
        let mut text: String = self.files.iter().map(|file| format!("{done}: {file}\n")).collect();
        if self.files.is_empty() {
            text.push_str("no pin file: nothing to remove\n");
        }
        text.extend(self.left.iter().map(|line| format!("to do by hand: {line}\n")));
        text
    }
}

impl Report for Sealed {
    const KIND: Kind = Kind::PlanSeal;
    type Verdict = SealVerdict;
    type Finding = Finding;

    fn verdict(&self) -> SealVerdict {
        match self.removed || self.files.is_empty() {
            true => SealVerdict::Sealed,
            false => SealVerdict::WouldChange,
        }
    }

    fn exit_code(&self) -> u8 {
        match self.verdict() {
            SealVerdict::Sealed => Exit::Good.code(),
            SealVerdict::WouldChange => Exit::Exceptions.code(),
        }
    }

    fn findings(&self) -> Vec<Finding> {
        self.left.iter().map(|line| Finding::warning(Code::OneHostOnly, line)).collect()
    }
}

/// What of the configuration fits one host only, one line each.
fn of_one_host(config: &Config) -> Vec<String> {
    let mut lines = Vec::new();
    if let HostNumber::Given(number) = config.host_number {
        lines.push(format!("host.number = {number} gives each host the same GUIDs"));
    }
    for pf in &config.pf {
        if matches!(pf.which, PfSelector::PortGuid(_) | PfSelector::NodeGuid(_)) {
            lines.push(format!("{}: {} is in one host only", pf.origin, pf.which));
        }
        if has_literal_guids(pf) {
            let origin = &pf.origin;
            lines.push(format!("{origin}: the GUIDs of its VFs are written out, for one host"));
        }
    }
    for rule in &config.interfaces {
        if let InterfaceSelector::PortGuid(guid) = rule.which {
            lines.push(format!("[[interface]] with port GUID {guid} is in one host only"));
        }
    }
    lines
}

/// GUIDs that come neither from the host's number nor from the card.
fn has_literal_guids(pf: &Pf) -> bool {
    let is_literal = |source: &Option<GuidSource>| {
        matches!(source, Some(GuidSource::List(_) | GuidSource::Range(_)))
    };
    is_literal(&pf.node)
        || is_literal(&pf.port)
        || pf.exceptions.iter().any(|e| e.node_guid.is_some() || e.port_guid.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Problems, Source, resolve};

    #[test]
    fn what_fits_one_host_only_is_told() {
        let text = "host.number = 7
[[pf]]
pci = \"0000:4b:00.0\"
vfs = 1
guid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"
[[pf]]
port-guid = \"b859:9f03:0012:a480\"
vfs = 1
guid.list = [\"0200:0000:0000:0001\"]
[[interface]]
match.port-guid = \"b859:9f03:0012:a490\"
mtu = 4092
";
        let source = Source { path: "/c.toml".to_owned(), text: text.to_owned() };
        let loaded = match resolve(vec![source], Problems::default()) {
            Ok(loaded) => loaded,
            Err(problems) => panic!("{problems}"),
        };
        assert_eq!(
            of_one_host(&loaded.config),
            [
                "host.number = 7 gives each host the same GUIDs",
                "/c.toml:6: PF with port GUID b859:9f03:0012:a480 is in one host only",
                "/c.toml:6: the GUIDs of its VFs are written out, for one host",
                "[[interface]] with port GUID b859:9f03:0012:a490 is in one host only",
            ]
        );
    }
}
