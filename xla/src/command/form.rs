//! Output formats of a module.

use clap::ValueEnum;
use xla::hlo::{Module, Result, proto};
use xla::passes::view;

/// Output format of a module.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Form {
    /// HLO text
    Hlo,
    /// Serialised HloModuleProto
    Pb,
    /// Graphviz graph, with computations and fusions as clusters
    Dot,
    /// Interactive HTML page of the graph: one file that needs no network
    Html,
}

impl Form {
    /// Converts the module to this format.
    pub fn write(self, module: &Module) -> Result<Vec<u8>> {
        Ok(match self {
            Form::Hlo => module.to_string().into_bytes(),
            Form::Pb => proto::serialize_module(module)?,
            Form::Dot => view::dot(module).into_bytes(),
            Form::Html => view::html(module).into_bytes(),
        })
    }
}
