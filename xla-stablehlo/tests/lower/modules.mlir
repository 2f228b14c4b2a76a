// Functions without a module: one is made around them.
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @helper(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
// An inner module has functions and names of its own.
module @outer {
  module @inner {
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = func.call @other(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    func.func private @other(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }
  }
  builtin.module attributes {a = 1 : i64} { }
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.negate %x : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
// -----
// A function of an inner module is out of reach.
module {
  module @inner { func.func private @other(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> } }
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = func.call @other(%x) : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
// -----
// Two modules: neither is the program.
module @a { func.func @main() { return } }
module @b { }
// -----
// Functions that are declared, in both forms.
module {
  func.func private @unused(tensor<4xf32>) -> tensor<4xf32>
  "func.func"() <{function_type = (tensor<4xf32>) -> (), sym_name = "generic", sym_visibility = "private"}> ({ }) : () -> ()
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
}
// -----
// A declared function is called.
func.func private @used(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @used(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// The entry is declared.
func.func private @main(tensor<4xf32>) -> tensor<4xf32>
