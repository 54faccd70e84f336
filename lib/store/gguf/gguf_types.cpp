#include "store/gguf/gguf_types.hpp"

#include <algorithm>
#include <array>

namespace masque::store {

namespace {

/// Q8_1 (9) is missing: programs disagree about its size, and no file has it.
constexpr std::array kTypes{
    GgmlType{0, "F32", 1, 4, DType::kF32},
    GgmlType{1, "F16", 1, 2, DType::kF16},
    GgmlType{2, "Q4_0", 32, 18},
    GgmlType{3, "Q4_1", 32, 20},
    GgmlType{6, "Q5_0", 32, 22},
    GgmlType{7, "Q5_1", 32, 24},
    GgmlType{8, "Q8_0", 32, 34},
    GgmlType{10, "Q2_K", 256, 84},
    GgmlType{11, "Q3_K", 256, 110},
    GgmlType{12, "Q4_K", 256, 144},
    GgmlType{13, "Q5_K", 256, 176},
    GgmlType{14, "Q6_K", 256, 210},
    GgmlType{15, "Q8_K", 256, 292},
    GgmlType{16, "IQ2_XXS", 256, 66},
    GgmlType{17, "IQ2_XS", 256, 74},
    GgmlType{18, "IQ3_XXS", 256, 98},
    GgmlType{19, "IQ1_S", 256, 50},
    GgmlType{20, "IQ4_NL", 32, 18},
    GgmlType{21, "IQ3_S", 256, 110},
    GgmlType{22, "IQ2_S", 256, 82},
    GgmlType{23, "IQ4_XS", 256, 136},
    GgmlType{24, "I8", 1, 1, DType::kI8},
    GgmlType{25, "I16", 1, 2, DType::kI16},
    GgmlType{26, "I32", 1, 4, DType::kI32},
    GgmlType{27, "I64", 1, 8, DType::kI64},
    GgmlType{28, "F64", 1, 8, DType::kF64},
    GgmlType{29, "IQ1_M", 256, 56},
    GgmlType{30, "BF16", 1, 2, DType::kBF16},
    GgmlType{34, "TQ1_0", 256, 54},
    GgmlType{35, "TQ2_0", 256, 66},
    GgmlType{39, "MXFP4", 32, 17},
    GgmlType{40, "NVFP4", 64, 36},
    GgmlType{41, "Q1_0", 128, 18},
};

struct ValueType {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array<ValueType, kGgufTypes> kValueTypes{{
    {"UINT8", 1},
    {"INT8", 1},
    {"UINT16", 2},
    {"INT16", 2},
    {"UINT32", 4},
    {"INT32", 4},
    {"FLOAT32", 4},
    {"BOOL", 1},
    {"STRING", 0},
    {"ARRAY", 0},
    {"UINT64", 8},
    {"INT64", 8},
    {"FLOAT64", 8},
}};

template <class Wanted, class Projection>
const GgmlType* find_by(const Wanted& wanted, Projection projection) {
  const auto* found = std::ranges::find(kTypes, wanted, projection);
  return found == kTypes.end() ? nullptr : found;
}

}  // namespace

const GgmlType* find_ggml_type(std::uint32_t number) { return find_by(number, &GgmlType::number); }

const GgmlType* find_ggml_type(std::string_view name) { return find_by(name, &GgmlType::name); }

const GgmlType* ggml_type_of(DType dtype) {
  return find_by(std::optional(dtype), &GgmlType::dtype);
}

std::string_view gguf_type_name(GgufType type) {
  return kValueTypes[static_cast<std::size_t>(type)].name;
}

std::uint64_t gguf_type_bytes(GgufType type) {
  return kValueTypes[static_cast<std::size_t>(type)].bytes;
}

}  // namespace masque::store
