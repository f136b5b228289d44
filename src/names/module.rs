use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a kernel module, in the kernel's own spelling: `-` is `_`.
///
/// Letters, digits and `_` only, at most 55 bytes (`MODULE_NAME_LEN` in
/// `include/linux/module.h`), and never starting with `-`, so that it can
/// stand on modprobe's command line and in a sysfs path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleName(String);

/// Why a text is not a [`ModuleName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a kernel module name: expected letters, digits, '_' or '-', as `lsmod` prints it, without path or .ko"
)]
pub struct ModuleNameError {
    text: String,
}

impl ModuleName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ModuleName {
    type Err = ModuleNameError;

    fn from_str(text: &str) -> Result<Self, ModuleNameError> {
        let good = (1..=55).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if good {
            Ok(Self(text.replace('-', "_")))
        } else {
            Err(ModuleNameError { text: text.chars().take(64).collect() })
        }
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Whether a kernel module is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ModuleState {
    /// Not loaded and not built in.
    Absent,
    /// Its init function is running (`initstate` is `coming`).
    Loading,
    /// Loaded, or built into the kernel.
    Loaded,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_become_underscores() {
        assert_eq!("ib-ipoib".parse::<ModuleName>().map(|m| m.to_string()), Ok("ib_ipoib".into()));
    }

    #[test]
    fn options_paths_and_blanks_are_refused() {
        for text in ["", "-r", "--all", "ib_umad.ko", "a/b", "ib umad", "ib_umad;reboot"] {
            assert!(text.parse::<ModuleName>().is_err(), "{text}");
        }
    }
}
