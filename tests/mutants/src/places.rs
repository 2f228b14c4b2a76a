//! Places of mutants in the syntax tree of a file.

use std::collections::HashMap;
use std::ops::Range;

use anyhow::{Context, Result};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr};

use crate::{Mutant, Place};

/// A part of the source with mutants.
pub enum Change<'m> {
    /// Mutants that have other text in place of an expression.
    Expression { range: Range<usize>, mutants: Vec<(&'m Mutant, String)> },
    /// Mutants that return at the start of a function.
    Body { at: usize, end: usize, mutants: Vec<&'m Mutant> },
    /// Mutants of a match arm and of its condition; the range is the condition, or the end of the pattern.
    Guard { range: Range<usize>, whole: Range<usize>, is_new: bool, mutants: Vec<&'m Mutant> },
}

impl Change<'_> {
    /// Source range that the mutant's text replaces or wraps.
    pub fn range(&self) -> Range<usize> {
        match self {
            Change::Expression { range, .. } | Change::Guard { range, .. } => range.clone(),
            Change::Body { at, .. } => *at..*at,
        }
    }

    /// Source range whose compile errors belong to the mutant.
    pub fn around(&self) -> Range<usize> {
        match self {
            Change::Expression { range, .. } => range.clone(),
            Change::Guard { whole, .. } => whole.clone(),
            Change::Body { at, end, .. } => *at..*end,
        }
    }

    pub fn ids(&self) -> Vec<u32> {
        match self {
            Change::Expression { mutants, .. } => mutants.iter().map(|(mutant, _)| mutant.id).collect(),
            Change::Body { mutants, .. } | Change::Guard { mutants, .. } => mutants.iter().map(|m| m.id).collect(),
        }
    }
}

/// Finds the parts of a source file that mutants change. Mutants in constants are left out: they have no run time.
pub fn find<'m>(source: &str, at: &HashMap<Place, Vec<&'m Mutant>>) -> Result<Vec<Change<'m>>> {
    let file = syn::parse_file(source).context("syn cannot parse the file")?;
    let mut finder = Finder { source, at, changes: Vec::new(), matches: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.changes)
}

struct Finder<'s, 'm> {
    source: &'s str,
    at: &'s HashMap<Place, Vec<&'m Mutant>>,
    changes: Vec<Change<'m>>,
    /// Matches around the visited part, outermost first.
    matches: Vec<Range<usize>>,
}

impl<'m> Finder<'_, 'm> {
    fn at(&self, span: Span, genre: &str) -> Vec<&'m Mutant> {
        let start = span.start();
        let here = self.at.get(&(start.line, start.column + 1));
        here.into_iter().flatten().filter(|mutant| mutant.genre == genre).copied().collect()
    }

    /// Text of the source without a part, and with other text in its place.
    fn replaced(&self, whole: &Range<usize>, part: Range<usize>, text: &str) -> String {
        format!("{} {text} {}", &self.source[whole.start..part.start], &self.source[part.end..whole.end])
    }

    fn expression(&mut self, whole: Span, part: Range<usize>, mutants: Vec<&'m Mutant>) {
        if mutants.is_empty() {
            return;
        }
        let range = whole.byte_range();
        let text = |mutant: &'m Mutant| (mutant, self.replaced(&range, part.clone(), &mutant.replacement));
        let mutants = mutants.into_iter().map(text).collect();
        self.changes.push(Change::Expression { range, mutants });
    }

    fn body(&mut self, block: &Block) {
        let Some(first) = block.stmts.first() else { return };
        let mutants = self.at(first.span(), "FnValue");
        if !mutants.is_empty() {
            let range = block.span().byte_range();
            self.changes.push(Change::Body { at: range.start + 1, end: range.end, mutants });
        }
    }
}

/// Whether an operand of `&&` binds names.
fn binds(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => binds(&binary.left) || binds(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_, '_> {
    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        if !binds(&expr.left) && !binds(&expr.right) {
            let mutants = self.at(expr.op.span(), "BinaryOperator");
            self.expression(expr.span(), expr.op.span().byte_range(), mutants);
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        let mutants = self.at(expr.op.span(), "UnaryOperator");
        self.expression(expr.span(), expr.op.span().byte_range(), mutants);
        visit::visit_expr_unary(self, expr);
    }

    fn visit_expr_struct(&mut self, expr: &'ast syn::ExprStruct) {
        for pair in expr.fields.pairs() {
            let mutants = self.at(pair.value().span(), "StructField");
            self.expression(expr.span(), pair.span().byte_range(), mutants);
        }
        visit::visit_expr_struct(self, expr);
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        self.matches.push(expr.span().byte_range());
        visit::visit_expr_match(self, expr);
        self.matches.pop();
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let mut mutants = self.at(arm.span(), "MatchArm");
        let whole = self.matches.last().cloned().unwrap_or_default();
        if let Some((_, guard)) = &arm.guard {
            mutants.extend(self.at(guard.span(), "MatchArmGuard"));
            if !mutants.is_empty() && !binds(guard) {
                let range = guard.span().byte_range();
                self.changes.push(Change::Guard { range, whole, is_new: false, mutants });
            }
        } else if !mutants.is_empty() {
            let end = arm.pat.span().byte_range().end;
            self.changes.push(Change::Guard { range: end..end, whole, is_new: true, mutants });
        }
        visit::visit_arm(self, arm);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.constness.is_none() {
            self.body(&item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_none() {
            self.body(&item.block);
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_expr_repeat(&mut self, expr: &'ast syn::ExprRepeat) {
        self.visit_expr(&expr.expr);
    }

    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
}
