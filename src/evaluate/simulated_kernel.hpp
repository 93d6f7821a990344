// What a kernel asks of a simulated device, per configuration.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ergotune/problem/device_profile.hpp"
#include "ergotune/problem/problem.hpp"

namespace ergotune::simulation {

/// One launch, in numbers.
struct Work {
  double flops = 0, bytes = 0;
  double threads = 0, blocks = 0;
  double registers = 0, shared_bytes = 0;
  double efficiency = 1, power = 1;
};

class KernelModel {
 public:
  KernelModel(const DeviceProfile& profile, const Problem& problem, std::vector<Parameter> parameters);
  Work work(const Configuration& configuration) const;
  const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  double evaluate(const std::string& name, const Scope& scope, double otherwise) const;
  double product(const std::vector<Expression>& sizes, const Scope& scope) const;
  double landscape(const Configuration& configuration, const std::string& of, double depth) const;

  std::map<std::string, Expression> model_;
  Launch launch_;
  std::vector<Parameter> parameters_;
  Constants constants_;
  double resident_blocks_all_ = 0;
};

}  // namespace ergotune::simulation
