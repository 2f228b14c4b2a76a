//! Shardings by mesh axes: text in a module, fields in protobuf.

use super::messages::{
    AxisRefProto, DimensionShardingProto, IotaTransformProto, MeshAxisProto, MeshProto, NamedShardingProto,
    SubAxisProto,
};
use super::metadata::Payloads;
use super::numbers::index;
use crate::text::{Failure, Parse, TokenKind, Tokens, print_metadata, quoted};
use crate::{Error, Metadata, Result};

/// Names of the axis lists that may follow the dimensions: replicated axes, axes with partial values, and axes that the
/// program handles itself.
const LISTS: [&str; 3] = ["replicated", "unreduced", "manual"];

/// Names of the reductions of partial values, indexed by their number.
const REDUCTIONS: [&str; 3] = ["", "max", "min"];

/// Returns the text of a sharding: `{mesh['x'=2,'y'=4], [{'x'}, {'y':(1)2, ?}], replicated={'y'}}`.
pub(super) fn read(proto: &NamedShardingProto, payloads: &Payloads) -> Result<String> {
    let none = MeshProto::default();
    let mesh = proto.mesh.as_ref().unwrap_or(&none);
    if let ([], [device]) = (&mesh.axes[..], &mesh.device_ids[..]) {
        return Ok(format!("{{maximal_mesh[device_id={device}]}}"));
    }
    let mut parts = vec![mesh_text(mesh)];
    let lists = [&proto.replicated_axes, &proto.unreduced_axes, &proto.manual_axes];
    let given: Vec<usize> = (0..LISTS.len()).filter(|&i| !lists[i].is_empty()).collect();
    match given[..] {
        [] if proto.dim_shardings.is_empty() => parts.push(LISTS[0].to_string()),
        [one] if proto.dim_shardings.is_empty() && is_whole(lists[one], mesh) => parts.push(LISTS[one].to_string()),
        _ => {
            let dims = proto.dim_shardings.iter().map(|dim| dimension_text(dim, mesh)).collect::<Result<Vec<_>>>()?;
            parts.push(format!("[{}]", dims.join(", ")));
            for i in given {
                let reduction = if i == 1 { reduction_word(proto.reduction_op)? } else { "" };
                parts.push(format!("{}={reduction}{{{}}}", LISTS[i], axes_text(lists[i], mesh)?.join(", ")));
            }
        }
    }
    if !proto.metadata.is_empty() {
        let metadata = proto.metadata.iter().map(|m| payloads.read(m.clone()).map(|m| print_metadata(&m)));
        parts.push(format!("metadata={{{}}}", metadata.collect::<Result<Vec<_>>>()?.join(", ")));
    }
    Ok(format!("{{{}}}", parts.join(", ")))
}

/// Whether the list consists of all axes in order, each of them whole.
fn is_whole(list: &[AxisRefProto], mesh: &MeshProto) -> bool {
    let whole = |(i, axis): (usize, &AxisRefProto)| axis.mesh_axis_index == i as i64 && axis.sub_axis_info.is_none();
    list.len() == mesh.axes.len() && list.iter().enumerate().all(whole)
}

fn reduction_word(number: i32) -> Result<&'static str> {
    let word = usize::try_from(number).ok().and_then(|i| REDUCTIONS.get(i)).copied();
    word.ok_or_else(|| Error::invalid_argument(format!("reduction_op is {number}, which has no meaning here")))
}

fn mesh_text(mesh: &MeshProto) -> String {
    let list = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let axes: Vec<String> = mesh.axes.iter().map(|a| format!("{}={}", axis_name(&a.name), a.size)).collect();
    let device_ids = if let Some(iota) = &mesh.iota_transform {
        let transpose = match &iota.transpose_perm[..] {
            [] | [_] => String::new(),
            perm => format!("T({})", list(perm)),
        };
        format!(", device_ids=([{}]{transpose})", list(&iota.reshape_dims))
    } else if !mesh.device_ids.is_empty() {
        format!(", device_ids=({})", list(&mesh.device_ids))
    } else {
        String::new()
    };
    format!("mesh[{}]{device_ids}", axes.join(","))
}

