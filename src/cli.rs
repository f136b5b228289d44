//! What can be typed.

use std::env::consts;
use std::ffi::OsString;
use std::net::IpAddr;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use clap::{
    ArgMatches, Args, Command, CommandFactory as _, FromArgMatches, Parser, Subcommand, ValueEnum,
    value_parser,
};

use crate::config::foreign::{mlx4_conf, openib_conf, operator_guids, rdma_conf, sriov_vfs};
use crate::config::timespan::{self, TimeSpan};
use crate::model::opensm::OpensmFile;
use crate::names::{
    BadText, Colour, GidKind, GroupMtu, GroupRate, IfName, Membership, NetnsMode, PKey, PciAddress,
    PortNumber, PortType, RdmaName, Resource, Rung, Target, Targets, Words,
};

/// Boot-time provisioning of InfiniBand nodes.
#[derive(Debug, Parser)]
#[command(
    name = "ibprov",
    version = version(),
    max_term_width = 100,
    help_template = HELP,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// Flags that every verb takes.
    #[command(flatten)]
    pub common: Common,
}

/// What ibprov's own units and rules of udev run, and nobody types: apart from [`Cli`], so
/// that no help and no suggestion has them.
#[derive(Debug, Parser)]
#[command(name = "ibprov")]
pub enum Internal {
    /// The child that does what may hang.
    #[command(name = crate::workers::child::VERB)]
    Worker {
        /// The PF whose run has started it.
        pf: Option<PciAddress>,
        /// What it queries, of one that who only looks has started.
        #[arg(long, conflicts_with = "pf")]
        queries: Option<Resource>,
    },
    /// Set the types of ports of a ConnectX-3.
    SetPortType {
        /// The function.
        pci: PciAddress,
        /// Set them although a netdev of the function is in use.
        #[arg(long)]
        force: bool,
        /// Each port, and its type: `2=eth`.
        #[arg(value_parser = port_and_type)]
        types: Vec<(PortNumber, PortType)>,
    },
    /// Whether what udev starts may act: not in a boot in which ibprov.service has not begun.
    MayAct {
        /// The unit that is to act.
        unit: String,
    },
    /// Create a soft RoCE device.
    CreateRxe {
        /// Its name.
        name: RdmaName,
        /// The netdev that it uses.
        netdev: IfName,
    },
    /// Give the soft RoCE device of a netdev its name again.
    NameRxe {
        /// Its name.
        name: RdmaName,
        /// The netdev that it uses.
        netdev: IfName,
    },
    /// Set whether RDMA devices are shared by all network namespaces.
    SetNetnsMode {
        /// What is set: exclusive or shared.
        #[arg(value_parser = word::<NetnsMode>)]
        mode: NetnsMode,
    },
    /// Give the RDMA device of a function its name.
    NameRdma {
        /// Not while processes or clients in the kernel use it.
        #[arg(long)]
        unless_used: bool,
        /// The function.
        pci: PciAddress,
        /// The name.
        name: RdmaName,
    },
}

impl Internal {
    /// What `arguments` of the program ask for, if it is one of these.
    pub fn of(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let verb = arguments.get(1)?.to_str()?;
        let is_one = Self::command().get_subcommands().any(|own| own.get_name() == verb);
        is_one.then(|| Self::parse_from(arguments))
    }
}

/// The version, with the commit that it was built from where the build says so
/// (IBPROV_COMMIT, see Makefile), and the machine that it was built for.
fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let number = env!("CARGO_PKG_VERSION");
        let commit = option_env!("IBPROV_COMMIT").filter(|commit| !commit.is_empty());
        let commit = commit.map(|commit| format!("commit {commit}, ")).unwrap_or_default();
        let library = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
        format!("{number} ({commit}{}-{}-{library})", consts::ARCH, consts::OS)
    })
}

/// The first screen, by what somebody wants to do. A test holds that it has each verb.
const HELP: &str = "\
{about}

{usage-heading} {usage}

State of the node:
  status       Show the verdict on the node, and a line for each port
  check        Diagnose a boot, on this host or from log files
  collect      Write an archive that check reads, to be mailed
  wait-online  Wait until ports are online: link up, Active, netdev with carrier
  metrics      Print the state of the node for Prometheus
  health       Print the verdict in one line, for a health checker
  gid          Print the index of a GID of a port
  holders      List what keeps an HCA or its kernel modules busy

