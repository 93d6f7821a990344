// Online tuning: trials among the application's own launches.
#include "launcher/online.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "ergotune/error.hpp"
#include "kernel/compare.hpp"
#include "kernel/wisdom_key.hpp"
#include "launcher/tuned_kernel.hpp"

namespace ergotune::launcher {

void TunedKernel::begin_online(LaunchEntry& entry, OnlineTuning& online) {
  if (!later([this, &entry, &online] { in_online(entry, online, [&] { open_search(entry, online); }); }))
    warn_once("no online tuning: the system cannot create a thread");
}

int TunedKernel::launch_online(LaunchEntry& entry, const Decision& decision, void* queue, Arguments arguments,
                               std::string& error) {
  OnlineTuning& online = *decision.online;
  const std::uint64_t number = online.launches.fetch_add(1, std::memory_order_relaxed) + 1;
  std::uint64_t due = online.due.load(std::memory_order_relaxed);
  follow_clock(decision, queue);
  const bool measured = number >= due && !native_->records(queue) &&
                        online.due.compare_exchange_strong(due, OnlineTuning::kNever, std::memory_order_acquire);
  if (!measured) {
    const int code = decision.plan.code->launch(decision.plan, queue, arguments.data());
    return code == 0 ? 0 : failed_launch(entry, decision, code, queue, arguments, error);
  }
  const int code = launch_measured(online, decision, queue, arguments);
  online.disturbed = online.launches.load(std::memory_order_relaxed) != number;
  online.watch->finish([callback = callback_, &entry, &online] {
    const std::lock_guard lock(callback->mutex);
    TunedKernel* const kernel = callback->kernel;
    if (!kernel) return;
    kernel->later(
        [=, &entry, &online] { kernel->in_online(entry, online, [&] { kernel->end_measured(entry, online); }); });
  });
  return code == 0 ? 0 : failed_launch(entry, decision, code, queue, arguments, error);
}

int TunedKernel::launch_measured(OnlineTuning& online, const Decision& decision, void* queue, Arguments arguments) {
  const LaunchPlan &own = decision.plan, &tested = online.tested->plan;
  online.watch = native_->stopwatch(queue);
  online.copied = true;
  online.watch->mark();
  if (!online.compares) {
    online.code = tested.code->launch(tested, queue, arguments.data());
    online.watch->mark();
    return online.code == 0 ? 0 : own.code->launch(own, queue, arguments.data());
  }
  std::vector<ergotune_argument> copies(arguments.begin(), arguments.end());
  for (const OnlineTuning::Output& output : online.outputs) {
    online.copied = output.tested->copy_from(queue, arguments[output.position].address) && online.copied;
    copies[output.position].address = output.tested->handle();
  }
  online.watch->mark();
  online.code = online.copied ? tested.code->launch(tested, queue, copies.data()) : 0;
  online.watch->mark();
  const int code = own.code->launch(own, queue, arguments.data());
  online.watch->mark();
  for (const OnlineTuning::Output& output : online.outputs)
    online.copied = online.copied && output.own->copy_from(queue, arguments[output.position].address);
  online.watch->mark();
  return code;
}

void TunedKernel::in_online(LaunchEntry& entry, OnlineTuning& online, const std::function<void()>& task) {
  try {
    native_->enter(entry.key.place);
    task();
  } catch (const std::exception& error) {
    note_state(online, true, error.what());
    warn_once(fmt::format("online tuning has ended: {}", error.what()));
    run_from_now_on(entry, online, true);
    online.outputs.clear();
  }
}

void TunedKernel::open_search(LaunchEntry& entry, OnlineTuning& online) {
  const Decision* const running = entry.decision.load(std::memory_order_acquire);
  if (!running || running->online != &online) return;
  Site& site = site_at(entry.key.place);
  const Constants constants = constants_at(site, entry.key);
  if (!settings_.objective.empty() && settings_.objective != "time")
    throw UserError(fmt::format("launches are tuned for time, not for \"{}\"", settings_.objective));
  // what does not change this kernel's launches keeps its value
  Problem problem = problem_;
  std::set<std::string, std::less<>> relevant = launch_names(problem_, *kernel_);
  for (const std::size_t p : code_parameters(problem_, *kernel_)) relevant.insert(problem_.parameters[p].name);
  for (std::size_t p = 0; p < problem.parameters.size(); ++p)
    if (!relevant.contains(problem.parameters[p].name)) {
      problem.parameters[p].values = {running->configuration[p]};
      problem.parameters[p].default_value.reset();
      problem.parameters[p].range.reset();
      problem.parameters[p].generator = {};
    }
  SearchSpace space = problem.build_space(constants);
  const auto start = space.index_of(running->configuration);
  if (!start) throw UserError("the configuration that runs is not in the search space");
  online.search = std::make_unique<OnlineSearch>(std::move(space), *start, settings_.online);
  online.decisions[*start] = running;
  const auto& arguments = arguments_of(problem_, *kernel_);
  const ConfigurationScope names(problem_.parameters, running->configuration, constants, kernel_->name);
  for (std::size_t i = 0; i < arguments.size() && problem_.verification.kind != Verification::Kind::none; ++i)
    if (arguments[i].kind == Argument::Kind::buffer && arguments[i].access != Access::read &&
        arguments[i].passed(names.scope())) {
      const auto count = static_cast<std::size_t>(arguments[i].count.evaluate(names.scope()).as_integer());
      const auto copy = [&] { return native_->buffer_copy(entry.key.place, count * size_of(arguments[i].type)); };
      online.outputs.push_back({positions_[i], &arguments[i], copy(), copy()});
    }
  prepare_measured(entry, online);
}

void TunedKernel::prepare_measured(LaunchEntry& entry, OnlineTuning& online) {
  while (const auto step = online.search->next()) {
    if (!run_from_now_on(entry, online, false)) return;
    try {
      online.tested = &tested_decision(entry, online, *step);
    } catch (const Error&) {  // it does not compile, load, or meet the device's limits
      ++online.failed;
      online.search->take(*step, std::nullopt, 0);
      continue;
    }
    online.step = *step;
    online.compares = step->first && step->index != online.search->running() && !online.outputs.empty();
    note_state(online, false);
    online.due.store(online.search->due(*step), std::memory_order_release);
    return;
  }
  end_online(entry, online);
}

const Decision& TunedKernel::tested_decision(LaunchEntry& entry, OnlineTuning& online, const OnlineSearch::Step& step) {
  const Decision*& known = online.decisions[step.index];
  if (known) return *known;
  Site& site = site_at(entry.key.place);
  const Constants constants = constants_at(site, entry.key);
  auto decision = choose_default(constants, "the fastest of this application's launches");
  decision->configuration = online.search->space().configuration(step.index);
  decision->is_default = false;
  decision->online = &online;
  WisdomRecord record;
  for (std::size_t p = 0; p < problem_.parameters.size(); ++p)
    record.configuration[problem_.parameters[p].name] = decision->configuration[p];
  if (const std::string reason = refusal(site, constants, record); !reason.empty()) throw Error(reason);
  add_plan(*decision, site, entry.key.place, constants);
  known = table_.keep(std::move(decision));
  return *known;
}

void TunedKernel::end_measured(LaunchEntry& entry, OnlineTuning& online) {
  OnlineSearch& search = *online.search;
  search.count(online.launches.load(std::memory_order_relaxed));
  const auto between = [&](std::size_t from, std::size_t to) {
    const auto seconds = online.watch->seconds(from, to);
    if (!seconds) throw UserError("the driver does not measure the times of launches");
    return *seconds;
  };
  if (!online.copied)
    throw UserError("the outputs cannot be compared: a buffer is shorter than the problem states, or NULL");
  if (online.code != 0 && !native_->is_launch_error(online.code)) throw Error(native_->error_text(online.code));
  double excess = 0;
  std::optional<double> seconds;
  if (online.compares) {
    seconds = between(1, 2);
    excess = between(0, 2) + between(3, 4);
  } else {
    seconds = between(0, 1);
    if (online.step.index != search.running()) excess = *seconds - search.time(search.running()).seconds;
  }
  std::string failure = online.code != 0 ? native_->error_text(online.code) : std::string();
  if (failure.empty() && online.compares) failure = difference(online);
  if (!failure.empty() && online.compares && online.disturbed) {  // perhaps by the launch of another thread: once more
    search.spent += excess;
    return prepare_measured(entry, online);
  }
  if (!failure.empty()) {
    ++online.failed;
    warn_once(fmt::format("online tuning does not use {}: {}", values_text(online.tested->configuration), failure));
    seconds.reset();
  }
  search.take(online.step, seconds, excess);
  prepare_measured(entry, online);
}

std::string TunedKernel::difference(const OnlineTuning& online) const {
  const Verification& verification = problem_.verification;
  for (const OnlineTuning::Output& output : online.outputs) {
    const Argument& argument = *output.argument;
    if (const auto& named = verification.outputs;
        !named.empty() && std::ranges::find(named, argument.name) == named.end())
      continue;
    const auto compared =
        compare_output(verification, argument.name, argument.type, output.tested->read(), output.own->read());
    if (!compared.equal) return fmt::format("of \"{}\", {}", argument.name, compared.message);
  }
  return {};
}

bool TunedKernel::run_from_now_on(LaunchEntry& entry, OnlineTuning& online, bool ends) {
  const std::lock_guard lock(entry.mutex);
  const Decision* const current = entry.decision.load();
  if (!current || current->online != &online) return false;
  const Decision* next = online.search ? online.decisions.at(online.search->running()) : current;
  if (ends) {
    auto last = std::make_unique<Decision>(*next);
    last->online = nullptr;
    next = table_.keep(std::move(last));
  }
  if (next == current) return true;
  entry.decision.store(next, std::memory_order_release);
  return true;
}

void TunedKernel::end_online(LaunchEntry& entry, OnlineTuning& online) {
  const OnlineSearch& search = *online.search;
  online.outputs.clear();
  if (!run_from_now_on(entry, online, true) || search.running() == search.start()) return note_state(online, true);
  Site& site = site_at(entry.key.place);
  const Constants constants = constants_at(site, entry.key);
  const Configuration best = search.space().configuration(search.running());
  const OnlineSearch::Time time = search.time(search.running());
  WisdomRecord record;
  for (std::size_t p = 0; p < best.size(); ++p) {
    const std::string& name = problem_.parameters[p].name;
    const auto dot = name.find('.');
    if (dot == std::string::npos || name.substr(0, dot) == kernel_->name) record.configuration[name] = best[p];
  }
  record.size_names = size_names(problem_, *kernel_);
  record.problem_size = problem_size(problem_, *kernel_, constants);
  record.score = time.seconds;
  record.quantities["time"] = {time.seconds, time.standard_error, static_cast<std::int64_t>(time.n)};
  record.device = wisdom_device(site.info);
  record.source_hash = source_hash(problem_, *kernel_, settings_.backend, constants);
  record.space_hash = space_hash(problem_);
  record.confirmation_repeats = static_cast<int>(time.n);
  record.version = ERGOTUNE_VERSION;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) record.host = host.data();
  record.tuned_at = iso_time(wall_seconds());
  add_to_wisdom(settings_.wisdom.front(), name_, {record});
  note_state(online, true);
}

void TunedKernel::note_state(OnlineTuning& online, bool settled, const std::string& failure) {
  nlohmann::ordered_json state{{"settled", settled}, {"bound", settings_.online}};
  if (online.search) {
    const OnlineSearch& search = *online.search;
    state.update({{"tried", search.tried()},
                  {"failed", online.failed},
                  {"ratio", search.ratio()},
                  {"worst_ratio", search.worst},
                  {"start_seconds", search.time(search.start()).seconds},
                  {"seconds", search.time(search.running()).seconds}});
  }
  if (!failure.empty()) state["message"] = failure;
  const std::lock_guard lock(online.mutex);
  online.state = json_text(state);
}

}  // namespace ergotune::launcher
