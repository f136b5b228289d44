//! What product data say that functions are for ([`crate::observe::vpd`]), asked once for
//! each in a boot and kept for all that look later; and, for those who decide which ports
//! are expected, who alone may bind a function without a driver (`driver_override`), asked
//! at each look, since another process may set it at any time.
//!
//! Nobody waits for it where nothing depends on it: until it is known, a function is what
//! its class says, and any driver may bind it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::client::{Client, Failure, Reply, wait};
use super::request::{Answer, Request};
use crate::host::{Root, answer, clock, process};
use crate::names::{Moment, PciAddress, Resource};
use crate::observe::vpd;
use crate::observe::{Observed, Observer, PciFunction, Product};

/// What has not been read after so long, is unread. Product data of a
/// ConnectX are read in milliseconds.
const LIMIT: Duration = Duration::from_secs(2);

/// For so long, they are waited for where nothing but a report depends on
/// them.
const GRACE: Duration = Duration::from_millis(5);

/// A child has so many questions at most: it works on each in a thread, on eight at a time.
const OF_A_CHILD: usize = 8;

/// Asks, and knows what was answered.
#[derive(Debug)]
pub struct Products<'a> {
    root: &'a Root,
    /// The children, and how many questions each has not answered.
    clients: Vec<(Client<'a>, usize)>,
    /// Functions are asked again whose product data another run could not read.
    is_again: bool,
    with_overrides: bool,
    /// For who only looks: each function has a child of its own, and there is one at a time.
    is_look: bool,
    asked: BTreeMap<PciAddress, ProductQuery>,
    overrides: BTreeMap<PciAddress, Override>,
    /// What could not be read or kept, one line each.
    pub problems: BTreeSet<String>,
}

#[derive(Debug)]
struct ProductQuery {
    modalias: String,
    since: Moment,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The number of the question, and the child that has it.
    Open(usize, u64),
    Known(Product),
}

/// What a function was asked for who alone may bind it.
#[derive(Debug, Default)]
struct Override {
    /// The question under way: the child that has it, and its number. There is one at a
    /// time, so that a function that hangs keeps one thread.
    open: Option<(usize, u64)>,
    /// Since when an answer is wanted; `None`: nothing depends on it now.
    since: Option<Moment>,
    /// What was answered last.
    known: Option<Option<String>>,
}

impl<'a> Products<'a> {
    /// Of the host below `root`.
    pub const fn new(root: &'a Root) -> Self {
        Self {
            root,
            clients: Vec::new(),
            is_again: false,
            with_overrides: false,
            is_look: false,
            asked: BTreeMap::new(),
            overrides: BTreeMap::new(),
            problems: BTreeSet::new(),
        }
    }

    /// One that tries once more what another run could not read.
    #[must_use]
    pub fn again(self) -> Self {
        Self { is_again: true, ..self }
    }

    /// One that also asks who alone may bind functions.
    #[must_use]
    pub fn with_overrides(self) -> Self {
        Self { with_overrides: true, ..self }
    }

    /// Ask for what `observed` does not know and nobody has asked for, and put in what
    /// has been answered. Does not wait.
    pub fn learn(&mut self, observed: &mut Observed, now: Moment) {
        self.query(observed, now);
        self.take(now);
        self.fill_in(observed, now);
    }

    /// As [`Products::learn`], but no child is started before the next [`Products::take`].
    pub fn learn_later(&mut self, observed: &mut Observed, now: Moment) {
        self.take(now);
        self.query(observed, now);
        self.fill_in(observed, now);
    }

    fn query(&mut self, observed: &Observed, now: Moment) {
        // Only root can read product data.
        if !self.root.is_live() || process::is_root() {
            self.ask_for_products(observed, now);
        }
        if self.with_overrides {
            self.ask_for_overrides(observed, now);
        }
    }

    fn fill_in(&mut self, observed: &mut Observed, now: Moment) {
        for function in &mut observed.functions {
            let pci = function.address;
            let asked = self.asked.get(&pci);
            let asked = asked.filter(|asked| asked.modalias == function.modalias);
            if let Some(ProductQuery { state: State::Known(product), .. }) = asked {
                function.product = Some(*product);
            }
            match self.overrides.get(&pci) {
                Some(Override { known: Some(driver), .. }) => {
                    function.driver_override.clone_from(driver);
                }
                Some(Override { since: Some(since), .. }) if *since + LIMIT <= now => {
                    self.problems.insert(format!(
                        "driver_override of {pci} could not be read within {} s, since a driver that hangs in its probe or removal holds the device lock: the ports of the function are expected",
                        LIMIT.as_secs()
                    ));
                }
                _ => {}
            }
        }
    }

