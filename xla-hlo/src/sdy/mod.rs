//! Shardy's shardings over named meshes: data structures, axis algebra, sharding rules, text, conversion to tiles of
//! devices, and their location in a module.
//!
//! ```text
//! header            frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=4, "y"=2]>}}     meshes
//! any instruction   frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}]>"}    shardings
//! custom calls      "Sharding", "xla.sdy.GlobalToLocalShape", ...                               role
//! ```
//!
//! ```
//! use xla_hlo::sdy::{Mesh, TensorSharding, tiles};
//!
//! # fn main() -> xla_hlo::Result<()> {
//! let mesh = Mesh::parse(r#"<["x"=4, "y"=2]>"#)?;
//! let sharding = TensorSharding::parse(r#"<@mesh, [{"y"}, {?}p1]>"#)?;
//! assert_eq!(sharding.dims[0].axes[0].name, "y");
//! assert!(sharding.dims[1].is_open);
//! assert_eq!(sharding.to_string(), r#"<@mesh, [{"y"}, {?}p1]>"#);
//! # let _ = tiles(&sharding, &mesh)?;
//! # Ok(())
//! # }
//! ```

mod mesh;
mod part;
mod program;
mod resolved;
mod rule;
mod rule_text;
mod sharding;
mod text;
mod tiles;

pub use mesh::{Mesh, MeshAxis};
pub(crate) use mesh::{product, transposed_iota};
pub use part::{MeshPart, gcd, push_part};
pub use program::{Direction, ManualEdge, Role, attribute, meshes, role, shardings, target};
pub use resolved::{ResolvedDim, ResolvedSharding};
pub use rule::{Factor, FactorKind, RuleBuilder, RuleContext, ShardingRule, TensorFactors};
pub use rule_text::FactorSymbol;
pub use sharding::{DimSharding, MeshName, Reduction, TensorSharding};
pub use text::{ManualAxes, Meshes, PerValue};
pub use tiles::{from_tiles, tiles};
