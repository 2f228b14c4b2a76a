//! Builder of one kernel in Cranelift's IR: loops, branches, elements of arrays, constants.

use std::sync::Arc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, InstBuilder, MemFlagsData, SigRef, StackSlot, StackSlotData, StackSlotKind, Type, Value,
    types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::FunctionBuilder;
use xla::hlo::ops::ElementFunction;
use xla::hlo::{ArrayShape, ElementType, Literal, Op, Scalar, strides};

use crate::machine::{Application, Kept, SLOT, apply};

/// Returns the type of an element's value: floats for f32 and f64, integers with their bits for all others.
pub(crate) fn value_type(ty: ElementType) -> Type {
    match (ty, ty.byte_width()) {
        (ElementType::F32, _) => types::F32,
        (ElementType::F64, _) => types::F64,
        (_, 1) => types::I8,
        (_, 2) => types::I16,
        (_, 4) => types::I32,
        (_, 8) => types::I64,
        _ => types::I128,
    }
}

/// Bitcasts a value to another type.
pub(crate) fn as_bits(k: &mut KernelBuilder<'_>, value: Value, ty: Type) -> Value {
    if k.f.func.dfg.value_type(value) == ty { value } else { k.f.ins().bitcast(ty, MemFlagsData::new(), value) }
}

/// Array in memory.
#[derive(Clone)]
pub(crate) struct Array {
    first: Value,
    ty: ElementType,
    strides: Vec<usize>,
}

/// Kernel under construction.
pub(crate) struct KernelBuilder<'a> {
    /// Builder for instructions without a method in this type.
    pub f: FunctionBuilder<'a>,
    config: TargetFrontendConfig,
    /// Range of the call's work items: the first one, and one past the last.
    pub items: [Value; 2],
    firsts: Vec<Value>,
    kept: &'a mut Kept,
    /// Signature of [`apply`], and stack slots for its operands and its result.
    apply: Option<(SigRef, StackSlot, StackSlot)>,
}

/// Loop under construction.
pub(crate) struct Loop {
    head: Block,
    exit: Block,
    /// Loop variable.
    pub index: Value,
    /// Loop-carried values.
    pub carried: Vec<Value>,
}

/// Branch under construction.
pub(crate) struct Branch {
    otherwise: Block,
    end: Block,
}

