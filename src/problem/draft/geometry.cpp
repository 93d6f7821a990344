#include "problem/draft/draft_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <regex>

#include "ergotune/problem.hpp"
#include "problem/draft/source_text.hpp"
#include "problem/element_type.hpp"

namespace ergotune::draft {
namespace {

/// Whether the source holds the position in a variable that is the number of the thread, times its work, and nothing
/// else.
bool is_thread_number(const std::string& body, const Position& position, int dimension) {
  if (position.variable.empty()) return false;
  std::smatch found;
  if (!std::regex_search(body, found, std::regex("\\b" + position.variable + "\\s*=\\s*([^;,]+)"))) return false;
  static const std::regex kAround(R"(static_cast<[^>]*>|[\s()])");
  std::string value = found[1].str();
  if (const auto factors = parts_of(value, "*"); factors.size() == 2 && !position.factor.empty())
    for (const std::size_t i : {0u, 1u})
      if (factors[i] == position.factor) value = factors[1 - i];
  const std::string text = std::regex_replace(value, kAround, "");
  const char axis = "xyz"[dimension];
  if (text == fmt::format("get_global_id{}", dimension)) return true;
  const std::string group = fmt::format("get_group_id{}", dimension), local = fmt::format("get_local_id{}", dimension);
  const std::string block = fmt::format("blockIdx.{}", axis), thread = fmt::format("threadIdx.{}", axis);
  for (const std::string& size :
       {fmt::format("blockDim.{}", axis), fmt::format("get_local_size{}", dimension), position.block})
    for (const auto& [outer, inner] : {std::pair(block, thread), std::pair(group, local)})
      for (const std::string& product : {outer + "*" + size, size + "*" + outer})
        if (text == product + "+" + inner || text == inner + "+" + product) return true;
  return false;
}

std::string rounded_up(const std::string& size, const std::string& divisor) {
  return fmt::format("({0} + {1} - 1) // {1}", size, divisor);
}

class GeometryReader {
 public:
  GeometryReader(const DraftSource& source, ProblemNames& names, Guesses& guesses)
      : source_(source), names_(names), guesses_(guesses) {}

  Geometry read() {
    const std::vector<std::string> required = required_block();
    geometry_.dimensions = source_.use.dimensions();
    for (std::size_t d = 0; d < std::min<std::size_t>(required.size(), 3); ++d)
      if (required[d] != "1") geometry_.dimensions = std::max(geometry_.dimensions, static_cast<int>(d) + 1);
    geometry_.reach.assign(static_cast<std::size_t>(geometry_.dimensions), "");
    for (int d = 0; d < geometry_.dimensions; ++d) read_position(d, required);
    for (int d = 0; d < geometry_.dimensions; ++d) read_reach(d);
    while (blocks_.size() > 1 && blocks_.back() == "1" && required.size() < blocks_.size()) blocks_.pop_back();
    add_block_parameters();
    geometry_.block = blocks_;
    geometry_.block_threads = fmt::format("{}", fmt::join(blocks_, " * "));
    if (const auto threads = source_value("", geometry_.block_threads))
      geometry_.block_threads = std::to_string(*threads);
    std::string shared_bytes;
    if (contains(source_.kernel.body, {"extern __shared__"})) shared_bytes = shared_memory();
    if (!std::ranges::all_of(blocks_, [](const auto& block) { return whole_number(block).has_value(); }))
      restrict(geometry_.block_threads + " <= device.max_threads_per_block");
    if (const std::string bound = launch_bound();
        !bound.empty() && !whole_number(geometry_.block_threads) && bound != geometry_.block_threads)
      restrict(fmt::format("{} <= {}", geometry_.block_threads, bound));
    restrict_to_warps();
    for (const auto& [threads, tile] : tiles_)
      restrict(names_.in_expressions(tile) + " % " + names_.in_expressions(threads) + " == 0");
    restrict_counted_tiles();
    geometry_.table = "[kernel.launch]\n" + extent() + quoted("block", blocks_);
    geometry_.number_of_blocks = number_of_blocks();
    if (!built_blocks_.empty()) geometry_.table += guesses_.check(built_blocks_, "block");
    if (!loops_.empty() && !is_launched_block())
      geometry_.table += guesses_.check(
          fmt::format("the number of threads seems not to depend on the work of a block ({}), over which they loop",
                      loops_),
          "block");
    geometry_.table += "\n" + shared_bytes + "\n";
    return std::move(geometry_);
  }

 private:
  static std::string quoted(const char* key, const std::vector<std::string>& list) {
    return fmt::format("{} = [\"{}\"]", key, fmt::join(list, "\", \""));
  }

  void restrict(const std::string& restriction) {
    if (std::ranges::count(geometry_.restrictions, restriction) == 0) geometry_.restrictions.push_back(restriction);
  }

