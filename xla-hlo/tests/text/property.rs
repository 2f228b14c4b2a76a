//! Property tests: random modules, valid or invalid, survive a round trip through text exactly.

use proptest::prelude::*;
use xla_hlo::ops::*;
use xla_hlo::proto;
use xla_hlo::text::parse_module;
use xla_hlo::{
    Annotations, ArrayShape, CompId, Computation, DeviceList, Dynamism, ElementType, InstrId, Instruction, Layout,
    LeafSharding, Literal, Metadata, Module, Op, Scalar, Shape, ShardGroup, Sharding, ShardingKind, SubgroupKind, Tile,
    TileDim, TiledSharding,
};

/// Stream of random choices; 0 after its end, so that shorter streams are simpler modules.
struct Choices {
    stream: Vec<u32>,
    at: usize,
    /// Computation that no instruction calls yet; a fusion must be the only caller of its computation.
    unowned: Option<CompId>,
}

impl Choices {
    fn next(&mut self) -> u32 {
        self.at += 1;
        self.stream.get(self.at - 1).copied().unwrap_or(0)
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    fn list<T>(&mut self, most: usize, mut item: impl FnMut(&mut Choices) -> T) -> Vec<T> {
        let n = self.below(most + 1);
        (0..n).map(|_| item(self)).collect()
    }

    fn indices(&mut self) -> Vec<usize> {
        self.list(3, |c| c.below(5))
    }

    fn signed(&mut self) -> i64 {
        i64::from(self.next() as i32)
    }

    fn text(&mut self) -> String {
        let pieces =
            ["a", "conv", "{", "}", "\"", "'", "\\", "\n", "\u{e9}", "\u{1f600}", "\0", " ", "%x", "{\"k\": 1}", "/*"];
        self.list(6, |c| c.pick(&pieces)).concat()
    }

    fn bytes(&mut self) -> Vec<u8> {
        let pieces: [&[u8]; 8] = [b"a", b"\xff", b"\x80", b"\0", b"{", b"}", b"\"", "\u{e9}".as_bytes()];
        self.list(6, |c| c.pick(&pieces)).concat()
    }

    fn name(&mut self) -> String {
        self.pick(&[
            "a",
            "add",
            "x.1",
            "_",
            "nan",
            "inf",
            "f32",
            "b",
            "bf01_oi01",
            "ROOT",
            "ENTRY",
            "true",
            "a-b",
            "x2x3",
        ])
        .to_string()
    }

    fn permutation(&mut self, rank: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..rank).collect();
        (0..rank).map(|_| left.remove(self.next() as usize % left.len())).collect()
    }

    fn layout(&mut self, rank: usize) -> Layout {
        let mut layout = Layout::from_minor_to_major(self.permutation(rank));
        if self.below(4) == 1 {
            layout.memory_space = self.below(6) as i64;
            layout.element_size_in_bits = self.below(9) as u32;
            layout.tiles = self.list(2, |c| {
                Tile(c.list(3, |c| if c.flip() { TileDim::Combine } else { TileDim::Size(c.below(200) as u64) }))
            });
        }
        layout
    }

    fn array(&mut self) -> ArrayShape {
        let ty = self.pick(ElementType::ALL);
        let dims = self.list(5, |c| c.below(4));
        let rank = dims.len();
        let layout = if rank > 0 { Some(self.layout(rank)) } else { None };
        ArrayShape::new(ty, dims).with_layout(layout)
    }

    fn shape(&mut self) -> Shape {
        match self.below(8) {
            0 => Shape::Tuple(self.list(7, Choices::shape)),
            1 => Shape::Token,
            2 => Shape::Opaque,
            3 => Shape::Buffer(Box::new(self.array())),
            4 => {
                let array = self.array();
                let dynamism = array.dims().iter().map(|_| self.pick(&[Dynamism::Static, Dynamism::Bounded])).collect();
                Shape::Array(array.with_dynamism(dynamism))
            }
            _ => Shape::Array(self.array()),
        }
    }

    /// Returns a literal of arbitrary bits: for floats every pattern, including NaN payloads.
    fn literal(&mut self) -> (Shape, Literal) {
        if self.below(6) == 0 {
            let (shapes, literals) = self.list(3, Choices::literal).into_iter().unzip();
            return (Shape::Tuple(shapes), Literal::tuple(literals));
        }
        let shape = self.array();
        let (ty, width) = (shape.element_type(), shape.element_type().byte_width());
        let mut bytes = vec![0; shape.element_count() * width];
        for element in bytes.chunks_exact_mut(width) {
            for part in element.chunks_mut(4) {
                let random = self.next().to_le_bytes();
                part.copy_from_slice(&random[..part.len()]);
            }
            if ty.bit_width() < 8 {
                Scalar::read(ty, &[element[0] & ((1 << ty.bit_width()) - 1)]).write(ty, element);
            }
        }
        let literal = Literal::from_bytes(&shape, bytes).expect("as many bytes as elements");
        (Shape::Array(shape), literal)
    }