/// Quotes the name of an axis, with single quotes if they suffice.
fn axis_name(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '\'' | '"' | '\\'));
    if plain { format!("'{name}'") } else { quoted(name) }
}

fn axes_text(axes: &[AxisRefProto], mesh: &MeshProto) -> Result<Vec<String>> {
    axes.iter().map(|axis| axis_text(axis, mesh)).collect()
}

fn axis_text(axis: &AxisRefProto, mesh: &MeshProto) -> Result<String> {
    let named = mesh.axes.get(index("mesh_axis_index", axis.mesh_axis_index)?);
    let named = named.ok_or_else(|| {
        let (i, count) = (axis.mesh_axis_index, mesh.axes.len());
        Error::invalid_argument(format!("mesh_axis_index is {i}, the mesh has {count} axes"))
    })?;
    let name = axis_name(&named.name);
    Ok(match &axis.sub_axis_info {
        Some(part) => format!("{name}:({}){}", part.pre_size, part.size),
        None => name,
    })
}

fn dimension_text(dim: &DimensionShardingProto, mesh: &MeshProto) -> Result<String> {
    let mut items = axes_text(&dim.axes, mesh)?;
    if !dim.is_closed {
        items.push("?".to_string());
    }
    Ok(format!("{{{}}}", items.join(", ")))
}

/// Writes a sharding from its text in a module.
pub(super) fn write(text: &str, payloads: &mut Payloads) -> Result<NamedShardingProto> {
    let mut tokens = Tokens::over(text, 0, text.len());
    let (mut proto, metadata) = named(&mut tokens).map_err(|failure| failure.into_error(text))?;
    proto.metadata = metadata.iter().map(|m| payloads.write(m)).collect::<Result<_>>()?;
    Ok(proto)
}

/// Parses a whole sharding.
fn named(t: &mut Tokens<'_>) -> Parse<(NamedShardingProto, Vec<Metadata>)> {
    t.expect(TokenKind::LeftBrace, "`{`")?;
    let mut proto = NamedShardingProto::default();
    let mut metadata = Vec::new();
    if t.accept_word("maximal_mesh") {
        t.expect(TokenKind::LeftBracket, "`[`")?;
        t.attribute_name("`device_id=`")?;
        let device_ids = vec![t.integer("a device")?];
        t.expect(TokenKind::RightBracket, "`]`")?;
        proto.mesh = Some(MeshProto { device_ids, ..MeshProto::default() });
    } else {
        let mut mesh = mesh(t)?;
        while t.accept(TokenKind::Comma) {
            part(t, &mut mesh, &mut proto, &mut metadata)?;
        }
        proto.mesh = Some(mesh);
    }
    t.expect(TokenKind::RightBrace, "`}`")?;
    t.expect_end("the end of the sharding")?;
    Ok((proto, metadata))
}

/// Parses `mesh['x'=2,'y'=4]`; device ids are written inside, or after it like other parts.
fn mesh(t: &mut Tokens<'_>) -> Parse<MeshProto> {
    if !t.accept_word("mesh") {
        return Err(t.unexpected("a mesh such as mesh['x'=2]"));
    }
    let mut mesh = MeshProto::default();
    t.expect(TokenKind::LeftBracket, "`[` and axes")?;
    while t.kind() != TokenKind::RightBracket {
        if t.kind() == TokenKind::AttributeName {
            t.attribute_name("`device_ids=`")?;
            device_ids(t, &mut mesh)?;
        } else {
            let name = t.string("the quoted name of an axis")?;
            t.expect(TokenKind::Equals, "`=` and the size of the axis")?;
            mesh.axes.push(MeshAxisProto { name, size: t.integer("the size of an axis")? });
        }
        if !t.accept(TokenKind::Comma) {
            break;
        }
    }
    t.expect(TokenKind::RightBracket, "`]`")?;
    Ok(mesh)
}

