//! Ports of a live host that are not where they should be, and why.

use super::findings::{merge, shown};
use crate::check::evidence::Host;
use crate::check::evidence::host::HostPort;
use crate::names::Rung;
use crate::report::common::Code;
use crate::report::finding::{Confidence, Finding, Severity};
use crate::report::{Cause, ModuleTrouble};

/// What the ladders of the expected ports and the VFs say.
pub(super) fn judge(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    for port in host.ports.iter().filter(|p| !p.progress.is_ready()) {
        merge(&mut findings, vec![finding(host, port)]);
    }
    for denied in &host.denied {
        let asked = !host.asked.is_empty();
        let finding = Finding::new(
            Code::ModuleDenied,
            if asked { Severity::Error } else { Severity::Warning },
            Confidence::High,
            format!(
                "{} is deny-listed by {}, so that its InfiniBand functions have no driver.",
                denied.module, denied.by
            ),
        )
        .about(&denied.module)
        .quoting([shown(host, format!("{}: blacklist {}", denied.by, denied.module))])
        .permanent([format!("if the driver is required, remove the line in {}", denied.by)]);
        merge(&mut findings, vec![finding]);
    }
    for vf in &host.unbound_vfs {
        let finding = Finding::new(
            Code::VfProbeFailed,
            Severity::Error,
            Confidence::High,
            format!("VF {vf} has no driver: the driver's probe of it failed."),
        )
        .about(vf)
        .quoting([shown(host, format!("{vf}: no driver"))])
        .look([format!("journalctl -k -b | grep {vf}")])
        .now([format!("after the cause is corrected: echo {vf} > /sys/bus/pci/drivers_probe")]);
        merge(&mut findings, vec![finding]);
    }
    findings
}

fn finding(host: &Host, port: &HostPort) -> Finding {
    let label = port.progress.label();
    let missing = port.progress.missing().map_or("nothing", Rung::word);
    let reached = port.progress.reached.map_or("nothing", Rung::word);
    let why = port.cause.as_ref().map_or("", |c| c.text.as_str());
    let is_so = |so: fn(&Cause) -> bool| port.cause.as_ref().is_some_and(so);
    let asked = !host.asked.is_empty();
    let mild = port.progress.optional || is_so(|c| c.in_use) || is_so(|c| c.by_site) && !asked;
    let mut finding = Finding::new(
        code(port),
        if mild { Severity::Warning } else { Severity::Error },
        Confidence::High,
        if why.is_empty() {
            format!("{label} does not have state {missing}.")
        } else {
            format!("{label} does not have state {missing}: {why}.")
        },
    )
    .about(&label)
    .chain([format!("{label} has state {reached}; state {missing} is missing.")])
    .quoting([shown(host, format!("{label}: state {reached}, missing {missing}"))]);
    for asked in &host.asked {
        finding = finding.chain([format!(
            "{} is configured to set up {} ({}).",
            asked.unit, asked.netdev, asked.file
        )]);
    }
    finding.steps(port.cause.iter().flat_map(|c| c.advice.clone()))
}

fn code(port: &HostPort) -> Code {
    match &port.module {
        Some((_, ModuleTrouble::Denied { .. } | ModuleTrouble::InstallOverride { .. })) => {
            Code::ModuleDenied
        }
        Some((_, ModuleTrouble::NotBuilt { .. })) => Code::ModuleMissingForKernel,
        Some((_, ModuleTrouble::SymbolMismatch { .. })) => Code::ModuleSymbolMismatch,
        Some((_, ModuleTrouble::DependencyInitializing { .. })) => Code::ModuleInitSlow,
        Some((_, ModuleTrouble::SignatureRefused { .. })) => Code::ModuleSignatureRefused,
        Some(_) => Code::ModuleNotLoaded,
        None if port.firmware_wait => Code::FwInitTimeout,
        None => Code::PortNotReady,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Port, host};
    use super::*;
    use crate::report::Said;
    use crate::report::advice::Advice;

    fn judged(trouble: ModuleTrouble) -> Vec<(Code, Severity)> {
        let mut port = Port::stuck();
        port.cause = Some(Cause {
            text: format!("module ib_ipoib is not loaded: {trouble}"),
            advice: vec![Advice::look("x")],
            is_final: true,
            by_site: trouble.is_by_the_site(),
            in_use: false,
        });
        port.module = "ib_ipoib".parse().ok().zip(Some(trouble));
        let host = host("goal.target wants a.service\n", &[port], &[]);
        judge(&host).iter().map(|f| (f.code, f.severity)).collect()
    }

    #[test]
    fn causes_have_their_codes() {
        let denied = ModuleTrouble::Denied { by: "/etc/modprobe.d/x.conf:1".into() };
        assert_eq!(judged(denied), [(Code::ModuleDenied, Severity::Warning)]);
        let by = "/etc/modprobe.d/x.conf:1".to_owned();
        let overridden = ModuleTrouble::InstallOverride { command: "/bin/false".into(), by };
        assert_eq!(judged(overridden), [(Code::ModuleDenied, Severity::Error)]);
        let not_built = ModuleTrouble::NotBuilt { kernel: "6.1".into(), looked_in: "x".into() };
        assert_eq!(judged(not_built), [(Code::ModuleMissingForKernel, Severity::Error)]);
        let symbols = ModuleTrouble::SymbolMismatch { said: "Unknown symbol x".into() };
        assert_eq!(judged(symbols), [(Code::ModuleSymbolMismatch, Severity::Error)]);
        let busy = ModuleTrouble::DependencyInitializing { said: "gave up waiting".into() };
        assert_eq!(judged(busy), [(Code::ModuleInitSlow, Severity::Error)]);
        let refused = ModuleTrouble::SignatureRefused { said: "Key was rejected".into() };
        assert_eq!(judged(refused), [(Code::ModuleSignatureRefused, Severity::Error)]);
        let other = ModuleTrouble::Other { said: Said::default() };
        assert_eq!(judged(other), [(Code::ModuleNotLoaded, Severity::Error)]);
    }

    #[test]
    fn what_the_site_denies_is_an_error_where_it_is_asked_for() {
        let mut port = Port::stuck();
        let by = "x:1".to_owned();
        port.module = "ib_ipoib".parse().ok().zip(Some(ModuleTrouble::Denied { by }));
        port.cause = Some(Cause {
            text: "module ib_ipoib is not loaded: deny-listed by x:1".to_owned(),
            advice: Vec::new(),
            is_final: true,
            by_site: true,
            in_use: false,
        });
        let host = host(
            "goal.target wants networking.service\n",
            &[port],
            &[("networking.service", "ib0")],
        );
        assert_eq!(judge(&host)[0].severity, Severity::Error);
    }

    #[test]
    fn a_ready_port_is_no_finding() {
        assert_eq!(
            judge(&host("goal.target wants a.service\n", &[Port::named("ib0", 1)], &[])),
            []
        );
    }
}
