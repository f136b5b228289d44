//! `ibprov metrics`.

use std::io::Write as _;

use anyhow::Context as _;

use super::{config, status};
use crate::cli::{Format, MetricsArgs};
use crate::config::Loaded;
use crate::host::{self, Root, state, terminal};
use crate::model::{self, BootReport, Code, GuestsReport, Status};
use crate::observe::last_report;
use crate::show::metrics::{self, ConfigurationMistakes};

/// Print the state of the host as metrics, or write it to the file that is given.
///
/// # Errors
/// JSON is asked for; the file cannot be written; standard output is gone.
pub fn run(args: &MetricsArgs, loaded: &Loaded, root: &Root, format: Format) -> anyhow::Result<u8> {
    if format == Format::Json {
        anyhow::bail!(
            "metrics prints only the text format of Prometheus. For JSON: `ibprov status --format json`"
        );
    }
    let errors = loaded.problems.len();
    // That the configuration has errors is one of the metrics.
    if errors > 0 {
        config::complain(&loaded.problems)?;
    }
    let status = status::gather(false, &loaded.config, config::errors(loaded), root);
    let warnings = warnings(&status, loaded);
    let guests: Option<GuestsReport> = last_report(root, "guests.json");
    let boot: Option<BootReport> = last_report(root, "boot.json");
    let text = metrics::of_node(
        &status,
        ConfigurationMistakes { errors, warnings },
        (loaded.config.guests.list.len(), guests.as_ref()),
        boot.as_ref(),
    );
    match &args.output {
        None => write!(terminal::stdout(), "{text}")?,
        Some(path) => state::replace(path, &text)
            .map_err(|e| anyhow::anyhow!(host::answer(&e)))
            .with_context(|| format!("cannot write {}", path.display()))?,
    }
    Ok(model::Exit::Good.code())
}

/// What the configuration asks for that will not last or was not read.
fn warnings(status: &Status, loaded: &Loaded) -> usize {
    let plans = status.hcas.iter().filter_map(|hca| hca.planned.as_ref());
    let of_plans: usize = plans.map(|pf| pf.warnings.len()).sum();
    let findings = status.judgement.findings.iter();
    of_plans
        + loaded.not_read.len()
        + findings.filter(|f| f.code == Code::SettingContradicted).count()
}
