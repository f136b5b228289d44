//! Whatever a host shows: the verbs never disagree on it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use crate::account::facts;
use crate::host::{Host, PortSpec};

/// An adapter and what the configuration says of it.
#[derive(Debug, Clone)]
struct Adapter {
    /// It is on the bus.
    present: bool,
    driver: Option<&'static str>,
    rdma: bool,
    ethernet: bool,
    netdev: bool,
    named: bool,
    link: Link,
    /// It is listed, and whether as optional.
    listed: Option<bool>,
    /// The P_Key table of its port; `None` is not shown.
    pkeys: Option<&'static [&'static str]>,
    /// Its netdev is up without carrier, whatever the port is.
    without_carrier: bool,
    /// How many VFs are planned.
    vfs: Option<u8>,
    /// The VFs that are present.
    present_vfs: Vec<Vf>,
    /// How the link of its second port is, if it has one.
    second: Option<Link>,
    /// What the configuration asks of its ports.
    demand: Option<&'static str>,
}

/// A VF that is present.
#[derive(Debug, Clone)]
struct Vf {
    driver: Option<&'static str>,
    guid: VfGuid,
    /// Its driver has read the GUIDs that the PF has for it.
    fresh: bool,
    policy: &'static str,
    /// Its port is active; else it is Down.
    active: bool,
}

/// The port GUID of a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VfGuid {
    Planned,
    Other,
    Zero,
    /// All that have this one have the same.
    Shared,
}

impl VfGuid {
    /// Node GUID and port GUID of VF `vf` of adapter `at`.
    fn pair(self, at: usize, vf: usize) -> [String; 2] {
        [0, 1].map(|kind| match self {
            Self::Planned => format!("0200:0000:{at:02x}12:{kind:02x}{vf:02x}"),
            Self::Other => format!("0200:0000:{at:02x}13:{kind:02x}{vf:02x}"),
            Self::Zero => "0000:0000:0000:0000".to_owned(),
            Self::Shared => format!("0200:0000:aaaa:{kind:02x}00"),
        })
    }
}

/// How the link of its port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Active,
    Polling,
    Disabled,
    Init,
    Armed,
    WithoutLid,
    /// The tree does not show it.
    NotShown,
}

impl Link {
    /// Logical state, physical state, LID.
    const fn files(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Active | Self::NotShown => ("4: ACTIVE", "5: LinkUp", "0x7"),
            Self::Polling => ("1: DOWN", "2: Polling", "0xffff"),
            Self::Disabled => ("1: DOWN", "3: Disabled", "0xffff"),
            Self::Init => ("2: INIT", "5: LinkUp", "0x0"),
            Self::Armed => ("3: ARMED", "5: LinkUp", "0x7"),
            Self::WithoutLid => ("4: ACTIVE", "5: LinkUp", "0x0"),
        }
    }
}

#[derive(Debug, Clone)]
struct Node {
    adapters: Vec<Adapter>,
    /// Which modules are not loaded.
    missing: Vec<&'static str>,
    /// What modprobe.d denies.
    denied: Option<&'static str>,
    /// What the `[[interface]]` of all of them has.
    settings: &'static str,
    bad_configuration: bool,
    /// `boot.at-least`.
    at_least: Option<usize>,
    /// How the last boot ended.
    boot: Option<&'static str>,
    /// A guest has not come up.
    guest: bool,
    /// ibprov=0.
    switched_off: bool,
}

fn vf() -> impl Strategy<Value = Vf> {
    let driver = prop_oneof![
        6 => Just(Some("mlx5_core")),
        1 => Just(None),
        1 => Just(Some("vfio-pci")),
    ];
    let guid = prop_oneof![
        6 => Just(VfGuid::Planned),
        1 => Just(VfGuid::Other),
        1 => Just(VfGuid::Zero),
        1 => Just(VfGuid::Shared),
    ];
    let policy = prop_oneof![6 => Just("Follow"), 1 => Just("Up"), 2 => Just("Down")];
    let often = || prop::bool::weighted(0.8);
    (driver, guid, often(), policy, often()).prop_map(|(driver, guid, fresh, policy, active)| Vf {
        driver,
        guid,
        fresh,
        policy,
        active,
    })
}

