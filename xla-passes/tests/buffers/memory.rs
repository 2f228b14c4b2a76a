//! Runs a scheduled module in the memory of its buffer assignment, as plain bytes.

use xla_hlo::entity::EntityId;
use xla_hlo::eval::Evaluator;
use xla_hlo::text::{PrintOptions, print_module};
use xla_hlo::{ArrayShape, CompId, Error, InstrId, Literal, Module, Op, Scalar, Shape, multi_index, strides};
use xla_passes::analysis::alias::may_share;
use xla_passes::buffers::{AllocationKind, BufferAssignment, BufferOptions, Slice, assign_buffers, verify_assignment};
use xla_passes::schedule::insert_copies::insert_copies;
use xla_passes::schedule::schedule_module;

/// Content of uninitialised memory.
const GARBAGE: u8 = 0xa5;

/// Result of the passes on a module.
pub struct Outcome {
    pub module: Module,
    pub copies: usize,
    pub buffers: BufferAssignment,
}

/// Schedules a module, inserts copies, assigns buffers, checks the assignment, runs it, and compares the results with
/// the evaluator's. Does not run a module that takes more than `steps` instructions.
pub fn check(mut module: Module, arguments: &[Literal], steps: u64) -> Outcome {
    xla_hlo::verify::check(&module).expect("the test's module is valid");
    let expected = Evaluator::new(&module).with_step_limit(steps).call(module.entry_id(), arguments.to_vec());
    schedule_module(&mut module).expect("it can be scheduled");
    let copies = insert_copies(&mut module).expect("copies can be inserted");
    xla_hlo::verify::check(&module).expect("the module with copies is valid");
    assert_eq!(insert_copies(&mut module).expect("twice"), 0, "copies were inserted twice");
    let text = || print_module(&module, &PrintOptions::short_parsable());
    let assigned = |reuse_after: u32| {
        let options = BufferOptions { verify: false, reuse_after, ..BufferOptions::default() };
        let buffers = assign_buffers(&module, &options).expect("buffers can be assigned");
        verify_assignment(&module, &buffers).unwrap_or_else(|e| panic!("{e}\n{}\n{buffers}", text()));
        match &expected {
            Ok(expected) => compare(&run(&module, &buffers, arguments), expected, || format!("{}\n{buffers}", text())),
            Err(Error::ResourceExhausted(_) | Error::Unimplemented(_)) => {}
            Err(error) => panic!("the evaluator fails: {error}\n{}", text()),
        }
        buffers
    };
    // With stream assignment for several streams, and without.
    assigned(4);
    let buffers = assigned(0);
    Outcome { module, copies, buffers }
}

fn compare(found: &[Literal], expected: &Literal, text: impl Fn() -> String) {
    let expected: Vec<&Literal> = expected.leaves().into_iter().filter(|l| *l.shape() != Shape::Token).collect();
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.bytes(), expected.bytes(), "output {i} is wrong\n{}", text());
    }
}

/// Returns small numbers for every leaf of the entry's parameters.
pub fn arguments(module: &Module) -> Vec<Literal> {
    let entry = module.entry();
    entry.parameters().iter().map(|&p| small(entry[p].shape())).collect()
}

fn small(shape: &Shape) -> Literal {
    match shape {
        Shape::Tuple(elements) => Literal::tuple(elements.iter().map(small).collect()),
        Shape::Array(array) => {
            let ty = array.element_type();
            Literal::from_fn(array, |i| Scalar::from_i64(ty, (i % 7) as i64 - i64::from(i % 2 == 0))).expect("it fits")
        }
        Shape::Token => Literal::token(),
        Shape::Opaque | Shape::Buffer(_) => panic!("no argument has the shape {shape}"),
    }
}

struct Run<'a> {
    module: &'a Module,
    assignment: &'a BufferAssignment,
    memory: Vec<Vec<u8>>,
}

/// Runs the module; returns the leaves of its result.
fn run(module: &Module, assignment: &BufferAssignment, arguments: &[Literal]) -> Vec<Literal> {
    let memory = assignment.allocations().iter().map(|a| vec![GARBAGE; a.size]).collect();
    let mut run = Run { module, assignment, memory };
    let mut kept = Vec::new();
    for allocation in assignment.allocations() {
        let literal = match &allocation.kind {
            AllocationKind::Parameter { leaf, written, output } => {
                let number = leaf.path.iter().fold(&arguments[leaf.parameter], |l, &i| &l.elements()[i]);
                if !written && output.is_none() {
                    kept.push((allocation.id, Vec::new()));
                }
                number
            }
            AllocationKind::Constant { value } => {
                let Op::Constant(constant) = module[value.computation][value.instruction].op() else { panic!() };
                let literal = value.path.iter().fold(&constant.literal, |l, &i| &l.elements()[i]);
                kept.push((allocation.id, Vec::new()));
                literal
            }
            AllocationKind::Output { .. } | AllocationKind::Temporary => continue,
        };
        // Parameters have layouts; constants have the default layout.
        let shape = match &allocation.kind {
            AllocationKind::Parameter { leaf, .. } => {
                let parameter = module.entry().parameters()[leaf.parameter];
                module.entry()[parameter].shape().subshape(&leaf.path).expect("the parameter has the leaf").clone()
            }
            _ => literal.shape().clone(),
        };
        run.memory[allocation.id.index()].copy_from_slice(&in_memory(literal, &shape));
        kept.iter_mut().filter(|(id, _)| *id == allocation.id).for_each(|(_, kept)| *kept = in_memory(literal, &shape));
    }
    run.computation(module.entry_id());
    for (id, bytes) in kept {
        assert_eq!(run.memory[id.index()], bytes, "{id} was written");
    }
    let result = module.entry().result_shape();
    let shape = |path: &[usize]| result.subshape(path).expect("the output exists");
    assignment.output_slices().iter().map(|o| run.read(o.slice, shape(&o.path))).collect()
}

