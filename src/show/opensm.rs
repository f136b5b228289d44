//! The text of `ibprov opensm check`.

use crate::model::opensm::{Checked, CheckedFile, OpensmFile};
use crate::names::counted;

pub fn text(report: &Checked) -> String {
    if report.files.is_empty() {
        return "no partitions.conf and no opensm.conf: opensm would use its defaults\n".to_owned();
    }
    let line = |file: &CheckedFile| {
        let found = match (file.errors, file.warnings) {
            (0, 0) => "as it is meant".to_owned(),
            (errors, 0) => counted(errors, "error"),
            (0, warnings) => counted(warnings, "warning"),
            (errors, warnings) => {
                format!("{}, {}", counted(errors, "error"), counted(warnings, "warning"))
            }
        };
        let made = match file.kind {
            OpensmFile::Opensm => String::new(),
            OpensmFile::Partitions => {
                format!(" ({})", counted(file.partitions.len(), "partition"))
            }
        };
        format!("{}{made}: {found}\n", file.file)
    };
    report.files.iter().map(line).collect()
}
