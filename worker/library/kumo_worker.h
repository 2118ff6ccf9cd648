/* Worker of a Kumo job as a C library: the program trains a model of its own, and the library is
 * the rest of a worker: it joins the job, leases partitions, exchanges weights with the servers and
 * codes contributions.
 *
 *   kumo_worker_open(&options, &worker);
 *   while (kumo_worker_next(worker, 1000, &work) == KUMO_OK && work.kind < KUMO_WORK_DONE) {
 *     if (work.kind == KUMO_WORK_NONE) continue;       // a good place to look for Ctrl-C
 *     kumo_worker_samples(worker, indices);            // work.samples of them
 *     for (i ...) kumo_worker_get(worker, i, tensor[i]);
 *     ...                                              // train a block, or evaluate
 *     for (i ...) kumo_worker_set(worker, i, tensor[i]);   // KUMO_WORK_TRAIN only
 *     kumo_worker_finish(worker, sums, metrics);
 *   }
 *   kumo_worker_close(worker);
 *
 * Threads: the library has none before kumo_worker_open and none after kumo_worker_close. A worker
 * is used by one thread at a time: a call while another thread's call is in progress returns
 * KUMO_FAILED_PRECONDITION and changes nothing. kumo_worker_leave, kumo_worker_fail and
 * kumo_worker_close may be called by any thread at any time.
 *
 * Processes: a worker is used only by the process that opened it: after a fork, each call in the
 * child fails and changes nothing. A process has one worker at a time. The library installs no
 * signal handler, and its functions must not be called in one; the program must ignore SIGPIPE if
 * its log may be a closed pipe (Python does).
 *
 * Errors are codes; kumo_error has the text. All pointers are borrowed for the call only. Tensors
 * are float32, dense, in row-major order.
 */
#ifndef KUMO_WORKER_H_
#define KUMO_WORKER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a caller can do about an error. */
typedef enum {
  KUMO_OK = 0,
  KUMO_INVALID_ARGUMENT = 1,    /* an argument is wrong */
  KUMO_FAILED_PRECONDITION = 2, /* a repetition cannot help: settings, a mismatch, a misuse */
  KUMO_NOT_FOUND = 3,           /* the named file does not exist */
  KUMO_UNAVAILABLE = 4,         /* start again later: the job stopped, or servers are gone */
  KUMO_ABORTED = 5,             /* the work is no longer wanted: call kumo_worker_next */
  KUMO_DATA_LOSS = 6,           /* a file is damaged */
  KUMO_RESOURCE_EXHAUSTED = 7,  /* memory or a disk is full */
  KUMO_INTERNAL = 8,            /* a failure of a library */
  KUMO_OUT_OF_RANGE = 9         /* a number has become infinite or NaN */
} kumo_status;

/* The text of the last error of this thread; "" if there was none. Valid until the next call of
 * this thread. */
const char* kumo_error(void);
/* The exit code by which `kumo launch` decides about a restart: 0, 1, 75 or 78
 * (docs/operations.md). */
int kumo_exit_code(kumo_status status);
/* "0.2.0". */
const char* kumo_library_version(void);

/* A tensor of the model. All workers of a job must name the same ones in the same order. */
typedef enum {
  KUMO_TENSOR_WEIGHTS = 0,    /* trained, with weight decay */
  KUMO_TENSOR_UNDECAYED = 1,  /* trained, without weight decay: biases, scales */
  KUMO_TENSOR_STATISTICS = 2, /* not trained; averaged over the partitions: running means */
  KUMO_TENSOR_FROZEN = 3      /* never changed; kept in checkpoints */
} kumo_tensor_kind;
typedef struct {
  const char* name;
  const int64_t* shape; /* `dimensions` of them, at least one, each > 0; a scalar is {1} */
  int32_t dimensions;
  int32_t kind;         /* kumo_tensor_kind */
  const float* initial; /* its values at the start of a new job */
} kumo_tensor;

