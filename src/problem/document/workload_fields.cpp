// [kernels.NAME] and [workload]: several kernels and the steps of an iteration.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "problem/document/fields.hpp"

namespace ergotune::document {

template <>
const std::vector<Field<Step>>& fields<Step>();

namespace {

// Reserved names: they precede a dot in built-in names.
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

void read_named_kernels(const Table& root, Problem& problem) {
  Context context = root.context();
  context.named = true;
  const Table table = root.optional_table("kernels")->with(context);
  problem.kernels.clear();
  for (const Entry& entry : table.entries()) {
    if (!context.trusted) check_identifier(entry.key, "kernel", entry.place);
    if (std::ranges::find(kTaken, entry.key) != kTaken.end())
      throw UserError(
          fmt::format("\"{}\" cannot be the name of a kernel: names such as \"{}.x\" have a meaning already", entry.key,
                      entry.key),
          entry.place);
    const Table inner = table.table(entry);
    problem.kernels.push_back(read_kernel(inner));
    Kernel& kernel = problem.kernels.back();
    kernel.name = entry.key;
    if (kernel.verification && kernel.verification->reference)
      kernel.verification->reference->name = entry.key;  // the reference uses the kernel's parameter names
    add(problem.parameters, read_own_parameters(inner, entry.key));
  }
  if (problem.kernels.empty())
    throw UserError("[kernels] is empty: each kernel has a table [kernels.NAME]", root.key_place("kernels"));
}

/// Reads steps and tracks the enclosing loops and branches.
class StepReader {
 public:
  explicit StepReader(const std::vector<Kernel>& kernels) {
    for (const Kernel& kernel : kernels) names_.push_back(kernel.name);
  }

  std::vector<Step> steps(const Table& parent) {
    constexpr const char* key = "steps";
    const Node& node = parent.require(key, "a list of steps, such as [{ kernel = \"NAME\" }]");
    if (!node.list()) wrong_kind(node, parent.what(key), "a list of steps");
    if (node.list()->empty())
      throw UserError(fmt::format("\"{}\" in {} is empty: nothing would run", key, parent.title()), node.place);
    std::vector<Step> result;
    for (const Node& item : *node.list())
      result.push_back(step(parent.table(item, fmt::format("step {}", result.size() + 1))));
    return result;
  }

 private:
  Step step(const Table& table) {
    table.at_most_one_of({"kernel", "for", "swap", "concurrent"});
    Step step;
    if (table.has("kernel"))
      step = launch(table);
    else if (table.has("for"))
      step = loop(table);
    else if (table.has("swap"))
      step = swap(table);
    else if (table.has("concurrent"))
      step = concurrent(table);
    else if (table.has("steps") && table.context().trusted)
      step = group(table);
    else
      table.allow(field_names<Step>());
    if (step.name.empty() && step.variable.empty() && step.first.empty() && step.steps.empty())
      throw UserError(fmt::format("{} needs one of \"kernel\", \"for\", \"swap\", \"concurrent\"", table.title()),
                      table.place());
    step.place = table.place();
    return step;
  }

  std::size_t kernel_named(const std::string& name, const SourcePlace& place) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end())
      throw UserError(fmt::format("there is no kernel \"{}\"{}", name, suggestion(name, names_)), place);
    return static_cast<std::size_t>(found - names_.begin());
  }

  Step launch(const Table& table) {
    table.allow({"kernel", "launches"});
    Step step;
    step.name = table.text("kernel", "a kernel's name");
    step.kernel = kernel_named(step.name, table.find("kernel")->place);
    if (const Node* launches = table.find("launches"))
      step.launches = expression_of(*launches, "\"launches\" of " + table.title());
    return step;
  }