VFs:
  plan         Show planned changes to VFs, and errors in the plan
  apply        Create and configure the VFs of all PFs, or of one
  guests       Start the configured virtual machines when their VFs are ready

Boot (run by ibprov's units):
  boot         Load the modules, and wait until every expected port is named
  iface        Configure one IPoIB interface and bring it up

Configuration:
  config       Check, show or generate the configuration
  consumers    List the units that use InfiniBand at boot, or order them
  opensm       Check opensm's files, or run the subnet manager of a port
  firmware     Show or set settings in the firmware of adapters
  migrate      Hand the node over from openibd and its scripts, or back
  import       Convert another tool's configuration
  completions  Print completions for a shell

Options:
{options}

Examples:
  ibprov status                   what is wrong with this node, and what to do
  ibprov boot --dry-run           what boot would do
  ibprov check --log messages     why a boot failed, from its log
  ibprov plan; ibprov apply       VFs as the configuration plans them

Exit codes: 0 as expected; 1 with exceptions, or something would change; 2 could
not begin; 3 not ready, or it would fail. `ibprov VERB --help` has those of each
verb.
Manual: ibprov(8), ibprov-VERB(8), ibprov.toml(5)
";

/// Flags that every verb takes.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Read only this configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Look at the tree below DIR instead of /
    #[arg(long, global = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// How to print: text or json
    #[arg(short = 'o', long, global = true, value_enum, hide_possible_values = true, default_value_t = Format::Text)]
    pub format: Format,
    /// Colour: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        hide_possible_values = true,
        default_value_t = Colour::Auto
    )]
    pub color: Colour,
    /// Show more detail, and ibprov's debug messages
    #[arg(short, long, global = true, overrides_with = "verbose")]
    pub verbose: bool,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs: a report, as ibprov.json(7) describes it.
    Json,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Create and configure the VFs of all PFs, or of one
    #[command(after_help = "\
Exit codes: 0 all VFs as planned; 1 some are in use and were not changed, or
with --dry-run something would be done; 2 could not begin; 3 VFs are not as
planned, or a plan has errors.

Examples:
  ibprov apply --dry-run       the steps, in their order
  ibprov apply 4b:00.0         the VFs of one PF")]
    Apply(Lazy<ApplyArgs>),
    /// Load the modules, and wait until every expected port is named
    #[command(after_help = "\
Exit codes: 0 all expected ports are ready; 1 the missing ones are optional, in
use or denied by the administrator, or with --dry-run something would be done; 2
could not begin; 3 not ready, or with --dry-run a plan of VFs has errors.

Examples:
  ibprov boot --dry-run        all that boot would do, in order
  systemctl start ibprov       as at boot")]
    Boot(Lazy<BootArgs>),
    /// Diagnose a boot, on this host or from log files
    #[command(after_help = "\
Exit codes: 0 healthy, or nothing is known to be wrong; 1 degraded, failed or
unexplained, with --strict also unknown; 2 nothing could be read, or what is
expected is not known; 3 this host is not ready, as `ibprov status` has it.

Examples:
  ibprov check                            this boot of this host
  ibprov check --boot -1                  the boot before
  ibprov check --log messages dmesg.txt   files of another host
  ibprov check --explain ordering-cycle   what the code of a finding means")]
    Check(Lazy<CheckArgs>),
    /// Write an archive that check reads, to be mailed
    #[command(after_help = "\
Exit codes: 0 the archive is written; 1 the archive is written, and something
could not be read; 2 the archive cannot be written.

Examples:
  ibprov collect --anonymize              names and addresses are replaced
  ibprov check --log ibprov-collect.tar.gz   what check says on the host")]
    Collect(Lazy<CollectArgs>),
    /// List the units that use InfiniBand at boot, or order them
    #[command(after_help = "\
Exit codes: 0 each unit comes after the ports, or the drop-ins were removed; 1 a
unit does not, or something would change; 2 could not begin; 3 a drop-in could
not be written.

Examples:
  ibprov consumers                      mounts and services, with their order
  ibprov consumers --install --dry-run  the drop-ins that are missing
  ibprov consumers --install            write them")]
    Consumers(Lazy<ConsumersArgs>),
    /// Check, show or generate the configuration
    #[command(
        after_help = "Exit codes: 0 the configuration is valid; 2 it has errors. Of generate: 1 a port\nis not active, and a comment."
    )]
    Config {
        /// What to do with the configuration.
        #[command(subcommand)]
        verb: ConfigVerb,
    },
    /// Show or set settings in the firmware of adapters
    #[command(after_help = "\
