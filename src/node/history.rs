//! What happened to an adapter, as the kernel log has it: its last lines, and how the link of a
//! port changed.

use crate::host::KernelLine;
use crate::model::status::{History, LinkChange, Told};
use crate::names::{Moment, PortNumber, RdmaName, usec};

/// More are asked of journalctl.
const LAST: usize = 3;

/// What `log` has of whom one of `names` is a name; nothing if it has nothing.
pub fn of(log: &[KernelLine], names: &[String], now: Moment) -> Option<History> {
    let all: Vec<&KernelLine> = log.iter().filter(|line| is_of(line, names)).collect();
    let told = |line: &&KernelLine| Told {
        usec: line.at,
        ago_usec: usec(now.since(line.at)),
        text: line.text.clone(),
    };
    // The first record of a boot is of its time 0.
    let cut_off = log.first().is_some_and(|first| first.at > Moment::START);
    let last = all.iter().skip(all.len().saturating_sub(LAST)).map(told).collect();
    (!all.is_empty() || cut_off).then_some(History { last, of: all.len(), cut_off })
}

/// `mlx5_core 0000:4b:00.0 mlx5_0: ...`
fn is_of(line: &KernelLine, names: &[String]) -> bool {
    let words = line.text.split_whitespace().map(|word| word.trim_end_matches([':', ',']));
    words.into_iter().any(|word| names.iter().any(|name| name == word))
}

/// The last change of the link of a port, which `ib_cache_update()` logs since Linux 6.14:
/// `mlx5_core 0000:4b:00.0 mlx5_0: Port: 1 Link ACTIVE`.
pub fn link_change(
    log: &[KernelLine],
    device: &RdmaName,
    port: PortNumber,
    now: Moment,
) -> Option<LinkChange> {
    let of = format!("{device}: Port: {port} Link ");
    let mut changes = log.iter().rev().filter_map(|line| {
        let (before, state) = line.text.split_once(&of)?;
        (before.is_empty() || before.ends_with(' ')).then_some((line.at, state))
    });
    let (at, state) = changes.next()?;
    let before = changes.map(|(_, state)| state.to_owned()).find(|before| before != state);
    Some(LinkChange { state: state.to_owned(), before, ago_usec: usec(now.since(at)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::at;

    fn log(lines: &[(u64, &str)]) -> Vec<KernelLine> {
        let line = |(usec, text): &(u64, &str)| KernelLine {
            at: at(*usec),
            level: 6,
            text: (*text).to_owned(),
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn the_last_lines_of_an_adapter_are_told_and_that_the_buffer_has_wrapped() {
        let names = ["0000:4b:00.0", "mlx5_1", "ib1"].map(str::to_owned);
        let mut lines = vec![
            (0, "Linux version 6.14"),
            (1, "mlx5_core 0000:4b:00.0: firmware version: 20.36.1010"),
            (2, "mlx5_core 0000:4b:00.1: firmware version: 20.36.1010"),
            (3, "mlx5_core 0000:4b:00.0 mlx5_1: Port: 1 Link ACTIVE"),
            (4, "mlx5_core 0000:4b:00.1 mlx5_10: Port: 1 Link ACTIVE"),
            (5, "ib1.8001: enabling connected mode will cause multicast packet drops"),
            (6, "ib1: link becomes ready"),
            (7, "mlx5_core 0000:4b:00.0: Port module event: module 0, Cable unplugged"),
        ];
        let told = of(&log(&lines), &names, at(10)).expect("lines");
        assert_eq!(told.last.iter().map(|t| t.ago_usec).collect::<Vec<_>>(), [7, 4, 3]);
        assert!(told.of == 4 && !told.cut_off, "{told:?}");
        lines.remove(0);
        assert!(of(&log(&lines), &names, at(10)).expect("lines").cut_off);
        assert_eq!(of(&log(&[(0, "Linux version 6.14")]), &names, at(10)), None);
    }

    #[test]
    fn the_change_of_a_link_is_that_of_its_port() {
        let device: RdmaName = "mlx5_1".parse().expect("a name");
        let port = PortNumber::new(1).expect("a number");
        let change = |lines: &[(u64, &str)]| link_change(&log(lines), &device, port, at(10));
        let change_of = |state: &str, before: Option<&str>, ago_usec| {
            let before = before.map(str::to_owned);
            Some(LinkChange { state: state.to_owned(), before, ago_usec })
        };
        let mut lines = vec![
            (3, "mlx5_core 0000:4b:00.0 mlx5_1: Port: 1 Link ACTIVE"),
            (4, "mlx5_core 0000:4b:00.0 mlx5_1: Port: 1 Link DOWN"),
            (5, "mlx5_core 0000:4b:00.0 mlx5_1: Port: 2 Link ACTIVE"),
            (6, "mlx5_core 0000:4b:00.0 xmlx5_1: Port: 1 Link ACTIVE"),
        ];
        assert_eq!(change(&lines), change_of("DOWN", Some("ACTIVE"), 6));
        lines.remove(0);
        assert_eq!(change(&lines), change_of("DOWN", None, 6));
        assert_eq!(change(&[]), None);
    }
}
