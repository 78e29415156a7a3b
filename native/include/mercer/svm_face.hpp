// Newton's way to finish a descent, and when it is worth a try.
#pragma once

#include "mercer/svm_level.hpp"

namespace mercer::svm {

// Looks for the solution from where a level is; true when it was found with a gap of at most `tol`.
// Otherwise the level is as it was.
template <class Entry>
bool finish_on_face(Level<Entry>& level, double tol, const Worker& worker);

// The number of free variables; 0 where a group has none.
template <class Entry>
Size face_size(const Level<Entry>& level);

}  // namespace mercer::svm
