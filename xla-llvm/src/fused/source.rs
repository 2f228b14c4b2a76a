//! Source of a kernel's code: a fusion, or a single instruction; equal sources share the code.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use xla_hlo::ops::Op;
use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Instruction, Module, Shape};
use xla_passes::analysis::alias::{ReadOrder, read_order};
use xla_service::thunks::LoweringContext;

use crate::denormals::Denormals;
use crate::fused::support::{is_fusible, is_kernel_root};

/// Source of a kernel.
#[derive(Clone, Debug)]
pub struct KernelSource<'m> {
    /// Module that contains the computation.
    pub module: &'m Module,
    /// Computation of the root: the fusion's, or the one that contains a single operation.
    pub computation: CompId,
    /// Instruction whose value is stored; for a tuple, each element is stored.
    pub root: InstrId,
    /// Instructions whose values are in memory, in the order of the pointers.
    pub inputs: Vec<InstrId>,
    /// Whether the result shares the buffer of operand 0 of a root dynamic-update-slice, so that only the slice is
    /// written, or the buffers of a root scatter's inputs or of copies of them.
    pub in_place: bool,
    /// Other inputs whose buffers results overwrite. The code keeps to their read orders: it never recomputes an
    /// element whose inputs it has overwritten.
    pub overwrites: Vec<Overwrite>,
    /// Loop, if the kernel executes the whole loop instruction `root`, whose state is in memory before and after it.
    pub scalar_loop: Option<Arc<ScalarLoop<'m>>>,
}

/// Input and result of a kernel that share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Overwrite {
    /// Number of the input.
    pub input: usize,
    /// Number of the result.
    pub result: usize,
    /// Order of reads and stores that buffer assignment assumed.
    pub order: ReadOrder,
}

/// Loop of scalar steps as one kernel.
#[derive(Clone, Debug)]
pub struct ScalarLoop<'m> {
    pub(crate) condition: Vec<ScalarStep<'m>>,
    pub(crate) body: Vec<ScalarStep<'m>>,
    pub(crate) rounds: ScalarRounds,
    pub(crate) places: Vec<ScalarPlace>,
    /// Number of pointers that the kernel takes.
    pub(crate) pointers: usize,
    /// Places whose values are carried in registers.
    pub(crate) carried: BTreeSet<usize>,
    /// Places that hold a value at the end of the loop.
    pub(crate) valid: BTreeSet<usize>,
    pub(crate) denormals: Denormals,
}

/// Memory that holds arrays of one element type and size.
#[derive(Clone, Debug)]
pub struct ScalarPlace {
    /// Number of its pointer.
    pub pointer: usize,
    /// Element type and number of elements of the arrays.
    pub shape: ArrayShape,
    /// Places that alias it: a write to one of them invalidates its value.
    pub clashes: Vec<usize>,
}

/// Step of a loop.
#[derive(Clone, Debug)]
pub enum ScalarStep<'m> {
    /// Computation of a kernel's results.
    Compute {
        /// Kernel that computes the results.
        source: KernelSource<'m>,
        /// Places of the operands, then of the results.
        places: Vec<usize>,
    },
    /// Copy from one place to another.
    Copy {
        /// Place that is read.
        from: usize,
        /// Place that is written.
        to: usize,
    },
}

/// Number of iterations of a run of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarRounds {
    /// A constant trip count, without a condition.
    Counted(u64),
    /// A while loop with a maximum trip count: runs the condition, then body and condition while the predicate is 1.
    /// The predicate's place holds its last value afterwards.
    Tested {
        /// Place of the predicate.
        predicate: usize,
        /// Maximum number of executions of the body.
        at_most: u64,
    },
}

