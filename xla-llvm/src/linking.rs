//! Linking of modules of one context, each for a different target, into one module.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use inkwell::module::{Linkage, Module};
use inkwell::values::{BasicValueEnum, GlobalValue};
use xla_hlo::{Error, Result};

/// Links modules into the first one. Functions keep their processors and features. Functions whose names contain a dot
/// (which no C function's does) become internal. Equal private constants are merged.
pub(crate) fn link<'ctx>(modules: Vec<Module<'ctx>>) -> Result<Module<'ctx>> {
    let mut modules = modules.into_iter();
    let whole = modules.next().ok_or_else(|| Error::internal("there is no module to link"))?;
    for module in modules {
        let refused = |reason| Error::internal(format!("LLVM cannot link modules: {reason}"));
        whole.link_in_module(module).map_err(refused)?;
    }
    for function in whole.get_functions() {
        let name = function.get_name().to_string_lossy();
        if function.count_basic_blocks() > 0 && name.contains('.') {
            function.set_linkage(Linkage::Internal);
        }
    }
    merge_constants(&whole);
    Ok(whole)
}

/// Replaces equal private constants by the first one.
fn merge_constants(module: &Module<'_>) {
    let is_mergeable = |global: &GlobalValue<'_>| global.is_constant() && global.get_linkage() == Linkage::Private;
    let mut known: HashMap<BasicValueEnum<'_>, GlobalValue<'_>> = HashMap::new();
    for global in module.get_globals().filter(is_mergeable) {
        // Constants of one context are equal if they are identical.
        let Some(value) = global.get_initializer() else { continue };
        match known.entry(value) {
            Entry::Vacant(place) => {
                place.insert(global);
            }
            Entry::Occupied(place) => {
                let first = place.get();
                first.set_alignment(first.get_alignment().max(global.get_alignment()));
                global.as_pointer_value().replace_all_uses_with(first.as_pointer_value());
                // Without uses it is not emitted; deletion during the iteration would not be safe.
                global.set_linkage(Linkage::AvailableExternally);
            }
        }
    }
}
