//! Calls, loops, conditionals and fusions in protobuf.

use super::{Call, Conditional, Fusion, Map, OutputOperandAlias, While};
use crate::proto::messages::OutputOperandAliasing;
use crate::proto::numbers::{fit, index, indices, longs};
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter, operand_type};
use crate::text::AttributeWord;
use crate::{ElementType, Opcode, Result, ResultExt};

impl ProtoAttributes for While {
    /// Reads the body before the condition, which is the reverse of the order in text.
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let [body, condition] = r.called()?;
        Ok(While { condition, body })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.calls(&[self.body, self.condition])
    }
}

impl ProtoAttributes for Conditional {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let branches = r.calls()?;
        Ok(Conditional { branches, by_predicate: operand_type(&r.operands, 0) == ElementType::Pred })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.calls(&self.branches)
    }
}

impl ProtoAttributes for Call {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let [computation] = r.called()?;
        Ok(Call { computation, is_composite: r.message.is_composite })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.is_composite = self.is_composite;
        w.calls(&[self.computation])
    }
}

impl ProtoAttributes for Map {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let [computation] = r.called()?;
        Ok(Map { dimensions: r.dimensions()?, computation })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.dimensions(&self.dimensions)?;
        w.calls(&[self.computation])
    }
}

impl ProtoAttributes for Fusion {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let [computation] = r.called()?;
        Ok(Fusion {
            kind: ProtoReader::word("fusion_kind", &r.message.fusion_kind)?,
            computation,
            aliases: read_aliases(&r.message.output_operand_aliasing)?,
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.fusion_kind = self.kind.word().to_string();
        w.message.output_operand_aliasing = write_aliases(&self.aliases)?;
        w.calls(&[self.computation])
    }
}

/// Reads aliases of results and operand buffers.
pub(in crate::ops) fn read_aliases(protos: &[OutputOperandAliasing]) -> Result<Vec<OutputOperandAlias>> {
    let alias = |proto: &OutputOperandAliasing| {
        Ok(OutputOperandAlias {
            output: indices("output_shape_index", &proto.output_shape_index)?,
            operand: index("operand_index", proto.operand_index)?,
            path: indices("operand_shape_index", &proto.operand_shape_index)?,
        })
    };
    protos.iter().map(alias).collect::<Result<_>>().context(|| "output_operand_aliasing")
}

/// Writes aliases of results and operand buffers.
pub(in crate::ops) fn write_aliases(aliases: &[OutputOperandAlias]) -> Result<Vec<OutputOperandAliasing>> {
    let proto = |alias: &OutputOperandAlias| {
        Ok(OutputOperandAliasing {
            output_shape_index: longs("a path into the result", &alias.output)?,
            operand_index: fit("the number of an aliased operand", alias.operand)?,
            operand_shape_index: longs("a path into an operand", &alias.path)?,
        })
    };
    aliases.iter().map(proto).collect()
}
