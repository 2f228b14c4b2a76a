//! Random programs with one collective, and the description of the collective for the engine.

use std::sync::Arc;

use xla_hlo::ops::collective::{AllGather, AllReduce};
use xla_hlo::ops::{Collective, Op};
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementKind, ElementType, Literal, Opcode, Scalar, VerifiedModule};
use xla_service::collective::{CollectiveSpec, MemberArguments, Operation, Part, Reduction, RowMove, SlicePair};

use crate::support::{Member, Random};

/// Kinds of collectives.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    AllReduce,
    ReduceScatter,
    AllGather,
    AllToAll,
    AllToAllTuple,
    Permute,
    PermuteSlices,
    Broadcast,
    Ragged,
}

pub const KINDS: [Kind; 9] = [
    Kind::AllReduce,
    Kind::ReduceScatter,
    Kind::AllGather,
    Kind::AllToAll,
    Kind::AllToAllTuple,
    Kind::Permute,
    Kind::PermuteSlices,
    Kind::Broadcast,
    Kind::Ragged,
];

/// A program with one collective.
pub struct Case {
    pub module: VerifiedModule,
    /// Groups of devices.
    pub groups: Vec<Vec<usize>>,
    collective: Collective,
    kind: Kind,
}

/// Groups of a random grid: header attributes, the instruction's attributes, and the size of each group.
fn random_groups(kind: Kind, random: &mut Random) -> (String, String, usize) {
    let (replicas, partitions) =
        [(1, 1), (2, 1), (3, 1), (2, 2), (4, 2), (2, 4), (1, 8), (8, 1), (2, 3)][random.below(9)];
    let header = format!("replica_count={replicas}, num_partitions={partitions}");
    let has_global_ids = matches!(kind, Kind::AllReduce | Kind::ReduceScatter | Kind::AllGather);
    let (ids, channel, factor) = match random.below(if has_global_ids { 4 } else { 2 }) {
        0 => (replicas, "", 1),
        1 if has_global_ids => (replicas, "channel_id=1, ", partitions),
        1 => (partitions, "channel_id=1, ", 1),
        _ => (replicas * partitions, "channel_id=1, use_global_device_ids=true, ", 1),
    };
    if matches!(kind, Kind::Permute | Kind::PermuteSlices) {
        let (from, to) = (random.order(ids), random.order(ids));
        let count = random.below(ids + 1);
        let pairs: Vec<String> =
            from.iter().zip(&to).take(count).map(|(from, to)| format!("{{{from},{to}}}")).collect();
        let attributes = format!("{channel}source_target_pairs={{{}}}", pairs.join(","));
        return (header, attributes, replicas * partitions);
    }
    let sizes: Vec<usize> = (1..=ids).filter(|size| ids % size == 0).collect();
    let size = sizes[random.below(sizes.len())];
    let list = |group: &[usize]| group.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let groups: Vec<String> = random.order(ids).chunks(size).map(|group| format!("{{{}}}", list(group))).collect();
    (header, format!("{channel}replica_groups={{{}}}", groups.join(",")), size * factor)
}

/// Returns the operations of combiners of this type. `GENERAL` has two steps.
pub fn operations(ty: ElementType) -> &'static [&'static str] {
    match ty.kind() {
        ElementKind::Pred => &["and", "or", "xor", "add", "multiply", "maximum", "minimum", "GENERAL"],
        ElementKind::Signed | ElementKind::Unsigned => {
            &["add", "multiply", "maximum", "minimum", "and", "or", "xor", "subtract", "GENERAL"]
        }
        ElementKind::Float => &["add", "multiply", "maximum", "minimum", "subtract", "GENERAL"],
        ElementKind::Complex => &["add", "multiply", "subtract", "GENERAL"],
    }
}

/// Returns the text of a combiner of this type.
fn combiner(ty: ElementType, operation: &str) -> String {
    let parameters = format!("a = {ty}[] parameter(0) b = {ty}[] parameter(1)");
    match operation {
        "GENERAL" if ty == ElementType::Pred => {
            format!("c {{ {parameters} n = pred[] not(a) ROOT r = pred[] and(n, b) }}")
        }
        "GENERAL" => format!("c {{ {parameters} m = {ty}[] multiply(a, b) ROOT r = {ty}[] add(m, b) }}"),
        operation => format!("c {{ {parameters} ROOT r = {ty}[] {operation}(a, b) }}"),
    }
}

