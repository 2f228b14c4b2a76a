//! Parser of instructions: `shape opcode(operands), attributes`.

use std::ops::Range;

use super::super::attributes::{AttributeReader, COMMON, Callables, Written};
use super::super::diagnostic::{Failure, Parse, shown};
use super::super::lexer::TokenKind;
use super::super::suggest::did_you_mean;
use super::Parser;
use super::asynchronous::{Chain, Spelling};
use super::shape::default_layout;
use crate::ops::{Arity, ShapeContext};
use crate::{Annotations, Computation, ElementType, Error, InstrId, Instruction, Op, Opcode, Shape};

/// Attributes of an instruction: common ones are parsed, those of the operation are not yet.
#[derive(Default)]
struct Attributes<'t> {
    annotations: Option<Box<Annotations>>,
    control_predecessors: Vec<InstrId>,
    own: Vec<Written<'t>>,
    /// Bit set of the [`COMMON`] attributes that are present.
    seen: u32,
}

impl<'t> Parser<'t> {
    /// Parses the right-hand side of a definition and adds it to the computation. Without a name, the instruction is
    /// nested in an operand list and has no attributes.
    pub fn operation(&mut self, computation: &mut Computation, name: Option<&str>) -> Parse<InstrId> {
        let shape = if self.tokens.at_shape() { Some(self.tokens.shape()?) } else { None };
        self.operation_of_shape(computation, name, shape)
    }

    pub fn operation_of_shape(
        &mut self,
        computation: &mut Computation,
        name: Option<&str>,
        shape: Option<Shape>,
    ) -> Parse<InstrId> {
        let at = self.tokens.at();
        let Spelling { opcode, wrapped } = self.opcode()?;
        let (operands, payload) = self.arguments(computation, opcode, shape.as_ref())?;
        check_arity(opcode, operands.len()).map_err(|message| Failure::invalid(at, message))?;
        // Opcode whose attributes are parsed; in the short form of a start, the wrapped one.
        let read = wrapped.filter(|_| opcode == Opcode::AsyncStart).unwrap_or(opcode);
        check_arity(read, operands.len()).map_err(|message| Failure::invalid(at, message))?;
        let attributes = if name.is_some() { self.attributes(computation)? } else { Attributes::default() };

        let callables = Callables { module: &self.module, inline: &self.inline };
        let mut reader = AttributeReader::new(self.text, callables, (opcode, at), attributes.own, payload);
        let op = Op::read(read, &mut reader).map_err(|e| reader.locate(e))?;
        let chain = Chain::read(opcode, &mut reader).map_err(|e| reader.locate(e))?;
        reader.finish()?;
        let op = match wrapped {
            Some(_) if opcode == Opcode::AsyncStart => self
                .wrap(op, shape.as_ref(), (computation, &operands), attributes.annotations.as_deref())
                .map_err(|e| Failure::new(at, e))?,
            Some(_) | None => op,
        };

        let shape = match shape {
            Some(shape) => shape,
            None => self.inferred_shape(computation, &op, &operands).map_err(|e| Failure::new(at, e))?,
        };
        let name = name.map_or_else(|| format!("{opcode}.anon"), str::to_string);
        let instruction =
            Instruction::new(op, shape, operands).with_name(name).with_annotations(attributes.annotations);
        let id = computation.append(instruction);
        for before in attributes.control_predecessors {
            computation.add_control_dependency(before, id);
        }
        self.join_chain(computation, id, &chain, wrapped).map_err(|e| Failure::new(at, e))?;
        Ok(id)
    }

    fn opcode(&mut self) -> Parse<Spelling> {
        if self.tokens.kind() != TokenKind::Word {
            return Err(self.tokens.unexpected("a shape or an operation"));
        }
        let at = self.tokens.at();
        let text = self.tokens.next_text();
        match Opcode::from_name(text) {
            Some(opcode) if opcode.is_implemented() => {
                self.tokens.bump();
                Ok(Spelling { opcode, wrapped: None })
            }
            Some(later) => {
                Err(Failure::new(at, Error::unimplemented(format!("operation {later} is not implemented yet"))))
            }
            None if let Some(short) = Spelling::short(text) => {
                self.tokens.bump();
                Ok(short)
            }
            None if self.tokens.peek_second().kind == TokenKind::LeftBracket => {
                let suggestion = did_you_mean(text, ElementType::ALL.iter().map(|t| t.name()));
                Err(Failure::invalid(at, format!("unknown element type `{}`{suggestion}", shown(text))))
            }
            None => Err(Failure::new(at, unknown_operation(text))),
        }
    }

    /// Returns the shape that an operation's rule infers from its operands, in the default layout.
    fn inferred_shape(&self, computation: &Computation, op: &Op, operands: &[InstrId]) -> Result<Shape, Error> {
        let shapes: Vec<&Shape> = operands.iter().map(|&o| computation[o].shape()).collect();
        let shape = op.rules().infer_shape(&ShapeContext::new(&self.module, &shapes, None))?;
        Ok(shape.map_layouts(&mut default_layout))
    }

