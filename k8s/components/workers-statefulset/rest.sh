# Runs the command in its arguments and ends as it does, but where that is done (0): then it rests until
# it is told to leave, since a StatefulSet would start it again for ever.
"$@" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM INT
while :; do
  wait "$child"
  code=$?
  # A signal ends wait, not the child.
  kill -0 "$child" 2>/dev/null || break
done
[ "$code" = 0 ] || exit "$code"
echo "done; rests until it is told to leave"
trap 'kill "$child"; exit 0' TERM INT
sleep infinity &
child=$!
wait
