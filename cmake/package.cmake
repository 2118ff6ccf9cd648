# Debian packages, made by `cpack`: one of each component. `kumo` needs nothing of NVIDIA's; `kumo-cuda`
# is the CUDA backend's module, of the same build. docs/operations.md says how to make them.
#
# lintian has two complaints that stay: the licence is there in full, since an installation need not be
# Debian's, and there is no changelog in Debian's format beside CHANGELOG.md.
set(KUMO_MAINTAINER "Kumo developers <developers@kumo.invalid>" CACHE STRING
    "Maintainer of the packages that cpack makes: NAME <ADDRESS>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kumo)
set(CPACK_PACKAGE_VENDOR Kumo)
set(CPACK_PACKAGE_CONTACT "${KUMO_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed training with sharded parameter servers")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL kumo)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_KUMO_PACKAGE_NAME kumo)
set(CPACK_DEBIAN_KUMO_PACKAGE_SECTION science)
set(CPACK_DEBIAN_KUMO_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_KUMO_PACKAGE_SUGGESTS kumo-cuda)
set(CPACK_COMPONENT_KUMO_DESCRIPTION
    "Servers hold the weights of a network; workers each train on a share of the
data and send back what they have learnt, in as little as one bit a number.
The experiment file fixes the result: any number of workers and servers gives
the same weights, also when processes are stopped, killed and started again.

This package computes on CPUs; kumo-cuda adds GPUs.")

if(KUMO_CUDA_FOUND)
  list(APPEND CPACK_COMPONENTS_ALL kumo-cuda)
  set(CPACK_DEBIAN_KUMO-CUDA_PACKAGE_NAME kumo-cuda)
  set(CPACK_DEBIAN_KUMO-CUDA_PACKAGE_SECTION contrib/science)
  # NVIDIA's libraries are recommended and not looked for: their packages are not Debian's.
  set(CPACK_DEBIAN_KUMO-CUDA_PACKAGE_DEPENDS "kumo (= ${PROJECT_VERSION}), libc6")
  set(CPACK_DEBIAN_KUMO-CUDA_PACKAGE_RECOMMENDS "${KUMO_CUDA_RECOMMENDS}")
  set(CPACK_COMPONENT_KUMO-CUDA_DESCRIPTION
      "Lets the workers of kumo compute on NVIDIA GPUs of compute capability 7.5 and
later. Needs NVIDIA's driver, cuDNN and cuBLAS, whose packages are NVIDIA's.")
endif()
include(CPack)
