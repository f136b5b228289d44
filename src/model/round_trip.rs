//! What is read back of a report is the value that was written.

use std::borrow::Cow;
use std::fmt::Debug;

use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::guests::{GuestKind, GuestReport, GuestsReport, Phase as GuestPhase};
use super::{
    Advice, BootReport, BringUp, Cause, ChildCreator, Code, DeferredSettings, Degraded, Finding,
    IfaceReport, IfaceStep, LeftOut, ModuleOutcome, ModuleReport, ModuleTrouble, NotExpected,
    OnlineReport, PortProgress, PortReport, Report, RxeReport, RxeState, Severity, Step,
    StepReport, ToDo, Unresolved, Use, Verdict, WantedChild, WantedInterface,
    advice::Purpose,
    boot::{Climbed, TimelineEntry},
    iface::IfaceStepReport,
    online::{Goal, Lack, OnlinePort},
    pf::Outcome,
    read,
};
use crate::names::{
    Guid, IfName, LinkLayer, LinkSpeed, LinkState, Mode, ModuleName, Moment, NetnsMode, Object,
    PKey, PciAddress, PcieSpeed, PhysicalState, PortNumber, PortType, Rate, RdmaName, Rung,
    Words as _, at,
};

type Any<T> = BoxedStrategy<T>;

fn text() -> Any<String> {
    any::<String>().boxed()
}

/// A text that is not empty: JSON has an empty one for none.
fn said() -> Any<String> {
    "(?s).{1,12}".boxed()
}

fn texts() -> Any<Vec<String>> {
    prop::collection::vec(text(), 0..3).boxed()
}

fn list<T: Debug>(each: impl Strategy<Value = T> + 'static) -> Any<Vec<T>> {
    prop::collection::vec(each, 0..3).boxed()
}

fn parsed<T: std::str::FromStr + Debug>(pattern: &'static str) -> Any<T>
where
    T::Err: Debug,
{
    pattern.prop_map(|text| text.parse().expect("a name")).boxed()
}

fn pci() -> Any<PciAddress> {
    parsed("[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\\.[0-7]")
}

fn netdev() -> Any<IfName> {
    parsed("ib[a-z0-9]{1,6}")
}

fn rdma() -> Any<RdmaName> {
    parsed("mlx[0-9]_[0-9]{1,3}")
}

fn module() -> Any<ModuleName> {
    parsed("[a-z]{1,4}_[a-z]{1,6}")
}

fn guid() -> Any<Guid> {
    any::<u64>().prop_map(Guid::new).boxed()
}

fn port() -> Any<PortNumber> {
    (1_i64..255).prop_map(|n| PortNumber::new(n).expect("a port")).boxed()
}

fn rung() -> Any<Rung> {
    select(Rung::ALL.to_vec()).boxed()
}

fn version() -> Any<Cow<'static, str>> {
    text().prop_map(Cow::Owned).boxed()
}

fn moment() -> Any<Moment> {
    any::<u64>().prop_map(at).boxed()
}

fn progress() -> Any<PortProgress> {
    let layer = select(vec![LinkLayer::InfiniBand, LinkLayer::Ethernet, LinkLayer::Unknown]);
    let found = (of(pci()), of(rdma()), of(port()), of(guid()), of(layer), of(netdev()));
    let far = (of(moment()), of(rung()), rung(), any::<bool>(), any::<[bool; 2]>());
    (text(), text(), found, far)
        .prop_map(|(expected, why, found, far)| {
            let (pci, rdma, port, guid, link_layer, netdev) = found;
            let (named_usec, reached, goal, optional, must_be) = far;
            PortProgress {
                expected: expected.into(),
                pci,
                rdma,
                port,
                guid,
                link_layer,
                netdev,
                named_usec,
                reached,
                goal,
                optional,
                must_be_infiniband: must_be[0],
                must_be_ethernet: must_be[1],
                of_number: None,
                why,
            }
        })
        .boxed()
}

fn advice() -> Any<Advice> {
    let step = (of(text()), of(text()));
    (select(Purpose::ALL.to_vec()), step)
        .prop_map(|(purpose, (words, command))| Advice { purpose, step: ToDo { words, command } })
        .boxed()
}

fn finding() -> Any<Finding> {
    let severity = select(vec![Severity::Error, Severity::Warning, Severity::Info]);
    let code = select(vec![Code::PfAbsent, Code::Drift, Code::GuidZero]);
    (code, severity, of(text()), text(), list(advice()))
        .prop_map(|(code, severity, object, message, advice)| {
            let objects = object.map(|text| Object::all(&text)).unwrap_or_default();
            Finding { objects, advice, ..Finding::new(code, severity, message) }
        })
        .boxed()
}

