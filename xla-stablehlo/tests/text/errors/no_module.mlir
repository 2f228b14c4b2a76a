func @main() { return }
