//! What standard output and standard error can show: a terminal's width, and colour.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use crate::names::Colour;

static CHOSEN: OnceLock<Colour> = OnceLock::new();

/// What the command line says of colour, for the whole program. The first call counts.
pub fn choose(colour: Colour) {
    // A second call would be a mistake of ours and harms nothing.
    let _ = CHOSEN.set(colour);
}

/// True if `stream` shall get colour: where nothing was chosen, a terminal that is not told
/// otherwise (<https://no-color.org>) and is no dumb one.
#[must_use]
pub fn wants_colour(stream: &impl IsTerminal) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    match CHOSEN.get().copied().unwrap_or_default() {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => stream.is_terminal() && !is_set("NO_COLOR") && !dumb,
    }
}

/// How many columns `stream` has: as COLUMNS says, else as the terminal does; `None` if it
/// is not a terminal, where lines are as long as they are.
#[must_use]
pub fn columns(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let told = || {
        let (width, _) = terminal_size::terminal_size_of(stream)?;
        Some(usize::from(width.0)).filter(|columns| *columns > 0)
    };
    set.filter(|columns| *columns > 0)
        .or_else(|| stream.is_terminal().then(|| told().unwrap_or(80)))
}

static BY_HAND: OnceLock<bool> = OnceLock::new();

/// Whether messages go to standard error and not to the journal. The first call counts.
pub fn set_by_hand(by_hand: bool) {
    let _ = BY_HAND.set(by_hand);
}

/// True if messages go to standard error and not to the journal: somebody runs ibprov and
/// reads along. Reports belong on standard output then.
#[must_use]
pub fn is_by_hand() -> bool {
    BY_HAND.get().copied().unwrap_or(true)
}
