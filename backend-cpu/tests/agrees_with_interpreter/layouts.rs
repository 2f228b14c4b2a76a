//! Tests of chains of `copy`, `bitcast` and `transpose` between layouts, against memory contents computed by index.

use std::fmt::Write;

use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType, Literal, Scalar, VerifiedModule, eval};
use xla_service::{Client, CompileOptions, PlatformRegistry};

/// Layout: dimensions from fastest to slowest, and tiles.
#[derive(Clone, Debug)]
struct Order {
    minor_to_major: Vec<usize>,
    tiles: Vec<Vec<usize>>,
}

/// Operation of a chain, with the layout of its result.
enum Step {
    Copy(Order),
    Bitcast(Vec<usize>, Order),
    Transpose(Vec<usize>, Order),
}

/// Array: its elements in row-major order, and its layout in memory.
#[derive(Clone)]
struct Array {
    dims: Vec<usize>,
    order: Order,
    elements: Vec<i64>,
}

impl Order {
    fn plain(minor_to_major: Vec<usize>) -> Order {
        Order { minor_to_major, tiles: Vec::new() }
    }

    fn row_major(rank: usize) -> Order {
        Order::plain((0..rank).rev().collect())
    }

    fn tiled(minor_to_major: &[usize], tiles: &[&[usize]]) -> Order {
        Order { minor_to_major: minor_to_major.to_vec(), tiles: tiles.iter().map(|tile| tile.to_vec()).collect() }
    }

    /// Returns the position of the element at `index` in memory, and the number of positions.
    fn place(&self, index: &[usize], dims: &[usize]) -> (usize, usize) {
        let mut axes: Vec<(usize, usize)> = self.minor_to_major.iter().rev().map(|&d| (index[d], dims[d])).collect();
        for tile in &self.tiles {
            while axes.len() < tile.len() {
                axes.insert(0, (0, 1));
            }
            let tiled = axes.split_off(axes.len() - tile.len());
            axes.extend(tiled.iter().zip(tile).map(|(&(i, size), &t)| (i / t, size.div_ceil(t))));
            axes.extend(tiled.iter().zip(tile).map(|(&(i, _), &t)| (i % t, t)));
        }
        axes.into_iter().fold((0, 1), |(at, count), (i, size)| (at * size + i, count * size))
    }
}

fn indices(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..dims.iter().product()).map(move |mut rest: usize| {
        let mut index = vec![0; dims.len()];
        for (i, &size) in index.iter_mut().zip(dims).rev() {
            (*i, rest) = (rest % size, rest / size);
        }
        index
    })
}

impl Array {
    fn count_up(dims: &[usize]) -> Array {
        let elements = (1..=dims.iter().product::<usize>() as i64).collect();
        Array { dims: dims.to_vec(), order: Order::row_major(dims.len()), elements }
    }

    fn at(&self, index: &[usize]) -> i64 {
        self.elements[index.iter().zip(&self.dims).fold(0, |at, (&i, &size)| at * size + i)]
    }

    /// Returns the elements in memory order, with zeros as padding.
    fn memory(&self) -> Vec<i64> {
        let count = self.order.place(&vec![0; self.dims.len()], &self.dims).1;
        let mut memory = vec![0; count];
        indices(&self.dims).for_each(|index| memory[self.order.place(&index, &self.dims).0] = self.at(&index));
        memory
    }

    fn after(&self, step: &Step) -> Array {
        match step {
            Step::Copy(order) => Array { order: order.clone(), ..self.clone() },
            Step::Bitcast(dims, order) => {
                let memory = self.memory();
                let read = |index: Vec<usize>| memory.get(order.place(&index, dims).0).copied().unwrap_or(0);
                Array { dims: dims.clone(), order: order.clone(), elements: indices(dims).map(read).collect() }
            }
            Step::Transpose(permutation, order) => {
                let dims: Vec<usize> = permutation.iter().map(|&d| self.dims[d]).collect();
                let read = |index: Vec<usize>| {
                    let mut source = vec![0; index.len()];
                    permutation.iter().zip(index).for_each(|(&d, i)| source[d] = i);
                    self.at(&source)
                };
                let elements = indices(&dims).map(read).collect();
                Array { dims, order: order.clone(), elements }
            }
        }
    }

    fn shape(&self) -> String {
        let list = |items: &[usize]| items.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        if self.dims.is_empty() {
            return "s32[]".to_string();
        }
        let tiles: String = self.order.tiles.iter().map(|tile| format!("({})", list(tile))).collect();
        let tiles = if tiles.is_empty() { tiles } else { format!(":T{tiles}") };
        format!("s32[{}]{{{}{tiles}}}", list(&self.dims), list(&self.order.minor_to_major))
    }

    fn literal(&self) -> Literal {
        let shape = ArrayShape::new(ElementType::S32, self.dims.clone());
        Literal::from_fn(&shape, |i| Scalar::Signed(self.elements[i])).unwrap()
    }
}

