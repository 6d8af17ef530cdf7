/* SPDX-License-Identifier: MIT */
#include "leftovers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4 };
static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
static char paths[MOST][4300];
static volatile sig_atomic_t child; /* a process, a group if negative, or 0 */
static volatile sig_atomic_t in_use[MOST];

static void clean_up(int sig)
{
    if (child != 0)
        kill(child, SIGTERM);
    for (int i = MOST; i-- > 0;)
        if (in_use[i] && unlink(paths[i]) != 0)
            rmdir(paths[i]);
    signal(sig, SIG_DFL);
    raise(sig);
}

static void watch(void)
{
    static bool watching;
    for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]) && !watching; i++) {
        struct sigaction old;
        const struct sigaction mine = {.sa_handler = clean_up, .sa_flags = SA_RESTART};
        if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) /* one that nohup ignores stays so */
            sigaction(ending[i], &mine, NULL);
    }
    watching = true;
}

void zt_leftover_add(const char *path)
{
    watch();
    for (int i = 0; i < MOST; i++) {
        if (in_use[i])
            continue;
        if ((size_t)snprintf(paths[i], sizeof(paths[i]), "%s", path) < sizeof(paths[i]))
            in_use[i] = 1;
        return;
    }
}

void zt_leftover_forget(const char *path)
{
    for (int i = 0; i < MOST; i++)
        if (in_use[i] && strcmp(paths[i], path) == 0)
            in_use[i] = 0;
}

static bool ends_with(pid_t parent)
{
    return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent;
}

/* Signals are held back meanwhile: the child is there and known, or it is not. */
static pid_t forked(sigset_t *before)
{
    sigset_t held;
    sigemptyset(&held);
    for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
        sigaddset(&held, ending[i]);
    sigprocmask(SIG_BLOCK, &held, before);
    return fork();
}

static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void become(const char *command, const sigset_t *before, bool asks, bool (*prepare)(void *ctx), void *ctx)
{
    const int nothing = asks ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
    for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
        struct sigaction now;
        if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler == clean_up)
            signal(ending[i], SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, before, NULL);
    if (prepare == NULL || prepare(ctx))
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/*
 * A process of its own, which sees to what is left if the command's own process is gone: nobody is told of SIGKILL but its children. It leads
 * the group.
 */
static int supervise(const char *command, const sigset_t *before, bool asks, bool own_group, bool (*prepare)(void *ctx), void *ctx)
{
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        if (ends_with(parent))
            become(command, before, asks, prepare, ctx);
        _exit(127);
    }
    child = pid < 0 ? 0 : own_group ? -parent : pid;
    sigprocmask(SIG_SETMASK, before, NULL);
    return pid < 0 ? -1 : wait_for(pid);
}

int zt_run_shell(const char *command, bool asks, bool (*prepare)(void *ctx), void *ctx)
{
    const bool own_group = !asks || !isatty(STDIN_FILENO);
    const pid_t parent = getpid();
    sigset_t before;
    watch();
    fflush(NULL);
    const pid_t pid = forked(&before);
    if (pid == 0) {
        if (own_group)
            setpgid(0, 0);
        const int status = ends_with(parent) ? supervise(command, &before, asks, own_group, prepare, ctx) : -1;
        if (status < 0)
            raise(SIGKILL);
        _exit(status);
    }
    if (pid > 0 && own_group)
        setpgid(pid, pid);
    child = pid < 0 ? 0 : own_group ? -pid : pid;
    sigprocmask(SIG_SETMASK, &before, NULL);
    const int status = pid > 0 ? wait_for(pid) : -1;
    if (pid > 0 && own_group)
        kill(-pid, SIGTERM); /* what the command has started and not waited for */
    child = 0;
    return status == 128 + SIGKILL ? -1 : status;
}
