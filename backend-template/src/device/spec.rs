//! The hardware's constants: tiles, registers, alignment.

/// Rows of a tile; also the depth of one step of the matrix unit.
pub const TILE_ROWS: usize = 4;
/// Columns of a tile.
pub const TILE_COLUMNS: usize = 8;
/// Elements of a tile: what one register holds and one instruction works on.
pub const LANES: usize = TILE_ROWS * TILE_COLUMNS;
/// Registers of the core; together they are its scratchpad.
pub const REGISTERS: usize = 64;
/// Alignment of blocks and of their sizes, in bytes.
pub const ALIGNMENT: usize = 128;
