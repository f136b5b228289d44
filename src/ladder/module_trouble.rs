//! Why a module is not there after modprobe was run for it.

use crate::model::ModuleTrouble;

use crate::names::ModuleName;
use crate::observe::ModprobeRules;

/// What is known when a module is missing.
#[derive(Debug, Clone, Copy)]
pub struct Signs<'a> {
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
    let busy = "gave up waiting for init of module";
    let symbols = [busy, "disagrees about version of symbol", "Unknown symbol", "version magic"];
    match said(&symbols) {
        // resolve_symbol_wait(); that symbol is "Unknown" (err -16) in the next line.
        Some(said) if said.contains(busy) => return ModuleTrouble::DependencyInitializing { said },
        Some(said) => return ModuleTrouble::SymbolMismatch { said },
        None => {}
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
    ModuleTrouble::Other { said: said.join("; ").into() }
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
            "not built for the running kernel"
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
                "modprobe: ERROR: could not insert 'ib_ipoib': Device or resource busy",
                &[
                    "ib_ipoib: gave up waiting for init of module ib_core.",
                    "ib_ipoib: Unknown symbol ib_register_client (err -16)",
                ],
            ),
            "a module that it needs was still initializing after 30 s: ib_ipoib: gave up waiting for init of module ib_core."
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
            "the kernel is out of memory: modprobe: ERROR: could not insert 'ib_ipoib': Cannot allocate memory"
        );
        assert_eq!(cause(Some(true), "", &[]), "modprobe said: nothing");
    }
}
