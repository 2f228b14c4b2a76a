//! Evaluation budget: limit on the work for constant evaluation at compile time.

use std::collections::HashMap;

use xla_hlo::{CompId, Computation, InstrId, Module};

use crate::analysis::op_cost::{Arithmetic, arithmetic, elements};

/// Operations on single elements that all evaluations in one pass over a module may take; about half a second.
const TOTAL: u64 = 1 << 23;

/// Remaining operations for evaluating constants, and the cost of each called computation.
///
/// The work of an instruction is the number of elements that the evaluator visits, of operands and results, plus the
/// operations on them. It does not only depend on result sizes: a reduction visits all elements of its operand.
pub struct EvaluationBudget {
    /// Remaining operations.
    pub left: u64,
    called: HashMap<CompId, u64>,
}

impl EvaluationBudget {
    /// Creates the budget of one pass.
    pub(crate) fn new() -> EvaluationBudget {
        EvaluationBudget::of(TOTAL)
    }

    /// Creates a budget of `operations`.
    pub fn of(operations: u64) -> EvaluationBudget {
        EvaluationBudget { left: operations, called: HashMap::new() }
    }

    /// Spends the work of an instruction. Returns false and spends nothing if the work exceeds `limit` or the remaining
    /// budget.
    pub fn spend(&mut self, module: &Module, graph: &Computation, id: InstrId, limit: u64) -> bool {
        let work = self.work(module, graph, id);
        let affordable = work <= limit.min(self.left);
        if affordable {
            self.left -= work;
        }
        affordable
    }

    /// Returns the number of visited elements and operations on them, called computations included.
    pub fn work(&mut self, module: &Module, graph: &Computation, id: InstrId) -> u64 {
        let instruction = &graph[id];
        let called = instruction.op().called_computations();
        let called = called.into_iter().map(|callee| self.called(module, callee)).fold(0, u64::saturating_add);
        let operations = arithmetic(graph, id, Arithmetic::simple(called)).operations();
        let operands = instruction.operands().iter().map(|&operand| elements(graph[operand].shape()));
        let visited = operands.max().unwrap_or(0).max(elements(instruction.shape()));
        // Calls and fusions have no arithmetic of their own.
        visited.saturating_add(operations.max(called))
    }

    /// Returns the work of one run of a computation.
    fn called(&mut self, module: &Module, callee: CompId) -> u64 {
        if let Some(&known) = self.called.get(&callee) {
            return known;
        }
        let graph = &module[callee];
        let work = graph.ids().map(|id| self.work(module, graph, id)).fold(0, u64::saturating_add);
        self.called.insert(callee, work);
        work
    }
}
