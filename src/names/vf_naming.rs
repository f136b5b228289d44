//! Names for a PF's VFs, and how the VFs are bound so that their names are no chance.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::words::is_plain_char;
use super::{IfName, RdmaName, VfIndex, harmless};

/// A pattern that gives each VF of a PF a name: text with the fields `{vf}`, the VF's
/// index, `{netdev}`, the name of the PF's netdev, and `{rdma}`, that of its RDMA device.
/// Of text it takes what means nothing to udev: letters, digits, `_`, `-` and `.`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VfNamePattern(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Vf,
    Netdev,
    Rdma,
}

const UNBALANCED: &str = "unbalanced '{' or '}'";

/// What a PF is called, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PfNames<'a> {
    pub netdev: Option<&'a IfName>,
    pub rdma: Option<&'a RdmaName>,
}

impl VfNamePattern {
    /// It has `{vf}`, so that each VF gets another name.
    pub fn has_vf(&self) -> bool {
        self.0.contains(&Part::Vf)
    }

    /// It names nothing of the PF, so its names are known without the host.
    pub fn is_literal(&self) -> bool {
        !self.needs_netdev() && !self.needs_rdma()
    }

    pub fn needs_netdev(&self) -> bool {
        self.0.contains(&Part::Netdev)
    }

    pub fn needs_rdma(&self) -> bool {
        self.0.contains(&Part::Rdma)
    }

    /// The name of a VF; `None` if the PF's name that it needs is not known.
    pub fn name(&self, pf: PfNames<'_>, vf: VfIndex) -> Option<String> {
        let part = |part: &Part| match part {
            Part::Text(text) => Some(text.clone()),
            Part::Vf => Some(vf.to_string()),
            Part::Netdev => pf.netdev.map(ToString::to_string),
            Part::Rdma => pf.rdma.map(ToString::to_string),
        };
        self.0.iter().map(part).collect()
    }

    /// How long the VF's name is at least, bytes: a name of the PF has one or more.
    pub fn shortest(&self, vf: VfIndex) -> usize {
        let part = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Vf => vf.to_string().len(),
            Part::Netdev | Part::Rdma => 1,
        };
        self.0.iter().map(part).sum()
    }
}

impl FromStr for VfNamePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts: Vec<Part> = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some(field) = rest.strip_prefix('{') {
                let (name, after) = field.split_once('}').ok_or(UNBALANCED)?;
                parts.push(match name {
                    "vf" => Part::Vf,
                    "netdev" => Part::Netdev,
                    "rdma" => Part::Rdma,
                    other => {
                        let shown: String = other.chars().take(32).collect();
                        return Err(format!(
                            "{{{}}} is not a field: expected {{vf}}, {{netdev}} or {{rdma}}",
                            harmless(&shown)
                        ));
                    }
                });
                rest = after;
                continue;
            }
            match first {
                '}' => return Err(UNBALANCED.to_owned()),
                c if is_plain_char(c) => {}
                other => {
                    return Err(format!(
                        "{other:?} is not allowed in names: expected letters, digits, '_', '-', '.' and fields"
                    ));
                }
            }
            match parts.last_mut() {
                Some(Part::Text(text)) => text.push(first),
                _ => parts.push(Part::Text(first.to_string())),
            }
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
        if text.starts_with(|c: char| c == '{' || c.is_ascii_alphanumeric()) {
            Ok(Self(parts))
        } else {
            Err("a name begins with a letter or a digit".to_owned())
        }
    }
}

impl fmt::Display for VfNamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Vf => f.write_str("{vf}")?,
                Part::Netdev => f.write_str("{netdev}")?,
                Part::Rdma => f.write_str("{rdma}")?,
            }
        }
        Ok(())
    }
}

/// The kernel gives such names by itself, to whichever device comes first: `ib0`,
/// `mlx5_0` (`dev_alloc_name()`, `net/core/dev.c`; `assign_name()`,
/// `drivers/infiniband/core/device.c`).
pub fn is_given_by_kernel(name: &str) -> bool {
    let heads = ["ib", "mlx4_", "mlx5_"];
    let is_number = |tail: &str| {
        let digits = !tail.is_empty() && tail.bytes().all(|b| b.is_ascii_digit());
        digits && (tail == "0" || !tail.starts_with('0'))
    };
    heads.iter().any(|head| name.strip_prefix(head).is_some_and(is_number))
}

