#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "files/scipy_npz.hpp"
#include "support/error_of.hpp"
#include "support/memory_files.hpp"

using cobble::BsrPattern;
using cobble::CsrMatrix;
using cobble::CsrPattern;
using cobble::ReadReport;
using cobble::test::error_of;
using cobble::test::Member;
using cobble::test::npz;
using cobble::test::raw;
using cobble::test::read_csr_text;
using cobble::test::read_pattern_text;

namespace {

Member int32s(const char* name, const std::vector<std::int32_t>& values) {
  return {name, "<i4", {std::ssize(values)}, raw(values)};
}
Member int64s(const char* name, const std::vector<std::int64_t>& values) {
  return {name, "<i8", {std::ssize(values)}, raw(values)};
}
Member doubles(const std::vector<double>& values) { return {"data", "<f8", {std::ssize(values)}, raw(values)}; }
Member format(const std::string& name) { return {"format", "|S3", {}, name}; }

std::vector<Member> csr() {
  return {int32s("indices", {1, 3, 0}), int32s("indptr", {0, 2, 2, 3}), format("csr"), int64s("shape", {3, 4}),
          doubles({5, 0, 7})};
}
/// The same with another member in the place of the one of that name.
std::vector<Member> csr_with(Member member) {
  std::vector<Member> members = csr();
  for (Member& old : members) {
    if (old.name == member.name) old = std::move(member);
  }
  return members;
}
/// Blocks of 1 x 2 in a matrix of 2 x 4, unsorted in the first row.
std::vector<Member> bsr() {
  return {int32s("indices", {1, 0, 1}), int32s("indptr", {0, 2, 3}), format("bsr"), int64s("shape", {2, 4}),
          Member{"data", "<f4", {3, 1, 2}, raw(std::vector<float>{1, 0, 2, 3, 0, 4})}};
}

struct Fault {
  std::vector<Member> members;
  std::string message;
};

}  // namespace

TEST_CASE("csr, csc and coo give the same matrix, stored or deflated") {
  const CsrMatrix<double> expected{{3, 4, {0, 2, 2, 3}, {1, 3, 0}}, {5, 0, 7}};
  CHECK(read_csr_text(npz(csr()), "a.npz") == expected);
  CHECK(read_csr_text(npz(csr(), cobble::detail::Compression::deflate), "a.npz") == expected);
  CHECK(read_pattern_text(npz(csr()), "a.npz") == static_cast<const CsrPattern&>(expected));
  CHECK(read_csr_text(npz({int64s("indices", {2, 0, 0}), int64s("indptr", {0, 1, 2, 2, 3}), format("csc"),
                           int64s("shape", {3, 4}), doubles({7, 5, 0})}),
                      "a.npz") == expected);
  ReadReport report;
  CHECK(read_csr_text(npz({int32s("row", {2, 0, 0, 0}), int32s("col", {0, 3, 1, 1}), format("coo"),
                           int64s("shape", {3, 4}), doubles({7, 0, 4, 1})}),
                      "a.npz", {}, &report) == expected);
  CHECK(report.format == cobble::FileFormat::npz);
  CHECK(report.duplicates_merged == 1);
  CHECK(report.stored_entries == 4);
  CHECK(report.sorted_rows);
}

TEST_CASE("the format's name may be wide text, indices may be of any integer type and byte order") {
  std::vector<Member> members = csr_with({"format", "<U3", {}, std::string("c\0\0\0s\0\0\0r\0\0\0", 12)});
  CHECK(read_pattern_text(npz(members), "a.npz").view().entries() == 3);
  members = csr_with({"format", ">U4", {}, std::string("\0\0\0c\0\0\0s\0\0\0r\0\0\0\0", 16)});
  CHECK(read_pattern_text(npz(members), "a.npz").view().entries() == 3);
  members = csr_with({"indices", ">i4", {3}, std::string("\0\0\0\1\0\0\0\3\0\0\0\0", 12)});
  CHECK(read_pattern_text(npz(members), "a.npz").column_indices == std::vector<std::int32_t>{1, 3, 0});
  members = csr_with({"indptr", "|u1", {4}, std::string("\0\2\2\3", 4)});
  CHECK(read_pattern_text(npz(members), "a.npz").view().entries() == 3);
}

