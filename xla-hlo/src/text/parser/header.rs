//! Parser of the module header: attributes after the name, and the stack tables.

use super::super::diagnostic::{Failure, Parse, shown};
use super::super::lexer::TokenKind;
use super::super::suggest::did_you_mean;
use super::super::tokens::Tokens;
use crate::{FileLocation, InputOutputAlias, ModuleAttributes, ParameterLeaf, ProgramShape, StackFrame, StackTables};

const KNOWN: &[&str] = &[
    "is_scheduled",
    "entry_computation_layout",
    "input_output_alias",
    "buffer_donor",
    "alias_passthrough_params",
    "replica_count",
    "num_partitions",
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
    "frontend_attributes",
    "origin_recovery_table",
    "debug_attributes",
];

impl Tokens<'_> {
    /// Parses a sequence of `, name=value`, then the stack tables.
    pub fn module_attributes(&mut self) -> Parse<ModuleAttributes> {
        let mut attributes = ModuleAttributes::default();
        let mut seen = Vec::new();
        while self.accept(TokenKind::Comma) {
            let name = self.expect(TokenKind::AttributeName, "a module attribute such as `is_scheduled=`")?;
            let text = self.text(name);
            if seen.contains(&text) {
                return Err(Failure::invalid(name.start, format!("module attribute {text} is given twice")));
            }
            if !KNOWN.contains(&text) {
                let suggestion = did_you_mean(text, KNOWN.iter().copied());
                let message =
                    format!("modules have no attribute {} (they have {}){suggestion}", shown(text), KNOWN.join(", "));
                return Err(Failure::invalid(name.start, message));
            }
            seen.push(text);
            self.module_attribute(text, &mut attributes)?;
        }
        attributes.stack = self.stack_tables()?;
        Ok(attributes)
    }

    /// Parses the value of one of [`KNOWN`].
    fn module_attribute(&mut self, name: &str, attributes: &mut ModuleAttributes) -> Parse<()> {
        match name {
            "is_scheduled" => attributes.is_scheduled = self.boolean()?,
            "entry_computation_layout" => attributes.entry_computation_layout = Some(self.program_shape_in_braces()?),
            "input_output_alias" => {
                attributes.input_output_alias = self.braced("aliases in braces", Tokens::input_output_alias)?;
            }
            "buffer_donor" => {
                attributes.buffer_donors = self.braced("donors in braces", |t| {
                    let leaf = t.parameter_leaf()?;
                    t.expect(TokenKind::RightParen, "`)`")?;
                    Ok(leaf)
                })?;
            }
            "alias_passthrough_params" => attributes.alias_passthrough_params = self.boolean()?,
            "replica_count" => attributes.replica_count = self.unsigned("a number of replicas")? as u64,
            "num_partitions" => attributes.num_partitions = self.unsigned("a number of partitions")? as u64,
            "allow_spmd_sharding_propagation_to_parameters" => {
                attributes.allow_spmd_sharding_propagation_to_parameters = self.booleans()?;
            }
            "allow_spmd_sharding_propagation_to_output" => {
                attributes.allow_spmd_sharding_propagation_to_output = self.booleans()?;
            }
            "frontend_attributes" => attributes.frontend_attributes = self.frontend_attributes()?,
            "origin_recovery_table" => attributes.origin_recovery_table = self.group_text("a table in braces")?,
            "debug_attributes" => attributes.debug_attributes = self.group_text("attributes in braces")?,
            _ => return Err(self.fail(format!("module attribute {name} cannot be read"))),
        }
        Ok(())
    }

    /// Parses `true`, or `{true,false}`.
    pub fn booleans(&mut self) -> Parse<Vec<bool>> {
        if self.kind() == TokenKind::LeftBrace {
            return self.braced("truth values in braces", Tokens::boolean);
        }
        Ok(vec![self.boolean()?])
    }

    /// Parses `{(shape, ...)->shape}`.
    fn program_shape_in_braces(&mut self) -> Parse<ProgramShape> {
        self.expect(TokenKind::LeftBrace, "a program shape such as {(f32[2]{0})->f32[]}")?;
        let parameters =
            self.list(TokenKind::LeftParen, TokenKind::RightParen, "`(` and parameter shapes", Tokens::shape)?;
        self.expect(TokenKind::Arrow, "`->` and the result's shape")?;
        let result = self.shape()?;
        self.expect(TokenKind::RightBrace, "`}`")?;
        Ok(ProgramShape { parameters, result })
    }

    /// Parses `{0}: (1, {}, must-alias)`.
    fn input_output_alias(&mut self) -> Parse<InputOutputAlias> {
        let output = self.braced_indices("a path into the result such as {0}")?;
        self.expect(TokenKind::Colon, "`:`")?;
        let parameter = self.parameter_leaf()?;
        let must_alias = self.accept(TokenKind::Comma) && self.choice(&[("may-alias", false), ("must-alias", true)])?;
        self.expect(TokenKind::RightParen, "`)`")?;
        Ok(InputOutputAlias { output, parameter, must_alias })
    }

    /// Parses `(1, {0}`, the start of an entry, up to its optional parts.
    fn parameter_leaf(&mut self) -> Parse<ParameterLeaf> {
        self.expect(TokenKind::LeftParen, "`(` and a parameter number")?;
        let parameter = self.unsigned("a parameter number")?;
        self.expect(TokenKind::Comma, "`,`")?;
        Ok(ParameterLeaf { parameter, path: self.braced_indices("a path into the parameter such as {0}")? })
    }

    fn stack_tables(&mut self) -> Parse<StackTables> {
        let file_names = self.table("FileNames", |t| t.string("a file name"))?;
        let function_names = self.table("FunctionNames", |t| t.string("a function name"))?;
        let file_locations = self.table("FileLocations", |t| {
            let fields = ["file_name_id", "function_name_id", "line", "end_line", "column", "end_column"];
            let [file_name_id, function_name_id, line, end_line, column, end_column] = t.integer_fields(fields)?;
            Ok(FileLocation { file_name_id, function_name_id, line, end_line, column, end_column })
        })?;
        let stack_frames = self.table("StackFrames", |t| {
            let [file_location_id, parent] = t.integer_fields(["file_location_id", "parent_frame_id"])?;
            // In the text form, parents are numbered from 1, and 1 means no parent.
            Ok(StackFrame { file_location_id, parent_frame_id: parent.saturating_sub(1) })
        })?;
        Ok(StackTables { file_names, function_names, file_locations, stack_frames })
    }

    /// Parses `Title 1 entry 2 entry ...`, or nothing.
    fn table<T>(&mut self, title: &str, mut entry: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut entries = Vec::new();
        if !self.accept_word(title) {
            return Ok(entries);
        }
        while self.kind() == TokenKind::Integer {
            let at = self.at();
            if self.unsigned("an id")? != entries.len() + 1 {
                let message = format!("entries of {title} are numbered 1, 2, ...; expected {}", entries.len() + 1);
                return Err(Failure::invalid(at, message));
            }
            entries.push(entry(self)?);
        }
        Ok(entries)
    }
}
