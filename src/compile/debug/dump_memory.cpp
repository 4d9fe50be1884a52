// SPDX-License-Identifier: MIT
// memory.svg. At the top, one line per buffer that the host or the next step needs. Below, the
// slots to scale, with the values that share them. Values too small for a label only have a
// tooltip.
#include <algorithm>

#include "base/numbers.h"
#include "compile/debug/dump.h"
#include "compile/debug/memory_map.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr double kLeft = 240, kTop = 44, kLine = 15, kSlots = 420, kGap = 30;
constexpr double kTitleWidth = 480;     // minimum, for the title of the picture
constexpr double kLabelHeight = 12;     // of a line of text
constexpr double kCharacterWidth = 7;   // about the widest
constexpr std::size_t kNameBytes = 26;  // of a buffer's name

// Lifetime of a value, from launch to launch. -1: before the first launch; the number of launches:
// after the last.
struct Life {
  int born = -1, dies = -1;
};

std::map<ValueId, Life> lives(const Graph& fused, const MemoryMap& map) {
  std::map<ValueId, Life> found;
  const int count = static_cast<int>(map.launches.size());
  for (const auto& [id, place] : map.places) {
    const OpKind kind = fused[id].op->kind;
    if (kind != OpKind::kPack) found[id] = {kind == OpKind::kLeaf ? -1 : count, -1};
  }
  for (int i = 0; i < count; ++i) {
    const LaunchValues& launch = map.launches[static_cast<std::size_t>(i)];
    if (launch.group >= 0 && launch.first_part) {
      for (const ValueId id : launch.stores) found[id] = {i, i};
    }
    for (const ValueId id : launch.reads) {
      if (found.contains(id)) found[id].dies = std::max(found[id].dies, i);
    }
  }
  return found;
}

const char* color_of(BufferKind kind) {
  switch (kind) {
    case BufferKind::kParams: return "#4dabf7";
    case BufferKind::kGrads: return "#ffa94d";
    case BufferKind::kState: return "#9775fa";
    case BufferKind::kInput:
    case BufferKind::kData:
    case BufferKind::kConstant: return "#adb5bd";
    case BufferKind::kOutput: return "#ff8787";
    case BufferKind::kSlot: return "#69db7c";
  }
  return "#000000";
}

// Truncates a name at a UTF-8 character boundary.
std::string shortened(std::string name) {
  if (name.size() <= kNameBytes) return name;
  name.resize(kNameBytes - 3);
  while ((static_cast<unsigned char>(name.back()) & 0xc0U) == 0x80U) name.pop_back();
  if (static_cast<unsigned char>(name.back()) >= 0xc0U) name.pop_back();
  return name + "...";
}

std::string fixed(double value) { return format_text("%.2f", value); }

class Picture {
 public:
  Picture(const Graph& fused, const MemoryMap& map, const Program& program)
      : fused_(fused),
        map_(map),
        program_(program),
        lives_(lives(fused, map)),
        step_(std::clamp(1000.0 / static_cast<double>(program.launches.size() + 1), 6.0, 40.0)) {}