/// Returns a program whose results are the ends of chains that begin with one array, and their expected values.
fn program(input: &Array, chains: &[Vec<Step>]) -> (String, Literal) {
    let mut text = format!("HloModule chains\nENTRY main {{\n  p = {} parameter(0)\n", input.shape());
    let mut ends = Vec::new();
    for (c, chain) in chains.iter().enumerate() {
        let (mut array, mut name) = (input.clone(), "p".to_string());
        for (s, step) in chain.iter().enumerate() {
            array = array.after(step);
            let next = format!("c{c}s{s}");
            let shape = array.shape();
            match step {
                Step::Copy(_) => writeln!(text, "  {next} = {shape} copy({name})"),
                Step::Bitcast(..) => writeln!(text, "  {next} = {shape} bitcast({name})"),
                Step::Transpose(permutation, _) => {
                    let dimensions = permutation.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
                    writeln!(text, "  {next} = {shape} transpose({name}), dimensions={{{dimensions}}}")
                }
            }
            .unwrap();
            name = next;
        }
        ends.push((name, array));
    }
    let shapes: Vec<String> = ends.iter().map(|(_, array)| array.shape()).collect();
    let names: Vec<&str> = ends.iter().map(|(name, _)| name.as_str()).collect();
    writeln!(text, "  ROOT r = ({}) tuple({})\n}}", shapes.join(", "), names.join(", ")).unwrap();
    (text, Literal::tuple(ends.iter().map(|(_, array)| array.literal()).collect()))
}

/// Checks chains on one array, in the evaluator and on this backend.
fn check(client: &Client, input: &Array, chains: &[Vec<Step>]) {
    let (text, expected) = program(input, chains);
    let module = VerifiedModule::new(parse_module(&text).unwrap()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let evaluated = eval::evaluate(&module, vec![input.literal()]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(evaluated, expected, "the evaluator\n{text}");
    let compiled = client.compile(&module, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(compiled.run(vec![input.literal()]).unwrap(), expected, "this backend\n{text}");
}

fn client() -> Client {
    let mut registry = PlatformRegistry::new();
    registry.register(backend_cpu::platform());
    Client::new(&registry, "cpu").unwrap()
}

fn permutations(rank: usize) -> Vec<Vec<usize>> {
    let Some(last) = rank.checked_sub(1) else { return vec![Vec::new()] };
    let with_last = |shorter: Vec<usize>| {
        (0..rank).map(move |at| {
            let mut longer = shorter.clone();
            longer.insert(at, last);
            longer
        })
    };
    permutations(last).into_iter().flat_map(with_last).collect()
}

/// Returns chains through layouts `a` and `b`, in which each operation follows each of the others.
fn chains(dims: &[usize], a: &[usize], b: &[usize]) -> [Vec<Step>; 3] {
    let rank = dims.len();
    let turned: Vec<usize> = dims.iter().rev().copied().collect();
    let rotation: Vec<usize> = (0..rank).map(|d| (d + 1) % rank.max(1)).collect();
    let (a, b) = (|| Order::plain(a.to_vec()), || Order::plain(b.to_vec()));
    let flat = || Step::Bitcast(vec![dims.iter().product()], Order::row_major(1));
    [
        vec![Step::Copy(a()), Step::Bitcast(turned.clone(), b()), Step::Transpose(rotation.clone(), a()), flat()],
        vec![Step::Bitcast(turned.clone(), a()), Step::Copy(b()), Step::Bitcast(dims.to_vec(), a()), flat()],
        vec![
            Step::Transpose(rotation, a()),
            Step::Bitcast(turned, b()),
            Step::Bitcast(dims.to_vec(), a()),
            Step::Copy(b()),
        ],
    ]
}

#[test]
fn every_pair_of_layouts_in_chains() {
    let client = client();
    for dims in [&[][..], &[5], &[2, 3], &[2, 3, 4], &[2, 3, 2, 5]] {
        let orders = permutations(dims.len());
        for a in &orders {
            let chains: Vec<Vec<Step>> = orders.iter().flat_map(|b| chains(dims, a, b)).collect();
            check(&client, &Array::count_up(dims), &chains);
        }
    }
}

#[test]
fn tiles_are_read_as_they_lie() {
    let client = client();
    let bitcast = |dims: &[usize], order: Order| Step::Bitcast(dims.to_vec(), order);
    let (rows, flat) = (|| Order::tiled(&[1, 0], &[&[8, 128]]), || Order::tiled(&[0], &[&[1024]]));
    check(
        &client,
        &Array::count_up(&[8, 256]),
        &[
            vec![Step::Copy(rows()), bitcast(&[2048], flat())],
            vec![Step::Copy(rows()), bitcast(&[8, 256], rows())],
            vec![Step::Copy(rows()), bitcast(&[8, 256], Order::row_major(2))],
            vec![bitcast(&[2048], flat()), bitcast(&[2, 8, 128], Order::tiled(&[2, 1, 0], &[&[8, 128]]))],
            vec![
                Step::Copy(Order::tiled(&[0, 1], &[&[128, 8]])),
                bitcast(&[16, 128], rows()),
                bitcast(&[2048], flat()),
            ],
            vec![Step::Copy(Order::tiled(&[1, 0], &[&[8, 128], &[2, 1]])), bitcast(&[2048], flat())],
        ],
    );
    let small = || Order::tiled(&[1, 0], &[&[4, 8]]);
    check(
        &client,
        &Array::count_up(&[5, 9]),
        &[
            vec![Step::Copy(small()), bitcast(&[128], Order::row_major(1))],
            vec![Step::Copy(small()), bitcast(&[5, 9], small())],
            vec![Step::Copy(small()), bitcast(&[9, 5], Order::tiled(&[0, 1], &[&[4, 8]]))],
            vec![Step::Copy(small()), bitcast(&[9, 5], Order::tiled(&[1, 0], &[&[8, 4]]))],
            vec![Step::Copy(small()), bitcast(&[45], Order::row_major(1))],
            vec![bitcast(&[9, 5], small()), Step::Copy(Order::row_major(2)), bitcast(&[45], Order::row_major(1))],
        ],
    );
}
