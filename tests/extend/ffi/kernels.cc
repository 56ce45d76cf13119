// Foreign functions for tests: each shows one thing that calls must bring about.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

using Floats = ffi::Buffer<ffi::F32>;
using FloatsOut = ffi::ResultBuffer<ffi::F32>;

// Divides each row, along the last dimension, by its Euclidean norm.
static ffi::Error NormalizeRows(Floats x, FloatsOut y) {
  if (x.dimensions().size() == 0) return ffi::Error::InvalidArgument("a scalar has no rows");
  const size_t n = x.dimensions().back();
  for (size_t start = 0; start < x.element_count(); start += n) {
    const float* row = x.typed_data() + start;
    const float norm = std::sqrt(std::inner_product(row, row + n, row, 0.0f));
    std::transform(row, row + n, y->typed_data() + start, [&](float v) { return v / norm; });
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(normalize_rows, NormalizeRows,
                              ffi::Ffi::Bind().Arg<Floats>().Ret<Floats>());

// Multiplies x by w, which is repeated where it has fewer elements.
static ffi::Error Weigh(Floats x, Floats w, FloatsOut y) {
  const size_t period = w.element_count();
  for (size_t i = 0; i < x.element_count(); ++i) {
    y->typed_data()[i] = x.typed_data()[i] * w.typed_data()[i % period];
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(weigh, Weigh,
                              ffi::Ffi::Bind().Arg<Floats>().Arg<Floats>().Ret<Floats>());

// Returns all its attributes as numbers.
static ffi::Error Tell(ffi::ResultBuffer<ffi::F64> out, bool flag, int64_t count, double factor,
                       float narrow, uint8_t letter, std::string_view word,
                       ffi::Span<const int64_t> list, ffi::Dictionary options) {
  const ffi::ErrorOr<int64_t> depth = options.get<int64_t>("depth");
  const double told[] = {static_cast<double>(flag),
                         static_cast<double>(count),
                         factor,
                         narrow,
                         static_cast<double>(letter),
                         static_cast<double>(word.size()),
                         static_cast<double>(std::accumulate(list.begin(), list.end(), 0)),
                         depth.has_value() ? static_cast<double>(*depth) : -1};
  std::copy(std::begin(told), std::end(told), out->typed_data());
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(tell, Tell,
                              ffi::Ffi::Bind()
                                  .Ret<ffi::Buffer<ffi::F64>>()
                                  .Attr<bool>("flag")
                                  .Attr<int64_t>("count")
                                  .Attr<double>("factor")
                                  .Attr<float>("narrow")
                                  .Attr<uint8_t>("letter")
                                  .Attr<std::string_view>("word")
                                  .Attr<ffi::Span<const int64_t>>("list")
                                  .Attr<ffi::Dictionary>("options"));

// Counts its calls in a number that each executable has for itself.
struct Counter {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  int64_t next;
};
ffi::TypeId Counter::id = {};
ffi::TypeInfo Counter::info = ffi::MakeTypeInfo<Counter>();

extern "C" void* counter_id() { return &Counter::id; }
extern "C" void* counter_info() { return &Counter::info; }

static ffi::ErrorOr<std::unique_ptr<Counter>> MakeCounter(int64_t start) {
  return std::make_unique<Counter>(Counter{start});
}

static ffi::Error Count(Counter* counter, int64_t, ffi::ResultBuffer<ffi::S32> out) {
  out->typed_data()[0] = static_cast<int32_t>(counter->next++);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(counter_instantiate, MakeCounter,
                              ffi::Ffi::BindInstantiate().Attr<int64_t>("start"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(counter_execute, Count,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::State<Counter>>()
                                  .Attr<int64_t>("start")
                                  .Ret<ffi::Buffer<ffi::S32>>());

// Passes a number on, and remembers the sum of all.
static std::atomic<int64_t> noted = 0;

extern "C" int64_t sum_of_notes() { return noted; }

static ffi::Error Note(Floats x, FloatsOut y) {
  for (size_t i = 0; i < x.element_count(); ++i) {
    noted += static_cast<int64_t>(x.typed_data()[i]);
    y->typed_data()[i] = x.typed_data()[i];
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(note, Note, ffi::Ffi::Bind().Arg<Floats>().Ret<Floats>());

// Adds one, and tells whether the result lies where the operand lay.
static ffi::Error Increment(Floats x, FloatsOut y, ffi::ResultBuffer<ffi::PRED> in_place) {
  std::transform(x.typed_data(), x.typed_data() + x.element_count(), y->typed_data(),
                 [](float v) { return v + 1; });
  in_place->typed_data()[0] = x.typed_data() == y->typed_data();
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    increment, Increment,
    ffi::Ffi::Bind().Arg<Floats>().Ret<Floats>().Ret<ffi::Buffer<ffi::PRED>>());

// Copies x, after whatever its token comes after.
static ffi::Error Follow(ffi::Token, Floats x, ffi::Result<ffi::Token>, FloatsOut y) {
  std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    follow, Follow,
    ffi::Ffi::Bind().Arg<ffi::Token>().Arg<Floats>().Ret<ffi::Token>().Ret<Floats>());

// Doubles four numbers, by the interface without types.
extern "C" void double_four(void* out, const void** in) {
  const float* x = static_cast<const float*>(in[0]);
  std::transform(x, x + 4, static_cast<float*>(out), [](float v) { return 2 * v; });
}
