//! A scenario: a folder with `scenario.toml`, files laid over the guest's root
//! (`root/`) and a script run at the end of the boot (`run.sh`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};

/// One simulated HCA: a physical function behind a PCIe port of its own. The
/// first sits at 0000:01:00.0, the second at 0000:02:00.0, and so on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Hca {
    /// PCI vendor and device, as `lspci -n` prints them.
    pub(crate) id: String,
    /// PCI class, six hexadecimal digits.
    pub(crate) class: String,
    /// The simulated driver, `mlx5_core` or `mlx4_core`: whose knobs are set.
    pub(crate) driver: String,
    /// How many VFs the function can have.
    pub(crate) vfs: u32,
    /// Knobs of this function (see `tests/vm/hca/README.md`).
    pub(crate) knobs: BTreeMap<String, Value>,
    /// Knobs of each of its VFs.
    pub(crate) vf_knobs: BTreeMap<String, Value>,
}

impl Default for Hca {
    fn default() -> Self {
        Self {
            id: "15b3:101b".into(),
            class: "020700".into(),
            driver: "mlx5_core".into(),
            vfs: 0,
            knobs: BTreeMap::new(),
            vf_knobs: BTreeMap::new(),
        }
    }
}

/// Room for the registers of all cards of a scenario, MiB.
const CARD_REGISTERS: u32 = 64;

/// A card whose driver is the distribution's own, see `tests/vm/card/README.md`:
/// one physical function. The first sits at 0001:01:00.0, the second at
/// 0001:02:00.0, and so on.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Card {
    /// How many VFs the function can have.
    pub(crate) vfs: u32,
    /// Whether its port is an Ethernet port.
    pub(crate) eth: bool,
    /// Whether it is the next port of the card before it, `0001:01:00.1` after
    /// `0001:01:00.0`.
    pub(crate) same_card: bool,
    /// Knobs of this function.
    pub(crate) knobs: BTreeMap<String, Value>,
    /// Knobs of each of its VFs.
    pub(crate) vf_knobs: BTreeMap<String, Value>,
}

/// `scenario.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// Another scenario whose files, script and settings are taken over; the
    /// settings here and the files of this one win.
    pub(crate) like: Option<String>,
    /// What is installed in the guest: a file in `tests/vm/image/flavours/`.
    pub(crate) flavour: String,
    /// Whether ibprov is installed.
    pub(crate) agent: bool,
    /// Units enabled as `systemctl enable` does, in this order.
    pub(crate) enable: Vec<String>,
    /// Added to the kernel command line.
    pub(crate) cmdline: String,
    /// The script runs after this unit, which must be part of the boot.
    pub(crate) after: String,
    /// The guest's memory, MiB.
    pub(crate) memory: u32,
    /// Seconds until a boot that has not ended is given up, journal and all
    /// brought out; 20 s later the machine is killed.
    pub(crate) timeout: u32,
    /// An IOMMU, for vfio: QEMU's, or with cards groups that these make.
    pub(crate) iommu: bool,
    /// The initrd loads the cards' drivers and ib_ipoib, before udev runs.
    pub(crate) early: bool,
    /// The root file system is mounted by an initramfs that this tool builds, `dracut` or
    /// `initramfs-tools`, with ibprov's part and the scenario's files.
    pub(crate) initramfs: Option<String>,
    /// No other machine runs meanwhile: the processors' time is measured.
    pub(crate) alone: bool,
    /// The script reboots the machine, which keeps what was written, and is run in each boot;
    /// the timeout is that of one boot, and the machine has it `reboots` times more.
    pub(crate) reboots: u32,
    /// Instead of being installed, ibprov lies in `/usr/lib/bed` as two packages of
    /// different versions.
    pub(crate) packages: bool,
    /// Kernel and initrd of a guest with an agent, for libvirt, lie in
    /// `/usr/lib/bed/linux`.
    pub(crate) linux: bool,
    /// The simulated HCAs.
    pub(crate) hca: Vec<Hca>,
    /// The cards; a scenario has these or simulated HCAs, since one kernel has
    /// one `mlx5_core`.
    pub(crate) card: Vec<Card>,
    /// Modes of files that git cannot keep, path without leading slash to
    /// octal mode.
    pub(crate) modes: BTreeMap<String, String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            like: None,
            flavour: "base".into(),
            agent: true,
            enable: vec!["ibprov.service".into()],
            cmdline: String::new(),
            after: "multi-user.target".into(),
            memory: 1024,
            timeout: 90,
            iommu: false,
            early: false,
            initramfs: None,
            alone: false,
            reboots: 0,
            packages: false,
            linux: false,
            hca: Vec::new(),
            card: Vec::new(),
            modes: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// The bed, as the table of `tests/vm/README.md` has it.
    pub(crate) fn bed(&self) -> &'static str {
        match (self.hca.is_empty(), self.card.is_empty()) {
            (true, true) => "none",
            (false, _) => "hca",
            (true, false) => "card",
        }
    }
}

/// A scenario, ready to be booted.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// The folder's name.
    pub(crate) name: String,
    /// `scenario.toml`, with what it takes over.
    pub(crate) settings: Settings,
    /// Folders laid over the guest's root, in this order.
    pub(crate) roots: Vec<PathBuf>,
    /// The script.
    pub(crate) script: Option<PathBuf>,
    /// C programs for the guest, `NAME.c`.
    pub(crate) sources: Vec<PathBuf>,
}

