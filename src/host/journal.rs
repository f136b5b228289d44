//! What ibprov says while it works: to the journal with fields when systemd
//! runs it, to standard error otherwise, never to both.

use std::io::Write;

use log::{Level, LevelFilter, Log, Metadata, Record};
use systemd_journal_logger::{JournalLog, connected_to_journal};

use super::{Root, systemd};

/// Begin to log. `verbose` shows debug messages too.
pub fn install(verbose: bool) {
    let journal = connected_to_journal().then(JournalLog::new).and_then(Result::ok);
    let logger: Box<dyn Log> = match journal {
        Some(journal) => Box::new(with_unit(journal.with_syslog_identifier("ibprov".to_owned()))),
        None => Box::new(Stderr),
    };
    let logger: Box<dyn Log> = if verbose { logger } else { Box::new(Ours(logger)) };
    // A second call leaves the first logger in place, which is as good.
    if log::set_boxed_logger(logger).is_ok() {
        log::set_max_level(if verbose { LevelFilter::Debug } else { LevelFilter::Info });
    }
}

/// journald looks up the unit of who sent a message when it gets to it, and finds none
/// if the sender has ended meanwhile: the last words of a boot under load. `journalctl
/// --unit` takes root's word for it too, in this field (`systemd.journal-fields(7)`).
fn with_unit(journal: JournalLog) -> JournalLog {
    match systemd::own_unit(&Root::live()) {
        Ok(Some(unit)) => journal.with_extra_fields([("OBJECT_SYSTEMD_UNIT", unit)]),
        // Then it is as with other programs, which do not say it either.
        Ok(None) | Err(_) => journal,
    }
}

/// Say `text`, as an event of kind `message_id` with `fields`: upper-case
/// names, as `systemd.journal-fields(7)` wants them.
pub fn emit(message_id: &str, level: Level, text: &str, fields: &[(&str, String)]) {
    if level > log::max_level() {
        return;
    }
    let mut pairs = vec![("MESSAGE_ID", message_id)];
    pairs.extend(fields.iter().map(|(name, value)| (*name, value.as_str())));
    let pairs = pairs.as_slice();
    log::logger().log(
        &Record::builder()
            .args(format_args!("{text}"))
            .level(level)
            .target("ibprov")
            .key_values(&pairs)
            .build(),
    );
}

/// Lets through what ibprov says itself. Libraries speak to their developers:
/// netlink-packet-route reports a "BUG" for each VF of an IPoIB netdev, which
/// has no VLAN protocol.
struct Ours(Box<dyn Log>);

impl Log for Ours {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let own = metadata.target().split("::").next() == Some("ibprov");
        own && self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.log(record);
        }
    }

    fn flush(&self) {
        self.0.flush();
    }
}

#[derive(Debug)]
struct Stderr;

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            // Nobody is left to tell if standard error is gone.
            drop(writeln!(std::io::stderr(), "{}", record.args()));
        }
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ibprov_s_own_words_get_through() {
        let logger = Ours(Box::new(Stderr));
        log::set_max_level(LevelFilter::Info);
        let through =
            |target| logger.enabled(&Metadata::builder().target(target).level(Level::Warn).build());
        assert!(through("ibprov") && through("ibprov::apply::boot"));
        assert!(!through("netlink_packet_route::link") && !through("ibprovx"));
    }
}
