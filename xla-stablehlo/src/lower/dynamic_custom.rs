//! Custom calls that represent StableHLO operations with attributes as operands.

use xla_hlo::ops::{Op, ReduceWindow, RngBitGenerator, TopK, Window};
use xla_hlo::{ArrayShape, CompId, Error, InstrId, Result, Shape};

use super::call::Call;
use super::context::Lowering;
use super::contraction::window_dims;
use super::{custom, fold, random, types};

/// Lowers a custom call that represents an operation with dynamic attributes.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    if call.name != "custom_call" {
        return None;
    }
    Some(match call.attributes.string("call_target_name").ok()?.strip_prefix("stablehlo.")? {
        "dynamic_reduce_window" => reduce_window(lowering, call),
        "dynamic_rng_bit_generator" => rng_bit_generator(lowering, call),
        "dynamic_top_k" => top_k(lowering, call),
        name => {
            return name
                .starts_with("dynamic_")
                .then(|| Err(Error::unimplemented(format!("custom call stablehlo.{name} is unknown here"))));
        }
    })
}

/// Returns the integers of an operand, which must be constant.
fn integers(lowering: &mut Lowering<'_>, id: InstrId, what: &str) -> Result<Vec<i64>> {
    let integers = lowering.evaluated(id).as_ref().and_then(fold::integers);
    integers
        .ok_or_else(|| Error::unimplemented(format!("{what} depend on values of the program; they must be constants")))
}

/// Returns the non-negative integers of an operand, which must be constant.
fn sizes(lowering: &mut Lowering<'_>, id: InstrId, what: &str) -> Result<Vec<usize>> {
    let size = |size: i64| {
        usize::try_from(size)
            .map_err(|_| Error::invalid_argument(format!("{what} must not be negative, one is {size}")))
    };
    integers(lowering, id, what)?.into_iter().map(size).collect()
}

/// Lowers a reduce-window. Operands: inputs, initial values, window sizes, strides, base and window dilations, rows of
/// paddings.
fn reduce_window(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    const ATTRIBUTES: usize = 5;
    let count = call.operands.len().checked_sub(ATTRIBUTES).filter(|count| count % 2 == 0);
    let count = count.ok_or_else(|| Error::invalid_argument("inputs, initial values and five lists are needed"))?;
    let (operands, lists) = call.operands.split_at(count);
    let mut attributes = Vec::with_capacity(4);
    for (&list, what) in lists.iter().zip(["window sizes", "window strides", "base dilations", "window dilations"]) {
        attributes.push(sizes(lowering, list, what)?);
    }
    let padding = integers(lowering, lists[4], "paddings")?;
    let rows: Vec<Vec<i64>> = padding.chunks(2).map(<[i64]>::to_vec).collect();
    let dims = window_dims(&attributes[0], &attributes[1], &rows, [&attributes[2], &attributes[3]], &[])?;
    let computation = reducer(lowering, call, operands)?;
    let op = Op::from(ReduceWindow { window: Window { dims }, computation });
    lowering.add(op, call.shape(), operands.to_vec())
}

/// Lowers the reduction function.
fn reducer(lowering: &mut Lowering<'_>, call: &Call<'_>, operands: &[InstrId]) -> Result<CompId> {
    let names = custom::callees(call.attributes)?;
    let [name] = &names[..] else { return Err(Error::invalid_argument("one called computation is needed")) };
    let (_, initial) = operands.split_at(operands.len() / 2);
    lowering.computation_of_call(name, &[initial, initial].concat())
}

/// Lowers a random bit generator. Operands: the state, and the shape of the generated bits.
fn rng_bit_generator(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [state, shape] = call.exactly()?;
    let dims = sizes(lowering, shape, "sizes")?;
    let [_, Shape::Array(written)] = &call.results[..] else {
        return Err(Error::invalid_argument("a bit generator must return a state and numbers"));
    };
    let numbers = Shape::Array(ArrayShape::new(written.element_type(), dims));
    if !types::fits(&call.results[1], &numbers) {
        return Err(Error::invalid_argument(format!(
            "the generated numbers {numbers} do not fit the result {}",
            call.results[1]
        )));
    }
    let algorithm = random::algorithm(call)?;
    let state_shape = lowering.shape(state).without_layout();
    lowering.add(RngBitGenerator { algorithm }, Shape::Tuple(vec![state_shape, numbers]), [state])
}

/// Lowers a top-k. Operands: the array, and the number `k` of elements to select from its last dimension.
fn top_k(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [x, k] = call.exactly()?;
    let k = sizes(lowering, k, "k")?;
    let [k] = k[..] else { return Err(Error::invalid_argument("k must be one number")) };
    lowering.add(TopK { k, largest: true, is_stable: false }, call.shape(), [x])
}
