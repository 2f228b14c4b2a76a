//! Text form of generators and distributions.

use super::{RngAlgorithm, RngDistribution};
use crate::text::attribute_words;

attribute_words! {
    any case RngAlgorithm, "rng_default, rng_three_fry or rng_philox":
    "rng_default" => RngAlgorithm::Default,
    "rng_three_fry" => RngAlgorithm::ThreeFry,
    "rng_philox" => RngAlgorithm::Philox,
}

attribute_words! {
    any case RngDistribution, "rng_uniform or rng_normal":
    "rng_uniform" => RngDistribution::Uniform,
    "rng_normal" => RngDistribution::Normal,
}