    fn ask_for_products(&mut self, observed: &Observed, now: Moment) {
        for function in observed.functions.iter().filter(|f| f.is_told_by_product_data()) {
            let is_open = match function.product {
                None => true,
                Some(Product::Unread) => self.is_again,
                Some(Product::NvSwitchManagement | Product::Other) => false,
            };
            let (pci, modalias) = (function.address, &function.modalias);
            if is_open && self.asked.get(&pci).is_none_or(|asked| asked.modalias != *modalias) {
                let question = self.ask(pci, Request::Product);
                let state = question.map_or(State::Known(Product::Unread), |(child, number)| {
                    State::Open(child, number)
                });
                self.asked
                    .insert(pci, ProductQuery { modalias: modalias.clone(), since: now, state });
            }
        }
    }

    fn ask_for_overrides(&mut self, observed: &Observed, now: Moment) {
        let functions = observed.functions.iter().filter(|f| f.is_told_by_override());
        let told: BTreeSet<PciAddress> = functions.map(|f| f.address).collect();
        // One that has got a driver, or is gone, needs no answer.
        for (_, gone) in self.overrides.iter_mut().filter(|(pci, _)| !told.contains(pci)) {
            (gone.since, gone.known) = (None, None);
        }
        // udev may be about to load the driver of another, whose probe would keep the reader.
        for pci in told.into_iter().filter(|pci| observed.udev.is_done_with(&pci.to_string())) {
            if self.overrides.get(&pci).is_none_or(|asked| asked.open.is_none()) {
                let open = self.ask(pci, Request::Override);
                self.overrides.entry(pci).or_default().open = open;
            }
            self.overrides.entry(pci).or_default().since.get_or_insert(now);
        }
    }

    /// The child that has the question, and its number.
    fn ask(
        &mut self,
        pci: PciAddress,
        question: fn(PciAddress) -> Request,
    ) -> Option<(usize, u64)> {
        let request = question(pci);
        if self.is_look {
            let mut client = Client::new(self.root).patient().querying(Resource::Adapter(pci));
            let number = client.queue(&request);
            self.clients.push((client, OF_A_CHILD));
            return Some((self.clients.len() - 1, number));
        }
        if self.clients.iter().all(|(_, open)| *open >= OF_A_CHILD) {
            // It is silent when it is too late: that is judged here.
            self.clients.push((Client::new(self.root).patient(), 0));
        }
        let mut clients = self.clients.iter_mut().enumerate();
        let (child, (client, open)) = clients.find(|(_, (_, open))| *open < OF_A_CHILD)?;
        *open += 1;
        Some((child, client.queue(&request)))
    }

    /// Take the answers that have come, and give up on those that are too late. True if
    /// something is known now that was not.
    pub fn take(&mut self, now: Moment) -> bool {
        let mut replies: BTreeMap<(usize, u64), Reply> = BTreeMap::new();
        for (child, (client, open)) in self.clients.iter_mut().enumerate() {
            for (number, reply) in client.replies() {
                *open = open.saturating_sub(1);
                replies.insert((child, number), reply);
            }
        }
        let is_news = self.take_overrides(&mut replies);
        self.take_products(&mut replies, now) || is_news
    }

    fn take_overrides(&mut self, replies: &mut BTreeMap<(usize, u64), Reply>) -> bool {
        let mut is_news = false;
        for (pci, asked) in &mut self.overrides {
            let Some(reply) = asked.open.and_then(|question| replies.remove(&question)) else {
                continue;
            };
            asked.open = None;
            let driver = match reply {
                Ok(Answer::Override(driver)) => driver,
                Err(Failure::Refused(refusal)) if refusal.is_absent() => None,
                other => {
                    let failure = Failure::of(other);
                    self.problems.insert(format!(
                        "driver_override of {pci} could not be read: {failure}: the ports of the function are expected"
                    ));
                    None
                }
            };
            // To others it is of no use any more.
            if asked.since.is_some() && asked.known.as_ref() != Some(&driver) {
                asked.known = Some(driver);
                is_news = true;
            }
        }
        is_news
    }

