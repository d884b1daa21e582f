#include "cobble/interop/suitesparse.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "support/error_of.hpp"
#include "support/graphblas.hpp"
#include "support/sparse.hpp"

using namespace cobble;
using cobble::test::error_of;
using cobble::test::start_graphblas;

namespace {

class Cholmod {
 public:
  explicit Cholmod(int itype) : is_long_(itype == CHOLMOD_LONG) {
    is_long_ ? cholmod_l_start(&common) : cholmod_start(&common);
  }
  ~Cholmod() { is_long_ ? cholmod_l_finish(&common) : cholmod_finish(&common); }
  Cholmod(const Cholmod&) = delete;
  Cholmod& operator=(const Cholmod&) = delete;

  cholmod_common common{};

 private:
  bool is_long_;
};

/// A 3 x 3 matrix on arrays of the test's own. By columns: 0 has rows 2 and 0, 1 has row 1, 2 has rows 0 and 2.
template <class Index>
struct CholmodArrays {
  std::vector<Index> p{0, 2, 3, 5};
  std::vector<Index> i{2, 0, 1, 0, 2};
  std::vector<Index> nz{};
  std::vector<double> x{1, 2, 3, 4, 5};

  cholmod_sparse matrix(int stype = 0, int xtype = CHOLMOD_REAL) {
    cholmod_sparse result{};
    result.nrow = 3;
    result.ncol = 3;
    result.nzmax = i.size();
    result.p = p.data();
    result.i = i.data();
    result.nz = nz.data();
    result.x = x.data();
    result.stype = stype;
    result.itype = sizeof(Index) == sizeof(int) ? CHOLMOD_INT : CHOLMOD_LONG;
    result.xtype = xtype;
    result.dtype = CHOLMOD_DOUBLE;
    result.packed = nz.empty() ? 1 : 0;
    return result;
  }
};

constexpr std::pair<int, int> kSizes[] = {{1, 1}, {17, 33}, {65, 16}};

}  // namespace

TEST_CASE("CSR survives the way to CHOLMOD and back, with int and long indices") {
  test::Random random(12);
  for (const int itype : {CHOLMOD_INT, CHOLMOD_LONG}) {
    Cholmod cholmod(itype);
    for (const auto& [rows, columns] : {std::pair{0, 0}, {0, 5}, {5, 0}, {1, 1}, {17, 33}, {65, 16}}) {
      for (const double density : {0.0, 0.3, 1.0}) {
        const auto matrix = test::random_csr<double>(random, rows, columns, density, 1);
        const CholmodSparse converted = to_cholmod(matrix, cholmod.common);
        CHECK(converted->itype == itype);
        CHECK((itype == CHOLMOD_INT ? cholmod_check_sparse(converted.get(), &cholmod.common)
                                    : cholmod_l_check_sparse(converted.get(), &cholmod.common)) == 1);
        CHECK(csr_from_cholmod(*converted) == matrix);

        const CholmodSparse pattern = to_cholmod(static_cast<const CsrPattern&>(matrix), cholmod.common);
        CHECK(pattern->xtype == CHOLMOD_PATTERN);
        CHECK(csr_pattern_from_cholmod(*pattern) == static_cast<const CsrPattern&>(matrix));
      }
    }
    CHECK(cholmod.common.malloc_count == 0);  // every matrix has been freed
  }
}

TEST_CASE("CHOLMOD computes with a converted matrix as the dense product does") {
  test::Random random(13);
  const auto matrix = test::random_csr<double>(random, 7, 5, 0.5);
  Cholmod cholmod(CHOLMOD_INT);
  const CholmodSparse converted = to_cholmod(matrix, cholmod.common);
  cholmod_dense* x = cholmod_ones(5, 1, CHOLMOD_REAL, &cholmod.common);
  cholmod_dense* y = cholmod_zeros(7, 1, CHOLMOD_REAL, &cholmod.common);
  double one[2] = {1, 0};
  double zero[2] = {0, 0};
  cholmod_sdmult(converted.get(), 0, one, zero, x, y, &cholmod.common);
  const std::vector<double> dense = test::dense_of(matrix);
  for (std::size_t row = 0; row < 7; ++row) {
    double sum = 0;
    for (std::size_t column = 0; column < 5; ++column) sum += dense[row * 5 + column];
    CHECK(static_cast<const double*>(y->x)[row] == doctest::Approx(sum).epsilon(1e-14));
  }
  cholmod_free_dense(&x, &cholmod.common);
  cholmod_free_dense(&y, &cholmod.common);
}

