/* SPDX-License-Identifier: MIT */
/* 'zetrace diff --replay': the other trace is a recording of the replay of the first. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "diff_report.h"

extern char **environ;

static bool recorded_on_soft(const zt_session *session)
{
    for (uint32_t i = 0; i < session->n_libraries; i++)
        if (strstr(session->libraries[i].path, "/libze_soft") != NULL)
            return true;
    return false;
}

bool zt_diff_replay_record(const char *path, const zt_trace *trace, zt_diff_replayed *made)
{
    const zt_session *const session = zt_trace_session(trace);
    char self[4096], driver[32], memory[64];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    const char *const folder = getenv("TMPDIR");
    *made = (zt_diff_replayed){0};
    if (n <= 0) {
        zt_complain("diff --replay: the zetrace program is not to be found: %s", strerror(errno));
        return false;
    }
    self[n] = '\0';
    snprintf(made->folder, sizeof(made->folder), "%.1000s/zetrace-replay.XXXXXX", folder && folder[0] ? folder : "/tmp");
    if (mkdtemp(made->folder) == NULL) {
        zt_complain("diff --replay: no folder for the recording can be made in %s: %s", folder && folder[0] ? folder : "/tmp", strerror(errno));
        made->folder[0] = '\0';
        return false;
    }
    snprintf(made->path, sizeof(made->path), "%s/replay.zetrace", made->folder);
    snprintf(driver, sizeof(driver), "--driver=%s", recorded_on_soft(session) ? "soft" : "auto");
    const char *const kept = session->memory;
    snprintf(memory, sizeof(memory), "--memory=%s", strcmp(kept, "none") == 0 || strcmp(kept, "full") == 0 ? kept : "inputs");
    char *argv[] = {self, (char[]){"record"}, (char[]){"-q"}, (char[]){"-f"}, (char[]){"-o"}, made->path, driver, memory, (char[]){"--attach=driver"},
                    (char[]){"--"}, self, (char[]){"replay"}, (char[]){"--verify=none"}, (char *)(uintptr_t)path, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0); /* 'zetrace replay' says it again */
    const int error = posix_spawn(&pid, self, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (error == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (error == 0 && WIFEXITED(status) && WEXITSTATUS(status) <= ZT_EXIT_DIFFERS && access(made->path, R_OK) == 0)
        return true;
    zt_complain("diff --replay: %s can't be replayed and recorded here; 'zetrace replay %s' tells more", path, path);
    return false;
}

void zt_diff_replay_remove(const zt_diff_replayed *made)
{
    char other[sizeof(made->path) + 16];
    if (made->folder[0] == '\0')
        return;
    unlink(made->path);
    snprintf(other, sizeof(other), "%s.partial", made->path);
    unlink(other);
    rmdir(made->folder);
}
