// Launches: looks up the decision, or decides, compiles and loads; falls back to the default after failures.
#include "launcher/tuned_kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_text.hpp"
#include "device/backend.hpp"
#include "ergotune/error.hpp"
#include "kernel/wisdom_key.hpp"
#include "launcher/scalar_bits.hpp"

namespace ergotune::launcher {
namespace {

/// Returns the requested backend, or else the only one for which the kernel has a source.
std::string backend_of(const Kernel& kernel, const std::string& requested) {
  if (!requested.empty()) {
    (void)driver_access_for(requested);
    (void)source_for_device(kernel, requested);
    return requested;
  }
  std::vector<std::string> found;
  const std::pair<const char*, Language> kinds[] = {
      {"cuda", Language::cuda}, {"hip", Language::hip}, {"opencl", Language::opencl}};
  for (const auto& [name, language] : kinds)
    if (kernel.source_for(language)) found.push_back(name);
  if (found.size() == 1) return found.front();
  throw UserError(found.empty() ? std::string("the kernel has no source in CUDA, HIP or OpenCL")
                                : fmt::format("the kernel has sources for {}: choose one with the option `backend`",
                                              fmt::join(found, " and ")));
}

/// Prints at the end of the process that ERGOTUNE_CAPTURE names none of its kernels.
class CaptureCheck {
 public:
  void see(const std::string& kernel, bool captures) {
    const std::lock_guard lock(mutex_);
    kernels_.insert(kernel);
    captures_ = captures_ || captures;
  }
  ~CaptureCheck() {
    if (!captures_ && !kernels_.empty())
      fmt::print(stderr,
                 "ergotune: ERGOTUNE_CAPTURE names none of the kernels of this program ({}): nothing was captured\n",
                 fmt::join(kernels_, ", "));
  }

 private:
  std::mutex mutex_;
  std::set<std::string> kernels_;
  bool captures_ = false;
};

const Kernel& kernel_of(const Problem& problem, const std::string& name) {
  if (name.empty() && problem.kernels.size() == 1) return problem.kernel();
  std::vector<std::string> names;
  for (const Kernel& kernel : problem.kernels) {
    names.push_back(wisdom_name(problem, kernel));
    if (names.back() == name) return kernel;
  }
  throw UserError(
      fmt::format("the problem has several kernels: choose one with the option `kernel`{}", suggestion(name, names)));
}

}  // namespace

TunedKernel::TunedKernel(Problem problem, KernelSettings settings)
    : problem_(std::move(problem)), settings_(std::move(settings)), cache_(settings_.cache) {
  kernel_ = &kernel_of(problem_, settings_.kernel);
  name_ = wisdom_name(problem_, *kernel_);
  settings_.backend = backend_of(*kernel_, settings_.backend);
  native_ = &driver_access_for(settings_.backend);
  for (const auto& [name, value] : settings_.constants) {
    std::vector<std::string> known;
    for (const auto& [constant, old] : problem_.constants) known.push_back(constant);
    if (!problem_.constants.contains(name))
      throw UserError(fmt::format("the problem has no constant \"{}\"{}", name, suggestion(name, known)));
    problem_.constants[name] = value;
    for (auto& [device, constants] : problem_.constants_by_device) constants.erase(name);
  }
  words_ = code_description(*kernel_, settings_.backend);
  std::set<std::string, std::less<>> decisive = launch_names(problem_, *kernel_);
  decisive.insert(words_.begin(), words_.end());
  for (const std::string& name : size_names(problem_, *kernel_)) decisive.insert(name);
  for (const Restriction& restriction : problem_.restrictions)
    for (const std::string& name : restriction.expression.names()) decisive.insert(name);
  const auto bound = bound_constants(problem_, *kernel_);
  const auto& arguments = arguments_of(problem_, *kernel_);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    positions_.push_back(sizes_.size());
    if (argument.kind == Argument::Kind::local_memory) continue;
    if (const auto constant = bound.find(i); constant != bound.end() && decisive.contains(constant->second))
      bound_.push_back({sizes_.size(), argument.type, constant->second});
    const bool buffer = argument.kind == Argument::Kind::buffer, plain = argument.fields.empty();
    sizes_.push_back(buffer ? sizeof(void*) : plain ? size_of(argument.type) : size_of(argument.fields));
    signature_ += signature_.empty() ? "" : " ";
    signature_ += buffer ? "*" : plain ? to_string(argument.type) : fmt::format("struct:{}", sizes_.back());
  }
  if (bound_.size() > kMostBound)
    throw UserError(fmt::format("{} scalars decide what is compiled; at most {} can", bound_.size(), kMostBound));
  wisdom_ = read_all_wisdom();
  capture_ = CaptureSettings::from_environment();
  capturing_ = capture_.means(name_);
  if (!capture_.names.empty()) {
    static CaptureCheck check;
    check.see(name_, capturing_);
  }
  callback_->kernel = this;
}

