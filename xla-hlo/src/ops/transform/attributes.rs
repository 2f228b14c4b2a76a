//! Text form of Fourier transforms.

use super::FftType;
use crate::text::attribute_words;

attribute_words! {
    FftType, "FFT, IFFT, RFFT or IRFFT":
    "FFT" => FftType::Fft,
    "IFFT" => FftType::Ifft,
    "RFFT" => FftType::Rfft,
    "IRFFT" => FftType::Irfft,
}
