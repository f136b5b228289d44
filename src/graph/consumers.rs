//! Who needs an InfiniBand netdev at boot, and whether each is proved to come
//! after the unit that waits for the netdevs.

use std::collections::BTreeSet;

use super::{Graph, Load, Unit};
pub use crate::model::consumers::{Need, PROVIDER};
use crate::names::{NetworkRole, OPENIBD_STAND_IN};

/// What a unit of a network stack does for interfaces, by its name; `None` if it is
/// no such unit. Those who know the stacks hand it in.
pub type RoleOf = fn(&str) -> Option<NetworkRole>;

/// A unit that needs InfiniBand netdevs, and what the order says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedUnit {
    pub unit: String,
    pub need: Need,
    pub proof: Proof,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// It comes after the provider, over these units, both ends included.
    Ordered(Vec<String>),
    /// Nothing orders it after the provider; this drop-in does.
    Missing(DropIn),
    /// It comes before the provider, over these units: a drop-in would make a
    /// cycle.
    Before(Vec<String>),
}

/// A drop-in that adds an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropIn {
    /// The directory that it goes into.
    pub dir: String,
    pub path: String,
    pub text: String,
    /// What it orders the unit after.
    provider: String,
}

impl DropIn {
    /// Where the directories of drop-ins are.
    pub const UNITS: &'static str = "/etc/systemd/system";
    /// Its name in the directory of its unit.
    pub const NAME: &'static str = "50-ibprov-order.conf";

    /// The drop-in that orders `unit` after `provider`.
    pub fn new(unit: &str, provider: &str) -> Self {
        let dir = format!("{}/{unit}.d", Self::UNITS);
        Self {
            path: format!("{dir}/{}", Self::NAME),
            dir,
            text: format!(
                "# Written by `ibprov consumers --install`; `--remove` removes it.\n[Unit]\nAfter={provider}\n"
            ),
            provider: provider.to_owned(),
        }
    }

    /// The commands that make it.
    pub fn commands(&self) -> String {
        let Self { dir, path, .. } = self;
        let text = self.text.replace('\n', "\\n");
        format!("mkdir -p '{dir}' && printf '{text}' >'{path}' && systemctl daemon-reload")
    }

    /// How to write it where [`judge`] finds the unit: our own verb orders units after our unit
    /// alone.
    pub fn remedy(&self) -> String {
        if self.provider == PROVIDER {
            "ibprov consumers --install".to_owned()
        } else {
            self.commands()
        }
    }
}

/// The unit that waits for the netdevs in the next boot: ibprov, or the
/// vendor's openibd, which at least loads the modules. Our own unit that has openibd's
/// name brings nothing up.
pub fn provider(graph: &Graph) -> Option<&Unit> {
    let transaction = graph.transaction();
    [PROVIDER, "openibd.service"]
        .into_iter()
        .filter_map(|name| graph.get(name))
        .filter(|unit| unit.name != OPENIBD_STAND_IN)
        .find(|unit| unit.load == Load::Loaded && transaction.contains(unit.name.as_str()))
}

/// True of a unit that requires openibd: it says that it needs the fabric.
pub fn names_openibd(unit: &Unit) -> bool {
    let is_its = |name: &String| name == "openibd.service" || name == OPENIBD_STAND_IN;
    !unit.name.starts_with("ibprov") && unit.requires.iter().chain(&unit.wants).any(is_its)
}

/// Every consumer in the next boot, with its proof; none without a provider. A unit that
/// `uses` the fabric is one, whatever it is called.
pub fn judge(graph: &Graph, role_of: RoleOf, uses: impl Fn(&Unit) -> bool) -> Vec<JudgedUnit> {
    let Some(provider) = provider(graph) else { return Vec::new() };
    let transaction = graph.started();
    let failed = graph.units().filter(|unit| unit.now.active == "failed");
    let units: BTreeSet<&str> =
        transaction.iter().copied().chain(failed.map(|unit| unit.name.as_str())).collect();
    let any = |unit: &Unit| match need(unit, role_of) {
        None if (uses(unit) || names_openibd(unit)) && unit.name.ends_with(".service") => {
            Some(Need::Service)
        }
        need => need,
    };
    let mut judged: Vec<JudgedUnit> = units
        .into_iter()
        .filter_map(|name| graph.get(name))
        .filter(|unit| unit.name != provider.name)
        .filter_map(|unit| Some((unit, any(unit)?)))
        .map(|(unit, need)| JudgedUnit {
            unit: unit.name.clone(),
            need,
            proof: proof(graph, &provider.name, &unit.name, &transaction),
        })
        .collect();
    judged.sort_by(|a, b| (a.need, &a.unit).cmp(&(b.need, &b.unit)));
    judged
}

