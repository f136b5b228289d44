use serde::Serialize;

use super::Look;
use crate::names::ModuleName;

/// Whether a kernel module is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModuleState {
    /// Not loaded and not built in.
    Absent,
    /// Its init function is running (`initstate` is `coming`).
    Loading,
    /// Loaded, or built into the kernel.
    Loaded,
}

/// `/sys/module/NAME` says it; a built-in module without parameters has no
/// such directory, so `modules.builtin` is asked as well.
pub(super) fn state(look: &mut Look<'_>, kernel: &str, name: &ModuleName) -> ModuleState {
    let dir = format!("/sys/module/{name}");
    if look.root.exists(&dir) {
        return match look.attribute(&format!("{dir}/initstate")).as_deref() {
            Some("coming") => ModuleState::Loading,
            Some("going") => ModuleState::Absent,
            _ => ModuleState::Loaded,
        };
    }
    let reading = look.root.text(&format!("/lib/modules/{kernel}/modules.builtin"), 4 << 20);
    let builtin = look.note(reading).is_some_and(|text| is_listed(&text, name));
    if builtin { ModuleState::Loaded } else { ModuleState::Absent }
}

/// Whether `modules.dep` of `kernel` has `name`; `None` if it cannot be read.
#[must_use]
pub fn is_built(root: &crate::host::Root, kernel: &str, name: &ModuleName) -> Option<bool> {
    let text = root.text(&format!("/lib/modules/{kernel}/modules.dep"), 64 << 20).ok()?;
    Some(text.lines().filter_map(|l| l.split_once(':')).any(|(path, _)| {
        let file = path.rsplit('/').next().unwrap_or(path);
        let stem = file.split_once(".ko").map_or(file, |(stem, _)| stem);
        stem.replace('-', "_") == name.as_str()
    }))
}

/// `modules.builtin` has a path a line: `kernel/drivers/base/x-y.ko`.
fn is_listed(text: &str, name: &ModuleName) -> bool {
    text.lines().any(|line| {
        let file = line.rsplit('/').next().unwrap_or(line);
        file.strip_suffix(".ko").is_some_and(|stem| stem.replace('-', "_") == name.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_module_is_found_under_either_spelling() {
        let name: ModuleName = "ib_core".parse().expect("name");
        assert!(is_listed("kernel/a.ko\nkernel/drivers/infiniband/core/ib_core.ko\n", &name));
        assert!(is_listed("kernel/ib-core.ko", &name));
        assert!(!is_listed("kernel/xib_core.ko\nkernel/ib_core.ko.xz", &name));
    }
}
