//! What is left out of a configuration with errors, and that nothing is done for it that would not
//! be done without them.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;
use strum::VariantArray as _;

/// What is right of these files.
fn right(texts: &[&str]) -> Config {
    let sources = texts.iter().enumerate();
    let sources = sources.map(|(i, text)| source(&format!("/etc/{i}.toml"), text)).collect();
    let loaded = resolve_right(sources, Problems::default());
    assert!(!loaded.problems.is_empty(), "{texts:?} has an error");
    loaded.config
}

const DEFAULT: [&str; 3] = ["ib_ipoib", "ib_umad", "ib_uverbs"];

#[test]
fn a_typo_in_one_table_leaves_the_rest() {
    let config = right(&[
        "[boot]\ntimeout = \"3min\"\n[[guest]]\nunit = \"a.service\"\nvsf = []\n[[guest]]\nunit = \"b.service\"\n",
        "[[interface]]\nmatch.name = \"ib*\"\nmtu = 2044\n",
    ]);
    assert_eq!(config.modules.load, modules(&DEFAULT));
    assert_eq!(config.boot.timeout, Duration::from_secs(180));
    assert_eq!(config.interfaces.len(), 1);
    assert!(!config.interfaces[0].is_withheld);
    let withheld: Vec<bool> = config.guests.list.iter().map(|guest| guest.is_withheld).collect();
    assert_eq!(withheld, [true, false]);
    assert!(config.withheld.has(Part::Guests) && !config.withheld.has(Part::Ports));
}

#[test]
fn a_typo_in_a_section_leaves_its_other_keys_and_the_modules() {
    let config = right(&["[boot]\ntimeuot = \"3min\"\nat-least = 2\n"]);
    assert_eq!(
        config.boot,
        Boot { at_least: config.boot.at_least.clone(), ..Config::default().boot }
    );
    assert_eq!(config.boot.at_least.as_ref().map(|at_least| at_least.ports), Some(2));
    assert_eq!(config.modules.load, modules(&DEFAULT));
    assert!(config.withheld.has(Part::Ports));
    // Nothing of the section can be a flag.
    assert_eq!(right(&["[boot]\nverbose = true\n"]).boot, Config::default().boot);
}

#[test]
fn a_list_that_takes_away_and_has_an_error_leaves_only_what_is_named() {
    for text in [
        "modules.exclude = [\"ib umad\"]",
        "modules.exclude = \"ib_umad\"",
        "modules.exlude = [\"ib_umad\"]",
        "modules.skip = [\"ib_umad\"]",
        "modules.unwanted = [\"ib_umad\"]",
        "exclude = [\"ib_umad\"]",
        "[module]\nexclude = [\"ib_umad\"]",
    ] {
        let config = right(&["modules.load = [\"ib_srp\"]\n", text]);
        assert_eq!(config.modules.load, modules(&["ib_srp"]), "{text}");
        let excludes = |name: &str| config.modules.excludes(&name.parse().expect("name"));
        assert!(excludes("ib_umad") && excludes("mlx5_ib") && !excludes("ib_srp"), "{text}");
    }
    for text in [
        "boot.ignore = [\"4b:00\"]",
        "boot.ignore = \"4b:00.0\"",
        "boot.ignored = [\"4b:00.0\"]",
        "boot.not-these = [\"4b:00.0\"]",
        "boot.ignore = [\"ib0\"]",
        "boot.ports = \"lsted\"",
    ] {
        assert_eq!(right(&[text]).boot.ports, PortChoice::Listed, "{text}");
    }
    // A bad entry takes nothing away that was ignored, nor does it clear a list.
    let config = right(&["boot.ignore = [\"5e:00.0\"]", "boot.ignore = [\"4b:00\"]"]);
    assert_eq!(config.boot.ignore.len(), 1);
    assert_eq!(right(&["modules.load = [\"rdma ucm\"]"]).modules.load, modules(&DEFAULT));
    assert_eq!(right(&["modules.load = \"rdma_ucm\""]).modules.load, modules(&DEFAULT));
    // But this may have been an empty list.
    assert_eq!(right(&["modules.load = 0"]).modules.load, []);
    // What a stronger file takes back is no error any more.
    let config = right(&["modules.exclude = [\"ib umad\"]", "modules.exclude = []"]);
    assert_eq!(config.modules.load, modules(&DEFAULT));
}

#[test]
fn of_a_module_that_is_both_loaded_and_excluded_the_exclusion_holds() {
    let config = right(&["[modules]\nload = [\"ib_umad\", \"ib_srp\"]\nexclude = [\"ib_umad\"]\n"]);
    assert_eq!(config.modules.load, modules(&["ib_ipoib", "ib_uverbs", "ib_srp"]));
}