  Step loop(const Table& table) {
    table.allow({"for", "from", "to", "by", "steps"});
    Step step;
    step.kind = Step::Kind::loop;
    step.variable = table.text("for", "the loop's variable");
    check_identifier(step.variable, "loop's variable", table.find("for")->place);
    if (const Node* from = table.find("from")) step.from = expression_of(*from, "\"from\" of " + table.title());
    step.to = expression_of(table.require("to", "where the loop ends; it is not reached itself"),
                            "\"to\" of " + table.title());
    if (const Node* by = table.find("by")) step.by = expression_of(*by, "\"by\" of " + table.title());
    step.steps = steps(table);
    return step;
  }

  Step swap(const Table& table) {
    table.allow({"swap"});
    const std::vector<std::string> pair = table.texts("swap");
    if (pair.size() != 2 || pair[0] == pair[1])
      throw UserError("\"swap\" takes the names of two buffers, such as [\"x\", \"y\"]", table.key_place("swap"));
    Step step;
    step.kind = Step::Kind::swap;
    step.first = pair[0];
    step.second = pair[1];
    return step;
  }

  /// Reads a branch: a kernel's name, a step, or { name = "lud", steps = [...] }.
  Step branch(const Table& parent, const Node& node) {
    if (node.is_text()) {
      Step step;
      step.name = node.text();
      step.kernel = kernel_named(step.name, node.place);
      step.place = node.place;
      return step;
    }
    const Table table = parent.table(node, fmt::format("a branch of {}", parent.title()));
    if ((!table.has("name") && !table.has("steps")) || table.has("for")) return step(table);
    if (!table.context().trusted) table.require("name", "what this branch is called");
    Step step = group(table);
    step.place = table.place();
    return step;
  }

  Step group(const Table& table) {
    table.allow({"name", "steps"});
    Step step;
    step.kind = Step::Kind::group;
    if (table.has("name")) step.name = table.text("name", "what this branch is called");
    step.steps = steps(table);
    return step;
  }

  Step concurrent(const Table& table) {
    table.allow({"concurrent", "launches", "order", "priority", "multiprocessors"});
    if (inside_concurrent_)
      throw UserError("a concurrent step cannot stand in another: its branches run side by side already",
                      table.key_place("concurrent"));
    inside_concurrent_ = true;
    const Node& node = *table.find("concurrent");
    if (!node.list() || node.list()->size() < 2)
      throw UserError("\"concurrent\" takes a list of at least two kernels (or branches with steps)", node.place);
    Step step;
    step.kind = Step::Kind::concurrent;
    std::vector<std::string> branches;
    for (const Node& item : *node.list()) {
      step.steps.push_back(branch(table, item));
      std::string& name = step.steps.back().name;
      if (name.empty()) name = fmt::format("branch {}", step.steps.size());
      if (std::ranges::find(branches, name) != branches.end())
        throw UserError(fmt::format("two branches are called \"{}\"; call one of them otherwise: {{ name = \"...\", "
                                    "steps = [{{ kernel = \"{}\" }}] }}",
                                    name, name),
                        item.place);
      branches.push_back(name);
    }
    read_order(table, branches, step);
    for_branches(table, "launches", branches, step, [](Step& branch, const Node& value, const SourcePlace& place) {
      if (branch.kind != Step::Kind::launch)
        throw UserError(fmt::format("branch \"{}\" has steps; write launches there", branch.name), place);
      branch.launches = expression_of(value, "the launches of \"" + branch.name + "\"");
    });
    for_branches(table, "priority", branches, step, [](Step& branch, const Node& value, const SourcePlace&) {
      branch.priority = template_of(value, "the priority of \"" + branch.name + "\"");
      const std::string& word = branch.priority.text();
      if (branch.priority.expressions().empty() && word != "low" && word != "normal" && word != "high")
        throw UserError(fmt::format("a priority is \"low\", \"normal\" or \"high\", not \"{}\"", word), value.place);
    });
    for_branches(table, "multiprocessors", branches, step, [](Step& branch, const Node& value, const SourcePlace&) {
      branch.multiprocessors = expression_of(value, "the SMs of \"" + branch.name + "\"");
    });
    inside_concurrent_ = false;
    return step;
  }

