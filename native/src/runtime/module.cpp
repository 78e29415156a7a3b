// The extension module `mercer._native`: each source file binds its own part.
#include <nanobind/nanobind.h>

#include "runtime/pool.hpp"

void bind_arena(nanobind::module_& m);
void bind_poll(nanobind::module_& m);
void bind_pairs(nanobind::module_& m);
void bind_neighbours(nanobind::module_& m);
void bind_online(nanobind::module_& m);
void bind_svm(nanobind::module_& m);
void bind_partition(nanobind::module_& m);
#ifdef MERCER_HAS_ALGEBRA
void bind_algebra(nanobind::module_& m);
void bind_linear(nanobind::module_& m);
#endif

namespace {

// nanobind has a table of live objects, and ends the process if it cannot have the memory to let it
// grow. So it grows when the library is loaded: further objects up to this number need no more.
constexpr int kObjects = 1024;
struct Object {};

void make_room(nanobind::module_& m) {
  nanobind::class_<Object>(m, "_Object");
  nanobind::list live;
  for (int i = 0; i < kObjects; ++i) live.append(nanobind::cast(Object{}));
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Compiled core of Mercer. Private: use mercer.backends.";
  m.def("thread_cap", &mercer::thread_cap);
  m.def("set_thread_cap", &mercer::set_thread_cap, nanobind::arg("threads"));
  bind_arena(m);
  bind_poll(m);
  bind_pairs(m);
  bind_neighbours(m);
  bind_online(m);
  bind_svm(m);
  bind_partition(m);
#ifdef MERCER_HAS_ALGEBRA
  bind_algebra(m);
  bind_linear(m);
#endif
  make_room(m);
}
