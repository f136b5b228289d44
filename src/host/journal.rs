//! What ibprov says while it works: to the journal with fields when systemd
//! runs it, to standard error otherwise, never to both.
//!
//! Messages are events of `tracing`. Their fields, and those of the spans they are
//! said in, become journal fields: `pf` becomes `IBPROV_PF`, `message_id` is
//! `MESSAGE_ID`; a field of an event comes before one of its spans, an inner span's
//! before an outer one's. Nothing of the program's inside gets there: no names of
//! spans, no targets, no source paths.
//!
//! Written here and not taken from `tracing-journald`, which sends those three, has
//! no form for `MESSAGE_ID` beside prefixed fields, and drops what it cannot send.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::{self, IoSlice, Seek, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anstyle::AnsiColor;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use super::{Root, answer, live_line, systemd, terminal};
use crate::names::mark_in_lines;

/// Where journald listens for messages with fields (`systemd-journald.socket(8)`).
const SOCKET: &str = "/run/systemd/journal/socket";

/// So long a message waits for a journald that does not read. Those after it do not
/// wait: a boot must end though journald hangs.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is let through: `tracing`'s directives, `ibprov::apply=debug,warn`.
pub const FILTER_VARIABLE: &str = "IBPROV_LOG";

/// The spans that are of an object, which the field of the same name names.
const OBJECTS: [&str; 4] = ["pf", "vf", "netdev", "guest"];

/// Say an event at a level that is known only when it is said: `tracing` wants it
/// in the source.
macro_rules! event {
    ($level:expr, $($what:tt)+) => {
        match $level {
            ::tracing::Level::ERROR => ::tracing::error!($($what)+),
            ::tracing::Level::WARN => ::tracing::warn!($($what)+),
            ::tracing::Level::INFO => ::tracing::info!($($what)+),
            ::tracing::Level::DEBUG => ::tracing::debug!($($what)+),
            ::tracing::Level::TRACE => ::tracing::trace!($($what)+),
        }
    };
}
pub(crate) use event;

/// What stands in front of a message of this level on standard error.
pub fn prefix(level: Level) -> String {
    let (word, colour) = match level {
        Level::ERROR => ("error:", AnsiColor::Red),
        Level::WARN => ("warning:", AnsiColor::Yellow),
        _ => return String::new(),
    };
    let style = colour.on_default().bold();
    if terminal::wants_colour(&terminal::stderr()) {
        format!("{style}{word}{style:#} ")
    } else {
        format!("{word} ")
    }
}

/// Begin to say things. `is_verbose` lets ibprov's debug messages through too.
///
/// Returns what is wrong with the filter in the environment, which then is not obeyed.
pub fn install(is_verbose: bool) -> Option<String> {
    let (filter, problem) = filter(std::env::var(FILTER_VARIABLE).ok().as_deref(), is_verbose);
    let journal =
        is_connected().then(|| Journal::open(Path::new(SOCKET), PATIENCE)).and_then(Result::ok);
    let teller = journal.map_or(Teller::Stderr, Teller::Journal);
    terminal::set_by_hand(matches!(teller, Teller::Stderr));
    let all = tracing_subscriber::registry().with(Told { filter, teller });
    // A second call leaves the first in place, which is as good.
    drop(tracing::subscriber::set_global_default(all));
    problem
}

/// Libraries speak to their developers, and are heard only where they are asked for.
fn filter(directives: Option<&str>, is_verbose: bool) -> (Targets, Option<String>) {
    let usual = Targets::new().with_target("ibprov", LevelFilter::INFO);
    let (filter, problem) = match directives.map(str::parse::<Targets>) {
        None => (usual, None),
        Some(Ok(asked)) => (asked, None),
        Some(Err(e)) => (
            usual,
            Some(format!(
                "{FILTER_VARIABLE}={:?}: {e}: expected LEVEL or TARGET=LEVEL, with commas between; ignored",
                directives.unwrap_or_default()
            )),
        ),
    };
    (if is_verbose { filter.with_target("ibprov", LevelFilter::DEBUG) } else { filter }, problem)
}