  /// Warps that exchange values, or are counted, must be whole.
  void restrict_to_warps() {
    constexpr long kWarp = 32;
    static const std::regex kNumber(R"(\bthreadIdx ?\. ?x ?(?:[/%] ?32|>> ?5|& ?(?:31|0x1[fF]))\b)");
    const bool exchanges = std::ranges::any_of(source_.used, [](const std::string& name) {
      return name == "warpSize" || (name.starts_with("__") && name.ends_with("_sync")) || name == "__syncwarp";
    });
    if (!exchanges && !std::regex_search(one_blank(source_.kernel.body), kNumber)) return;
    const auto launched = number_at_launch(geometry_.block_threads);
    const bool fixed = std::ranges::any_of(blocks_, [](const std::string& block) {  // 32 * ROWS
      return whole_number(block).value_or(1) % kWarp == 0;
    });
    if (fixed || whole_number(geometry_.block_threads) || (launched && *launched % kWarp != 0)) return;
    restrict(fmt::format("{} % {} == 0",
                         blocks_.size() == 1 ? geometry_.block_threads : "(" + geometry_.block_threads + ")", kWarp));
  }

  /// A loop to `n / TILE` leaves out the rest of a size that TILE does not divide.
  void restrict_counted_tiles() {
    static const std::regex kLoop(R"(\bfor ?\([^;]{0,200};[^;<]{0,200}< ?([\w/ ]{1,80});)");
    static const std::regex kQuotient(R"(^(\w+) ?/ ?(\w+)$)");
    const std::string body = one_blank(source_.kernel.body);
    for (std::sregex_iterator loop(body.begin(), body.end(), kLoop); loop != std::sregex_iterator(); ++loop) {
      std::string bound = one_blank((*loop)[1].str());
      if (const std::string value = source_.use.value_of(bound); !value.empty()) bound = without_parentheses(value);
      std::smatch parts;
      if (!std::regex_match(bound, parts, kQuotient) || !names_.tunable.contains(parts[2])) continue;
      const std::string size = names_.size_named(parts[1]);
      if (size.empty()) continue;
      const std::string restriction = fmt::format("{} % {} == 0", size, names_.in_expressions(parts[2]));
      if (std::ranges::count(geometry_.restrictions, restriction) > 0) continue;
      restrict(restriction);
      guesses_.ask(fmt::format("restrictions: {}, as a loop to {} leaves out the rest", restriction, bound));
    }
  }

  bool is_known(const std::string& name) const {
    return names_.tunable.contains(name) || names_.fixed.contains(name) || whole_number(name);
  }

  std::string bound_of(const std::string& variable) const {
    return variable.empty() ? std::string() : names_.bound(source_.use, variable);
  }

  /// False for the bound of row, which is a quotient of the variable, and for a product of sizes.
  bool bounds_threads(const std::string& variable) const {
    constexpr int kOwn = 3;  // follows no other variable
    if (variable.empty()) return true;
    const std::vector<std::string> bounds = source_.use.bounds_of(variable);
    return (!source_.use.divides(variable) || !names_.bound(source_.use, variable, kOwn).empty()) &&
           std::ranges::none_of(bounds, [&](const std::string& bound) {
             return parts_of(bound, "*").size() > 1 && !names_.size_in(bound).empty();
           });
  }

  /// Returns the name of a block size: in capitals, or in Kernel Tuner's spelling if the source uses that.
  std::string block_name(int dimension) const {
    const std::string small = fmt::format("block_size_{}", "xyz"[dimension]);
    for (const char axis : {'x', 'y', 'z'})
      if (names_.used.contains(fmt::format("block_size_{}", axis))) return small;
    return names_.used.contains(upper(small)) && !names_.tunable.contains(upper(small)) ? small : upper(small);
  }

  /// Returns "16", "8", "1" of __attribute__((reqd_work_group_size(16, 8, 1))); none if the kernel has no such
  /// attribute.
  std::vector<std::string> required_block() {
    const std::string& head = source_.kernel.head;
    const std::size_t at = head.find("reqd_work_group_size");
    const std::size_t open = at == std::string::npos ? at : head.find('(', at);
    if (open == std::string::npos) return {};
    std::vector<std::string> block = list_at(head, open, ')');
    std::vector<std::string> named;
    for (std::size_t d = 0; d < block.size() && d < 3; ++d)
      named.push_back(block[d] == "1" ? "1" : block_name(static_cast<int>(d)));
    if (std::ranges::all_of(block, [](const std::string& size) { return whole_number(size).has_value(); }))
      guesses_.ask(
          fmt::format("{}: reqd_work_group_size fixes the block at {}. To tune it, write "
                      "reqd_work_group_size({}) there, and run init again",
                      source_.place(source_.kernel.line), fmt::join(block, " x "), fmt::join(named, ", ")));
    return block;
  }