fn adapter() -> impl Strategy<Value = Adapter> {
    let driver = prop_oneof![
        6 => Just(Some("mlx5_core")),
        1 => Just(None),
        1 => Just(Some("vfio-pci")),
    ];
    let link = || {
        prop_oneof![
            6 => Just(Link::Active),
            2 => Just(Link::Polling),
            1 => Just(Link::Disabled),
            1 => Just(Link::Init),
            1 => Just(Link::Armed),
            1 => Just(Link::WithoutLid),
            1 => Just(Link::NotShown),
        ]
    };
    let second = prop_oneof![3 => Just(None), 1 => link().prop_map(Some)];
    let vfs = prop_oneof![2 => Just(Vec::new()), 2 => prop::collection::vec(vf(), 1..4)];
    let demand = prop_oneof![
        4 => Just(None),
        1 => prop::sample::select(&[
            "rate = \"400 Gb/s\"",
            "pkeys = [\"0x8012\"]",
            "firmware = \">= 99.1\"",
        ][..]).prop_map(Some),
    ];
    const FULL: &[&str] = &["0xffff", "0x8012"];
    const LIMITED: &[&str] = &["0x7fff"];
    let pkeys = prop_oneof![3 => Just(None), 1 => Just(Some(FULL)), 1 => Just(Some(LIMITED))];
    (
        prop::bool::weighted(0.9),
        driver,
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.9),
        (link(), second, vfs),
        prop_oneof![3 => Just(None), 1 => any::<bool>().prop_map(Some)],
        prop_oneof![3 => Just(None), 1 => (0u8..4).prop_map(Some)],
        (pkeys, prop::bool::weighted(0.1), demand),
    )
        .prop_map(
            |(present, driver, rdma, ethernet, netdev, named, link, listed, vfs, fabric)| {
                let (pkeys, without_carrier, demand) = fabric;
                let (link, second, present_vfs) = link;
                Adapter {
                    present,
                    driver,
                    rdma,
                    ethernet,
                    netdev,
                    named,
                    link,
                    listed,
                    pkeys,
                    without_carrier,
                    vfs,
                    present_vfs,
                    second,
                    demand,
                }
            },
        )
}

fn node() -> impl Strategy<Value = Node> {
    let rare = || prop::bool::weighted(0.1);
    let missing = prop_oneof![
        4 => Just(Vec::new()),
        1 => prop::sample::subsequence(vec!["ib_umad", "ib_ipoib"], 1..=2),
    ];
    // The driver of these adapters refuses connected mode.
    let settings = prop_oneof![
        8 => Just(""),
        1 => Just("mtu = 2040\n"),
        1 => Just("mode = \"connected\"\n"),
        1 => Just("mode = \"connected\"\numcast = true\n"),
        1 => Just("mode = \"connected\"\nmtu = 65520\n"),
    ];
    let at_least = prop_oneof![4 => Just(None), 1 => (1usize..4).prop_map(Some)];
    let boot = prop_oneof![Just(None), Just(Some("ready")), Just(Some("not-ready"))];
    let adapters = prop::collection::vec(adapter(), 0..4);
    let denied = prop_oneof![
        4 => Just(None),
        1 => prop::sample::select(&["mlx5_core", "mlx5_ib", "ib_ipoib"][..]).prop_map(Some),
    ];
    (adapters, missing, denied, settings, rare(), at_least, boot, (rare(), rare())).prop_map(
        |(adapters, missing, denied, settings, bad_configuration, at_least, boot, more)| Node {
            adapters,
            missing,
            denied,
            settings,
            bad_configuration,
            at_least,
            boot,
            guest: more.0,
            switched_off: more.1,
        },
    )
}

/// The report of a run of `ibprov guests`.
const GUEST: &str = r#"{
  "schema": 1, "report": "guests", "verdict": "not-ready", "exit_code": 3,
  "guests": [{"name": "vm1", "kind": "domain", "phase": "failed", "reason": "no"}]
}"#;

