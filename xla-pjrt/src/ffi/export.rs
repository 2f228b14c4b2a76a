//! The only exported symbol of a plugin.

/// Makes the enclosing crate a PJRT plugin, if it is built as a `cdylib`: defines the function `GetPjrtApi` for the
/// platforms of the registry that a `fn() -> PlatformRegistry` creates.
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
        /// Returns the PJRT C API of this plugin.
        // SAFETY: the C API prescribes the name of this symbol, and a library contains one plugin.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the C API's name")]
        pub extern "C" fn GetPjrtApi() -> &'static $crate::PjrtApi {
            $crate::api($platforms)
        }
    };
}
