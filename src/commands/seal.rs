//! `ibprov plan --seal`: what makes an image this host's own is taken out of it before it
//! is captured, or told.

use super::print;
use crate::cli::Format;
use crate::config::{Config, GuidSource, InterfaceSelector, Pf, PfSelector};
use crate::host::{Root, answer, pins_file, process};
use crate::model::plan::Sealed;
use crate::names::host_number::{of_name, of_text};
use crate::names::template::FieldName;
use crate::names::{HostNumber, PINS_PATH, PortSelector};
use crate::observe::Look;
use crate::observe::captured::is_captured;
use crate::observe::plan_host::{name_in_file, number_file};
use crate::show;

/// Remove the pins; say what else is one host's, which is not ours to change.
///
/// # Errors
/// The pins cannot be removed; this is not root; standard output is gone.
pub fn run(config: &Config, root: &Root, dry_run: bool, format: Format) -> anyhow::Result<u8> {
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
        left: of_one_host(config, &mut Look::new(root)),
    };
    print(&report.to_report(), format, |_| show::plan::sealed(&report))
}

/// What of the configuration, and of the files from which it takes the host's number, fits
/// one host only, one line each.
fn of_one_host(config: &Config, look: &mut Look<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let HostNumber::Given(number) = config.host_number {
        lines.push(format!("host.number = {number} gives each host the same number"));
    }
    if config.pf.iter().any(needs_host_number) {
        lines.extend(number_in_file(&config.host_number, look));
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
    let ports = config.ports.iter().map(|row| (&row.which, &row.origin));
    let ignored = config.boot.ignore.iter().map(|ignored| (&ignored.which, &ignored.origin));
    for (which, origin) in ports.chain(ignored) {
        if let PortSelector::PortGuid(guid) = which {
            lines.push(format!("{origin}: the port with port GUID {guid} is in one host only"));
        }
    }
    for rule in &config.interfaces {
        if let InterfaceSelector::PortGuid(guid) = rule.which {
            let origin = &rule.origin;
            lines
                .push(format!("{origin}: the interface with port GUID {guid} is in one host only"));
        }
    }
    lines.extend(look.problems.iter().map(|problem| format!("cannot read {problem}")));
    lines
}

/// A template for its VFs has the host's number.
fn needs_host_number(pf: &Pf) -> bool {
    [&pf.node, &pf.port].into_iter().flatten().any(|source| match source {
        GuidSource::Template(template) => template.field(FieldName::Host).is_some(),
        GuidSource::List(_) | GuidSource::Range(_) | GuidSource::Offset(_) => false,
    })
}

/// The file of the image that gives each host one number. One that gives none is no fault.
fn number_in_file(source: &HostNumber, look: &mut Look<'_>) -> Option<String> {
    match source {
        HostNumber::Given(_) => None,
        HostNumber::Name(rule) => {
            let name = name_in_file(look)?;
            let number = of_name(&name, *rule).ok()?;
            is_captured(look, "/etc/hostname").then(|| {
                format!(
                    "/etc/hostname: {name:?} gives each host the number {number} until something names it: empty the file"
                )
            })
        }
        HostNumber::File(path) => {
            let number = of_text(&number_file(look.root(), path).ok()?).ok()?;
            is_captured(look, path).then(|| {
                format!("{path}, which host.number-file names, gives each host the number {number}: remove the file")
            })
        }
    }
}

/// GUIDs that come neither from the host's number nor from the card.
fn has_literal_guids(pf: &Pf) -> bool {
    let is_literal = |source: &Option<GuidSource>| {
        matches!(source, Some(GuidSource::List(_) | GuidSource::Range(_)))
    };
    is_literal(&pf.node)
        || is_literal(&pf.port)
        || pf.exceptions.iter().any(|e| e.node_guid.or(e.port_guid).or(e.port2_guid).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Problems, Source, resolve};
    use crate::host::testing::tree;
    use crate::model::common::Verdict;

    fn config(text: &str) -> Config {
        let source = Source { path: "/c.toml".to_owned(), text: text.to_owned() };
        match resolve(vec![source], Problems::default()) {
            Ok(loaded) => loaded.config,
            Err(problems) => panic!("{problems}"),
        }
    }

    /// What is left in an image with this configuration and these files.
    fn left(text: &str, files: &[(&str, &str)]) -> Vec<String> {
        let dir = tree(files, &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        of_one_host(&config(text), &mut Look::new(&root))
    }

    #[test]
    fn what_fits_one_host_only_is_told() {
        let text = "host.number = 7
boot.ignore = [\"b859:9f03:0012:a478\", \"0000:01:00.0\"]
[[pf]]
pci = \"0000:4b:00.0\"
vfs = 1
guid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"
[[pf]]
port-guid = \"b859:9f03:0012:a480\"
vfs = 1
guid.list = [\"0200:0000:0000:0001\"]
[[port]]
port-guid = \"b859:9f03:0012:a488\"
[[port]]
pci = \"0000:4b:00.0\"
[[interface]]
match.port-guid = \"b859:9f03:0012:a490\"
mtu = 4092
";
        assert_eq!(
            left(text, &[("etc/hostname", "golden01\n")]),
            [
                "host.number = 7 gives each host the same number",
                "/c.toml:7: PF with port GUID b859:9f03:0012:a480 is in one host only",
                "/c.toml:7: the GUIDs of its VFs are written out, for one host",
                "/c.toml:11: the port with port GUID b859:9f03:0012:a488 is in one host only",
                "/c.toml:2: the port with port GUID b859:9f03:0012:a478 is in one host only",
                "/c.toml:15: the interface with port GUID b859:9f03:0012:a490 is in one host only",
            ]
        );
    }

    #[test]
    fn a_number_that_an_image_has_for_all_hosts_is_told_where_a_template_needs_it() {
        let template = "[[pf]]
pci = \"0000:4b:00.0\"
vfs = 1
guid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"
";
        let of_file = format!("host.number-file = \"/etc/number\"\n{template}");
        let named = [("etc/hostname", "# the image's\n\ngolden01\n")];
        let told = "/etc/hostname: \"golden01\" gives each host the number 1 until something names it: empty the file";
        assert_eq!(left(template, &named), [told]);
        let none: [&str; 0] = [];
        for name in ["", "golden\n", "localhost4\n", "a1b2\n"] {
            assert_eq!(left(template, &[("etc/hostname", name)]), none, "{name:?}");
        }
        assert_eq!(left(template, &[]), none);
        let mount = "25 24 8:2 / /etc/hostname rw - ext4 /dev/sda2 rw\n";
        assert_eq!(
            left(template, &[named[0], ("proc/self/mountinfo", mount)]),
            none,
            "the build's"
        );
        assert_eq!(left(&template.replace("{host:16}", "00:00"), &named), none);
        assert_eq!(
            left(&of_file, &[named[0], ("etc/number", "7\n")]),
            [
                "/etc/number, which host.number-file names, gives each host the number 7: remove the file"
            ]
        );
        assert_eq!(left(&of_file, &named), none);
    }

    #[test]
    fn an_image_with_what_names_one_host_is_not_sealed() {
        let sealed = |files: &[&str], removed, left: &[&str]| {
            let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
            let report = Sealed { files: owned(files), removed, left: owned(left) };
            assert_eq!(show::plan::sealed(&report).contains("not sealed"), !left.is_empty());
            let told = report.to_report();
            (told.verdict, told.exit_code)
        };
        assert_eq!(sealed(&["pins"], true, &[]), (Verdict::Done, 0));
        assert_eq!(sealed(&["pins"], false, &[]), (Verdict::WouldChange, 1));
        assert_eq!(sealed(&["pins"], false, &["host.number = 7"]), (Verdict::WouldChange, 1));
        assert_eq!(sealed(&["pins"], true, &["host.number = 7"]), (Verdict::Exceptions, 1));
        assert_eq!(sealed(&[], false, &["host.number = 7"]), (Verdict::Exceptions, 1));
    }
}
