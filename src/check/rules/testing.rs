//! What the rules' own tests ask, and the logs and dumps that several of them judge.

use super::super::evidence::host::Host;
use super::super::evidence::state::PortSeen;
use super::super::evidence::{Boot, Intake};
use super::{Rule, Severity};
use crate::report::common::{Code, Finding};
use crate::report::node::Judgement;
use crate::report::status::Role;

/// How grave `rule` takes `lines` to be; `None` if it says nothing.
pub(super) fn severity(rule: &Rule, lines: &[&str]) -> Option<Severity> {
    let mut intake = Intake::new(super::needles());
    intake.read("log", &mut lines.join("\n").as_bytes());
    let diagnosis = super::super::diagnose(&intake.finish());
    diagnosis.findings.iter().find(|f| f.code == rule.code).map(|f| f.severity)
}

/// The network service asks for ib0, which comes later and stays down for days.
pub(super) const LATE: &[&str] = &[
    "Mar 18 10:29:53 n9 network[29]: Bringing up interface ib0:  ERROR     : [/etc/sysconfig/network-scripts/ifup-eth] Device ib0 does not seem to be present, delaying initialization.",
    "Mar 18 10:31:13 n9 kernel: mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024) StrdSz(256) RxCqeCmprss(0)",
    "Mar 18 10:31:14 n9 mlnx_interface_mgr[13]: Setting up Mellanox network interface: ib0",
    "Mar 18 10:31:14 n9 mlnx_interface_mgr[13]: OS is booting, will not run ifup on ib0",
    "Mar 22 16:56:38 n9 network[58]: Bringing up interface ib0:  [  OK  ]",
];

/// The same, but the network service tries again soon.
pub(super) const RECOVERED: &[&str] = &[
    "Mar 18 10:29:53 n9 network[29]: Bringing up interface ib0:  ERROR     : [/etc/sysconfig/network-scripts/ifup-eth] Device ib0 does not seem to be present, delaying initialization.",
    "Mar 18 10:31:13 n9 kernel: mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024) StrdSz(256) RxCqeCmprss(0)",
    "Mar 18 10:31:14 n9 mlnx_interface_mgr[13]: Setting up Mellanox network interface: ib0",
    "Mar 18 10:31:14 n9 mlnx_interface_mgr[13]: OS is booting, will not run ifup on ib0",
    "Mar 18 10:31:40 n9 network[58]: Bringing up interface ib0:  [  OK  ]",
];

/// openibd loads ib_ipoib, and the network service finds ib0.
pub(super) const GOOD: &[&str] = &[
    "Apr 02 11:09:34 n9 openibd[23]: + /sbin/modprobe ib_ipoib",
    "Apr 02 11:09:34 n9 kernel: mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024) StrdSz(256) RxCqeCmprss(0)",
    "Apr 02 11:09:34 n9 mlnx_interface_mgr.sh[28]: + log_msg 'OS is booting, will not run ifup on ib0'",
    "Apr 02 11:09:43 n9 network[32]: Bringing up interface ib0:  [  OK  ]",
];

/// What ibstat shows of `mlx5_<device>`, whose node GUID ends in `guid` and is
/// nothing but zeros if that is 0.
pub(super) fn ca(device: u8, kind: &str, guid: u8, state: &str, physical: &str) -> String {
    let node = if guid == 0 { 0 } else { 0x02c9_0300_0000_0000 + u64::from(guid) };
    format!(
        "CA 'mlx5_{device}'\n\tCA type: {kind}\n\tNode GUID: 0x{node:016x}\n\tPort 1:\n\
         \t\tState: {state}\n\t\tPhysical state: {physical}\n\t\tSM lid: 1\n\
         \t\tLink layer: InfiniBand"
    )
}

/// Port 1 of `device` as a host shows it, in this state and physical state.
pub(super) fn port(device: &str, state: &str, physical: &str, role: Role) -> PortSeen {
    PortSeen {
        device: device.to_owned(),
        port: "1".to_owned(),
        state: state.to_owned(),
        physical: physical.to_owned(),
        infiniband: Some(true),
        role: Some(role),
        ..PortSeen::default()
    }
}

/// A host with `ports`, of which its judgement names those of these devices as not active.
pub(super) fn host(ports: Vec<PortSeen>, named: &[(&str, Severity)]) -> Boot {
    let of = |(device, severity): &(&str, Severity)| {
        Finding::new(Code::PortNotActive, *severity, format!("{device} is not active"))
            .about(format!("{device} port 1 (0000:4b:00.0)"))
    };
    let findings = named.iter().map(of).collect();
    let judgement = Judgement::new(Vec::new(), Vec::new(), true, findings);
    let host = Host { live: true, judgement: Some(judgement), ..Host::default() };
    let mut boot = Boot { host: Some(Box::new(host)), ..Boot::default() };
    boot.state.ports = ports;
    boot
}

/// What `ip link` shows of a PF with two VFs, of which the second is as it should be.
pub(super) fn two_vfs(node_guid: &str, port_guid: &str, link_state: &str) -> String {
    let vf = |index: u8, node: &str, port: &str, link: &str| {
        format!(
            "    vf {index}     link/infiniband 80:00 brd 00:ff, NODE_GUID {node}, \
             PORT_GUID {port}, link-state {link}, trust off"
        )
    };
    format!(
        "4: ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 4092\n    link/infiniband 00:00 brd ff\n\
         {}\n{}",
        vf(0, node_guid, port_guid, link_state),
        vf(1, "02:00:00:00:00:00:01:01", "02:00:00:00:00:00:01:02", "auto"),
    )
}
