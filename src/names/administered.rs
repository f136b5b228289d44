use serde::{Deserialize, Serialize};

use super::{Guid, Policy};

/// What a PF administers for a VF, as it is read back from where it is set. What
/// that place does not have, or what cannot be read, is absent: a GUID that is absent is
/// unknown, never another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Administered {
    /// Its node GUID; zero is none.
    pub node_guid: Option<Guid>,
    /// Its port GUID; zero is none.
    pub port_guid: Option<Guid>,
    /// Its link state.
    pub policy: Option<Policy>,
    /// For mlx4: the port GUID that the subnet manager has granted.
    pub granted: Option<Guid>,
    /// The place where it is set has answered all that it has. False: the question was
    /// refused, this VF was left out of the answer, or a file could not be read.
    pub is_answered: bool,
}
