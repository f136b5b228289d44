//! `/etc/infiniband/openib.conf` of MLNX_OFED and DOCA: shell assignments.
//!
//! It is sourced by a shell there, and only read here: what a shell would have
//! to compute is left to do by hand. Of a key given twice the last counts, as
//! installers append to the file.

use std::collections::BTreeMap;

use super::shell::assignment;
use super::{Imported, shown};
use crate::names::IfName;

pub const PATH: &str = "/etc/infiniband/openib.conf";

/// What a key means to ibprov.
pub(super) enum Meaning {
    /// `yes` loads these modules; they are not loaded by ibprov otherwise.
    Load(&'static [&'static str]),
    /// A module that ibprov loads by itself: `no` skips it.
    Skip(&'static str),
    /// Nothing, with this value or any; the reason is for the next developer.
    Nothing,
    /// Nothing, unless it is this: then the text is what to do.
    If(&'static str, &'static str),
    /// Nothing, unless it is other than this.
    Unless(&'static str, &'static str),
    /// Read with others, at the end.
    Later,
}

const GONE: &str = "current kernels have no such module";
const DRIVER: &str =
    "udev loads drivers: to exclude this driver, deny it in /etc/modprobe.d (`blacklist NAME`)";
const HOOK: &str = "replace the script by a unit that is ordered After= or Before=ibprov.service";

fn meaning(key: &str) -> Option<Meaning> {
    use Meaning::{If, Later, Load, Nothing, Skip, Unless};
    Some(match key {
        "UMAD_LOAD" => Skip("ib_umad"),
        "UVERBS_LOAD" => Skip("ib_uverbs"),
        "IPOIB_LOAD" => Skip("ib_ipoib"),
        "RDMA_CM_LOAD" => Load(&["rdma_cm"]),
        "RDMA_UCM_LOAD" => Load(&["rdma_ucm"]),
        "SRP_LOAD" => Load(&["ib_srp"]),
        "SRPT_LOAD" | "SRP_TARGET_LOAD" => Load(&["ib_srpt"]),
        "ISER_LOAD" => Load(&["ib_iser"]),
        "ISERT_LOAD" => Load(&["ib_isert"]),
        "RDS_LOAD" => Load(&["rds_rdma"]),
        // One module since Linux 4.0; the old names are its aliases.
        "XPRTRDMA_LOAD" | "SVCRDMA_LOAD" => Load(&["rpcrdma"]),
        "ESP_OFFLOAD_LOAD" => Load(&["esp4_offload", "esp6_offload"]),
        "MLX5_LOAD" | "MLX4_LOAD" | "MLX4_EN_LOAD" | "MLX_EN_LOAD" => If("no", DRIVER),
        "UCM_LOAD" | "SDP_LOAD" | "QLGC_VNIC_LOAD" | "MLX4_FC_LOAD" | "MLX4_VNIC_LOAD"
        | "IPATH_LOAD" | "EHCA_LOAD" | "CXGB3_LOAD" | "NES_LOAD" | "MLX5_FPGA_LOAD"
        | "E_IPOIB_LOAD" | "LOAD_EIPOIB" => If("yes", GONE),
        "SRPHA_ENABLE" => If("yes", "multipathd and srp_daemon handle several paths to a target"),
        // Drivers that udev loads by itself.
        "MTHCA_LOAD" | "QIB_LOAD" | "CXGB4_LOAD" => Nothing,
        "ONBOOT" => If("no", "openibd did not start at boot: leave ibprov.service disabled"),
        // ibprov never unloads a module, and waits for events instead of time.
        "ALLOW_STOP"
        | "FORCE_MODE"
        | "NODE_DESC_TIME_BEFORE_UPDATE"
        | "NODE_DESC_UPDATE_TIMEOUT"
        | "RENICE_IB_MAD"
        | "TECH_PREVIEW_LOAD" => Nothing,
        "POST_START_DELAY" => Unless(
            "0",
            "ibprov waits for the ports instead; order units that need more after a port or a netdev",
        ),
        "NODE_DESC" => Unless("", "rdma-ndd sets node descriptions: `systemctl enable rdma-ndd`"),
        "RUN_SYSCTL" => {
            If("yes", "put the settings of /sbin/sysctl_perf_tuning into /etc/sysctl.d")
        }
        "RUN_AFFINITY_TUNER" => {
            If("yes", "ibprov does not tune interrupts: run mlnx_affinity in a unit")
        }
        "RUN_MLNX_TUNE" => If("yes", "ibprov does not tune the system: run mlnx_tune in a unit"),
        "RUN_FW_UPDATER_ONBOOT" => {
            If("yes", "ibprov does not update firmware: update the firmware by hand")
        }
        "SRP_DAEMON_ENABLE" => If("yes", "`systemctl enable srp_daemon`"),
        "ENABLE_FW_TRACER" => If(
            "yes",
            "for firmware traces: `echo 1 >/sys/kernel/debug/tracing/events/mlx5/mlx5_fw/enable` in a unit, if they are needed",
        ),
        "CX3_ETH_ONLY" => If("yes", "set port_type_array of mlx4_core in /etc/modprobe.d"),
        "SMARTNIC_PF_MAC_CONF" => Unless("", "set these MAC addresses in a unit"),
        "SET_IPOIB_CHANNELS" => If("yes", "set the channels with `ethtool -L` in a unit"),
        "OPENIBD_PRE_START" | "OPENIBD_POST_START" | "OPENIBD_PRE_STOP" | "OPENIBD_POST_STOP" => {
            Unless("", HOOK)
        }
        "SET_IPOIB_CM" | "IPOIB_MTU" => Later,
        _ => return None,
    })
}

