#include "train/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "data/file.h"
#include "data/safetensors.h"
#include "engine/base/error.h"

namespace regard::train {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "config.json", kWeights[] = "model.safetensors", kTraining[] = "optimizer.pt",
               kMetrics[] = "metrics.jsonl";

// 64-bit FNV-1a: notices a changed or cut file, protects against no intent.
std::string Checksum(std::string_view content) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : content) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

// "runs/a/" and "runs/a" are the same run.
std::string Normalised(const std::string& path) {
  if (path.empty()) throw UsageError("the run directory has an empty name");
  std::string result = fs::path(path).lexically_normal().string();
  while (result.size() > 1 && result.back() == '/') result.pop_back();
  return result;
}

[[noreturn]] void Fail(const std::string& action, const std::string& path, const std::error_code& code) {
  throw Error(fmt::format("cannot {} {}: {}", action, path, code.message()));
}

void Sync(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  // Some file systems cannot flush a folder (EINVAL); there is nothing better to do on those.
  const bool failed = fd < 0 || (fsync(fd) != 0 && errno != EINVAL);
  const std::error_code code(errno, std::generic_category());
  if (fd >= 0) close(fd);
  if (failed) Fail("write", path, code);
}

std::string DtypeName(const torch::Tensor& tensor) {
  static const std::map<torch::ScalarType, std::string> names = {
      {torch::kFloat, "F32"}, {torch::kDouble, "F64"}, {torch::kHalf, "F16"},  {torch::kBFloat16, "BF16"},
      {torch::kLong, "I64"},  {torch::kInt, "I32"},    {torch::kShort, "I16"}, {torch::kChar, "I8"},
      {torch::kByte, "U8"},   {torch::kBool, "BOOL"}};
  const auto found = names.find(tensor.scalar_type());
  if (found == names.end()) {
    throw Error(fmt::format("a weight of type {} cannot be saved", c10::toString(tensor.scalar_type())));
  }
  return found->second;
}

torch::ScalarType TypeOf(const std::string& dtype) {
  static const std::map<std::string, torch::ScalarType> types = {
      {"F32", torch::kFloat}, {"F64", torch::kDouble}, {"F16", torch::kHalf},  {"BF16", torch::kBFloat16},
      {"I64", torch::kLong},  {"I32", torch::kInt},    {"I16", torch::kShort}, {"I8", torch::kChar},
      {"U8", torch::kByte},   {"BOOL", torch::kBool}};
  const auto found = types.find(dtype);
  if (found == types.end()) throw Error(fmt::format("a weight of type {} cannot be loaded", dtype));
  return found->second;
}

// By its own marks: other programs' folders hold a config.json and a model.safetensors too.
bool IsRun(const std::string& path) {
  std::error_code code;
  const std::string name = path + "/" + kConfig;
  if (!fs::is_regular_file(name, code)) return false;
  const nlohmann::json config =
      nlohmann::json::parse(data::ReadFile(name), nullptr, /*allow_exceptions=*/false);
  return config.is_object() && config.contains("format") && config.contains("regard") &&
         config.contains("kind");
}

bool IsEmptyOrMissing(const std::string& path) {
  std::error_code code;
  if (!fs::exists(path, code)) return true;
  return fs::is_directory(path, code) && fs::is_empty(path, code);
}

// Gives the staged folder its name; an old run that has it goes. Where the file system can, they change
// places in one step; elsewhere there is a moment without a run.
void Publish(const std::string& staged, const std::string& path) {
  if (rename(staged.c_str(), path.c_str()) == 0) return;
  const auto check = [&](int result) {
    if (result != 0) Fail("create run directory", path, std::error_code(errno, std::generic_category()));
  };
  std::string old = staged;
  if (renameat2(AT_FDCWD, staged.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) check(-1);
    old = staged + ".old";
    check(rename(path.c_str(), old.c_str()));
    check(rename(staged.c_str(), path.c_str()));
  }
  std::error_code code;
  fs::remove_all(old, code);
}

c10::Dict<std::string, torch::Tensor> ToDict(const NamedTensors& tensors) {
  c10::Dict<std::string, torch::Tensor> dict;
  for (const auto& [name, tensor] : tensors) dict.insert(name, tensor.detach());
  return dict;
}

NamedTensors FromDict(const c10::IValue& value) {
  NamedTensors tensors;
  for (const auto& entry : value.toGenericDict()) {
    tensors.emplace_back(entry.key().toStringRef(), entry.value().toTensor());
  }
  return tensors;
}

}  // namespace

