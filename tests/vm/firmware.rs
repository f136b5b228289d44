//! Firmware settings of the software card (`tests/vm/card`), by the distribution's own
//! mstconfig: the tool's texts and ways are real, the answers of the firmware are a guess.

use crate::card::assert_sound;
use crate::machine::{self, boot};
use crate::vf_plan::planned;

const SHORT: &str = "firmware";
const TOOL: &str = "firmware_tool";

/// What the command `name` said; it has ended with `code`.
fn said(scenario: &str, name: &str, code: &str) -> String {
    let said = boot(scenario).file(name);
    assert_eq!(machine::scene(scenario, name), code, "{name}: {said}");
    said
}

/// The fields of the last line of `parameter` in what `text` shows, without the tool's marks.
fn row(text: &str, parameter: &str) -> Vec<String> {
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let found = text.lines().rev().map(fields).find(|fields| fields.iter().any(|f| f == parameter));
    let mut found = found.unwrap_or_else(|| panic!("no {parameter} in:\n{text}"));
    found.retain(|field| field != "*" && field != parameter);
    found
}

/// Asserts that each of the three settings that are configured is in `state`.
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
fn status_check_and_plan_do_not_ask_the_adapter() {
    for name in ["before", "written", "loaded"] {
        assert_eq!(machine::scene(SHORT, &format!("{name} vsec")), "0", "{name}");
    }
}

#[test]
#[ignore = "of the card itself: two boots"]
fn a_card_has_the_settings_of_the_tool_at_the_next_boot() {
    assert_sound(&boot(TOOL));
    assert_eq!(machine::scene(TOOL, "factory"), "- 0x020700 0x020700");
    assert_eq!(machine::scene(TOOL, "first"), "0", "{}", boot(TOOL).file("first"));
    assert_eq!(row(&boot(TOOL).file("first"), "SRIOV_EN"), ["False(0)", "False(0)", "False(0)"]);
    let said = boot(TOOL).file("set");
    assert_eq!(machine::scene(TOOL, "set"), "0", "{said}");
    assert!(said.contains("-I- Please reboot machine to load new configurations."), "{said}");
    // The settings of the card, seen from its second function.
    assert_eq!(row(&boot(TOOL).file("other"), "NUM_OF_VFS"), ["0", "0", "4"]);
    // Of NUM_OF_VFS = 3, and of what the card and its port have in a group each.
    assert_eq!(machine::scene(TOOL, "first writes"), "3");
    assert_eq!(machine::scene(TOOL, "loaded"), "4 0x020700 0x020000");
    assert_eq!(machine::scene(TOOL, "second"), "0", "{}", boot(TOOL).file("second"));
    assert_eq!(row(&boot(TOOL).file("second"), "NUM_OF_VFS"), ["0", "4", "4"]);
    assert_eq!(row(&boot(TOOL).file("second"), "LINK_TYPE_P2"), ["IB(1)", "ETH(2)", "ETH(2)"]);
    assert_eq!(machine::scene(TOOL, "reset"), "0", "{}", boot(TOOL).file("reset"));
    assert_eq!(
        row(&boot(TOOL).file("after-reset"), "SRIOV_EN"),
        ["False(0)", "True(1)", "False(0)"]
    );
}

#[test]
#[ignore = "of the card itself: two boots"]
fn the_tool_says_what_is_amiss() {
    for (name, code, words) in [
        ("unknown", "3", "-E- Unknown Parameter: NOSUCH"),
        ("lacking", "3", "-E- The Device doesn't support ATS_ENABLED parameter"),
        ("no-port", "3", "-E- LINK_TYPE with no port does not exist"),
        ("too-many", "3", "-E- Parameter NUM_OF_VFS' value is larger than maximum allowed 8"),
        ("too-large", "3", "-E- The value 99999 is not valid,  as its size is 16 bits"),
        ("aborted", "2", "-E- Aborted by user."),
        ("internal", "3", "settings Firmware internal error"),
        ("worn", "3", "settings The erase count exceeds its limit"),
        ("no-nv", "3", "-E- NVQC access register is not supported."),
        ("stuck", "3", "-E- Failed to open the device"),
        ("no-current", "0", "does not support reading current configurations"),
        ("power-cycle", "0", "-I- Please power cycle machine to load new configurations."),
    ] {
        let said = boot(TOOL).file(name);
        assert_eq!(machine::scene(TOOL, name), code, "{name}: {said}");
        assert!(said.contains(words), "{name}: {said}");
    }
    assert_eq!(machine::scene(TOOL, "refused writes"), "0");
    // Semaphores of the card that nobody gives back: one of them, or both.
    let said = boot(TOOL).file("killed");
    assert_eq!(machine::scene(TOOL, "killed"), "3", "{said}");
    let failed = ["Failed to open the device", "check if NV access registers are supported"];
    assert!(failed.iter().any(|words| said.contains(words)), "{said}");
}
