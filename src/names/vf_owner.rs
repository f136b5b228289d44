//! Who decides on a VF once it has its first GUIDs.

use serde::Serialize;

/// To whom the GUIDs and the link state of a VF belong.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum VfOwner {
    /// To the plan: what differs from it is put right.
    #[default]
    Plan,
    /// To a CNI plugin (ib-sriov-cni), from the first GUIDs on: it gives the VF those of a
    /// pod, and moves it to the network namespace of that.
    Cni,
}