const PF: &str = "[[pf]]\npci = \"4b:00.0\"\nvfs = 2\nguid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"\n";

#[test]
fn a_pf_with_an_error_is_left_as_it_is_and_the_others_keep_their_numbers() {
    let other = PF.replace("4b", "5e");
    for broken in [
        PF.replace("vfs = 2", "vfs = -2"),
        PF.replace("vfs", "vf"),
        format!("{PF}[[pf.vf]]\nindex = 0\nowner = \"cmi\"\n"),
        PF.replace("{vf:16}", "{vf:17}"),
    ] {
        let config = right(&[&broken, &other]);
        let seen: Vec<(u64, bool)> =
            config.pf.iter().map(|pf| (pf.vfs.into(), pf.is_withheld)).collect();
        assert_eq!(seen, [(0, true), (2, false)], "{broken}");
        assert_eq!(config.pf[1].number, 1, "{broken}");
    }
    let twice = right(&[PF, &PF.replace("vfs = 2", "vfs = 0"), &other]);
    assert_eq!(twice.pf.iter().map(|pf| pf.is_withheld).collect::<Vec<_>>(), [true, false]);
    // Which PF is meant is not known, or what number the host has.
    for text in [
        PF.replace("4b:00.0", "4b"),
        PF.replace("pci", "pic"),
        format!("{PF}rdma = \"mlx5_0\"\n"),
        "pf = 1\n".to_owned(),
        "[host]\nnumber = \"7\"\n".to_owned(),
        "[host]\nnumbr = 7\n".to_owned(),
        "[[ppf]]\npci = \"4b:00.0\"\nvfs = 0\n".to_owned(),
    ] {
        let config = right(&[&text, &other]);
        assert!(config.withheld.has_all_pfs(), "{text}");
        assert!(config.pf.iter().all(|pf| pf.is_withheld), "{text}");
    }
}

#[test]
fn a_port_with_an_error_is_expected_and_not_touched() {
    let text = "boot.ports = \"listed\"\n[[port]]\npci = \"4b:00.0\"\nwait = \"online\"\nrequired = false\nrdma-name = \"rail0\"\ntpye = \"ib\"\n";
    let config = right(&[text]);
    let [port] = config.ports.as_slice() else { panic!("{config:?}") };
    assert!(port.is_withheld && !port.required && port.rdma_name.is_none());
    assert_eq!((port.wait, config.boot.ports), (PortWait::Online, PortChoice::Listed));
    let config =
        right(&["[[port]]\npci = \"4b\"\n[[port]]\npci = \"5e:00.0\"\nrdma-name = \"rail0\"\n"]);
    assert!(config.withheld.has_all_ports());
    assert_eq!(config.ports[0].rdma_name, None);
    // Of what is expected and ignored, neither.
    let config = right(&["boot.ignore = [\"4b:00.0\"]\n[[port]]\npci = \"4b:00.0\"\n"]);
    assert_eq!((config.ports.len(), config.boot.ignore.len()), (0, 1));
}

#[test]
fn the_interface_of_a_rule_with_an_error_has_no_other() {
    let all = "[[interface]]\nmatch.name = \"*\"\nmtu = 2044\n";
    let config = right(&[all, "[[interface]]\nmatch.name = \"ib0\"\nmode = \"conected\"\n"]);
    let withheld: Vec<bool> = config.interfaces.iter().map(|rule| rule.is_withheld).collect();
    assert_eq!(withheld, [true, false]);
    let config = right(&[all, "[[interface]]\nmatch.nmae = \"ib0\"\nmode = \"connected\"\n"]);
    assert!(config.withheld.has_all_interfaces() && config.interfaces.is_empty());
    let child =
        "[[interface]]\nmatch.name = \"ib0\"\nmtu = 4092\n[[interface.partition]]\npkey = \"x\"\n";
    assert!(right(&[child]).interfaces[0].is_withheld);
}

#[test]
fn a_scalar_with_an_error_is_not_what_a_weaker_file_says() {
    let weak =
        "rdma.netns = \"exclusive\"\nmetrics.file = \"/run/x.prom\"\n[guests]\nmax-parallel = 8\n";
    let config =
        right(&[weak, "rdma.netns = \"shraed\"\nmetrics.file = 1\nguests.max-parallel = 0\n"]);
    assert_eq!((config.netns_mode, &config.metrics_file), (None, &None));
    assert_eq!(config.guests.max_parallel, 1);
    // A stronger file that is right holds.
    let config = right(&["rdma.netns = \"shraed\"\n", "rdma.netns = \"shared\"\n"]);
    assert_eq!(config.netns_mode, Some(NetnsMode::Shared));
}