    fn attributes(&mut self, computation: &Computation) -> Parse<Attributes<'t>> {
        let mut attributes = Attributes::default();
        while self.tokens.accept(TokenKind::Comma) {
            let token = self.tokens.expect(TokenKind::AttributeName, "an attribute such as `dimensions=`")?;
            let name = self.tokens.text(token);
            match COMMON.iter().position(|common| *common == name) {
                None => {
                    let value = self.skip_value()?;
                    attributes.own.push(Written { name, at: token.start, value });
                }
                Some(i) if attributes.seen & (1 << i) == 0 => {
                    attributes.seen |= 1 << i;
                    self.common_attribute(name, computation, &mut attributes)?;
                }
                Some(_) => {
                    return Err(Failure::invalid(token.start, format!("attribute {name} is given twice")));
                }
            }
        }
        Ok(attributes)
    }

    /// Parses the value of one of [`COMMON`].
    fn common_attribute(
        &mut self,
        name: &str,
        computation: &Computation,
        attributes: &mut Attributes<'t>,
    ) -> Parse<()> {
        if name == "control-predecessors" {
            attributes.control_predecessors = self.control_predecessors(computation)?;
            return Ok(());
        }
        let annotations = attributes.annotations.get_or_insert_default();
        let tokens = &mut self.tokens;
        match name {
            "metadata" => annotations.metadata = tokens.metadata()?,
            "sharding" => annotations.sharding = Some(tokens.sharding()?),
            "frontend_attributes" => annotations.frontend_attributes = tokens.frontend_attributes()?,
            "backend_config" => {
                let config = tokens.bytes_or_dictionary("a quoted string or a JSON dictionary")?;
                annotations.backend_config = config.into();
            }
            "statistics" => annotations.statistics = tokens.statistics()?,
            "origin" => annotations.origin = tokens.group_text("an origin in braces")?,
            "parameter_replication" => annotations.parameter_replication = tokens.booleans()?,
            _ => return Err(tokens.fail(format!("attribute {name} cannot be read"))),
        }
        Ok(())
    }

    fn control_predecessors(&mut self, computation: &Computation) -> Parse<Vec<InstrId>> {
        self.tokens.braced("names in braces", |t| {
            let at = t.at();
            let name = t.name("the name of an instruction")?;
            computation.find(name).ok_or_else(|| {
                Failure::invalid(
                    at,
                    format!("unknown instruction {} (it must be defined above, in this computation)", shown(name)),
                )
            })
        })
    }

    /// Skips a value that its operation will parse; returns its byte range. Inline computations in it are parsed now,
    /// so that the cost of deep nesting stays linear.
    fn skip_value(&mut self) -> Parse<Range<usize>> {
        let first = self.tokens.peek();
        // The span of a name excludes its `%`, which marks it as a name.
        let start = first.start - usize::from(self.text[..first.start].ends_with('%'));
        let mut end = start;
        let mut depth = 0usize;
        loop {
            let token = self.tokens.peek();
            match token.kind {
                TokenKind::Bad => return Err(self.tokens.unexpected("a value")),
                TokenKind::End if depth > 0 => return Err(self.tokens.unexpected("the end of the attribute")),
                TokenKind::LeftBrace if self.at_inline_computation() => {
                    self.inline_computation()?;
                    end = self.inline[&token.start].1;
                    continue;
                }
                TokenKind::LeftBrace | TokenKind::LeftParen | TokenKind::LeftBracket => depth += 1,
                _ if depth == 0 && self.ends_value() => return Ok(start..end),
                TokenKind::RightBrace | TokenKind::RightParen | TokenKind::RightBracket => depth -= 1,
                _ => {}
            }
            end = token.end;
            self.tokens.bump();
        }
    }

    /// Whether the next token follows a value: it is a separator, or the beginning of an instruction.
    fn ends_value(&self) -> bool {
        match self.tokens.kind() {
            TokenKind::Comma
            | TokenKind::RightBrace
            | TokenKind::RightParen
            | TokenKind::RightBracket
            | TokenKind::AttributeName
            | TokenKind::End => true,
            TokenKind::Word | TokenKind::Name => {
                self.tokens.at_word("ROOT") || self.tokens.peek_second().kind == TokenKind::Equals
            }
            _ => false,
        }
    }

    /// Whether a brace opens a computation: `{ROOT` or `{name =`.
    fn at_inline_computation(&self) -> bool {
        let (first, second) = self.tokens.peek_two();
        match first.kind {
            TokenKind::Word if self.tokens.text(first) == "ROOT" => true,
            TokenKind::Word | TokenKind::Name => second.kind == TokenKind::Equals,
            _ => false,
        }
    }
}

/// Returns the error for an unknown opcode.
fn unknown_operation(text: &str) -> Error {
    let suggestion = did_you_mean(text, Opcode::ALL.iter().map(|o| o.name()));
    Error::invalid_argument(format!("unknown operation `{}`{suggestion}", shown(text)))
}

fn check_arity(opcode: Opcode, count: usize) -> Result<(), String> {
    let plural = |n: usize| if n == 1 { "1 operand".to_string() } else { format!("{n} operands") };
    match opcode.arity() {
        Arity::Exactly(n) if count != n => Err(format!("{opcode} takes {}, found {count}", plural(n))),
        Arity::AtLeast(n) if count < n => Err(format!("{opcode} takes at least {}, found {count}", plural(n))),
        Arity::Exactly(_) | Arity::AtLeast(_) => Ok(()),
    }
}
