// The generator behind dropout and Gumbel noise: counter-based, so the number for a pair (i, j) depends on
// the seed and on (b, h, i, j) alone, whatever the tiles, the threads and the pass.
// The mixing function is the finaliser of SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable
// pseudorandom number generators").
#ifndef REGARD_ENGINE_POLICIES_RANDOM_H_
#define REGARD_ENGINE_POLICIES_RANDOM_H_

#include <cmath>
#include <cstdint>

namespace regard::engine {

// What a stream is drawn for, so that dropout and noise of one seed are independent.
enum class Stream : std::uint64_t { kDropout = 1, kGumbel = 2 };

inline std::uint64_t Mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// The numbers of one query's row, one for each key.
class RandomRow {
 public:
  RandomRow(std::uint64_t seed, Stream stream, std::int64_t b, std::int64_t h, std::int64_t i) {
    key_ = Mix(seed + kStep * static_cast<std::uint64_t>(stream));
    for (std::int64_t index : {b, h, i}) key_ = Mix(key_ + kStep * (static_cast<std::uint64_t>(index) + 1));
  }

  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio, odd

  std::uint64_t key() const { return key_; }
  std::uint64_t Bits(std::int64_t j) const { return Mix(key_ + kStep * (static_cast<std::uint64_t>(j) + 1)); }

  // -log(u), u uniform in the open interval (0, 1)
  double Exponential(std::int64_t j) const {
    return -std::log((static_cast<double>(Bits(j) >> 11) + 0.5) * 0x1p-53);
  }
  // -log(-log(u))
  double Gumbel(std::int64_t j) const { return -std::log(Exponential(j)); }

 private:
  std::uint64_t key_;
};

// A key is dropped when its 53 random bits are below probability * 2^53.
class DropoutRule {
 public:
  explicit DropoutRule(double probability)
      : threshold_(static_cast<std::uint64_t>(probability * 0x1p53)), scale_(1.0 / (1.0 - probability)) {}

  bool active() const { return threshold_ != 0; }
  std::uint64_t threshold() const { return threshold_; }
  double scale() const { return scale_; }  // what a kept weight is multiplied by
  bool Keeps(std::uint64_t bits) const { return (bits >> 11) >= threshold_; }

 private:
  std::uint64_t threshold_;
  double scale_;
};

}  // namespace regard::engine

#endif  // REGARD_ENGINE_POLICIES_RANDOM_H_