TEST_CASE("BSR gives a pattern of whole blocks, zeros included") {
  ReadReport report;
  const std::string file = npz(bsr());
  CHECK(read_pattern_text(file, "a.npz", {}, &report) == CsrPattern{2, 4, {0, 4, 6}, {0, 1, 2, 3, 2, 3}});
  CHECK(report.stored_entries == 6);
  CHECK(report.sorted_rows);
  const CsrMatrix<double> matrix = read_csr_text(file, "a.npz");
  CHECK(matrix.column_indices == std::vector<std::int32_t>{0, 1, 2, 3, 2, 3});
  CHECK(matrix.values == std::vector<double>{2, 3, 1, 0, 0, 4});
  CHECK(error_of([&] { read_pattern_text(file, "a.npz", {.strict = true}); }) ==
        "file_format: a.npz: block row 0 has block column 0 after block column 1 (counted from 0), which strict"
        " reading does not allow");
}

TEST_CASE("dropped zeros of BSR become bits, equal blocks are united") {
  std::vector<Member> members = bsr();
  ReadReport report;
  CHECK(read_pattern_text(npz(members), "a.npz", {.drop_zeros = true}, &report) ==
        CsrPattern{2, 4, {0, 3, 4}, {0, 1, 2, 3}});
  CHECK(report.zeros_dropped == 2);
  CHECK(read_csr_text(npz(members), "a.npz", {.drop_zeros = true}).values == std::vector<double>{2, 3, 1, 4});

  members[0] = int32s("indices", {1, 1, 0});
  CHECK(read_csr_text(npz(members), "a.npz", {}, &report).values == std::vector<double>{3, 3, 0, 4});
  CHECK(report.duplicates_merged == 2);
  CHECK(read_pattern_text(npz(members), "a.npz", {.drop_zeros = true}, &report) ==
        CsrPattern{2, 4, {0, 2, 3}, {2, 3, 1}});
  CHECK(report.empty_rows == 0);
}

TEST_CASE("each fault of a sparse .npz file gives one error that names the member") {
  const std::vector<Fault> faults{
      {{doubles({1})}, "has no member 'format.npy', expected a sparse matrix as scipy.sparse.save_npz writes it"},
      {{format("csr")}, "has no member 'shape.npy'"},
      {csr_with(format("dia")),
       "member 'format.npy': found a sparse matrix of another format than csr, csc, coo or bsr"},
      {csr_with({"format", "<i4", {}, std::string(4, 'c')}),
       "member 'format.npy': found elements of type '<i4' and shape (), expected one string"},
      {csr_with(int64s("shape", {3})), "member 'shape.npy': found 1 sizes, expected 2"},
      {csr_with(int64s("shape", {-3, 4})), "found -3 rows, expected 0 to 2147483647"},
      {csr_with(int64s("shape", {3, 4294967296})), "found 4294967296 columns, expected 0 to 2147483647"},
      {csr_with(int64s("shape", {4, 4})), "member 'indptr.npy': found 4 offsets, expected 5"},
      {csr_with(int32s("indptr", {1, 2, 2, 3})), "member 'indptr.npy': indptr[0] = 1, expected 0"},
      {csr_with(int32s("indptr", {0, 2, 1, 3})), "member 'indptr.npy': indptr[2] = 1 is less than indptr[1] = 2"},
      {csr_with(int32s("indptr", {0, 2, 2, 4})),
       "member 'indptr.npy': indptr ends at 4, expected the number of indices, 3"},
      {csr_with(int32s("indices", {1, 4, 0})), "member 'indices.npy': indices[1] = 4 is out of range [0, 4)"},
      {csr_with(int32s("indices", {1, -1, 0})), "member 'indices.npy': indices[1] = -1 is out of range [0, 4)"},
      {csr_with({"indices", "<i4", {1, 3}, std::string(12, '\0')}),
       "member 'indices.npy': found the shape (1, 3), expected 1 axis"},
      {csr_with({"indices", "<f4", {3}, std::string(12, '\0')}),
       "member 'indices.npy': found elements of type '<f4', expected integers"},
      {csr_with({"indices", "<u8", {3}, std::string(24, '\xff')}),
       "member 'indices.npy': element 0 is 18446744073709551615, which does not fit a signed 64-bit integer"},
      {csr_with(doubles({1, 2})), "member 'data.npy': found 2 values, expected 3"},
      {csr_with({"data", "|S1", {3}, "abc"}), "member 'data.npy': found elements of type '|S1', expected numbers"},
      {{int32s("row", {0, 0}), int32s("col", {0}), format("coo"), int64s("shape", {3, 4}), doubles({1, 2})},
       "member 'row.npy' has 2 indices, 'col.npy' has 1, expected as many"},
      {{int32s("row", {}), int32s("col", {}), format("coo"), int64s("shape", {99999999, 4}), doubles({})},
       "found 999999"},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.message);
    const std::string found = error_of([&] { read_pattern_text(npz(fault.members), "a.npz"); });
    CHECK(found.starts_with("file_format: a.npz: " + fault.message));
  }
}

