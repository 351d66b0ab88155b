// NumPy .npy files: float32, float64 and int64, C order, little endian, header versions 1 and 2.
#ifndef REGARD_DATA_NPY_H_
#define REGARD_DATA_NPY_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace regard::data {

struct NpyArray {
  std::vector<std::int64_t> shape;  // empty: a scalar, one element
  std::variant<std::vector<float>, std::vector<double>, std::vector<std::int64_t>> values;  // C order
};

// Throws regard::Error naming the file and what is wrong: missing, not .npy, cut short, longer than its
// shape, another type, Fortran order.
NpyArray ReadNpy(const std::string& path);

// Writes what numpy.save writes. Under a temporary name, synced and renamed. Throws regard::Error naming the
// file, or a shape that does not fit the number of values.
void WriteNpy(const std::string& path, const NpyArray& array);

}  // namespace regard::data

#endif  // REGARD_DATA_NPY_H_
