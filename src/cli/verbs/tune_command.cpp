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
#include <system_error>
#include <thread>

#include "api/diagnosis.hpp"
#include "api/wisdom_records.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/companions.hpp"
#include "cli/live_options.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "cli/output/tune_report.hpp"
#include "cli/run_here.hpp"
#include "ergotune/error.hpp"
#include "report/size_sweep.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

/// s; a search that will take longer without a budget prints a hint.
constexpr double kLong = 1800;

struct TuneArguments : LiveArguments {
  std::string figure;
  std::optional<std::string> retry, wisdom;
  std::optional<std::string> tree;
  bool no_resume = false, no_store = false, quiet = false, json = false, watch = false, worst_case = false;
  std::size_t top = 5, leaves = 6;
};

/// Parses "timeout,runtime_error", or "all": every status but ok.
std::set<Status> statuses_to_retry(const std::string& text) {
  const std::vector<Status> failures{Status::compile_error, Status::launch_error, Status::runtime_error,
                                     Status::timeout,       Status::wrong_result, Status::not_converged,
                                     Status::unsupported};
  std::vector<std::string> names{"all"};
  for (const Status status : failures) names.push_back(to_string(status));
  std::set<Status> chosen;
  for (const std::string& word : split(text)) {
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

/// Writes the winners of the sessions as `export --format wisdom` does. Returns a write error instead of throwing it:
/// the caller throws it after the answer, which is printed last because its reader may close the pipe (`| head`).
std::exception_ptr write_winners(const TuneArguments& arguments, const std::vector<const ResultSet*>& sessions) {
  if (!arguments.wisdom) return nullptr;
  try {
    for (const ResultSet* session : sessions)
      for (const WrittenWisdom& written :
           write_wisdom(*arguments.wisdom, wisdom_of(session->store, session->session, std::nullopt)))
        if (!arguments.quiet)
          fmt::print(stderr, "Wisdom: {} ({}{})\n", written.file.string(),
                     written.added > 0 ? "a record was added" : "it has this already",
                     written.provenance == "measured" ? "" : "; its values are " + written.provenance);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void note_unwritten_wisdom(const TuneArguments& arguments, const std::filesystem::path& store) {
  if (arguments.wisdom)
    fmt::print(stderr,
               "Wisdom: nothing is written, because the run was interrupted before its best was confirmed; the same "
               "command goes on, and `ergotune export {} --format wisdom -o {}` writes it as it is\n",
               store.string(), *arguments.wisdom);
}

/// Whether the session has a winner for applications: not one that an interruption left unconfirmed, and not the
/// default for want of results of others.
bool has_winner(const TunedSession& tuned, const TuneArguments& arguments, const SessionOptions& options) {
  const RankedResults& ranked = tuned.ranked;
  if (ranked.best.empty()) return false;
  if (options.interrupted->load() && ranked.results.rows[ranked.best.front()].rounds == 0) {
    note_unwritten_wisdom(arguments, ranked.results.store);
    return false;
  }
  const auto certainty = ranked.confidence.probability_best;
  if (arguments.wisdom && ranked.results.provenance == Provenance::measured && ranked.results.space != 1 &&
      ranked.objective.kind() != Objective::Kind::pareto && (!certainty || *certainty < kSure))
    fmt::print(
        stderr,
        "Wisdom: the winner is {}; a larger --budget (once the whole space is measured: --max-seconds), on a quiet "
        "machine, replaces it\n",
        certainty ? fmt::format("the best with {:.0f} % probability only", 100 * *certainty)
                  : "not confirmed: it was measured once");
  const bool default_alone =
      ranked.default_row == ranked.best.front() && ranked.results.rows.size() == 1 && ranked.results.space != 1;
  if (default_alone && arguments.wisdom)
    fmt::print(stderr,
               "Wisdom: nothing is written, because only the default configuration was measured; the same command with "
               "a larger --budget goes on\n");
  return !default_alone;
}

/// The problem at a size, the setup and the options of the command line, after their checks.
SizedProblem read(const TuneArguments& arguments, const Constants& size) {
  SizedProblem requested{size, load_with(arguments, size), {}, {}};
  ProblemFile& problem = requested.problem;
  SetupOptions& setup = requested.setup = setup_with(arguments, problem.run);
  if (setup.run.store.empty()) setup.run.store = "ergotune.db";
  if (arguments.no_store) setup.run.store.clear();
  if (arguments.watch && arguments.no_store)
    throw UserError("--watch shows what the store holds; leave --no-store away");
  setup.resume = !arguments.no_resume;
  SessionOptions& options = requested.options = SessionOptions::from(problem.run);
  if (options.budget.joules > 0)
    setup.energy = true;  // a joule budget requires a sensor; without one, opening the
                          // target reports the error
  if (arguments.retry) options.retry = statuses_to_retry(*arguments.retry);
  const std::string plan = problem.run.plan;
  if (!plan.empty() && arguments.retry)
    throw UserError("--retry comes before a search; tune without --plan to try stored failures again");
  if (plan.empty() && !arguments.figure.empty())
    throw UserError(
        "--figure draws a comparison of plans: name some with --plan, as in --plan race_to_idle,model_steered");
  if (!plan.empty()) find_plans(plan, problem);  // an unknown name is reported before a device is opened
  if (!plan.empty()) {
    if (const std::string added = prepare_for_plans(problem, setup, plan); !added.empty())
      fmt::print(stderr, "note: {}\n", added);
  }
  options.interrupted = setup.interrupted = interruption();
  if (!arguments.quiet) setup.notify = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  return requested;
}

/// Prepares a session for each kind of the named devices. They share problem, store and compile workers.
std::vector<PreparedSession> prepare(const SizedProblem& requested, bool quiet) {
  const std::vector<std::string> kinds = devices_by_kind(requested.setup.run, requested.problem);
  if (kinds.size() > 1 && !requested.problem.run.plan.empty())
    throw UserError("plans are compared on devices of one kind: name one kind with --device");
  SetupOptions setup = requested.setup;
  if (kinds.size() > 1) {
    const int cores = static_cast<int>(std::max(2u, std::thread::hardware_concurrency()));
    setup.compile_share = std::make_shared<CompileShare>(setup.run.jobs > 0 ? setup.run.jobs : cores - 1);
  }
  std::vector<PreparedSession> sessions;
  for (const std::string& kind : kinds) {
    setup.run.device = kind;
    const PreparedSession& prepared = sessions.emplace_back(prepare_session(requested.problem, setup));
    if (quiet) continue;
    fmt::print(stderr, "Tuning {} on {}: {}\n", prepared.problem.name, prepared.evaluator->description(),
               counted(prepared.space->size(), "configuration"));
    for (const std::string& note : prepared.notes) fmt::print(stderr, "note: {}\n", note);
    if (const std::string note = note_of_load(1); prepared.live && prepared.device.is_cpu && !note.empty())
      fmt::print(stderr, "note: {}\n", note);
  }
  return sessions;
}

ProgressPrinter progress_of(const PreparedSession& prepared, bool quiet) {
  return {quiet, prepared.objective->name(), prepared.objective->unit(), prepared.evaluator->provenance()};
}

/// Progress output that prints a hint once if a search without a budget will take long.
std::function<void(const SessionProgress&)> progress_with_hint(ProgressPrinter& progress, const SessionOptions& options,
                                                               bool quiet) {
  const bool bounded = options.budget.evaluations > 0 || options.budget.seconds > 0 || options.budget.joules > 0;
  const bool ends = options.early_stop && options.strategy == "auto";
  return [&progress, ends, reported = bounded || quiet](const SessionProgress& p) mutable {
    if (!reported && p.evaluated >= 2 && p.seconds_left.value_or(0) > kLong) {
      progress.finish();
      fmt::print(stderr,
                 "note: without a budget {} {} configurations, {} {} more; Ctrl-C ends it with the best so far and "
                 "keeps every result, and the next time --budget 10min bounds it\n",
                 ends ? "the search goes on until nothing better is likely among" : "all are measured of", p.total,
                 ends ? "at most" : "about", human_duration(*p.seconds_left));
      reported = true;
    }
    progress(p);
  };
}

/// Starts the web page if requested; its link is printed even with --quiet. A failure to start it does not end the run.
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

/// Searches the sessions in parallel, one per kind of device: results of one kind do not apply to another.
std::vector<TunedSession> search(std::vector<PreparedSession>& sessions, const SessionOptions& options, bool quiet) {
  std::vector<std::optional<TunedSession>> found(sessions.size());
  std::vector<std::exception_ptr> failures(sessions.size());
  std::mutex mutex;
  const auto search_one = [&](std::size_t i) {
    try {
      ProgressPrinter printer = progress_of(sessions[i], quiet);
      if (sessions.size() > 1) printer.set_name(sessions[i].device.name);
      SessionOptions own = options;
      own.progress = [&, show = progress_with_hint(printer, options, quiet)](const SessionProgress& p) {
        const std::lock_guard lock(mutex);
        show(p);
      };
      found[i] = tune_session(sessions[i], own);
      printer.finish();
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < sessions.size(); ++i) {
    try {
      threads.emplace_back(search_one, i);
    } catch (const std::system_error&) {
      search_one(i);  // a thread cannot be started: search sequentially
    }
  }
  search_one(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  std::vector<TunedSession> tuned;
  for (std::optional<TunedSession>& one : found) tuned.push_back(std::move(*one));
  return tuned;
}

void report(const std::vector<TunedSession>& tuned, const TuneArguments& arguments) {
  Json documents = Json::array();
  for (const TunedSession& one : tuned) {
    if (arguments.json) {
      documents.push_back(result_document(one));
    } else {
      if (&one != &tuned.front()) fmt::print("\n");
      print_answer(one, arguments.file, arguments.top);
      if (interruption()->load() && !one.ranked.results.store.empty())
        fmt::print("To go on: the same command{}, which measures no known configuration again\n",
                   arguments.no_resume ? " without --no-resume" : "");
    }
  }
  if (arguments.json) print_json(tuned.size() == 1 ? documents.front() : Json{{"sessions", documents}});
}

std::string text_of(const Constants& constants) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : constants) parts.push_back(fmt::format("{}={}", name, value.to_string()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

void print_sweep(const SizeSweep& sweep) {
  const auto& over = sweep.over;
  const auto& tree = sweep.tree;
  const Objective& objective = sweep.tuned.front().ranked.objective;
  Table table({"size", objective.name(), "one for all", "tree", "best configuration"});
  for (const std::size_t left : {0, 4}) table.align_left(left);
  const auto loss = [&](std::size_t configuration, std::size_t size) {
    const auto share = sweep.loss_at(configuration, size);
    return share ? "+" + percent(*share) : "fails";
  };
  for (std::size_t s = 0; s < sweep.sizes.size(); ++s) {
    const RankedResults& ranked = sweep.tuned[s].ranked;
    table.add({text_of(sweep.sizes[s]), human(*ranked.value(ranked.best.front()), objective.unit()),
               over ? loss(over->configuration, s) : "-", tree ? loss(tree->choose(sweep.results.sizes[s]), s) : "-",
               ranked.configuration_text(ranked.best.front())});
  }
  fmt::print("Best of each size ({}), and what one configuration for all of them and the tree lose\n{}",
             sweep.provenance(), table.to_string(2, terminal_width()));
  if (over)
    fmt::print("\nOne for all sizes: {}\n  mean loss {}, worst {}\n",
               text_of(sweep.configurations[over->configuration]), percent(over->mean), percent(over->worst));
  else
    fmt::print("\nNo configuration that was best at a size works at all of them.\n");
  if (tree)
    fmt::print("\nTree of {}: mean loss {}, worst {}\n", counted(tree->leaves, "configuration"), percent(tree->mean),
               percent(tree->worst));
}

/// Tunes by plans, which are compared.
void tune_plans(const TuneArguments& arguments, const SizedProblem& requested) {
  PreparedSession prepared = std::move(prepare(requested, arguments.quiet).front());
  const auto watched = watch(arguments, prepared);
  ProgressPrinter progress = progress_of(prepared, arguments.quiet);
  tune_by_plans(prepared, requested.problem.run.plan, requested.options, progress, arguments.json, arguments.figure);
  if (prepared.store) prepared.store->flush();
  ResultSet session;
  session.store = prepared.store ? prepared.store->file() : std::filesystem::path();
  session.session = prepared.store_session;
  if (requested.options.interrupted->load()) return note_unwritten_wisdom(arguments, session.store);
  if (const auto unwritten = write_winners(arguments, {&session})) std::rethrow_exception(unwritten);
}

/// Tunes on each kind of device. `unwritten` receives the error of wisdom that could not be written.
std::vector<TunedSession> tune_size(const TuneArguments& arguments, const SizedProblem& requested,
                                    std::exception_ptr& unwritten) {
  std::vector<PreparedSession> sessions = prepare(requested, arguments.quiet);
  const auto watched = watch(arguments, sessions.front());  // it shows all sessions of the store
  std::vector<TunedSession> tuned = search(sessions, requested.options, arguments.quiet);
  std::vector<const ResultSet*> winners;
  for (const TunedSession& one : tuned)
    if (has_winner(one, arguments, requested.options)) winners.push_back(&one.ranked.results);
  unwritten = write_winners(arguments, winners);
  return tuned;
}

/// Tunes and compares the sizes that --set names.
void tune_sizes(const TuneArguments& arguments, std::vector<SizedProblem> sizes) {
  SizeSweep sweep =
      sweep_sizes(std::move(sizes), arguments.leaves, arguments.worst_case, [&](const SizedProblem& size) {
        if (devices_by_kind(size.setup.run, size.problem).size() > 1)
          throw UserError("--set with several values takes devices of one kind");
        std::exception_ptr unwritten;
        TunedSession tuned = std::move(tune_size(arguments, size, unwritten).front());
        if (unwritten) std::rethrow_exception(unwritten);
        return tuned;
      });
  if (!sweep.has_answer()) {
    sweep.tuned.erase(sweep.tuned.begin(), sweep.tuned.end() - 1);
    report(sweep.tuned, arguments);
    throw Exit{kNoAnswer};
  }
  if (arguments.tree) write_tree(sweep, *arguments.tree);
  arguments.json ? print_json(sweep_document(sweep)) : print_sweep(sweep);
}

void tune(const TuneArguments& arguments) {
  // Code is allocated and freed with every configuration: returning the memory each time would cost page faults.
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
  if (arguments.wisdom && arguments.no_store)
    throw UserError("--wisdom is written from what is stored; leave out --no-store");
  if (arguments.wisdom) refuse_unwritable(*arguments.wisdom);
  std::vector<SizedProblem> sizes;
  for (const Constants& size : sizes_of(arguments.set)) sizes.push_back(read(arguments, size));
  if (arguments.tree) require_tree_ending(*arguments.tree);
  if (sizes.size() > 1) return tune_sizes(arguments, std::move(sizes));
  if (arguments.tree) throw UserError("--tree chooses by size: give --set several values, as in --set N=1024,2048");
  if (!sizes.front().problem.run.plan.empty()) return tune_plans(arguments, sizes.front());
  std::exception_ptr unwritten;
  const std::vector<TunedSession> tuned = tune_size(arguments, sizes.front(), unwritten);
  report(tuned, arguments);
  if (unwritten) std::rethrow_exception(unwritten);
  for (const TunedSession& one : tuned)
    if (one.ranked.best.empty()) throw Exit{kNoAnswer};
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
  add_figure_option(verb, arguments->figure, "with --plan, what each plan found");
  verb.add_option("--tree", arguments->tree,
                  "With several values of --set: write the tree that chooses by size as code, to FILE.hpp or FILE.py");
  verb.add_option("--leaves", arguments->leaves, "Configurations that the tree chooses from at most (6)").positive();
  verb.add_flag("--worst-case", arguments->worst_case, "Over sizes, the least of the worst losses, not of the mean");
  verb.add_option("--top", arguments->top, "How many of the best to print (5)");
  verb.add_flag("-q,--quiet", arguments->quiet, "No progress, and of the notes those on the result only");
  add_json_option(verb, arguments->json);
  verb.group_options("Search", {"--seed", "--plan", "--strategy-option", "--reference-every", "--no-confirm",
                                "--no-early-stop", "--occupancy", "--prior", "--retry"});
  verb.group_options("Results", {"--no-store", "--no-resume", "--watch", "--wisdom", "--figure", "--tree", "--leaves",
                                 "--worst-case", "--top", "--quiet"});
  verb.footer(
      "Examples:\n"
      "  ergotune tune gemm.toml --budget 10min\n"
      "  ergotune tune gemm.toml --device cuda:0 --objective energy --budget 200\n"
      "  ergotune tune gemm.toml --device cuda:all --objective energy\n"
      "  ergotune tune gemm.toml --node-command 'ssh gpu3 {}' --node-command 'ssh gpu4 {}' --budget 10min\n"
      "  ergotune tune gemm.toml --device sim:a100 --plan race_to_idle,model_steered\n"
      "  ergotune tune gemm.toml --objective \"pareto(time, energy)\" --json\n"
      "  ergotune tune gemm.toml --strategy genetic --strategy-option population=10 --budget 50\n"
      "  ergotune tune gemm.toml --device replay:recorded.json --no-store\n"
      "  ergotune tune gemm.toml --retry timeout --time-limit 120\n"
      "  ergotune tune gemm.toml --wisdom wisdom\n"
      "  ergotune tune gemm.toml --budget 10min --watch\n"
      "  ergotune tune gemm.toml --set SIZE=1024,2048,4096 --budget 2min --tree choose.hpp\n"
      "The same command again resumes: what is stored is not measured twice. Ctrl-C ends it with the best so far.\n"
      "In Python: ergotune.tune(problem); with --plan ergotune.compare_plans(problem, \"all\");\n"
      "with several values of --set ergotune.tune_sizes(problem, {\"N\": [1024, 2048]}, store=\"results.db\")");
  verb.callback([arguments] { tune(*arguments); });
}

}  // namespace ergotune::cli
