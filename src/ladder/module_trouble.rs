//! Why a module is not there after modprobe was run for it.

use std::fmt;

use serde::Serialize;

use crate::names::ModuleName;
use crate::observe::ModprobeRules;

/// The cause, most telling first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum ModuleTrouble {
    /// The site denies it.
    Denied {
        /// File and line, or the kernel command line.
        by: String,
    },
    /// It was not built for the running kernel.
    NotBuilt {
        /// `uname -r`.
        kernel: String,
        /// Where it was looked for.
        looked_in: String,
    },
    /// The site runs a command instead of loading it, and that did not load it.
    InstallOverride {
        /// The command.
        command: String,
        /// File and line.
        by: String,
    },
    /// The kernel refused its signature.
    SignatureRefused {
        /// What said so.
        said: String,
    },
    /// Its symbols do not match the kernel's or another module's: modules of
    /// two origins (distribution and OFED) are mixed.
    SymbolMismatch {
        /// The kernel's line.
        said: String,
    },
    /// The kernel had no memory for it.
    OutOfMemory {
        /// What said so.
        said: String,
    },
    /// Its init function, or modprobe, has not come back.
    Stuck {
        /// The process that hangs.
        pid: u32,
    },
    /// None of these.
    Other {
        /// What modprobe said.
        said: String,
    },
}

/// What is known when a module is missing.
#[derive(Debug, Clone, Copy)]
pub struct Signs<'a> {
    /// The site's rules.
    pub rules: &'a ModprobeRules,
    /// `uname -r`.
    pub kernel: &'a str,
    /// Whether `modules.dep` of the running kernel has it; `None` if that
    /// file cannot be read.
    pub built: Option<bool>,
    /// What modprobe wrote to standard error.
    pub stderr: &'a str,
    /// The kernel's lines since modprobe was started.
    pub kernel_lines: &'a [String],
}

/// The most telling cause for `module` being absent.
#[must_use]
pub fn diagnose(module: &ModuleName, signs: Signs<'_>) -> ModuleTrouble {
    if let Some(by) = signs.rules.denied(module) {
        return ModuleTrouble::Denied { by: by.to_owned() };
    }
    if let Some(install) = signs.rules.install(module) {
        return ModuleTrouble::InstallOverride {
            command: install.command.clone(),
            by: install.origin.clone(),
        };
    }
    if signs.built != Some(true) {
        let looked_in = format!("/lib/modules/{}/modules.dep", signs.kernel);
        return ModuleTrouble::NotBuilt { kernel: signs.kernel.to_owned(), looked_in };
    }
    let said = |needles: &[&str]| {
        // Its own lines first: what is wrong with another module may be a cause
        // (one that it depends on), or may not.
        let own = format!("{module}:");
        let kernel = || signs.kernel_lines.iter().map(String::as_str);
        let of_own = kernel().filter(|l| l.starts_with(&own));
        let mut lines = of_own.chain(kernel()).chain(signs.stderr.lines());
        lines.find(|l| needles.iter().any(|n| l.contains(n))).map(|l| l.trim().to_owned())
    };
    // kernel/module/version.c, kernel/module/main.c: simplify_symbols(), resolve_symbol()
    let symbols = ["disagrees about version of symbol", "Unknown symbol", "version magic"];
    if let Some(said) = said(&symbols) {
        return ModuleTrouble::SymbolMismatch { said };
    }
    // kernel/module/signing.c; modprobe prints the errno's text (ENOKEY, EKEYREJECTED)
    let signature = [
        "is rejected",
        "Required key not available",
        "Key was rejected by service",
        "Lockdown: modprobe:",
    ];
    if let Some(said) = said(&signature) {
        return ModuleTrouble::SignatureRefused { said };
    }
    if let Some(said) = said(&["Cannot allocate memory", "Out of memory", "out of memory"]) {
        return ModuleTrouble::OutOfMemory { said };
    }
    let said = signs.stderr.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>();
    let said = if said.is_empty() { "nothing".to_owned() } else { said.join("; ") };
    ModuleTrouble::Other { said }
}

