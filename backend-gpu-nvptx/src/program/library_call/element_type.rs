//! Element types by name, for `#[serde(with)]`.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};
use xla_hlo::ElementType;

pub fn serialize<S: Serializer>(element: &ElementType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(element.name())
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ElementType, D::Error> {
    let name = String::deserialize(deserializer)?;
    ElementType::from_name(&name).ok_or_else(|| D::Error::custom(format!("element type {name:?} does not exist")))
}
