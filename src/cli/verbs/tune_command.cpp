// ergotune tune: finds the best configuration of a problem.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>

#include "cli/command.hpp"
#include "cli/interruption.hpp"
#include "cli/live_options.hpp"
#include "cli/output/plan_output.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/tune_report.hpp"
#include "cli/output/wisdom_records.hpp"
#include "cli/watch_child.hpp"
#include "ergotune/error.hpp"

namespace ergotune::cli {
namespace {

/// s; a longer search without a budget gets a hint.
constexpr double kLong = 1800;

struct TuneArguments : LiveArguments {
  std::optional<std::string> figure, retry, wisdom;
  bool no_resume = false, no_store = false, quiet = false, json = false, watch = false;
  std::size_t top = 5;
};

/// "timeout,runtime_error", or "all": everything but ok.
std::set<Status> statuses_to_retry(const std::string& text) {
  const std::vector<Status> failures{Status::compile_error, Status::launch_error, Status::runtime_error,
                                     Status::timeout,       Status::wrong_result, Status::not_converged,
                                     Status::unsupported};
  std::vector<std::string> names{"all"};
  for (const Status status : failures) names.push_back(to_string(status));
  std::set<Status> chosen;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "all") {
      chosen.insert(failures.begin(), failures.end());
    } else if (const auto status = status_from(word); status && *status != Status::ok) {
      chosen.insert(*status);
    } else {
      throw UserError(fmt::format("--retry: no failure has the status \"{}\"{}", word, suggestion(word, names)));
    }
  }
  if (chosen.empty()) throw UserError("--retry takes statuses with commas, or all");
  return chosen;
}

/// The session's winner, as `export --format wisdom` writes it.
void write_winner(const TuneArguments& arguments, const PreparedSession& prepared) {
  if (!arguments.wisdom || !prepared.store) return;
  prepared.store->flush();
  for (const WrittenWisdom& written :
       write_wisdom(*arguments.wisdom, wisdom_of(prepared.store->file(), prepared.store_session, std::nullopt)))
    if (!arguments.quiet)
      fmt::print(stderr, "Wisdom: {} ({})\n", written.file.string(),
                 written.added > 0 ? "a record was added" : "it has this already");
}

/// Writes the winner before the answer, because a reader may close the pipe (`| head`); an error of writing is thrown
/// after the answer.
template <class Tell>
void save_and_report(const TuneArguments& arguments, const PreparedSession& prepared, bool answered, Tell tell) {
  std::exception_ptr unwritten;
  try {
    if (answered) write_winner(arguments, prepared);
  } catch (...) {
    unwritten = std::current_exception();
  }
  tell();
  if (unwritten) std::rethrow_exception(unwritten);
}

/// What the command says of a problem and a run, mistakes told.
struct Asked {
  Problem problem;
  SetupOptions setup;
  SessionOptions options;
};

Asked read(const TuneArguments& arguments) {
  Asked asked{load_with(arguments), {}, {}};
  Problem& problem = asked.problem;
  SetupOptions& setup = asked.setup = setup_with(arguments, problem);
  if (setup.store.empty()) setup.store = "ergotune.db";
  if (arguments.no_store) setup.store.clear();
  if (arguments.watch && arguments.no_store)
    throw UserError("--watch shows what the store holds; leave --no-store away");
  setup.resume = !arguments.no_resume;
  SessionOptions& options = asked.options = SessionOptions::from(problem.settings);
  if (options.budget.joules > 0) setup.live.energy = true;  // without a sensor it would never be spent: that is refused
  if (arguments.retry) options.retry = statuses_to_retry(*arguments.retry);
  const std::string plan = problem.settings.plan;
  if (!plan.empty() && arguments.retry)
    throw UserError("--retry comes before a search; tune without --plan to try stored failures again");
  if (plan.empty() && arguments.figure)
    throw UserError(
        "--figure draws a comparison of plans: name some with --plan, as in --plan race_to_idle,model_steered");
  if (!plan.empty()) find_plans(plan, problem);  // an unknown name is reported before a device is opened
  if (!plan.empty()) {
    if (const std::string added = prepare_for_plans(problem, setup, plan); !added.empty())
      fmt::print(stderr, "note: {}\n", added);
  }
  options.interrupted = setup.interrupted = interruption();
  if (!arguments.quiet) setup.tell = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  return asked;
}

