//! What is known of libvirt: its lists as far as they have come, its domains,
//! and when it is asked again. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use super::domain::Domains;
use super::failure::Failure;
use super::tasks::List;
use crate::names::Moment;

/// How often libvirt is asked again while it does not answer, although its
/// directory shows no new socket.
const AGAIN: Duration = Duration::from_secs(5);

/// libvirt, as far as it has answered.
#[derive(Debug)]
pub(super) struct Libvirt {
    /// Its connection URI, for messages.
    connection: String,
    /// While it is being asked: what of the answers has come.
    lists: Option<BTreeMap<List, Result<String, Failure>>>,
    domains: Option<Domains>,
    /// When it is to be asked again; `None` unless it did not answer.
    ask_at: Option<Moment>,
}

impl Libvirt {
    /// libvirt at this connection, not asked yet.
    pub(super) const fn new(connection: String) -> Self {
        Self { connection, lists: None, domains: None, ask_at: None }
    }

    /// It is being asked for its lists: answers to earlier questions are void.
    pub(super) fn begin(&mut self) {
        self.lists = Some(BTreeMap::new());
        self.ask_at = None;
    }

    /// One list has come, or has not. With the last one: all its domains, or why
    /// they are not known.
    pub(super) fn listed(
        &mut self,
        list: List,
        result: Result<String, Failure>,
    ) -> Option<Result<&Domains, String>> {
        let lists = self.lists.as_mut()?;
        lists.insert(list, result);
        if List::EACH.iter().any(|list| !lists.contains_key(list)) {
            return None;
        }
        let mut lists = self.lists.take()?;
        let mut of = |list| lists.remove(&list);
        match (of(List::All)?, of(List::Active)?, of(List::Autostart)?) {
            (Ok(all), Ok(active), Ok(autostart)) => {
                let domains = Domains::parse(&all, &active, &autostart);
                Some(Ok(self.domains.insert(domains)))
            }
            (Err(why), ..) | (_, Err(why), _) | (.., Err(why)) => {
                Some(Err(format!("libvirt ({}) does not answer: {why}", self.connection)))
            }
        }
    }

    /// It does not answer: it is asked again after a while.
    pub(super) fn ask_later(&mut self, now: Moment) {
        self.ask_at = Some(now + AGAIN);
    }

    /// It is asked again at once.
    pub(super) const fn ask_at_once(&mut self, now: Moment) {
        self.ask_at = Some(now);
    }

    /// Something has happened where its sockets are: one that did not answer is
    /// asked again.
    pub(super) fn hear(&mut self) {
        self.ask_at = self.ask_at.map(|_| Moment::START);
    }

    /// When it is asked again; `None` unless it did not answer, and while it is being asked.
    pub(super) const fn ask_at(&self) -> Option<Moment> {
        if self.lists.is_some() { None } else { self.ask_at }
    }

    /// Name and UUID of each domain that it starts by itself.
    pub(super) fn autostarted(&self) -> Vec<(String, String)> {
        let domains = self.domains.iter().flat_map(Domains::autostarted);
        domains.map(|(name, uuid)| (name.to_owned(), uuid.to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{listed, refusal};
    use super::*;
    use crate::names::at;

    #[test]
    fn domains_are_known_when_all_three_lists_have_come() {
        let mut libvirt = Libvirt::new("qemu:///system".to_owned());
        let (line, uuid) = listed("vm", 1);
        libvirt.begin();
        assert_eq!(libvirt.listed(List::Active, Ok("vm\n".to_owned())), None);
        assert_eq!(libvirt.listed(List::All, Ok(line.clone())), None);
        // Asked anew, what came before counts no longer.
        libvirt.begin();
        assert_eq!(libvirt.listed(List::Autostart, Ok("vm\n".to_owned())), None);
        assert_eq!(libvirt.listed(List::Active, Ok(String::new())), None);
        let domains = libvirt.listed(List::All, Ok(line));
        assert!(matches!(domains, Some(Ok(all)) if !all.is_active("vm")), "{domains:?}");
        assert_eq!(libvirt.autostarted(), [("vm".to_owned(), uuid)]);
    }

    #[test]
    fn one_list_that_fails_is_a_libvirt_that_does_not_answer() {
        let mut libvirt = Libvirt::new("test:///default".to_owned());
        libvirt.begin();
        libvirt.listed(List::All, Ok(String::new()));
        libvirt.listed(List::Active, Err(refusal("no")));
        let trouble = libvirt.listed(List::Autostart, Ok(String::new()));
        let text = trouble.expect("all three").expect_err("one failed").to_string();
        assert_eq!(text, "libvirt (test:///default) does not answer: no");
        assert_eq!(libvirt.autostarted(), []);
    }

    #[test]
    fn who_did_not_answer_is_asked_again_later_or_when_a_socket_comes() {
        let mut libvirt = Libvirt::new("qemu:///system".to_owned());
        libvirt.hear();
        assert_eq!(libvirt.ask_at(), None);
        libvirt.ask_later(at(7));
        assert_eq!(libvirt.ask_at(), Some(at(7) + AGAIN));
        libvirt.hear();
        assert_eq!(libvirt.ask_at(), Some(Moment::START));
    }
    /// Two domains were being started when it died.
    #[test]
    fn who_is_being_asked_is_asked_again_when_all_has_come() {
        let mut libvirt = Libvirt::new("qemu:///system".to_owned());
        libvirt.begin();
        libvirt.ask_at_once(at(7));
        assert_eq!(libvirt.ask_at(), None);
        for list in List::EACH {
            assert_eq!(libvirt.ask_at(), None);
            libvirt.listed(list, Ok(String::new()));
        }
        assert_eq!(libvirt.ask_at(), Some(at(7)));
    }
}
