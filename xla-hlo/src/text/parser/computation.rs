//! Parser of computations, and of the module as a list of them.

use std::collections::HashSet;

use super::super::diagnostic::{Failure, Parse, shown};
use super::super::lexer::TokenKind;
use super::Parser;
use crate::ops::Op;
use crate::{CompId, Computation, Module, Opcode, Shape};

/// Name of inline computations, and of a lone instruction with its enclosing computation and module.
const UNNAMED: &str = "_";

impl<'t> Parser<'t> {
    /// Parses the whole text.
    pub fn module(mut self) -> Parse<Module> {
        if self.at_lone_instruction() {
            return self.lone_instruction();
        }
        let has_header = self.tokens.accept_word("HloModule");
        if has_header {
            let name = self.tokens.name("the name of the module")?;
            self.module.set_name(name);
            *self.module.attributes_mut() = self.tokens.module_attributes()?;
        }
        self.computations()?;
        if !has_header {
            let name = format!("module_{}", self.module.entry().name());
            self.module.set_name(name);
        }
        self.module.own_fusions().map_err(|e| Failure::new(0, e))?;
        if self.module.attributes().is_scheduled {
            self.record_schedules();
        }
        Ok(self.module)
    }

    /// Whether the text is a lone instruction. A module begins with a header, an entry, or a computation's name and
    /// signature or body.
    fn at_lone_instruction(&self) -> bool {
        let second = self.tokens.peek_second().kind;
        match self.tokens.kind() {
            TokenKind::Word if self.tokens.at_word("HloModule") || self.tokens.at_word("ENTRY") => false,
            TokenKind::Word if second == TokenKind::LeftParen => Opcode::from_name(self.tokens.next_text()).is_some(),
            TokenKind::Word => second != TokenKind::LeftBrace,
            TokenKind::Name => !matches!(second, TokenKind::LeftBrace | TokenKind::LeftParen),
            kind => kind == TokenKind::LeftParen,
        }
    }

    fn lone_instruction(mut self) -> Parse<Module> {
        self.module.set_name(UNNAMED);
        self.free_operands = true;
        let mut computation = Computation::new(UNNAMED);
        let named = self.tokens.peek_second().kind == TokenKind::Equals;
        let name = if named { self.definition()? } else { UNNAMED };
        let root = self.operation(&mut computation, Some(name))?;
        computation.sort_parameters();
        computation.set_root(root);
        self.tokens.expect_end("the end of the instruction")?;
        let entry = self.module.add(computation);
        self.module.set_entry(entry);
        Ok(self.module)
    }

    fn computations(&mut self) -> Parse<()> {
        let mut entry = None;
        let mut last = None;
        while self.tokens.kind() != TokenKind::End {
            let at = self.tokens.at();
            let is_entry = self.tokens.accept_word("ENTRY");
            if is_entry && entry.is_some() {
                return Err(Failure::invalid(at, "a module has only one ENTRY computation"));
            }
            let id = self.computation()?;
            if is_entry {
                entry = Some(id);
            }
            last = Some(id);
        }
        let entry = entry.or(last).ok_or_else(|| self.tokens.unexpected("a computation such as `main { ... }`"))?;
        self.module.set_entry(entry);
        Ok(())
    }

    fn computation(&mut self) -> Parse<CompId> {
        let at = self.tokens.at();
        let name = self.tokens.name("a computation such as `main { ... }`")?;
        if self.module.find(name).is_some() {
            return Err(Failure::invalid(at, format!("there is already a computation {}", shown(name))));
        }
        let at = self.tokens.at();
        let result = if self.tokens.kind() == TokenKind::LeftParen { Some(self.signature()?) } else { None };
        let (mut computation, _) = self.body(Computation::new(name))?;
        if let Some(result) = result
            && !result.compatible(computation.result_shape())
        {
            let message = format!(
                "the signature of {name} declares {}, but its root is {}",
                result.without_layout(),
                computation.result_shape().without_layout()
            );
            return Err(Failure::invalid(at, message));
        }
        if self.tokens.accept(TokenKind::Comma) {
            if self.tokens.attribute_name("`execution_thread=`")? != "execution_thread" {
                return Err(self.tokens.fail("computations have no attribute other than execution_thread"));
            }
            computation.set_execution_thread(self.tokens.string("the name of a thread")?);
        }
        Ok(self.module.add(computation))
    }

