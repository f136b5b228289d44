/// In JSON such a type is the text that it is displayed as, and comes back only
/// through [`std::str::FromStr`]: a text that is none of it is an error.
macro_rules! as_text {
    ($($type:ty),+ $(,)?) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = String::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        #[cfg(test)]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).trim_start_matches("super::").to_owned().into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string"})
            }
        }
    )+};
}

as_text!(
    super::DomainName,
    super::FirmwareName,
    super::FirmwareVersion,
    super::Gbps,
    super::Guid,
    super::GuidRange,
    super::IfName,
    super::ModuleName,
    super::PKey,
    super::PciAddress,
    super::PcieSpeed,
    super::RdmaName,
    super::TablePKey,
    super::Template,
    super::UnitName,
    super::VfName,
    super::VfRange,
);

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use crate::names::{
        DomainName, Guid, GuidKind, GuidRange, IfName, LinkLayer, Mode, ModuleName, ModuleState,
        PKey, PciAddress, Policy, PortNumber, RdmaName, Rung, Template, UnitName, VfDriver,
        VfIndex, VfName, VfRange, VfRung,
    };

    fn goes_and_comes<T: Serialize + DeserializeOwned + PartialEq + Debug>(json: &str) {
        let value: T = serde_json::from_str(json).expect(json);
        assert_eq!(serde_json::to_string(&value).expect("JSON"), json);
    }

    fn is_refused<T: DeserializeOwned + Debug>(json: &str) {
        let value: Result<T, _> = serde_json::from_str(json);
        assert!(value.is_err(), "{json}: {value:?}");
    }

    #[test]
    fn what_is_written_as_json_reads_back() {
        goes_and_comes::<DomainName>(r#""vm; reboot""#);
        goes_and_comes::<Guid>(r#""0002:c903:000e:8acd""#);
        goes_and_comes::<GuidRange>(r#""0200:0000:0000:0100 - 0200:0000:0000:010f""#);
        goes_and_comes::<IfName>(r#""ib0""#);
        goes_and_comes::<ModuleName>(r#""mlx5_core""#);
        goes_and_comes::<PKey>(r#""0x8001""#);
        goes_and_comes::<PciAddress>(r#""0000:4b:00.0""#);
        goes_and_comes::<RdmaName>(r#""mlx5_0""#);
        goes_and_comes::<Template>(r#""02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}""#);
        goes_and_comes::<UnitName>(r#""vm@9.service""#);
        goes_and_comes::<VfName>(r#""0000:4b:00.0/3""#);
        goes_and_comes::<VfRange>(r#""8-15""#);
        goes_and_comes::<VfIndex>("3");
        goes_and_comes::<PortNumber>("1");
        goes_and_comes::<Policy>(r#""follow""#);
        goes_and_comes::<VfDriver>(r#""vfio-pci""#);
        goes_and_comes::<Rung>(r#""configured""#);
        goes_and_comes::<VfRung>(r#""handed-over""#);
        goes_and_comes::<Mode>(r#""connected""#);
        goes_and_comes::<LinkLayer>(r#""infiniband""#);
        goes_and_comes::<ModuleState>(r#""absent""#);
        goes_and_comes::<GuidKind>(r#""node""#);
    }

    #[test]
    fn a_bad_text_is_an_error() {
        is_refused::<DomainName>(r#""a/b""#);
        is_refused::<Guid>(r#""0x""#);
        is_refused::<IfName>(r#""a:b""#);
        is_refused::<PciAddress>(r#""4b:00.0""#);
        is_refused::<RdmaName>(r#""../x""#);
        is_refused::<UnitName>(r#""vm""#);
        is_refused::<VfName>(r#""0000:4b:00.0/65535""#);
        is_refused::<VfIndex>("65535");
        is_refused::<VfIndex>("-1");
        is_refused::<PortNumber>("0");
        is_refused::<PortNumber>("255");
        is_refused::<Policy>(r#""Follow""#);
    }
}
