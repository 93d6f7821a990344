// The control of an NVIDIA GPU: nvml_control.cpp sets, nvml_restore.cpp saves and restores.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "power/controls/control.hpp"
#include "power/nvml_library.hpp"

namespace ergotune {

class NvmlControl final : public Control {
 public:
  NvmlControl(ControlEnvironment environment, std::shared_ptr<const nvml::Library> library,
              const nvml::NvmlDevice& gpu);

  std::string id() const override;
  std::string reopen_id() const override { return "nvml:" + gpu_.uuid; }
  std::string device_key() const override { return gpu_.uuid; }
  ControlEnvironment environment() const override { return environment_; }
  ControlRange range(ControlQuantity quantity) override;
  std::vector<double> core_clocks_at(double memory_clock_mhz) override;
  bool permitted() override;
  std::string external_lock_sign() override;
  std::string foreign_under_load(const std::vector<std::string>& reasons, std::optional<double> ran_mhz) const override;
  /// True, because an idle GPU reports "idle" instead of the event reason of a lock.
  bool may_overlook_lock() const override;
  ControlResult set(ControlQuantity quantity, double value) override;
  ControlResult check(ControlQuantity quantity, double value) override;
  std::string lost() const override;
  std::vector<RestoreStep> snapshot() override;
  void confirm(RestoreStep& step) const override;
  ControlResult restore(const RestoreStep& step) override;

  /// Converts an NVML return code to a status.
  static ControlStatus status_of(int code);
  /// True if the driver or the GPU does not support the call.
  static bool missing(int code) { return status_of(code) == ControlStatus::not_supported; }

 private:
  template <class Call>
  std::vector<double> list(Call call);
  ControlRange clock_range(ControlQuantity quantity);
  ControlRange limit_range() const;
  int application_clocks(const EntryPoint<int(nvml::Handle, int, unsigned*)>& get, unsigned& memory,
                         unsigned& core) const;
  /// Returns whether application clocks are set (differ from their defaults), and which.
  bool application_clocks_set(unsigned& memory, unsigned& core) const;
  void enable_persistence();
  unsigned paired_core(unsigned memory, unsigned core_now);
  ControlResult set_clock(ControlQuantity quantity, double value);
  ControlResult outcome(ControlQuantity quantity, double value, int code) const;
  template <class T>
  ControlResult put_back(const RestoreStep& step, T wanted, const EntryPoint<int(nvml::Handle, T*)>& get,
                         const EntryPoint<int(nvml::Handle, T)>& set) const;
  ControlResult restore_application_clocks(const RestoreStep& step);

  ControlEnvironment environment_;
  std::shared_ptr<const nvml::Library> library_;
  nvml::NvmlDevice gpu_;
  std::vector<double> memory_clocks_;
  std::map<unsigned, std::vector<double>> core_clocks_;
  int list_failure_ = nvml::kOk;  // of the last list requested
  bool application_clocks_saved_ = false, power_limit_saved_ = false, persistence_saved_ = false;
  bool persistence_on_ = false;
  std::set<ControlQuantity> lock_taken_;
};

}  // namespace ergotune
