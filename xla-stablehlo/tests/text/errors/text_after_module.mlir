module @m {
}
module @n {
}
