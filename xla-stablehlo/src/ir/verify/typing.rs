//! Verification of operand and result types against the rule of the operation's form.

use std::collections::HashMap;

use xla_hlo::ElementType;
use xla_hlo::entity::EntityId;

use super::{Checked, Violation};
use crate::ir::forms::{self, Types as Rule};
use crate::ir::{Module, OpId, Type, TypeId, ValueId};

/// Element type as a key: equal keys are equal types.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Element {
    Real(ElementType),
    Complex(ElementType),
    Other(TypeId),
}

/// Numbering of the types of a module: equal numbers mean equal dimensions and element type.
pub(super) struct Types<'m> {
    module: &'m Module,
    numbers: Vec<Number>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    /// Tensor: number of its list of dimensions, element type, rank, and whether a dimension is dynamic.
    Tensor { dims: usize, element: Element, rank: usize, is_dynamic: bool },
    /// Other type. Such types are compared by kind, because equal types may have different ids.
    Other,
}

impl<'m> Types<'m> {
    pub fn new(module: &'m Module) -> Types<'m> {
        let mut known: HashMap<&[Option<u64>], usize> = HashMap::new();
        let mut number = |ty: &'m Type| match ty {
            Type::Tensor { dims, element, .. } => {
                let next = known.len();
                let is_dynamic = dims.contains(&None);
                let element = element_of(module, *element);
                Number::Tensor { dims: *known.entry(dims).or_insert(next), element, rank: dims.len(), is_dynamic }
            }
            _ => Number::Other,
        };
        Types { module, numbers: module.types.iter().map(|(_, ty)| number(ty)).collect() }
    }

    /// Whether two types agree: tensors with equal dimensions and elements, where a dynamic dimension agrees with any,
    /// or two other types of the same kind.
    pub fn agree(&self, a: TypeId, b: TypeId) -> bool {
        let same_kind = |a, b| std::mem::discriminant::<Type>(&self.module.types[a]) == std::mem::discriminant(b);
        match (self.numbers[a.index()], self.numbers[b.index()]) {
            (Number::Other, Number::Other) => a == b || same_kind(a, &self.module.types[b]),
            _ => self.same_shape(a, b) && self.same_element(a, b),
        }
    }

    fn same_shape(&self, a: TypeId, b: TypeId) -> bool {
        match (self.numbers[a.index()], self.numbers[b.index()]) {
            (
                Number::Tensor { dims, rank, is_dynamic, .. },
                Number::Tensor { dims: others, rank: another, is_dynamic: is_other_dynamic, .. },
            ) => dims == others || (rank == another && (is_dynamic || is_other_dynamic)),
            // An unranked tensor agrees with any tensor. This rule does not apply to types other than tensors.
            _ => true,
        }
    }

    fn same_element(&self, a: TypeId, b: TypeId) -> bool {
        let of = |ty: TypeId| match self.numbers[ty.index()] {
            Number::Tensor { element, .. } => Some(element),
            Number::Other => None,
        };
        match (of(a), of(b)) {
            // A quantized element type may be spelled in several forms.
            (Some(Element::Other(_)), _) | (_, Some(Element::Other(_))) => true,
            (Some(a), Some(b)) => a == b,
            _ => true,
        }
    }
}

fn element_of(module: &Module, ty: TypeId) -> Element {
    match &module.types[ty] {
        Type::Element(element) => Element::Real(*element),
        Type::Complex(part) => match &module.types[*part] {
            Type::Element(element) => Element::Complex(*element),
            _ => Element::Other(ty),
        },
        _ => Element::Other(ty),
    }
}

pub(super) fn verify(module: &Module, types: &Types<'_>, op: OpId) -> Checked {
    let operation = &module.operations[op];
    let Some(form) = forms::form(&module.strings[operation.name]) else { return Ok(()) };
    let ty = |value: &ValueId| module.values[*value].ty;
    let (operands, results) = (&operation.operands, &operation.results);
    let differ = |a, b, what: &str| {
        let (a, b) = (module.type_text(a), module.type_text(b));
        Err(Violation::new(op, format!("has {what} of types {a} and {b}")))
    };
    if matches!(form.types, Rule::Pairs | Rule::PairedShapes | Rule::PairedElements) && operands.len() != results.len()
    {
        let (operands, results) = (operands.len(), results.len());
        return Err(Violation::new(op, format!("has {results} results for {operands} operands")));
    }
    let Some(first) = operands.first().or(results.first()) else { return Ok(()) };
    let all = || operands.iter().chain(results);
    let pairs: Vec<(TypeId, TypeId)> = match form.types {
        Rule::Any => return Ok(()),
        Rule::Same => all().map(|value| (ty(first), ty(value))).collect(),
        Rule::Pairs => operands.iter().zip(results).map(|(a, b)| (ty(a), ty(b))).collect(),
        Rule::PairedShapes => {
            return match operands.iter().zip(results).find(|(a, b)| !types.same_shape(ty(a), ty(b))) {
                Some((a, b)) => differ(ty(a), ty(b), "an operand and its result"),
                None => Ok(()),
            };
        }
        Rule::PairedElements => {
            return match operands.iter().zip(results).find(|(a, b)| !types.same_element(ty(a), ty(b))) {
                Some((a, b)) => differ(ty(a), ty(b), "an operand and its result"),
                None => Ok(()),
            };
        }
        Rule::First => results.iter().map(|value| (ty(first), ty(value))).collect(),
        Rule::Branches => results.iter().flat_map(|r| operands[1..].iter().map(|o| (ty(o), ty(r)))).collect(),
        Rule::Shape => {
            return match all().find(|value| !types.same_shape(ty(first), ty(value))) {
                Some(other) => differ(ty(first), ty(other), "operands and results"),
                None => Ok(()),
            };
        }
        Rule::Element => {
            return match results.iter().find(|value| !types.same_element(ty(first), ty(value))) {
                Some(other) => differ(ty(first), ty(other), "an operand and a result"),
                None => Ok(()),
            };
        }
    };
    match pairs.into_iter().find(|&(a, b)| !types.agree(a, b)) {
        Some((a, b)) => differ(a, b, "operands and results"),
        None => Ok(()),
    }
}
