//! What a host shows that may keep its reader waiting, of all HCAs at once: for those
//! who show the host, and must come to an end on a sick card.

use std::collections::{BTreeMap, BTreeSet};

use super::client::{Client, Failure, Reply, ask_each};
use super::products::read_all;
use super::request::{Answer, Request};
use crate::host::Root;
use crate::model::{PKeyEntry, PcieLink, Silence, hardware::VfStatus};
use crate::names::{
    Administered, Guid, IfName, LinkLayer, ModuleName, PciAddress, PortNumber, RdmaName, Resource,
    VfName,
};
use crate::observe::administered::{AdministeredVf, VfInfoQuery};
use crate::observe::link::PortAnswer;
use crate::observe::uses::lacks_netdev;
use crate::observe::{Backend, Look, Observed, Observer, PciFunction, pf};

/// A port: its function, its RDMA device, its number.
pub type PortOf = (PciAddress, RdmaName, PortNumber);

/// What the HCAs of a host have answered.
#[derive(Debug, Default)]
pub struct Survey {
    /// The ports that have told their state.
    pub ports: BTreeMap<PortOf, PortAnswer>,
    /// The P_Key tables of InfiniBand ports, without those of VFs of this host.
    pub pkeys: BTreeMap<PortOf, Vec<PKeyEntry>>,
    /// The PCIe links of functions that are no VFs.
    pub pcie: BTreeMap<PciAddress, PcieLink>,
    /// The netdevs that have told whether they have carrier.
    pub carriers: BTreeMap<IfName, bool>,
    /// The addresses of netdevs: the name of each, and `10.0.0.5/24`.
    pub addresses: Vec<(String, String)>,
    /// What could not be read and who did not answer, one line each.
    pub problems: BTreeSet<String>,
    /// The HCAs, by the address of the PF, that did not answer everything, and for how long.
    pub silent: BTreeMap<PciAddress, Option<Silence>>,
    /// A process holds the RTNL lock, so that the kernel did not report settings of netdevs.
    pub rtnl: Option<Silence>,
    /// The HCAs, by the address of the PF, of which something was not read for that reason.
    pub unread: BTreeSet<PciAddress>,
    /// The RDMA devices of VFs without a netdev here, with how many netdevs ib_ipoib has of
    /// each in whatever network namespace, as far as that was told.
    pub ipoib_netdevs: BTreeMap<RdmaName, Option<usize>>,
    /// RDMA netlink has not answered.
    pub is_rdma_held: bool,
    vfs: BTreeMap<PciAddress, Vec<(VfName, PciAddress)>>,
    administered: BTreeMap<VfName, Administered>,
    /// PFs that administer alias GUIDs (mlx4).
    with_aliases: BTreeSet<PciAddress>,
}

/// A request, and the HCAs that it is for, by the address of the PF.
struct Question {
    request: Request,
    hcas: Vec<PciAddress>,
}

/// What is asked for, after its place in the order: a question that hangs keeps a thread of the
/// eight that its HCA has.
type Wish = (u8, String);

fn wish(request: &Request) -> Wish {
    match request {
        Request::Override(pci) => (0, format!("the driver_override of {pci}")),
        Request::Port { device, port, .. } => (1, format!("the state of {device}/{port}")),
        Request::Pcie(pci) => (2, format!("the PCIe link of {pci}")),
        Request::PKeys { device, port, .. } => (3, format!("the P_Keys of {device}/{port}")),
        Request::Administered(_) => (4, "the settings of its VFs".to_owned()),
        Request::Carrier(netdev) => (5, format!("the carrier of {netdev}")),
        Request::Addresses => (6, "the addresses of its netdevs".to_owned()),
        _ => (7, "the netdevs that ib_ipoib has of its VFs".to_owned()),
    }
}

impl Question {
    /// The answer waits for the RTNL lock.
    fn waits_for_rtnl(&self) -> bool {
        let by_netlink = |of: &VfInfoQuery| matches!(of.backend, Backend::Netlink { .. });
        match &self.request {
            Request::Carrier(_) | Request::Addresses => true,
            Request::Administered(questions) => questions.iter().any(by_netlink),
            _ => false,
        }
    }
}

/// What is said of a `failure` of RDMA netlink, of what was asked of it.
pub fn rdma_held(failure: &Failure) -> String {
    match failure {
        Failure::Silent(silence) => format!(
            "RDMA netlink {silence}, as while the registration of an RDMA device hangs, see dmesg"
        ),
        failure => failure.to_string(),
    }
}