TunedKernel::~TunedKernel() {
  {
    const std::lock_guard lock(callback_->mutex);
    callback_->kernel = nullptr;
  }
  background_.reset();
}

LaunchKey TunedKernel::key_of(void* queue, Arguments arguments) const {
  if (arguments.size() != sizes_.size())
    throw UserError(fmt::format("{} takes {} arguments, and was given {}", name_, sizes_.size(), arguments.size()));
  for (std::size_t i = 0; i < sizes_.size(); ++i)
    if (arguments[i].size != sizes_[i])
      throw UserError(fmt::format("{}: argument {} has {} bytes, and the problem has {}", name_, i + 1,
                                  arguments[i].size, sizes_[i]));
  LaunchKey key;
  key.place = native_->place_of(queue);
  for (const Bound& bound : bound_) key.values[key.count++] = bits_of(bound.type, arguments[bound.position].address);
  return key;
}

int TunedKernel::first_launch(const LaunchKey& key, std::uint64_t hash, void* queue, Arguments arguments,
                              std::string& error) {
  LaunchEntry& entry = table_.at(key, hash);
  const Decision* known = entry.decision.load(std::memory_order_acquire);
  const bool records = native_->records(queue);
  if (!known && records)
    throw UserError(name_ +
                    ": nothing can be compiled while the stream records a graph; prepare() such a launch before");
  const Decision& decision = known ? *known : decide(entry, false);
  follow_clock(decision, queue);
  // recorded launches have not run when the call returns, and cannot be captured
  const bool captures = capturing_ && !records && passed_++ >= capture_.skip && !entry.captured;
  const int code = captures ? launch_captured(entry, decision, queue, arguments)
                            : decision.plan.code->launch(decision.plan, queue, arguments.data());
  return code == 0 ? 0 : failed_launch(entry, decision, code, queue, arguments, error);
}

int TunedKernel::launch_captured(LaunchEntry& entry, const Decision& decision, void* queue, Arguments arguments) {
  const std::lock_guard lock(entry.mutex);
  if (entry.captured) return decision.plan.code->launch(decision.plan, queue, arguments.data());
  entry.captured = true;
  CapturedLaunch launch{
      &problem_, settings_.text, settings_.backend, name_, constants_at(site_at(entry.key.place), entry.key), {}};
  const auto& all = arguments_of(problem_, *kernel_);
  for (const auto& [position, name] : bound_constants(problem_, *kernel_))  // including unused ones
    launch.constants[name] =
        value_of(all[position].type, bits_of(all[position].type, arguments[positions_[position]].address));
  launch.arguments.resize(all.size());
  std::string failure;
  // If the capture fails, the application still gets its launch.
  const auto attempt = [&](const auto& step) {
    try {
      if (failure.empty()) step();
    } catch (const std::exception& error) {
      failure = error.what();
    }
  };
  const auto look = [&](bool after) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].kind == Argument::Kind::local_memory) continue;
      const ergotune_argument& given = arguments[positions_[i]];
      CapturedArgument& seen = launch.arguments[i];
      const auto* bytes = static_cast<const std::byte*>(given.address);
      if (all[i].kind == Argument::Kind::buffer)
        (after ? seen.after : seen.before) = native_->contents(queue, given.address);
      else
        seen.before.assign(bytes, bytes + given.size);
    }
  };
  attempt([&] { look(false); });
  if (const int code = decision.plan.code->launch(decision.plan, queue, arguments.data()); code != 0) {
    entry.captured = false;  // the launch of the default that follows can be captured instead
    return code;
  }
  attempt([&] { look(true); });
  std::string size;
  for (const std::int64_t n : problem_size(problem_, *kernel_, launch.constants))
    size += fmt::format("{}{}", size.empty() ? "_" : "x", n);
  const auto folder = capture_.folder / (wisdom_file({}, name_).stem().string() + size);
  attempt([&] { write_launch(launch, folder); });
  warn(failure.empty() ? fmt::format("captured in {0}: ergotune tune {0} --wisdom wisdom", folder.string())
                       : "not captured: " + failure);
  return 0;
}

