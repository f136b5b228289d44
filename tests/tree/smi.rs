//! RDMA sub-devices of type SMI, by which the planes of an HCA are managed: they have
//! their parent's PCI function, and are no HCAs.

use crate::host::{Host, PF, PortSpec};

/// A name that sorts before that of its parent.
const SMI: &str = "a_smi";

/// A healthy host whose HCA has a sub-device with four planes.
fn host() -> Host {
    let mut host = Host::healthy();
    let plane = |number| PortSpec {
        number,
        guid: "b859:9f03:0012:a480",
        netdev: None,
        ..PortSpec::default()
    };
    host.rdma(PF, SMI, "b859:9f03:0012:a480", &[1, 2, 3, 4].map(plane));
    host.link(
        &format!("sys/class/infiniband/{SMI}"),
        &format!("../../bus/pci/devices/{PF}/infiniband/{SMI}"),
    );
    host
}

fn verbs(host: &Host, number: u32, device: &str) {
    let entry = format!("sys/bus/pci/devices/{PF}/infiniband_verbs/uverbs{number}/ibdev");
    host.file(&entry, &format!("{device}\n"));
}

fn counters(host: &Host, device: &str) {
    let entry =
        format!("sys/bus/pci/devices/{PF}/infiniband/{device}/ports/1/hw_counters/lifespan");
    host.file(&entry, "10\n");
}

#[test]
fn one_without_verbs_or_counters_is_no_hca_and_is_not_expected() {
    let marks: [fn(&Host); 2] = [|host| verbs(host, 0, "mlx5_0"), |host| counters(host, "mlx5_0")];
    for mark in marks {
        let host = host();
        mark(&host);
        let boot = host.show(&["boot", "--dry-run"]);
        assert_eq!(
            boot,
            format!(
                "boot would change nothing and not wait\nnamed: mlx5_0/1 ({PF}) as ib0\nexit 0\n"
            )
        );
        let status = host.show(&["status", "-v"]);
        assert_eq!(status.matches("\n  port ").count(), 1, "{status}");
        assert!(status.contains(&format!("\nother RDMA devices: {SMI}\n")), "{status}");
        assert!(status.ends_with("exit 0\n"), "{status}");
        // Nobody can expect it as one either.
        host.file("etc/ibprov/ibprov.toml", &format!("[[port]]\nrdma = \"{SMI}\"\n"));
        let boot = host.show(&["boot", "--dry-run"]);
        assert!(boot.contains(&format!("  {SMI}: absent; ")), "{boot}");
    }
}

/// ib_uverbs is not loaded, and the driver has no counters: nothing tells them apart. Or
/// both have verbs, as a driver may register two.
#[test]
fn devices_that_cannot_be_told_apart_all_count() {
    let alike: [fn(&Host); 2] = [
        |_| {},
        |host| {
            verbs(host, 0, "mlx5_0");
            verbs(host, 1, SMI);
        },
    ];
    for mark in alike {
        let host = host();
        mark(&host);
        let boot = host.show(&["boot", "--dry-run"]);
        assert!(boot.contains(&format!("  {SMI}/4 ({PF}): no netdev; ")), "{boot}");
    }
}
