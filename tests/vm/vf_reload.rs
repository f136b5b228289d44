//! The distribution's mlx5 drivers are reloaded while VFs are planned.

use crate::card::assert_sound;
use crate::machine::boot;
use crate::vf_faults::assert_exit;
use crate::vf_plan::{grown, planned};

/// The card keeps the GUIDs, and each VF has its RDMA device again.
#[test]
fn when_mlx5_ib_was_reloaded_the_vfs_are_as_planned() {
    let guest = boot("vf_reload");
    guest.assert_success();
    assert_sound(&guest);
    assert_eq!(guest.file("fresh"), planned("0200:0070", 0, 2));
    assert_eq!(guest.file("rdma"), planned("0200:0070", 0, 2));
    assert_exit(&guest, "rdma", 0);
    assert!(grown(&guest, "counters.before", "counters.after").is_empty());
}

#[test]
fn when_the_drivers_were_reloaded_the_plan_is_carried_out_without_a_hand() {
    let guest = boot("vf_reload");
    assert!(guest.stdout().contains("somebody cared\n"), "{}", guest.stdout());
    assert_eq!(guest.file("all"), planned("0200:0070", 0, 2));
}
