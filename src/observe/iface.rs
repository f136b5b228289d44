//! One IPoIB interface, with everything that a plan for it is made of.

use super::Look;
use super::ipoib::{self, Interface, Interfaces, Sort, outcome};
use crate::host::Root;
use crate::model::IfaceReport;
use crate::names::{IfName, PciAddress};

/// Everything that a plan for one interface is made of.
#[derive(Debug)]
pub struct Seen {
    pub interface: Interface,
    /// What is known beside it: what an earlier run has left of it, and nothing else before
    /// [`Seen::look_at_others`].
    pub around: Interfaces,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// Why there is nothing to see of an interface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSeen {
    #[error("there is no interface {0}")]
    Absent(IfName),
    /// It is an interface of another kind.
    #[error("{name} is {what}, not an IPoIB interface: ibprov does not change it")]
    NotIpoib { name: IfName, what: String },
    /// Its port is no fabric's.
    #[error(
        "{name} is of {pci}, which manages an NVSwitch (SMDL=SW_MNG in its product data) and belongs to nvidia-fabricmanager: ibprov does not change it"
    )]
    NvSwitch {
        name: IfName,
        /// The function of its port.
        pci: PciAddress,
    },
}

impl Seen {
    /// What an earlier run has left of it.
    pub fn before(&self) -> Option<&IfaceReport> {
        self.around.before(&self.interface)
    }

    /// Look at the other interfaces too.
    pub fn look_at_others(&mut self, root: &Root) {
        let mut look = Look::new(root);
        self.around.all = ipoib::interfaces(&mut look);
        self.around.names = root.list("/sys/class/net").unwrap_or_default();
        self.problems.extend(look.problems);
    }
}

/// Look at the interface `name`, and at no other but its parent: where there are hundreds,
/// each has a run of its own. The mode of a P_Key child that was made by netlink is left open.
///
/// # Errors
/// It is not there, or is no IPoIB interface.
pub fn look(root: &Root, name: &IfName) -> Result<Seen, NotSeen> {
    let mut look = Look::new(root);
    let mut interface = match ipoib::sort(&mut look, name) {
        None => return Err(NotSeen::Absent(name.clone())),
        Some(Sort::Other(what)) => return Err(NotSeen::NotIpoib { name: name.clone(), what }),
        Some(Sort::Ipoib(interface)) => *interface,
    };
    ipoib::give_port(&mut look, &mut interface);
    let problems: Vec<String> = look.problems.into_iter().collect();
    let before = outcome(root, interface.ifindex).map(|before| (interface.ifindex, before));
    let around = Interfaces { outcomes: before.into_iter().collect(), ..Interfaces::default() };
    Ok(Seen { interface, around, problems })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_the_port_of_its_parent_and_others_are_looked_at_when_asked() {
        let net = "sys/class/net";
        let files: Vec<(String, &str)> = [
            ("ib0/ifindex", "3\n"),
            ("ib0/type", "32\n"),
            ("ib0/dev_port", "0\n"),
            ("ib0/uevent", "\n"),
            ("ib0.8001/ifindex", "7\n"),
            ("ib0.8001/iflink", "3\n"),
            ("ib0.8001/type", "32\n"),
            ("ib0.8001/uevent", "\n"),
            ("ib0.8002/ifindex", "8\n"),
            ("ib0.8002/iflink", "3\n"),
            ("ib0.8002/type", "32\n"),
            ("ib0.8002/uevent", "\n"),
        ]
        .map(|(path, text)| (format!("{net}/{path}"), text))
        .to_vec();
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        let link = format!("{net}/ib0/device");
        let dir = crate::host::testing::tree(&files, &[(&link, "../../0000:4b:00.0")]);
        let root = Root::copy_at(dir.path()).expect("root");
        let name: IfName = "ib0.8001".parse().expect("name");
        let mut seen = look(&root, &name).expect("there");
        assert_eq!(seen.interface.pci, "0000:4b:00.0".parse().ok());
        assert_eq!((seen.around.all.len(), seen.around.names.len()), (0, 0));
        seen.look_at_others(&root);
        assert_eq!((seen.around.all.len(), seen.around.names.len()), (3, 3));
    }
}
