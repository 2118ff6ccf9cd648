// Installation layout: one relocatable folder with bin/ (programs), lib/kumo/ (loaded modules) and
// share/kumo/ (experiments and networks), found from the running program. A build folder has the
// same layout (cmake/install.cmake).
#pragma once

#include <string>

namespace kumo {

struct Installation {
  std::string programs;     // the folder bin/, absolute, without a trailing '/'
  std::string cuda_module;  // the file of the CUDA backend (models/backend/cuda/module.h)
  std::string share;        // the folder share/kumo/, likewise
};

// The installation of the running program. The files need not exist.
Installation FindInstallation();

}  // namespace kumo
