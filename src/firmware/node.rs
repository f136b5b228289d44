//! What the host shows of configured settings without asking an adapter: `sriov_totalvfs`, the
//! class of a function, and the record of what was written.

use super::judge::Past;
use crate::config::FirmwareCard;
use crate::model::{Advice, Code, Finding, ToDo, firmware::shown_value};
use crate::names::{FirmwareName, FirmwareValue, LinkLayer, PciAddress};

/// A PF of an adapter, as sysfs shows it.
#[derive(Debug, Clone)]
pub struct Function {
    pub pci: PciAddress,
    /// `sriov_totalvfs`; 0 without SR-IOV.
    pub total_vfs: u16,
    /// By its class.
    pub link_layer: Option<LinkLayer>,
}

/// What of the settings of `card` its `functions` show not to be in effect. Without `past` the
/// record is not known.
pub fn judge(card: &FirmwareCard, functions: &[Function], past: Option<Past<'_>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for setting in &card.settings {
        let seen = match (setting.name.as_str(), setting.name.link_type_of()) {
            (FirmwareName::NUM_OF_VFS, _) => {
                functions.iter().find_map(|f| other_number(f, &setting.value))
            }
            (_, Some(port)) => {
                let its = functions.iter().find(|f| f.pci.port_of_adapter() == port);
                its.and_then(|f| other_layer(f, &setting.value))
            }
            _ => None,
        };
        let Some((pci, has)) = seen else { continue };
        let set = format!("{} = {}", setting.name, shown_value(&setting.value));
        let written = past.and_then(|past| past.of(&setting.name, &setting.value));
        let is_before = past.is_some_and(|past| past.before_this_boot(setting).is_some());
        let finding = match (written, is_before) {
            (Some(_), true) => Finding::warning(
                Code::FirmwareResetPending,
                format!(
                    "{set} was written before this boot, and the adapter still has {has}: power it off and on; do not write it again"
                ),
            ),
            (Some(_), false) => Finding::warning(
                Code::FirmwareResetPending,
                format!(
                    "{set} was written in this boot, and takes effect at the next reboot; the adapter has {has}"
                ),
            ),
            (None, _) => Finding::warning(
                Code::FirmwareNotAsConfigured,
                format!("{set} is configured ({}), and the adapter has {has}", setting.origin),
            )
            .advise([Advice::permanent(ToDo::run("ibprov firmware --apply"))]),
        };
        findings.push(
            finding.about(pci).advise([Advice::look(ToDo::run(format!("ibprov firmware {pci}")))]),
        );
    }
    if card.is_without_sriov() {
        findings.push(without_sriov(card.pci));
    }
    findings
}

/// What is said of NUM_OF_VFS beside SRIOV_EN = false.
pub fn without_sriov(pci: PciAddress) -> Finding {
    let message = "NUM_OF_VFS has no effect, because SRIOV_EN = false is configured beside it";
    Finding::warning(Code::FirmwareNotAsConfigured, message)
        .about(pci)
        .advise([Advice::permanent("remove NUM_OF_VFS from [[firmware]], or set SRIOV_EN = true")])
}

fn other_number(function: &Function, wanted: &FirmwareValue) -> Option<(PciAddress, String)> {
    let total = function.total_vfs;
    (wanted.number() != Some(u64::from(total))).then(|| (function.pci, total.to_string()))
}

fn other_layer(function: &Function, wanted: &FirmwareValue) -> Option<(PciAddress, String)> {
    let (wanted, is) = (wanted.link_layer()?, function.link_layer?);
    let word: &'static str = is.into();
    (wanted != is).then(|| (function.pci, word.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::record::Written;
    use super::*;
    use crate::config::FirmwareSetting;

    fn setting(name: &str, value: FirmwareValue) -> FirmwareSetting {
        let origin = "/etc/ibprov/ibprov.toml:3".to_owned();
        FirmwareSetting { name: name.parse().expect("name"), value, origin }
    }

    fn judged(functions: &[Function], record: &[Written]) -> Vec<(Code, String)> {
        let settings = vec![
            setting("NUM_OF_VFS", FirmwareValue::Number(16)),
            setting("LINK_TYPE_P2", FirmwareValue::Word("ETH".to_owned())),
        ];
        let card = FirmwareCard { pci: functions[0].pci, settings };
        let past = Past { written: record, boot_id: "now" };
        let findings = judge(&card, functions, Some(past));
        findings.into_iter().map(|finding| (finding.code, finding.to_string())).collect()
    }

    #[test]
    fn what_is_not_in_effect_is_told_with_what_the_record_says() {
        let function = |pci: &str, total_vfs, layer| Function {
            pci: pci.parse().expect("address"),
            total_vfs,
            link_layer: Some(layer),
        };
        let (ib, eth) = (LinkLayer::InfiniBand, LinkLayer::Ethernet);
        let good = [function("0000:4b:00.0", 16, ib), function("0000:4b:00.1", 16, eth)];
        assert_eq!(judged(&good, &[]), []);
        let bad = [function("0000:4b:00.0", 8, eth), function("0000:4b:00.1", 16, ib)];
        let written = |boot_id: &str| Written {
            name: "NUM_OF_VFS".parse().expect("name"),
            value: FirmwareValue::Number(16),
            boot_id: boot_id.to_owned(),
            time: 0,
            said: None,
        };
        let told = judged(&bad, &[]);
        assert_eq!(told.len(), 2, "port 1 may be of any type: {told:?}");
        assert_eq!(
            told[0].1,
            "warning: 0000:4b:00.0: NUM_OF_VFS = 16 is configured (/etc/ibprov/ibprov.toml:3), and the adapter has 8"
        );
        assert_eq!(
            judged(&bad, &[written("before")])[0],
            (
                Code::FirmwareResetPending,
                "warning: 0000:4b:00.0: NUM_OF_VFS = 16 was written before this boot, and the adapter still has 8: power it off and on; do not write it again".to_owned()
            )
        );
        let now = judged(&bad, &[written("now")]);
        assert!(now[0].1.contains("takes effect at the next reboot"), "{now:?}");
    }
}
