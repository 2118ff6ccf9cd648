// Where Kumo is installed: one folder with bin/ (the programs), lib/kumo/ (what they load) and
// share/kumo/ (experiments and networks). It may be moved as a whole, since everything is found
// from the running program. A build folder is laid out the same way (cmake/install.cmake).
#pragma once

#include <string>

namespace kumo {

struct Installation {
  std::string programs;     // the folder, absolute, without '/' at its end
  std::string cuda_module;  // the file that GPUs need (models/backend/cuda/module.h)
  std::string share;        // a folder as `programs`
};

// Of the running program. What is named need not exist.
Installation FindInstallation();

}  // namespace kumo
