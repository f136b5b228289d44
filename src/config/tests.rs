//! Merging, judging and showing.

mod cases;
pub(super) mod files;
mod hostile;
mod interface;
mod pf;
mod schema;
mod table;
mod withheld;

use std::time::Duration;

use super::*;
use crate::config::guest::{GuestIndex, Needs, What};
use crate::names::{Guid, OnFailure, Ready};
use expect_test::expect;

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

fn loaded(texts: &[&str]) -> Result<Loaded, Problems> {
    let sources = texts.iter().enumerate();
    let sources = sources.map(|(i, text)| source(&format!("/etc/{i}.toml"), text)).collect();
    resolve(sources, Problems::default())
}

fn good(texts: &[&str]) -> Config {
    loaded(texts).expect("good").config
}

fn modules(names: &[&str]) -> Vec<ModuleName> {
    names.iter().map(|name| name.parse().expect("module name")).collect()
}

#[test]
fn no_file_is_the_default() {
    assert_eq!(good(&[]), Config::default());
    assert_eq!(good(&["", "# nothing\n"]), Config::default());
}

#[test]
fn a_later_value_wins_and_lists_are_appended_to() {
    let first = "[boot]\ntimeout = 300\nadapter-timeout = \"2min 50s\"\n[modules]\nload = [\"ib_srp\", \"ib_umad\"]\n";
    let second = "boot.timeout = \"10min\"\nmodules.load = [\"rdma-ucm\", \"ib_srp\"]\nmodules.exclude = [\"ib_ipoib\"]\n";
    let config = good(&[first, second]);
    assert_eq!(config.boot.timeout, Duration::from_secs(600));
    assert_eq!(config.boot.adapter_timeout, Duration::from_secs(170));
    assert_eq!(config.modules.load, modules(&["ib_umad", "ib_uverbs", "ib_srp", "rdma_ucm"]));
    assert_eq!(config.modules.exclude, modules(&["ib_ipoib"]));
}

#[test]
fn an_empty_list_takes_away_what_came_before() {
    let config =
        good(&["modules.load = [\"ib_srp\"]", "modules.load = []", "modules.load = [\"ib_umad\"]"]);
    assert_eq!(config.modules.load, modules(&["ib_umad"]));
    let config = good(&["[[port]]\nrdma = \"mlx5_0\"\n", "port = []"]);
    assert_eq!(config.ports, []);
}

#[test]
fn a_short_deadline_holds_for_one_hca_too() {
    let config = good(&["boot.timeout = 60"]);
    assert_eq!(config.boot.adapter_timeout, Duration::from_secs(60));
}

#[test]
fn each_way_to_name_a_port_is_read() {
    let text = "[[port]]\npci = \"0000:4b:00.0\"\nport = 2\n\n[[port]]\nport-guid = \"0x0002c903000e8acd\"\nrequired = false\n\n[[port]]\nrdma = \"mlx5_0\"\n";
    let ports = good(&[text]).ports;
    let [a, b, c] = ports.as_slice() else { panic!("three") };
    assert_eq!(a.which, PortSelector::Pci("0000:4b:00.0".parse().expect("address")));
    assert_eq!((a.port.map(PortNumber::get), a.required), (Some(2), true));
    assert_eq!(a.origin, "/etc/0.toml:1");
    assert_eq!(b.which, PortSelector::PortGuid(Guid::new(0x0002_c903_000e_8acd)));
    assert_eq!((b.port, b.required, b.origin.as_str()), (None, false, "/etc/0.toml:5"));
    assert_eq!(c.which, PortSelector::Rdma("mlx5_0".parse().expect("name")));
}

#[test]
fn each_setting_of_a_guest_is_read_and_after_is_resolved() {
    let text = "[[guest]]\nunit = \"vm@8.service\"\nvfs = [\"0000:4b:00.0/0\", \"0000:4b:00.0/0\"]\nafter = [\"vm; reboot\"]\n\n[[guest]]\ndomain = \"vm; reboot\"\ntimeout = 5\non-failure = \"report\"\nready = \"agent\"\n";
    let config = good(&[text, "guests.max-parallel = 2"]);
    assert_eq!(config.guests.max_parallel, 2);
    let [unit, domain] = config.guests.list.as_slice() else { panic!("two: {config:?}") };
    assert!(matches!(&unit.what, What::Unit(name) if name.as_str() == "vm@8.service"));
    assert!(matches!(&unit.vfs, Needs::These(vfs) if vfs.len() == 1), "{unit:?}");
    assert_eq!(unit.after, [GuestIndex::new(1)]);
    assert_eq!(domain.what.name(), "vm; reboot");
    assert_eq!(domain.vfs, Needs::Auto);
    assert_eq!((domain.on_failure, domain.ready), (OnFailure::Report, Ready::Agent));
    assert_eq!((domain.timeout.as_secs(), domain.origin.as_str()), (5, "/etc/0.toml:6"));
}

