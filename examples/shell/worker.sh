#!/bin/sh
# A worker for a Parley agent, in POSIX shell and curl.
#
#     PARLEY_KEY=... sh worker.sh AGENT
#
# The key needs the scope svc:a2a:serve. Put your own work where the answer is made.
set -u
agent=${1:?usage: worker.sh AGENT}
base=${PARLEY_SERVER:-http://127.0.0.1:8080}/api/v1/agents/$agent
lease=
received=
curl=

# The key goes through a file, because other users can see the arguments of curl.
umask 077
tmp=$(mktemp -d) || exit 1
printf 'Authorization: Bearer %s\n' "$PARLEY_KEY" > "$tmp/header"

stop() {
  [ -z "$curl" ] || kill "$curl" 2> /dev/null
  # What is not finished goes back to the queue.
  [ -z "$lease" ] || curl -sS -o "$tmp/answer" -X DELETE -H @"$tmp/header" "$base/leases/$lease"
  rm -rf "$tmp"
  exit "$1"
}
trap 'stop 0' INT TERM

# post URL BODY leaves the answer in a file. A shell that waits for a command in the
# background hears signals meanwhile.
post() {
  printf '%s' "$2" > "$tmp/body"
  curl -sS -m 60 --data-binary @"$tmp/body" -H @"$tmp/header" -H 'Content-Type: application/json' \
    -o "$tmp/answer" -w '%{http_code}' "$1" > "$tmp/code" &
  curl=$!
  wait "$curl" || return 1
  curl=
  case $(cat "$tmp/code") in
    2??) ;;
    401 | 403 | 404) cat "$tmp/answer" >&2; stop 1 ;;
    *) cat "$tmp/answer" >&2; return 1 ;;
  esac
}

# string NAME prints the first string of that name in the answer, still escaped as
# JSON has it, so that it can be put into other JSON as it is. A quotation mark
# inside a string is escaped, so nothing a sender writes looks like a name.
string() {
  awk -v name="\"$1\":\"" '{
    at = index($0, name)
    rest = substr($0, at + length(name))
    if (at && match(rest, /^([^"\\]|\\.)*"/)) print substr(rest, 1, RLENGTH - 1)
  }' "$tmp/answer"
}

while :; do
  post "$base/claim" '{"worker":"shell-'$$'","wait_seconds":20,"ack":['"$received"']}' || { sleep 2; continue; }
  # Direct messages are delivered until the next claim confirms them.
  received=$(tr ',{' '\n\n' < "$tmp/answer" | sed -n 's/^"id":\("msg-[^"]*"\).*/\1/p' | paste -sd , -)
  lease=$(string lease)
  [ -n "$lease" ] || continue
  answer="You said: $(string text)"
  post "$base/leases/$lease" '{"status":"completed","artifacts":[{"type":"text","parts":[{"type":"text","text":"'"$answer"'"}]}]}'
  lease=
done
