// The common options' threads, for commands that call torch.
#ifndef REGARD_CLI_THREADS_H_
#define REGARD_CLI_THREADS_H_

#include <ATen/Parallel.h>

#include "cli/options.h"

namespace regard::cli {

// Torch's threads become those asked for; where none are, it keeps its own number.
inline void UseThreads(const Common& common) {
  if (common.threads > 0) at::set_num_threads(static_cast<int>(common.threads));
}

}  // namespace regard::cli

#endif  // REGARD_CLI_THREADS_H_