Exit codes: 0 all as configured, or none is configured; 1 something is to be
set, is not effective yet, or is not supported; 2 could not begin; 3 an adapter
does not answer, or a setting was not set.

A new setting takes effect when the adapter is reset: at a reboot, or a power
cycle. firmware resets and reboots nothing.

Examples:
  ibprov firmware              what the adapters have now and at the next boot
  ibprov firmware --apply      write what differs from [[firmware]]")]
    Firmware(Lazy<FirmwareArgs>),
    /// Print the index of a GID of a port
    #[command(after_help = "\
Exit codes: 0 the index is printed; 2 there is no such port; 3 no entry of the
GID table fits, or several do.

Examples:
  ibprov gid --port mlx5_3/1 --type rocev2 --address 10.0.0.7
  NCCL_IB_GID_INDEX=$(ibprov gid --port eth2 --type rocev2 --address 10.0.0.7)")]
    Gid(Lazy<GidArgs>),
    /// List what keeps an HCA or its kernel modules busy
    #[command(after_help = "\
Exit codes: 0 the HCA is not busy; 1 the HCA is busy, or that cannot be
determined; 2 could not begin, or there is no such HCA.

holders stops, unmounts and unloads nothing.

Examples:
  ibprov holders               of all HCAs: before the drivers are reloaded
  ibprov holders mlx5_0        of one, and of the modules of its driver")]
    Holders(Lazy<HoldersArgs>),
    /// Convert another tool's configuration
    #[command(after_help = "\
Exit codes: 0 everything was converted; 1 some settings were not, and are listed
as comments; 2 could not begin.")]
    Import {
        /// The tool it is of.
        #[command(subcommand)]
        verb: ImportVerb,
    },
    /// Hand the node over from openibd and its scripts, or back
    #[command(after_help = "\
Exit codes: 0 done, or nothing to do; 1 something would change, or with --apply
something needs a decision or was left; 2 could not begin; 3 it would fail, or
has failed.

No unit is started, restarted or stopped: the migration takes effect at the next
boot.

Examples:
  ibprov migrate               what becomes of openibd, its settings, rc.local
  ibprov migrate --apply       do it
  ibprov migrate --back        what would be put back")]
    Migrate(Lazy<MigrateArgs>),
    /// Check opensm's files, or run the subnet manager of a port
    #[command(after_help = "\
Exit codes: 0 opensm would take all lines as they are meant; 1 with warnings,
which leave its tables as they are meant; 2 a file could not be read; 3 with
errors.

Examples:
  ibprov opensm check                          what opensm reads on this host
  ibprov opensm check /srv/fabric/partitions.conf
  ibprov opensm check --as partitions new.txt  before it is installed")]
    Opensm {
        /// What to do.
        #[command(subcommand)]
        verb: OpensmVerb,
    },
    /// Show planned changes to VFs, and errors in the plan
    #[command(after_help = "\
Exit codes: 0 all as planned; 1 something would change, or pins and
configuration differ; 2 could not begin, or a fleet was not seen whole; 3 the
plan has errors, or a fleet has a GUID twice.

Examples:
  ibprov plan --all            each VF, also those that stay as they are
  ibprov plan --pin            keep the GUIDs, even if the host is renamed")]
    Plan(Lazy<PlanArgs>),
    /// Configure one IPoIB interface and bring it up
    #[command(after_help = "\
Exit codes: 0 configured, and up or left to a network stack; 1 up without
carrier, or in use and not changed, or with --dry-run something would be set; 2
could not begin; 3 not configured, or not up.

Examples:
  ibprov iface ib0 --dry-run   the settings, and what would bring it up")]
    Iface(Lazy<IfaceArgs>),
    /// Show the verdict on the node, and a line for each port
    #[command(after_help = "\
Exit codes: 0 ready; 1 ready with exceptions; 2 unknown: the configuration is
not valid; 3 an expected port or a planned VF is not ready.

Examples:
  ibprov status ib0            all that is known of one port, and what it lacks
  ibprov status -v             all that is known of each adapter
  ibprov status -o json        for programs")]
    Status(Lazy<StatusArgs>),
    /// Print the state of the node for Prometheus
    #[command(after_help = "\
Exit codes: 0 the metrics are printed or written, in any state of the node; 2
they cannot be written.

