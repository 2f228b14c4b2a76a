//! The HLO intermediate representation.
