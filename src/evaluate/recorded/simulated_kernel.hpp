// The work of a kernel on a simulated device, by configuration.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "problem/tables/device_profile.hpp"

namespace ergotune::simulation {

/// The work of one launch.
struct Work {
  double flops = 0, bytes = 0;
  double threads = 0, blocks = 0;
  double registers = 0, shared_bytes = 0;
  double efficiency = 1, power = 1;
};

class KernelModel {
 public:
  /// `problem.parameters`: those of the search space. For a named kernel, entries of [simulation] with its name
  /// ("lud.flops") take precedence over entries without a name.
  KernelModel(const DeviceProfile& profile, const Problem& problem, std::size_t kernel);
  /// The work of one launch; `names`: the scope of the kernel's expressions.
  Work work(const Configuration& configuration, const Scope& names) const;

 private:
  double evaluate(const std::string& name, const Scope& scope, double otherwise) const;
  double product(const std::vector<Expression>& sizes, const Scope& scope) const;
  double landscape(const Configuration& configuration, const std::string& of, double depth) const;

  std::map<std::string, Expression> model_;
  std::string kernel_;
  Launch launch_;
  std::vector<Parameter> parameters_;  ///< under the kernel's names for them; without a name if the kernel does not use
                                       ///< them
  double resident_blocks_all_ = 0;
};

}  // namespace ergotune::simulation
