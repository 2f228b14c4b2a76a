//! Fourier transforms in protobuf.

use super::{Fft, FftType};
use crate::proto::numbers::{indices, longs};
use crate::proto::{ProtoAttributes, ProtoNumber, ProtoReader, ProtoWriter, proto_numbers};
use crate::{Opcode, Result};

proto_numbers! { FftType: 0 => Fft, 1 => Ifft, 2 => Rfft, 3 => Irfft }

impl ProtoAttributes for Fft {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(Fft {
            fft_type: ProtoReader::number("fft_type", r.message.fft_type)?,
            fft_length: indices("fft_length", &r.message.fft_length)?,
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.fft_type = self.fft_type.number();
        w.message.fft_length = longs("fft_length", &self.fft_length)?;
        Ok(())
    }
}
