use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::InitrdWithoutFabric,
    meaning: "the initramfs waits for an InfiniBand interface and lacks its modules",
    page: "\
The kernel command line (root=, ip=, netroot=) configures a root file system over
InfiniBand, and the initramfs lacks modules for the interface: the driver of the adapter,
or ib_ipoib. dracut waits for the interface until its timeout and starts a shell. Since
2025 rdma-core's dracut module is not part of images that are built for any host.

Symptoms: \"dracut-initqueue: timeout\" or \"Could not boot\" with ip=...:ib0 or
rd.neednet on the command line, and no line of the driver or of ib_ipoib before it.

Remedy: add the drivers to the initramfs, and check that they are in it:

    dracut -f --add rdma --add-drivers \"mlx5_core mlx5_ib ib_ipoib\"
    lsinitrd",
    needles: &[&["dracut-initqueue", "Command line:", "ommand line: ", "Could not boot"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let asks = |text: &str| {
        text.contains("ommand line: ")
            && text.split_whitespace().any(|word| {
                ["ip=", "ifname=", "bootdev=", "rd.route="].iter().any(|key| word.starts_with(key))
                    && seen::ib_netdev_in(word).is_some()
            })
    };
    let Some(asked) = boot.with("ommand line: ").find(|e| asks(&e.text)) else { return Vec::new() };
    let gave_up: Vec<_> = boot
        .with_any(&["dracut-initqueue", "Could not boot"])
        .filter(|e| e.text.contains("imeout") || e.text.contains("Could not boot"))
        .collect();
    let has_driver = boot.events.iter().any(|e| {
        e.from_kernel()
            && e.origin != asked.origin
            && !e.text.contains("ommand line")
            && (seen::rdma_module(&e.text).is_some() || e.text.contains("IPoIB"))
    });
    if gave_up.is_empty() || has_driver {
        return Vec::new();
    }
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::Medium,
            "The initramfs waits for an InfiniBand interface, and has loaded no driver of the RDMA stack.",
        )
        .quoting([boot.quote(asked)])
        .quoting(seen::quotes(boot, gave_up))
        .look(["lsinitrd | grep -e mlx5 -e ib_ipoib (or lsinitramfs)"])
        .permanent(["dracut -f --add rdma --add-drivers 'mlx5_core mlx5_ib ib_ipoib'"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_wait_without_drivers_is_told() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 0.0] Kernel command line: root=nfs:10.0.0.1:/r ip=ib0:dhcp rd.neednet=1",
                    "[ 130.0] dracut-initqueue[99]: Warning: dracut-initqueue: timeout, still waiting for following initqueue hooks:"
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 0.0] Kernel command line: root=nfs:10.0.0.1:/r ip=ib0:dhcp rd.neednet=1",
                    "[ 3.0] mlx5_core 0000:4b:00.0: firmware version: 20.31.1014",
                    "[ 130.0] dracut-initqueue[99]: Warning: dracut-initqueue: timeout, still waiting for following initqueue hooks:"
                ]
            ),
            None
        );
    }
}
