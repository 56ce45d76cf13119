// Isotonic regression, and the means over its blocks that its derivative is made of.

#include <cstdint>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

using Rows = ffi::Buffer<ffi::F32>;
using RowsOut = ffi::ResultBuffer<ffi::F32>;

namespace {

// Consecutive places that share a mean.
struct Block {
  double sum;
  int64_t count;
  double mean() const { return sum / count; }
};

// The numbers v[0] >= v[1] >= ... nearest to y, by pooling neighbours that are out of order.
void PoolAdjacentViolators(const float* y, float* v, int64_t n, std::vector<Block>& blocks) {
  blocks.clear();
  for (int64_t i = 0; i < n; ++i) {
    blocks.push_back({y[i], 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() <= blocks.back().mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum;
      blocks.back().count += last.count;
    }
  }
  for (const Block& block : blocks) {
    for (int64_t i = 0; i < block.count; ++i) *v++ = static_cast<float>(block.mean());
  }
}

// Means of x over the places where v does not change.
void AverageBlocks(const float* v, const float* x, float* out, int64_t n) {
  for (int64_t start = 0, end = 0; start < n; start = end) {
    double sum = 0;
    for (end = start; end < n && v[end] == v[start]; ++end) sum += x[end];
    for (int64_t i = start; i < end; ++i) out[i] = static_cast<float>(sum / (end - start));
  }
}

int64_t LengthOfRows(const Rows& x) {
  return x.dimensions().size() == 0 ? 1 : x.dimensions().back();
}

ffi::Error Isotonic(Rows y, RowsOut v) {
  const int64_t n = LengthOfRows(y);
  std::vector<Block> blocks;
  for (size_t row = 0; row < y.element_count(); row += n) {
    PoolAdjacentViolators(y.typed_data() + row, v->typed_data() + row, n, blocks);
  }
  return ffi::Error::Success();
}

ffi::Error BlockMeans(Rows v, Rows x, RowsOut out) {
  if (v.element_count() != x.element_count()) {
    return ffi::Error::InvalidArgument("v and x must be of one shape");
  }
  const int64_t n = LengthOfRows(v);
  for (size_t row = 0; row < v.element_count(); row += n) {
    AverageBlocks(v.typed_data() + row, x.typed_data() + row, out->typed_data() + row, n);
  }
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(isotonic, Isotonic, ffi::Ffi::Bind().Arg<Rows>().Ret<Rows>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(block_means, BlockMeans,
                              ffi::Ffi::Bind().Arg<Rows>().Arg<Rows>().Ret<Rows>());
