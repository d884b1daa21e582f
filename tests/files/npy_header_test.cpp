#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "files/npy.hpp"
#include "support/error_of.hpp"
#include "support/memory_files.hpp"

using cobble::detail::npy_preamble;
using cobble::detail::NpyHeader;
using cobble::detail::NpyType;
using cobble::detail::parse_npy;
using cobble::detail::parse_npy_header;
using cobble::test::bytes_of;
using cobble::test::error_of;
using cobble::test::npy_with_header;

namespace {

NpyHeader parse(const std::string& text) { return parse_npy_header(text, {"a.npy", {}}); }

const std::string kGood = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";

struct Fault {
  std::string text;
  std::string message;
};

}  // namespace

TEST_CASE("the header's dict is read with its keys in any order and any spacing") {
  const NpyHeader header = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n");
  CHECK(header.type.kind == NpyType::Kind::real);
  CHECK(header.type.bytes == 4);
  CHECK_FALSE(header.type.swapped);
  CHECK_FALSE(header.fortran_order);
  CHECK(header.shape == std::vector<std::int64_t>{3, 4});

  const NpyHeader other = parse(" {\"shape\":(10L,),\"fortran_order\":True,\n\"descr\":\">i8\"}");
  CHECK(other.type.kind == NpyType::Kind::signed_integer);
  CHECK(other.type.swapped);
  CHECK(other.fortran_order);
  CHECK(other.shape == std::vector<std::int64_t>{10});

  CHECK(parse("{'descr': '|S3', 'fortran_order': False, 'shape': ()}").shape.empty());
  CHECK(parse("{'descr': '<U3', 'fortran_order': False, 'shape': ()}").type.bytes == 12);
  CHECK(parse("{'descr': '|b1', 'fortran_order': False, 'shape': (0,0,)}").shape.size() == 2);
}

TEST_CASE("each fault of a header gives one error") {
  const std::vector<Fault> faults{
      {"", "found the end of the header, expected '{' (at character 1 of the .npy header)"},
      {"{", "found the end of the header, expected a key in quotes (at character 2 of the .npy header)"},
      {"{'descr", "a string has no end (at character 2 of the .npy header)"},
      {"{'descr': '<f4'", "found the end of the header, expected '}' (at character 16 of the .npy header)"},
      {"{'descr': '<f4'}", "the header has no fortran_order (at character 17 of the .npy header)"},
      {"{'fortran_order': True, 'shape': ()}", "the header has no descr (at character 37 of the .npy header)"},
      {"{'descr': '<f4', 'fortran_order': True}", "the header has no shape (at character 40 of the .npy header)"},
      {"{'descr': '<f4', 'descr': '<f4'}",
       "found the key 'descr', expected each of descr, fortran_order and shape once (at character 26 of the .npy"
       " header)"},
      {"{'size': 1}",
       "found the key 'size', expected each of descr, fortran_order and shape once (at character 9 of the .npy "
       "header)"},
      {kGood + "x", "the header goes on after its end (at character 58 of the .npy header)"},
      {"{'fortran_order': 0}", "found '0}', expected True or False (at character 19 of the .npy header)"},
      {"{'shape': 3}", "found '3}', expected '(' (at character 11 of the .npy header)"},
      {"{'shape': (-1,)}", "found '-1,)}', expected a size that is not negative (at character 12 of the .npy header)"},
      {"{'shape': (1.5,)}", "found '.5,)}', expected ')' (at character 13 of the .npy header)"},
      {"{'shape': (9223372036854775808,)}",
       "found '922337203685', expected a size that fits 64 bits (at character 12 of the .npy header)"},
      {"{'descr': '|O'}",
       "found an array of Python objects, expected plain elements such as '<f4' (at character 15 of the .npy header)"},
      {"{'descr': [('a', '<f4')]}",
       "found a structured element type, expected a plain one such as '<f4' (at character 11 of the .npy header)"},
      {"{'descr': '<f16'}",
       "found the element type '<f16', expected a bool, integer, float16, float32, float64 or complex one (at"
       " character 17 of the .npy header)"},
      {"{'descr': '<M8[ns]'}",
       "found the element type '<M8[ns]', expected a bool, integer, float16, float32, float64 or complex one (at"
       " character 20 of the .npy header)"},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.text);
    CHECK(error_of([&] { parse(fault.text); }) == "file_format: a.npy: " + fault.message);
  }
}

TEST_CASE("all three versions are read, others are an error") {
  const std::string one = npy_with_header(kGood, std::string(8, '\0'));
  CHECK(parse_npy(bytes_of(one), {"a.npy", {}}).size == 2);
  std::string two("\x93NUMPY\x02\x00\x39\x00\x00\x00", 12);
  two += kGood + std::string(8, '\0');
  CHECK(parse_npy(bytes_of(two), {"a.npy", {}}).size == 2);
  two[6] = 3;
  CHECK(parse_npy(bytes_of(two), {"a.npy", {}}).size == 2);
  two[6] = 4;
  CHECK(error_of([&] {
          parse_npy(bytes_of(two), {"a.npy", {}});
        }) == "file_format: a.npy: .npy version 4.0, expected 1.0, 2.0 or 3.0");
}

TEST_CASE("an array must have exactly the bytes that its header says") {
  const auto fault = [](const std::string& text) {
    return error_of([&] { parse_npy(bytes_of(text), {"a.npz", "b.npy"}); });
  };
  CHECK(fault("\x93NUMPX") ==
        "file_format: a.npz: member 'b.npy': does not start with '\\x93NUMPY' as a .npy array does");
  CHECK(fault("\x93NUMPY\x01") == "file_format: a.npz: member 'b.npy': the .npy header is cut off");
  const std::string good = npy_with_header(kGood, std::string(8, '\0'));
  CHECK(fault(good.substr(0, 20)) ==
        "file_format: a.npz: member 'b.npy': the .npy header has 57 bytes, but only 10 follow");
  CHECK(fault(good.substr(0, good.size() - 1)) ==
        "file_format: a.npz: member 'b.npy': found 7 bytes of elements, expected 8 for the shape (2,) of '<f4'");
  CHECK(fault(good + "x") ==
        "file_format: a.npz: member 'b.npy': found 9 bytes of elements, expected 8 for the shape (2,) of '<f4'");
  const std::string huge = "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}";
  CHECK(fault(npy_with_header(huge, "")) ==
        "file_format: a.npz: member 'b.npy': the shape (4294967296, 4294967296) does not fit 64 bits");
}

TEST_CASE("the preamble is the one that NumPy 1.24 writes, byte for byte") {
  const std::string preamble = npy_preamble("<f4", std::vector<std::int64_t>{3, 4});
  const std::string expected = std::string("\x93NUMPY\x01\x00\x76\x00", 10) +
                               "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }" + std::string(58, ' ') +
                               "\n";
  CHECK(preamble == expected);
  CHECK(npy_preamble("|b1", std::vector<std::int64_t>(40, 1)).size() % 64 == 0);
}
