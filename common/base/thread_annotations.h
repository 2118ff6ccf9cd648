// The macros of Clang's thread safety analysis
// (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html): what is shared between threads says
// which mutex guards it, and Clang refuses (-Wthread-safety) an access without the lock. Other
// compilers see plain code. common/base/mutex.h has the mutex that carries them.
#pragma once

#if defined(__clang__)
#define KUMO_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define KUMO_THREAD_ANNOTATION(x)
#endif

// On a member: read and written only with the mutex held (PT_: what the pointer points to).
#define KUMO_GUARDED_BY(mutex) KUMO_THREAD_ANNOTATION(guarded_by(mutex))
#define KUMO_PT_GUARDED_BY(mutex) KUMO_THREAD_ANNOTATION(pt_guarded_by(mutex))
// On a function: the caller holds the mutex, or must not hold it.
#define KUMO_REQUIRES(mutex) KUMO_THREAD_ANNOTATION(requires_capability(mutex))
#define KUMO_EXCLUDES(mutex) KUMO_THREAD_ANNOTATION(locks_excluded(mutex))
// On a function that takes or gives up the mutex (none named: the object itself).
#define KUMO_ACQUIRE(...) KUMO_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define KUMO_RELEASE(...) KUMO_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define KUMO_CAPABILITY(name) KUMO_THREAD_ANNOTATION(capability(name))
#define KUMO_SCOPED_CAPABILITY KUMO_THREAD_ANNOTATION(scoped_lockable)