/// Parses `(0,2,1,3)` or `([2,2]T(1,0))`.
fn device_ids(t: &mut Tokens<'_>, mesh: &mut MeshProto) -> Parse<()> {
    let numbers = |t: &mut Tokens<'_>| {
        t.list(TokenKind::LeftParen, TokenKind::RightParen, "numbers in parentheses", |t| t.integer("a number"))
    };
    if t.peek_second().kind != TokenKind::LeftBracket {
        mesh.device_ids = numbers(t)?;
        return Ok(());
    }
    t.expect(TokenKind::LeftParen, "`(`")?;
    let reshape_dims = t.bracketed_integers("the shape of an iota such as [2,4]")?;
    let transpose_perm = if t.accept_word("T") { numbers(t)? } else { (0..reshape_dims.len() as i64).collect() };
    t.expect(TokenKind::RightParen, "`)`")?;
    mesh.iota_transform = Some(IotaTransformProto { reshape_dims, transpose_perm });
    Ok(())
}

/// Parses one of the comma-separated parts after the mesh.
fn part(
    t: &mut Tokens<'_>,
    mesh: &mut MeshProto,
    proto: &mut NamedShardingProto,
    metadata: &mut Vec<Metadata>,
) -> Parse<()> {
    match t.kind() {
        TokenKind::LeftBracket => {
            let dimension = |t: &mut Tokens<'_>| dimension(t, mesh);
            proto.dim_shardings =
                t.list(TokenKind::LeftBracket, TokenKind::RightBracket, "dimensions in brackets", dimension)?;
        }
        TokenKind::Word => {
            let axes = (0..mesh.axes.len() as i64).map(|i| AxisRefProto { mesh_axis_index: i, sub_axis_info: None });
            match t.choice(&[(LISTS[0], 0), (LISTS[1], 1), (LISTS[2], 2)])? {
                0 => {}
                1 => proto.unreduced_axes = axes.collect(),
                _ => proto.manual_axes = axes.collect(),
            }
        }
        _ => match t.attribute_name("`device_ids=`, `replicated=`, `unreduced=`, `manual=` or `metadata=`")? {
            "device_ids" => device_ids(t, mesh)?,
            "replicated" => proto.replicated_axes = axes(t, mesh)?,
            "unreduced" => {
                if t.kind() == TokenKind::Word {
                    proto.reduction_op = t.choice(&[("max", 1), ("min", 2)])?;
                }
                proto.unreduced_axes = axes(t, mesh)?;
            }
            "manual" => proto.manual_axes = axes(t, mesh)?,
            "metadata" if t.peek_second().kind == TokenKind::LeftBrace => {
                *metadata = t.braced("metadata in braces", Tokens::metadata)?;
            }
            "metadata" => metadata.push(t.metadata()?),
            _ => return Err(t.unexpected("an attribute of a sharding over a mesh")),
        },
    }
    Ok(())
}

fn axes(t: &mut Tokens<'_>, mesh: &MeshProto) -> Parse<Vec<AxisRefProto>> {
    t.braced("axes in braces", |t| axis(t, mesh))
}

/// Parses `{'x', ?}`.
fn dimension(t: &mut Tokens<'_>, mesh: &MeshProto) -> Parse<DimensionShardingProto> {
    let item = |t: &mut Tokens<'_>| {
        if t.accept(TokenKind::Question) { Ok(None) } else { axis(t, mesh).map(Some) }
    };
    let items = t.braced("axes in braces", item)?;
    let is_closed = items.iter().all(Option::is_some);
    Ok(DimensionShardingProto { axes: items.into_iter().flatten().collect(), is_closed })
}

/// Parses `'x'` or `'y':(1)2`.
fn axis(t: &mut Tokens<'_>, mesh: &MeshProto) -> Parse<AxisRefProto> {
    let at = t.at();
    let name = t.string("the quoted name of an axis")?;
    let position = mesh.axes.iter().position(|axis| axis.name == name);
    let position = position.ok_or_else(|| Failure::invalid(at, "the mesh has no axis of this name"))?;
    let mut axis = AxisRefProto { mesh_axis_index: position as i64, sub_axis_info: None };
    if t.accept(TokenKind::Colon) {
        t.expect(TokenKind::LeftParen, "`(`")?;
        let pre_size = t.integer("a size")?;
        t.expect(TokenKind::RightParen, "`)`")?;
        axis.sub_axis_info = Some(SubAxisProto { pre_size, size: t.integer("a size")? });
    }
    Ok(axis)
}
