//! What product data say that functions are for ([`crate::observe::vpd`]), asked once for
//! each in a boot and kept for all that look later.
//!
//! Nobody waits for it where nothing depends on it: until it is known, a function is what
//! its class says.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;

use super::client::{Client, Reply, wait};
use super::request::{Answer, Request};
use crate::host::{Root, answer, clock, process};
use crate::names::PciAddress;
use crate::observe::vpd;
use crate::observe::{Observed, Observer, PciFunction, Product};

/// Product data that have not been read after so long, microseconds, are unread. Those of
/// a ConnectX are read in milliseconds.
const LIMIT_USEC: u64 = 2_000_000;

/// For so long, microseconds, they are waited for where nothing but a report depends on
/// them.
const GRACE_USEC: u64 = 5_000;

/// So many functions have a child: it works on each in a thread, on eight at a time.
const OF_A_CHILD: usize = 8;

/// Asks, and knows what was answered.
#[derive(Debug)]
pub struct Products<'a> {
    root: &'a Root,
    clients: Vec<Client<'a>>,
    /// Functions are asked again whose product data another run could not read.
    is_again: bool,
    asked: BTreeMap<PciAddress, Asked>,
    /// What could not be read or kept, one line each.
    pub problems: BTreeSet<String>,
}

#[derive(Debug)]
struct Asked {
    modalias: String,
    since: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The number of the question, and the child that has it.
    Open(usize, u64),
    Known(Product),
}

impl<'a> Products<'a> {
    /// Of the host below `root`.
    #[must_use]
    pub const fn new(root: &'a Root) -> Self {
        Self {
            root,
            clients: Vec::new(),
            is_again: false,
            asked: BTreeMap::new(),
            problems: BTreeSet::new(),
        }
    }

    /// One that tries once more what another run could not read.
    #[must_use]
    pub fn again(self) -> Self {
        Self { is_again: true, ..self }
    }

    /// Ask for what `observed` does not know and nobody has asked for, and put in what
    /// has been answered. Does not wait.
    pub fn learn(&mut self, observed: &mut Observed, now: u64) {
        // Only root can read them.
        if self.root.is_live() && !process::is_root() {
            return;
        }
        for function in observed.functions.iter().filter(|f| f.is_told_by_product_data()) {
            let is_open = match function.product {
                None => true,
                Some(Product::Unread) => self.is_again,
                Some(Product::NvSwitchManagement | Product::Other) => false,
            };
            let (pci, modalias) = (function.address, &function.modalias);
            if is_open && self.asked.get(&pci).is_none_or(|asked| asked.modalias != *modalias) {
                let asked = Asked { modalias: modalias.clone(), since: now, state: self.ask(pci) };
                self.asked.insert(pci, asked);
            }
        }
        self.take(now);
        for function in &mut observed.functions {
            let asked = self.asked.get(&function.address);
            let asked = asked.filter(|asked| asked.modalias == function.modalias);
            if let Some(Asked { state: State::Known(product), .. }) = asked {
                function.product = Some(*product);
            }
        }
    }

    fn ask(&mut self, pci: PciAddress) -> State {
        if self.asked.len() >= self.clients.len() * OF_A_CHILD {
            // It is silent when it is too late: that is judged here.
            self.clients.push(Client::new(self.root).patient());
        }
        let child = self.clients.len().saturating_sub(1);
        match self.clients.last_mut() {
            Some(client) => State::Open(child, client.ask(&Request::Product(pci))),
            None => State::Known(Product::Unread),
        }
    }

    /// Take the answers that have come, and give up on those that are too late. True if
    /// something is known now that was not.
    pub fn take(&mut self, now: u64) -> bool {
        let mut replies: BTreeMap<(usize, u64), Reply> = BTreeMap::new();
        for (child, client) in self.clients.iter_mut().enumerate() {
            replies.extend(client.replies().into_iter().map(|(n, reply)| ((child, n), reply)));
        }
        let mut is_news = false;
        for (pci, asked) in &mut self.asked {
            let State::Open(child, number) = asked.state else { continue };
            let product = match replies.remove(&(child, number)) {
                Some(Ok(Answer::Product(product))) => product,
                Some(Ok(other)) => {
                    self.problems.insert(format!("{pci}: an unexpected answer: {other:?}"));
                    Product::Unread
                }
                Some(Err(failure)) => {
                    self.problems.insert(format!("{failure}: the function counts as an adapter"));
                    Product::Unread
                }
                None if asked.since + LIMIT_USEC <= now => {
                    self.problems.insert(format!(
                        "the vital product data of {pci} could not be read within {} s: the function counts as an adapter",
                        LIMIT_USEC / 1_000_000
                    ));
                    Product::Unread
                }
                None => continue,
            };
            asked.state = State::Known(product);
            is_news = true;
            if self.root.is_live()
                && let Err((path, e)) = vpd::keep(*pci, &asked.modalias, product)
            {
                let e = answer(&e);
                self.problems.insert(format!("cannot write {}: {e}", path.display()));
            }
        }
        is_news
    }

    /// The functions that have not answered.
    #[must_use]
    pub fn open(&self) -> BTreeSet<PciAddress> {
        let open = self.asked.iter().filter(|(_, a)| matches!(a.state, State::Open(..)));
        open.map(|(pci, _)| *pci).collect()
    }

