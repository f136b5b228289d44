//! `[[guest]]`.

use super::good;
use crate::config::guest::{GuestIndex, Needs, What};
use crate::names::{OnFailure, Ready};

#[test]
fn each_setting_is_read_and_after_is_resolved() {
    let text = "[[guest]]\nunit = \"vm@8.service\"\nvfs = [\"0000:4b:00.0/0\", \"0000:4b:00.0/0\"]\nafter = [\"vm; reboot\"]\n\n[[guest]]\ndomain = \"vm; reboot\"\ntimeout = 5\non-failure = \"report\"\nready = \"agent\"\n";
    let config = good(&[text, "guests.max-parallel = 2"]);
    assert_eq!(config.guests.max_parallel, 2);
    let [unit, domain] = config.guests.list.as_slice() else { panic!("two: {config:?}") };
    assert!(matches!(&unit.what, What::Unit(name) if name.as_str() == "vm@8.service"));
    assert!(matches!(&unit.vfs, Needs::These(vfs) if vfs.len() == 1), "{unit:?}");
    assert_eq!(unit.after, [GuestIndex::new(1)]);
    assert_eq!(domain.what.name(), "vm; reboot");
    assert_eq!(domain.vfs, Needs::Auto);
    assert_eq!((domain.on_failure, domain.ready), (OnFailure::Report, Ready::Agent));
    assert_eq!((domain.timeout.as_secs(), domain.origin.as_str()), (5, "/etc/0.toml:6"));
}