/// The names that a VF shall have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VfNames {
    /// What its netdev is called; `null`: as it comes.
    #[serde(rename = "netdev_name")]
    pub netdev: Option<IfName>,
    /// What its RDMA device is called; `null`: as it comes.
    #[serde(rename = "rdma_name")]
    pub rdma: Option<RdmaName>,
}

/// In what order a PF's VFs are bound to their drivers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum BindOrder {
    /// The next one when the one before has its RDMA device and its netdev.
    InOrder,
    /// All at the same time.
    #[default]
    Parallel,
}

/// Why a PF's VFs are bound in this order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BindReason {
    Configured,
    /// Every VF with a driver of this host gets its names from the configuration.
    Named,
    /// No VF is for a driver of this host, so none has names.
    #[default]
    NotOnHost,
    /// The kernel numbers RDMA devices and netdevs as they come.
    KernelNumbers,
}

/// How a PF's VFs are bound, and why so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(into = "BindingJson")]
pub struct Binding {
    pub order: BindOrder,
    pub why: BindReason,
}

impl Binding {
    /// What is best where the configuration says `given`, of VFs that are for a
    /// driver of this host and have these names.
    pub fn of<'a>(given: Option<BindOrder>, on_host: impl Iterator<Item = &'a VfNames>) -> Self {
        let (mut any, mut all_named) = (false, true);
        for names in on_host {
            any = true;
            all_named &= names.netdev.is_some() && names.rdma.is_some();
        }
        match (any, given, all_named) {
            (false, _, _) => Self { order: BindOrder::Parallel, why: BindReason::NotOnHost },
            (true, Some(order), _) => Self { order, why: BindReason::Configured },
            (true, None, true) => Self { order: BindOrder::Parallel, why: BindReason::Named },
            (true, None, false) => {
                Self { order: BindOrder::InOrder, why: BindReason::KernelNumbers }
            }
        }
    }
}

impl Binding {
    /// True if a driver of this host is bound to any VF, so that the order counts.
    pub const fn is_on_host(self) -> bool {
        !matches!(self.why, BindReason::NotOnHost)
    }

    /// True if the VFs are bound once no device of another adapter may come. They have numbers
    /// of the kernel's, if only until they get their names. Where the configuration says
    /// `parallel`, these are as they come.
    pub const fn awaits_adapters(self) -> bool {
        !matches!(
            (self.order, self.why),
            (_, BindReason::NotOnHost) | (BindOrder::Parallel, BindReason::Configured)
        )
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.order {
            BindOrder::InOrder => "one after the other",
            BindOrder::Parallel => "at the same time",
        })?;
        f.write_str(match (self.why, self.order) {
            (BindReason::Configured, BindOrder::InOrder) => ", as set by bind",
            (BindReason::Configured, BindOrder::Parallel) => {
                ", as set by bind; the kernel numbers them in any order"
            }
            (BindReason::Named, _) => ", because vf-name and vf-rdma-name name each of them",
            (BindReason::NotOnHost, _) => ": no VF is planned for the host's driver",
            (BindReason::KernelNumbers, _) => ", so that the kernel numbers them in their order",
        })
    }
}

/// A [`Binding`] as JSON has it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Binding"))]
struct BindingJson {
    order: BindOrder,
    because_of: BindReason,
    /// The same as a sentence.
    message: String,
}

