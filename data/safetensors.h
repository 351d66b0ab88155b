// .safetensors files: 8 bytes header size (little endian), a JSON header, then the tensors' bytes. No torch.
#ifndef REGARD_DATA_SAFETENSORS_H_
#define REGARD_DATA_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace regard::data {

// A tensor's bytes in C order, little endian, not owned. dtype is the format's name: "F32", "F64", "F16",
// "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL", "C64", "F8_E4M3", "F8_E5M2". What is
// read from a file need not be aligned: copy it.
struct TensorBytes {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// Bytes one element takes. Throws regard::Error naming an unknown dtype.
std::size_t DtypeSize(const std::string& dtype);

// A file read into memory; the tensors point into it. Movable, not copyable.
class SafetensorsFile {
 public:
  // Throws regard::Error naming the file and what is wrong with it: missing, cut short, a header that is too
  // long or not the format's JSON, an unknown dtype, a shape that does not fit its bytes, ranges that
  // overlap, leave a gap or reach past the end.
  static SafetensorsFile Read(const std::string& path);

  SafetensorsFile(SafetensorsFile&&) = default;
  SafetensorsFile& operator=(SafetensorsFile&&) = default;
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::map<std::string, TensorBytes>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Throws regard::Error naming the file and the missing tensor.
  const TensorBytes& at(const std::string& name) const;

 private:
  SafetensorsFile() = default;
  std::string path_;
  std::unique_ptr<std::string> bytes_;  // the file; does not move when this does
  std::map<std::string, TensorBytes> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Writes byte for byte what the Python package writes: tensors by type (the wider first), then name. The file
// is written under a temporary name, synced and renamed, so that path always holds a whole file. Throws
// regard::Error naming the file, or the tensor whose bytes do not fit its shape.
void WriteSafetensors(const std::string& path, const std::map<std::string, TensorBytes>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace regard::data

#endif  // REGARD_DATA_SAFETENSORS_H_
