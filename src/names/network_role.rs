//! What a unit of a network stack does for interfaces.

/// What a unit of a network stack does for interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkRole {
    /// It sets interfaces up once and never again: what is not there stays down.
    SetsUpOnce,
    /// It sets interfaces up whenever they come.
    SetsUpWhatComes,
    /// It waits until the network is there, under a time limit.
    WaitsOnline,
}
