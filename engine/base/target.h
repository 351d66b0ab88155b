// Which instruction set the kernels run on.
#ifndef REGARD_ENGINE_BASE_TARGET_H_
#define REGARD_ENGINE_BASE_TARGET_H_

#include <string>
#include <vector>

#include "regard/status.h"

namespace regard::engine {

// The names that this build has kernels for and this machine can run, best first ("AVX3", "AVX2", ...).
std::vector<std::string> Targets();

// Chooses the target once for the whole program: the one that REGARD_TARGET names in the environment, or else
// the best. The result, also of an unknown name, is kept.
Status ChooseTarget();

// For tests: chooses again, by name; "" is the best. No kernel may be running.
Status ForceTarget(const std::string& name);

}  // namespace regard::engine

#endif  // REGARD_ENGINE_BASE_TARGET_H_
