module @m {
}
}
