//! Meshes of a program: equal meshes are one, whatever their names.

use xla_hlo::sdy::{Mesh, MeshName, Meshes, ResolvedSharding, TensorSharding};
use xla_hlo::{Module, Result};

use super::MeshSharding;

/// Different meshes of a program.
#[derive(Debug)]
pub struct MeshTable {
    stated: Meshes,
    meshes: Vec<(Mesh, MeshName)>,
}

impl MeshTable {
    pub fn new(module: &Module) -> Result<MeshTable> {
        Ok(MeshTable { stated: xla_hlo::sdy::meshes(module)?, meshes: Vec::new() })
    }

    /// Resolves a sharding. Axes of size 1 are left out. Fails with the errors of [`Mesh::device_count`] and
    /// [`ResolvedSharding::new`].
    pub fn resolve(&mut self, sharding: &TensorSharding) -> Result<MeshSharding> {
        let mesh = self.stated.get(&sharding.mesh)?;
        // Later products of axis sizes cannot overflow.
        mesh.device_count()?;
        let mut resolved = ResolvedSharding::new(sharding, mesh)?;
        for dim in &mut resolved.dims {
            dim.axes.retain(|part| part.size != 1);
        }
        resolved.replicated.retain(|part| part.size != 1);
        resolved.unreduced.retain(|part| part.size != 1);
        let known = self.meshes.iter().position(|(other, _)| other == mesh);
        let number = known.unwrap_or_else(|| {
            self.meshes.push((mesh.clone(), sharding.mesh.clone()));
            self.meshes.len() - 1
        });
        Ok(MeshSharding { mesh: number, sharding: resolved })
    }

    /// Returns the sharding with names.
    pub fn named(&self, sharding: &MeshSharding) -> TensorSharding {
        let (mesh, name) = &self.meshes[sharding.mesh];
        sharding.sharding.named(mesh, name.clone())
    }

    /// Returns a mesh by its number.
    pub fn mesh(&self, number: usize) -> &Mesh {
        &self.meshes[number].0
    }

    /// Whether shardings over the mesh name one device, which propagation leaves alone.
    pub fn is_maximal(&self, number: usize) -> bool {
        let mesh = self.mesh(number);
        mesh.axes.is_empty() && mesh.device_ids.len() == 1
    }
}
