use super::{Advice, Boot, Code, Confidence, Finding, Judge, Kind, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::OpenibdDisabled,
    meaning: "openibd is not enabled, so that the IPoIB modules are loaded too late or never",
    page: "\
openibd loads ib_ipoib and is ordered before the network service. If openibd is not
enabled, another process loads ib_ipoib later, often more than a minute later, and the
network service finds no ib0. mlnx_interface_mgr then notices the netdev, considers the
system to be booting, and leaves the interface to the network service, which has already
finished: the interface stays down until an administrator runs ifup.

Symptoms: \"Device ib0 does not seem to be present\" from the network service,
later the lines of the netdev, and no line of openibd in between; or
`systemctl status openibd` reports disabled.

Remedy: install and enable ibprov, or enable openibd:

    systemctl enable openibd",
    needles: &[&["OS is booting, will not run ifup", "Setting up Mellanox network interface"]],
    judge: Judge::Boot(judge),
};

fn advice() -> [Advice; 3] {
    [
        Advice::look("systemctl is-enabled openibd.service"),
        Advice::now("run ifup for the interface, or restart the network service"),
        Advice::permanent("run systemctl enable ibprov.service (or openibd.service), then reboot"),
    ]
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let unit = boot.state.unit("openibd.service").filter(|u| {
        (u.enabled == "disabled" || u.enabled == "masked")
            && (u.active.is_empty() || u.active.starts_with("inactive"))
    });
    let typed = boot.state.commands.iter().find(|c| {
        c.text.contains("is-enabled openibd")
            && (c.answer() == "disabled" || c.answer() == "masked")
    });
    let late = seen::late(boot).filter(|l| !l.recovered);
    let ran = boot.events.iter().any(|e| {
        &*e.program == "openibd"
            || matches!(&e.kind, Kind::UnitStarting(u) | Kind::UnitStarted(u) if u.contains("openibd"))
    });
    let ofed = boot.events.iter().any(|e| e.program.starts_with("mlnx_interface_mgr"));
    let mut quotes = Vec::new();
    if let Some(unit) = unit {
        quotes.push(boot.quote_at(unit.origin, "", &unit.text));
    }
    if let Some(command) = typed {
        quotes.push(boot.quote_at(command.origin, "", &command.text));
    }
    let shown = !quotes.is_empty();
    let Some(late) = late else {
        if !shown || seen::sign_of_life(boot).is_some() {
            return Vec::new();
        }
        let without = boot.state.netdevs.iter().all(|n| !n.infiniband);
        let finding = Finding::new(
            RULE.code,
            if without { Severity::Error } else { Severity::Warning },
            Confidence::Medium,
            "openibd.service is not enabled, so that no unit loads the IPoIB modules before the network starts.",
        ).about("openibd.service");
        return vec![finding.quoting(quotes).steps(advice())];
    };
    if ran || !(ofed || shown) {
        return Vec::new();
    }
    quotes.extend(seen::quotes(boot, [late.asked, late.made]));
    quotes.extend(seen::quotes(boot, boot.with("OS is booting, will not run ifup")));
    let gap = late
        .made
        .when
        .since(&late.asked.when)
        .map_or(String::new(), |usec| format!(", {} s too late", usec / 1_000_000));
    let netdev = late.netdev;
    let up = boot.events.iter().find(|e| {
        e.origin > late.made.origin
            && matches!(&e.kind, Kind::InterfaceAsked { name, worked: Some(true) } if &**name == netdev)
    });
    let until = up.map_or(String::new(), |e| format!(" until {}", e.when.stamp));
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            if shown { Confidence::High } else { Confidence::Medium },
            format!(
                "openibd did not run, so that {netdev} was created only at {}{gap}, after the network service had looked for it at {}.",
                late.made.when.stamp, late.asked.when.stamp
            ),
        ).about("openibd.service")
        .chain([
            "openibd did not run, probably because it is not enabled: this boot has no line of it".to_owned(),
            format!("at {} the network service looked for {netdev}, which did not exist", late.asked.when.stamp),
            format!("another process loaded ib_ipoib, which created {netdev} at {}", late.made.when.stamp),
            "mlnx_interface_mgr considers the system to be booting and leaves the interface to the network service".to_owned(),
            format!("no unit tried again: {netdev} stayed down{until}"),
        ])
        .quoting(quotes)
        .steps(advice()),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{GOOD, LATE, RECOVERED, severity};
    use super::{RULE, Severity};

    #[test]
    fn a_netdev_that_comes_after_the_network_without_openibd() {
        assert_eq!(severity(&RULE, LATE), Some(Severity::Error));
        assert_eq!(severity(&RULE, RECOVERED), None);
        assert_eq!(severity(&RULE, GOOD), None);
        assert_eq!(
            severity(
                &RULE,
                &[
                    "* openibd.service - openibd - configure Mellanox devices",
                    "   Loaded: loaded (/usr/lib/systemd/system/openibd.service; disabled; vendor preset: enabled)",
                    "   Active: inactive (dead)",
                ]
            ),
            Some(Severity::Error)
        );
    }
}
