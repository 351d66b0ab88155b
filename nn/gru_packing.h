// Batches of sequences of different lengths without their padding, and the threads that walk over them.
//
// Packed rows are those of torch's PackedSequence: first every sequence's step 0, the longest sequence first,
// then every step 1 of the sequences that have one, and so on. What a step works on is one contiguous block,
// and padding is never computed.
#ifndef REGARD_NN_GRU_PACKING_H_
#define REGARD_NN_GRU_PACKING_H_

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace regard::nn {

struct Packing {
  std::int64_t rows = 0;              // N sequences
  std::int64_t steps = 0;             // columns of the padded batch
  std::int64_t total = 0;             // P, the sum of the lengths
  std::vector<std::int64_t> order;    // [N] the sequence of each row, longest first, equal ones as they came
  std::vector<std::int64_t> lengths;  // [N] in that order
  std::vector<std::int64_t> sizes;    // rows that have a step t; as many entries as the longest has steps
  std::vector<std::int64_t> offsets;  // the first packed row of step t
};

// lengths [N] int64, each in 0..steps; anything else throws regard::Error.
Packing Pack(const torch::Tensor& lengths, std::int64_t steps);

// The entries of `padded` [N, steps, ...] that are not padding, packed: [P, ...]. No gradient.
torch::Tensor PackRows(const torch::Tensor& padded, const Packing& packing);

// x [P, ...] packed -> [N, steps, ...]: row i holds sequence order[i], padding is 0. With gradient.
torch::Tensor UnpackRows(const torch::Tensor& x, const Packing& packing,
                         const std::vector<std::int64_t>& order);

// x [..., N, H] whose row i is sequence packing.order[i] -> row i is sequence order[i]. With gradient.
torch::Tensor ReorderRows(const torch::Tensor& x, const Packing& packing,
                          const std::vector<std::int64_t>& order);

// Calls body(begin, end) for blocks of at most `block` of 0..rows-1, on torch's threads when `work`
// multiplications are worth it. The blocks do not depend on the number of threads.
inline constexpr std::int64_t kRowBlock = 16;
void ForRowBlocks(std::int64_t rows, std::int64_t block, std::int64_t work,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body);

}  // namespace regard::nn

#endif  // REGARD_NN_GRU_PACKING_H_
