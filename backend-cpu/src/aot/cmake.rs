//! `NAME.cmake`: the program as a CMake target for other projects to link.

/// Returns the CMake file of the program `name`. It is placed next to the object and the header.
pub(super) fn text(name: &str) -> String {
    format!(
        "# include(.../{name}.cmake), then target_link_libraries(app PRIVATE {name}).\n\
         if(NOT TARGET {name})\n  \
           add_library({name} INTERFACE)\n  \
           target_link_libraries({name} INTERFACE \"${{CMAKE_CURRENT_LIST_DIR}}/{name}.o\")\n  \
           target_include_directories({name} INTERFACE \"${{CMAKE_CURRENT_LIST_DIR}}\")\n\
         endif()\n"
    )
}