TEST_CASE_TEMPLATE("unsorted CHOLMOD columns are sorted; symmetric ones mirror the triangle that counts", Index, int,
                   SuiteSparse_long) {
  CholmodArrays<Index> arrays;
  CHECK(csr_from_cholmod(arrays.matrix()) == CsrMatrix<double>{{3, 3, {0, 2, 3, 5}, {0, 2, 1, 0, 2}}, {2, 4, 3, 1, 5}});
  CHECK(csr_from_cholmod(arrays.matrix(1)) ==
        CsrMatrix<double>{{3, 3, {0, 2, 3, 5}, {0, 2, 1, 0, 2}}, {2, 4, 3, 4, 5}});
  CHECK(csr_from_cholmod(arrays.matrix(-1)) ==
        CsrMatrix<double>{{3, 3, {0, 2, 3, 5}, {0, 2, 1, 0, 2}}, {2, 1, 3, 1, 5}});
}

TEST_CASE("an unpacked CHOLMOD matrix ends each column by its count") {
  CholmodArrays<int> arrays;
  arrays.nz = {1, 0, 2};
  CHECK(csr_from_cholmod(arrays.matrix()) == CsrMatrix<double>{{3, 3, {0, 1, 1, 3}, {2, 0, 2}}, {4, 1, 5}});
}

TEST_CASE("offsets of CHOLMOD may be long beside int indices") {
  CholmodArrays<int> arrays;
  std::vector<SuiteSparse_long> offsets{0, 2, 3, 5};
  cholmod_sparse matrix = arrays.matrix();
  matrix.p = offsets.data();
  matrix.itype = CHOLMOD_INTLONG;
  CHECK(csr_pattern_from_cholmod(matrix) == CsrPattern{3, 3, {0, 2, 3, 5}, {0, 2, 1, 0, 2}});
}

TEST_CASE("a CHOLMOD pattern has the value 1, a complex matrix only a structure") {
  CholmodArrays<int> arrays;
  CHECK(csr_from_cholmod(arrays.matrix(0, CHOLMOD_PATTERN)).values == std::vector<double>(5, 1.0));
  CHECK(csr_pattern_from_cholmod(arrays.matrix(0, CHOLMOD_COMPLEX)).column_indices.size() == 5);
  CHECK(error_of([&] { csr_from_cholmod(arrays.matrix(0, CHOLMOD_COMPLEX)); }) ==
        "unsupported: cholmod_sparse: xtype = 2, expected CHOLMOD_PATTERN or CHOLMOD_REAL");
  cholmod_sparse single = arrays.matrix();
  single.dtype = CHOLMOD_SINGLE;
  CHECK(error_of([&] { csr_from_cholmod(single); }) ==
        "unsupported: cholmod_sparse: dtype = 1, expected CHOLMOD_DOUBLE");
}

TEST_CASE("a broken cholmod_sparse is an error that names the fault") {
  const auto error = [](auto change) {
    CholmodArrays<int> arrays;
    cholmod_sparse matrix = arrays.matrix();
    change(arrays, matrix);
    return error_of([&] { csr_from_cholmod(matrix); });
  };
  CHECK(error([](auto&, auto& m) { m.ncol = 2, m.stype = 1; }) ==
        "invalid_structure: cholmod_sparse: stype = 1 (symmetric), but it is 3 x 2");
  CHECK(error([](auto&, auto& m) { m.nrow = std::size_t{1} << 31; }) ==
        "overflow: nrow = 2147483648 does not fit the range [0, 2147483647]");
  CHECK(error([](auto& a, auto&) { a.i[2] = 3; }) == "invalid_structure: cholmod_sparse: i[2] = 3 is outside [0, 3)");
  CHECK(error([](auto& a, auto&) { a.p[3] = 6; }) ==
        "invalid_structure: cholmod_sparse: column 2 has 3 entries from 3 on, outside the 5 of nzmax");
  CHECK(error([](auto& a, auto&) { a.p[1] = 4; }) ==
        "invalid_structure: cholmod_sparse: column 1 has -1 entries from 4 on, outside the 5 of nzmax");
  CHECK(error([](auto& a, auto&) { a.p[0] = -9; }) ==
        "invalid_structure: cholmod_sparse: column 0 has 11 entries from -9 on, outside the 5 of nzmax");
  CHECK(error([](auto&, auto& m) { m.packed = 0, m.nz = nullptr; }) ==
        "invalid_structure: cholmod_sparse: nz is null in an unpacked matrix");
  CHECK(error([](auto&, auto& m) { m.x = nullptr; }) ==
        "invalid_structure: cholmod_sparse: x is null in a real matrix");
  CHECK(error([](auto&, auto& m) { m.itype = 9; }) == "invalid_structure: cholmod_sparse: itype = 9 is unknown");
}

