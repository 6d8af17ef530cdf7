add_library(zc_recorder STATIC recorder.c recorder_ring.c recorder_process.c recorder_session.c)
target_include_directories(zc_recorder PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(zc_recorder PUBLIC zt_api zt_trace)
target_compile_definitions(zc_recorder PRIVATE ZETRACE_VERSION="${PROJECT_VERSION}")
