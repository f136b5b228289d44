//! `ibprov import`: other tools' configuration as ibprov's own, on standard
//! output.

use crate::cli::ImportVerb;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use super::exit;
use crate::config::foreign::{Imported, openib_conf, operator_guids, sriov_vfs};
use crate::host::Root;
use crate::names::{PciAddress, VfIndex};
use crate::observe::{self, Look, interface_manager};

/// More than any of these files has, bytes.
const FILE_LIMIT: u64 = 4 << 20;

/// Print what the file comes to.
///
/// # Errors
/// The file cannot be read or is none of its kind; standard output is gone.
pub fn run(verb: &ImportVerb, root: &Root) -> anyhow::Result<u8> {
    let read = |file: &str| root.text(file, FILE_LIMIT);
    let (file, imported) = match verb {
        ImportVerb::OpenibConf { file } => {
            let mut imported = openib_conf::import(&read(file)?);
            // It reads the same file, and disabling openibd does not stop it.
            imported.todo.extend(interface_manager::armed(root).map(|rule| {
                format!(
                    "{rule}: mlnx_interface_mgr goes on setting interfaces after this file: {}",
                    interface_manager::REMEDY
                )
            }));
            (file, imported)
        }
        ImportVerb::SriovVfs { file } => {
            let text = read(file)?;
            let vfs = vfs(root);
            (file, sriov_vfs::import(&text, |pci| vfs.get(&pci).copied()))
        }
        ImportVerb::OperatorGuids { file } => {
            let imported = operator_guids::import(&read(file)?);
            (file, imported.map_err(|why| anyhow::anyhow!("{file}: {why}"))?)
        }
    };
    let Imported { todo, .. } = &imported;
    let left = !todo.is_empty();
    write!(std::io::stdout(), "{}", imported.to_text(file))?;
    Ok(if left { exit::DEFERRED } else { exit::GOOD })
}

/// The VFs of this host: whose each is, and which.
fn vfs(root: &Root) -> BTreeMap<PciAddress, (PciAddress, VfIndex)> {
    let observed = observe::Observer::new(root).look([], &BTreeSet::new());
    let mut look = Look::new(root);
    let mut all = BTreeMap::new();
    for pf in observed.functions.iter().filter(|f| f.physfn.is_none()) {
        let vfs = observe::pf::addresses(&mut look, pf.address);
        all.extend(vfs.into_iter().map(|(index, pci)| (pci, (pf.address, index))));
    }
    all
}