#[test]
fn the_subnet_managers_of_other_tables_run() {
    let entry = "[[subnet-manager]]\nport-guid = \"98039b0300a1b0c1\"\npriority = 14\n";
    let other = entry.replace("b0c1", "b0c2").replace("14", "16");
    let config = right(&[entry, &other]);
    let seen = config.subnet_managers.iter();
    let seen: BTreeSet<(String, bool)> =
        seen.map(|sm| (sm.port_guid.to_string(), sm.is_withheld)).collect();
    let [one, two] = ["9803:9b03:00a1:b0c1", "9803:9b03:00a1:b0c2"].map(str::to_owned);
    assert_eq!(seen, BTreeSet::from([(one, false), (two, true)]));
    assert!(!config.withheld.has(Part::Ports));
    assert!(right(&[entry, "guest = 1"]).subnet_managers.iter().all(|sm| !sm.is_withheld));
    let config = right(&[entry, &entry.replace("98039b", "x")]);
    assert!(config.subnet_managers[0].is_withheld);
}

#[test]
fn a_file_that_is_not_toml_stops_plans_names_settings_and_guests_of_all() {
    let all = format!(
        "{PF}[[port]]\npci = \"4b:00.0\"\nrdma-name = \"rail0\"\n[[interface]]\nmatch.name = \"*\"\nmtu = 2044\n[[guest]]\nunit = \"a.service\"\n[[rxe]]\nname = \"rxe0\"\nnetdev = \"eth0\"\n[rdma]\nnetns = \"exclusive\"\n[modules]\nload = [\"ib_srp\"]\nexclude = [\"ib_umad\"]\n[boot]\ntimeout = \"3min\"\n"
    );
    for text in ["[boot\n", "[modules]\nload = [\"rdma_ucm\"]\nexclude = []\nx\n", "[zzz]\nx = 1\n"]
    {
        let config = right(&[&all, text]);
        assert_eq!(config.modules.load, modules(&["ib_ipoib", "ib_uverbs", "ib_srp"]), "{text}");
        assert_eq!(config.boot.timeout, Duration::from_secs(180), "{text}");
        assert!(config.pf[0].is_withheld && config.guests.list[0].is_withheld, "{text}");
        assert!(config.ports[0].is_withheld && config.ports[0].rdma_name.is_none(), "{text}");
        assert_eq!((config.interfaces.len(), config.rxe.len()), (0, 0), "{text}");
        assert_eq!(config.netns_mode, None, "{text}");
        assert!(Part::VARIANTS.iter().all(|part| config.withheld.has(*part)), "{text}");
    }
}

#[test]
fn of_two_that_contradict_neither_is_carried_out() {
    let rule = "[[interface]]\nmatch.port-guid = \"98039b0300a1b0c1\"\nname = \"ib_a\"\n";
    let config = right(&[
        rule,
        &rule.replace("b0c1", "b0c2"),
        &rule.replace("b0c1", "b0c3").replace("ib_a", "ib_c"),
    ]);
    let seen: Vec<(bool, bool)> =
        config.interfaces.iter().map(|rule| (rule.is_withheld, rule.name.is_some())).collect();
    assert_eq!(seen, [(true, false), (true, false), (false, true)]);
    let config = right(&["boot.timeout = 10\nboot.adapter-timeout = 20\n"]);
    assert_eq!(config.boot, Config::default().boot);
    let guest = "[[guest]]\nunit = \"a.service\"\nafter = [\"b.service\"]\n[[guest]]\nunit = \"b.service\"\nafter = [\"a.service\"]\n[[guest]]\nunit = \"c.service\"\n";
    let config = right(&[guest]);
    assert!(config.guests.list[0].is_withheld && !config.guests.list[2].is_withheld);
}

