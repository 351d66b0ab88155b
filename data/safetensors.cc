#include "data/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/file.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

constexpr std::uint64_t kHeaderLimit = 100'000'000;  // the format's own
constexpr std::size_t kSizeBytes = 8;

struct Dtype {
  std::string_view name;
  std::size_t size;
};

// In the order in which the Python package lays tensors out.
constexpr std::array<Dtype, 16> kDtypes = {{{"U64", 8},
                                            {"I64", 8},
                                            {"F64", 8},
                                            {"C64", 8},
                                            {"F32", 4},
                                            {"U32", 4},
                                            {"I32", 4},
                                            {"BF16", 2},
                                            {"F16", 2},
                                            {"U16", 2},
                                            {"I16", 2},
                                            {"F8_E4M3", 1},
                                            {"F8_E5M2", 1},
                                            {"I8", 1},
                                            {"U8", 1},
                                            {"BOOL", 1}}};

std::size_t DtypeRank(const std::string& dtype) {
  const auto at =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& d) { return d.name == dtype; });
  if (at == kDtypes.end()) throw Error(fmt::format("type \"{}\" is not one of safetensors'", dtype));
  return static_cast<std::size_t>(at - kDtypes.begin());
}

// Bytes of a tensor; a negative size or a product beyond 63 bits is an error.
std::uint64_t ByteSize(const std::string& dtype, const std::vector<std::int64_t>& shape) {
  // A size of 0 makes the tensor empty whatever the others are.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::uint64_t bytes = DtypeSize(dtype);
  for (const std::int64_t size : shape) {
    const auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (size < 0 || bytes > limit / static_cast<std::uint64_t>(size)) {
      throw Error(fmt::format("shape [{}] is not possible", fmt::join(shape, ", ")));
    }
    bytes *= static_cast<std::uint64_t>(size);
  }
  return bytes;
}

// One entry of the header; throws regard::Error or nlohmann's exceptions.
TensorBytes ParseTensor(const nlohmann::json& entry, std::string_view data) {
  TensorBytes tensor;
  tensor.dtype = entry.at("dtype").get<std::string>();
  DtypeRank(tensor.dtype);
  for (const nlohmann::json& size : entry.at("shape")) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
      throw Error(fmt::format("shape {} is not possible", entry.at("shape").dump()));
    }
    tensor.shape.push_back(size.get<std::int64_t>());
  }
  const nlohmann::json& offsets = entry.at("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    throw Error("data_offsets are not two offsets");
  }
  const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
  if (begin > end || end > data.size()) {
    throw Error(
        fmt::format("its bytes {} to {} do not lie within the {} bytes of data", begin, end, data.size()));
  }
  const std::uint64_t expected = ByteSize(tensor.dtype, tensor.shape);
  if (end - begin != expected) {
    throw Error(fmt::format("it has {} bytes; expected {} for {} of shape [{}]", end - begin, expected,
                            tensor.dtype, fmt::join(tensor.shape, ", ")));
  }
  tensor.bytes = std::as_bytes(std::span(data.data() + begin, end - begin));
  return tensor;
}

// The tensors' ranges must follow each other without a gap and fill the data.
void CheckRanges(const std::map<std::string, TensorBytes>& tensors, std::string_view data) {
  const auto* base = reinterpret_cast<const std::byte*>(data.data());
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const auto& [name, tensor] : tensors) {
    const auto begin = static_cast<std::size_t>(tensor.bytes.data() - base);
    ranges.emplace_back(begin, begin + tensor.bytes.size());
  }
  std::sort(ranges.begin(), ranges.end());
  std::size_t at = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != at) {
      throw Error(fmt::format("tensors {} at byte {} of the data", begin < at ? "overlap" : "leave a gap",
                              std::min(at, begin)));
    }
    at = end;
  }
  if (at != data.size()) throw Error(fmt::format("{} bytes of data; its tensors have {}", data.size(), at));
}

nlohmann::json ParseHeader(std::string_view bytes, std::string_view* data) {
  if (bytes.size() < kSizeBytes) throw Error(fmt::format("cut short: {} bytes", bytes.size()));
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < kSizeBytes; ++i) {
    size |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  if (size > kHeaderLimit || size > bytes.size() - kSizeBytes) {
    throw Error(fmt::format("a header of {} bytes in a file of {}: cut short, or not a .safetensors file",
                            size, bytes.size()));
  }
  *data = bytes.substr(kSizeBytes + size);
  nlohmann::json header = nlohmann::json::parse(bytes.substr(kSizeBytes, size), nullptr, false);
  if (!header.is_object()) throw Error("the header is not a JSON object");
  return header;
}

}  // namespace

std::size_t DtypeSize(const std::string& dtype) { return kDtypes[DtypeRank(dtype)].size; }

SafetensorsFile SafetensorsFile::Read(const std::string& path) {
  SafetensorsFile file;
  file.path_ = path;
  file.bytes_ = std::make_unique<std::string>(ReadFile(path));
  std::string name;
  try {
    std::string_view data;
    const nlohmann::json header = ParseHeader(*file.bytes_, &data);
    for (const auto& [key, value] : header.items()) {
      if (key == "__metadata__") {
        file.metadata_ = value.get<std::map<std::string, std::string>>();
        continue;
      }
      name = fmt::format("tensor \"{}\": ", key);
      file.tensors_.emplace(key, ParseTensor(value, data));
      name.clear();
    }
    CheckRanges(file.tensors_, data);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}{}", path, name, error.what()));
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: {}the header is not as expected: {}", path, name, error.what()));
  }
  return file;
}

const TensorBytes& SafetensorsFile::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw Error(fmt::format("{}: there is no tensor \"{}\"", path_, name));
  return found->second;
}

void WriteSafetensors(const std::string& path, const std::map<std::string, TensorBytes>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<std::pair<std::size_t, const std::pair<const std::string, TensorBytes>*>> order;
  for (const auto& named : tensors) {
    const auto& [name, tensor] = named;
    const std::uint64_t expected = ByteSize(tensor.dtype, tensor.shape);
    if (tensor.bytes.size() != expected || name == "__metadata__") {
      throw Error(fmt::format("{}: tensor \"{}\" has {} bytes; expected {} for {} of shape [{}]", path, name,
                              tensor.bytes.size(), expected, tensor.dtype, fmt::join(tensor.shape, ", ")));
    }
    order.emplace_back(DtypeRank(tensor.dtype), &named);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t at = 0;
  for (const auto& [rank, named] : order) {
    const auto& [name, tensor] = *named;
    header[name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}};
    header[name]["data_offsets"] = {at, at + tensor.bytes.size()};
    at += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.append((kSizeBytes - text.size() % kSizeBytes) % kSizeBytes, ' ');
  std::string size(kSizeBytes, '\0');
  for (std::size_t i = 0; i < kSizeBytes; ++i) size[i] = static_cast<char>(text.size() >> (8 * i));
  AtomicFile file(path);
  file.Write(size);
  file.Write(text);
  for (const auto& [rank, named] : order) {
    const auto& bytes = named->second.bytes;
    file.Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  file.Commit();
}

}  // namespace regard::data
