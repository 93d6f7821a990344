// [kernels.NAME] and [workload]: several kernels and the steps of a round.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "problem/files/toml_sections.hpp"

namespace ergotune::toml_reading {

namespace {

// What stands before a dot in names of our own.
const std::vector<std::string> kTaken{"device", "workload", "time", "best"};

std::vector<Parameter> read_own_parameters(const Table& parent, const std::string& owner) {
  const auto table = parent.optional_table("parameters");
  if (!table) return {};
  std::vector<Parameter> parameters = read_parameters(*table);
  for (Parameter& parameter : parameters) parameter.name = owner + "." + parameter.name;
  return parameters;
}

void add(std::vector<Parameter>& to, std::vector<Parameter> more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

void read_named_kernels(const Table& root, KernelContext context, Problem& problem) {
  const Table table = *root.optional_table("kernels");
  context.named = true;
  problem.kernels.clear();
  for (const Entry& entry : table.entries()) {
    check_identifier(entry.key, "kernel", entry.place);
    if (std::find(kTaken.begin(), kTaken.end(), entry.key) != kTaken.end())
      throw UserError(
          fmt::format("\"{}\" cannot be the name of a kernel: names such as \"{}.x\" have a meaning already", entry.key,
                      entry.key),
          entry.place);
    const Table inner = table.table(entry);
    problem.kernels.push_back(read_kernel(inner, context));
    Kernel& kernel = problem.kernels.back();
    kernel.name = entry.key;
    if (kernel.verification) kernel.verification->reference->name = entry.key;  // it sees the same names
    add(problem.parameters, read_own_parameters(inner, entry.key));
  }
  if (problem.kernels.empty())
    throw UserError("[kernels] is empty: each kernel has a table [kernels.NAME]", root.key_place("kernels"));
}

/// Reads steps, with what holds around them.
class StepReader {
 public:
  explicit StepReader(const std::vector<Kernel>& kernels) {
    for (const Kernel& kernel : kernels) names_.push_back(kernel.name);
  }

  std::vector<Step> steps(const Table& parent, const char* key) {
    const toml::node& node = parent.require(key, "a list of steps, such as [{ kernel = \"NAME\" }]");
    const toml::array* list = node.as_array();
    if (!list) parent.wrong_kind(node, fmt::format("\"{}\" in {}", key, parent.title()), "a list of steps");
    if (list->empty())
      throw UserError(fmt::format("\"{}\" in {} is empty: nothing would run", key, parent.title()),
                      parent.place_of(node));
    std::vector<Step> result;
    for (const toml::node& item : *list)
      result.push_back(step(parent.table(item, fmt::format("step {}", result.size() + 1))));
    return result;
  }

 private:
  Step step(const Table& table) {
    static const std::vector<std::string> kKinds{"kernel", "for", "swap", "concurrent"};
    table.at_most_one_of(kKinds);
    Step step;
    if (table.has("kernel"))
      step = launch(table);
    else if (table.has("for"))
      step = loop(table);
    else if (table.has("swap"))
      step = swap(table);
    else if (table.has("concurrent"))
      step = concurrent(table);
    else
      table.allow({"kernel", "for", "swap", "concurrent", "launches", "steps", "order", "priority", "multiprocessors"});
    if (step.name.empty() && step.variable.empty() && step.first.empty() && step.steps.empty())
      throw UserError(fmt::format("{} needs one of \"kernel\", \"for\", \"swap\", \"concurrent\"", table.title()),
                      table.place());
    step.place = table.place();
    return step;
  }

  std::size_t kernel_named(const std::string& name, const SourcePlace& place) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end())
      throw UserError(fmt::format("there is no kernel \"{}\"{}", name, suggestion(name, names_)), place);
    return static_cast<std::size_t>(found - names_.begin());
  }

  Step launch(const Table& table) {
    table.allow({"kernel", "launches"});
    Step step;
    step.name = table.text("kernel", "a kernel's name");
    step.kernel = kernel_named(step.name, table.place_of(*table.find("kernel")));
    if (const toml::node* launches = table.find("launches"))
      step.launches = table.expression_of(*launches, "\"launches\" of " + table.title());
    return step;
  }

  Step loop(const Table& table) {
    table.allow({"for", "from", "to", "by", "steps"});
    Step step;
    step.kind = Step::Kind::loop;
    step.variable = table.text("for", "the loop's variable");
    check_identifier(step.variable, "loop's variable", table.place_of(*table.find("for")));
    if (const toml::node* from = table.find("from"))
      step.from = table.expression_of(*from, "\"from\" of " + table.title());
    step.to = table.expression_of(table.require("to", "where the loop ends; it is not reached itself"),
                                  "\"to\" of " + table.title());
    if (const toml::node* by = table.find("by")) step.by = table.expression_of(*by, "\"by\" of " + table.title());
    step.steps = steps(table, "steps");
    return step;
  }

  Step swap(const Table& table) {
    table.allow({"swap"});
    const std::vector<std::string> pair = table.optional_texts("swap");
    if (pair.size() != 2 || pair[0] == pair[1])
      throw UserError("\"swap\" takes the names of two buffers, such as [\"x\", \"y\"]", table.key_place("swap"));
    Step step;
    step.kind = Step::Kind::swap;
    step.first = pair[0];
    step.second = pair[1];
    return step;
  }

