# Installed files, in two components: `kumo`, and `kumo-cuda` with the CUDA backend's
# module.
#
# Programs find each other, the module and share/kumo from where they are themselves
# (common/base/installation.h), so these three have fixed places below the prefix, which may be moved.
include(GNUInstallDirs)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME kumo)
set(KUMO_PROGRAMS kumo kumo-server kumo-worker kumo-data)
install(TARGETS ${KUMO_PROGRAMS} RUNTIME DESTINATION bin)
# The C library for models of other programs, its header, and the Python package, which finds the library
# from where it is itself.
install(TARGETS kumo_worker_shared LIBRARY DESTINATION lib/kumo
        PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
install(FILES worker/library/kumo_worker.h DESTINATION include)
install(DIRECTORY python DESTINATION share/kumo FILES_MATCHING PATTERN "*.py" PATTERN "*.conf"
        PATTERN py.typed PATTERN __pycache__ EXCLUDE)
install(DIRECTORY experiments DESTINATION share/kumo FILES_MATCHING PATTERN "*.conf")
install(DIRECTORY models/zoo DESTINATION share/kumo/models FILES_MATCHING PATTERN "*.pbtxt"
        PATTERN "*.names")
install(DIRECTORY k8s/base k8s/components k8s/volumes DESTINATION share/kumo/k8s)
install(FILES k8s/grafana.json k8s/queue.sh DESTINATION share/kumo/k8s)
install(PROGRAMS data/fetch.sh DESTINATION share/kumo/data)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md"
        PATTERN "*.jpg")
if(KUMO_CUDA_FOUND)
  install(TARGETS kumo_backend_cuda_module LIBRARY DESTINATION lib/kumo COMPONENT kumo-cuda
          PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/kumo-cuda RENAME copyright
          COMPONENT kumo-cuda)
endif()

# Man pages and completion, by the programs themselves.
set(pages ${PROJECT_BINARY_DIR}/share/man/man1/kumo.1.gz)
add_custom_command(
  OUTPUT ${pages}
  COMMAND ${CMAKE_COMMAND} -DBIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY} -DSOURCE=${PROJECT_SOURCE_DIR}
          -DTO=${PROJECT_BINARY_DIR}/share -P ${PROJECT_SOURCE_DIR}/cmake/pages.cmake
  DEPENDS ${KUMO_PROGRAMS} ${PROJECT_SOURCE_DIR}/cmake/pages.cmake
          ${PROJECT_SOURCE_DIR}/cli/completion.bash.in
  COMMENT "Man pages and completion" VERBATIM)
add_custom_target(kumo_pages ALL DEPENDS ${pages})
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/man/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/bash-completion/completions
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion)

# The build folder has the same layout, so that programs find experiments and networks there too.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/kumo/models)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/experiments ${PROJECT_BINARY_DIR}/share/kumo/experiments SYMBOLIC)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/k8s ${PROJECT_BINARY_DIR}/share/kumo/k8s SYMBOLIC)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python ${PROJECT_BINARY_DIR}/share/kumo/python SYMBOLIC)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/models/zoo ${PROJECT_BINARY_DIR}/share/kumo/models/zoo SYMBOLIC)
