//! `ibprov schema`: what each report is made of.

use std::io::Write as _;

use crate::host::terminal;
use crate::names::nearest;
use crate::report::{Exit, unpacked};
use serde_json::Value;

/// The schemas (JSON Schema, draft 2020-12) by the names of their reports.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas.json.gz"));

/// Each report that has a schema.
const REPORTS: &[&str] = &[
    "status",
    "check",
    "check-explain",
    "check-fleet",
    "check-initrd",
    "collect",
    "consumers",
    "firmware",
    "gid",
    "holders",
    "wait-online",
    "plan",
    "plan-fleet",
    "plan-pin",
    "plan-seal",
    "plan-partitions",
    "apply",
    "apply-pf",
    "apply-dry-run",
    "guests",
    "boot",
    "boot-dry-run",
    "iface",
    "iface-dry-run",
    "config-check",
    "config-show",
    "import",
    "migrate",
    "opensm-check",
    "not-begun",
];

/// Print the schema of `report`, or the names of all.
///
/// # Errors
/// There is no such report; standard output is gone.
pub fn run(report: Option<&str>) -> anyhow::Result<u8> {
    let mut out = terminal::stdout();
    let Some(report) = report else {
        for name in REPORTS {
            writeln!(out, "{name}")?;
        }
        return Ok(Exit::Good.code());
    };
    if !REPORTS.contains(&report) {
        let meant = nearest(report, REPORTS.iter().copied());
        let meant = meant.map_or_else(|| ".".to_owned(), |name| format!("; did you mean {name}?"));
        anyhow::bail!("{report:?} is not a report{meant} To list all reports: `ibprov schema`");
    }
    let schemas: Value = serde_json::from_str(&unpacked(PACKED)?)?;
    writeln!(out, "{:#}", schemas.get(report).unwrap_or(&Value::Null))?;
    Ok(Exit::Good.code())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use expect_test::expect_file;
    use schemars::generate::SchemaSettings;
    use schemars::{JsonSchema, Schema};
    use serde_json::{Value, json};

    use super::{PACKED, REPORTS, unpacked};
    use crate::commands::{
        apply, check, collect, config, consumers, fleet, gid, iface, import, initrd, opensm, plan,
        seal,
    };
    use crate::report::common::{Kind, NotBegun, PlacedFinding, Report};
    use crate::report::{
        BootReport, check_fleet, finding, firmware, guests, holders, iface as iface_report, online,
        pf, plan as plan_report, status,
    };

    /// The schema of the report `kind`, as it is published.
    fn schema<R: JsonSchema>(kind: Kind) -> (String, Value) {
        let kind = serde_json::to_value(kind).expect("JSON");
        let name = kind.as_str().expect("a word").to_owned();
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let schema: Schema = generator.into_root_schema_for::<R>();
        let mut value = schema.to_value();
        value["title"] = format!("ibprov {name}").into();
        value["properties"]["report"] = json!({"const": name});
        // Another report may be part of this one.
        if !value.to_string().contains("\"#/$defs/Kind\"") {
            value["$defs"].as_object_mut().expect("definitions").remove("Kind");
        }
        value["properties"]["schema"] = json!({"const": crate::report::SCHEMA});
        (name, value)
    }

    /// The schema of what a method gives that adds the keys of every report.
    fn told<B, R: JsonSchema>(kind: Kind, _: fn(&'static B) -> R) -> (String, Value) {
        schema::<R>(kind)
    }

    fn all() -> Vec<(String, Value)> {
        vec![
            told(Kind::Status, status::Status::told),
            schema::<finding::Diagnosis>(Kind::Check),
            schema::<Report<check::ExplainVerdict, check::Explained>>(Kind::CheckExplain),
            told(Kind::CheckFleet, check_fleet::CheckFleetReport::told),
            schema::<Report<initrd::InitrdVerdict, initrd::InitrdReport>>(Kind::CheckInitrd),
            schema::<Report<collect::CollectVerdict, collect::Collected>>(Kind::Collect),
            told(Kind::Consumers, consumers::ConsumersReport::told),
            told(Kind::Firmware, firmware::FirmwareReport::told),
            told(Kind::Gid, gid::GidReport::told),
            told(Kind::Holders, holders::HoldersReport::told),
            told(Kind::WaitOnline, online::OnlineReport::told),
            told(Kind::Plan, plan_report::PlanReport::told),
            told(Kind::PlanFleet, fleet::FleetReport::told),
            schema::<Report<plan::PinVerdict, plan::Pinned>>(Kind::PlanPin),
            told(Kind::PlanSeal, seal::Sealed::told),
            schema::<Report<plan::PartitionsVerdict, plan::Partitions>>(Kind::PlanPartitions),
            schema::<Report<apply::AppliedVerdict, apply::Applied>>(Kind::Apply),
            told(Kind::ApplyPf, pf::PfReport::told),
            told(Kind::ApplyDryRun, crate::plan::preview::ApplyPreview::told),
            told(Kind::Guests, guests::GuestsReport::told),
            told(Kind::Boot, BootReport::told),
            told(Kind::BootDryRun, crate::apply::preview::Preview::told),
            told(Kind::Iface, iface_report::IfaceReport::told),
            told(Kind::IfaceDryRun, iface::IfacePreview::told),
            schema::<Report<config::ConfigVerdict, config::Checked, PlacedFinding>>(
                Kind::ConfigCheck,
            ),
            schema::<Report<config::ConfigVerdict, config::Shown, PlacedFinding>>(Kind::ConfigShow),
            schema::<Report<import::ImportVerdict, import::Import>>(Kind::Import),
            told(Kind::Migrate, crate::report::migrate::Migration::told),
            schema::<Report<opensm::OpensmVerdict, opensm::Checked, opensm::OpensmFinding>>(
                Kind::OpensmCheck,
            ),
            schema::<NotBegun>(Kind::NotBegun),
        ]
    }

    #[test]
    fn the_published_schemas_are_current() {
        for (name, schema) in all() {
            let path = format!("{}/docs/schema/{name}.json", env!("CARGO_MANIFEST_DIR"));
            expect_file![path].assert_eq(&format!("{schema:#}\n"));
        }
    }

    #[test]
    fn each_report_has_a_schema_and_each_schema_a_file() {
        let names: BTreeSet<String> = all().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, REPORTS.iter().map(ToString::to_string).collect());
        let packed: Value = serde_json::from_str(&unpacked(PACKED).expect("text")).expect("JSON");
        for (name, schema) in all() {
            assert_eq!(packed[&name], schema, "{name}");
        }
        let dir = format!("{}/docs/schema", env!("CARGO_MANIFEST_DIR"));
        let files: BTreeSet<String> = std::fs::read_dir(dir)
            .expect("a folder")
            .map(|entry| entry.expect("entry"))
            .filter(|entry| entry.path().is_file())
            .map(|entry| entry.file_name().into_string().expect("UTF-8"))
            .map(|name| name.trim_end_matches(".json").to_owned())
            .collect();
        assert_eq!(names, files);
        let kinds = schemars::schema_for!(Kind).to_value();
        let kinds = kinds["oneOf"].as_array().expect("a list").iter();
        let kinds: BTreeSet<String> =
            kinds.map(|kind| kind["const"].as_str().expect("a word").to_owned()).collect();
        assert_eq!(names, kinds, "a report without a schema");
    }
}
