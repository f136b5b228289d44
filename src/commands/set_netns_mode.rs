//! `ibprov set-netns-mode`, which boot runs as a child: the kernel takes locks for it that a
//! card which hangs can hold.

use std::io;

use anyhow::{Context as _, bail};

use crate::host::{Root, answer, clock, process, rdma_netlink};
use crate::names::{NetnsMode, present};
use crate::observe::namespaces;
use crate::report::netns::remedy;

/// How long systemd is waited for, microseconds: boot waits for this child 10 s.
const SYSTEMD_USEC: u64 = 8_000_000;

/// Set the mode, and read it back.
///
/// # Errors
/// The kernel refuses, or has another mode afterwards.
pub fn run(mode: NetnsMode) -> anyhow::Result<()> {
    if let Err(e) = rdma_netlink::set_netns_mode(mode) {
        let tried = format!("set {mode} by RDMA netlink: {}", answer(&e));
        if e.raw_os_error() != Some(nix::libc::EBUSY) {
            bail!("{tried}");
        }
        let found = found(namespaces::others(&Root::live()), units());
        bail!(
            "{tried}: the mode cannot be changed while there is another network namespace; {found}; {}",
            remedy(mode)
        );
    }
    let is = rdma_netlink::netns_mode().context("read the mode back by RDMA netlink")?;
    if is != mode {
        bail!("the mode is {is} after {mode} was set");
    }
    Ok(())
}

/// The network namespaces that were found: `shown` by the kernel, and those of `units`.
fn found(shown: Vec<String>, units: io::Result<Vec<String>>) -> String {
    match units {
        Ok(units) => format!("found: {}", present(shown.into_iter().chain(units))),
        Err(e) => format!("found: {}; those of units are unknown: {e}", present(shown)),
    }
}

/// The running units that have a network namespace of their own, as systemd tells them. Of
/// their processes it is shown to a tracer alone (CAP_SYS_PTRACE), which the boot is not.
fn units() -> io::Result<Vec<String>> {
    let args = [
        "show",
        "--no-pager",
        "--property=Id,ActiveState,PrivateNetwork,NetworkNamespacePath",
        "--",
        "*.service",
    ];
    let until = clock::monotonic_usec() + SYSTEMD_USEC;
    let text = process::output_until("systemctl", &args, until)?.into_text("systemctl", &args)?;
    Ok(units_in(&text))
}

fn units_in(text: &str) -> Vec<String> {
    let unit = |block: &str| {
        let value = |key: &str| block.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('='));
        let state = value("ActiveState")?;
        let is_there = !matches!(state, "inactive" | "failed");
        let private = value("PrivateNetwork") == Some("yes");
        let path = value("NetworkNamespacePath").filter(|path| !path.is_empty());
        let why = match (private, path) {
            (true, _) => "PrivateNetwork=yes".to_owned(),
            (false, Some(path)) => format!("NetworkNamespacePath={path}"),
            (false, None) => return None,
        };
        is_there.then(|| value("Id").map(|id| format!("{id} ({why})")))?
    };
    text.split("\n\n").filter_map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_with_a_namespace_that_run_are_named() {
        let text = "\
Id=a.service
ActiveState=active
PrivateNetwork=yes
NetworkNamespacePath=

Id=b.service
ActiveState=inactive
PrivateNetwork=yes
NetworkNamespacePath=

Id=c.service
ActiveState=activating
PrivateNetwork=no
NetworkNamespacePath=/run/netns/x

Id=d.service
ActiveState=active
PrivateNetwork=no
NetworkNamespacePath=
";
        let want =
            ["a.service (PrivateNetwork=yes)", "c.service (NetworkNamespacePath=/run/netns/x)"];
        assert_eq!(units_in(text), want);
    }

    #[test]
    fn that_systemd_does_not_answer_does_not_mean_that_no_unit_has_one() {
        let process = || vec!["process 7 (sleep)".to_owned()];
        let units = Ok(vec!["a.service (PrivateNetwork=yes)".to_owned()]);
        assert_eq!(
            found(process(), units),
            "found: process 7 (sleep), a.service (PrivateNetwork=yes)"
        );
        assert_eq!(found(Vec::new(), Ok(Vec::new())), "found: none");
        let late = || Err(io::Error::other("systemctl show has not answered before the timeout"));
        assert_eq!(
            found(process(), late()),
            "found: process 7 (sleep); those of units are unknown: systemctl show has not answered before the timeout"
        );
    }
}
