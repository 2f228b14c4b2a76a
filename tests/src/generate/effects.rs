//! Tokens, domains, and async start/done pairs.

use xla_hlo::ops::{Async, Domain, OptBarrier};
use xla_hlo::{InstrId, LeafSharding, Sharding, ShardingKind};

use super::callee::CalleeRole;
use super::graph::{Graph, Value};

impl Graph<'_> {
    /// Generates an array that depends on tokens, a domain or a copy.
    pub(super) fn effect(&mut self) -> Option<Value> {
        let x = self.any(|_| true)?;
        let id = match self.random.below(6) {
            0 => self.after_tokens(&x)?,
            1 => self.tuple_after_token(&x)?,
            2 => self.domain(&x)?,
            3 => {
                let op = Async::CopyStart { cross_program_prefetch_index: None };
                let start = self.b.instruction(op, None, [x.id]).ok()?;
                self.b.instruction(Async::CopyDone, None, [start]).ok()?
            }
            4 => self.b.instruction(OptBarrier, None, [x.id]).ok()?,
            _ => return self.async_call(),
        };
        self.put(Some(x.numbers), |_| Ok(id))
    }

    /// Generates a token that depends on several new tokens.
    fn token(&mut self) -> Option<InstrId> {
        let mut tokens = Vec::new();
        for _ in 0..self.random.below(3) {
            tokens.push(self.b.after_all([]).ok()?);
        }
        self.b.after_all(tokens).ok()
    }

    fn after_tokens(&mut self, x: &Value) -> Option<InstrId> {
        let token = self.token()?;
        let token = if self.random.percent(50) { self.b.instruction(OptBarrier, None, [token]).ok()? } else { token };
        self.b.add_dependency(x.id, token).ok()
    }

    /// Generates nested tuples that contain a token.
    fn tuple_after_token(&mut self, x: &Value) -> Option<InstrId> {
        let y = self.any(|_| true)?;
        let token = self.token()?;
        let inner = self.b.tuple([y.id, token, x.id]).ok()?;
        let outer = self.b.tuple([inner, y.id]).ok()?;
        let outer = self.b.add_dependency(outer, token).ok()?;
        let inner = self.b.get_tuple_element(outer, 0).ok()?;
        self.b.get_tuple_element(inner, 2).ok()
    }

    fn domain(&mut self, x: &Value) -> Option<InstrId> {
        let mut sharding = || {
            let kind = self.random.pick(&[ShardingKind::Replicated, ShardingKind::Maximal(0), ShardingKind::Manual]);
            Sharding::Leaf(LeafSharding { kind, ..LeafSharding::default() })
        };
        let op = Domain { kind: "sharding".into(), entry: sharding(), exit: sharding() };
        self.b.instruction(op, None, [x.id]).ok()
    }

    /// Generates an async start and done of a function that has no other caller.
    pub(super) fn async_call(&mut self) -> Option<Value> {
        let callees = self.callees;
        let free: Vec<_> =
            callees.iter().filter(|c| matches!(c.role, CalleeRole::Async { .. }) && !c.is_taken.get()).collect();
        let callee = (!free.is_empty()).then(|| self.random.pick(&free))?;
        let CalleeRole::Async { parameters, results } = &callee.role else { return None };
        let operands = self.operands(parameters);
        let mut step = self.b.async_start(callee.id, operands).ok()?;
        callee.is_taken.set(true);
        for _ in 0..self.random.below(3) {
            step = self.b.instruction(Async::Update, None, [step]).ok()?;
        }
        let done = self.b.async_done(step).ok()?;
        self.results(done, results)
    }
}
