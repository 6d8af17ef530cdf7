#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh BUILD: records the evict program on the software driver, shows what failed, replays it. Fails loudly if any of it is not so.
set -u
build=$1
zetrace=$build/bin/zetrace
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
ln -s "$build/bin/apps/evict" evict

show() { printf '\n$ %s\n' "$*"; }
expect() { # STATUS COMMAND...
    want=$1
    shift
    "$@"
    got=$?
    [ "$got" = "$want" ] || {
        echo "demo: '$*' gave status $got, but $want was expected" >&2
        exit 1
    }
}
say() { printf '\n# %s\n' "$*"; }

say "evict copies A to B, evicts and frees B at once, and runs ten empty lists. It fails far from its mistake:"
show "zetrace record --driver=soft --schedule=lazy --backtrace='*' -o bad.zetrace -- ./evict"
expect 1 "$zetrace" record --driver=soft --schedule=lazy --backtrace='*' -o bad.zetrace -- ./evict >log 2>&1
tail -n 4 log
[ -s bad.zetrace ] || exit 1

say "Which call failed first, and what came before it?"
show "zetrace dump --failed bad.zetrace | head -n 1"
"$zetrace" dump --failed bad.zetrace | head -n 1
"$zetrace" dump --failed bad.zetrace | head -n 1 | grep -q 'zeCommandQueueExecuteCommandLists(.*ZE_RESULT_ERROR_UNKNOWN' || exit 1
show "zetrace dump --calls=11..18 bad.zetrace"
"$zetrace" dump --calls=11..18 bad.zetrace

say "The same failure again, with no GPU, as often as wanted:"
show "zetrace replay bad.zetrace"
expect 0 "$zetrace" replay bad.zetrace
say "And with commands that run at once: the failure is gone. It was a matter of order."
show "zetrace replay --schedule=eager bad.zetrace"
expect 1 "$zetrace" replay --schedule=eager bad.zetrace
say "Which two operations must not come in that order?"
show "zetrace isolate bad.zetrace"
expect 1 "$zetrace" isolate bad.zetrace >answer
cat answer
for words in 'It fails when #14 comes before the end of #11' 'at main evict.c:' 'fails 3 of 3' 'passes 3 of 3' 'that call is innocent' 'verified 3 of 3'; do
    grep -q "$words" answer || {
        echo "demo: isolate was expected to say '$words'" >&2
        exit 1
    }
done
echo
echo "demo: done"
