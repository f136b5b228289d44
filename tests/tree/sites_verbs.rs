//! What the other verbs print on the trees of `sites.rs`, on a screen of 80 columns: a change to
//! a message shows here what it does to each verb that prints it.

use expect_test::{Expect, expect};

use crate::host::Host;
use crate::sites::{degraded, failed, healthy};

/// Checks what a verb prints at 80 columns; at 100 it says the same, wrapped later.
#[track_caller]
fn prints(host: &Host, arguments: &[&str], want: &Expect) {
    let at = |columns| host.show_on(&[("COLUMNS", columns)], arguments);
    let (narrow, wide) = (at("80"), at("100"));
    want.assert_eq(&narrow);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&narrow), words(&wide));
    assert!(wide.lines().count() <= narrow.lines().count(), "{wide}");
}

#[test]
fn check() {
    prints(
        &healthy(),
        &["check"],
        &expect![[r#"
            verdict: ready (errors: 0, warnings: 0)
            read: no log

            info: healthy (confidence high)
              InfiniBand came up.
              Details:
                1. ready: 12 of 12 expected ports active, 192 of 192 VFs as planned
              Evidence:
                tree: mlx5_0/1: state ACTIVE, physical state LinkUp, sm_lid 1
            exit 0
        "#]],
    );
    prints(
        &degraded(),
        &["check"],
        &expect![[r#"
            verdict: exceptions (errors: 0, warnings: 3)
            read: no log

            warning: no-subnet-manager (confidence high)
              mlx5_2/1 has a link and stays in Initializing: no subnet manager has
              configured the port, and mlx5_0/1 is Active.
              Evidence:
                tree: mlx5_2/1: state INIT, physical state LinkUp, sm_lid ?
              Look:
                do: if it is in the fabric of mlx5_0/1 (Active): check its switch port
              Fix now:
                do: if it is in a fabric of its own, and `sminfo -C mlx5_2 -P 1` finds no
                    subnet manager: enable that of its switch, or run opensm on this port
                    alone (man 8 ibprov-opensm)

                warning: port-not-active (confidence high, caused by no-subnet-manager)
                  mlx5_2/1 (0000:12:00.0): not active: no subnet manager configured it
                  (Initializing).

            warning: link-down-cable (confidence high)
              mlx5_3/1 has no physical link: the cable, the module or the peer is the cause.
              Evidence:
                tree: mlx5_3/1: state DOWN, physical state Polling, sm_lid 1
              Look:
                do: check the cable and the switch port
                run: mlxlink -d 0000:13:00.0 || mstlink -d 0000:13:00.0
              Fix now:
                do: reseat the cable, or replace it

                warning: port-not-active (confidence high, caused by link-down-cable)
                  mlx5_3/1 (0000:13:00.0): no link: no cable, or the other end is down
                  (Polling).
                  Fix permanently:
                    do: if nothing is meant to be connected to it: `required = false` in its
                        [[port]], or boot.ignore (man 5 ibprov.toml)

            warning: vf-deferred (confidence high)
              PF 0000:14:00.0: VF 5 is left alone: the port GUID at the PF is
              0000:0000:0000:0000 instead of 0200:0000:0412:0105; it may be in use: its use
              cannot be determined: the function has no iommu_group.
              Look:
                run: ibprov plan
            exit 1
        "#]],
    );
    prints(
        &failed(),
        &["check"],
        &expect![[r#"
            verdict: not-ready (errors: 2, warnings: 1)
            read: no log

            error: port-not-ready (confidence high)
              0000:5e:00.0: no driver: no driver is bound to the function.
              Look:
                do: see `lspci -k` and dmesg

                warning: boot-failed (confidence high, caused by port-not-ready)
                  the last boot: boot incomplete (exit code 3).
                  Look:
                    run: journalctl -b -u ibprov.service

            error: port-absent (confidence high)
              0000:99:00.0: absent, and expected (listed in /etc/ibprov/ibprov.toml:3).
              Look:
                do: see whether the adapter is in another slot or disabled in the firmware
                    setup, or the VF not created yet
                run: lspci -Dnn -d 15b3:

            warning: port-absent (confidence high)
              0000:9a:00.0: absent, and optional (listed in /etc/ibprov/ibprov.toml:5).
              Look:
                do: see whether the adapter is in another slot or disabled in the firmware
                    setup, or the VF not created yet
                run: lspci -Dnn -d 15b3:
            exit 3
        "#]],
    );
}

#[test]
fn plan() {
    prints(
        &healthy(),
        &["plan"],
        &expect![[r#"
            PF 0000:10:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:11:00.0 mlx5_1 (/etc/ibprov/ibprov.toml:6)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:12:00.0 mlx5_2 (/etc/ibprov/ibprov.toml:11)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:13:00.0 mlx5_3 (/etc/ibprov/ibprov.toml:16)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:14:00.0 mlx5_4 (/etc/ibprov/ibprov.toml:21)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:15:00.0 mlx5_5 (/etc/ibprov/ibprov.toml:26)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:16:00.0 mlx5_6 (/etc/ibprov/ibprov.toml:31)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:17:00.0 mlx5_7 (/etc/ibprov/ibprov.toml:36)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:18:00.0 mlx5_8 (/etc/ibprov/ibprov.toml:41)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:19:00.0 mlx5_9 (/etc/ibprov/ibprov.toml:46)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:1a:00.0 mlx5_10 (/etc/ibprov/ibprov.toml:51)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:1b:00.0 mlx5_11 (/etc/ibprov/ibprov.toml:56)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            Plan: 192 VFs as planned
            exit 0
        "#]],
    );
    prints(
        &degraded(),
        &["plan"],
        &expect![[r#"
            PF 0000:10:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:11:00.0 mlx5_1 (/etc/ibprov/ibprov.toml:6)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:12:00.0 mlx5_2 (/etc/ibprov/ibprov.toml:11)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:13:00.0 mlx5_3 (/etc/ibprov/ibprov.toml:16)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:14:00.0 mlx5_4 (/etc/ibprov/ibprov.toml:21)
              16 VFs planned, 16 present, 1 deferred, 15 as planned, GUIDs not pinned
              ! VF 5 is left alone: the port GUID at the PF is 0000:0000:0000:0000 instead
                of 0200:0000:0412:0105; it may be in use: its use cannot be determined: the
                function has no iommu_group

            PF 0000:15:00.0 mlx5_5 (/etc/ibprov/ibprov.toml:26)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:16:00.0 mlx5_6 (/etc/ibprov/ibprov.toml:31)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:17:00.0 mlx5_7 (/etc/ibprov/ibprov.toml:36)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:18:00.0 mlx5_8 (/etc/ibprov/ibprov.toml:41)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:19:00.0 mlx5_9 (/etc/ibprov/ibprov.toml:46)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:1a:00.0 mlx5_10 (/etc/ibprov/ibprov.toml:51)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            PF 0000:1b:00.0 mlx5_11 (/etc/ibprov/ibprov.toml:56)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            Plan: 1 VF deferred, 191 as planned
            exit 1
        "#]],
    );
    prints(
        &failed(),
        &["plan"],
        &expect![[r#"
            no [[pf]] is configured, so that there is nothing to plan
            exit 0
        "#]],
    );
}

#[test]
fn boot() {
    prints(
        &healthy(),
        &["boot", "--dry-run"],
        &expect![[r#"
            boot would change nothing and not wait
            named: mlx5_0/1 (0000:10:00.0) as ibp16s0
            named: mlx5_1/1 (0000:11:00.0) as ibp17s0
            named: mlx5_2/1 (0000:12:00.0) as ibp18s0
            named: mlx5_3/1 (0000:13:00.0) as ibp19s0
            named: mlx5_4/1 (0000:14:00.0) as ibp20s0
            named: mlx5_5/1 (0000:15:00.0) as ibp21s0
            named: mlx5_6/1 (0000:16:00.0) as ibp22s0
            named: mlx5_7/1 (0000:17:00.0) as ibp23s0
            named: mlx5_8/1 (0000:18:00.0) as ibp24s0
            named: mlx5_9/1 (0000:19:00.0) as ibp25s0
            named: mlx5_10/1 (0000:1a:00.0) as ibp26s0
            named: mlx5_11/1 (0000:1b:00.0) as ibp27s0
            PF 0000:10:00.0: 16 VFs as planned, nothing to do
            PF 0000:11:00.0: 16 VFs as planned, nothing to do
            PF 0000:12:00.0: 16 VFs as planned, nothing to do
            PF 0000:13:00.0: 16 VFs as planned, nothing to do
            PF 0000:14:00.0: 16 VFs as planned, nothing to do
            PF 0000:15:00.0: 16 VFs as planned, nothing to do
            PF 0000:16:00.0: 16 VFs as planned, nothing to do
            PF 0000:17:00.0: 16 VFs as planned, nothing to do
            PF 0000:18:00.0: 16 VFs as planned, nothing to do
            PF 0000:19:00.0: 16 VFs as planned, nothing to do
            PF 0000:1a:00.0: 16 VFs as planned, nothing to do
            PF 0000:1b:00.0: 16 VFs as planned, nothing to do
            not waited for: 0000:10:00.1 and 191 more functions: bound to vfio-pci
            exit 0
        "#]],
    );
    prints(
        &degraded(),
        &["boot", "--dry-run"],
        &expect![[r#"
            boot would, in this order:
            1. PF 0000:14:00.0: no change is possible while VFs are in use
                 deferred: VF 5 is left alone: the port GUID at the PF is
                   0000:0000:0000:0000 instead of 0200:0000:0412:0105; it may be in use: its
                   use cannot be determined: the function has no iommu_group
            named: mlx5_0/1 (0000:10:00.0) as ibp16s0
            named: mlx5_1/1 (0000:11:00.0) as ibp17s0
            named: mlx5_2/1 (0000:12:00.0) as ibp18s0
            named: mlx5_3/1 (0000:13:00.0) as ibp19s0
            named: mlx5_4/1 (0000:14:00.0) as ibp20s0
            named: mlx5_5/1 (0000:15:00.0) as ibp21s0
            named: mlx5_6/1 (0000:16:00.0) as ibp22s0
            named: mlx5_7/1 (0000:17:00.0) as ibp23s0
            named: mlx5_8/1 (0000:18:00.0) as ibp24s0
            named: mlx5_9/1 (0000:19:00.0) as ibp25s0
            named: mlx5_10/1 (0000:1a:00.0) as ibp26s0
            named: mlx5_11/1 (0000:1b:00.0) as ibp27s0
            PF 0000:10:00.0: 16 VFs as planned, nothing to do
            PF 0000:11:00.0: 16 VFs as planned, nothing to do
            PF 0000:12:00.0: 16 VFs as planned, nothing to do
            PF 0000:13:00.0: 16 VFs as planned, nothing to do
            PF 0000:15:00.0: 16 VFs as planned, nothing to do
            PF 0000:16:00.0: 16 VFs as planned, nothing to do
            PF 0000:17:00.0: 16 VFs as planned, nothing to do
            PF 0000:18:00.0: 16 VFs as planned, nothing to do
            PF 0000:19:00.0: 16 VFs as planned, nothing to do
            PF 0000:1a:00.0: 16 VFs as planned, nothing to do
            PF 0000:1b:00.0: 16 VFs as planned, nothing to do
            not waited for: 0000:10:00.1 and 192 more functions: bound to vfio-pci
            exit 1
        "#]],
    );
    prints(
        &failed(),
        &["boot", "--dry-run"],
        &expect![[r#"
            boot would, in this order:
            1. load the driver of 0000:5e:00.0
            2. wait up to 150 s for each adapter:
                 0000:5e:00.0: no driver; expected state: named
                 0000:99:00.0: absent; expected state: named
                 0000:9a:00.0 (optional): absent; expected state: named
            named: mlx5_0/1 (0000:4b:00.0) as ib0
            not waited for: 0000:6e:00.0: not listed in any [[port]] (boot.ports is
              "listed")
            exit 1
        "#]],
    );
}

#[test]
fn apply() {
    prints(
        &healthy(),
        &["apply", "--dry-run"],
        &expect![[r#"
            12 PFs, at the same time:
            PF 0000:10:00.0: 16 VFs as planned, nothing to do
            PF 0000:11:00.0: 16 VFs as planned, nothing to do
            PF 0000:12:00.0: 16 VFs as planned, nothing to do
            PF 0000:13:00.0: 16 VFs as planned, nothing to do
            PF 0000:14:00.0: 16 VFs as planned, nothing to do
            PF 0000:15:00.0: 16 VFs as planned, nothing to do
            PF 0000:16:00.0: 16 VFs as planned, nothing to do
            PF 0000:17:00.0: 16 VFs as planned, nothing to do
            PF 0000:18:00.0: 16 VFs as planned, nothing to do
            PF 0000:19:00.0: 16 VFs as planned, nothing to do
            PF 0000:1a:00.0: 16 VFs as planned, nothing to do
            PF 0000:1b:00.0: 16 VFs as planned, nothing to do
            exit 0
        "#]],
    );
    prints(
        &degraded(),
        &["apply", "--dry-run"],
        &expect![[r#"
            12 PFs, at the same time:
            PF 0000:10:00.0: 16 VFs as planned, nothing to do
            PF 0000:11:00.0: 16 VFs as planned, nothing to do
            PF 0000:12:00.0: 16 VFs as planned, nothing to do
            PF 0000:13:00.0: 16 VFs as planned, nothing to do
            PF 0000:14:00.0: no change is possible while VFs are in use
              deferred: VF 5 is left alone: the port GUID at the PF is 0000:0000:0000:0000
                instead of 0200:0000:0412:0105; it may be in use: its use cannot be
                determined: the function has no iommu_group
            PF 0000:15:00.0: 16 VFs as planned, nothing to do
            PF 0000:16:00.0: 16 VFs as planned, nothing to do
            PF 0000:17:00.0: 16 VFs as planned, nothing to do
            PF 0000:18:00.0: 16 VFs as planned, nothing to do
            PF 0000:19:00.0: 16 VFs as planned, nothing to do
            PF 0000:1a:00.0: 16 VFs as planned, nothing to do
            PF 0000:1b:00.0: 16 VFs as planned, nothing to do
            exit 1
        "#]],
    );
    prints(
        &failed(),
        &["apply", "--dry-run"],
        &expect![[r#"
            nothing to do: the configuration has no [[pf]]
            exit 0
        "#]],
    );
}

#[test]
fn iface() {
    prints(
        &healthy(),
        &["iface", "ibp16s0", "--dry-run"],
        &expect![[r#"
            ibp16s0: no settings are configured
            decision: unknown, because the decision depends on the state of units, and no
              systemd runs in a copied tree
            exit 0
        "#]],
    );
    prints(
        &degraded(),
        &["iface", "ibp16s0.8001", "--dry-run"],
        &expect![[r#"
            ibp16s0.8001: no settings are configured
            decision: unknown, because the decision depends on the state of units, and no
              systemd runs in a copied tree
            exit 0
        "#]],
    );
    prints(
        &failed(),
        &["iface", "ib0", "--dry-run"],
        &expect![[r#"
            ib0: no settings are configured
            decision: unknown, because the decision depends on the state of units, and no
              systemd runs in a copied tree
            exit 0
        "#]],
    );
}

#[test]
fn iface_that_has_settings() {
    let host = failed();
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[interface]]\nmatch.name = \"ib0\"\nmode = \"connected\"\nmtu = 65520\n",
    );
    prints(
        &host,
        &["iface", "ib0", "--dry-run"],
        &expect![[r#"
            ib0: settings of /etc/ibprov/ibprov.toml:1:
            error: ib0: not configured: connected mode is configured, but the driver does
              not support it (the hardware address is that of enhanced IPoIB of mlx5, or of
              MLNX_OFED 23.07 and later)
              do: set mode = "datagram", or load ib_ipoib with ipoib_enhanced=0 if that
                  parameter exists
            error: ib0: not configured: an MTU of 65520 is configured, but the maximum in
              datagram mode is 4092
              do: set mtu to 4092 or less
            decision: unknown, because the decision depends on the state of units, and no
              systemd runs in a copied tree
            exit 3
        "#]],
    );
}

#[test]
fn iface_of_an_interface_that_is_absent() {
    prints(
        &failed(),
        &["iface", "ib7", "--dry-run"],
        &expect![[r#"
            error: there is no interface ib7; IPoIB interfaces of this host: ib0, ib1
            exit 2
        "#]],
    );
}

#[test]
fn wait_online() {
    prints(
        &healthy(),
        &["wait-online"],
        &expect![[r#"
            error: wait-online cannot be combined with --root: no port comes online in a copied tree
            exit 2
        "#]],
    );
}

#[test]
fn guests() {
    prints(
        &healthy(),
        &["guests", "--dry-run"],
        &expect![[r#"
            error: guests cannot be combined with --root: no guest runs in a copied tree
            exit 2
        "#]],
    );
}

/// The degraded node has the configuration of the healthy one.
#[test]
fn config_show() {
    prints(
        &healthy(),
        &["config", "show", "--changed"],
        &expect![[r#"
            [[pf]]
            pci = "0000:10:00.0"  # from /etc/ibprov/ibprov.toml:2
            vfs = 16  # from /etc/ibprov/ibprov.toml:3
            driver = "vfio-pci"  # from /etc/ibprov/ibprov.toml:4
            guid.template = "02:00:00:00:00:12:{kind:8}:{vf:8}"  # from /etc/ibprov/ibprov.toml:5

            [[pf]]
            pci = "0000:11:00.0"  # from /etc/ibprov/ibprov.toml:7
            vfs = 16  # from /etc/ibprov/ibprov.toml:8
            driver = "vfio-pci"  # from /etc/ibprov/ibprov.toml:9
            guid.template = "02:00:00:00:01:12:{kind:8}:{vf:8}"  # from /etc/ibprov/ibprov.toml:10

            [[pf]]
            pci = "0000:12:00.0"  # from /etc/ibprov/ibprov.toml:12
            vfs = 16  # from /etc/ibprov/ibprov.toml:13
            driver = "vfio-pci"  # from /etc/ibprov/ibprov.toml:14
            guid.template = "02:00:00:00:02:12:{kind:8}:{vf:8}"  # from /etc/ibprov/ibprov.toml:15

            [[pf]]
            pci = "0000:13:00.0"  # from /etc/ibprov/ibprov.toml:17
            vfs = 16  # from /etc/ibprov/ibprov.toml:18
            driver = "vfio-pci"  # from /etc/ibprov/ibprov.toml:19
            guid.template = "02:00:00:00:03:12:{kind:8}:{vf:8}"  # from /etc/ibprov/ibprov.toml:20

            [[pf]]
            pci = "0000:14:00.0"  # from /etc/ibprov/ibprov.toml:22
            vfs = 16  # from /etc/ibprov/ibprov.toml:23
            driver = "vfio-pci"  # from /etc/ibprov/ibprov.toml:24
            guid.template = "02:00:00:00:04:12:{kind:8}:{vf:8}"  # from /etc/ibprov/ibprov.toml:25

            [[pf]]
            pci = "0000:15:00.0"  # from /etc/ibprov/ibprov.toml:27
            vfs = 16  # from /etc/ibprov/ibprov.toml:28
            driver = "vfio-pci"  # from /etc/ibprov/ibprov.toml:29
            guid.template = "02:00:00:00:05:12:{kind:8}:{vf:8}"  # from /etc/ibprov/ibprov.toml:30

            [[pf]]
            pci = "0000:16:00.0"  # from /etc/ibprov/ibprov.toml:32
            vfs = 16  # from /etc/ibprov/ibprov.toml:33
            driver = "vfio-pci"  # from /etc/ibprov/ibprov.toml:34
            guid.template = "02:00:00:00:06:12:{kind:8}:{vf:8}"  # from /etc/ibprov/ibprov.toml:35

            [[pf]]
            pci = "0000:17:00.0"  # from /etc/ibprov/ibprov.toml:37
            vfs = 16  # from /etc/ibprov/ibprov.toml:38
            driver = "vfio-pci"  # from /etc/ibprov/ibprov.toml:39
            guid.template = "02:00:00:00:07:12:{kind:8}:{vf:8}"  # from /etc/ibprov/ibprov.toml:40

            [[pf]]
            pci = "0000:18:00.0"  # from /etc/ibprov/ibprov.toml:42
            vfs = 16  # from /etc/ibprov/ibprov.toml:43
            driver = "vfio-pci"  # from /etc/ibprov/ibprov.toml:44
            guid.template = "02:00:00:00:08:12:{kind:8}:{vf:8}"  # from /etc/ibprov/ibprov.toml:45

            [[pf]]
            pci = "0000:19:00.0"  # from /etc/ibprov/ibprov.toml:47
            vfs = 16  # from /etc/ibprov/ibprov.toml:48
            driver = "vfio-pci"  # from /etc/ibprov/ibprov.toml:49
            guid.template = "02:00:00:00:09:12:{kind:8}:{vf:8}"  # from /etc/ibprov/ibprov.toml:50

            [[pf]]
            pci = "0000:1a:00.0"  # from /etc/ibprov/ibprov.toml:52
            vfs = 16  # from /etc/ibprov/ibprov.toml:53
            driver = "vfio-pci"  # from /etc/ibprov/ibprov.toml:54
            guid.template = "02:00:00:00:0a:12:{kind:8}:{vf:8}"  # from /etc/ibprov/ibprov.toml:55

            [[pf]]
            pci = "0000:1b:00.0"  # from /etc/ibprov/ibprov.toml:57
            vfs = 16  # from /etc/ibprov/ibprov.toml:58
            driver = "vfio-pci"  # from /etc/ibprov/ibprov.toml:59
            guid.template = "02:00:00:00:0b:12:{kind:8}:{vf:8}"  # from /etc/ibprov/ibprov.toml:60
            exit 0
        "#]],
    );
    prints(
        &failed(),
        &["config", "show", "--changed"],
        &expect![[r#"
            [boot]
            ports = "listed"  # from /etc/ibprov/ibprov.toml:2

            [[port]]
            pci = ["0000:4b:00.0", "0000:5e:00.0", "0000:99:00.0"]  # from /etc/ibprov/ibprov.toml:4

            [[port]]
            pci = "0000:9a:00.0"  # from /etc/ibprov/ibprov.toml:6
            required = false  # from /etc/ibprov/ibprov.toml:7
            exit 0
        "#]],
    );
}

/// Checks what a verb prints in colour; ESC is printed as `^[`.
#[track_caller]
fn prints_in_colour(host: &Host, verb: &str, want: &Expect) {
    let shown = host.show_on(&[("COLUMNS", "80")], &[verb, "--color", "always"]);
    want.assert_eq(&shown.replace('\u{1b}', "^["));
}

#[test]
fn check_in_colour() {
    prints_in_colour(
        &failed(),
        "check",
        &expect![[r#"
            ^[[1m^[[31mverdict: not-ready (errors: 2, warnings: 1)^[[0m
            read: no log

            ^[[1m^[[31merror: port-not-ready (confidence high)^[[0m
              0000:5e:00.0: no driver: no driver is bound to the function.
            ^[[1m  Look:^[[0m
                do: see `lspci -k` and dmesg

            ^[[33m    warning: boot-failed (confidence high, caused by port-not-ready)^[[0m
                  the last boot: boot incomplete (exit code 3).
            ^[[1m      Look:^[[0m
                    run: journalctl -b -u ibprov.service

            ^[[1m^[[31merror: port-absent (confidence high)^[[0m
              0000:99:00.0: absent, and expected (listed in /etc/ibprov/ibprov.toml:3).
            ^[[1m  Look:^[[0m
                do: see whether the adapter is in another slot or disabled in the firmware
                    setup, or the VF not created yet
                run: lspci -Dnn -d 15b3:

            ^[[33mwarning: port-absent (confidence high)^[[0m
              0000:9a:00.0: absent, and optional (listed in /etc/ibprov/ibprov.toml:5).
            ^[[1m  Look:^[[0m
                do: see whether the adapter is in another slot or disabled in the firmware
                    setup, or the VF not created yet
                run: lspci -Dnn -d 15b3:
            exit 3
        "#]],
    );
}

#[test]
fn status_in_colour() {
    prints_in_colour(
        &failed(),
        "status",
        &expect![[r#"
            ^[[1m^[[31mNOT READY: 1 of 4 expected ports active^[[0m
            ^[[1m^[[31m  error: 0000:5e:00.0: no driver: no driver is bound to the function^[[0m
                do: see `lspci -k` and dmesg
            ^[[1m^[[31m  error: 0000:99:00.0: absent, and expected (listed in^[[0m
            ^[[1m^[[31m  /etc/ibprov/ibprov.toml:3)^[[0m
            ^[[33m  warning: 0000:9a:00.0: absent, and optional (listed in^[[0m
            ^[[33m  /etc/ibprov/ibprov.toml:5)^[[0m
                do: see whether the adapter is in another slot or disabled in the firmware
                    setup, or the VF not created yet
                run: lspci -Dnn -d 15b3:
            ^[[33m  warning: the last boot: boot incomplete (exit code 3)^[[0m
                run: journalctl -b -u ibprov.service
            ibprov: enabled; last boot: not-ready, exit 3; openibd.service: ibprov's

            ^[[1m  PORT      PCI           NETDEV  STATE      LID  Gb/s     NOTE^[[0m
            ^[[1m^[[31m! -         0000:99:00.0  -       absent     -    -^[[0m
            ^[[33m~ -         0000:9a:00.0  -       absent     -    -^[[0m
              mlx5_0/1  0000:4b:00.0  ib0     active     7    200 HDR
            ^[[1m^[[31m! -         0000:5e:00.0  -       no driver  -    -^[[0m
            1 unexpected port: ibprov --root ROOT status --color always -v
            exit 3
        "#]],
    );
}

#[test]
fn plan_in_colour() {
    prints_in_colour(
        &failed(),
        "plan",
        &expect![[r#"
        no [[pf]] is configured, so that there is nothing to plan
        exit 0
    "#]],
    );
}

#[test]
fn a_degraded_site_in_colour() {
    let host = degraded();
    prints_in_colour(
        &host,
        "status",
        &expect![[r#"
            ^[[33mready with exceptions: 10 of 12 expected ports active, 191 of 192 VFs as planned^[[0m
            ^[[33m  warning: mlx5_2/1: not active: no subnet manager configured it (Initializing)^[[0m
                do: if it is in the fabric of mlx5_0/1 (Active): check its switch port
                do: if it is in a fabric of its own, and `sminfo -C mlx5_2 -P 1` finds no
                    subnet manager: enable that of its switch, or run opensm on this port
                    alone (man 8 ibprov-opensm)
            ^[[33m  warning: mlx5_3/1: no link: no cable, or the other end is down (Polling)^[[0m
                do: check the cable and the switch port
                run: mlxlink -d 0000:13:00.0 || mstlink -d 0000:13:00.0
                do: if nothing is meant to be connected to it: `required = false` in its
                    [[port]], or boot.ignore (man 5 ibprov.toml)
            ^[[33m  warning: PF 0000:14:00.0: VF 5 is left alone: the port GUID at the PF is^[[0m
            ^[[33m  0000:0000:0000:0000 instead of 0200:0000:0412:0105; it may be in use: its use^[[0m
            ^[[33m  cannot be determined: the function has no iommu_group^[[0m
                run: ibprov plan
            ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

            ^[[1m  PORT       PCI           NETDEV   STATE         LID  Gb/s     NOTE^[[0m
              mlx5_0/1   0000:10:00.0  ibp16s0  active        7    200 HDR
            ^[[33m~     P_Key children: ibp16s0.8001 (0x8001) down^[[0m
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_1/1   0000:11:00.0  ibp17s0  active        8    200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
            ^[[33m~ mlx5_2/1   0000:12:00.0  ibp18s0  initializing  -    200 HDR^[[0m
                  VFs 0-15  vfio-pci, link state follow, as planned
            ^[[33m~ mlx5_3/1   0000:13:00.0  ibp19s0  polling       -    -^[[0m
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_4/1   0000:14:00.0  ibp20s0  active        11   200 HDR
                  VFs 0-4, 6-15  vfio-pci, link state follow, as planned
            ^[[33m~     VF 5  port GUID 0 (planned 0200:0000:0412:0105); in use^[[0m
              mlx5_5/1   0000:15:00.0  ibp21s0  active        12   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_6/1   0000:16:00.0  ibp22s0  active        13   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_7/1   0000:17:00.0  ibp23s0  active        14   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_8/1   0000:18:00.0  ibp24s0  active        15   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_9/1   0000:19:00.0  ibp25s0  active        16   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_10/1  0000:1a:00.0  ibp26s0  active        17   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
              mlx5_11/1  0000:1b:00.0  ibp27s0  active        18   200 HDR
                  VFs 0-15  vfio-pci, link state follow, as planned
            2 unexpected ports: ibprov --root ROOT status --color always -v
            exit 1
        "#]],
    );
    prints_in_colour(
        &host,
        "plan",
        &expect![[r#"
            ^[[1mPF 0000:10:00.0 mlx5_0^[[0m (/etc/ibprov/ibprov.toml:1)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            ^[[1mPF 0000:11:00.0 mlx5_1^[[0m (/etc/ibprov/ibprov.toml:6)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            ^[[1mPF 0000:12:00.0 mlx5_2^[[0m (/etc/ibprov/ibprov.toml:11)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            ^[[1mPF 0000:13:00.0 mlx5_3^[[0m (/etc/ibprov/ibprov.toml:16)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            ^[[1mPF 0000:14:00.0 mlx5_4^[[0m (/etc/ibprov/ibprov.toml:21)
              16 VFs planned, 16 present, 1 deferred, 15 as planned, GUIDs not pinned
              ^[[33m!^[[0m VF 5 is left alone: the port GUID at the PF is 0000:0000:0000:0000 instead
                of 0200:0000:0412:0105; it may be in use: its use cannot be determined: the
                function has no iommu_group

            ^[[1mPF 0000:15:00.0 mlx5_5^[[0m (/etc/ibprov/ibprov.toml:26)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            ^[[1mPF 0000:16:00.0 mlx5_6^[[0m (/etc/ibprov/ibprov.toml:31)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            ^[[1mPF 0000:17:00.0 mlx5_7^[[0m (/etc/ibprov/ibprov.toml:36)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            ^[[1mPF 0000:18:00.0 mlx5_8^[[0m (/etc/ibprov/ibprov.toml:41)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            ^[[1mPF 0000:19:00.0 mlx5_9^[[0m (/etc/ibprov/ibprov.toml:46)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            ^[[1mPF 0000:1a:00.0 mlx5_10^[[0m (/etc/ibprov/ibprov.toml:51)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            ^[[1mPF 0000:1b:00.0 mlx5_11^[[0m (/etc/ibprov/ibprov.toml:56)
              16 VFs planned, 16 present, 16 as planned, GUIDs not pinned

            Plan: 1 VF deferred, 191 as planned
            exit 1
        "#]],
    );
}