  /// Returns the most threads of a block by __launch_bounds__; empty if the kernel has none that is understood.
  std::string launch_bound() const {
    const std::string bound = launch_bound_in(source_.kernel.head);
    if (names_.tunable.contains(bound)) return names_.in_expressions(bound);
    const auto threads = named_number(source_.all, bound);
    return threads ? std::to_string(*threads) : std::string();
  }

  /// A position, the number of positions that a block covers, and whether the dimension has one thread in a block.
  struct Covered {
    Position position;
    std::string covered;
    bool one_thread = false;
  };

  /// Reads the position in a dimension, and adds the block's size there.
  void read_position(int d, const std::vector<std::string>& required) {
    const auto dimension = static_cast<std::size_t>(d);
    Position position = source_.use.position(d);
    certain_ = certain_ && (position.strided || is_thread_number(source_.kernel.body, position, d));
    if (!position.block.empty() && !is_known(position.block)) {
      // blockIdx.x * columns: each block works on a row
      position.of_block = position.of_block || std::ranges::count(names_.sizes, position.block, kSource) > 0;
      position.block = position.loops ? position.threads : std::string();
      position.loops = false;
    }
    const bool one_thread = d > 0 && dimension >= required.size() && !source_.use.has_threads(d);
    if (one_thread) {
      position.factor = is_known(position.block) ? position.block : std::string();  // of the block, then
      position.of_block = true;
      blocks_.emplace_back("1");
    }
    const SourceLaunch& launch = source_.launch;
    const bool launch_divides = dimension < launch.grid.size() && !names_block(launch, launch.grid[dimension]) &&
                                contains(launch.grid[dimension], {"/"}) &&
                                kernel_source::identifiers_in(launch.grid[dimension]).contains(position.apart);
    if ((launch.grid.empty() || launch_divides) && is_known(position.apart)) position.factor = position.apart;
    const std::string covered = one_thread ? blocks_.back() : read_block(position, d, required);
    positions_.push_back({position, covered, one_thread});
  }

  /// Derives the number of positions in a dimension, and of the threads or blocks that cover them.
  void read_reach(int d) {
    const auto dimension = static_cast<std::size_t>(d);
    const auto& [position, own, one_thread] = positions_[dimension];
    if (d > 0 && !source_.use.has_blocks(d)) {  // positions within a block only, or none
      geometry_.reach[dimension] = blocks_[dimension];
      items_.push_back(blocks_[dimension]);
      grid_.emplace_back("1");
      return;
    }
    const std::string& covered = position.across ? blocks_[static_cast<std::size_t>(*position.across)] : own;
    if (position.of_block) read_blocks(position, d, one_thread);
    std::string reach = reach_of(position, dimension), work = covered, factor;
    if (!position.factor.empty() && position.factor != "1" && is_known(position.factor)) {
      factor = names_.in_expressions(position.factor);
      work = one_thread ? factor : fmt::format("({} * {})", covered, factor);
    }
    take_launched_reach(dimension, !position.of_block ? work : factor.empty() ? "1" : factor, reach);
    geometry_.reach[dimension] = reach;
    if (!bounds_threads(position.variable)) geometry_.guessed.insert(d);
    if (!position.variable.empty() && position.of_block) geometry_.blocks[position.variable] = reach;
    if (const auto each = position.factor.empty() ? 1 : whole_number(position.factor))
      take_size(dimension, position.of_block, *each);
    if (!factor.empty()) {
      geometry_.factors.insert(position.factor);
      reach = rounded_up(reach, factor);
    }
    if (!geometry_.guessed.contains(d) && goes_beyond(position, d, work))
      restrict(fmt::format("{} % {} == 0", geometry_.reach[dimension], work));
    by_block_ = by_block_ || position.of_block || covered != blocks_[dimension];
    items_.push_back(reach);
    grid_.push_back(position.of_block ? reach : rounded_up(reach, covered));
  }

  /// Whether nothing keeps threads of a last block of `work` positions from going beyond the end.
  bool goes_beyond(const Position& position, int d, const std::string& work) const {
    const auto dimension = static_cast<std::size_t>(d);
    if (!position.variable.empty() && bound_of(position.variable).empty() &&
        launches_whole_blocks(source_.launch, dimension))
      return true;
    const std::string& reach = geometry_.reach[dimension];
    const auto positions = number_at_launch(reach), each = number_at_launch(work);
    const bool rest = positions && each && *each > 0 && *positions % *each != 0;  // the launch does
    return !position.of_block && !rest && !whole_number(reach) && !source_.use.is_guarded(d, position.variable);
  }

