//! `ibprov check --initrd`: whether an initramfs image has what the ports of this host need,
//! for nodes that need a port before the root file system is mounted.

use std::collections::BTreeSet;

use super::print;
use crate::apply::boot;
use crate::cli::{CheckArgs, Format};
use crate::config::Config;
use crate::host::initrd::{self, Image};
use crate::host::{Root, persistent_names};
use crate::model::{
    Code, Finding, Kind, Report, Severity, Verdict,
    initrd::{InitrdReport, Line, NeededModule, Place, rebuild},
};
use crate::names::{IB_DRIVERS, rdma_half_of};
use crate::observe::Observer;
use crate::show;

/// Compare the image that `args` names with the host below `root`.
///
/// # Errors
/// The image cannot be read; standard output is gone.
pub fn run(args: &CheckArgs, config: &Config, root: &Root, format: Format) -> anyhow::Result<u8> {
    let Some(path) = &args.initrd else { anyhow::bail!("no image was given") };
    let image = initrd::read(path, is_text).map_err(|why| anyhow::anyhow!("{why}"))?;
    let report = judge(&path.display().to_string(), &image, config, root);
    print(&report, format, |_| show::initrd::text(&report))
}

/// Directories of an image, with or without `usr/` and `usr/local/` before.
fn below<'p>(path: &'p str, dir: &str) -> Option<&'p str> {
    let path = ["usr/local/", "usr/", "etc/", "run/"]
        .iter()
        .find_map(|top| path.strip_prefix(top))
        .unwrap_or(path);
    path.strip_prefix("lib/").unwrap_or(path).strip_prefix(dir)
}

fn is_text(path: &str) -> bool {
    below(path, "udev/rules.d/").is_some()
        || below(path, "modules/").is_some_and(|rest| rest.ends_with("/modules.builtin"))
}

fn compared(host: &BTreeSet<String>, image: &BTreeSet<String>) -> Vec<Line> {
    let place = |text: &String| match (host.contains(text), image.contains(text)) {
        (true, true) => Place::Both,
        (true, false) => Place::OnlyHost,
        (false, _) => Place::OnlyImage,
    };
    host.union(image).map(|text| Line { text: text.clone(), place: place(text) }).collect()
}

fn judge(name: &str, image: &Image, config: &Config, root: &Root) -> Report<InitrdReport> {
    let drivers = drivers(root, image);
    let mut needed: Vec<&str> = Vec::new();
    for driver in &drivers {
        needed.push(driver);
        needed.extend(rdma_half_of(driver));
    }
    needed.push("ib_ipoib");
    let mut findings = Vec::new();
    let kernels = kernels(image);
    let mut modules = Vec::new();
    for kernel in &kernels {
        let has = modules_of(image, kernel);
        for module in &needed {
            let present = has.contains(*module);
            modules.push(NeededModule {
                name: (*module).to_owned(),
                kernel: kernel.clone(),
                present,
            });
            if !present {
                let message =
                    format!("the image lacks the module {module} for the kernel {kernel}");
                findings.push(
                    Finding::error(Code::InitrdWithoutModule, message)
                        .about(module)
                        .advise([rebuild()]),
                );
            }
        }
    }
    if kernels.is_empty() {
        let message = "the image has no kernel modules";
        findings.push(
            Finding::error(Code::InitrdWithoutModule, message).about(name).advise([rebuild()]),
        );
    }
    let rules = persistent_names::file(&boot::names(config));
    let is_rule = |line: &&str| !line.starts_with('#') && !line.is_empty();
    let wanted: BTreeSet<String> = rules
        .iter()
        .flat_map(|(_, text)| text.lines().filter(is_rule))
        .map(str::to_owned)
        .collect();
    let mut given: BTreeSet<String> = BTreeSet::new();
    for (path, text) in image {
        let (Some(file), Some(text)) = (below(path, "udev/rules.d/"), text) else { continue };
        // Of other files only what is the same counts: they are the distribution's.
        let ours = file == persistent_names::FILE;
        let lines = text.lines().filter(is_rule).map(str::to_owned);
        given.extend(lines.filter(|line| ours || wanted.contains(line)));
    }
    let naming_rules = compared(&wanted, &given);
    for line in &naming_rules {
        let message = match line.place {
            Place::Both => continue,
            Place::OnlyHost => format!("the image lacks the naming rule: {}", line.text),
            Place::OnlyImage => format!("only the image has the naming rule: {}", line.text),
        };
        let finding = Finding::warning(Code::InitrdNamesDiffer, message);
        findings.push(finding.about(name).advise([rebuild()]));
    }
    let verdict = match findings.iter().map(|f| f.severity).min() {
        Some(Severity::Error) => Verdict::NotReady,
        Some(_) => Verdict::Exceptions,
        None => Verdict::Ready,
    };
    let body = InitrdReport { image: name.to_owned(), kernels, modules, naming_rules };
    Report::new(Kind::CheckInitrd, verdict, findings, body)
}

