//! The facade: platforms chosen by Cargo features.
