// A module that needs absent_library.cc.
extern "C" int kumo_absent_library();

extern "C" __attribute__((visibility("default"))) const void* kumo_cuda_module() {
  return kumo_absent_library() == 1 ? "" : nullptr;
}