/* A metric: a sum over samples that the program reports. */
typedef enum {
  KUMO_METRIC_MEAN = 0,      /* sum / samples */
  KUMO_METRIC_SHARE = 1,     /* the same; between 0 and 1 for each sample */
  KUMO_METRIC_PERPLEXITY = 2 /* exp(sum / samples) */
} kumo_metric_formula;
typedef struct {
  const char* name; /* lower-case letters, digits, underscores */
  int32_t formula;  /* kumo_metric_formula */
  /* 0 or 1; -1: unknown, and checkpoint.best and job.patience_metric refuse the metric */
  int32_t more_is_better;
} kumo_metric;

typedef struct {
  size_t size;                 /* sizeof(kumo_worker_options) */
  const char* experiment;      /* its file; the one of `kumo launch` counts, if there is one */
  const char* const* settings; /* "section.key=value" each, over those of the file */
  int32_t settings_count;
  const char* name;   /* of a worker that is started by hand; NULL: HOST-PID */
  const char* device; /* for people: "cpu", "cuda:0"; NULL: "cpu" */
  const kumo_tensor* tensors;
  int32_t tensors_count;
  const kumo_metric* metrics; /* each its own sum; the first one is the loss */
  int32_t metrics_count;
  int64_t train_samples;      /* > 0; the same in every worker */
  int64_t validation_samples; /* 0: nothing is evaluated */
} kumo_worker_options;

typedef struct kumo_worker kumo_worker;

/* Reads the experiment, checks it against the options, and begins to join the job; kumo_worker_next
 * reports whether the servers accept this worker. `kumo launch` hands its experiment, settings and
 * this worker's name over in the environment (KUMO_EXPERIMENT, KUMO_SETTINGS, KUMO_WORKER_NAME);
 * KUMO_HTTP there is the address of the metrics, HOST:PORT. Relative paths of the
 * experiment's settings are relative to KUMO_FOLDER, if that is set. */
kumo_status kumo_worker_open(const kumo_worker_options* options, kumo_worker** worker);

typedef enum {
  KUMO_WORK_NONE = 0,     /* nothing within the time; ask again */
  KUMO_WORK_TRAIN = 1,    /* a partition's block of a round */
  KUMO_WORK_EVALUATE = 2, /* a partition's slice of the validation set */
  KUMO_WORK_DONE = 3,     /* the job is complete */
  KUMO_WORK_LEFT = 4      /* this worker has left the job on request */
} kumo_work_kind;
typedef struct {
  int32_t kind; /* kumo_work_kind */
  int32_t partition;
  int64_t round; /* from 0; of KUMO_WORK_EVALUATE: rounds behind the weights */
  int64_t epoch; /* from 0 */
  /* KUMO_WORK_TRAIN. 1: train minibatch after minibatch with an optimiser of the program, and set
   * the weights at the end. 0: set the mean gradient over the samples, which is stepped on the
   * servers. */
  int32_t steps;
  /* 1: the first minibatches of the partition's next block, trained while the last block is
   * exchanged (sync.overlap); it begins from the weights that the last block has ended at. A later
   * work is the rest of that block. Its metrics are not counted. */
  int32_t ahead;
  int32_t restarts;    /* 1: the program's optimiser starts without state */
  int32_t keeps_state; /* 1: its state at the end is to be handed in (kumo_worker_set_state) */
  /* Minibatches behind the state that it starts with. 0 if it restarts, or if the state was lost
   * with a worker and is zero. */
  int64_t steps_before;
  int64_t samples;
  int64_t minibatch; /* samples of a minibatch; the last one may be smaller */
  int64_t position;  /* samples of the whole job before the first minibatch */
  uint64_t seed;     /* for random numbers: of the job's seed, the round and the partition */
} kumo_work;

/* Waits for work, timeout_ms at most. Requires that the work before is finished. Errors: the reason
 * why the worker has left the job; each later call returns it again. */
kumo_status kumo_worker_next(kumo_worker* worker, int32_t timeout_ms, kumo_work* work);

/* The following calls are about the work that kumo_worker_next has returned. KUMO_ABORTED: the job
 * has ended meanwhile; drop the work, and call kumo_worker_next. */