fn lay_out_vfs(host: &mut Host, pf: &str, at: usize, vfs: &[Vf]) {
    let dir = format!("sys/bus/pci/devices/{pf}");
    for (index, vf) in vfs.iter().enumerate() {
        let pci = format!("{}{}", &pf[..pf.len() - 1], index + 1);
        host.function(&pci, "15b3:101c", "020700", vf.driver);
        host.link(&format!("sys/bus/pci/devices/{pci}/physfn"), &format!("../{pf}"));
        host.link(&format!("{dir}/virtfn{index}"), &format!("../{pci}"));
        let [node, port] = vf.guid.pair(at, index);
        let ofed = format!("{dir}/sriov/{index}");
        let with_colons = |guid: &str| {
            let digits = guid.replace(':', "");
            let bytes: Vec<&str> = (0..8).map(|byte| &digits[2 * byte..2 * byte + 2]).collect();
            format!("{}\n", bytes.join(":"))
        };
        host.file(&format!("{ofed}/node"), &with_colons(&node));
        host.file(&format!("{ofed}/port"), &with_colons(&port));
        host.file(&format!("{ofed}/policy"), &format!("{}\n", vf.policy));
        if vf.driver == Some("mlx5_core") {
            let own = if vf.fresh { vf.guid } else { VfGuid::Zero };
            let [node, port] = own.pair(at, index);
            let (netdev, device) = (format!("ib{at}v{index}"), format!("mlx5_{at}{index}"));
            let link = if vf.active { Link::Active } else { Link::Polling };
            let (state, physical, lid) = link.files();
            let spec = PortSpec {
                guid: &port,
                state,
                physical,
                lid,
                netdev: Some(&netdev),
                ..PortSpec::default()
            };
            host.rdma(&pci, &device, &node, &[spec]);
            if !vf.active {
                host.file(&format!("sys/bus/pci/devices/{pci}/net/{netdev}/carrier"), "0\n");
            }
        }
    }
}

