use super::{Boot, Code, Confidence, Event, Finding, Judge, Kind, Rule, Severity, seen};
use crate::graph::consumers;
use crate::names::is_ipoib_name;

pub(super) const RULE: Rule = Rule {
    code: Code::ConsumerBeforeAddress,
    meaning: "a service bound or reached for an address of the fabric before the address existed",
    page: "\
A storage or job service began while the interface of the fabric had no address yet. The
kernel refuses to bind an address that no interface has (EADDRNOTAVAIL, -99), and finds
no way to a target (ENETUNREACH, -101). Many such services try once: the unit is green,
and what it serves is dead until it is restarted.

Symptoms: \"nvmet_rdma: binding CM ID to 10.61.4.3:4420 failed (-99)\", \"svcrdma:
rdma_bind_addr error = -99\", \"nvme1: rdma_resolve_addr failed (-101)\", \"Cannot assign
requested address\" from a service that uses the fabric, and the interface comes later.

Remedy: restart the service, and order it after the ports and the network:

    ibprov consumers --install
    systemctl enable ibprov-wait-online.service",
    needles: &[&[
        "binding CM ID to",
        "rdma_bind_addr",
        "rdma_resolve_addr",
        "Cannot assign requested address",
        "Successfully reconnected",
        // Drivers of protocols over RDMA, whatever they say.
        "nvmet_rdma",
        "nvme_rdma",
        "rpcrdma",
        "svcrdma",
        "ko2iblnd",
        "isert: ",
        "new ctrl: NQN",
    ]],
    judge: Judge::Boot(judge),
};

/// What comes later than this after the failure is no longer the boot, microseconds.
const SOON: i64 = 300_000_000;

/// The module that says in `event` that it cannot bind or reach an address.
fn of_kernel(event: &Event) -> Option<&'static str> {
    let text = &event.text;
    let binds = ["binding CM ID to", "rdma_bind_addr"].iter().any(|w| text.contains(w))
        && text.contains("-99");
    let reaches = text.contains("rdma_resolve_addr")
        && ["-99", "-101"].iter().any(|errno| text.contains(errno));
    if !binds && !reaches {
        return None;
    }
    seen::rdma_module(text).or_else(|| text.starts_with("nvme ").then_some("nvme_rdma"))
}

/// The service known to use the fabric that says in `event` that it cannot bind an address,
/// where a netdev of ours became ready after that.
fn of_service<'a>(boot: &Boot, event: &'a Event) -> Option<&'a str> {
    let is_refused = event.text.contains("Cannot assign requested address");
    consumers::by_name(&event.program).filter(|_| is_refused)?;
    let comes = boot.events.iter().filter(|e| e.origin > event.origin).any(|e| {
        let is_ours = match &e.kind {
            Kind::LinkReady(name) => is_ipoib_name(name),
            Kind::InterfaceAsked { name, worked } => is_ipoib_name(name) && *worked == Some(true),
            _ => e.text.contains("Activation: successful") && seen::ib_netdev_in(&e.text).is_some(),
        };
        is_ours && e.when.since(&event.when).is_none_or(|gap| gap < SOON)
    });
    comes.then_some(&*event.program)
}

/// True if what `event` tells was made good: the service was started again, the initiator
/// has reconnected.
fn is_made_good(boot: &Boot, event: &Event, who: &str) -> bool {
    boot.events.iter().filter(|e| e.origin > event.origin).any(|e| match &e.kind {
        Kind::UnitStarted(unit) => unit.strip_suffix(".service").unwrap_or(unit) == who,
        _ => {
            who == "nvme_rdma"
                && ["Successfully reconnected", "new ctrl: NQN"].iter().any(|w| e.text.contains(w))
        }
    })
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let found = boot
        .events
        .iter()
        .filter_map(|event| Some((event, of_kernel(event).or_else(|| of_service(boot, event))?)));
    let (good, bad): (Vec<_>, Vec<_>) =
        found.partition(|(event, who)| is_made_good(boot, event, who));
    let finding = |of: Vec<(&Event, &str)>, severity: Severity| {
        let names = seen::each(of.iter().map(|(_, who)| *who));
        let said = of.first()?.0.text.trim();
        let who = seen::all_of("service", &names);
        let told = format!("{who} came before the address of the fabric: {said}");
        let restart = names.iter().map(|name| format!("systemctl restart {}", unit(name)));
        Some(
            Finding::new(RULE.code, severity, Confidence::High, told)
                .about_if(seen::joined(&names))
                .quoting(seen::quotes(boot, of.iter().map(|(event, _)| *event)))
                .now(restart)
                .permanent([
                    "ibprov consumers --install, which orders such units after the ports",
                    "for the address too: systemctl enable ibprov-wait-online.service, and After=network-online.target for the unit",
                ]),
        )
    };
    [finding(bad, Severity::Error), finding(good, Severity::Warning)]
        .into_iter()
        .flatten()
        .collect()
}

/// The unit that sets up what `module` serves.
fn unit(module: &str) -> String {
    let stem = match module {
        "nvmet_rdma" => "nvmet",
        "nvme_rdma" => "nvmf-autoconnect",
        "svcrdma" => "nfs-server",
        "ib_iser" => "iscsi",
        "ib_isert" => "target",
        "ko2iblnd" => "lnet",
        other => other,
    };
    format!("{stem}.service")
}
