//! What `ibprov check --initrd` says.

use serde::Serialize;

use super::Advice;

/// What an image has of what is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InitrdReport {
    pub image: String,
    /// The kernels for which it has modules.
    pub kernels: Vec<String>,
    /// Each module that the ports need.
    pub modules: Vec<NeededModule>,
    /// The udev rules that give interfaces their names, after the configuration.
    pub naming_rules: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NeededModule {
    pub name: String,
    /// The kernel that it is for.
    pub kernel: String,
    /// Whether the image has it, or the kernel has it built in.
    pub present: bool,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Line {
    pub text: String,
    pub place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// On the host and in the image.
    Both,
    /// The image has not it.
    OnlyHost,
    /// The host has not it any more.
    OnlyImage,
}

pub fn rebuild() -> Advice {
    Advice::permanent(
        "rebuild the image with ibprov's module (see ibprov-images(7)): update-initramfs -u, or dracut -f",
    )
}