  /// Returns the only size that a number of blocks of `each` positions covers exactly; nullopt where there is none, and
  /// where they cover `reach`.
  std::optional<std::string> size_of_blocks(std::optional<long> blocks, long each, const std::string& reach) const {
    const auto covered = [&](const std::string& size) {
      const auto value = number_at_launch(size);
      return value && each > 0 && (*value + each - 1) / each == blocks;
    };
    std::set<std::string> found;
    for (const auto& [name, constant] : names_.sizes)
      if (covered(constant)) found.insert(constant);
    if (!blocks || found.size() != 1 || !number_at_launch(reach) || covered(reach)) return std::nullopt;
    return *found.begin();
  }

  /// Takes the number of positions from the launch in the source where that is of other sizes than those in the body.
  /// `of_block`: positions of a block.
  void take_launched_reach(std::size_t dimension, const std::string& of_block, std::string& reach) {
    const auto positions = dimension < source_.launch.grid.size() ? number_at_launch(of_block) : std::nullopt;
    auto launched = positions ? launched_size(source_, names_, dimension, *positions) : std::nullopt;
    if (positions && (!launched || whole_number(*launched)))
      launched = size_of_blocks(launched_blocks(source_, dimension), *positions, reach);
    if (!launched) return;
    const auto sizes = names_in(*launched), present = names_in(reach);
    const auto is_size = [&](const auto& name) { return names_.source_of(name) && !present.contains(name); };
    if (sizes.empty() || !std::ranges::all_of(sizes, is_size)) return;
    launched_reach_ +=
        fmt::format("{}the launch in {} covers {} in {}, where the body seems to need {}",
                    launched_reach_.empty() ? "" : "; ", source_.launch_file(), *launched, "xyz"[dimension], reach);
    reach = names_.source_of(*launched) ? *launched : "(" + *launched + ")";
  }

  /// Adds the block's size in a dimension; returns the number of positions that a block covers.
  std::string read_block(const Position& position, int d, const std::vector<std::string>& required) {
    const auto dimension = static_cast<std::size_t>(d);
    const std::vector<std::string> shared = source_.use.shared_memory_dimensions();
    std::string block = position.loops ? position.threads : position.block;
    if (block.empty() && !position.loops && dimension < shared.size() &&
        is_known(shared[shared.size() - 1 - dimension]))
      block = shared[shared.size() - 1 - dimension];
    const bool is_required = dimension < required.size() && is_known(required[dimension]);
    if (block.empty() && is_required) block = required[dimension];
    if (block.empty()) block = launched_block(dimension);
    if (block.empty()) block = built_block(dimension);
    if (block.empty()) {
      block = block_name(d);
      if (!names_.tunable.contains(block)) free_.insert(block);
    }
    std::string covered = names_.in_expressions(block);
    blocks_.push_back(covered);
    if (position.loops) {
      covered = names_.in_expressions(position.block);
      loops_ += (loops_.empty() ? "" : ", ") + covered;
    } else if (is_known(position.threads) && position.threads != block) {
      blocks_.back() = names_.in_expressions(position.threads);
      tiles_[position.threads] = block;
    }
    if (is_required) blocks_.back() = names_.in_expressions(required[dimension]);
    return covered;
  }

  /// Returns the parameter that the launch names as a dimension of its block; empty where it names none.
  std::string launched_block(std::size_t dimension) const {
    if (dimension >= source_.launch.block.size()) return {};
    const std::string name = without_parentheses(source_.launch.block[dimension]);
    const auto passed = names_.launched.find(name);
    if (passed != names_.launched.end() && !whole_number(name)) return passed->second;
    const bool fixed = names_.fixed.contains(name) && kernel_source::identifiers_in(source_.kernel.body).contains(name);
    return fixed || names_.tunable.contains(name) ? name : std::string();
  }

  /// Returns the only macro of the host program's build options that has the size of the launch's block in a dimension;
  /// empty where there is none.
  std::string built_block(std::size_t dimension) {
    constexpr long kSmallest = 16;  // smaller numbers are too often something else
    if (dimension >= source_.launch.block.size()) return {};
    const auto size = source_.value(source_.launch.block[dimension]);
    if (!size || *size < kSmallest) return {};
    std::set<std::string> same;
    for (const kernel_source::Macro& macro : source_.built)
      if (names_.tunable.contains(macro.name) && source_.value(macro.value) == size) same.insert(macro.name);
    if (same.size() != 1 || source_.use.position(static_cast<int>(dimension)).factor == *same.begin()) return {};
    built_blocks_ +=
        fmt::format("{}the build options in {} define {} as {}, the size of the launch's block in {}",
                    built_blocks_.empty() ? "" : "; ", source_.launch_file(), *same.begin(), *size, "xyz"[dimension]);
    return *same.begin();
  }

