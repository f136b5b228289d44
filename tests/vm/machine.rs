//! Boots a scenario in QEMU and brings out what came of it.
//!
//! Files go in as a tar on one disk, which the initrd unpacks over the root
//! before systemd starts; results come out as a tar on another. No shared
//! folders, no network.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crate::bed::outcome::Outcome;
use crate::bed::scenario::Scenario;
use crate::bed::{limited, once, stage, tools, turns};

/// How long a machine has after its own watchdog, which sends out what is known of a boot
/// that does not end, seconds.
const AFTER_WATCHDOG: u32 = 90;

/// What the initrd writes to the console first (`tests/vm/image/initrd-init`).
const STARTED: &str = "initrd: the kernel has started";

/// How long that may take. It takes some seconds, on a busy host three times as many.
const KERNEL: Duration = Duration::from_secs(120);

/// The outcome of the scenario `tests/vm/scenarios/<name>`, which boots once
/// for all tests of this process that ask for it.
pub(crate) fn boot(name: &str) -> Arc<Outcome> {
    once(name, || {
        let scenario = Scenario::load(&tools::project().join("tests/vm/scenarios"), name)?;
        run(&scenario, name)
    })
}

/// What the script of the scenario printed in its line `name: ...`.
pub(crate) fn scene(scenario: &str, name: &str) -> String {
    let guest = boot(scenario);
    guest.assert_success();
    let text = guest.stdout();
    let line = text.lines().find_map(|l| l.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("{scenario}: no line {name:?} in:\n{text}")).to_owned()
}

/// Boots `scenario`; its files and results lie in a folder named `label`.
pub(crate) fn run(scenario: &Scenario, label: &str) -> Result<Outcome, String> {
    let image = tools::image("vm", &scenario.settings.flavour)?;
    let work = stage::folder("vm", label)?;
    let (tree, serial, out) = (work.join("root"), work.join("serial.log"), work.join("out"));
    stage::lay(scenario, &tree)?;
    let disk_in = work.join("in.tar");
    tools::run(
        "tar",
        &[
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mode=go-w",
            "-C",
            &text(&tree),
            "-cf",
            &text(&disk_in),
            ".",
        ],
    )?;
    let disk_out = work.join("out.raw");
    File::create(&disk_out)
        .and_then(|f| f.set_len(128 << 20))
        .map_err(|e| format!("{}: {e}", disk_out.display()))?;

    let boots = scenario.settings.reboots + 1;
    let limit = Duration::from_secs((scenario.settings.timeout * boots + AFTER_WATCHDOG).into());
    let turn = turns::machine(scenario.settings.alone)?;
    let boot = || {
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
        qemu.args(arguments(scenario, &image, &serial, &disk_in, &disk_out));
        qemu.args(["-qmp", "stdio"]);
        let console =
            || String::from_utf8_lossy(&std::fs::read(&serial).unwrap_or_default()).into_owned();
        let has_begun = || console().contains(STARTED);
        let ended = limited::run(&mut qemu, limit, &question(), (KERNEL, &has_begun));
        ended.map(|ended| (ended, console()))
    };
    let failed = |e: std::io::Error| format!("cannot run QEMU: {e}");
    let (mut ended, mut console) = boot().map_err(failed)?;
    // A machine has been seen that wrote nothing to its console for as long as it was let, and one
    // in which a processor stood still as the first program started. What hangs before the initrd
    // is the emulator, or its kernel: nothing that is tested has come into the machine yet. A
    // lockup that what is tested makes is there in the second boot, too.
    let stood_still = !console.contains(STARTED) || console.contains("BUG: soft lockup");
    if ended.late && stood_still {
        let seen = answers(&ended.output);
        // Past the test harness, which shows nothing of a test that passes.
        writeln!(std::io::stderr(), "{label}: booted again: its kernel stood still:\n{seen}")
            .map_err(failed)?;
        (ended, console) = boot().map_err(failed)?;
    }
    drop(turn);

    let tail = console.get(console.len().saturating_sub(4000)..).unwrap_or(&console);
    if ended.late {
        return Err(format!(
            "the machine has not ended within {} s, and its own watchdog is earlier; QEMU:\n{}\nconsole:\n{tail}",
            limit.as_secs(),
            answers(&ended.output)
        ));
    }
    if !ended.status.success() {
        return Err(format!(
            "QEMU ended with {}: {}\nconsole:\n{tail}",
            ended.status,
            answers(&ended.output)
        ));
    }
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    tools::run("tar", &["-C", &text(&out), "-xf", &text(&disk_out)])?;
    std::fs::remove_file(&disk_out).map_err(|e| format!("{}: {e}", disk_out.display()))?;
    Outcome::read(out, &console)
}

/// What QEMU is asked about a machine that does not end, in its machine protocol: whether it
/// runs, and the registers of its processors.
fn question() -> String {
    let ask = |command: &str| {
        let arguments = serde_json::json!({ "command-line": command });
        let ask = serde_json::json!({ "execute": "human-monitor-command", "arguments": arguments });
        format!("{ask}\n")
    };
    let begin = serde_json::json!({ "execute": "qmp_capabilities" });
    format!("{begin}\n{}{}", ask("info status"), ask("info registers -a"))
}

/// The text in what QEMU answered; of the registers those that say where a processor is.
fn answers(output: &str) -> String {
    let tells = |line: &&str| {
        let registers = ["VM status", "CPU#", "RIP=", "CS =", "CR2="];
        registers.iter().any(|register| line.contains(register))
    };
    let answer = |line: &str| match serde_json::from_str::<serde_json::Value>(line) {
        Ok(json) => json.get("return").and_then(|said| said.as_str()).map(|text| {
            text.lines().filter(tells).map(|line| format!("{}\n", line.trim_end())).collect()
        }),
        Err(_) => Some(format!("{line}\n")),
    };
    output.lines().filter_map(answer).collect::<Vec<String>>().concat()
}

