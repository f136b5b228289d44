use super::vm_before_vf::refused;
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::AutostartGuestOnVf,
    meaning: "libvirt starts a guest by autostart that needs a VF",
    page: "\
The guest has autostart and a VF. libvirtd starts the guest as soon as libvirtd itself
runs, which is not ordered after the creation of the VFs: in some boots the VF is
present, in others it is absent.

Remedy: list the guest as [[guest]] in ibprov.toml, so that ibprov-guests.service
starts it when its VF is ready, and disable libvirt's autostart:

    virsh autostart --disable GUEST

Or order libvirtd.service (virtqemud.service) after ibprov.service with a drop-in.",
    needles: &[&["Failed to autostart", "autostart"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> =
        boot.events.iter().filter(|e| e.text.contains("utostart") && refused(e)).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    vec![
        Finding::new(
            RULE.code,
            Severity::Warning,
            Confidence::High,
            "libvirt started a guest by autostart before its VF was present.",
        )
        .quoting(seen::quotes(boot, lines))
        .permanent(["virsh autostart --disable GUEST, and list it in ibprov.toml"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn libvirt_starts_it_by_itself() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "libvirtd[9]: Failed to autostart VM 'vm1': Device 0000:81:00.2 not found: could not access /sys/bus/pci/devices/0000:81:00.2/config: No such file or directory",
                ]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(
                &RULE,
                &["libvirtd[9]: Failed to autostart VM 'vm1': Cannot access storage file",]
            ),
            None
        );
    }
}
