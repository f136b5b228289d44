use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::super::domain::Domains;
use super::super::fixtures::{after, guest, guests, listed};
use super::super::order::GuestWait;
use super::*;
use crate::config::guest::{Guest, Needs};
use crate::host::testing;
use crate::names::{Moment, OnFailure, VfName, at};
use crate::workers::Client;

const PF: &str = "sys/bus/pci/devices/0000:4b:00.0";
const OTHER_PF: &str = "sys/bus/pci/devices/0000:4c:00.0";
/// When the service begins.
const BEGIN: Moment = at(10_000_000);

const MSEC: Duration = Duration::from_millis(1);

/// Two PFs with VFs at vfio-pci, two of the first and one of the other, and guests. The second
/// VF is not right.
struct Host {
    dir: tempfile::TempDir,
    root: Root,
    config: Config,
}

impl Host {
    fn new(list: Vec<Guest>) -> Self {
        let (mut files, mut links) = (BTreeMap::new(), BTreeMap::new());
        for (pf, vfs) in [(PF, ["Follow\n", "Down\n"].as_slice()), (OTHER_PF, &["Follow\n"])] {
            for (name, text) in [
                ("class", "0x020700\n"),
                ("vendor", "0x15b3\n"),
                ("device", "0x101b\n"),
                ("infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"),
            ] {
                files.insert(format!("{pf}/{name}"), text.to_owned());
            }
            links.insert(format!("{pf}/driver"), "../../drivers/mlx5_core".to_owned());
            for (index, policy) in vfs.iter().enumerate() {
                let sriov = format!("{pf}/sriov/{index}");
                files.insert(format!("{sriov}/node"), format!("02:00:00:00:00:12:00:0{index}\n"));
                files.insert(format!("{sriov}/port"), format!("02:00:00:00:00:12:01:0{index}\n"));
                files.insert(format!("{sriov}/policy"), (*policy).to_owned());
                let vf = format!("{}{}", pf.trim_end_matches('0'), index + 1);
                links.insert(format!("{vf}/driver"), "../../drivers/vfio-pci".to_owned());
                links
                    .insert(format!("{pf}/virtfn{index}"), vf.replace("sys/bus/pci/devices", ".."));
            }
        }
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), &**text)).collect();
        let links: Vec<_> = links.iter().map(|(path, to)| (path.as_str(), to.as_str())).collect();
        let dir = testing::tree(&files, &links);
        let root = Root::copy_at(dir.path()).expect("root");
        Self { dir, root, config: Config { guests: guests(list, 4), ..Config::default() } }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(PF).join(path)
    }

    /// The service, to which libvirt has told its domains and which cannot start any.
    fn service(&self) -> Service<'_> {
        let telling = GuestsReporter::new(GuestsReport::new(BEGIN), true);
        let mut service = Service::new(&self.config, &self.root, false, None, telling, BEGIN);
        service.tasks = Tasks::new(None);
        let all: String =
            (0_u8..).zip(&self.config.guests.list).fold(String::new(), |lines, (number, guest)| {
                lines + &listed(guest.what.name(), number).0
            });
        service.members.learn(&Domains::parse(&all, "", ""), BEGIN);
        service
    }
}

/// A domain with these VFs of the PF.
fn domain(name: &str, vfs: &[u16]) -> Guest {
    let vf = |index: &u16| format!("0000:4b:00.0/{index}").parse::<VfName>().expect("name");
    Guest { vfs: Needs::These(vfs.iter().map(vf).collect()), ..guest(name) }
}

fn phase<'a>(service: &'a Service<'_>, position: usize) -> &'a Phase {
    service.members.get(GuestIndex::new(position)).expect("guest").phase()
}

/// It was started, which has failed here.
fn is_tried(service: &Service<'_>, position: usize) -> bool {
    matches!(phase(service, position), Phase::Failed { why } if why.contains("virsh is not installed"))
}

fn something() -> Happened {
    Happened { links: true, ..Happened::default() }
}