/// The drivers of this host's HCAs; of a tree without devices, those that the image has.
fn drivers(root: &Root, image: &Image) -> Vec<&'static str> {
    let functions = Observer::new(root).look_at_pfs().functions;
    let of_host = functions.iter().filter(|f| f.physfn.is_none()).filter_map(|f| f.ib_driver);
    let mut drivers: Vec<&'static str> = of_host.collect();
    if drivers.is_empty() {
        let kernels = kernels(image);
        let has = |driver: &&str| kernels.iter().any(|k| modules_of(image, k).contains(*driver));
        drivers.extend(IB_DRIVERS.iter().filter(|driver| has(driver)));
    }
    if drivers.is_empty() {
        drivers.push(IB_DRIVERS[0]);
    }
    drivers.sort_unstable();
    drivers.dedup();
    drivers
}

/// The kernels for which there are modules.
fn kernels(image: &Image) -> Vec<String> {
    let of = |path: &String| {
        let (kernel, rest) = below(path, "modules/")?.split_once('/')?;
        rest.contains(".ko").then(|| kernel.to_owned())
    };
    image.keys().filter_map(of).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The modules for `kernel`, and what is built into it.
fn modules_of(image: &Image, kernel: &str) -> BTreeSet<String> {
    let of_kernel = |path: &str| {
        let (k, rest) = below(path, "modules/")?.split_once('/')?;
        (k == kernel).then(|| rest.to_owned())
    };
    let module = |file: &str| {
        let file = file.rsplit('/').next().unwrap_or(file);
        let name = ["", ".gz", ".xz", ".zst"]
            .iter()
            .find_map(|packed| file.strip_suffix(&format!(".ko{packed}")))?;
        Some(name.replace('-', "_"))
    };
    let mut all = BTreeSet::new();
    for (path, text) in image {
        let Some(rest) = of_kernel(path) else { continue };
        match text {
            Some(text) if rest == "modules.builtin" => all.extend(text.lines().filter_map(module)),
            _ => all.extend(module(&rest)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(files: &[(&str, Option<&str>)]) -> Image {
        files.iter().map(|(path, text)| ((*path).to_owned(), text.map(str::to_owned))).collect()
    }

    const MODULES: [(&str, Option<&str>); 3] = [
        ("usr/lib/modules/6.1/kernel/drivers/net/mlx5_core.ko", None),
        ("usr/lib/modules/6.1/kernel/mlx5_ib.ko.zst", None),
        (
            "usr/lib/modules/6.1/modules.builtin",
            Some("kernel/drivers/infiniband/ulp/ipoib/ib_ipoib.ko\n"),
        ),
    ];

    fn judged(image: &Image, config: &str) -> (Verdict, Vec<String>) {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(dir.path().join("etc/ibprov")).expect("made");
        std::fs::write(dir.path().join("etc/ibprov/ibprov.toml"), config).expect("written");
        let root = Root::copy_at(dir.path()).expect("a tree");
        let loaded = crate::config::load(&root, None);
        let report = judge("image", image, &loaded.config, &root);
        (report.verdict, report.findings.into_iter().map(|f| f.message).collect())
    }

    #[test]
    fn modules_are_found_wherever_they_are() {
        assert_eq!(judged(&image(&MODULES), ""), (Verdict::Ready, vec![]));
        for missing in 1..3 {
            let mut files = MODULES.to_vec();
            files.remove(missing);
            let (verdict, said) = judged(&image(&files), "");
            assert_eq!(verdict, Verdict::NotReady, "{said:?}");
            assert_eq!(said.len(), 1, "{said:?}");
        }
        let (verdict, said) = judged(&image(&[("init", None)]), "");
        assert_eq!(verdict, Verdict::NotReady);
        assert_eq!(said, ["the image has no kernel modules"]);
    }

    #[test]
    fn names_of_interfaces_are_those_of_the_configuration() {
        let config = "[[interface]]\nmatch.pci = \"0000:01:00.0\"\nname = \"fabric0\"\n";
        let (verdict, said) = judged(&image(&MODULES), config);
        assert_eq!(verdict, Verdict::Exceptions);
        assert!(said[0].contains("NAME=\"fabric0\""), "{said:?}");
        let rules = "ACTION!=\"remove\", SUBSYSTEM==\"net\", ATTR{type}==\"32\", SUBSYSTEMS==\"pci\", KERNELS==\"0000:01:00.0\", NAME=\"fabric0\"\n";
        let mut files = MODULES.to_vec();
        files.push(("usr/lib/udev/rules.d/61-ibprov-names.rules", Some(rules)));
        assert_eq!(judged(&image(&files), config).0, Verdict::Ready);
        // A name that the configuration does not give any more.
        assert_eq!(judged(&image(&files), "").0, Verdict::Exceptions);
    }
}
