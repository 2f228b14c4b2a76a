//! Text form of sharding rules, `#sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}>`.

use std::collections::HashMap;
use std::fmt;

use super::{Factor, FactorKind, ShardingRule, TensorFactors};
use crate::Result;
use crate::text::MlirReader;

/// Number of factors with a symbol of one letter, `i` to `z`.
const LETTERS: usize = 18;

/// Lists of factors after the sizes, in order.
const LISTS: [(&str, FactorKind); 3] = [
    ("reduction", FactorKind::Reduction),
    ("need_replication", FactorKind::NeedReplication),
    ("permutation", FactorKind::Permutation),
];
const BLOCKED: &str = "blocked_propagation";

impl ShardingRule {
    /// Parses `#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k}>`, or the part in angle
    /// brackets. Text does not state whether a rule is elementwise; the result is not.
    pub fn parse(text: &str) -> Result<ShardingRule> {
        let mut reader = MlirReader::new(text, "a sharding rule");
        let r = &mut reader;
        r.accept("#sdy.op_sharding_rule");
        r.expect("<")?;
        let operands = tensors(r)?;
        r.expect("->")?;
        let results = tensors(r)?;
        let (symbols, mut factors) = sizes(r)?;
        for (name, kind) in LISTS {
            for factor in listed(r, name, &symbols)? {
                factors[factor].kind = kind;
            }
        }
        for factor in listed(r, BLOCKED, &symbols)? {
            factors[factor].is_blocked = true;
        }
        // Marks a rule that the program states; such rules are never removed.
        if r.accept(",") {
            r.expect("custom")?;
        }
        r.expect(">")?;
        r.end()?;
        let numbered = |tensors: Vec<Vec<Vec<String>>>| -> Result<Vec<TensorFactors>> {
            let number = |symbol: String| find(&reader, &symbols, &symbol);
            let dim = |dim: Vec<String>| dim.into_iter().map(number).collect::<Result<Vec<_>>>();
            tensors.into_iter().map(|tensor| tensor.into_iter().map(dim).collect()).collect()
        };
        let (operands, results) = (numbered(operands)?, numbered(results)?);
        Ok(ShardingRule { factors, operands, results, is_elementwise: false })
    }
}

/// Parses `([i, jk], [])`: the symbols of each dimension of each array.
fn tensors(r: &mut MlirReader<'_>) -> Result<Vec<Vec<Vec<String>>>> {
    let mut tensors = Vec::new();
    r.expect("(")?;
    r.list(")", |r| {
        let mut dims = Vec::new();
        r.expect("[")?;
        r.list("]", |r| {
            let text = r.word(|c| c.is_ascii_alphanumeric() || c == '_');
            let mut symbols: Vec<String> = Vec::new();
            for c in text.chars() {
                match symbols.last_mut() {
                    Some(last) if !c.is_ascii_alphabetic() => last.push(c),
                    _ => symbols.push(c.to_string()),
                }
            }
            dims.push(symbols);
            Ok(())
        })?;
        tensors.push(dims);
        Ok(())
    })?;
    Ok(tensors)
}

/// Parses `{i=8, j=32}`.
fn sizes(r: &mut MlirReader<'_>) -> Result<(HashMap<String, usize>, Vec<Factor>)> {
    let (mut symbols, mut factors) = (HashMap::new(), Vec::new());
    if !r.accept("{") {
        return Ok((symbols, factors));
    }
    r.list("}", |r| {
        let symbol = symbol(r).to_string();
        r.expect("=")?;
        let size = r.integer("the size of a factor")?;
        if symbols.insert(symbol.clone(), factors.len()).is_some() {
            return Err(r.wrong(&format!("factor {symbol}"), "is defined twice"));
        }
        factors.push(Factor { size, kind: FactorKind::PassThrough, is_blocked: false });
        Ok(())
    })?;
    Ok((symbols, factors))
}

fn symbol<'t>(r: &mut MlirReader<'t>) -> &'t str {
    r.word(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Parses `name={i, j}` if it follows.
fn listed(r: &mut MlirReader<'_>, name: &str, symbols: &HashMap<String, usize>) -> Result<Vec<usize>> {
    let mut factors = Vec::new();
    if r.accept(name) {
        r.expect("=")?;
        r.expect("{")?;
        r.list("}", |r| {
            let symbol = symbol(r);
            factors.push(find(r, symbols, symbol)?);
            Ok(())
        })?;
    }
    Ok(factors)
}

fn find(r: &MlirReader<'_>, symbols: &HashMap<String, usize>, symbol: &str) -> Result<usize> {
    symbols.get(symbol).copied().ok_or_else(|| r.wrong(&format!("factor {symbol}"), "has no size"))
}

/// Symbol of a factor: `i` to `z`, then `z_1`, `z_2` and so on.
#[derive(Clone, Copy, Debug)]
pub struct FactorSymbol(pub usize);

impl fmt::Display for FactorSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < LETTERS => write!(f, "{}", char::from(b'i' + n as u8)),
            n => write!(f, "z_{}", n - LETTERS + 1),
        }
    }
}

/// Prints the part in angle brackets; `#sdy.op_sharding_rule` precedes it.
impl fmt::Display for ShardingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dim = |dim: &Vec<usize>| dim.iter().map(|&factor| FactorSymbol(factor).to_string()).collect::<String>();
        let tensor = |tensor: &TensorFactors| format!("[{}]", tensor.iter().map(dim).collect::<Vec<_>>().join(", "));
        let tensors = |list: &[TensorFactors]| list.iter().map(tensor).collect::<Vec<_>>().join(", ");
        write!(f, "<({})->({})", tensors(&self.operands), tensors(&self.results))?;
        let all = || self.factors.iter().enumerate();
        if !self.factors.is_empty() {
            let sizes: Vec<String> = all().map(|(i, factor)| format!("{}={}", FactorSymbol(i), factor.size)).collect();
            write!(f, " {{{}}}", sizes.join(", "))?;
        }
        let mut list = |name: &str, belongs: &dyn Fn(&Factor) -> bool| {
            let symbols: Vec<String> =
                all().filter(|(_, factor)| belongs(factor)).map(|(i, _)| FactorSymbol(i).to_string()).collect();
            if symbols.is_empty() { Ok(()) } else { write!(f, " {name}={{{}}}", symbols.join(", ")) }
        };
        for (name, kind) in LISTS {
            list(name, &|factor| factor.kind == kind)?;
        }
        list(BLOCKED, &|factor| factor.is_blocked)?;
        write!(f, ">")
    }
}
