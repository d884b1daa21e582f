#include "peers.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "cobble/files.hpp"
#include "dense_openblas.hpp"
#include "report.hpp"
#include "run_process.hpp"
#include "text.hpp"
#include "write_file.hpp"

namespace cobble::program {
namespace {

namespace fs = std::filesystem;

/// Pairs, masked ones included, that a dense peer is asked to hold: 256 MiB of f32.
constexpr std::int64_t kMostDensePairs = std::int64_t{1} << 26;

std::string last_line(const std::string& text) {
  const std::string trimmed = text.substr(0, text.find_last_not_of(" \n\r\t") + 1);
  const std::size_t end = trimmed.find_last_of('\n');
  return one_line(end == std::string::npos ? trimmed : trimmed.substr(end + 1));
}

/// Removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "cobble_peer_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

template <class T>
void write_tensor(const fs::path& path, const OwnedTensor<T>& tensor) {
  const TensorShape& shape = tensor.shape;
  const std::span<const T> values(tensor.values.data(), static_cast<std::size_t>(tensor.values.size()));
  write_npy(path, {"", {shape.batch, shape.heads, shape.tokens, shape.features}, values});
}

template <class T>
PeerTimes run_program(const Peer& peer, const Passes<T>& passes, int threads, double seconds, PeerTensors<T>& results) {
  const TemporaryFolder folder;
  const ProblemTensors<T>& tensors = passes.tensors();
  const Json problem = {{"scale", passes.plan().problem().scale.value()},
                        {"dtype", sizeof(T) == 8 ? "f64" : "f32"},
                        {"threads", threads},
                        {"seconds", seconds}};
  write_file((folder.path() / "problem.json").string(), problem.dump());
  write_tensor(folder.path() / "query.npy", tensors.query);
  write_tensor(folder.path() / "key.npy", tensors.key);
  write_tensor(folder.path() / "value.npy", tensors.value);
  write_tensor(folder.path() / "grad_output.npy", tensors.grad_output);
  write_pattern(folder.path() / (peer.dense ? "mask.npy" : "pattern.npz"), passes.pattern());

  std::vector<std::string> command = peer.command;
  command.push_back(folder.path().string());
  const ProcessResult process = run_process(command);
  if (process.status != 0) {
    throw std::runtime_error(
        fmt::format("{} ends with status {}: {}", peer.name, process.status, last_line(process.errors)));
  }
  const Json times = Json::parse(process.output);
  const auto time = [&times](const char* name) {
    return times.at(name).is_number() ? std::optional(times.at(name).get<double>()) : std::nullopt;
  };
  PeerTimes result{time("forward_ms"), time("backward_ms")};
  if (result.forward_ms) results.output = read_tensor<T>(folder.path() / "output.npy");
  if (result.backward_ms) {
    results.grad_query = read_tensor<T>(folder.path() / "grad_query.npy");
    results.grad_key = read_tensor<T>(folder.path() / "grad_key.npy");
    results.grad_value = read_tensor<T>(folder.path() / "grad_value.npy");
  }
  return result;
}

template <class T>
double relative_difference(const Tensor<T>& ours, const Tensor<T>& theirs) {
  if (ours.shape() != theirs.shape()) throw std::runtime_error("the peer's results have another shape than ours");
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < ours.values().size(); ++i) {
    const double distance = std::abs(static_cast<double>(ours.values()[i]) - static_cast<double>(theirs.values()[i]));
    difference = std::isnan(distance) ? std::numeric_limits<double>::infinity() : std::max(difference, distance);
    largest = std::max(largest, std::abs(static_cast<double>(ours.values()[i])));
  }
  return largest > 0 ? difference / largest : difference;
}

}  // namespace

Peers find_peers(const Yardstick& yardstick) {
  Peers peers;
  if (const OpenBlas* openblas = yardstick.openblas()) {
    peers.present.push_back({"dense on OpenBLAS", openblas->version(), {}, true});
  } else {
    peers.absent.push_back({"dense on OpenBLAS", "libopenblas.so.0 is not installed"});
  }
  const std::string scripts = COBBLE_PEERS_FOLDER;
  // Debian's packages are those of the system's interpreter.
  const std::string python = fs::exists("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
  std::vector<Peer> programs = {{"PyTorch", "", {python, scripts + "/pytorch.py"}, true},
                                {"ONNX Runtime", "", {"node", scripts + "/onnxruntime.js"}, true, true}};
  const std::string graphblas = COBBLE_GRAPHBLAS_PEER;
  if (graphblas.empty()) {
    peers.absent.push_back({"GraphBLAS", "not found when Cobble was built"});
  } else {
    programs.insert(programs.begin(), {"GraphBLAS", "", {graphblas}, false});
  }
  for (Peer& peer : programs) {
    std::vector<std::string> command = peer.command;
    command.push_back("--version");
    const ProcessResult process = run_process(command);
    if (process.status == 0) {
      peer.version = last_line(process.output);
      peers.present.push_back(std::move(peer));
    } else {
      peers.absent.push_back({peer.name, last_line(process.errors)});
    }
  }
  return peers;
}

template <class T>
std::optional<PeerResult> run_peer(const Peer& peer, const Yardstick& yardstick, const Passes<T>& passes, int threads,
                                   double seconds) {
  const Problem& problem = passes.plan().problem();
  const std::int64_t heads = problem.batch * problem.query_heads;
  if (peer.single && sizeof(T) != 4) return std::nullopt;
  if (peer.dense &&
      passes.pattern().rows() > kMostDensePairs / std::max<std::int64_t>(heads * passes.pattern().columns(), 1)) {
    return std::nullopt;
  }
  PeerTensors<T> theirs{Tensor<T>(passes.result().output.shape()), Tensor<T>(passes.gradients().query.shape()),
                        Tensor<T>(passes.gradients().key.shape()), Tensor<T>(passes.gradients().value.shape())};
  const PeerTimes times = peer.command.empty()
                              ? run_dense_openblas(*yardstick.openblas(), passes, threads, seconds, theirs)
                              : run_program(peer, passes, threads, seconds, theirs);
  PeerResult result{peer.name, peer.version, times.forward_ms, times.backward_ms, std::nullopt};
  if (times.forward_ms) result.max_difference = relative_difference(passes.result().output, theirs.output);
  if (times.backward_ms) {
    result.max_difference =
        std::max({*result.max_difference, relative_difference(passes.gradients().query, theirs.grad_query),
                  relative_difference(passes.gradients().key, theirs.grad_key),
                  relative_difference(passes.gradients().value, theirs.grad_value)});
  }
  return result;
}

template std::optional<PeerResult> run_peer(const Peer&, const Yardstick&, const Passes<float>&, int, double);
template std::optional<PeerResult> run_peer(const Peer&, const Yardstick&, const Passes<double>&, int, double);

}  // namespace cobble::program
