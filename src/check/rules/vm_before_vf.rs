use super::super::pattern::caught_one;
use super::{Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::VmBeforeVf,
    meaning: "a guest or another consumer used a VF before it was ready",
    page: "\
libvirt starts a guest whose VF does not exist yet, is not yet bound to vfio-pci, or is
still being set up: the start fails, and nothing tries again. The VFs are created by a
script or service that is not ordered before libvirt, or that takes longer than the
guests wait.

Symptoms: \"Device 0000:81:00.2 not found: could not access .../config: No such file or
directory\", \"host device ... not found\", \"device not found\" for a VF's address that
appears later in the log, or never. \"Unable to configure VF 2 of PF 'ens1f0' because
the PF is not online\": libvirt sets MAC address and VLAN of a VF through its PF's
netdev, which has to be up for that.

Remedy: order libvirtd (virtqemud) after the service that creates the VFs, with a
drop-in After=ibprov.service, or let ibprov-guests.service start the guests.",
    needles: &[&[
        "no such host device",
        "could not access /sys/bus/pci/devices",
        "Node device not found",
        "host device not found",
        "Failed to autostart",
        "no such device in the host",
        "vfio: error",
        "error getting device from group",
        "vfio error",
        "can't find device",
        "not found: could not access",
        "Failed to allocate PCI device list",
        "is in use by driver",
        "PCI device 0000",
        "Unable to read from '/sys/bus/pci/devices",
        "no node device with matching name",
        "Cannot find VF",
        "no free VF",
        "couldn't find VF",
        "Failed to start domain",
        "PF is not ready - Deferring probe",
        "has no ready virtual function",
        "Could not find virtual function",
        "because the PF is not online",
    ]],
    judge: Judge::Boot(judge),
};

/// A guest was refused for want of a device.
pub(super) fn refused(event: &Event) -> bool {
    let t = &event.text;
    let pci = t.contains("/sys/bus/pci/devices/")
        || t.contains("PCI device")
        || t.contains("Device 0000:")
        || t.contains("pci_0000_");
    pci && [
        "not found: could not access",
        "no node device with matching name",
        "Node device not found",
        "could not access /sys/bus/pci/devices",
        "Unable to read from '/sys/bus/pci/devices",
        "does not exist",
    ]
    .iter()
    .any(|w| t.contains(w))
        // ENODEV: vfio-pci does not have it. Other answers are not of being early.
        || t.contains("vfio")
            && t.contains("error getting device from group")
            && t.contains("No such device")
        || t.contains("no such host device")
        || t.contains("Cannot find VF")
}

/// libvirt gives a VF a MAC address or VLAN through its PF's netdev, which must be up
/// for that (`virNetDevReadNetConfig()`).
fn offline(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot.with("because the PF is not online").collect();
    let Some(first) = lines.first() else { return Vec::new() };
    let pf = caught_one(&first.text, "of PF '{}'").unwrap_or("its PF").to_owned();
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::High,
            format!("A guest was started before {pf}, the netdev of the PF of its VF, was up."),
        ).about(&pf)
        .quoting(seen::quotes(boot, lines))
        .now([format!("ip link set {pf} up; virsh start GUEST")]).permanent([format!("configure {pf} to be up at boot, if necessary without an address, and order libvirtd after it")]),
    ]
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot.events.iter().filter(|e| refused(e)).collect();
    let Some(first) = lines.first() else { return offline(boot) };
    let groups = seen::by_function(lines.iter().copied());
    let addresses: Vec<&str> = groups.into_iter().filter_map(|(of, _)| of).collect();
    let later = boot.events.iter().find(|e| {
        e.origin > first.origin && e.from_kernel() && addresses.iter().any(|a| e.text.contains(a))
    });
    let told = match &addresses[..] {
        [] => "A guest was started before its VF was present.".to_owned(),
        [one] => format!("A guest was started before {one} was present."),
        several => {
            format!("Guests were started before {} were present.", seen::all_of("VF", several))
        }
    };
    let confidence = if later.is_some() { Confidence::High } else { Confidence::Medium };
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            confidence,
            told,
        )
        .about_if(seen::joined(&addresses))
        .quoting(seen::quotes(boot, lines))
        .quoting(seen::quotes(boot, later))
        .now(["virsh start GUEST, now that the VF is present"]).permanent(["add a drop-in with After=ibprov.service for libvirtd.service (virtqemud.service), or list the guest in ibprov.toml"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_device_that_is_not_there_yet() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "libvirtd[9]: Device 0000:81:00.2 not found: could not access /sys/bus/pci/devices/0000:81:00.2/config: No such file or directory",
                ]
            ),
            Some(Severity::Error)
        );
        for (answer, told) in
            [("No such device", Some(Severity::Error)), ("Invalid argument", None)]
        {
            let line =
                format!("qemu: vfio 0000:3d:00.2: error getting device from group 49: {answer}");
            assert_eq!(severity(&RULE, &[&line]), told, "{line}");
        }
        assert_eq!(severity(&RULE, &["libvirtd[9]: Node device driver is not loaded",]), None);
    }

    #[test]
    fn a_pf_whose_netdev_is_down_refuses_the_guest() {
        let line = "libvirtd[9]: internal error: Unable to configure VF 2 of PF 'ens1f0' because the PF is not online. Please change host network config to put the PF online.";
        assert_eq!(severity(&RULE, &[line]), Some(Severity::Error));
    }
}
