//! A machine without InfiniBand: success at once, and said so.

use crate::machine::boot;

#[test]
fn without_an_hca_the_unit_is_active() {
    let guest = boot("no_hca");
    guest.assert_success();
    assert_eq!(guest.stdout(), "active\n");
}
