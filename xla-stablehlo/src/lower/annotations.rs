//! Annotations of operations, arguments and results: frontend attributes, and Shardy or GSPMD shardings.

use xla_hlo::proto::parse_sharding as parse_encoded_sharding;
use xla_hlo::sdy::{PerValue, attribute};
use xla_hlo::text::parse_sharding;
use xla_hlo::{Error, FrontendAttributes, LeafSharding, Result, Sharding};

use super::attributes::{Attributes, lookup};
use super::context::Lowering;
use super::{rule, sharding};
use crate::ir::{AttrId, Attribute, Module};

/// Lookup of attributes by name, for an operation, an argument or a result.
pub(super) trait Named {
    /// Returns the attribute with this name.
    fn named(&self, name: &str) -> Option<AttrId>;
}

impl Named for Attributes<'_> {
    fn named(&self, name: &str) -> Option<AttrId> {
        self.get(name)
    }
}

/// Attribute dictionary of an argument or result.
pub(super) struct Dictionary<'s>(pub &'s Module, pub AttrId);

impl Named for Dictionary<'_> {
    fn named(&self, name: &str) -> Option<AttrId> {
        lookup(self.0, self.1, name)
    }
}

/// Returns the entries of `mhlo.frontend_attributes`.
pub(super) fn frontend_attributes(module: &Module, named: &impl Named) -> Result<FrontendAttributes> {
    let Some(id) = named.named("mhlo.frontend_attributes") else { return Ok(FrontendAttributes::new()) };
    let wrong = || Error::invalid_argument("mhlo.frontend_attributes must be a dictionary of strings");
    let Attribute::Dictionary(entries) = &module.attributes[id] else { return Err(wrong()) };
    let text = |id| match &module.attributes[id] {
        Attribute::String(string) => String::from_utf8(module.strings[*string].to_vec()).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let complaint = format!("mhlo.frontend_attributes must be text, but one is not UTF-8 at byte {at}");
            Error::invalid_argument(complaint)
        }),
        _ => Err(wrong()),
    };
    entries.iter().map(|&(name, value)| Ok((text(name)?, text(value)?))).collect()
}

/// Annotations of an operation or a value.
#[derive(Default)]
pub(super) struct Annotated {
    pub frontend_attributes: FrontendAttributes,
    pub sharding: Option<Sharding>,
}

/// Returns the annotations of an operation. Its sharding covers each result.
pub(super) fn of_operation(lowering: &mut Lowering<'_>, attributes: Attributes<'_>) -> Result<Annotated> {
    let module = attributes.module;
    let mut annotated = Annotated::default();
    if module.operations[attributes.op].attributes.is_empty() {
        return Ok(annotated);
    }
    annotated.frontend_attributes = frontend_attributes(module, &attributes)?;
    if let Some(id) = attributes.get("sdy.sharding") {
        let list = named(lowering, sharding::per_value(module, id)?);
        let leaves = tiles(lowering, &list)?;
        let is_one = module.operations[attributes.op].results.len() == 1;
        annotated.frontend_attributes.insert(attribute::SHARDING.to_string(), list.to_string());
        annotated.sharding = match <[LeafSharding; 1]>::try_from(leaves) {
            Ok([leaf]) if is_one => Some(Sharding::Leaf(leaf)),
            Ok(leaf) => Some(Sharding::Tuple(leaf.to_vec())),
            Err(leaves) => Some(Sharding::Tuple(leaves)),
        };
    }
    if let Some(id) = attributes.get("sdy.sharding_rule") {
        annotated.frontend_attributes.insert(attribute::SHARDING_RULE.to_string(), rule::text(module, id)?);
    }
    if let Some(text) = gspmd(module, &attributes)? {
        annotated.sharding = Some(text);
    }
    Ok(annotated)
}

/// Returns the annotations of an argument.
pub(super) fn of_argument(lowering: &mut Lowering<'_>, dictionary: &Dictionary<'_>) -> Result<Annotated> {
    let module = dictionary.0;
    let frontend_attributes = frontend_attributes(module, dictionary)?;
    let mut annotated = Annotated { frontend_attributes, sharding: gspmd(module, dictionary)? };
    if let Some(id) = dictionary.named("sdy.sharding") {
        let sharding = sharding::with_name(&mut lowering.meshes, sharding::tensor(module, id)?);
        annotated.sharding = Some(Sharding::Leaf(sharding::tiles_of(&lowering.meshes, &sharding)?));
        annotated.frontend_attributes.insert(attribute::SHARDING.to_string(), format!("#sdy.sharding{sharding}"));
    }
    Ok(annotated)
}

/// Returns the sharding of a function result: Shardy's form if it has one, and the tile assignment.
pub(super) fn of_result(
    lowering: &mut Lowering<'_>,
    dictionary: &Dictionary<'_>,
) -> Result<(Option<PerValue>, Option<LeafSharding>)> {
    let module = dictionary.0;
    if let Some(id) = dictionary.named("sdy.sharding") {
        let list = named(lowering, PerValue(vec![sharding::tensor(module, id)?]));
        let tiles = tiles(lowering, &list)?.into_iter().next();
        return Ok((Some(list), tiles));
    }
    match gspmd(module, dictionary)? {
        Some(Sharding::Leaf(leaf)) => Ok((None, Some(leaf))),
        Some(Sharding::Tuple(_)) => {
            Err(Error::unimplemented("the sharding of a function result is a tuple, which is not supported"))
        }
        None => Ok((None, None)),
    }
}

/// Returns the sharding in `mhlo.sharding`, which holds text or an encoded `OpSharding`.
fn gspmd(module: &Module, named: &impl Named) -> Result<Option<Sharding>> {
    let Some(id) = named.named("mhlo.sharding") else { return Ok(None) };
    let Attribute::String(string) = module.attributes[id] else {
        return Err(Error::invalid_argument("mhlo.sharding must be a string"));
    };
    // The text form begins with a brace, which is not the first byte of any encoded `OpSharding` field.
    let parsed = match &module.strings[string][..] {
        bytes if bytes.trim_ascii_start().starts_with(b"{") => parse_sharding(&module.text(string)),
        bytes => parse_encoded_sharding(bytes),
    };
    parsed.map(Some).map_err(|error| error.context("mhlo.sharding"))
}

/// Replaces inline meshes in shardings by named ones.
pub(super) fn named(lowering: &mut Lowering<'_>, list: PerValue) -> PerValue {
    PerValue(list.0.into_iter().map(|sharding| sharding::with_name(&mut lowering.meshes, sharding)).collect())
}

/// Converts shardings over named meshes to tile assignments.
fn tiles(lowering: &Lowering<'_>, list: &PerValue) -> Result<Vec<LeafSharding>> {
    list.0.iter().map(|sharding| sharding::tiles_of(&lowering.meshes, sharding)).collect()
}
