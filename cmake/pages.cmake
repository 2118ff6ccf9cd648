# cmake -DBIN=DIR -DSOURCE=DIR -DTO=DIR -P cmake/pages.cmake: asks the programs in BIN for their man
# pages and for the words that bash completes, and writes TO/man/man1/*.1.gz and
# TO/bash-completion/completions/*. Run by the build when a program has changed.
function(ask variable program)
  execute_process(COMMAND ${BIN}/${program} ${ARGN} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()

# Compressed, as distributions want it; the same bytes each time.
function(write_page name)
  file(WRITE ${pages}/${name}.1 "${page}")
  execute_process(COMMAND gzip -9nf ${pages}/${name}.1 COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(pages ${TO}/man/man1)
set(completions ${TO}/bash-completion/completions)
file(REMOVE_RECURSE ${pages} ${completions})
set(KUMO_WORDS "")
foreach(program kumo kumo-server kumo-worker kumo-data)
  # kumo-data(1) is that of `kumo data`, which is the program's; it has one more for each set that it draws.
  if(NOT program STREQUAL "kumo-data")
    ask(page ${program} --help=man)
    write_page(${program})
  endif()
  ask(words ${program} --help=words)
  string(APPEND KUMO_WORDS "${words}")
  # "[kumo launch]": a command with a page of its own.
  string(REGEX MATCHALL "\\[${program} [a-z]+\\]" commands "${words}")
  foreach(command IN LISTS commands)
    string(REGEX REPLACE "\\[.* ([a-z]+)\\]" "\\1" command "${command}")
    ask(page ${program} ${command} --help=man)
    write_page(${program}-${command})
  endforeach()
endforeach()
ask(KUMO_KEYS kumo options --keys)
if("${KUMO_WORDS}${KUMO_KEYS}" MATCHES "'")
  message(FATAL_ERROR "a quote among the words that bash completes")
endif()
configure_file(${SOURCE}/cli/completion.bash.in ${completions}/kumo @ONLY)
foreach(program kumo-server kumo-worker kumo-data)
  file(CREATE_LINK kumo ${completions}/${program} SYMBOLIC)
endforeach()
