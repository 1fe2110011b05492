#!/bin/sh
# Tools of the transcripts, in shell.

schema() { printf '{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}' "$1" "$2"; }
repo=$(schema '"repo":{"type":"string","description":"Which repository."}' '"repo"')
person=$(schema '"name":{"type":"string","description":"Name of the person."}' '"name"')
failure=$(schema '"failure":{"type":"string","enum":["transient","permanent"]}' '"failure"')
nothing='{"type":"object","properties":{},"additionalProperties":false}'
tools='{"name":"greet","durable":false,"description":"Greets a person.","inputSchema":'$person'},
{"name":"build","durable":true,"description":"Builds a repository and pushes it.","inputSchema":'$repo'},
{"name":"deploy","durable":true,"description":"Builds a repository, asks, and pushes it.","inputSchema":'$repo'},
{"name":"fetch","durable":true,"inputSchema":'$failure'},{"name":"nap","durable":true,"inputSchema":'$nothing'}'
tools=$(printf '%s' "$tools" | tr -d '\n')

tool_greet() { finish "\"return\":\"hello $(argument name)\""; }

tool_build() {
  step build printf '"%s:1"' "$(argument repo)" && image=$value
  step push echo null
  finish "\"return\":\"$(argument repo):1 is out\""
}

tool_deploy() {
  step build printf '"%s:1"' "$(argument repo)" && image=${value#\"} && image=${image%\"}
  tell "\"input\":\"approve\",\"message\":\"Deploy $image?\",\"fields\":{\"yes\":{\"type\":\"boolean\"}},\"required\":[\"yes\"]"
  await approve
  [ "$(get "$(get "$line" content)" yes)" = true ] || finish '"return":"nothing happened"'
  step push echo null
  finish "\"return\":\"$image is out\""
}

tool_nap() {
  tell '"sleep":"soak","ms":600000'
  await soak
  finish '"return":"awake"'
}

load() {
  echo '"disk full"'
  [ "$(argument failure)" = permanent ] && return 2 || return 1
}
tool_fetch() { step fetch load; }

. "$(dirname "$0")/worker.sh"
