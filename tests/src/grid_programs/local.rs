//! Operations of each device on its own values, all of them exact.

use xla_hlo::{ElementKind, ElementType};

use super::values::Value;
use super::writer::{Body, Writer};

impl Writer<'_> {
    /// Adds an operation on values of the device.
    pub fn local(&mut self, body: &mut Body) -> Option<()> {
        let x = self.any(body, |_| true)?;
        let (ty, dims, name) = (x.ty, x.dims.clone(), x.name.clone());
        match self.random.below(7) {
            0 => self.combined(body, &x)?,
            1 => self.put(body, ty, &dims, &format!("reverse({name}), dimensions={{{}}}", dims.len() - 1)),
            2 => {
                let order = self.random.permutation(dims.len());
                let to: Vec<usize> = order.iter().map(|&d| dims[d]).collect();
                let order = order.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
                self.put(body, ty, &to, &format!("transpose({name}), dimensions={{{order}}}"))
            }
            3 => {
                let cut = self.random.between(0, dims[0] - 1);
                let rest = dims[1..].iter().map(|size| format!(", [0:{size}]")).collect::<String>();
                let mut to = dims.clone();
                to[0] -= cut;
                self.put(body, ty, &to, &format!("slice({name}), slice={{[{cut}:{}]{rest}}}", dims[0]))
            }
            4 => {
                let negation = match ty.kind() {
                    ElementKind::Pred => "not",
                    ElementKind::Signed | ElementKind::Unsigned | ElementKind::Float | ElementKind::Complex => "negate",
                };
                self.put(body, ty, &dims, &format!("{negation}({name})"))
            }
            5 => {
                let count = x.count();
                self.put(body, ty, &[count], &format!("reshape({name})"))
            }
            _ => self.id(body, &dims)?,
        };
        Some(())
    }

    /// Adds an array of the device's replica or partition.
    fn id(&mut self, body: &mut Body, dims: &[usize]) -> Option<Value> {
        let which = self.random.pick(&["replica-id", "partition-id"]);
        let name = self.name();
        body.text += &format!("  {name} = u32[] {which}()\n");
        Some(self.put(body, ElementType::U32, dims, &format!("broadcast({name}), dimensions={{}}")))
    }

    /// Adds an operation on two arrays of the same shape.
    fn combined(&mut self, body: &mut Body, x: &Value) -> Option<Value> {
        let y = self.any(body, |value| value.is_like(x))?;
        let op = match x.ty.kind() {
            ElementKind::Pred => self.random.pick(&["and", "or", "xor"]),
            ElementKind::Signed | ElementKind::Unsigned => self.random.pick(&["add", "subtract", "minimum", "xor"]),
            // Kernels may contract products and sums, and the sign of a zero of two is not determined in a maximum.
            ElementKind::Float | ElementKind::Complex => return None,
        };
        Some(self.put(body, x.ty, &x.dims, &format!("{op}({}, {})", x.name, y.name)))
    }
}