fn cause() -> Any<Cause> {
    (text(), list(advice()), any::<[bool; 2]>())
        .prop_map(|(text, advice, [is_final, in_use])| Cause {
            text,
            advice,
            is_final,
            in_use,
            // The others are not read back.
            ..Cause::default()
        })
        .boxed()
}

fn trouble() -> Any<ModuleTrouble> {
    use ModuleTrouble as T;
    prop_oneof![
        text().prop_map(|by| T::Denied { by }),
        (text(), text()).prop_map(|(kernel, looked_in)| T::NotBuilt { kernel, looked_in }),
        (text(), text()).prop_map(|(command, by)| T::InstallOverride { command, by }),
        text().prop_map(|said| T::SignatureRefused { said }),
        text().prop_map(|said| T::SymbolMismatch { said }),
        text().prop_map(|said| T::DependencyInitializing { said }),
        text().prop_map(|said| T::OutOfMemory { said }),
        any::<u32>().prop_map(|pid| T::Stuck { pid }),
        text().prop_map(|said| T::Other { said: said.into() }),
    ]
    .boxed()
}

fn module_report() -> Any<ModuleReport> {
    let missing = trouble().prop_map(|trouble| ModuleOutcome::Missing { trouble });
    let outcome = prop_oneof![
        Just(ModuleOutcome::AlreadyThere),
        Just(ModuleOutcome::Loaded),
        Just(ModuleOutcome::NotNeeded),
        missing,
    ];
    (module(), outcome).prop_map(|(name, outcome)| ModuleReport { name, outcome }).boxed()
}

fn step_report() -> Any<StepReport> {
    let step = prop_oneof![
        list(module()).prop_map(|modules| Step::LoadModules { modules }),
        module().prop_map(|module| Step::LoadModule { module }),
        (pci(), text()).prop_map(|(pci, modalias)| Step::LoadDriver { pci, modalias }),
        (pci(), module()).prop_map(|(pci, module)| Step::LoadRdmaHalf { pci, module }),
        select(vec![NetnsMode::Exclusive, NetnsMode::Shared])
            .prop_map(|mode| Step::NetnsMode { mode }),
        (pci(), port(), select(vec![PortType::Ib, PortType::Eth]))
            .prop_map(|(pci, port, of)| Step::PortTypes { pci, types: vec![(port, of)] }),
        (pci(), rdma()).prop_map(|(pci, name)| Step::NameRdma { pci, name }),
        (rdma(), netdev()).prop_map(|(name, netdev)| Step::CreateRxe { name, netdev }),
        (netdev(), any::<u32>()).prop_map(|(netdev, ifindex)| Step::Configure { netdev, ifindex }),
    ];
    (step, moment(), of(any::<u64>()), of(said()))
        .prop_map(|(step, started_usec, took_usec, failure)| StepReport {
            step,
            started_usec,
            took_usec,
            failure,
        })
        .boxed()
}

fn port_report() -> Any<PortReport> {
    (progress(), any::<bool>(), of(rung()), of(cause()), any::<u64>())
        .prop_map(|(progress, ready, missing, cause, waited_usec)| PortReport {
            progress,
            ready,
            missing,
            cause,
            waited_usec,
        })
        .boxed()
}

fn rxe() -> Any<RxeReport> {
    let state = prop_oneof![
        Just(RxeState::Present),
        Just(RxeState::NoNetdev),
        of(netdev()).prop_map(|by| RxeState::NameTaken { by }),
        rdma().prop_map(|by| RxeState::NetdevTaken { by }),
    ];
    (rdma(), of(netdev()), state, of(text()))
        .prop_map(|(name, netdev, state, reason)| RxeReport { name, netdev, state, reason })
        .boxed()
}

fn left_out() -> Any<LeftOut> {
    let reason = prop_oneof![
        Just(NotExpected::NvSwitchManagement),
        Just(NotExpected::NotListed),
        text().prop_map(|by| NotExpected::Ignored { by }),
        text().prop_map(|driver| NotExpected::HandedOver { driver }),
        text().prop_map(|driver| NotExpected::DriverOverride { driver }),
        pci().prop_map(|physfn| NotExpected::VfOfThisHost { physfn }),
        (module(), text()).prop_map(|(module, by)| NotExpected::DriverDenied { module, by }),
    ];
    (pci(), reason).prop_map(|(pci, reason)| LeftOut { pci, reason }).boxed()
}

fn timeline_entry() -> Any<TimelineEntry> {
    let climbed = (text(), of(port()), rung()).prop_map(|(expected, port, rung)| Climbed {
        expected: expected.into(),
        port,
        rung,
    });
    (moment(), text(), of(climbed))
        .prop_map(|(usec, text, climbed)| TimelineEntry { usec, text, climbed })
        .boxed()
}

fn unresolved() -> Any<Unresolved> {
    (text(), text(), of(pci()), list(finding()))
        .prop_map(|(which, origin, pci, errors)| Unresolved { which, origin, pci, errors })
        .boxed()
}

