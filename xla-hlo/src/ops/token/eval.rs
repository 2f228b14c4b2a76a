//! Evaluator of transfers. It rejects all of them, because it has no peer on the host or on other devices.

use super::Transfer;
use crate::ops::OpRules as _;
use crate::{Error, Literal, Result};

pub(super) fn transfer(op: &Transfer) -> Result<Literal> {
    Err(Error::unimplemented(format!(
        "{} cannot be run: there are no queues to the host and no links between devices",
        op.opcode()
    )))
}
