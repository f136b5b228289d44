//! Firmware settings of the software card (`tests/vm/card`), by the distribution's own
//! mstconfig: the tool's texts and ways are real, the answers of the firmware are a guess.

use crate::bed::scenario::Scenario;
use crate::bed::tools;
use crate::campaigns::{given, side_by_side};
use crate::card::assert_sound;
use crate::machine::{self, boot};
use crate::vf_plan::planned;

const SHORT: &str = "firmware";
const LONG: &str = "firmware_long";

/// What the command `name` said; it has ended with `code`.
fn said(scenario: &str, name: &str, code: &str) -> String {
    let said = boot(scenario).file(name);
    assert_eq!(machine::scene(scenario, name), code, "{name}: {said}");
    said
}

/// The fields of the last line of `parameter` in what `text` shows, without the tool's marks;
/// no command and no reason.
fn row(text: &str, parameter: &str) -> Vec<String> {
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let is_row =
        |fields: &Vec<String>| fields.iter().find(|f| *f != "*").is_some_and(|f| f == parameter);
    let found = text.lines().rev().map(fields).find(is_row);
    let mut found = found.unwrap_or_else(|| panic!("no {parameter} in:\n{text}"));
    found.retain(|field| field != "*" && field != parameter);
    found
}

/// Asserts that each of `parameters` of the three that are configured is in `state`.
fn assert_state(text: &str, state: &str) {
    for parameter in ["SRIOV_EN", "NUM_OF_VFS", "LINK_TYPE_P2"] {
        let row = row(text, parameter).join(" ");
        assert!(row.ends_with(state), "{parameter}: {text}");
    }
}

fn assert_says(text: &str, words: &[&str]) {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in words {
        assert!(flat.contains(words), "{words:?} in:\n{text}");
    }
}

#[test]
fn an_adapter_without_sriov_is_named_and_its_settings_are_written_once() {
    assert_sound(&boot(SHORT));
    assert_eq!(machine::scene(SHORT, "factory"), "- 0x020700 0x020700");
    assert_says(&boot(SHORT).file("before.plan"), &["has no SR-IOV capability"]);
    assert_says(&boot(SHORT).file("before.check"), &["NUM_OF_VFS = 4 is configured"]);
    assert_state(&said(SHORT, "shown", "1"), "to be set");
    let apply = said(SHORT, "apply", "1");
    assert_state(&apply, "pending reboot");
    assert_says(
        &apply,
        &[
            "NUM_OF_VFS of the next boot: 0 -> 4",
            "the tool says: Please reboot machine to load new configurations.",
        ],
    );
    // The settings are those of the card: its second function shows them too.
    let other = boot(SHORT).json("other");
    let settings = other["adapters"][0]["settings"].as_array().expect("settings");
    let vfs = settings.iter().find(|setting| setting["name"] == "NUM_OF_VFS").expect("NUM_OF_VFS");
    assert_eq!((&vfs["current"], &vfs["next"]), (&"0".into(), &"4".into()), "{other:#}");
    let written = "NUM_OF_VFS = 4 was written in this boot, and takes effect at the next reboot";
    assert_says(&boot(SHORT).file("written.status"), &[written]);
}

#[test]
fn after_a_reboot_the_vfs_are_there_and_nothing_is_written_again() {
    assert_eq!(machine::scene(SHORT, "loaded"), "4 0x020700 0x020000");
    assert_eq!(boot(SHORT).file("facts"), planned("0200:0070", 0, 4));
    assert_state(&said(SHORT, "wanted", "0"), "as wanted");
    assert_state(&said(SHORT, "again", "0"), "as wanted");
    assert_eq!(machine::scene(SHORT, "loaded writes"), "0");
    assert!(!boot(SHORT).file("loaded.status").contains("NUM_OF_VFS"));
}

#[test]
fn a_port_that_has_become_an_ethernet_port_becomes_an_infiniband_port() {
    let back = said(SHORT, "back", "1");
    assert_says(&row(&back, "LINK_TYPE_P2").join(" "), &["ETH(2) IB(1) IB pending reboot"]);
    // What is as wanted is not written beside it.
    assert_eq!(machine::scene(SHORT, "back writes"), "1");
    assert_eq!(machine::scene(SHORT, "back-again"), "4 0x020700 0x020700");
    assert_state(&said(SHORT, "end", "0"), "as wanted");
    assert_eq!(machine::scene(SHORT, "end writes"), "0");
}

#[test]
fn what_keeps_the_tool_from_running_is_told() {
    let foreign = said(SHORT, "foreign", "2");
    assert_says(
        &foreign,
        &[
            "/tmp/mstflint_lockfiles, where the tool keeps its lock files, is not a directory of root's (user 65534): remove it",
        ],
    );
    let toolless = said(SHORT, "toolless", "2");
    assert_says(&toolless, &["neither mstconfig nor mlxconfig is installed"]);
    let locked = said(SHORT, "locked", "3");
    assert_state(&locked, "unreadable");
    assert_says(&locked, &["the kernel's lockdown (secure boot) closes the tool's path"]);
    // It is so.
    assert_says(
        &said(SHORT, "locked.tool", "3"),
        &["Operation not permitted", "-E- Failed to open the device"],
    );
}

#[test]
fn status_check_and_plan_do_not_ask_the_adapter() {
    for name in ["before", "written", "loaded"] {
        assert_eq!(machine::scene(SHORT, &format!("{name} vsec")), "0", "{name}");
    }
}