impl<'a> KernelBuilder<'a> {
    /// Creates a kernel of `arrays` arrays.
    pub fn new(
        mut f: FunctionBuilder<'a>,
        config: TargetFrontendConfig,
        arrays: usize,
        kept: &'a mut Kept,
    ) -> KernelBuilder<'a> {
        f.func.signature.call_conv = config.default_call_conv;
        f.func.signature.params.extend([types::I64; 3].map(AbiParam::new));
        let entry = f.create_block();
        f.append_block_params_for_function_params(entry);
        f.switch_to_block(entry);
        let [table, first, last] = [0, 1, 2].map(|i| f.block_params(entry)[i]);
        let load = |i| f.ins().load(types::I64, MemFlagsData::trusted().with_readonly(), table, 8 * i as i32);
        let firsts = (0..arrays).map(load).collect();
        KernelBuilder { f, config, items: [first, last], firsts, kept, apply: None }
    }

    /// Ends the function.
    pub fn finish(mut self) {
        self.f.ins().return_(&[]);
        self.f.seal_all_blocks();
        self.f.finalize(self.config);
    }

    /// Returns array number `i` of the kernel.
    pub fn array(&self, i: usize, shape: &ArrayShape) -> Array {
        let strides = strides(shape.dims(), &shape.minor_to_major());
        Array { first: self.firsts[i], ty: shape.element_type(), strides }
    }

    /// Adds a constant row-major array, which lives as long as the kernel.
    pub fn constant_array(&mut self, literal: &Arc<Literal>) -> Array {
        let first = self.int(literal.bytes().as_ptr() as i64);
        self.kept.push(literal.clone());
        let shape = literal.array_shape();
        let strides = strides(shape.dims(), &(0..shape.rank()).rev().collect::<Vec<_>>());
        Array { first, ty: shape.element_type(), strides }
    }

    fn address(&mut self, array: &Array, at: &[Value]) -> Value {
        let mut address = array.first;
        for (&i, &stride) in at.iter().zip(&array.strides) {
            let bytes = self.times(i, (stride * array.ty.byte_width()) as i64);
            address = self.f.ins().iadd(address, bytes);
        }
        address
    }

    /// Loads an element of an array.
    pub fn load(&mut self, array: &Array, at: &[Value]) -> Value {
        let address = self.address(array, at);
        self.f.ins().load(value_type(array.ty), MemFlagsData::new().with_notrap(), address, 0)
    }

    /// Stores an element of an array.
    pub fn store(&mut self, value: Value, array: &Array, at: &[Value]) {
        let address = self.address(array, at);
        self.f.ins().store(MemFlagsData::new().with_notrap(), value, address, 0);
    }

    /// Returns a 64-bit constant, such as an index.
    pub fn int(&mut self, value: i64) -> Value {
        self.f.ins().iconst(types::I64, value)
    }

    /// Adds a constant to an index.
    pub fn plus(&mut self, a: Value, b: i64) -> Value {
        if b == 0 { a } else { self.f.ins().iadd_imm_s(a, b) }
    }

    /// Multiplies an index by a constant.
    pub fn times(&mut self, a: Value, b: i64) -> Value {
        if b == 1 { a } else { self.f.ins().imul_imm_s(a, b) }
    }

    /// Returns a constant element.
    pub fn constant(&mut self, ty: ElementType, value: Scalar) -> Value {
        let mut bytes = [0; SLOT];
        value.write(ty, &mut bytes);
        let bits = u128::from_le_bytes(bytes) as i128;
        match value_type(ty) {
            types::F32 => self.f.ins().f32const(f32::from_bits(bits as u32)),
            types::F64 => self.f.ins().f64const(f64::from_bits(bits as u64)),
            types::I128 => {
                let [low, high] = [bits as i64, (bits >> 64) as i64].map(|half| self.int(half));
                self.f.ins().iconcat(low, high)
            }
            // Bits above the width of the type must be a sign or zero extension.
            ty => self.f.ins().iconst(ty, (bits as i64) & (u64::MAX >> (64 - ty.bits())) as i64),
        }
    }

    /// Begins a loop over `range`, which may be empty.
    pub fn begin_loop(&mut self, [first, last]: [Value; 2], carried: &[Value]) -> Loop {
        let [head, body, exit] = [(); 3].map(|()| self.f.create_block());
        let start: Vec<BlockArg> = [first].iter().chain(carried).map(|&value| value.into()).collect();
        self.f.ins().jump(head, &start);
        let index = self.f.append_block_param(head, types::I64);
        let types = carried.iter().map(|&value| self.f.func.dfg.value_type(value));
        let carried = types.collect::<Vec<_>>().into_iter().map(|ty| self.f.append_block_param(head, ty)).collect();
        self.f.switch_to_block(head);
        let goes_on = self.f.ins().icmp(IntCC::SignedLessThan, index, last);
        self.f.ins().brif(goes_on, body, &[], exit, &[]);
        self.f.switch_to_block(body);
        Loop { head, exit, index, carried }
    }

    /// Begins a loop over `0..extent`.
    pub fn begin_loop_of(&mut self, extent: usize, carried: &[Value]) -> Loop {
        let range = [0, extent as i64].map(|bound| self.int(bound));
        self.begin_loop(range, carried)
    }

    /// Ends the loop body with the next values of the carried ones; returns their final values.
    pub fn end_loop(&mut self, this: Loop, next: &[Value]) -> Vec<Value> {
        let index = self.plus(this.index, 1);
        let next: Vec<BlockArg> = [index].iter().chain(next).map(|&value| value.into()).collect();
        self.f.ins().jump(this.head, &next);
        self.f.switch_to_block(this.exit);
        this.carried
    }

    /// Begins the code for a true `condition`.
    pub fn begin_branch(&mut self, condition: Value) -> Branch {
        let [then, otherwise, end] = [(); 3].map(|()| self.f.create_block());
        self.f.ins().brif(condition, then, &[], otherwise, &[]);
        self.f.switch_to_block(then);
        Branch { otherwise, end }
    }

    /// Ends the code for a true condition with its values, and begins the code for a false one.
    pub fn otherwise(&mut self, branch: &Branch, values: &[Value]) {
        for &value in values {
            let ty = self.f.func.dfg.value_type(value);
            self.f.append_block_param(branch.end, ty);
        }
        self.end_side(branch, values);
        self.f.switch_to_block(branch.otherwise);
    }

    /// Ends the branch; returns the values of the side that is taken.
    pub fn end_branch(&mut self, branch: &Branch, values: &[Value]) -> Vec<Value> {
        self.end_side(branch, values);
        self.f.switch_to_block(branch.end);
        self.f.block_params(branch.end).to_vec()
    }

    fn end_side(&mut self, branch: &Branch, values: &[Value]) {
        let values: Vec<BlockArg> = values.iter().map(|&value| value.into()).collect();
        self.f.ins().jump(branch.end, &values);
    }

    /// Calls the evaluator's function of an elementwise operation; `None` for operations and types without such a
    /// function.
    pub fn apply(&mut self, op: &Op, operands: &[(Value, ElementType)], result: ElementType) -> Option<Value> {
        let operand_types: Vec<ElementType> = operands.iter().map(|&(_, ty)| ty).collect();
        let function = ElementFunction::new(op, &operand_types, result).ok()??;
        let application = Arc::new(Application { function, operands: operand_types, result });
        let address = self.int(Arc::as_ptr(&application) as i64);
        self.kept.push(application);
        let (signature, arguments, room) = self.apply_parts();
        for (i, &(value, _)) in operands.iter().enumerate() {
            self.f.ins().stack_store(types::I64, value, arguments, (i * SLOT) as i32);
        }
        let arguments = self.f.ins().stack_addr(types::I64, arguments, 0);
        let to = self.f.ins().stack_addr(types::I64, room, 0);
        let function = self.int(apply as *const () as i64);
        self.f.ins().call_indirect(signature, function, &[address, arguments, to]);
        Some(self.f.ins().stack_load(types::I64, value_type(result), room, 0))
    }

    fn apply_parts(&mut self) -> (SigRef, StackSlot, StackSlot) {
        if let Some(parts) = self.apply {
            return parts;
        }
        let mut signature = self.f.func.signature.clone();
        signature.params = [types::I64; 3].map(AbiParam::new).to_vec();
        let signature = self.f.import_signature(signature);
        let [operands, result] = [3 * SLOT, SLOT].map(|bytes| {
            let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes as u32, 4);
            self.f.create_sized_stack_slot(slot)
        });
        *self.apply.insert((signature, operands, result))
    }
}