/// Returns the other types of combiners that may reduce elements of this type.
pub fn accumulators(ty: ElementType) -> Vec<ElementType> {
    let floats = [ElementType::F32, ElementType::BF16, ElementType::F16];
    if floats.contains(&ty) { floats.to_vec() } else { vec![ty] }
}

/// Whether two elements of a reduction are equal bit for bit, or have the same NaN parts.
fn is_same_sum(ty: ElementType, a: &[u8], b: &[u8]) -> bool {
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    a == b
        || match (Scalar::read(ty, a), Scalar::read(ty, b)) {
            (Scalar::Float(a), Scalar::Float(b)) => same(a, b),
            (Scalar::Complex(a, x), Scalar::Complex(b, y)) => same(a, b) && same(x, y),
            _ => false,
        }
}

/// Whether two arrays of results are equal; the bits of computed NaNs may differ.
pub fn is_same_array(case: &Case, ty: ElementType, a: &[u8], b: &[u8]) -> bool {
    let is_same = |(a, b)| if case.is_reduction() { is_same_sum(ty, a, b) } else { a == b };
    let width = ty.byte_width();
    a.len() == b.len() && a.chunks(width).zip(b.chunks(width)).all(is_same)
}

impl Case {
    pub fn random(kind: Kind, ty: ElementType, random: &mut Random) -> Case {
        let (header, groups, n) = random_groups(kind, random);
        let combiner = combiner(ty, operations(ty)[random.below(operations(ty).len())]);
        let [a, b, c] = [random.below(3), random.below(4), 1 + random.below(3)];
        let parameters = |count: usize, shape: &str| -> Vec<String> {
            (0..count).map(|i| format!("x{i} = {shape} parameter({i})")).collect()
        };
        let (part, whole) = (format!("{ty}[{a},{b},{c}]"), format!("{ty}[{a},{},{c}]", n * b.max(1)));
        let scattered = format!("{ty}[{a},{},{c}]", b.max(1));
        let body = match kind {
            Kind::AllReduce => {
                let shapes = format!("({part}, {part})");
                let operands = parameters(2, &part).join(" ");
                format!("{operands} ROOT r = {shapes} all-reduce(x0, x1), {groups}, to_apply=c")
            }
            Kind::ReduceScatter => format!(
                "{} ROOT r = {scattered} reduce-scatter(x0), {groups}, dimensions={{1}}, to_apply=c",
                parameters(1, &whole)[0]
            ),
            Kind::AllGather => {
                format!("{} ROOT r = {whole} all-gather(x0), {groups}, dimensions={{1}}", parameters(1, &scattered)[0])
            }
            Kind::AllToAll => {
                format!("{} ROOT r = {whole} all-to-all(x0), {groups}, dimensions={{1}}", parameters(1, &whole)[0])
            }
            Kind::AllToAllTuple => {
                let names: Vec<String> = (0..n).map(|i| format!("x{i}")).collect();
                let (shapes, operands) = (vec![&part[..]; n].join(", "), parameters(n, &part).join(" "));
                format!("{operands} ROOT r = ({shapes}) all-to-all({}), {groups}", names.join(", "))
            }
            Kind::Permute => format!("{} ROOT r = {part} collective-permute(x0), {groups}", parameters(1, &part)[0]),
            Kind::Broadcast => {
                format!("{} ROOT r = {part} collective-broadcast(x0), {groups}", parameters(1, &part)[0])
            }
            Kind::PermuteSlices => permute_slices(ty, &groups),
            Kind::Ragged => ragged(ty, &groups, n),
        };
        let text = format!("HloModule m, {header}\n{combiner}\nENTRY main {{ {body} }}\n");
        let module =
            parse_module(&text).and_then(VerifiedModule::new).unwrap_or_else(|error| panic!("{error}\n{text}"));
        Case::new(module, kind)
    }