impl From<Binding> for BindingJson {
    fn from(binding: Binding) -> Self {
        let Binding { order, why } = binding;
        Self { order, because_of: why, message: binding.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index(n: u16) -> VfIndex {
        VfIndex::new(n).expect("index")
    }

    #[test]
    fn fields_are_filled_in() {
        let (netdev, rdma) = ("ibp1s0".parse().expect("name"), "mlx5_7".parse().expect("name"));
        let pf = PfNames { netdev: Some(&netdev), rdma: Some(&rdma) };
        let name = |text: &str| {
            let pattern: VfNamePattern = text.parse().expect("pattern");
            assert_eq!(pattern.to_string(), text);
            pattern.name(pf, index(12))
        };
        assert_eq!(name("{netdev}v{vf}").as_deref(), Some("ibp1s0v12"));
        assert_eq!(name("{rdma}v{vf}").as_deref(), Some("mlx5_7v12"));
        assert_eq!(name("a-b.{vf}_c").as_deref(), Some("a-b.12_c"));
        let pattern: VfNamePattern = "{netdev}v{vf}".parse().expect("pattern");
        assert_eq!(pattern.name(PfNames::default(), index(0)), None);
        assert_eq!((pattern.shortest(index(9)), pattern.shortest(index(10))), (3, 4));
    }

    #[test]
    fn what_udev_would_read_otherwise_is_no_pattern() {
        let why = |text: &str| text.parse::<VfNamePattern>().expect_err(text);
        assert_eq!(why(""), "a name begins with a letter or a digit");
        assert_eq!(why("-{vf}"), why(""));
        for (text, c) in [("a$b", '$'), ("a%k", '%'), ("a\"b", '"'), ("a b", ' '), ("é", 'é')] {
            assert!(why(text).starts_with(&format!("{c:?} is not allowed in names: ")), "{text}");
        }
        assert_eq!(why("a{vf"), "unbalanced '{' or '}'");
        assert_eq!(why("a}"), why("a{vf"));
        assert_eq!(why("a{vf:8}"), "{vf:8} is not a field: expected {vf}, {netdev} or {rdma}");
    }

    #[test]
    fn names_of_the_kernels_own_are_known() {
        for name in ["ib0", "ib12", "mlx5_0", "mlx4_3"] {
            assert!(is_given_by_kernel(name), "{name}");
        }
        for name in ["ibv0", "ib", "ib00", "ib0v1", "mlx5_0v1", "ibp1s0"] {
            assert!(!is_given_by_kernel(name), "{name}");
        }
    }

    #[test]
    fn they_are_bound_in_order_only_where_a_name_depends_on_it() {
        let (named, half, none) = (
            VfNames { netdev: "a0".parse().ok(), rdma: "b0".parse().ok() },
            VfNames { netdev: "a0".parse().ok(), rdma: None },
            VfNames::default(),
        );
        let of = |configured, names: &[&VfNames]| {
            let Binding { order, why } = Binding::of(configured, names.iter().copied());
            (order, why)
        };
        use {BindOrder as O, BindReason as R};
        for configured in [None, Some(O::InOrder), Some(O::Parallel)] {
            assert_eq!(of(configured, &[]), (O::Parallel, R::NotOnHost));
        }
        assert_eq!(of(None, &[&named, &named]), (O::Parallel, R::Named));
        for odd in [&half, &none] {
            assert_eq!(of(None, &[&named, odd]), (O::InOrder, R::KernelNumbers));
        }
        assert_eq!(of(Some(O::Parallel), &[&none]), (O::Parallel, R::Configured));
        assert_eq!(of(Some(O::InOrder), &[&named]), (O::InOrder, R::Configured));
    }

    #[test]
    fn they_await_other_adapters_unless_their_numbers_are_as_they_come() {
        let named = VfNames { netdev: "a0".parse().ok(), rdma: "b0".parse().ok() };
        let awaits = |configured, names: &[&VfNames]| {
            Binding::of(configured, names.iter().copied()).awaits_adapters()
        };
        assert!(awaits(None, &[&named]) && awaits(None, &[&VfNames::default()]));
        assert!(awaits(Some(BindOrder::InOrder), &[&named]));
        assert!(!awaits(Some(BindOrder::Parallel), &[&named]));
        assert!(!awaits(None, &[]) && !awaits(Some(BindOrder::InOrder), &[]));
    }

    proptest! {
        #[test]
        fn a_pattern_is_what_it_was_written_as(text in "[a-z{}vf0-9._-]{0,24}") {
            if let Ok(pattern) = text.parse::<VfNamePattern>() {
                prop_assert_eq!(pattern.to_string(), text);
            }
        }
    }
}