TEST_CASE("a broken CSR matrix does not reach CHOLMOD or GraphBLAS") {
  start_graphblas();
  Cholmod cholmod(CHOLMOD_INT);
  const CsrPattern broken{1, 1, {0, 1}, {1}};
  CHECK(error_of([&] { to_cholmod(broken, cholmod.common); }) ==
        "invalid_structure: column_indices[0] = 1 in row 0 is outside [0, 1)");
  CHECK(error_of([&] { to_graphblas(broken); }) ==
        "invalid_structure: column_indices[0] = 1 in row 0 is outside [0, 1)");
}

TEST_CASE("CSR survives the way to GraphBLAS and back") {
  start_graphblas();
  test::Random random(14);
  for (const auto& [rows, columns] : kSizes) {
    for (const double density : {0.0, 0.3, 1.0}) {
      const auto matrix = test::random_csr<double>(random, rows, columns, density, 1);
      const GraphblasMatrix converted = to_graphblas(matrix);
      CHECK(csr_from_graphblas(converted.get()) == matrix);
      CHECK(csr_pattern_from_graphblas(converted.get()) == static_cast<const CsrPattern&>(matrix));

      const GraphblasMatrix pattern = to_graphblas(static_cast<const CsrPattern&>(matrix));
      CHECK(csr_from_graphblas(pattern.get()).values == std::vector<double>(matrix.values.size(), 1.0));
      CHECK(csr_pattern_from_graphblas(pattern.get()) == static_cast<const CsrPattern&>(matrix));

      const auto single = test::random_csr<float>(random, rows, columns, density);
      const CsrMatrix<double> widened = csr_from_graphblas(to_graphblas(single).get());
      CHECK(static_cast<const CsrPattern&>(widened) == static_cast<const CsrPattern&>(single));
      CHECK(widened.values == std::vector<double>(single.values.begin(), single.values.end()));
    }
  }
}

TEST_CASE("GraphBLAS matrices without rows or columns convert") {
  start_graphblas();
  for (const auto& [rows, columns] : {std::pair{0, 0}, {0, 5}, {5, 0}}) {
    const CsrPattern matrix{rows, columns, std::vector<std::int64_t>(static_cast<std::size_t>(rows) + 1), {}};
    CHECK(csr_pattern_from_graphblas(to_graphblas(matrix).get()) == matrix);
  }
}

TEST_CASE("GraphBLAS sees the type it was given, and pending changes of other types are completed") {
  start_graphblas();
  const CsrMatrix<float> matrix{{1, 2, {0, 1}, {1}}, {3}};
  GrB_Type type = nullptr;
  GxB_Matrix_type(&type, to_graphblas(matrix).get());
  CHECK(type == GrB_FP32);
  GxB_Matrix_type(&type, to_graphblas(static_cast<const CsrPattern&>(matrix)).get());
  CHECK(type == GrB_BOOL);

  GrB_Matrix integers = nullptr;
  GrB_Matrix_new(&integers, GrB_INT32, 3, 2);
  const GraphblasMatrix owner(integers);
  GrB_Matrix_setElement_INT32(integers, -7, 2, 0);
  GrB_Matrix_setElement_INT32(integers, 5, 0, 1);
  CHECK(csr_from_graphblas(integers) == CsrMatrix<double>{{3, 2, {0, 1, 1, 2}, {1, 0}}, {5, -7}});
}

TEST_CASE("GraphBLAS matrices that cannot be converted are errors with a reason") {
  start_graphblas();
  CHECK(error_of([] { csr_from_graphblas(nullptr); }) == "invalid_argument: GrB_Matrix_nrows returns GrB_NULL_POINTER");
  GrB_Matrix huge = nullptr;
  GrB_Matrix_new(&huge, GrB_BOOL, GrB_Index{1} << 40, 2);
  const GraphblasMatrix owner(huge);
  CHECK(error_of([&] { csr_pattern_from_graphblas(huge); }) ==
        "overflow: rows of the GrB_Matrix = 1099511627776 does not fit the range [0, 2147483647]");
  GrB_Type type = nullptr;
  GrB_Type_new(&type, 24);
  GrB_Matrix records = nullptr;
  GrB_Matrix_new(&records, type, 2, 2);
  CHECK(error_of([&] { csr_from_graphblas(records); }) ==
        "unsupported: GrB_Matrix_extractTuples returns GrB_DOMAIN_MISMATCH");
  GrB_Matrix_free(&records);
  GrB_Type_free(&type);
}
