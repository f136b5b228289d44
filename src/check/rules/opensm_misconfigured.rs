use super::{Boot, Code, Confidence, Event, Finding, Judge, Kind, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::OpensmMisconfigured,
    meaning: "opensm cannot bind to its port, exits, or takes its files in another way than meant",
    page: "\
The subnet manager of this host does not run: the port GUID in its configuration is
not one of this host, the port has another link layer, another opensm has the port,
ib_umad is missing, or the configuration does not parse. Ports of the fabric then
stay in Initializing, unless another subnet manager serves them.

Where opensm is installed, its partitions.conf and opensm.conf are also read as opensm
reads them: it says nothing of a P_Key that it cuts, of a flag, a membership or a value
that it does not understand, or of an exception that a later ALL overrides. `ibprov
opensm check` shows each with file, line and column.

Symptoms: \"Error from osm_opensm_bind\", \"Couldn't find SM port by guid\",
\"Unable to open port\", \"Unable to register
class 129\", \"No local ports detected\", \"Fail to parse config file\", \"FATAL\".

Remedy: put a port GUID of this host into /etc/opensm/opensm.conf (guid) or
/etc/default/opensm, and stop the second opensm. To list the port GUIDs:

    ibstat -p",
    needles: &[&[
        "osm_opensm_bind",
        "osm_vendor_bind",
        "osm_vendor_open_port",
        "osm_opensm_init",
        "osm_vendor_get_all_port_attr",
        "No local ports detected",
        "Fail to parse config file",
        "Perhaps another instance of OpenSM",
        "Could not get port guid",
        "Couldn't find SM port by guid",
        "umad_open_port() failed",
        "Unable to find requested CA guid",
        "is not an IB node type",
        "Exiting SM",
        "Errors during initialization",
        "Unable to register class",
        "opensm",
        "OpenSM",
        "PARSE ERROR",
        "SUBNET UP",
        "Entering MASTER state",
        "Invalid GUID specified",
        "cannot find or setup routing engine",
    ]],
    judge: Judge::Boot(judge),
};

/// ... that are the fault of its configuration.
const SURE: [&str; 6] = [
    "No local ports detected",
    "Fail to parse config file",
    "Perhaps another instance of OpenSM",
    "Unable to find requested CA guid",
    "is not an IB node type",
    "Invalid GUID specified",
];

/// Words by which it says that it ends.
const FATAL: [&str; 17] = [
    "Error from osm_opensm_bind",
    "Error from osm_opensm_init",
    "Error from osm_vendor_get_all_port_attr",
    "No local ports detected",
    "Fail to parse config file",
    "Perhaps another instance of OpenSM",
    "Could not get port guid",
    "Couldn't find SM port by guid",
    "umad_open_port() failed",
    "Unable to find requested CA guid",
    "is not an IB node type",
    "Unable to register class",
    "ERR 5424",
    "ERR 542B",
    "ERR 5426",
    "Invalid GUID specified",
    "ERR 1000",
];

fn unit_failed(event: &Event) -> bool {
    matches!(&event.kind, Kind::UnitFailed(u) if u.to_ascii_lowercase().contains("opensm"))
        || event.text.contains("opensm")
            && (event.text.contains("status=1")
                || event.text.contains("code=exited, status=") && !event.text.contains("status=0"))
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> =
        boot.events.iter().filter(|e| FATAL.iter().any(|w| e.text.contains(w))).collect();
    let units: Vec<_> = boot.events.iter().filter(|e| unit_failed(e)).collect();
    let shown = boot
        .state
        .units
        .iter()
        .find(|u| u.name.starts_with("opensm") && u.active.starts_with("failed"));
    if lines.is_empty() && units.is_empty() && shown.is_none() {
        return Vec::new();
    }
    let last = lines.iter().chain(&units).map(|e| e.origin).max();
    let up = boot
        .with_any(&["SUBNET UP", "Entering MASTER state"])
        .any(|e| last.is_none_or(|l| e.origin > l));
    let (severity, end) =
        if up { (Severity::Warning, ", and runs now") } else { (Severity::Error, "") };
    let fault = match lines.iter().any(|e| e.text.contains("find SM port by guid")) {
        true => "does not find its own port in the fabric",
        false => "could not start",
    };
    // What failed in the library below it may have any reason.
    let is_sure = lines.iter().any(|e| SURE.iter().any(|w| e.text.contains(w)));
    let why = lines.first().map_or("it exits", |e| e.text.trim());
    vec![
        Finding::new(
            RULE.code,
            severity,
            if is_sure { Confidence::High } else { Confidence::Medium },
            format!("opensm {fault}{end}: {why}"),
        ).about("opensm.service")
        .quoting(seen::quotes(boot, lines.into_iter().chain(units)))
        .quoting(shown.map(|u| boot.quote_at(u.origin, "", &format!("{} {}", u.name, u.active))))
        .look(["set guid in /etc/opensm/opensm.conf to a port GUID of this host (ibstat -p), or to 0", "check that ib_umad is loaded and that there is no second opensm: lsmod | grep ib_umad; pgrep -a opensm", "opensm -o -f stdout shows the reason on the terminal"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn an_opensm_that_cannot_bind() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "Nov 17 01:12:58 123456 [A1B2C3D4] 0x01 -> osm_vendor_bind: ERR 5426: Unable to register class 129 version 1",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["Nov 17 01:12:58 123456 [A1B2C3D4] 0x80 -> SUBNET UP",]),
            None
        );
    }
}
