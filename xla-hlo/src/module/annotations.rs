//! Annotations of an instruction: metadata, sharding, frontend attributes, statistics, origin.

use std::collections::BTreeMap;

use super::backend_config::BackendConfig;

/// `frontend_attributes={key="value",...}`: free text from the framework, kept in key order.
pub type FrontendAttributes = BTreeMap<String, String>;

/// Origin of an instruction in the user's program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The framework's operation type.
    pub op_type: String,
    /// The framework's name of the operation.
    pub op_name: String,
    /// Source file and position; 0 where unknown.
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

/// Everything optional about an instruction; boxed, since most have none or only metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Provenance.
    pub metadata: Metadata,
    /// Split of the value over devices.
    pub sharding: Option<Sharding>,
    /// Free text from the framework.
    pub frontend_attributes: FrontendAttributes,
    /// Configuration for a backend or the handler of a custom call.
    pub backend_config: BackendConfig,
    /// `statistics={...}` as `(name, value text)` in order, the visualised index first when there.
    pub statistics: Vec<(String, String)>,
    /// `origin={...}`, braces included, white space normalised.
    pub origin: String,
    /// `parameter_replication={true,false}`.
    pub parameter_replication: Vec<bool>,
}

impl Annotations {
    /// The sharding of one array, or of every leaf alike.
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

/// `sharding={...}`: how a value is split over devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sharding {
    /// One sharding for a value, or for every leaf alike.
    Leaf(LeafSharding),
    /// One for each leaf of a tuple.
    Tuple(Vec<LeafSharding>),
}

/// The sharding of one array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct LeafSharding {
    /// Kind of split.
    pub kind: ShardingKind,
    /// Trailing parts in order of the text: `shard_as 1`, `shard_like 2`.
    pub group: Option<ShardGroup>,
    /// `metadata={...}` entries, each with its braces.
    pub metadata: Vec<Metadata>,
}

/// Instructions whose shardings must be equal or alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardGroup {
    /// Equal shardings.
    As(i64),
    /// Compatible shardings.
    Like(i64),
}

/// The ways to split an array over devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum ShardingKind {
    /// Every device has all.
    #[default]
    Replicated,
    /// The program handles it by hand.
    Manual,
    /// Nothing is known.
    Unknown,
    /// Partial values on every device, not yet summed.
    Unreduced,
    /// One device has all.
    Maximal(i64),
    /// A grid of devices.
    Tiled(TiledSharding),
    /// Axes of a named mesh, `{mesh[...], ...}`: kept as normalised text with its braces.
    Named(String),
}

/// A grid of devices over an array's dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TiledSharding {
    /// Devices along each dimension, the trailing ones for [`TiledSharding::last_tile_dims`].
    pub tile_dims: Vec<i64>,
    /// Devices by their places.
    pub devices: DeviceList,
    /// `last_tile_dim_replicate`.
    pub replicate_last: bool,
    /// `last_tile_dims={...}`.
    pub last_tile_dims: Vec<SubgroupKind>,
}

/// Meaning of a trailing tile dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubgroupKind {
    /// Copies.
    Replicated,
    /// By hand.
    Manual,
    /// Partial values.
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
        /// Transposition; empty for none.
        transpose: Vec<usize>,
    },
}

/// The sentence-making of a metadata entry is needed as a hash key inside shardings.
impl std::hash::Hash for Metadata {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.op_name.hash(state);
        self.op_type.hash(state);
        self.stack_frame_id.hash(state);
    }
}
