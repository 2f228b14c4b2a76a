//! The one symbol of a plugin.

/// Makes the crate where it stands a PJRT plugin, if that is built as a `cdylib`: defines the function `GetPjrtApi`
/// over the platforms of a registry, which a `fn() -> PlatformRegistry` makes.
///
/// ```
/// fn platforms() -> xla_service::PlatformRegistry {
///     let mut registry = xla_service::PlatformRegistry::new();
///     registry.register(xla_service::interpreter::platform());
///     registry
/// }
///
/// xla_pjrt::plugin!(platforms);
/// ```
#[macro_export]
macro_rules! plugin {
    ($platforms:expr) => {
        /// The PJRT C API of this plugin.
        // SAFETY: the C API names this symbol, and a library has one plugin.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the C API's name")]
        pub extern "C" fn GetPjrtApi() -> &'static $crate::PjrtApi {
            $crate::api($platforms)
        }
    };
}
