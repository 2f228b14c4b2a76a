//! Parameters or results of a program, as arrays of their properties.

use std::sync::OnceLock;

use xla_hlo::{ArrayShape, Layout, MEMORY_KINDS, Shape};

use crate::abi::kinds;
use crate::element_type::{TOKEN, number};
use crate::ffi::{Handle, Hosted, Many};
use crate::layout;

/// Parameters or results: their arrays and tokens in depth-first order, with properties that are lent to C.
#[derive(Default)]
pub(crate) struct ValueList {
    pub values: Vec<Value>,
    pub types: Vec<i32>,
    /// Concatenated dimensions of all values.
    pub dims: Vec<i64>,
    pub ranks: Vec<usize>,
    pub memory_kinds: Vec<Many<u8>>,
    pub memory_kind_sizes: Vec<usize>,
    /// Encoded shardings. An empty `OpSharding` means that the value is replicated.
    pub shardings: Vec<Many<u8>>,
    pub sharding_sizes: Vec<usize>,
    /// Owner of the bytes of the shardings.
    encoded: Vec<Vec<u8>>,
    layouts: Vec<Layout>,
    /// Layout objects and their handles, created on the first request.
    hosted_layouts: OnceLock<Vec<Hosted<kinds::MemoryLayout>>>,
    layout_handles: OnceLock<Vec<Handle<kinds::MemoryLayout>>>,
}

/// Parameter or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Array in memory of this kind.
    Array { memory: usize },
    /// Token, which the service omits.
    Token,
}

impl ValueList {
    /// Lists the values of `shapes`. `arrays` are the array shapes on the device, and `shardings` their encoded
    /// shardings, empty if all are replicated.
    pub fn new<'a>(
        shapes: &[Shape],
        arrays: impl Iterator<Item = &'a ArrayShape>,
        shardings: Vec<Vec<u8>>,
    ) -> ValueList {
        let (mut list, mut arrays) = (ValueList::default(), arrays.enumerate());
        for (_, leaf) in shapes.iter().flat_map(Shape::leaves) {
            match leaf.as_array().and_then(|asked| Some((asked, arrays.next()?))) {
                Some((asked, (number, shape))) => {
                    list.array(asked, shape, shardings.get(number).map_or(&[], Vec::as_slice));
                }
                None => list.token(),
            }
        }
        list.encoded = shardings;
        list
    }

    fn array(&mut self, asked: &ArrayShape, shape: &ArrayShape, sharding: &[u8]) {
        let space = asked.layout().map_or(0, |layout| layout.memory_space);
        let memory = MEMORY_KINDS.iter().position(|&(_, of)| of == space).unwrap_or(0);
        self.value(Value::Array { memory }, number(shape.element_type()), memory, sharding);
        self.dims.extend(shape.dims().iter().map(|&dim| dim as i64));
        self.ranks.push(shape.rank());
        self.layouts.push(layout::of(shape));
    }

    /// Adds a token, which has no dimensions.
    fn token(&mut self) {
        self.value(Value::Token, TOKEN, 0, b"");
        self.ranks.push(0);
        self.layouts.push(Layout::row_major(0));
    }

    fn value(&mut self, value: Value, element_type: i32, memory: usize, sharding: &[u8]) {
        let (kind, _) = MEMORY_KINDS[memory];
        self.values.push(value);
        self.types.push(element_type);
        self.memory_kinds.push(Many::of(kind.as_bytes()));
        self.memory_kind_sizes.push(kind.len());
        self.shardings.push(Many::of(sharding));
        self.sharding_sizes.push(sharding.len());
    }

    /// Returns the layouts, lent to C.
    pub fn layout_handles(&self) -> &[Handle<kinds::MemoryLayout>] {
        self.layout_handles.get_or_init(|| {
            let make = || self.layouts.iter().cloned().map(Hosted::new).collect();
            self.hosted_layouts.get_or_init(make).iter().map(Hosted::handle).collect()
        })
    }

    /// Returns the number of arrays and tokens.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are tokens.
    pub fn has_tokens(&self) -> bool {
        self.values.contains(&Value::Token)
    }
}
