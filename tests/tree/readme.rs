//! The samples in README.md are what ibprov prints.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::host::{Host, PF, PortSpec};

/// A node with two adapters, four VFs of the first of which are still to be created, and
/// without a subnet manager on the fabric of the second.
fn node() -> Host {
    let mut host = Host::healthy();
    host.function("0000:5e:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    let port = PortSpec {
        guid: "b859:9f03:0012:a490",
        netdev: Some("ib1"),
        state: "2: INIT",
        lid: "0x0",
        ..PortSpec::default()
    };
    host.rdma("0000:5e:00.0", "mlx5_1", "b859:9f03:0012:a490", &[port]);
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), "16\n");
    host.file(&format!("sys/bus/pci/devices/{PF}/mlx5_num_vfs"), "0\n");
    host.file("etc/hostname", "node12\n");
    host.remove("run/ibprov/boot.json");
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[pf]]\n\
         pci = \"4b:00.0\"\n\
         vfs = 4\n\
         vf-name = \"{netdev}v{vf}\"\n\
         vf-rdma-name = \"{rdma}v{vf}\"\n\
         guid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"\n",
    );
    host
}

/// What a command of README prints on a terminal of 90 columns.
fn printed(host: &Host, command: &str) -> String {
    let arguments: Vec<&str> = command.split(' ').collect();
    if !arguments.contains(&"--log") {
        let shown = host.show_on(&[("COLUMNS", "90")], &arguments);
        return shown
            .lines()
            .filter(|l| !l.starts_with("exit "))
            .map(|l| format!("{l}\n"))
            .collect();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_ibprov"))
        .args(&arguments)
        .env("COLUMNS", "90")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tree/logs"))
        .output()
        .expect("ibprov");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_samples_are_what_ibprov_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).expect("README.md");
    let host = node();
    let (mut real, mut commands) = (String::new(), Vec::new());
    for (number, part) in readme.split("```").enumerate() {
        let sample = part.strip_prefix("console\n$ ibprov ").filter(|_| number % 2 == 1);
        let command = sample.and_then(|sample| sample.lines().next());
        if number > 0 {
            real.push_str("```");
        }
        match command {
            Some(command) => {
                real.push_str(&format!("console\n$ ibprov {command}\n{}", printed(&host, command)));
                commands.push(command);
            }
            None => real.push_str(part),
        }
    }
    expect_test::expect_file![path].assert_eq(&real);
    let verbs: Vec<&str> = commands.iter().filter_map(|c| c.split(' ').next()).collect();
    assert_eq!(verbs, ["status", "plan", "check"]);
}
