//! Math functions against wide references, in ulp.

use xla_llvm::lanes::Scalar;
use xla_llvm::math;
use xla_llvm::target::Target;

use crate::kernel::Kernel;

/// Distance of `got` from the true value in units of the last place of the true value, for f32.
fn ulp32(got: f32, want: f64) -> f64 {
    if want.is_nan() || got.is_nan() {
        return if want.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = want as f32;
    if rounded.is_infinite() || got.is_infinite() {
        return if rounded == got { 0.0 } else { f64::INFINITY };
    }
    if want == 0.0 || got == 0.0 {
        let signs = got.is_sign_negative() == want.is_sign_negative();
        if got == 0.0 && want.abs() < 1e-45 && signs {
            return 0.0;
        }
    }
    let exponent = (want.abs().to_bits() >> 52) as i32 - 1023;
    let ulp = 2f64.powi(exponent.max(-126) - 23);
    (f64::from(got) - want).abs() / ulp
}

#[test]
fn exp_f32() {
    let target = Target::host().unwrap();
    let inputs: Vec<f32> = (0..=u32::MAX).step_by(997).map(f32::from_bits).collect();
    let mut outputs = Vec::new();
    for width in [1, target.lanes(32)] {
        let kernel = Kernel::new(&target, width, &[Scalar::F32], Scalar::F32, |_, x| math::exp(x[0]));
        outputs.push(kernel.run::<f32, f32>(&[&inputs]));
    }
    let mut worst = (0.0, 0.0);
    for (i, &x) in inputs.iter().enumerate() {
        assert_eq!(outputs[0][i].to_bits(), outputs[1][i].to_bits(), "x = {x:e}");
        let error = ulp32(outputs[0][i], libm::exp(f64::from(x)));
        if error > worst.0 {
            worst = (error, x);
        }
    }
    assert!(worst.0 < 0.9, "{worst:?}");
}
