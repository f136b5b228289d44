//! `ibprov opensm run`: the checks before an opensm of ours, and its start.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Result;

use super::opensm::{DIRECTORIES, judge_partitions, known};
use crate::cli::{Format, OpensmRunArgs};
use crate::config::{Config, SubnetManager};
use crate::host::{Root, answer, clock, process, state, systemd, terminal};
use crate::inventory::Inventory;
use crate::model::{
    Exit,
    subnet_manager::{Stage, SubnetManagerRun},
};
use crate::names::{Guid, LinkLayer, PortNumber, RdmaName, Resource, displayed, harmless};
use crate::observe::opensm::Issm;
use crate::observe::{Look, Observer, PciFunction, Port, RdmaDevice, opensm};
use crate::opensm::options;
use crate::opensm::partitions::Known;
use crate::plan::subnet_manager::{Sminfo, Template, Turn, opensm_conf, turn};
use crate::workers::client::Client;
use crate::workers::products::manages_nvswitch;
use crate::workers::request::{Answer, Request};

/// No `[[subnet-manager]]` names the port: nothing is wrong. opensm, which this process becomes,
/// ends with an `ib_api_status_t` (include/iba/ib_types.h of opensm) or 255; its unit can tell
/// these from them.
const NOT_OURS: u8 = 64;
/// opensm is not started, with the reason.
const REFUSED: u8 = 69;
/// The run could not begin: there is no such device, say.
pub const NOT_BEGUN: u8 = 78;

/// For a question to the port, and for sminfo.
const ANSWER: Duration = Duration::from_secs(5);
/// How often another subnet manager is looked for, which reports no event when it ends.
const WAIT: Duration = Duration::from_secs(30);
/// Until a master has followed the last one.
const SOON: Duration = Duration::from_secs(2);

/// The port of a device for subnet managers.
struct At<'a> {
    function: &'a PciFunction,
    device: &'a RdmaDevice,
    port: &'a Port,
    /// Of all ports of the host.
    guids: Vec<Guid>,
}

displayed!(At<'_>, at => "{}/{}", at.device.name, at.port.number);

/// Check the subnet manager of the port, wait while the fabric has another one, and become
/// opensm.
///
/// # Errors
/// JSON is asked for; this is not root; opensm cannot be executed.
pub fn run(args: &OpensmRunArgs, config: &Config, root: &Root, format: Format) -> Result<u8> {
    if format == Format::Json {
        anyhow::bail!("opensm run prints no JSON: see `ibprov status --format json`");
    }
    let is_dry = args.dry_run || !root.is_live();
    if !is_dry && !process::is_root() {
        anyhow::bail!("opensm run must be run as root: use sudo, or add --dry-run");
    }
    let name = args.device.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let observed = Observer::new(root).look_at_pfs();
    let vfs;
    let mut look = Look::new(root);
    if !root.is_link(&format!("{}/{name}", opensm::DEVICES)) {
        anyhow::bail!("{}: no such device", harmless(&args.device.display().to_string()));
    }
    let devices = opensm::devices(&mut look, &observed.functions);
    let its = devices.into_iter().find(|device| device.name == name);
    let Some(Issm { rdma, port: number, .. }) = its else {
        if let Some(why) = look.problems.first() {
            anyhow::bail!("{name}: {why}");
        }
        tracing::debug!("{name}: its port has another one, or is a further plane");
        return Ok(NOT_OURS);
    };
    let found = match find(&observed.functions, &rdma, number) {
        Some(at) => Some(at),
        // udev's rule leaves VFs out, people may not.
        None => {
            vfs = Observer::new(root).look([], &Default::default());
            find(&vfs.functions, &rdma, number)
        }
    };
    let Some(at) = found else {
        tracing::info!("{rdma}/{number}: not a port of a PCI function of this host");
        return Ok(NOT_OURS);
    };
    let is_its = |entry: &&SubnetManager| Some(entry.port_guid) == at.port.guid;
    let entry = config.subnet_managers.iter().find(is_its);
    if entry.map_or(config.withheld.has_all_subnet_managers(), |entry| entry.is_withheld) {
        let why = "the configuration has an error that concerns its [[subnet-manager]] or may concern it: `ibprov config check`";
        if let Some(guid) = at.port.guid.filter(|_| !is_dry && !args.reload) {
            outcome(&format!("{:016x}", guid.value()), Stage::Refused, Some(why));
        }
        tracing::error!("{at}: opensm is not started: {why}");
        return Ok(REFUSED);
    }
    let Some(entry) = entry else {
        tracing::debug!("{at}: no [[subnet-manager]] has this port");
        return Ok(NOT_OURS);
    };
    let guid = format!("{:016x}", entry.port_guid.value());
    if args.reload {
        return reload(entry, &guid, root, &at);
    }
    let tell = |stage, reason: Option<&str>| {
        if !is_dry {
            outcome(&guid, stage, reason);
        }
    };
    let partitions = loop {
        let partitions = match refusal(entry, config, &at, root) {
            Ok(partitions) => partitions,
            Err(why) => {
                tell(Stage::Refused, Some(&why));
                tracing::error!("{at} ({}): opensm is not started: {why}", entry.port_guid);
                return Ok(REFUSED);
            }
        };
        // What was checked may have changed in a wait.
        if is_dry || !wait(entry, &at, &tell, root) {
            break partitions;
        }
    };
    let text = |entry: &SubnetManager| {
        opensm_conf(entry, &partitions, &format!("/var/lib/ibprov/opensm/{guid}"))
    };
    if is_dry {
        write!(terminal::stdout(), "{}", text(&entry.without_secrets()))?;
        return Ok(Exit::Good.code());
    }
    let dir = state::lasting_dir(&format!("opensm/{guid}"))?;
    let file = state::write_secret(&format!("opensm/{guid}/opensm.conf"), &text(entry))?;
    let program = process::find("opensm").ok_or_else(|| anyhow::anyhow!(NO_OPENSM))?;
    tell(Stage::Running, None);
    systemd::tell_status(&format!(
        "opensm on {at} ({}), priority {}",
        entry.port_guid, entry.priority
    ));
    let variables = [("OSM_CACHE_DIR", dir.as_path()), ("OSM_TMP_DIR", dir.as_path())];
    let file = file.display().to_string();
    let e = process::become_program(&program, &["-F", &file], &variables);
    anyhow::bail!("{}: {}", program.display(), answer(&e))
}

const NO_OPENSM: &str = "opensm is not installed: install the package opensm";

fn find<'a>(functions: &'a [PciFunction], rdma: &RdmaName, number: PortNumber) -> Option<At<'a>> {
    let devices = || functions.iter().flat_map(|f| f.rdma.iter().map(move |device| (f, device)));
    let (function, device) = devices().find(|(_, device)| device.name == *rdma)?;
    let port = device.ports.iter().find(|port| port.number == number)?;
    let guids = devices().flat_map(|(_, device)| &device.ports).filter_map(|port| port.guid);
    Some(At { function, device, port, guids: guids.collect() })
}

