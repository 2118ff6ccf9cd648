// Precompiled headers: those that nearly every source includes and that rarely change, parsed once
// for all sources (cmake/precompiled.cmake). Sources include the headers that they use all the
// same: clang-tidy reads them without this file.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <glog/logging.h>

#include "proto/checkpoint.pb.h"
#include "proto/wire.pb.h"