    /// Returns an all-reduce over three devices by a combiner of type `accumulator`.
    pub fn reduction(ty: ElementType, accumulator: ElementType, operation: &str) -> Case {
        let combiner = combiner(accumulator, operation);
        let text = format!(
            "HloModule m, replica_count=3\n{combiner}\nENTRY main {{ x0 = {ty}[999] parameter(0) \
             ROOT r = {ty}[999] all-reduce(x0), replica_groups={{{{2,0,1}}}}, to_apply=c }}\n"
        );
        Case::new(parse_module(&text).and_then(VerifiedModule::new).unwrap(), Kind::AllReduce)
    }

    fn new(module: VerifiedModule, kind: Kind) -> Case {
        let entry = module.entry();
        let Op::Collective(collective) = entry[entry.root()].op().clone() else { panic!("the root is no collective") };
        let devices = module.attributes().replica_count.max(1) * module.attributes().num_partitions.max(1);
        let groups = match &collective {
            Collective::CollectivePermute(_) => vec![(0..devices as usize).collect()],
            other => {
                let groups = other.device_groups(module.attributes()).unwrap();
                groups.into_iter().map(|group| group.into_iter().map(|id| id as usize).collect()).collect()
            }
        };
        Case { module, groups, collective, kind }
    }

    /// Whether the collective computes. The bits of its NaNs are unspecified; all other collectives copy.
    pub fn is_reduction(&self) -> bool {
        matches!(self.kind, Kind::AllReduce | Kind::ReduceScatter)
    }

    /// Whether the engine executes the collective: it does not reduce, or by a single associative operation.
    pub fn has_single_operation(&self) -> bool {
        let combiner = match &self.collective {
            Collective::AllReduce(AllReduce { computation, .. }) | Collective::ReduceScatter { computation, .. } => {
                &self.module[*computation]
            }
            _ => return true,
        };
        combiner.iter().count() == 3 && combiner[combiner.root()].opcode() != Opcode::Subtract
    }

    /// Returns shapes of the parameters.
    pub fn parameters(&self) -> Vec<ArrayShape> {
        let entry = self.module.entry();
        entry.parameters().iter().map(|&p| entry[p].shape().expect_array().unwrap().clone()).collect()
    }

    /// Returns a random argument. Positions of slices and rows may be out of bounds.
    pub fn argument(&self, number: usize, shape: &ArrayShape, random: &mut Random) -> Literal {
        let is_position = matches!(self.kind, Kind::PermuteSlices | Kind::Ragged) && number >= 2;
        let scalar = |_| match is_position {
            true => Scalar::Signed(random.below(9) as i64 - 2),
            false => random.scalar(shape.element_type()),
        };
        Literal::from_fn(shape, scalar).unwrap()
    }

    /// Returns the description of the collective for groups of `members` devices.
    pub fn spec(&self, members: usize) -> Arc<CollectiveSpec> {
        let module = Arc::new((*self.module).clone());
        let shapes = self.parameters();
        let whole = |shape: &ArrayShape| Part::whole(shape.element_type(), shape.element_count());
        let cut = |shape: &ArrayShape, dimension: usize, parts: usize| Part {
            element_type: shape.element_type(),
            outer: shape.dims()[..dimension].iter().product(),
            inner: shape.dims()[dimension..].iter().product::<usize>() / parts,
        };
        let all: Vec<Part> = shapes.iter().map(whole).collect();
        let (operation, arrays) = match &self.collective {
            Collective::AllReduce(AllReduce { computation, .. }) => {
                (Operation::AllReduce(Reduction::new(&module, *computation).unwrap()), all)
            }
            Collective::ReduceScatter { dimension, computation, .. } => {
                let reduction = Reduction::new(&module, *computation).unwrap();
                (Operation::ReduceScatter(reduction), vec![cut(&shapes[0], *dimension, members)])
            }
            Collective::AllGather(AllGather { dimension, .. }) => {
                (Operation::AllGather, vec![cut(&shapes[0], *dimension, 1)])
            }
            Collective::AllToAll { dimension: Some(dimension), .. } => {
                (Operation::AllToAll, vec![cut(&shapes[0], *dimension, members)])
            }
            Collective::AllToAll { dimension: None, .. } => (Operation::AllToAllTuple, all),
            Collective::CollectivePermute(op) => {
                let pairs = op.device_pairs(self.module.attributes()).unwrap();
                let pairs = pairs.into_iter().map(|(from, to)| (from as usize, to as usize));
                match op.is_in_place() {
                    false => (Operation::Permute(pairs.collect()), all),
                    true => (Operation::PermuteSlices(pairs.flat_map(slice_pairs).collect()), all[..2].to_vec()),
                }
            }
            Collective::CollectiveBroadcast { .. } => (Operation::Broadcast, all),
            Collective::RaggedAllToAll(_) => {
                (Operation::RaggedAllToAll, shapes[..2].iter().map(|s| cut(s, 1, 1)).collect())
            }
            other => panic!("{other:?} is not in the list of kinds"),
        };
        Arc::new(CollectiveSpec::new(operation, arrays, members).unwrap())
    }