Examples:
  ibprov metrics                          the metrics, each with its meaning
  ibprov metrics --output /var/lib/prometheus/node-exporter/ibprov.prom")]
    Metrics(Lazy<MetricsArgs>),
    /// Print the verdict in one line, for a health checker
    #[command(after_help = "\
Exit codes, by the program that asks; without --for those of `ibprov status`:
                              npd   nagios   nhc, slurm
  ready, or nothing expected    0        0        0
  ready with exceptions         0        1        0
  the same, and the node has
  less than is configured       1        1        1
  not ready                     1        2        1
  by a bad configuration alone  2        2        1
  unknown, also after 2 s       2        3        1
  the boot is in progress       2        3        2

Examples:
  ibprov health                the verdict in one line
  ibprov health --for npd      of node-problem-detector
  ibprov health --for nagios   of Nagios, Icinga and what runs their plugins")]
    Health(Lazy<HealthArgs>),
    /// Wait until ports are online: link up, Active, netdev with carrier
    #[command(after_help = "\
Exit codes: 0 online; 1 the missing ports are optional; 2 could not begin, or
there is no such port; 3 not online at the end.

Examples:
  ibprov wait-online --timeout 0 ib0     is ib0 online now?
  ibprov wait-online --address           each with an address of global scope")]
    WaitOnline(Lazy<WaitOnlineArgs>),
    /// Start the configured virtual machines when their VFs are ready
    #[command(after_help = "\
Exit codes: 0 all are up; 1 some wait or are not to be started, or with
--dry-run would be started; 2 could not begin; 3 one failed.

Examples:
  ibprov guests --dry-run      which would be started, in which order
  ibprov guests --status       each with its VFs, and why it is not up")]
    Guests(Lazy<GuestsArgs>),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Verb {
    /// True for what ibprov's units run, which ends by a deadline. The others take as long as
    /// there is to read.
    pub const fn is_of_units(&self) -> bool {
        matches!(
            self,
            Self::Apply(_) | Self::Boot(_) | Self::Guests(_) | Self::Iface(_) | Self::WaitOnline(_)
        )
    }
}

/// What a verb takes. Its definition is built when the verb is the one that was typed, instead
/// of those of all verbs at each start.
#[derive(Debug, Clone)]
pub struct Lazy<T>(T);

impl<T> Deref for Lazy<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Lazy<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| {
            // What the verb does, not what `T` is.
            let about = command.get_about().cloned().unwrap_or_default();
            T::augment_args(command).about(about)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: Args> FromArgMatches for Lazy<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

#[derive(Debug, Clone, Args)]
pub struct GuestsArgs {
    /// Show each guest, its VFs and why it is not up
    #[arg(long, conflicts_with = "dry_run")]
    pub status: bool,
    /// Show which guests would be started, in which order
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Args)]
pub struct HoldersArgs {
    /// Only these: 4b:00.0, mlx5_0, ib0 or a port GUID [default: all]
    #[arg(value_name = "HCA")]
    pub hcas: Vec<Target>,
}

#[derive(Debug, Clone, Args)]
pub struct FirmwareArgs {
    /// Only these: 4b:00.0, mlx5_0 or ib0
    /// [default: those of [[firmware]], else all]
    #[arg(verbatim_doc_comment, value_name = "HCA")]
    pub hcas: Vec<Target>,
    /// Write what differs from the configuration
    #[arg(long)]
    pub apply: bool,
    /// With --apply: write again what no boot made effective
    #[arg(long, requires = "apply")]
    pub again: bool,
}

#[derive(Debug, Clone, Args)]
pub struct HealthArgs {
    /// The program that asks: npd, nagios, nhc or slurm
    #[arg(long = "for", value_name = "PROGRAM", value_enum, hide_possible_values = true)]
    pub asker: Option<Asker>,
}

/// A program that runs health checks, and judges by their exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Asker {
    /// node-problem-detector of Kubernetes: 1 is a problem, more than 1 is unknown.
    Npd,
    /// Nagios and others with its plugins: 2 is critical, 3 is unknown.
    Nagios,
    /// LBNL's Node Health Check: anything but 0 fails.
    Nhc,
    /// HealthCheckProgram of Slurm, of which slurmd waits for 0.
    Slurm,
}