/// Look at the host below `root`, with the state of `modules`, and ask what is asked
/// for: of ports and their netdevs those of functions that `has_asked_ports`, the netdevs of
/// Ethernet ports where `is_roce` says so, and `others`. All of it ends within
/// [`super::SILENCE`].
///
/// Each HCA has a child of its own, so that one that hangs delays no other. What waits
/// for the RTNL lock has one for all: whoever holds the lock holds it against all. So has what
/// is asked of RDMA netlink.
pub fn survey(
    root: &Root,
    modules: &[ModuleName],
    has_asked_ports: impl Fn(&PciFunction) -> bool,
    is_roce: impl Fn(&PciFunction) -> bool,
    others: &[IfName],
) -> (Observed, Survey) {
    let netdevs = |function: &PciFunction| netdevs(function, is_roce(function));
    // A copied tree need not have it.
    let shows_carrier = |netdev: &IfName| {
        root.is_live() || root.exists(&format!("/sys/class/net/{netdev}/carrier"))
    };
    let mut observed = Observer::new(root).look(modules, &BTreeSet::new());
    let mut survey = Survey { problems: read_all(root, &mut observed, true), ..Survey::default() };
    let mut by_hca: BTreeMap<PciAddress, Vec<Question>> = BTreeMap::new();
    let mut by_rtnl = Vec::new();
    let mut without_netdev = Vec::new();
    let mut look = Look::new(root);
    for function in &observed.functions {
        let own = own_questions(function, &observed, &has_asked_ports);
        by_hca.entry(hca(function)).or_default().extend(own);
        let shown = netdevs(function).into_iter().filter(|_| has_asked_ports(function));
        let shown = shown.filter(&shows_carrier);
        by_rtnl.extend(shown.map(|netdev| Question {
            request: Request::Carrier(netdev),
            hcas: vec![hca(function)],
        }));
        let is_vf = function.physfn.is_some();
        let lacking = function.rdma.iter().filter(|device| is_vf && lacks_netdev(device));
        without_netdev.extend(lacking.map(|device| device.name.clone()));
        if !is_vf {
            survey.ask_pf(&mut look, function.address, &mut by_hca, &mut by_rtnl);
        }
    }
    by_rtnl.extend(
        others
            .iter()
            .filter(|netdev| shows_carrier(netdev))
            .map(|netdev| Question { request: Request::Carrier(netdev.clone()), hcas: Vec::new() }),
    );
    let with_netdev = observed.functions.iter().filter(|f| !netdevs(f).is_empty());
    let hcas: BTreeSet<PciAddress> = with_netdev.map(hca).collect();
    // A copied tree has no kernel to ask.
    if root.is_live() && !(hcas.is_empty() && others.is_empty()) {
        let hcas = hcas.into_iter().collect();
        by_rtnl.push(Question { request: Request::Addresses, hcas });
    }
    survey.problems.extend(look.problems);
    let mut by_rdma = Vec::new();
    if !without_netdev.is_empty() && root.exists("/sys/module/ib_ipoib") {
        let request = Request::IpoibNetdevs(without_netdev);
        by_rdma.push(Question { request, hcas: Vec::new() });
    }
    let by_hca = by_hca.into_iter().map(|(hca, group)| (Resource::Adapter(hca), group));
    let groups = by_hca.chain([(Resource::Rtnl, by_rtnl), (Resource::RdmaNetlink, by_rdma)]);
    let mut groups: Vec<(Resource, Vec<Question>)> =
        groups.filter(|(_, group)| !group.is_empty()).collect();
    for (_, group) in &mut groups {
        group.sort_by_cached_key(|question| wish(&question.request));
    }
    let replies = ask(root, &groups);
    let mut missing = Missing::default();
    let questions = groups.into_iter().flat_map(|(_, group)| group);
    for (question, reply) in questions.zip(replies.into_iter().flatten()) {
        survey.record(question, reply, &mut observed, &mut missing);
    }
    survey.silent = missing.silent();
    survey.problems.extend(missing.lines());
    (observed, survey)
}

/// By the PF's address all of an HCA are known.
fn hca(function: &PciFunction) -> PciAddress {
    function.physfn.unwrap_or(function.address)
}

fn netdevs(function: &PciFunction, with_ethernet: bool) -> Vec<IfName> {
    let ports = function.rdma.iter().flat_map(|device| &device.ports);
    let own = ports
        .flat_map(|port| [port.netdev.as_ref(), port.ethernet.as_ref().filter(|_| with_ethernet)]);
    own.flatten().map(|netdev| netdev.name.clone()).collect()
}

