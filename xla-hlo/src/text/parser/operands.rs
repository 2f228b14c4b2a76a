//! Parser of operands, and of other contents of an operation's parentheses.

use super::super::attributes::Payload;
use super::super::diagnostic::{Failure, Parse, shown};
use super::super::lexer::TokenKind;
use super::super::suggest::did_you_mean;
use super::Parser;
use crate::ops::Parameter;
use crate::{Computation, InstrId, Instruction, Opcode, Shape};

impl Parser<'_> {
    /// Parses `(operands)`, `(number)` of a parameter, or `(literal)` of a constant.
    pub fn arguments(
        &mut self,
        computation: &mut Computation,
        opcode: Opcode,
        shape: Option<&Shape>,
    ) -> Parse<(Vec<InstrId>, Payload)> {
        let at = self.tokens.at();
        self.tokens.expect(TokenKind::LeftParen, "`(` and operands")?;
        let mut operands = Vec::new();
        let mut payload = Payload::None;
        match opcode {
            Opcode::Parameter => payload = Payload::Number(self.tokens.unsigned("the parameter's number")?),
            Opcode::Constant => {
                let shape = shape.ok_or_else(|| Failure::invalid(at, "the shape of a constant must be written"))?;
                payload = Payload::Literal(self.tokens.literal(shape, self.omitted)?);
            }
            _ if self.tokens.kind() == TokenKind::RightParen => {}
            _ => loop {
                operands.push(self.operand(computation)?);
                if !self.tokens.accept(TokenKind::Comma) {
                    break;
                }
            },
        }
        self.tokens.expect(TokenKind::RightParen, "`,` or `)`")?;
        Ok((operands, payload))
    }

    /// Parses a name, optionally preceded by its shape, or a nested instruction.
    fn operand(&mut self, computation: &mut Computation) -> Parse<InstrId> {
        let shape_at = self.tokens.at();
        let shape = if self.tokens.at_shape() { Some(self.tokens.shape()?) } else { None };
        let at = self.tokens.at();
        match self.tokens.kind() {
            TokenKind::Word if self.tokens.peek_second().kind == TokenKind::LeftParen => {
                self.tokens.enter()?;
                let id = self.operation_of_shape(computation, None, shape)?;
                self.tokens.leave();
                return Ok(id);
            }
            TokenKind::Word | TokenKind::Name => {}
            TokenKind::Comma | TokenKind::RightParen if self.free_operands => {
                let name = format!("_{}", computation.parameters().len());
                return self.free_operand(computation, &name, shape, at);
            }
            _ => return Err(self.tokens.unexpected("an operand")),
        }
        let name = self.tokens.name("an operand")?;
        match computation.find(name) {
            Some(id) => {
                check_shape(computation, id, shape.as_ref()).map_err(|m| Failure::invalid(shape_at, m))?;
                Ok(id)
            }
            None if self.free_operands => self.free_operand(computation, name, shape, at),
            None => {
                let suggestion = did_you_mean(name, computation.iter().map(|(_, i)| i.name()));
                let message = format!(
                    "unknown instruction {} (it must be defined above, in this computation){suggestion}",
                    shown(name)
                );
                Err(Failure::invalid(at, message))
            }
        }
    }

    /// Adds an undefined operand of a lone instruction as the next parameter.
    fn free_operand(
        &mut self,
        computation: &mut Computation,
        name: &str,
        shape: Option<Shape>,
        at: usize,
    ) -> Parse<InstrId> {
        let shape = shape.ok_or_else(|| Failure::invalid(at, "operands of a lone instruction need their shapes"))?;
        let number = computation.parameters().len();
        Ok(computation.add(Instruction::new(Parameter { number }.into(), shape, []).with_name(name)))
    }
}

/// Checks that a shape written in front of an operand is the operand's shape (layouts are ignored).
fn check_shape(computation: &Computation, id: InstrId, written: Option<&Shape>) -> Result<(), String> {
    let operand = &computation[id];
    match written {
        Some(written) if !written.compatible(operand.shape()) => Err(format!(
            "operand {} is {}, here it is written as {}",
            operand.name(),
            operand.shape().without_layout(),
            written.without_layout()
        )),
        _ => Ok(()),
    }
}
