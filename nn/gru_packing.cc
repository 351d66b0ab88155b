#include "nn/gru_packing.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "engine/base/error.h"

namespace regard::nn {
namespace {

// The packed row of step t of each sequence is offsets[t] + the place of that sequence in the order.
std::vector<std::int64_t> Places(const Packing& packing) {
  std::vector<std::int64_t> place(packing.rows);
  for (std::int64_t i = 0; i < packing.rows; ++i) place[packing.order[i]] = i;
  return place;
}

torch::Tensor ToTensor(const std::vector<std::int64_t>& values) {
  return torch::tensor(values, torch::TensorOptions().dtype(torch::kInt64));
}

// out[m] = x[index[m]], or 0 where index[m] is -1. No row of x is taken twice.
class TakeRows : public torch::autograd::Function<TakeRows> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& index) {
    ctx->saved_data["index"] = index;
    ctx->saved_data["rows"] = x.size(0);
    const auto in = x.contiguous();
    auto sizes = x.sizes().vec();
    sizes[0] = index.size(0);
    auto out = torch::zeros(sizes, x.options());
    Copy(in, out, index, /*scatter=*/false);
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto g = grads[0].contiguous();
    auto sizes = g.sizes().vec();
    sizes[0] = ctx->saved_data["rows"].toInt();
    auto dx = torch::zeros(sizes, g.options());
    Copy(g, dx, ctx->saved_data["index"].toTensor(), /*scatter=*/true);
    return {dx, torch::Tensor()};
  }

 private:
  static void Copy(const torch::Tensor& from, torch::Tensor& to, const torch::Tensor& index, bool scatter) {
    const std::int64_t* at = index.data_ptr<std::int64_t>();
    if (from.numel() == 0 || to.numel() == 0) return;
    const std::int64_t bytes = from.numel() / from.size(0) * from.element_size();
    const auto* in = static_cast<const char*>(from.data_ptr());
    auto* out = static_cast<char*>(to.data_ptr());
    for (std::int64_t m = 0; m < index.size(0); ++m) {
      if (at[m] < 0) continue;
      const std::int64_t source = scatter ? m : at[m], target = scatter ? at[m] : m;
      std::copy_n(in + source * bytes, bytes, out + target * bytes);
    }
  }
};

}  // namespace

Packing Pack(const torch::Tensor& lengths, std::int64_t steps) {
  const auto contiguous = lengths.contiguous();
  const std::int64_t* n = contiguous.data_ptr<std::int64_t>();
  Packing p;
  p.rows = lengths.size(0);
  p.steps = steps;
  for (std::int64_t i = 0; i < p.rows; ++i) {
    if (n[i] < 0 || n[i] > steps) {
      throw Error("lengths[" + std::to_string(i) + "] is " + std::to_string(n[i]) + ": expected 0 to " +
                  std::to_string(steps));
    }
  }
  p.order.resize(p.rows);
  std::iota(p.order.begin(), p.order.end(), 0);
  std::stable_sort(p.order.begin(), p.order.end(), [n](auto a, auto b) { return n[a] > n[b]; });
  for (const std::int64_t i : p.order) p.lengths.push_back(n[i]);
  const std::int64_t longest = p.rows > 0 ? p.lengths.front() : 0;
  std::int64_t alive = p.rows;
  for (std::int64_t t = 0; t < longest; ++t) {
    while (p.lengths[alive - 1] <= t) --alive;
    p.offsets.push_back(p.total);
    p.sizes.push_back(alive);
    p.total += alive;
  }
  return p;
}

torch::Tensor PackRows(const torch::Tensor& padded, const Packing& packing) {
  std::vector<std::int64_t> index;
  index.reserve(packing.total);
  for (std::size_t t = 0; t < packing.sizes.size(); ++t) {
    for (std::int64_t i = 0; i < packing.sizes[t]; ++i) {
      index.push_back(packing.order[i] * padded.size(1) + static_cast<std::int64_t>(t));
    }
  }
  return padded.flatten(0, 1).index_select(0, ToTensor(index));
}

torch::Tensor UnpackRows(const torch::Tensor& x, const Packing& packing,
                         const std::vector<std::int64_t>& order) {
  const auto place = Places(packing);
  std::vector<std::int64_t> index(order.size() * packing.steps, -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t row = place[order[i]];
    for (std::int64_t t = 0; t < packing.lengths[row]; ++t) {
      index[i * packing.steps + t] = packing.offsets[t] + row;
    }
  }
  return TakeRows::apply(x, ToTensor(index))
      .unflatten(0, {static_cast<std::int64_t>(order.size()), packing.steps});
}

torch::Tensor ReorderRows(const torch::Tensor& x, const Packing& packing,
                          const std::vector<std::int64_t>& order) {
  const auto place = Places(packing);
  std::vector<std::int64_t> index;
  for (const std::int64_t sequence : order) index.push_back(place[sequence]);
  return x.index_select(-2, ToTensor(index));
}

void ForRowBlocks(std::int64_t rows, std::int64_t block, std::int64_t work,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body) {
  // A parallel region costs about as much as this many multiplications.
  constexpr std::int64_t kWorthwhile = 1 << 18;
  const std::int64_t blocks = (rows + block - 1) / block;
  const std::int64_t threads = work < kWorthwhile || at::in_parallel_region()
                                   ? 1
                                   : std::min<std::int64_t>(at::get_num_threads(), blocks);
  const auto run = [&](std::int64_t thread) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      // To and fro, since packed rows are sorted by length and the first blocks have the most to do
      const std::int64_t turn = b % (2 * threads);
      if ((turn < threads ? turn : 2 * threads - 1 - turn) != thread) continue;
      body(b * block, std::min(rows, (b + 1) * block));
    }
  };
  if (threads <= 1) {
    if (blocks > 0) run(0);
    return;
  }
  at::parallel_for(0, threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t thread = first; thread < last; ++thread) run(thread);
  });
}

}  // namespace regard::nn
