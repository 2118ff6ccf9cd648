#include "tests/sim/invariants.h"

namespace kumo::sim {
namespace {

std::string Number(int64_t number) { return std::to_string(number); }

}  // namespace

void Invariants::OnWork(uint64_t incarnation, const ChunkWork& work) {
  if (plan_.on_arrival()) return OnApplication(incarnation, work);
  ChunkRound& chunk = chunks_[{work.generation, work.chunk}];
  const std::string where = "chunk " + Number(work.chunk) + ", generation " +
                            Number(work.generation) + ", round " + Number(work.round);
  const bool same = chunk.incarnation == incarnation;
  const bool next = work.round == chunk.round + (chunk.closed ? 1 : 0);
  if (chunk.round >= 0 && !next && (same || work.round != chunk.round)) {
    Violation(where + ": comes after round " + Number(chunk.round));
  }
  if (chunk.round != work.round || !same) chunk = {incarnation, work.round, 0, false};
  chunk.contributions += static_cast<int>(work.contributions.size());
  if (!work.closes()) return;
  chunk.closed = true;
  const RoundPlan round = plan_.Round(work.round);
  const Chunk& of = map_.chunks()[work.chunk];
  int expected = 0;
  for (int p = 0; p < plan_.settings().partitions && JobPlan::TakesPart(round, of); ++p) {
    expected += plan_.SpanSamples(round, of, p) > 0 && !weightless_(round, of, p);
  }
  if (chunk.contributions != expected) {
    Violation(where + ": closes with " + Number(chunk.contributions) + " of " + Number(expected) +
              " contributions");
  }
}

// Of the contributions to a chunk all that came are counted: as many as the rounds that are closed
// have, and some of the next ones.
void Invariants::OnApplication(uint64_t incarnation, const ChunkWork& work) {
  ChunkRound& chunk = chunks_[{work.generation, work.chunk}];
  if (chunk.round < 0 || chunk.incarnation != incarnation) {
    chunk = {incarnation, work.round, 0, false};
    chunk.first_round = work.round;
  }
  chunk.contributions += static_cast<int>(work.contributions.size());
  if (!work.closes()) return;
  const auto expected = [&](int64_t end) {
    int contributions = 0;
    for (int64_t r = chunk.first_round; r < end; ++r) {
      const RoundPlan round = plan_.Round(r);
      for (int p = 0; p < plan_.settings().partitions; ++p) {
        if (map_.chunks()[work.chunk].frozen()) continue;
        contributions += plan_.PartitionSamples(round, p).size() > 0;
      }
    }
    return contributions;
  };
  const int64_t end = work.round + 1;
  // What is saved has no contribution that comes again when the job resumes from it.
  const int64_t may_have_come = work.freeze ? end : plan_.LastOpen(work.round) + 1;
  if (chunk.contributions < expected(end) || chunk.contributions > expected(may_have_come)) {
    Violation("chunk " + Number(work.chunk) + ": round " + Number(work.round) + " closes with " +
              Number(chunk.contributions) + " contributions so far, and not " +
              Number(expected(end)));
  }
}

void Invariants::OnRoundClosed(uint32_t generation, const RoundClosedAction& closed) {
  if (generation == generation_ && closed_ >= 0 && closed.round != closed_ + 1) {
    Violation("round " + Number(closed.round) + " closed after round " + Number(closed_));
  }
  if (generation < generation_) {
    Violation("a round of generation " + Number(generation) + " closed in generation " +
              Number(generation_));
  }
  generation_ = generation;
  closed_ = closed.round;
  const int64_t samples = plan_.MeasuredSamples(plan_.Round(closed.round));
  if (closed.sums.samples != samples) {
    Violation("round " + Number(closed.round) + " has " + Number(closed.sums.samples) +
              " samples instead of " + Number(samples));
  }
}

void Invariants::OnEpoch(const EpochEvaluatedAction& epoch) {
  if (epoch.validation.samples != validation_samples_) {
    Violation("an evaluation of " + Number(epoch.validation.samples) + " samples");
  }
  int64_t measured = 0;
  for (int64_t round = epoch.version - 1; round >= 0; --round) {
    const RoundPlan plan = plan_.Round(round);
    if (plan.epoch != epoch.epoch) break;
    measured += plan_.MeasuredSamples(plan);
  }
  if (epoch.train.samples != measured) {
    Violation("an epoch of " + Number(epoch.train.samples) + " samples");
  }
}

void Invariants::OnWentBack(uint32_t generation, int64_t version, bool checkpoint_is_there) {
  if (generation <= generation_ && closed_ >= 0) {
    Violation("generation " + Number(generation) + " after " + Number(generation_));
  }
  if (version > 0 && !checkpoint_is_there) {
    Violation("goes back to round " + Number(version) + ", which is no checkpoint");
  }
  closed_ = -1;
  generation_ = generation;
}

void Invariants::OnAnswered(const wire::Header& sent, uint32_t generation,
                            const ServerActions& actions) {
  // Who joins has none yet, who asks for the status needs none.
  if (sent.type() == wire::HELLO || sent.type() == wire::STATUS) return;
  if (sent.generation() == generation) return;
  for (const ServerAction& action : actions) {
    const auto* send = std::get_if<SendAction>(&action);
    // It is only told so.
    const bool told = send && send->message.header.type() == wire::HEARTBEAT_REPLY &&
                      !send->message.header.has_orders();
    if (told) continue;
    Violation("a message of type " + Number(sent.type()) + " of generation " +
              Number(sent.generation()) + " counts in generation " + Number(generation));
  }
}

void Invariants::OnManifest(const checkpoint::Manifest& manifest,
                            const std::set<std::string>& there) {
  for (const checkpoint::File& file : manifest.files()) {
    if (there.contains(file.name())) continue;
    Violation("the manifest of round " + Number(manifest.version()) + " names " + file.name() +
              ", which is not there");
  }
}

}  // namespace kumo::sim