/// The partitions file that opensm is to read.
///
/// # Errors
/// Why opensm is not started.
fn refusal(
    entry: &SubnetManager,
    config: &Config,
    at: &At<'_>,
    root: &Root,
) -> Result<String, String> {
    if at.function.physfn.is_some() {
        return Err("the port is that of a VF, on which no subnet manager can run".to_owned());
    }
    if at.port.link_layer == LinkLayer::Ethernet {
        return Err("the port is in Ethernet mode".to_owned());
    }
    if manages_nvswitch(root, at.function.address) {
        return Err("the port manages NVSwitches, whose fabric manager runs its subnet".to_owned());
    }
    let of_defaults = opensm::ports_of_defaults(&Look::new(root));
    let starters = Inventory::read(root).opensm_starters(root, of_defaults.as_deref());
    if let Some(starter) = starters.iter().find(|starter| starter.has(entry.port_guid)) {
        let remedy = starter.remedy();
        let remedy = if starter.is_unit { format!("`{remedy}`") } else { remedy };
        return Err(format!("{} has this port, and {}: {remedy}", starter.name, starter.state()));
    }
    // A copied tree has no program to ask.
    let template = match root.is_live() {
        true => template()?,
        false => Template::default(),
    };
    let unknown = template.unknown(entry);
    if root.is_live() && !unknown.is_empty() {
        let version = template.version.as_deref().unwrap_or("of unknown version");
        let virt = match unknown.contains(&"virt_enabled") {
            true => {
                "; VFs become active only with policy Up, or with NVIDIA's opensm, UFM or a switch"
            }
            false => "",
        };
        let unknown = unknown.join(", ");
        return Err(format!(
            "this opensm ({version}) would ignore {unknown} of subnet-manager.options{virt}"
        ));
    }
    let default = || {
        let paths = DIRECTORIES.iter().map(|dir| format!("{dir}/partitions.conf"));
        template.partitions.clone().or_else(|| paths.into_iter().find(|path| root.exists(path)))
    };
    let path = match &entry.partitions {
        Some(path) => path.clone(),
        None => default().unwrap_or_else(|| format!("{}/partitions.conf", DIRECTORIES[0])),
    };
    if entry.partitions.is_none() && !root.exists(&path) {
        return Ok(path);
    }
    let both = entry.options.get("allow_both_pkeys").is_some_and(|value| value == "TRUE");
    let known = Known { allows_both: both, ..known(Some(config)) };
    check(root, &path, &known).map(|()| path)
}

/// Print what is wrong with the partitions file.
///
/// # Errors
/// It has errors, or cannot be read.
fn check(root: &Root, path: &str, known: &Known) -> Result<(), String> {
    let (problems, errors) = judge_partitions(root, path, known)
        .map_err(|e| format!("the partitions file cannot be read: {e}"))?;
    let mut err = terminal::stderr();
    let colour = terminal::wants_colour(&err);
    // Best effort: what counts is said at the end.
    drop(write!(err, "{}", problems.frames(colour)));
    match errors {
        0 => Ok(()),
        1 => Err(format!("{path} has an error: `ibprov opensm check {path}`")),
        n => Err(format!("{path} has {n} errors: `ibprov opensm check {path}`")),
    }
}

