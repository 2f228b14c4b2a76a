//! Target-independent HLO passes and analyses.
