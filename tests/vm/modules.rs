//! Modules that cannot be loaded, each with its own cause, and one that a
//! site's command loads. One boot.

use serde_json::Value;

use crate::machine::boot;
use crate::seed::assert_up;

fn report(name: &str) -> Value {
    boot("modules").json(&format!("{name}.json"))
}

/// What the report says of ib_ipoib, and its exit code.
fn ipoib(name: &str) -> (Value, i64) {
    let report = report(name);
    let modules = report["modules"].as_array().expect("modules").clone();
    let ipoib = modules.into_iter().find(|m| m["name"] == "ib_ipoib").expect("ib_ipoib");
    let usec = |name: &str| report[name].as_u64().expect("time");
    let took = usec("finished_usec") - usec("started_usec");
    assert!(took < 30_000_000, "what cannot come is not waited for, but boot took {took} us");
    (ipoib, report["exit_code"].as_i64().expect("exit code"))
}

#[test]
fn a_deny_listed_module_is_named_with_file_and_line() {
    let (module, exit) = ipoib("denied");
    assert_eq!(module["message"], "deny-listed by /etc/modprobe.d/site.conf:2");
    assert_eq!(exit, 1, "the site asked for it");
}

#[test]
fn a_failing_install_command_is_named() {
    let (module, exit) = ipoib("install_override");
    assert_eq!(
        module["message"],
        "the install command \"/bin/sh -c 'exit 1'\" of /etc/modprobe.d/site.conf:1 ran instead and did not load it"
    );
    assert_eq!(exit, 3);
}

#[test]
fn a_module_that_was_not_built_is_named_with_the_kernel() {
    let (module, exit) = ipoib("not_built");
    let kernel = report("not_built")["kernel"].as_str().expect("kernel").to_owned();
    assert_eq!(module["message"], "not built for the running kernel");
    let step = module["advice"][0]["text"].as_str().expect("a step");
    assert_eq!(step, format!("install it for kernel {kernel}, or run `depmod -a`"));
    assert_eq!(exit, 3);
}

#[test]
fn the_ports_own_cause_is_the_module() {
    for name in ["denied", "install_override", "not_built"] {
        let report = report(name);
        let cause = report["ports"][0]["cause"]["message"].as_str().expect("cause").to_owned();
        assert!(cause.starts_with("module ib_ipoib is not loaded: "), "{name}: {cause}");
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
