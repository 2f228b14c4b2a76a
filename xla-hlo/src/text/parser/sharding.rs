//! Parser of shardings.

use super::super::diagnostic::{Failure, Parse, shown};
use super::super::lexer::{Token, TokenKind};
use super::super::tokens::Tokens;
use crate::{DeviceList, LeafSharding, Metadata, ShardGroup, Sharding, ShardingKind, SubgroupKind, TiledSharding};

const WHAT: &str = "a sharding such as {replicated} or {devices=[2,1]0,1}";

impl Tokens<'_> {
    /// Parses a sharding; nested braces denote the sharding of a tuple.
    pub fn sharding(&mut self) -> Parse<Sharding> {
        match self.peek_second().kind {
            TokenKind::LeftBrace | TokenKind::RightBrace => {
                self.braced(WHAT, Tokens::leaf_sharding).map(Sharding::Tuple)
            }
            _ => self.leaf_sharding().map(Sharding::Leaf),
        }
    }

    fn leaf_sharding(&mut self) -> Parse<LeafSharding> {
        let mut leaf = LeafSharding::default();
        let first = self.peek_second();
        if first.kind == TokenKind::Word && matches!(self.text(first), "mesh" | "maximal_mesh") {
            leaf.kind = ShardingKind::Named(self.group_text(WHAT)?);
            return Ok(leaf);
        }
        let at = self.at();
        self.expect(TokenKind::LeftBrace, WHAT)?;
        let mut kind = None;
        while !self.accept(TokenKind::RightBrace) {
            let item = self.bump();
            match (item.kind, self.text(item)) {
                (TokenKind::Word, "shard_as") => leaf.group = Some(ShardGroup::As(self.integer("a group")?)),
                (TokenKind::Word, "shard_like") => leaf.group = Some(ShardGroup::Like(self.integer("a group")?)),
                (TokenKind::AttributeName, "metadata") => leaf.metadata = self.metadata_list()?,
                (TokenKind::Word, "last_tile_dim_replicate") => tiled(&mut kind, item)?.replicate_last = true,
                (TokenKind::AttributeName, "last_tile_dims") => {
                    let dims = self.braced("tile dimension kinds in braces", Tokens::subgroup_kind)?;
                    tiled(&mut kind, item)?.last_tile_dims = dims;
                }
                (_, text) => {
                    if kind.is_some() {
                        return Err(Failure::invalid(
                            item.start,
                            format!("unexpected `{}` after the sharding's kind", shown(text)),
                        ));
                    }
                    kind = Some(self.sharding_kind(item)?);
                }
            }
        }
        leaf.kind = kind.ok_or_else(|| Failure::invalid(at, format!("expected {WHAT}")))?;
        Ok(leaf)
    }

    /// Parses the kind of sharding that starts with `item`, the token just consumed.
    fn sharding_kind(&mut self, item: Token) -> Parse<ShardingKind> {
        match (item.kind, self.text(item)) {
            (TokenKind::Word, "replicated") => Ok(ShardingKind::Replicated),
            (TokenKind::Word, "manual") => Ok(ShardingKind::Manual),
            (TokenKind::Word, "unknown") => Ok(ShardingKind::Unknown),
            (TokenKind::Word, "unreduced") => Ok(ShardingKind::Unreduced),
            (TokenKind::Word, "maximal") => {
                if self.attribute_name("`device=`")? != "device" {
                    return Err(self.unexpected("`device=`"));
                }
                Ok(ShardingKind::Maximal(self.integer("a device")?))
            }
            (TokenKind::AttributeName, "devices") => self.tiled_sharding(item.start).map(ShardingKind::Tiled),
            (_, text) => Err(Failure::invalid(item.start, format!("expected {WHAT}, found `{}`", shown(text)))),
        }
    }

    /// Parses `[2,2]0,1,2,3` or `[4,2]<=[2,4]T(1,0)`.
    fn tiled_sharding(&mut self, at: usize) -> Parse<TiledSharding> {
        let tile_dims = self.bracketed_integers("a grid of devices such as [2,4]")?;
        let (devices, count) = if self.accept(TokenKind::LessEqual) {
            let reshape = self.bracketed_integers("the shape of an iota such as [2,4]")?;
            let transpose = self.transposition(reshape.len())?;
            let count = product(&reshape);
            (DeviceList::Iota { reshape, transpose }, count)
        } else {
            let mut listed = vec![self.integer("a device")?];
            while self.accept(TokenKind::Comma) {
                listed.push(self.integer("a device")?);
            }
            let count = i64::try_from(listed.len()).ok();
            (DeviceList::Listed(listed), count)
        };
        if product(&tile_dims) != count || count.is_none() {
            return Err(Failure::invalid(at, "the grid of devices and the list of devices have different sizes"));
        }
        Ok(TiledSharding { tile_dims, devices, replicate_last: false, last_tile_dims: Vec::new() })
    }

    /// Parses `T(1,0)`, or nothing.
    fn transposition(&mut self, rank: usize) -> Parse<Vec<usize>> {
        let at = self.at();
        if !self.accept_word("T") {
            return Ok(Vec::new());
        }
        let dim = |t: &mut Self| t.unsigned("a dimension");
        let dims = self.list(TokenKind::LeftParen, TokenKind::RightParen, "`(`", dim)?;
        let mut sorted = dims.clone();
        sorted.sort_unstable();
        if sorted.into_iter().eq(0..rank) {
            return Ok(dims);
        }
        Err(Failure::invalid(at, format!("the transposition must name each of {rank} dimensions once")))
    }

    fn subgroup_kind(&mut self) -> Parse<SubgroupKind> {
        self.choice(&[
            ("replicated", SubgroupKind::Replicated),
            ("manual", SubgroupKind::Manual),
            ("unreduced", SubgroupKind::Unreduced),
        ])
    }

    /// Parses `{op_name="a"}` or `{{op_name="a"}, {op_name="b"}}`.
    fn metadata_list(&mut self) -> Parse<Vec<Metadata>> {
        if self.peek_second().kind == TokenKind::LeftBrace {
            return self.braced("metadata in braces", Tokens::metadata);
        }
        Ok(vec![self.metadata()?])
    }
}

/// Returns the tiled sharding that `item` refines.
fn tiled(kind: &mut Option<ShardingKind>, item: Token) -> Parse<&mut TiledSharding> {
    match kind {
        Some(ShardingKind::Tiled(tiled)) => Ok(tiled),
        _ => Err(Failure::invalid(item.start, "tile dimensions are for shardings over devices=[...] written before")),
    }
}

fn product(dims: &[i64]) -> Option<i64> {
    dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d))
}
