//! `[[guest]]`.

use expect_test::expect;

use super::{bad, good, loaded};
use crate::config::guest::{GuestIndex, Needs, What};
use crate::config::to_toml;
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

#[test]
fn what_is_shown_can_be_read_again() {
    let text = "[[guest]]\ndomain = 'a \"b\" \\c ü'\nvfs = [\"auto\"]\n[[guest]]\ndomain = \"x\"\nafter = ['a \"b\" \\c ü']\n";
    let shown = to_toml(&loaded(&[text]).expect("good").effective());
    let (mut again, mut before) = (good(&[&shown]), good(&[text]));
    for guest in again.guests.list.iter_mut().chain(&mut before.guests.list) {
        guest.origin.clear();
    }
    assert_eq!(again, before, "{shown}");
}

#[test]
fn every_way_to_go_wrong_is_shown() {
    bad(
        &[
            "[[guest]]\ndomain = \"a\"\nunit = \"a.service\"\n[[guest]]\nvfs = [\"auto\"]\n",
            "[[guest]]\nunit = \"b.service\"\nvfs = [\"auto\"]\nready = \"agent\"\n[[guest]]\ndomain = \"c\"\nvfs = [\"auto\", \"0000:4b:00.0/1\"]\n[[guest]]\ndomain = \"c\"\n",
        ],
        &expect![[r#"
            error: guest is both a domain and a unit
             --> /etc/0.toml:2:10
              |
            2 | domain = "a"
              |          ^^^ a domain
            3 | unit = "a.service"
              |        ----------- and a unit
              |
              = help: keep one; use a second [[guest]] for the other

            error: guest names neither a domain nor a unit
             --> /etc/0.toml:4:1
              |
            4 | [[guest]]
              | ^^^^^^^^^ names nothing
              |
              = help: give domain or unit

            error: the VFs of a unit cannot be determined automatically
             --> /etc/1.toml:3:7
              |
            3 | vfs = ["auto"]
              |       ^^^^^^^^ auto stands for the hostdev devices of a domain
              |
              = help: name each VF as PF/INDEX

            error: a unit has no guest agent
             --> /etc/1.toml:4:9
              |
            4 | ready = "agent"
              |         ^^^^^^^ for domains only
              |
              = help: use a unit that reports when it is ready (Type=notify)

            error: vfs names VFs beside auto
             --> /etc/1.toml:7:7
              |
            7 | vfs = ["auto", "0000:4b:00.0/1"]
              |       ^^^^^^^^^^^^^^^^^^^^^^^^^^ auto and others
              |
              = help: either "auto" alone, or every VF by name

            error: the same guest is listed twice
             --> /etc/1.toml:9:10
              |
            5 | [[guest]]
              | --------- and first here
            6 | domain = "c"
            7 | vfs = ["auto", "0000:4b:00.0/1"]
            8 | [[guest]]
            9 | domain = "c"
              |          ^^^ here
              |
              = help: keep one of the two; `guest = []` in a file between them clears the list before it

            the configuration is not valid: 6 errors"#]],
    );
}

#[test]
fn circles_and_strangers_in_after_are_told() {
    bad(
        &[
            "[[guest]]\ndomain = \"a\"\nafter = [\"b\", \"nobody\"]\n[[guest]]\ndomain = \"b\"\nafter = [\"c\"]\n[[guest]]\ndomain = \"c\"\nafter = [\"a\"]\n",
        ],
        &expect![[r#"
            error: domain a comes after itself
             --> /etc/0.toml:1:1
              |
            1 | [[guest]]
              | ^^^^^^^^^ here the cycle begins
              |
              = help: remove one of the guests from an `after` list

            error: guest is after "nobody", which is not a guest
             --> /etc/0.toml:3:9
              |
            3 | after = ["b", "nobody"]
              |         ^^^^^^^^^^^^^^^ there is no [[guest]] of this name
              |
              = help: write the domain or unit exactly as its own [[guest]] does

            the configuration is not valid: 2 errors"#]],
    );
}

#[test]
fn a_vf_that_its_pf_does_not_have() {
    let pf = "[[pf]]\npci = \"5e:00.0\"\nvfs = 4\nguid.offset = 1\n";
    // Others may make VFs of a PF without a plan; without VFs, it is only out of use for now.
    let guest = "[[guest]]\ndomain = \"a\"\nvfs = [\"4b:00.0/9\", \"5e:00.0/3\"]\n";
    good(&[pf, guest]);
    let past = guest.replace("e:00.0/3", "e:00.0/9");
    good(&[&pf.replace("vfs = 4", "vfs = 0"), &past]);
    bad(
        &[pf, &past],
        &expect![[r#"
            error: guest needs VF 9 of PF 0000:5e:00.0, which has none of that number
             --> /etc/1.toml:3:21
              |
            3 | vfs = ["4b:00.0/9", "5e:00.0/9"]
              |                     ^^^^^^^^^^^ the last VF is 3
              |
             ::: /etc/0.toml:3:7
              |
            3 | vfs = 4
              |       - the number of VFs, counted from 0

            the configuration is not valid: 1 error"#]],
    );
}
