//! What mstconfig and mlxconfig print, 4.16 to 4.33: a table of settings, lines of errors.
//! Their JSON is not read: only from 4.31 on there is any, and the text is always there.

use std::collections::BTreeMap;

use crate::model::firmware::{Setting, State};
use crate::names::{FirmwareName, FirmwareValue, harmless};

/// What the tool has printed, and how it ended.
#[derive(Debug, Clone, Default)]
pub struct ToolOutput {
    /// The command that was run.
    pub command: String,
    pub stdout: String,
    pub stderr: String,
    /// How it failed, if it did.
    pub failure: Option<String>,
}

impl ToolOutput {
    pub fn answer(&self) -> Answer {
        read(&format!("{}\n{}", self.stdout, self.stderr))
    }

    /// The tool has not got at the settings at all: the other name of it, of another age, may.
    pub fn is_unreachable(&self) -> bool {
        const SIGNS: [&str; 3] =
            ["NV access register", "NVQC access register", "crspace read failed"];
        let has = |sign| self.stdout.contains(sign) || self.stderr.contains(sign);
        self.failure.is_some() && SIGNS.into_iter().any(has)
    }

    /// What it answered, if it succeeded.
    ///
    /// # Errors
    /// What it refused, or how it ended; a sentence.
    pub fn good(&self) -> Result<Answer, String> {
        let answer = self.answer();
        if let (None, []) = (&self.failure, answer.errors.as_slice()) {
            return Ok(answer);
        }
        let mut said = answer.errors;
        if said.is_empty() {
            said.extend(self.failure.clone());
        }
        let stderr = self.stderr.lines().last().map(harmless).filter(|line| !line.is_empty());
        said.extend(stderr.filter(|line| !said.contains(line)));
        Err(format!("{}: {}", self.command, said.join("; ")))
    }
}

/// What tool or adapter do not have, and why where there is more to say.
pub type Lacks = BTreeMap<FirmwareName, (State, Option<String>)>;

/// What the tool has said of an adapter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// `ConnectX6`
    pub device_type: Option<String>,
    pub settings: Vec<Setting>,
    /// The firmware tells the values that are in effect.
    pub tells_current: bool,
    /// Its lines that begin with `-E-`, without that.
    pub errors: Vec<String>,
    /// Its last line of `-I-`: what makes the new values effective.
    pub effect: Option<String>,
    /// What was asked for besides, in vain.
    pub lacks: Lacks,
}

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Default,
    Current,
    Next,
    New,
}

const COLUMNS: [(&str, Column); 4] = [
    ("Default", Column::Default),
    ("Current", Column::Current),
    ("Next Boot", Column::Next),
    ("New", Column::New),
];

/// No line of theirs that means something is longer, characters.
const LONGEST: usize = 300;

/// Read what the tool has printed, standard output and standard error.
pub fn read(text: &str) -> Answer {
    let mut answer = Answer::default();
    let mut columns: Vec<Column> = Vec::new();
    for line in text.lines() {
        // What stands before is a question that it has asked, or what it was about to do.
        if let Some((_, error)) = line.split_once("-E- ") {
            columns.clear();
            answer.errors.push(one_line(error));
        } else if let Some((_, said)) = line.split_once("-I- ") {
            answer.effect = Some(one_line(said));
        } else if let Some(device) = line.strip_prefix("Device type:") {
            answer.device_type = Some(one_line(device)).filter(|device| !device.is_empty());
        } else if let Some(head) = line.strip_prefix("Configurations:") {
            columns = columns_of(head);
            answer.tells_current |= columns.contains(&Column::Current);
        } else if let Some(shown) = row(line, &columns) {
            answer.settings.push(shown);
        }
    }
    answer
}

fn one_line(text: &str) -> String {
    harmless(text.trim()).chars().take(LONGEST).collect()
}

/// The columns that the head of the table names, in its order.
fn columns_of(head: &str) -> Vec<Column> {
    let mut found: Vec<(usize, Column)> =
        COLUMNS.iter().filter_map(|(title, column)| Some((head.find(title)?, *column))).collect();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, column)| column).collect()
}

/// A row of the table: marks, the name, a value for each column. `*` marks what differs from
/// the default or from the current value, `RO` what cannot be set: neither says what is in
/// effect.
fn row(line: &str, columns: &[Column]) -> Option<Setting> {
    let mut words = line.split_whitespace().peekable();
    while words.next_if(|word| matches!(*word, "*" | "RO" | "*RO")).is_some() {}
    let name = words.next()?.parse().ok()?;
    let values: Vec<&str> = words.collect();
    let of = |wanted| {
        let at = columns.iter().position(|column| *column == wanted)?;
        values.get(at).map(|value| one_line(value))
    };
    let is_whole = !columns.is_empty() && values.len() == columns.len();
    is_whole.then(|| Setting::shown(name, of(Column::Current), of(Column::Next)))
}

