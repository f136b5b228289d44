//! What is told before it bites.

use crate::config::Config;
use crate::host::Root;
use crate::model::{Code, Finding, WantedInterface};
use crate::observe::ipoib::{Interface, Interfaces};
use crate::observe::{ModprobeRules, Observed};
use crate::plan::settings::contradictions;
use crate::plan::wanted;
use crate::stacks::KNOWN;
use crate::stacks::files::Files;

/// Where the files of the stacks that are part of this boot are against what is wanted
/// of `interface`.
pub fn foreseen(
    files: &Files<'_>,
    wanted: &WantedInterface,
    interface: &Interface,
) -> Vec<Finding> {
    if wanted.mode.is_none() && wanted.mtu.is_none() {
        return Vec::new();
    }
    let writes = KNOWN.writes(files, interface);
    let writes = writes.iter().map(|(stack, setting)| (*stack, setting));
    contradictions(interface, wanted, writes)
}

/// The same of all interfaces of this host.
pub fn foreseen_of_all(root: &Root, config: &Config, seen: &Interfaces) -> Vec<Finding> {
    let files = Files::of(root);
    let of = |interface: &Interface| {
        foreseen(&files, &wanted(&config.interfaces, interface, &[]), interface)
    };
    seen.all.iter().flat_map(of).collect()
}

/// ib_ipoib's queues are set when it is loaded: what is too small is told.
pub fn queue_advice(root: &Root, wanted: &WantedInterface) -> Vec<String> {
    let queues =
        [("recv_queue_size", wanted.receive_queue), ("send_queue_size", wanted.send_queue)];
    let mut advice = Vec::new();
    for (parameter, least) in queues {
        let Some(least) = least else { continue };
        let path = format!("/sys/module/ib_ipoib/parameters/{parameter}");
        let now = root.attribute(&path).ok().and_then(|t| t.parse::<u32>().ok());
        match now {
            Some(now) if now < least => advice.push(format!(
                "ib_ipoib has {parameter}={now}, but at least {least} is configured: add `options ib_ipoib {parameter}={}` to a file in /etc/modprobe.d; it applies when the module is loaded again",
                // The kernel rounds up to a power of two.
                least.next_power_of_two()
            )),
            Some(_) => {}
            None => advice.push(format!("{path} cannot be read: check that ib_ipoib is loaded")),
        }
    }
    advice
}

/// Connect-IB (15b3:1011) cannot bring IPoIB up with more than 1024 send
/// buffers: `ib_ipoib` then fails at `ip link set up`, long after boot.
pub fn send_queue_warning(
    root: &Root,
    rules: &ModprobeRules,
    observed: &Observed,
) -> Option<Finding> {
    let card = observed.functions.iter().find(|f| f.vendor == 0x15b3 && f.device == 0x1011)?;
    // Not loaded: what it will be loaded with counts.
    let now = root.attribute("/sys/module/ib_ipoib/parameters/send_queue_size").ok();
    let (size, by) = match now.and_then(|t| t.parse::<u64>().ok()) {
        Some(size) => (size, "/sys/module/ib_ipoib/parameters/send_queue_size"),
        None => {
            let (value, origin) = rules.option("ib_ipoib", "send_queue_size")?;
            (value.parse().ok()?, origin)
        }
    };
    let message = format!(
        "ib_ipoib send_queue_size is {size} ({by}), and IPoIB does not come up on Connect-IB with more than 1024"
    );
    let finding = Finding::warning(Code::ModuleParameter, message).about(card.address);
    (size > 1024).then(|| {
        finding.permanent([
            "set `options ib_ipoib send_queue_size=1024` in /etc/modprobe.d and reload ib_ipoib",
        ])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::PciFunction;

    fn warning(device: u16, loaded: Option<&str>, configured: &str) -> Option<String> {
        let mut files = vec![("etc/modprobe.d/ipoib.conf", configured)];
        files.extend(loaded.map(|size| ("sys/module/ib_ipoib/parameters/send_queue_size", size)));
        let dir = crate::host::testing::tree(&files, &[]);
        let function = PciFunction { device, ..PciFunction::connectx6() };
        let observed = Observed { functions: vec![function], ..Observed::default() };
        let root = Root::copy_at(dir.path()).expect("root");
        send_queue_warning(&root, &ModprobeRules::read(&root), &observed).map(|f| f.message)
    }

    #[test]
    fn connect_ib_with_too_long_a_queue_is_warned_of() {
        let option = "options ib_ipoib recv_queue_size=256 send_queue_size=2048\n";
        let by_option = warning(0x1011, None, option).expect("a warning before it is loaded");
        assert!(by_option.contains("2048 (/etc/modprobe.d/ipoib.conf:1)"), "{by_option}");
        let by_module = warning(0x1011, Some("4096\n"), option).expect("a warning once loaded");
        assert!(by_module.contains("4096 (/sys/module/ib_ipoib/"), "{by_module}");
        assert_eq!(warning(0x1011, Some("1024\n"), option), None, "what is in force counts");
        assert_eq!(warning(0x101b, None, option), None, "another card");
        assert_eq!(warning(0x1011, None, ""), None);
    }
}
