//! Configuration of other tools, as ibprov's own: `ibprov import`.
//!
//! One file for each format. A parser takes text and gives TOML that
//! `ibprov config check` takes, and what it cannot say in it. Pure. Nothing of
//! a file is ever run.

pub mod ifcfg;
pub mod ifcfg_suse;
pub mod interfaces;
pub mod keyfile;
pub mod mlx4_conf;
pub mod openib_conf;
pub mod operator_guids;
pub mod rdma_conf;
pub(crate) mod shell;
pub mod sriov_vfs;

use crate::names::{Guid, harmless, shown};

/// What became of a foreign configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    pub toml: String,
    /// What is left for a hand to do, one line each.
    pub todo: Vec<String>,
    /// What stays with who reads the file, which goes on to do so.
    pub stays: Vec<String>,
}

impl Imported {
    fn todo(&mut self, line: usize, what: &str) {
        self.todo.push(format!("line {line}: {what}"));
    }

    /// A file for `/etc/ibprov/ibprov.d`: the TOML, and what is left to do as
    /// comments. `from` says where it is from.
    pub fn to_text(&self, from: &str) -> String {
        let mut text = format!("# From {}, by `ibprov import`.\n", harmless(from));
        if !self.toml.is_empty() {
            text.push_str(&format!("\n{}\n", self.toml.trim_end()));
        }
        if !self.stays.is_empty() {
            let stays = self.stays.join(", ");
            text.push_str(&format!("\n# Left to the network stack: {}\n", harmless(&stays)));
        }
        if !self.todo.is_empty() {
            text.push_str("\n# To do by hand:\n");
            for todo in &self.todo {
                text.push_str(&format!("# - {}\n", harmless(todo)));
            }
        }
        text
    }
}

/// True if `text`, a file of ibprov's configuration, says what `imported` says: comments and
/// empty lines do not count.
pub fn says_the_same(text: &str, imported: &Imported) -> bool {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    lines(text) == lines(&imported.toml)
}

/// What each PF is proposed: the formats know nothing of names.
const NAMES: &str = "# Names for its VFs that do not depend on chance (ibprov-vf(5)):\n#vf-name = \"{netdev}v{vf}\"\n#vf-rdma-name = \"{rdma}v{vf}\"\n";

/// The port GUID in an IPoIB address of 20 bytes, or the GUID alone.
///
/// # Errors
/// It is neither, or all zero; a sentence.
fn port_guid(text: &str) -> Result<Guid, String> {
    let bytes: Vec<&str> = text.split(':').collect();
    let tail = if bytes.len() == 20 { bytes.get(12..).map(|tail| tail.join(":")) } else { None };
    let guid: Guid = tail.as_deref().unwrap_or(text).parse().map_err(|e| format!("{e}"))?;
    if guid.is_zero() {
        return Err(format!("{} has the GUID zero, which is not the GUID of a port", shown(text)));
    }
    Ok(guid)
}

#[cfg(test)]
mod tests;
