//! Parser of the `#` attributes of StableHLO, CHLO and Shardy.

use xla_hlo::Result;

use super::attributes::Entries;
use super::reader::Reader;
use crate::ir::{AttrId, Attribute, EnumKind, ResultAccuracy};

impl<'t> Reader<'t> {
    /// Parses an attribute after its `#`: an alias or a dialect attribute.
    pub(super) fn hash(&mut self, start: usize) -> Result<AttrId> {
        let name = self.cursor.suffix("the name of an attribute")?;
        // Attributes that dialects share have the same syntax in each.
        let stable = name.split_once('.').filter(|(dialect, _)| matches!(*dialect, "mhlo" | "chlo"));
        let stable =
            stable.map(|(_, own)| own).filter(|own| SHARED.contains(own)).map(|own| format!("stablehlo.{own}"));
        match stable.as_deref().unwrap_or(name) {
            "stablehlo" | "chlo" | "mhlo" if self.cursor.is("<") => {
                self.cursor.expect("<")?;
                let kind = self.cursor.word("the name of an enumeration")?;
                let Some(kind) = enumeration(kind) else {
                    return Err(self.cursor.unimplemented_at(start, format!("#{name}<{kind}> is unknown here")));
                };
                let value = self.enumerator(kind)?;
                self.cursor.expect(">")?;
                Ok(value)
            }
            "stablehlo.bounds" => {
                let bounds = self.bounds(["<", ">"])?;
                Ok(self.push(bounds))
            }
            "stablehlo.type_extensions" => {
                self.cursor.expect("<")?;
                self.cursor.expect("bounds")?;
                self.cursor.expect("=")?;
                let bounds = self.bounds(["[", "]"])?;
                self.cursor.expect(">")?;
                Ok(self.push(bounds))
            }
            "stablehlo.conv" => {
                let entries = self.convolution_dims_in_angles()?;
                Ok(self.compound(entries))
            }
            "stablehlo.dot"
            | "stablehlo.gather"
            | "stablehlo.scatter"
            | "stablehlo.dot_algorithm"
            | "stablehlo.ragged_dot" => {
                let entries = self.fields()?;
                Ok(self.compound(entries))
            }
            "stablehlo.channel_handle" => {
                let mut entries = self.fields()?;
                for (old, new) in [("handle", "channel_id"), ("type", "channel_type")] {
                    let (old, new) = (self.module.intern(old.as_bytes()), self.module.intern(new.as_bytes()));
                    entries.iter_mut().filter(|entry| entry.0 == old).for_each(|entry| entry.0 = new);
                }
                Ok(self.compound(entries))
            }
            "stablehlo.replica_group_mesh_axes" => self.mesh_groups(),
            "stablehlo.mesh" => self.mesh_of_attributes(),
            "stablehlo.mesh_axis" => self.mesh_axis(),
            "stablehlo.axis_ref" => self.axis_ref(),
            "stablehlo.output_operand_alias" => self.output_operand_alias(start),
            "stablehlo.result_accuracy" => self.result_accuracy(start),
            _ if name.starts_with("sdy.") || name == "sdy" && self.cursor.is("<") => {
                self.sharding_attribute(start, name)
            }
            _ if name.contains('.') => self.foreign(start, name),
            _ => Ok(self.alias(name, start)),
        }
    }

    /// Parses the name of an enumerator of `kind`.
    pub(super) fn enumerator(&mut self, kind: EnumKind) -> Result<AttrId> {
        let at = self.cursor.offset();
        let name = self.cursor.word("a value of the enumeration")?;
        match kind.names().iter().position(|&known| known == name) {
            Some(value) => Ok(self.push(Attribute::Enum(kind, value as u32))),
            None => Err(self.cursor.error_at(at, format!("`{name}` is not one of {}", kind.names().join(", ")))),
        }
    }

    /// Adds a compound attribute as a dictionary, which is split when the operation is complete.
    fn compound(&mut self, entries: Entries) -> AttrId {
        let entries = entries.into_iter().map(|(name, value)| (self.push(Attribute::String(name)), value)).collect();
        self.push(Attribute::Dictionary(entries))
    }

    /// Parses `<name = [1, 2], name = 3>`, optionally with a trailing comma.
    pub(super) fn fields(&mut self) -> Result<Entries> {
        self.cursor.expect("<")?;
        self.fields_up_to_angle()
    }

    /// Parses the entries of [`Reader::fields`] after the `<`.
    fn fields_up_to_angle(&mut self) -> Result<Entries> {
        self.entries_up_to(">", |reader| {
            let name = reader.cursor.word("a name")?;
            reader.cursor.expect("=")?;
            let value = if reader.cursor.is("[") { reader.integers(["[", "]"])? } else { reader.attribute()? };
            Ok((reader.module.intern(name.as_bytes()), value))
        })
    }

    fn output_operand_alias(&mut self, start: usize) -> Result<AttrId> {
        let (mut output, mut operand, mut operand_path) = (Box::default(), 0, Box::default());
        self.cursor.expect("<")?;
        self.entries_up_to(">", |reader| {
            let name = reader.cursor.word("a name")?;
            reader.cursor.expect("=")?;
            let path = |reader: &mut Self| -> Result<Box<[i64]>> {
                Ok(reader.list(["[", "]"], |reader| reader.cursor.integer("an index"))?.into())
            };
            match name {
                "output_tuple_indices" => output = path(reader)?,
                "operand_tuple_indices" => operand_path = path(reader)?,
                "operand_index" => {
                    let at = reader.cursor.offset();
                    let index = reader.cursor.integer("an index")?;
                    operand = i32::try_from(index)
                        .map_err(|_| reader.cursor.error_at(at, format!("operand index {index} is out of range")))?;
                }
                _ => return Err(reader.cursor.error_at(start, format!("an alias has no {name}"))),
            }
            Ok(())
        })?;
        Ok(self.push(Attribute::OutputOperandAlias { output, operand, operand_path }))
    }