fn lay_out(node: &Node) -> Host {
    let mut host = Host::new();
    let mut text = String::new();
    // The rows choose only where they are told to.
    if node.adapters.first().is_some_and(|adapter| adapter.listed.is_some()) {
        text.push_str("boot.ports = \"listed\"\n");
    }
    if let Some(ports) = node.at_least {
        text.push_str(&format!("boot.at-least = {ports}\n"));
    }
    for module in &node.missing {
        host.remove(&format!("sys/module/{module}"));
    }
    for (at, adapter) in node.adapters.iter().enumerate() {
        let pci = format!("0000:{:02x}:00.0", 16 + at);
        if adapter.present {
            host.function(&pci, "15b3:101b", "020700", adapter.driver);
            host.file(&format!("sys/bus/pci/devices/{pci}/sriov_totalvfs"), "8\n");
            host.file(&format!("sys/bus/pci/devices/{pci}/mlx5_num_vfs"), "0\n");
        }
        if adapter.present && adapter.driver == Some("mlx5_core") && adapter.rdma {
            let (guid, netdev) = (format!("b859:9f03:0013:{at:04x}"), format!("ib{at}"));
            let (state, physical, lid) = adapter.link.files();
            let port = PortSpec {
                guid: &guid,
                state,
                physical,
                lid,
                link_layer: if adapter.ethernet { "Ethernet" } else { "InfiniBand" },
                netdev: (adapter.netdev && !adapter.ethernet).then_some(netdev.as_str()),
                named: adapter.named,
                ..PortSpec::default()
            };
            let dir = format!("sys/bus/pci/devices/{pci}");
            let (second_guid, second_netdev) =
                (format!("b859:9f03:0014:{at:04x}"), format!("ib{}", at + 8));
            let mut ports = vec![port];
            if let Some(link) = adapter.second {
                let (state, physical, lid) = link.files();
                ports.push(PortSpec {
                    number: 2,
                    guid: &second_guid,
                    state,
                    physical,
                    lid,
                    netdev: (!adapter.ethernet).then_some(second_netdev.as_str()),
                    link_layer: if adapter.ethernet { "Ethernet" } else { "InfiniBand" },
                    named: true,
                });
            }
            host.rdma(&pci, &format!("mlx5_{at}"), &guid, &ports);
            if let Some(link) = adapter.second.filter(|link| *link != Link::Active) {
                if !adapter.ethernet {
                    host.file(&format!("{dir}/net/{second_netdev}/carrier"), "0\n");
                }
                if link == Link::NotShown {
                    host.remove(&format!("{dir}/infiniband/mlx5_{at}/ports/2/state"));
                }
            }
            if !adapter.ethernet {
                lay_out_vfs(&mut host, &pci, at, &adapter.present_vfs);
            }
            if let Some(table) = adapter.pkeys {
                host.pkeys(&pci, &format!("mlx5_{at}"), table);
            }
            let is_dark = adapter.link != Link::Active || adapter.without_carrier;
            if adapter.netdev && !adapter.ethernet && is_dark {
                host.file(&format!("{dir}/net/{netdev}/carrier"), "0\n");
            }
            if adapter.link == Link::NotShown {
                host.remove(&format!("{dir}/infiniband/mlx5_{at}/ports/1/state"));
            }
        }
        if let Some(optional) = adapter.listed {
            text.push_str(&format!("[[port]]\npci = \"{pci}\"\nrequired = {}\n", !optional));
            text.extend(adapter.demand.map(|demand| format!("{demand}\n")));
        }
        if let Some(vfs) = adapter.vfs {
            text.push_str(&format!(
                "[[pf]]\npci = \"{pci}\"\nvfs = {vfs}\nguid.template = \"02:00:00:00:{at:02x}:12:{{kind:8}}:{{vf:8}}\"\n"
            ));
        }
    }
    if !node.settings.is_empty() {
        text.push_str(&format!("[[interface]]\nmatch.name = \"ib*\"\n{}", node.settings));
        let profile = "[connection]\nid=f\ntype=infiniband\ninterface-name=ib0\n[infiniband]\ntransport-mode=datagram\nmtu=2040\n";
        host.file("etc/NetworkManager/system-connections/f.nmconnection", profile);
        let unit = "lib/systemd/system/NetworkManager.service";
        host.file(unit, "[Service]\n");
        let link = "etc/systemd/system/multi-user.target.wants/NetworkManager.service";
        host.link(link, &format!("/{unit}"));
    }
    if let Some(module) = node.denied {
        host.file("etc/modprobe.d/site.conf", &format!("blacklist {module}\n"));
    }
    if node.bad_configuration {
        text.push_str("[boot]\ndeadlin = \"5min\"\n");
    }
    host.file("etc/ibprov/ibprov.toml", &text);
    if node.guest {
        host.file("run/ibprov/guests.json", GUEST);
    }
    if node.switched_off {
        host.file("proc/cmdline", "quiet ibprov=0\n");
    }
    if let Some(verdict) = node.boot {
        let code = if verdict == "ready" { 0 } else { 3 };
        let report =
            format!(r#"{{"schema":1,"report":"boot","verdict":"{verdict}","exit_code":{code}}}"#);
        host.file("run/ibprov/boot.json", &report);
    }
    host
}

/// The exit code and the report of a verb.
fn run(host: &Host, verb: &[&str]) -> (i32, Value) {
    let out = host.ibprov(&[verb, &["--format", "json"]].concat());
    let code = out.status.code().expect("exit code");
    (code, serde_json::from_slice(&out.stdout).unwrap_or(Value::Null))
}

/// The codes of what `status` finds, without what is past.
fn codes(status: &Value) -> Vec<String> {
    let findings = status["findings"].as_array().expect("findings").iter();
    let codes = findings.map(|f| f["code"].as_str().expect("code").to_owned());
    codes.filter(|code| code != "boot-failed").collect()
}

/// The objects of the findings with `code`, with their severity.
fn objects(report: &Value, code: &str) -> BTreeSet<(String, String)> {
    let findings = report["findings"].as_array().expect("findings").iter();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = findings.filter(|finding| finding["code"] == code);
    of.flat_map(|finding| {
        let objects = word(&finding["object"]);
        let each =
            objects.split(", ").map(|object| (word(&finding["severity"]), object.to_owned()));
        each.collect::<Vec<_>>()
    })
    .collect()
}

/// Each finding of a report is in its text.
fn prints_all(host: &Host, verb: &[&str], report: &Value) -> Result<(), TestCaseError> {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = plain(&host.show(verb));
    for finding in report["findings"].as_array().expect("findings") {
        let message = finding["message"].as_str().expect("a message").trim_end_matches('.');
        // That is a line of its own.
        let is_told = finding["code"] == "setting-deferred" || text.contains(&plain(message));
        prop_assert!(is_told, "{:?}: {:#}: {}", verb, finding, text);
    }
    Ok(())
}

/// metrics count the findings of status.
fn counts_all(metrics: &str, status: &Value) -> Result<(), TestCaseError> {
    let mut count = BTreeMap::new();
    for finding in status["findings"].as_array().expect("findings") {
        let severity = finding["severity"].as_str().expect("a severity").replace("info", "note");
        let code = finding["code"].as_str().expect("a code");
        let metric = format!("ibprov_findings{{code=\"{code}\",severity=\"{severity}\"}}");
        *count.entry(metric).or_insert(0) += 1;
    }
    let want: Vec<String> =
        count.iter().map(|(metric, count)| format!("{metric} {count}")).collect();
    let is_count = |line: &&str| line.starts_with("ibprov_findings{");
    let mut have: Vec<&str> = metrics.lines().filter(is_count).collect();
    have.sort_unstable();
    prop_assert_eq!(have, want);
    Ok(())
}

/// How many settings of each interface are refused.
fn refused(report: &Value) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for finding in report["findings"].as_array().expect("findings") {
        let object = finding["object"].as_str().unwrap_or_default();
        for object in object.split(", ").filter(|_| finding["code"] == "setting-refused") {
            *count.entry(object.to_owned()).or_default() += 1;
        }
    }
    count
}

