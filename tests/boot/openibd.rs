//! Who owns the name openibd.service, after what administrators do with
//! `systemctl`, and what `ibprov status` says of it.

use serde_json::{Value, json};

use crate::bed::journal::assert_in_order;
use crate::bed::outcome::Outcome;
use crate::nspawn::boot;

/// Codes of the findings about units in a report of `ibprov status`.
fn codes(status: &Value) -> Vec<&str> {
    let findings = status["findings"].as_array().expect("findings").iter();
    let codes = findings.map(|f| f["code"].as_str().expect("code"));
    let is_of_units = |code: &&str| {
        ["ibprov-", "openibd-", "mlnx-", "two-"].iter().any(|begin| code.starts_with(begin))
    };
    codes.filter(is_of_units).collect()
}

/// The text of the finding `code`.
fn text<'a>(status: &'a Value, code: &str) -> &'a str {
    let findings = status["findings"].as_array().expect("findings");
    let found = findings.iter().find(|f| f["code"] == code);
    found.and_then(|f| f["message"].as_str()).unwrap_or_else(|| panic!("no {code} in {status:#}"))
}

/// The unit that answers to openibd.service.
fn answers(guest: &Outcome, when: &str) -> String {
    guest.file(&format!("{when}.unit")).lines().next().unwrap_or_default().to_owned()
}

/// That `ibprov boot` has run: what systemd says of it is lost where the journal starts later.
#[track_caller]
fn assert_ran(guest: &Outcome) {
    assert!(guest.file("run-ibprov/boot.json").contains("\"report\": \"boot\""));
}

/// What status advised was done, and all is well.
fn assert_mended(guest: &Outcome) {
    guest.assert_success();
    let after = guest.json("after.json");
    assert_eq!(codes(&after), [""; 0], "after: {}", guest.file("advice"));
    assert_eq!(
        (&after["units"]["openibd"], &after["units"]["enabled"]),
        (&json!("ibprov"), &json!(true))
    );
    assert_eq!(answers(guest, "after"), "Id=ibprov-openibd.service");
}

#[test]
fn disabled_first_openibd_is_ibprov_though_the_vendors_unit_is_installed() {
    let guest = boot("openibd_disabled_first");
    guest.assert_success();
    // Newer systemd does not search /lib, which is the same folder.
    assert_eq!(
        guest.file("before.unit").replace("=/usr/lib/", "=/lib/"),
        "Id=ibprov-openibd.service\nFragmentPath=/lib/systemd/system/ibprov-openibd.service\n"
    );
    assert_eq!(guest.file("calls"), "", "the vendor's script ran");
    let status = guest.json("before.json");
    assert_eq!(status["units"], json!({ "openibd": "ibprov", "enabled": true }));
}

#[test]
fn what_orders_on_openibd_comes_after_ibprov() {
    let guest = boot("openibd_disabled_first");
    guest.assert_success();
    assert_in_order(&[
        ("ibprov.service", guest.journal.started("ibprov.service")),
        ("ibprov-openibd.service", guest.journal.started("ibprov-openibd.service")),
        ("network-pre.target", guest.journal.started("network-pre.target")),
        ("storage.service", guest.journal.started("storage.service")),
    ]);
    assert_eq!(guest.ordering_cycles(), [""; 0]);
    // Its start job pulled in and waited for what has the name.
    assert_eq!(guest.file("storage"), "ibprov-openibd.service\nibprov-openibd.service\n");
}

#[test]
fn disabled_last_openibd_has_its_name_back_and_ibprov_runs() {
    let guest = boot("openibd_disabled_last");
    let status = guest.json("before.json");
    assert_eq!(status["units"]["openibd"], "vendor");
    assert_eq!(status["units"]["enabled"], true);
    // The want that the disable left behind has the script run, as seen.
    assert_eq!(codes(&status), ["two-agents"]);
    assert!(guest.file("calls").starts_with("start bootid="), "{:?}", guest.file("calls"));
    assert_ran(&guest);
    assert_mended(&guest);
}

