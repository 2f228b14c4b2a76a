module @m {
  func.func private @main(tensor<4xf32>)
}