  /// A kernel's name, a step, or { name = "lud", steps = [...] }.
  Step branch(const Table& parent, const toml::node& node) {
    if (node.is_string()) {
      Step step;
      step.name = *node.value<std::string>();
      step.kernel = kernel_named(step.name, parent.place_of(node));
      step.place = parent.place_of(node);
      return step;
    }
    const Table table = parent.table(node, fmt::format("a branch of {}", parent.title()));
    if (!table.has("name") && !table.has("steps")) return step(table);
    if (table.has("for")) return step(table);
    table.allow({"name", "steps"});
    Step step;
    step.kind = Step::Kind::group;
    step.name = table.text("name", "what this branch is called");
    step.steps = steps(table, "steps");
    step.place = table.place();
    return step;
  }

  Step concurrent(const Table& table) {
    table.allow({"concurrent", "launches", "order", "priority", "multiprocessors"});
    if (inside_concurrent_)
      throw UserError("a concurrent step cannot stand in another: its branches run side by side already",
                      table.key_place("concurrent"));
    inside_concurrent_ = true;
    const toml::node& node = *table.find("concurrent");
    const toml::array* list = node.as_array();
    if (!list || list->size() < 2)
      throw UserError("\"concurrent\" takes a list of at least two kernels (or branches with steps)",
                      table.place_of(node));
    Step step;
    step.kind = Step::Kind::concurrent;
    std::vector<std::string> branches;
    for (const toml::node& item : *list) {
      step.steps.push_back(branch(table, item));
      std::string& name = step.steps.back().name;
      if (name.empty()) name = fmt::format("branch {}", step.steps.size());
      if (std::find(branches.begin(), branches.end(), name) != branches.end())
        throw UserError(fmt::format("two branches are called \"{}\"; call one of them otherwise: {{ name = "
                                    "\"...\", steps = [{{ kernel = \"{}\" }}] }}",
                                    name, name),
                        table.place_of(item));
      branches.push_back(name);
    }
    read_launches(table, branches, step);
    read_order(table, branches, step);
    read_priorities(table, branches, step);
    read_multiprocessors(table, branches, step);
    inside_concurrent_ = false;
    return step;
  }

  static Step& branch_named(Step& step, const std::vector<std::string>& branches, const std::string& name,
                            const SourcePlace& place) {
    const auto found = std::find(branches.begin(), branches.end(), name);
    if (found == branches.end())
      throw UserError(fmt::format("\"{}\" is no branch of this step{}", name, suggestion(name, branches)), place);
    return step.steps[static_cast<std::size_t>(found - branches.begin())];
  }

  static void read_launches(const Table& parent, const std::vector<std::string>& branches, Step& step) {
    const auto table = parent.optional_table("launches");
    if (!table) return;
    for (const Entry& entry : table->entries()) {
      Step& branch = branch_named(step, branches, entry.key, entry.place);
      if (branch.kind != Step::Kind::launch)
        throw UserError(fmt::format("branch \"{}\" has steps; say launches there", entry.key), entry.place);
      branch.launches = table->expression_of(*entry.node, "the launches of \"" + entry.key + "\"");
    }
  }

  static void read_order(const Table& table, const std::vector<std::string>& branches, Step& step) {
    const toml::node* node = table.find("order");
    if (!node) return;
    std::string text;
    std::set<std::string> named;
    for (const std::string& name : table.optional_texts("order")) {
      text += (text.empty() ? "" : ",") + name;
      if (node->is_string()) break;
      branch_named(step, branches, name, table.key_place("order"));
      if (!named.insert(name).second)
        throw UserError(fmt::format("\"order\" names \"{}\" twice", name), table.key_place("order"));
    }
    step.order = Template::parse(text, table.inside(*node));
  }

  static void read_priorities(const Table& parent, const std::vector<std::string>& branches, Step& step) {
    const auto table = parent.optional_table("priority");
    if (!table) return;
    for (const Entry& entry : table->entries()) {
      Step& branch = branch_named(step, branches, entry.key, entry.place);
      branch.priority = Template::parse(table->text_of(*entry.node, "the priority of \"" + entry.key + "\""),
                                        table->inside(*entry.node));
      const std::string& word = branch.priority.text();
      if (branch.priority.expressions().empty() && word != "low" && word != "normal" && word != "high")
        throw UserError(fmt::format("a priority is \"low\", \"normal\" or \"high\", not \"{}\"", word),
                        table->place_of(*entry.node));
    }
  }

  static void read_multiprocessors(const Table& parent, const std::vector<std::string>& branches, Step& step) {
    const auto table = parent.optional_table("multiprocessors");
    if (!table) return;
    for (const Entry& entry : table->entries())
      branch_named(step, branches, entry.key, entry.place).multiprocessors =
          table->expression_of(*entry.node, "the multiprocessors of \"" + entry.key + "\"");
  }

  std::vector<std::string> names_;
  bool inside_concurrent_ = false;
};

}  // namespace

void read_workload(const Table& root, const KernelContext& context, Problem& problem) {
  root.require("kernels", "[workload] says how the kernels of [kernels.NAME] run together");
  read_named_kernels(root, context, problem);
  settle_buffers(root, problem.kernels);
  const auto table = root.optional_table("workload");
  if (!table) return;
  table->allow({"steps", "parameters"});
  add(problem.parameters, read_own_parameters(*table, "workload"));
  problem.steps = StepReader(problem.kernels).steps(*table, "steps");
}

}  // namespace ergotune::toml_reading
