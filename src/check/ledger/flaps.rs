//! Links that come and go.

use std::collections::BTreeMap;

use super::Entities;
use crate::check::evidence::fold::lines::{link_of_driver, of_manager, of_networkd, port_state};
use crate::check::evidence::fold::{Lack, State};
use crate::check::evidence::{Boot, Event};

/// So many losses within [`SPAN`] are no accident.
const MANY: usize = 3;
/// One hour, in microseconds.
const SPAN: i64 = 3_600_000_000;

/// A link that was lost and came back several times.
#[derive(Debug)]
pub struct Flap<'a> {
    pub object: String,
    /// The losses; where none was logged, each time that it came back.
    pub losses: Vec<&'a Event>,
    pub is_sure: bool,
}

/// What `event` says of a link: whose, and whether it is up.
fn link(event: &Event) -> Option<(String, bool)> {
    let text = &*event.text;
    if let Some((port, state)) = port_state(text).filter(|(_, state)| *state != "INIT") {
        return Some((port, state == "ACTIVE"));
    }
    if let Some((name, is_up)) = link_of_driver(text) {
        return Some((name.to_owned(), is_up));
    }
    match of_networkd(text).or_else(|| of_manager(text))? {
        (name, State::Good) if text.contains("arrier") => Some((name.to_owned(), true)),
        (name, State::Bad(Lack::Carrier)) => Some((name.to_owned(), false)),
        _ => None,
    }
}

/// The links of the fabric in `boot` that were lost several times within an hour.
pub(super) fn flaps<'a>(boot: &'a Boot, entities: &Entities) -> Vec<Flap<'a>> {
    let mut links: BTreeMap<String, [Vec<&Event>; 2]> = BTreeMap::new();
    for event in &boot.events {
        let Some((object, is_up)) = link(event) else { continue };
        if entities.in_text(&object).next().is_some() {
            let [downs, ups] = links.entry(object).or_default();
            if is_up { ups.push(event) } else { downs.push(event) }
        }
    }
    let flap = |(object, [downs, ups]): (String, [Vec<&'a Event>; 2])| {
        let is_sure = downs.len() >= MANY;
        // The first time that it comes up follows no loss.
        let losses = if is_sure { downs } else { ups.into_iter().skip(1).collect() };
        is_frequent(&losses).then_some(Flap { object, losses, is_sure })
    };
    links.into_iter().filter_map(flap).collect()
}

fn is_frequent(losses: &[&Event]) -> bool {
    let within = |window: &[&Event]| match window {
        [first, .., last] => last.when.since(&first.when).is_some_and(|gap| gap <= SPAN),
        _ => false,
    };
    losses.windows(MANY).any(within)
}
