//! Constants of the hardware: tiles, registers, alignment.

/// Rows of a tile; also the depth of one matrix-unit step.
pub const TILE_ROWS: usize = 4;
/// Columns of a tile.
pub const TILE_COLUMNS: usize = 8;
/// Elements of a tile. A register holds one tile, and an instruction operates on one tile.
pub const LANES: usize = TILE_ROWS * TILE_COLUMNS;
/// Number of registers of the core; together they form its scratchpad.
pub const REGISTERS: usize = 64;
/// Alignment of blocks and of their sizes, in bytes.
pub const ALIGNMENT: usize = 128;
