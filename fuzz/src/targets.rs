//! What each fuzz target does with its bytes. Beyond "no panic": what is printed comes
//! back as what it was, what is written for others is what they take, and no control
//! character reaches a terminal.

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};
use std::str::FromStr;

use ibprov::check::diagnose;
use ibprov::check::evidence::{Boot, Intake};
use ibprov::check::rules;
use ibprov::check::secrets::without_secrets;
use ibprov::commands::check_host;
use ibprov::config::foreign::{
    ifcfg, ifcfg_suse, interfaces, keyfile, mlx4_conf, openib_conf, operator_guids, rdma_conf,
    sriov_vfs,
};
use ibprov::config::{self, Config, Problems, Source, timespan};
use ibprov::firmware::{answer, record};
use ibprov::graph::{consumers, cycles, deadlock, files, show};
use ibprov::guests::domain::Domains;
use ibprov::host::{self, logs, persistent_names, udev_record};
use ibprov::model::{self, BootReport};
use ibprov::names::{
    DomainName, FirmwareName, Guid, GuidRange, IfName, IfPattern, ModuleName, NameRule, PKey,
    PciAddress, Policy, RdmaName, Target, Template, UnitName, VfDriver, VfIndex, VfName,
    VfNamePattern, VfRange, host_number,
};
use ibprov::observe::{self, Look, Observer, autostart, plan_host};
use ibprov::opensm;
use ibprov::show::screen::Screen;
use ibprov::stacks;
use ibprov::timeline::{self, Timeline, svg};

use crate::tree::{self, Tree};

/// What is done with an input; a panic is a finding.
pub type OneTarget = fn(&[u8]);

/// The targets by their names.
pub const ALL: [(&str, OneTarget); 16] = [
    ("config", config),
    ("pins", pins),
    ("names", names),
    ("logs", logs),
    ("intake", intake),
    ("kernel", kernel),
    ("netlink", netlink),
    ("udev", udev),
    ("units", units),
    ("guests", guests),
    ("import", import),
    ("stacks", stacks),
    ("reports", reports),
    ("host", host),
    ("opensm", opensm),
    ("firmware", firmware),
];

/// What a terminal is sent of a stranger's words, by the door through which all goes.
fn harmless(printed: &str) {
    let mut sent = printed.chars().map(ibprov::names::mark_in_lines);
    let bad = sent.find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    assert_eq!(bad, None, "a control character is printed: {printed:?}");
}

/// Also nothing that could forge a line of its own.
fn one_line(printed: &str) {
    harmless(printed);
    assert!(!printed.contains('\n'), "not one line: {printed:?}");
}

