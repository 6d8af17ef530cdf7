#!/bin/sh
# SPDX-License-Identifier: MIT
# run_schedules.sh APPS DRIVER: each program's bug shows where its gate forces it, and its fixed twin is well on every schedule.
[ $# = 2 ] && [ -f "$2" ] || {
    echo "usage: $0 FOLDER_OF_PROGRAMS LIBZE_SOFT" >&2
    exit 2
}
apps=$1
export ZE_ENABLE_ALT_DRIVERS="$2"
passed=0 failed=0
loader=$(ls /usr/lib/*/libze_loader.so.1 /usr/lib*/libze_loader.so.1 2>/dev/null | head -n 1)
schedules="async eager lazy"
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do schedules="$schedules seed:$n"; done

races="o1_evict_in_flight o2_host_staging_lifetime o3_event_rerecord o4_resubmit_stale_event o6_destroy_order
    o8_short_timeout_ignored s14_query_ignored"
always="s6_close_and_submit_twice s7_reset_counter_event s10_free_before_submit s11_copy_past_end s12_fence_reset_in_flight
    s13_pool_before_events s14_query_ignored"
unseen="s1_two_threads_one_list s2_one_pool_two_threads" # the driver has locks of its own
baits=$("$apps/bait")

expect() { # STATUS SCHEDULE PROGRAM ARG...
    want=$1 schedule=$2
    shift 2
    out=$(ZE_SOFT_SCHEDULE=$schedule timeout 60 "$@" 2>&1)
    got=$?
    case " $want " in
    *" $got "*) passed=$((passed + 1)) ;;
    *)
        failed=$((failed + 1))
        echo "FAILED: $* on $schedule: status $got, wanted $want"
        echo "$out"
        ;;
    esac
}

check() { # WHAT COMMAND...
    what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
    fi
}

for schedule in $schedules; do
    expect 0 "$schedule" "$apps/evict" good
    expect 0 "$schedule" "$apps/evict_good"
    for program in o1_evict_in_flight o2_host_staging_lifetime o3_event_rerecord o4_resubmit_stale_event o6_destroy_order \
        o7_wait_never_submitted o8_short_timeout_ignored; do
        expect 0 "$schedule" "$apps/$program" fixed
    done
    for program in $always $unseen s9_no_events_between_lists; do
        expect 0 "$schedule" "$apps/$program" fixed
    done
    for mode in $baits; do
        expect 0 "$schedule" "$apps/bait" "$mode"
    done
    for program in $unseen; do
        expect 0 "$schedule" "$apps/$program"
    done
    for program in $races; do
        expect 0 "$schedule" "$apps/$program" ungated fixed
    done
    expect 0 "$schedule" "$apps/o1_evict_in_flight" fixed2
    expect 0 "$schedule" "$apps/o1_evict_in_flight" ungated fixed2
    expect 0 "$schedule" "$apps/o5_immediate_not_inorder" fixed
    expect 0 "$schedule" "$apps/o5_immediate_not_inorder" fixed2
    expect "0 1" "$schedule" "$apps/o5_immediate_not_inorder"
    expect "0 1" "$schedule" "$apps/evict"
    # forced by a gate, whatever the schedule
    for program in o1_evict_in_flight o2_host_staging_lifetime o3_event_rerecord o4_resubmit_stale_event o6_destroy_order \
        o7_wait_never_submitted $always; do
        expect 1 "$schedule" "$apps/$program"
    done
done
expect 0 lazy env ZE_SOFT_DESTROY=keep "$apps/o6_destroy_order" # a driver that hides it
for schedule in async eager lazy seed:1 seed:2; do # its short wait is a third of a second
    expect 1 "$schedule" "$apps/o8_short_timeout_ignored"
done
# races: eager passes, and which schedules show them is known
for program in $races; do
    expect 0 eager "$apps/$program" ungated
done
for program in o1_evict_in_flight o2_host_staging_lifetime o3_event_rerecord o4_resubmit_stale_event o6_destroy_order; do
    expect 1 lazy "$apps/$program" ungated
done
expect 1 seed:4 "$apps/o8_short_timeout_ignored" ungated
expect 1 seed:2 "$apps/s14_query_ignored" ungated
expect 0 eager "$apps/s9_no_events_between_lists"
expect 1 lazy "$apps/s9_no_events_between_lists"
check "there are baits" [ "$(echo "$baits" | wc -l)" = 12 ]
expect 1 async "$apps/o5_immediate_not_inorder"
expect 0 eager "$apps/o5_immediate_not_inorder"
expect 0 eager "$apps/evict"
expect 1 lazy "$apps/evict"
for schedule in async eager lazy seed:7; do
    expect 0 "$schedule" "$apps/client_linked"
    expect 0 "$schedule" "$apps/client_dlsym" "$loader"
    expect 0 "$schedule" "$apps/client_static" "$loader"
    expect 0 "$schedule" "$apps/client_tables" "$loader"
    expect 0 "$schedule" "$apps/client_ctypes.py"
    for memory in pageable host shared; do
        expect 0 "$schedule" "$apps/hostmem" "$memory" ungated
    done
    expect 0 "$schedule" "$apps/nested"
    expect 0 "$schedule" "$apps/token" 1000
    expect 0 "$schedule" "$apps/mixed" 200
    expect 0 "$schedule" "$apps/threads" 4 1000
    expect 0 "$schedule" "$apps/forker"
    expect 0 "$schedule" "$apps/execer"
    expect 0 "$schedule" "$apps/exitpath"
done
expect 1 lazy "$apps/evict.py"
expect 0 lazy "$apps/evict.py" good
expect 139 eager "$apps/crasher"
expect 0 eager "$apps/noze"

# a client's total is the sum of what it says by name, and all kinds but the tables' (one zeInit more) make the same calls
wanted=$("$apps/client_linked" count | grep -v '^calls=' | sort)
for client in "client_dlsym $loader" "client_static $loader"; do
    # shellcheck disable=SC2086
    got=$("$apps"/$client count | grep -v '^calls=' | sort)
    check "the calls of ${client%% *} are those of client_linked" [ "$got" = "$wanted" ]
done
for client in "client_linked" "client_dlsym $loader" "client_static $loader" "client_tables $loader" "client_ctypes.py"; do
    # shellcheck disable=SC2086
    sum=$("$apps"/$client count | awk -F'[= ]' '$1 == "calls" { total = $2; next } { sum += $2 } END { print total - sum }')
    check "the counts of ${client%% *} add up" [ "$sum" = 0 ]
done

# two drivers: two files, or the loader would take them for one
copies=$(mktemp -d)
trap 'rm -rf "$copies"' EXIT
cp "$ZE_ENABLE_ALT_DRIVERS" "$copies/libze_soft_copy.so.1"
expect 2 eager "$apps/two_drivers"
export ZE_ENABLE_ALT_DRIVERS="$ZE_ENABLE_ALT_DRIVERS,$copies/libze_soft_copy.so.1"
for schedule in async eager lazy seed:7; do
    expect 0 "$schedule" "$apps/two_drivers" 20
    expect 0 "$schedule" "$apps/client_linked"
done
# without a driver nothing can be tried, and that is said
export ZE_ENABLE_ALT_DRIVERS="$copies/missing.so.1"
for program in evict o1_evict_in_flight o8_short_timeout_ignored client_linked two_drivers hostmem threads client_ctypes.py evict.py; do
    expect 2 eager "$apps/$program"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