fn proof(graph: &Graph, provider: &str, unit: &str, among: &BTreeSet<&str>) -> Proof {
    if let Some(chain) = graph.chain(provider, unit, among) {
        return Proof::Ordered(chain);
    }
    match graph.chain(unit, provider, among) {
        Some(chain) => Proof::Before(chain),
        None => Proof::Missing(DropIn::new(unit, provider)),
    }
}

/// What a unit needs InfiniBand netdevs for, by its name or its file system.
pub fn need(unit: &Unit, role_of: RoleOf) -> Option<Need> {
    let name = unit.name.as_str();
    if name.ends_with(".mount") {
        return is_network_mount(unit).then_some(Need::Mount);
    }
    if let Some(role) = role_of(name) {
        return Some(match role {
            NetworkRole::SetsUpOnce => Need::NetworkOnce,
            NetworkRole::SetsUpWhatComes => Need::NetworkHotplug,
            NetworkRole::WaitsOnline => Need::WaitOnline,
        });
    }
    by_name(name.strip_suffix(".service")?)
}

/// Services that use the fabric, by their names without `.service`.
const KNOWN: [(Need, &str); 4] = [
    (Need::WaitOnline, "ibprov-wait-online"),
    (Need::Guests, "libvirtd virtqemud libvirt-guests ibprov-guests pve-guests nova-compute incus"),
    (
        Need::Service,
        "slurmd lnet lustre lustre-client gpfs weka-agent pbs pbs_mom opensm opensmd opafm \
         srp_daemon nvidia-fabricmanager nvlsm ibacm nvmet nvmf-autoconnect iscsi iscsid \
         nfs-server nfs-ganesha target",
    ),
    (Need::Containers, "kubelet k3s k3s-agent rke2-server rke2-agent docker containerd crio"),
];

/// ... and how the names of further ones begin.
const KNOWN_BEGINS: [&str; 3] = ["beegfs-", "opensm@", "srp_daemon_port@"];

/// What the service of this name, without `.service`, needs the fabric for; `None` of one that
/// is not known by its name.
pub fn by_name(stem: &str) -> Option<Need> {
    let known = KNOWN.iter().find(|(_, names)| names.split(' ').any(|name| name == stem));
    let begins = || KNOWN_BEGINS.iter().any(|begin| stem.starts_with(begin));
    known.map(|(need, _)| *need).or_else(|| begins().then_some(Need::Service))
}

/// True of what starts jobs or containers, which inherit the limits of its service.
pub fn passes_limits_on(unit: &Unit) -> bool {
    let stem = unit.name.trim_end_matches(".service");
    // The kubelet starts no container: the runtime does.
    matches!(stem, "slurmd" | "pbs" | "pbs_mom")
        || by_name(stem) == Some(Need::Containers) && stem != "kubelet"
}

/// True if `unit`, a service without its suffix or a mount, uses the fabric where nothing but
/// its name is known: a service of the list that is none of ibprov's, or a mount that is no
/// local one.
pub fn uses_fabric_by_name(unit: &str) -> bool {
    const LOCAL: [&str; 11] =
        ["-.mount", "boot", "efi", "dev-", "sys-", "proc", "run-", "tmp", "var", "usr", "snap-"];
    if unit.ends_with(".mount") {
        !LOCAL.iter().any(|local| unit.starts_with(local))
    } else {
        // That of GPUs fails with them, and few of its systems have a fabric behind it.
        let is_other = unit.starts_with("ibprov") || unit == "nvidia-fabricmanager";
        by_name(unit).is_some() && !is_other
    }
}

/// The file systems that systemd takes for network ones (`fstype_is_network()`
/// of `src/basic/mountpoint-util.c`), and those of clusters.
const NETWORK_FILE_SYSTEMS: [&str; 20] = [
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "davfs",
    "fuse.sshfs",
    "gfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncp",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "pvfs2",
    "smb3",
    "smbfs",
    "wekafs",
];

