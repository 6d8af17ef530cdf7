# Names of functions and lines for backtraces; on the recorder's side only.
pkg_check_modules(LIBDW REQUIRED IMPORTED_TARGET libdw)
add_library(zc_recorder STATIC recorder.c recorder_ring.c recorder_process.c recorder_session.c recorder_frames.c recorder_symbols.c)
target_include_directories(zc_recorder PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(zc_recorder PUBLIC zt_api zt_trace PRIVATE PkgConfig::LIBDW)
target_compile_definitions(zc_recorder PRIVATE ZETRACE_VERSION="${PROJECT_VERSION}")
