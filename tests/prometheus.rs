//! `ibprov metrics` as Prometheus sees it: promtool judges the names, Debian's
//! prometheus-node-exporter serves the file on the loopback interface, and promtool tests
//! the rules, and each expression of the dashboard. `make test-prometheus`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first thing that is not as it should be, and runs programs"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

const BOOT: &str = r#"{"schema": 1, "report": "boot", "verdict": "not-ready", "exit_code": 3,
"started_usec": 5000000, "finished_usec": 7312000, "ports": [],
"timeline": [{"usec": 4900000, "text": "", "climbed":
{"expected": "a \"name\" \\ of\nsomebody", "port": null, "rung": "driver"}}]}"#;

/// What ibprov writes of a host without an adapter, whose last boot failed, to `file`.
fn write_metrics(file: &Path) {
    let root = tempfile::tempdir().expect("directory");
    fs::create_dir_all(root.path().join("run/ibprov")).expect("directory");
    fs::create_dir_all(root.path().join("sys/bus/pci/devices")).expect("directory");
    fs::write(root.path().join("run/ibprov/boot.json"), BOOT).expect("file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibprov"));
    command.arg("--root").arg(root.path()).args(["metrics", "--output"]).arg(file);
    assert_eq!(command.status().expect("ibprov runs").code(), Some(0));
}

