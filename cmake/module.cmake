# Identity that the CUDA backend's module and the programs that load it must share
# (models/backend/cuda/module.h), and what the module needs.
#
# KUMO_MODULE_BUILD: version, compiler, and a hash of every header that describes the objects that pass
# between the two.
set(open models/backend/cuda/module.h)
set(headers "")
while(open)
  list(POP_FRONT open header)
  if(header IN_LIST headers)
    continue()
  endif()
  list(APPEND headers ${header})
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} includes REGEX "^#include \"")
  list(TRANSFORM includes REPLACE "^#include \"([^\"]+)\".*" "\\1")
  list(APPEND open ${includes})
endwhile()
list(SORT headers)
set(text "")
foreach(header IN LISTS headers)
  file(READ ${PROJECT_SOURCE_DIR}/${header} content)
  string(APPEND text "${content}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
endforeach()
string(SHA256 hash "${text}")
string(SUBSTRING ${hash} 0 12 hash)
set(KUMO_MODULE_BUILD
    "${PROJECT_VERSION}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${hash}")

# KUMO_CUDA_PACKAGES: where NVIDIA's libraries come from, in words; KUMO_CUDA_RECOMMENDS: the same as
# Debian writes it. The packages are NVIDIA's, not Debian's.
set(KUMO_CUDA_PACKAGES "NVIDIA's cuDNN and cuBLAS")
set(KUMO_CUDA_RECOMMENDS "")
if(KUMO_CUDA_FOUND)
  file(STRINGS ${KUMO_CUDNN_INCLUDE}/cudnn_version.h cudnn_major REGEX "^#define CUDNN_MAJOR ")
  string(REGEX REPLACE "[^0-9]" "" cudnn_major "${cudnn_major}")
  set(cudnn libcudnn${cudnn_major}-cuda-${CUDAToolkit_VERSION_MAJOR})
  set(cublas libcublas-${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR})
  set(KUMO_CUDA_PACKAGES "NVIDIA's packages ${cudnn} and ${cublas}")
  set(KUMO_CUDA_RECOMMENDS "${cudnn}, ${cublas}")
endif()