fn boot_report() -> Any<BootReport> {
    let verdict = select(Verdict::ALL);
    let outcome = (pci(), any::<u8>(), text(), text());
    let outcome = outcome.prop_map(|(pf, exit_code, headline, said)| {
        let report = serde_json::json!({ "said": said });
        Outcome { pf, exit_code, headline, report }
    });
    let head = (version(), text(), any::<[u64; 7]>(), any::<u32>(), verdict);
    let done = (list(module_report()), list(step_report()), list(port_report()));
    let pfs = (list(outcome), list(unresolved()), list(left_out()), list(rxe()));
    (head, done, pfs, list(timeline_entry()))
        .prop_map(|(head, done, pfs, timeline)| {
            let (version, kernel, times, forks, verdict) = head;
            let (modules, steps, ports) = done;
            let (pfs, unresolved_pfs, left_out, rxe) = pfs;
            BootReport {
                configuration: Vec::new(),
                version,
                kernel,
                started_usec: at(times[0]),
                finished_usec: at(times[1]),
                cpu_usec: times[2],
                cpu_before_usec: times[3],
                peak_memory_kib: times[4],
                forks,
                timeout_sec: times[5],
                adapter_timeout_sec: times[6],
                verdict,
                modules,
                steps,
                ports,
                pfs,
                unresolved_pfs,
                rxe,
                left_out,
                // They are not read back.
                problems: Vec::new(),
                timeline,
            }
        })
        .boxed()
}

fn iface_report() -> Any<IfaceReport> {
    let mode = || select(vec![Mode::Datagram, Mode::Connected]);
    let pkey = || (1..0x7fff_u16).prop_map(|key| PKey::new(key).expect("a P_Key"));
    let creator = (text(), text()).prop_map(|(stack, file)| ChildCreator { stack, file });
    let child = (pkey(), of(netdev()), of(creator))
        .prop_map(|(pkey, name, created_by)| WantedChild { pkey, name, created_by });
    let wanted = (of(mode()), of(any::<u32>()), of(any::<bool>()), list(child));
    let more = (of(any::<u32>()), of(any::<u32>()), of(netdev()), texts());
    let wanted = (wanted, more).prop_map(|((mode, mtu, umcast, partitions), more)| {
        let (receive_queue, send_queue, name, origins) = more;
        WantedInterface { mode, mtu, umcast, partitions, receive_queue, send_queue, name, origins }
    });
    let step = prop_oneof![
        (netdev(), of(any::<u32>())).prop_map(|(to, aside)| IfaceStep::Rename { to, aside }),
        mode().prop_map(|mode| IfaceStep::SetMode { mode }),
        any::<u32>().prop_map(|mtu| IfaceStep::SetMtu { mtu }),
        any::<bool>().prop_map(|umcast| IfaceStep::SetUmcast { umcast }),
        (pkey(), netdev()).prop_map(|(pkey, name)| IfaceStep::AddChild { pkey, name }),
    ]
    .boxed();
    let used = (text(), text()).prop_map(|(netdev, what)| Use::Network { netdev, what });
    let deferred =
        (list(step.clone()), list(used)).prop_map(|(steps, uses)| DeferredSettings { steps, uses });
    let step = (step, any::<u64>(), of(said()))
        .prop_map(|(step, took_usec, failure)| IfaceStepReport { step, took_usec, failure });
    let bring_up = {
        use BringUp::{Disappeared, Failed, Left, Nobody, NotAsked, Pending, Up, Waiting};
        select(vec![NotAsked, Pending, Left, Up, Waiting, Nobody, Failed, Disappeared])
    };
    let head = (version(), text(), any::<[u64; 4]>(), any::<(u32, bool, u8)>(), text());
    let end = (of(any::<u32>()), any::<[bool; 3]>(), texts(), bring_up);
    (head, wanted, list(step), of(deferred), end)
        .prop_map(|(head, wanted, steps, deferred, end)| {
            let (version, netdev, times, (ifindex, configured, exit_code), asked_by) = head;
            let (mtu_asked, [mlnx_interface_mgr_pending, rtnl_held, was_set], failures, bring_up) =
                end;
            IfaceReport {
                version,
                netdev,
                ifindex,
                started_usec: at(times[0]),
                settled_usec: at(times[1]),
                decided_usec: at(times[2]),
                finished_usec: at(times[3]),
                configured,
                wanted,
                steps,
                was_set,
                deferred,
                mtu_asked,
                mlnx_interface_mgr_pending,
                rtnl_held,
                failures,
                asked_by,
                // They are not read back.
                notes: Vec::new(),
                stacks: Vec::new(),
                decision: None,
                bring_up,
                exit_code,
            }
        })
        .boxed()
}

