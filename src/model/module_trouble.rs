//! Why a module is not there after modprobe was run for it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Advice, Code, Finding, ToDo};
use crate::names::ModuleName;

/// The cause, most telling first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum ModuleTrouble {
    /// The site denies it.
    #[error("deny-listed by {by}")]
    Denied {
        /// File and line, or the kernel command line.
        by: String,
    },
    /// It was not built for the running kernel.
    #[error("not built for the running kernel")]
    NotBuilt {
        /// `uname -r`.
        kernel: String,
        /// Where it was looked for.
        looked_in: String,
    },
    /// The site runs a command instead of loading it, and that did not load it.
    #[error("the install command {command:?} of {by} ran instead and did not load it")]
    InstallOverride {
        /// The command of the install line.
        command: String,
        /// File and line.
        by: String,
    },
    /// The kernel refused its signature.
    #[error("the kernel refused its signature: {said}")]
    SignatureRefused {
        /// What said so.
        said: String,
    },
    /// Its symbols do not match the kernel's or another module's: modules of
    /// two origins (distribution and OFED) are mixed.
    #[error("its symbols do not match the loaded modules: {said}")]
    SymbolMismatch {
        /// The kernel's line.
        said: String,
    },
    /// A module that it needs was still initializing after 30 s
    /// (`resolve_symbol_wait()`, kernel/module/main.c).
    #[error("a module that it needs was still initializing after 30 s: {said}")]
    DependencyInitializing {
        /// The kernel's line.
        said: String,
    },
    /// The kernel had no memory for it.
    #[error("the kernel is out of memory: {said}")]
    OutOfMemory {
        /// What said so.
        said: String,
    },
    /// Its init function, or modprobe, has not come back.
    #[error("modprobe (process {pid}) has not finished")]
    Stuck {
        /// The process that hangs.
        pid: u32,
    },
    /// None of these.
    #[error("modprobe said: {said}")]
    Other {
        /// What modprobe said.
        said: Said,
    },
}

/// What a program said on standard error, if it said anything; `nothing` in text and
/// JSON if it did not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(from = "String", into = "String")]
pub struct Said(Option<String>);

/// The word for having said nothing.
const NOTHING: &str = "nothing";

impl Said {
    /// It said nothing.
    pub const fn is_nothing(&self) -> bool {
        self.0.is_none()
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self(Some(text).filter(|text| !text.is_empty() && text != NOTHING))
    }
}

impl From<Said> for String {
    fn from(said: Said) -> Self {
        said.0.unwrap_or_else(|| NOTHING.to_owned())
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.as_deref().unwrap_or(NOTHING))
    }
}

impl ModuleTrouble {
    /// It says more than that the module is not there.
    pub const fn tells(&self) -> bool {
        !matches!(self, Self::Other { said } if said.is_nothing())
    }

    /// The diagnosis that it is.
    pub const fn code(&self) -> Code {
        match self {
            Self::Denied { .. } | Self::InstallOverride { .. } => Code::ModuleDenied,
            Self::NotBuilt { .. } => Code::ModuleMissingForKernel,
            Self::SymbolMismatch { .. } => Code::ModuleSymbolMismatch,
            Self::DependencyInitializing { .. } => Code::ModuleInitSlow,
            Self::SignatureRefused { .. } => Code::ModuleSignatureRefused,
            Self::OutOfMemory { .. } | Self::Stuck { .. } | Self::Other { .. } => {
                Code::ModuleNotLoaded
            }
        }
    }

    /// What is said of `module`, where nothing that is expected lacks it.
    pub fn finding(&self, module: &ModuleName) -> Finding {
        Finding::warning(self.code(), format!("not loaded: {self}"))
            .about(module)
            .advise(self.advice(module))
    }

    /// What to do about it.
    pub fn advice(&self, module: &ModuleName) -> Vec<Advice> {
        let step = match self {
            Self::NotBuilt { kernel, looked_in } => {
                return vec![
                    Advice::permanent(format!(
                        "install it for kernel {kernel}, or run `depmod -a`"
                    )),
                    Advice::permanent(format!(
                        "a distribution has it in its package modules-extra or modules; with OFED: rebuild it, or `dkms autoinstall`; {looked_in} must name it"
                    )),
                ];
            }
            Self::Denied { by } => Advice::permanent(format!(
                "to load it, remove the line in {by}; otherwise add it to modules.exclude of the configuration"
            )),
            Self::InstallOverride { by, .. } => Advice::permanent(format!(
                "run that command by hand to see why it fails, or remove the line in {by}"
            )),
            Self::SignatureRefused { .. } => Advice::permanent(
                "sign the module with a key that the kernel trusts (`mokutil --list-enrolled`), or install a signed build",
            ),
            Self::SymbolMismatch { .. } => Advice::permanent(format!(
                "modules of two origins are mixed: compare `modinfo -n {module} ib_core`, reinstall all modules of one origin and rebuild the initramfs"
            )),
            Self::DependencyInitializing { .. } => Advice::now(format!(
                "run `modprobe {module}` when the other module has finished; why its initialization takes so long is in dmesg"
            )),
            Self::OutOfMemory { .. } => {
                Advice::permanent("free memory, or reserve more for the crash kernel")
            }
            Self::Stuck { pid } => Advice::look(ToDo::with(
                "find where modprobe hangs",
                format!("cat /proc/{pid}/stack; dmesg"),
            )),
            Self::Other { .. } => Advice::look(ToDo::run(format!("modprobe -v {module}; dmesg"))),
        };
        vec![step]
    }
}
