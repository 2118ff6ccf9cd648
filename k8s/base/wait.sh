# The container of the Job `run`: shows what server 0 prints until the run is over, ends the run's workers,
# scales its StatefulSets to 0, and ends with the run's exit code and its last words.
#
# What a run has come to is how server 0's container ended: 0 done, 64 and 78 a mistake that no new
# start makes better; after any other code the StatefulSet starts it again. A job that is done stays
# done: started again, server 0 ends with 0 again, so nothing is missed by looking late. By then it has
# put the final model where the experiment says (output.final_model); its last words say where that is,
# and which claim that is on is told of its pod. Other pods may end the run too: a pod of a StatefulSet that
# has ended with 64 or 78, or a Job of workers, of which one has found a mistake, or too many have crashed.
#
# Workers of a run that is done end by themselves, except those that server 0 could not tell so: a pod that
# replaces a lost one and is scheduled too late finds no server, ends with 75, and is replaced without an
# end. So the Job of the workers is ended with the run.
#
# A pod of this Job that is lost is replaced. The result of the run is in the annotation `kumo/result` of the
# Job before anything is ended, so that the new pod completes the end.
#
# KUMO_RUN: the run's name. KUMO_WORKERS: kind of the workers' object, Job or StatefulSet. KUMO_WORKERS_S:
# seconds in which a Job of workers ends by itself after the run is done.
# KUMO_API, KUMO_ACCOUNT, KUMO_TERMINATION_LOG, KUMO_PAUSE_S: the API server, the folder of the service
# account, where last words go, seconds between two looks; only tests set them.
set -u
api=${KUMO_API:-https://kubernetes.default.svc}
account=${KUMO_ACCOUNT:-/var/run/secrets/kubernetes.io/serviceaccount}
last_words=${KUMO_TERMINATION_LOG:-/dev/termination-log}
pause=${KUMO_PAUSE_S:-5}
: "${KUMO_RUN:?is empty: the overlay gives the run no label app.kubernetes.io/instance}"
namespace=$(cat "$account/namespace") || exit 78
server=$KUMO_RUN-server-0
exec 3>&1

# ask GROUP PATH [CURL-OPTION ...]: prints the answer. The token is read anew each time, since it is
# replaced every hour, and handed over by standard input, where no list of processes shows it.
ask() {
  group=$1 path=$2
  shift 2
  printf 'header = "Authorization: Bearer %s"\n' "$(cat "$account/token")" |
    curl --config - --silent --show-error --fail --cacert "$account/ca.crt" \
      --connect-timeout 10 --max-time 30 "$@" "$api/$group/namespaces/$namespace/$path"
}

# Applies the JSON merge patch $3 to the object $1 $2, and repeats that until the API server answers. Returns
# 1 if the object is gone or cannot be changed so.
patch() {
  until status=$(ask "$1" "$2" --output /dev/null --write-out '%{http_code}' --request PATCH \
    --header 'Content-Type: application/merge-patch+json' --data "$3"); do
    case $status in 404 | 422) return 1 ;; esac
    sleep "$pause"
  done
}

# Scales the StatefulSet $1, without the run's name, to 0.
scale_down() {
  patch apis/apps/v1 "statefulsets/$KUMO_RUN-$1/scale" '{"spec": {"replicas": 0}}' || return 0
  echo "scaled $KUMO_RUN-$1 to 0"
}

# Complete or Failed if the Job of the workers has ended.
end_of_worker_job() {
  ask apis/batch/v1 "jobs/$KUMO_RUN-worker" 2>/dev/null | jq -r '.status.conditions // []
    | map(select((.type == "Complete" or .type == "Failed") and .status == "True")) | .[0].type // empty'
}

# Ends the Job of the workers, unless it ends by itself within $1 seconds. A Job of 0 completions is complete,
# and its pods are told to leave. (An Indexed Job has as many completions as parallel pods.)
end_worker_job() {
  end=$(($(date +%s) + $1))
  while [ -z "$(end_of_worker_job)" ]; do
    if [ "$(date +%s)" -ge "$end" ]; then
      patch apis/batch/v1 "jobs/$KUMO_RUN-worker" '{"spec": {"completions": 0, "parallelism": 0}}' || return 0
      echo "ended $KUMO_RUN-worker"
      return
    fi
    sleep "$pause"
  done
}

# Ends with code $1, because of $2. Records both first: a pod that replaces this one could not find them out
# after the servers have gone.
finish() {
  echo "$2"
  echo "$2" >"$last_words"
  patch apis/batch/v1 "jobs/$KUMO_RUN-run" \
    "$(jq -n --arg result "$1 $2" '{metadata: {annotations: {"kumo/result": $result}}}')"
  case $KUMO_WORKERS in
    Job) if [ "$1" = 0 ]; then end_worker_job "$KUMO_WORKERS_S"; else end_worker_job 0; fi ;;
    StatefulSet) scale_down worker ;;
  esac
  scale_down server
  exit "$1"
}

