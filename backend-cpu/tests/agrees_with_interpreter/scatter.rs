//! Tests of scatters of every kind.

use xla_tests::agreement::programs::{
    SCATTER_ARRANGEMENTS, SCATTER_POINTS, SCATTER_ROWS, scatter_of, scatters_far_out_of_range,
};

use crate::native;

const ADD: &str = "ROOT r = REAL[] add(a, b)";
#[test]
fn scatters_of_every_element_type() {
    for ty in ["pred", "s4", "u8", "s16", "s32", "u64", "f8e5m2", "bf16", "f16", "f32", "f64", "c64", "c128"] {
        let add = &ADD.replace("REAL", ty);
        let replace = &format!("ROOT r = {ty}[] copy(b)");
        let ordered = &format!("d = {ty}[] add(a, a)\n ROOT r = {ty}[] add(d, b)");
        for body in [add, replace, ordered] {
            if ty == "pred" && body != replace {
                continue;
            }
            native(&scatter_of(ty, body, ["7", "s32[40,1]", "40"], SCATTER_POINTS));
            native(&scatter_of(ty, body, ["7,37", "s64[40,1]", "40,37"], SCATTER_ROWS));
            native(&scatter_of(ty, body, ["7,37", "s8[40,1]", "40,23"], SCATTER_ROWS));
        }
    }
}

#[test]
fn scatters_of_every_arrangement() {
    let add = &ADD.replace("REAL", "f32");
    let large = [
        // Large enough for several threads.
        (["8", "s32[50000,1]", "50000"], SCATTER_POINTS),
        (["9,40", "s32[3000,1]", "3000,40"], SCATTER_ROWS),
        (["9,80", "s32[3000,1]", "3000,80"], SCATTER_ROWS),
        (
            ["90,7,3", "s32[300,90,1]", "300,90,2"],
            "update_window_dims={2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1}, index_vector_dim=2",
        ),
    ];
    for (shapes, attributes) in SCATTER_ARRANGEMENTS.iter().copied().chain(large) {
        native(&scatter_of("f32", add, shapes, attributes));
    }
}

#[test]
fn scatters_by_indices_of_every_type() {
    let add = &ADD.replace("REAL", "f32");
    for ty in ["s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"] {
        native(&scatter_of("f32", add, ["5", &format!("{ty}[40]"), "40"], SCATTER_POINTS));
        native(&scatter_of("f32", add, ["5,3", &format!("{ty}[40,1]"), "40,3"], SCATTER_ROWS));
    }
}

#[test]
fn scatters_to_places_far_out_of_range() {
    scatters_far_out_of_range().iter().for_each(|program| native(program));
}

#[test]
fn scatters_of_several_arrays_of_different_types() {
    for (places, update) in [("s32[20,1]", "20"), ("s32[0,1]", "0")] {
        native(&format!(
            "HloModule m
            all {{
              a = pred[] parameter(0)
              b = s4[] parameter(1)
              c = bf16[] parameter(2)
              d = c64[] parameter(3)
              e = pred[] parameter(4)
              f = s4[] parameter(5)
              g = bf16[] parameter(6)
              h = c64[] parameter(7)
              x = pred[] xor(a, e)
              y = s4[] select(e, f, b)
              z = bf16[] add(c, g)
              w = c64[] multiply(d, h)
              ROOT t = (pred[], s4[], bf16[], c64[]) tuple(x, y, z, w)
            }}
            ENTRY main {{
              a = pred[6] parameter(0)
              b = s4[6] parameter(1)
              c = bf16[6] parameter(2)
              d = c64[6] parameter(3)
              i = {places} parameter(4)
              e = pred[{update}] parameter(5)
              f = s4[{update}] parameter(6)
              g = bf16[{update}] parameter(7)
              h = c64[{update}] parameter(8)
              ROOT t = (pred[6], s4[6], bf16[6], c64[6]) scatter(a, b, c, d, i, e, f, g, h), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=all
            }}"
        ));
    }
}