/// What a configuration has done: nothing of this may be more for an error.
fn done(config: &Config) -> BTreeSet<String> {
    let mut done = BTreeSet::new();
    done.extend(config.modules.load.iter().map(|module| format!("load {module}")));
    done.extend(config.netns_mode.map(|mode| format!("{mode:?}")));
    done.extend(config.metrics_file.iter().map(|path| path.display().to_string()));
    if config.boot.ports == PortChoice::Found && !config.withheld.has_all_ports() {
        done.insert(format!(
            "found but {:?}",
            config.boot.ignore.iter().map(|i| &i.which).collect::<Vec<_>>()
        ));
    }
    for pf in config.pf.iter().filter(|pf| !pf.is_withheld) {
        done.insert(format!("{:?}", Pf { origin: String::new(), ..pf.clone() }));
    }
    for row in config.ports.iter().filter(|row| row.rdma_name.is_some()) {
        done.insert(format!("{} {:?}", row.which, row.rdma_name));
    }
    // Every rule is for each interface that it matches, one after the other.
    let withholds = |name: &str| {
        let mut rules = config.interfaces.iter();
        rules.any(|rule| rule.is_withheld && matches!(&rule.which, InterfaceSelector::Name(p) if p.matches(&name.parse().expect("name"))))
    };
    for name in ["ib0", "ib1"].into_iter().filter(|name| !withholds(name)) {
        let (mut mode, mut mtu) = (None, None);
        for rule in &config.interfaces {
            if matches!(&rule.which, InterfaceSelector::Name(p) if p.matches(&name.parse().expect("name")))
            {
                (mode, mtu) = (rule.mode.or(mode), rule.mtu.or(mtu));
            }
        }
        done.extend(mode.map(|mode| format!("{name} {mode:?}")));
        done.extend(mtu.map(|mtu| format!("{name} {mtu}")));
    }
    for guest in config.guests.list.iter().filter(|guest| !guest.is_withheld) {
        done.insert(format!("start {} with {:?}", guest.what, guest.vfs));
    }
    for sm in config.subnet_managers.iter().filter(|sm| !sm.is_withheld) {
        done.insert(format!("{:?}", SubnetManager { origin: String::new(), ..sm.clone() }));
    }
    done.extend(config.rxe.iter().map(|rxe| format!("{} {}", rxe.name, rxe.netdev)));
    done
}

/// Lines of a configuration, each with what a typo may make of it.
const PIECES: [&str; 14] = [
    "[modules]\nload = []\n",
    "[modules]\nload = [\"ib_srp\"]\nexclude = [\"ib_umad\"]\n",
    "[modules]\nexclude = [\"ib_ipoib\", \"rdma_ucm\"]\n",
    "[boot]\nignore = [\"4b:00.0\"]\ntimeout = \"3min\"\n",
    "[boot]\nports = \"listed\"\n",
    "[rdma]\nnetns = \"shared\"\n",
    "[metrics]\nfile = \"/run/a.prom\"\n",
    "[[pf]]\npci = \"4b:00.0\"\nvfs = 0\n",
    "[[pf]]\npci = [\"5e:00.0\", \"5e:00.1\"]\nvfs = 4\nguid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"\n[[pf.vf]]\nindex = 1\nowner = \"cni\"\n",
    "[[port]]\npci = \"4b:00.0\"\nwait = \"online\"\nrdma-name = \"rail0\"\n",
    "[[interface]]\nmatch.name = \"ib*\"\nmode = \"connected\"\nmtu = 65520\n",
    "[[interface]]\nmatch.name = \"ib0\"\nmode = \"datagram\"\nmtu = 2044\n",
    "[[guest]]\nunit = \"a.service\"\nvfs = [\"5e:00.0/1\"]\n",
    "[[subnet-manager]]\nport-guid = \"98039b0300a1b0c1\"\npriority = 14\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A character is lost, doubled or another, anywhere in one of several files.
    #[test]
    fn no_error_has_more_done(
        chosen in prop::collection::vec(0..PIECES.len(), 1..6),
        at in any::<prop::sample::Index>(),
        which in any::<prop::sample::Index>(),
        slip in prop::sample::select(vec!["", "x", "\"", "=", "[", "]", "0", " ", "\n", "#x"]),
    ) {
        let mut files: Vec<String> = chosen.iter().map(|at| PIECES[*at].to_owned()).collect();
        let texts: Vec<&str> = files.iter().map(String::as_str).collect();
        let Ok(before) = loaded(&texts) else { return Ok(()) };
        let file = which.index(files.len());
        let at = at.index(files[file].len());
        files[file].replace_range(at..=at, slip);
        let texts: Vec<&str> = files.iter().map(String::as_str).collect();
        let sources = texts.iter().map(|text| source("/etc/x.toml", text)).collect();
        let after = resolve_right(sources, Problems::default());
        // What is no error is what was written.
        prop_assume!(!after.problems.is_empty());
        let withheld = after.config.withheld.clone();
        let (before, mut after) = (done(&before.config), done(&after.config));
        // Without the file, modules and waiting go by what the others say.
        if Part::VARIANTS.iter().all(|part| withheld.has(*part)) {
            after.retain(|done| !["load ", "found ", "/run/"].iter().any(|s| done.starts_with(s)));
        }
        prop_assert!(after.is_subset(&before), "{files:?}: {:?}", after.difference(&before));
    }
}
