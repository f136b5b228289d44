//! Which functions are asked for settings at all, and when the kernel lets the tool ask.

use crate::model::{Advice, Code, Finding, Severity, firmware::CardSettings};
use crate::names::{IsVf, MELLANOX};
use crate::observe::PciFunction;

/// Whether the function of `card` may be asked. `is_there` says whether it exists where it is
/// no `function` that was observed, `lockdown` is what the file of that name in securityfs has,
/// `kernel` the kernel's release.
///
/// # Errors
/// Why it may not; a sentence.
pub fn none(
    function: Option<&PciFunction>,
    is_there: bool,
    lockdown: &str,
    kernel: &str,
    card: &mut CardSettings,
) -> Result<(), String> {
    let Some(function) = function else {
        return Err(if is_there {
            "the function is not an adapter of a network".to_owned()
        } else {
            "no PCI function has this address, see `lspci -D -d 15b3:`".to_owned()
        });
    };
    match function.is_vf() {
        IsVf::OfThisHost(pf) => {
            return Err(format!("the function is a VF of {pf}: use the address of the PF"));
        }
        IsVf::PassedThrough | IsVf::OfUnknownPf => {
            return Err("the function is a VF: its settings are those of the host".to_owned());
        }
        IsVf::No => {}
    }
    if function.vendor != MELLANOX {
        return Err("the adapter is not one of Mellanox or NVIDIA".to_owned());
    }
    if !lockdown.contains('[') || lockdown.contains("[none]") {
        return Ok(());
    }
    // From Linux 6.18 on (drivers/net/ethernet/mellanox/mlx5/core/lib/nv_param.c).
    if is_at_least(kernel, (6, 18)) {
        let pci = card.pci;
        let message = "the kernel can set the number of VFs itself, for each PF apart; never beside NUM_OF_VFS";
        card.findings.push(Finding::new(Code::Notice, Severity::Info, message).about(pci).advise(
            [Advice::permanent(format!(
                "set it to N: `devlink dev param set pci/{pci} name total_vfs value N cmode permanent`"
            ))],
        ));
    }
    Err("the kernel's lockdown (secure boot) closes the tool's path".to_owned())
}

/// True if the kernel of this release, `6.18.3-1-amd64`, is that one or a later one.
fn is_at_least(release: &str, version: (u32, u32)) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse().ok());
    numbers.next().zip(numbers.next()).is_some_and(|of| of >= version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(
        function: Option<&PciFunction>,
        lockdown: &str,
        kernel: &str,
    ) -> (Result<(), String>, Vec<String>) {
        let mut card = CardSettings::new("0000:4b:00.0".parse().expect("address"), None);
        let may = none(function, false, lockdown, kernel, &mut card);
        let advice = card.findings.into_iter().flat_map(|f| f.advice).map(|a| a.step.to_string());
        (may, advice.collect())
    }

    #[test]
    fn lockdown_closes_the_way_and_devlink_is_advised_where_the_kernel_has_it() {
        let function = PciFunction::connectx6();
        let told = |lockdown, kernel| told(Some(&function), lockdown, kernel);
        for open in ["", "[none] integrity confidentiality"] {
            assert_eq!(told(open, "6.18.3-1-amd64"), (Ok(()), vec![]), "{open}");
        }
        let why = "the kernel's lockdown (secure boot) closes the tool's path";
        for closed in ["none [integrity] confidentiality", "none integrity [confidentiality]"] {
            for old in ["6.1.0-56-amd64", "6.17.9", "5.18.0", "7", "unknown"] {
                assert_eq!(told(closed, old), (Err(why.to_owned()), vec![]), "{closed} {old}");
            }
            for new in ["6.18.3-1-amd64", "6.18", "7.0.1", "6.120.0"] {
                let (may, advice) = told(closed, new);
                let command = "set it to N: `devlink dev param set pci/0000:4b:00.0 name total_vfs value N cmode permanent";
                assert_eq!((may, advice.len()), (Err(why.to_owned()), 1), "{closed} {new}");
                assert!(advice[0].starts_with(command), "{advice:?}");
            }
        }
    }

    #[test]
    fn only_pfs_of_this_vendor_are_asked() {
        let pf = PciFunction::connectx6();
        let refused = |function: Option<&PciFunction>| told(function, "", "6.1").0.expect_err("no");
        let vf = PciFunction { physfn: Some(pf.address), ..pf.clone() };
        assert_eq!(
            refused(Some(&vf)),
            "the function is a VF of 0000:4b:00.0: use the address of the PF"
        );
        let passed = PciFunction { device: 0x101c, ..pf.clone() };
        assert_eq!(
            refused(Some(&passed)),
            "the function is a VF: its settings are those of the host"
        );
        let other = PciFunction { vendor: 0x8086, ..pf };
        assert_eq!(refused(Some(&other)), "the adapter is not one of Mellanox or NVIDIA");
        assert_eq!(refused(None), "no PCI function has this address, see `lspci -D -d 15b3:`");
    }
}