fn promtool(directory: &Path, arguments: &[&str], input: Option<&Path>) {
    let mut command = Command::new("promtool");
    command.current_dir(directory).args(arguments);
    if let Some(input) = input {
        command.stdin(fs::File::open(input).expect("input"));
    }
    let out = command.output().expect("promtool runs (Debian: prometheus)");
    let said = [out.stdout, out.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(out.status.success(), "promtool {arguments:?}: {said}");
    println!("promtool {arguments:?}: {said}");
}

/// A node_exporter; it ends with this.
struct Exporter {
    child: Child,
    address: String,
}

impl Exporter {
    /// That serves the files of `directory`, on a free port.
    fn start(directory: &Path) -> Self {
        let mut command = Command::new("prometheus-node-exporter");
        command
            .args(["--collector.disable-defaults", "--collector.textfile"])
            .args(["--web.listen-address=127.0.0.1:0"])
            .arg(format!("--collector.textfile.directory={}", directory.display()));
        let mut child = command.stderr(Stdio::piped()).spawn().expect("node_exporter runs");
        let log = BufReader::new(child.stderr.take().expect("its log"));
        let mut lines = log.lines().map_while(Result::ok);
        let address = lines
            .find_map(|line| {
                line.contains("Listening on")
                    .then(|| line.split_once("address=").map(|(_, a)| a.to_owned()))
                    .flatten()
            })
            .expect("it says where it listens");
        // Nobody reads the rest, and it must not wait for that.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    fn scrape(&self) -> String {
        let mut stream = TcpStream::connect(self.address.trim()).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answer");
        answer
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn node_exporter_serves_what_ibprov_writes_and_promtool_finds_no_fault() {
    let dir = tempfile::tempdir().expect("directory");
    let file = dir.path().join("ibprov.prom");
    write_metrics(&file);
    promtool(dir.path(), &["check", "metrics"], Some(&file));
    let exporter = Exporter::start(dir.path());
    let served = exporter.scrape();
    let own: Vec<String> = served
        .lines()
        .filter(|line| line.starts_with("ibprov_"))
        .map(|line| line.split([' ', '{']).next().unwrap_or_default().to_owned())
        .collect();
    let written = fs::read_to_string(&file).expect("file");
    let values = written.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(own.len(), values.count(), "{served}");
    assert!(own.len() > 20, "{served}");
    for line in [
        "ibprov_node_exit_code 1",
        "ibprov_node_verdict{verdict=\"exceptions\"} 1",
        "ibprov_boot_exit_code 3",
        "ibprov_boot_duration_seconds 2.312",
        "ibprov_boot_port_state_seconds{expected=\"a \\\"name\\\" \\\\ of somebody\",state=\"driver\"} 4.9",
        "node_textfile_scrape_error 0",
    ] {
        assert!(served.lines().any(|served| served == line), "{line}: {served}");
    }

    // A run that is killed while it writes leaves what no collector reads.
    fs::write(dir.path().join(".ibprov.prom.17"), "half a li").expect("file");
    assert!(exporter.scrape().contains("node_textfile_scrape_error 0"));
    // Nothing is served of a file that is removed.
    fs::remove_file(&file).expect("removed");
    assert!(!exporter.scrape().contains("ibprov_"));
}

#[test]
fn the_rules_for_alerts_do_what_their_tests_say() {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/prometheus");
    promtool(&rules, &["check", "rules", "ibprov.rules.yml"], None);
    promtool(&rules, &["test", "rules", "ibprov.rules.test.yml"], None);
}

#[test]
fn each_expression_of_the_dashboard_gives_a_result() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().expect("directory");
    let written = dir.path().join("c1.prom");
    write_metrics(&written);
    let mut node = Command::new(env!("CARGO_BIN_EXE_ibprov"));
    node.arg("--root").arg(project.join("tests/tree/node")).arg("metrics");
    let node = String::from_utf8(node.output().expect("ibprov runs").stdout).expect("text");
    let nodes = [("c1", fs::read_to_string(&written).expect("file")), ("c2", node)];
    // What was printed, with the label by which Prometheus tells nodes apart.
    let mut series = Vec::new();
    for (instance, text) in &nodes {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            let (name, labels) = name.split_once('{').unwrap_or((name, "}"));
            let name = format!("{name}{{instance=\"{instance}\",{labels}");
            series.push(json!({ "series": name, "values": format!("{value}x5") }));
        }
    }
    let packaging = project.join("packaging/prometheus");
    let dashboard = fs::read(packaging.join("ibprov.dashboard.json")).expect("dashboard");
    let dashboard: Value = serde_json::from_slice(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().map(|panel| panel["targets"].as_array().expect("targets"));
    let expressions: Vec<&str> =
        targets.flatten().map(|target| target["expr"].as_str().expect("expression")).collect();
    assert!(expressions.len() > 8, "{expressions:?}");
    let has_result = |expression: &&str| {
        let expr = format!("count({expression}) > bool 0");
        json!({ "expr": expr, "eval_time": "2m", "exp_samples": [{ "labels": "{}", "value": 1 }] })
    };
    // JSON is YAML.
    let test = json!({
        "rule_files": [packaging.join("ibprov.rules.yml")],
        "tests": [{
            "interval": "1m",
            "input_series": series,
            "promql_expr_test": expressions.iter().map(has_result).collect::<Vec<_>>(),
        }],
    });
    fs::write(dir.path().join("test.yml"), test.to_string()).expect("file");
    promtool(dir.path(), &["test", "rules", "test.yml"], None);
}

#[test]
fn a_rule_speaks_of_no_metric_that_is_not_written() {
    let dir = tempfile::tempdir().expect("directory");
    let file = dir.path().join("ibprov.prom");
    write_metrics(&file);
    let written = fs::read_to_string(&file).expect("file");
    // The host of this test has no PF.
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/show/metrics.rs");
    let source = fs::read_to_string(source).expect("source");
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/prometheus/ibprov.rules.yml");
    let rules = fs::read_to_string(rules).expect("rules");
    let metric = regex::Regex::new(r"ibprov_([a-z_]+)").expect("pattern");
    let mut found = 0;
    for line in rules.lines().filter(|line| line.trim_start().starts_with("expr:")) {
        for name in metric.captures_iter(line) {
            found += 1;
            let is_written = written.contains(&format!("# TYPE {} gauge", &name[0]))
                || source.contains(&format!("\"{}\"", &name[1]));
            assert!(is_written, "{}", &name[0]);
        }
    }
    assert!(found >= 7, "{found}");
}
