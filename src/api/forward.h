// SPDX-License-Identifier: MIT
#pragma once

#include "api/checkpoint.h"
#include "api/engine.h"

namespace tensorgrad::detail {

class ForwardImpl {
 public:
  // With `owners` it shares their parameters and states, and `shared_mutex` is theirs.
  ForwardImpl(ModelFunctions model, ParameterTable table, TraceFunction function,
              const ForwardOptions& options, std::shared_ptr<Device> device, std::string why,
              std::shared_ptr<std::recursive_mutex> shared_mutex,
              const std::vector<const Instance*>& owners, const Site& site);

  Outputs run(const Feed& inputs, const StepOptions& options);
  void upload_params(const std::map<std::string, HostTensor>& params, bool partial);
  void load(const std::string& path, Weights weights);
  void import_weights(const std::string& path, const ImportOptions& options);
  [[nodiscard]] std::map<std::string, HostTensor> download_params() const;
  void export_onnx(const std::string& path, const OnnxOptions& options) const;
  [[nodiscard]] const Engine& engine() const { return *engine_; }
  [[nodiscard]] const std::vector<std::string>& captures() const { return captures_; }

 private:
  std::unique_ptr<Engine> build(std::shared_ptr<Device> device, std::string why, bool captures,
                                const std::vector<const Instance*>& owners, const Site& site);
  Engine& capturing(const std::vector<std::string>& names);
  [[nodiscard]] std::vector<float> download_arena() const;
  void refuse_averages(const char* who) const;
  // In the place of the parameters. Throws UserError where there are none.
  void take_averages(Checkpoint& checkpoint, const std::string& path) const;

  std::shared_ptr<std::recursive_mutex> mutex_;
  ModelFunctions model_;
  ParameterTable table_;
  TraceFunction function_;
  ForwardOptions options_;
  Site site_;
  std::unique_ptr<Engine> engine_, capturing_;
  std::vector<std::string> captures_;
  std::uint32_t runs_ = 0;
};

}  // namespace tensorgrad::detail
