#include "bench/layers.h"

#include <c10/core/CPUAllocator.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "bench/measure.h"
#include "engine/base/error.h"
#include "nn/attend.h"
#include "nn/gru.h"
#include "nn/gru_packing.h"

namespace regard::bench {
namespace {

using torch::Tensor;

// Counts the bytes of all tensors on the CPU while it lives.
class CountedMemory {
 public:
  CountedMemory() : allocator_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(&allocator_, kPriority); }
  ~CountedMemory() {
    // An allocator of the same priority takes its place.
    c10::SetCPUAllocator(allocator_.base, kPriority);
  }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  // What is held; from now on the most counts.
  static std::int64_t Restart() {
    const std::lock_guard lock(mutex);
    return most = held;
  }

  // The most bytes held at once while f runs, beyond those held before.
  double Peak(const std::function<void()>& f) const {
    const std::int64_t before = Restart();
    f();
    return static_cast<double>(most - before);
  }

 private:
  static constexpr std::uint8_t kPriority = 1;
  struct Piece {
    c10::DataPtr memory;
    std::int64_t bytes;
  };
  inline static std::mutex mutex;
  inline static std::unordered_map<void*, Piece> pieces;
  inline static std::int64_t held = 0, most = 0;

  // A piece is known by its address, as libraries that ask for bare memory need.
  struct Allocator final : c10::Allocator {
    explicit Allocator(c10::Allocator* base_) : base(base_) {}
    c10::DataPtr allocate(std::size_t bytes) override {
      c10::DataPtr memory = base->allocate(bytes);
      void* data = memory.get();
      const std::lock_guard lock(mutex);
      if (data != nullptr) {
        held += static_cast<std::int64_t>(bytes);
        most = std::max(most, held);
        pieces.insert_or_assign(data, Piece{std::move(memory), static_cast<std::int64_t>(bytes)});
      }
      return {data, data, &Free, c10::Device(c10::kCPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &Free; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
      default_copy_data(to, from, bytes);
    }
    static void Free(void* data) {
      const std::lock_guard lock(mutex);
      const auto piece = pieces.find(data);
      if (piece == pieces.end()) return;
      held -= piece->second.bytes;
      pieces.erase(piece);
    }
    c10::Allocator* base;
  };

  Allocator allocator_;
};

struct Layer {
  std::function<Tensor(const Tensor&)> forward;
  std::vector<Tensor> weights;
};

Layer MakeLayer(LayerKind kind, std::int64_t length, std::int64_t width) {
  switch (kind) {
    case LayerKind::kAttention:
      return {[](const Tensor& x) { return nn::Attend(x, x, x).out; }, {}};
    case LayerKind::kConvolution: {
      torch::nn::Conv1d conv(
          torch::nn::Conv1dOptions(width, width, kConvolutionWidth).padding(kConvolutionWidth / 2));
      return {[conv](const Tensor& x) mutable { return conv(x.transpose(1, 2)).transpose(1, 2); },
              conv->parameters()};
    }
    case LayerKind::kRecurrence:
      break;
  }
  nn::Gru gru(width, width, 1, false, 0.0);
  const nn::Packing packing = nn::Pack(torch::tensor({length}), length);
  return {[gru, packing](const Tensor& x) mutable {
            return gru->forward(x[0], packing, {}, 0).output.unsqueeze(0);
          },
          gru->parameters()};
}

LayerPoint MeasurePoint(LayerKind kind, std::int64_t length, std::int64_t width, int runs) {
  torch::manual_seed(1);
  const Layer layer = MakeLayer(kind, length, width);
  const Tensor x = torch::randn({1, length, width}).requires_grad_();
  const Tensor upstream = torch::randn({1, length, width});
  std::vector<Tensor> inputs = layer.weights;
  inputs.push_back(x);
  const std::function<void()> step = [&] { torch::autograd::grad({layer.forward(x)}, inputs, {upstream}); };
  const double seconds = TimeOf(step, runs).median;
  const CountedMemory memory;
  return {length, width, seconds, memory.Peak(step)};
}

}  // namespace

LayerTheory TheoryOf(LayerKind kind) {
  switch (kind) {
    case LayerKind::kAttention:
      return {"self-attention", "n²d", 2, 1, 1, 1, "1", "1"};
    case LayerKind::kConvolution:
      return {"convolution", "knd²", 1, 2, 1, 1, "1", "n/k"};
    case LayerKind::kRecurrence:
      break;
  }
  return {"recurrence", "nd²", 1, 2, 1, 1, "n", "n"};
}

std::vector<LayerCosts> MeasureLayers(const LayerSizes& sizes,
                                      const std::function<void(int done, int all)>& progress) {
  const int all = static_cast<int>(std::size(kLayerKinds) * (sizes.lengths.size() + sizes.widths.size()));
  int done = 0;
  std::vector<LayerCosts> costs;
  for (const LayerKind kind : kLayerKinds) {
    LayerCosts own{kind, {}, {}};
    for (const std::int64_t length : sizes.lengths) {
      progress(done++, all);
      own.by_length.push_back(MeasurePoint(kind, length, sizes.width, sizes.runs));
    }
    for (const std::int64_t width : sizes.widths) {
      progress(done++, all);
      own.by_width.push_back(MeasurePoint(kind, sizes.length, width, sizes.runs));
    }
    costs.push_back(std::move(own));
  }
  return costs;
}

double FittedExponent(const std::vector<double>& x, const std::vector<double>& y) {
  const std::size_t count = std::min<std::size_t>(3, std::min(x.size(), y.size()));
  if (count < 2) throw Error("an exponent needs two points or more");
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  const auto each = [&](const auto& f) {
    for (std::size_t n = 0; n < count; ++n) {
      const double a = x[x.size() - count + n], b = y[y.size() - count + n];
      if (!(a > 0) || !(b > 0)) throw Error("an exponent needs numbers above 0");
      f(std::log(a), std::log(b));
    }
  };
  each([&](double a, double b) {
    mean_x += a / static_cast<double>(count), mean_y += b / static_cast<double>(count);
  });
  each([&](double a, double b) { xx += (a - mean_x) * (a - mean_x), xy += (a - mean_x) * (b - mean_y); });
  if (xx == 0) throw Error("an exponent needs two different sizes");
  return xy / xx;
}

}  // namespace regard::bench