#[derive(Debug, Clone, Args)]
pub struct GidArgs {
    /// mlx5_3/1, eth2, 0000:81:00.0/1 or a port GUID
    #[arg(long, value_name = "PORT")]
    pub port: Target,
    /// The type of the GID: ib, rocev1 or rocev2
    #[arg(long = "type", value_name = "TYPE", value_parser = word::<GidKind>)]
    pub kind: Option<GidKind>,
    /// The address of the GID: IPv4 or IPv6
    #[arg(long)]
    pub address: Option<IpAddr>,
}

fn port_and_type(text: &str) -> Result<(PortNumber, PortType), String> {
    let parsed = text.split_once('=').and_then(|(number, of)| {
        Some((PortNumber::new(number.parse().ok()?).ok()?, PortType::from_typed(of)?))
    });
    parsed.ok_or_else(|| "expected a port and its type, such as 2=eth".to_owned())
}

fn word<T: Words>(text: &str) -> Result<T, String> {
    T::from_typed(text).ok_or_else(|| format!("expected {}", T::quoted()))
}

#[derive(Debug, Clone, Args)]
pub struct WaitOnlineArgs {
    /// ib0, mlx5_0/1, 0000:4b:00.0 or port GUID [default: all]
    #[arg(value_name = "PORT")]
    pub ports: Vec<Target>,
    /// The state to wait for: rdma, netdev, named, configured,
    /// link or active [default: wait-online.state]
    #[arg(verbatim_doc_comment, long, value_name = "STATE", value_parser = online_state)]
    pub state: Option<Rung>,
    /// Also wait until each netdev has a global address
    #[arg(long)]
    pub address: bool,
    /// Each has to be online for this long without
    /// interruption, like 30s [default: wait-online.stable]
    #[arg(verbatim_doc_comment, long, value_name = "TIME", value_parser = timeout)]
    pub stable: Option<Duration>,
    /// Maximum time to wait, like 90s or 2min, at most 1h
    /// [default: wait-online.timeout]
    #[arg(verbatim_doc_comment, long, value_name = "TIME", value_parser = timeout)]
    pub timeout: Option<Duration>,
}

fn online_state(text: &str) -> Result<Rung, String> {
    Rung::to_wait_for(text)
        .ok_or_else(|| format!("expected one of {}", Rung::words_to_wait_for().join(", ")))
}

fn boot_number(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number <= 0);
    number.ok_or_else(|| "expected 0 for the last boot, -1 for the one before it, ...".to_owned())
}

fn timeout(text: &str) -> Result<Duration, String> {
    let span = timespan::parse(text)
        .ok_or_else(|| "write the time like 240s, 4min or 2min 30s".to_owned())?;
    let longest = Duration::from_secs(timespan::LONGEST_SEC);
    if span > longest {
        let [given, longest] = [span, longest].map(TimeSpan);
        return Err(format!("{given} is out of range: expected at most {longest}"));
    }
    Ok(span)
}

#[derive(Debug, Clone, Args)]
pub struct ApplyArgs {
    /// Only this PF: 4b:00.0, mlx5_0, ib0 or a port GUID
    #[arg(value_name = "PF", value_parser = target_or_path)]
    pub pf: Option<Target>,
    /// Show what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Only restore what a killed run has left:
    /// automatic probing and driver_override
    #[arg(verbatim_doc_comment, long, conflicts_with = "dry_run")]
    pub undo: bool,
    /// Do not ask before VFs that have a driver are removed
    #[arg(long)]
    pub yes: bool,
    /// Milliseconds until apply gives up, instead of boot.adapter-timeout
    #[arg(long, hide = true, value_parser = value_parser!(u64).range(..=1000 * timespan::LONGEST_SEC))]
    pub timeout_msec: Option<u64>,
    /// Wait for the devices of other adapters, and for the PFs whose VFs are numbered before its own
    #[arg(long, hide = true, requires = "pf")]
    pub in_turn: bool,
}

#[derive(Debug, Clone, Args)]
pub struct MigrateArgs {
    /// Migrate; without this option, show what would be done
    #[arg(long)]
    pub apply: bool,
    /// Restore what the migration has changed
    #[arg(long)]
    pub back: bool,
}

#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// All that is known of these alone, and why they are so: ib0,
    /// mlx5_0, mlx5_0/1, 4b:00.0, a port GUID or a pattern: 'ib*'
    #[arg(verbatim_doc_comment, value_name = "NAME")]
    pub names: Vec<Targets>,
    /// Show only what is wrong
    #[arg(long)]
    pub problems: bool,
    /// Show the GID table of each port
    #[arg(long)]
    pub gids: bool,
    /// Show the state again whenever it changes, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

