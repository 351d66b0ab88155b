// The rows of `regard bench`: what is measured, beside whom, and what is wanted.
#ifndef REGARD_BENCH_ROWS_H_
#define REGARD_BENCH_ROWS_H_

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "bench/spec.h"

namespace regard::bench {

enum class Through { kEngine, kOp };        // how this project is called: from C++, or by the operator
enum class Peer { kPyTorch, kOwnFloat32 };  // PyTorch, or this project on the same numbers in float32

// What is wanted of a row; 0: nothing, it is measured and reported.
struct Wanted {
  double ratio = 0;      // times faster than the peer
  double share = 0;      // of the machine's FMA peak
  double bandwidth = 0;  // of the machine's read bandwidth
  double memory = 0;  // at most: peak resident memory by the tensors' own. Such a row is run once, for memory
};

struct Row {
  std::string name;
  Spec spec;
  Wanted wanted;
  Through through = Through::kEngine;
  Peer peer = Peer::kPyTorch;
};

const std::vector<Row>& Rows();

// "PyTorch" or "regard in float32"
std::string PeerName(const Row& row);

// The rows whose names one of `patterns` names: a name, its beginning, or a shell pattern (*, ?). All for no
// pattern. Throws UsageError for one that names none.
std::vector<Row> SelectRows(const std::vector<std::string>& patterns);

// The largest difference of a tensor from float64, by that tensor's largest value.
struct TensorError {
  std::string name;  // "out", "dq", ...
  double ours = 0;
  std::optional<double> peer;     // none with dropout: it drops others
  std::optional<double> written;  // of the formula written out in the same type

  // At most twice that of the formula written out, and of one rounding of the result.
  bool within_contract() const {
    return !written || ours <= 2 * (*written + std::numeric_limits<float>::epsilon());
  }
};

struct Outcome {
  Comparison time;
  double work = 0;                     // operations a call
  double fma_peak = 0;                 // operations a second, measured beside this row
  double bandwidth = 0;                // bytes read a second, measured beside a row that wants a share of it
  double bytes = 0;                    // of the tensors
  std::vector<TensorError> errors;     // none without a check
  std::optional<bool> same_bits;       // on one thread and on all; none without a check
  double memory = 0, peer_memory = 0;  // peak resident memory by `bytes`, of a row that is run for it
};

struct Settings {
  int threads = 1;
  int runs = 7;
  bool check = true;  // errors and bits
  std::function<void(std::string_view stage)> progress = [](std::string_view) {};
};

// Torch's number of threads must be settings.threads.
Outcome RunRow(const Row& row, const Settings& settings);

}  // namespace regard::bench

#endif  // REGARD_BENCH_ROWS_H_
