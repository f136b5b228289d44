//! Functions whose driver has given up to recover them, as the kernel log tells.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::kernel_log::KernelLog;
use crate::names::PciAddress;

/// What this process has read of the kernel log: each look goes on where the last one ended.
struct Read {
    log: KernelLog,
    given_up: BTreeSet<PciAddress>,
}

static READ: Mutex<Option<Read>> = Mutex::new(None);

/// The functions that keep their driver and have lost all that it had registered: firmware
/// failed, and the driver could not load the function again (`mlx5_health_try_recover()`,
/// drivers/net/ethernet/mellanox/mlx5/core/health.c). The driver does not try again by itself:
/// the function has to be unbound and bound. Of a VF this is so if it was recovered before its
/// PF.
///
/// # Errors
/// As [`KernelLog::open`] and [`KernelLog::drain`]. What has been overwritten in the log is
/// not known.
pub fn given_up() -> io::Result<BTreeSet<PciAddress>> {
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let read = match &mut *read {
        Some(read) => read,
        none => none.insert(Read { log: KernelLog::open()?, given_up: BTreeSet::new() }),
    };
    for line in read.log.drain()? {
        learn(&line.text, &mut read.given_up);
    }
    Ok(read.given_up.clone())
}

fn learn(line: &str, given_up: &mut BTreeSet<PciAddress>) {
    let Some((address, said)) = line.strip_prefix("mlx5_core ").and_then(|l| l.split_once(": "))
    else {
        return;
    };
    let Ok(address) = address.parse::<PciAddress>() else { return };
    if said.ends_with("health recovery failed") {
        given_up.insert(address);
    // mlx5_function_setup() of a new probe, or of a recovery that is tried again.
    } else if said.starts_with("firmware version: ")
        || said.ends_with("starting health recovery flow")
        || said.ends_with("health recovery succeeded")
    {
        given_up.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &[&str]) -> Vec<String> {
        let mut given_up = BTreeSet::new();
        lines.iter().for_each(|line| learn(line, &mut given_up));
        given_up.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_recovery_that_failed_is_over_when_the_function_is_probed_or_recovered_again() {
        let failed =
            "mlx5_core 0000:4b:00.1: mlx5_health_try_recover:355:(pid 32): health recovery failed";
        let other = "mlx5_core 0000:4b:00.2: health recovery succeeded";
        assert_eq!(after(&[failed, other]), ["0000:4b:00.1"]);
        for over in [
            "mlx5_core 0000:4b:00.1: firmware version: 20.35.1012",
            "mlx5_core 0000:4b:00.1: mlx5_health_try_recover:353:(pid 9): starting health recovery flow",
            "mlx5_core 0000:4b:00.1: health recovery succeeded",
        ] {
            assert_eq!(after(&[failed, over]), [""; 0], "{over}");
            assert_eq!(after(&[failed, over, failed]), ["0000:4b:00.1"], "{over}");
        }
        assert_eq!(after(&["mlx5_core 0000:4b:00.1 ib0: health recovery failed"]), [""; 0]);
        assert_eq!(after(&["x: health recovery failed"]), [""; 0]);
    }
}
