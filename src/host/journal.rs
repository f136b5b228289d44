//! What ibprov says while it works: to the journal with fields when systemd
//! runs it, to standard error otherwise, never to both.

use std::io::Write;

use log::{Level, LevelFilter, Log, Metadata, Record};
use systemd_journal_logger::{JournalLog, connected_to_journal};

/// Begin to log. `verbose` shows debug messages too.
pub fn install(verbose: bool) {
    let journal = connected_to_journal().then(JournalLog::new).and_then(Result::ok);
    let logger: Box<dyn Log> = match journal {
        Some(journal) => Box::new(Own(journal.with_syslog_identifier("ibprov".to_owned()))),
        None => Box::new(Own(Stderr)),
    };
    // A second call leaves the first logger in place, which is as good.
    if log::set_boxed_logger(logger).is_ok() {
        log::set_max_level(if verbose { LevelFilter::Debug } else { LevelFilter::Info });
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

/// Only what ibprov itself says: libraries complain to their authors.
struct Own<L>(L);

impl<L: Log> Log for Own<L> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ibprov") && self.0.enabled(metadata)
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
