# libarchive, as the target kumo_archive, linked statically: of its formats tar and zip are used alone,
# while the shared library brings libxml2 and ICU, 38 MB, for one that is not.
find_path(KUMO_ARCHIVE_INCLUDE archive.h REQUIRED)
find_library(KUMO_ARCHIVE_LIBRARY NAMES libarchive.a REQUIRED)
mark_as_advanced(KUMO_ARCHIVE_INCLUDE KUMO_ARCHIVE_LIBRARY)
# Compression inside a zip file, and its encryption.
pkg_check_modules(ARCHIVE_PARTS REQUIRED IMPORTED_TARGET nettle liblzma libzstd)
find_package(BZip2 REQUIRED)
add_library(kumo_archive INTERFACE)
target_include_directories(kumo_archive SYSTEM INTERFACE ${KUMO_ARCHIVE_INCLUDE})
target_link_libraries(kumo_archive INTERFACE ${KUMO_ARCHIVE_LIBRARY} PkgConfig::ARCHIVE_PARTS
                      BZip2::BZip2 ZLIB::ZLIB)
