//! Collectives of random programs: every kind, group mode and form.

use xla_hlo::{ArrayShape, ElementKind, ElementType, Literal, Scalar};

use super::groups::{Mode, Participants};
use super::values::{Kinds, MOST, Value};
use super::writer::{Body, Writer, names, shapes};

impl Writer<'_> {
    /// Adds a collective.
    pub fn collective(&mut self, body: &mut Body) -> Option<()> {
        match self.random.below(10) {
            0..=2 => self.all_reduce(body),
            3 => self.reduce_scatter(body),
            4 => self.all_gather(body),
            5 => self.all_to_all(body),
            6 => self.permute(body),
            7 => self.rooted(body),
            8 if self.kinds != Kinds::Joined => self.permute_slice(body),
            9 if self.kinds != Kinds::Joined => self.ragged(body),
            _ => None,
        }
    }

    /// Returns the name of a combiner for a type.
    fn any_combiner(&mut self, ty: ElementType) -> String {
        let op = match ty.kind() {
            ElementKind::Pred => self.random.pick(&["and", "or", "xor"]),
            ElementKind::Signed | ElementKind::Unsigned => {
                self.random.pick(&["add", "multiply", "minimum", "maximum", "and", "or", "xor", "mixed"])
            }
            ElementKind::Float if self.kinds == Kinds::AnyOrder && ty.byte_width() < 4 => {
                self.random.pick(&["minimum", "maximum"])
            }
            ElementKind::Float if self.kinds != Kinds::All => self.random.pick(&["add", "minimum", "maximum"]),
            ElementKind::Float => self.random.pick(&["add", "add", "multiply", "minimum", "maximum"]),
            ElementKind::Complex => "add",
        };
        self.combiner(ty, op)
    }

    /// Returns one array, or several of its type that are acceptable.
    fn arrays(&mut self, body: &Body, first: Value, accept: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut arrays = vec![first];
        while self.random.percent(30) && arrays.len() < 3 {
            let ty = arrays[0].ty;
            arrays.extend(self.any(body, |value| value.ty == ty && accept(value)));
        }
        arrays
    }

    /// Adds a collective that returns these arrays: at once, or started and ended later.
    fn finish(&mut self, body: &mut Body, op: &str, operands: &[Value], results: Vec<Value>, attributes: &str) {
        if self.kinds != Kinds::Joined && self.random.percent(30) {
            let name = self.name();
            let group = |values: &[Value]| if let [one] = values { one.shape() } else { shapes(values) };
            let state = match op {
                "all-reduce" => group(&results),
                "all-gather" => format!("({}, {})", group(operands), group(&results)),
                "collective-permute" => format!("({}, {}, u32[], u32[])", group(operands), group(&results)),
                _ => format!("({}, {})", shapes(operands), group(&results)),
            };
            body.text += &format!("  {name} = {state} {op}-start({}){attributes}\n", names(operands));
            body.pending.push((format!("{op}-done({name})"), results));
            return;
        }
        self.put_all(body, &results, &format!("{op}({}){attributes}", names(operands)));
    }

    fn all_reduce(&mut self, body: &mut Body) -> Option<()> {
        let first = self.any(body, |_| true)?;
        let arrays = self.arrays(body, first, |_| true);
        let combiner = self.any_combiner(arrays[0].ty);
        let attributes = format!("{}, to_apply={combiner}", self.reducing(true).attributes);
        self.finish(body, "all-reduce", &arrays, arrays.clone(), &attributes);
        Some(())
    }

    fn reduce_scatter(&mut self, body: &mut Body) -> Option<()> {
        let Participants { attributes, size, .. } = self.reducing(false);
        let size = size?;
        let x = self.any(body, |value| value.dims.iter().any(|d| d.is_multiple_of(size)))?;
        let dimension = x.dims.iter().position(|d| d.is_multiple_of(size))?;
        let fits = |value: &Value| value.dims.get(dimension).is_some_and(|d| d.is_multiple_of(size));
        let arrays = self.arrays(body, x, fits);
        let results = arrays.iter().map(|array| scaled(array, dimension, 1, size)).collect();
        let combiner = self.any_combiner(arrays[0].ty);
        let attributes = format!("{attributes}, dimensions={{{dimension}}}, to_apply={combiner}");
        self.finish(body, "reduce-scatter", &arrays, results, &attributes);
        Some(())
    }

    fn all_gather(&mut self, body: &mut Body) -> Option<()> {
        let Participants { attributes, size, .. } = self.reducing(false);
        let size = size?;
        let x = self.any(body, |value| value.count() * size <= MOST)?;
        let dimension = self.random.below(x.dims.len());
        let fits = |value: &Value| value.dims.len() > dimension && value.count() * size <= MOST;
        let arrays = self.arrays(body, x, fits);
        let results = arrays.iter().map(|array| scaled(array, dimension, size, 1)).collect();
        self.finish(body, "all-gather", &arrays, results, &format!("{attributes}, dimensions={{{dimension}}}"));
        Some(())
    }

    fn all_to_all(&mut self, body: &mut Body) -> Option<()> {
        let Participants { attributes, size, .. } = self.exchanging();
        let size = size?;
        if self.random.percent(30) {
            // One array for each member.
            let x = self.any(body, |_| true)?;
            let arrays: Option<Vec<Value>> = (0..size).map(|_| self.any(body, |value| value.is_like(&x))).collect();
            let (arrays, name) = (arrays?, self.name());
            body.text += &format!("  {name} = {} all-to-all({}){attributes}\n", shapes(&arrays), names(&arrays));
            self.elements(body, &name, &arrays);
            return Some(());
        }
        let x = self.any(body, |value| value.dims.iter().any(|d| d.is_multiple_of(size)))?;
        let dimension = x.dims.iter().position(|d| d.is_multiple_of(size))?;
        let attributes = format!("{attributes}, dimensions={{{dimension}}}");
        self.finish(body, "all-to-all", std::slice::from_ref(&x), vec![x.clone()], &attributes);
        Some(())
    }

    fn permute(&mut self, body: &mut Body) -> Option<()> {
        let first = self.any(body, |_| true)?;
        let arrays = self.arrays(body, first, |_| true);
        let pairs = self.pairs();
        self.finish(body, "collective-permute", &arrays, arrays.clone(), &pairs);
        Some(())
    }

    /// Adds a permute of a slice, which is written over a part of another array.
    fn permute_slice(&mut self, body: &mut Body) -> Option<()> {
        let x = self.any(body, |_| true)?;
        let y = self.any(body, |value| value.ty == x.ty && value.dims.len() == x.dims.len())?;
        let sizes: Vec<usize> = x.dims.iter().zip(&y.dims).map(|(&a, &b)| self.random.between(1, a.min(b))).collect();
        let mut place = |of: &Value| {
            let starts: Vec<String> = of
                .dims
                .iter()
                .zip(&sizes)
                .map(|(&size, &cut)| {
                    let (name, start) = (self.name(), self.random.between(0, size - cut));
                    body.text += &format!("  {name} = s32[] constant({start})\n");
                    name
                })
                .collect();
            let (name, scalars) = (self.name(), vec!["s32[]"; starts.len()].join(", "));
            body.text += &format!("  {name} = ({scalars}) tuple({})\n", starts.join(", "));
            name
        };
        let (from, to) = (place(&x), place(&y));
        let (pairs, sizes) = (self.pairs(), super::groups::listed(&[sizes]));
        let operation = format!("collective-permute({}, {}, {from}, {to}){pairs}, slice_sizes={sizes}", x.name, y.name);
        self.put(body, y.ty, &y.dims, &operation);
        Some(())
    }

    /// Adds a broadcast from the first member of each group, or a reduction to it.
    fn rooted(&mut self, body: &mut Body) -> Option<()> {
        let x = self.any(body, |_| true)?;
        let is_reduction = self.random.percent(40);
        let attributes = if is_reduction { self.collecting().attributes } else { self.exchanging().attributes };
        // Without groups, there is no root.
        attributes.contains("replica_groups=").then_some(())?;
        if is_reduction {
            let attributes = format!("{attributes}, to_apply={}", self.any_combiner(x.ty));
            self.put(body, x.ty, &x.dims, &format!("collective-reduce({}){attributes}", x.name));
        } else {
            self.finish(body, "collective-broadcast", std::slice::from_ref(&x), vec![x.clone()], &attributes);
        }
        Some(())
    }

    /// Adds an exchange of rows of different numbers at the entry, where arguments depend on the device.
    fn ragged(&mut self, body: &mut Body) -> Option<()> {
        if body.depth > 0 {
            return None;
        }
        let participants = self.exchanging();
        let size = participants.size?;
        let x = self.any(body, |value| value.dims[0] >= size)?;
        let rows = x.dims[0] / size;
        let count = self.grid.device_count();
        let sent: Vec<Vec<usize>> =
            (0..count).map(|_| (0..size).map(|_| self.random.between(0, rows)).collect()).collect();
        let partitions = self.grid.partitions;
        let id = |device: usize| match participants.mode {
            Mode::Replicas | Mode::Both => device / partitions,
            Mode::Partitions => device % partitions,
            Mode::Devices => device,
        };
        // Device of another id in the group.
        let peer = |device: usize, rank: usize| {
            let group = participants.groups.iter().find(|group| group.contains(&id(device)));
            let other = group.map_or(device, |group| group[rank]);
            if participants.mode == Mode::Partitions {
                device / partitions * partitions + other
            } else {
                other * partitions + device % partitions
            }
        };
        let rank = |device: usize| participants.rank(id(device)).unwrap_or_default();
        let numbers = |values: Vec<usize>| {
            let shape = ArrayShape::new(ElementType::S32, [values.len()]);
            Literal::from_fn(&shape, |i| Scalar::Signed(values[i] as i64)).expect("a small array")
        };
        let input_offsets = self.parameter(|_| numbers((0..size).map(|j| j * rows).collect()));
        let send_sizes = self.parameter(|device| numbers(sent[device].clone()));
        let output_offsets = self.parameter(|device| numbers(vec![rank(device) * rows; size]));
        let receive_sizes =
            self.parameter(|device| numbers((0..size).map(|other| sent[peer(device, other)][rank(device)]).collect()));
        let operands = [&x, &x, &input_offsets, &send_sizes, &output_offsets, &receive_sizes];
        let operands = operands.map(|value| value.name.clone()).join(", ");
        self.put(body, x.ty, &x.dims, &format!("ragged-all-to-all({operands}){}", participants.attributes));
        Some(())
    }
}

/// Returns an array with the extent of a dimension multiplied and divided.
fn scaled(array: &Value, dimension: usize, by: usize, over: usize) -> Value {
    let mut dims = array.dims.clone();
    dims[dimension] = dims[dimension] * by / over;
    Value { dims, ..array.clone() }
}
