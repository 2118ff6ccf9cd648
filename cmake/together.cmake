# Unity builds: the presets of the scripts compile 26 sources of a target at a time (CMAKE_UNITY_BUILD),
# which takes a third of the time; `develop` and `debug` compile each source alone, so that a change costs
# the compilation of one file. cmake/compile_alone.py checks in `./test.sh --all` that
# each source includes the headers it uses.
#
# kumo_compile_alone(SOURCE ...): these sources of the directory define a name, or include a system header,
# that clashes with another source of their target. A different name is better.
function(kumo_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
