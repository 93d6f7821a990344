#include "analysis/pruning_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/svg_chart.hpp"

namespace ergotune {
namespace {

constexpr int kLabelColumn = 260, kBarColumn = 440, kAmountColumn = 150, kFirstRow = 54, kRowHeight = 26,
              kBarHeight = 15;
constexpr std::size_t kLongestLabel = 38;  // longest label, in characters

std::string shortened(const std::string& label) {
  if (label.size() <= kLongestLabel) return label;
  std::size_t end = kLongestLabel - 3;
  while (end > 0 && (static_cast<unsigned char>(label[end]) & 0xC0) == 0x80) --end;  // cut between UTF-8 characters
  return label.substr(0, end) + "...";
}

class PruningBars {
 public:
  explicit PruningBars(double largest) : decades_(std::max(1.0, std::ceil(std::log10(std::max(10.0, largest))))) {}

  void row(const std::string& label, double count, double part, const char* colour) {
    const int y = kFirstRow + rows_++ * kRowHeight;
    svg_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}<title>{}</title></text>\n", kLabelColumn - 8,
                        y + 12, escape_markup(shortened(label)), escape_markup(label));
    bar(y, count, colour);
    if (part > 0) bar(y, part, "#b3261e");
    const std::string amount = std::isnan(count) ? "not counted" : fmt::format("{:.6g}", count);
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{}\" fill=\"#444\" font-size=\"11\">{}{}</text>\n",
                        kLabelColumn + width(count) + 5, y + 12, amount, part > 0 ? fmt::format(", {:.6g}", part) : "");
  }

  std::string svg(const std::string& title) const {
    const int height = kFirstRow + rows_ * kRowHeight + 34, wide = kLabelColumn + kBarColumn + kAmountColumn;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<text x=\"8\" y=\"20\" font-size=\"15\">{}</text>\n"
        "<text x=\"8\" y=\"38\" fill=\"#555\">configurations; of restrictions: removed alone, and removed by nothing "
        "else (dark)</text>\n",
        wide, height, escape_markup(title));
    const int step = std::max(1, static_cast<int>(decades_) / 8);
    for (int decade = 0; decade <= static_cast<int>(decades_); decade += step) {
      const double x = kLabelColumn + kBarColumn * decade / decades_;
      out += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#ddd\"/>\n"
          "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\" fill=\"#555\">1e{4}</text>\n",
          x, kFirstRow - 4, height - 28, height - 12, decade);
    }
    return out + svg_ + "</svg>\n";
  }

 private:
  double width(double count) const { return count >= 1 ? kBarColumn * std::log10(count) / decades_ : 0; }
  void bar(int y, double count, const char* colour) {
    if (count < 1 || std::isnan(count)) return;
    svg_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n", kLabelColumn, y,
                        std::max(1.0, width(count)), kBarHeight, colour);
  }

  double decades_;
  int rows_ = 0;
  std::string svg_;
};

}  // namespace

std::string pruning_figure(const SearchSpace& space, const std::vector<RestrictionEffect>& effects) {
  PruningBars bars(space.cartesian_size());
  bars.row("all values of all parameters", space.cartesian_size(), 0, "#9aa4b2");
  for (const RestrictionEffect& effect : effects)
    bars.row(effect.label, effect.removed_alone, effect.redundant ? 0 : effect.removed_only_by_it, "#e8a09a");
  bars.row("valid", static_cast<double>(space.size()), 0, "#2f7d4f");
  return bars.svg("What restrictions remove");
}

}  // namespace ergotune
