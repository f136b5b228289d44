//! The files of a scenario put together as one tree: the guest's own helpers,
//! the agent as `make install` lays it out, the scenario's files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::scenario::Scenario;
use super::tools::{project, run};

/// Where a scenario's files of this run lie: below the build folder.
pub(crate) fn folder(lane: &str, scenario: &str) -> Result<PathBuf, String> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(lane).join(scenario);
    match std::fs::remove_dir_all(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {e}", path.display()));
        }
        _ => {}
    }
    std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

/// Lays everything the guest gets over its root into `tree`.
pub(crate) fn lay(scenario: &Scenario, tree: &Path) -> Result<(), String> {
    std::fs::create_dir_all(tree).map_err(|e| format!("{}: {e}", tree.display()))?;
    copy(&project().join("tests/bed/guest"), tree)?;
    let selftest = project().join("tests/vm/hca/selftest.sh");
    std::fs::copy(&selftest, tree.join("usr/lib/bed/hca-selftest.sh"))
        .map_err(|e| format!("{}: {e}", selftest.display()))?;
    write_units(scenario, tree).map_err(|e| format!("{}: {e}", tree.display()))?;
    if scenario.settings.packages {
        pack(&tree.join("usr/lib/bed"))?;
    } else if scenario.settings.agent {
        copy(installed()?, tree)?;
    }
    if scenario.settings.reboots > 0 {
        std::fs::write(tree.join("usr/lib/bed/reboots"), "")
            .map_err(|e| format!("usr/lib/bed/reboots: {e}"))?;
    }
    for root in &scenario.roots {
        copy(root, tree)?;
    }
    // The guest's C library may be an older one than the host's.
    for source in &scenario.sources {
        let name = source.file_stem().unwrap_or_default();
        let to = tree.join("usr/lib/bed").join(name);
        let mut args: Vec<PathBuf> = ["-O1", "-Wall", "-static", "-o"].map(PathBuf::from).to_vec();
        args.extend([to, source.clone()]);
        run("gcc", &args)?;
    }
    // These are links to /usr in the guest; a folder would replace the link.
    for name in ["bin", "sbin", "lib", "lib64"] {
        if tree.join(name).exists() {
            return Err(format!(
                "{}: a file in /{name} would hide the guest's own; it belongs in /usr/{name}",
                scenario.name
            ));
        }
    }
    for (path, mode) in &scenario.settings.modes {
        let mode = u32::from_str_radix(mode, 8).map_err(|e| format!("mode {mode}: {e}"))?;
        std::fs::set_permissions(tree.join(path), std::fs::Permissions::from_mode(mode))
            .map_err(|e| format!("{path}: {e}"))?;
    }
    if let Some(tool) = &scenario.settings.initramfs {
        let script = project().join("tests/vm/image/initramfs.sh");
        let image = tree.join("usr/lib/bed/initramfs");
        let words = [Path::new(tool), tree, &image].map(Path::to_path_buf);
        run("sh", &[vec![script], words.to_vec()].concat())?;
    }
    for unit in scenario
        .settings
        .enable
        .iter()
        .filter(|u| scenario.settings.agent || !u.starts_with("ibprov"))
    {
        run("systemctl", &[&format!("--root={}", tree.display()), "enable", unit])?;
    }
    Ok(())
}

/// The agent, installed once per test process as a packager would; `IBPROV_RELEASE`
/// names the program if it is not the one that is built here.
pub(crate) fn installed() -> Result<&'static Path, String> {
    static TREE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let tree = TREE.get_or_init(|| {
        let tree = folder("agent", &std::process::id().to_string())?;
        let project = project().display().to_string();
        let destdir = format!("DESTDIR={}", tree.display());
        let program = match std::env::var("IBPROV_RELEASE") {
            Ok(built) => format!("binary={built}"),
            Err(_) => "release".into(),
        };
        run("make", &["-s", "-C", &project, &program, "install", &destdir, "PREFIX=/usr"])?;
        Ok(tree)
    });
    tree.as_deref().map_err(Clone::clone)
}

/// `ibprov_1.deb` and `ibprov_2.deb` in `folder`: what is installed, and the scripts of the
/// Debian package.
fn pack(folder: &Path) -> Result<(), String> {
    let sources = project().join("packaging/debian");
    for version in ["1", "2"] {
        let tree = folder.join("package");
        let control = tree.join("DEBIAN");
        let failed = |e: std::io::Error| format!("{}: {e}", control.display());
        std::fs::create_dir_all(&control).map_err(failed)?;
        copy(installed()?, &tree)?;
        let text = format!(
            "Package: ibprov\nVersion: {version}\nArchitecture: all\n\
             Maintainer: ibprov maintainers <maintainers@ibprov.example>\n\
             Description: ibprov, for this test\n"
        );
        std::fs::write(control.join("control"), text).map_err(failed)?;
        for name in ["postinst", "prerm", "postrm"] {
            let script = std::fs::read_to_string(sources.join(format!("ibprov.{name}")));
            // debhelper has nothing to put there.
            let script = script.map_err(failed)?.replace("#DEBHELPER#", "");
            std::fs::write(control.join(name), script).map_err(failed)?;
            std::fs::set_permissions(control.join(name), std::fs::Permissions::from_mode(0o755))
                .map_err(failed)?;
        }
        let deb = folder.join(format!("ibprov_{version}.deb"));
        run(
            "dpkg-deb",
            &[
                "--root-owner-group".as_ref(),
                "-Znone".as_ref(),
                "-b".as_ref(),
                tree.as_os_str(),
                deb.as_os_str(),
            ],
        )?;
        std::fs::remove_dir_all(&tree).map_err(failed)?;
    }
    Ok(())
}

/// The units of the guest that differ from scenario to scenario.
fn write_units(scenario: &Scenario, tree: &Path) -> std::io::Result<()> {
    let units = tree.join("usr/lib/systemd/system");
    std::fs::create_dir_all(units.join("sysinit.target.wants"))?;
    std::fs::create_dir_all(units.join("multi-user.target.wants"))?;
    std::fs::write(
        units.join("bed-payload.service"),
        format!(
            "[Unit]\nDescription=The scenario's script\nDefaultDependencies=no\nAfter={}\n\n\
             [Service]\nType=exec\nExecStart=/usr/lib/bed/payload\n",
            scenario.settings.after
        ),
    )?;
    std::fs::write(
        units.join("bed-watchdog.timer"),
        format!(
            "[Unit]\nDescription=Give up on a boot that does not end\nDefaultDependencies=no\n\n\
             [Timer]\nOnActiveSec={}\nAccuracySec=1\n",
            scenario.settings.timeout
        ),
    )?;
    std::os::unix::fs::symlink(
        "../bed-payload.service",
        units.join("multi-user.target.wants/bed-payload.service"),
    )?;
    std::os::unix::fs::symlink(
        "../bed-watchdog.timer",
        units.join("sysinit.target.wants/bed-watchdog.timer"),
    )?;
    if let Some(script) = &scenario.script {
        std::fs::copy(script, tree.join("usr/lib/bed/run.sh"))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    run("cp", &["-a".as_ref(), from.join(".").as_os_str(), to.as_os_str()]).map(drop)
}