impl Scenario {
    /// Reads the scenario `name` below `folder`.
    pub(crate) fn load(folder: &Path, name: &str) -> Result<Self, String> {
        let mut files = Files::default();
        let table = gather(folder, name, &mut files, 0)?;
        let settings: Settings =
            table.try_into().map_err(|e| format!("{name}/scenario.toml: {e}"))?;
        if !settings.hca.is_empty() && !settings.card.is_empty() {
            return Err(format!("{name}/scenario.toml: simulated HCAs and cards at once"));
        }
        let Files { roots, script, sources } = files;
        Ok(Self { name: name.into(), settings, roots, script, sources })
    }

    /// The PCI address of the `n`th HCA.
    pub(crate) fn address(n: usize) -> String {
        format!("0000:{:02x}:00.0", n + 1)
    }

    /// Memory that the kernel must not see, MiB: cards have their registers in it,
    /// and the firmware its tables at the end.
    pub(crate) fn card_memory(&self) -> u32 {
        if self.settings.card.is_empty() { 0 } else { CARD_REGISTERS + 8 }
    }

    /// Whether QEMU plays an IOMMU.
    pub(crate) fn has_qemu_iommu(&self) -> bool {
        self.settings.iommu && self.settings.card.is_empty()
    }

    /// The part of the kernel command line that makes the cards.
    pub(crate) fn card_cmdline(&self) -> String {
        if self.settings.card.is_empty() {
            return String::new();
        }
        // QEMU's q35 has at most 2816 MiB below the devices' addresses; of more
        // memory, 2048 MiB are there and the rest is above 4 GiB.
        let kernel = self.settings.memory;
        let all = kernel + self.card_memory();
        let hidden = if all <= 2816 { kernel } else { kernel - 2048 + 4096 };
        let (mut functions, mut rules) = (Vec::new(), Vec::new());
        let (mut n, mut function) = (0, 0);
        for card in &self.settings.card {
            (n, function) = if card.same_card { (n, function + 1) } else { (n + 1, 0) };
            let kind = if card.eth { ":eth" } else { "" };
            functions.push(format!("{n}.{function}:{}{kind}", card.vfs));
            let address = format!("0001:{n:02x}:00.{function}");
            for (who, knobs) in
                [(address.clone(), &card.knobs), (format!("{address}+vf"), &card.vf_knobs)]
            {
                rules.extend(knobs.iter().map(|(k, v)| format!("{who}/{k}={}", plain(v))));
            }
        }
        let mut words = vec![
            format!("mem={hidden}M"),
            format!("ibcard.memory={:#x},{:#x}", u64::from(hidden) << 20, CARD_REGISTERS << 20),
            format!("ibcard.pf={}", functions.join(",")),
        ];
        if self.settings.iommu {
            words.push("ibcard.iommu=1".to_owned());
        }
        if self.settings.early {
            words.push("bed.drivers=early".to_owned());
        }
        if !rules.is_empty() {
            words.push(format!("ibcard.set={}", rules.join(",")));
        }
        words.join(" ")
    }

    /// The part of the kernel command line that makes the simulated HCAs.
    pub(crate) fn hca_cmdline(&self) -> String {
        let mut map = Vec::new();
        let mut knobs: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (n, hca) in self.settings.hca.iter().enumerate() {
            let address = Self::address(n);
            map.push(format!("{address}={}:{}", hca.id, hca.class));
            let of = |who: &str, set: &BTreeMap<String, Value>| {
                set.iter()
                    .map(|(knob, value)| format!("{who}/{knob}={}", plain(value)))
                    .collect::<Vec<_>>()
            };
            let rules = knobs.entry(&hca.driver).or_default();
            rules.extend(of(&address, &hca.knobs));
            rules.extend(of(&format!("{address}+vf"), &hca.vf_knobs));
        }
        let mut words = Vec::new();
        if !map.is_empty() {
            words.push(format!("ibsim_pci.map={}", map.join(",")));
        }
        for (driver, rules) in knobs {
            if !rules.is_empty() {
                words.push(format!("{driver}.set={}", rules.join(",")));
            }
        }
        words.join(" ")
    }
}

/// What is found on the way from the scenario that another is like.
#[derive(Default)]
struct Files {
    roots: Vec<PathBuf>,
    script: Option<PathBuf>,
    sources: Vec<PathBuf>,
}

/// Settings of `name` over those of the one it is like; its files on the way.
fn gather(folder: &Path, name: &str, files: &mut Files, depth: u32) -> Result<Table, String> {
    let here = folder.join(name);
    let path = here.join("scenario.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let own: Table = text.parse().map_err(|e| format!("{}: {e}", path.display()))?;
    let mut table = match own.get("like").and_then(Value::as_str) {
        Some(_) if depth > 4 => return Err(format!("{}: `like` goes in a circle", path.display())),
        Some(other) => gather(folder, other, files, depth + 1)?,
        None => Table::new(),
    };
    // One kernel has one mlx5_core: a scenario's own kind of card replaces the other's.
    for (kind, other) in [("card", "hca"), ("hca", "card")] {
        if own.contains_key(kind) {
            table.remove(other);
        }
    }
    table.extend(own);
    if here.join("root").is_dir() {
        files.roots.push(here.join("root"));
    }
    if here.join("run.sh").is_file() {
        files.script = Some(here.join("run.sh"));
    }
    for entry in std::fs::read_dir(&here).map_err(|e| format!("{name}: {e}"))? {
        let path = entry.map_err(|e| format!("{name}: {e}"))?.path();
        files.sources.extend(path.extension().is_some_and(|e| e == "c").then_some(path));
    }
    Ok(table)
}

/// A value as it stands on a command line: strings without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
