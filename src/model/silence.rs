//! That what was asked has not answered.

use std::time::Duration;

use super::duration::utc;

/// For how long what was asked has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Silence {
    /// Not within so long.
    #[error("did not answer within {} s", .0.as_secs())]
    Within(Duration),
    /// Not to an earlier query, whose process is still waiting.
    #[error("has not answered since {} UTC (process {pid})", utc(*started))]
    Since {
        /// When that process was started, seconds since 1970.
        started: u64,
        pid: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_of_a_span_or_since_a_time_by_which_its_process_is_found() {
        assert_eq!(
            Silence::Within(Duration::from_secs(5)).to_string(),
            "did not answer within 5 s"
        );
        let since = Silence::Since { started: 1_795_835_520, pid: 4711 };
        let text = "has not answered since 2026-11-28 03:12:00 UTC (process 4711)";
        assert_eq!(since.to_string(), text);
    }
}
