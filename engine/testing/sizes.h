// How much the tests do: less under a sanitizer, which makes them many times slower.
#ifndef REGARD_ENGINE_TESTING_SIZES_H_
#define REGARD_ENGINE_TESTING_SIZES_H_

#include <cstdint>

namespace regard::engine {

#ifdef REGARD_SANITIZED
inline constexpr std::uint64_t kRandomProblems = 30;
inline constexpr std::uint64_t kEveryNth = 5;  // of a long list of combinations
#else
inline constexpr std::uint64_t kRandomProblems = 100;
inline constexpr std::uint64_t kEveryNth = 1;
#endif

}  // namespace regard::engine

#endif  // REGARD_ENGINE_TESTING_SIZES_H_
