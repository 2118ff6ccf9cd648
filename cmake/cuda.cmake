# KUMO_CUDA: AUTO builds the CUDA backend where nvcc, cuDNN and cuBLAS are found, ON wants them, OFF
# leaves them out. Sets KUMO_CUDA_FOUND.
#
# KUMO_CUDA_ARCHITECTURES: AUTO compiles for the GPU of this machine, and where there is none for
# compute capability 7.5 with the PTX from which drivers make code for later ones; ALL for each major
# version that is still sold, as packages need it: code for 8.0 runs on 8.6 and 8.9 too, and later ones
# take the PTX of 9.0; or a list as CMAKE_CUDA_ARCHITECTURES takes it.
#
# KUMO_CUDA_HEADERS_FOUND, whatever KUMO_CUDA is: the headers are there (KUMO_CUDA_INCLUDE,
# KUMO_CUDNN_INCLUDE), so that the backend can be built for the tests' simulated GPU.
set(KUMO_CUDA AUTO CACHE STRING "The CUDA backend: AUTO, ON or OFF")
set_property(CACHE KUMO_CUDA PROPERTY STRINGS AUTO ON OFF)
set(KUMO_CUDA_ARCHITECTURES AUTO CACHE STRING "GPUs to compile for: AUTO, ALL or a list")
set(KUMO_CUDA_FOUND FALSE)
set(KUMO_CUDA_HEADERS_FOUND FALSE)
find_path(KUMO_CUDA_INCLUDE cublasLt.h HINTS $ENV{CUDA_PATH}/include PATHS /usr/local/cuda/include)
find_path(KUMO_CUDNN_INCLUDE cudnn.h HINTS ${KUMO_CUDA_INCLUDE})
if(KUMO_CUDA_INCLUDE AND KUMO_CUDNN_INCLUDE)
  set(KUMO_CUDA_HEADERS_FOUND TRUE)
endif()
if(KUMO_CUDA STREQUAL "OFF")
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
# To projects that want CMake 3.25 it calls a target deprecated there that CUDA 13 no longer has.
set(minimum ${CMAKE_MINIMUM_REQUIRED_VERSION})
set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
find_package(CUDAToolkit QUIET)
set(CMAKE_MINIMUM_REQUIRED_VERSION ${minimum})
find_library(KUMO_CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
if(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND AND KUMO_CUDNN_INCLUDE AND KUMO_CUDNN_LIBRARY)
  set(KUMO_CUDA_FOUND TRUE)
elseif(KUMO_CUDA STREQUAL "ON")
  message(FATAL_ERROR "KUMO_CUDA=ON: nvcc (${CMAKE_CUDA_COMPILER}), the CUDA toolkit "
                      "(${CUDAToolkit_VERSION}) or cuDNN (${KUMO_CUDNN_LIBRARY}) is missing")
endif()
if(KUMO_CUDA_FOUND)
  if(KUMO_CUDA_ARCHITECTURES STREQUAL "ALL")
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)
  elseif(NOT KUMO_CUDA_ARCHITECTURES STREQUAL "AUTO")
    set(CMAKE_CUDA_ARCHITECTURES ${KUMO_CUDA_ARCHITECTURES})
  elseif(EXISTS /dev/nvidia0)
    set(CMAKE_CUDA_ARCHITECTURES native)
  else()
    set(CMAKE_CUDA_ARCHITECTURES 75)
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc 13 speaks C++20.
  set(CMAKE_CUDA_STANDARD_DEFAULT "")
  string(APPEND CMAKE_CUDA_FLAGS " -std=c++20")
  message(STATUS "CUDA ${CUDAToolkit_VERSION}, cuDNN ${KUMO_CUDNN_LIBRARY}")
endif()