int TunedKernel::failed_launch(LaunchEntry& entry, const Decision& decision, int code, void* queue, Arguments arguments,
                               std::string& error) {
  error = fmt::format("{} ({}): {}", name_, values_text(decision.configuration), native_->error_text(code));
  if (decision.is_default || !native_->is_launch_error(code)) return code;
  const Decision* otherwise = nullptr;
  {
    const std::lock_guard lock(entry.mutex);
    otherwise = entry.decision.load();
    if (otherwise == &decision) {
      Site& site = site_at(entry.key.place);
      warn(fmt::format("the tuned configuration {} cannot be launched here ({}); the default is used from now on",
                       values_text(decision.configuration), native_->error_text(code)));
      {
        const std::lock_guard knowing(site.mutex);
        site.failed[values_text(decision.configuration)] = native_->error_text(code);
      }
      const Constants constants = constants_at(site, entry.key);
      otherwise = &settle(entry, site, constants,
                          choose_default(constants, "the default: the tuned configuration cannot be launched here"));
    }
  }
  const int again = otherwise->plan.code->launch(otherwise->plan, queue, arguments.data());
  if (again != 0)
    error = fmt::format("{} ({}): {}", name_, values_text(otherwise->configuration), native_->error_text(again));
  return again;
}

const Decision& TunedKernel::decide(LaunchEntry& entry, bool wait) {
  const std::lock_guard lock(entry.mutex);
  const Decision* known = entry.decision.load();
  if (known && (entry.settled || !wait)) return *known;
  Site& site = site_at(entry.key.place);
  const Constants constants = constants_at(site, entry.key);
  auto wanted = choose(site, constants);
  if (settings_.background && !wait) {
    auto meanwhile = interim_decision(site, entry.key, constants, *wanted);
    if (meanwhile && later([this, &entry] { improve(entry); })) {
      const Decision* kept = table_.keep(std::move(meanwhile));
      entry.decision.store(kept, std::memory_order_release);
      return *kept;
    }
  }
  return settle(entry, site, constants, std::move(wanted));
}

std::unique_ptr<Decision> TunedKernel::interim_decision(Site& site, const LaunchKey& key, const Constants& constants,
                                                        const Decision& wanted) {
  if (is_compiled(site, job_for(site, constants, wanted.configuration))) return nullptr;
  std::vector<Configuration> candidates;
  {
    const std::lock_guard lock(site.mutex);
    if (site.latest) candidates.push_back(*site.latest);
  }
  if (!wanted.is_default) candidates.push_back(choose_default(constants, "")->configuration);
  for (const Configuration& candidate : candidates) {
    if (candidate == wanted.configuration) continue;
    WisdomRecord record;
    for (std::size_t i = 0; i < candidate.size(); ++i) record.configuration[problem_.parameters[i].name] = candidate[i];
    try {
      // a configuration used for another size may be invalid for this one
      if (!refusal(site, constants, record).empty() || !is_compiled(site, job_for(site, constants, candidate)))
        continue;
      auto meanwhile = choose_default(constants, "until the one that is wanted is compiled: " + wanted.reason);
      meanwhile->is_default = candidate == meanwhile->configuration;
      meanwhile->configuration = candidate;
      add_plan(*meanwhile, site, key.place, constants);
      return meanwhile;
    } catch (const Error&) {
      // nor can it be loaded
    }
  }
  return nullptr;  // if a configuration must be compiled anyway, it is the wanted one
}

