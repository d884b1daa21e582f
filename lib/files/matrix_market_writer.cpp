#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

#include "files/atomic_file.hpp"
#include "files/matrix_market.hpp"

namespace cobble::detail {
namespace {

/// A line put together in place; long enough for two indices and a value.
class Line {
 public:
  template <class Number>
  void append(Number value) {
    end_ = std::to_chars(end_, buffer_ + sizeof buffer_, value).ptr;
  }
  void append(char c) { *end_++ = c; }
  std::string_view text() const noexcept { return {buffer_, static_cast<std::size_t>(end_ - buffer_)}; }

 private:
  char buffer_[64];
  char* end_ = buffer_;
};

/// `append_value(line, entry)` adds what follows the column index.
template <class AppendValue>
void write(const std::filesystem::path& path, const CsrPatternView& matrix, const char* field,
           AppendValue append_value) {
  AtomicFile file(path);
  file.write("%%MatrixMarket matrix coordinate " + std::string(field) + " general\n" + std::to_string(matrix.rows) +
             " " + std::to_string(matrix.columns) + " " + std::to_string(matrix.entries()) + "\n");
  std::size_t entry = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (const std::int32_t column : matrix.row(row)) {
      Line line;
      line.append(row + 1);
      line.append(' ');
      line.append(std::int64_t{column} + 1);
      append_value(line, entry++);
      line.append('\n');
      file.write(line.text());
    }
  }
  file.commit();
}

template <class T>
void write_values(const std::filesystem::path& path, const CsrView<T>& matrix) {
  validate(matrix);
  write(path, matrix, "real", [&](Line& line, std::size_t entry) {
    line.append(' ');
    // As a double also for float: the shortest text of a float is not always its value read as a double.
    line.append(static_cast<double>(matrix.values[entry]));
  });
}

}  // namespace

void write_matrix_market(const std::filesystem::path& path, const CsrPatternView& matrix) {
  validate(matrix);
  write(path, matrix, "pattern", [](Line&, std::size_t) {});
}

void write_matrix_market(const std::filesystem::path& path, const CsrView<float>& matrix) {
  write_values(path, matrix);
}

void write_matrix_market(const std::filesystem::path& path, const CsrView<double>& matrix) {
  write_values(path, matrix);
}

}  // namespace cobble::detail