impl<'m> KernelSource<'m> {
    /// Returns the kernel of a fusion or another instruction, in place if its buffers are; `None` if it has no kernel.
    pub fn of_instruction(module: &'m Module, cx: &LoweringContext<'_>) -> Option<KernelSource<'m>> {
        let mut source = match cx.instruction().op() {
            Op::Fusion(fusion) => KernelSource::of_computation(module, fusion.computation, |_| false),
            _ => KernelSource::of_lone(module, cx.computation, cx.instruction),
        }?;
        source.in_place = source.is_in_place(cx);
        if !source.in_place {
            source.overwrites = overwrites(cx);
        }
        Some(source)
    }

    /// Returns the kernel of a computation, given the instructions `made` that are computed earlier; `None` if it has
    /// other operations that no kernel can compute.
    pub fn of_computation(
        module: &'m Module,
        computation: CompId,
        made: impl Fn(InstrId) -> bool,
    ) -> Option<KernelSource<'m>> {
        let graph = &module[computation];
        let known = graph.iter().all(|(id, i)| match i.op() {
            Op::Parameter(_) => i.shape().as_array().is_some(),
            Op::Tuple(_) => id == graph.root(),
            Op::GetTupleElement(_) => true,
            _ => made(id) || is_fusible(module, graph, id),
        });
        known.then(|| KernelSource {
            module,
            computation,
            root: graph.root(),
            inputs: graph.parameters().to_vec(),
            in_place: false,
            overwrites: Vec::new(),
            scalar_loop: None,
        })
    }

    fn of_lone(module: &'m Module, computation: CompId, root: InstrId) -> Option<KernelSource<'m>> {
        let graph = &module[computation];
        let arrays = |id: &InstrId| graph[*id].shape().as_array().is_some();
        let inputs = graph[root].operands().to_vec();
        (is_kernel_root(module, graph, root) && inputs.iter().all(arrays)).then_some(KernelSource {
            module,
            computation,
            root,
            inputs,
            in_place: false,
            overwrites: Vec::new(),
            scalar_loop: None,
        })
    }

    /// Returns the kernel of a whole loop, whose instruction is `root`.
    pub fn of_loop(
        module: &'m Module,
        (computation, root): (CompId, InstrId),
        scalar_loop: ScalarLoop<'m>,
    ) -> KernelSource<'m> {
        let (inputs, overwrites) = (Vec::new(), Vec::new());
        let scalar_loop = Some(Arc::new(scalar_loop));
        KernelSource { module, computation, root, inputs, in_place: false, overwrites, scalar_loop }
    }

    /// Returns the source of any operation, with all operands as inputs, for a kind of kernel that computes it. The
    /// results of a scatter share the buffers of its inputs or of copies of them.
    pub fn of_operation(module: &'m Module, computation: CompId, root: InstrId) -> KernelSource<'m> {
        let instruction = &module[computation][root];
        let (inputs, in_place) = (instruction.operands().to_vec(), matches!(instruction.op(), Op::Scatter(_)));
        KernelSource { module, computation, root, inputs, in_place, overwrites: Vec::new(), scalar_loop: None }
    }

    /// Whether a strategy can compute the source: it is a fusion or a [kernel root](is_kernel_root), not another
    /// operation.
    pub(crate) fn has_strategy(&self) -> bool {
        let (graph, root) = (&self.module[self.computation], self.instruction());
        let is_lone = self.inputs == root.operands() && !matches!(root.op(), Op::Tuple(_));
        !is_lone || (is_kernel_root(self.module, graph, self.root) && self.input_shapes().is_some())
    }

    /// Returns the root.
    pub fn instruction(&self) -> &'m Instruction {
        &self.module[self.computation][self.root]
    }

    /// Returns the name of the root.
    pub fn name(&self) -> &'m str {
        self.instruction().name()
    }

    /// Returns the context of errors: root and computation.
    pub(crate) fn context(&self) -> String {
        format!("%{} in {}", self.name(), self.module[self.computation].name())
    }

    /// Returns the shapes of the inputs; `None` if one is not an array.
    pub(crate) fn input_shapes(&self) -> Option<Vec<&'m ArrayShape>> {
        let graph = &self.module[self.computation];
        self.inputs.iter().map(|&id| graph[id].shape().as_array()).collect()
    }

    /// Returns the number of pointers that the kernel takes: to its inputs, then to the arrays of its result.
    pub fn pointer_count(&self) -> usize {
        if let Some(scalar_loop) = &self.scalar_loop {
            return scalar_loop.pointers;
        }
        let result = self.module[self.computation][self.root].shape();
        self.inputs.len() + result.leaves().iter().filter(|(_, leaf)| leaf.as_array().is_some()).count()
    }

    /// Returns the source of a kernel for `root`, one of this kernel's instructions, with the inputs that it needs.
    /// `numbers` has the number of each input.
    pub(crate) fn part(&self, root: InstrId, numbers: &HashMap<InstrId, usize>) -> KernelSource<'m> {
        let graph = &self.module[self.computation];
        let (mut seen, mut work, mut inputs) = (HashSet::from([root]), vec![root], Vec::new());
        while let Some(id) = work.pop() {
            match numbers.get(&id) {
                Some(&number) => inputs.push((number, id)),
                None => work.extend(graph[id].operands().iter().copied().filter(|&o| seen.insert(o))),
            }
        }
        inputs.sort_unstable();
        KernelSource {
            root,
            inputs: inputs.into_iter().map(|(_, id)| id).collect(),
            in_place: false,
            overwrites: Vec::new(),
            scalar_loop: None,
            ..*self
        }
    }

    /// Whether the root writes a slice into the buffer of the array that it updates.
    fn is_in_place(&self, cx: &LoweringContext<'_>) -> bool {
        let graph: &Computation = &self.module[self.computation];
        let root = &graph[self.root];
        let (Op::DynamicUpdateSlice(_), [result]) = (root.op(), cx.results) else { return false };
        let position = self.inputs.iter().position(|&i| i == root.operand(0));
        position.and_then(|p| cx.operands.get(p)).is_some_and(|operand| operand.slice == result.slice)
    }

    /// Returns a hash that is equal for kernels with the same code, also across processes, and most likely differs for
    /// others.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.key().hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the key of the kernel's code.
    pub(crate) fn key(&self) -> Key {
        let graph = &self.module[self.computation];
        let mut position: HashMap<InstrId, usize> = HashMap::new();
        let mut nodes = Vec::new();
        for &input in &self.inputs {
            position.entry(input).or_insert_with(|| {
                nodes.push((Op::from(xla_hlo::ops::Tuple), graph[input].shape().clone(), Vec::new()));
                nodes.len() - 1
            });
        }
        let inputs = self.inputs.iter().map(|i| position[i]).collect();
        // The places of a loop's state are part of its code, so no two loops share code.
        let a_loop = self.scalar_loop.is_some().then_some((self.computation, self.root));
        let mut stack = if a_loop.is_some() { Vec::new() } else { vec![(self.root, false)] };
        while let Some((id, ready)) = stack.pop() {
            if position.contains_key(&id) {
                continue;
            }
            if ready {
                let operands = graph[id].operands().iter().map(|o| position[o]).collect();
                nodes.push((graph[id].op().clone(), graph[id].shape().clone(), operands));
                position.insert(id, nodes.len() - 1);
            } else {
                stack.push((id, true));
                stack.extend(graph[id].operands().iter().rev().map(|&o| (o, false)));
            }
        }
        (nodes, inputs, [self.in_place, !self.overwrites.is_empty()], a_loop)
    }
}