PreparedSession prepare(const Asked& asked, bool quiet) {
  PreparedSession prepared = prepare_session(asked.problem, asked.setup);
  if (quiet) return prepared;
  fmt::print(stderr, "Tuning {} on {}: {}\n", prepared.problem.name, prepared.evaluator->description(),
             counted(prepared.space->size(), "configuration"));
  for (const std::string& note : prepared.notes) fmt::print(stderr, "note: {}\n", note);
  return prepared;
}

/// Progress that tells once what a long search without a bound means.
std::function<void(const SessionProgress&)> progress_with_hint(ProgressPrinter& progress, const SessionOptions& options,
                                                               bool quiet) {
  const bool bounded = options.budget.evaluations > 0 || options.budget.seconds > 0 || options.budget.joules > 0;
  const bool ends = options.early_stop && options.strategy == "auto";
  return [&progress, ends, told = bounded || quiet](const SessionProgress& p) mutable {
    if (!told && p.evaluated >= 2 && p.seconds_left.value_or(0) > kLong) {
      progress.finish();
      fmt::print(stderr,
                 "note: without a budget {} {} configurations, {} {} more; Ctrl-C ends it with the best so far and "
                 "keeps every "
                 "result, and the next time --budget 10min bounds it\n",
                 ends ? "the search goes on until nothing better is likely among" : "all are measured of", p.total,
                 ends ? "at most" : "about", human_duration(*p.seconds_left));
      told = true;
    }
    progress(p);
  };
}

/// The page, where it was asked for; its link is printed even with --quiet. Without a page it is tuned as well.
std::unique_ptr<WatchChild> watch(const TuneArguments& arguments, const PreparedSession& prepared) {
  if (!arguments.watch) return nullptr;
  try {
    auto child = std::make_unique<WatchChild>(prepared.store->file(), prepared.store_session);
    fmt::print(stderr, "Watch it at {}\n", child->url());
    return child;
  } catch (const Error& error) {
    fmt::print(stderr, "note: there is no page: {}\n", error.what());
    return nullptr;
  }
}

/// What --device names, by kind: a text for each, as --device takes it. One where all are of one kind.
std::vector<std::string> kinds_named(const std::string& devices, const Problem& problem) {
  if (!names_several_devices(devices)) return {devices};
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds;  // what makes boards alike, their ids
  const auto add = [&](const std::string& kind, const std::string& id) {
    auto known = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == kind; });
    if (known == kinds.end()) known = kinds.insert(kinds.end(), {kind, {}});
    known->second.push_back(id);
  };
  if (is_live(devices)) {
    int number = 0;
    for (const std::vector<DeviceInfo>& kind : by_kind(devices_named(devices, &problem))) {
      ++number;
      for (const DeviceInfo& device : kind) add(std::to_string(number), device.id);
    }
  } else {
    std::istringstream parts(devices);
    for (std::string part; std::getline(parts, part, ',');) add(part, part);
  }
  std::vector<std::string> texts;
  for (const auto& [kind, ids] : kinds) texts.push_back(fmt::format("{}", fmt::join(ids, ",")));
  return texts;
}

