// Build information (--version): version, commit and available instruction sets and devices.
//
// Stateless; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace kumo {

// The commit of the sources: "91feaff", with "-dirty" if they were changed; "unknown" outside a
// repository. Defined in a separate source that each build writes (cmake/commit.cmake).
extern const std::string_view kCommit;
extern const std::string_view kVersion;  // "0.2.0"

// Several lines: version, commit, CPU backend with the instruction set of its kernels, and the
// presence of the CUDA module (which is not loaded).
std::string VersionText(const std::string& program);

}  // namespace kumo
