/// At most this many of anything that dumps show are kept.
pub(super) const LIMIT: usize = 4096;
