# The sanitizer builds compile a dozen sources of a target at a time (CMAKE_UNITY_BUILD): what the
# templates of many of them have in common is instrumented once, which makes these builds three times
# as fast. Other builds do so with tests (kumo_compile_as_test), and compile each source of a library alone,
# so that a change costs the compilation of one file, and so that each is seen to include what it uses.
#
# kumo_compile_alone(SOURCE ...): these sources of the directory have a name, or a system's header,
# that does not go together with another source's of their target. What does not compile under
# a sanitizer, and only there, wants another name or a line here.
function(kumo_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
