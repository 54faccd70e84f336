#include "store/torch/torch_pickle.hpp"

#include <limits>
#include <string_view>
#include <unordered_map>

#include "base/error.hpp"
#include "store/zip/zip_layout.hpp"

namespace masque::store {

namespace {

constexpr std::size_t kBatch = 1000;  // items between two marks, as in Python

class Writer {
 public:
  std::string write(const std::vector<PickledTensor>& tensors) {
    out_ = "\x80\x02";
    ordered_dict();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (i % kBatch == 0) out_ += '(';
      text(tensors[i].name);
      tensor(tensors[i]);
      if (i + 1 == tensors.size() || (i + 1) % kBatch == 0) out_ += 'u';
    }
    return out_ + '.';
  }

 private:
  void ordered_dict() {
    global("collections", "OrderedDict");
    out_ += ")R";
  }

  void tensor(const PickledTensor& tensor) {
    const PickleGlobal* typed = storage_class_of(tensor.dtype);
    const PickleGlobal* dtype = torch_dtype_of(tensor.dtype);
    MASQUE_CHECK(dtype != nullptr);
    const std::uint64_t elements = element_count(tensor.shape).value();
    const std::uint64_t element_bytes = (dtype_bits(tensor.dtype) + 7) / 8;
    global("torch._utils", typed != nullptr ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_ += "((";
    known_text("storage");
    if (typed != nullptr) {
      global(typed->module, typed->name);
    } else {
      global("torch.storage", "UntypedStorage");
    }
    text(std::to_string(tensor.storage));
    known_text("cpu");
    number(typed != nullptr ? elements : elements * element_bytes);
    out_ += "tQ";
    number(0);  // offset
    tuple(tensor.shape);
    tuple(strides_of(tensor.shape));
    out_ += '\x89';  // needs no gradient
    ordered_dict();  // of no hooks
    if (typed == nullptr) global(dtype->module, dtype->name);
    out_ += "tR";
  }

  static Shape strides_of(const Shape& shape) {
    Shape strides(shape.size());
    std::uint64_t step = 1;
    for (std::size_t i = shape.size(); i > 0; --i) {
      strides[i - 1] = step;
      step *= shape[i - 1] == 0 ? 1 : shape[i - 1];
    }
    return strides;
  }

  void tuple(const Shape& sizes) {
    if (sizes.empty()) {
      out_ += ')';
      return;
    }
    if (sizes.size() > 3) out_ += '(';
    for (const std::uint64_t size : sizes) number(size);
    out_ += sizes.size() > 3 ? 't' : static_cast<char>(0x84U + sizes.size());
  }

  void number(std::uint64_t value) {
    if (value <= 0xFF) {
      append_number(out_, 'K', static_cast<std::uint8_t>(value));
    } else if (value <= 0xFFFF) {
      append_number(out_, 'M', static_cast<std::uint16_t>(value));
    } else if (value <= 0x7FFF'FFFF) {
      append_number(out_, 'J', static_cast<std::uint32_t>(value));
    } else {
      MASQUE_CHECK(value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
      append_number(out_, '\x8A', std::uint8_t{8}, value);
    }
  }

  void text(std::string_view text) {
    append_number(out_, 'X', static_cast<std::uint32_t>(text.size()));
    out_ += text;
  }

  void known_text(std::string_view value) {
    if (get(std::string(value))) return;
    text(value);
    remember(std::string(value));
  }

  void global(std::string_view module, std::string_view name) {
    const std::string lines = std::string(module) + '\n' + std::string(name) + '\n';
    if (get(lines)) return;
    out_ += 'c';
    out_ += lines;
    remember(lines);
  }

  bool get(const std::string& value) {
    const auto found = memo_.find(value);
    if (found == memo_.end()) return false;
    append_number(out_, 'h', found->second);
    return true;
  }

  void remember(const std::string& value) {
    const auto at = static_cast<std::uint8_t>(memo_.size());  // a few dozens at most
    memo_.emplace(value, at);
    append_number(out_, 'q', at);
  }

  std::string out_;
  std::unordered_map<std::string, std::uint8_t> memo_;
};

}  // namespace

bool is_torch_dtype(DType dtype) { return torch_dtype_of(dtype) != nullptr; }

std::string write_torch_pickle(const std::vector<PickledTensor>& tensors) {
  return Writer().write(tensors);
}

}  // namespace masque::store