#[derive(Debug, Clone, Args)]
pub struct MetricsArgs {
    /// Replace FILE, which node_exporter reads
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct IfaceArgs {
    /// The interface: ib0, or its port, mlx5_0/1 or 4b:00.0
    #[arg(value_name = "IF", required_unless_present_any = ["device", "children"])]
    pub name: Option<String>,
    /// The interface by its device's path below /sys
    #[arg(long, value_name = "PATH", conflicts_with = "name")]
    pub device: Option<PathBuf>,
    /// Show what would be done, and which network stack
    /// would bring the interface up
    #[arg(verbatim_doc_comment, long)]
    pub dry_run: bool,
    /// Only configure the interface, and do not bring it up
    #[arg(long)]
    pub settings_only: bool,
    /// Set mode and MTU although the interface is in use,
    /// which interrupts its traffic
    #[arg(verbatim_doc_comment, long)]
    pub force: bool,
    /// Ask systemd through systemctl, not the system bus
    #[arg(long)]
    pub no_bus: bool,
    /// For the unit, when it has stopped: start it again if the interface has
    /// come back meanwhile, or a P_Key child has been missed
    #[arg(long, value_name = "UNIT", hide = true, conflicts_with = "name")]
    pub stopped: Option<String>,
    /// For the unit: the unit to start if something is left to be done once the network
    /// stacks have started
    #[arg(long, value_name = "UNIT", hide = true, requires = "device")]
    pub then: Option<String>,
    /// For that unit
    #[arg(long, hide = true, requires = "device")]
    pub later: bool,
    /// For ibprov.service: this is a child of it
    #[arg(long, hide = true, requires = "settings_only")]
    pub of_boot: bool,
    /// For the unit: set up P_Key children, all that have appeared
    #[arg(long, hide = true, conflicts_with_all = ["name", "device"])]
    pub children: bool,
}

#[derive(Debug, Clone, Args)]
pub struct BootArgs {
    /// Show what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Set mode and MTU of interfaces, and port types of
    /// adapters, although they are in use, which interrupts
    /// their traffic
    #[arg(verbatim_doc_comment, long)]
    pub force: bool,
}

#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Read these instead of the host: logs, output of tools,
    /// journals, archives, directories; - is standard input
    #[arg(verbatim_doc_comment, long, value_name = "FILE", num_args = 1..)]
    pub log: Vec<PathBuf>,
    /// Judge this boot only: 0 is the last, -1 the one before
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = boot_number)]
    pub boot: Option<i32>,
    /// Draw the boot as a picture (-: to standard output)
    #[arg(long, value_name = "FILE", conflicts_with = "explain")]
    pub svg: Option<PathBuf>,
    /// Also exit with 1 for errors that no diagnosis explains
    #[arg(long, conflicts_with = "explain")]
    pub strict: bool,
    /// Compare an initramfs image with what this host needs
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["log", "boot", "svg", "strict", "explain"])]
    pub initrd: Option<PathBuf>,
    /// Print what a code of findings means, or list all
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "", conflicts_with = "log")]
    pub explain: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct ConsumersArgs {
    /// Write the drop-ins that are missing
    #[arg(long, conflicts_with = "remove")]
    pub install: bool,
    /// Remove the drop-ins that --install has written
    #[arg(long)]
    pub remove: bool,
    /// Only show what would be written or removed
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Args)]
pub struct CollectArgs {
    /// The archive; replaced if it exists
    #[arg(value_name = "FILE", default_value = "ibprov-collect.tar.gz")]
    pub file: PathBuf,
    /// Replace host names, IP and MAC addresses and GUIDs
    /// consistently: equal values get equal substitutes
    #[arg(verbatim_doc_comment, long)]
    pub anonymize: bool,
    /// Number of earlier boots in the journal
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub boots: u16,
    /// Maximum time, like 90s, at most 1h [default: 2min]
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    /// Also show the VFs that are as planned
    #[arg(long)]
    pub all: bool,
    /// Judge the plans of many hosts, or with --partitions
    /// print the lines of all: DIR holds a file for each
    #[arg(verbatim_doc_comment, long, value_name = "DIR", conflicts_with_all = ["writes", "all"])]
    pub fleet: Option<PathBuf>,
    /// Pin the GUIDs, so that no configuration changes them
    #[arg(long, conflicts_with = "partitions", group = "writes")]
    pub pin: bool,
    /// With --pin: pin those of the configuration instead
    #[arg(long, requires = "pin")]
    pub replace: bool,
    /// Remove the pin file, and list what else names one
    /// host, before an image is captured
    #[arg(verbatim_doc_comment, long, conflicts_with = "partitions", group = "writes")]
    pub seal: bool,
    /// With --pin or --seal: show what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Print partitions.conf lines of the VFs' port GUIDs
    #[arg(long)]
    pub partitions: bool,
    /// With --partitions: its P_Key
    #[arg(long, value_name = "P_KEY", default_value = "0xffff", requires = "partitions")]
    pub pkey: PKey,
    /// Of the ports: full, limited or both
    #[arg(long, value_name = "KIND", value_enum, hide_possible_values = true, default_value_t = Membership::Full, requires = "partitions")]
    pub membership: Membership,
    /// With --partitions: opensm makes the IPoIB group
    #[arg(long, requires = "partitions")]
    pub ipoib: bool,
    /// With --ipoib: its MTU, 256, 512, 1024, 2048 or 4096
    #[arg(long, value_name = "BYTES", requires = "ipoib")]
    pub mtu: Option<GroupMtu>,
    /// With --ipoib: its rate in Gb/s, which every port has
    /// to have: 10, 20, 40, 56, 100, 200 ...
    #[arg(verbatim_doc_comment, long, value_name = "GBPS", requires = "ipoib")]
    pub rate: Option<GroupRate>,
}

