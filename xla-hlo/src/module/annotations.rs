//! Annotations of an instruction: metadata, sharding, frontend attributes, statistics, origin.

use std::collections::BTreeMap;

use super::backend_config::BackendConfig;

/// `frontend_attributes={key="value",...}`: free text from the framework, kept in key order.
pub type FrontendAttributes = BTreeMap<String, String>;

/// Origin of an instruction in the user's program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Operation type in the framework.
    pub op_type: String,
    /// Operation name in the framework.
    pub op_name: String,
    /// Source file; empty if unknown. Positions are 0 if unknown.
    pub source_file: String,
    /// First line, 1-based.
    pub source_line: i64,
    /// Last line.
    pub source_end_line: i64,
    /// First column.
    pub source_column: i64,
    /// Last column.
    pub source_end_column: i64,
    /// `profile_type={n}`.
    pub profile_types: Vec<i64>,
    /// Name of the instruction this one was merged with.
    pub deduplicated_name: String,
    /// Name for schedulers.
    pub scheduling_name: String,
    /// 1-based index into the module's stack frames; 0 for none.
    pub stack_frame_id: i64,
    /// Free text.
    pub payload: String,
}

/// Optional parts of an instruction; boxed, because most instructions have none or only metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Origin in the user's program.
    pub metadata: Metadata,
    /// Partitioning of the value over devices.
    pub sharding: Option<Sharding>,
    /// Free text from the framework.
    pub frontend_attributes: FrontendAttributes,
    /// Configuration for a backend or the handler of a custom call.
    pub backend_config: BackendConfig,
    /// `statistics={...}` as `(name, value text)` in order; the index to visualize, if present, is first.
    pub statistics: Vec<(String, String)>,
    /// `origin={...}`, with braces and normalized white space.
    pub origin: String,
    /// `parameter_replication={true,false}`.
    pub parameter_replication: Vec<bool>,
}

impl Annotations {
    /// Returns the sharding of an array or of a tuple's only leaf, or the sharding that all leaves of a tuple share.
    pub fn leaf_sharding(&self) -> Option<&LeafSharding> {
        match self.sharding.as_ref()? {
            Sharding::Leaf(leaf) => Some(leaf),
            Sharding::Tuple(leaves) => match &leaves[..] {
                [leaf] => Some(leaf),
                _ => None,
            },
        }
    }
}

/// `sharding={...}`: partitioning of a value over devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sharding {
    /// One sharding for a value, shared by all leaves of a tuple.
    Leaf(LeafSharding),
    /// One sharding for each leaf of a tuple.
    Tuple(Vec<LeafSharding>),
}

/// Sharding of one array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct LeafSharding {
    /// Kind of split.
    pub kind: ShardingKind,
    /// Trailing `shard_as 1` or `shard_like 2` of the text.
    pub group: Option<ShardGroup>,
    /// `metadata={...}` entries, each with its braces.
    pub metadata: Vec<Metadata>,
}

/// Group of instructions whose shardings must be equal or compatible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardGroup {
    /// Equal shardings.
    As(i64),
    /// Compatible shardings.
    Like(i64),
}

/// Kind of partitioning of an array over devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum ShardingKind {
    /// Every device has the whole array.
    #[default]
    Replicated,
    /// The program partitions the array itself.
    Manual,
    /// The sharding is unknown.
    Unknown,
    /// Every device has partial values that are not yet summed.
    Unreduced,
    /// One device has the whole array.
    Maximal(i64),
    /// The array is split over a grid of devices.
    Tiled(TiledSharding),
    /// Axes of a named mesh, `{mesh[...], ...}`: stored as normalized text with its braces.
    Named(String),
}

/// Grid of devices over an array's dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TiledSharding {
    /// Number of devices along each dimension; the trailing dimensions belong to [`TiledSharding::last_tile_dims`].
    pub tile_dims: Vec<i64>,
    /// Devices in the order of their grid positions.
    pub devices: DeviceList,
    /// `last_tile_dim_replicate`.
    pub replicate_last: bool,
    /// `last_tile_dims={...}`.
    pub last_tile_dims: Vec<SubgroupKind>,
}

/// Meaning of a trailing tile dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubgroupKind {
    /// Every device of the subgroup has a copy.
    Replicated,
    /// The program handles the subgroup itself.
    Manual,
    /// The devices have partial values.
    Unreduced,
}

/// Device ids, listed or as a reshaped and transposed iota.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DeviceList {
    /// `0,1,2,3`.
    Listed(Vec<i64>),
    /// `<=[2,4]T(1,0)`.
    Iota {
        /// Shape of the iota.
        reshape: Vec<i64>,
        /// Permutation of the transpose; empty for none.
        transpose: Vec<usize>,
    },
}

/// Hashes the identifying fields only. Shardings contain metadata and derive `Hash`.
impl std::hash::Hash for Metadata {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.op_name.hash(state);
        self.op_type.hash(state);
        self.stack_frame_id.hash(state);
    }
}
