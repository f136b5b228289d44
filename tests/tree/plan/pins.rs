//! Pins, and lines for the subnet manager.

use expect_test::expect;

use super::{good, node, plan};
use crate::account::{facts, json};
use crate::host::{Host, PF};

/// What plan shows of a PF with two pinned VFs and this warning.
#[track_caller]
fn drifts(host: &Host, warning: &str) {
    let head = "PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
  2 VFs planned, 0 present, 2 to create, GUIDs pinned
  VFs are bound one after the other, so that the kernel numbers them in their order
";
    let rest = "  + VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (pin)  link state follow  driver host
  + VF 1  node GUID 0200:000c:0000:0001  port GUID 0200:000c:0001:0001 (pin)  link state follow  driver host

Plan: 2 VFs to create
exit 1
";
    assert_eq!(host.show(&["plan"]), format!("{head}  warning: drift{warning}\n{rest}"));
    let (_, status) = json(host, &["status"]);
    let is_drift = |fact: &String| fact.starts_with("warning drift") && fact.ends_with(PF);
    assert!(facts(&status).iter().any(is_drift), "{status:#}");
}

#[test]
fn pins_hold_and_drift_wants_a_decision() {
    let host = node(&good(2));
    let pins = host.show(&["plan", "--pin"]);
    expect![[r##"
        # The GUIDs of the VFs of this host, written by `ibprov plan --pin`.
        # They take precedence over ibprov.toml: see ibprov-plan(8).
        # machine: digests of DMI's product UUID and board serial number, which a clone lacks;
        # config: how ibprov.toml names the PF; pci, node-guid, port-guids: which adapter
        # it was then; vfs: node GUID and port GUIDs of each VF, from VF 0 on.
        schema = 1
        host = "c12"

        [[pf]]
        config = { pci = "0000:4b:00.0" }
        pci = "0000:4b:00.0"
        node-guid = "b859:9f03:0012:a480"
        port-guids = ["b859:9f03:0012:a480"]
        vfs = [
            ["0200:000c:0000:0000", "0200:000c:0001:0000"], # VF 0
            ["0200:000c:0000:0001", "0200:000c:0001:0001"], # VF 1
        ]
        exit 1
    "##]]
    .assert_eq(&pins);
    let text = pins.strip_suffix("exit 1\n").expect("good");
    host.file("etc/ibprov/guid-pins.toml", text);
    plan(
        &host,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              2 VFs planned, 0 present, 2 to create, GUIDs pinned
              VFs are bound one after the other, so that the kernel numbers them in their order
              + VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (pin)  link state follow  driver host
              + VF 1  node GUID 0200:000c:0000:0001  port GUID 0200:000c:0001:0001 (pin)  link state follow  driver host

            Plan: 2 VFs to create
            exit 1
        "#]],
    );
    // The host is called otherwise: nothing changes in the fabric.
    host.file("etc/hostname", "c13\n");
    drifts(
        &host,
        " of VFs 0-1: the configured node GUID of VF 0 is 0200:000d:0000:0000, but 0200:000c:0000:0000 is pinned and stays in use
    do: correct the configuration, or the host's number, so that it gives the pinned GUIDs
    do: or pin the configured GUIDs
    run: ibprov plan --pin --replace",
    );
    // Pinning keeps what is pinned; replacing takes what the template gives.
    let kept = host.show(&["plan", "--pin"]);
    assert!(kept.contains("0200:000c:0001:0001") && kept.ends_with("exit 1\n"), "{kept}");
    let replaced = host.show(&["plan", "--pin", "--replace"]);
    assert!(replaced.contains("0200:000d:0001:0001") && replaced.ends_with("exit 1\n"));
    assert!(!replaced.contains("000c"), "{replaced}");
    // The template gives nothing for such a name: the pins hold all the same.
    host.file("etc/hostname", "login\n");
    drifts(
        &host,
        r#": the configuration no longer gives GUIDs; the pinned ones stay in use: the host has no number for {host:BITS} of guid.template: the host name "login" has no digits
    do: set host.number or host.number-file"#,
    );
    assert!(
        host.show(&["plan", "--pin", "--replace"])
            .ends_with("error: no GUID was pinned: correct the errors above first\nexit 3\n")
    );
    // Another card in the slot.
    host.file("etc/hostname", "c12\n");
    host.file(
        &format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0/ports/1/gids/0"),
        "fe80:0000:0000:0000:b859:9f03:0012:ffff\n",
    );
    drifts(
        &host,
        ": the adapter was replaced after the GUIDs were pinned (port GUID b859:9f03:0012:a480 then, b859:9f03:0012:ffff now); the pinned GUIDs stay in use
    do: keep the pinned GUIDs for this adapter
    run: ibprov plan --pin
    do: or pin the configured GUIDs
    run: ibprov plan --pin --replace",
    );
}

#[test]
fn a_cloned_image_gets_none_of_the_other_hosts_guids() {
    let golden = node(&good(2));
    let pins = golden.show(&["plan", "--pin"]);
    let text = pins.strip_suffix("exit 1\n").expect("good");
    // The same kind of node: the same slot, another card.
    let clone = node(&good(2));
    clone.file("etc/ibprov/guid-pins.toml", text);
    clone.file("etc/hostname", "c13\n");
    let rdma = format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0");
    clone.file(&format!("{rdma}/node_guid"), "b859:9f03:0012:ffff\n");
    clone.file(&format!("{rdma}/ports/1/gids/0"), "fe80:0000:0000:0000:b859:9f03:0012:ffff\n");
    plan(
        &clone,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              would not be applied:
              error: the pin file /etc/ibprov/guid-pins.toml belongs to another host, probably because an image was cloned: it names host "c12", this host is "c13", and the file lists none of its adapters
                do: give this host GUIDs of its own
                run: ibprov plan --pin --replace
                do: or restore the pin file of this host
                do: or, if the file is this host's and its adapters were replaced, set host = "c13" in the file
                run: ibprov plan --pin

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    let apply = clone.show(&["apply", "--dry-run"]);
    assert!(apply.contains("belongs to another host"), "{apply}");
    assert!(!apply.contains("0200:000c"), "{apply}");
    let pin = clone.show(&["plan", "--pin"]);
    assert!(pin.ends_with("no GUID was pinned: correct the errors above first\nexit 3\n"), "{pin}");
    let own = clone.show(&["plan", "--pin", "--replace"]);
    assert!(own.contains("host = \"c13\"") && own.ends_with("exit 1\n"), "{own}");
    assert!(!own.contains("0200:000c") && own.contains("0200:000d:0001:0001"), "{own}");
    // Its name from the kernel command line, and the image's own in the file.
    clone.remove("etc/ibprov/guid-pins.toml");
    clone.file("proc/cmdline", "quiet systemd.hostname=c17\n");
    plan(
        &clone,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              would not be applied:
              error: the host has no number for {host:BITS} of guid.template: the host's number is 17 by systemd.hostname=c17 on the kernel command line, and 13 by "c13" in /etc/hostname, so that one of them is wrong
                do: set host.number or host.number-file

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    clone.file("etc/hostname", "c17.example\n");
    let agreed = clone.show(&["plan"]);
    assert!(agreed.contains("0200:0011:0000:0000") && agreed.ends_with("exit 1\n"), "{agreed}");
}

/// A golden image that names its original in /etc/hostname is called so on each node, until
/// something names that.
#[test]
fn a_clone_with_its_originals_name_gets_none_of_its_guids() {
    let dmi = "sys/devices/virtual/dmi/id";
    let golden = node(&good(2));
    golden.link("sys/class/dmi/id", "../../devices/virtual/dmi/id");
    golden.file(&format!("{dmi}/product_uuid"), "4c4c4544-0043-3510-8052-b4c04f4a3733\n");
    golden.file(&format!("{dmi}/board_serial"), "To be filled by O.E.M.\n");
    let pins = golden.show(&["plan", "--pin"]);
    assert!(pins.contains("\nmachine = { product-uuid = \"baa2002367a0dbf1\" }\n"), "{pins}");
    let text = pins.strip_suffix("exit 1\n").expect("good");
    golden.file("etc/ibprov/guid-pins.toml", text);
    let own = golden.show(&["plan"]);
    assert!(own.contains("GUIDs pinned") && !own.contains("drift"), "{own}");

    let clone = node(&good(2));
    clone.link("sys/class/dmi/id", "../../devices/virtual/dmi/id");
    clone.file(&format!("{dmi}/product_uuid"), "4c4c4544-0043-3510-8052-b4c04f4a3734\n");
    clone.file("etc/ibprov/guid-pins.toml", text);
    let rdma = format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0");
    clone.file(&format!("{rdma}/node_guid"), "b859:9f03:0012:ffff\n");
    clone.file(&format!("{rdma}/ports/1/gids/0"), "fe80:0000:0000:0000:b859:9f03:0012:ffff\n");
    plan(
        &clone,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              would not be applied:
              error: the pin file /etc/ibprov/guid-pins.toml belongs to another host, probably because an image was cloned: it names host "c12", which is this host's name, but it was written on another machine (by DMI's product UUID or board serial number), and the file lists none of its adapters
                do: give this host GUIDs of its own
                run: ibprov plan --pin --replace
                do: or restore the pin file of this host
                do: or, if the file is this host's and its board and adapters were replaced, remove the key machine from the file
                run: ibprov plan --pin

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    for verb in [&["apply", "--dry-run"][..], &["boot", "--dry-run"]] {
        let said = clone.show(verb);
        assert!(said.contains("belongs to another host") && !said.contains("0200:000c"), "{said}");
    }
    // If it is the host of the file after all: as the advice says, and the next write has it.
    let line = text.lines().find(|line| line.starts_with("machine = ")).expect("the machine");
    clone.file("etc/ibprov/guid-pins.toml", &text.replace(&format!("{line}\n"), ""));
    let adopted = clone.show(&["plan", "--pin"]);
    assert!(
        adopted.contains("0200:000c:0001:0001") && adopted.contains("\nmachine = {"),
        "{adopted}"
    );
    assert!(!adopted.contains(line), "{adopted}");
    // What tells nothing of the machine decides nothing.
    clone.file("etc/ibprov/guid-pins.toml", text);
    clone.file(&format!("{dmi}/product_uuid"), "03000200-0400-0500-0006-000700080009\n");
    let said = clone.show(&["plan"]);
    assert!(
        said.contains("drift: the adapter was replaced") && said.ends_with("exit 1\n"),
        "{said}"
    );
}

#[test]
fn a_clone_of_a_host_called_localhost_gets_none_of_its_guids() {
    let config = format!("host.number = 12\n{}", good(2));
    let golden = node(&config);
    golden.file("etc/hostname", "localhost.localdomain\n");
    let pins = golden.show(&["plan", "--pin"]);
    let text = pins.strip_suffix("exit 1\n").expect("good");
    golden.file("etc/ibprov/guid-pins.toml", text);
    let own = golden.show(&["plan"]);
    assert!(own.contains("GUIDs pinned") && own.ends_with("exit 1\n"), "{own}");
    let clone = node(&config);
    clone.file("etc/ibprov/guid-pins.toml", text);
    clone.file("etc/hostname", "localhost.localdomain\n");
    let rdma = format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0");
    clone.file(&format!("{rdma}/node_guid"), "b859:9f03:0012:ffff\n");
    clone.file(&format!("{rdma}/ports/1/gids/0"), "fe80:0000:0000:0000:b859:9f03:0012:ffff\n");
    let want = expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:2)
          would not be applied:
          error: the pin file /etc/ibprov/guid-pins.toml belongs to another host, probably because an image was cloned: it names host "localhost.localdomain", which identifies no host, this host has no name of its own, and the file lists none of its adapters
            do: give this host GUIDs of its own
            run: ibprov plan --pin --replace
            do: or restore the pin file of this host
            do: or, if the file is this host's and its adapters were replaced, set port-guids in the file to the port GUIDs of the new adapters, which ibprov status -v prints
            run: ibprov plan --pin

        Plan: 1 PF would not be applied
        exit 3
    "#]];
    plan(&clone, &want);
    for verb in [&["apply", "--dry-run"][..], &["boot", "--dry-run"]] {
        let said = clone.show(verb);
        assert!(said.contains("belongs to another host") && !said.contains("0200:000c"), "{said}");
    }
    // The same where the file names no host.
    let fixed = "do: or, if the file is this host's and its adapters were replaced, set host";
    let nameless = text.replace("host = \"localhost.localdomain\"\n", "");
    clone.file("etc/ibprov/guid-pins.toml", &nameless);
    let said = clone.show(&["plan"]);
    assert!(said.contains("it names no host, this host has no name of its own"), "{said}");
    assert!(said.ends_with("exit 3\n"), "{said}");
    clone.file("etc/hostname", "c13\n");
    let said = clone.show(&["plan"]);
    assert!(
        said.contains("it names no host, this host is \"c13\"") && said.contains(fixed),
        "{said}"
    );
    clone.file("etc/hostname", "localhost.localdomain\n");
    // If the adapter was replaced: as the advice says.
    let adopted = text.replace("b859:9f03:0012:a480", "b859:9f03:0012:ffff");
    clone.file("etc/ibprov/guid-pins.toml", &adopted);
    let said = clone.show(&["plan"]);
    assert!(said.contains("0200:000c:0001:0001 (pin)") && !said.contains("drift"), "{said}");
}

#[test]
fn a_pin_file_that_shows_nothing_of_its_host_is_not_written() {
    let host = node(&format!("host.number = 12\n{}", good(2)));
    host.file("etc/hostname", "localhost\n");
    let pins = host.show(&["plan", "--pin"]);
    host.function(PF, "15b3:101b", "020700", None);
    host.remove(&format!("sys/bus/pci/devices/{PF}/infiniband"));
    let said = host.show(&["plan", "--pin"]);
    expect![[r#"
        error: no GUID was pinned: /etc/ibprov/guid-pins.toml would not show that it is of this host, which has no name of its own (/etc/hostname, systemd.hostname=) and no PF in the plan whose GUIDs are known. Set the name in /etc/hostname, or bind the PFs to their drivers (see ibprov status), then run ibprov plan --pin again
        exit 2
    "#]].assert_eq(&said);
    // With its pins it is not known yet whether they are its own: no failure.
    host.file("etc/ibprov/guid-pins.toml", pins.strip_suffix("exit 1\n").expect("good"));
    let want = expect![[r#"
        PF 0000:4b:00.0 (/etc/ibprov/ibprov.toml:2)
          would not be applied:
          error: the pin file /etc/ibprov/guid-pins.toml may belong to another host, if an image was cloned: it names host "localhost", which identifies no host, this host has no name of its own, and the file lists none of its adapters that have registered an RDMA device
            do: check that all adapters have their drivers and RDMA devices
            run: ibprov status
            do: give this host GUIDs of its own
            run: ibprov plan --pin --replace
            do: or restore the pin file of this host
            do: or, if the file is this host's and its adapters were replaced, set port-guids in the file to the port GUIDs of the new adapters, which ibprov status -v prints
            run: ibprov plan --pin

        Plan: 1 PF would not be applied
        exit 1
    "#]];
    plan(&host, &want);
}

#[test]
fn sealing_is_done_in_the_image_itself() {
    let host = node(&good(2));
    let said = host.show(&["plan", "--seal", "--dry-run"]);
    assert_eq!(
        said,
        "error: --seal cannot be combined with --root: run it in the image, with chroot\nexit 2\n"
    );
    let usage = host.show(&["plan", "--seal", "--pin"]);
    assert!(usage.contains("cannot be used with") && usage.ends_with("exit 2\n"), "{usage}");
    let usage = host.show(&["plan", "--dry-run"]);
    assert_eq!(
        usage,
        "error: plan changes nothing by itself: --dry-run belongs to --pin and --seal\nexit 2\n"
    );
}

#[test]
fn config_check_judges_the_pins_too() {
    let host = node(&good(1));
    host.file("etc/ibprov/guid-pins.toml", "pf = [\n");
    expect![[r#"
        the configuration files are valid; what is wrong besides is listed below
        files, in the order in which they apply:
          /etc/ibprov/ibprov.toml
        error: the host: cannot read the pin file /etc/ibprov/guid-pins.toml: line 1: unclosed array, expected `]`
            do: correct the file, or remove it to use the GUIDs of the configuration
        exit 2
    "#]]
    .assert_eq(&host.show(&["config", "check"]));
    // Also beside errors of the configuration.
    host.file("etc/ibprov/ibprov.toml", "[boot]\ntimeout = 0\n");
    let said = host.show(&["config", "check"]);
    assert!(said.contains("ibprov.toml:2:11") && said.contains("the pin file"), "{said}");
    let pins = host.show(&["plan", "--pin"]);
    assert!(pins.ends_with("exit 2\n"), "{pins}");
}

#[test]
fn pins_that_cannot_be_read_are_no_absence() {
    let host = node(&good(1));
    for (content, want) in [
        (
            &b"schema = 1\n[[pf\n"[..],
            expect![[r#"
                PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
                  would not be applied:
                  error: cannot read the pin file /etc/ibprov/guid-pins.toml: line 2: unclosed array table, expected `]]`
                    do: correct the file, or remove it to use the GUIDs of the configuration

                Plan: 1 PF would not be applied
                exit 3
            "#]],
        ),
        (
            b"\xff",
            expect![[r#"
                PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
                  would not be applied:
                  error: cannot read the pin file /etc/ibprov/guid-pins.toml: content is not UTF-8 text
                    do: correct the file, or remove it to use the GUIDs of the configuration

                Plan: 1 PF would not be applied
                exit 3
            "#]],
        ),
        (
            b"schema = 1\n[[pf]]\nconfig = { pci = \"\\u001b[2J\" }\npci = \"0000:4b:00.0\"\n",
            expect![[r#"
                PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
                  would not be applied:
                  error: cannot read the pin file /etc/ibprov/guid-pins.toml: pf 1: "\u{1b}[2J" is not a PCI address: expected domain:bus:device.function in hex, as `lspci -D` prints it, e.g. 0000:4b:00.0
                    do: correct the file, or remove it to use the GUIDs of the configuration

                Plan: 1 PF would not be applied
                exit 3
            "#]],
        ),
    ] {
        host.bytes("etc/ibprov/guid-pins.toml", content);
        plan(&host, &want);
        assert!(host.show(&["plan", "--pin"]).ends_with("exit 3\n"));
    }
}

#[test]
fn partitions_are_for_the_subnet_manager() {
    let host = node(&good(2));
    expect![[r#"
        # For a partitions.conf with a rule for ALL in Default: these lines alone would
        # remove opensm's built-in rule, Default=0x7fff : ALL=limited, SELF=full ;
        Default=0x7fff : 0x0200000c00010000=full ; # c12 0000:4b:00.0 VF 0
        Default=0x7fff : 0x0200000c00010001=full ; # c12 0000:4b:00.0 VF 1
        exit 0
    "#]]
    .assert_eq(&host.show(&["plan", "--partitions"]));
    expect![[r#"
        vfs=0x0005 : 0x0200000c00010000=limited ; # c12 0000:4b:00.0 VF 0
        vfs=0x0005 : 0x0200000c00010001=limited ; # c12 0000:4b:00.0 VF 1
        exit 0
    "#]]
    .assert_eq(&host.show(&[
        "plan",
        "--partitions",
        "--pkey",
        "0x8005",
        "--membership",
        "limited",
    ]));
    expect![[r#"
        vfs=0x0005,ipoib,mtu=5,rate=16 : 0x0200000c00010000=full ; # c12 0000:4b:00.0 VF 0
        vfs=0x0005,ipoib,mtu=5,rate=16 : 0x0200000c00010001=full ; # c12 0000:4b:00.0 VF 1
        exit 0
    "#]]
    .assert_eq(&host.show(&[
        "plan",
        "--partitions",
        "--pkey",
        "0x8005",
        "--ipoib",
        "--mtu",
        "4096",
        "--rate",
        "100",
    ]));
    for (option, value, said) in [
        ("--mtu", "4096", "--ipoib"),
        ("--rate", "100", "--ipoib"),
        ("--mtu", "4092", "expected 256, 512, 1024, 2048 or 4096"),
        ("--rate", "16", "expected 10, 14, 20"),
    ] {
        let mut arguments = vec!["plan", "--partitions", option, value];
        arguments.extend(said.starts_with("expected").then_some("--ipoib"));
        let usage = host.show(&arguments);
        assert!(usage.contains(said) && usage.ends_with("exit 2\n"), "{usage}");
    }
    let usage = host.show(&["plan", "--partitions", "--pkey", "0x8000"]);
    assert!(usage.contains("is not a P_Key") && usage.ends_with("exit 2\n"));
    // Only lines of a whole plan are printed.
    host.file("etc/ibprov/ibprov.toml", &good(17));
    expect![[r#"
        PF 0000:4b:00.0 (/etc/ibprov/ibprov.toml:1): error: 17 VFs are planned for 0000:4b:00.0, but the firmware allows 16 (sriov_totalvfs)
          do: set it (mlxconfig takes the same arguments), then reboot, or power the host off and on
          run: mstconfig -d 0000:4b:00.0 set SRIOV_EN=1 NUM_OF_VFS=17
        exit 3
    "#]].assert_eq(&host.show(&["plan", "--partitions"]));
}

#[test]
fn hostile_names_do_not_reach_the_terminal_or_the_partitions() {
    let host = node("[[pf]]\nrdma = \"mlx5_0\"\nvfs = 1\nguid.list = [\"0200:0000:0000:0001\"]\n");
    host.file("etc/hostname", "c12\u{1b}[2J;0x1=full\n");
    for arguments in [&["plan"][..], &["plan", "--partitions"], &["plan", "--pin"]] {
        let shown = host.show(arguments);
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }
    expect![[r#"
        # For a partitions.conf with a rule for ALL in Default: these lines alone would
        # remove opensm's built-in rule, Default=0x7fff : ALL=limited, SELF=full ;
        Default=0x7fff : 0x0200000000000001=full ; # c12[2J;0x1=full 0000:4b:00.0 VF 0
        exit 0
    "#]]
    .assert_eq(&host.show(&["plan", "--partitions"]));
}