void TunedKernel::complete(std::unique_ptr<Decision>& wanted, Site& site, const Place& place,
                           const Constants& constants) {
  try {
    add_plan(*wanted, site, place, constants);
  } catch (const Error& error) {
    if (wanted->is_default) throw;
    const std::string values = values_text(wanted->configuration);
    bool first = false;
    {
      const std::lock_guard lock(site.mutex);
      first = site.failed.emplace(values, error.what()).second;
    }
    if (first)
      warn(
          fmt::format("the tuned configuration {} does not work here ({}); the default is used", values, error.what()));
    wanted = choose_default(constants, "the default: the tuned configuration does not compile or load here");
    add_plan(*wanted, site, place, constants);
  }
}

const Decision& TunedKernel::settle(LaunchEntry& entry, Site& site, const Constants& constants,
                                    std::unique_ptr<Decision> wanted) {
  complete(wanted, site, entry.key.place, constants);
  // clocks and limits of another device's record are not applied
  const bool tuned_here =
      wanted->match == to_string(WisdomMatch::exact) || wanted->match == to_string(WisdomMatch::near_size);
  if (settings_.clocks) {
    wanted->held = &HeldClocks::of(site.info);
    if (tuned_here && !wanted->execution.empty()) {
      if (const auto clock = wanted->execution.find("core_clock_mhz"); clock != wanted->execution.end())
        wanted->clock_mhz = clock->second.as_real();
      if (const std::string failure = wanted->held->apply(settings_.wisdom, wanted->clock_latency); !failure.empty())
        warn("runs at the clocks that are set: " + failure);
    }
  }
  {
    const std::lock_guard lock(site.mutex);
    site.latest = wanted->configuration;
  }
  if (settings_.online > 0 && !capturing_ && wanted->match != to_string(WisdomMatch::exact)) {
    const std::lock_guard lock(mutex_);
    wanted->online = &online_.emplace_back();
  }
  const Decision* kept = table_.keep(std::move(wanted));
  entry.online.store(kept->online);
  entry.decision.store(kept, std::memory_order_release);
  entry.settled = true;
  if (kept->online) begin_online(entry, *kept->online);
  return *kept;
}

bool TunedKernel::later(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (!background_) background_.reset(new Background);
  return background_->add(std::move(task));
}

void TunedKernel::improve(LaunchEntry& entry) {
  try {
    native_->enter(entry.key.place);
    Site& site = site_at(entry.key.place);
    const Constants constants = constants_at(site, entry.key);
    // Compiles first, without the entry's lock, so that threads that decide or reload do not wait.
    auto wanted = choose(site, constants);
    complete(wanted, site, entry.key.place, constants);
    decide(entry, true);
  } catch (const std::exception& error) {
    warn_once(fmt::format("nothing better could be compiled in the background: {}", error.what()));
  }
}

TunedKernel::Site& TunedKernel::site_at(const Place& place) {
  const std::lock_guard lock(mutex_);
  auto& site = sites_[{place.context, place.device}];
  if (!site) {
    auto fresh = std::make_unique<Site>();
    fresh->info = native_->device_at(place);
    fresh->constants = problem_.constants_for(fresh->info.name, fresh->info.properties);
    site = std::move(fresh);
  }
  return *site;
}

Constants TunedKernel::constants_at(const Site& site, const LaunchKey& key) const {
  Constants constants = site.constants;
  for (std::size_t i = 0; i < bound_.size(); ++i)
    constants[bound_[i].constant] = value_of(bound_[i].type, key.values[i]);
  return constants;
}

TunedKernel::Job TunedKernel::job_for(Site& site, const Constants& constants,
                                      const Configuration& configuration) const {
  {
    const std::lock_guard lock(site.mutex);
    if (!site.compiler) {
      auto compiler = open_compiler(site.info.id);
      site.identity = compiler->identity();
      site.compiler = std::move(compiler);
    }
  }
  Job job{make_compile_job(problem_, *kernel_, site.info, constants, configuration), {}};
  job.job.disassemble = false;
  // Sizes that the source does not use would cause a separate compilation for each size.
  std::erase_if(job.job.defines, [&](const auto& define) {
    return problem_.constants.contains(define.first) && !words_.contains(define.first);
  });
  job.key = CompileCache::key(job.job, site.identity);
  return job;
}