TEST_CASE("blocks that do not fit the matrix are errors") {
  const auto fault = [](std::size_t place, Member member) {
    std::vector<Member> members = bsr();
    members[place] = std::move(member);
    return error_of([&] { read_pattern_text(npz(members), "a.npz"); });
  };
  CHECK(fault(3, int64s("shape", {2, 5})) ==
        "file_format: a.npz: member 'data.npy': found blocks of 1 x 2, expected sizes that divide the shape (2, 5)");
  CHECK(fault(4, {"data", "<f4", {3, 2}, std::string(24, '\0')}) ==
        "file_format: a.npz: member 'data.npy': found the shape (3, 2), expected 3 axes");
  CHECK(fault(4, {"data", "<f4", {0, 0, 2}, ""}) ==
        "file_format: a.npz: member 'data.npy': found blocks of 0 x 2, expected sizes that divide the shape (2, 4)");
  CHECK(fault(4, {"data", "<f4", {2, 1, 2}, std::string(16, '\0')}) ==
        "file_format: a.npz: member 'data.npy': found 2 blocks, expected as many as indices, 3");
  CHECK(fault(0, int32s("indices", {1, 2, 0})) ==
        "file_format: a.npz: member 'indices.npy': indices[1] = 2 is out of range [0, 2)");
}

TEST_CASE("complex data give a pattern, but no values") {
  const std::string file = npz(csr_with({"data", "<c8", {3}, std::string(24, '\0')}));
  CHECK(read_pattern_text(file, "a.npz").view().entries() == 3);
  CHECK(read_pattern_text(file, "a.npz", {.drop_zeros = true}).view().entries() == 0);
  CHECK(error_of([&] { read_csr_text(file, "a.npz"); }) ==
        "file_format: a.npz: member 'data.npy': found elements of type '<c8', expected real numbers");
}

TEST_CASE("a damaged archive is an error") {
  std::string file = npz(csr());
  CHECK(error_of([&] {
          read_pattern_text(file.substr(0, file.size() - 30), "a.npz");
        }).starts_with("file_format: a.npz: is no readable ZIP archive: "));
  const std::size_t data = file.find(raw(std::vector<std::int32_t>{1, 3, 0}));
  REQUIRE(data != std::string::npos);
  file[data] = 2;  // the check sum no longer fits
  CHECK(error_of([&] { read_pattern_text(file, "a.npz"); }) ==
        "file_format: a.npz: member 'indices.npy' cannot be unpacked: CRC error");
}

TEST_CASE("a member that claims more bytes than its packed ones can hold is refused before any allocation") {
  std::string file = npz(csr(), cobble::detail::Compression::deflate);
  const std::size_t entry = file.find("PK\x01\x02");  // the first of the central directory: indices.npy
  REQUIRE(entry != std::string::npos);
  const std::string size = raw(std::vector<std::uint32_t>{0xF0000000U});
  file.replace(entry + 24, 4, size);
  file.replace(22, 4, size);  // in the local header, too
  CHECK(error_of([&] {
          read_pattern_text(file, "a.npz");
        }).starts_with("file_format: a.npz: member 'indices.npy' claims 4026531840 bytes, which "));
}