/// systemd tells by this variable which socket it has connected to the journal
/// (`systemd.exec(5)`); it is inherited, so it counts only where that is still
/// standard error.
fn is_connected() -> bool {
    let Some(stream) = std::env::var_os("JOURNAL_STREAM") else { return false };
    let Ok(own) = std::fs::metadata("/proc/self/fd/2") else { return false };
    stream.to_str() == Some(&format!("{}:{}", own.dev(), own.ino()))
}

/// Fields by their names in `tracing`.
#[derive(Debug, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// A message with all that it is about.
#[derive(Debug)]
struct Message {
    level: Level,
    text: String,
    /// The event's and its spans' fields, without the text.
    fields: BTreeMap<&'static str, String>,
    /// The objects of its spans, the outermost first.
    objects: Vec<Object>,
}

impl Message {
    /// For who reads no fields: the text, which names its object.
    fn line(&self) -> String {
        let mut line = String::new();
        for object in self.objects.iter().filter(|o| !o.is_named_in(&self.text)) {
            // A buffer takes everything.
            let _ = write!(line, "{object}: ");
        }
        line + &self.text
    }
}

/// What a message is about, on standard error.
#[derive(Debug, strum::Display)]
enum Object {
    #[strum(to_string = "PF {0}")]
    Pf(String),
    #[strum(to_string = "VF {0}")]
    Vf(String),
    #[strum(to_string = "{0}")]
    Named(String),
}

impl Object {
    fn of(span: &str, value: &str) -> Self {
        let value = value.to_owned();
        match span {
            "pf" => Self::Pf(value),
            "vf" => Self::Vf(value),
            _ => Self::Named(value),
        }
    }

    /// A VF's number alone may be any number.
    fn is_named_in(&self, text: &str) -> bool {
        match self {
            Self::Pf(name) | Self::Named(name) => text.contains(name),
            Self::Vf(_) => text.contains(&self.to_string()),
        }
    }
}

#[derive(Debug)]
enum Teller {
    Journal(Journal),
    Stderr,
    #[cfg(test)]
    Test(std::sync::Arc<Mutex<Vec<Message>>>),
}

/// The layer that tells.
struct Told {
    filter: Targets,
    teller: Teller,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Told {
    /// Spans are always there, or a message that is let through would lack their fields.
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.is_span() || self.filter.would_enable(metadata.target(), metadata.level())
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut message = gather(event, &context);
        match &self.teller {
            Teller::Journal(journal) => journal.tell(&mut message),
            // Nobody is left to tell if standard error is gone.
            Teller::Stderr => {
                live_line::end();
                drop(writeln!(terminal::stderr(), "{}{}", prefix(message.level), message.line()));
            }
            #[cfg(test)]
            Teller::Test(heard) => heard.lock().expect("not poisoned").push(message),
        }
    }
}

/// The message of an event.
fn gather<S: Subscriber + for<'a> LookupSpan<'a>>(
    event: &Event<'_>,
    context: &Context<'_, S>,
) -> Message {
    let (mut fields, mut objects) = (BTreeMap::new(), Vec::new());
    for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
        let extensions = span.extensions();
        let Some(Fields(of_span)) = extensions.get::<Fields>() else { continue };
        let own = OBJECTS.into_iter().find(|of| *of == span.name());
        let object = own.and_then(|of| Some(Object::of(of, of_span.get(of)?)));
        objects.extend(object);
        fields.extend(of_span.iter().map(|(name, value)| (*name, value.clone())));
    }
    let mut of_event = Fields::default();
    event.record(&mut of_event);
    let text = of_event.0.remove("message").unwrap_or_default();
    fields.extend(of_event.0);
    // journalctl prints no message with a control character, and the others as they are.
    let text = text.chars().map(mark_in_lines).collect();
    Message { level: *event.metadata().level(), text, fields, objects }
}

