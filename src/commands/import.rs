//! `ibprov import`: other tools' configuration as ibprov's own, on standard
//! output.

use super::print;
use crate::cli::{Format, ImportVerb};

use crate::config::foreign::{
    Imported, ifcfg, interfaces, keyfile, mlx4_conf, openib_conf, operator_guids, rdma_conf,
    sriov_vfs,
};
use crate::host::Root;
use crate::migrate::fit;
use crate::model::{Code, Finding, Kind, Report, Verdict, config::Import};
use crate::observe::ipoib::Interfaces;
use crate::observe::{self, interface_manager};

/// More than any of these files has, bytes.
const FILE_LIMIT: u64 = 4 << 20;

/// Print what the file comes to.
///
/// # Errors
/// The file cannot be read or is none of its kind; standard output is gone.
pub fn run(verb: &ImportVerb, root: &Root, format: Format) -> anyhow::Result<u8> {
    let read = |file: &str| match root.text(file, FILE_LIMIT) {
        Err(e) if e.is_absent() => Err(anyhow::anyhow!(
            "{e}: there is no such configuration to import; name another FILE to import that"
        )),
        read => Ok(read?),
    };
    let (file, imported) = match verb {
        ImportVerb::OpenibConf { file } => {
            let mut imported = openib_conf::import(&read(file)?, &[]);
            // It reads the same file, and disabling openibd does not stop it.
            imported.todo.extend(interface_manager::armed(root).map(|rule| {
                format!(
                    "{rule}: mlnx_interface_mgr continues to configure interfaces from this file: {}",
                    interface_manager::REMEDY
                )
            }));
            (file, imported)
        }
        ImportVerb::SriovVfs { file } => {
            let text = read(file)?;
            let vfs = observe::pf::owners(root);
            (file, sriov_vfs::import(&text, |pci| vfs.get(&pci).copied()))
        }
        ImportVerb::OperatorGuids { file } => {
            let imported = operator_guids::import(&read(file)?);
            (file, imported.map_err(|why| anyhow::anyhow!("{file}: {why}"))?)
        }
        ImportVerb::RdmaConf { file } => (file, rdma_conf::import(&read(file)?)),
        ImportVerb::Mlx4Conf { file } => {
            let imported =
                mlx4_conf::import(&read(file)?, |pci| observe::pf::may_be_here(root, pci));
            (file, imported)
        }
        ImportVerb::Ifcfg { file } => {
            let base = file.rsplit('/').next().unwrap_or_default();
            let name = ifcfg::name_of(base)
                .ok_or_else(|| anyhow::anyhow!("{file} is not named ifcfg-NAME"))?;
            let text = read(file)?;
            let said = ifcfg::read_at(file, name, &text).ok_or_else(|| {
                anyhow::anyhow!(
                    "{file} is not for an InfiniBand interface (TYPE=InfiniBand, or IPOIB=yes of wicked)"
                )
            })?;
            (file, of_stack(root, file, said))
        }
        ImportVerb::Keyfile { file } => {
            let said = keyfile::read(&read(file)?)
                .ok_or_else(|| anyhow::anyhow!("{file} is not a profile of type infiniband"))?;
            (file, of_stack(root, file, said))
        }
    };
    let todo = imported.todo.iter();
    let todo = todo.map(|todo| Finding::warning(Code::NotConverted, todo).about(file));
    let verdict = match imported.todo.is_empty() {
        true => Verdict::Done,
        false => Verdict::Exceptions,
    };
    let body = Import { file: file.clone(), toml: imported.toml.clone() };
    let report = Report::new(Kind::Import, verdict, todo.collect(), body);
    print(&report, format, |_| imported.to_text(file))
}

/// What the file of a network stack says, without what this host's adapters refuse.
fn of_stack(root: &Root, file: &str, mut said: interfaces::Said) -> Imported {
    fit(&mut said, &Interfaces::look(root).all);
    interfaces::import(&[(file.to_owned(), said)])
}
