// Memory for the kernels: aligned to a cache line, not initialised.
#ifndef REGARD_ENGINE_BASE_MEMORY_H_
#define REGARD_ENGINE_BASE_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace regard::engine {

inline constexpr std::size_t kAlignment = 64;  // bytes: a cache line, and the widest vector

struct AlignedDelete {
  void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{kAlignment}); }
};

// An array of trivial T.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size)
      : data_(static_cast<T*>(::operator new (size * sizeof(T), std::align_val_t{kAlignment}))) {}

  T* data() const { return data_.get(); }
  T& operator[](std::size_t at) const { return data_.get()[at]; }

 private:
  std::unique_ptr<T, AlignedDelete> data_;
};

// Scratch memory of one thread. What a piece of work takes is given back, all at once, when its Scratch ends;
// the memory itself stays for the next, so that repeated calls do not allocate. One Scratch at a time.
class Scratch {
 public:
  Scratch() : arena_(ThreadArena()) {}
  ~Scratch() { arena_.Release(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <typename T>
  T* Take(std::size_t size) {
    return static_cast<T*>(arena_.Take(size * sizeof(T)));
  }

 private:
  struct Block {
    Buffer<std::byte> memory;
    std::size_t size;
  };

  struct Arena {
    std::vector<Block> blocks;                     // the last one is in use
    std::size_t used = 0;                          // bytes of the last block
    std::size_t smallest = std::size_t{64} << 10;  // bytes of a new block

    void* Take(std::size_t bytes) {
      bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      if (blocks.empty() || blocks.back().size - used < bytes) {
        const std::size_t size = std::max(bytes, smallest);
        blocks.push_back({Buffer<std::byte>(size), size});
        used = 0;
      }
      void* memory = blocks.back().memory.data() + used;
      used += bytes;
      return memory;
    }

    // Where one block was not enough, the next piece of work finds one that is.
    void Release() {
      used = 0;
      if (blocks.size() <= 1) return;
      smallest = 0;
      for (const Block& block : blocks) smallest += block.size;
      blocks.clear();
    }
  };

  static Arena& ThreadArena() {
    thread_local Arena arena;
    return arena;
  }

  Arena& arena_;
};

}  // namespace regard::engine

#endif  // REGARD_ENGINE_BASE_MEMORY_H_
