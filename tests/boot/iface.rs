//! `ibprov iface` on a real processor, with a live system bus.

use crate::nspawn::boot;

#[test]
fn a_bus_that_is_up_is_asked() {
    let decision = boot("iface_decision").file("decision");
    assert!(
        decision.contains("decision: no network stack brings it up: no network stack"),
        "{decision}"
    );
    // How long it takes is for `make bench`.
    assert!(decision.ends_with("queried by: the system bus\n"), "{decision}");
}

/// One line, whatever the environment says of backtraces.
#[test]
fn an_error_is_told_where_backtraces_are_asked_for() {
    let outcome = boot("iface_decision");
    assert_eq!(
        outcome.file("backtrace"),
        "error: there is no interface ib7; IPoIB interfaces of this host: ib0\n"
    );
    assert!(outcome.stdout().contains("nosuch: 2\n"), "{}", outcome.stdout());
}