/// journald's socket for messages with fields.
#[derive(Debug)]
struct Journal {
    path: PathBuf,
    socket: UnixDatagram,
    /// What is the same in each message.
    always: Vec<u8>,
    lost: Mutex<u64>,
}

impl Journal {
    /// Find out whether journald listens: it takes no notice of an empty message.
    fn open(path: &Path, patience: Duration) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(patience))?;
        socket.send_to(&[], path)?;
        let mut always = Vec::new();
        put(&mut always, "SYSLOG_IDENTIFIER", "ibprov");
        put(&mut always, "SYSLOG_PID", &std::process::id().to_string());
        // journald looks up the unit of who sent a message when it gets to it, and finds
        // none if the sender has ended meanwhile: the last words of a boot under load.
        // `journalctl --unit` takes root's word for it too, in this field
        // (`systemd.journal-fields(7)`). Without it, all is as with other programs.
        if let Ok(Some(unit)) = systemd::own_unit(&Root::live()) {
            put(&mut always, "OBJECT_SYSTEMD_UNIT", &unit);
        }
        Ok(Self { path: path.to_owned(), socket, always, lost: Mutex::new(0) })
    }

    /// Send a message. If journald does not take it, it goes to standard error, which
    /// journald reads too; if journald does not read at all, it is lost, and the next
    /// that gets through says how many were.
    fn tell(&self, message: &mut Message) {
        let Ok(mut lost) = self.lost.lock() else { return };
        if *lost > 0 {
            message.fields.insert("lost_before", lost.to_string());
        }
        match self.send(&self.payload(message)) {
            Ok(()) if *lost > 0 => {
                *lost = 0;
                // It waits for journald again, which is back.
                drop(self.socket.set_nonblocking(false));
            }
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                *lost += 1;
                drop(self.socket.set_nonblocking(true));
            }
            Err(e) => drop(writeln!(
                terminal::stderr(),
                "<{}>{} (sent without its fields: {}: {})",
                priority(message.level),
                message.line(),
                self.path.display(),
                answer(&e)
            )),
        }
    }

    /// The message in journald's native protocol.
    fn payload(&self, message: &Message) -> Vec<u8> {
        let mut payload = self.always.clone();
        put(&mut payload, "PRIORITY", priority(message.level));
        put(&mut payload, "MESSAGE", &message.text);
        for (name, value) in &message.fields {
            match *name {
                "message_id" => put(&mut payload, "MESSAGE_ID", value),
                name => put(&mut payload, &format!("IBPROV_{}", name.to_ascii_uppercase()), value),
            }
        }
        payload
    }

    /// As a datagram, or, where that is too long, as a sealed file that is passed on
    /// (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>).
    fn send(&self, payload: &[u8]) -> io::Result<()> {
        match self.socket.send_to(payload, &self.path) {
            Ok(_) => return Ok(()),
            Err(e) if e.raw_os_error() == Some(nix::libc::EMSGSIZE) => {}
            Err(e) => return Err(e),
        }
        let flags = MFdFlags::MFD_ALLOW_SEALING | MFdFlags::MFD_CLOEXEC;
        let mut file = std::fs::File::from(memfd_create("ibprov", flags)?);
        file.write_all(payload)?;
        file.rewind()?;
        let seals = SealFlag::F_SEAL_SHRINK
            | SealFlag::F_SEAL_GROW
            | SealFlag::F_SEAL_WRITE
            | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        let passed = [file.as_raw_fd()];
        let control = [ControlMessage::ScmRights(&passed)];
        let to = UnixAddr::new(&self.path)?;
        let nothing: [IoSlice<'_>; 0] = [];
        sendmsg(self.socket.as_raw_fd(), &nothing, &control, MsgFlags::empty(), Some(&to))?;
        Ok(())
    }
}

/// The priority of a level (`syslog(3)`). What is done is a notice, so that
/// `journalctl -p notice` shows it, and debug messages are above the kernel's.
const fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "5",
        Level::DEBUG => "6",
        Level::TRACE => "7",
    }
}

