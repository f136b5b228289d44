//! The system bus: small hand-written calls of systemd's Manager, and what
//! network managers need.
//!
//! zbus is asynchronous; here each call runs to its end on this thread, under
//! a deadline: without one a call may wait for ever. Message bodies are read
//! as types, so an answer of another shape is an error and not a guess.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use serde::de::DeserializeOwned;
use zbus::message::Type;
use zbus::{
    Connection, DBusError, DynamicType, MatchRule, Message, MessageStream, OwnedVariant, Variant,
};

use super::clock;
use super::unit::{ActiveState, Apart, CALL_USEC, Job, JobEnd, LoadState, UnitState};

/// A path on the bus, as a type of an answer.
pub use zbus::OwnedObjectPath as ObjectPath;

/// A connection to the system bus, with systemd's job signals on.
#[derive(Debug)]
pub struct Bus {
    runtime: tokio::runtime::Runtime,
    connection: Connection,
    jobs: JobSignals,
}

/// JobRemoved goes to everybody and tells of every job of the boot. Signals
/// are taken off the stream whenever anything is waited for: a full stream
/// would hold up the answers behind it.
#[derive(Debug)]
struct JobSignals {
    stream: MessageStream,
    /// Job path to result, of jobs that have ended since we listen.
    ended: HashMap<String, String>,
}

impl JobSignals {
    /// Take what has come; the waker is set for what comes next.
    fn take(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(Ok(message))) = Pin::new(&mut self.stream).poll_next(cx) {
            let body = message.body();
            let removed = body.deserialize::<(u32, ObjectPath, String, String)>();
            if let Ok((_, path, _, result)) = removed {
                self.ended.insert(path.as_str().to_owned(), result);
            }
        }
    }
}

/// How many signals may wait for us to take them.
const QUEUE: Option<NonZeroUsize> = NonZeroUsize::new(1024);

/// A call that brought no answer.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// Nobody answered in time.
    #[error("system bus: {what}: no answer within {millis} ms")]
    Silent {
        /// What was asked.
        what: String,
        /// How long we waited.
        millis: u64,
    },
    /// The other side answered with an error.
    #[error("system bus: {what}: {name}: {text}")]
    Refused {
        /// What was asked.
        what: String,
        /// `org.freedesktop.systemd1.NoSuchUnit` ...
        name: String,
        /// Its words.
        text: String,
    },
    /// The bus is not there, or the connection broke.
    #[error("system bus: {what}: {text}")]
    Broken {
        /// What was tried.
        what: String,
        /// What went wrong.
        text: String,
    },
}

impl BusError {
    /// True if the other side answered with the error `name`.
    #[must_use]
    pub fn is(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { name, .. } if name == wanted)
    }
}

/// Where on the bus something is.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// The service's name.
    pub service: &'a str,
    /// The object.
    pub path: &'a str,
    /// The interface.
    pub interface: &'a str,
}

const SYSTEMD: At<'static> = At {
    service: "org.freedesktop.systemd1",
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
};
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const SERVICE: &str = "org.freedesktop.systemd1.Service";

/// Name, description, load, active and sub state, whom it follows, its path,
/// and number, kind and path of its job (`org.freedesktop.systemd1(5)`).
type ListedUnit =
    (String, String, String, String, String, String, ObjectPath, u32, String, ObjectPath);

/// The properties of an object, by name.
#[derive(Debug, Default)]
pub struct Properties(HashMap<String, OwnedVariant>);

impl Properties {
    /// The property `name`, if it is there and of this type.
    #[must_use]
    pub fn get<'a, T>(&'a self, name: &str) -> Option<T>
    where
        T: TryFrom<&'a Variant<'a>>,
        <T as TryFrom<&'a Variant<'a>>>::Error: Into<zbus::Error>,
    {
        self.0.get(name)?.downcast_ref::<T>().ok()
    }

    /// A text.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        self.get::<&str>(name).unwrap_or_default().to_owned()
    }

    /// How many entries a list has.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        self.get::<&zbus::Array<'_>>(name).map_or(0, zbus::Array::len)
    }

    /// An object's path.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<String> {
        self.get::<zbus::ObjectPath<'_>>(name).map(|p| p.as_str().to_owned())
    }
}

