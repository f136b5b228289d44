use std::time::Duration;

use super::timespan::TimeSpan;
use crate::names::{
    BindOrder, Connection, DomainName, Gbps, GuestVf, Guid, GuidRange, IfName, IfPattern,
    LinkLayer, LinkSpeed, LinkWidth, Mode, ModuleName, NameRule, NetnsMode, OnFailure, PKey,
    PciAddress, PcieSpeed, PcieWidth, Policy, PortChoice, PortSelector, PortType, RdmaName, Ready,
    Rung, Template, UnitName, VfDriver, VfNamePattern, VfOwner, VfRange, Words,
};

/// One value of a configuration file, already of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Span(Duration),
    Flag(bool),
    Number(i64),
    Module(ModuleName),
    Pci(PciAddress),
    Guid(Guid),
    Rdma(RdmaName),
    Domain(DomainName),
    Unit(UnitName),
    GuestVf(GuestVf),
    OnFailure(OnFailure),
    Ready(Ready),
    Connection(Connection),
    IfName(IfName),
    IfPattern(IfPattern),
    Mode(Mode),
    PKey(PKey),
    Rung(Rung),
    GuidRange(GuidRange),
    Template(Template),
    Policy(Policy),
    Driver(VfDriver),
    NameRule(NameRule),
    Path(String),
    Vfs(VfRange),
    VfNamePattern(VfNamePattern),
    BindOrder(BindOrder),
    VfOwner(VfOwner),
    PortChoice(PortChoice),
    Port(PortSelector),
    LinkLayer(LinkLayer),
    PortType(PortType),
    NetnsMode(NetnsMode),
    Rate(Gbps),
    LinkWidth(LinkWidth),
    LinkSpeed(LinkSpeed),
    PcieWidth(PcieWidth),
    PcieSpeed(PcieSpeed),
}

impl Value {
    /// As it stands in JSON and, since no name needs escaping, in TOML.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Span(span) => TimeSpan(*span).to_string().into(),
            Self::Flag(flag) => (*flag).into(),
            Self::Number(number) => (*number).into(),
            Self::Module(name) => name.as_str().into(),
            Self::Pci(address) => address.to_string().into(),
            Self::Guid(guid) => guid.to_string().into(),
            Self::Rdma(name) => name.as_str().into(),
            Self::Domain(name) => name.as_str().into(),
            Self::Unit(name) => name.as_str().into(),
            Self::GuestVf(vf) => vf.to_string().into(),
            Self::OnFailure(what) => what.word().into(),
            Self::Ready(what) => what.word().into(),
            Self::Connection(uri) => uri.as_str().into(),
            Self::IfName(name) => name.as_str().into(),
            Self::IfPattern(pattern) => pattern.as_str().into(),
            Self::Mode(mode) => mode.word().into(),
            Self::PKey(pkey) => pkey.to_string().into(),
            Self::Rung(rung) => rung.word().into(),
            Self::GuidRange(range) => range.to_string().into(),
            Self::Template(template) => template.to_string().into(),
            Self::Policy(policy) => policy.to_string().into(),
            Self::Driver(driver) => driver.to_string().into(),
            Self::NameRule(rule) => rule.to_string().into(),
            Self::Path(path) => path.as_str().into(),
            Self::Vfs(range) if range.is_one() => range.first().get().into(),
            Self::Vfs(range) => range.to_string().into(),
            Self::VfNamePattern(pattern) => pattern.to_string().into(),
            Self::BindOrder(order) => order.typed().into(),
            Self::VfOwner(owner) => owner.typed().into(),
            Self::PortChoice(choice) => choice.typed().into(),
            Self::Port(port) => port.to_string().into(),
            Self::LinkLayer(layer) => layer.typed().into(),
            Self::PortType(kind) => kind.typed().into(),
            Self::NetnsMode(mode) => mode.typed().into(),
            Self::Rate(rate) => rate.to_string().into(),
            Self::LinkWidth(width) => width.to_string().into(),
            Self::LinkSpeed(speed) => speed.typed().into(),
            Self::PcieWidth(width) => width.to_string().into(),
            Self::PcieSpeed(speed) => speed.to_string().into(),
        }
    }
}

/// Takes the Rust type out of a [`Value`]; `None` if it holds another.
pub(crate) trait FromValue: Sized {
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($variant:ident => $type:ty),+ $(,)?) => {$(
        impl FromValue for $type {
            fn from_value(value: &Value) -> Option<Self> {
                if let Value::$variant(inner) = value { Some(inner.clone()) } else { None }
            }
        }
    )+};
}

from_value! {
    Span => Duration,
    Flag => bool,
    Number => i64,
    Module => ModuleName,
    Pci => PciAddress,
    Guid => Guid,
    Rdma => RdmaName,
    Domain => DomainName,
    Unit => UnitName,
    GuestVf => GuestVf,
    OnFailure => OnFailure,
    Ready => Ready,
    Connection => Connection,
    IfName => IfName,
    IfPattern => IfPattern,
    Mode => Mode,
    PKey => PKey,
    Rung => Rung,
    GuidRange => GuidRange,
    Template => Template,
    Policy => Policy,
    Driver => VfDriver,
    NameRule => NameRule,
    Path => String,
    Vfs => VfRange,
    VfNamePattern => VfNamePattern,
    BindOrder => BindOrder,
    VfOwner => VfOwner,
    PortChoice => PortChoice,
    Port => PortSelector,
    LinkLayer => LinkLayer,
    PortType => PortType,
    NetnsMode => NetnsMode,
    Rate => Gbps,
    LinkWidth => LinkWidth,
    LinkSpeed => LinkSpeed,
    PcieWidth => PcieWidth,
    PcieSpeed => PcieSpeed,
}
