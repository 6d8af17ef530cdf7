/* SPDX-License-Identifier: MIT */
/* A replay runs in a process of its own: the driver may crash or hang there, and its address space is fresh for each
 * round. */
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLACK_NS 5000000000ull /* beyond the time a wait may take, before a call counts as hanging */

void zr_options_default(zr_options *options)
{
    *options = (zr_options){.device = -1, .timeout_ns = 10000000000ull, .loop = 1};
}

const char *zr_what_name(int what)
{
    static const char *const names[] = {"result", "memory", "output", "fault"};
    return what >= 0 && what < 4 ? names[what] : "?";
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void child(zr_run *run, int done, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it was gone before that */
    pthread_mutex_init(&run->mutex, NULL);
    zr_run_plan(run);
    atomic_store(&run->shared->finished, 1);
    close(done);
    fflush(NULL);
    _exit(0); /* the driver's own end is not part of the replay */
}

/* Waits for the child. @return false if it had to be killed because a call did not come back. */
static bool watch(zr_shared *shared, int done, pid_t pid, uint64_t limit)
{
    uint64_t seen = 0, since = now_ns();
    for (;;) {
        struct pollfd p = {.fd = done, .events = POLLIN};
        const int n = poll(&p, 1, 100);
        if (n > 0 || (n < 0 && errno != EINTR))
            return true;
        const uint64_t progress = atomic_load(&shared->progress);
        if (progress != seen) {
            seen = progress;
            since = now_ns();
        } else if (now_ns() - since > limit) {
            kill(pid, SIGKILL);
            return false;
        }
    }
}

static void ended_early(zr_plan *plan, zr_shared *shared, zr_report *report, int status, bool hung, uint64_t limit)
{
    const uint32_t index = (uint32_t)atomic_load(&shared->current);
    const zr_call *const call =
        index < plan->n_calls && atomic_load(&shared->progress) > 0 ? &plan->calls[index] : NULL;
    if (atomic_load(&shared->crashing) && !hung && call != NULL) {
        report->verdict = report->mismatches ? ZR_DIFFERS : ZR_SAME;
        report->failed_call = call->number;
        snprintf(report->failed_function, sizeof(report->failed_function), "%s", call->func->name);
        snprintf(report->failed_result, sizeof(report->failed_result), "(never returned)");
        return;
    }
    char how[96];
    if (hung)
        snprintf(how, sizeof(how), "within %.3g s", (double)limit / 1e9);
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof(how), "the driver ended the replay with signal %d, %s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof(how), "the driver ended the replay with exit status %d", WEXITSTATUS(status));
    if (call == NULL) {
        report->verdict = ZR_CANNOT;
        snprintf(report->message, sizeof(report->message), "the driver %s could not be loaded: %s", report->driver,
                 how);
        return;
    }
    report->verdict = ZR_DIFFERS;
    snprintf(report->message, sizeof(report->message), "call #%llu %s did not return%s%s",
             (unsigned long long)call->number, call->func->name, hung ? " " : ": ", how);
    if (report->mismatches++ == 0) {
        report->first = (zr_mismatch){.call = call->number, .what = ZR_W_FAULT};
        snprintf(report->first.function, sizeof(report->first.function), "%s", call->func->name);
        snprintf(report->first.recorded, sizeof(report->first.recorded), "%s",
                 call->flags & ZR_RETURNED ? zt_result_name(call->result) : "(never returned)");
        snprintf(report->first.replayed, sizeof(report->first.replayed), "(did not return)");
    }
}

static bool one_round(zr_plan *plan, const zr_options *options, const zr_target *target, zr_shared *shared,
                      zr_report *report)
{
    int ends[2];
    memset(shared, 0, sizeof(*shared));
    shared->report = *report;
    fflush(NULL);
    if (pipe(ends) != 0) {
        report->verdict = ZR_CANNOT;
        snprintf(report->message, sizeof(report->message), "no pipe to a child process: %s", strerror(errno));
        return false;
    }
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(ends[0]);
        zr_run run = {.plan = plan, .options = options, .shared = shared, .report = &shared->report, .target = *target};
        child(&run, ends[1], parent);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        report->verdict = ZR_CANNOT;
        snprintf(report->message, sizeof(report->message), "no child process: %s", strerror(errno));
        return false;
    }
    const uint64_t limit = options->timeout_ns + SLACK_NS;
    const bool hung = !watch(shared, ends[0], pid, limit);
    close(ends[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    *report = shared->report;
    if (!atomic_load(&shared->finished))
        ended_early(plan, shared, report, status, hung, limit);
    return true;
}

int zr_replay(zr_plan *plan, const zr_options *options, zr_report *report)
{
    *report = (zr_report){.callbacks = plan->callbacks, .replaced = plan->replaced};
    zr_target target = {0};
    if (plan->first_pending != NULL) {
        report->pending_call = plan->first_pending->number;
        snprintf(report->pending_function, sizeof(report->pending_function), "%s", plan->first_pending->func->name);
    }
    const bool chosen = zr_target_choose(&target, plan, options, report->message, sizeof(report->message));
    snprintf(report->driver, sizeof(report->driver), "%s", target.path);
    snprintf(report->driver_why, sizeof(report->driver_why), "%s", target.why);
    if (!chosen)
        return report->verdict = ZR_CANNOT;
    if (options->dry_run) {
        for (size_t i = 0; i < plan->n_calls; i++) {
            const zr_call *const call = &plan->calls[i];
            const bool made = !(call->flags & ZR_SKIP) && (call->flags & ZR_RETURNED) &&
                              (options->to == 0 || call->number <= options->to);
            report->calls += made;
            report->not_made += !made;
            if (made && call->why_not != NULL && !(call->flags & (ZR_FAILED | ZR_QUIET)) &&
                report->verdict == ZR_SAME) {
                report->verdict = ZR_CANNOT;
                snprintf(report->message, sizeof(report->message), "call #%llu %s cannot be made again: %s",
                         (unsigned long long)call->number, call->func->name, call->why_not);
            }
        }
        return report->verdict;
    }
    zr_shared *const shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        snprintf(report->message, sizeof(report->message), "no shared memory: %s", strerror(errno));
        return report->verdict = ZR_CANNOT;
    }
    const zr_report blank = *report;
    const uint64_t rounds = options->loop ? options->loop : 1;
    for (uint64_t round = 1; round <= rounds && report->verdict == ZR_SAME; round++) {
        *report = blank;
        if (!one_round(plan, options, &target, shared, report))
            break;
        report->rounds = round;
    }
    munmap(shared, sizeof(*shared));
    return report->verdict;
}