  /// Whether the launch in the source names the same block.
  bool is_launched_block() const {
    for (std::size_t d = 0; d < blocks_.size(); ++d)
      if (launched_block(d).empty() || names_.in_expressions(launched_block(d)) != blocks_[d]) return false;
    return true;
  }

  /// Reads how many blocks there are where each works on a row, say; their number may be unknown.
  void read_blocks(const Position& position, int d, bool one_thread) {
    geometry_.of_block.insert(d);
    std::string& reach = geometry_.reach[static_cast<std::size_t>(d)];
    reach = bound_of(position.variable);
    if (position.variable.empty())
      for (const std::string& bound : source_.use.bounds_of_block(d))
        if (reach.empty()) reach = names_.size_in(bound);
    if (reach.empty() && !names_.unbound.empty()) {
      reach = names_.unbound.front();
      names_.unbound.erase(names_.unbound.begin());
    }
    if (reach.empty() && (one_thread || (d + 1 == geometry_.dimensions && source_.use.thread_loop(d))))
      reach = names_.add_size(position.variable.empty() ? "rows" : position.variable + "s");
    if (!position.variable.empty() && !reach.empty()) geometry_.blocks[position.variable] = reach;
  }

  std::string reach_of(const Position& position, std::size_t dimension) {
    std::string reach = geometry_.reach[dimension];
    if (reach.empty()) reach = bound_of(position.variable);
    if (reach.empty() && !position.variable.empty())
      reach = names_.size_named(source_.use.stride_before(position.variable));
    if (!reach.empty() && !contains(reach, {"*"})) return reach;
    if (names_.sizes.size() > 1 || bounds_only_loops(names_.size(0)) ||
        (position.of_block && names_.is_plane(source_.kernel.body)))
      geometry_.guessed.insert(static_cast<int>(dimension));
    return names_.unbound.empty() ? names_.size(dimension) : names_.unbound.front();
  }

  /// Whether a size is only the bound of a loop of each thread, as the number of taps of a filter is.
  bool bounds_only_loops(const std::string& size) const {
    const std::vector<std::string> counters = source_.use.loop_counters();
    return !names_.is_plane(source_.kernel.body) && std::ranges::any_of(counters, [&](const std::string& counter) {
      return names_.bound(source_.use, counter, 2) == size;
    });
  }

  /// Takes the value of a size that no argument passes from the launch in the source. `each`: elements of a thread.
  void take_size(std::size_t dimension, bool of_block, long each) {
    if (dimension >= source_.launch.grid.size()) return;
    const std::string* const size = names_.source_of(geometry_.reach[dimension]);
    if (!size || names_.given.contains(*size) ||
        std::ranges::find(source_.parameters, *size, &kernel_source::Parameter::name) != source_.parameters.end())
      return;
    std::string covered = without_parentheses(source_.launch.grid[dimension]);
    if (!of_block) covered = parts_of(without_parentheses(parts_of(covered, "/").front()), "+").front();
    if (const auto value = source_.value(covered).value_or(0); value > 0) names_.given[*size] = value * each;
  }

  /// The largest block in a dimension that the kernel's bound and each array that its threads index permit, and why.
  struct Most {
    std::optional<long> threads;
    std::string why;
  };

  Most most_threads(std::size_t dimension) const {
    Most most;
    for (const KernelUse::SharedArray& array : source_.use.arrays_of_threads(static_cast<int>(dimension))) {
      const auto words = kernel_source::identifiers_in(array.length);
      const bool varies = std::ranges::any_of(words, [&](const auto& word) { return names_.tunable.contains(word); });
      const auto length = varies ? std::nullopt : source_.value(array.length);
      if (!length || *length <= array.offset || (most.threads && *most.threads <= *length - array.offset)) continue;
      most = {*length - array.offset, array.name + " has no more elements"};
    }
    if (const auto bound = whole_number(launch_bound());
        bound && blocks_.size() == 1 && (!most.threads || *bound < *most.threads))
      most = {bound, "__launch_bounds__ states"};
    return most;
  }

  void add_block_parameters() {
    for (std::size_t d = 0; d < blocks_.size(); ++d) {
      const std::string& name = blocks_[d];
      const Most most = most_threads(d);
      const bool open = std::ranges::count(names_.undefined, name, &UndefinedName::name) > 0;
      if ((!open && !free_.contains(name)) || names_.has_parameter(name)) {
        if (most.threads && !whole_number(name)) restrict(fmt::format("{} <= {}", name, *most.threads));
        continue;
      }
      std::string values = values_of_block(
          blocks_, d, tiles_,
          d < source_.launch.block.size() ? source_value(source_.all, source_.launch.block[d]) : std::nullopt,
          most.threads);
      const std::string why = most.threads ? fmt::format("at most {}, as {}", *most.threads, most.why) : "";
      if (open)
        values +=
            guesses_.check("a macro that the source leaves open, perhaps threads of a block: give values that work" +
                               (why.empty() ? why : ", " + why),
                           name);
      else if (!why.empty())
        values += "  # " + why;
      names_.add_parameter(name, values);
    }
  }

