//! Boots a scenario's systemd in a container and brings out what came of it.
//!
//! For what systemd decides from unit files: ordering, jobs, aliases. There
//! are no modules, no udev events and so no device units here. The container's
//! root is an overlay in a mount namespace of its own, which goes with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::bed::outcome::Outcome;
use crate::bed::scenario::Scenario;
use crate::bed::{limited, once, stage, tools, turns};

/// What mounts the root, prepares it and becomes systemd-nspawn: lower folders,
/// mount point, out folder, words of the command line, script or nothing.
///
/// systemd 258 and later do not boot on cgroup v1, beside which a host may have v2.
///
/// The script of `prepare.sh` is what an administrator does before a reboot: it
/// runs in the root with the container's own systemctl, which then only makes
/// and removes links.
const MOUNT_AND_BOOT: &str = r#"
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
version=$(find "$2/root/usr/lib" -name 'libsystemd-shared-*.so' | tr -cd '0-9\n' | tail -c 4)
if [ "${version:-0}" -ge 258 ]; then
    umount -l /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
[ -z "$5" ] || SYSTEMD_OFFLINE=1 chroot "$2/root" sh -u <"$5" >"$3/prepare" 2>&1
exec systemd-nspawn --quiet --directory "$2/root" --register=no --keep-unit --private-network \
    --link-journal=no --console=pipe --system-call-filter="fanotify_init fanotify_mark" \
    --bind="$3:/run/bed/out" --boot systemd.unit=multi-user.target $4
"#;

/// The outcome of the scenario `tests/boot/scenarios/<name>`, which boots once
/// for all tests of this process that ask for it.
pub(crate) fn boot(name: &str) -> Arc<Outcome> {
    once(name, || run(&Scenario::load(&scenarios(), name)?))
}

fn scenarios() -> PathBuf {
    tools::project().join("tests/boot/scenarios")
}

fn run(scenario: &Scenario) -> Result<Outcome, String> {
    let named = [Some(&scenario.name), scenario.settings.like.as_ref()];
    let prepare = named
        .into_iter()
        .flatten()
        .map(|name| scenarios().join(name).join("prepare.sh"))
        .find(|path| path.is_file())
        .unwrap_or_default();
    if !scenario.settings.hca.is_empty() {
        return Err("a container has no HCA: this scenario belongs in tests/vm".into());
    }
    let image = tools::image("root", &scenario.settings.flavour)?;
    let work = stage::folder("boot", &scenario.name)?;
    let (tree, out, mount) = (work.join("root"), work.join("out"), work.join("mount"));
    stage::lay(scenario, &tree)?;
    for folder in [&out, &mount] {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    if scenario.settings.linux {
        let to = tree.join("usr/lib/bed/linux");
        std::fs::create_dir_all(&to).map_err(|e| format!("{}: {e}", to.display()))?;
        let linux = tools::image("linux", "base")?;
        for name in ["vmlinux", "initrd"] {
            let copied = std::fs::copy(linux.join(name), to.join(name));
            copied.map_err(|e| format!("{name}: {e}"))?;
        }
    }
    let lower = format!("{}:{}", tree.display(), image.join("root").display());

    let limit = Duration::from_secs((scenario.settings.timeout + 20).into());
    // Containers of one caller would share their cgroup.
    let turn = turns::turn("nspawn")?;
    let mut container = Command::new("setpriv");
    container
        .args(["--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private"])
        .args(["sh", "-euc", MOUNT_AND_BOOT, "sh", &lower])
        .args([mount.as_os_str(), out.as_os_str()])
        .arg(&scenario.settings.cmdline)
        .arg(&prepare);
    let ended = limited::run(&mut container, limit, "", (limit, &|| true))
        .map_err(|e| format!("cannot run systemd-nspawn: {e}"))?;
    remove_cgroups();
    drop(turn);

    let console = ended.output;
    std::fs::write(work.join("console.log"), &console).map_err(|e| format!("console.log: {e}"))?;
    if !ended.status.success() {
        return Err(format!(
            "the container ended with {} ({} s allowed):\n{console}",
            ended.status,
            limit.as_secs()
        ));
    }
    Outcome::read(out, &console)
}

/// systemd-nspawn leaves the cgroups it made below its caller's. Those that
/// are not there, or not empty, are none of ours.
fn remove_cgroups() {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for line in own.lines() {
        let Some((controllers, path)) =
            line.split_once(':').and_then(|(_, rest)| rest.split_once(':'))
        else {
            continue;
        };
        let hierarchies: &[&str] = match controllers {
            "" => &["", "unified"],
            "name=systemd" => &["systemd"],
            _ => continue,
        };
        for hierarchy in hierarchies {
            let base =
                Path::new("/sys/fs/cgroup").join(hierarchy).join(path.trim_start_matches('/'));
            remove_empty(&base.join("payload"));
            remove_empty(&base.join("supervisor"));
        }
    }
}

fn remove_empty(folder: &Path) {
    let inner: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|e| e.path()).filter(|p| p.is_dir()).collect())
        .unwrap_or_default();
    inner.iter().for_each(|p| remove_empty(p));
    let _ = std::fs::remove_dir(folder);
}
