//! Attributes of descriptors by the tables of NVIDIA's documentation: their types, numbers of elements, and whether
//! they are required. Attributes that no program of this repository writes are refused.

use std::collections::BTreeMap;

use super::{Dnn, Status};
use crate::refusal::wrong;

/// `cudnnBackendAttributeType_t`.
pub(super) const HANDLE: u32 = 0;
pub(super) const DATA_TYPE: u32 = 1;
pub(super) const BOOLEAN: u32 = 2;
pub(super) const INT64: u32 = 3;
pub(super) const FLOAT: u32 = 4;
pub(super) const DOUBLE: u32 = 5;
pub(super) const VOID_PTR: u32 = 6;
pub(super) const CONVOLUTION_MODE: u32 = 7;
pub(super) const HEUR_MODE: u32 = 8;
pub(super) const NAN_PROPAGATION: u32 = 10;
pub(super) const NUMERICAL_NOTE: u32 = 11;
pub(super) const POINTWISE_MODE: u32 = 14;
pub(super) const DESCRIPTOR: u32 = 15;

/// `cudnnBackendDescriptorType_t`.
pub(super) const POINTWISE: u32 = 0;
pub(super) const CONVOLUTION: u32 = 1;
pub(super) const ENGINE: u32 = 2;
pub(super) const ENGINE_CONFIGURATION: u32 = 3;
pub(super) const HEURISTIC: u32 = 4;
pub(super) const PLAN: u32 = 5;
pub(super) const FORWARD: u32 = 10;
pub(super) const BACKWARD_FILTER: u32 = 11;
pub(super) const BACKWARD_DATA: u32 = 12;
pub(super) const OPERATION_POINTWISE: u32 = 13;
pub(super) const GRAPH: u32 = 15;
pub(super) const VARIANT_PACK: u32 = 16;
pub(super) const TENSOR: u32 = 17;

/// Rule for an attribute that can be set.
struct Rule {
    name: u32,
    types: &'static [u32],
    most: usize,
    is_needed: bool,
}

const fn needs(name: u32, types: &'static [u32]) -> Rule {
    Rule { name, types, most: 1, is_needed: true }
}

const fn may_have(name: u32, types: &'static [u32]) -> Rule {
    Rule { name, types, most: 1, is_needed: false }
}

const fn list(name: u32, types: &'static [u32], most: usize) -> Rule {
    Rule { name, types, most, is_needed: true }
}

/// Returns the attributes of a kind of descriptor; `None` for a kind that is not simulated.
fn rules(kind: u32) -> Option<Vec<Rule>> {
    const FACTOR: &[u32] = &[FLOAT, DOUBLE];
    let operation = |first: u32| {
        let parts = (first + 2..first + 6).map(|name| needs(name, &[DESCRIPTOR]));
        [may_have(first, FACTOR), may_have(first + 1, FACTOR)].into_iter().chain(parts).collect()
    };
    Some(match kind {
        POINTWISE => vec![needs(0, &[POINTWISE_MODE]), needs(1, &[DATA_TYPE]), may_have(2, &[NAN_PROPAGATION])],
        CONVOLUTION => {
            let lists = (102..=105).map(|name| list(name, &[INT64], 6));
            let numbers = [needs(100, &[DATA_TYPE]), needs(101, &[CONVOLUTION_MODE]), needs(106, &[INT64])];
            numbers.into_iter().chain(lists).collect()
        }
        ENGINE | ENGINE_CONFIGURATION => Vec::new(),
        HEURISTIC => vec![needs(200, &[HEUR_MODE]), needs(201, &[DESCRIPTOR])],
        PLAN => vec![needs(400, &[HANDLE]), needs(401, &[DESCRIPTOR])],
        FORWARD => operation(700),
        BACKWARD_DATA => operation(706),
        BACKWARD_FILTER => operation(712),
        OPERATION_POINTWISE => vec![
            needs(750, &[DESCRIPTOR]),
            needs(751, &[DESCRIPTOR]),
            may_have(752, &[DESCRIPTOR]),
            needs(753, &[DESCRIPTOR]),
        ],
        GRAPH => vec![needs(800, &[HANDLE]), list(801, &[DESCRIPTOR], 64)],
        VARIANT_PACK => vec![list(1000, &[INT64], 64), list(1001, &[VOID_PTR], 64), may_have(1003, &[VOID_PTR])],
        TENSOR => vec![
            needs(900, &[INT64]),
            needs(901, &[DATA_TYPE]),
            list(902, &[INT64], 8),
            list(903, &[INT64], 8),
            needs(906, &[INT64]),
            may_have(907, &[BOOLEAN]),
        ],
        _ => return None,
    })
}

/// Returns the size of an attribute's element in bytes; `None` for types that are not simulated.
pub(super) fn element_bytes(ty: u32) -> Option<usize> {
    match ty {
        BOOLEAN => Some(1),
        FLOAT | DATA_TYPE | CONVOLUTION_MODE | HEUR_MODE | NAN_PROPAGATION | NUMERICAL_NOTE | POINTWISE_MODE => Some(4),
        HANDLE | INT64 | DOUBLE | VOID_PTR | DESCRIPTOR => Some(8),
        _ => None,
    }
}