  std::string shared_memory() {
    const std::string& launched = source_.launch.shared_memory_bytes;
    std::string mark;
    if (const auto bytes = in_terms_of_problem(source_, names_, launched, blocks_, &mark); bytes && !bytes->empty()) {
      if (names_in(*bytes).empty())
        mark = fmt::format("the number in {}, which follows no parameter", source_.launch_file());
      else if (!mark.empty())
        for (const std::string& block : blocks_)
          if (!whole_number(block) && !names_in(*bytes).contains(block))
            mark += fmt::format("; it does not follow {}", block);
      return fmt::format(
          "shared_memory_bytes = \"{}\"{}\n", *bytes,
          mark.empty() ? "  # as the launch in " + source_.launch_file() : guesses_.check(mark, "shared_memory_bytes"));
    }
    static const std::regex kDeclared(
        R"(extern\s{1,9}__shared__\s{1,9}([A-Za-z_0-9 ]{1,60}?)\s{0,9}\b([A-Za-z_0-9]{1,60})\s?\[)");
    std::smatch found;
    const std::string& body = source_.kernel.body;
    const bool declared = std::regex_search(body, found, kDeclared);
    if (declared && ends_of(body, found[2].str(), body.size()).size() == 1) return {};  // not used
    const auto element = element_of(resolved(names_.types, declared ? found[1].str() : "float"));
    const std::size_t bytes =
        element ? size_of(*element_type(element->type)) * static_cast<std::size_t>(element->width) : 4;
    return fmt::format(
        "shared_memory_bytes = \"{} * {}\"{}\n", bytes, geometry_.block_threads,
        guesses_.check(fmt::format("{} bytes for each thread of a block", bytes), "shared_memory_bytes"));
  }

  /// Returns the parameters that positions in the kernel depend on and a grid, or the threads, and the block do not
  /// name.
  std::set<std::string> parameters_without(const std::vector<std::string>& extent) const {
    const auto given = names_in(fmt::format("{} {}", fmt::join(extent, " "), fmt::join(blocks_, " ")));
    std::set<std::string> missing;
    for (const std::string& position : source_.use.positions())
      for (const std::string& name : kernel_source::identifiers_in(position))
        if (const std::string parameter = names_.in_expressions(name);
            names_.tunable.contains(name) && !given.contains(parameter))
          missing.insert(parameter);
    return missing;
  }

  /// Takes the grid from the launch in the source, in terms of the problem; false if that does not cover the same with
  /// any block. `mark`: which numbers were taken for a parameter.
  bool take_grid(std::string& mark) {
    const SourceLaunch& launch = source_.launch;
    std::size_t launched = launch.block.size();
    while (launched > blocks_.size() && launch.block[launched - 1] == "1") --launched;
    if (!loops_.empty() || !geometry_.factors.empty() || !tiles_.empty() || launch.grid.empty() ||
        launch.block.empty() || launched != blocks_.size() || launch.grid.size() > grid_.size())
      return false;
    std::vector<std::string> grid, restrictions;
    for (std::size_t d = 0; d < launch.grid.size(); ++d) {
      const bool of_block = geometry_.of_block.contains(static_cast<int>(d));
      std::string unsure = mark;
      auto one = launched_grid(source_, names_, d, of_block, blocks_, restrictions, &unsure);
      if (!one && names_block(launch, launch.grid[d]))
        one = in_terms_of_problem(source_, names_, launch.grid[d], blocks_, &unsure);
      if (!one) return false;
      const std::string& reach = geometry_.reach[d];
      const std::string* const size = names_.source_of(reach);
      const bool is_size = size && names_.given.contains(*size) && whole_number(*one) == names_.given.at(*size);
      grid.push_back(is_size ? reach : *one);
      if (!is_size) mark = std::move(unsure);
    }
    for (const std::string& parameter : parameters_without(grid))
      if (mark.find(parameter) == std::string::npos)
        mark += fmt::format("{}positions in the kernel depend on {}, which the launch in {} does not name",
                            mark.empty() ? "" : "; ", parameter, source_.launch_file());
    grid_ = std::move(grid);
    for (const std::string& restriction : restrictions) restrict(restriction);
    return true;
  }

