# Runs a sweep on Kubernetes, one run after another: the runs of the file `points`, each in the folder of
# its name (`kumo sweep --manifests` writes both). A run that fails does not end the others; the exit code
# is then 1. Started again, it waits for the run that is under way, and starts those that have not begun.
# A run that has failed stays as it is; to train it again: kubectl delete -k RUN, and start this again.
#
# A run that cannot be applied ends the queue: it may be applied in part, and its pods keep their nodes.
# Correct the cause and start this again; or, to leave the run out, remove its line from `points` and delete
# its objects.
#
# KUMO_PAUSE_S: seconds between two looks; only tests set it.
set -eu
cd "$(dirname "$0")"
pause=${KUMO_PAUSE_S:-10}
failed=

# Prints nothing if there is no Job $1, else "Job" and the conditions that hold. If the API server does not
# answer, kubectl says why, and the question is repeated.
state_of() {
  until kubectl get job "$1" --ignore-not-found --output \
    'jsonpath={.kind} {.status.conditions[?(@.status=="True")].type}'; do
    sleep "$pause"
  done
}

# Waits for the end of the Job $1. Returns 1 if it has failed or is gone.
await() {
  while :; do
    case $(state_of "$1") in
      *Complete*) return 0 ;;
      *Failed*) return 1 ;;
      '')
        echo "the Job $1 is gone"
        return 1
        ;;
    esac
    sleep "$pause"
  done
}

# Starts the run $1 or completes its start, unless it has ended. Returns 1 if it cannot be applied: 5 tries
# have failed, although the API server answered before each.
apply() {
  for _ in 1 2 3 4 5; do
    # Applied again, a run that has ended would get its servers back.
    case $(state_of "$1-run") in *Complete* | *Failed*) return 0 ;; esac
    kubectl apply -k "$1" && return 0
    sleep "$pause"
  done
  return 1
}

# Descriptor 3, so that kubectl cannot read the list.
while read -r run settings <&3; do
  echo "$run begins: $settings"
  if ! apply "$run"; then
    echo "$run cannot be applied; kubectl says why above. The queue ends here: $run may have pods already"
    failed="$failed $run"
    break
  fi
  if await "$run-run"; then
    echo "$run is done"
  else
    echo "$run has failed; see kubectl logs job/$run-run"
    failed="$failed $run"
  fi
done 3<points
[ -z "$failed" ] || {
  echo "failed:$failed" >&2
  exit 1
}
