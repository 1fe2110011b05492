#!/usr/bin/env bash
# Records docs/images/call.svg: a call that shows progress, survives `kill -9` of its server and asks for a decision.
# Needs tmux, asciinema 2 and svg-term on PATH, and `outlive` (`PATH=target/debug:$PATH site/record-call.sh`).
set -euo pipefail
cd "$(dirname "$0")/../docs/images"
work=$(mktemp -d)
trap 'tmux -L record kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
export HOME=$work TERM=xterm-256color
shell="env PS1='\$ ' bash --norc --noprofile"
run() { tmux -L record "$@"; }

run -f /dev/null new-session -d -x 96 -y 21 "$shell"
run set -g status off
run split-window -v -l 8 "$shell"

# Types a line into a pane, as a person would.
line() {
    local pane=$1 text=$2
    for ((i = 0; i < ${#text}; i++)); do
        run send-keys -t "$pane" -l "${text:$i:1}"
        sleep 0.03
    done
    run send-keys -t "$pane" Enter
}

(
    sleep 1.5
    line 1 "outlive serve >/dev/null 2>&1 &"
    sleep 1.5
    line 0 "outlive call http://127.0.0.1:8000/mcp release project=shop"
    sleep 1.6
    line 1 "kill -9 %1"
    sleep 1.8
    line 1 "outlive serve >/dev/null 2>&1 &"
    sleep 8
    run send-keys -t 0 Enter
    sleep 1.5
    run send-keys -t 0 Enter
    sleep 4
    line 1 "kill %2; exit"
    sleep 1
    run kill-server
) &
asciinema rec --overwrite --quiet --command "tmux -L record attach" "$work/call.cast"
svg-term --in "$work/call.cast" --out call.svg --window --no-cursor --padding 12