impl Bus {
    /// Connect and ask systemd for its job signals, all before `until_usec`.
    ///
    /// # Errors
    /// There is no bus, or it does not answer in time.
    pub fn connect(until_usec: u64) -> Result<Self, BusError> {
        let what = "connect";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| broken(what, &e.to_string()))?;
        let began = clock::monotonic_usec();
        let connected = runtime.block_on(within(until_usec, async {
            let connection = zbus::connection::Builder::system().build().await?;
            let rule = signal_rule(SYSTEMD, "JobRemoved")?;
            // First the stream, then the signals, then the question.
            let stream = MessageStream::for_match_rule(rule, &connection, QUEUE).await?;
            call(&connection, SYSTEMD, "Subscribe", &()).await?;
            Ok((connection, stream))
        }));
        let (connection, stream) = answered(what, began, connected)?;
        let jobs = JobSignals { stream, ended: HashMap::new() };
        Ok(Self { runtime, connection, jobs })
    }

    /// Call `method` and read its answer.
    ///
    /// # Errors
    /// No answer in time, an error, or an answer of another type.
    pub fn call<B, R>(&mut self, at: At<'_>, method: &str, body: &B) -> Result<R, BusError>
    where
        B: serde::Serialize + DynamicType,
        R: DeserializeOwned + zbus::Type,
    {
        let connection = self.connection.clone();
        self.run(&format!("{method} of {}", at.path), async {
            call(&connection, at, method, body).await?.body().deserialize::<R>()
        })
    }

    /// Run to its end what is answered soon.
    fn run<T>(
        &mut self,
        what: &str,
        future: impl Future<Output = zbus::Result<T>>,
    ) -> Result<T, BusError> {
        let began = clock::monotonic_usec();
        let mut future = pin!(future);
        let both = poll_fn(|cx| {
            self.jobs.take(cx);
            future.as_mut().poll(cx)
        });
        let answer = self.runtime.block_on(within(began + CALL_USEC, both));
        answered(what, began, answer)
    }

    /// All properties of the object's interface.
    ///
    /// # Errors
    /// As [`Bus::call`].
    pub fn properties(&mut self, at: At<'_>) -> Result<Properties, BusError> {
        let to = At { interface: PROPERTIES, ..at };
        self.call(to, "GetAll", &at.interface).map(Properties)
    }

    /// A stream of the changes of an object's properties.
    ///
    /// # Errors
    /// As [`Bus::call`].
    pub fn changes(&mut self, service: &str, path: &str) -> Result<Changes, BusError> {
        let at = At { service, path, interface: PROPERTIES };
        let connection = self.connection.clone();
        self.run(&format!("listen to {path}"), async {
            let rule = signal_rule(at, "PropertiesChanged")?;
            MessageStream::for_match_rule(rule, &connection, QUEUE).await.map(Changes)
        })
    }

    /// A stream of the changes of a unit's state.
    ///
    /// # Errors
    /// As [`Bus::call`].
    pub fn unit_changes(&mut self, name: &str) -> Result<Changes, BusError> {
        let path: ObjectPath = self.call(SYSTEMD, "LoadUnit", &name)?;
        self.changes(SYSTEMD.service, path.as_str())
    }

    /// Wait until one of `changes` brings a signal; false at the deadline.
    ///
    /// # Errors
    /// The connection broke.
    pub fn wait(&mut self, changes: &mut [Changes], until_usec: u64) -> Result<bool, BusError> {
        let next = poll_fn(|cx| {
            self.jobs.take(cx);
            let ready = changes.iter_mut().find_map(|c| match Pin::new(&mut c.0).poll_next(cx) {
                Poll::Ready(message) => Some(message),
                Poll::Pending => None,
            });
            ready.map_or(Poll::Pending, Poll::Ready)
        });
        match self.runtime.block_on(within(until_usec, next)) {
            None => Ok(false),
            Some(Some(Ok(_))) => Ok(true),
            Some(Some(Err(e))) => Err(error("wait for a signal", &e)),
            Some(None) => Err(broken("wait for a signal", "the connection was closed")),
        }
    }

    /// The states of the units, in this order. One question for all; what only
    /// matters of units that do not run is asked of those alone.
    ///
    /// # Errors
    /// As [`Bus::call`]; an answer that leaves one out.
    pub fn units(&mut self, names: &[&str]) -> Result<Vec<UnitState>, BusError> {
        // Loads them, and answers for what does not exist too, as systemctl does.
        let list: Vec<ListedUnit> = self.call(SYSTEMD, "ListUnitsByNames", &names)?;
        if list.len() != names.len() {
            return Err(broken("ListUnitsByNames", "an answer of another length"));
        }
        names.iter().zip(list).map(|(name, unit)| self.unit(name, unit)).collect()
    }

    fn unit(&mut self, name: &str, listed: ListedUnit) -> Result<UnitState, BusError> {
        let (id, _, load, active, sub, _, path, job, _, _) = listed;
        let name = name.to_owned();
        let (load, active) = (LoadState::of(&load), ActiveState::of(&active));
        let mut state =
            UnitState { name, id, load, active, sub, job, condition: true, ..UnitState::default() };
        if state.is_loaded() && state.is_down() {
            let unit = At { path: path.as_str(), interface: UNIT, ..SYSTEMD };
            state.inactive_enter_usec = self.property(unit, "InactiveEnterTimestampMonotonic")?;
            state.condition = self.property(unit, "ConditionResult")?;
            // Services alone have one.
            state.result = match self.property(At { interface: SERVICE, ..unit }, "Result") {
                Err(BusError::Refused { .. }) => None,
                result => Some(result?),
            };
        }
        Ok(state)
    }

    fn property<T>(&mut self, at: At<'_>, name: &str) -> Result<T, BusError>
    where
        T: TryFrom<OwnedVariant>,
    {
        let to = At { interface: PROPERTIES, ..at };
        let value: OwnedVariant = self.call(to, "Get", &(at.interface, name))?;
        T::try_from(value).map_err(|_| broken(name, "a value of another type"))
    }

    /// The jobs that are queued or running.
    ///
    /// # Errors
    /// As [`Bus::call`].
    pub fn jobs(&mut self) -> Result<Vec<Job>, BusError> {
        let list: Vec<(u32, String, String, String, ObjectPath, ObjectPath)> =
            self.call(SYSTEMD, "ListJobs", &())?;
        let job = |(id, unit, kind, state, _, _): (_, _, _, String, _, _)| Job {
            id,
            unit,
            kind,
            running: state == "running",
        };
        Ok(list.into_iter().map(job).collect())
    }

    /// Start `unit` and wait until its job has ended, or `until_usec` has passed.
    pub(super) fn start(&mut self, unit: &str, until_usec: u64) -> Result<JobEnd, BusError> {
        let job: ObjectPath = self.call(SYSTEMD, "StartUnit", &(unit, "replace"))?;
        self.job_end(job.as_str(), until_usec)
    }

    /// Stop `unit` and wait until its job has ended, or `until_usec` has passed.
    pub(super) fn stop(&mut self, unit: &str, until_usec: u64) -> Result<JobEnd, BusError> {
        let job: ObjectPath = self.call(SYSTEMD, "StopUnit", &(unit, "replace"))?;
        self.job_end(job.as_str(), until_usec)
    }

    /// Run a command as a service of its own, and wait until its start has ended.
    pub(super) fn run_apart(
        &mut self,
        unit: &Apart<'_>,
        until_usec: u64,
    ) -> Result<JobEnd, BusError> {
        let program = unit.command.first().copied().unwrap_or_default();
        let exec = vec![(program, unit.command.to_vec(), false)];
        let properties: Vec<(&str, Variant<'_>)> = vec![
            ("Description", unit.description.into()),
            ("Type", "oneshot".into()),
            ("RemainAfterExit", true.into()),
            ("DefaultDependencies", false.into()),
            ("CollectMode", "inactive-or-failed".into()),
            ("BindsTo", vec![unit.device].into()),
            ("After", vec![unit.device].into()),
            ("Conflicts", vec!["shutdown.target"].into()),
            ("Before", vec!["shutdown.target"].into()),
            ("TimeoutStartUSec", unit.timeout_usec.into()),
            ("ExecStart", exec.into()),
        ];
        let auxiliary: Vec<(&str, Vec<(&str, Variant<'_>)>)> = Vec::new();
        let body = (unit.name, "fail", properties, auxiliary);
        let job: ObjectPath = self.call(SYSTEMD, "StartTransientUnit", &body)?;
        self.job_end(job.as_str(), until_usec)
    }

    /// Wait until `unit` has no start job any more; never starts it.
    pub(super) fn wait_for_job(&mut self, unit: &str, until_usec: u64) -> Result<JobEnd, BusError> {
        let job = self.jobs()?.into_iter().find(|j| j.unit == unit && j.kind != "stop");
        match job {
            None => Ok(JobEnd::Done),
            Some(job) => {
                let path = format!("{}/job/{}", SYSTEMD.path, job.id);
                self.job_end(&path, until_usec)
            }
        }
    }

    /// Only the path says which job it was that ended.
    fn job_end(&mut self, job: &str, until_usec: u64) -> Result<JobEnd, BusError> {
        let connection = self.connection.clone();
        let mut closed = pin!(connection.closed());
        let result = poll_fn(|cx| {
            self.jobs.take(cx);
            match self.jobs.ended.remove(job) {
                Some(result) => Poll::Ready(Some(result)),
                None => closed.as_mut().poll(cx).map(|()| None),
            }
        });
        match self.runtime.block_on(within(until_usec, result)) {
            None => Ok(JobEnd::Pending),
            Some(None) => Err(broken(&format!("wait for {job}"), "the connection was closed")),
            Some(Some(result)) if result == "done" => Ok(JobEnd::Done),
            Some(Some(_)) => Ok(JobEnd::Failed),
        }
    }
}

/// Changes of an object's properties.
#[derive(Debug)]
pub struct Changes(MessageStream);

fn signal_rule<'a>(at: At<'a>, member: &'a str) -> zbus::Result<MatchRule<'a>> {
    MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(at.service)
        .path(at.path)
        .interface(at.interface)
        .member(member)
        .build()
}

async fn call<B>(on: &Connection, at: At<'_>, method: &str, body: &B) -> zbus::Result<Message>
where
    B: serde::Serialize + DynamicType,
{
    on.call_method(Some(at.service), at.path, Some(at.interface), method, body).await
}

/// `future`'s value, `None` if the deadline passed first.
async fn within<F: Future>(until_usec: u64, future: F) -> Option<F::Output> {
    let left = until_usec.saturating_sub(clock::monotonic_usec());
    tokio::time::timeout(Duration::from_micros(left), future).await.ok()
}

fn answered<T>(
    what: &str,
    began_usec: u64,
    answer: Option<zbus::Result<T>>,
) -> Result<T, BusError> {
    let waited = clock::monotonic_usec().saturating_sub(began_usec);
    let silent = || BusError::Silent { what: what.to_owned(), millis: waited / 1000 };
    answer.ok_or_else(silent)?.map_err(|e| error(what, &e))
}

fn broken(what: &str, text: &str) -> BusError {
    BusError::Broken { what: what.to_owned(), text: text.to_owned() }
}

fn error(what: &str, e: &zbus::Error) -> BusError {
    match e {
        zbus::Error::MethodError(name, text, _) => BusError::Refused {
            what: what.to_owned(),
            name: name.to_string(),
            text: text.clone().unwrap_or_default(),
        },
        zbus::Error::FDO(e) => BusError::Refused {
            what: what.to_owned(),
            name: e.name().to_string(),
            text: e.description().unwrap_or_default().to_owned(),
        },
        zbus::Error::InputOutput(e) => broken(what, &super::answer(e)),
        e => broken(what, &e.to_string()),
    }
}
