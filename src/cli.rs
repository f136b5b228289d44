//! What can be typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::foreign::{openib_conf, operator_guids, sriov_vfs};
use crate::config::timespan;
use crate::names::{Colour, Membership, PKey, PciAddress, RdmaName, Rung, Target};

/// Boot-time provisioning of InfiniBand nodes.
#[derive(Debug, Parser)]
#[command(name = "ibprov", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// Flags that every verb takes.
    #[command(flatten)]
    pub common: Common,
}

const EXIT_CODES: &str = "Exit codes:
  0  all is as wanted
  1  something wanted did not happen (optional, deferred, or denied by the site)
  2  could not begin: bad usage or configuration
  3  something that is not optional is not ready";

/// Flags that every verb takes.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Read only this configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Look at the tree below DIR instead of /
    #[arg(long, global = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// How to print
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// When to colour text
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Colour::Auto)]
    pub color: Colour,
    /// Show more detail, and ibprov's debug messages
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs; carries "schema": 1.
    Json,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Give the VFs of a PF, or of all, their number, GUIDs, policy and driver
    Apply(ApplyArgs),
    /// Load the modules and wait until every expected port's netdev is named
    Boot(BootArgs),
    /// Say what is wrong with a boot, from this host or from logs
    Check(CheckArgs),
    /// Check or show the configuration, or print its schema
    Config {
        /// What to do with the configuration.
        #[command(subcommand)]
        verb: ConfigVerb,
    },
    /// Print another tool's configuration as ibprov's own
    Import {
        /// Whose.
        #[command(subcommand)]
        verb: ImportVerb,
    },
    /// Show what the VFs shall be, what would change, and what is wrong with the plan
    Plan(PlanArgs),
    /// Set one IPoIB interface up: its settings, and who brings it up
    Iface(IfaceArgs),
    /// Show every HCA, port, netdev and VF with its readiness ladder
    Status(StatusArgs),
    /// Wait until ports are Active, their netdevs have carrier and, if asked, an address
    WaitOnline(WaitOnlineArgs),
    /// Start the configured virtual machines when their VFs are right
    Guests(GuestsArgs),
    /// The child that does what may hang; not for people
    #[command(name = crate::workers::child::VERB, hide = true)]
    Worker,
    /// Give the RDMA device of a function its name; run by ibprov's own rules of udev
    #[command(hide = true)]
    NameRdma {
        /// The function
        pci: PciAddress,
        /// The name
        name: RdmaName,
    },
}

/// What `guests` takes.
#[derive(Debug, Clone, Args)]
pub struct GuestsArgs {
    /// Show each guest, its VFs and why it is not up; start nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub status: bool,
    /// Say which guests would be started, in which order; start nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What `wait-online` takes.
#[derive(Debug, Clone, Args)]
pub struct WaitOnlineArgs {
    /// Only these: ib0, ib0.8001, mlx5_0, mlx5_0/1, 0000:4b:00.0 or a port GUID [default: all that are expected]
    #[arg(value_name = "PORT")]
    pub ports: Vec<Target>,
    /// How far each has to come: rdma, netdev, named, configured, link or active [default: wait-online.state]
    #[arg(long, value_name = "STATE", value_parser = online_state)]
    pub state: Option<Rung>,
    /// Each netdev must have an address of global scope too
    #[arg(long)]
    pub address: bool,
    /// How long to wait, like 90s or 2min [default: wait-online.timeout]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub timeout: Option<Duration>,
}

fn online_state(text: &str) -> Result<Rung, String> {
    Rung::to_wait_for(text)
        .ok_or_else(|| format!("want one of {}", Rung::words_to_wait_for().join(", ")))
}

fn boot_number(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number <= 0);
    number.ok_or_else(|| "expected 0 for the last boot, -1 for the one before it, ...".to_owned())
}

fn span(text: &str) -> Result<Duration, String> {
    timespan::parse(text).ok_or_else(|| "write it like 240s, 4min or 2min 30s".to_owned())
}

/// What `apply` takes.
#[derive(Debug, Clone, Args)]
pub struct ApplyArgs {
    /// Only this PF: its PCI address, or the name of its RDMA device
    #[arg(value_name = "PF")]
    pub pf: Option<PfArg>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Only put back what a run that was killed has left: automatic probing
    /// and driver_override
    #[arg(long, conflicts_with = "dry_run")]
    pub undo: bool,
    /// Milliseconds until it gives up, instead of boot.adapter-timeout
    #[arg(long, hide = true)]
    pub timeout_msec: Option<u64>,
}

/// What `status` takes.
#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// Show the GID table of each port: index, type and address
    #[arg(long)]
    pub gids: bool,
}