  /// Returns the value that a name of the problem has at the launch; nullopt where the source does not show it.
  std::optional<long> value_at_launch(const std::string& name) const {
    const SourceLaunch& launch = source_.launch;
    for (std::size_t d = 0; d < std::min(blocks_.size(), launch.block.size()); ++d)
      if (blocks_[d] == name) return source_.value(launch.block[d]);
    if (const std::string* const size = names_.source_of(name)) {
      const auto given = names_.given.find(*size);
      return given == names_.given.end() ? whole_number(source_.launched_number(*size)) : given->second;
    }
    for (const auto& [passed, parameter] : names_.launched)
      if (parameter == name) return source_.value(passed);
    return source_.value(name);
  }

  /// Returns the value of an expression of the problem at the launch, as far as its names have one. `others`: values of
  /// names that have another one.
  std::optional<long> number_at_launch(const std::string& expression,
                                       const std::map<std::string, long>& others = {}) const {
    std::map<std::string, Value, std::less<>> values;
    for (const std::string& name : names_in(expression)) {
      const auto other = others.find(name);
      const auto value = other == others.end() ? value_at_launch(name) : other->second;
      if (!value) return std::nullopt;
      values.emplace(name, Value(*value));
    }
    return static_cast<long>(
        Expression::parse(expression).evaluate_real([&](std::string_view name) { return &values.find(name)->second; }));
  }

  struct LaunchComparison {
    bool agrees = false;  ///< in every dimension
    std::string other;    ///< what a mark says where it starts another number of threads
  };

  /// Compares the threads that the body seems to need with those of the launch in the source, as far as its values are
  /// known.
  LaunchComparison compare_with_launch() const {
    std::size_t equal = 0;
    for (std::size_t d = 0; d < std::min({items_.size(), source_.launch.grid.size(), source_.launch.block.size()});
         ++d) {
      const auto blocks = launched_blocks(source_, d), threads = source_.value(source_.launch.block[d]);
      const auto items = number_at_launch(items_[d]);
      if (!blocks || !threads || *threads < 1 || !items) continue;
      if (*blocks != *items / *threads && *blocks != (*items + *threads - 1) / *threads)
        return {false, fmt::format("{} in {} here, and {} threads ({} blocks of {}) in the launch in {}", *items,
                                   "xyz"[d], *blocks * *threads, *blocks, *threads, source_.launch_file())};
      ++equal;
    }
    std::vector<std::string> grid;
    for (std::size_t d = 0; d < items_.size(); ++d) grid.push_back(rounded_up("(" + items_[d] + ")", blocks_[d]));
    if (const std::string different = different_where_varied(grid); !different.empty()) return {false, different};
    return {equal > 0 && equal == items_.size(), {}};
  }

  /// Returns what a mark says of a dimension with another number of blocks than the launch in the source starts; empty
  /// where none is known.
  std::string different_blocks() const {
    for (std::size_t d = 0; d < std::min(grid_.size(), source_.launch.grid.size()); ++d)
      if (const auto here = number_at_launch(grid_[d]), there = launched_blocks(source_, d);
          here && there && here != there)
        return fmt::format("{} blocks in {} here, and {} in the launch in {}: compare what they cover", *here, "xyz"[d],
                           *there, source_.launch_file());
    return {};
  }

  /// Returns what a mark says of a parameter that the launch's grid names and with another value of which `grid` has
  /// another number of blocks than the launch; empty where there is none. A block more or less is the rest of a size.
  std::string different_where_varied(const std::vector<std::string>& grid) const {
    constexpr long kSize = 1000000;  // where the source does not show it
    for (std::size_t d = 0; d < std::min(grid.size(), source_.launch.grid.size()); ++d) {
      std::string mark;
      const bool number = whole_number(source_.launch.block_variable).has_value();
      const auto launched = in_terms_of_problem(source_, names_, source_.launch.grid[d],
                                                number ? std::vector<std::string>() : blocks_, &mark);
      if (!launched) continue;
      std::map<std::string, long> values;
      for (const auto& [source, constant] : names_.sizes)
        if (!value_at_launch(constant)) values[constant] = kSize;
      for (const std::string& name : names_in(*launched)) {
        const auto value = value_at_launch(name);
        if (!value || names_.source_of(name)) continue;
        for (const long other : {*value, 2 * *value}) {
          values[name] = other;
          const auto here = number_at_launch(grid[d], values), there = number_at_launch(*launched, values);
          if (here && there && std::abs(*here - *there) > 1)
            return fmt::format(
                "with {} = {}, {} blocks in {} here, and {} in the launch in {}: compare what they cover", name, other,
                *here, "xyz"[d], *there, source_.launch_file());
        }
        values.erase(name);
      }
    }
    return {};
  }

  bool has_parameter(const std::vector<std::string>& expressions) const {
    const auto present = names_in(fmt::format("{}", fmt::join(expressions, " ")));
    return std::ranges::any_of(present, [&](const auto& name) { return names_.tunable.contains(name); });
  }

