//! What may run beside what.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Machines of one test process that run side by side. While a guest waits, which is
/// most of what many scenarios do, it uses hardly any processor.
const MACHINES: usize = 2;

static RUNNING: Mutex<Running> = Mutex::new(Running { machines: 0, turn: None });
static ENDED: Condvar = Condvar::new();

struct Running {
    machines: usize,
    /// Held while there are any: no other test process runs one then.
    turn: Option<File>,
}

/// A machine may run until this is dropped.
pub(crate) struct MachineTurn(usize);

/// Waits until a machine may run; one that is `alone` runs with no other.
pub(crate) fn machine(alone: bool) -> Result<MachineTurn, String> {
    let counts = if alone { MACHINES } else { 1 };
    let mut running = ENDED
        .wait_while(running(), |r| r.machines + counts > MACHINES)
        .unwrap_or_else(PoisonError::into_inner);
    if running.turn.is_none() {
        running.turn = Some(turn("qemu")?);
    }
    running.machines += counts;
    Ok(MachineTurn(counts))
}

impl Drop for MachineTurn {
    fn drop(&mut self) {
        let mut running = running();
        running.machines -= self.0;
        if running.machines == 0 {
            running.turn = None;
        }
        ENDED.notify_all();
    }
}

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lock in the image cache, held until the result is dropped: of what `name`
/// stands for, the machine runs one at a time.
pub(crate) fn turn(name: &str) -> Result<File, String> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|h| Path::new(&h).join(".cache")))
        .ok_or("neither XDG_CACHE_HOME nor HOME is set")?
        .join("ibprov/locks");
    std::fs::create_dir_all(&cache).map_err(|e| format!("{}: {e}", cache.display()))?;
    let path = cache.join(name);
    let file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(|e| format!("{}: {e}", path.display()))?;
    file.lock().map_err(|e| format!("lock {}: {e}", path.display()))?;
    Ok(file)
}