  static Step& branch_named(Step& step, const std::vector<std::string>& branches, const std::string& name,
                            const SourcePlace& place) {
    const auto found = std::ranges::find(branches, name);
    if (found == branches.end())
      throw UserError(fmt::format("\"{}\" is not a branch of this step{}", name, suggestion(name, branches)), place);
    return step.steps[static_cast<std::size_t>(found - branches.begin())];
  }

  /// Reads a table of values by branch.
  template <class Read>
  static void for_branches(const Table& parent, const char* key, const std::vector<std::string>& branches, Step& step,
                           const Read& read) {
    const auto table = parent.optional_table(key);
    if (!table) return;
    for (const Entry& entry : table->entries())
      read(branch_named(step, branches, entry.key, entry.place), entry.value, entry.place);
  }

  static void read_order(const Table& table, const std::vector<std::string>& branches, Step& step) {
    const Node* node = table.find("order");
    if (!node) return;
    std::string text;
    std::set<std::string> named;
    for (const std::string& name : table.texts("order")) {
      text += (text.empty() ? "" : ",") + name;
      if (node->is_text()) break;
      branch_named(step, branches, name, table.key_place("order"));
      if (!named.insert(name).second)
        throw UserError(fmt::format("\"order\" names \"{}\" twice", name), table.key_place("order"));
    }
    step.order = Template::parse(text, inside(*node));
  }

  std::vector<std::string> names_;
  bool inside_concurrent_ = false;
};

using Kind = Step::Kind;

Node write_step(const Step& step, Form form);
Node write_steps(const std::vector<Step>& steps, Form form) {
  Node::List list;
  for (const Step& step : steps) list.push_back(write_step(step, form));
  return list.empty() ? Node() : Node(std::move(list));
}
Node write_step(const Step& step, Form form) {
  return write_fields(step, form, form != Form::identity ? step.place : SourcePlace{});
}

/// Writes a property of the branches of a concurrent step by branch name. Names belong to the identity only if `order`
/// uses them.
template <class Write>
Node by_branch(const Step& step, Form form, const Write& write) {
  if (step.kind != Kind::concurrent) return {};
  Node node(Node::Entries{});
  for (std::size_t i = 0; i < step.steps.size(); ++i) {
    const bool by_name = form != Form::identity || !step.order.text().empty();
    node.set(by_name ? step.steps[i].name : std::to_string(i), write(step.steps[i]));
  }
  return unless_empty(std::move(node));
}

Node write_launches(const Step& step, Form form) {
  if (step.kind == Kind::launch) return write(step.launches, form);
  return by_branch(step, form, [&](const Step& branch) {
    const bool given = branch.kind == Kind::launch && branch.launches.to_string() != "1";
    return given ? write(branch.launches, form) : Node();
  });
}
Node write_priority(const Step& step, Form form) {
  return by_branch(step, form, [&](const Step& branch) { return Type<Template>::write(branch.priority, form); });
}
Node write_multiprocessors(const Step& step, Form form) {
  return by_branch(step, form, [&](const Step& branch) {
    return branch.multiprocessors.to_string() == "0" ? Node() : write(branch.multiprocessors, form);
  });
}
Node write_branches(const Step& step, Form form) {
  if (step.kind != Kind::concurrent) return {};
  const bool named = form != Form::identity || !step.order.text().empty();
  Node::List list;
  for (const Step& branch : step.steps) {
    Node node = write_step(branch, form);
    std::erase_if(std::get<Node::Entries>(node.data), [&](const Entry& entry) {
      return (branch.kind == Kind::launch && entry.key == "launches") || (!named && entry.key == "name");
    });
    list.push_back(std::move(node));
  }
  return list;
}
Json branches_type() {
  Json type = list_type(any_type({string_type(), {{"$ref", "#/definitions/step"}}}));
  type["minItems"] = 2;
  return type;
}
Json launches_type(Schema& schema) { return any_type({expression_type(schema), map_type(expression_type(schema))}); }

}  // namespace

