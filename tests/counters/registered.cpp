// The observers of this extension, as the command registers them.
namespace ergotune {

void register_counters();

namespace {
[[maybe_unused]] const bool kRegistered = (register_counters(), true);
}  // namespace

}  // namespace ergotune
