use expect_test::expect;

use crate::host::{Host, PortSpec};

#[test]
fn a_dry_run_says_what_would_be_loaded_and_awaited() {
    let mut host = Host::new();
    for module in ["ib_umad", "ib_ipoib"] {
        host.remove(&format!("sys/module/{module}"));
    }
    host.function("0000:01:00.0", "15b3:101b", "020700", None);
    host.function("0000:02:00.0", "15b3:1003", "028000", Some("mlx4_core"));
    host.function("0000:03:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    host.rdma("0000:03:00.0", "mlx5_0", "b859:9f03:0012:a490", &[PortSpec::default()]);
    host.function("0000:04:00.0", "15b3:101b", "020700", Some("pci-stub"));
    host.function("0000:05:00.0", "15b3:101b", "020000", Some("mlx5_core"));
    expect![[r#"
        would load ib_ipoib, ib_umad
        would load the driver of 0000:01:00.0
        would load mlx4_ib for 0000:02:00.0
        would wait for 0000:01:00.0: reached pci, wanted named
        would wait for 0000:02:00.0: reached driver, wanted named
        mlx5_0 port 1 (0000:03:00.0): has named, nothing to wait for
        would not wait for 0000:04:00.0: it is bound to pci-stub
        exit 0
    "#]]
    .assert_eq(&host.show(&["boot", "--dry-run"]));
}

#[test]
fn the_sites_deny_list_is_obeyed_in_the_plan() {
    let host = Host::new();
    host.remove("sys/module/ib_ipoib");
    host.file("etc/modprobe.d/site.conf", "blacklist ib_ipoib\nblacklist mlx4_core\n");
    host.function("0000:01:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    host.function("0000:02:00.0", "15b3:1003", "028000", None);
    expect![[r#"
        would load mlx5_ib for 0000:01:00.0
        would not load ib_ipoib: deny-listed by /etc/modprobe.d/site.conf:1
        would wait for 0000:01:00.0: reached driver, wanted named
        would not wait for 0000:02:00.0: its driver mlx4_core is deny-listed by /etc/modprobe.d/site.conf:2
        exit 0
    "#]].assert_eq(&host.show(&["boot", "--dry-run"]));
}

#[test]
fn what_the_configuration_skips_is_not_waited_for() {
    let host = Host::new();
    host.file("etc/ibprov/ibprov.toml", "[modules]\nskip = [\"mlx4_core\"]\n");
    host.function("0000:02:00.0", "15b3:1003", "028000", None);
    expect![[r#"
        no InfiniBand port is expected: nothing would be done
        would not wait for 0000:02:00.0: its driver mlx4_core is deny-listed by modules.skip of the configuration
        exit 0
    "#]]
    .assert_eq(&host.show(&["boot", "--dry-run"]));
}

#[test]
fn nothing_waits_with_a_bad_configuration() {
    let host = Host::healthy();
    host.file("etc/ibprov/ibprov.toml", "[boot]\ndeadlin = \"5min\"\n");
    for verb in [&["boot"][..], &["boot", "--dry-run"], &["wait-online"], &["apply"], &["plan"]] {
        let shown = host.show(verb);
        assert!(shown.contains("/etc/ibprov/ibprov.toml:2:1"), "{verb:?}: {shown}");
        assert!(shown.ends_with("exit 2\n"), "{verb:?}: {shown}");
    }
}

#[test]
fn a_host_without_cards_plans_nothing() {
    let host = Host::new();
    host.remove("sys/module/ib_ipoib");
    expect![[r#"
        no InfiniBand port is expected: nothing would be done
        exit 0
    "#]]
    .assert_eq(&host.show(&["boot", "--dry-run"]));
}