fn text_of(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

fn resolved(text: &str) -> Result<config::Loaded, Problems> {
    let source = Source { path: "/etc/ibprov/ibprov.toml".to_owned(), text: text.to_owned() };
    config::resolve(vec![source], Problems::default())
}

/// The same but for the places where values stand.
fn without_places(config: &Config) -> String {
    let shown = format!("{config:?}");
    let mut parts = shown.split("/etc/ibprov/ibprov.toml:");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    kept
}

/// A configuration file: what is wrong is told harmlessly; what `config show` prints of a
/// good one is the same configuration.
pub fn config(data: &[u8]) {
    let Some(text) = text_of(data) else { return };
    match resolved(text) {
        Err(problems) => {
            harmless(&problems.render(false));
        }
        Ok(loaded) => {
            let shown = config::to_toml(&loaded.effective());
            harmless(&shown);
            let again = resolved(&shown).unwrap_or_else(|e| panic!("{e}\n of:\n{shown}"));
            assert_eq!(without_places(&again.config), without_places(&loaded.config), "{shown}");
        }
    }
}

/// A pin file; its pins are printed and read again.
pub fn pins(data: &[u8]) {
    let Some(text) = text_of(data) else { return };
    match config::pins::Pins::parse(text) {
        Err(why) => one_line(&why),
        Ok(pins) => {
            let printed = pins.to_toml();
            harmless(&printed);
            let again = config::pins::Pins::parse(&printed);
            assert_eq!(again.as_ref().map(|p| &p.pfs), Ok(&pins.pfs), "{printed}");
        }
    }
}

/// What mstconfig prints, and the record of what it has written.
pub fn firmware(data: &[u8]) {
    let Some(text) = text_of(data) else { return };
    let answer = answer::read(text);
    let lines = answer.errors.iter().chain(&answer.effect).chain(&answer.device_type);
    lines.for_each(|line| one_line(line));
    for error in &answer.errors {
        let _lack = answer::lacking(error);
    }
    for shown in &answer.settings {
        assert!(shown.name.as_str().parse::<FirmwareName>().is_ok(), "{shown:?}");
        for value in shown.current.iter().chain(&shown.next) {
            one_line(value);
            assert!(!value.contains(' '), "{shown:?}");
        }
        let _is = answer.is(shown.name.as_str(), 1);
    }
    if let Ok(record) = record::Record::parse(text) {
        let printed = serde_json::to_string(&record).expect("JSON");
        assert_eq!(record::Record::parse(&printed).as_ref(), Ok(&record), "{printed}");
    }
}

/// partitions.conf and opensm.conf: every place is in the file, and what is said is harmless.
pub fn opensm(data: &[u8]) {
    let known = opensm::partitions::Known { allows_both: true, ..Default::default() };
    let partitions = opensm::partitions::read(data, &known);
    let _json = serde_json::to_string(&partitions.partitions).expect("JSON");
    for fault in partitions.faults.iter().chain(&opensm::options::read(data).faults) {
        let also = fault.also.as_ref().map(|(span, _)| span);
        for span in [Some(&fault.span), also].into_iter().flatten() {
            assert!(span.start <= span.end && span.end <= data.len(), "{fault:?}");
        }
        one_line(&fault.label);
        one_line(&fault.consequence);
        if let Some(help) = &fault.help {
            one_line(help);
        }
    }
}

fn round_trip<T>(text: &str)
where
    T: FromStr<Err: Display> + Display + PartialEq + Debug,
{
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            one_line(&printed);
            assert_eq!(printed.parse::<T>().ok().as_ref(), Some(&value), "{text:?} {printed:?}");
        }
        Err(why) => one_line(&why.to_string()),
    }
}

/// Everything that has a type of its own in `names`.
pub fn names(data: &[u8]) {
    let Some(text) = text_of(data) else { return };
    round_trip::<DomainName>(text);
    round_trip::<Guid>(text);
    round_trip::<GuidRange>(text);
    round_trip::<IfName>(text);
    round_trip::<IfPattern>(text);
    round_trip::<ModuleName>(text);
    round_trip::<PKey>(text);
    round_trip::<PciAddress>(text);
    round_trip::<Policy>(text);
    round_trip::<RdmaName>(text);
    round_trip::<Target>(text);
    round_trip::<Template>(text);
    round_trip::<UnitName>(text);
    round_trip::<VfDriver>(text);
    round_trip::<VfName>(text);
    round_trip::<VfNamePattern>(text);
    round_trip::<VfRange>(text);
    let _index = text.parse::<VfIndex>().map(|n| n.to_string());
    let _gid = Guid::from_gid(text);
    let _span = timespan::parse(text);
    for &rule in <NameRule as ibprov::names::Words>::ALL {
        host_number::of_name(text, rule).map_or_else(|why| one_line(&why), drop);
    }
    host_number::of_text(text).map_or_else(|why| one_line(&why), drop);
}

/// All that `check` makes of what was read.
fn judged(intake: Intake) {
    let evidence = intake.finish();
    let diagnosis = diagnose(&evidence);
    harmless(&ibprov::show::check::text(&diagnosis, Screen { verbose: true, ..Screen::default() }));
    let _json = serde_json::to_string(&diagnosis).expect("JSON");
    for boot in &evidence.boots {
        drawn(&timeline::evidence::timeline(boot, &diagnosis.findings));
    }
}

/// The picture is XML.
fn drawn(timeline: &Timeline) {
    let picture = svg::draw(timeline);
    let parsed = roxmltree::Document::parse(&picture);
    assert!(parsed.is_ok(), "{parsed:?} of {picture}");
}

/// `check --log FILE`: archives, compressed streams, text.
pub fn logs(data: &[u8]) {
    let file = Tree::file(data);
    let mut intake = Intake::new(rules::needles());
    let mut read = |name: &str, stream: &mut dyn std::io::Read| {
        one_line(name);
        intake.read(name, stream);
    };
    logs::read(&file, &mut read).iter().for_each(|problem| harmless(problem));
    judged(intake);
    if let Some(text) = text_of(data) {
        let left = without_secrets(text);
        assert_eq!(left.lines().count(), text.lines().count(), "lines are gone: {left:?}");
    }
}

