#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cobble/compressed.hpp"
#include "cobble/coo.hpp"
#include "cobble/csr.hpp"
#include "cobble/half.hpp"
#include "cobble/pattern.hpp"
#include "cobble/tensor.hpp"

// Pattern files and arrays: Matrix Market (.mtx), SMTX of the Deep Learning Matrix Collection (.smtx), SciPy's sparse
// matrices and NumPy's arrays (.npz, .npy).
//
// Readers tell the format by content, then by name. A stored entry is a pair whatever its value; in dense files
// non-zero means pair. All throw FileError{file_not_found, file_format} with path, line and column, and never allocate
// from a number in a header before comparing it with the file's size. Entries take bytes of the file, empty rows may
// take none: a file may have at most 2^22 rows or columns, or 64 for each of its bytes if that is more. A packed member
// of a .npz may not claim more bytes than deflate can give. Writers write to a temporary file beside the target and
// rename it, so that a failure leaves no half-written file.

namespace cobble {

enum class FileFormat { matrix_market, smtx, npz, npy };
std::string_view to_string(FileFormat format) noexcept;

struct ReadOptions {
  /// Duplicates, and rows whose columns do not increase in the file's order, are errors. The order of the rows is free
  /// where the format leaves it so (.mtx, SciPy's COO and CSC).
  bool strict = false;
  bool drop_zeros = false;        ///< stored zeros are no pairs
  bool padded_lists = false;      ///< an integer .npy of shape (rows, k) is a list of selected columns, -1 padded
  std::int64_t list_columns = 0;  ///< columns of such a list's pattern; 0: as many as rows
};

/// What the reader met.
struct ReadReport {
  FileFormat format = FileFormat::matrix_market;
  std::int64_t stored_entries = 0;  ///< entries the pattern has as stored, symmetry expanded, duplicates counted
  std::int64_t zeros_dropped = 0;   ///< of them
  std::int64_t duplicates_merged = 0;
  bool sorted_rows = false;  ///< the columns of some row had to be sorted
  bool expanded_symmetry = false;
  std::int64_t empty_rows = 0;
};

/// Reads the structure. BSR files give a BSR-backed pattern, everything else a CSR-backed one.
Pattern read_pattern(const std::filesystem::path& path, const ReadOptions& options = {}, ReadReport* report = nullptr);

/// Reads structure and values (of a pattern-only file: 1). Skew-symmetric and symmetric files are expanded; complex
/// values are an error, integers beyond 2^53 are rounded. Duplicates are added up. BSR files give all entries of their
/// blocks.
CsrMatrix<double> read_csr(const std::filesystem::path& path, const ReadOptions& options = {},
                           ReadReport* report = nullptr);

/// The same from memory; `name` stands for the path in messages and gives the format where the content does not.
Pattern read_pattern_from_memory(std::span<const std::byte> bytes, const std::string& name,
                                 const ReadOptions& options = {}, ReadReport* report = nullptr);
CsrMatrix<double> read_csr_from_memory(std::span<const std::byte> bytes, const std::string& name,
                                       const ReadOptions& options = {}, ReadReport* report = nullptr);

/// Writes a pattern in the format of the name: .mtx (coordinate pattern general), .smtx, .npz (SciPy CSR, or BSR for
/// a BSR-backed pattern of whole blocks, int32 indices where they fit), .npy (dense bool). All throw
/// Error{invalid_argument} when the name tells no format that can hold the content, FileError{file_write} when the file
/// cannot be written.
void write_pattern(const std::filesystem::path& path, const Pattern& pattern);
/// Writes structure and values: .mtx (coordinate real general, values round-trip exactly) or .npz (SciPy CSR).
void write_csr(const std::filesystem::path& path, const CsrView<float>& matrix);
void write_csr(const std::filesystem::path& path, const CsrView<double>& matrix);

/// A dense array of a .npy file, converted to T (from float16/32/64, signed and unsigned integers, bool; either byte
/// order; C or Fortran order) and laid out in C order.
template <class T>
struct NumpyArray {
  std::vector<std::int64_t> shape;
  AlignedBuffer<T> values;
};
/// T is float, double, float16 or bfloat16. Values that T cannot hold are rounded, once.
template <class T>
NumpyArray<T> read_npy(const std::filesystem::path& path);
/// A .npy of 2 axes (tokens x features) or 4 (batch x heads x tokens x features) as a tensor.
template <class T>
Tensor<T> read_tensor(const std::filesystem::path& path);

/// Q, K or V, tokens x features, in the file's storage: BSR from SciPy's BSR, dense from .npy (of 2 or 4 axes, as
/// read_tensor()), CSR from everything else, with values as read_csr() reads them, rounded to T. Sparse files hold one
/// batch entry and head. T is float or double.
template <class T>
Features<T> read_features(const std::filesystem::path& path, const ReadOptions& options = {},
                          ReadReport* report = nullptr);
template <class T>
Features<T> read_features_from_memory(std::span<const std::byte> bytes, const std::string& name,
                                      const ReadOptions& options = {}, ReadReport* report = nullptr);
/// Writes features so that read_features() gives them back: CSR to .npz or .mtx, BSR to .npz (SciPy's BSR; to .mtx, and
/// where blocks do not divide the sizes, as CSR), dense to .npy. Values round-trip exactly. Throws
/// Error{invalid_argument} for other pairs of storage and format, Error{unsupported} for more than one compressed
/// matrix, FileError{file_write}.
template <class T>
void write_features(const std::filesystem::path& path, const FeaturesView<T>& features);

/// One array to be saved under a name. NumPy has no bfloat16: save such values as float, which holds them exactly, and
/// read them back with read_npy<bfloat16>.
struct NamedArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::variant<std::span<const float>, std::span<const double>, std::span<const std::int32_t>,
               std::span<const std::int64_t>, std::span<const std::uint8_t>, std::span<const float16>>
      values;  ///< in C order; uint8 is saved as bool
};
/// Saves arrays as .npz, as numpy.savez does, uncompressed. Throws Error{shape_mismatch} when the values are not as
/// many as the shape says, Error{invalid_argument} for an empty list of arrays, a negative size and names that are
/// empty, occur twice or hold a '/', FileError{file_write}.
void write_npz(const std::filesystem::path& path, std::span<const NamedArray> arrays);
/// Saves one array as .npy; its name is ignored.
void write_npy(const std::filesystem::path& path, const NamedArray& array);

}  // namespace cobble
