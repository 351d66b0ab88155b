// A generator whose numbers are the same everywhere (the standard library's distributions are not).
#ifndef REGARD_DATA_RANDOM_H_
#define REGARD_DATA_RANDOM_H_

#include <cstdint>

namespace regard::data {

// Steele, Lea and Flood 2014 (SplitMix64): also a good hash of one number.
constexpr std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15u); }
  // Uniform in 0..n-1, n > 0, without bias: what would make the first numbers likelier is drawn again.
  std::uint64_t Below(std::uint64_t n) {
    const std::uint64_t excess = (0 - n) % n;
    std::uint64_t x = Next();
    while (x < excess) x = Next();
    return x % n;
  }

 private:
  std::uint64_t state_;
};

}  // namespace regard::data

#endif  // REGARD_DATA_RANDOM_H_
