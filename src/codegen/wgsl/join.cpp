// SPDX-License-Identifier: MIT
// A merged kernel: functions of the shaders under separate names, their main functions as parts,
// and a main function. For concurrent launches, main() calls the part to which the workgroup
// belongs. For a fused sequence, it calls all parts in order for the workgroup's block. Arrays in
// workgroup memory are shared by type, as a workgroup runs one part at a time.
#include "codegen/wgsl/join.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>

#include "codegen/wgsl/parts.h"
#include "kernel/selective_kept.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

using Names = std::map<std::string, std::string, std::less<>>;

constexpr std::int64_t kMaxWorkgroups = 65535;

bool part_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Returns the text with renamed identifiers. Local variables with a name in the list are renamed as
// well.
std::string renamed(const std::string& text, const Names& names) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && part_of_name(text[end])) ++end;
    if (end == at) {
      out += text[at++];
      continue;
    }
    const auto found = names.find(std::string_view(text).substr(at, end - at));
    out += found == names.end() ? text.substr(at, end - at) : found->second;
    at = end;
  }
  return out;
}

std::int64_t result_count(const ContractionLaunch& p) { return p.batch * p.parts * p.m * p.n; }

class Joiner {
 public:
  Joiner(std::span<const Launch> launches, const WgslOptions& options, int max_bindings)
      : launches_(launches), options_(options), max_bindings_(max_bindings) {
    options_.joined = true;
    if (launches.back().fused_sequence) options_.blocks = launches.back().blocks;
  }

  // Returns nullopt if the launches do not fit into one kernel.
  std::optional<Dispatch> run() {
    for (const Launch& launch : launches_) {
      for (const Binding& binding : launch.bindings) {
        if (binding.mode != BindMode::kRead) written_.insert(binding.buffer);
      }
    }
    // Tiles of one kind share workgroup memory; tiles of different kinds may not fit together.
    const bool forced = options_.forces_tiles();
    for (const int columns : {0, 32, 16}) {
      if (columns != 0) use_small_tiles(columns);
      write_shaders();
      if (mixed_types()) write_shaders();
      if (!same_threads() || !bind() || !print()) return std::nullopt;
      if (result_.kernel.workgroup_bytes <= options_.max_workgroup_bytes) return std::move(result_);
      if (forced || options_.blocks > 0) break;
    }
    return std::nullopt;
  }

 private:
  void use_small_tiles(int columns) {
    options_.matmul_tile = columns == 32 ? MatmulTile::k32x32InSlices : MatmulTile::k16x16;
    options_.scatter_variant = ScatterVariant::kBlocks;
    options_.attention_columns = columns;
    options_.sort_tile = columns;
    options_.map_width = 1;
  }

  void write_shaders() {
    shaders_.clear();
    for (const Launch& launch : launches_) {
      options_.concurrent_work_ratio = concurrent_work_ratio(launch);
      shaders_.push_back(wgsl::write_shader(launch, options_));
    }
  }

  // Returns the number of results of all products with the same k, divided by that of `launch`.
  [[nodiscard]] double concurrent_work_ratio(const Launch& launch) const {
    const auto* product = launch.find<ContractionLaunch>();
    if (product == nullptr) return 1;
    std::int64_t all = 0;
    for (const Launch& each : launches_) {
      const auto* other = each.find<ContractionLaunch>();
      const bool alike =
          other != nullptr && other->k == product->k && other->part_depth == product->part_depth;
      all += alike ? result_count(*other) : 0;
    }
    return static_cast<double>(all) / static_cast<double>(result_count(*product));
  }