/// Log lines, a journal's JSON and export forms, dumps of tools: no archive about them.
pub fn intake(data: &[u8]) {
    let mut intake = Intake::new(rules::needles());
    intake.read("log", &mut &*data);
    judged(intake);
}

/// Records of `/dev/kmsg`, apart by NUL.
pub fn kernel(data: &[u8]) {
    for record in data.split(|b| *b == 0) {
        if let Some(line) = host::fuzz::kernel_line(record) {
            assert!(line.level < 8, "{line:?}");
            assert!(!line.text.contains('\n'), "{line:?}");
        }
    }
    text_of(data).into_iter().for_each(host::fuzz::systemctl);
}

/// Datagrams of rtnetlink and RDMA netlink.
pub fn netlink(data: &[u8]) {
    let messages = host::fuzz::netlink(data);
    // A message has a header of 16 bytes.
    assert!(messages.is_none_or(|count| count <= data.len() / 16));
}

/// udev: events and its database.
pub fn udev(data: &[u8]) {
    let mut parts = data.splitn(4, |b| *b == 0);
    let (action, subsystem) = (parts.next(), parts.next());
    if let Some(devpath) = parts.next() {
        let event = host::fuzz::uevent(action, subsystem, devpath);
        assert!(event.is_none_or(|event| !event.sysname.is_empty()));
    }
    let tree = Tree::of(&["/run/udev/data/n7"], parts.next().unwrap_or(data));
    let name: IfName = "ib0".parse().expect("a name");
    if let Ok(Some(properties)) = udev_record::of_netdev(tree.root(), &name, 7) {
        properties.iter().for_each(|(key, value)| {
            one_line(key);
            one_line(value);
        });
    }
}

/// Unit files, drop-ins, fstab, start scripts; and `systemctl show`.
pub fn units(data: &[u8]) {
    let tree = Tree::of(tree::UNITS, data);
    let mut graph = files::graph(tree.root());
    if let Some(text) = text_of(data) {
        show::graph(text, "default.target").into_units().for_each(|unit| graph.learn(unit));
        graph.settle();
    }
    let _cycles = cycles::cycles(&graph);
    let _deadlocks = deadlock::deadlocks(&graph, stacks::waited_for);
    let _judged = consumers::judge(&graph, stacks::network_role, |_| true);
    let _units = observe::units::units(tree.root());
}

/// libvirt: a domain's XML, and virsh's lists.
pub fn guests(data: &[u8]) {
    let Some(text) = text_of(data) else { return };
    match autostart::hostdevs(text) {
        Ok(given) => {
            let distinct: BTreeSet<_> = given.iter().collect();
            assert_eq!(distinct.len(), given.len());
        }
        Err(why) => drop(why),
    }
    let lists: Vec<&str> = text.splitn(3, '\0').collect();
    if let [all, active, autostart] = lists.as_slice() {
        let domains = Domains::parse(all, active, autostart);
        for (name, uuid) in domains.autostarted() {
            assert!(domains.autostart.contains(name) && uuid.len() == 36);
        }
    }
}

/// `import`: what it writes is a configuration that ibprov takes, or is left to a hand.
pub fn import(data: &[u8]) {
    let Some(text) = text_of(data) else { return };
    let pf: PciAddress = "0000:4b:00.0".parse().expect("an address");
    let vf_of =
        |pci: PciAddress| Some((pf, VfIndex::new(u16::try_from(pci.to_string().len()).ok()?)?));
    let file = |said| interfaces::import(&[("some\nfile".to_owned(), said)]);
    let all = [
        Some(openib_conf::import(text, &[])),
        Some(rdma_conf::import(text)),
        Some(mlx4_conf::import(text, |_| true)),
        ifcfg::read("ib0", text).map(file),
        ifcfg_suse::read("ib0.8001", text).map(file),
        keyfile::read(text).map(file),
        Some(sriov_vfs::import(text, vf_of)),
        Some(sriov_vfs::import(text, |_| None)),
        operator_guids::import(text).map_err(|why| harmless(&why)).ok(),
    ];
    for imported in all.into_iter().flatten() {
        let printed = imported.to_text("some\nfile");
        harmless(&printed);
        // What is left to do by hand may be what makes it whole; its syntax is good.
        if let Err(problems) = resolved(&printed) {
            let said = problems.render(false);
            assert!(!imported.todo.is_empty(), "{said}\n of:\n{printed}");
        }
    }
}

