//! `ibprov set-netns-mode`, which boot runs as a child: the kernel takes locks for it that a
//! card which hangs can hold.

use anyhow::{Context as _, bail};

use crate::host::{Root, answer, clock, process, rdma_netlink};
use crate::names::{NetnsMode, present};
use crate::observe::namespaces;
use crate::report::netns::remedy;

/// How long systemd is waited for, microseconds.
const SYSTEMD_USEC: u64 = 2_000_000;

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
        let root = Root::live();
        let mut others = namespaces::others(&root);
        others.extend(units());
        bail!(
            "{tried}: the mode cannot be changed while there is another network namespace; found: {}; {}",
            present(others),
            remedy(mode)
        );
    }
    let is = rdma_netlink::netns_mode().context("read the mode back by RDMA netlink")?;
    if is != mode {
        bail!("the mode is {is} after {mode} was set");
    }
    Ok(())
}

/// The running units that have a network namespace of their own, as systemd tells them. Of
/// their processes it is shown to a tracer alone (CAP_SYS_PTRACE), which the boot is not.
fn units() -> Vec<String> {
    let args = [
        "show",
        "--no-pager",
        "--property=Id,ActiveState,PrivateNetwork,NetworkNamespacePath",
        "--",
        "*.service",
    ];
    let until = clock::monotonic_usec() + SYSTEMD_USEC;
    let said = process::output_until("systemctl", &args, until);
    // What systemd does not tell stays unnamed; the refusal is told all the same.
    let text = said.and_then(|said| said.into_text("systemctl", &args)).unwrap_or_default();
    units_in(&text)
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
}
