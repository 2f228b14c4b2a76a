//! Text form of dimension labels, convolution kinds and sparsity.

use super::{ConvolutionDims, ConvolutionKind, Sparsity, SparsityConfig};
use crate::ops::checks::ensure;
use crate::text::{AttributeCursor, AttributeValue, AttributeWriter, TokenKind, attribute_words};
use crate::{Error, Result};

attribute_words! {
    ConvolutionKind, "fprop, dgrad, wgrad or unset":
    "unset" => ConvolutionKind::Unset,
    "fprop" => ConvolutionKind::Forward,
    "dgrad" => ConvolutionKind::InputGradient,
    "wgrad" => ConvolutionKind::KernelGradient,
}

impl AttributeValue for ConvolutionDims {
    const WHAT: &'static str =
        "labels of the input's, the kernel's and the result's dimensions such as b01f_01io->b01f";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        let text = cursor.expect(TokenKind::DimLabels, Self::WHAT)?;
        let parts = text.split_once('_').and_then(|(input, rest)| Some((input, rest.split_once("->")?)));
        let (input, (kernel, output)) = parts.ok_or_else(|| cursor.unexpected(Self::WHAT))?;
        let input = Labels::read(input, "input", ['b', 'f'])?;
        let kernel = Labels::read(kernel, "kernel", ['i', 'o'])?;
        let output = Labels::read(output, "result", ['b', 'f'])?;
        ensure!(
            input.spatial.len() == kernel.spatial.len() && input.spatial.len() == output.spatial.len(),
            "input, kernel and result must have the same number of spatial dimensions, but in {text} they have {}, {} and {}",
            input.spatial.len(),
            kernel.spatial.len(),
            output.spatial.len()
        );
        let ([input_batch, input_feature], input_spatial) = (input.named, input.spatial);
        let ([kernel_input_feature, kernel_output_feature], kernel_spatial) = (kernel.named, kernel.spatial);
        let ([output_batch, output_feature], output_spatial) = (output.named, output.spatial);
        Ok(ConvolutionDims {
            input_batch,
            input_feature,
            input_spatial,
            kernel_input_feature,
            kernel_output_feature,
            kernel_spatial,
            output_batch,
            output_feature,
            output_spatial,
        })
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        write_labels(w, [('b', self.input_batch), ('f', self.input_feature)], &self.input_spatial);
        w.push("_");
        write_labels(w, [('i', self.kernel_input_feature), ('o', self.kernel_output_feature)], &self.kernel_spatial);
        w.push("->");
        write_labels(w, [('b', self.output_batch), ('f', self.output_feature)], &self.output_spatial);
    }
}

/// Dimension labels of one array.
struct Labels {
    /// Positions of the two letters.
    named: [usize; 2],
    /// Positions of the digits 0, 1 and so on.
    spatial: Vec<usize>,
}

impl Labels {
    fn read(text: &str, array: &str, letters: [char; 2]) -> Result<Labels> {
        ensure!(
            !text.contains('?'),
            "the {array}'s labels {text} leave dimensions out with `?`, which only custom calls may do"
        );
        let place = |label: char| {
            let mut places = text.char_indices().filter(|&(_, c)| c == label).map(|(i, _)| i);
            match (places.next(), places.next()) {
                (Some(place), None) => Ok(place),
                (Some(_), Some(_)) => {
                    Err(Error::invalid_argument(format!("the {array}'s labels {text} have `{label}` twice")))
                }
                (None, _) => Err(Error::invalid_argument(format!("the {array}'s labels {text} lack `{label}`"))),
            }
        };
        let named = [place(letters[0])?, place(letters[1])?];
        let spatial = ('0'..='9').take(text.len() - 2).map(place).collect::<Result<Vec<_>>>()?;
        ensure!(
            spatial.len() + 2 == text.len(),
            "the {array}'s labels {text} name more than ten spatial dimensions, but each label is one digit"
        );
        Ok(Labels { named, spatial })
    }
}

fn write_labels(w: &mut AttributeWriter<'_>, named: [(char, usize); 2], spatial: &[usize]) {
    for d in 0..spatial.len() + 2 {
        match (named.iter().find(|n| n.1 == d), spatial.iter().position(|&s| s == d)) {
            (Some((label, _)), _) => w.display(label),
            (None, Some(number)) => w.display(number),
            (None, None) => w.push("?"),
        }
    }
}

impl AttributeValue for SparsityConfig {
    const WHAT: &'static str = "the sparsity of operands such as {lhs={sparsity=2x4 dimension=1 stride=1} rhs={sparsity=2x4 dimension=0 stride=1}}";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        const FIELD: &str = "`}` or one of lhs=, rhs=";
        cursor.expect(TokenKind::LeftBrace, "`{`")?;
        let mut config = SparsityConfig::default();
        while !cursor.accept(TokenKind::RightBrace) {
            match cursor.expect(TokenKind::AttributeName, FIELD)? {
                "lhs" => config.lhs = Some(read_sparsity(cursor)?),
                "rhs" => config.rhs = Some(read_sparsity(cursor)?),
                other => return Err(Error::invalid_argument(format!("expected {FIELD}, found {other}="))),
            }
        }
        Ok(config)
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        let operands: Vec<_> = [("lhs", self.lhs), ("rhs", self.rhs)]
            .into_iter()
            .filter_map(|(name, sparsity)| Some((name, sparsity?)))
            .collect();
        w.push("{");
        w.join(&operands, " ", |w, (name, s)| {
            let Sparsity { kept, block, dimension, stride } = s;
            w.display(format_args!("{name}={{sparsity={kept}x{block} dimension={dimension} stride={stride}}}"));
        });
        w.push("}");
    }
}

fn read_sparsity(cursor: &mut AttributeCursor<'_>) -> Result<Sparsity> {
    const FIELD: &str = "`}` or one of sparsity=, dimension=, stride=";
    cursor.expect(TokenKind::LeftBrace, "`{`")?;
    let mut sparsity = Sparsity { kept: 0, block: 0, dimension: 0, stride: 0 };
    while !cursor.accept(TokenKind::RightBrace) {
        match cursor.expect(TokenKind::AttributeName, FIELD)? {
            "sparsity" => {
                let text = cursor.expect(TokenKind::Sizes, "a sparsity such as 2x4")?;
                let sizes =
                    text.split_once('x').and_then(|(kept, block)| Some((kept.parse().ok()?, block.parse().ok()?)));
                (sparsity.kept, sparsity.block) = sizes
                    .ok_or_else(|| Error::invalid_argument(format!("`{text}` is not a sparsity, which is like 2x4")))?;
            }
            "dimension" => sparsity.dimension = cursor.integer()?,
            "stride" => sparsity.stride = cursor.integer()?,
            other => return Err(Error::invalid_argument(format!("expected {FIELD}, found {other}="))),
        }
    }
    Ok(sparsity)
}
