//! Reports of an earlier user space: /run outlives a soft-reboot, and who reads a report there
//! takes it for one of this boot.

use serde::Deserialize;

use crate::host::start_up::StartUp;
use crate::host::state::{self, PFS, PORTS, RUN_DIR};
use crate::host::{Root, answer};
use crate::names::Moment;

#[derive(Deserialize)]
struct Report {
    started_usec: Moment,
}

/// Remove the reports that were begun before this start of user space. systemd is asked for that
/// only where an earlier boot has left a report.
pub(super) fn forget(root: &Root, problems: &mut Vec<String>) {
    if !root.exists(&format!("{RUN_DIR}/boot.json")) {
        return;
    }
    let start_up = match StartUp::ask() {
        Ok(start_up) => start_up,
        Err(e) => {
            problems.push(format!(
                "whether there was a soft-reboot, so that reports below {RUN_DIR} are out of date, cannot be determined: {}",
                answer(&e)
            ));
            return;
        }
    };
    for name in reports_before(root, start_up.began) {
        problems.extend(state::remove(&name).err().map(|e| format!("cannot remove {e}")));
    }
}

/// The reports below [`RUN_DIR`] that were begun before `began`.
fn reports_before(root: &Root, began: Moment) -> Vec<String> {
    let names =
        ["".to_owned(), format!("{PORTS}/"), format!("{PFS}/")].into_iter().flat_map(|dir| {
            let names = root.list(&format!("{RUN_DIR}/{dir}")).unwrap_or_default();
            names.into_iter().map(move |name| format!("{dir}{name}"))
        });
    let is_before = |name: &String| {
        let text = root.text(&format!("{RUN_DIR}/{name}"), 16 << 20).ok();
        let report = text.and_then(|text| serde_json::from_str::<Report>(&text).ok());
        report.is_some_and(|report| report.started_usec < began)
    };
    names.filter(|name| name.ends_with(".json")).filter(is_before).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;
    use crate::names::at;

    #[test]
    fn reports_of_the_user_space_before_a_soft_reboot_are_found() {
        let files = [
            ("run/ibprov/boot.json", r#"{"schema": 3, "started_usec": 99}"#),
            ("run/ibprov/guests.json", r#"{"started_usec": 100}"#),
            ("run/ibprov/ports/3.json", r#"{"netdev": "ib0", "started_usec": 7}"#),
            ("run/ibprov/ports/4.json", r#"{"netdev": "ib1", "started_usec": 101}"#),
            ("run/ibprov/pf/0000:4b:00.0.json", r#"{"started_usec": 8}"#),
            ("run/ibprov/pf/0000:4b:00.0.undo", r#"{"started_usec": 8}"#),
            ("run/ibprov/other.json", "{}"),
        ];
        let dir = tree(&files, &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let mut found = reports_before(&root, at(100));
        found.sort_unstable();
        assert_eq!(found, ["boot.json", "pf/0000:4b:00.0.json", "ports/3.json"]);
    }
}