    /// Until when to wait for answers, microseconds of CLOCK_MONOTONIC: `is_needed` where
    /// something may depend on them. `None` if none is to come in time.
    #[must_use]
    pub fn due(&self, is_needed: bool, now: u64) -> Option<u64> {
        let limit = if is_needed { LIMIT_USEC } else { GRACE_USEC };
        let open = self.asked.values().filter(|a| matches!(a.state, State::Open(..)));
        open.map(|asked| asked.since + limit).filter(|until| *until > now).min()
    }

    /// What can be read when an answer has come.
    #[must_use]
    pub fn answers_come(&self) -> Vec<BorrowedFd<'_>> {
        let is_open = |child: usize| {
            self.asked.values().any(|a| matches!(a.state, State::Open(of, _) if of == child))
        };
        let open = self.clients.iter().enumerate().filter(|(child, _)| is_open(*child));
        open.filter_map(|(_, client)| client.fd()).collect()
    }

    /// As [`Products::learn`], and wait for the answers.
    pub fn learn_all(&mut self, observed: &mut Observed) {
        loop {
            let now = clock::monotonic_usec();
            self.learn(observed, now);
            let Some(until) = self.due(true, now) else { return };
            if let Err(e) = wait(&self.answers_come(), until) {
                let e = answer(&e);
                self.problems.insert(format!("cannot wait for vital product data: poll: {e}"));
                return;
            }
        }
    }
}

/// True if the function manages an NVSwitch, as far as that can be known.
#[must_use]
pub fn manages_nvswitch(root: &Root, pci: PciAddress) -> bool {
    if let Some(product) = vpd::known(root, pci) {
        return product == Product::NvSwitchManagement;
    }
    let mut observed = Observer::new(root).leaving_overrides().look_at_pfs();
    observed.functions.retain(|function| function.address == pci);
    for problem in learn_all(root, &mut observed) {
        tracing::debug!(cause = problem, "{problem}");
    }
    observed.functions.iter().any(PciFunction::manages_nvswitch)
}

/// Put into `observed` what product data say, those of functions too that nobody has asked
/// before. Gives what could not be read or kept.
pub fn learn_all(root: &Root, observed: &mut Observed) -> BTreeSet<String> {
    let mut products = Products::new(root);
    products.learn_all(observed);
    products.problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(since: u64) -> Asked {
        Asked { modalias: "pci:a".to_owned(), since, state: State::Open(0, 1) }
    }

    fn pci(text: &str) -> PciAddress {
        text.parse().expect("address")
    }

    #[test]
    fn answers_are_waited_for_while_something_depends_on_them_and_two_seconds_at_most() {
        let dir = tempfile::tempdir().expect("directory");
        let root = Root::copy_at(dir.path()).expect("root");
        let mut products = Products::new(&root);
        assert_eq!(products.due(true, 0), None);
        let (first, second) = (pci("0000:01:00.0"), pci("0000:02:00.0"));
        products.asked.insert(first, open(1_000_000));
        products.asked.insert(second, open(1_500_000));
        assert_eq!(products.due(true, 1_600_000), Some(3_000_000));
        assert_eq!(products.due(false, 1_504_000), Some(1_505_000));
        assert_eq!(products.due(false, 1_600_000), None, "nothing depends on them");
        assert!(!products.take(2_999_999));
        assert!(products.take(3_000_000), "the first has had its time");
        assert_eq!(products.open(), BTreeSet::from([second]));
        assert_eq!(products.due(true, 3_000_000), Some(3_500_000));
        assert!(products.take(3_500_000));
        assert_eq!((products.due(true, 3_500_000), products.problems.len()), (None, 2));
    }

    #[test]
    fn each_function_is_asked_once_and_another_card_anew() {
        let files = [("sys/bus/pci/devices/0000:4b:00.0/vpd", "\x78")];
        let dir = crate::host::testing::tree(&files, &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let mut products = Products::new(&root);
        let mut learn = |change: &dyn Fn(&mut PciFunction)| {
            let mut function = PciFunction::connectx6();
            change(&mut function);
            let mut observed = Observed { functions: vec![function], ..Observed::default() };
            products.learn(&mut observed, 7);
            let of_child = products.clients.len();
            (observed.functions[0].product, of_child)
        };
        let vf = |f: &mut PciFunction| f.physfn = Some(pci("0000:4b:00.1"));
        assert_eq!(learn(&vf), (None, 0), "no PF");
        assert_eq!(learn(&|f| f.vendor = 0x1077), (None, 0), "of another vendor");
        assert_eq!(learn(&|f| f.product = Some(Product::Unread)).1, 0, "known");
        assert_eq!(learn(&|_| ()), (Some(Product::Other), 1));
        std::fs::remove_file(dir.path().join(files[0].0)).expect("file");
        std::fs::write(dir.path().join(files[0].0), [0xff]).expect("file");
        assert_eq!(learn(&|_| ()).0, Some(Product::Other), "not asked again");
        assert_eq!(learn(&|f| f.modalias = "pci:b".to_owned()).0, Some(Product::Unread));
    }
}
