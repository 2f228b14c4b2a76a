//! Cases of each pass, as HLO text in this folder or in a file with the pass's name.

mod assign_memory_spaces;
mod corpus;
mod ffts;
mod filetests;
mod forms;
mod functions;
mod join;
mod limits;
mod localize;
mod names;
mod order_right_operands;
mod profiles;
mod rematerialize;
mod sizes;
mod support;
mod tile_layouts;
