//! Labels and colors of nodes.

use xla_hlo::ops::Family;
use xla_hlo::{Computation, InstrId, Op, Shape};

/// Label of a node: two lines.
pub struct Label {
    /// First line: `%name`.
    pub name: String,
    /// Second line: `opcode shape` with operands that are scalar constants: `multiply(_, 0.5) f32[8,128]`.
    pub what: String,
}

/// Maximum length; longer texts lose their middle.
const LONGEST: usize = 40;

/// Returns the label of an instruction.
pub fn label(computation: &Computation, id: InstrId) -> Label {
    let instruction = &computation[id];
    let operands = instruction.operands();
    let values: Vec<Option<String>> = operands.iter().map(|&o| scalar_constant(computation, o)).collect();
    let arguments = if values.iter().any(Option::is_some) {
        let words: Vec<&str> = values.iter().map(|value| value.as_deref().unwrap_or("_")).collect();
        format!("({})", words.join(", "))
    } else {
        match instruction.op() {
            Op::Parameter(parameter) => format!("({})", parameter.number),
            Op::GetTupleElement(element) => format!("({})", element.index),
            _ => String::new(),
        }
    };
    let (opcode, shape) = (instruction.opcode().name(), short_shape(instruction.shape()));
    Label {
        name: shortened(&format!("%{}", instruction.name())),
        what: shortened(&format!("{opcode}{arguments} {shape}")),
    }
}

/// Whether an instruction is no node of its own, since its users show its value.
pub fn is_inlined(computation: &Computation, id: InstrId) -> bool {
    computation.root_if_set() != Some(id) && scalar_constant(computation, id).is_some()
}

/// Returns the value of a scalar constant.
fn scalar_constant(computation: &Computation, id: InstrId) -> Option<String> {
    let Op::Constant(constant) = computation[id].op() else { return None };
    let scalar = computation[id].shape().as_array().is_some_and(|a| a.rank() == 0);
    // The text has the shape before the value.
    let text = scalar.then(|| constant.literal.to_string())?;
    Some(text.split_once(' ').map_or("", |(_, value)| value).to_string())
}

/// Formats a shape without layouts, and only the first element of a long tuple.
fn short_shape(shape: &Shape) -> String {
    match shape {
        Shape::Tuple(elements) if elements.len() > 2 => {
            format!("({}, ... {} in all)", elements[0].without_layout(), elements.len())
        }
        shape => shape.without_layout().to_string(),
    }
}

fn shortened(text: &str) -> String {
    let count = text.chars().count();
    if count <= LONGEST {
        return text.to_string();
    }
    let part = LONGEST / 2 - 1;
    let (start, end): (String, String) = (text.chars().take(part).collect(), text.chars().skip(count - part).collect());
    format!("{start}…{end}")
}

/// Returns a light color for a family of operations.
pub fn color(family: Family) -> &'static str {
    match family {
        Family::Structure => "#eeeeee",
        Family::Elementwise => "#dff0d8",
        Family::Movement => "#fdf3d0",
        Family::Dot | Family::Convolution => "#f8d3d3",
        Family::Reduction | Family::Window => "#e3d8f1",
        Family::ControlFlow => "#d0e2f7",
        Family::Indexing | Family::Sorting | Family::Dynamic => "#fbe0c3",
        Family::Random => "#d5f0ee",
        Family::Transform | Family::Linalg | Family::Normalization => "#f3d3ea",
        Family::Custom | Family::Token | Family::Async | Family::Collective => "#dadfe6",
    }
}
