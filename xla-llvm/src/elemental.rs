//! Elementwise operations of HLO over lanes.
