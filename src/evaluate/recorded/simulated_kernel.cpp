#include "evaluate/recorded/simulated_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/hash.hpp"
#include "kernel/configure.hpp"

namespace ergotune::simulation {
namespace {

constexpr double kDefaultFlops = 2e11;
constexpr double kDefaultRegisters = 40;

/// A number in [0, 1) that a text determines. Gives each parameter the same best value on every machine.
double fraction_of(const std::string& text) { return static_cast<double>(hash64(text, 20221113) >> 11) * 0x1p-53; }

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = {"flops",     "bytes",        "threads",    "blocks",
                                                 "registers", "shared_bytes", "efficiency", "power"};
  return names;
}

}  // namespace

KernelModel::KernelModel(const DeviceProfile& profile, const Problem& problem, std::size_t kernel)
    : kernel_(problem.kernels[kernel].name), launch_(problem.kernels[kernel].launch), parameters_(problem.parameters) {
  for (const auto& [name, expression] : problem.simulation) {
    const std::size_t dot = name.find('.');
    const std::string quantity = dot == std::string::npos ? name : name.substr(dot + 1);
    const std::string owner = dot == std::string::npos ? std::string() : name.substr(0, dot);
    const bool known =
        owner.empty() || std::ranges::any_of(problem.kernels, [&](const Kernel& k) { return k.name == owner; });
    if (!known || std::find(model_names().begin(), model_names().end(), quantity) == model_names().end()) {
      throw UserError(fmt::format("[simulation] has no \"{}\"{}", name, suggestion(quantity, model_names())),
                      expression.place());
    }
    if (owner.empty())
      model_.emplace(quantity, expression);
    else if (owner == kernel_)
      model_.insert_or_assign(quantity, expression);
  }
  for (Parameter& parameter : parameters_) parameter.name = macro_name(problem.kernels[kernel], parameter);
  resident_blocks_all_ = 8 * profile.properties.at("device.multiprocessors").as_real();
}

double KernelModel::evaluate(const std::string& name, const Scope& scope, double otherwise) const {
  const auto it = model_.find(name);
  if (it == model_.end()) return otherwise;
  const double value = it->second.evaluate_real(scope);
  if (!std::isfinite(value) || value < 0) {
    throw UserError(fmt::format("[simulation] {} = {} is not a number of 0 or more", name, value), it->second.place());
  }
  return value;
}

double KernelModel::product(const std::vector<Expression>& sizes, const Scope& scope) const {
  double total = 1;
  for (const Expression& size : sizes) total *= std::max(1.0, std::ceil(size.evaluate_real(scope)));
  return total;
}

double KernelModel::landscape(const Configuration& configuration, const std::string& of, double depth) const {
  // Each code parameter has a best position among its values and loses efficiency quadratically away from it.
  // Consecutive parameters interact, which makes local optima.
  double share = 1, before = 0.5;
  std::string name_before;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (parameter.name.empty() || parameter.values.size() < 2) continue;
    const auto it = std::ranges::find(parameter.values, configuration[i]);
    const double place =
        static_cast<double>(it - parameter.values.begin()) / static_cast<double>(parameter.values.size() - 1);
    const std::string name = kernel_.empty() ? parameter.name : kernel_ + "." + parameter.name;
    const double best = fraction_of(of + "/" + name);
    const double weight = depth * (0.3 + 0.7 * fraction_of(of + "/weight/" + name));
    share *= 1 - weight * (place - best) * (place - best);
    if (!name_before.empty()) {
      const double phase = fraction_of(of + "/" + name_before + "/" + name);
      share *= 1 - 0.25 * depth * (0.5 + 0.5 * std::cos(2 * M_PI * (2 * (place - before) + phase)));
    }
    before = place;
    name_before = name;
  }
  return std::clamp(share, 0.02, 1.0);
}

Work KernelModel::work(const Configuration& configuration, const Scope& names) const {
  Constants named;  // results so far, for later expressions
  const Scope scope = [&](std::string_view name) -> const Value* {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!parameters_[i].name.empty() && parameters_[i].name == name) return &configuration[i];
    }
    const auto it = named.find(name);
    return it == named.end() ? names(name) : &it->second;
  };
  Work work;
  double threads = 1;
  if (!launch_.block.empty()) {
    threads = product(launch_.block, scope);
  } else {
    bool any = false;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!parameters_[i].name.starts_with("block_size_") || !configuration[i].is_number()) continue;
      threads *= configuration[i].as_real();
      any = true;
    }
    if (!any) threads = 256;
  }
  work.threads = std::max(1.0, std::round(evaluate("threads", scope, threads)));
  double blocks = resident_blocks_all_;
  if (!launch_.grid.empty()) {
    blocks = product(launch_.grid, scope);
  } else if (!launch_.global.empty()) {
    blocks = std::max(1.0, product(launch_.global, scope) / work.threads);
  }
  work.blocks = std::max(1.0, std::round(evaluate("blocks", scope, blocks)));
  named["threads"] = Value(work.threads);
  named["blocks"] = Value(work.blocks);
  work.flops = evaluate("flops", scope, kDefaultFlops);
  work.registers = evaluate("registers", scope, kDefaultRegisters);
  const bool dynamic_shared = !launch_.shared_memory_bytes.text().empty();
  work.shared_bytes =
      evaluate("shared_bytes", scope, dynamic_shared ? launch_.shared_memory_bytes.evaluate_real(scope) : 0.0);
  work.efficiency = model_.contains("efficiency") ? std::clamp(evaluate("efficiency", scope, 1.0), 1e-3, 1.0)
                                                  : 0.9 * landscape(configuration, "efficiency", 0.6);
  work.bytes = model_.contains("bytes") ? evaluate("bytes", scope, 0.0)
                                        : 0.1 * kDefaultFlops / 10 / landscape(configuration, "bytes", 0.6);
  work.power = evaluate("power", scope, 1.0);
  return work;
}

}  // namespace ergotune::simulation
