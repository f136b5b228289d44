//! The part of a port's state that only firmware knows.
