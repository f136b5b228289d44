//! Guests that libvirt starts by itself and that are given a VF.

use crate::check::evidence::Host;
use crate::graph::consumers;
use crate::model::advice::ToDo;
use crate::model::common::{Code, listed};
use crate::model::finding::{Confidence, Finding, Severity};
use crate::names::sh;
use crate::observe::autostart::{AutostartGuest, START_NOBODY};

/// What starts guests that are given a VF without a look at it.
pub(super) fn judge(host: &Host) -> Vec<Finding> {
    by_autostart(host).into_iter().chain(by_libvirt_guests(host)).collect()
}

const LEAVE: &str = "leave the start to ibprov-guests.service, which waits for the VFs";

/// libvirt-guests.service starts who ran at shutdown, whatever became of the VF. An
/// order after the ports helps nothing: ibprov-guests.service is ready while guests
/// still wait for theirs.
fn by_libvirt_guests(host: &Host) -> Option<Finding> {
    let given: Vec<_> =
        host.resumed.domains.iter().filter(|guest| !guest.functions.is_empty()).collect();
    if given.is_empty() {
        return None;
    }
    let names: Vec<&str> = given.iter().map(|g| g.name.as_str()).collect();
    let told = format!(
        "libvirt-guests.service starts {} again, which ran at shutdown, although its PCI function may not be ready.",
        names.join(", ")
    );
    let quote = |guest: &&AutostartGuest| {
        let (name, functions) = (&guest.name, listed(&guest.functions));
        host.quote(format!("/var/lib/libvirt/libvirt-guests: {name} is given {functions}"))
    };
    Some(
        Finding::of(Code::AutostartGuestOnVf, Severity::Warning, Confidence::High, told)
            .about("libvirt-guests.service")
            .chain(["With ON_BOOT=start, the default, libvirt-guests.service starts every guest that it has shut down."])
            .quoting(given.iter().map(quote))
            .permanent([
                format!("write {START_NOBODY} to {}", host.resumed.file),
                LEAVE.into(),
            ]),
    )
}

/// libvirt starts such a guest as soon as it runs, whatever became of the VF.
fn by_autostart(host: &Host) -> Option<Finding> {
    let transaction = host.graph.transaction();
    let daemon = ["libvirtd.service", "virtqemud.service"].into_iter().find(|name| {
        let sockets = name.replace(".service", ".socket");
        transaction.contains(host.graph.resolve(name)) || transaction.contains(sockets.as_str())
    });
    let daemon = daemon.filter(|_| !host.autostart.is_empty())?;
    let provider = consumers::provider(&host.graph).map(|u| u.name.as_str());
    if provider.is_some_and(|p| host.graph.chain(p, daemon, &transaction).is_some()) {
        return None;
    }
    let names: Vec<&str> = host.autostart.iter().map(|g| g.name.as_str()).collect();
    let words: Vec<_> = names.iter().map(|name| sh(name)).collect();
    let told = format!(
        "libvirt starts {} by autostart, although its PCI function may not be ready.",
        names.join(", ")
    );
    let quote = |guest: &AutostartGuest| {
        let functions = listed(&guest.functions);
        host.quote(format!("{}: {} is given {functions}", guest.file, guest.name))
    };
    let early =
        format!("{daemon} starts every guest that has autostart as soon as {daemon} itself runs.");
    Some(
        Finding::of(Code::AutostartGuestOnVf, Severity::Warning, Confidence::High, told)
            .about_all(names.first())
            .chain([
                early,
                "No unit that creates the VFs and sets their GUIDs is ordered before it."
                    .to_owned(),
            ])
            .quoting(host.autostart.iter().map(quote))
            .permanent([
                ToDo::run(format!(
                    "virsh autostart --disable {}",
                    words.join("; virsh autostart --disable ")
                )),
                LEAVE.into(),
            ]),
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::host;
    use super::*;
    use crate::observe::autostart::Resumed;

    #[test]
    fn a_guest_that_ran_at_shutdown_is_a_warning_if_it_has_a_vf() {
        let mut host = host("goal.target wants ibprov.service\n", &[], &[]);
        let (name, path) = ("n1".into(), "/etc/libvirt/qemu/n1.xml".into());
        let mut domain = AutostartGuest { name, functions: Vec::new(), file: path };
        let file = "/etc/default/libvirt-guests".to_owned();
        host.resumed = Resumed { domains: vec![domain.clone()], file: file.clone() };
        assert_eq!(judge(&host), []);
        domain.functions.push("0000:4b:00.3".parse().expect("address"));
        host.resumed = Resumed { domains: vec![domain], file };
        let [finding] = &judge(&host)[..] else { panic!("{:?}", judge(&host)) };
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.advice[0]
                .step
                .to_string()
                .contains("ON_BOOT=ignore to /etc/default/libvirt-guests")
        );
    }

    #[test]
    fn a_guest_with_autostart_is_a_warning_unless_libvirt_comes_after_the_ports() {
        let lines = "goal.target wants libvirtd.service ibprov.service\n";
        let guest = AutostartGuest {
            name: "n1".into(),
            functions: vec!["0000:4b:00.3".parse().expect("address")],
            file: "/etc/libvirt/qemu/autostart/n1.xml".into(),
        };
        let mut bare = host(lines, &[], &[]);
        assert_eq!(judge(&bare), []);
        bare.autostart.push(guest.clone());
        assert_eq!(judge(&bare).len(), 1);
        let ordered = format!("{lines}ibprov.service before libvirtd.service\n");
        let mut ordered = host(&ordered, &[], &[]);
        ordered.autostart.push(guest);
        assert_eq!(judge(&ordered), []);
    }
}
