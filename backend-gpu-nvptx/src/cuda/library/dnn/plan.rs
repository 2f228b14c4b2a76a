//! Operation graph of a convolution, and the plans for it that cuDNN's heuristics propose.
//!
//! ```text
//! x, w ─ convolution ─ add the bias ─ relu or gelu ─ y     all but the convolution are optional
//! graph ─ heuristics: engine configurations, the best first ─ notes of their engines ─ execution plans
//! ```

use cudarc::cudnn::sys::{
    cudnnBackendAttributeName_t as Attribute, cudnnBackendDescriptorType_t as DescriptorType,
    cudnnBackendHeurMode_t as HeuristicMode, cudnnBackendNumericalNote_t as Note, cudnnConvolutionMode_t as Mode,
    cudnnDataType_t as DataType, cudnnNanPropagation_t as NanPropagation, cudnnPointwiseMode_t as Pointwise,
};
use xla_hlo::{ElementType, Error, Result};

use super::descriptor::{Descriptor, DnnHandle, Draft, Value};
use crate::program::library_call::convolution::{Convolution, ConvolutionActivation, ConvolutionKind, Sizes};
use crate::program::library_call::matmul::Precision;

/// Maximum number of plans of a convolution, which are candidates for autotuning.
const MOST_PLANS: usize = 6;

/// Maximum number of configurations for each query of the heuristics.
const MOST_CONFIGURATIONS: usize = 24;

/// Maximum workspace of a convolution in bytes.
const MOST_WORKSPACE: usize = 1 << 30;

/// Unique id of the input tensor of a graph.
const INPUT: i64 = 1;
/// Unique id of the filter tensor.
const FILTER: i64 = 2;
/// Unique id of the output tensor.
const OUTPUT: i64 = 3;
/// Unique id of the bias tensor.
const BIAS: i64 = 4;
/// Largest id below those of virtual tensors, which are not stored in memory.
const VIRTUAL: i64 = 5;

/// Execution plan of the library, with the bytes of its workspace.
#[derive(Clone)]
pub(super) struct ExecutionPlan {
    pub plan: Descriptor,
    pub workspace: usize,
}

/// Returns the plans for a convolution whose arrays have these alignments in bytes, in the library's order of
/// preference; at least one.
pub(super) fn plans(handle: &DnnHandle, convolution: &Convolution, alignments: &[i64]) -> Result<Vec<ExecutionPlan>> {
    let graph = GraphBuilder::new(convolution, alignments)?.graph(handle)?;
    let modes =
        [HeuristicMode::CUDNN_HEUR_MODE_A, HeuristicMode::CUDNN_HEUR_MODE_B, HeuristicMode::CUDNN_HEUR_MODE_FALLBACK];
    for mode in modes {
        let mut plans = Vec::new();
        for configuration in taken(configurations(&graph, mode))?.unwrap_or_default() {
            if plans.len() < MOST_PLANS
                && let Some(plan) = taken(execution_plan(handle, &configuration, convolution))?.flatten()
            {
                plans.push(plan);
            }
        }
        if !plans.is_empty() {
            return Ok(plans);
        }
    }
    Err(Error::unimplemented(format!("cuDNN has no plan on this GPU for {convolution:?}")))
}