/// A name, or a path of sysfs that ends in a PCI address, as systemd gives it.
fn target_or_path(text: &str) -> Result<Target, BadText> {
    let is_path = text.starts_with('/');
    text.rsplit('/').next().filter(|_| is_path).unwrap_or(text).parse()
}

/// What to do with the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Subcommand)]
pub enum ConfigVerb {
    /// Show every error with its place, and which files were read
    Check,
    /// Print the effective values, each with the place it came from
    Show {
        /// Only what is not the default
        #[arg(long)]
        changed: bool,
    },
    /// Print the udev rules for the names of interfaces, for an initramfs
    UdevRules,
    /// Print tables for the ports that are active on this node, to review
    Generate,
}

/// What to do with opensm's files.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum OpensmVerb {
    /// Show each line that opensm 3.3 reads differently from what was intended
    Check(OpensmArgs),
    /// Check the subnet manager of a port, and become its opensm
    #[command(after_help = "\
Exit codes: 64 no [[subnet-manager]] names the port; 69 opensm is not started,
with the reason; 78 could not begin. Else those of opensm, which has none of
these; of --dry-run, 0.

Examples:
  ibprov opensm run --dry-run issm0   what opensm would be given, or why not")]
    Run(OpensmRunArgs),
}

#[derive(Debug, Clone, Args)]
pub struct OpensmRunArgs {
    /// The port's device for subnet managers: issm0, or its path
    #[arg(value_name = "DEVICE")]
    pub device: PathBuf,
    /// Check, and print the opensm.conf; start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Check only the partitions file that the running opensm would read again
    #[arg(long, hide = true, conflicts_with = "dry_run")]
    pub reload: bool,
}

#[derive(Debug, Clone, Args)]
pub struct OpensmArgs {
    /// partitions.conf or opensm.conf [default: those of this host]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// What each FILE is: partitions or opensm
    #[arg(
        long = "as",
        value_name = "KIND",
        value_enum,
        hide_possible_values = true,
        requires = "files"
    )]
    pub kind: Option<OpensmFile>,
    /// Whose opensm: upstream or nvidia
    #[arg(
        long,
        value_name = "WHICH",
        value_enum,
        hide_possible_values = true,
        default_value = "upstream"
    )]
    pub opensm: OpensmProgram,
    /// Also name port GUIDs that no host of the fleet has:
    /// DIR is as for plan --fleet
    #[arg(verbatim_doc_comment, long, value_name = "DIR")]
    pub fleet: Option<PathBuf>,
}

/// An opensm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OpensmProgram {
    /// opensm 3.3, as distributions have it
    Upstream,
    /// NVIDIA's, whose further keys are not judged
    Nvidia,
}