/// Key of kernels with the same code: operations, shapes and edges in order; whether the result is in place, and
/// whether some result overwrites some input; the instruction of a loop.
pub(crate) type Key = (Vec<(Op, Shape, Vec<usize>)>, Vec<usize>, [bool; 2], Option<(CompId, InstrId)>);

/// Returns the inputs and results of the instruction that share memory, numbered among all array leaves.
fn overwrites(cx: &LoweringContext<'_>) -> Vec<Overwrite> {
    let (graph, instruction) = (cx.computation(), cx.instruction());
    let arrays = |shape: &Shape| -> Vec<Vec<usize>> {
        shape.leaves().into_iter().filter(|(_, leaf)| leaf.as_array().is_some()).map(|(path, _)| path).collect()
    };
    let mut inputs = Vec::new();
    for (number, &operand) in instruction.operands().iter().enumerate() {
        inputs.extend(arrays(graph[operand].shape()).into_iter().map(|path| (number, path)));
    }
    let mut found = Vec::new();
    for (result, (path, place)) in arrays(instruction.shape()).iter().zip(cx.results).enumerate() {
        for (input, ((operand, from), array)) in inputs.iter().zip(cx.operands).enumerate() {
            if !array.slice.overlaps(&place.slice) {
                continue;
            }
            if let Some(order) = read_order(cx.module, cx.computation, cx.instruction, path, *operand, from) {
                found.push(Overwrite { input, result, order });
            }
        }
    }
    found
}

/// Deduplicated kernels of a program.
#[derive(Debug, Default)]
pub struct KernelTable<'m> {
    sources: Vec<KernelSource<'m>>,
    known: HashMap<Key, u32>,
    overwrites: Vec<(usize, Vec<Overwrite>)>,
}

impl<'m> KernelTable<'m> {
    /// Returns the number of the kernel in the program, adding it if it is new.
    pub fn number(&mut self, source: KernelSource<'m>) -> u32 {
        let next = self.sources.len() as u32;
        let index = *self.known.entry(source.key()).or_insert(next);
        let overwrites = (index as usize, source.overwrites.clone());
        if !overwrites.1.is_empty() && !self.overwrites.contains(&overwrites) {
            self.overwrites.push(overwrites);
        }
        if index == next {
            self.sources.push(source);
        }
        index
    }

    /// Returns the numbers of kernels with the inputs that their launches overwrite: one entry for each distinct list
    /// of a kernel, since fusions that share a kernel may overwrite different inputs.
    pub fn overwrites(&self) -> &[(usize, Vec<Overwrite>)] {
        &self.overwrites
    }

    /// Returns the kernels, ordered by number.
    pub fn sources(&self) -> &[KernelSource<'m>] {
        &self.sources
    }
}