#[test]
fn left_enabled_the_vendors_want_is_found_and_does_no_harm_yet() {
    let guest = boot("openibd_left_enabled");
    let status = guest.json("before.json");
    assert_eq!(status["units"]["openibd"], "ibprov");
    // rc links are there too; systemd heeds none of them, as seen.
    assert_eq!(codes(&status), ["openibd-want-left"]);
    assert_eq!(answers(&guest, "before"), "Id=ibprov-openibd.service");
    assert_eq!(guest.file("calls"), "");
    assert_mended(&guest);
}

#[test]
fn a_vendor_file_in_etc_leaves_ibprov_half_enabled() {
    let guest = boot("openibd_file_in_etc");
    assert!(guest.file("prepare").contains("refused: 1"), "{}", guest.file("prepare"));
    assert_ran(&guest);
    let status = guest.json("before.json");
    assert_eq!(status["units"]["openibd"], "vendor");
    assert_eq!(status["units"]["enabled"], true);
    assert_eq!(codes(&status), ["openibd-alias-broken"]);
    let text = text(&status, "openibd-alias-broken");
    let why = "/etc/systemd/system/openibd.service is a regular file";
    assert!(text.contains(why), "{text}");
    // What requires openibd.service pulls in the vendor's.
    assert!(guest.file("calls").starts_with("start bootid="), "{:?}", guest.file("calls"));
    assert_mended(&guest);
}

#[test]
fn a_mask_leaves_ibprov_half_enabled() {
    let guest = boot("openibd_masked");
    assert!(guest.file("prepare").contains("refused: 1"), "{}", guest.file("prepare"));
    assert_ran(&guest);
    let status = guest.json("before.json");
    assert_eq!(status["units"]["openibd"], "masked");
    assert_eq!(codes(&status), ["openibd-alias-broken"]);
    let text = text(&status, "openibd-alias-broken");
    assert!(text.contains("the name is masked by /etc/systemd/system/openibd.service"), "{text}");
    assert_eq!(guest.file("calls"), "");
    assert_mended(&guest);
}

#[test]
fn rc_links_call_the_script_where_no_unit_has_its_name() {
    let guest = boot("openibd_script_only");
    let status = guest.json("before.json");
    assert_eq!(codes(&status), ["two-agents"]);
    let called = text(&status, "two-agents");
    assert!(called.contains("/etc/rc3.d/S01openibd"), "{called}");
    assert_eq!(guest.file("calls"), "start\n");
    assert_eq!(
        guest.file("before.unit"),
        "Id=openibd.service\nFragmentPath=/run/systemd/generator.late/openibd.service\n"
    );
    assert_mended(&guest);
}

#[test]
fn calls_of_the_script_from_rc_local_and_units_are_found() {
    let guest = boot("openibd_called");
    guest.assert_success();
    let mut calls: Vec<String> = guest.file("calls").lines().map(str::to_owned).collect();
    calls.sort();
    assert_eq!(calls, ["force-start", "restart"]);
    let status = guest.json("before.json");
    assert_eq!(status["units"]["openibd"], "ibprov");
    assert_eq!(codes(&status), ["two-agents"]);
    let called = text(&status, "two-agents");
    assert!(called.contains("/etc/rc.local"), "{called}");
    let unit = "/etc/systemd/system/multi-user.target.wants/site-ib.service";
    assert!(called.contains(unit), "{called}");
}

#[test]
fn drop_ins_made_for_openibd_count_and_are_found() {
    let guest = boot("openibd_drop_in");
    guest.assert_success();
    assert_eq!(guest.file("calls"), "waited\n", "the drop-in is not heeded");
    let status = guest.json("before.json");
    assert_eq!(codes(&status), ["openibd-drop-in"]);
    let text = text(&status, "openibd-drop-in");
    assert!(text.contains("/etc/systemd/system/openibd.service.d/fabric.conf"), "{text}");
}