/// A field in journald's native protocol: a value of several lines has its length
/// before it.
fn put(payload: &mut Vec<u8>, name: &str, value: &str) {
    payload.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        payload.push(b'\n');
        payload.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        payload.push(b'=');
    }
    payload.extend_from_slice(value.as_bytes());
    payload.push(b'\n');
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing::{debug, error_span, info, warn};

    use super::*;

    fn heard(directives: Option<&str>, is_verbose: bool, say: impl FnOnce()) -> Vec<Message> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let teller = Teller::Test(Arc::clone(&heard));
        let filter = filter(directives, is_verbose).0;
        let all = tracing_subscriber::registry().with(Told { filter, teller });
        tracing::subscriber::with_default(all, say);
        std::mem::take(&mut *heard.lock().expect("not poisoned"))
    }

    fn of_all_levels() {
        warn!(target: "netlink_packet_core", "for developers");
        warn!(target: "zbus::connection", "for other developers");
        info!(target: "ibprov::apply", "done");
        debug!(target: "ibprov::apply", "details");
        debug!(target: "ibprov::guests", "other details");
    }

    fn texts(messages: &[Message]) -> Vec<&str> {
        messages.iter().map(|m| m.text.as_str()).collect()
    }

    #[test]
    fn only_what_is_asked_for_gets_through() {
        assert_eq!(texts(&heard(None, false, of_all_levels)), ["done"]);
        let all_ours = ["done", "details", "other details"];
        assert_eq!(texts(&heard(None, true, of_all_levels)), all_ours);
        let one = heard(Some("ibprov::apply=debug"), false, of_all_levels);
        assert_eq!(texts(&one), ["done", "details"]);
        assert_eq!(texts(&heard(Some("error"), false, of_all_levels)), [""; 0]);
        // The option adds to the variable.
        assert_eq!(texts(&heard(Some("ibprov=error"), true, of_all_levels)), all_ours);
    }

    #[test]
    fn a_filter_that_is_none_is_told_and_changes_nothing() {
        let (_, problem) = filter(Some("ibprov=loud"), false);
        let problem = problem.expect("a problem");
        assert!(problem.contains("IBPROV_LOG=\"ibprov=loud\""), "{problem}");
        assert_eq!(texts(&heard(Some("ibprov=loud"), false, of_all_levels)), ["done"]);
    }

    #[test]
    fn a_message_has_the_fields_of_its_spans_and_names_its_objects() {
        let messages = heard(None, false, || {
            let pf = error_span!("pf", pf = "0000:01:00.0", step = "outer").entered();
            let vf = error_span!("vf", vf = 3, step = "inner").entered();
            warn!(cause = "EIO", "cannot be bound");
            warn!("VF 3 of PF 0000:01:00.0: cannot be bound");
            drop(vf);
            warn!(step = "own", netdev = Option::<&str>::None, "slow");
            drop(pf);
            warn!("alone");
        });
        let lines: Vec<String> = messages.iter().map(Message::line).collect();
        assert_eq!(
            lines,
            [
                "PF 0000:01:00.0: VF 3: cannot be bound",
                "VF 3 of PF 0000:01:00.0: cannot be bound",
                "PF 0000:01:00.0: slow",
                "alone"
            ]
        );
        let fields: Vec<String> = messages.iter().map(|m| format!("{:?}", m.fields)).collect();
        assert_eq!(
            fields,
            [
                r#"{"cause": "EIO", "pf": "0000:01:00.0", "step": "inner", "vf": "3"}"#,
                r#"{"pf": "0000:01:00.0", "step": "inner", "vf": "3"}"#,
                r#"{"pf": "0000:01:00.0", "step": "own"}"#,
                "{}"
            ]
        );
    }

    const WAIT: Duration = Duration::from_millis(200);

    fn journald() -> (tempfile::TempDir, UnixDatagram, Journal) {
        let dir = tempfile::tempdir().expect("folder");
        let path = dir.path().join("socket");
        let journald = UnixDatagram::bind(&path).expect("socket");
        let journal = Journal::open(&path, WAIT).expect("journald listens");
        assert_eq!(journald.recv(&mut [0; 8]).expect("greeting"), 0);
        (dir, journald, journal)
    }

    fn message(text: &str) -> Message {
        let fields =
            BTreeMap::from([("message_id", "1f".to_owned()), ("took_usec", "7".to_owned())]);
        Message { level: Level::INFO, text: text.to_owned(), fields, objects: Vec::new() }
    }

    #[test]
    fn journald_is_sent_fields_and_nothing_of_the_program_s_inside() {
        let (_dir, journald, journal) = journald();
        journal.tell(&mut message("two\nlines"));
        let mut datagram = [0; 4096];
        let length = journald.recv(&mut datagram).expect("message");
        let pid = std::process::id();
        let mut wanted = format!("SYSLOG_IDENTIFIER=ibprov\nSYSLOG_PID={pid}\n").into_bytes();
        if let Ok(Some(unit)) = systemd::own_unit(&Root::live()) {
            wanted.extend(format!("OBJECT_SYSTEMD_UNIT={unit}\n").bytes());
        }
        wanted.extend(b"PRIORITY=5\nMESSAGE\n\x09\0\0\0\0\0\0\0two\nlines\n");
        wanted.extend(b"MESSAGE_ID=1f\nIBPROV_TOOK_USEC=7\n");
        assert_eq!(&datagram[..length], &wanted[..]);
    }

    #[test]
    fn a_message_too_long_for_a_datagram_is_passed_on_as_a_file() {
        use nix::sys::socket::{ControlMessageOwned, recvmsg};
        use std::io::{IoSliceMut, Read as _};
        let (_dir, journald, journal) = journald();
        let text = "x".repeat(4 << 20);
        journal.tell(&mut message(&text));
        let mut space = nix::cmsg_space!([std::os::fd::RawFd; 1]);
        let mut nothing = [0; 8];
        let mut into = [IoSliceMut::new(&mut nothing)];
        let fd = journald.as_raw_fd();
        let got = recvmsg::<()>(fd, &mut into, Some(&mut space), MsgFlags::empty()).expect("file");
        assert_eq!(got.bytes, 0);
        let passed = got.cmsgs().expect("whole").find_map(|c| match c {
            ControlMessageOwned::ScmRights(fds) => fds.first().copied(),
            _ => None,
        });
        let path = format!("/proc/self/fd/{}", passed.expect("a file"));
        let mut read = String::new();
        std::fs::File::open(path).expect("open").read_to_string(&mut read).expect("text");
        assert!(read.contains(&text) && read.ends_with("MESSAGE_ID=1f\nIBPROV_TOOK_USEC=7\n"));
    }

    #[test]
    fn a_journald_that_does_not_read_is_waited_for_once() {
        let (_dir, journald, journal) = journald();
        let begun = std::time::Instant::now();
        // More than a socket's queue holds (`net.unix.max_dgram_qlen` and its buffer).
        let sent = 20_000;
        for n in 0..sent {
            journal.tell(&mut message(&format!("message {n}")));
        }
        // Each of the thousands that were lost would have waited.
        assert!(begun.elapsed() < WAIT * 10_000, "took {:?}", begun.elapsed());
        let lost = *journal.lost.lock().expect("not poisoned");
        assert!(lost > 0);
        journald.set_nonblocking(true).expect("set");
        let mut datagram = [0; 4096];
        let mut got = 0;
        while journald.recv(&mut datagram).is_ok() {
            got += 1;
        }
        assert_eq!(got + lost, sent);
        journal.tell(&mut message("it reads again"));
        let length = journald.recv(&mut datagram).expect("message");
        let text = String::from_utf8_lossy(&datagram[..length]).into_owned();
        assert!(text.contains(&format!("IBPROV_LOST_BEFORE={lost}\n")), "{text}");
        assert_eq!(*journal.lost.lock().expect("not poisoned"), 0);
    }
}