    fn take_products(&mut self, replies: &mut BTreeMap<(usize, u64), Reply>, now: Moment) -> bool {
        let mut is_news = false;
        for (pci, asked) in &mut self.asked {
            let State::Open(child, number) = asked.state else { continue };
            let read = match replies.remove(&(child, number)) {
                Some(Ok(Answer::Product(product))) => Ok(product),
                Some(other) => {
                    Err(format!("{}: the function counts as an adapter", Failure::of(other)))
                }
                None if asked.since + LIMIT <= now => Err(format!(
                    "the vital product data of {pci} could not be read within {} s: the function counts as an adapter",
                    LIMIT.as_secs()
                )),
                None => continue,
            };
            is_news = true;
            // The kernel lets one process at a time read them, so that another run has been
            // answered where this one was not in time.
            let by_another = || vpd::known(self.root, *pci).filter(|kept| *kept != Product::Unread);
            let product = match read {
                Ok(product) => product,
                Err(problem) => {
                    if let Some(kept) = by_another() {
                        asked.state = State::Known(kept);
                        continue;
                    }
                    self.problems.insert(problem);
                    Product::Unread
                }
            };
            asked.state = State::Known(product);
            if self.root.is_live()
                && let Err(e) = vpd::keep(*pci, &asked.modalias, product)
            {
                self.problems.insert(format!("cannot write {e}"));
            }
        }
        is_news
    }

    /// The functions whose product data are still being read.
    pub fn open(&self) -> BTreeSet<PciAddress> {
        let open = self.asked.iter().filter(|(_, a)| matches!(a.state, State::Open(..)));
        open.map(|(pci, _)| *pci).collect()
    }

    /// Until when to wait for answers: `is_needed` where
    /// something may depend on them. `None` if none is to come in time.
    pub fn due(&self, is_needed: bool, now: Moment) -> Option<Moment> {
        let limit = if is_needed { LIMIT } else { GRACE };
        let open = self.asked.values().filter(|a| matches!(a.state, State::Open(..)));
        // What was answered before is asked again for news only.
        let first = self.overrides.values().filter(|asked| asked.known.is_none());
        let since = open.map(|asked| asked.since).chain(first.filter_map(|asked| asked.since));
        let until = since.map(|since| since + limit).filter(|until| *until > now).min()?;
        let clients = self.clients.iter().filter_map(|(client, _)| client.until());
        clients.chain([until]).min()
    }

    /// What can be read when an answer has come.
    pub fn answers_come(&self) -> Vec<BorrowedFd<'_>> {
        let is_open = |child: usize| {
            self.asked.values().any(|a| matches!(a.state, State::Open(of, _) if of == child))
                || self.overrides.values().any(|a| a.open.is_some_and(|(of, _)| of == child))
        };
        let open = self.clients.iter().enumerate().filter(|(child, _)| is_open(*child));
        open.filter_map(|(_, (client, _))| client.fd()).collect()
    }

    /// As [`Products::learn`], and wait for the answers.
    pub fn read_all(&mut self, observed: &mut Observed) {
        loop {
            let now = clock::now();
            self.learn(observed, now);
            let Some(until) = self.due(true, now) else { return };
            if let Err(e) = wait(&self.answers_come(), until) {
                let e = answer(&e);
                self.problems
                    .insert(format!("cannot wait for answers of child processes: poll: {e}"));
                return;
            }
        }
    }
}

/// True if the function manages an NVSwitch, as far as that can be known.
pub fn manages_nvswitch(root: &Root, pci: PciAddress) -> bool {
    // No VF does, and each of hundreds would look at all.
    if root.exists(&format!("/sys/bus/pci/devices/{pci}/physfn")) {
        return false;
    }
    if let Some(product) = vpd::known(root, pci) {
        return product == Product::NvSwitchManagement;
    }
    let mut observed = Observer::new(root).look_at_pfs();
    observed.functions.retain(|function| function.address == pci);
    for problem in read_all(root, &mut observed, false) {
        tracing::debug!(cause = problem, "{problem}");
    }
    observed.functions.iter().any(PciFunction::manages_nvswitch)
}