fn own_questions(
    function: &PciFunction,
    observed: &Observed,
    has_asked_ports: impl Fn(&PciFunction) -> bool,
) -> Vec<Question> {
    let pci = function.address;
    let mut questions = Vec::new();
    let mut ask = |request| questions.push(Question { request, hcas: vec![hca(function)] });
    if function.driver.is_none() && observed.udev.is_done_with(&pci.to_string()) {
        ask(Request::Override(pci));
    }
    for device in function.rdma.iter().filter(|_| has_asked_ports(function)) {
        for port in &device.ports {
            let (device, number) = (device.name.clone(), port.number);
            // Those of a VF are its PF's business.
            if port.link_layer == LinkLayer::InfiniBand && function.physfn.is_none() {
                ask(Request::PKeys { pci, device: device.clone(), port: number });
            }
            ask(Request::Port { pci, device, port: number });
        }
    }
    // The link of a VF is its PF's.
    if function.physfn.is_none() && !function.rdma.is_empty() && has_asked_ports(function) {
        ask(Request::Pcie(pci));
    }
    questions
}

fn ask(root: &Root, groups: &[(Resource, Vec<Question>)]) -> Vec<Vec<Reply>> {
    let requests =
        |(_, group): &(_, Vec<Question>)| group.iter().map(|q| q.request.clone()).collect();
    let requests: Vec<Vec<Request>> = groups.iter().map(requests).collect();
    let client = |(resource, _): &(Resource, _)| Client::new(root).querying(*resource);
    let mut clients: Vec<Client<'_>> = groups.iter().map(client).collect();
    ask_each(clients.iter_mut().zip(requests.iter().map(Vec::as_slice)).collect())
}

impl Survey {
    /// The addresses of `netdev` that a peer can use.
    pub fn addresses_of(&self, netdev: &IfName) -> Vec<String> {
        let own = self.addresses.iter().filter(|(of, _)| of == netdev.as_str());
        let is_global =
            |text: &&String| !text.starts_with("fe80:") && !text.starts_with("169.254.");
        own.map(|(_, text)| text).filter(is_global).cloned().collect()
    }

    fn ask_pf(
        &mut self,
        look: &mut Look<'_>,
        pf: PciAddress,
        by_hca: &mut BTreeMap<PciAddress, Vec<Question>>,
        by_rtnl: &mut Vec<Question>,
    ) {
        let vfs = pf::addresses(look, pf, |_| true);
        if vfs.is_empty() {
            return;
        }
        let named = vfs.iter().map(|(index, pci)| (VfName { pf, index: *index }, *pci));
        self.vfs.insert(pf, named.collect());
        let questions = VfInfoQuery { pf, backend: pf::backend(look, pf), vfs };
        if matches!(questions.backend, Backend::Mlx4 { .. }) {
            self.with_aliases.insert(pf);
        }
        if matches!(questions.backend, Backend::Netlink { .. }) {
            // One dump tells of all of them.
            let dump = by_rtnl.iter_mut().find_map(|question| match &mut question.request {
                Request::Administered(all) => Some((all, &mut question.hcas)),
                _ => None,
            });
            if let Some((all, hcas)) = dump {
                all.push(questions);
                hcas.push(pf);
            } else {
                let request = Request::Administered(vec![questions]);
                by_rtnl.push(Question { request, hcas: vec![pf] });
            }
            return;
        }
        let requests = Request::in_parts(questions).into_iter();
        let of_hca = by_hca.entry(pf).or_default();
        of_hca.extend(requests.map(|request| Question { request, hcas: vec![pf] }));
    }

    fn record(
        &mut self,
        question: Question,
        reply: Reply,
        observed: &mut Observed,
        missing: &mut Missing,
    ) {
        let waits_for_rtnl = question.waits_for_rtnl();
        match (question.request, reply) {
            (Request::Override(pci), Ok(Answer::Override(driver))) => {
                let function = observed.functions.iter_mut().find(|f| f.address == pci);
                if let Some(function) = function {
                    function.driver_override = driver;
                }
            }
            (Request::Port { pci, device, port }, Ok(Answer::Port { answer, problems })) => {
                self.problems.extend(problems);
                self.ports.insert((pci, device, port), answer);
            }
            (Request::PKeys { pci, device, port }, Ok(Answer::PKeys { table, problems })) => {
                self.problems.extend(problems);
                self.pkeys.extend(table.map(|table| ((pci, device, port), table)));
            }
            (Request::Pcie(pci), Ok(Answer::Pcie(link))) => {
                self.pcie.insert(pci, link);
            }
            (Request::Administered(_), Ok(Answer::Administered(told))) => {
                for AdministeredVf { vf, admin, problems } in told {
                    self.problems.extend(problems);
                    self.administered.insert(vf, admin);
                }
            }
            (Request::Carrier(netdev), Ok(Answer::Carrier(carrier))) => {
                self.carriers.insert(netdev, carrier);
            }
            (Request::Addresses, Ok(Answer::Addresses(addresses))) => self.addresses = addresses,
            (Request::IpoibNetdevs(devices), Ok(Answer::IpoibNetdevs(counts))) => {
                self.ipoib_netdevs.extend(devices.into_iter().zip(counts));
            }
            // A registration that hangs holds that lock against all: no adapter is to blame.
            (Request::IpoibNetdevs(_), Err(failure)) => {
                self.is_rdma_held = true;
                let what = "whether VFs without a netdev have one in another network namespace";
                self.problems.insert(format!("{what} is not known: {}", rdma_held(&failure)));
            }
            (_, Err(Failure::Refused(refusal))) => {
                if !refusal.is_absent() {
                    self.problems.insert(refusal.to_string());
                }
            }
            // One holder of the lock keeps the answers for all HCAs: none of them is to blame.
            (_, Err(Failure::Silent(silence))) if waits_for_rtnl => {
                self.rtnl = Some(silence);
                self.unread.extend(question.hcas);
            }
            (request, other) => missing.add(&question.hcas, &request, &Failure::of(other)),
        }
    }