# Converts the timestamps of log lines to UTC: a node writes its own time zone. Timestamps of different zones
# cannot be compared as texts, and a '+' in a URL is a blank.
in_utc() {
  jq -Rr --unbuffered '. as $line
    | (capture("^(?<time>[0-9-]+T[0-9:]+)(?<part>[.]\\d+)?(?<sign>[+-])(?<h>\\d\\d):(?<m>\\d\\d) (?<text>.*)$")
       | (((.h | tonumber) * 60 + (.m | tonumber)) * 60) as $ahead
       | ((.time + "Z" | fromdate) - (if .sign == "+" then $ahead else -$ahead end) | todate[:-1])
         + (.part // "") + "Z " + .text)
    // $line'
}

# Prints what server 0 has printed since the line at $1, and goes on for 30 s or until its container
# ends. Prints to its standard output when the last line was. A container that has ended between two
# looks has been started again since: what it printed at last is the log of the previous one.
show_log() {
  since="container=server&timestamps=true${1:+&sinceTime=$1Z}"
  {
    ask api/v1 "pods/$server/log?previous=true&$since" 2>/dev/null
    ask api/v1 "pods/$server/log?follow=true&$since" --no-buffer 2>/dev/null
  } | in_utc | {
    last=$1
    while IFS= read -r line; do
      at=${line%% *} at=${at%Z}
      # The API knows seconds only, so some of the lines come again.
      [ "$at" \> "$1" ] || continue
      printf '%s\n' "${line#* }" >&3
      last=$at
    done
    printf '%s' "$last"
  }
}

# Functions of jq: the last end of a container, and the last words of an end.
ends='def last_end: .state.terminated // .lastState.terminated // empty;
  def words: (.message // "" | split("\n") | map(select(. != "")) | last // "") as $said
    | if $said == "" and .exitCode != 0 then "it left no last words" else $said end;'

# How server 0's container has ended last: CODE, when, and its last words; nothing where it has not.
# Why the API gives no answer is printed here, once for each look.
server_end() {
  ask api/v1 "pods/$server" | jq -r "$ends"'
    .status.containerStatuses // [] | map(select(.name == "server")) | .[0] // empty | last_end
    | "\(.exitCode) \(.finishedAt // "-") \(words)"'
}

# In words, the model that server 0 has named in its last words $1, and the claim of the volume that it is
# on: of those that the pod mounts, the one with the longest path.
model_in() {
  model=${1#*the model is }
  [ "$model" != "$1" ] || return 0
  claim=$(ask api/v1 "pods/$server" | jq -r --arg model "$model" '.spec as $pod
    | [$pod.containers[] | select(.name == "server") | .volumeMounts[]
       | select(.mountPath as $path | $model | startswith($path + "/"))] | max_by(.mountPath | length)
    | .name as $name | $pod.volumes[] | select(.name == $name) | .persistentVolumeClaim.claimName // empty')
  echo "; the model is $model${claim:+ on the claim $claim}"
}

# CODE and why, if a container of the StatefulSet $1, without the run's name, has ended with 64 or 78. It would
# be started again for ever, also if it is an init container.
pods_end() {
  count=$(ask apis/apps/v1 "statefulsets/$KUMO_RUN-$1/scale" 2>/dev/null | jq '.spec.replicas // 0')
  [ "${count:-0}" -gt 0 ] || return 0
  # curl asks for each pod by its number, by one connection.
  ask api/v1 "pods/$KUMO_RUN-$1-[0-$((count - 1))]" 2>/dev/null | jq -nr "$ends"' first(inputs
    | .metadata.name as $pod | .status | (.initContainerStatuses, .containerStatuses) // [] | .[]
    | last_end | select(.exitCode == 64 or .exitCode == 78)
    | "\(.exitCode) \($pod) ended with exit code \(.exitCode): \(words)")'
}

# CODE and why, if the Job of the workers has failed.
worker_job_end() {
  ask apis/batch/v1 "jobs/$KUMO_RUN-worker" 2>/dev/null | jq -r '
    .status.conditions // [] | map(select(.type == "Failed" and .status == "True")) | .[0] // empty
    | .message // "the Job of the workers has failed"
    | "\((capture("exit code (?<code>[0-9]+)") | .code) // 1) \(.)"'
}

echo "waits for the end of $KUMO_RUN; what follows is printed by $server"
until job=$(ask apis/batch/v1 "jobs/$KUMO_RUN-run"); do sleep "$pause"; done
result=$(printf '%s' "$job" | jq -r '.metadata.annotations["kumo/result"] // empty')
if [ -n "$result" ]; then
  show_log '' >/dev/null
  finish "${result%% *}" "${result#* }"
fi
shown= said=
while :; do
  shown=$(show_log "$shown")
  ended=$(server_end)
  words=${ended#* }
  words=${words#* }
  case ${ended%% *} in
    0) finish 0 "$KUMO_RUN is done$(model_in "$words")" ;;
    64 | 78) finish "${ended%% *}" "$KUMO_RUN has failed: $words" ;;
    '') ;;
    *)
      [ "$ended" = "$said" ] || echo "$server ended with ${ended%% *} and is started again: $words"
      said=$ended
      ;;
  esac
  ended=$(pods_end server)
  if [ -z "$ended" ]; then
    case $KUMO_WORKERS in
      Job) ended=$(worker_job_end) ;;
      StatefulSet) ended=$(pods_end worker) ;;
    esac
  fi
  [ -z "$ended" ] || finish "${ended%% *}" "$KUMO_RUN has failed: ${ended#* }"
  sleep "$pause"
done
