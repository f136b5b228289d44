//! The schema of all reports, `docs/reports.schema.json`: made from the types that are printed,
//! each report an entry of `$defs`, which share what they have in common.

use std::collections::BTreeSet;

use expect_test::expect_file;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::model::{
    BootReport, Kind, NotBegun, Report, collect, config, consumers, finding, firmware, guests,
    hardware, holders, iface, initrd, online, opensm, pf, plan, plan_fleet, preview, status,
};

/// The entries of all reports, and what they refer to.
struct Reports {
    generator: SchemaGenerator,
    entries: Map<String, Value>,
}

impl Reports {
    fn add<R: JsonSchema>(&mut self, kind: Kind) {
        let kind = serde_json::to_value(kind).expect("JSON");
        let name = kind.as_str().expect("a word").to_owned();
        let schema: Schema = R::json_schema(&mut self.generator);
        let mut value = schema.to_value();
        value["title"] = format!("ibprov {name}").into();
        value["properties"]["report"] = json!({"const": name});
        value["properties"]["schema"] = json!({"const": crate::model::SCHEMA});
        assert!(self.entries.insert(name, value).is_none());
    }

    /// Adds what a method gives that adds the keys of every report.
    fn told<B, R: JsonSchema>(&mut self, kind: Kind, _: fn(&'static B) -> R) {
        self.add::<R>(kind);
    }
}

fn all() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut all = Reports { generator, entries: Map::new() };
    all.told(Kind::Status, status::Status::to_report);
    all.add::<finding::Diagnosis>(Kind::Check);
    all.add::<Report<finding::Explained>>(Kind::CheckExplain);
    all.add::<Report<initrd::InitrdReport>>(Kind::CheckInitrd);
    all.add::<Report<collect::Collected>>(Kind::Collect);
    all.told(Kind::Consumers, consumers::ConsumersReport::to_report);
    all.told(Kind::Firmware, firmware::FirmwareReport::to_report);
    all.told(Kind::Gid, hardware::GidReport::to_report);
    all.told(Kind::Holders, holders::HoldersReport::to_report);
    all.told(Kind::WaitOnline, online::OnlineReport::to_report);
    all.told(Kind::Plan, plan::PlanReport::to_report);
    all.told(Kind::PlanFleet, plan_fleet::FleetReport::to_report);
    all.add::<Report<plan::Pinned>>(Kind::PlanPin);
    all.told(Kind::PlanSeal, plan::Sealed::to_report);
    all.add::<Report<plan::Partitions>>(Kind::PlanPartitions);
    all.add::<Report<pf::Applied>>(Kind::Apply);
    all.told(Kind::ApplyPf, pf::PfReport::to_report);
    all.told(Kind::ApplyDryRun, crate::model::preview::ApplyPreview::to_report);
    all.told(Kind::Guests, guests::GuestsReport::to_report);
    all.told(Kind::Boot, BootReport::to_report);
    all.told(Kind::BootDryRun, crate::model::preview::Preview::to_report);
    all.told(Kind::Iface, iface::IfaceReport::to_report);
    all.told(Kind::IfaceDryRun, preview::IfacePreview::to_report);
    all.add::<Report<config::Checked>>(Kind::ConfigCheck);
    all.add::<Report<config::Shown>>(Kind::ConfigShow);
    all.add::<Report<config::Import>>(Kind::Import);
    all.told(Kind::Migrate, crate::model::migrate::Migration::to_report);
    all.add::<Report<opensm::Checked, opensm::OpensmFinding>>(Kind::OpensmCheck);
    all.add::<NotBegun>(Kind::NotBegun);
    let names: Vec<Value> =
        all.entries.keys().map(|name| json!({"$ref": format!("#/$defs/{name}")})).collect();
    let mut definitions = all.generator.take_definitions(true);
    definitions.extend(all.entries);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The reports of ibprov",
        "oneOf": names,
        "$defs": definitions,
    })
}

#[test]
fn the_published_schema_is_current_and_has_every_report() {
    let schema = all();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reports.schema.json");
    expect_file![path].assert_eq(&format!("{schema:#}\n"));
    let kinds = schemars::schema_for!(Kind).to_value();
    let kinds = kinds["oneOf"].as_array().expect("a list").iter();
    let kinds: BTreeSet<String> =
        kinds.map(|kind| format!("#/$defs/{}", kind["const"].as_str().expect("a word"))).collect();
    let entries = schema["oneOf"].as_array().expect("a list").iter();
    let entries: BTreeSet<String> =
        entries.map(|entry| entry["$ref"].as_str().expect("a reference").to_owned()).collect();
    assert_eq!(entries, kinds);
}