  std::string draw() {
    double y = kTop;
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      if (program_.buffers[b].kind == BufferKind::kSlot) continue;
      buffer(b, y, kLine - 2);
      y += kLine;
    }
    std::int64_t slot_bytes = 0, offset = 0;
    for (const BufferDecl& each : program_.buffers) {
      if (each.kind == BufferKind::kSlot) slot_bytes += each.bytes;
    }
    if (slot_bytes > 0) y += kGap;
    const double top = y;
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const BufferDecl& each = program_.buffers[b];
      if (each.kind != BufferKind::kSlot) continue;
      const double scale = kSlots / static_cast<double>(slot_bytes);
      y = top + static_cast<double>(offset) * scale;
      buffer(b, y, static_cast<double>(each.bytes) * scale);
      offset += each.bytes;
    }
    if (slot_bytes > 0) y = top + kSlots;
    axis(y);
    return head(y + 30) + body_ + "</svg>\n";
  }

 private:
  [[nodiscard]] double x_of(int launch) const { return kLeft + (launch + 1) * step_; }

  void buffer(std::size_t number, double y, double height) {
    const BufferDecl& decl = program_.buffers[number];
    const double width = x_of(static_cast<int>(program_.launches.size())) - kLeft;
    box(kLeft, y, width, height, "#f1f3f5", decl.name + ", " + bytes_text(decl.bytes));
    if (height >= kLabelHeight) {
      body_ += "<text x=\"" + fixed(kLeft - 6) + "\" y=\"" + fixed(y + height / 2 + 4) +
               "\" text-anchor=\"end\">" + xml_text(shortened(decl.name)) + ", " +
               bytes_text(decl.bytes) + "</text>\n";
    }
    for (const auto& [id, life] : lives_) {
      const BufferRange& place = map_.places.at(id);
      if (place.buffer != static_cast<int>(number)) continue;
      const Node& node = fused_[id];
      const DType stored = dtype_in_memory(node.type.dtype, map_.stores_f16);
      const auto each = static_cast<std::int64_t>(element_bytes(stored));
      const auto bytes = numel(node.type.shape) * each;
      const double scale = height / static_cast<double>(decl.bytes);
      const auto offset = place.offset * each;
      const bool slot = decl.kind == BufferKind::kSlot;
      // Values that outlive the step live until its end.
      const int last = slot ? life.dies : static_cast<int>(program_.launches.size()) - 1;
      const double left = x_of(life.born), top = y + static_cast<double>(offset) * scale;
      const double wide = std::max(1, last - life.born + 1) * step_ - 1;
      const double high =
          std::max(1.0, static_cast<double>(std::min(bytes, decl.bytes)) * scale - 0.5);
      box(left, top, wide, high, color_of(decl.kind), tip(id, life, offset, bytes));
      const std::string label = "%" + std::to_string(id) + " " + node.op->name;
      if (slot && high >= kLabelHeight &&
          wide >= kCharacterWidth * static_cast<double>(label.size())) {
        body_ += "<text x=\"" + fixed(left + 3) + "\" y=\"" + fixed(top + 10) + "\">" +
                 xml_text(label) + "</text>\n";
      }
    }
  }

  [[nodiscard]] std::string tip(ValueId id, const Life& life, std::int64_t offset,
                                std::int64_t bytes) const {
    const Node& node = fused_[id];
    std::string text = "%" + std::to_string(id) + " " + node.op->name;
    if (node.attrs.has("name")) text += " " + node.attrs.text("name");
    text += " " + to_string(node.type) + ", " + bytes_text(bytes) + " at byte " +
            std::to_string(offset);
    if (life.born >= 0) text += ", written by launch " + std::to_string(life.born);
    if (life.dies >= 0) text += ", last used by launch " + std::to_string(life.dies);
    if (node.location.known()) text += ", " + to_string(node.location);
    return text;
  }

  void box(double x, double y, double width, double height, const std::string& color,
           const std::string& title) {
    body_ += "<rect x=\"" + fixed(x) + "\" y=\"" + fixed(y) + "\" width=\"" + fixed(width) +
             "\" height=\"" + fixed(height) + "\" fill=\"" + color + "\"><title>" +
             xml_text(title) + "</title></rect>\n";
  }

  void axis(double y) {
    const int count = static_cast<int>(program_.launches.size());
    const int every = std::max(1, static_cast<int>(30 / step_) + (step_ < 15 ? 1 : 0));
    for (int i = 0; i < count; i += every) {
      body_ += "<text x=\"" + fixed(x_of(i) + step_ / 2) + "\" y=\"" + fixed(y + 14) +
               "\" text-anchor=\"middle\">" + std::to_string(i) + "</text>\n";
    }
    body_ += "<text x=\"" + fixed(kLeft - 6) + "\" y=\"" + fixed(y + 14) +
             "\" text-anchor=\"end\">launch</text>\n";
  }

  [[nodiscard]] std::string head(double height) const {
    const std::string w =
        fixed(std::max(kTitleWidth, x_of(static_cast<int>(program_.launches.size())) + 20));
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" +
           fixed(height) + "\" font-family=\"sans-serif\" font-size=\"10\">\n<rect width=\"" + w +
           "\" height=\"" + fixed(height) + "\" fill=\"#ffffff\"/>\n<text x=\"10\" y=\"20\" " +
           "font-size=\"13\">memory over launches: " + bytes_text(program_.peak_bytes) + " in " +
           std::to_string(program_.buffers.size()) + " buffers; slots below, to scale</text>\n";
  }

  const Graph& fused_;
  const MemoryMap& map_;
  const Program& program_;
  std::map<ValueId, Life> lives_;
  double step_;
  std::string body_;
};

}  // namespace

std::string memory_svg(const Graph& fused, const MemoryMap& map, const Program& program) {
  return Picture(fused, map, program).draw();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