#[test]
fn a_mask_on_ibprov_itself_is_found() {
    let guest = boot("ibprov_masked");
    assert_eq!(guest.journal.unit("ibprov.service").count(), 0, "ibprov ran");
    let status = guest.json("before.json");
    assert_eq!(codes(&status), ["ibprov-masked"]);
    assert_eq!(status["units"]["enabled"], false);
    assert_mended(&guest);
}

#[test]
fn on_a_running_node_ibprov_takes_openibds_place_and_nothing_is_stopped() {
    let guest = boot("openibd_live");
    guest.assert_success();
    // The active openibd goes on as what has its name, and ibprov is started.
    assert_eq!(
        guest.stdout(),
        "enabled: inactive, has not run\nstarted: active, has run\nrestarted: active, has run\n"
    );
    let calls = guest.file("calls");
    assert!(calls.starts_with("start ") && calls.lines().count() == 1, "{calls:?}");
    let status = guest.json("after.json");
    assert_eq!(status["units"], json!({ "openibd": "ibprov", "enabled": true }));
}

#[test]
fn what_requires_openibd_starts_though_a_port_is_missing() {
    let guest = boot("openibd_required");
    guest.assert_success();
    let now = guest.stdout();
    let boot: Vec<&str> = now.lines().filter_map(|l| l.strip_prefix("boot: ")).collect();
    assert_eq!(
        boot,
        [
            "ibprov.service failed",
            "openibd.service active",
            "ibprov-ready.target inactive",
            "site-daemon.service active",
            "hpc.mount active",
            "needs-ports.service inactive",
            "0, 1 runs",
        ]
    );
    assert_in_order(&[
        ("openibd.service", guest.journal.started("ibprov-openibd.service")),
        ("site-daemon.service", guest.journal.started("site-daemon.service")),
    ]);
    // Who looks at the name sees where to look.
    let status = guest.file("status");
    assert!(status.contains("systemctl status ibprov"), "{status}");
}

#[test]
fn restart_and_stop_of_openibd_reach_ibprov() {
    let guest = boot("openibd_required");
    let said = guest.stdout();
    for line in [
        // Run again, and its failure is its own.
        "restart: 0, 2 runs",
        "stop: 0, 2 runs",
        "stopped: openibd.service inactive",
        // What requires it goes with it, as with the vendor's.
        "stopped: site-daemon.service inactive",
        "start: 0, 3 runs",
        "needs-ports: 0, 3 runs",
        "mended: ibprov.service active",
        "mended: ibprov-ready.target active",
        "mended: hpc.mount active",
    ] {
        assert!(said.lines().any(|l| l == line), "no {line:?} in:\n{said}");
    }
}

#[test]
fn disabling_openibd_last_takes_its_name_and_leaves_ibprov() {
    let guest = boot("openibd_required");
    let status = guest.json("disabled.json");
    assert_eq!(codes(&status), ["openibd-alias-broken"]);
    assert_eq!(status["units"]["enabled"], true);
    let mended = guest.json("reenabled.json");
    assert_eq!(mended["units"], json!({ "openibd": "ibprov", "enabled": true }));
}

#[test]
fn what_requires_openibd_starts_where_ibprov_is_switched_off() {
    let guest = boot("openibd_required_off");
    assert_eq!(
        guest.stdout(),
        "ibprov.service inactive\nopenibd.service active\nsite-daemon.service active\nhpc.mount active\n"
    );
}

/// What stops, if only to start again, is what requires the unit that is restarted.
#[test]
fn a_restart_stops_nothing_that_the_vendors_would_not_have_stopped() {
    let guest = boot("openibd_required");
    let said = guest.stdout();
    for line in [
        "restart ibprov: 0, stops needs-ports.service ",
        "restart openibd: 0, stops site-daemon.service hpc.mount needs-ports.service ",
        "restart openibd below a mount in use: 0, stops site-daemon.service needs-ports.service ",
        "/hpc/file",
        "the mount in use: active tmpfs",
        "restart the vendor's openibd: 0, stops site-daemon.service hpc.mount ",
    ] {
        assert!(said.lines().any(|l| l == line), "no {line:?} in:\n{said}");
    }
}