/// Ticks of the time stamp counter in a millisecond: an emulated machine has that of its host.
/// 0, with which the kernel measures it, where the host has none.
static TSC_KHZ: LazyLock<u128> = LazyLock::new(|| {
    let (begin, first) = ticks();
    std::thread::sleep(Duration::from_millis(100));
    let (end, last) = ticks();
    u128::from(last - first) * 1000 / (end - begin).as_micros()
});

/// The counter and the time. Of many looks the quickest: this process may be held up in one.
fn ticks() -> (Instant, u64) {
    let look = || {
        let at = Instant::now();
        let ticks = rdtsc();
        (at.elapsed(), at, ticks)
    };
    let (_, at, ticks) = (0..100).map(|_| look()).min().unwrap_or_else(look);
    (at, ticks)
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the standard library has no other way to the counter")]
fn rdtsc() -> u64 {
    // SAFETY: each x86-64 processor has the counter, and Linux lets every process read it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn rdtsc() -> u64 {
    0
}

/// QEMU's command line.
fn arguments(
    scenario: &Scenario,
    image: &Path,
    serial: &Path,
    disk_in: &Path,
    disk_out: &Path,
) -> Vec<String> {
    let settings = &scenario.settings;
    let mut args: Vec<String> = Vec::new();
    let mut arg = |words: &[&str]| args.extend(words.iter().map(|&w| w.to_owned()));
    let iommu = if scenario.has_qemu_iommu() { "intel_iommu=on iommu=pt" } else { "" };
    let cmdline = format!(
        // Unpacking messages and mitigations cost seconds under emulation, and so do
        // the string instructions by which the kernel likes to copy and clear pages
        // (bit 112: rep_good; erms is taken from the processor below). Programs at random
        // addresses, as position-independent ones are, ibprov and the system's own alike,
        // would be translated anew each time they are started.
        // The kernel's test of the timer panics on a host that is busy. QEMU's processors have
        // one time stamp counter, which the kernel does not know: it would ask an emulated
        // device, and each program the kernel, at every look at the clock. A machine whose
        // memory is at its end is of no use: it would wait for what was killed. On a busy host
        // the kernel measures a counter that is up to four times as fast, and so is its clock.
        "console=ttyS0 quiet loglevel=3 systemd.show_status=0 mitigations=off clearcpuid=112 norandmaps no_timer_check tsc=reliable tsc_early_khz={} panic=-1 \
         sysctl.vm.panic_on_oom=1 \
         systemd.unit=multi-user.target {iommu} {} {} {}",
        *TSC_KHZ,
        scenario.hca_cmdline(),
        scenario.card_cmdline(),
        settings.cmdline
    );

    arg(&["-nodefaults", "-no-user-config", "-display", "none", "-nic", "none"]);
    if settings.reboots == 0 {
        arg(&["-no-reboot"]);
    }
    // microvm has no SR-IOV; KVM is not taken even where it is there, so that
    // times mean the same everywhere.
    let machine = if scenario.has_qemu_iommu() { "q35,kernel-irqchip=split" } else { "q35" };
    arg(&[
        "-machine",
        machine,
        "-accel",
        "tcg,thread=multi,tb-size=512",
        "-cpu",
        "max,-erms,-la57",
        "-smp",
        "2",
    ]);
    // By which a machine is told from others; without it, it has none.
    arg(&["-uuid", "9f3c0a52-6d1e-4b8f-8c27-51d0e2a7b634"]);
    arg(&["-m", &(settings.memory + scenario.card_memory()).to_string()]);
    if scenario.has_qemu_iommu() {
        arg(&["-device", "intel-iommu,intremap=off"]);
    }
    arg(&[
        "-kernel",
        &text(&image.join("vmlinux")),
        "-initrd",
        &text(&image.join("initrd")),
        "-append",
        &cmdline,
    ]);
    arg(&[
        "-chardev",
        &format!("file,id=serial,path={}", serial.display()),
        "-serial",
        "chardev:serial",
    ]);
    for (name, file, how) in [
        ("root", &image.join("root.img"), "snapshot=on"),
        ("in", &disk_in.to_path_buf(), "readonly=on"),
        ("out", &disk_out.to_path_buf(), "cache=unsafe"),
    ] {
        arg(&["-drive", &format!("if=none,id={name},format=raw,file={},{how}", file.display())]);
        arg(&["-device", &format!("virtio-blk-pci,drive={name},serial={name}")]);
    }
    for (n, hca) in settings.hca.iter().enumerate() {
        let n = n + 1;
        arg(&[
            "-device",
            &format!(
                "pcie-root-port,id=port{n},bus=pcie.0,addr={:x}.0,slot={n},chassis={n}",
                0x0f + n
            ),
        ]);
        arg(&["-device", &format!("nvme-subsys,id=subsys{n},nqn=hca{n}")]);
        let function = format!("nvme,id=hca{n},serial=hca{n},subsys=subsys{n},bus=port{n}");
        let function = match hca.vfs {
            0 => function,
            // The numbers QEMU's nvme wants for a given number of VFs.
            vfs => format!(
                "{function},sriov_max_vfs={vfs},sriov_vq_flexible={},max_ioqpairs={},sriov_vi_flexible={vfs},msix_qsize={}",
                2 * vfs,
                2 * vfs + 2,
                vfs + 1
            ),
        };
        arg(&["-device", &function]);
    }
    args
}

fn text(path: &Path) -> String {
    PathBuf::from(path).display().to_string()
}