    fn result_accuracy(&mut self, start: usize) -> Result<AttrId> {
        let (mut absolute, mut relative, mut ulps, mut mode) = (0, 0, 0, None);
        self.list(["<", ">"], |reader| {
            let name = reader.cursor.word("a name")?;
            reader.cursor.expect("=")?;
            let at = reader.cursor.offset();
            match name {
                "atol" | "rtol" => {
                    let text = reader.cursor.number()?;
                    let bits = reader.scalar(text, xla_hlo::ElementType::F64, at)?.to_bits(xla_hlo::ElementType::F64);
                    *(if name == "atol" { &mut absolute } else { &mut relative }) = bits;
                }
                "ulps" => ulps = reader.cursor.integer("a number of units")?,
                "mode" => {
                    let dialects = ["stablehlo", "mhlo"].map(|dialect| format!("#{dialect}.result_accuracy_mode"));
                    if !dialects.iter().any(|name| reader.cursor.eat(name)) {
                        return Err(reader.cursor.expected("`#stablehlo.result_accuracy_mode`"));
                    }
                    reader.cursor.expect("<")?;
                    mode = Some(reader.enumerator(EnumKind::ResultAccuracyMode)?);
                    reader.cursor.expect(">")?;
                }
                _ => return Err(reader.cursor.error_at(start, format!("an accuracy has no {name}"))),
            }
            Ok(())
        })?;
        let mode = mode.unwrap_or_else(|| self.push(Attribute::Enum(EnumKind::ResultAccuracyMode, 0)));
        Ok(self.push(Attribute::ResultAccuracy(Box::new(ResultAccuracy { absolute, relative, ulps, mode }))))
    }

    /// Parses an attribute of another dialect, of which only the name is kept.
    fn foreign(&mut self, start: usize, name: &'t str) -> Result<AttrId> {
        let foreign = match name.split_once('.').map_or(name, |(dialect, _)| dialect) {
            "mhlo" => "an attribute of mhlo",
            "chlo" => "an attribute of chlo",
            _ => return Err(self.cursor.unimplemented_at(start, format!("attribute #{name} is unknown here"))),
        };
        if self.cursor.eat("<") {
            self.cursor.skip_to_closing_angle()?;
            self.cursor.expect(">")?;
        }
        Ok(self.push(Attribute::Foreign(foreign)))
    }

    /// Parses `<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>` or `<raw input_batch_dimension = 0, ...>`.
    fn convolution_dims_in_angles(&mut self) -> Result<Entries> {
        self.cursor.expect("<")?;
        if self.cursor.eat("raw") {
            return self.fields_up_to_angle();
        }
        let entries = self.convolution_dims()?;
        self.cursor.expect(">")?;
        Ok(entries)
    }

    /// Parses `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
    pub(super) fn convolution_dims(&mut self) -> Result<Entries> {
        let mut entries = Entries::new();
        for (side, separator) in [("input", "x"), ("kernel", "->"), ("output", "")] {
            let at = self.cursor.offset();
            let letters = if side == "kernel" {
                [("i", "input_feature"), ("o", "output_feature")]
            } else {
                [("b", "batch"), ("f", "feature")]
            };
            let (mut spatial, mut place) = (Vec::new(), 0);
            self.list(["[", "]"], |reader| {
                if let Some((_, role)) = letters.iter().find(|(letter, _)| reader.cursor.eat(letter)) {
                    let name = reader.module.intern(format!("{side}_{role}_dimension").as_bytes());
                    let value = reader.push_integer(place);
                    entries.push((name, value));
                } else {
                    spatial.push((reader.cursor.digits("b, f, i, o or a spatial dimension")?, place));
                }
                place += 1;
                Ok(())
            })?;
            spatial.sort_unstable();
            if !spatial.iter().map(|&(number, _)| number).eq(0..spatial.len() as u64) {
                return Err(self
                    .cursor
                    .error_at(at, format!("the spatial dimensions of the {side} are not 0, 1, ...")));
            }
            let spatial: Vec<i64> = spatial.into_iter().map(|(_, place)| place).collect();
            let name = self.module.intern(format!("{side}_spatial_dimensions").as_bytes());
            let value = self.push_integers(&spatial);
            entries.push((name, value));
            if !separator.is_empty() && !self.cursor.eat_prefix(separator) {
                return Err(self.cursor.expected(&format!("`{separator}`")));
            }
        }
        Ok(entries)
    }
}

/// MHLO and CHLO attributes with the syntax of StableHLO's.
const SHARED: &[&str] = &[
    "bounds",
    "channel_handle",
    "conv",
    "dot",
    "dot_algorithm",
    "gather",
    "output_operand_alias",
    "ragged_dot",
    "result_accuracy",
    "scatter",
    "type_extensions",
];

fn enumeration(name: &str) -> Option<EnumKind> {
    Some(match name {
        "comparison_direction" => EnumKind::ComparisonDirection,
        "comparison_type" => EnumKind::ComparisonType,
        "custom_call_api_version" => EnumKind::CustomCallApiVersion,
        "fft_type" => EnumKind::FftType,
        "precision" => EnumKind::Precision,
        "rng_algorithm" => EnumKind::RngAlgorithm,
        "rng_distribution" => EnumKind::RngDistribution,
        "transpose" => EnumKind::Transpose,
        "result_accuracy_mode" => EnumKind::ResultAccuracyMode,
        _ => return None,
    })
}
