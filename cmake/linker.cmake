# mold or lld where there is one: the tests are 60 programs, and GNU ld takes a second for each.
if(NOT DEFINED KUMO_LINKER)
  find_program(KUMO_LINKER NAMES mold ld.lld DOC "A linker that is quicker than the default")
endif()
if(KUMO_LINKER MATCHES "mold$")
  add_link_options(-fuse-ld=mold)
elseif(KUMO_LINKER MATCHES "lld$")
  add_link_options(-fuse-ld=lld)
endif()
