use std::cell::OnceCell;
use std::collections::BTreeSet;

use super::Look;
use crate::names::{ModuleName, ModuleState};

/// `/sys/module/NAME` says it; a built-in module without parameters has no
/// such directory, so `modules.builtin` is asked as well.
pub(super) fn state(
    look: &mut Look<'_>,
    builtin: &OnceCell<BTreeSet<String>>,
    kernel: &str,
    name: &ModuleName,
) -> ModuleState {
    let dir = format!("/sys/module/{name}");
    if look.root.exists(&dir) {
        return match look.attribute(&format!("{dir}/initstate")).as_deref() {
            Some("coming") => ModuleState::Loading,
            Some("going") => ModuleState::Absent,
            _ => ModuleState::Loaded,
        };
    }
    let builtin = builtin.get_or_init(|| {
        let reading = look.root.text(&format!("/lib/modules/{kernel}/modules.builtin"), 4 << 20);
        look.note(reading).map(|text| names(&text)).unwrap_or_default()
    });
    if builtin.contains(name.as_str()) { ModuleState::Loaded } else { ModuleState::Absent }
}

/// Whether `modules.dep` of `kernel` has `name`; `None` if it cannot be read.
pub fn is_built(root: &crate::host::Root, kernel: &str, name: &ModuleName) -> Option<bool> {
    let text = root.text(&format!("/lib/modules/{kernel}/modules.dep"), 64 << 20).ok()?;
    Some(text.lines().filter_map(|l| l.split_once(':')).any(|(path, _)| {
        let file = path.rsplit('/').next().unwrap_or(path);
        let stem = file.split_once(".ko").map_or(file, |(stem, _)| stem);
        stem.replace('-', "_") == name.as_str()
    }))
}

/// `modules.builtin` has a path a line: `kernel/drivers/base/x-y.ko`.
fn names(text: &str) -> BTreeSet<String> {
    let files = text.lines().map(|line| line.rsplit('/').next().unwrap_or(line));
    files.filter_map(|file| file.strip_suffix(".ko")).map(|stem| stem.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_module_is_found_under_either_spelling() {
        let core = |text: &str| names(text).contains("ib_core");
        assert!(core("kernel/a.ko\nkernel/drivers/infiniband/core/ib_core.ko\n"));
        assert!(core("kernel/ib-core.ko"));
        assert!(!core("kernel/xib_core.ko\nkernel/ib_core.ko.xz"));
    }
}
