//! Sharding rules for operations unknown to Shardy, in Shardy's syntax.

use xla_hlo::sdy::FactorSymbol;
use xla_hlo::{Error, Result};

use crate::ir::{AttrId, Module, Sharding};

/// Formats a rule: `#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}>`.
pub(super) fn text(module: &Module, id: AttrId) -> Result<String> {
    let wrong = || Error::invalid_argument(format!("{} is not a sharding rule", module.attribute_text(id)));
    // A rule that the program stores as text is kept verbatim.
    if let Some(text) = module.string_attribute(id) {
        return Ok(text.into_owned());
    }
    let Some(Sharding::Rule { factors, operands, results, kinds, is_custom }) = module.attributes[id].sharding() else {
        return Err(wrong());
    };
    let tensors = |list: &[AttrId]| {
        let tensors: Option<Vec<String>> = list.iter().map(|&id| tensor(module, id)).collect();
        tensors.map(|tensors| tensors.join(", ")).ok_or_else(wrong)
    };
    let sizes: Vec<String> =
        factors.iter().enumerate().map(|(i, size)| format!("{}={size}", FactorSymbol(i))).collect();
    let mut text = format!("({})->({}) {{{}}}", tensors(operands)?, tensors(results)?, sizes.join(", "));
    for (name, list) in ["reduction", "need_replication", "permutation", "blocked_propagation"].iter().zip(kinds) {
        if !list.is_empty() {
            text.push_str(&format!(" {name}={{{}}}", names(list).ok_or_else(wrong)?.join(", ")));
        }
    }
    let custom = if *is_custom { ", custom" } else { "" };
    Ok(format!("#sdy.op_sharding_rule<{text}{custom}>"))
}

/// Formats the factors of each dimension: `[ij, k]`.
fn tensor(module: &Module, id: AttrId) -> Option<String> {
    let Some(Sharding::TensorMapping(dims)) = module.attributes[id].sharding() else { return None };
    let dim = |&id: &AttrId| match module.attributes[id].sharding() {
        Some(Sharding::DimensionMapping(factors)) => Some(names(factors)?.concat()),
        _ => None,
    };
    Some(format!("[{}]", dims.iter().map(dim).collect::<Option<Vec<String>>>()?.join(", ")))
}

fn names(factors: &[i64]) -> Option<Vec<String>> {
    factors.iter().map(|&factor| usize::try_from(factor).ok().map(|factor| FactorSymbol(factor).to_string())).collect()
}