    fn window(&mut self) -> Window {
        Window {
            dims: self.list(3, |c| WindowDim {
                size: c.below(4),
                stride: 1 + c.below(2),
                pad_low: c.signed() % 3,
                pad_high: c.signed() % 3,
                window_dilation: 1 + c.below(2),
                base_dilation: 1 + c.below(2),
                reversal: c.flip(),
            }),
        }
    }

    fn accuracy(&mut self) -> ResultAccuracy {
        match self.below(4) {
            0 => ResultAccuracy::Default,
            1 => ResultAccuracy::High,
            2 => ResultAccuracy::Highest,
            _ => ResultAccuracy::Tolerance {
                atol: f64::from(self.next()).to_bits(),
                rtol: (f64::from(self.next()) * 1e-30).to_bits(),
                ulps: self.signed(),
            },
        }
    }

    /// Returns an operation, and its number of operands.
    fn operation(&mut self, callee: CompId) -> (Op, usize) {
        match self.below(30) {
            0 => (Unary { op: self.pick(UnaryOp::ALL), accuracy: self.accuracy() }.into(), 1),
            1 => (Binary { op: self.pick(BinaryOp::ALL) }.into(), 2),
            2 => {
                use CompareDirection::*;
                let direction = self.pick(&[Eq, Ne, Ge, Gt, Le, Lt]);
                let orders = [CompareType::Float, CompareType::TotalOrder, CompareType::Signed, CompareType::Unsigned];
                let order = if self.flip() { Some(self.pick(&orders)) } else { None };
                (Compare { direction, order }.into(), 2)
            }
            3 => (Select.into(), 3),
            4 => (Clamp.into(), 3),
            5 => (Convert.into(), 1),
            6 => (BitcastConvert.into(), 1),
            7 => {
                let op = ReducePrecision { exponent_bits: self.next() % 12, mantissa_bits: self.next() % 53 };
                (op.into(), 1)
            }
            8 => (Broadcast { dimensions: self.indices() }.into(), 1),
            9 => (Reshape { inferred_dimension: if self.flip() { Some(self.below(4)) } else { None } }.into(), 1),
            10 => (Transpose { permutation: self.indices() }.into(), 1),
            11 => {
                let ranges =
                    self.list(3, |c| SliceRange { start: c.below(9), limit: c.below(9), stride: 1 + c.below(3) });
                (Slice { ranges }.into(), 1)
            }
            12 => {
                let dims = self.list(3, |c| PadDim { low: c.signed() % 4, high: c.signed() % 4, interior: c.below(2) });
                (Pad { dims }.into(), 2)
            }
            13 => (Concatenate { dimension: self.below(4) }.into(), 1 + self.below(7)),
            14 => (Reverse { dimensions: self.indices() }.into(), 1),
            15 => (Iota { dimension: self.below(3) }.into(), 0),
            16 => (DynamicSlice { sizes: self.indices() }.into(), 1 + self.below(3)),
            17 => (DynamicUpdateSlice.into(), 2 + self.below(3)),
            18 => (self.dot(), 2),
            19 => (Reduce { dimensions: self.indices(), computation: callee }.into(), 2 * (1 + self.below(4))),
            20 => (ReduceWindow { window: self.window(), computation: callee }.into(), 2),
            21 => (SelectAndScatter { window: self.window(), select: callee, scatter: callee }.into(), 3),
            22 => (While { condition: callee, body: callee }.into(), 1),
            23 => {
                let by_predicate = self.flip();
                let branches = vec![callee; if by_predicate { 2 } else { 1 + self.below(3) }];
                let count = 1 + branches.len();
                (Conditional { branches, by_predicate }.into(), count)
            }
            24 => (Call { computation: callee, is_composite: self.flip() }.into(), self.below(8)),
            25 => (Map { dimensions: self.indices(), computation: callee }.into(), 1 + self.below(3)),
            26 => (self.fusion(callee), self.below(7)),
            27 => {
                let algorithms = [RngAlgorithm::Default, RngAlgorithm::ThreeFry, RngAlgorithm::Philox];
                (RngBitGenerator { algorithm: self.pick(&algorithms) }.into(), 1)
            }
            28 => (self.gather(), 2),
            _ => (self.scatter(callee), 3),
        }
    }

    /// Returns a dot with arbitrary dimensions, precision and algorithm.
    fn dot(&mut self) -> Op {
        let precisions = [Precision::High, Precision::Highest];
        let precision = if self.flip() { vec![self.pick(&precisions), self.pick(&precisions)] } else { Vec::new() };
        let algorithm = if self.flip() { Some(self.pick(DotAlgorithm::ALL)) } else { None };
        let dims = DotDims {
            lhs_batch: self.indices(),
            rhs_batch: self.indices(),
            lhs_contracting: self.indices(),
            rhs_contracting: self.indices(),
        };
        Dot { dims, precision, algorithm }.into()
    }

