//! Parser of PTX text.

use super::lexer::{Token, tokens};
use super::{Function, Instruction, Module, Operand, Space, Statement, SyntaxError, Variable};

/// Parses a module.
pub fn parse(text: &str) -> Result<Module<'_>> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, module: Module::default() };
    while parser.at < parser.tokens.len() {
        parser.directive()?;
    }
    if parser.module.target.is_empty() {
        return Err(SyntaxError::new(1, "the module has no .target"));
    }
    Ok(parser.module)
}

struct Parser<'a> {
    tokens: Vec<(Token<'a>, u32)>,
    at: usize,
    module: Module<'a>,
}

type Result<T> = std::result::Result<T, SyntaxError>;

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).map(|(token, _)| *token)
    }

    /// Returns the line of the next token, or of the last one at the end of the text.
    fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |(_, line)| *line)
    }

    fn error<T>(&self, expected: &str) -> Result<T> {
        let found = match self.peek() {
            Some(Token::Word(word)) => format!("`{word}`"),
            Some(Token::Sign(sign)) => format!("`{sign}`"),
            Some(_) => "a number".to_owned(),
            None => "the end".to_owned(),
        };
        Err(SyntaxError::new(self.line(), format!("expected {expected}, found {found}")))
    }

    /// Consumes a punctuation character if it is the next token.
    fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: char) -> Result<()> {
        if self.take(sign) { Ok(()) } else { self.error(&format!("`{sign}`")) }
    }

    fn word(&mut self, what: &str) -> Result<&'a str> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(word)
            }
            _ => self.error(what),
        }
    }

    fn integer(&mut self, what: &str) -> Result<u64> {
        match self.peek() {
            Some(Token::Integer(value)) => {
                self.at += 1;
                Ok(value)
            }
            _ => self.error(what),
        }
    }

    fn directive(&mut self) -> Result<()> {
        let line = self.line();
        let word = self.word("a directive")?;
        match word {
            ".version" => {
                let Some(Token::Double(bits)) = self.peek() else { return self.error("a version") };
                self.at += 1;
                let tenths = (f64::from_bits(bits) * 10.0).round() as u32;
                self.module.version = (tenths / 10, tenths % 10);
            }
            ".target" => {
                self.module.target = self.word("an architecture")?;
                while self.take(',') {
                    self.word("an option of the target")?;
                }
            }
            ".address_size" => match self.integer("a number of bits")? {
                64 => {}
                bits => return Err(SyntaxError::new(line, format!("addresses of {bits} bits: only 64 are supported"))),
            },
            ".visible" | ".extern" | ".weak" | ".entry" | ".func" | ".global" | ".const" | ".shared" => {
                self.at -= 1;
                self.definition()?;
            }
            _ => return Err(SyntaxError::new(line, format!("the directive `{word}` is not known"))),
        }
        Ok(())
    }

    /// Parses a function or a variable of the module.
    fn definition(&mut self) -> Result<()> {
        let mut is_extern = false;
        loop {
            match self.peek() {
                Some(Token::Word(".visible" | ".weak")) => self.at += 1,
                Some(Token::Word(".extern")) => {
                    is_extern = true;
                    self.at += 1;
                }
                Some(Token::Word(".entry" | ".func")) => {
                    let function = self.function()?;
                    self.module.functions.push(function);
                    return Ok(());
                }
                _ => {
                    let mut variables = self.variables()?;
                    variables.iter_mut().for_each(|variable| variable.is_extern = is_extern);
                    self.module.variables.extend(variables);
                    return self.expect(';');
                }
            }
        }
    }

    fn function(&mut self) -> Result<Function<'a>> {
        let line = self.line();
        let is_entry = self.word("a function")? == ".entry";
        let mut function = Function { is_entry, line, ..Function::default() };
        if !is_entry && self.peek() == Some(Token::Sign('(')) {
            function.results = self.parameters()?;
        }
        function.name = self.word("a name")?;
        if self.peek() == Some(Token::Sign('(')) {
            function.parameters = self.parameters()?;
        }
        while let Some(Token::Word(word)) = self.peek() {
            self.at += 1;
            match word {
                ".maxntid" => function.most_threads = Some(self.product()?),
                ".reqntid" => {
                    let mut sizes = [1; 3];
                    sizes[0] = self.integer("a number")?;
                    for size in &mut sizes[1..] {
                        if self.take(',') {
                            *size = self.integer("a number")?;
                        }
                    }
                    function.most_threads = Some(sizes.iter().fold(1, |all: u64, size| all.saturating_mul(*size)));
                    function.exact_threads = Some(sizes);
                }
                ".minnctapersm" | ".maxnreg" => drop(self.product()?),
                ".noreturn" => {}
                _ => return Err(SyntaxError::new(self.line(), format!("`{word}` of a function is not known"))),
            }
        }
        if !self.take(';') {
            function.body = Some(self.body()?);
        }
        Ok(function)
    }

    /// Parses numbers separated by commas and returns their product.
    fn product(&mut self) -> Result<u64> {
        let mut product = self.integer("a number")?;
        while self.take(',') {
            product = product.saturating_mul(self.integer("a number")?);
        }
        Ok(product)
    }

    fn parameters(&mut self) -> Result<Vec<Variable<'a>>> {
        self.expect('(')?;
        let mut parameters = Vec::new();
        while !self.take(')') {
            parameters.extend(self.variables()?);
            if self.peek() != Some(Token::Sign(')')) {
                self.expect(',')?;
            }
        }
        Ok(parameters)
    }

    /// Parses a declaration such as `.shared .align 16 .b8 name[10240]`, `.reg .b32 %r<7>` or `.reg .pred a, b`.
    fn variables(&mut self) -> Result<Vec<Variable<'a>>> {
        let line = self.line();
        let space = match self.word("a state space")? {
            ".reg" => Space::Register,
            ".param" => Space::Param,
            ".local" => Space::Local,
            ".shared" => Space::Shared,
            ".global" => Space::Global,
            ".const" => Space::Const,
            word => return Err(SyntaxError::new(line, format!("`{word}` is not a state space"))),
        };
        let (mut align, mut element) = (None, "");
        while let Some(Token::Word(word)) = self.peek().filter(|t| matches!(t, Token::Word(w) if w.starts_with('.'))) {
            self.at += 1;
            match word {
                ".align" => align = Some(self.integer("an alignment")?),
                // State space of the address in a pointer parameter.
                ".ptr" | ".global" | ".shared" | ".const" | ".local" => {}
                _ => element = &word[1..],
            }
        }
        let mut variables = vec![self.variable(space, element, align)?];
        // In a parameter list a comma precedes the state space of the next parameter.
        while let Some([(Token::Sign(','), _), (Token::Word(word), _)]) = self.tokens.get(self.at..self.at + 2)
            && !word.starts_with('.')
        {
            self.at += 1;
            variables.push(self.variable(space, element, align)?);
        }
        Ok(variables)
    }

    fn variable(&mut self, space: Space, element: &'a str, align: Option<u64>) -> Result<Variable<'a>> {
        let line = self.line();
        let name = self.word("a name")?;
        let mut count = Some(1);
        let is_numbered = self.take('<');
        if is_numbered {
            count = Some(self.integer("a number of registers")?);
            self.expect('>')?;
        }
        while self.take('[') {
            if self.take(']') {
                count = None;
                continue;
            }
            let size = self.integer("a number of elements")?;
            count = count.and_then(|count: u64| count.checked_mul(size));
            self.expect(']')?;
        }
        let mut initial = Vec::new();
        if self.take('=') {
            match self.operand()? {
                Operand::Vector(elements) => initial = elements,
                element => initial.push(element),
            }
        }
        Ok(Variable { space, name, element, align, count, is_numbered, is_extern: false, initial, line })
    }

    fn body(&mut self) -> Result<Vec<Statement<'a>>> {
        self.expect('{')?;
        let (mut statements, mut depth) = (Vec::new(), 0);
        loop {
            match self.peek() {
                Some(Token::Sign('{')) => {
                    self.at += 1;
                    depth += 1;
                    statements.push(Statement::Open);
                }
                Some(Token::Sign('}')) => {
                    self.at += 1;
                    if depth == 0 {
                        return Ok(statements);
                    }
                    depth -= 1;
                    statements.push(Statement::Close);
                }
                Some(Token::Word(".pragma")) => {
                    self.at += 2;
                    self.expect(';')?;
                }
                Some(Token::Word(".loc")) => self.at += 4,
                Some(Token::Word(word)) if word.starts_with('.') => {
                    statements.extend(self.variables()?.into_iter().map(Statement::Declare));
                    self.expect(';')?;
                }
                Some(Token::Word(word)) if self.tokens.get(self.at + 1).is_some_and(|t| t.0 == Token::Sign(':')) => {
                    self.at += 2;
                    statements.push(Statement::Label(word));
                }
                _ => statements.push(Statement::Instruction(self.instruction()?)),
            }
        }
    }

    fn instruction(&mut self) -> Result<Instruction<'a>> {
        let line = self.line();
        let mut guard = None;
        if self.take('@') {
            let negated = self.take('!');
            guard = Some((self.word("a predicate")?, negated));
        }
        let opcode = self.word("an instruction")?;
        let mut operands = Vec::new();
        while !self.take(';') {
            operands.push(self.operand()?);
            if self.peek() != Some(Token::Sign(';')) {
                self.expect(',')?;
            }
        }
        Ok(Instruction { line, guard, opcode, operands })
    }

    fn operand(&mut self) -> Result<Operand<'a>> {
        let Some(token) = self.peek() else { return self.error("an operand") };
        self.at += 1;
        Ok(match token {
            Token::Word(name) if self.take('|') => Operand::Pair(name, self.word("a predicate")?),
            Token::Word(name) => Operand::Name(name),
            Token::Integer(value) => Operand::Integer(value),
            Token::Single(bits) => Operand::Single(bits),
            Token::Double(bits) => Operand::Double(bits),
            Token::Sign('!') => Operand::Not(self.word("a predicate")?),
            Token::Sign('-') => match self.operand()? {
                Operand::Integer(value) => Operand::Integer(value.wrapping_neg()),
                Operand::Double(bits) => Operand::Double(bits ^ 1 << 63),
                _ => return self.error("a number after `-`"),
            },
            Token::Sign('{') => Operand::Vector(self.list('}')?),
            Token::Sign('(') => Operand::List(self.list(')')?),
            Token::Sign('[') => self.address()?,
            Token::Sign(_) | Token::Text(_) => {
                self.at -= 1;
                return self.error("an operand");
            }
        })
    }

    fn list(&mut self, end: char) -> Result<Vec<Operand<'a>>> {
        let mut operands = Vec::new();
        while !self.take(end) {
            operands.push(self.operand()?);
            if self.peek() != Some(Token::Sign(end)) {
                self.expect(',')?;
            }
        }
        Ok(operands)
    }

    fn address(&mut self) -> Result<Operand<'a>> {
        let base = self.operand()?;
        let mut offset = 0i64;
        while self.peek() != Some(Token::Sign(']')) {
            if offset == 0 && self.take(',') {
                self.expect('{')?;
                let coordinates = self.list('}')?;
                self.expect(']')?;
                return Ok(Operand::Tensor(Box::new(base), coordinates));
            }
            let negative = self.take('-');
            if !negative {
                self.expect('+')?;
            }
            let negative = negative ^ self.take('-');
            let value = self.integer("an offset")? as i64;
            offset = offset.wrapping_add(if negative { value.wrapping_neg() } else { value });
        }
        self.expect(']')?;
        Ok(Operand::Address(Box::new(base), offset))
    }
}
