#include "kernel/round.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "kernel/configure.hpp"

namespace ergotune {
namespace {

using Kind = Step::Kind;
using Visit = std::function<void(const IterationLaunch&, const Scope&, const BufferNames&)>;

std::int64_t integer_of(const Expression& expression, const Scope& scope, const char* what) {
  const Value value = expression.evaluate(scope);
  const double real = value.as_real();
  if (!(real > -9e15 && real < 9e15) || real != static_cast<double>(static_cast<std::int64_t>(real)))
    throw UserError(fmt::format("{} is {}; it must be an integer", what, value.to_string()), expression.place());
  return static_cast<std::int64_t>(real);
}

class IterationWalk {
 public:
  IterationWalk(const Problem& problem, const Constants& constants, const Configuration& configuration,
                const Visit& visit)
      : problem_(problem), visit_(visit) {
    for (const std::string& variable : loop_variables(problem)) variables_[variable] = Value(0);
    plain_.emplace_back(problem.parameters, configuration, constants, std::string_view(), &variables_);
    for (const Kernel& kernel : problem.kernels)
      inside_.emplace_back(problem.parameters, configuration, constants, kernel.name, &variables_);
  }

  IterationPlan walk() {
    if (problem_.steps.empty()) {
      for (std::size_t k = 0; k < problem_.kernels.size(); ++k) place(k, 1);
    } else {
      steps(problem_.steps);
    }
    return std::move(plan_);
  }

 private:
  struct Placed {
    IterationLaunch launch;
    LoopVariables variables;
    BufferNames names;
  };

  void steps(const std::vector<Step>& list) {
    for (const Step& step : list) one(step);
  }

  void one(const Step& step) {
    switch (step.kind) {
      case Kind::launch:
        return launch(step);
      case Kind::loop:
        return loop(step);
      case Kind::swap:
        std::swap(plan_.names.try_emplace(step.first, step.first).first->second,
                  plan_.names.try_emplace(step.second, step.second).first->second);
        return;
      case Kind::concurrent:
        return concurrent(step);
      case Kind::group:
        return steps(step.steps);
    }
  }

  void launch(const Step& step) {
    const std::int64_t count = integer_of(step.launches, plain_.front().scope(), "the number of launches");
    if (count < 0) throw UserError(fmt::format("a step has {} launches; it takes 0 or more", count), step.place);
    if (count > 0) place(step.kernel, static_cast<std::size_t>(count));
  }

  void place(std::size_t kernel, std::size_t count) {
    count_launches(count);
    const IterationLaunch launch{kernel, count, queue_, section_, queue_ > 0 ? branch_number_ : 0};
    if (branch_)
      branch_->push_back({launch, variables_, plan_.names});
    else
      visit_(launch, inside_[kernel].scope(), plan_.names);
  }

  void count_launches(std::size_t count) {
    plan_.launches += count;
    if (plan_.launches <= kMaxLaunchesPerIteration) return;
    throw UserError(fmt::format("a round has more than {} launches: does every loop of the workload end?",
                                kMaxLaunchesPerIteration),
                    problem_.steps.empty() ? SourcePlace{} : problem_.steps.front().place);
  }

  void loop(const Step& step) {
    const Scope scope = plain_.front().scope();
    const std::int64_t from = integer_of(step.from, scope, "the beginning of a loop"),
                       to = integer_of(step.to, scope, "the end of a loop"),
                       by = integer_of(step.by, scope, "the step of a loop");
    if (by == 0)
      throw UserError(fmt::format("the loop over \"{}\" never ends: it goes on by 0", step.variable), step.place);
    for (std::int64_t i = from; by > 0 ? i < to : i > to; i += by) {
      if (++turns_ > kMaxLaunchesPerIteration)
        throw UserError(
            fmt::format("the loop over \"{}\" never ends, or a round goes through its loops more than {} times",
                        step.variable, kMaxLaunchesPerIteration),
            step.place);
      variables_[step.variable] = Value(i);
      steps(step.steps);
    }
    variables_[step.variable] = Value(0);
  }

  /// Branches are evaluated in the written order, and queued in the requested order.
  void concurrent(const Step& step) {
    ++section_;
    std::vector<std::vector<Placed>> branches(step.steps.size());
    std::set<std::size_t> taken;
    std::uint32_t shared_out = 0;  // number of SMs reserved so far
    for (std::size_t b = 0; b < step.steps.size(); ++b) {
      branch_number_ = b + 1;
      queue_ = queue_like(options_of(step.steps[b], shared_out), taken);
      branch_ = &branches[b];
      one(step.steps[b]);
    }
    branch_ = nullptr;
    queue_ = 0;
    const LoopVariables around = variables_;
    for (const std::size_t b : order_of(step)) {
      for (Placed& placed : branches[b]) {
        variables_ = std::move(placed.variables);
        visit_(placed.launch, inside_[placed.launch.kernel].scope(), placed.names);
      }
    }
    variables_ = around;
    ++section_;
  }

