//! Text form of precisions and algorithms.

use super::{DotAlgorithm, Precision};
use crate::Result;
use crate::text::{AttributeCursor, AttributeValue, AttributeWriter, attribute_words};

attribute_words! {
    any case Precision, "default, high or highest":
    "default" => Precision::Default,
    "high" => Precision::High,
    "highest" => Precision::Highest,
}

impl AttributeValue for Vec<Precision> {
    const WHAT: &'static str = "a list such as {highest,default}";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.braced(Precision::read)
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.push("{");
        w.join(self, ",", |w, p| p.write(w));
        w.push("}");
    }
}

impl AttributeValue for DotAlgorithm {
    const WHAT: &'static str = "an algorithm such as dot_bf16_bf16_f32";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        let names: Vec<_> = DotAlgorithm::ALL.iter().map(|a| (a.name(), *a)).collect();
        cursor.choice_in_any_case(&names)
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.push(self.name());
    }
}