    /// Returns a fusion, once in a module, since a computation has one fusion at most; after that a call of `callee`.
    fn fusion(&mut self, callee: CompId) -> Op {
        let kind = self.pick(&[FusionKind::Loop, FusionKind::Input, FusionKind::Output, FusionKind::Custom]);
        let aliases =
            self.list(2, |c| OutputOperandAlias { output: c.indices(), operand: c.below(3), path: c.indices() });
        match self.unowned.take() {
            Some(computation) => Fusion { kind, computation, aliases }.into(),
            None => Call { computation: callee, is_composite: false }.into(),
        }
    }

    /// Returns a gather with arbitrary dimensions.
    fn gather(&mut self) -> Op {
        Gather {
            offset_dims: self.indices(),
            collapsed_slice_dims: self.indices(),
            start_index_map: self.indices(),
            operand_batching_dims: self.indices(),
            start_indices_batching_dims: self.indices(),
            index_vector_dim: self.below(4),
            slice_sizes: self.indices(),
            indices_are_sorted: self.flip(),
        }
        .into()
    }

    /// Returns a scatter with arbitrary dimensions.
    fn scatter(&mut self, callee: CompId) -> Op {
        Scatter {
            update_window_dims: self.indices(),
            inserted_window_dims: self.indices(),
            scatter_dims_to_operand_dims: self.indices(),
            input_batching_dims: self.indices(),
            scatter_indices_batching_dims: self.indices(),
            index_vector_dim: self.below(4),
            indices_are_sorted: self.flip(),
            unique_indices: self.flip(),
            computation: callee,
        }
        .into()
    }

    fn metadata(&mut self) -> Metadata {
        Metadata {
            op_name: self.text(),
            source_file: self.text(),
            source_line: self.signed(),
            profile_types: self.list(2, Choices::signed),
            stack_frame_id: self.signed(),
            payload: self.text(),
            ..Metadata::default()
        }
    }

    fn leaf_sharding(&mut self) -> LeafSharding {
        let kind = match self.below(7) {
            0 => ShardingKind::Replicated,
            1 => ShardingKind::Manual,
            2 => ShardingKind::Unknown,
            3 => ShardingKind::Unreduced,
            4 => ShardingKind::Maximal(self.signed()),
            5 => ShardingKind::Named("{mesh['x'=2], [{'x'}, {?}]}".to_string()),
            _ => {
                let tile_dims: Vec<i64> = (0..1 + self.below(3)).map(|_| 1 + self.below(3) as i64).collect();
                let count: i64 = tile_dims.iter().product();
                let devices = if self.flip() {
                    DeviceList::Listed((0..count).rev().collect())
                } else {
                    DeviceList::Iota { reshape: tile_dims.clone(), transpose: self.permutation(tile_dims.len()) }
                };
                let kinds = [SubgroupKind::Replicated, SubgroupKind::Manual, SubgroupKind::Unreduced];
                let last_tile_dims = self.list(2, |c| c.pick(&kinds));
                ShardingKind::Tiled(TiledSharding { tile_dims, devices, replicate_last: self.flip(), last_tile_dims })
            }
        };
        if matches!(kind, ShardingKind::Named(_)) {
            return LeafSharding { kind, ..LeafSharding::default() };
        }
        let group = match self.below(3) {
            0 => None,
            1 => Some(ShardGroup::As(self.signed())),
            _ => Some(ShardGroup::Like(self.signed())),
        };
        LeafSharding { kind, group, metadata: self.list(2, Choices::metadata) }
    }

    fn annotations(&mut self) -> Annotations {
        Annotations {
            metadata: self.metadata(),
            sharding: match self.below(3) {
                0 => None,
                1 => Some(Sharding::Leaf(self.leaf_sharding())),
                _ => Some(Sharding::Tuple(self.list(6, Choices::leaf_sharding))),
            },
            frontend_attributes: self
                .list(3, |c| (c.pick(&["a", "b.c", "_d-e"]).to_string(), c.text()))
                .into_iter()
                .collect(),
            backend_config: self.bytes().into(),
            statistics: self.list(2, |c| ("stat-1".to_string(), c.signed().to_string())),
            origin: if self.flip() { "{{\"x\" {0}}}".to_string() } else { String::new() },
            parameter_replication: self.list(3, Choices::flip),
        }
    }