/// Reads the file for a host whose interfaces `datagram_only` cannot have connected mode, which
/// mlnx_interface_mgr does not set there either.
pub fn import(text: &str, datagram_only: &[IfName]) -> Imported {
    import_with(text, &[], &|_| None, datagram_only)
}

/// Reads a file of such keys, of which some have the meaning that `own` says. What reads the
/// file loads the modules `always`, whatever it says.
pub(super) fn import_with(
    text: &str,
    always: &[&'static str],
    own: &dyn Fn(&str) -> Option<Meaning>,
    datagram_only: &[IfName],
) -> Imported {
    let mut imported = Imported::default();
    let mut values: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        // What rdma-ndd does by itself, and every file has.
        let description =
            line.trim().strip_prefix("NODE_DESC=").map(|value| value.trim_matches('"'));
        if matches!(description, Some("$(hostname -s)" | "`hostname -s`")) {
            values.remove("NODE_DESC");
            continue;
        }
        match assignment(line) {
            Ok(Some((key, value))) => {
                values.insert(key, (number, value));
            }
            Ok(None) => {}
            Err(why) => imported.todo(number, &why),
        }
    }
    let mut given: Vec<(&str, usize, &str)> =
        values.iter().map(|(key, (line, value))| (*key, *line, value.as_str())).collect();
    given.sort_by_key(|(_, line, _)| *line);
    let (mut load, mut skip) = (always.to_vec(), Vec::new());
    for (key, line, value) in given {
        let mut todo = |what: &str| imported.todo(line, &format!("{key}={}: {what}", shown(value)));
        let is = |word: &str| value.eq_ignore_ascii_case(word);
        match own(key).or_else(|| meaning(key)) {
            Some(Meaning::Load(modules)) if is("yes") => load.extend(modules.iter().copied()),
            Some(Meaning::Skip(module)) if is("no") => skip.push(module),
            Some(Meaning::Load(_) | Meaning::Skip(_)) if !is("yes") && !is("no") => {
                todo("neither yes nor no");
            }
            Some(Meaning::If(word, what)) if is(word) => todo(what),
            Some(Meaning::Unless(word, what)) if !is(word) => todo(what),
            Some(_) => {}
            None => todo("ibprov does not know this key"),
        }
    }
    for modules in [&mut load, &mut skip] {
        let mut seen = Vec::new();
        modules.retain(|module| {
            !seen.contains(module) && {
                seen.push(*module);
                true
            }
        });
    }
    let list = |modules: &[&str]| {
        modules.iter().map(|m| format!("\"{m}\"")).collect::<Vec<_>>().join(", ")
    };
    if !load.is_empty() || !skip.is_empty() {
        imported.toml.push_str("[modules]\n");
        if !load.is_empty() {
            imported.toml.push_str(&format!("load = [{}]\n", list(&load)));
        }
        if !skip.is_empty() {
            imported.toml.push_str(&format!("exclude = [{}]\n", list(&skip)));
        }
        imported.toml.push('\n');
    }
    match (values.get("SET_IPOIB_CM"), datagram_only.first()) {
        (Some((line, value)), Some(name)) if value == "yes" => imported.todo(
            *line,
            &format!(
                "SET_IPOIB_CM=yes and IPOIB_MTU are left out, because the driver of {name} does not support connected mode; for an interface whose driver does, add an [[interface]] with mode = \"connected\""
            ),
        ),
        _ => ipoib(&mut imported, &values),
    }
    imported.todo.sort_by_key(|todo| line_of(todo));
    imported
}

fn line_of(todo: &str) -> usize {
    let number = todo.strip_prefix("line ").and_then(|rest| rest.split(':').next());
    number.and_then(|n| n.parse().ok()).unwrap_or(usize::MAX)
}

/// `SET_IPOIB_CM` and `IPOIB_MTU`, which was the MTU of connected mode.
fn ipoib(imported: &mut Imported, values: &BTreeMap<&str, (usize, String)>) {
    let value = |key| values.get(key).map(|(line, value)| (*line, value.as_str()));
    let mode = match value("SET_IPOIB_CM") {
        Some((_, "yes")) => "connected",
        Some((_, "no")) => "datagram",
        // auto: what the driver chose; what ibprov is not told, it leaves alone.
        Some((_, "auto" | "")) | None => "",
        Some((line, other)) => {
            let what =
                format!("SET_IPOIB_CM={} is not a mode: expected yes, no or auto", shown(other));
            imported.todo(line, &what);
            ""
        }
    };
    if !mode.is_empty() {
        imported.toml.push_str(&format!("[[interface]]\nmatch.name = \"*\"\nmode = \"{mode}\"\n"));
    }
    if let Some((line, text)) = value("IPOIB_MTU") {
        match text.parse::<u32>() {
            Ok(mtu) if (72..=65520).contains(&mtu) && mode == "connected" => {
                imported.toml.push_str(&format!("mtu = {mtu}\n"));
            }
            _ if mode != "connected" => {
                imported.todo(line, "IPOIB_MTU is the MTU of connected mode, which is not set");
            }
            _ => imported.todo(line, &format!("IPOIB_MTU={} is not an MTU of IPoIB", shown(text))),
        }
    }
}