    /// Returns the call of a member with these arguments of the program.
    pub fn member(&self, arguments: &[Literal]) -> Member {
        let number = |literal: &Literal, i: usize| literal.get(i).as_i128().unwrap() as i64;
        let (data, computed) = match self.kind {
            Kind::PermuteSlices => {
                let start = |first: usize, dims: [i64; 2], sizes: [i64; 2]| {
                    let at = |i: usize| number(&arguments[first + i], 0).clamp(0, dims[i] - sizes[i]);
                    (at(0) * dims[1] + at(1)) as usize
                };
                let slices =
                    |first: usize, dims| vec![start(first, dims, SLICES[0]), start(first + 2, dims, SLICES[1])];
                (2, MemberArguments::Slices { read_at: slices(2, INPUT), write_at: slices(6, OUTPUT) })
            }
            Kind::Ragged => {
                let entries = 0..arguments[2].array_shape().element_count();
                let row = |i| RowMove {
                    read_at: number(&arguments[2], i),
                    count: number(&arguments[3], i),
                    write_at: number(&arguments[4], i),
                };
                (2, MemberArguments::Rows(entries.map(row).collect()))
            }
            Kind::Broadcast => (arguments.len(), MemberArguments::Root(0)),
            _ => (arguments.len(), MemberArguments::None),
        };
        let operands = arguments[..data].iter().map(|literal| literal.bytes().to_vec()).collect();
        Member { operands, arguments: computed }
    }
}

/// Dimensions of the arrays and sizes of the two slices of an in-place permute.
const INPUT: [i64; 2] = [4, 5];
const OUTPUT: [i64; 2] = [3, 6];
const SLICES: [[i64; 2]; 2] = [[2, 3], [1, 2]];

fn permute_slices(ty: ElementType, groups: &str) -> String {
    let positions: Vec<String> = (2..10).map(|i| format!("i{i} = s32[] parameter({i})")).collect();
    let [input, output] = [INPUT, OUTPUT].map(|[rows, columns]| format!("{ty}[{rows},{columns}]"));
    let tuples = "a = (s32[], s32[]) tuple(i2, i3) b = (s32[], s32[]) tuple(i4, i5) \
                  c = (s32[], s32[]) tuple(i6, i7) d = (s32[], s32[]) tuple(i8, i9) \
                  f = ((s32[], s32[]), (s32[], s32[])) tuple(a, b) g = ((s32[], s32[]), (s32[], s32[])) tuple(c, d)";
    format!(
        "x = {input} parameter(0) y = {output} parameter(1) {} {tuples} \
         ROOT r = {output} collective-permute(x, y, f, g), {groups}, slice_sizes={{{{2,3}},{{1,2}}}}",
        positions.join(" ")
    )
}

/// Both slices along a pair of ranks.
fn slice_pairs((from, to): (usize, usize)) -> [SlicePair; 2] {
    [0, 1].map(|slice| SlicePair {
        from,
        to,
        array: 0,
        slice,
        sizes: SLICES[slice].map(|size| size as usize).to_vec(),
        read_strides: vec![INPUT[1] as usize, 1],
        write_strides: vec![OUTPUT[1] as usize, 1],
    })
}

fn ragged(ty: ElementType, groups: &str, members: usize) -> String {
    let lists: Vec<String> = (2..6).map(|i| format!("l{i} = s32[{}] parameter({i})", 2 * members)).collect();
    format!(
        "x = {ty}[5,3] parameter(0) y = {ty}[6,3] parameter(1) {} \
         ROOT r = {ty}[6,3] ragged-all-to-all(x, y, l2, l3, l4, l5), {groups}",
        lists.join(" ")
    )
}