    /// The VFs of a PF, with what it administers for them as far as it has answered; of what they
    /// show themselves nothing.
    pub fn vfs(&self, look: &mut Look<'_>, pf: PciAddress) -> Vec<VfStatus> {
        let vf = |(name, pci): &(VfName, PciAddress)| {
            let admin = self.administered.get(name).copied().unwrap_or_default();
            // An alias GUID that nobody set is zero: the subnet manager gives one.
            let is_alias = self.with_aliases.contains(&pf);
            let is_set = |guid: &Guid| !is_alias || !guid.is_zero();
            VfStatus {
                index: name.index,
                pci: *pci,
                driver: pf::driver(look, *pci),
                node_guid: admin.node_guid,
                port_guid: admin.port_guid.filter(is_set),
                port2_guid: admin.port2.and_then(|port| port.guid).filter(is_set),
                policy: admin.policy,
                rdma: None,
                netdev: None,
                other_namespace: None,
                ports: Vec::new(),
            }
        };
        self.vfs.get(&pf).into_iter().flatten().map(vf).collect()
    }

    /// The P_Key table of a port, if it was told.
    pub fn pkeys(
        &self,
        pci: PciAddress,
        device: &RdmaName,
        port: PortNumber,
    ) -> Option<&[PKeyEntry]> {
        self.pkeys.get(&(pci, device.clone(), port)).map(Vec::as_slice)
    }

    /// The state of a port, if it was told.
    pub fn port(&self, pci: PciAddress, rdma: &RdmaName, port: PortNumber) -> Option<&PortAnswer> {
        self.ports.get(&(pci, rdma.clone(), port))
    }
}

/// What was not answered, by HCA and by why.
#[derive(Debug, Default)]
struct Missing(Vec<(PciAddress, Failure, BTreeSet<Wish>)>);

impl Missing {
    fn add(&mut self, hcas: &[PciAddress], request: &Request, failure: &Failure) {
        let wish = wish(request);
        for hca in hcas {
            match self.0.iter_mut().find(|(of, why, _)| of == hca && why == failure) {
                Some((_, _, wishes)) => {
                    wishes.insert(wish.clone());
                }
                None => self.0.push((*hca, failure.clone(), BTreeSet::from([wish.clone()]))),
            }
        }
    }

    /// The HCAs, each with for how long it has not answered; without for one that could not be
    /// asked.
    fn silent(&self) -> BTreeMap<PciAddress, Option<Silence>> {
        let mut silent = BTreeMap::new();
        for (hca, failure, _) in &self.0 {
            let silence: &mut Option<Silence> = silent.entry(*hca).or_default();
            if let Failure::Silent(own) = failure {
                *silence = Some(*own);
            }
        }
        silent
    }

    fn lines(self) -> impl Iterator<Item = String> {
        /// Of a PF with many VFs.
        const MOST: usize = 4;
        self.0.into_iter().map(|(hca, failure, wishes)| {
            let mut named: Vec<String> =
                wishes.iter().take(MOST).map(|(_, text)| text.clone()).collect();
            if wishes.len() > MOST {
                named.push(format!("{} more", wishes.len() - MOST));
            }
            let named = named.join(", ");
            match failure {
                Failure::Silent(silence) => {
                    format!("adapter {hca} {silence} when asked for {named}")
                }
                failure => format!("cannot query adapter {hca} for {named}: {failure}"),
            }
        })
    }
}

#[cfg(test)]
mod tests;