  /// Returns the number of blocks that the launch states for a kernel that any number covers; empty for others.
  std::string stated_blocks() const {
    const std::vector<std::string>& grid = source_.launch.grid;
    if (geometry_.dimensions > 1 || grid.size() != 1 || !source_.use.loops_over_grid() || contains(grid[0], {"/"}))
      return {};
    const auto blocks = in_terms_of_problem(source_, names_, grid[0]);
    const auto names = names_in(blocks.value_or(""));
    const bool sized = std::ranges::any_of(names, [&](const auto& name) { return names_.source_of(name); });
    return !blocks || sized ? std::string() : *blocks;
  }

  /// Returns the number of blocks in all dimensions of the line that extent() wrote.
  std::string number_of_blocks() const {
    std::vector<std::string> grid;
    for (std::size_t d = 0; d < std::min({blocks_.size(), items_.size(), grid_.size()}); ++d) {
      const std::string threads = items_[d].find(' ') == std::string::npos ? items_[d] : "(" + items_[d] + ")";
      grid.push_back(by_grid_ ? grid_[d] : rounded_up(threads, blocks_[d]));
    }
    if (grid.size() > 1)
      for (std::string& blocks : grid) blocks = "(" + blocks + ")";
    return geometry_.stated_blocks.empty() ? fmt::format("{}", fmt::join(grid, " * ")) : geometry_.stated_blocks;
  }

  /// Returns the line for the grid or the threads.
  std::string extent() {
    if (geometry_.stated_blocks = stated_blocks(); !geometry_.stated_blocks.empty()) {
      geometry_.blocks_vary = true;  // and with them what each block computes
      return quoted("grid", {geometry_.stated_blocks}) + "  # blocks, as the launch in " + source_.launch_file() +
             "; any number covers the same\n";
    }
    const bool by_body = !by_block_ && geometry_.guessed.empty();
    const auto [agrees, different] = by_body ? compare_with_launch() : LaunchComparison();
    const std::string other = certain_ ? different : std::string();
    geometry_.blocks_vary = has_parameter(items_) || has_parameter(blocks_);
    if (by_body && (certain_ ? other.empty() : agrees && parameters_without(items_).empty()))
      return quoted("global", items_) +
             (launched_reach_.empty() ? "  # threads, rounded up to whole blocks"
                                      : guesses_.check(launched_reach_, "global")) +
             "\n";
    std::string taken = launched_reach_;
    const bool as_launched = take_grid(taken);
    by_grid_ = as_launched || by_block_;
    if (by_grid_) geometry_.blocks_vary = has_parameter(grid_);
    const std::string varied = different_where_varied(by_grid_ ? grid_ : std::vector<std::string>());
    if (as_launched && !varied.empty()) taken += (taken.empty() ? "" : "; ") + varied;
    if (as_launched)
      return quoted("grid", grid_) +
             (taken.empty() ? "  # blocks, as the launch in " + source_.launch_file() : guesses_.check(taken, "grid")) +
             "\n";
    if (taken.empty()) taken = different.empty() ? different_blocks() : different;
    if (taken.empty()) taken = varied;
    if (taken.empty())
      taken = fmt::format("what the launch covers; compare it and block with {}",
                          source_.launch.at == std::string::npos ? "the application's launch"
                                                                 : "the launch in " + source_.launch_file());
    return (by_grid_ ? quoted("grid", grid_) : quoted("global", items_)) +
           guesses_.check(taken, by_grid_ ? "grid" : "global") + "\n";
  }

  static constexpr auto kSource = &ProblemNames::Pairs::value_type::first;
  const DraftSource& source_;
  ProblemNames& names_;
  Guesses& guesses_;
  Geometry geometry_;
  std::vector<Covered> positions_;                  ///< for each dimension
  std::vector<std::string> blocks_, items_, grid_;  ///< for each dimension: block, global and grid of the problem
  std::set<std::string> free_;                      ///< block sizes that the source does not name
  std::map<std::string, std::string> tiles_;        ///< threads of a block in a dimension with a larger tile
  std::string loops_;                               ///< work of a block over which its threads loop
  std::string launched_reach_;                      ///< what a mark says of sizes that the launch decides
  std::string built_blocks_;                        ///< what a mark says of macros that were taken for the block
  bool by_block_ = false;                           ///< the number of blocks does not follow from that of threads
  bool by_grid_ = false;                            ///< extent() wrote the blocks, not the threads
  bool certain_ = true;
};

}  // namespace

Geometry derive_geometry(const DraftSource& source, ProblemNames& names, Guesses& guesses) {
  return GeometryReader(source, names, guesses).read();
}

}  // namespace ergotune::draft
