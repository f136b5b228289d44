//! The system bus: small hand-written calls of systemd's Manager, and what
//! network managers need.
//!
//! zbus is asynchronous; here each call runs to its end on this thread, under
//! a deadline: without one a call may wait for ever. Message bodies are read
//! as types, so an answer of another shape is an error and not a guess.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};
use zbus::{Connection, DBusError, DynamicType, Message, OwnedVariant, Variant};

use super::alarm;
use super::clock;
use super::unit::{ActiveState, CALL, LoadState, UnitState};
use crate::names::Moment;

/// A path on the bus, as a type of an answer.
pub use zbus::OwnedObjectPath as ObjectPath;

/// A connection to the system bus. root has [256] of them on the whole host, whatever
/// programs it runs, so nobody holds one while it waits for what may take long, and the threads
/// of a process hold a few at a time ([`TURNS`]).
///
/// [256]: https://dbus.freedesktop.org/doc/dbus-daemon.1.html "max_connections_per_user"
#[derive(Debug)]
pub struct Bus {
    runtime: tokio::runtime::Runtime,
    connection: Connection,
    /// Given back when the connection is closed.
    _turn: Option<SemaphorePermit<'static>>,
}

/// Turns at the bus.
static TURNS: Semaphore = Semaphore::const_new(4);

/// How long a turn is waited for. Each is some milliseconds long.
const TURN: Duration = Duration::from_secs(20);

/// What the bus has answered.
pub type Result<T, E = BusError> = std::result::Result<T, E>;

/// A call that brought no answer.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    #[error("system bus: {what}: no answer within {} ms", waited.as_millis())]
    Silent { what: String, waited: Duration },
    /// Other threads had all the turns at the bus.
    #[error("system bus: no turn among the other interfaces within {} ms", waited.as_millis())]
    NoTurn { waited: Duration },
    /// The other side answered with an error.
    #[error("system bus: {what}: {name}: {text}")]
    Refused {
        what: String,
        /// `org.freedesktop.systemd1.NoSuchUnit` ...
        name: String,
        text: String,
    },
    /// The bus is not there, or the connection broke.
    #[error("system bus: {what}: {text}")]
    Broken { what: String, text: String },
}

impl BusError {
    /// True if nobody answered in time: systemd or the bus has much to do.
    pub const fn is_late(&self) -> bool {
        matches!(self, Self::Silent { .. } | Self::NoTurn { .. })
    }
}

/// Where on the bus something is.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    pub service: &'a str,
    pub path: &'a str,
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
    pub fn get<'a, T>(&'a self, name: &str) -> Option<T>
    where
        T: TryFrom<&'a Variant<'a>>,
        <T as TryFrom<&'a Variant<'a>>>::Error: Into<zbus::Error>,
    {
        self.0.get(name)?.downcast_ref::<T>().ok()
    }

    pub fn text(&self, name: &str) -> String {
        self.get::<&str>(name).unwrap_or_default().to_owned()
    }

    /// How many entries a list has.
    pub fn count(&self, name: &str) -> usize {
        self.get::<&zbus::Array<'_>>(name).map_or(0, zbus::Array::len)
    }

    pub fn path(&self, name: &str) -> Option<String> {
        self.get::<zbus::ObjectPath<'_>>(name).map(|p| p.as_str().to_owned())
    }
}

