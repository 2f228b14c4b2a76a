//! Cases of each pass, as HLO text beside this file or in a file of the pass's name.

mod assign_memory_spaces;
mod corpus;
mod ffts;
mod filetests;
mod functions;
mod join;
mod limits;
mod names;
mod order_right_operands;
mod profiles;
mod rematerialize;
mod sizes;
mod support;
mod tile_layouts;