fn guests_report() -> Any<GuestsReport> {
    use GuestPhase as G;
    let phase = prop_oneof![
        Just(G::Idle),
        moment().prop_map(|since_usec| G::Starting { since_usec }),
        text().prop_map(|why| G::Issued { why }),
        any::<bool>().prop_map(|already| G::Up { already }),
        text().prop_map(|why| G::Failed { why }),
    ];
    let kind = select(vec![GuestKind::Domain, GuestKind::Unit]);
    let guest = (text(), kind, of(text()), phase, of(text()), text());
    let guest = (guest, of(moment())).prop_map(|(guest, up_usec)| {
        let (name, kind, uuid, phase, waits, origin) = guest;
        // They are not read back.
        let vfs = None;
        GuestReport { name, kind, uuid, phase, waits, vfs, up_usec, origin }
    });
    let times = (moment(), of(moment()), of(moment()));
    (version(), times, list(guest), texts())
        .prop_map(|(version, times, guests, would_start)| {
            let (started_usec, ready_usec, finished_usec) = times;
            GuestsReport {
                version,
                started_usec,
                ready_usec,
                finished_usec,
                would_start,
                guests,
                // The others are not read back.
                ..GuestsReport::default()
            }
        })
        .boxed()
}

fn online_report() -> Any<OnlineReport> {
    let verdict = select(Verdict::ALL);
    // Of `link` and `active` a port lacks the state, not the rung.
    let below = rung().prop_filter("below link", |r| *r < Rung::Link).prop_map(Lack::Rung);
    let own =
        [Lack::Answer, Lack::Link, Lack::Active, Lack::Up, Lack::Carrier, Lack::Gid, Lack::Address];
    let lack = prop_oneof![below, select(own.to_vec())];
    let state = select(vec![LinkState::Down, LinkState::Init, LinkState::Active]);
    let physical = select(vec![PhysicalState::Polling, PhysicalState::LinkUp]);
    let rate = select(vec!["400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)"]);
    let rate = of(rate.prop_map(|rate| rate.parse::<Rate>().expect("rate")));
    let degraded = rate.clone().prop_map(|is| {
        let pcie = |is: &Option<_>| is.is_none().then(|| PcieSpeed::from_sysfs("16.0 GT/s PCIe"));
        vec![
            Degraded::Width { is: is.as_ref().map(|rate| rate.width), minimum: 12 },
            Degraded::Speed {
                is: is.as_ref().map(|rate| rate.speed.clone()),
                minimum: LinkSpeed::Xdr,
            },
            Degraded::PcieWidth { is: None, minimum: "x16".parse().expect("width") },
            Degraded::PcieSpeed {
                is: pcie(&is).flatten(),
                minimum: "32 GT/s".parse().expect("speed"),
            },
            Degraded::Rate { is, minimum: "800 Gb/s".parse().expect("rate") },
        ]
    });
    let link = (of(any::<u32>()), of(state), of(physical), texts(), (rate, degraded));
    let why = (of(lack), of(cause()), of(any::<u64>()));
    let port = (progress(), any::<bool>(), link, why).prop_map(|(progress, online, link, why)| {
        let (lid, state, physical, addresses, (rate, degraded)) = link;
        let (lack, cause, for_sec) = why;
        OnlinePort {
            progress,
            online,
            lid,
            state,
            physical,
            rate,
            degraded,
            addresses,
            lack,
            cause,
            for_sec,
        }
    });
    let goal = (rung(), any::<bool>(), any::<u64>()).prop_map(|(rung, address, stable_sec)| Goal {
        rung,
        address,
        stable_sec,
    });
    (version(), any::<[u64; 3]>(), goal, verdict, list(port))
        .prop_map(|(version, times, goal, verdict, ports)| OnlineReport {
            configuration: Vec::new(),
            version,
            started_usec: at(times[0]),
            finished_usec: at(times[1]),
            timeout_sec: times[2],
            goal,
            verdict,
            ports,
            // They are not read back.
            problems: Vec::new(),
        })
        .boxed()
}

/// A report as it comes back from the file that it was written to.
fn back<T: Serialize + DeserializeOwned>(told: &Report<&T>) -> T {
    let json = told.to_json().expect("JSON");
    read(&json).unwrap_or_else(|e| panic!("{e}: {json}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn of_boot(report in boot_report()) {
        prop_assert_eq!(back(&report.to_report()), report);
    }

    #[test]
    fn of_iface(report in iface_report()) {
        prop_assert_eq!(back(&report.to_report()), report);
    }

    #[test]
    fn of_guests(report in guests_report()) {
        prop_assert_eq!(back(&report.to_report()), report);
    }

    #[test]
    fn of_wait_online(report in online_report()) {
        prop_assert_eq!(back(&report.to_report()), report);
    }
}
