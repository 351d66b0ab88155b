// n numbers of 16 bits to float and back, by the rules of regard/half.h.
#ifndef REGARD_ENGINE_KERNELS_CONVERT_H_
#define REGARD_ENGINE_KERNELS_CONVERT_H_

#include <cstdint>

#include "regard/half.h"

namespace regard::engine {

void Convert(const BFloat16* from, std::int64_t n, float* to);
void Convert(const Float16* from, std::int64_t n, float* to);
void Convert(const float* from, std::int64_t n, BFloat16* to);
void Convert(const float* from, std::int64_t n, Float16* to);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_KERNELS_CONVERT_H_