    fn instruction(&mut self, computation: &mut Computation, callee: CompId) {
        let earlier: Vec<InstrId> = computation.ids().collect();
        let name = self.name();
        let annotations = if self.below(3) == 0 { Some(Box::new(self.annotations())) } else { None };
        let instruction = match self.below(6) {
            0 => {
                let number = computation.parameters().len();
                Instruction::new(Parameter { number }.into(), self.shape(), [])
            }
            1 => {
                let (shape, literal) = self.literal();
                Instruction::new(Constant { literal }.into(), shape, [])
            }
            2 => {
                let operands = self.list(12, |c| c.pick(&earlier));
                Instruction::new(Tuple.into(), self.shape(), operands)
            }
            _ => {
                let (op, count) = self.operation(callee);
                let operands: Vec<InstrId> = (0..count).map(|_| self.pick(&earlier)).collect();
                Instruction::new(op, self.shape(), operands)
            }
        };
        let id = computation.add(instruction.with_name(name).with_annotations(annotations));
        if self.below(5) == 0 {
            computation.add_control_dependency(self.pick(&earlier), id);
        }
    }

    fn computation(&mut self, name: &str, callee: CompId) -> Computation {
        let mut computation = Computation::new(name);
        let shape = self.shape();
        computation.add(Instruction::new(Parameter { number: 0 }.into(), shape, []));
        for _ in 0..self.below(12) {
            self.instruction(&mut computation, callee);
        }
        let ids: Vec<InstrId> = computation.ids().collect();
        computation.set_root(self.pick(&ids));
        computation
    }

    fn module(&mut self) -> Module {
        let mut module = Module::new(self.name().replace("nan", "n").replace("inf", "i"));
        let mut leaf = Computation::new("leaf");
        let root = leaf.add(Instruction::new(Parameter { number: 0 }.into(), Shape::scalar(ElementType::F32), []));
        leaf.set_root(root);
        self.unowned = Some(module.add(leaf.clone()));
        let leaf = module.add(leaf);
        let middle_name = self.name();
        let middle = self.computation(&middle_name, leaf);
        let middle = module.add(middle);
        let entry = self.computation("main", middle);
        let entry = module.add(entry);
        module.set_entry(entry);
        module
    }
}

fn assert_same(a: &Module, b: &Module) {
    assert_eq!((a.name(), a.len()), (b.name(), b.len()));
    assert_eq!(a.entry().name(), b.entry().name());
    for ((_, a), (_, b)) in a.iter().zip(b.iter()) {
        assert_eq!(a.name(), b.name());
        assert_eq!(a.root(), b.root());
        assert_eq!(a.len(), b.len());
        for ((i, x), (j, y)) in a.iter().zip(b.iter()) {
            assert_eq!((i, x.name(), x.shape(), x.op()), (j, y.name(), y.shape(), y.op()));
            assert_eq!((x.operands(), x.users()), (y.operands(), y.users()));
            assert_eq!(x.control_predecessors(), y.control_predecessors());
            let none = Annotations::default();
            assert_eq!(x.annotations().unwrap_or(&none), y.annotations().unwrap_or(&none));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_round_trips(stream in proptest::collection::vec(any::<u32>(), 0..600)) {
        let module = Choices { stream, at: 0, unowned: None }.module();
        let printed = module.to_string();
        let again = parse_module(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
        assert_same(&module, &again);
        prop_assert_eq!(again.to_string(), printed);
    }

    /// Serializing a module that was parsed from bytes returns these bytes.
    #[test]
    fn serialised_modules_round_trip(stream in proptest::collection::vec(any::<u32>(), 0..600)) {
        let module = Choices { stream, at: 0, unowned: None }.module();
        match proto::serialize_module(&module) {
            Ok(bytes) => {
                let again = proto::parse_module(&bytes).unwrap_or_else(|e| panic!("{e}\n{module}"));
                prop_assert_eq!(proto::serialize_module(&again).unwrap(), bytes, "{}", module);
            }
            // Some numbers that text can express do not fit into protobuf.
            Err(error) => prop_assert!(error.message().contains("cannot be serialised"), "{}", error),
        }
    }

    /// Any input is a module or an error with a location.
    #[test]
    fn noise_is_refused(pieces in proptest::collection::vec(0usize..40, 0..60)) {
        const PIECES: [&str; 40] = [
            "HloModule", " m", ",", "=", "{", "}", "(", ")", "[", "]", "ENTRY", "ROOT", " a", " = ", "f32[2]{0}", "f32", "s32[]",
            "parameter(0)", "constant(", "add", "negate(", "%x", "1", "-1", "1.5", "0_1x2_2", "2x3", "b01f_01io->b01f", "->",
            "dimensions=", "to_apply=", "metadata=", "sharding=", "\"s\"", "/*", "*/", "//", "\n", "...", "nan",
        ];
        let text: String = pieces.iter().map(|&i| PIECES[i]).collect();
        if let Err(error) = parse_module(&text) {
            prop_assert!(error.to_string().starts_with("error at "), "{}", error);
        }
    }
}
