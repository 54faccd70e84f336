// Making system calls fail on purpose.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file/os.hpp"

namespace masque::test {

/// While it lives, asks `decide` before every system call of lib/base/os.
class Faults final : public os::FaultInjector {
 public:
  using Decide = std::function<std::optional<os::Fault>(os::Call, std::string_view, std::size_t)>;

  explicit Faults(Decide decide)
      : decide_(std::move(decide)), before_(os::set_fault_injector(this)) {}
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
  ~Faults() override { os::set_fault_injector(before_); }

  std::optional<os::Fault> before(os::Call call, std::string_view path, std::size_t size) override {
    return decide_(call, path, size);
  }

 private:
  Decide decide_;
  os::FaultInjector* before_;
};

}  // namespace masque::test
