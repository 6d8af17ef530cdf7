# Trace files: written and read with zstd and protobuf-c.
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(XXHASH REQUIRED libxxhash)
find_program(PROTOC_C NAMES protoc-c protoc REQUIRED)
add_custom_command(OUTPUT ${ZT_GEN}/zetrace.pb-c.c ${ZT_GEN}/zetrace.pb-c.h
  COMMAND ${CMAKE_COMMAND} -E make_directory ${ZT_GEN}
  COMMAND ${PROTOC_C} --c_out=${ZT_GEN} --proto_path=${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/zetrace.proto
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/zetrace.proto COMMENT "zetrace.proto -> C" VERBATIM)
set_source_files_properties(${ZT_GEN}/zetrace.pb-c.c PROPERTIES COMPILE_OPTIONS "-Wno-shadow;-Wno-unused-parameter")
add_library(zt_trace STATIC
  hashes.c
  nameless.c
  output.c
  wire.c
  verify.c
  repair.c
  repack.c
  repack_drop.c
  writer.c
  writer_chunk.c
  writer_table.c
  scan.c
  reader.c
  reader_frames.c
  reader_blobs.c
  chunk.c
  events.c
  objects.c
  memory.c
  modules.c
  varies.c
  print.c
  session.c
  ${ZT_GEN}/zetrace.pb-c.c
  ${ZT_GEN}/zetrace.pb-c.h)
target_include_directories(zt_trace PUBLIC ${CMAKE_CURRENT_SOURCE_DIR} PRIVATE ${ZT_GEN})
target_compile_definitions(zt_trace PRIVATE XXH_INLINE_ALL)
target_link_libraries(zt_trace PUBLIC zt_api PRIVATE PkgConfig::ZSTD PkgConfig::PROTOBUF_C)
