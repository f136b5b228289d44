#![allow(
    clippy::disallowed_methods,
    reason = "the one line that goes past the door: it moves the cursor"
)]

//! The one line at the bottom of a terminal that says what work that takes long waits for.
//!
//! Only where somebody runs ibprov by hand on a terminal. Whoever writes to that terminal
//! clears the line before; it comes back with what is shown next.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::{clock, terminal};
use crate::names::{Moment, harmless};

/// How often the time in it goes on.
const TICK: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Line {
    /// Nothing yet, or nothing any more.
    text: Option<String>,
    /// Of so many parts of the work so many are done.
    count: Option<(usize, usize)>,
    ticks: bool,
    /// When the work began, and after how long it ends by itself.
    timeout: Option<(Moment, Duration)>,
}

static LINE: Mutex<Line> =
    Mutex::new(Line { text: None, count: None, ticks: false, timeout: None });
static NEVER: Condvar = Condvar::new();

/// The work ends by itself after `timeout`.
pub fn timeout(timeout: Duration) {
    if let Ok(mut line) = LINE.lock() {
        line.timeout = Some((clock::now(), timeout));
    }
}

/// Show `text`, and how long the work has taken, until [`end`].
pub fn show(text: &str) {
    let stderr = io::stderr();
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if !terminal::is_by_hand() || !terminal::is_terminal(&stderr) || dumb {
        return;
    }
    let Ok(mut line) = LINE.lock() else { return };
    line.text = Some(harmless(text));
    line.draw();
    // Without a thread for it the line would only tell the time when something happens.
    if !std::mem::replace(&mut line.ticks, true) {
        let ticker = std::thread::Builder::new().name("live-line".to_owned());
        if ticker.spawn(tick).is_err() {
            line.ticks = false;
        }
    }
}

/// Show another `text`, if the line is shown: in a process that shows none this does nothing.
pub fn update(text: &str) {
    let text = Some(harmless(text));
    if let Ok(mut line) = LINE.lock()
        && line.text.is_some()
        && line.text != text
    {
        (line.text, line.count) = (text, None);
        line.draw();
    }
}

/// Show that `done` of the `all` parts of the work are done, if the line is shown.
pub fn count(done: usize, all: usize) {
    let count = Some((done, all)).filter(|_| all > 1);
    if let Ok(mut line) = LINE.lock()
        && line.count != count
    {
        line.count = count;
        line.draw();
    }
}

/// Take the line away, before something else is written or the work is over.
pub fn end() {
    if let Ok(mut line) = LINE.lock()
        && line.text.take().is_some()
    {
        // Nobody is left to see it if standard error is gone.
        drop(write!(io::stderr(), "\r\u{1b}[K"));
    }
}

fn tick() {
    let Ok(mut line) = LINE.lock() else { return };
    loop {
        let Ok((next, _)) = NEVER.wait_timeout(line, TICK) else { return };
        line = next;
        line.draw();
    }
}

impl Line {
    fn draw(&self) {
        let Some(text) = &self.text else { return };
        let count = self.count.map(|(done, all)| format!(" {done} of {all}")).unwrap_or_default();
        let time = match self.timeout {
            Some((began, timeout)) => {
                let seconds = clock::now().since(began).as_secs();
                format!("{count} ({seconds} s of {} s)", timeout.as_secs())
            }
            None => count,
        };
        let columns = terminal::columns(&io::stderr()).unwrap_or(80).saturating_sub(1);
        let room = columns.saturating_sub(time.chars().count());
        let text: String = if text.chars().count() > room {
            text.chars().take(room.saturating_sub(3)).chain("...".chars()).collect()
        } else {
            text.clone()
        };
        drop(write!(io::stderr(), "\r\u{1b}[K{text}{time}"));
    }
}
