# A tool worker in POSIX shell and awk, written from docs/workers-protocol.md. A program sets `tools` to its declared
# entries, defines a function tool_NAME for each tool, and sources this file. It runs one call at a time: set
# `max_concurrent = 1` in [workers.NAME].

# Prints a member of JSON objects, one object per line, as JSON: get OBJECTS NAME
get() {
  printf '%s\n' "$1" | name=\"$2\" awk '
    function end(s, i,    c, depth) { # the last character of the value that starts at i
      for (;; i++) {
        c = substr(s, i, 1)
        if (c == "\"") while ((c = substr(s, ++i, 1)) != "\"") i += (c == "\\")
        else if (c == "{" || c == "[") depth++
        else if (c == "}" || c == "]") depth--
        if (!depth && substr(s, i + 1, 20) ~ /^[ \t]*([]},:]|$)/) return i
      }
    }
    function skip(s, i) { while (substr(s, i, 1) ~ /[ \t,:{]/) i++; return i }
    { for (i = skip($0, 1); substr($0, i, 1) == "\""; i = skip($0, to + 1)) {
        to = end($0, i); member = substr($0, i, to - i + 1)
        for (i = to + 1; substr($0, i, 1) ~ /[ \t:]/; i++);
        to = end($0, i)
        if (member == ENVIRON["name"]) { print substr($0, i, to - i + 1); exit } } }'
}
has() { [ -n "$(get "$line" "$1")" ]; }
say() { printf '{"nonce":%s,%s}\n' "$nonce" "$1"; }
tell() { say "\"call\":$call,$1"; }
finish() { tell "$1"; exit "$draining"; } # ends the run, which is a subshell, with its last line
fail() { finish "\"error\":$1,\"kind\":\"ToolError\""; }
argument() { get "$arguments" "$1" | sed 's/^"//; s/"$//'; } # the text of a JSON string

# Handles a line that belongs to no run.
handle() {
  if has ping; then say "\"pong\":$(get "$line" ping)"; elif has drain; then draining=3; fi
}
# Waits for the line of the server about a key, and leaves it in $line.
await() {
  while IFS= read -r line || exit 3; do
    handle
    [ "$(get "$line" call)" = "$call" ] || continue
    ! has drop || finish '"dropped":true'
    [ "$(get "$line" rejected)" != "\"$1\"" ] || fail "$(get "$line" message)"
    for reply in recorded response woke; do [ "$(get "$line" $reply)" != "\"$1\"" ] || return 0; done
  done
}
# Runs a command as a step, and leaves its output, which is JSON, in $value: step KEY COMMAND …
# If the command fails, its output is the text of the error. Exit code 2 is a permanent failure.
step() {
  key=$1 entry=$(get "$journal" "$1") && shift
  if [ -n "$entry" ]; then
    tell "\"replayed\":[\"$key\"]"
    value=$(get "$entry" f) && [ -z "$value" ] || fail "$(get "$value" message)"
    value=$(get "$entry" v)$(get "$entry" x) && return
  fi
  tell "\"step\":\"$key\""
  value=$("$@"); case $? in
    0) tell "\"done\":\"$key\",\"value\":$value" && await "$key" && return ;;
    2) tell "\"failed\":\"$key\",\"error\":$value,\"permanent\":true" && await "$key" ;;
    *) tell "\"failed\":\"$key\",\"error\":$value" ;;
  esac
  fail "$value"
}

draining=0 pieces=
while IFS= read -r line; do
  handle
  call=$(get "$line" call) tool=$(get "$line" tool | tr -d '"')
  if has welcome; then
    nonce=$(get "$(get "$line" welcome)" nonce)
    say "\"hello\":{\"protocol\":1,\"sdk\":\"shell\",\"tools\":[$tools]}"
  elif has goodbye; then get "$line" goodbye >&2; exit 2
  elif has more; then pieces="$pieces$(get "$line" journal)
"
  elif [ -n "$tool" ]; then
    journal=$pieces$(get "$line" journal) arguments=$(get "$line" arguments) pieces=
    ("tool_$tool"); case $? in 0) ;; 3) draining=3 ;; *) tell '"error":"the function has no result"' ;; esac
  fi
  [ "$draining" = 0 ] || exit 0
done