#[test]
fn a_guest_is_started_on_what_its_vfs_still_are_and_not_on_what_they_were() {
    let host = Host::new(vec![domain("vm", &[0])]);
    let mut service = host.service();
    assert!(!service.turn(BEGIN) && service.poller.reader.is_looking());
    service.turn(BEGIN + MSEC);
    assert!(is_tried(&service, 0), "{:?}", phase(&service, 0));

    for lost in ["../0000:4b:00.1/driver", "virtfn0", "driver"] {
        let host = Host::new(vec![domain("vm", &[0])]);
        let mut service = host.service();
        service.turn(BEGIN);
        // udev has much to do, and its event comes later.
        std::fs::remove_file(host.path(lost)).expect("removed");
        service.turn(BEGIN + MSEC);
        assert_eq!(phase(&service, 0), &Phase::Idle, "{lost}");
        let due = service.wait_until(BEGIN + MSEC);
        assert!(
            due <= BEGIN + Duration::from_millis(10),
            "{lost}: the next look is due at {due:?}"
        );
        service.turn(due);
        service.turn(due + MSEC);
        let waits = service.members.waiting(GuestIndex::new(0));
        assert!(matches!(waits, Some(GuestWait::Vfs(_))), "{lost}: {waits:?}");
    }
}

#[test]
fn who_follows_a_guest_that_fails_with_the_first_pass_starts_then() {
    let wrong = Guest { on_failure: OnFailure::Report, ..domain("wrong", &[1]) };
    let next = Guest { vfs: Needs::These(Vec::new()), ..after("next", &[0]) };
    let host = Host::new(vec![wrong, next]);
    let mut service = host.service();
    service.turn(BEGIN);
    let now = BEGIN + MSEC;
    assert!(!service.turn(now) && service.first_pass_until().is_none());
    assert!(matches!(phase(&service, 0), Phase::Failed { .. }));
    assert_eq!(phase(&service, 1), &Phase::Idle);
    assert!(service.wait_until(now) <= now, "after {:?}", service.wait_until(now).since(now));
    service.turn(now);
    assert!(is_tried(&service, 1), "{:?}", phase(&service, 1));
}

#[test]
fn who_follows_a_guest_that_cannot_be_started_is_next_at_once() {
    let next = Guest { vfs: Needs::These(Vec::new()), ..after("next", &[0]) };
    let host = Host::new(vec![domain("vm", &[]), next]);
    let mut service = host.service();
    service.turn(BEGIN);
    assert!(is_tried(&service, 0));
    assert!(
        service.wait_until(BEGIN) <= BEGIN,
        "after {:?}",
        service.wait_until(BEGIN).since(BEGIN)
    );

    // libvirt does not tell the devices of the first, and what was seen of the next is stale.
    let next = Guest { after: vec![GuestIndex::new(0)], ..domain("next", &[0]) };
    let host = Host::new(vec![guest("vm"), next]);
    let mut service = host.service();
    service
        .poller
        .begin(service.members.needs(GuestState::is_idle), BEGIN - Duration::from_secs(2));
    service.see(BEGIN - Duration::from_secs(2));
    service.ask_for_devices();
    service.turn(BEGIN);
    assert!(matches!(phase(&service, 0), Phase::Failed { .. }));
    assert!(
        service.wait_until(BEGIN) <= BEGIN,
        "after {:?}",
        service.wait_until(BEGIN).since(BEGIN)
    );
}

#[test]
fn the_run_ends_at_once_when_its_last_guest_has_failed() {
    let host = Host::new(vec![guest("vm")]);
    let mut service = host.service();
    service.ask_for_devices();
    assert!(service.turn(BEGIN), "goes on after {:?}", service.wait_until(BEGIN).since(BEGIN));
}

#[test]
fn the_first_pass_ends_on_a_host_where_something_happens_all_the_time() {
    let host = Host::new(vec![domain("vm", &[1])]);
    let mut service = host.service();
    let mut now = BEGIN;
    while service.first_pass_until().is_some() {
        service.turn(now);
        service.hear(&something());
        // A turn takes a little while.
        now = service.wait_until(now).clamp(now + Duration::from_micros(100), now + 2 * MSEC);
        assert!(now < BEGIN + Duration::from_secs(1), "the first pass goes on");
    }
}

