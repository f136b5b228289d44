//! Two adapters whose VFs are all for guests: n, 2n, 4n of them, each in a boot of its own. Run
//! by `make test-all` alone.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::bed::outcome::Outcome;
use crate::bed::scenario::Scenario;
use crate::bed::{once, stage, tools};
use crate::card::assert_sound;
use crate::machine;
use crate::scale::{Growth, assert_soon, most};

/// The numbers of VFs that each of the two adapters has. IBPROV_CAMPAIGN_VFS gives others, at
/// most 127: the most that a ConnectX port has.
fn stages() -> [u32; 3] {
    let given = std::env::var("IBPROV_CAMPAIGN_VFS").unwrap_or_else(|_| "8,16,32".to_owned());
    let numbers = given.split(',').map(|one| one.parse().expect("a number"));
    let numbers: Vec<u32> = numbers.collect();
    numbers.try_into().unwrap_or_else(|other| panic!("IBPROV_CAMPAIGN_VFS: {other:?}"))
}

/// The boot of a scenario with so many VFs.
fn boot(name: &str, vfs: u32) -> Arc<Outcome> {
    let label = format!("{name}.{vfs}");
    once(&label, || {
        let folder = tools::project().join("tests/vm/scenarios");
        let mut scenario = Scenario::load(&folder, name)?;
        let settings = &mut scenario.settings;
        write!(settings.cmdline, " bed.vfs={vfs}").expect("a string");
        settings.card.iter_mut().for_each(|card| card.vfs = vfs);
        if settings.agent {
            let root = stage::folder("vm", &format!("{label}.root"))?;
            let folder = root.join("etc/ibprov");
            std::fs::create_dir_all(&folder)
                .and_then(|()| std::fs::write(folder.join("ibprov.toml"), configuration(vfs)))
                .map_err(|e| format!("{}: {e}", folder.display()))?;
            scenario.roots.push(root);
        }
        machine::run(&scenario, &label)
    })
}

/// All VFs for vfio-pci, each for a guest of its own.
fn configuration(vfs: u32) -> String {
    let mut text = format!(
        r#"[[pf]]
pci = ["0001:01:00.0", "0001:02:00.0"]
vfs = {vfs}
driver = "vfio-pci"
guid.template = "02:00:00:70:{{pf:8}}:{{kind:8}}:{{vf:16}}"
"#
    );
    for (pf, vf) in (0..2).flat_map(|pf| (0..vfs).map(move |vf| (pf, vf))) {
        let vf_name = format!("0001:0{}:00.0/{vf}", pf + 1);
        write!(text, "\n[[guest]]\nunit = \"vm@{pf}-{vf}.service\"\nvfs = [\"{vf_name}\"]\n")
            .expect("a string");
    }
    text
}

const COLUMNS: [&str; 6] = ["ms", "plan us", "guests us", "PID 1 us", "bus us", "udev us"];

/// The figures of a way, in the order of the columns.
fn figures(guest: &Outcome, way: &str) -> Vec<f64> {
    let text = guest.file("figures");
    let of_way = text.lines().find_map(|line| line.strip_prefix(way)?.strip_prefix(' '));
    let line = of_way.unwrap_or_else(|| panic!("no {way} in {text}"));
    let figures: Vec<f64> = line.split(' ').map(|one| one.parse().expect("a number")).collect();
    assert_eq!(figures.len(), COLUMNS.len(), "{line}");
    figures
}

#[test]
#[ignore = "boots with hundreds of VFs take minutes"]
fn guests_cost_as_much_where_there_are_many_whether_they_come_with_their_vfs_or_before() {
    let vfs = stages();
    let guests = vfs.map(|vfs| boot("scale_guests", vfs));
    for (guest, vfs) in guests.iter().zip(vfs) {
        guest.assert_success();
        assert_sound(guest);
        assert_eq!(guest.boot_json()["verdict"], "ready", "{vfs}: {}", guest.stdout());
        let all = 2 * vfs;
        assert_eq!(guest.stdout(), format!("StatusText={all} of {all} guests up\n"), "{vfs}");
        let planned = guest.file("planned");
        assert_eq!(
            planned.lines().filter(|line| line.contains(" vfio-pci ")).count(),
            2 * vfs as usize
        );
        assert_eq!(guest.file("planned.late"), planned);
    }
    let mut growth = Growth::of(vfs.map(|vfs| 2 * vfs));
    for way in ["boot", "late"] {
        let of_way = [0, 1, 2].map(|nth| figures(&guests[nth], way));
        for (column, name) in COLUMNS.iter().enumerate() {
            // Other work on the machine counts as theirs. A look and a report of all guests for
            // each that starts made it 1.6, and 2.0 where they came late.
            let of_column = [0, 1, 2].map(|nth| of_way[nth][column]);
            let what = format!("{way}, {name}");
            match *name {
                // Of a plan of few VFs most is the boot's, and 15 ms are a start of a program.
                "plan us" => growth.holds(&what, of_column, 1.5, 15_000.0),
                "guests us" => growth.holds(&what, of_column, 1.5, 0.0),
                _ => growth.holds_of_boot(&what, of_column, 1.5),
            }
        }
    }
    for service in ["ibprov", "ibprov-guests"] {
        let of = |what: &str| [0, 1, 2].map(|nth| most(&guests[nth], &format!("{service}.{what}")));
        println!("{service}, KiB charged to it at most: {:?}", of("memory"));
        // The report of all guests is some buffers, which grow by doubling.
        growth.holds(&format!("{service}, KiB of its own"), of("anon"), 1.5, 8.0);
        // With their threads: a child works on eight requests at once, and each PF has two.
        let tasks = of("tasks");
        println!("{service}, tasks at most: {tasks:?}");
        assert!(tasks[2] <= 64.0, "{service}: {tasks:?}");
    }
    let bus = [0, 1, 2].map(|nth| most(&guests[nth], "bus"));
    println!("connections to the bus at most: {bus:?}");
    assert!(bus[2] <= bus[0] + 8.0, "connections to the bus: {bus:?}");
    growth.assert_all_hold();
}

#[test]
#[ignore = "boots with hundreds of VFs take minutes"]
fn beside_hundreds_of_vfs_units_start_as_soon_as_by_hand() {
    let [.., most] = stages();
    let (guest, bare) = (boot("scale_guests", most), boot("scale_guests_bare", most));
    bare.assert_success();
    assert_sound(&bare);
    assert_eq!(bare.stdout(), "");
    let vfs = bare.file("planned").lines().filter(|line| line.contains(" vfio-pci ")).count();
    assert_eq!(vfs, 2 * most as usize);
    let (ours, by_hand) = (figures(&guest, "boot"), figures(&bare, "boot"));
    for (column, name) in COLUMNS.iter().enumerate() {
        println!("{name}: {} with ibprov, {} by hand", ours[column], by_hand[column]);
    }
    assert_soon(&guest, &bare);
}