/* Writes the indices of its samples, in the order of the job: work.samples numbers. */
kumo_status kumo_worker_samples(kumo_worker* worker, int64_t* indices);
/* The rate of the experiment's learning-rate schedule for minibatch 0, 1, ... of a block. */
kumo_status kumo_worker_learning_rate(kumo_worker* worker, int64_t minibatch, float* rate);
/* Reads a tensor (by its place in the options) of the weights to start from, or to evaluate; after
 * kumo_worker_set what was set. */
kumo_status kumo_worker_get(kumo_worker* worker, int32_t tensor, float* to);
/* Hands in a tensor of a trained block. work.steps = 1: its weights. 0: its mean gradient; of
 * KUMO_TENSOR_STATISTICS the new values. KUMO_TENSOR_FROZEN need not be set. */
kumo_status kumo_worker_set(kumo_worker* worker, int32_t tensor, const float* from);
/* Number of state arrays of the program's optimiser that a partition carries from block to block
 * (block.reset_local_state = false) or from steps ahead to the rest of their block (sync.overlap);
 * 0: none. May be called at any time. */
kumo_status kumo_worker_states(kumo_worker* worker, int32_t* count);
/* Reads and hands in one of them for a trained tensor. The arrays of a partition are zero at first,
 * and whenever work.restarts is 1. */
kumo_status kumo_worker_get_state(kumo_worker* worker, int32_t state, int32_t tensor, float* to);
kumo_status kumo_worker_set_state(kumo_worker* worker, int32_t state, int32_t tensor,
                                  const float* from);
/* Ends the work. sums: of each metric, over the work's samples. KUMO_FAILED_PRECONDITION, and the
 * work goes on, if a tensor was not set. */
kumo_status kumo_worker_finish(kumo_worker* worker, const double* sums, int32_t count);
/* Gives the work back, and leaves the job at once. status: KUMO_UNAVAILABLE: other workers compute
 * it; KUMO_FAILED_PRECONDITION: they would fail in the same way, so the job ends. */
kumo_status kumo_worker_fail(kumo_worker* worker, kumo_status status, const char* reason);

/* Asks to leave the job without loss: go on until kumo_worker_next returns KUMO_WORK_LEFT
 * (or KUMO_WORK_DONE, if the job is complete first). KUMO_UNAVAILABLE there: the partitions were
 * not handed over within checkpoint.grace_s seconds, and other workers compute the last block
 * again. */
kumo_status kumo_worker_leave(kumo_worker* worker);
/* Ends the worker. Work in progress is given back; to leave without loss, kumo_worker_leave comes
 * before. A call of another thread that is in progress returns first: kumo_worker_next with
 * KUMO_FAILED_PRECONDITION. All threads of the library have ended when kumo_worker_close returns. A
 * closed worker stays valid: each later call about it returns KUMO_FAILED_PRECONDITION, and a
 * second kumo_worker_close does nothing. NULL is ignored. In a forked child it does nothing. */
void kumo_worker_close(kumo_worker* worker);

/* Weights of a checkpoint. */
typedef struct kumo_weights kumo_weights;
/* path: a checkpoint's folder, or the output folder of a job, whose newest checkpoint is read. */
kumo_status kumo_weights_open(const char* path, kumo_weights** weights);
int32_t kumo_weights_count(const kumo_weights* weights);
/* Name and shape are valid until kumo_weights_close. Without 0 <= tensor < count: NULL, 0 and
 * nothing. */
const char* kumo_weights_name(const kumo_weights* weights, int32_t tensor);
int32_t kumo_weights_shape(const kumo_weights* weights, int32_t tensor, const int64_t** shape);
/* Writes all numbers of a tensor. */
void kumo_weights_get(const kumo_weights* weights, int32_t tensor, float* to);
/* NULL is ignored. */
void kumo_weights_close(kumo_weights* weights);

#ifdef __cplusplus
}
#endif

#endif /* KUMO_WORKER_H_ */
