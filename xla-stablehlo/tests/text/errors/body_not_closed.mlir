module @m {
  func.func @main() {
    return