  /// Returns the options of a branch's queue; its SMs follow those that are already reserved.
  QueueOptions options_of(const Step& branch, std::uint32_t& shared_out) const {
    using Priority = QueueOptions::Priority;
    QueueOptions options;
    const Template& text = branch.priority;
    const std::string word = text.text().empty() ? "normal" : text.render(plain_.front().scope());
    if (word == "low")
      options.priority = Priority::low;
    else if (word == "high")
      options.priority = Priority::high;
    else if (word != "normal")
      throw UserError(fmt::format("a priority is \"low\", \"normal\" or \"high\", not \"{}\"", word));
    const std::int64_t count = integer_of(branch.multiprocessors, plain_.front().scope(), "the number of SMs");
    if (count < 0 || count > 1'000'000)
      throw UserError(
          fmt::format("branch \"{}\" has {} SMs; it takes 0 (wherever there is room) or more", branch.name, count),
          branch.multiprocessors.place());
    if (count == 0) return options;
    options.multiprocessors = static_cast<std::uint32_t>(count);
    options.first_multiprocessor = shared_out;
    shared_out += options.multiprocessors;
    return options;
  }

  /// Returns the first queue with these options that no other branch of the step uses; adds one if there is none.
  std::size_t queue_like(const QueueOptions& options, std::set<std::size_t>& taken) {
    std::size_t queue = 0;
    while (queue < plan_.queues.size() && (plan_.queues[queue] != options || taken.contains(queue))) ++queue;
    if (queue == plan_.queues.size()) plan_.queues.push_back(options);
    taken.insert(queue);
    return queue + 1;
  }

  std::vector<std::size_t> order_of(const Step& step) const {
    std::vector<std::size_t> order;
    const std::string names = step.order.text().empty() ? std::string() : step.order.render(plain_.front().scope());
    for (std::string name : split(names)) {
      std::erase(name, ' ');
      const auto found = std::ranges::find_if(step.steps, [&](const Step& branch) { return branch.name == name; });
      if (found == step.steps.end())
        throw UserError(fmt::format("\"order\" names \"{}\", which is not a branch of the step", name), step.place);
      order.push_back(static_cast<std::size_t>(found - step.steps.begin()));
    }
    for (std::size_t b = 0; b < step.steps.size(); ++b)
      if (std::ranges::find(order, b) == order.end()) order.push_back(b);
    return order;
  }

  const Problem& problem_;
  const Visit& visit_;
  IterationPlan plan_;
  LoopVariables variables_;
  std::vector<ConfigurationScope> plain_, inside_;
  std::size_t queue_ = 0, section_ = 0, branch_number_ = 0, turns_ = 0;
  std::vector<Placed>* branch_ = nullptr;
};

template <class F>
void for_each_step(const std::vector<Step>& steps, const F& visit) {
  for (const Step& step : steps) {
    visit(step);
    for_each_step(step.steps, visit);
  }
}

/// Returns all kernels that a step and its nested steps launch.
std::set<std::size_t> kernels_in(const Step& step) {
  std::set<std::size_t> kernels;
  if (step.kind == Kind::launch) kernels.insert(step.kernel);
  for_each_step(step.steps, [&](const Step& inner) {
    if (inner.kind == Kind::launch) kernels.insert(inner.kernel);
  });
  return kernels;
}

std::string race_between(const Kernel& one, const Kernel& other) {
  for (const Argument& a : one.arguments) {
    for (const Argument& b : other.arguments) {
      if (a.kind != Argument::Kind::buffer || b.kind != Argument::Kind::buffer || a.name != b.name) continue;
      if (a.access == Access::read && b.access == Access::read) continue;
      const bool first_writes = a.access != Access::read;
      return fmt::format("kernels \"{}\" and \"{}\" run side by side and race for buffer \"{}\": {} writes what {} {}",
                         one.name, other.name, a.name, first_writes ? one.name : other.name,
                         first_writes ? other.name : one.name,
                         (first_writes ? b : a).access == Access::read ? "reads" : "writes");
    }
  }
  return {};
}

}  // namespace

IterationPlan visit_launches(const Problem& problem, const Constants& constants, const Configuration& configuration,
                             const Visit& visit) {
  return IterationWalk(problem, constants, configuration, visit).walk();
}

std::set<std::string> loop_variables(const Problem& problem) {
  std::set<std::string> variables;
  for_each_step(problem.steps, [&](const Step& step) {
    if (step.kind == Kind::loop) variables.insert(step.variable);
  });
  return variables;
}

std::vector<std::size_t> first_order(const Problem& problem) {
  std::vector<std::size_t> order;
  const auto add = [&](std::size_t kernel) {
    if (std::ranges::find(order, kernel) == order.end()) order.push_back(kernel);
  };
  for_each_step(problem.steps, [&](const Step& step) {
    if (step.kind == Kind::launch) add(step.kernel);
  });
  for (std::size_t k = 0; k < problem.kernels.size(); ++k) add(k);
  return order;
}

std::vector<std::pair<std::string, std::string>> swapped_buffers(const Problem& problem) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for_each_step(problem.steps, [&](const Step& step) {
    if (step.kind == Kind::swap) pairs.emplace_back(step.first, step.second);
  });
  return pairs;
}

std::vector<std::string> race_notes(const Problem& problem) {
  std::vector<std::string> notes;
  for_each_step(problem.steps, [&](const Step& step) {
    if (step.kind != Kind::concurrent) return;
    for (std::size_t i = 0; i < step.steps.size(); ++i) {
      for (std::size_t j = i + 1; j < step.steps.size(); ++j) {
        for (const std::size_t one : kernels_in(step.steps[i])) {
          for (const std::size_t other : kernels_in(step.steps[j])) {
            std::string note = race_between(problem.kernels[one], problem.kernels[other]);
            if (!note.empty() && std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
          }
        }
      }
    }
  });
  return notes;
}

std::string with_kernel_name(const Kernel& kernel, const std::string& message) {
  return kernel.name.empty() ? message : fmt::format("kernel \"{}\": {}", kernel.name, message);
}

}  // namespace ergotune
