//! What came out of a boot.

use std::path::PathBuf;

use serde_json::Value;

use super::journal::{Journal, listing};
use super::reports::assert_valid;

/// What came out of a boot. The folder stays after the test for a look.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Files that came out: stdout, stderr, journal.json, jobs, run-ibprov/,
    /// and whatever the scenario's script left in `$OUT`.
    pub(crate) out: PathBuf,
    /// The journal of the boot.
    pub(crate) journal: Journal,
    /// Exit code of the scenario's script.
    pub(crate) exit: i32,
}

impl Outcome {
    /// Reads the folder `out`; `console` is what the guest's console showed,
    /// for the message when the guest did not come to its end.
    pub(crate) fn read(out: PathBuf, console: &str) -> Result<Self, String> {
        let tail = console.len().saturating_sub(4000);
        let tail = console.get(tail..).unwrap_or(console);
        let exit = std::fs::read_to_string(out.join("exit"))
            .map_err(|_| format!("the guest died before its script ended; console:\n{tail}"))?;
        let journal = Journal::parse(
            &std::fs::read_to_string(out.join("journal.json"))
                .map_err(|e| format!("journal.json: {e}"))?,
        )?;
        let Ok(exit) = exit.trim().parse() else {
            let jobs = std::fs::read_to_string(out.join("jobs")).unwrap_or_default();
            return Err(format!(
                "the boot did not come to its end ({}); console:\n{tail}\njobs:\n{jobs}\njournal in {}, its end:\n{}",
                exit.trim(),
                out.display(),
                listing(journal.0.iter().skip(journal.0.len().saturating_sub(40)))
            ));
        };
        Ok(Self { out, journal, exit })
    }

    /// A file that came out.
    ///
    /// # Panics
    /// When there is none of that name.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.out.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) => panic!("{}: {e}", path.display()),
        }
    }

    /// A report of ibprov's that came out, as its schema has it.
    ///
    /// # Panics
    /// When there is none of that name, or it is no such report.
    pub(crate) fn json(&self, name: &str) -> Value {
        let text = self.file(name);
        match serde_json::from_str(&text) {
            Ok(report) => {
                assert_valid(&report);
                report
            }
            Err(e) => panic!("{name}: {e}\n{text}"),
        }
    }

    /// The agent's report of the boot.
    pub(crate) fn boot_json(&self) -> Value {
        self.json("run-ibprov/boot.json")
    }

    /// What the scenario's script printed.
    pub(crate) fn stdout(&self) -> String {
        self.file("stdout")
    }

    /// Ordering cycles that systemd found, in its words: from the kernel log,
    /// and in a container from a file of its own.
    pub(crate) fn ordering_cycles(&self) -> Vec<String> {
        let graph = std::fs::read_to_string(self.out.join("graph")).unwrap_or_default();
        let told = self.journal.0.iter().map(|e| e.message.as_str()).chain(graph.lines());
        told.filter(|line| line.contains("ordering cycle")).map(str::to_owned).collect()
    }

    /// Asserts that the scenario's script ended with 0.
    ///
    /// # Panics
    /// When it did not, with what it wrote.
    pub(crate) fn assert_success(&self) {
        assert_eq!(
            self.exit,
            0,
            "the script failed; stdout:\n{}stderr:\n{}",
            self.stdout(),
            self.file("stderr")
        );
    }
}

/// What a shell's children have used by its `times`, user and system, in seconds:
/// the second line.
pub(crate) fn children_seconds(times: &str) -> f64 {
    let line = times.lines().nth(1).expect("two lines");
    let seconds = |word: &str| -> f64 {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').expect("time");
        60.0 * minutes.parse::<f64>().expect("minutes") + seconds.parse::<f64>().expect("seconds")
    };
    line.split_whitespace().map(seconds).sum()
}
