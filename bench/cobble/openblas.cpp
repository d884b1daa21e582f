#include "openblas.hpp"

#include <dlfcn.h>
#ifdef __linux__
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <type_traits>
#include <utility>

extern char** environ;

namespace cobble::program {
namespace {

/// The name carries the version of the interface that is called here: 32-bit sizes.
constexpr const char* kLibrary = "libopenblas.so.0";

constexpr int kRowMajor = 101;
constexpr int kNoTranspose = 111;
constexpr int kTranspose = 112;

template <class T>
using Gemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, T alpha, const T* a, int lda,
                      const T* b, int ldb, T beta, T* c, int ldc);

template <class T>
void call(Gemm<T> gemm, const OpenBlas::Product& product, T alpha, const T* a, const T* b, T beta, T* c) {
  const auto m = static_cast<int>(product.m);
  const auto n = static_cast<int>(product.n);
  const auto k = static_cast<int>(product.k);
  gemm(kRowMajor, product.transpose_a ? kTranspose : kNoTranspose, product.transpose_b ? kTranspose : kNoTranspose, m,
       n, k, alpha, a, product.transpose_a ? m : k, b, product.transpose_b ? k : n, beta, c, n);
}

}  // namespace

struct OpenBlas::Functions {
  Gemm<float> sgemm = nullptr;
  Gemm<double> dgemm = nullptr;
  void (*set_threads)(int) = nullptr;
  char* (*config)() = nullptr;
  char* (*core)() = nullptr;
};

std::vector<std::string> clear_openblas_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "OPENBLAS_", 9) != 0) continue;
    names.emplace_back(*entry, std::strcspn(*entry, "="));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
  return names;
}

std::optional<std::string> better_openblas_core(const std::string& detected) {
#if defined(__x86_64__)
  const auto is_one_of = [&detected](std::initializer_list<const char*> cores) {
    return std::find(cores.begin(), cores.end(), detected) != cores.end();
  };
  if (is_one_of({"SkylakeX", "Cooperlake", "Sapphirerapids", "SapphireRapids"})) return std::nullopt;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      !is_one_of({"Zen"})) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !is_one_of({"Haswell", "Zen"})) {
    return "Haswell";
  }
#endif
  return std::nullopt;
}

std::unique_ptr<OpenBlas> OpenBlas::load() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);  // stays: its threads run in it
  return library == nullptr ? nullptr : from_library(library);
}

std::unique_ptr<OpenBlas> OpenBlas::load_again(const std::string& core) {
#ifdef __linux__
  void* const first = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  link_map* map = nullptr;
  if (first == nullptr || dlinfo(first, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) return nullptr;
  // The loader takes a file for one that it has by its inode: a copy in memory is another one.
  std::ifstream file(map->l_name, std::ios::binary);
  const int copy = memfd_create("openblas", MFD_CLOEXEC);
  if (copy < 0) return nullptr;
  const std::string path = "/proc/self/fd/" + std::to_string(copy);
  std::ofstream(path, std::ios::binary) << file.rdbuf();
  setenv("OPENBLAS_CORETYPE", core.c_str(), 1);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  unsetenv("OPENBLAS_CORETYPE");
  close(copy);
  std::unique_ptr<OpenBlas> result = library == nullptr ? nullptr : from_library(library);
  return result && result->core() == core ? std::move(result) : nullptr;
#else
  static_cast<void>(core);
  return nullptr;
#endif
}

std::unique_ptr<OpenBlas> OpenBlas::from_library(void* library) {
  auto functions = std::make_unique<Functions>();
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  const bool complete = find(functions->sgemm, "cblas_sgemm") && find(functions->dgemm, "cblas_dgemm") &&
                        find(functions->set_threads, "openblas_set_num_threads") &&
                        find(functions->config, "openblas_get_config") &&
                        find(functions->core, "openblas_get_corename");
  return complete ? std::unique_ptr<OpenBlas>(new OpenBlas(std::move(functions))) : nullptr;
}

OpenBlas::OpenBlas(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}
OpenBlas::~OpenBlas() = default;

void OpenBlas::set_threads(int threads) const { functions_->set_threads(threads); }

std::string OpenBlas::version() const {
  std::istringstream words(functions_->config());  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  std::string name;
  std::string version;
  words >> name >> version;
  return version;
}

std::string OpenBlas::core() const { return functions_->core(); }

void OpenBlas::multiply(const Product& product, float alpha, const float* a, const float* b, float beta,
                        float* c) const {
  call(functions_->sgemm, product, alpha, a, b, beta, c);
}

void OpenBlas::multiply(const Product& product, double alpha, const double* a, const double* b, double beta,
                        double* c) const {
  call(functions_->dgemm, product, alpha, a, b, beta, c);
}

}  // namespace cobble::program
