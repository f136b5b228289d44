//! Firmware settings of the software card (`tests/vm/card`), by the distribution's own
//! mstconfig: its texts and its ways are real, the answers of the firmware are a guess.

use crate::card::assert_sound;
use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("firmware", name)
}

/// The fields of the line of `parameter` in what the tool printed as `name`.
fn row(name: &str, parameter: &str) -> Vec<String> {
    let said = boot("firmware").file(name);
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let found = said.lines().map(fields).find(|fields| fields.iter().any(|f| f == parameter));
    let mut found = found.unwrap_or_else(|| panic!("no {parameter} in:\n{said}"));
    found.retain(|field| field != "*" && field != parameter);
    found
}

#[test]
#[ignore = "of the card itself: two boots"]
fn a_card_has_the_settings_of_the_tool_at_the_next_boot() {
    assert_sound(&boot("firmware"));
    assert_eq!(scene("factory"), "- 0x020700 0x020700");
    assert_eq!(scene("first"), "0", "{}", boot("firmware").file("first"));
    assert_eq!(row("first", "SRIOV_EN"), ["False(0)", "False(0)", "False(0)"]);
    let said = boot("firmware").file("set");
    assert_eq!(scene("set"), "0", "{said}");
    assert!(said.contains("-I- Please reboot machine to load new configurations."), "{said}");
    // The settings of the card, seen from its second function.
    assert_eq!(row("other", "NUM_OF_VFS"), ["0", "0", "4"]);
    // Of NUM_OF_VFS = 3, and of what the card and its port have in a group each.
    assert_eq!(scene("first writes"), "3");
    assert_eq!(scene("loaded"), "4 0x020700 0x020000");
    assert_eq!(scene("second"), "0", "{}", boot("firmware").file("second"));
    assert_eq!(row("second", "NUM_OF_VFS"), ["0", "4", "4"]);
    assert_eq!(row("second", "LINK_TYPE_P2"), ["IB(1)", "ETH(2)", "ETH(2)"]);
    assert_eq!(scene("reset"), "0", "{}", boot("firmware").file("reset"));
    assert_eq!(row("after-reset", "SRIOV_EN"), ["False(0)", "True(1)", "False(0)"]);
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
        let said = boot("firmware").file(name);
        assert_eq!(scene(name), code, "{name}: {said}");
        assert!(said.contains(words), "{name}: {said}");
    }
    assert_eq!(scene("refused writes"), "0");
    // Semaphores of the card that nobody gives back: one of them, or both.
    let said = boot("firmware").file("killed");
    assert_eq!(scene("killed"), "3", "{said}");
    let failed = ["Failed to open the device", "check if NV access registers are supported"];
    assert!(failed.iter().any(|words| said.contains(words)), "{said}");
}