#[test]
#[ignore = "six boots of one machine take minutes"]
fn what_no_reboot_loads_is_written_once() {
    let held = said(LONG, "held", "1");
    assert_says(&row(&held, "NUM_OF_VFS").join(" "), &["4 8 8 pending reboot"]);
    assert_eq!(machine::scene(LONG, "held writes"), "1");
    for name in ["held-3", "held-4"] {
        assert_eq!(machine::scene(LONG, name), "4 0x020700 0x020700");
        let apply = said(LONG, &format!("{name}.apply"), "1");
        assert_says(&row(&apply, "NUM_OF_VFS").join(" "), &["4 8 8 pending power cycle"]);
        assert_eq!(machine::scene(LONG, &format!("{name} writes")), "0", "{name}");
        assert_eq!(machine::scene(LONG, &format!("{name} vsec")), "0", "{name}");
        let told = "NUM_OF_VFS = 8 was written before this boot, and the adapter still has 4: \
                    power it off and on; do not write it again";
        for verb in ["status", "check"] {
            assert_says(&boot(LONG).file(&format!("{name}.{verb}")), &[told]);
        }
    }
    assert_eq!(machine::scene(LONG, "cycled"), "8 0x020700 0x020700");
    assert_state(&said(LONG, "cycled.apply", "0"), "as wanted");
    assert_eq!(machine::scene(LONG, "cycled writes"), "0");
}

#[test]
#[ignore = "six boots of one machine take minutes"]
fn a_write_goes_on_when_ibprov_ends() {
    for (name, code) in [("hangup", "129"), ("kill", "137")] {
        said(LONG, name, code);
        let beside = said(LONG, &format!("{name}.beside"), "3");
        assert_says(&beside, &["another run, or the tool that it has started, is at this adapter"]);
        assert_state(&said(LONG, &format!("{name}.after"), "1"), "pending reboot");
        let next = said(LONG, &format!("{name}.next"), "0");
        assert_eq!(row(&next, "NUM_OF_VFS"), ["0", "0", "4"], "{name}");
    }
}

#[test]
#[ignore = "six boots of one machine take minutes"]
fn a_tool_that_hangs_is_left_alone() {
    let hangs = said(LONG, "hangs", "3");
    assert_says(&hangs, &["has not ended 1 min after its start. It is left alone"]);
    said(LONG, "hung", "0");
}

#[test]
#[ignore = "six boots of one machine take minutes"]
fn what_is_amiss_is_told_in_the_tool_s_words() {
    let refused = said(LONG, "refused", "3");
    assert_state(&refused, "not set");
    assert_says(&refused, &["settings Firmware internal error"]);
    // It counts for nothing in a later boot.
    assert_state(&said(LONG, "retried", "1"), "pending reboot");
    let unreadable = said(LONG, "unreadable", "3");
    assert_state(&unreadable, "unreadable");
    assert_says(&unreadable, &["Failed to open the device"]);
    assert_state(&said(LONG, "untold", "1"), "to be set");
    assert_eq!(machine::scene(LONG, "refused writes"), "0");
}

#[test]
#[ignore = "six boots of one machine take minutes"]
fn the_tool_says_of_this_card_what_it_has_a_text_for() {
    for (name, code, words) in [
        ("unknown", "3", "-E- Unknown Parameter: NOSUCH"),
        ("lacking", "3", "-E- The Device doesn't support ATS_ENABLED parameter"),
        ("no-port", "3", "-E- LINK_TYPE with no port does not exist"),
        ("too-many", "3", "-E- Parameter NUM_OF_VFS' value is larger than maximum allowed 8"),
        ("too-large", "3", "-E- The value 99999 is not valid, as its size is 16 bits"),
        ("no-number", "3", "-E- Cannot parse the value"),
        ("no-word", "3", "-E- Unknown value yes"),
        ("equal", "0", "-I- Please reboot machine to load new configurations."),
        ("no-function", "3", "-E- Failed to open the device"),
        ("aborted", "2", "-E- Aborted by user."),
        ("internal", "3", "settings Firmware internal error"),
        ("worn", "3", "settings The erase count exceeds its limit"),
        ("no-nv", "3", "-E- NVQC access register is not supported."),
        ("stuck", "3", "-E- Failed to open the device"),
        ("no-current", "0", "does not support reading current configurations"),
        ("power-cycle", "0", "-I- Please power cycle machine to load new configurations."),
        ("reset", "0", "-I- Please reboot machine to load new configurations."),
    ] {
        assert_says(&said(LONG, name, code), &[words]);
    }
}

#[test]
#[ignore = "ten machines of six boots take most of an hour"]
fn ten_machines_come_to_the_same() {
    let count = given("IBPROV_CAMPAIGN_BOOTS").map_or(10, |n| usize::try_from(n).expect("few"));
    let scenarios = tools::project().join("tests/vm/scenarios");
    let scenario = Scenario::load(&scenarios, LONG).unwrap_or_else(|e| panic!("{e}"));
    let outcomes = side_by_side(count, |n| machine::run(&scenario, &format!("{LONG}-{n}")));
    // That machine is judged by the tests above.
    let first = boot(LONG).stdout();
    for (n, outcome) in outcomes {
        let guest = outcome.unwrap_or_else(|e| panic!("machine {n}: {e}"));
        guest.assert_success();
        assert_sound(&guest);
        assert_eq!(guest.stdout(), first, "machine {n}");
    }
}