/// True of a mount of a network file system, by its kind or by `_netdev`.
pub(super) fn is_network_mount(unit: &Unit) -> bool {
    NETWORK_FILE_SYSTEMS.contains(&unit.kind.trim_start_matches("fuse."))
        || NETWORK_FILE_SYSTEMS.contains(&unit.kind.as_str())
        || unit.options.split(',').any(|o| o == "_netdev")
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{graph, role_of};
    use super::*;

    const NODE: &str = "\
goal.target wants ibprov.service ibprov-openibd.service network-pre.target network.target networking.service slurmd.service scratch.mount NetworkManager.service beegfs-client.service
ibprov-openibd.service alias openibd.service
ibprov-openibd.service after ibprov.service
beegfs-client.service after openibd.service
ibprov.service before network-pre.target
network-pre.target before networking.service
networking.service before network.target
slurmd.service after network.target
scratch.mount is nfs4
NetworkManager.service before ibprov.service
";

    #[test]
    fn each_consumer_is_proved_or_the_edge_is_shown() {
        let judged = judge(&graph(NODE), role_of, |_| false);
        let of = |unit: &str| &judged.iter().find(|j| j.unit == unit).expect(unit).proof;
        let chain = ["ibprov.service", "network-pre.target", "networking.service"];
        assert_eq!(of("networking.service"), &Proof::Ordered(chain.map(str::to_owned).to_vec()));
        assert!(matches!(of("slurmd.service"), Proof::Ordered(chain) if chain.len() == 5));
        let Proof::Missing(drop_in) = of("scratch.mount") else { panic!("{judged:?}") };
        assert_eq!(
            drop_in.commands(),
            "mkdir -p '/etc/systemd/system/scratch.mount.d' && printf '# Written by `ibprov consumers --install`; `--remove` removes it.\\n[Unit]\\nAfter=ibprov.service\\n' >'/etc/systemd/system/scratch.mount.d/50-ibprov-order.conf' && systemctl daemon-reload"
        );
        assert_eq!(drop_in.remedy(), "ibprov consumers --install");
        let vendors = DropIn::new("scratch.mount", "openibd.service");
        assert_eq!(vendors.remedy(), vendors.commands(), "the verb orders nothing after it");
        assert!(matches!(of("NetworkManager.service"), Proof::Before(_)));
        let chain = ["ibprov.service", "ibprov-openibd.service", "beegfs-client.service"];
        assert_eq!(of("beegfs-client.service"), &Proof::Ordered(chain.map(str::to_owned).to_vec()));
        assert_eq!(judged.len(), 5);
    }

    /// As rdma-core's units have it (srp_daemon/srp_daemon_port@.service.in): the instance
    /// binds to srp_daemon.service and comes after it, and so after us.
    #[test]
    fn an_instance_of_srp_daemon_comes_after_its_leader() {
        let port = "srp_daemon_port@mlx5_0:1.service";
        let units = format!(
            "goal.target wants ibprov.service remote-fs-pre.target\nremote-fs-pre.target wants {port}\n{port} requires srp_daemon.service\n{port} after srp_daemon.service\n"
        );
        let ours = format!("{units}ibprov.service before srp_daemon.service\n");
        let proof = |lines: &str| {
            let judged = judge(&graph(lines), role_of, |_| false);
            judged.into_iter().find(|j| j.unit == port).expect("the instance").proof
        };
        let chain = ["ibprov.service", "srp_daemon.service", port].map(str::to_owned);
        assert_eq!(proof(&ours), Proof::Ordered(chain.to_vec()));
        assert!(matches!(proof(&units), Proof::Missing(_)));
    }

    #[test]
    fn services_are_known_by_name() {
        use Need::{Containers, Guests, Service};
        for (name, need) in [
            ("nvmet", Some(Service)),
            ("nvmf-autoconnect", Some(Service)),
            ("iscsid", Some(Service)),
            ("nvlsm", Some(Service)),
            ("beegfs-storage", Some(Service)),
            ("rke2-agent", Some(Containers)),
            ("pve-guests", Some(Guests)),
            ("sshd", None),
            ("beegfs", None),
        ] {
            assert_eq!(by_name(name), need, "{name}");
        }
    }

    #[test]
    fn the_drop_in_closes_the_gap() {
        let with = format!("{NODE}scratch.mount after ibprov.service\n");
        let judged = judge(&graph(&with), role_of, |_| false);
        let mount = judged.iter().find(|j| j.unit == "scratch.mount").expect("mount");
        assert!(matches!(&mount.proof, Proof::Ordered(chain) if chain.len() == 2));
    }

    #[test]
    fn without_a_provider_nothing_is_proved() {
        let lines =
            "goal.target wants networking.service\nopenibd.service before networking.service\n";
        assert!(provider(&graph(lines)).is_none());
        assert_eq!(judge(&graph(lines), role_of, |_| false), []);
    }

    #[test]
    fn openibds_name_alone_brings_nothing_up() {
        let lines = "goal.target wants ibprov-openibd.service\nibprov-openibd.service alias openibd.service\n";
        assert!(provider(&graph(lines)).is_none());
    }
}