impl ModuleTrouble {
    /// True if the site itself asked for it: nothing is broken.
    #[must_use]
    pub const fn is_by_the_site(&self) -> bool {
        matches!(self, Self::Denied { .. })
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self, module: &ModuleName) -> String {
        match self {
            Self::Denied { by } => format!(
                "if it is wanted, remove the line in {by}; if not, name it in modules.skip of the configuration"
            ),
            Self::NotBuilt { kernel, .. } => format!(
                "install the module for kernel {kernel} (distribution: the modules-extra or modules package; OFED: rebuild or `dkms autoinstall`), or run `depmod -a`; `modinfo {module}` must find it"
            ),
            Self::InstallOverride { by, .. } => {
                format!("run that command by hand to see why it fails, or remove the line in {by}")
            }
            Self::SignatureRefused { .. } => {
                "sign the module with a key that the kernel trusts (`mokutil --list-enrolled`), or install a signed build".to_owned()
            }
            Self::SymbolMismatch { .. } => {
                format!("modules of two origins are mixed: compare `modinfo -n {module} ib_core`, reinstall one origin whole and rebuild the initramfs")
            }
            Self::OutOfMemory { .. } => "free memory, or give a crash kernel more of it".to_owned(),
            Self::Stuck { pid } => format!("see where it hangs: cat /proc/{pid}/stack; dmesg"),
            Self::Other { .. } => format!("run `modprobe -v {module}` and read dmesg"),
        }
    }
}

impl fmt::Display for ModuleTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied { by } => write!(f, "deny-listed by {by}"),
            Self::NotBuilt { kernel, looked_in } => {
                write!(f, "not built for the running kernel {kernel} (looked in {looked_in})")
            }
            Self::InstallOverride { command, by } => {
                write!(
                    f,
                    "the install command {command:?} of {by} ran in its place and did not load it"
                )
            }
            Self::SignatureRefused { said } => {
                write!(f, "the kernel refused its signature: {said}")
            }
            Self::SymbolMismatch { said } => {
                write!(f, "its symbols do not match the loaded modules: {said}")
            }
            Self::OutOfMemory { said } => write!(f, "out of memory: {said}"),
            Self::Stuck { pid } => write!(f, "modprobe (pid {pid}) has not come back"),
            Self::Other { said } => write!(f, "modprobe said: {said}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(built: Option<bool>, stderr: &str, kernel: &[&str]) -> String {
        let rules = ModprobeRules::default();
        let kernel_lines: Vec<String> = kernel.iter().map(|l| (*l).to_owned()).collect();
        let signs =
            Signs { rules: &rules, kernel: "6.1.0-9", built, stderr, kernel_lines: &kernel_lines };
        diagnose(&"ib_ipoib".parse().expect("name"), signs).to_string()
    }

    #[test]
    fn each_cause_is_told_from_its_recorded_lines() {
        assert_eq!(
            cause(
                Some(false),
                "modprobe: FATAL: Module ib_ipoib not found in directory /lib/modules/6.1.0-9",
                &[]
            ),
            "not built for the running kernel 6.1.0-9 (looked in /lib/modules/6.1.0-9/modules.dep)"
        );
        assert_eq!(
            cause(
                Some(true),
                "modprobe: ERROR: could not insert 'ib_ipoib': Unknown symbol in module, or unknown parameter (see dmesg)",
                &[
                    "ib_ipoib: disagrees about version of symbol ib_register_client",
                    "ib_ipoib: Unknown symbol ib_register_client (err -22)"
                ],
            ),
            "its symbols do not match the loaded modules: ib_ipoib: disagrees about version of symbol ib_register_client"
        );
        assert_eq!(
            cause(
                Some(true),
                "modprobe: ERROR: could not insert 'ib_ipoib': Key was rejected by service",
                &["Loading of module with unavailable key is rejected"],
            ),
            "the kernel refused its signature: Loading of module with unavailable key is rejected"
        );
        assert_eq!(
            cause(
                Some(true),
                "modprobe: ERROR: could not insert 'ib_ipoib': Required key not available",
                &[]
            ),
            "the kernel refused its signature: modprobe: ERROR: could not insert 'ib_ipoib': Required key not available"
        );
        assert_eq!(
            cause(
                Some(true),
                "modprobe: ERROR: could not insert 'ib_ipoib': Cannot allocate memory",
                &[]
            ),
            "out of memory: modprobe: ERROR: could not insert 'ib_ipoib': Cannot allocate memory"
        );
        assert_eq!(cause(Some(true), "", &[]), "modprobe said: nothing");
    }
}
