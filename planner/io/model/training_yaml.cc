#include "planner/io/model/training_yaml.h"

namespace pfeife {

YamlValue training_value(const Training& training) {
  return yaml_map({{"precision", yaml_scalar(to_string(training.precision)), {}},
                   {"optimizer", yaml_scalar(to_string(training.optimizer)), {}},
                   {"microbatch_size", yaml_scalar(std::to_string(training.microbatch_size)), {}}});
}

Training read_training(const YamlNode& node) {
  node.check_keys({"precision", "optimizer", "microbatch_size"});
  Training training;
  training.precision = node.at("precision")
                           .as_one_of<Precision>({{"fp32", Precision::Fp32},
                                                  {"tf32", Precision::Tf32},
                                                  {"bf16_amp", Precision::Bf16Amp},
                                                  {"fp16_amp", Precision::Fp16Amp}});
  training.optimizer = node.at("optimizer")
                           .as_one_of<Optimizer>({{"sgd", Optimizer::Sgd},
                                                  {"momentum", Optimizer::Momentum},
                                                  {"adam", Optimizer::Adam},
                                                  {"adamw", Optimizer::AdamW}});
  training.microbatch_size = node.at("microbatch_size").as_int(1, 1'000'000);
  return training;
}

}  // namespace pfeife
