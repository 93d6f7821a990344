#include "base/kernel_source/identifiers.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include "base/kernel_source/outline.hpp"

namespace ergotune::kernel_source {

Identifiers identifiers_in(std::string_view source) {
  const std::string text = blank_comments(source);
  Identifiers found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_identifier(text, at);
    if (end > at && !std::isdigit(static_cast<unsigned char>(text[at]))) found.insert(text.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return found;
}

Identifiers identifiers_of_kernel(std::string_view source, std::string_view kernel) {
  kernel = kernel.substr(0, kernel.find('<'));
  if (const std::size_t colon = kernel.rfind(':'); colon != std::string_view::npos) kernel.remove_prefix(colon + 1);
  const Outline outline = outline_of(source);
  std::map<std::string, Identifiers, std::less<>> definitions;
  for (const Macro& macro : outline.macros) definitions[macro.name].merge(identifiers_in(macro.value));
  for (const Function& function : outline.functions)
    definitions[function.name].merge(
        identifiers_in(function.head + " " + function.name + "(" + function.parameters + ")" + function.body));
  if (!outline.whole || !definitions.contains(kernel)) return identifiers_in(source);
  Identifiers found = identifiers_in(outline.outside);
  std::vector<std::string> waiting{std::string(kernel)};
  Identifiers visited;
  while (!waiting.empty()) {
    const std::string name = std::move(waiting.back());
    waiting.pop_back();
    if (!visited.insert(name).second) continue;
    if (const auto definition = definitions.find(name); definition != definitions.end())
      waiting.insert(waiting.end(), definition->second.begin(), definition->second.end());
  }
  found.merge(visited);
  return found;
}

bool relies_on_block(std::string_view identifier) {
  constexpr std::string_view kIdentifiers[] = {"barrier",
                                               "__local",
                                               "local",
                                               "reqd_work_group_size",
                                               "work_group_barrier",
                                               "work_group_all",
                                               "work_group_any",
                                               "work_group_broadcast",
                                               "async_work_group_copy",
                                               "__shared__",
                                               "__syncthreads",
                                               "cooperative_groups"};
  return std::find(std::begin(kIdentifiers), std::end(kIdentifiers), identifier) != std::end(kIdentifiers) ||
         identifier.starts_with("work_group_reduce_") || identifier.starts_with("work_group_scan_") ||
         identifier.starts_with("sub_group_") || identifier.starts_with("get_sub_group") ||
         identifier.starts_with("__shfl");
}

bool asks_for_block(std::string_view identifier) {
  return identifier == "get_local_id" || identifier == "get_local_size" || identifier == "get_group_id" ||
         identifier == "get_num_groups" || identifier == "get_enqueued_local_size" ||
         identifier == "get_local_linear_id" || identifier == "threadIdx" || identifier == "blockIdx" ||
         identifier == "blockDim" || identifier == "gridDim";
}

}  // namespace ergotune::kernel_source