/// What the installed opensm says of its keys.
fn template() -> Result<Template, String> {
    process::find("opensm").ok_or(NO_OPENSM)?;
    let args = ["-c", "/dev/stdout"];
    let until = clock::now() + ANSWER;
    let text = process::output_until("opensm", &args, until);
    let text = text.and_then(|output| output.into_text("opensm", &args)).map_err(|e| answer(&e))?;
    Ok(Template::read(&text))
}

/// Before a SIGHUP: opensm would read its partitions file again, and throw all of it away for
/// one error.
fn reload(entry: &SubnetManager, guid: &str, root: &Root, at: &At<'_>) -> Result<u8> {
    let path = format!("{}/opensm/{guid}/opensm.conf", state::RUN_DIR);
    let options = match root.bytes(&path, 1 << 20) {
        Ok(bytes) => options::read(&bytes),
        // It has waited since the boot.
        Err(e) if e.is_absent() => options::read(&[]),
        Err(e) => return Err(e.into()),
    };
    let known = Known { allows_both: options.allows_both, ..Known::default() };
    // Without its file it would make every port a full member; the default one may be absent.
    let is_read = |path: &String| entry.partitions.is_some() || root.exists(path);
    let checked = match options.partitions.filter(is_read) {
        Some(path) => check(root, &path, &known),
        None => Ok(()),
    };
    match checked {
        Ok(()) if !root.is_live() => Ok(Exit::Good.code()),
        Ok(()) => {
            // Who still waits for its start has not read it, and would end.
            process::hang_up_main("opensm")
                .map_err(|e| anyhow::anyhow!("cannot send SIGHUP to opensm: {}", answer(&e)))?;
            Ok(Exit::Good.code())
        }
        Err(why) => {
            tracing::error!("{at}: opensm goes on with the partitions that it has: {why}");
            Ok(REFUSED)
        }
    }
}

/// Leave for `status` how far it is. Best effort: opensm is more.
fn outcome(guid: &str, stage: Stage, reason: Option<&str>) {
    let run =
        SubnetManagerRun { stage, reason: reason.map(str::to_owned), pid: std::process::id() };
    let text = serde_json::to_string(&run).unwrap_or_default();
    if let Err(e) = state::write(&format!("opensm/{guid}.json"), &text) {
        tracing::warn!("{e}");
    }
}

/// Return when the opensm of `entry` may start: one with a higher priority would take the
/// fabric over from whoever has it. True if that was not at once.
fn wait(
    entry: &SubnetManager,
    at: &At<'_>,
    tell: &impl Fn(Stage, Option<&str>),
    root: &Root,
) -> bool {
    let mut said = String::new();
    let mut has_waited = false;
    loop {
        let now = clock::now();
        let heard = match is_without_other(at, root) {
            Ok(true) => return has_waited,
            Ok(false) => ask(at),
            Err(why) => Sminfo::NotAsked(why),
        };
        match turn(entry, &at.guids, &heard) {
            Turn::Now => return has_waited,
            Turn::AskAgain => clock::sleep_until(now + SOON),
            Turn::Wait(why) => {
                if why != said {
                    tracing::warn!("{at} ({}): opensm is not started yet: {why}", entry.port_guid);
                    systemd::tell_status(&why);
                    tell(Stage::Waiting, Some(&why));
                    said = why;
                }
                clock::sleep_until(now + WAIT);
            }
        }
        has_waited = true;
    }
}

/// No other subnet manager has configured the port.
///
/// # Errors
/// The port cannot be asked.
fn is_without_other(at: &At<'_>, root: &Root) -> Result<bool, String> {
    let request = Request::Port {
        pci: at.function.address,
        device: at.device.name.clone(),
        port: at.port.number,
    };
    let until = clock::now() + ANSWER;
    let adapter = Resource::Adapter(at.function.address);
    match Client::new(root).querying(adapter).ask_until(&request, until) {
        Ok(Answer::Port { answer, problems }) => {
            // One that cannot be read is not one that is 0.
            match (answer.link.sm_lid, problems.into_iter().next()) {
                (None, Some(problem)) => Err(problem),
                (other, _) => Ok(other.is_none() || other == answer.link.lid),
            }
        }
        Ok(other) => Err(format!("no answer to a question for the state of {at}: {other:?}")),
        Err(e) => Err(format!("the state of {at} cannot be read: {e}")),
    }
}

/// Ask the subnet manager of the port who it is.
fn ask(at: &At<'_>) -> Sminfo {
    if process::find("sminfo").is_none() {
        return Sminfo::NotAsked("sminfo is not installed: install infiniband-diags".to_owned());
    }
    let number = at.port.number.to_string();
    let args = ["-C", at.device.name.as_str(), "-P", &number];
    match process::output_until("sminfo", &args, clock::now() + ANSWER) {
        Ok(output) if output.ended => {
            Sminfo::read(&String::from_utf8_lossy(&output.stdout), &output.stderr)
        }
        Ok(_) => Sminfo::NotAsked("sminfo has not answered within 5 s".to_owned()),
        Err(e) => Sminfo::NotAsked(answer(&e)),
    }
}
