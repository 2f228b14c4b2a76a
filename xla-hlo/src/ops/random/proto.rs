//! Random bits in messages.

use super::{RngAlgorithm, RngBitGenerator};
use crate::proto::{ProtoAttributes, ProtoNumber, ProtoReader, ProtoWriter, proto_numbers};
use crate::{Opcode, Result};

proto_numbers! { RngAlgorithm: 0 => Default, 1 => ThreeFry, 2 => Philox }

impl ProtoAttributes for RngBitGenerator {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(RngBitGenerator { algorithm: ProtoReader::number("rng_algorithm", r.message.rng_algorithm)? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.rng_algorithm = self.algorithm.number();
        Ok(())
    }
}