/// status, check, metrics and health say the same of the ports, and what the tree shows of them.
fn agree_on_ports(
    node: &Node,
    host: &Host,
    (status_code, status): (i32, &Value),
    (check_code, check): (i32, &Value),
) -> Result<(), TestCaseError> {
    let inactive = objects(status, "port-not-active");
    prop_assert_eq!(&inactive, &objects(check, "port-not-active"), "{:#}", check);
    prop_assert_eq!(status_code == 3, check_code == 3, "{:#}", check);
    prop_assert_eq!(status_code == 2, check_code == 2, "{:#}", check);
    prop_assert!(status_code != 1 || check_code == 1, "{:#}", check);
    let metrics = host.show(&["metrics"]);
    let has = |metric: &str| metrics.lines().any(|line| line == metric);
    prop_assert!(has(&format!("ibprov_node_exit_code {status_code}")), "{}", metrics);
    counts_all(&metrics, status)?;
    agree_on_health(host, status_code, status)?;
    prints_all(host, &["status"], status)?;
    prints_all(host, &["check"], check)?;
    let count = |key: &str| status["expected_ports"][key].as_u64().expect("a count");
    prop_assert!(has(&format!("ibprov_ports_active {}", count("active"))), "{}", metrics);
    prop_assert!(count("active") <= count("of") && count("good") <= count("of"));

    // What the tree shows, of the ports that status expects and that are ready.
    // What a port lacks has the code of its cause.
    const LACKS: [&str; 5] = [
        "port-not-ready",
        "module-denied",
        "module-not-loaded",
        "module-missing-for-kernel",
        "setting-refused",
    ];
    let lacks: Vec<_> = LACKS.iter().flat_map(|code| objects(status, code)).collect();
    let (mut active, mut in_use, mut not_shown, mut dark) = (0, 0, 0, BTreeSet::new());
    // Of the required ports: whether any can be judged, and whether one of these is active.
    let absent = status["absent"].as_array().expect("what is absent").iter();
    let (mut is_judged, mut is_active) = (absent.clone().any(|a| a["required"] == true), false);
    for hca in status["hcas"].as_array().expect("adapters") {
        let is_bare = hca["ports"].as_array().expect("ports").is_empty();
        is_judged |= is_bare && hca["role"] == "expected";
    }
    for hca in status["hcas"].as_array().expect("adapters") {
        for port in hca["ports"].as_array().expect("ports") {
            let number = port["port"].as_u64().expect("a number");
            let name = format!(
                "{}/{number} ({})",
                hca["rdma"].as_str().expect("a name"),
                hca["pci"].as_str().expect("an address")
            );
            let netdev = port["netdev"].as_str();
            let is_missing =
                lacks.iter().any(|(_, object)| *object == name || Some(object.as_str()) == netdev);
            let role = port["role"].as_str().expect("a role");
            let at: usize =
                name[5..].split('/').next().and_then(|n| n.parse().ok()).expect("a number");
            let adapter = &node.adapters[at];
            let is_counted = !adapter.ethernet || adapter.listed.is_some();
            is_judged |= role == "expected" && is_counted && (is_missing || adapter.ethernet);
            if !["expected", "optional"].contains(&role) || adapter.ethernet {
                continue;
            }
            let link = if number == 1 { adapter.link } else { adapter.second.expect("a port") };
            // The fabric uses one without a netdev too.
            in_use += u64::from(link == Link::Active);
            if is_missing {
                continue;
            }
            match link {
                Link::Active => active += 1,
                Link::NotShown => not_shown += 1,
                _ => drop(dark.insert((role == "optional", name))),
            }
            is_judged |= role == "expected" && link != Link::NotShown;
            is_active |= role == "expected" && link == Link::Active;
        }
    }
    prop_assert_eq!(count("active"), in_use, "{:#}", status);
    prop_assert_eq!(count("not_judged"), not_shown, "{:#}", status);
    if not_shown > 0 && not_shown == count("of") {
        prop_assert!([2, 3].contains(&status_code), "{:#}", status);
    }
    let enough = u64::try_from(node.at_least.unwrap_or(1)).expect("a number");
    let is_enough = match (node.at_least, is_judged) {
        (None, true) => is_active,
        _ => active + not_shown >= enough,
    };
    let is_dead = node.at_least.is_none() && is_judged && !is_active;
    prop_assert!(!is_dead || status_code == 3, "0 of the required ports are active: {:#}", status);
    let want = dark.into_iter().map(|(optional, name)| {
        let severity = match (optional, is_enough) {
            (true, _) => "info",
            (false, true) => "warning",
            (false, false) => "error",
        };
        (severity.to_owned(), name)
    });
    prop_assert_eq!(inactive, want.collect::<BTreeSet<_>>(), "{:#}", status);
    Ok(())
}

