// Plays a library of NVIDIA's that is not installed: linked with, and not found when it is wanted.
extern "C" __attribute__((visibility("default"))) int kumo_absent_library() { return 1; }
