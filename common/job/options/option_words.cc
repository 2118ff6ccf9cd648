#include "common/job/options/option_words.h"

#include <array>

namespace kumo {
namespace {

constexpr auto kWords = std::to_array<OptionWords>({
    {"job", "general training train run experiment main"},
    {"job.name", "experiment_name run_name title"},
    {"job.seed", "random_seed rng_seed manual_seed"},
    {"job.epochs", "epoch num_epochs max_epochs n_epochs nb_epoch num_train_epochs"},
    {"network", "model net"},
    {"network.file", "model net network architecture arch model_file"},
    {"network.device", "devices gpu gpus use_gpu use_cuda cuda accelerator"},
    {"network.precision", "dtype amp fp16 bf16 mixed_precision half"},
    {"network.threads", "num_threads n_threads nthreads omp_num_threads"},
    {"network.tf32", "allow_tf32"},
    {"network.deterministic", "cudnn_deterministic"},
    {"network.initial_weights",
     "weights init_weights pretrained init_from load finetune warm_start"},
    {"data", "dataset datasets input loader"},
    {"data.reader", "format data_format"},
    {"data.directory", "data dataset data_dir data_root root data_path path"},
    {"data.cache", "cache_dir cache_directory scratch"},
    {"data.train_images", "images train train_data training_images"},
    {"data.train_labels", "labels training_labels targets"},
    {"data.validation_images", "val_images test_images valid_images eval_images test_data"},
    {"data.validation_labels", "val_labels test_labels valid_labels eval_labels"},
    {"data.scale", "rescale normalize normalise pixel_scale"},
    {"data.subtract_mean", "mean mean_subtraction mean_image center"},
    {"data.crop_pad", "crop random_crop pad padding rand_crop"},
    {"data.pad_value", "fill fill_value"},
    {"data.flip", "hflip random_flip mirror rand_mirror horizontal_flip"},
    {"data.classes", "num_classes n_classes"},
    {"data.train_limit", "limit max_samples num_samples subset num_examples"},
    {"data.validation_limit", "limit max_samples eval_limit"},
    {"data.prefetch", "prefetch_factor buffer_size read_ahead"},
    {"sync", "synchronization synchronisation communication distributed parallel"},
    {"sync.mode", "sync synchronization synchronisation kvstore kv_store"},
    {"sync.partitions", "learners num_learners world_size ranks"},
    {"sync.minibatch",
     "batch batch_size mini_batch_size local_batch_size train_batch_size micro_batch_size"},
    {"sync.block", "block_size block_length tau local_steps sync_period sync_frequency"},
    {"sync.warmup_samples", "warmup warm_up"},
    {"sync.push_codec", "codec compression quantization quantisation gradient_compression"},
    {"sync.pull_codec", "codec compression"},
    {"sync.error_feedback", "residual residuals"},
    {"block", "bmuf block_momentum aggregation"},
    {"block.rule", "update_rule aggregation"},
    {"block.nesterov", "use_nesterov"},
    {"block.momentum", "block_momentum"},
    {"block.learning_rate", "block_lr block_learning_rate"},
    {"block.time_constant", "block_momentum_as_time_constant"},
    {"block.reset_local_state", "reset_sgd_momentum reset_momentum reset_optimizer"},
    {"optimiser", "optimizer optim solver sgd adam"},
    {"optimiser.type", "optimizer optimiser solver algorithm method"},
    {"optimiser.momentum", "mom"},
    {"optimiser.beta1", "betas adam_beta1"},
    {"optimiser.beta2", "betas adam_beta2"},
    {"optimiser.epsilon", "eps adam_epsilon"},
    {"optimiser.weight_decay", "wd l2 decay l2_penalty regularization"},
    {"optimiser.clip_norm", "clip clip_gradient gradient_clipping max_grad_norm grad_clip"},
    {"schedule", "scheduler lr learning_rate lr_schedule lr_scheduler"},
    {"schedule.type", "lr_scheduler scheduler lr_policy lr_schedule policy schedule"},
    {"schedule.learning_rate", "lr rate base_lr initial_lr initial_learning_rate alpha"},
    {"schedule.step", "step_size lr_step decay_steps"},
    {"schedule.milestones", "steps lr_steps boundaries lr_step_epochs"},
    {"schedule.gamma", "lr_factor factor decay_rate lr_decay"},
    {"schedule.final_rate", "final_lr min_lr end_lr eta_min"},
    {"schedule.warmup", "warmup_epochs warmup_steps lr_warmup"},
    {"evaluation", "eval validation val test"},
    {"evaluation.every_epochs", "eval_every eval_interval eval_frequency validate_every"},
    {"evaluation.minibatch", "batch batch_size eval_batch_size test_batch_size val_batch_size"},
    {"checkpoint", "save saving snapshot"},
    {"checkpoint.every_rounds", "save_every save_steps checkpoint_every save_interval period"},
    {"checkpoint.every_epochs",
     "save_every save_epochs save_freq checkpoint_every save_interval period"},
    {"checkpoint.best",
     "save_best save_best_only monitor load_best_model_at_end metric_for_best_model"},
    {"checkpoint.every_minutes", "save_every checkpoint_every save_interval period"},
    {"checkpoint.keep", "max_to_keep keep_last save_total_limit save_top_k"},
    {"checkpoint.resume", "restart restore load_checkpoint resume_from"},
    {"checkpoint.continue", "continues go_on keep_training initial_epoch"},
    {"checkpoint.grace_s", "grace timeout"},
    {"output", "out log logs logging results"},
    {"output.directory", "output out output_dir out_dir log_dir save_dir checkpoint_dir"},
    {"output.interval_s", "interval log_interval log_every log_steps display print_every"},
    {"output.tensorboard", "tb summary summaries"},
    {"output.jsonl", "json"},
    {"cluster", "servers workers processes nodes launch"},
    {"cluster.servers", "server hosts addresses num_servers ps parameter_servers master_addr"},
    {"cluster.workers", "num_workers nodes nproc nproc_per_node processes n_workers"},
    {"cluster.join_timeout_s", "timeout join_timeout"},
    {"cluster.suspect_after_s", "timeout heartbeat_timeout suspect_after"},
    {"cluster.stall_timeout_s", "timeout stall_timeout"},
    {"cluster.replicas", "replication replication_factor"},
    {"cluster.heartbeat_s", "heartbeat heartbeat_interval"},
    {"cluster.insecure", "allow_insecure"},
    {"cluster.chunk_kib", "chunk chunk_size bucket_size bucket_cap_mb"},
});

}  // namespace

std::span<const OptionWords> AllOptionWords() { return kWords; }

std::string_view WordsFor(std::string_view name) {
  for (const OptionWords& words : kWords) {
    if (words.name == name) return words.also;
  }
  return "";
}

}  // namespace kumo