/// The setting that an error says the tool's database lacks, or the adapter.
pub fn lacking(error: &str) -> Option<(FirmwareName, State)> {
    let unknown = error.strip_prefix("Unknown Parameter: ").map(|rest| (rest, State::UnknownName));
    let (rest, state) = unknown.or_else(|| {
        let (_, rest) = error.split_once("doesn't support ")?;
        Some((rest, State::NotSupported))
    })?;
    Some((rest.split_whitespace().next()?.trim_end_matches(['.', ',']).parse().ok()?, state))
}

impl Answer {
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|shown| shown.name.as_str() == name)
    }

    /// The value in effect is this word or number; where that is not told, the next one.
    pub fn is(&self, name: &str, number: u64) -> bool {
        let value = FirmwareValue::Number(number);
        self.setting(name)
            .and_then(|shown| shown.current.as_ref().or(shown.next.as_ref()))
            .is_some_and(|shown| value.is_shown_as(shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// mstconfig 4.21.
    const QUERY: &str = "
Device #1:
----------

Device type:    ConnectX6       
Name:           N/A             
Description:    N/A             
Device:         0001:01:00.0    

Configurations:                              Default         Current         Next Boot
*        SRIOV_EN                            False(0)        False(0)        True(1)         
*        NUM_OF_VFS                          0               0               8               
         LINK_TYPE_P1                        IB(1)           IB(1)           IB(1)           
         HOST_CHAINING_DESCRIPTORS           Array[0..7]     Array[0..7]     Array[0..7]     
The '*' shows parameters with next value different from default/current value.
";

    fn shown(name: &str, current: Option<&str>, next: Option<&str>) -> Setting {
        let text = |text: Option<&str>| text.map(str::to_owned);
        Setting::shown(name.parse().expect("a name"), text(current), text(next))
    }

    #[test]
    fn a_query_is_read_by_its_columns_and_not_by_its_marks() {
        let answer = read(QUERY);
        assert_eq!(answer.device_type.as_deref(), Some("ConnectX6"));
        assert!(answer.tells_current && answer.errors.is_empty());
        assert_eq!(
            answer.settings,
            [
                shown("SRIOV_EN", Some("False(0)"), Some("True(1)")),
                shown("NUM_OF_VFS", Some("0"), Some("8")),
                shown("LINK_TYPE_P1", Some("IB(1)"), Some("IB(1)")),
                shown("HOST_CHAINING_DESCRIPTORS", Some("Array[0..7]"), Some("Array[0..7]")),
            ]
        );
        assert!(answer.is("LINK_TYPE_P1", 1) && answer.is("NUM_OF_VFS", 0));
    }

    #[test]
    fn the_layout_of_4_31_is_read_too() {
        let text = "\
Device type:        ConnectX6
Configurations:                                          Default             Current             Next Boot
*RO      NUM_OF_PLANES_P1                                 0                   0                   1
   RO    A_NAME_THAT_IS_LONGER_THAN_ITS_COLUMN_AND_MOVES_WHAT_FOLLOWS      N/A N/A N/A
*        FPP_EN                                           True(1)             False(0)            True(1)
        The '*' shows parameters with next value different from default/current value.
";
        let names: Vec<_> = read(text).settings.into_iter().map(|s| s.name.to_string()).collect();
        assert_eq!(names[0], "NUM_OF_PLANES_P1");
        assert_eq!((names.len(), names[2].as_str()), (3, "FPP_EN"));
        assert_eq!(
            read(text).setting("FPP_EN").expect("shown").current.as_deref(),
            Some("False(0)")
        );
    }

    #[test]
    fn columns_may_be_missing() {
        let text = "Configurations:                              Next Boot
         SRIOV_EN                            True(1)
Device Firmware does not support reading default and current configurations
";
        let answer = read(text);
        assert_eq!(answer.settings, [shown("SRIOV_EN", None, Some("True(1)"))]);
        assert!(!answer.tells_current && answer.is("SRIOV_EN", 1));
        let text = "Configurations:                 Current         Next Boot
         NUM_OF_VFS                     8               16\n";
        assert_eq!(read(text).settings, [shown("NUM_OF_VFS", Some("8"), Some("16"))]);
    }

    #[test]
    fn a_set_tells_what_makes_it_effective_or_why_it_failed() {
        let done = "
Configurations:                              Next Boot       New
         SRIOV_EN                            False(0)        True(1)

 Apply new Configuration? (y/n) [n] : y
Applying... Done!
-I- Please reboot machine to load new configurations.
";
        let answer = read(done);
        assert!(answer.errors.is_empty());
        assert_eq!(
            answer.effect.as_deref(),
            Some("Please reboot machine to load new configurations.")
        );
        let cycle = done.replace("reboot machine", "power cycle machine");
        assert_eq!(
            read(&cycle).effect.as_deref(),
            Some("Please power cycle machine to load new configurations.")
        );
        let failed = "Applying... Failed!
-E- Parameter NUM_OF_VFS' value is larger than maximum allowed 127
";
        let answer = read(failed);
        assert_eq!(
            answer.errors,
            ["Parameter NUM_OF_VFS' value is larger than maximum allowed 127"]
        );
        assert_eq!(answer.effect, None);
        let aborted = " Apply new Configuration? (y/n) [n] : -E- Aborted by user.\n";
        assert_eq!(read(aborted).errors, ["Aborted by user."]);
    }

    #[test]
    fn what_tool_or_adapter_lacks_is_told_by_name() {
        let lack = |text: &str| lacking(text).map(|(name, state)| (name.to_string(), state));
        assert_eq!(lack("Unknown Parameter: NOSUCH"), Some(("NOSUCH".into(), State::UnknownName)));
        assert_eq!(
            lack("The Device doesn't support ATS_ENABLED parameter"),
            Some(("ATS_ENABLED".into(), State::NotSupported))
        );
        for other in [
            "Failed to open the device",
            "LINK_TYPE with no port does not exist",
            "NVQC access register is not supported. Either",
            "Unknown value yes",
        ] {
            assert_eq!(lack(other), None, "{other}");
        }
    }

    #[test]
    fn a_failure_is_told_in_the_tool_s_words() {
        let told = |stdout: &str, stderr: &str, failure: &str| {
            let failure = Some(failure.to_owned()).filter(|failure| !failure.is_empty());
            let (command, stdout) = ("mstconfig q".to_owned(), stdout.to_owned());
            let said = ToolOutput { command, stdout, stderr: stderr.to_owned(), failure };
            said.good().map(|answer| answer.settings.len())
        };
        let failed = |stdout, stderr| told(stdout, stderr, "exit code 3").expect_err("a failure");
        for (stdout, stderr, said) in [
            ("-E- Failed to open the device\n", "", "-E- Failed to open the device"),
            (
                "-E- Failed to open the device\n",
                "write counter to semaphore: Operation not permitted\n",
                "-E- Failed to open the device; write counter to semaphore: Operation not permitted",
            ),
            (
                "FATAL - Can't find device id.\n-E- Failed to identify the device\n",
                "",
                "-E- Failed to identify the device",
            ),
            (
                "-E- Error when trying to check if NV access registers are supported\n",
                "",
                "-E- Error when trying to check if NV access registers are supported",
            ),
            ("-E- Cannot parse the value\n", "", "-E- Cannot parse the value"),
            ("-E- Unknown value yes\n", "", "-E- Unknown value yes"),
            ("", "", "exit code 3"),
            ("", "Killed\n", "exit code 3; Killed"),
        ] {
            let said = said.replace("-E- ", "");
            assert_eq!(failed(stdout, stderr), format!("mstconfig q: {said}"));
        }
        // All values, and then that some could not be had.
        let some = "Configurations:   Next Boot\n  SRIOV_EN   True(1)\n-E- Failed to query some of the TLVs:\nNV_X  0\n";
        assert_eq!(failed(some, ""), "mstconfig q: Failed to query some of the TLVs:");
        assert_eq!(told(QUERY, "a warning\n", ""), Ok(4));
    }

    #[test]
    fn what_stands_behind_an_error_is_no_setting() {
        let text = "Configurations:   Next Boot\n  SRIOV_EN   True(1)\n-E- Failed to query some of the TLVs:\nNV_X  0\n";
        assert_eq!(read(text).settings.len(), 1);
        let many: String = (0..322).map(|n| format!("    NAME_{n}    N/A  {n}\n")).collect();
        let text = format!("Configurations:  Current  Next Boot\n{many}");
        assert_eq!(read(&text).settings.len(), 322);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,200}") {
            let answer = read(&text);
            for error in &answer.errors {
                let _lack = lacking(error);
                prop_assert!(!error.contains('\n'));
            }
        }
    }
}