impl Run<'_> {
    fn bytes(&mut self, slice: Slice) -> &mut [u8] {
        &mut self.memory[slice.allocation.index()][slice.offset..slice.offset + slice.size]
    }

    fn read(&mut self, slice: Slice, shape: &Shape) -> Literal {
        let shape = shape.as_array().expect("arrays only");
        let bytes = self.bytes(slice).to_vec();
        let mut literal = Literal::zeros(shape).expect("it fits");
        let width = shape.element_type().byte_width();
        for (i, at) in places(shape).enumerate() {
            literal.bytes_mut()[i * width..][..width].copy_from_slice(&bytes[at * width..][..width]);
        }
        literal
    }

    fn value(&mut self, comp: CompId, id: InstrId) -> Literal {
        let module = self.module;
        self.tree(comp, id, module[comp][id].shape(), &mut Vec::new())
    }

    fn tree(&mut self, comp: CompId, id: InstrId, shape: &Shape, path: &mut Vec<usize>) -> Literal {
        let Some(elements) = shape.as_tuple() else {
            if *shape == Shape::Token {
                return Literal::token();
            }
            let slice = self.assignment.slice(comp, id, path).expect("arrays have slices");
            return self.read(slice, shape);
        };
        let mut out = Vec::new();
        for (i, element) in elements.iter().enumerate() {
            path.push(i);
            out.push(self.tree(comp, id, element, path));
            path.pop();
        }
        Literal::tuple(out)
    }

    fn computation(&mut self, comp: CompId) {
        for id in self.module[comp].schedule().expect("executed computations are scheduled").to_vec() {
            self.instruction(comp, id);
        }
    }

    fn instruction(&mut self, comp: CompId, id: InstrId) {
        let module = self.module;
        let instruction = &module[comp][id];
        match instruction.op() {
            Op::Parameter(_)
            | Op::Constant(_)
            | Op::Tuple(_)
            | Op::GetTupleElement(_)
            | Op::OptBarrier(_)
            | Op::Bitcast(_) => {}
            Op::Reshape(_) => {
                let place = |i: InstrId| self.assignment.slice(comp, i, &[]).expect("an array");
                assert_eq!(place(id), place(instruction.operand(0)), "a reshape moved");
            }
            Op::Call(call) => self.computation(call.computation),
            Op::While(op) => loop {
                self.computation(op.condition);
                if self.value(op.condition, module[op.condition].root()).bytes() == [0] {
                    break;
                }
                self.computation(op.body);
            },
            Op::Conditional(op) => {
                let selector = self.value(comp, instruction.operand(0));
                let branch = match selector.bytes() {
                    [truth] => usize::from(*truth == 0),
                    bytes => {
                        let index = i32::from_le_bytes(bytes.try_into().expect("an s32"));
                        usize::try_from(index).unwrap_or(usize::MAX).min(op.branches.len() - 1)
                    }
                };
                self.computation(op.branches[branch]);
            }
            _ => self.compute(comp, id),
        }
    }

    /// Reads operands, evaluates the instruction, and writes the results. Result memory that is not shared with
    /// operands is filled with garbage first.
    fn compute(&mut self, comp: CompId, id: InstrId) {
        let module = self.module;
        let instruction = &module[comp][id];
        let results = self.assignment.leaves(comp, id).expect("executed").to_vec();
        for (path, slice) in &results {
            let Some(slice) = *slice else { continue };
            let mut shared = false;
            for (i, &operand) in instruction.operands().iter().enumerate() {
                for (from, place) in self.assignment.leaves(comp, operand).expect("executed") {
                    shared |= *place == Some(slice) && may_share(module, comp, id, path, i, from);
                }
            }
            if !shared {
                self.bytes(slice).fill(GARBAGE);
            }
        }
        let operands = instruction.operands().iter().map(|&o| self.value(comp, o)).collect();
        let mut evaluator = Evaluator::new(module);
        let value = evaluator.evaluate(comp, id, operands).expect("evaluates");
        for (literal, (path, slice)) in value.leaves().into_iter().zip(&results) {
            if let Some(slice) = slice {
                let shape = instruction.shape().subshape(path).expect("the result has the leaf");
                self.bytes(*slice).copy_from_slice(&in_memory(literal, shape));
            }
        }
    }
}

/// Returns the bytes of a literal in the layout of a shape.
fn in_memory(literal: &Literal, shape: &Shape) -> Vec<u8> {
    let Some(shape) = shape.as_array() else { return literal.bytes().to_vec() };
    let (bytes, width) = (literal.bytes(), shape.element_type().byte_width());
    let mut memory = vec![0; bytes.len()];
    for (i, at) in places(shape).enumerate() {
        memory[at * width..][..width].copy_from_slice(&bytes[i * width..][..width]);
    }
    memory
}

/// Returns the positions of the elements in memory, in row-major order.
fn places(shape: &ArrayShape) -> impl Iterator<Item = usize> {
    let (dims, strides) = (shape.dims().to_vec(), strides(shape.dims(), &shape.minor_to_major()));
    let count: usize = dims.iter().product();
    (0..count).map(move |i| multi_index(&dims, i).iter().zip(&strides).map(|(i, stride)| i * stride).sum())
}