/// The tool whose configuration is converted.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub enum ImportVerb {
    /// openib.conf of MLNX_OFED and DOCA
    OpenibConf {
        /// The file
        #[arg(default_value = openib_conf::PATH)]
        file: String,
    },
    /// sriov-vfs of rdma-core before version 32
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
    /// The modules of Red Hat's rdma.conf
    RdmaConf {
        /// The file
        #[arg(default_value = rdma_conf::PATH)]
        file: String,
    },
    /// The port types of ConnectX-3 adapters in rdma-core's mlx4.conf
    Mlx4Conf {
        /// The file
        #[arg(default_value = mlx4_conf::PATH)]
        file: String,
    },
    /// Mode, MTU and P_Key in an ifcfg file of Red Hat's scripts
    Ifcfg {
        /// The file: ifcfg-NAME
        file: String,
    },
    /// Mode, MTU and P_Key in a profile of NetworkManager
    Keyfile {
        /// The file: NAME.nmconnection
        file: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_screen_has_each_verb_once_and_no_other() {
        let help = Cli::command().render_help().to_string();
        for verb in Cli::command().get_subcommands().filter(|verb| verb.get_name() != "help") {
            let line = format!("\n  {} ", verb.get_name());
            assert_eq!(help.matches(&line).count(), 1, "{line:?} in {help}");
        }
        for word in ["worker", "name-rdma"] {
            assert!(!help.contains(word), "{help}");
        }
    }

    #[test]
    fn what_nobody_types_is_not_suggested() {
        for slip in ["workr", "worker", "name-rdm", "stats"] {
            let said = Cli::try_parse_from(["ibprov", slip]).expect_err(slip).to_string();
            let own = said.replace(&format!("'{slip}'"), "");
            assert!(!own.contains("worker") && !own.contains("name-rdma"), "{said}");
        }
        let typed = |words: &[&str]| Internal::of(words.iter().map(OsString::from));
        assert!(matches!(typed(&["ibprov", "worker"]), Some(Internal::Worker { pf: None, .. })));
        let at = typed(&["ibprov", "worker", "0000:01:00.0"]);
        assert!(matches!(at, Some(Internal::Worker { pf: Some(_), .. })));
        let named = typed(&["ibprov", "name-rdma", "0000:01:00.1", "mlx5_1"]);
        assert!(matches!(named, Some(Internal::NameRdma { .. })));
        assert!(typed(&["ibprov", "status"]).is_none() && typed(&["ibprov"]).is_none());
    }

    /// A verb that would change something exits with 1: `&&` ends there.
    #[test]
    fn no_example_joins_verbs_by_their_exit_codes() {
        let mut cli = Cli::command();
        cli.build();
        let mut pages = vec![cli.render_long_help().to_string()];
        pages.extend(cli.get_subcommands_mut().map(|verb| verb.render_long_help().to_string()));
        for page in pages {
            assert!(!page.contains("&& ibprov"), "{page}");
        }
    }

    #[test]
    fn no_help_is_wider_than_a_serial_console() {
        let mut cli = Cli::command();
        cli.build();
        let (mut commands, mut wide) = (vec![cli], Vec::new());
        while let Some(mut command) = commands.pop() {
            let page = format!("{}{}", command.render_help(), command.render_long_help());
            let lines = page.lines().filter(|line| line.chars().count() > 80);
            wide.extend(lines.map(|line| format!("{}: {line}", command.get_name())));
            commands.extend(command.get_subcommands().filter(|c| !c.is_hide_set()).cloned());
        }
        assert!(wide.is_empty(), "{wide:#?}");
    }

    #[test]
    fn no_timeout_is_longer_than_an_hour() {
        let typed = |verb, time| Cli::try_parse_from(["ibprov", verb, "--timeout", time]);
        for verb in ["wait-online", "collect"] {
            assert!(typed(verb, "0").is_ok() && typed(verb, "1h").is_ok(), "{verb}");
            let said = typed(verb, "30h").expect_err(verb).to_string();
            assert!(said.contains("30h is out of range: expected at most 1h"), "{said}");
        }
        let msec = |msec| Cli::try_parse_from(["ibprov", "apply", "--timeout-msec", msec]);
        assert!(msec("3600000").is_ok() && msec("3600001").is_err());
    }

    #[test]
    fn each_verb_tells_its_exit_codes() {
        for verb in Cli::command().get_subcommands() {
            let name = verb.get_name();
            let is_told = verb
                .get_after_help()
                .is_some_and(|help| help.to_string().starts_with("Exit codes"));
            assert!(is_told || ["completions", "help"].contains(&name), "{name}");
        }
    }
}
