// A shared library that is no module of Kumo's.
extern "C" __attribute__((visibility("default"))) int kumo_some_other_library() { return 1; }
