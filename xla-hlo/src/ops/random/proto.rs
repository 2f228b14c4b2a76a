//! Random number operations in protobuf.

use super::{Rng, RngAlgorithm, RngBitGenerator, RngDistribution, RngGetAndUpdateState, StochasticConvert};
use crate::proto::{ProtoAttributes, ProtoNumber, ProtoReader, ProtoWriter, proto_numbers, proto_without_attributes};
use crate::{Opcode, Result};

proto_without_attributes!(StochasticConvert);

proto_numbers! { RngAlgorithm: 0 => Default, 1 => ThreeFry, 2 => Philox }

proto_numbers! { RngDistribution: 1 => Uniform, 2 => Normal }

impl ProtoAttributes for RngBitGenerator {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(RngBitGenerator { algorithm: ProtoReader::number("rng_algorithm", r.message.rng_algorithm)? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.rng_algorithm = self.algorithm.number();
        Ok(())
    }
}

impl ProtoAttributes for Rng {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(Rng { distribution: ProtoReader::number("distribution", r.message.distribution)? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.distribution = self.distribution.number();
        Ok(())
    }
}

impl ProtoAttributes for RngGetAndUpdateState {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(RngGetAndUpdateState { delta: r.message.delta })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.delta = self.delta;
        Ok(())
    }
}