/// What the network stacks have on disk.
pub fn stacks(data: &[u8]) {
    let tree = Tree::of(tree::STACKS, data);
    let root = tree.root();
    for interface in observe::ipoib::interfaces(&mut Look::new(root)) {
        let standings = stacks::KNOWN.on_disk(root, &interface);
        assert!(!standings.is_empty());
        let _writes = stacks::KNOWN.writes(&stacks::files::Files::of(root), &interface);
        let _owner = stacks::KNOWN.owner(root, &interface.name, interface.ifindex);
    }
    for asked in stacks::KNOWN.asked(root, |_| true) {
        assert!(!asked.netdev.is_empty());
    }
}

fn reread<T: serde::de::DeserializeOwned>(
    text: &str,
    json: fn(&T) -> serde_json::Result<String>,
) -> Option<T> {
    match model::read::<T>(text) {
        Ok(report) => {
            let printed = json(&report).expect("JSON");
            let again = model::read::<T>(&printed).unwrap_or_else(|e| panic!("{e}: {printed}"));
            let reprinted = json(&again).expect("JSON");
            assert_eq!(printed, reprinted, "of {text:?}");
            Some(report)
        }
        Err(_) => None,
    }
}

/// What other runs of ibprov have left, and what its children say.
pub fn reports(data: &[u8]) {
    let Some(text) = text_of(data) else { return };
    if let Some(report) = reread(text, |boot: &BootReport| boot.to_report().to_json()) {
        let _text = ibprov::show::boot::text(&report, Screen::default());
    }
    if let Some(report) =
        reread(text, |guests: &model::guests::GuestsReport| guests.to_report().to_json())
    {
        let _text = ibprov::show::guests::text(&report, Screen::default());
    }
    if let Some(report) =
        reread(text, |iface: &model::iface::IfaceReport| iface.to_report().to_json())
    {
        let _text = report.to_string();
    }
    let pf: PciAddress = "0000:4b:00.0".parse().expect("an address");
    let _outcome = model::pf::Outcome::of(pf, text, "it failed");
    for line in text.lines() {
        let _request = serde_json::from_str::<ibprov::workers::request::Request>(line);
        let _answer = serde_json::from_str::<ibprov::workers::request::Answer>(line);
    }
}

/// A whole host: sysfs, modprobe.d, the command line, its name, libvirt's files, boot.json,
/// as `check --root`, `plan` and `import` see it.
pub fn host(data: &[u8]) {
    let tree = Tree::of(tree::HOST, data);
    let root = tree.root();
    let rules = observe::ModprobeRules::read(root);
    let modules: Vec<ModuleName> =
        ["ib_ipoib", "mlx5_core"].into_iter().filter_map(|m| m.parse().ok()).collect();
    modules.iter().filter_map(|m| rules.denied(m)).for_each(one_line);
    let observed = Observer::new(root).look(&modules, &BTreeSet::new());
    observed.problems.iter().for_each(|problem| harmless(problem));
    let mut look = Look::new(root);
    let planned = plan_host::plan_host(&mut look, &observed, &Config::default());
    planned.name.iter().for_each(|name| harmless(name));
    for pf in observed.functions.iter().filter(|f| f.physfn.is_none()) {
        let _vfs = observe::pf::addresses(&mut look, pf.address, |_| true);
    }
    look.problems.iter().for_each(|problem| harmless(problem));
    let _pins = plan_host::pins(root).map_err(|why| one_line(&why));
    let _rules = persistent_names::file(&[]);
    let mut boot = Boot::default();
    check_host::gather(&mut boot, root, None);
    let evidence = ibprov::check::Evidence { boots: vec![boot], ..Default::default() };
    let diagnosis = diagnose(&evidence);
    harmless(&ibprov::show::check::text(&diagnosis, Screen { verbose: true, ..Screen::default() }));
    for boot in &evidence.boots {
        drawn(&timeline::evidence::timeline(boot, &diagnosis.findings));
    }
}