/// Boards of different kinds: a session each, side by side. They share problem, store and compile workers; results of
/// one kind say nothing of another, so they are printed one after the other and never ranked.
void tune_each(const TuneArguments& arguments, const Asked& asked, const std::vector<std::string>& kinds) {
  const int cores = static_cast<int>(std::max(2u, std::thread::hardware_concurrency()));
  const auto share = std::make_shared<CompileShare>(asked.setup.live.jobs > 0 ? asked.setup.live.jobs : cores - 1);
  std::vector<PreparedSession> prepared;
  for (const std::string& kind : kinds) {
    Asked own = asked;
    own.setup.device = kind;
    own.setup.live.compile_share = share;
    prepared.push_back(prepare(own, arguments.quiet));
  }
  const auto watched = watch(arguments, prepared.front());  // it shows all sessions of the store
  std::vector<SessionResult> results(kinds.size());
  std::vector<std::exception_ptr> failures(kinds.size());
  std::mutex mutex;
  const auto tune_kind = [&](std::size_t i) {
    try {
      const PreparedSession& session = prepared[i];
      ProgressPrinter printer(arguments.quiet, session.objective->name(), session.objective->unit());
      printer.set_name(session.device.name);
      SessionOptions options = asked.options;
      options.progress = [&](const SessionProgress& p) {
        const std::lock_guard lock(mutex);
        printer(p);
      };
      results[i] = run_session(prepared[i], options);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    try {
      threads.emplace_back(tune_kind, i);
    } catch (const std::system_error&) {
      tune_kind(i);  // no thread is to be had: one after the other
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  nlohmann::ordered_json sessions = nlohmann::ordered_json::array();
  bool answered = true;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    answered = answered && !results[i].best.empty();
    if (!results[i].best.empty()) write_winner(arguments, prepared[i]);
    if (arguments.json) {
      sessions.push_back(result_document(prepared[i], results[i]));
    } else {
      if (i > 0) fmt::print("\n");
      print_answer(prepared[i], results[i], arguments.file, arguments.top);
    }
  }
  if (arguments.json) print_json({{"sessions", std::move(sessions)}});
  if (!answered) throw Exit{kNoAnswer};
}

void tune(const TuneArguments& arguments) {
  // Compiled code passes through with every configuration: giving its memory back each time costs page
  // faults.
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
  if (arguments.wisdom && arguments.no_store)
    throw UserError("--wisdom is written from what is stored; leave out --no-store");
  if (arguments.wisdom) refuse_unwritable(*arguments.wisdom);
  Asked asked = read(arguments);
  const std::string plan = asked.problem.settings.plan;
  const std::vector<std::string> kinds = kinds_named(asked.setup.device, asked.problem);
  if (kinds.size() > 1 && !plan.empty())
    throw UserError("plans are compared on boards of one kind: name one kind with --device");
  if (kinds.size() > 1) return tune_each(arguments, asked, kinds);
  PreparedSession prepared = prepare(asked, arguments.quiet);
  const auto watched = watch(arguments, prepared);
  ProgressPrinter progress(arguments.quiet, prepared.objective->name(), prepared.objective->unit());
  if (!plan.empty()) {
    tune_by_plans(prepared, plan, asked.options, progress, arguments.json, arguments.figure.value_or(""));
    write_winner(arguments, prepared);
    return;
  }
  asked.options.progress = progress_with_hint(progress, asked.options, arguments.quiet);
  const SessionResult result = run_session(prepared, asked.options);
  progress.finish();
  save_and_report(arguments, prepared, !result.best.empty(), [&] {
    if (arguments.json) {
      print_json(result_document(prepared, result));
    } else {
      print_answer(prepared, result, arguments.file, arguments.top);
    }
  });
  if (result.best.empty()) throw Exit{kNoAnswer};
}

}  // namespace

void add_tune_command(Verb app) {
  auto arguments = std::make_shared<TuneArguments>();
  Verb verb = app.add_verb("tune", "Find the best configuration of a problem");
  add_live_options(verb, *arguments);
  arguments->settings.add_to(verb, true);
  verb.add_flag("--no-store", arguments->no_store, "Keep no results");
  verb.add_flag("--no-resume", arguments->no_resume, "Begin afresh even where results of this problem are stored");
  verb.add_flag("--watch", arguments->watch, "Show the session in the browser while it runs: prints a link");
  verb.add_option("--retry", arguments->retry,
                  "Measure stored failures of these statuses again: timeout,runtime_error ... or all");
  verb.add_option("--wisdom", arguments->wisdom,
                  "Folder: the winner is added to its wisdom, which applications choose from");
  verb.add_option("--figure", arguments->figure, "With --plan: write the comparison as an SVG figure");
  verb.add_option("--top", arguments->top, "How many of the best to print (5)");
  verb.add_flag("-q,--quiet", arguments->quiet, "No progress and no notes");
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune tune gemm.toml --budget 10min\n"
      "  ergotune tune gemm.toml --device cuda:0 --objective energy --budget 200\n"
      "  ergotune tune gemm.toml --device cuda:all --objective energy\n"
      "  ergotune tune gemm.toml --worker 'ssh gpu3 {}' --worker 'ssh gpu4 {}' --budget 10min\n"
      "  ergotune tune gemm.toml --device sim:a100 --plan race_to_idle,model_steered\n"
      "  ergotune tune gemm.toml --objective \"pareto(time, energy)\" --json\n"
      "  ergotune tune gemm.toml --strategy genetic --strategy-option population=10 --budget 50\n"
      "  ergotune tune gemm.toml --device replay:recorded.json --no-store\n"
      "  ergotune tune gemm.toml --retry timeout --time-limit 120\n"
      "  ergotune tune gemm.toml --wisdom wisdom\n"
      "  ergotune tune gemm.toml --budget 10min --watch\n"
      "The same command again resumes: what is stored is not measured twice. Ctrl-C ends it with the best so "
      "far.");
  verb.callback([arguments] { tune(*arguments); });
}

}  // namespace ergotune::cli
