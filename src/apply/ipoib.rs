//! Who wants a netdev of IPoIB, by the files of the host.

use crate::config::Config;
use crate::graph::{Load, Unit, files};
use crate::host::Root;
use crate::names::{ModuleName, is_ipoib_name};
use crate::observe::ModprobeRules;
use crate::stacks::{self, KNOWN};

/// What the configuration or a network stack sets up on IPoIB, as a phrase.
pub fn set_up(root: &Root, config: &Config) -> Option<String> {
    let row = config.interfaces.first();
    let row = row.map(|row| format!("an [[interface]] is configured ({})", row.origin));
    row.or_else(|| {
        let claims = KNOWN.claims(root, is_ipoib_name);
        let first = claims.first()?;
        Some(format!("{} sets up {} ({})", first.unit, first.netdev, first.file))
    })
}

/// Who wants a netdev of IPoIB although the administrator denies its module: see [`wanted`].
/// `None` too where the module is not denied.
pub fn wanted_denied(root: &Root, config: &Config, rules: &ModprobeRules) -> Option<String> {
    let module: ModuleName = "ib_ipoib".parse().ok()?;
    rules.denied(&module)?;
    wanted(root, config, rules)
}

/// Who wants a netdev of IPoIB: the configuration, a network stack, LNet, or a unit of the next
/// boot that names one or mounts over RDMA by an IP address.
pub fn wanted(root: &Root, config: &Config, rules: &ModprobeRules) -> Option<String> {
    let lnet = || {
        let (networks, origin) = rules.option("lnet", "networks")?;
        Some(format!("LNet uses {} ({origin})", netdev_in(networks)?))
    };
    set_up(root, config).or_else(lnet).or_else(|| {
        let graph = files::graph(root);
        let started = graph.transaction();
        let user = |unit: &Unit| {
            let is_other = !unit.name.starts_with("ibprov")
                && stacks::network_role(&unit.name).is_none()
                && started.contains(unit.name.as_str());
            let user = is_other.then(|| netdev_of(unit).or_else(|| mounts_over_rdma(unit)));
            Some(format!("{} uses {}", unit.name, user.flatten()?))
        };
        graph.units().filter(|unit| unit.load == Load::Loaded).find_map(user)
    })
}

/// The first netdev of IPoIB that a service or a mount names.
fn netdev_of(unit: &Unit) -> Option<&str> {
    let commands = unit.commands.iter().filter(|command| command.phase != "ExecStop");
    let lines = commands.map(|command| command.line.as_str());
    lines.chain([unit.what.as_str(), unit.options.as_str()]).find_map(netdev_in)
}

/// The transport of a mount of NFS or Lustre that finds its server by an address of IPoIB.
fn mounts_over_rdma(unit: &Unit) -> Option<&str> {
    let options = unit.options.split(',').map(str::trim);
    let nfs = options.filter(|option| matches!(*option, "rdma" | "proto=rdma" | "proto=rdma6"));
    let lustre = unit.what.split([':', '@']).filter(|network| network.starts_with("o2ib"));
    nfs.chain(lustre).next()
}

fn netdev_in(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    text.split(|c| !is_part(c)).find(|word| is_ipoib_name(word))
}
