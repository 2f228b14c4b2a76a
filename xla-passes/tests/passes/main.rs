//! Cases of each pass, as HLO text in this folder or in a file with the pass's name.

mod allow_tf32;
mod assign_layouts;
mod assign_memory_spaces;
mod async_chain;
mod common_subexpressions;
mod corpus;
mod evaluation_budget;
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
mod simplify_algebra;
mod sizes;
mod support;
mod tile_layouts;
mod unify_convolution_types;