    /// Parses `(a: f32[2], b: s32[]) -> f32[2]` and returns the result's shape. Only the syntax of the parameters is
    /// checked, as in XLA.
    fn signature(&mut self) -> Parse<Shape> {
        self.tokens.list(TokenKind::LeftParen, TokenKind::RightParen, "`(`", |t| {
            t.name("a parameter's name")?;
            t.accept(TokenKind::Colon);
            t.shape().map(drop)
        })?;
        self.tokens.expect(TokenKind::Arrow, "`->` and the result's shape")?;
        self.tokens.shape()
    }

    /// Parses `{ instructions }`; returns the computation and the offset after the closing brace.
    fn body(&mut self, mut computation: Computation) -> Parse<(Computation, usize)> {
        self.tokens.expect(TokenKind::LeftBrace, "`{` and instructions")?;
        let mut last = None;
        if self.tokens.kind() == TokenKind::RightBrace {
            return Err(self.tokens.fail("a computation needs an instruction"));
        }
        while self.tokens.kind() != TokenKind::RightBrace {
            let at = self.tokens.at();
            let is_root = self.tokens.accept_word("ROOT");
            if is_root && computation.root_if_set().is_some() {
                return Err(Failure::invalid(at, "a computation has only one ROOT"));
            }
            let at = self.tokens.at();
            let name = self.definition()?;
            let id = self.operation(&mut computation, Some(name))?;
            // Adding the instruction has appended a number to a name that is taken.
            if computation[id].name() != name {
                let message = format!("there is already an instruction {} in this computation", shown(name));
                return Err(Failure::invalid(at, message));
            }
            if is_root {
                computation.set_root(id);
            }
            last = Some(id);
        }
        computation.sort_parameters();
        if let (None, Some(last)) = (computation.root_if_set(), last) {
            computation.set_root(last);
        }
        let end = self.tokens.bump().end;
        Ok((computation, end))
    }

    /// Parses `name =` of an instruction; returns the name.
    fn definition(&mut self) -> Parse<&'t str> {
        if self.tokens.kind() == TokenKind::AttributeName {
            return Err(self.tokens.fail("an instruction needs a space between its name and `=`"));
        }
        let name = self.tokens.name("an instruction such as `a = f32[] ...`, or `}`")?;
        self.tokens.expect(TokenKind::Equals, "`=` after the name of an instruction")?;
        Ok(name)
    }

    /// Parses a computation in braces that is the value of an attribute.
    pub fn inline_computation(&mut self) -> Parse<()> {
        let start = self.tokens.at();
        self.tokens.enter()?;
        let name = match self.inline.len() {
            0 => UNNAMED.to_string(),
            n => format!("{UNNAMED}.{n}"),
        };
        let outer = std::mem::replace(&mut self.free_operands, false);
        let (computation, end) = self.body(Computation::new(name))?;
        self.free_operands = outer;
        self.tokens.leave();
        let id = self.module.add(computation);
        self.inline.insert(start, (id, end));
        Ok(())
    }

    /// Records the schedules of a scheduled module: the order of the text. Fused computations have none, because a
    /// fusion is compiled as a unit.
    fn record_schedules(&mut self) {
        let mut fused = HashSet::new();
        for (_, computation) in self.module.iter() {
            for (_, instruction) in computation.iter() {
                if let Op::Fusion(fusion) = instruction.op() {
                    fused.insert(fusion.computation);
                }
            }
        }
        let ids: Vec<CompId> = self.module.ids().filter(|id| !fused.contains(id)).collect();
        for id in ids {
            let order = self.module[id].ids().collect();
            self.module.computation_mut(id).set_schedule(Some(order));
        }
    }
}