#[test]
fn a_bad_deadline_makes_no_followers() {
    let hca = "boot.adapter-timeout = 3600\n";
    for texts in [
        &["boot.timeout = \"ever\"\n", hca][..],
        &["boot.timeout \"1h\"\n", hca],
        &["boot.timeout = 10\n", "boot.timeout = \"ever\"\n", hca],
    ] {
        let problems = loaded(texts).expect_err("bad");
        assert_eq!(problems.len(), 1, "{problems}");
    }
}

#[test]
fn what_is_not_utf_8_is_shown_where() {
    let problem = Source::new("/etc/a.toml".to_owned(), b"# good\nx = \"\xff\xfe\"\n".to_vec());
    let mut problems = Problems::default();
    problems.push(problem.expect_err("not UTF-8"));
    expect![[r#"
        error: the file is not UTF-8 text
         --> /etc/a.toml:2:6
          |
        2 | x = "��"
          |      ^ byte 0xff
          |
          = help: save it as UTF-8

        the configuration is not valid: 1 error"#]]
    .assert_eq(&problems.render(false));
}

#[test]
fn what_programs_are_told_has_places_by_line_and_column() {
    let problems = loaded(&["[boot]\nx = 1\n"]).expect_err("bad");
    expect![[r#"
        [
            ProblemTold {
                message: "unknown key \"x\" in [boot]",
                places: [
                    Place {
                        file: "/etc/0.toml",
                        line: 2,
                        column: 1,
                        label: "",
                    },
                ],
                help: Some(
                    "possible are timeout, adapter-timeout, ports, ignore, at-least",
                ),
            },
        ]
    "#]]
    .assert_debug_eq(&problems.told());
}

#[test]
fn show_names_each_origin() {
    let first = "[boot]\ntimeout = 100\n[modules]\nload = [\"ib_srp\"]\nexclude = [\"ib_umad\"]\n";
    let second =
        "[[port]]\npci = \"0000:4b:00.0\"\nrequired = false\n[[port]]\nrdma = \"mlx5_1\"\n";
    let loaded = loaded(&[first, second]).expect("good");
    expect![[r#"
        interface = []  # default
        pf = []  # default
        firmware = []  # default
        rxe = []  # default
        subnet-manager = []  # default
        guest = []  # default

        [boot]
        timeout = "1min 40s"  # from /etc/0.toml:2
        adapter-timeout = "1min 40s"  # default
        ports = "found"  # default
        ignore = []  # default

        [modules]
        load = [
            "ib_ipoib",  # default
            "ib_uverbs",  # default
            "ib_srp",  # from /etc/0.toml:4
        ]
        exclude = [
            "ib_umad",  # from /etc/0.toml:5
        ]

        [[port]]
        pci = "0000:4b:00.0"  # from /etc/1.toml:2
        required = false  # from /etc/1.toml:3

        [[port]]
        rdma = "mlx5_1"  # from /etc/1.toml:5

        [network]
        timeout = "1min 30s"  # default

        [wait-online]
        timeout = "2min"  # default
        state = "active"  # default
        address = false  # default

        [host]
        number-rule = "only-digits"  # default

        [health]
        tolerate = []  # default
        fail-on = []  # default

        [guests]
        connection = "qemu:///system"  # default
        max-parallel = 4  # default
        timeout = "2min"  # default
    "#]]
    .assert_eq(&to_toml(&loaded.effective()));
    let first = &loaded.effective()[0];
    let file = SettingOrigin::File { path: "/etc/0.toml".to_owned(), line: 2 };
    assert_eq!((first.key.as_str(), &first.origin), ("boot.timeout", &file));
    assert_eq!(first.value, "1min 40s");
    let second = &loaded.effective()[1];
    assert_eq!((&second.value, &second.origin), (&"1min 40s".into(), &SettingOrigin::Default));
}