impl Bus {
    /// Connect. The wait for a turn apart, the bus has `limit` to let us in.
    ///
    /// # Errors
    /// There is no bus, it does not answer in time, or others of ours keep it busy.
    pub fn connect(limit: Duration) -> Result<Self> {
        let what = "connect";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| broken(what, &e.to_string()))?;
        let asked = clock::now();
        let turn = runtime.block_on(within(alarm::before(asked + TURN), TURNS.acquire()));
        let began = clock::now();
        let turn = turn.ok_or(BusError::NoTurn { waited: began.since(asked) })?.ok();
        let connected =
            runtime.block_on(within(began + limit, zbus::connection::Builder::system().build()));
        let connection = answered(what, began, connected)?;
        Ok(Self { runtime, connection, _turn: turn })
    }

    /// Call `method` and read its answer.
    ///
    /// # Errors
    /// No answer in time, an error, or an answer of another type.
    pub fn call<B, R>(&mut self, at: At<'_>, method: &str, body: &B) -> Result<R>
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
    fn run<T>(&mut self, what: &str, future: impl Future<Output = zbus::Result<T>>) -> Result<T> {
        let began = clock::now();
        let answer = self.runtime.block_on(within(alarm::before(began + CALL), future));
        answered(what, began, answer)
    }

    /// All properties of the object's interface.
    ///
    /// # Errors
    /// As [`Bus::call`].
    pub fn properties(&mut self, at: At<'_>) -> Result<Properties> {
        let to = At { interface: PROPERTIES, ..at };
        self.call(to, "GetAll", &at.interface).map(Properties)
    }

    /// The states of the units, in this order. One question for all; what only
    /// matters of units that do not run is asked of those alone.
    ///
    /// # Errors
    /// As [`Bus::call`]; an answer that leaves one out.
    pub fn units(&mut self, names: &[&str]) -> Result<Vec<UnitState>> {
        // Loads them, and answers for what does not exist too, as systemctl does.
        let list: Vec<ListedUnit> = self.call(SYSTEMD, "ListUnitsByNames", &names)?;
        if list.len() != names.len() {
            return Err(broken("ListUnitsByNames", "an answer of another length"));
        }
        names.iter().zip(list).map(|(name, unit)| self.unit(name, unit)).collect()
    }

    fn unit(&mut self, name: &str, listed: ListedUnit) -> Result<UnitState> {
        let (id, _, load, active, sub, _, path, job, _, _) = listed;
        let name = name.to_owned();
        let (load, active) = (LoadState::of(&load), ActiveState::of(&active));
        let mut state =
            UnitState { name, id, load, active, sub, job, condition: true, ..UnitState::default() };
        if state.is_loaded() && state.is_down() {
            let unit = At { path: path.as_str(), interface: UNIT, ..SYSTEMD };
            let left = self.property(unit, "InactiveEnterTimestampMonotonic")?;
            state.inactive_enter = Moment::of_systemd(left);
            state.condition = self.property(unit, "ConditionResult")?;
            // Services alone have one.
            state.result = match self.property(At { interface: SERVICE, ..unit }, "Result") {
                Err(BusError::Refused { .. }) => None,
                result => Some(result?),
            };
        }
        Ok(state)
    }

    fn property<T>(&mut self, at: At<'_>, name: &str) -> Result<T>
    where
        T: TryFrom<OwnedVariant>,
    {
        let to = At { interface: PROPERTIES, ..at };
        let value: OwnedVariant = self.call(to, "Get", &(at.interface, name))?;
        T::try_from(value).map_err(|_| broken(name, "a value of another type"))
    }
}

async fn call<B>(on: &Connection, at: At<'_>, method: &str, body: &B) -> zbus::Result<Message>
where
    B: serde::Serialize + DynamicType,
{
    on.call_method(Some(at.service), at.path, Some(at.interface), method, body).await
}

/// `future`'s value, `None` if the deadline passed first.
async fn within<F: Future>(until: Moment, future: F) -> Option<F::Output> {
    tokio::time::timeout(until.since(clock::now()), future).await.ok()
}

fn answered<T>(what: &str, began: Moment, answer: Option<zbus::Result<T>>) -> Result<T> {
    let waited = clock::now().since(began);
    let silent = || BusError::Silent { what: what.to_owned(), waited };
    answer.ok_or_else(silent)?.map_err(|e| error(what, &e))
}

fn broken(what: &str, text: &str) -> BusError {
    BusError::Broken { what: what.to_owned(), text: text.to_owned() }
}

fn error(what: &str, e: &zbus::Error) -> BusError {
    let refused = |name: String, text: Option<&str>| BusError::Refused {
        what: what.to_owned(),
        name,
        text: text.unwrap_or_default().to_owned(),
    };
    match e {
        zbus::Error::MethodError(name, text, _) => refused(name.to_string(), text.as_deref()),
        zbus::Error::FDO(e) => refused(e.name().to_string(), e.description()),
        zbus::Error::InputOutput(e) => broken(what, &super::answer(e)),
        e => broken(what, &e.to_string()),
    }
}
