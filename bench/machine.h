// What the machine can do at most: the measure that a kernel's speed is held against.
#ifndef REGARD_BENCH_MACHINE_H_
#define REGARD_BENCH_MACHINE_H_

#include <string>

namespace regard::bench {

// The processor's name as the system gives it, or "unknown processor".
std::string ProcessorName();

// Float32 operations a second (a multiply-add counts two) of `threads` threads that do nothing but
// independent multiply-adds in registers, in the instruction set that the engine runs on. Best of a few runs;
// 0.1 s.
double FmaPeak(int threads);

// Bytes a second of `threads` threads that sum an array far larger than the caches, several streams each.
// Best of a few runs; 0.5 s and 1 GB.
double ReadBandwidth(int threads);

}  // namespace regard::bench

#endif  // REGARD_BENCH_MACHINE_H_
