# Every warning is an error; floating point is what the source says (no contraction into fused
# multiply-adds behind our back: results would then depend on the instruction set).
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-sign-conversion;-Werror;-ffp-contract=off;-fno-math-errno;-fno-omit-frame-pointer>"
                    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra;-Werror=all-warnings>")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wthread-safety)
endif()
if(KUMO_SANITIZE)
  # The address sanitizer finds null pointers and accesses outside of objects too; nothing here casts to
  # a derived class unchecked. Without these checks compilation takes an eighth less, and that of kernels
  # (pointer-overflow at -O3) a quarter of the time.
  add_compile_options(-fsanitize=${KUMO_SANITIZE} -fno-sanitize=null,object-size,vptr,pointer-overflow
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${KUMO_SANITIZE})
endif()
