# cmake -DSOURCE=DIR -DFILE=commit.cc [-DKUMO_COMMIT=TEXT] -P cmake/commit.cmake: writes a source file
# that says which commit DIR is at, where the file does not say so already. Run by each build.
if(NOT KUMO_COMMIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} --no-optional-locks describe --always --dirty --exclude=*
                  OUTPUT_VARIABLE KUMO_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT KUMO_COMMIT)
  set(KUMO_COMMIT unknown)
endif()
file(CONFIGURE OUTPUT ${FILE} @ONLY CONTENT [[
#include "common/base/version.h"

namespace kumo {

const std::string_view kCommit = "@KUMO_COMMIT@";

}  // namespace kumo
]])