/// health ends as each program that asks has it: by what the node lacks, and by no other
/// exception.
fn agree_on_health(host: &Host, status_code: i32, status: &Value) -> Result<(), TestCaseError> {
    const BELOW_DEMAND: [&str; 4] =
        ["port-not-active", "port-degraded", "pcie-below-minimum", "pkey-missing"];
    let plans = status["planned_vfs"]["of"] != 0;
    let fails = |finding: &Value| match finding["severity"].as_str().expect("a severity") {
        "error" => true,
        "warning" => {
            let code = finding["code"].as_str().expect("a code");
            BELOW_DEMAND.contains(&code) || plans && code == "vf-port-not-active"
        }
        _ => false,
    };
    let mut findings = status["findings"].as_array().expect("findings").iter();
    let failed = i32::from(findings.any(fails));
    let codes = match status_code {
        2 => [2, 3, 1, 1, 2],
        0 => [0; 5],
        1 => [failed, 1, failed, failed, 1],
        _ => [1, 2, 1, 1, 3],
    };
    let askers =
        [&["--for", "npd"][..], &["--for", "nagios"], &["--for", "nhc"], &["--for", "slurm"], &[]];
    for (asker, code) in askers.into_iter().zip(codes) {
        let out = host.ibprov(&[&["health"], asker].concat());
        prop_assert_eq!(out.status.code(), Some(code), "{:?}: {:#}", asker, status);
    }
    Ok(())
}

/// What a plan of VFs lacks, which each verb that holds it against the host says.
const OF_PLANS: [&str; 6] = [
    " vf-not-as-planned ",
    " vf-deferred ",
    " vf-plan-blocked ",
    " pf-absent ",
    " sriov-not-enabled-fw ",
    " too-many-vfs ",
];

/// What VFs lack that no plan gives.
const WITHOUT_A_PLAN: [&str; 4] =
    ["vf-guid-zero", "vf-policy-down", "vf-guid-duplicate", "vf-port-not-active"];