bool TunedKernel::is_compiled(Site& site, const Job& job) const {
  {
    const std::lock_guard lock(site.mutex);
    const auto loaded = site.loaded.find(job.key);
    if (loaded != site.loaded.end() && loaded->second.ready) return true;
  }
  return cache_.find(job.key).has_value();
}

std::shared_ptr<Code> TunedKernel::code_for(Site& site, const Place& place, const Job& job) {
  LoadedCode* loaded = nullptr;
  {
    const std::lock_guard lock(site.mutex);
    loaded = &site.loaded[job.key];
  }
  const std::lock_guard making(loaded->mutex);  // threads that need the same code wait for the one that loads it
  if (loaded->code) return loaded->code;
  std::optional<Binary> binary = cache_.find(job.key);
  if (!binary) {
    const std::lock_guard turn(site.compiling);
    binary = site.compiler->compile(job.job);
    const std::lock_guard storing(storing_);
    cache_.store(job.key, *binary);
  }
  loaded->code = native_->load(place, *binary);
  loaded->ready = true;
  return loaded->code;
}

void TunedKernel::add_plan(Decision& decision, Site& site, const Place& place, const Constants& constants) {
  const ConfigurationScope names(problem_.parameters, decision.configuration, constants, kernel_->name);
  const Scope scope = names.scope();
  LaunchPlan& plan = decision.plan;
  plan.geometry = make_geometry(kernel_->launch, scope);
  for (int d = 0; d < 3; ++d) {
    plan.local[d] = plan.geometry.block[d];
    plan.global[d] = std::size_t{plan.geometry.grid[d]} * plan.geometry.block[d];
    if (plan.global[d] > 1) plan.dimensions = static_cast<std::uint32_t>(d + 1);
  }
  const auto& arguments = arguments_of(problem_, *kernel_);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    if (!argument.passed(scope)) continue;
    const bool local = argument.kind == Argument::Kind::local_memory;
    plan.passed.push_back({static_cast<std::uint32_t>(positions_[i]), local, local ? local_bytes(argument, scope) : 0});
  }
  plan.code = code_for(site, place, job_for(site, constants, decision.configuration));
  plan.code->allow(plan);
}

void TunedKernel::prepare(void* queue, Arguments arguments) {
  const LaunchKey key = key_of(queue, arguments);
  if (native_->records(queue)) throw UserError(name_ + ": nothing can be compiled while the stream records a graph");
  decide(table_.at(key, key.hash()), true);
}

std::string TunedKernel::why(void* queue, Arguments arguments) {
  using Json = nlohmann::ordered_json;
  const LaunchKey key = key_of(queue, arguments);
  const LaunchEntry* entry = table_.find(key, key.hash());
  const Decision* decision = entry ? entry->decision.load(std::memory_order_acquire) : nullptr;
  std::unique_ptr<Decision> fresh;
  if (!decision) {  // not compiled, since this is only a query
    Site& site = site_at(key.place);
    fresh = choose(site, constants_at(site, key));
    decision = fresh.get();
  }
  const auto json_of = [](const Value& value) {
    return std::visit([](const auto& plain) { return Json(plain); }, value.data());
  };
  Json configuration = Json::object(), execution = Json::object();
  for (std::size_t i = 0; i < decision->configuration.size(); ++i)
    configuration[problem_.parameters[i].name] = json_of(decision->configuration[i]);
  for (const auto& [name, value] : decision->execution) execution[name] = json_of(value);
  Json document{{"kernel", name_},
                {"configuration", configuration},
                {"execution", execution},
                {"reason", decision->reason},
                {"match", decision->match},
                {"distance", decision->is_default ? Json() : Json(decision->distance)},
                {"is_default", decision->is_default}};
  if (OnlineTuning* online = entry ? entry->online.load() : nullptr) {
    const std::lock_guard lock(online->mutex);
    if (!online->state.empty()) document["online"] = Json::parse(online->state);
  }
  return json_text(document);
}

}  // namespace ergotune::launcher
