#![allow(clippy::disallowed_methods, reason = "the door to standard output and standard error")]

//! Standard output and standard error: what they can show, and the door through which all that
//! is printed goes, so that no text from files, names or messages moves a cursor or hides what
//! stands beside it.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use nix::sys::termios::{FlushArg, tcflush};
use nix::unistd::isatty;

use super::{answer, clock};

use crate::names::{Colour, Moment, mark_in_lines, sh_words};

static WANTED: OnceLock<Wanted> = OnceLock::new();

/// What the command line says of all that is printed.
#[derive(Debug, Default)]
pub struct Wanted {
    pub colour: Colour,
    /// More detail.
    pub verbose: bool,
    /// The command that shows more detail.
    pub more: String,
}

/// Keep what the command line says, for the whole program. The first call counts.
pub fn choose(colour: Colour, verbose: bool) {
    let typed = std::env::args_os().skip(1);
    let mut words: Vec<String> = typed.map(|word| word.to_string_lossy().into_owned()).collect();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.insert(end, "-v".to_owned());
    let more = format!("ibprov {}", sh_words(&words));
    // A second call would be a mistake of ours and harms nothing.
    let _ = WANTED.set(Wanted { colour, verbose, more });
}

/// What the command line says.
pub fn wanted() -> &'static Wanted {
    WANTED.get_or_init(Wanted::default)
}

/// True if `stream` shall get colour: where nothing was chosen, a terminal that is not told
/// otherwise (<https://no-color.org>) and is no dumb one.
pub fn wants_colour(stream: &impl AsFd) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    match wanted().colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => is_terminal(stream) && !is_set("NO_COLOR") && !dumb,
    }
}

/// True if `stream` is a terminal.
pub fn is_terminal(stream: &impl AsFd) -> bool {
    isatty(stream.as_fd()).unwrap_or(false)
}

/// How many columns `stream` has: as COLUMNS says, else as the terminal does; `None` if it
/// is not a terminal, where lines are as long as they are.
pub fn columns(stream: &impl AsFd) -> Option<usize> {
    extent(stream, "COLUMNS", 80, |(width, _)| width.0)
}

/// How many rows `stream` has, in the same way.
pub fn rows(stream: &impl AsFd) -> Option<usize> {
    extent(stream, "LINES", 24, |(_, height)| height.0)
}

fn extent(
    stream: &impl AsFd,
    variable: &str,
    usual: usize,
    of: fn((terminal_size::Width, terminal_size::Height)) -> u16,
) -> Option<usize> {
    let set = std::env::var(variable).ok().and_then(|number| number.parse().ok());
    let told = || {
        let number = terminal_size::terminal_size_of(stream).map(of)?;
        Some(usize::from(number)).filter(|number| *number > 0)
    };
    set.filter(|number| *number > 0)
        .or_else(|| is_terminal(stream).then(|| told().unwrap_or(usual)))
}

/// Whether there is somebody to be asked: ibprov was started by hand, on a terminal.
pub fn can_ask() -> bool {
    is_by_hand() && is_terminal(&io::stdin()) && is_terminal(&io::stderr())
}

/// True if `question`, which goes to standard error, is answered with yes on standard input
/// before `until`.
///
/// # Errors
/// A stream is gone.
pub fn ask(question: &str, until: Moment) -> io::Result<bool> {
    asked(question, &io::stdin(), &mut stderr(), until)
}

fn asked(
    question: &str,
    input: &impl AsFd,
    out: &mut impl Write,
    until: Moment,
) -> io::Result<bool> {
    // What was typed or pasted before is no answer to a question that nobody has read.
    tcflush(input, FlushArg::TCIFLUSH)?;
    write!(out, "{question} [y/N] ")?;
    let is_yes = answered_yes(input, until)?;
    // Where somebody has pressed Enter the line is ended.
    if is_yes.is_none() {
        writeln!(out)?;
    }
    Ok(is_yes == Some(true))
}

/// Whether the line that comes on `input` says yes; `None` where none comes in time. A
/// terminal gives whole lines.
fn answered_yes(input: &impl AsFd, until: Moment) -> io::Result<Option<bool>> {
    // A signal that is caught is a wish to stop.
    if !clock::readable(&[input.as_fd()], until)?.contains(&true) {
        return Ok(None);
    }
    let mut line = [0; 64];
    let length = nix::unistd::read(input, &mut line)?;
    let line = String::from_utf8_lossy(line.get(..length).unwrap_or_default());
    let line = line.trim().to_lowercase();
    Ok(Some(line == "y" || line == "yes"))
}

static BY_HAND: OnceLock<bool> = OnceLock::new();

/// Whether messages go to standard error and not to the journal. The first call counts.
pub fn set_by_hand(by_hand: bool) {
    let _ = BY_HAND.set(by_hand);
}

/// True if messages go to standard error and not to the journal: somebody runs ibprov and
/// reads along. Reports belong on standard output then.
pub fn is_by_hand() -> bool {
    BY_HAND.get().copied().unwrap_or(true)
}

/// A stream that gets no hostile character ([`mark_in_lines`]) but colours, and these only if
/// it has colour. If its reader is gone (EPIPE), what is written is lost and no error, so that a
/// verb does all that it has to do and ends with its own exit code.
#[derive(Debug)]
pub struct Door<S> {
    stream: S,
    name: &'static str,
    colour: bool,
    is_closed: bool,
}

/// Standard output. What is printed goes through here.
pub fn stdout() -> Door<io::Stdout> {
    let stream = io::stdout();
    Door { colour: wants_colour(&stream), stream, name: "standard output", is_closed: false }
}

/// Standard error, as [`stdout`].
pub fn stderr() -> Door<io::Stderr> {
    let stream = io::stderr();
    Door { colour: wants_colour(&stream), stream, name: "standard error", is_closed: false }
}