/// Put into `observed` what product data say, those of functions too that nobody has asked
/// before; `is_look` is true for who only looks. Gives what could not be read or kept.
pub fn read_all(root: &Root, observed: &mut Observed, is_look: bool) -> BTreeSet<String> {
    let mut products = Products { is_look, ..Products::new(root) };
    products.read_all(observed);
    products.problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::status::Udev;
    use crate::names::at;

    fn open(since: Moment) -> ProductQuery {
        ProductQuery { modalias: "pci:a".to_owned(), since, state: State::Open(0, 1) }
    }

    fn pci(text: &str) -> PciAddress {
        text.parse().expect("address")
    }

    #[test]
    fn answers_are_waited_for_while_something_depends_on_them_and_two_seconds_at_most() {
        let dir = tempfile::tempdir().expect("directory");
        let root = Root::copy_at(dir.path()).expect("root");
        let mut products = Products::new(&root);
        assert_eq!(products.due(true, Moment::START), None);
        let (first, second) = (pci("0000:01:00.0"), pci("0000:02:00.0"));
        products.asked.insert(first, open(at(1_000_000)));
        products.asked.insert(second, open(at(1_500_000)));
        assert_eq!(products.due(true, at(1_600_000)), Some(at(3_000_000)));
        assert_eq!(products.due(false, at(1_504_000)), Some(at(1_505_000)));
        assert_eq!(products.due(false, at(1_600_000)), None, "nothing depends on them");
        assert!(!products.take(at(2_999_999)));
        assert!(products.take(at(3_000_000)), "the first has had its time");
        assert_eq!(products.open(), BTreeSet::from([second]));
        assert_eq!(products.due(true, at(3_000_000)), Some(at(3_500_000)));
        assert!(products.take(at(3_500_000)));
        assert_eq!((products.due(true, at(3_500_000)), products.problems.len()), (None, 2));
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
            products.learn(&mut observed, at(7));
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

    /// A run whose read is queued behind that of another run must not undo what that learnt.
    #[test]
    fn what_another_run_has_read_holds_where_this_one_could_not_in_time() {
        let modalias = ("sys/bus/pci/devices/0000:4b:00.0/modalias", "pci:a\n");
        let state_with = |product: &str| {
            let kept = format!(r#"{{"modalias":"pci:a","product":"{product}"}}"#);
            let files = [modalias, ("run/ibprov/vpd/0000:4b:00.0.json", kept.as_str())];
            let dir = crate::host::testing::tree(&files, &[]);
            let root = Root::copy_at(dir.path()).expect("root");
            let mut products = Products::new(&root).again();
            products.asked.insert(pci("0000:4b:00.0"), open(Moment::START));
            assert!(products.take(Moment::START + LIMIT));
            let mut known = products.asked.into_values().map(|asked| match asked.state {
                State::Known(product) => Some(product),
                State::Open(..) => None,
            });
            (known.next().flatten(), products.problems.len())
        };
        let management = Some(Product::NvSwitchManagement);
        assert_eq!(state_with("nvswitch-management"), (management, 0));
        assert_eq!(state_with("other"), (Some(Product::Other), 0));
        assert_eq!(state_with("unread"), (Some(Product::Unread), 1));
    }

    const OVERRIDE: &str = "sys/bus/pci/devices/0000:4b:00.0/driver_override";

    /// One ConnectX-6 without a driver, which udev has finished with.
    fn driverless() -> Observed {
        let udev = Udev { settled: true, ..Udev::default() };
        let functions = vec![PciFunction::connectx6()];
        Observed { functions, udev, ..Observed::default() }
    }

    #[test]
    fn a_look_reads_no_driver_override_and_who_needs_it_has_a_child_asked() {
        let function = "sys/bus/pci/devices/0000:4b:00.0";
        let class = (format!("{function}/class"), "0x020700\n");
        let dir = crate::host::testing::tree(&[(&class.0, class.1), (OVERRIDE, "none\n")], &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let mut observed = Observer::new(&root).look([], &BTreeSet::new());
        let driver = |observed: &Observed| observed.functions[0].driver_override.clone();
        assert_eq!(driver(&observed), None, "its reader may never come back");
        read_all(&root, &mut observed, false);
        assert_eq!(driver(&observed), None, "nothing depends on it");
        Products::new(&root).with_overrides().read_all(&mut observed);
        assert_eq!(driver(&observed).as_deref(), Some("none"));
    }

    #[test]
    fn driver_override_is_asked_for_at_each_look_at_a_function_without_a_driver() {
        let dir = crate::host::testing::tree(&[(OVERRIDE, "vfio-pci\n")], &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let mut products = Products::new(&root).with_overrides();
        let mut learn = |change: &dyn Fn(&mut Observed)| {
            let mut observed = driverless();
            change(&mut observed);
            products.learn(&mut observed, at(7));
            observed.functions.pop().and_then(|function| function.driver_override)
        };
        let vfio = Some("vfio-pci".to_owned());
        assert_eq!(learn(&|o| o.functions[0].physfn = Some(pci("0000:4b:00.1"))), None, "a VF");
        assert_eq!(learn(&|o| o.udev.settled = false), None, "a driver may be about to probe it");
        assert_eq!(learn(&|_| ()), vfio);
        assert_eq!(learn(&|o| o.udev.settled = false), vfio, "known");
        std::fs::write(dir.path().join(OVERRIDE), "(null)\n").expect("written");
        assert_eq!(learn(&|o| o.udev.settled = false), vfio, "not asked");
        assert_eq!(learn(&|_| ()), None, "another process has cleared it");
        std::fs::write(dir.path().join(OVERRIDE), "none\n").expect("written");
        let bound = |o: &mut Observed| o.functions[0].driver = Some("mlx5_core".to_owned());
        assert_eq!(learn(&bound), None, "it has its driver");
        assert_eq!(learn(&|o| o.udev.settled = false), None, "what was known is not any more");
        assert_eq!(learn(&|_| ()).as_deref(), Some("none"));
    }

    #[test]
    fn a_driver_override_that_is_not_answered_is_waited_for_two_seconds_and_holds_one_thread() {
        let dir = tempfile::tempdir().expect("directory");
        let root = Root::copy_at(dir.path()).expect("root");
        let mut products = Products::new(&root).with_overrides();
        let function = pci("0000:4b:00.0");
        let hangs = Override { open: Some((0, 99)), since: None, known: None };
        products.overrides.insert(function, hangs);
        let mut learn = |observed: &mut Observed, now| {
            products.learn(observed, now);
            let open = products.overrides.get(&function).and_then(|asked| asked.open);
            (products.due(true, now), open, products.problems.len())
        };
        let open = Some((0, 99));
        assert_eq!(learn(&mut driverless(), at(1_000_000)), (Some(at(3_000_000)), open, 0));
        assert_eq!(learn(&mut driverless(), at(2_000_000)), (Some(at(3_000_000)), open, 0));
        let mut observed = driverless();
        assert_eq!(learn(&mut observed, at(3_000_000)), (None, open, 1));
        assert_eq!(observed.functions[0].driver_override, None, "so its ports are expected");
        let mut bound = driverless();
        bound.functions[0].driver = Some("mlx5_core".to_owned());
        assert_eq!(learn(&mut bound, at(4_000_000)), (None, open, 1), "it needs none");
        assert_eq!(learn(&mut driverless(), at(5_000_000)), (Some(at(7_000_000)), open, 1));
        let late = BTreeMap::from([((0, 99), Ok(Answer::Override(Some("none".to_owned()))))]);
        assert!(products.take_overrides(&mut late.clone()), "an answer is another look");
        let asked = products.overrides.get_mut(&function).expect("asked");
        asked.open = open;
        assert!(!products.take_overrides(&mut late.clone()), "the same answer is none");
        let asked = products.overrides.get_mut(&function).expect("asked");
        *asked = Override { open, since: None, known: None };
        assert!(!products.take_overrides(&mut late.clone()), "the function has its driver");
    }

    #[test]
    fn questions_that_hang_keep_no_thread_from_others() {
        let dir = tempfile::tempdir().expect("directory");
        let root = Root::copy_at(dir.path()).expect("root");
        let mut products = Products::new(&root);
        let mut child = || products.ask(pci("0000:4b:00.0"), Request::Override).map(|(of, _)| of);
        let of: Vec<_> = (0..=OF_A_CHILD).filter_map(|_| child()).collect();
        assert_eq!(of.iter().filter(|of| **of == 0).count(), OF_A_CHILD);
        assert_eq!(of.last(), Some(&1));
        products.take(Moment::START);
        let free = products.ask(pci("0000:4b:00.0"), Request::Override);
        assert_eq!(free.map(|(of, _)| of), Some(0), "what has been answered keeps none");
    }
}
