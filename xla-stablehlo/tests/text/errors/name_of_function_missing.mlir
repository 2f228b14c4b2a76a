module @m {
  func.func public (%a: tensor<4xf32>) {
    return
  }
}