  // A written buffer is bound once and so needs one type. If shaders disagree, it is accessed as
  // scalars. Returns true if the shaders must be written again.
  bool mixed_types() {
    std::map<int, std::string> types;
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      for (std::size_t b = 0; b < shaders_[i].types.size(); ++b) {
        const int buffer = launches_[i].bindings[b].buffer;
        if (!written_.contains(buffer)) continue;
        const auto [at, fresh] = types.try_emplace(buffer, shaders_[i].types[b]);
        if (!fresh && at->second != shaders_[i].types[b]) options_.scalar_buffers.insert(buffer);
      }
    }
    return !options_.scalar_buffers.empty();
  }

  [[nodiscard]] bool same_threads() const {
    return std::all_of(shaders_.begin(), shaders_.end(), [&](const wgsl::Shader& shader) {
      return shader.threads == shaders_.front().threads;
    });
  }

  bool bind() {
    names_.clear();
    types_.clear();
    result_ = {};
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      Names& names = names_.emplace_back();
      for (std::size_t b = 0; b < shaders_[i].types.size(); ++b) {
        const int number = bind(launches_[i].bindings[b], shaders_[i].types[b]);
        if (number < 0) return false;
        names["b" + std::to_string(b)] = "bound" + std::to_string(number);
      }
    }
    return static_cast<int>(result_.bindings.size()) <= max_bindings_;
  }

  // Returns the index among the bindings of the kernel, or -1 if the buffer cannot be bound.
  int bind(const Binding& binding, const std::string& type) {
    std::vector<Binding>& bound = result_.bindings;
    const bool written = written_.contains(binding.buffer);
    for (std::size_t i = 0; i < bound.size(); ++i) {
      if (bound[i].buffer != binding.buffer) continue;
      const bool same =
          bound[i].offset == binding.offset && bound[i].bytes == binding.bytes && types_[i] == type;
      if (!same && written) return -1;
      if (!same) continue;
      if (bound[i].mode != binding.mode) bound[i].mode = BindMode::kReadWrite;
      return static_cast<int>(i);
    }
    bound.push_back(binding);
    types_.push_back(type);
    return static_cast<int>(bound.size()) - 1;
  }

  bool print() {
    functions_.clear();
    shared_.clear();
    WgslKernel& kernel = result_.kernel;
    std::string functions;
    for (std::size_t i = 0; i < shaders_.size(); ++i) {
      const wgsl::Shader& shader = shaders_[i];
      const std::string part = "part" + std::to_string(i);
      name_parts(shader, part + "_", names_[i]);
      for (const auto& [name, text] : shader.functions) {
        const auto own = names_[i].find(name);
        const std::string named = own == names_[i].end() ? name : own->second;
        functions_.try_emplace(named, renamed(text, names_[i]));
      }
      functions += wgsl::print_function("fn " + part + "(group_id: vec3<u32>, local: u32) {\n" +
                                        renamed(shader.main, names_[i]) + "}\n");
      kernel.uses_scalars |= shader.uses_scalars;
      kernel.header += wgsl::print_header(launches_[i]);
    }
    kernel.threads = shaders_.front().threads;
    for (const wgsl::Shader::Shared& array : shared_) kernel.workgroup_bytes += array.bytes;
    std::int64_t groups = 0;
    const std::string calls =
        options_.blocks > 0 ? sequence_calls(groups) : concurrent_calls(groups);
    if (groups == 0 || groups > kMaxWorkgroups) return false;
    kernel.groups_x = static_cast<std::uint32_t>(groups);
    const auto any = [&](bool wgsl::Shader::* uses) {
      return std::any_of(shaders_.begin(), shaders_.end(),
                         [&](const wgsl::Shader& each) { return each.*uses; });
    };
    kernel.body = wgsl::print_enables(types_, any(&wgsl::Shader::uses_subgroup_matrix),
                                      any(&wgsl::Shader::enables_subgroups));
    kernel.body += wgsl::print_bindings(result_.bindings, types_, "bound");
    if (kernel.uses_scalars) kernel.body += wgsl::declare_scalars();
    for (std::size_t i = 0; i < shared_.size(); ++i) {
      kernel.body += wgsl::print_shared("shared" + std::to_string(i), shared_[i]);
    }
    for (const auto& [name, text] : functions_) kernel.body += wgsl::print_function(text);
    kernel.body += functions + wgsl::print_main(calls, kernel.threads);
    return true;
  }

  // Assigns workgroups to parts in order.
  [[nodiscard]] std::string concurrent_calls(std::int64_t& groups) const {
    std::string calls;
    for (std::size_t i = 0; i < shaders_.size(); ++i) {
      const std::string id =
          groups == 0 ? "group_id"
                      : "vec3<u32>(group_id.x - " + wgsl::u32_literal(groups) + ", 0u, group_id.z)";
      groups += shaders_[i].groups;
      calls +=
          std::string(i == 0 ? "  " : " else ") +
          (i + 1 == shaders_.size() ? "{"
                                    : "if (group_id.x < " + wgsl::u32_literal(groups) + ") {") +
          " part" + std::to_string(i) + "(" + id + ", local); }";
    }
    return calls + "\n";
  }

  // Each workgroup runs, in every part, the workgroups of its block and so sees what it wrote.
  // `groups` stays 0 if the workgroups of a part cannot be assigned to blocks.
  [[nodiscard]] std::string sequence_calls(std::int64_t& groups) const {
    std::string calls;
    for (std::size_t i = 0; i < shaders_.size(); ++i) {
      if (shaders_[i].groups % options_.blocks != 0) return {};
      const std::int64_t each = shaders_[i].groups / options_.blocks;
      const std::string call = "part" + std::to_string(i) + "(vec3<u32>(group_id.x * " +
                               wgsl::u32_literal(each) + " + i, 0u, 0u), local);";
      // The next call may overwrite workgroup memory that some threads still read.
      const std::string wait = i + 1 < shaders_.size() ? " storageBarrier();" : "";
      calls += "  for (var i = 0u; i < " + wgsl::u32_literal(each) + "; i++) { " + call +
               " workgroupBarrier(); }\n" + (wait.empty() ? "" : " " + wait + "\n");
    }
    groups = options_.blocks;
    return calls;
  }

  // Names the functions of a shader, and maps its arrays to the shared ones, largest first.
  void name_parts(const wgsl::Shader& shader, const std::string& prefix, Names& names) {
    for (const auto& [name, text] : shader.functions) {
      if (!name.starts_with("tg_")) names[name] = prefix + name;
    }
    std::vector<std::pair<std::string, wgsl::Shader::Shared>> arrays(shader.shared.begin(),
                                                                     shader.shared.end());
    std::stable_sort(arrays.begin(), arrays.end(),
                     [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
    std::vector<bool> taken(shared_.size(), false);
    for (const auto& [name, array] : arrays) {
      std::size_t at = 0;
      while (at < shared_.size() && (taken[at] || shared_[at].type != array.type)) ++at;
      if (at == shared_.size()) {
        shared_.push_back(array);
        taken.push_back(false);
      }
      taken[at] = true;
      if (shared_[at].bytes < array.bytes) shared_[at] = array;
      names[name] = "shared" + std::to_string(at);
    }
  }

  std::span<const Launch> launches_;
  WgslOptions options_;
  int max_bindings_;
  std::set<int> written_;  // buffers
  std::vector<wgsl::Shader> shaders_;
  std::vector<Names> names_;        // per shader
  std::vector<std::string> types_;  // per binding
  std::vector<wgsl::Shader::Shared> shared_;
  std::map<std::string, std::string> functions_;
  Dispatch result_;
};

void write_some(const Program& program, std::size_t first, std::size_t count,
                const WgslOptions& options, int max_bindings, std::vector<Dispatch>& out) {
  if (count == 1) {
    const Launch& launch = program.launches[first];
    out.push_back({first, 1, launch.bindings, write_wgsl(launch, options)});
    return;
  }
  const std::span<const Launch> launches(program.launches);
  std::optional<Dispatch> joined =
      Joiner(launches.subspan(first, count), options, max_bindings).run();
  if (joined) {
    joined->first = first;
    joined->count = count;
    out.push_back(std::move(*joined));
    return;
  }
  write_some(program, first, count / 2, options, max_bindings, out);
  write_some(program, first + count / 2, count - count / 2, options, max_bindings, out);
}

}  // namespace

std::vector<Dispatch> write_dispatches(const Program& program, const WgslOptions& given,
                                       int max_bindings) {
  WgslOptions options = given;
  options.paired_states = paired_states(program);
  std::vector<Dispatch> all;
  for (std::size_t i = 0; i < program.launches.size();) {
    std::size_t end = i + 1;
    const auto goes_on = [&](const Launch& launch) {
      return launch.concurrent ||
             (launch.fused_sequence && launch.blocks == program.launches[i].blocks);
    };
    while (!options.separate && end < program.launches.size() && goes_on(program.launches[end])) {
      ++end;
    }
    write_some(program, i, end - i, options, max_bindings, all);
    i = end;
  }
  return all;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
