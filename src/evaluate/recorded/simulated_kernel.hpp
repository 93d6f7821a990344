// What a kernel asks of a simulated device, per configuration.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "problem/tables/device_profile.hpp"

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
  /// `problem.parameters` are the search space's. Of [simulation] a kernel with a name takes what is said of it by name
  /// ("lud.flops"), else what is said of all.
  KernelModel(const DeviceProfile& profile, const Problem& problem, std::size_t kernel);
  /// One launch; `names` is the scope of the kernel's expressions.
  Work work(const Configuration& configuration, const Scope& names) const;

 private:
  double evaluate(const std::string& name, const Scope& scope, double otherwise) const;
  double product(const std::vector<Expression>& sizes, const Scope& scope) const;
  double landscape(const Configuration& configuration, const std::string& of, double depth) const;

  std::map<std::string, Expression> model_;
  std::string kernel_;
  Launch launch_;
  std::vector<Parameter> parameters_;  ///< as the kernel names them; those that it does not see have no name
  double resident_blocks_all_ = 0;
};

}  // namespace ergotune::simulation
