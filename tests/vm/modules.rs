//! Modules that cannot be loaded, each with its own cause, and one that a
//! site's command loads. One boot.

use serde_json::Value;

use crate::machine::boot;
use crate::seed::assert_up;

fn report(name: &str) -> Value {
    boot("modules").json(&format!("{name}.json"))
}

/// What is found of ib_ipoib, once, at the port that lacks it, and the report's exit code.
fn ipoib(name: &str) -> (Value, i64) {
    let report = report(name);
    let findings = report["findings"].as_array().expect("findings").clone();
    assert!(findings.iter().all(|f| f["object"] != "ib_ipoib"), "{findings:#?}");
    let port = "mlx5_0/1 (0001:01:00.0)";
    let ipoib = findings.into_iter().find(|f| f["object"] == port).expect("the port");
    let usec = |name: &str| report[name].as_u64().expect("time");
    let took = usec("finished_usec") - usec("started_usec");
    assert!(took < 30_000_000, "what cannot come is not waited for, but boot took {took} us");
    (ipoib, report["exit_code"].as_i64().expect("exit code"))
}

#[test]
fn a_deny_listed_module_is_named_with_file_and_line() {
    let (module, exit) = ipoib("denied");
    assert_eq!(
        module["message"],
        "no netdev: module ib_ipoib is not loaded: deny-listed by /etc/modprobe.d/site.conf:2, and networking.service sets up ib0 (/etc/network/interfaces)"
    );
    assert_eq!(exit, 3, "ifupdown sets ib0 up");
}

#[test]
fn a_failing_install_command_is_named() {
    let (module, exit) = ipoib("install_override");
    assert_eq!(
        module["message"],
        "no netdev: module ib_ipoib is not loaded: the install command \"/bin/sh -c 'exit 1'\" of /etc/modprobe.d/site.conf:1 ran instead and did not load it"
    );
    assert_eq!(exit, 3);
}

#[test]
fn a_module_that_was_not_built_is_named_with_the_kernel() {
    let (module, exit) = ipoib("not_built");
    let kernel = report("not_built")["kernel"].as_str().expect("kernel").to_owned();
    assert_eq!(
        module["message"],
        "no netdev: module ib_ipoib is not loaded: not built for the running kernel"
    );
    let step = &module["advice"][0];
    assert_eq!(step["do"], format!("install it for kernel {kernel}, or run `depmod -a`"));
    assert_eq!(exit, 3);
    let check = report("not_built.check");
    assert_eq!(check["verdict"], "not-ready", "{check:#}");
    assert_eq!(check["findings"][0]["code"], "module-missing-for-kernel", "{check:#}");
    let said = boot("modules").stdout();
    assert!(said.lines().any(|l| l == "not_built: check 3"), "{said}");
}

#[test]
fn the_ports_own_cause_is_the_module() {
    for name in ["denied", "install_override", "not_built"] {
        let report = report(name);
        let cause = report["ports"][0]["cause"]["message"].as_str().expect("cause").to_owned();
        assert!(cause.starts_with("module ib_ipoib is not loaded: "), "{name}: {cause}");
    }
}

/// Neither for IPoIB where ib0 is asked for, nor for the RDMA half of the driver.
#[test]
fn no_target_is_reached_while_a_denied_module_keeps_the_port_away() {
    let guest = boot("modules");
    let said = guest.stdout();
    for line in ["denied: ready inactive", "denied: online inactive", "half: ready inactive"] {
        assert!(said.lines().any(|l| l == line), "no {line:?} in:\n{said}");
    }
    let cause = report("half")["ports"][0]["cause"]["message"].clone();
    let want = "module mlx5_ib is not loaded: deny-listed by /etc/modprobe.d/site.conf:1";
    assert_eq!(cause, want);
}

/// NVIDIA's driver container denies the kernel's drivers on the host and loads its own once
/// kubelet has started it.
#[test]
fn where_a_container_loads_the_drivers_kubelet_starts_and_the_node_becomes_healthy() {
    let guest = boot("modules");
    let said = guest.stdout();
    for line in [
        "container: ready active",
        "container: kubelet active",
        "loaded: online active",
        "loaded: health 0",
    ] {
        assert!(said.lines().any(|l| l == line), "no {line:?} in:\n{said}");
    }
}

#[test]
fn an_install_command_that_loads_the_module_is_let_work() {
    let guest = boot("modules");
    assert_up(&guest);
    assert_eq!(report("install_works")["exit_code"], 0);
    assert_eq!(guest.file("from-override"), "loaded by the site\n");
    assert!(guest.file("addr").contains("from-override"), "{}", guest.file("addr"));
}
