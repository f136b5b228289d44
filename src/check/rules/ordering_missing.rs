use super::{Judge, Rule};

pub(super) const RULE: Rule = Rule {
    code: "ordering-missing",
    meaning: "a service that needs InfiniBand netdevs is not ordered after what waits for them",
    page: "\
ibprov.service (or openibd.service) is up when the netdevs are there. A service
that uses them comes after it only if a chain of After= and Before= says so, over
units that the boot starts. Without that chain it is a race: it goes well while
the card is quick. The finding is made before it fails, from systemd's own graph
or from the unit files of a mounted system; it is an error where the service has
failed in this boot.

What to do: the drop-in that the finding shows.",
    needles: &[],
    causes: &[],
    judge: Judge::Host,
};