/// Elements of an attribute.
#[derive(Clone, Debug)]
pub(super) enum Value<M> {
    /// Integers, enumerations, handles or addresses.
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Parts(Vec<M>),
}

/// Descriptor; finalising it makes an `M` from its attributes.
#[derive(Debug)]
pub(super) struct Object<M> {
    kind: u32,
    values: BTreeMap<u32, Value<M>>,
    made: Option<M>,
}

impl<M> Object<M> {
    pub fn new(kind: u32) -> Dnn<Object<M>> {
        match rules(kind) {
            Some(_) => Ok(Object { kind, values: BTreeMap::new(), made: None }),
            None => wrong(Status::NOT_SUPPORTED, format!("descriptors of kind {kind} are not simulated")),
        }
    }

    /// Checks that an attribute can be set, before its elements are read.
    pub fn check(&self, name: u32, ty: u32, count: i64) -> Dnn<usize> {
        let Object { kind, .. } = self;
        if self.made.is_some() {
            return wrong(Status::BAD_PARAM, format!("attribute {name} is set after the descriptor was finalised"));
        }
        let rules = rules(*kind).unwrap_or_default();
        let Some(rule) = rules.iter().find(|rule| rule.name == name) else {
            return wrong(Status::BAD_PARAM, format!("a descriptor of kind {kind} has no attribute {name} to set"));
        };
        if !rule.types.contains(&ty) {
            return wrong(Status::ATTRIBUTE_TYPE, format!("attribute {name} is of types {:?}, not {ty}", rule.types));
        }
        match usize::try_from(count) {
            Ok(count @ 1..) if count <= rule.most => Ok(count),
            _ => wrong(Status::OUT_OF_BOUND, format!("attribute {name} has up to {} elements, not {count}", rule.most)),
        }
    }

    /// Sets an attribute that was checked.
    pub fn set(&mut self, name: u32, value: Value<M>) {
        self.values.insert(name, value);
    }

    /// Checks that all required attributes are set, and finalises the descriptor with the result of `make`.
    pub fn finalize(&mut self, make: impl FnOnce(u32, &Object<M>) -> Dnn<M>) -> Dnn {
        if self.made.is_some() {
            return wrong(Status::BAD_PARAM, "a descriptor is finalised twice");
        }
        let missing = rules(self.kind).unwrap_or_default().into_iter();
        let missing = missing.filter(|rule| rule.is_needed && !self.values.contains_key(&rule.name));
        if let Some(rule) = missing.into_iter().next() {
            return wrong(Status::BAD_PARAM, format!("attribute {} is not set", rule.name));
        }
        self.made = Some(make(self.kind, self)?);
        Ok(())
    }

    /// Fills an empty descriptor with a value that the library has made.
    pub fn fill(&mut self, kind: u32, made: M) -> Dnn {
        if self.kind != kind || self.made.is_some() || !self.values.is_empty() {
            return wrong(Status::DESCRIPTOR_TYPE, format!("an empty descriptor of kind {kind} is wanted"));
        }
        self.made = Some(made);
        Ok(())
    }

    /// Returns the value of a finalised descriptor.
    pub fn made(&self) -> Dnn<&M> {
        match &self.made {
            Some(made) => Ok(made),
            None => wrong(Status::NOT_FINALIZED, "a descriptor is used that is not finalised"),
        }
    }

    /// Returns the integers of an attribute; empty if it is not set.
    pub fn integers(&self, name: u32) -> &[i64] {
        match self.values.get(&name) {
            Some(Value::Integers(numbers)) => numbers,
            _ => &[],
        }
    }

    /// Returns the single integer of an attribute, or 0.
    pub fn integer(&self, name: u32) -> i64 {
        self.integers(name).first().copied().unwrap_or(0)
    }

    /// Returns the single float of an attribute, or a default.
    pub fn float(&self, name: u32, default: f64) -> f64 {
        match self.values.get(&name) {
            Some(Value::Floats(numbers)) => numbers.first().copied().unwrap_or(default),
            _ => default,
        }
    }

    /// Returns the descriptors of an attribute.
    pub fn parts(&self, name: u32) -> &[M] {
        match self.values.get(&name) {
            Some(Value::Parts(parts)) => parts,
            _ => &[],
        }
    }
}

/// Converts zero-extended bits of elements to a value of their type. `part` returns the descriptor of a handle.
pub(super) fn value<M>(ty: u32, bits: &[u64], part: impl Fn(u64) -> Dnn<M>) -> Dnn<Value<M>> {
    Ok(match ty {
        FLOAT => Value::Floats(bits.iter().map(|&bits| f64::from(f32::from_bits(bits as u32))).collect()),
        DOUBLE => Value::Floats(bits.iter().map(|&bits| f64::from_bits(bits)).collect()),
        DESCRIPTOR => Value::Parts(bits.iter().map(|&handle| part(handle)).collect::<Dnn<_>>()?),
        _ => Value::Integers(bits.iter().map(|&bits| bits as i64).collect()),
    })
}