fn agree(node: &Node) -> Result<(), TestCaseError> {
    let host = lay_out(node);
    let (status_code, status) = run(&host, &["status"]);
    let (check_code, check) = run(&host, &["check"]);
    let (boot_code, boot) = run(&host, &["boot", "--dry-run"]);
    let (apply_code, apply) = run(&host, &["apply", "--dry-run"]);
    let (plan_code, plan) = run(&host, &["plan"]);
    let codes = codes(&status);
    let is_about = |prefix: &str| codes.iter().any(|code| code.starts_with(prefix));

    // The exit code is the verdict's, and the headline's.
    prop_assert_eq!(status["exit_code"].as_i64(), Some(i64::from(status_code)));
    let text = host.show(&["status"]);
    let good = text.starts_with("ready: ") || text.starts_with("nothing expected: ");
    prop_assert_eq!(good, status_code == 0, "{}", text);

    if node.bad_configuration {
        // Units go on with what is right.
        prop_assert_eq!((status_code, boot_code, apply_code, plan_code), (3, 3, 2, 2), "{}", text);
        prop_assert_ne!(check_code, 0);
        return Ok(());
    }
    agree_on_ports(node, &host, (status_code, &status), (check_code, &check))?;
    // Of the same fact each says the same, with the same code.
    let said = facts(&status);
    let not_in_check: Vec<String> = said.difference(&facts(&check)).cloned().collect();
    prop_assert!(not_in_check.is_empty(), "{:?}: {:#}", not_in_check, check);
    let is_judged = |fact: &&String| [" vf-", " port-", " pf-"].iter().any(|of| fact.contains(of));
    let of_check = facts(&check);
    let only_in_check: Vec<&String> = of_check.difference(&said).filter(is_judged).collect();
    prop_assert!(only_in_check.is_empty(), "{:?}: {:#}", only_in_check, status);
    for report in [&check, &boot] {
        prop_assert_eq!(refused(report), refused(&status), "{:#}", report);
    }
    agree_on_interfaces(node, &host, &said)?;
    // Boot loads ib_ipoib, and waits for netdevs that nothing on the host is configured for.
    let all = status["findings"].as_array().expect("findings");
    let is_unwanted = all.iter().any(|finding| finding["object"] == "ib_ipoib");
    let is_of_ipoib = |fact: &&String| is_unwanted && fact.contains(" module-");
    for dry_run in [&boot, &apply, &plan] {
        let facts = facts(dry_run);
        let only_here = facts.difference(&said).filter(|fact| !is_of_ipoib(fact));
        let only_here: Vec<&String> = only_here.collect();
        prop_assert!(only_here.is_empty(), "{:?}: {:#}", only_here, status);
    }
    let of_vfs = |fact: &&String| OF_PLANS.iter().any(|code| fact.contains(code));
    for dry_run in [&boot, &apply, &plan] {
        let facts = facts(dry_run);
        let missing: Vec<&String> = said.difference(&facts).filter(of_vfs).collect();
        prop_assert!(missing.is_empty(), "{:?}: {:#}", missing, dry_run);
    }
    // A dry run has something to do or to wait for exactly where status finds something
    // that is not as it is meant to be.
    // What no plan gives is not a plan's; a GUID that a plan gives, and that cannot be set, is.
    let pfs = plan["pfs"].as_array().expect("pfs");
    let is_refused = pfs.iter().any(|pf| pf["refused"] != serde_json::json!([]));
    let is_planned = |code: &&String| {
        !WITHOUT_A_PLAN.iter().any(|unplanned| *code == unplanned)
            || is_refused && *code == "vf-guid-zero"
    };
    let about_vfs = codes.iter().filter(is_planned).any(|code| {
        ["vf-", "pf-", "sriov-", "too-many-vfs"].into_iter().any(|prefix| code.starts_with(prefix))
    });
    // boot does not wait for what the fabric does.
    let is_of_fabric = |code: &&String| {
        ["port-not-active", "port-not-judged", "port-degraded"].contains(&code.as_str())
    };
    let about_ports = codes.iter().any(|code| code.starts_with("port-") && !is_of_fabric(&code));
    let is_pending = about_ports || is_about("module-") || about_vfs || is_about("setting-refused");
    let would = boot["steps"].as_array().is_some_and(|steps| !steps.is_empty());
    let denied = boot["denied"].as_array().is_some_and(|denied| !denied.is_empty());
    // What the site denies is left as it is.
    let is_only_denied =
        codes.iter().all(|code| !code.starts_with("module-") || code == "module-denied");
    let is_left = denied || !about_ports && !about_vfs && is_only_denied;
    if boot_code == 0 && !is_left {
        prop_assert!(!is_pending, "boot would change nothing, and status says {:?}", codes);
    }
    if !is_pending && !would {
        prop_assert_eq!(boot_code, 0, "{:?}: {:#}", codes, boot);
    }
    // VFs, as plan has them.
    prop_assert_eq!(plan_code != 0, about_vfs, "{:?}: {:#}", codes, plan);
    prop_assert_eq!(plan_code, apply_code);
    // What status calls not ready, check does not call healthy, and names no fewer ports.
    let failed = check["verdict"] == "ready";
    if status_code == 3 {
        prop_assert!(!failed, "{:#}", check);
        prop_assert_ne!(check_code, 0);
    }
    Ok(())
}

/// The dry run at the netdevs of all first ports says what status says of each, and of the port
/// whose settings it would make.
fn agree_on_interfaces(
    node: &Node,
    host: &Host,
    said: &BTreeSet<String>,
) -> Result<(), TestCaseError> {
    for (at, adapter) in node.adapters.iter().enumerate() {
        let name = format!("ib{at}");
        let dry_run = host.ibprov(&["iface", &name, "--dry-run", "--format", "json"]);
        let has_netdev = adapter.present
            && adapter.driver == Some("mlx5_core")
            && adapter.rdma
            && adapter.netdev
            && !adapter.ethernet;
        let code = dry_run.status.code().expect("exit code");
        prop_assert_eq!(code != 2, has_netdev);
        if !has_netdev {
            continue;
        }
        let report: Value = serde_json::from_slice(&dry_run.stdout).expect("JSON");
        prints_all(host, &["iface", &name, "--dry-run"], &report)?;
        let facts = facts(&report);
        let only_here: Vec<&String> = facts.difference(said).collect();
        // What no port is expected to have, its interface may be asked for all the same.
        let is_expected = said.iter().any(|fact| fact.contains(&format!("mlx5_{at}/1 ")));
        let is_other = |fact: &&&String| is_expected || !fact.contains(" setting-refused ");
        let wrong: Vec<_> = only_here.iter().filter(is_other).collect();
        prop_assert!(wrong.is_empty(), "{:?}: {:#}", wrong, report);
        let of_it = said.iter().filter(|fact| fact.ends_with(&format!(" {name}")));
        let missing: Vec<&String> = of_it.filter(|fact| !facts.contains(*fact)).collect();
        prop_assert!(missing.is_empty(), "{:?}: {:#}", missing, report);
        let is_refused = facts.iter().any(|fact| fact.contains(" setting-refused "));
        prop_assert_eq!(code == 3, is_refused, "{:#}", report);
    }
    Ok(())
}

