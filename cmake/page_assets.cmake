# Writes OUTPUT, a C++ source with the bytes of the page's files: those of FOLDER as they are, and
# CHART, Chart.js, compressed. A script: cmake -DOUTPUT=... -DFOLDER=... -DCHART=... -P this.
set(rows "")
set(arrays "")
function(add path type gzip file)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(MAKE_C_IDENTIFIER "k${path}" name)
  set(arrays "${arrays}constexpr unsigned char ${name}[] = {${bytes}};\n" PARENT_SCOPE)
  set(rows "${rows}    {\"${path}\", \"${type}\", ${gzip}, Bytes(${name})},\n" PARENT_SCOPE)
endfunction()

set(compressed ${OUTPUT}.gz)
execute_process(COMMAND gzip -9nc ${CHART} OUTPUT_FILE ${compressed} COMMAND_ERROR_IS_FATAL ANY)
add("/" "text/html; charset=utf-8" false ${FOLDER}/page.html)
add("/page.css" "text/css; charset=utf-8" false ${FOLDER}/page.css)
add("/page.js" "text/javascript; charset=utf-8" false ${FOLDER}/page.js)
add("/chart.js" "text/javascript; charset=utf-8" true ${compressed})
file(REMOVE ${compressed})
file(WRITE ${OUTPUT} "// Made by cmake/page_assets.cmake.
#include \"common/http/page_assets.h\"

#include <cstddef>

namespace kumo {
namespace {

${arrays}
template <size_t n>
std::string_view Bytes(const unsigned char (&bytes)[n]) {
  return {reinterpret_cast<const char*>(bytes), n};
}

}  // namespace

std::span<const PageAsset> PageAssets() {
  static const PageAsset kAssets[] = {
${rows}  };
  return kAssets;
}

}  // namespace kumo
")
