//! `ibprov metrics`.

use std::io::Write as _;

use anyhow::Context as _;

use super::{config, last_report, node, status};
use crate::cli::{Format, MetricsArgs};
use crate::config::{Config, Loaded, Problems};
use crate::host::{self, Root, state, terminal};
use crate::report::common::Code;
use crate::report::metrics::{self, ConfigurationMistakes};
use crate::report::status::Status;
use crate::report::{self, BootReport, guests::GuestsReport};

/// Print the state of the host as metrics, or write it to the file that is given.
///
/// # Errors
/// JSON is asked for; the file cannot be written; standard output is gone.
pub fn run(
    args: &MetricsArgs,
    loaded: &Result<Loaded, Problems>,
    root: &Root,
    format: Format,
) -> anyhow::Result<u8> {
    if format == Format::Json {
        anyhow::bail!(
            "metrics prints only the text format of Prometheus. For JSON: `ibprov status --format json`"
        );
    }
    let default = Config::default();
    let (config, invalid, errors) = match loaded {
        Ok(loaded) => (&loaded.config, None, 0),
        // That the configuration has errors is one of the metrics.
        Err(problems) => {
            config::complain(problems)?;
            (&default, Some(node::invalid(problems)), problems.len())
        }
    };
    let status = status::gather(false, config, invalid, root);
    let warnings = warnings(&status, loaded.as_ref().ok());
    let guests: Option<GuestsReport> = last_report("guests.json", root);
    let boot: Option<BootReport> = last_report("boot.json", root);
    let text = metrics::of_node(
        &status,
        ConfigurationMistakes { errors, warnings },
        (config.guests.list.len(), guests.as_ref()),
        boot.as_ref(),
    );
    match &args.output {
        None => write!(terminal::stdout(), "{text}")?,
        Some(path) => state::replace(path, &text)
            .map_err(|e| anyhow::anyhow!(host::answer(&e)))
            .with_context(|| format!("cannot write {}", path.display()))?,
    }
    Ok(report::Exit::Good.code())
}

/// What the configuration asks for that will not last or was not read.
fn warnings(status: &Status, loaded: Option<&Loaded>) -> usize {
    let plans = status.hcas.iter().filter_map(|hca| hca.planned.as_ref());
    let of_plans: usize = plans.map(|pf| pf.warnings.len()).sum();
    let not_read = loaded.map_or(0, |loaded| loaded.not_read.len());
    let findings = status.judgement.findings.iter();
    of_plans + not_read + findings.filter(|f| f.code == Code::SettingContradicted).count()
}
