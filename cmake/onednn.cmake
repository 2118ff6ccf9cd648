# oneDNN: KUMO_DNNL_INCLUDE, KUMO_DNNL_LIBRARY and KUMO_DNNL_VERSION.
#
# Debian's dnnl-config.cmake asks for OpenCL's headers, which we do not need: find the two files.
find_path(KUMO_DNNL_INCLUDE dnnl.h REQUIRED)
find_library(KUMO_DNNL_LIBRARY dnnl REQUIRED)
find_file(KUMO_DNNL_VERSION_HEADER NAMES oneapi/dnnl/dnnl_version.h dnnl_version.h
          PATHS ${KUMO_DNNL_INCLUDE} NO_DEFAULT_PATH)
set(KUMO_DNNL_VERSION "")
if(KUMO_DNNL_VERSION_HEADER)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${KUMO_DNNL_VERSION_HEADER} line REGEX "^#define DNNL_VERSION_${part} ")
    string(REGEX REPLACE "[^0-9]" "" number "${line}")
    list(APPEND KUMO_DNNL_VERSION ${number})
  endforeach()
  list(JOIN KUMO_DNNL_VERSION "." KUMO_DNNL_VERSION)
endif()