void WriteWeights(const std::string& path, const NamedTensors& weights) {
  NamedTensors held;  // keeps the bytes alive
  std::map<std::string, data::TensorBytes> tensors;
  for (const auto& [name, weight] : weights) {
    const torch::Tensor tensor = weight.detach().cpu().contiguous();
    held.emplace_back(name, tensor);
    tensors[name] = {DtypeName(tensor),
                     tensor.sizes().vec(),
                     {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
  }
  data::WriteSafetensors(path, tensors, {{"format", "pt"}});
}

NamedTensors ReadWeights(const std::string& path) {
  const data::SafetensorsFile file = data::SafetensorsFile::Read(path);
  NamedTensors weights;
  for (const auto& [name, tensor] : file.tensors()) {
    const auto type = TypeOf(tensor.dtype);
    weights.emplace_back(
        name, torch::from_blob(const_cast<std::byte*>(tensor.bytes.data()), tensor.shape, type).clone());
  }
  return weights;
}

void RunDirectory::CheckVacant(const std::string& path, bool force) {
  const std::string name = Normalised(path);
  if (IsEmptyOrMissing(name)) return;
  if (!IsRun(name)) {
    throw UsageError(fmt::format("{} exists and is not a run directory: name another one", name));
  }
  if (!force) {
    throw UsageError(fmt::format(
        "{} already holds a run: continue it with --resume, replace it with --force, or name another "
        "directory",
        name));
  }
}

RunDirectory RunDirectory::Create(const std::string& path, const std::string& kind, nlohmann::json config,
                                  const NamedTensors& weights,
                                  const std::function<void(const std::string&)>& add_files, bool force) {
  CheckVacant(path, force);
  RunDirectory run(Normalised(path));
  std::error_code code;
  const fs::path parent = fs::path(run.path_).parent_path();
  if (!parent.empty() && !fs::create_directories(parent, code) && code) Fail("create", parent.string(), code);
  const std::string staged = fmt::format("{}.new{}", run.path_, getpid());
  fs::remove_all(staged, code);
  if (!fs::create_directory(staged, code)) Fail("create run directory", run.path_, code);
  try {
    add_files(staged);
    nlohmann::json files = nlohmann::json::object();
    for (const auto& entry : fs::directory_iterator(staged)) {
      files[entry.path().filename().string()] = Checksum(data::ReadFile(entry.path().string()));
    }
    config["format"] = kRunFormat;
    config["regard"] = REGARD_VERSION;
    config["kind"] = kind;
    config["files"] = files;
    run.config_ = config;
    WriteWeights(staged + "/" + kWeights, weights);
    data::WriteFileAtomically(staged + "/" + kMetrics, "");
    data::WriteFileAtomically(staged + "/" + kConfig, config.dump(2) + "\n");
    Sync(staged);
    Publish(staged, run.path_);
  } catch (...) {
    fs::remove_all(staged, code);
    throw;
  }
  Sync(parent.empty() ? "." : parent.string());
  return run;
}

std::string RunDirectory::KindOf(const std::string& path) {
  const std::string name = Normalised(path) + "/" + kConfig;
  std::error_code code;
  if (!fs::exists(Normalised(path), code))
    throw Error(fmt::format("{}: there is no such run directory", path));
  if (!fs::exists(name, code))
    throw Error(fmt::format("{} is not a run directory: it has no {}", path, kConfig));
  const nlohmann::json config =
      nlohmann::json::parse(data::ReadFile(name), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object() || !config.contains("kind") || !config["kind"].is_string()) {
    throw Error(fmt::format("{} is cut short or damaged: expected a JSON object with a kind", name));
  }
  return config["kind"];
}

RunDirectory RunDirectory::Open(const std::string& path, const std::string& kind,
                                std::initializer_list<const char*> objects) {
  RunDirectory run(Normalised(path));
  std::error_code code;
  if (!fs::exists(run.path_, code)) throw Error(fmt::format("{}: there is no such run directory", run.path_));
  if (!fs::is_directory(run.path_, code)) {
    throw Error(fmt::format("{} is a file, expected a run directory", run.path_));
  }
  const std::string name = run.File(kConfig);
  if (!fs::exists(name, code)) {
    throw Error(fmt::format("{} is not a run directory: it has no {}", run.path_, kConfig));
  }
  run.config_ = nlohmann::json::parse(data::ReadFile(name), nullptr, /*allow_exceptions=*/false);
  if (!run.config_.is_object()) {
    throw Error(fmt::format("{} is cut short or damaged: expected a JSON object", name));
  }
  const nlohmann::json format = run.config_.value("format", nlohmann::json());
  if (format != kRunFormat) {
    throw Error(fmt::format("{}: the run has format {}, written by regard {}; regard {} reads format {}",
                            run.path_, format.dump(),
                            run.config_.value("regard", nlohmann::json("unknown")).dump(), REGARD_VERSION,
                            kRunFormat));
  }
  const nlohmann::json found = run.config_.value("kind", nlohmann::json());
  if (found != kind) {
    throw Error(fmt::format("{}: a run of kind {}, expected \"{}\"", run.path_, found.dump(), kind));
  }
  for (const char* entry : objects) {
    if (!run.config_.value(entry, nlohmann::json()).is_object()) {
      throw Error(fmt::format("{}: \"{}\" is missing or no object", name, entry));
    }
  }
  const nlohmann::json files = run.config_.value("files", nlohmann::json::object());
  for (const auto& [file, checksum] : files.items()) {
    const std::string actual = Checksum(data::ReadFile(run.File(file)));
    if (checksum != actual) {
      throw Error(
          fmt::format("{} does not belong to this run or is cut short: its checksum is {}, {} expects {}",
                      run.File(file), actual, kConfig, checksum.dump()));
    }
  }
  if (!fs::exists(run.File(kWeights), code)) {
    throw Error(fmt::format("{}: the run is cut short, it has no {}", run.path_, kWeights));
  }
  return run;
}

void RunDirectory::SaveWeights(const NamedTensors& weights) { WriteWeights(File(kWeights), weights); }

void RunDirectory::LoadWeights(torch::nn::Module& module) const {
  CopyWeights(ReadWeights(File(kWeights)), module, File(kWeights));
}

void RunDirectory::SaveCheckpoint(const Checkpoint& checkpoint) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  dict.insert("format", kRunFormat);
  dict.insert("state", checkpoint.state.dump());
  dict.insert("weights", ToDict(checkpoint.weights));
  dict.insert("optimizer", ToDict(checkpoint.optimizer));
  const std::vector<char> bytes = torch::pickle_save(torch::IValue(dict));
  data::WriteFileAtomically(File(kTraining), std::string_view(bytes.data(), bytes.size()));
}

Checkpoint RunDirectory::LoadCheckpoint() const {
  const std::string name = File(kTraining);
  std::error_code code;
  if (!fs::exists(name, code))
    throw Error(fmt::format("{} is missing: there is no training to resume", name));
  const std::string bytes = data::ReadFile(name);
  try {
    const c10::impl::GenericDict dict =
        torch::pickle_load(std::vector<char>(bytes.begin(), bytes.end())).toGenericDict();
    return {nlohmann::json::parse(dict.at("state").toStringRef()), FromDict(dict.at("weights")),
            FromDict(dict.at("optimizer"))};
  } catch (const std::exception&) {
    throw Error(fmt::format("{} is cut short or damaged ({} bytes): the training cannot be resumed", name,
                            bytes.size()));
  }
}

void RunDirectory::AppendMetrics(const nlohmann::json& line) {
  if (!metrics_.is_open()) metrics_.open(File(kMetrics), std::ios::app | std::ios::binary);
  metrics_ << line.dump() + "\n" << std::flush;
  if (!metrics_) Fail("write", File(kMetrics), std::error_code(errno, std::generic_category()));
}

void RunDirectory::TruncateMetrics(std::int64_t step) {
  const std::string name = File(kMetrics);
  std::error_code code;
  if (!fs::exists(name, code)) return;
  const std::string content = data::ReadFile(name);
  std::size_t kept = 0;
  while (kept < content.size()) {
    const std::size_t end = content.find('\n', kept);
    if (end == std::string::npos) break;
    const nlohmann::json line =
        nlohmann::json::parse(content.begin() + static_cast<std::ptrdiff_t>(kept),
                              content.begin() + static_cast<std::ptrdiff_t>(end), nullptr,
                              /*allow_exceptions=*/false);
    if (!line.is_object() || !line.contains("step") || line["step"] > step) break;
    kept = end + 1;
  }
  if (kept == content.size()) return;
  metrics_.close();
  fs::resize_file(name, kept, code);
  if (code) Fail("write", name, code);
}

NamedTensors WeightsOf(const torch::nn::Module& module) {
  NamedTensors weights;
  for (const auto& item : module.named_parameters()) weights.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) weights.emplace_back(item.key(), item.value());
  return weights;
}

void CopyWeights(const NamedTensors& weights, torch::nn::Module& module, const std::string& origin) {
  torch::NoGradGuard no_grad;
  const std::map<std::string, torch::Tensor> found(weights.begin(), weights.end());
  const NamedTensors own = WeightsOf(module);
  std::set<std::string> names;
  for (const auto& [name, tensor] : own) {
    names.insert(name);
    const auto it = found.find(name);
    if (it == found.end()) throw Error(fmt::format("{}: the weight \"{}\" is missing", origin, name));
    if (it->second.sizes() != tensor.sizes() || it->second.scalar_type() != tensor.scalar_type()) {
      throw Error(fmt::format("{}: the weight \"{}\" is {} [{}], the model expects {} [{}]", origin, name,
                              c10::toString(it->second.scalar_type()), fmt::join(it->second.sizes(), ", "),
                              c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", ")));
    }
  }
  for (const auto& [name, tensor] : found) {
    if (!names.contains(name)) throw Error(fmt::format("{}: unexpected weight \"{}\"", origin, name));
  }
  for (const auto& [name, tensor] : own) tensor.copy_(found.at(name));
}

}  // namespace regard::train
