#include "bench/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "engine/base/error.h"

namespace regard::bench {
namespace {

Spec Dot(std::int64_t B, std::int64_t H, std::int64_t L, std::int64_t D, Pass pass) {
  Spec spec;
  spec.B = B, spec.H = H, spec.L = L, spec.D = D, spec.pass = pass;
  return spec;
}
Spec WithCausal(Spec spec) {
  spec.causal = true;
  return spec;
}
Spec WithWindow(Spec spec, std::int64_t each_side) {
  spec.window = each_side;
  return spec;
}
Spec WithLengths(Spec spec, std::vector<std::int64_t> lengths) {
  spec.lengths = std::move(lengths);
  return spec;
}
Spec WithDropout(Spec spec, double probability) {
  spec.dropout = probability;
  return spec;
}
Spec WithType(Spec spec, at::ScalarType type) {
  spec.type = type;
  return spec;
}
Spec Decode(std::int64_t H, std::int64_t G, std::int64_t S, std::int64_t D) {
  Spec spec = Dot(1, H, 1, D, Pass::kForward);
  spec.G = G, spec.S = S;
  return spec;
}
Spec OfScore(ScoreKind score, std::int64_t B, std::int64_t L, std::int64_t D, std::int64_t E, Pass pass) {
  Spec spec = Dot(B, 1, L, D, pass);
  spec.score = score, spec.E = E;
  return spec;
}

std::vector<Row> MakeRows() {
  constexpr Pass F = Pass::kForward, B = Pass::kBackward, FB = Pass::kBoth;
  const std::vector<std::int64_t> lengths{1024, 512, 256, 128};
  constexpr auto kAdditive = ScoreKind::kAdditive, kGaussian = ScoreKind::kGaussian;
  constexpr auto kBFloat16 = at::kBFloat16;
  return {
      {"dense-4096-64-forward", Dot(1, 8, 4096, 64, F), {.ratio = 1.2, .share = .85}},
      {"dense-4096-64-backward", Dot(1, 8, 4096, 64, B), {.ratio = 1.2}},
      {"dense-4096-128-forward", Dot(1, 8, 4096, 128, F), {.ratio = 1.2, .share = .85}},
      {"dense-4096-128-backward", Dot(1, 8, 4096, 128, B), {.ratio = 1.2}},
      {"causal-4096-forward", WithCausal(Dot(1, 8, 4096, 64, F)), {.ratio = 1.4, .share = .8}},
      {"causal-4096-backward", WithCausal(Dot(1, 8, 4096, 64, B)), {.ratio = 1.4}},
      {"causal-1024-forward", WithCausal(Dot(1, 8, 1024, 64, F)), {.ratio = 1.6}},
      {"causal-1024-backward", WithCausal(Dot(1, 8, 1024, 64, B)), {.ratio = 1.6}},
      {"causal-512-forward", WithCausal(Dot(4, 8, 512, 64, F)), {.ratio = 2}},
      {"causal-512-backward", WithCausal(Dot(4, 8, 512, 64, B)), {.ratio = 2}},
      {"lengths-forward", WithLengths(Dot(4, 8, 1024, 64, F), lengths), {.ratio = 2.3}},
      {"lengths-backward", WithLengths(Dot(4, 8, 1024, 64, B), lengths), {.ratio = 2.3}},
      {"dropout-forward", WithDropout(Dot(4, 8, 1024, 64, F), .1), {.ratio = 6}},
      {"dropout-both", WithDropout(Dot(4, 8, 1024, 64, FB), .1), {.ratio = 4}},
      {"window-forward", WithWindow(Dot(1, 8, 4096, 64, F), 256), {.ratio = 10}},
      {"window-backward", WithWindow(Dot(1, 8, 4096, 64, B), 256), {}},
      {"decode", Decode(32, 8, 4096, 128), {.ratio = 3, .bandwidth = .8}},
      {"bfloat16", WithType(Dot(4, 8, 1024, 64, F), kBFloat16), {.ratio = 1.8}},
      {"bfloat16-float32",
       WithType(Dot(4, 8, 1024, 64, F), kBFloat16),
       {.ratio = .9},
       Through::kOp,
       Peer::kOwnFloat32},
      {"small-op", Dot(64, 4, 10, 8, F), {.ratio = 3}, Through::kOp},
      {"small-engine", Dot(64, 4, 10, 8, F), {.ratio = 5}},
      {"additive-forward", OfScore(kAdditive, 8, 256, 128, 128, F), {.ratio = 50}},
      {"additive-both", OfScore(kAdditive, 8, 256, 128, 128, FB), {.ratio = 30}},
      {"gaussian-1-forward", OfScore(kGaussian, 1, 20000, 1, 1, F), {}},
      {"gaussian-1-backward", OfScore(kGaussian, 1, 20000, 1, 1, B), {}},
      {"gaussian-3-forward", OfScore(kGaussian, 1, 20000, 3, 1, F), {}},
      {"gaussian-3-backward", OfScore(kGaussian, 1, 20000, 3, 1, B), {}},
      {"gaussian-16-forward", OfScore(kGaussian, 1, 20000, 16, 1, F), {}},
      {"gaussian-16-backward", OfScore(kGaussian, 1, 20000, 16, 1, B), {}},
      {"memory-forward", Dot(1, 8, 32768, 64, F), {.memory = 1.5}},
      {"memory-backward", Dot(1, 8, 32768, 64, FB), {.memory = 1.5}},
  };
}

bool Names(const std::string& pattern, const std::string& name) {
  return name.rfind(pattern, 0) == 0 || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = MakeRows();
  return rows;
}

std::string PeerName(const Row& row) { return row.peer == Peer::kPyTorch ? "PyTorch" : "regard in float32"; }

std::vector<Row> SelectRows(const std::vector<std::string>& patterns) {
  if (patterns.empty()) return Rows();
  for (const std::string& pattern : patterns) {
    if (std::any_of(Rows().begin(), Rows().end(), [&](const Row& row) { return Names(pattern, row.name); })) {
      continue;
    }
    std::vector<std::string> known;
    for (const Row& row : Rows()) known.push_back(row.name);
    throw UsageError(fmt::format("no row '{}'; there are {}", pattern, fmt::join(known, ", ")));
  }
  std::vector<Row> selected;
  for (const Row& row : Rows()) {
    if (std::any_of(patterns.begin(), patterns.end(), [&](const auto& p) { return Names(p, row.name); })) {
      selected.push_back(row);
    }
  }
  return selected;
}

}  // namespace regard::bench