#[test]
fn the_first_pass_waits_for_the_look_that_follows_what_was_heard() {
    let host = Host::new(vec![domain("vm", &[1])]);
    let mut service = host.service();
    service.turn(BEGIN);
    service.hear(&something());
    let now = BEGIN + MSEC;
    service.turn(now);
    std::fs::write(host.path("sriov/1/policy"), "Follow\n").expect("written");
    assert!(service.first_pass_until().is_some(), "the VF may have become right meanwhile");
    let now = service.wait_until(now).max(now);
    assert!(now < BEGIN + Duration::from_millis(10), "after the pause");
    service.turn(now);
    assert!(service.first_pass_until().is_some(), "the look is under way");
    service.turn(now + MSEC);
    assert!(is_tried(&service, 0), "{:?}", phase(&service, 0));
}

/// Take turns until then, with an event every 100 ms; returned is how many.
fn turns(service: &mut Service<'_>, now: &mut Moment, until: Moment) -> u64 {
    let mut turns = 0;
    let mut event = *now;
    while *now < until {
        service.turn(*now);
        turns += 1;
        if *now >= event {
            service.hear(&something());
            event = event + 100 * MSEC;
        }
        let soon = *now + Duration::from_micros(100);
        *now = service.wait_until(*now).clamp(soon, event.max(soon));
    }
    turns
}

/// The requests that a PF has got.
fn requests(mut pf: &UnixStream) -> usize {
    let mut text = [0; 4096];
    pf.set_nonblocking(true).expect("socket");
    let got = pf.read(&mut text).unwrap_or_default();
    text[..got].iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn a_pf_that_does_not_answer_is_asked_once_and_holds_up_no_other() {
    let on_silent = Guest {
        vfs: Needs::These(vec!["0000:4c:00.0/0".parse().expect("VF")]),
        ..guest("on-silent")
    };
    let host = Host::new(vec![on_silent, domain("right", &[0]), domain("wrong", &[1])]);
    let mut service = host.service();
    let (ours, silent) = UnixStream::pair().expect("sockets");
    let pf = "0000:4c:00.0".parse().expect("address");
    service.poller.reader.ask_by(pf, Client::over(ours).patient());
    let mut now = BEGIN;
    // While the first look lasts, what it has seen of another PF changes.
    let first = turns(&mut service, &mut now, BEGIN + Duration::from_secs(1));
    assert!(first < 30, "{first} turns in a second");
    std::fs::write(host.path("sriov/0/policy"), "Down\n").expect("written");
    let rest = turns(&mut service, &mut now, BEGIN + Duration::from_secs(8));
    assert!(rest < 7 * 60, "{rest} turns in 7 s");
    assert_eq!(phase(&service, 1), &Phase::Idle, "seen before its VF has changed");
    for (index, position) in [(0, 1), (1, 2)] {
        std::fs::write(host.path(&format!("sriov/{index}/policy")), "Follow\n").expect("written");
        let until = now + Duration::from_millis(500);
        turns(&mut service, &mut now, until);
        assert!(is_tried(&service, position), "{:?}", phase(&service, position));
    }
    let rest = turns(&mut service, &mut now, BEGIN + Duration::from_secs(60));
    assert!(rest < 52 * 60, "{rest} turns in 52 s");
    assert_eq!(phase(&service, 0), &Phase::Idle);
    assert_eq!(requests(&silent), 1, "in a minute");
}

#[test]
fn a_pf_that_answers_late_is_asked_again() {
    let on_silent = Guest {
        vfs: Needs::These(vec!["0000:4c:00.0/0".parse().expect("VF")]),
        ..guest("on-silent")
    };
    let host = Host::new(vec![on_silent]);
    let mut service = host.service();
    let (ours, mut silent) = UnixStream::pair().expect("sockets");
    let pf = "0000:4c:00.0".parse().expect("address");
    service.poller.reader.ask_by(pf, Client::over(ours).patient());
    let mut now = BEGIN;
    turns(&mut service, &mut now, BEGIN + Duration::from_secs(7));
    assert_eq!(requests(&silent), 1);
    let answer = r#"{"number":1,"what":{"Ok":{"administered":[]}}}"#;
    std::io::Write::write_all(&mut silent, format!("{answer}\n").as_bytes()).expect("answered");
    let until = now + Duration::from_millis(500);
    turns(&mut service, &mut now, until);
    assert_eq!(requests(&silent), 1, "once more");
}
