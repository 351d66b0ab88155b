#include "engine/storage.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/kernels/convert.h"
#include "engine/run_tasks.h"

namespace regard::engine {
namespace {

using Index = std::int64_t;

// Elements that are converted at once, from or to the stack where a tensor's own are not side by side.
constexpr Index kRun = 1024;
// Elements in a task: some 20 µs.
constexpr Index kTaskElements = Index{1} << 16;

// A tensor in its own order, last dimension fastest, as rows of elements that are `step` apart, each row over
// as many of the last dimensions as the strides allow.
template <typename T>
struct Rows {
  explicit Rows(const TensorView<T, 4>& t) : data(t.data), shape(t.shape), strides(t.strides) {
    while (rank > 0) {
      const Index size = shape[rank - 1], stride = strides[rank - 1];
      if (width == 1) {
        step = stride;
      } else if (size != 1 && stride != width * step) {
        break;
      }
      width *= size;
      --rank;
    }
  }

  T* operator[](Index row) const {
    T* at = data;
    for (std::size_t d = rank; d-- > 0; row /= shape[d]) at += row % shape[d] * strides[d];
    return at;
  }

  T* data;
  std::array<Index, 4> shape, strides;
  std::size_t rank = 4;  // of the rows
  Index width = 1, step = 1;
};

void ConvertRun(const auto* from, Index step, Index n, float* to) {
  if (step == 1) return Convert(from, n, to);
  std::array<std::remove_cvref_t<decltype(*from)>, kRun> run;
  for (Index x = 0; x < n; ++x) run[static_cast<std::size_t>(x)] = from[x * step];
  Convert(run.data(), n, to);
}

void ConvertRun(const float* from, Index n, auto* to, Index step) {
  if (step == 1) return Convert(from, n, to);
  std::array<std::remove_reference_t<decltype(*to)>, kRun> run;
  Convert(from, n, run.data());
  for (Index x = 0; x < n; ++x) to[x * step] = run[static_cast<std::size_t>(x)];
}

// convert(elements, step, n, at): n elements of the tensor, `at` of them before these, for all of it.
template <typename T, typename F>
void ForEachRun(const AttentionOptions<float>& options, const TensorView<T, 4>& t, const F& convert) {
  if (t.size() == 0) return;
  const Rows<T> rows(t);
  const Index runs_in_row = (rows.width + kRun - 1) / kRun, runs = t.size() / rows.width * runs_in_row;
  const Index tasks = (t.size() + kTaskElements - 1) / kTaskElements, per_task = (runs + tasks - 1) / tasks;
  RunTasks(options, tasks, [&](Index task) {
    for (Index run = task * per_task; run < std::min(runs, (task + 1) * per_task); ++run) {
      const Index row = run / runs_in_row, x = run % runs_in_row * kRun;
      convert(rows[row] + x * rows.step, rows.step, std::min(kRun, rows.width - x), row * rows.width + x);
    }
  });
}

}  // namespace

template <typename T>
TensorView<const float, 4> Float32Copies<T>::Read(TensorView<const T, 4> t) {
  if (t.size() == 0) return {nullptr, t.shape};
  const auto shape = t.shape;
  for (std::size_t d = 0; d < 4; ++d) {
    if (t.strides[d] == 0) t.shape[d] = 1;
  }
  copies_.emplace_back(static_cast<std::size_t>(t.size()));
  float* const copy = copies_.back().data();
  ForEachRun(options_, t,
             [&](const T* from, Index step, Index n, Index at) { ConvertRun(from, step, n, copy + at); });
  TensorView<const float, 4> view(copy, t.shape);
  for (std::size_t d = 0; d < 4; ++d) {
    if (t.strides[d] == 0) view.strides[d] = 0;
  }
  view.shape = shape;
  return view;
}

template <typename T>
TensorView<float, 4> Float32Copies<T>::Write(const TensorView<T, 4>& t, bool add) {
  if (t.size() == 0) return {nullptr, t.shape};
  copies_.emplace_back(static_cast<std::size_t>(t.size()));
  float* const copy = copies_.back().data();
  written_.emplace_back(t, copy);
  if (add) {
    ForEachRun(options_, t,
               [&](const T* from, Index step, Index n, Index at) { ConvertRun(from, step, n, copy + at); });
  }
  return {copy, t.shape};
}

template <typename T>
void Float32Copies<T>::Store() {
  for (const auto& [t, copy] : written_) {
    ForEachRun(options_, t,
               [from = copy](T* to, Index step, Index n, Index at) { ConvertRun(from + at, n, to, step); });
  }
}

template class Float32Copies<BFloat16>;
template class Float32Copies<Float16>;

}  // namespace regard::engine