// Read by StepReader, since the keys of a step depend on each other.
template <>
const std::vector<Field<Step>>& fields<Step>() {
  using T = Step;
  constexpr auto is_group = [](const T& from) { return from.kind == Kind::group; };
  constexpr auto is_launch = [](const T& from) { return from.kind == Kind::launch; };
  constexpr auto is_loop = [](const T& from) { return from.kind == Kind::loop; };
  constexpr auto is_swap = [](const T& from) { return from.kind == Kind::swap; };
  constexpr auto has_steps = [](const T& from) { return from.kind != Kind::concurrent; };
  const Json steps_type = list_type({{"$ref", "#/definitions/step"}});
  static const std::vector<Field<T>> table{
      written_if<T>(is_group, field<T>("name", &T::name, "Of a branch with steps: its name")),
      written_if<T>(is_launch, field<T>("kernel", &T::name, "Launches this kernel")),
      written<T>("launches", "How often, back to back; of a concurrent step a table by branch", launches_type,
                 write_launches, {.otherwise = "1"}),
      field<T>("for", &T::variable, "Repeats its steps for each value of this variable"),
      written_if<T>(is_loop, field<T>("from", &T::from, "First value of the variable")),
      written_if<T>(is_loop,
                    field<T>("to", &T::to, "Where the loop ends; not reached itself", {.otherwise = "required"})),
      written_if<T>(is_loop, field<T>("by", &T::by, "Distance between values", {.otherwise = "1"})),
      written_if<T>(has_steps, written<T>("steps", "The steps of a loop or of a branch", steps_type,
                                          [](const T& from, Form form) { return write_steps(from.steps, form); })),
      written_if<T>(is_swap,
                    written<T>("swap", "Exchanges what the names of two buffers stand for, until the round ends",
                               fixed_list_type(string_type(), 2),
                               [](const T& from, Form) {
                                 return Node(Node::List{from.first, from.second});
                               })),
      written<T>("concurrent", "Runs branches side by side: kernels by name, steps, or { name, steps }",
                 branches_type(), write_branches),
      written<T>("order",
                 "The branches that are queued first: a list of names, or a template that gives them with commas",
                 strings_type(), field<T>("order", &T::order, "").write, {.otherwise = "as written"}),
      written<T>("priority", "\"low\", \"normal\" or \"high\" by branch, or a template", map_type(string_type()),
                 write_priority, {.otherwise = "\"normal\""}),
      written<T>("multiprocessors", "SMs reserved for a branch, by branch",
                 [](Schema& schema) { return map_type(expression_type(schema)); }, write_multiprocessors,
                 {.otherwise = "no bound"})};
  return table;
}

std::vector<Step> read_steps(const Table& table, const std::vector<Kernel>& kernels) {
  return StepReader(kernels).steps(table);
}

void read_workload(const Table& root, Problem& problem) {
  root.require("kernels", "[workload] defines how the kernels of [kernels.NAME] run together");
  read_named_kernels(root, problem);
  resolve_buffers(root, problem.kernels);
  const auto table = root.optional_table("workload");
  if (!table) return;
  table->allow({"steps", "parameters"});
  add(problem.parameters, read_own_parameters(*table, "workload"));
  problem.steps = read_steps(*table, problem.kernels);
}

Node write_workload(const Problem& problem, Form form) {
  if (problem.steps.empty() || !problem.has_named_kernels()) return {};
  return Node::Entries{{"steps", write_steps(problem.steps, form), {}}};
}

Json workload_type(Schema& schema) {
  const Json step = schema.section<Step>(
      "step", "[workload] steps: a list of tables, each with one of kernel, for, swap, concurrent");
  return {{"type", "object"},
          {"properties", {{"steps", list_type(step)}, {"parameters", parameters_type(schema)}}},
          {"required", {"steps"}},
          {"additionalProperties", false}};
}

}  // namespace ergotune::document