/// So many as PROPTEST_CASES says, or few enough for the lane.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

#[test]
fn the_verbs_never_disagree_on_a_node() {
    let mut runner = TestRunner::new(Config { cases: cases(), ..Config::default() });
    runner.run(&node(), |node| agree(&node)).expect("agreement");
}

/// What `status` says of each adapter by itself is what it says of all together, but for what is
/// of no adapter.
#[test]
fn what_is_said_of_one_is_what_is_said_of_it_among_all() {
    for (host, of_no_adapter) in [(crate::dgx::degraded(), 2), (crate::sites::degraded(), 0)] {
        let status = |names: &[&str]| {
            let out = host.ibprov(&[&["status", "--format", "json"], names].concat());
            serde_json::from_slice::<Value>(&out.stdout).expect("JSON")
        };
        let sorted = |mut findings: Vec<Value>| {
            findings.sort_by_key(ToString::to_string);
            findings
        };
        let whole = status(&[]);
        let mut all = whole["findings"].as_array().expect("findings").clone();
        all.retain(|finding| finding["code"] != "module-missing-for-kernel");
        let (mut each, mut counts) = (Vec::new(), [0; 3]);
        for hca in whole["hcas"].as_array().expect("HCAs") {
            let one = status(&[hca["pci"].as_str().expect("address")]);
            each.extend(one["findings"].as_array().expect("findings").clone());
            for (sum, key) in counts.iter_mut().zip(["good", "active", "of"]) {
                *sum += one["expected_ports"][key].as_u64().expect("a number");
            }
            let ports = &one["expected_ports"];
            let none_is = ports["of"] != 0 && ports["active"] == 0;
            let is_worse = one["exit_code"].as_u64() > whole["exit_code"].as_u64();
            assert!(!is_worse || none_is, "{one:#}");
            assert!(!none_is || one["exit_code"] == 3, "{one:#}");
        }
        let left_out = whole["findings"].as_array().expect("findings").len() - all.len();
        assert_eq!((sorted(each), left_out), (sorted(all), of_no_adapter));
        let ports = &whole["expected_ports"];
        assert_eq!(counts.map(Value::from), ["good", "active", "of"].map(|k| ports[k].clone()));
    }
}

/// An adapter that nothing is configured for.
fn plain(netdev: bool, link: Link) -> Adapter {
    Adapter {
        present: true,
        driver: Some("mlx5_core"),
        rdma: true,
        ethernet: false,
        netdev,
        named: netdev,
        link,
        listed: None,
        pkeys: None,
        without_carrier: false,
        vfs: None,
        present_vfs: Vec::new(),
        second: None,
        demand: None,
    }
}

/// A node with these adapters, and no more.
fn bare(adapters: Vec<Adapter>) -> Node {
    Node {
        adapters,
        missing: Vec::new(),
        denied: None,
        settings: "",
        bad_configuration: false,
        at_least: None,
        boot: None,
        guest: false,
        switched_off: false,
    }
}

/// A port that lacks its netdev is none of `boot.at-least`, whether or not the tree shows its
/// link.
#[test]
fn a_port_without_a_netdev_is_not_one_that_may_be_active() {
    let adapters = [plain(false, Link::NotShown), plain(true, Link::Polling)];
    for at_least in [None, Some(1)] {
        let node = Node { at_least, ..bare(adapters.to_vec()) };
        agree(&node).expect("the verbs agree");
    }
}

/// Of a module that is denied, and that a port needs, each verb speaks at the port.
#[test]
fn a_module_that_a_port_lacks_is_said_of_the_port() {
    let (missing, denied, settings) = (vec!["ib_ipoib"], Some("ib_ipoib"), "mtu = 2040\n");
    let node = Node { missing, denied, settings, ..bare(vec![plain(false, Link::Active)]) };
    agree(&node).expect("the verbs agree");
}