/// Returns the variant pack of a call: the addresses of its arrays, by tensor id, and of its workspace.
pub(super) fn variant_pack(convolution: &Convolution, addresses: &[u64], workspace: u64) -> Result<Descriptor> {
    Draft::new(DescriptorType::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?
        .set(Attribute::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, Value::Integers(&array_ids(convolution)))?
        .set(Attribute::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, Value::Addresses(addresses))?
        .set(Attribute::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, Value::Addresses(&[workspace]))?
        .finalize()
}

/// Returns the tensor ids of a call's arrays, in the order of the arrays.
fn array_ids(convolution: &Convolution) -> Vec<i64> {
    match convolution.kind {
        ConvolutionKind::Forward if convolution.has_bias => vec![INPUT, FILTER, BIAS, OUTPUT],
        ConvolutionKind::Forward => vec![INPUT, FILTER, OUTPUT],
        ConvolutionKind::BackwardInput => vec![OUTPUT, FILTER, INPUT],
        ConvolutionKind::BackwardFilter => vec![INPUT, OUTPUT, FILTER],
    }
}

/// Converts the error of an unsupported request to `None`.
fn taken<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Unimplemented(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns engine configurations for a graph, in the library's order of preference.
fn configurations(graph: &Descriptor, mode: HeuristicMode) -> Result<Vec<Descriptor>> {
    let heuristic = Draft::new(DescriptorType::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)?
        .set(Attribute::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, Value::Descriptors(&[graph]))?
        .set(Attribute::CUDNN_ATTR_ENGINEHEUR_MODE, Value::HeuristicMode(mode))?
        .finalize()?;
    let kind = DescriptorType::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
    heuristic.descriptors(Attribute::CUDNN_ATTR_ENGINEHEUR_RESULTS, kind, MOST_CONFIGURATIONS)
}

/// Returns the plan of a configuration; `None` if its engine does not pass [`computes`], or needs too much memory.
fn execution_plan(
    handle: &DnnHandle,
    configuration: &Descriptor,
    convolution: &Convolution,
) -> Result<Option<ExecutionPlan>> {
    let kind = DescriptorType::CUDNN_BACKEND_ENGINE_DESCRIPTOR;
    let engines = configuration.descriptors(Attribute::CUDNN_ATTR_ENGINECFG_ENGINE, kind, 1)?;
    let [engine] = &engines[..] else { return Ok(None) };
    if !computes(convolution, &engine.numerical_notes()?) {
        return Ok(None);
    }
    let plan = Draft::new(DescriptorType::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)?
        .set(Attribute::CUDNN_ATTR_EXECUTION_PLAN_HANDLE, Value::Handle(handle))?
        .set(Attribute::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, Value::Descriptors(&[configuration]))?
        .finalize()?;
    let workspace = usize::try_from(plan.integer(Attribute::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)?);
    Ok(workspace.ok().filter(|&bytes| bytes <= MOST_WORKSPACE).map(|workspace| ExecutionPlan { plan, workspace }))
}

/// Whether an engine with these notes computes a convolution with the required precision, deterministically, and with
/// NaN and infinities only in the elements that depend on them. Winograd and FFT algorithms would spread one NaN to its
/// neighbours. Tensor cores multiply f32 as TF32.
fn computes(convolution: &Convolution, notes: &[u32]) -> bool {
    let has = |note: Note| notes.contains(&(note as u32));
    let is_float = !matches!(convolution.element, ElementType::F16 | ElementType::BF16);
    let is_rounded =
        is_float && convolution.precision == Precision::Exact && has(Note::CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    let never = [
        Note::CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
        Note::CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
        Note::CUDNN_NUMERICAL_NOTE_FFT,
        Note::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
        Note::CUDNN_NUMERICAL_NOTE_WINOGRAD,
        Note::CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
        Note::CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
        Note::CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13,
    ];
    // The attribute for NaN propagation is deprecated, so only the engine's note counts.
    let keeps_nan =
        convolution.activation != ConvolutionActivation::Relu || has(Note::CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP);
    !is_rounded && keeps_nan && !never.into_iter().any(has)
}

/// Common part of the descriptors of one graph.
struct GraphBuilder<'a> {
    convolution: &'a Convolution,
    sizes: Sizes,
    element: DataType,
    /// Type of sums, factors and virtual tensors.
    compute: DataType,
    /// Alignments of the call's arrays in bytes, in the order of [`array_ids`].
    alignments: &'a [i64],
}

impl<'a> GraphBuilder<'a> {
    fn new(convolution: &'a Convolution, alignments: &'a [i64]) -> Result<GraphBuilder<'a>> {
        let element = data_type(convolution.element)?;
        let compute = if element == DataType::CUDNN_DATA_DOUBLE { element } else { DataType::CUDNN_DATA_FLOAT };
        Ok(GraphBuilder { convolution, sizes: convolution.sizes()?, element, compute, alignments })
    }

    /// Builds the operation graph.
    fn graph(&self, handle: &DnnHandle) -> Result<Descriptor> {
        let Sizes { input, input_strides, filter, filter_strides, output, output_strides, .. } = &self.sizes;
        let x = self.array(INPUT, input, input_strides)?;
        let w = self.array(FILTER, filter, filter_strides)?;
        let mut next = VIRTUAL;
        let mut steps = self.steps()?.into_iter().peekable();
        let mut result = |is_last: bool| {
            next += 1;
            if is_last {
                self.array(OUTPUT, output, output_strides)
            } else {
                self.tensor(next, output, output_strides)?
                    .set(Attribute::CUDNN_ATTR_TENSOR_IS_VIRTUAL, Value::Boolean(true))?
                    .finalize()
            }
        };
        let mut y = result(steps.peek().is_none())?;
        let mut operations = vec![self.convolution([&x, &w, &y])?];
        while let Some((mode, other)) = steps.next() {
            let made = result(steps.peek().is_none())?;
            operations.push(self.pointwise(mode, &y, other.as_ref(), &made)?);
            y = made;
        }
        let operations: Vec<&Descriptor> = operations.iter().collect();
        Draft::new(DescriptorType::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?
            .set(Attribute::CUDNN_ATTR_OPERATIONGRAPH_HANDLE, Value::Handle(handle))?
            .set(Attribute::CUDNN_ATTR_OPERATIONGRAPH_OPS, Value::Descriptors(&operations))?
            .finalize()
    }

    /// Returns the operations after the convolution, with the second operand of each.
    fn steps(&self) -> Result<Vec<(Pointwise, Option<Descriptor>)>> {
        let mut steps = Vec::new();
        if self.convolution.has_bias {
            let (rank, channels) = (self.sizes.output.len(), self.sizes.output[1]);
            let (mut sizes, mut strides) = (vec![1; rank], vec![channels; rank]);
            (sizes[1], strides[1]) = (channels, 1);
            steps.push((Pointwise::CUDNN_POINTWISE_ADD, Some(self.array(BIAS, &sizes, &strides)?)));
        }
        match self.convolution.activation {
            ConvolutionActivation::None => {}
            ConvolutionActivation::Relu => steps.push((Pointwise::CUDNN_POINTWISE_RELU_FWD, None)),
            ConvolutionActivation::GeluTanh => steps.push((Pointwise::CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, None)),
        }
        Ok(steps)
    }

    /// Returns the tensor of an array of the call.
    fn array(&self, id: i64, sizes: &[i32], strides: &[i32]) -> Result<Descriptor> {
        let place = array_ids(self.convolution).iter().position(|&other| other == id);
        let alignment = place.and_then(|place| self.alignments.get(place)).copied();
        let alignment =
            alignment.ok_or_else(|| Error::internal(format!("tensor {id} of a convolution has no address")))?;
        self.tensor(id, sizes, strides)?
            .set(Attribute::CUDNN_ATTR_TENSOR_DATA_TYPE, Value::DataType(self.element))?
            .set(Attribute::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, Value::Integers(&[alignment]))?
            .finalize()
    }

    /// Returns a draft of a tensor of the type of sums, aligned to 16 bytes.
    fn tensor(&self, id: i64, sizes: &[i32], strides: &[i32]) -> Result<Draft> {
        Draft::new(DescriptorType::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?
            .set(Attribute::CUDNN_ATTR_TENSOR_UNIQUE_ID, Value::Integers(&[id]))?
            .set(Attribute::CUDNN_ATTR_TENSOR_DATA_TYPE, Value::DataType(self.compute))?
            .set(Attribute::CUDNN_ATTR_TENSOR_DIMENSIONS, Value::Integers(&wide(sizes)))?
            .set(Attribute::CUDNN_ATTR_TENSOR_STRIDES, Value::Integers(&wide(strides)))?
            .set(Attribute::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, Value::Integers(&[16]))
    }

    /// Returns the convolution of input, filter and output.
    fn convolution(&self, arrays: [&Descriptor; 3]) -> Result<Descriptor> {
        use Attribute as A;
        let padding = wide(&self.sizes.padding);
        let window = Draft::new(DescriptorType::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)?
            .set(A::CUDNN_ATTR_CONVOLUTION_COMP_TYPE, Value::DataType(self.compute))?
            // Cross-correlation does not reverse the filter.
            .set(A::CUDNN_ATTR_CONVOLUTION_CONV_MODE, Value::ConvolutionMode(Mode::CUDNN_CROSS_CORRELATION))?
            .set(A::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, Value::Integers(&[padding.len() as i64]))?
            .set(A::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, Value::Integers(&padding))?
            .set(A::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, Value::Integers(&padding))?
            .set(A::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, Value::Integers(&wide(&self.sizes.stride)))?
            .set(A::CUDNN_ATTR_CONVOLUTION_DILATIONS, Value::Integers(&wide(&self.sizes.dilation)))?
            .finalize()?;
        let (kind, [convolution, x, w, y, alpha, beta]) = operation(self.convolution.kind);
        let factor = |number: f32| match self.compute {
            DataType::CUDNN_DATA_DOUBLE => Value::Double(f64::from(number)),
            _ => Value::Float(number),
        };
        let draft = Draft::new(kind)?.set(convolution, Value::Descriptors(&[&window]))?;
        let draft = [x, w, y]
            .into_iter()
            .zip(arrays)
            .try_fold(draft, |draft, (attribute, array)| draft.set(attribute, Value::Descriptors(&[array])))?;
        draft.set(alpha, factor(1.0))?.set(beta, factor(0.0))?.finalize()
    }

    /// Returns an elementwise operation on `x` and, if it is binary, `b`.
    fn pointwise(&self, mode: Pointwise, x: &Descriptor, b: Option<&Descriptor>, y: &Descriptor) -> Result<Descriptor> {
        let mut function = Draft::new(DescriptorType::CUDNN_BACKEND_POINTWISE_DESCRIPTOR)?
            .set(Attribute::CUDNN_ATTR_POINTWISE_MODE, Value::PointwiseMode(mode))?
            .set(Attribute::CUDNN_ATTR_POINTWISE_MATH_PREC, Value::DataType(self.compute))?;
        if mode == Pointwise::CUDNN_POINTWISE_RELU_FWD {
            let keep = Value::NanPropagation(NanPropagation::CUDNN_PROPAGATE_NAN);
            function = function.set(Attribute::CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, keep)?;
        }
        let function = function.finalize()?;
        let mut operation = Draft::new(DescriptorType::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)?
            .set(Attribute::CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, Value::Descriptors(&[&function]))?
            .set(Attribute::CUDNN_ATTR_OPERATION_POINTWISE_XDESC, Value::Descriptors(&[x]))?
            .set(Attribute::CUDNN_ATTR_OPERATION_POINTWISE_YDESC, Value::Descriptors(&[y]))?;
        if let Some(b) = b {
            operation = operation.set(Attribute::CUDNN_ATTR_OPERATION_POINTWISE_BDESC, Value::Descriptors(&[b]))?;
        }
        operation.finalize()
    }
}

/// Returns the descriptor type of an operation, and its attributes: convolution, input, filter, output, and the factors
/// alpha of the new result and beta of the previous one.
fn operation(kind: ConvolutionKind) -> (DescriptorType, [Attribute; 6]) {
    use Attribute as A;
    match kind {
        ConvolutionKind::Forward => (
            DescriptorType::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            [
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
            ],
        ),
        ConvolutionKind::BackwardInput => (
            DescriptorType::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            [
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
            ],
        ),
        ConvolutionKind::BackwardFilter => (
            DescriptorType::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            [
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                A::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
            ],
        ),
    }
}

fn wide(numbers: &[i32]) -> Vec<i64> {
    numbers.iter().copied().map(i64::from).collect()
}

fn data_type(element: ElementType) -> Result<DataType> {
    Ok(match element {
        ElementType::F16 => DataType::CUDNN_DATA_HALF,
        ElementType::BF16 => DataType::CUDNN_DATA_BFLOAT16,
        ElementType::F32 => DataType::CUDNN_DATA_FLOAT,
        ElementType::F64 => DataType::CUDNN_DATA_DOUBLE,
        other => return Err(Error::unimplemented(format!("cuDNN has no convolution of element type {other}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::library_call::convolution::{Channels, Spatial};

    fn layer(element: ElementType, precision: Precision, activation: ConvolutionActivation) -> Convolution {
        Convolution {
            kind: ConvolutionKind::Forward,
            element,
            precision,
            channels: Channels::First,
            batch: 1,
            groups: 1,
            input_channels: 4,
            output_channels: 4,
            spatial: vec![Spatial { input: 4, filter: 1, output: 4, padding: 0, stride: 1, dilation: 1 }],
            has_bias: false,
            activation,
        }
    }

    #[test]
    fn engines_are_taken_by_their_notes() {
        use ConvolutionActivation as Activation;
        let taken = |layer: &Convolution| (0..10).filter(|&note| computes(layer, &[note])).collect::<Vec<u32>>();
        let of = |element, precision| layer(element, precision, Activation::None);
        assert_eq!(taken(&of(ElementType::F32, Precision::Exact)), [9]);
        assert_eq!(taken(&of(ElementType::F32, Precision::Tf32)), [0, 9]);
        assert_eq!(taken(&of(ElementType::BF16, Precision::Exact)), [0, 9]);
        assert_eq!(taken(&of(ElementType::F64, Precision::Exact)), [9]);
        assert!(computes(&of(ElementType::F32, Precision::Exact), &[]));
        let relu = layer(ElementType::F16, Precision::Exact, Activation::Relu);
        assert_eq!(taken(&relu), [9], "who does not say so may make 0 of NaN");
        assert!(computes(&relu, &[0, 9]) && !computes(&relu, &[0]) && !computes(&relu, &[5, 9]));
        assert!(computes(&layer(ElementType::F16, Precision::Exact, Activation::GeluTanh), &[0]));
    }
}
