//! Sharding rules of collectives. In a manual computation they may have free axes besides the ones of their groups.

use super::Collective;
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for Collective {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(match self {
            Collective::AllReduce(op) if !op.is_start => Some(RuleBuilder::identity(cx)),
            Collective::CollectivePermute(op) if !op.is_start && !op.is_in_place() => Some(RuleBuilder::identity(cx)),
            Collective::CollectiveBroadcast { .. } | Collective::CollectiveReduce { .. } => {
                Some(RuleBuilder::identity(cx))
            }
            Collective::AllGather(op) if !op.is_start => Some(regrouped(cx, &[op.dimension])),
            Collective::ReduceScatter { dimension, .. } => Some(regrouped(cx, &[*dimension])),
            Collective::AllToAll { dimension, .. } => Some(regrouped(cx, dimension.as_slice())),
            // Starts and dones are created after partitioning. Rows of ragged operands have no place of their own.
            Collective::AllReduce(_)
            | Collective::AllGather(_)
            | Collective::CollectivePermute(_)
            | Collective::RaggedAllToAll(_)
            | Collective::Done(_)
            | Collective::ReplicaId
            | Collective::PartitionId => None,
        })
    }
}

/// Rule of a collective that changes the given dimensions, which operands and results must hold whole, and passes the
/// others through. Result `i` belongs to operand `i`.
fn regrouped(cx: &RuleContext<'_>, changed: &[usize]) -> ShardingRule {
    let mut builder = RuleBuilder::new(cx);
    for i in 0..builder.operand_count() {
        let (operand, result) = (cx.operand(i), cx.result(i));
        for (d, (&size, &result_size)) in operand.iter().zip(result).enumerate() {
            if changed.contains(&d) {
                builder.add(size, FactorKind::NeedReplication, &[(i, d)], &[]);
                builder.add(result_size, FactorKind::NeedReplication, &[], &[(i, d)]);
            } else {
                builder.add(size, FactorKind::PassThrough, &[(i, d)], &[(i, d)]);
            }
        }
    }
    builder.finish()
}
