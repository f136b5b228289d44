//! The files of opensm, judged by the grammar that opensm 3.3 documents, and what it would make
//! of each line that is not of that grammar (`osm_prtn_config.c`, `osm_subnet.c`).
//!
//! opensm says almost nothing of what it does not understand, and ends with 0 all the same.

mod flags;
mod number;
pub mod options;
pub mod partitions;
mod text;

use std::ops::Range;

use crate::model::{Code, opensm::FaultKind};

/// One thing that opensm would not take as it is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind of thing it is.
    pub kind: FaultKind,
    /// Where it stands, in bytes of the file.
    pub span: Range<usize>,
    /// What is wrong at that place.
    pub label: String,
    /// Another place that belongs to it, and what stands there.
    pub also: Option<(Range<usize>, String)>,
    pub consequence: String,
    pub help: Option<String>,
}

impl Fault {
    fn new(
        kind: FaultKind,
        span: Range<usize>,
        label: impl Into<String>,
        consequence: impl Into<String>,
    ) -> Self {
        let (label, consequence) = (label.into(), consequence.into());
        Self { kind, span, label, also: None, consequence, help: None }
    }

    fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    fn also(self, span: Range<usize>, label: impl Into<String>) -> Self {
        Self { also: Some((span, label.into())), ..self }
    }

    /// The code by which all verbs know it.
    pub const fn code(&self) -> Code {
        match self.kind {
            FaultKind::Rejected | FaultKind::Crash => Code::OpensmPartitionsRejected,
            _ => Code::OpensmMisconfigured,
        }
    }
}

/// What came from a file, to be shown.
fn shown(text: &[u8]) -> String {
    const MOST: usize = 48;
    let text = String::from_utf8_lossy(text);
    let cut = if text.chars().count() > MOST { "..." } else { "" };
    crate::names::harmless(&format!("{}{cut}", text.chars().take(MOST).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::partitions::{self, Known};
    use super::{Fault, options};

    /// Words of both files, so that what is made of them is more than one error.
    fn content() -> impl Strategy<Value = Vec<u8>> {
        let word = prop::sample::select(vec![
            "Default",
            "=",
            "0x7fff",
            "0x8010",
            ",",
            ":",
            ";",
            "\n",
            "\r",
            " ",
            "\t",
            "#",
            "ALL",
            "full",
            "both",
            "ipoib",
            "mtu",
            "4",
            "mgid",
            "ff12:401b::1",
            "0x98039b0300a1b0c1",
            "guid",
            "sm_priority",
            "\0",
            "ä",
            "A",
            "99999999999999999999",
            "-1",
            "010",
        ]);
        let piece = prop_oneof![
            8 => word.prop_map(|word| word.as_bytes().to_vec()),
            1 => prop::collection::vec(any::<u8>(), 0..4),
            1 => (0_usize..5000).prop_map(|n| vec![b'x'; n]),
        ];
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    fn are_in(faults: &[Fault], content: &[u8]) -> bool {
        faults.iter().all(|fault| {
            let spans = [Some(&fault.span), fault.also.as_ref().map(|(span, _)| span)];
            spans.iter().flatten().all(|span| span.start <= span.end && span.end <= content.len())
        })
    }

    proptest! {
        #[test]
        fn no_file_panics_and_no_place_is_outside_of_it(content in content(), both in any::<bool>()) {
            let known = Known {
                children: [(0x10, "ib0.8010".to_owned())].into(),
                allows_both: both,
                guids: both.then(|| [1].into()),
            };
            let read = partitions::read(&content, &known);
            prop_assert!(are_in(&read.faults, &content), "{:?}", read.faults);
            let read = options::read(&content);
            prop_assert!(are_in(&read.faults, &content), "{:?}", read.faults);
        }
    }
}
