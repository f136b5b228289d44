//! Lines that a mailer or a terminal broke are put together again.

use super::header::Header;
use super::state::typed;

/// Mailers break at 66 to 78 columns; a line as long as this was not broken.
const LONGEST: usize = 100;
/// Where mailers begin to break.
const SHORTEST: usize = 66;
/// Where old terminals break, in the middle of a word.
const TERMINAL: usize = 80;

/// How `next` continues `last`, the line above it: the text to put between
/// them, or `None` if it does not. `record` tells that `last` belongs to a log
/// record.
pub fn joint(record: bool, last: &str, next: &Header<'_>) -> Option<&'static str> {
    // A prompt begins something new.
    if !record || next.begins_record() || typed(next.text).is_some() {
        return None;
    }
    let text = next.text.trim();
    let word = text.split_whitespace().next()?;
    let length = last.chars().count();
    if length == TERMINAL && !last.ends_with(' ') && !next.text.starts_with(' ') {
        return Some("");
    }
    // Broken because the next word had no place.
    let broken = length < LONGEST && length + 1 + word.chars().count() > SHORTEST;
    broken.then_some(" ")
}

#[cfg(test)]
mod tests {
    use super::super::header::header;
    use super::*;

    fn joint_of(last: &str, next: &str) -> Option<&'static str> {
        joint(header(last).begins_record(), last, &header(next))
    }

    #[test]
    fn broken_lines_are_told_from_new_ones() {
        let long = "[   94.866908] mlx5_core 0000:0b:00.0: init_one:1329:(pid 13): mlx5_load_one";
        assert_eq!(joint_of(long, "failed with error code -22"), Some(" "));
        assert_eq!(joint_of(long, "[   94.879657] mlx5_core: probe"), None);
        assert_eq!(joint_of(long, ""), None);
        assert_eq!(joint_of(long, "[root@n1 ~]# ibstat"), None);
        assert_eq!(joint_of("[    1.0] short", "$ ibstatus"), None);
        assert_eq!(
            joint_of(
                "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN",
                "group"
            ),
            None
        );
    }
}