impl<S: Write> Door<S> {
    /// Clears the screen.
    ///
    /// # Errors
    /// The stream is gone.
    pub fn clear(&mut self) -> io::Result<()> {
        self.stream.write_all(b"\x1b[H\x1b[2J")
    }

    /// True if the reader was gone when something was written.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn done(&mut self, done: io::Result<()>) -> io::Result<()> {
        match done {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            Err(e) => Err(io::Error::new(e.kind(), format!("{}: {}", self.name, answer(&e)))),
            Ok(()) => Ok(()),
        }
    }
}

impl<S: Write> Write for Door<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let written = self.stream.write_all(shown(&text, self.colour).as_bytes());
        self.done(written).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.stream.flush();
        self.done(flushed)
    }
}

impl<S: AsFd> AsFd for Door<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn shown(text: &str, colour: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            '\x1b' if colour && let Some(style) = style(text.get(at..).unwrap_or_default()) => {
                shown.push_str(style);
                // The rest of it, which is ASCII.
                rest.nth(style.len() - 2);
            }
            c => shown.push(mark_in_lines(c)),
        }
    }
    shown
}

/// The sequence at the begin of `text`, if it makes what follows bold or dim, or gives it a
/// colour that can be seen (ECMA-48, SGR): none that conceals, and no background.
fn style(text: &str) -> Option<&str> {
    let numbers = text.strip_prefix("\x1b[")?;
    let length = numbers.bytes().take(8).position(|b| b == b'm')?;
    let is_visible = |number: &str| {
        let number: Option<u8> = number.parse().ok();
        matches!(number, Some(0..=2 | 31..=36 | 91..=96))
    };
    numbers.get(..length)?.split(';').all(is_visible).then(|| text.get(..length + 3)).flatten()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_a_yes_in_time_is_a_yes() {
        for (typed, expected) in [
            ("y\n", Some(true)),
            ("YES\n", Some(true)),
            ("n\n", Some(false)),
            ("\n", Some(false)),
            ("yesterday\n", Some(false)),
            // The end of the input (Ctrl-D).
            ("\u{4}", Some(false)),
            // Without Enter it is no answer.
            ("y", None),
            ("", None),
        ] {
            let pty = nix::pty::openpty(None, None).expect("pty");
            let _typed = nix::unistd::write(&pty.master, typed.as_bytes()).expect("written");
            let wait = if expected.is_some() { 60_000_000 } else { 20_000 };
            let until = clock::now() + Duration::from_micros(wait);
            assert_eq!(answered_yes(&pty.slave, until).expect("answer"), expected, "{typed:?}");
        }
    }

    /// A terminal at which somebody types `answer` when a question is there.
    struct Typist<'a>(&'a std::os::fd::OwnedFd, &'a str);

    impl Write for Typist<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.ends_with(b"] ") {
                nix::unistd::write(self.0, self.1.as_bytes())?;
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_was_typed_before_the_question_is_no_answer() {
        let pty = nix::pty::openpty(None, None).expect("pty");
        let ask = |typed_before: &str, answer, wait| {
            nix::unistd::write(&pty.master, typed_before.as_bytes()).expect("written");
            let until = clock::now() + wait;
            asked("Go on?", &pty.slave, &mut Typist(&pty.master, answer), until).expect("asked")
        };
        assert!(!ask("y\n", "", Duration::from_millis(20)));
        assert!(!ask("yes\ny\n", "n\n", Duration::from_secs(60)));
        assert!(ask("n\n", "y\n", Duration::from_secs(60)));
    }

    #[test]
    fn a_reader_that_is_gone_is_no_error() {
        let (reader, writer) = nix::unistd::pipe().expect("pipe");
        drop(reader);
        let stream = std::fs::File::from(writer);
        let mut door = Door { stream, name: "a pipe", colour: false, is_closed: false };
        write!(door, "a").expect("written to nobody");
        assert!(door.is_closed());
    }

    fn through(text: &str, colour: bool) -> String {
        let mut door = Door { stream: Vec::new(), name: "a buffer", colour, is_closed: false };
        write!(door, "{text}").expect("a buffer");
        String::from_utf8(door.stream).expect("text")
    }

    #[test]
    fn no_text_obeys_or_hides_anything_and_colours_pass_where_there_is_colour() {
        let hostile = "a\x1b[2J\x1b]0;x\x07b\u{202e}c\u{9b}8m\u{200b}\r\x1b[8md\x1b[1;47me\x1b[";
        let marked = "a\u{fffd}[2J\u{fffd}]0;x\u{fffd}b\u{fffd}c\u{fffd}8m\u{fffd} \u{fffd}[8md\u{fffd}[1;47me\u{fffd}[";
        assert_eq!(through(hostile, true), marked);
        assert_eq!(through(hostile, false), marked);
        let good = "\x1b[1m\x1b[31mbad:\x1b[0m\n\tK\u{f6}ln \x1b[1;91m1\x1b[0m";
        assert_eq!(through(good, true), good);
        assert_eq!(through(good, false).matches('\u{fffd}').count(), 5);
        let styles = ["\x1b[", "m\x1b[31m\u{1b}", "\x1b[;m", "\x1b[031m"];
        assert_eq!(
            styles.map(|text| through(text, true)),
            ["\u{fffd}[", "m\x1b[31m\u{fffd}", "\u{fffd}[;m", "\x1b[031m"]
        );
        let mut door =
            Door { stream: Vec::new(), name: "a buffer", colour: true, is_closed: false };
        door.write_all(b"\xff\x1b").expect("a buffer");
        assert_eq!(door.stream, "\u{fffd}\u{fffd}".as_bytes());
    }
}
