//! Merging, judging and showing.

mod files;
mod guest;
mod hostile;
mod interface;
mod pf;
mod schema;
mod table;

use super::*;
use crate::names::Guid;
use expect_test::{Expect, expect};

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

#[track_caller]
fn bad(texts: &[&str], want: &Expect) {
    want.assert_eq(&loaded(texts).expect_err("bad").render(false));
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
fn everything_wrong_is_said_at_once() {
    let first = "[boot]\ndeadlin = \"4min\"\nadapter-timeout = \"soon\"\n\n[modules]\nload = \"ib_umad\"\nexclude = [\"a b\", 3]\n[[port]]\nrmda = \"mlx5_0\"\n";
    let second = "wait-online.timeout = \"30h\"\nmodules = 1\nport.pci = \"x\"\nx = = 1\n";
    bad(
        &[first, second],
        &expect![[r#"
            error: unknown key "deadlin" in [boot]
             --> /etc/0.toml:2:1
              |
            2 | deadlin = "4min"
              | ^^^^^^^
              |
              = help: possible are timeout, adapter-timeout, ports, ignore, at-least

            error: bad value for boot.adapter-timeout
             --> /etc/0.toml:3:19
              |
            3 | adapter-timeout = "soon"
              |                   ^^^^^^ "soon" is not a time span: write it like "240s", "4min" or "2min 30s", or as a whole number of seconds

            error: bad value for modules.load
             --> /etc/0.toml:6:8
              |
            6 | load = "ib_umad"
              |        ^^^^^^^^^ expected a list of strings, each a kernel module name, got a string

            error: bad value for modules.exclude
             --> /etc/0.toml:7:12
              |
            7 | exclude = ["a b", 3]
              |            ^^^^^ "a b" is not a kernel module name: expected letters, digits, '_' or '-', as `lsmod` prints it, without path or .ko

            error: bad value for modules.exclude
             --> /etc/0.toml:7:19
              |
            7 | exclude = ["a b", 3]
              |                   ^ expected a string with a kernel module name, got a whole number

            error: unknown key "rmda" in [[port]]
             --> /etc/0.toml:9:1
              |
            9 | rmda = "mlx5_0"
              | ^^^^
              |
              = help: did you mean rdma?

            error: bad value for wait-online.timeout
             --> /etc/1.toml:1:23
              |
            1 | wait-online.timeout = "30h"
              |                       ^^^^^ 30h is out of range: expected 1s to 1h

            error: modules is a section, not a whole number
             --> /etc/1.toml:2:11
              |
            2 | modules = 1
              |           ^
              |
              = help: write [modules] on a line of its own, its keys below

            error: port is a list of tables, not a table
             --> /etc/1.toml:3:1
              |
            3 | port.pci = "x"
              | ^^^^
              |
              = help: write [[port]] with two brackets, once for each

            error: TOML syntax
             --> /etc/1.toml:4:5
              |
            4 | x = = 1
              |     ^ extra `=`, expected nothing

            the configuration is not valid: 10 errors"#]],
    );
}

#[test]
fn contradictions_show_both_places() {
    let first =
        "[boot]\ntimeout = \"1min\"\n[modules]\nload = [\"ib_srp\"]\n[[port]]\nrdma = \"mlx5_0\"\n";
    let second = "boot.adapter-timeout = \"2min\"\nmodules.exclude = [\"ib-srp\"]\n[[port]]\nrdma = \"mlx5_0\"\nport = 1\n";
    bad(
        &[first, second],
        &expect![[r#"
            error: module ib_srp is in modules.load and in modules.exclude
             --> /etc/0.toml:4:9
              |
            4 | load = ["ib_srp"]
              |         ^^^^^^^^ to be loaded here
              |
             ::: /etc/1.toml:2:20
              |
            2 | modules.exclude = ["ib-srp"]
              |                    -------- excluded here
              |
              = help: remove it from one of the two lists

            error: boot.adapter-timeout is longer than boot.timeout
             --> /etc/1.toml:1:24
              |
            1 | boot.adapter-timeout = "2min"
              |                        ^^^^^^ one adapter may take 2min
              |
             ::: /etc/0.toml:2:11
              |
            2 | timeout = "1min"
              |           ------ the boot may take 1min
              |
              = help: set boot.timeout to at least as much

            error: the same port is described twice
             --> /etc/1.toml:4:8
              |
            4 | rdma = "mlx5_0"
              |        ^^^^^^^^ here
              |
             ::: /etc/0.toml:6:8
              |
            6 | rdma = "mlx5_0"
              |        -------- and first here
              |
              = help: keep one of the two; `port = []` in a file between them clears the list before it

            the configuration is not valid: 3 errors"#]],
    );
}

#[test]
fn a_port_is_named_in_one_way() {
    let text = "[[port]]\nrequired = false\n[[port]]\npci = \"0000:4b:00.0\"\nrdma = \"mlx5_0\"\n[[port]]\nport-guid = \"0002:c903:000e:8acd\"\nport = 1\n[[port]]\nport-guid = \"0000:0000:0000:0000\"\n";
    bad(
        &[text],
        &expect![[r#"
            error: port does not name a port
             --> /etc/0.toml:1:1
              |
            1 | [[port]]
              | ^^^^^^^^ names no adapter and no port
              |
              = help: give exactly one of pci, port-guid, rdma

            error: port names its port in more than one way
             --> /etc/0.toml:4:7
              |
            4 | pci = "0000:4b:00.0"
              |       ^^^^^^^^^^^^^^ one way
            5 | rdma = "mlx5_0"
              |        -------- and another
              |
              = help: keep exactly one of pci, port-guid, rdma

            error: port.port has no meaning beside port.port-guid
             --> /etc/0.toml:8:8
              |
            7 | port-guid = "0002:c903:000e:8acd"
              |             --------------------- is one port already
            8 | port = 1
              |        ^ which port of an adapter
              |
              = help: remove port

            error: bad value for port.port-guid
              --> /etc/0.toml:10:13
               |
            10 | port-guid = "0000:0000:0000:0000"
               |             ^^^^^^^^^^^^^^^^^^^^^ an all-zero GUID means that a port has no GUID

            the configuration is not valid: 4 errors"#]],
    );
}

#[test]
fn the_default_deadline_is_named_where_it_contradicts() {
    bad(
        &["boot.adapter-timeout = \"5min\"\n"],
        &expect![[r#"
            error: boot.adapter-timeout is longer than boot.timeout
             --> /etc/0.toml:1:24
              |
            1 | boot.adapter-timeout = "5min"
              |                        ^^^^^^ one adapter may take 5min
              |
              = help: the boot may take 4min (the default): set boot.timeout too

            the configuration is not valid: 1 error"#]],
    );
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
fn a_syntax_error_makes_no_followers_on_its_line() {
    bad(
        &["[boot]\ntimeout = 4min\n[modules\nload = [\"ib_umad\"\n"],
        &expect![[r#"
            error: TOML syntax
             --> /etc/0.toml:2:11
              |
            2 | timeout = 4min
              |           ^^^^ string values must be quoted, expected literal string

            error: TOML syntax
             --> /etc/0.toml:3:9
              |
            3 | [modules
              |         ^ unclosed table, expected `]`

            error: TOML syntax
             --> /etc/0.toml:4:18
              |
            4 | load = ["ib_umad"
              |                  ^ unclosed array, expected `]`

            the configuration is not valid: 3 errors"#]],
    );
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
                    PlaceTold {
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
        rxe = []  # default
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

/// It has no PCI function, whose port could be waited for.
#[test]
fn a_soft_roce_device_is_no_port() {
    bad(
        &["[[rxe]]\nname = \"rxe0\"\nnetdev = \"eth1\"\n[[port]]\nrdma = [\"mlx5_0\", \"rxe0\"]\n"],
        &expect![[r#"
            error: port.rdma rxe0 is a soft RoCE device
             --> /etc/0.toml:5:19
              |
            5 | rdma = ["mlx5_0", "rxe0"]
              |                   ^^^^^^
              |
              = help: /etc/0.toml:1 has it as [[rxe]], which is waited for and judged without a [[port]]: remove this one

            the configuration is not valid: 1 error"#]],
    );
}
