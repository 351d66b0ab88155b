// The compact kernels of regard/score.h as formulas of u² in any type, for the reference and the tests.
#ifndef REGARD_ENGINE_KERNELS_COMPACT_REFERENCE_H_
#define REGARD_ENGINE_KERNELS_COMPACT_REFERENCE_H_

#include <cmath>

#include "regard/score.h"

namespace regard::engine {

// NaN is not outside.
template <typename C>
bool IsOutside(CompactKernel kernel, C u2) {
  return kernel == CompactKernel::kBoxcar ? u2 > 1 : u2 >= 1;
}

// log K(u)
template <typename C>
C LogOf(CompactKernel kernel, C u2) {
  switch (kernel) {
    case CompactKernel::kBoxcar:
      return u2 - u2;  // 0, or NaN
    case CompactKernel::kTriangular:
      return std::log(1 - std::sqrt(u2));
    case CompactKernel::kEpanechnikov:
      return std::log(1 - u2);
    case CompactKernel::kTricube:
      break;
  }
  return 3 * std::log(1 - u2 * std::sqrt(u2));
}

// d log K(u) / du
template <typename C>
C SlopeOfLog(CompactKernel kernel, C u2) {
  const C u = std::sqrt(u2);
  switch (kernel) {
    case CompactKernel::kBoxcar:
      return 0;
    case CompactKernel::kTriangular:
      return -1 / (1 - u);
    case CompactKernel::kEpanechnikov:
      return -2 * u / (1 - u2);
    case CompactKernel::kTricube:
      break;
  }
  return -9 * u2 / (1 - u2 * u);
}

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_COMPACT_REFERENCE_H_