/// What `iface` takes.
#[derive(Debug, Clone, Args)]
pub struct IfaceArgs {
    /// The interface
    #[arg(value_name = "IF", required_unless_present = "device")]
    pub name: Option<String>,
    /// The interface by its device's path below /sys, as its unit has it
    #[arg(long, value_name = "PATH", conflicts_with = "name")]
    pub device: Option<PathBuf>,
    /// Explain what would be done and who would bring it up, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Only set it; leave bringing it up to others
    #[arg(long)]
    pub settings_only: bool,
    /// Ask systemd through systemctl, as before the system bus is up
    #[arg(long)]
    pub no_bus: bool,
    /// For the unit, when it has stopped: start it again if the interface has
    /// come back meanwhile
    #[arg(long, value_name = "UNIT", hide = true, requires = "device")]
    pub stopped: Option<String>,
}

/// What `boot` takes.
#[derive(Debug, Clone, Args)]
pub struct BootArgs {
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What `check` takes.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Read these instead of the host: logs, dumps of tools, journals, tar
    /// archives, directories of those; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub log: Vec<PathBuf>,
    /// Judge this boot only: 0 is the last, -1 the one before
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = boot_number)]
    pub boot: Option<i32>,
    /// Draw the boot as a picture, to be opened in a browser
    #[arg(long, value_name = "FILE", conflicts_with = "explain")]
    pub svg: Option<PathBuf>,
    /// Draw the boot below the findings, for a terminal of 80 columns
    #[arg(long, conflicts_with = "explain")]
    pub timeline: bool,
    /// Explain a diagnosis, or list them all
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "", conflicts_with = "log")]
    pub explain: Option<String>,
}

/// What `plan` takes.
#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    /// Show the VFs that are as wanted, too
    #[arg(long)]
    pub all: bool,
    /// Judge the plans of many hosts together: DIR holds a file for each
    #[arg(long, value_name = "DIR", conflicts_with_all = ["writes", "partitions", "all"])]
    pub fleet: Option<PathBuf>,
    /// Write the GUIDs to the file of pins, so that they never change by themselves
    #[arg(long, conflicts_with = "partitions", group = "writes")]
    pub pin: bool,
    /// With --pin: let what the configuration gives now replace what is pinned
    #[arg(long, requires = "pin")]
    pub replace: bool,
    /// Remove the pins, before an image of this host is captured for others
    #[arg(long, conflicts_with = "partitions", group = "writes")]
    pub seal: bool,
    /// With --pin or --seal: print what would be written or removed, and do nothing
    #[arg(long, requires = "writes")]
    pub dry_run: bool,
    /// Print lines for opensm's partitions.conf with the port GUIDs of the VFs
    #[arg(long)]
    pub partitions: bool,
    /// With --partitions: the partition's P_Key
    #[arg(long, value_name = "P_KEY", default_value = "0xffff", requires = "partitions")]
    pub pkey: PKey,
    /// With --partitions: how the ports are members
    #[arg(long, value_enum, default_value_t = Membership::Full, requires = "partitions")]
    pub membership: Membership,
}

/// Which PF, as it can be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PfArg {
    /// By PCI address, or by a path of sysfs that ends in one, as systemd
    /// gives it.
    Pci(PciAddress),
    /// By the name of its RDMA device.
    Rdma(RdmaName),
}

impl std::str::FromStr for PfArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let last = text.rsplit('/').next().unwrap_or(text);
        if let Ok(pci) = PciAddress::typed(last) {
            return Ok(Self::Pci(pci));
        }
        last.parse().map(Self::Rdma).map_err(|_| {
            format!("{text:?} is neither a PCI address (0000:4b:00.0) nor an RDMA device (mlx5_0)")
        })
    }
}

/// What to do with the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Subcommand)]
pub enum ConfigVerb {
    /// Say everything that is wrong with it, with file, line and column
    Check,
    /// Print the effective values, each with the place it came from
    Show {
        /// Only what is not the default
        #[arg(long)]
        changed: bool,
    },
    /// Print the JSON schema of ibprov.toml, for editors
    Schema,
}

/// Whose configuration.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub enum ImportVerb {
    /// openib.conf of MLNX_OFED and DOCA
    OpenibConf {
        /// The file
        #[arg(default_value = openib_conf::PATH)]
        file: String,
    },
    /// sriov-vfs of rdma-core before version 32; its VFs must be there
    SriovVfs {
        /// The file
        #[arg(default_value = sriov_vfs::PATH)]
        file: String,
    },
    /// The GUIDs of the SR-IOV network operator for Kubernetes
    OperatorGuids {
        /// The file
        #[arg(default_value = operator_guids::PATH)]
        file: String,
    },
}
