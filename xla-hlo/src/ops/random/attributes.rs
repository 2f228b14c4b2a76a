//! The text of generators.

use super::RngAlgorithm;
use crate::text::attribute_words;

attribute_words! {
    RngAlgorithm, "rng_default, rng_three_fry or rng_philox":
    "rng_default" => RngAlgorithm::Default,
    "rng_three_fry" => RngAlgorithm::ThreeFry,
    "rng_philox" => RngAlgorithm::Philox,
}
