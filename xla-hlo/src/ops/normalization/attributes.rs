//! Text form of epsilons.

use super::Epsilon;
use crate::text::{AttributeCursor, AttributeValue, AttributeWriter};
use crate::{Error, Result};

impl AttributeValue for Epsilon {
    const WHAT: &'static str = "a number that an f32 can hold, such as 0.001";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        let number = cursor.number()?;
        let epsilon = number as f32;
        if epsilon.is_infinite() {
            return Err(Error::invalid_argument(format!("{number:e} is too large for an f32")));
        }
        Ok(Epsilon::new(epsilon))
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.float(self.get());
    }
}
