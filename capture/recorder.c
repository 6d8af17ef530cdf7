/* SPDX-License-Identifier: MIT */
/* Starts the program, meets its processes and threads, drains their rings until the last has ended. */
#include "recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUSY_SLEEP_US 200
#define IDLE_SLEEP_US 2000

static volatile sig_atomic_t forward_signal;
static const int told[4] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};

static void on_signal(int number)
{
    forward_signal = number;
}

static int fail(zt_error *error, int status, const char *format, const char *what)
{
    error->status = status;
    snprintf(error->text, sizeof(error->text), format, what, strerror(errno));
    return status;
}

/* -------------------------------------------------------------------------------------------------------- environment */

static void set_path(const char *name, const char *folder, const char *file)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    setenv(name, path, 1);
}

/* The loader looks for its layers in that folder only: give it one where the validation layer is ours. */
static void shim_folder(const zc_recorder *r, const char *original)
{
    char shim[PATH_MAX], from[PATH_MAX * 2], to[PATH_MAX * 2];
    snprintf(shim, sizeof(shim), "%s/shim", r->folder);
    DIR *const dir = mkdir(shim, 0700) == 0 ? opendir(original) : NULL;
    if (dir == NULL)
        return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (strncmp(e->d_name, "libze", 5) != 0 || strncmp(e->d_name, "libze_validation_layer.so", 25) == 0)
            continue;
        snprintf(from, sizeof(from), "%s/%s", original, e->d_name);
        snprintf(to, sizeof(to), "%s/%s", shim, e->d_name);
        if (symlink(from, to) != 0)
            break;
    }
    closedir(dir);
    snprintf(from, sizeof(from), "%s/libzetrace-layer.so", r->options->library_folder);
    snprintf(to, sizeof(to), "%s/libze_validation_layer.so.1", shim);
    if (symlink(from, to) == 0)
        setenv("ZEL_LIBRARY_PATH", shim, 1);
}

static bool copy_file(const char *from, const char *to)
{
    char buffer[65536];
    const int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    ssize_t n = -1;
    while (in >= 0 && out >= 0 && (n = read(in, buffer, sizeof(buffer))) > 0)
        if (write(out, buffer, (size_t)n) != n) {
            n = -1;
            break;
        }
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return n == 0;
}

/* --attach=driver: one copy of the proxy for each real driver, since the loader tells libraries apart by file. */
static void proxy_drivers(const zc_recorder *r)
{
    const char *const given = getenv("ZE_ENABLE_ALT_DRIVERS");
    char list[PATH_MAX * 4], proxies[PATH_MAX * 4] = "", from[PATH_MAX];
    snprintf(list, sizeof(list), "%s", given && *given ? given : "libze_intel_gpu.so.1");
    setenv("ZETRACE_REAL_DRIVER", list, 1);
    snprintf(from, sizeof(from), "%s/libzetrace-proxy.so", r->options->library_folder);
    unsigned n = 0;
    for (char *save = NULL, *name = strtok_r(list, ",", &save); name != NULL; name = strtok_r(NULL, ",", &save), n++) {
        char to[PATH_MAX + 64];
        snprintf(to, sizeof(to), "%.3000s/libzetrace-proxy%u.so", r->folder, n);
        if (!copy_file(from, to))
            return;
        snprintf(proxies + strlen(proxies), sizeof(proxies) - strlen(proxies), "%s%s", n ? "," : "", to);
    }
    setenv("ZE_ENABLE_ALT_DRIVERS", proxies, 1);
    setenv("ZE_ENABLE_LOADER_DRIVER_DDI_PATH", "0", 1);
}

static void find_real_validation_layer(const char *folder)
{
    static const char *const places[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, sizeof(path), "%s/libze_validation_layer.so.1", folder ? folder : places[i]);
        if (access(path, R_OK) == 0) {
            setenv("ZETRACE_REAL_VALIDATION", path, 1);
            return;
        }
        if (folder)
            return;
    }
}

/* In the child: everything the layer and the driver learn from the environment. */
static void set_environment(const zc_recorder *r)
{
    const zc_record_options *const o = r->options;
    char text[PATH_MAX * 2];
    snprintf(text, sizeof(text), "%.4000s/socket", r->folder);
    setenv(ZC_ENV_SOCKET, text, 1);
    setenv(ZC_ENV_MEMORY, o->memory, 1);
    if (o->lossy)
        setenv(ZC_ENV_LOSSY, "1", 1);
    else
        unsetenv(ZC_ENV_LOSSY);
    if (o->backtrace != NULL)
        setenv(ZC_ENV_BACKTRACE, o->backtrace, 1);
    else
        unsetenv(ZC_ENV_BACKTRACE);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)(o->ring_bytes ? o->ring_bytes : ZC_DEFAULT_RING));
    setenv(ZC_ENV_RING, text, 1);
    if (strcmp(o->driver, "soft") == 0)
        set_path("ZE_ENABLE_ALT_DRIVERS", o->library_folder, "libze_soft.so.1");
    else if (strcmp(o->driver, "auto") != 0)
        setenv("ZE_ENABLE_ALT_DRIVERS", o->driver, 1);
    if (o->schedule != NULL)
        setenv("ZE_SOFT_SCHEDULE", o->schedule, 1);
    set_path(ZC_ENV_LAYER, o->library_folder, "libzetrace-layer.so");
    if (strcmp(o->attach, "driver") == 0) {
        proxy_drivers(r);
        return;
    }
    const char *const validation = getenv("ZE_ENABLE_VALIDATION_LAYER"), *const loader_folder = getenv("ZEL_LIBRARY_PATH");
    if (validation != NULL && strcmp(validation, "1") == 0)
        find_real_validation_layer(loader_folder && *loader_folder ? loader_folder : NULL);
    setenv("ZE_ENABLE_VALIDATION_LAYER", "1", 1);
    if (loader_folder != NULL && *loader_folder)
        shim_folder(r, loader_folder);
    const char *const preload = getenv("LD_PRELOAD");
    snprintf(text, sizeof(text), "%s%s%s/libzetrace-boot.so", preload ? preload : "", preload && *preload ? ":" : "",
             o->library_folder);
    setenv("LD_PRELOAD", text, 1);
}

/* ------------------------------------------------------------------------------------------------------------ meeting */

static bool open_socket(zc_recorder *r, zt_error *error)
{
    const char *const base = getenv("TMPDIR");
    snprintf(r->folder, sizeof(r->folder), "%.60s/zetrace.XXXXXX", base && *base && strlen(base) < 60 ? base : "/tmp");
    if (mkdtemp(r->folder) == NULL) {
        fail(error, ZT_E_IO, "a private folder for the recording (%s) could not be made: %s; set TMPDIR to a writable folder",
             r->folder);
        r->folder[0] = '\0';
        return false;
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/socket", r->folder);
    r->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (r->listener < 0 || bind(r->listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(r->listener, 4096) != 0) {
        fail(error, ZT_E_IO, "the socket %s could not be opened: %s", address.sun_path);
        return false;
    }
    return true;
}

static void remove_folder(const char *folder)
{
    DIR *const dir = opendir(folder);
    if (dir == NULL)
        return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        char path[PATH_MAX * 2];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (strcmp(e->d_name, "shim") == 0)
            remove_folder(path);
        else
            unlink(path);
    }
    closedir(dir);
    rmdir(folder);
}

/* The newest with that pid. It may have ended: its last messages are read after its death was seen. */
static zc_process *find_process(zc_recorder *r, int32_t pid)
{
    for (size_t i = r->n_processes; i > 0; i--)
        if (r->processes[i - 1]->system_pid == pid)
            return r->processes[i - 1];
    return NULL;
}

static void meet_process(zc_recorder *r, const zc_hello *hello, int32_t system_pid)
{
    if (hello->build_hash != zc_table_hash()) {
        fprintf(stderr, "zetrace: process %d has a capture layer of another version; it is not recorded\n", hello->pid);
        return;
    }
    zc_process *const before = find_process(r, system_pid);
    if (before != NULL && hello->again)
        return; /* the program had closed our socket */
    if (before != NULL)
        before->ended = true; /* exec: the program that had this pid is gone */
    zc_process *const p = zc_process_new(r, hello, system_pid);
    if (p != NULL && zc_grow(&r->processes, r->n_processes, &r->processes_room, sizeof(*r->processes)))
        r->processes[r->n_processes++] = p;
}

static void meet_thread(zc_recorder *r, const zc_new_ring *message, int32_t system_pid, int fd)
{
    zc_process *const p = find_process(r, system_pid);
    const char *why = "belongs to a process that did not say hello";
    zc_reader *reader = NULL;
    if (p != NULL)
        reader = zc_reader_new(fd, message->size, message->pid, message->tid, &why);
    else
        close(fd);
    if (reader != NULL && zc_grow(&p->readers, p->n_readers, &p->readers_room, sizeof(*p->readers)))
        p->readers[p->n_readers++] = reader;
    else
        fprintf(stderr, "zetrace: the ring of thread %d of process %d %s; its calls are not recorded\n", message->tid,
                message->pid, why);
}

/* @return false once the other side has closed. */
static bool receive(zc_recorder *r, const zc_connection *from)
{
    for (;;) {
        union {
            zc_hello hello;
            zc_new_ring ring;
        } message = {0};
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)];
        struct iovec iov = {&message, sizeof(message)};
        struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        const ssize_t n = recvmsg(from->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if (n == 0)
            return false;
        int fd = -1;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c != NULL; c = CMSG_NXTHDR(&header, c))
            if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len >= CMSG_LEN(sizeof(int)))
                memcpy(&fd, CMSG_DATA(c), sizeof(fd));
        const bool known = n >= (ssize_t)sizeof(uint64_t) * 2 && message.hello.magic == ZC_MAGIC && message.hello.abi == ZC_ABI;
        if (known && message.hello.kind == ZC_M_HELLO && n == sizeof(zc_hello)) {
            meet_process(r, &message.hello, from->pid > 0 ? from->pid : message.hello.pid);
            (void)!send(from->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        } else if (known && message.hello.kind == ZC_M_RING && n == sizeof(zc_new_ring) && fd >= 0) {
            meet_thread(r, &message.ring, from->pid > 0 ? from->pid : message.ring.pid, fd);
            fd = -1;
        }
        if (fd >= 0)
            close(fd);
    }
}

static void meet(zc_recorder *r)
{
    for (int c; (c = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
        struct ucred peer;
        socklen_t length = sizeof(peer);
        const bool ours = getsockopt(c, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
        if (ours && zc_grow(&r->connections, r->n_connections, &r->connections_room, sizeof(*r->connections)))
            r->connections[r->n_connections++] = (zc_connection){c, peer.pid};
        else
            close(c);
    }
    for (size_t i = 0; i < r->n_connections;) {
        if (receive(r, &r->connections[i])) {
            i++;
        } else {
            close(r->connections[i].fd);
            r->connections[i] = r->connections[--r->n_connections];
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------- running */

/* @return the child's pid; on failure -1 with the summary's status set to 126, 127 or 125. */
static pid_t launch(zc_recorder *r, const struct sigaction before[4], zt_error *error)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) {
        fail(error, ZT_E_IO, "%s: no pipe could be made: %s", r->options->argv[0]);
        return -1;
    }
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 4; i++) /* as this process was started with them: nohup ignores one */
            sigaction(told[i], &before[i], NULL);
        signal(SIGPIPE, SIG_DFL);
        signal(SIGXFSZ, SIG_DFL);
        set_environment(r);
        execvp(r->options->argv[0], r->options->argv);
        const int why = errno;
        if (write(report[1], &why, sizeof(why)) != sizeof(why))
            _exit(125);
        _exit(126);
    }
    close(report[1]);
    int why = 0;
    if (pid < 0) {
        fail(error, ZT_E_IO, "%s: no process could be made: %s", r->options->argv[0]);
    } else if (read(report[0], &why, sizeof(why)) == sizeof(why)) {
        errno = why;
        waitpid(pid, NULL, 0);
        r->summary->status = why == ENOENT ? 127 : 126;
        fail(error, ZT_E_IO, why == ENOENT ? "%s: the program was not found: %s" : "%s: the program cannot be run: %s",
             r->options->argv[0]);
        close(report[0]);
        return -1;
    }
    close(report[0]);
    return pid;
}

static bool has_ended(zc_process *p)
{
    if (p->ended)
        return true;
    struct pollfd fd = {p->pidfd, POLLIN, 0};
    return p->pidfd >= 0 ? poll(&fd, 1, 0) > 0 : kill(p->system_pid, 0) != 0 && errno == ESRCH;
}

static void set_status(zc_recorder *r, pid_t pid, int status)
{
    for (size_t i = 0; i < r->n_processes; i++) {
        zc_process *const p = r->processes[i];
        if (p->system_pid != pid || p->exited || p->signalled)
            continue;
        p->exited = WIFEXITED(status);
        p->signalled = WIFSIGNALED(status);
        p->status = p->exited ? WEXITSTATUS(status) : WTERMSIG(status);
    }
}

static void finish_ended(zc_recorder *r, zt_error *error)
{
    for (size_t i = 0; i < r->n_processes;) {
        zc_process *const p = r->processes[i];
        if (!p->ended) {
            i++;
            continue;
        }
        while (zc_process_pass(r, p))
            ;
        zc_process_finish(r, p);
        if (p->failed && error->status == 0)
            *error = p->error;
        free(p);
        memmove(r->processes + i, r->processes + i + 1, (r->n_processes - i - 1) * sizeof(*r->processes)); /* keeps their order */
        r->n_processes--;
    }
}

static void sleep_a_little(zc_recorder *r, bool busy, bool children)
{
    struct pollfd fds[1 + 16];
    nfds_t n = 0;
    fds[n++] = (struct pollfd){r->listener, POLLIN, 0};
    for (size_t i = 0; i < r->n_connections && n < 17; i++)
        fds[n++] = (struct pollfd){r->connections[i].fd, POLLIN, 0};
    (void)children;
    struct timespec t = {0, (busy ? BUSY_SLEEP_US : IDLE_SLEEP_US) * 1000L};
    ppoll(fds, n, &t, NULL);
}

static void run(zc_recorder *r, pid_t main_pid, zt_error *error)
{
    bool main_ended = false, busy = true;
    unsigned quiet = 0;
    while (!main_ended || r->n_processes > 0) {
        const int number = forward_signal;
        if (number != 0) {
            forward_signal = 0; /* before it is passed on: another may come meanwhile */
            if (!main_ended)
                kill(main_pid, number);
            for (size_t i = 0; main_ended && i < r->n_processes; i++)
                r->processes[i]->ended = true; /* the program is gone, others live on: what there is is written */
        }
        /* who has ended is asked before the last look at the sockets and rings: nothing can come after that */
        bool any_ended = false;
        for (size_t i = 0; i < r->n_processes; i++)
            any_ended |= r->processes[i]->ended = has_ended(r->processes[i]);
        int status;
        siginfo_t info = {0};
        bool reaped = false;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0)
            reaped = true;
        for (size_t i = 0; i < r->n_processes; i++)
            zc_process_look(r->processes[i]);
        meet(r);
        for (size_t i = 0; i < r->n_processes; i++)
            any_ended |= r->processes[i]->ended;
        if (reaped && waitpid(info.si_pid, &status, WNOHANG) == info.si_pid) {
            set_status(r, info.si_pid, status);
            for (size_t i = 0; i < r->n_processes; i++)
                if (r->processes[i]->system_pid == info.si_pid)
                    any_ended |= r->processes[i]->ended = true;
            if (info.si_pid == main_pid) {
                main_ended = true;
                r->summary->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            }
        }
        bool moved = false;
        for (size_t i = 0; i < r->n_processes; i++)
            moved |= zc_process_pass(r, r->processes[i]);
        if (any_ended)
            finish_ended(r, error);
        if (moved || reaped)
            quiet = 0;
        else
            quiet++;
        busy = quiet < 50;
        if (!reaped && (!main_ended || r->n_processes > 0))
            sleep_a_little(r, busy, true);
    }
}

/* The loader needs a driver, and a driver a device. */
static bool has_device(void)
{
    glob_t found = {0};
    const bool any = glob("/dev/dri/renderD*", 0, NULL, &found) == 0 || glob("/dev/accel/accel*", GLOB_APPEND, NULL, &found) == 0;
    globfree(&found);
    return any;
}

static void say_why_none(zc_recorder *r)
{
    zc_record_summary *const s = r->summary;
    if (s->calls > 0 || !s->launched)
        return;
    const bool no_driver = strcmp(r->options->driver, "auto") == 0 && getenv("ZE_ENABLE_ALT_DRIVERS") == NULL && !has_device();
    snprintf(s->why_none, sizeof(s->why_none),
             "no Level Zero call was seen, so no trace was written: %.100s made none, %sor it is statically linked, set-user-id, or "
             "clears its environment (LD_PRELOAD, ZE_ENABLE_VALIDATION_LAYER), or ended before its first call; 'zetrace doctor' looks closer",
             r->options->argv[0], no_driver ? "or found no driver, for there is no GPU here: --driver=soft gives it one for the CPU; " : "");
}

static bool output_free(const zc_record_options *o, zt_error *error)
{
    char name[4096], host[256] = "";
    struct stat st;
    const char *const slash = strrchr(o->argv[0], '/');
    gethostname(host, sizeof(host) - 1);
    if (!zc_expand_name(name, sizeof(name), o->output, 0, host, zc_rank(), slash ? slash + 1 : o->argv[0], o->round)) {
        error->status = ZT_E_USAGE;
        snprintf(error->text, sizeof(error->text), "%.300s: a file name may hold %%p, %%h, %%r, %%n, %%i and %%%%, nothing else with %%",
                 o->output);
        return false;
    }
    const char *const last = strrchr(name, '/');
    if (strlen(last ? last + 1 : name) + sizeof(".12345.partial") > 255) {
        error->status = ZT_E_USAGE;
        snprintf(error->text, sizeof(error->text), "%.60s...: is %zu characters long, too long for a file name; give a shorter one with -o",
                 last ? last + 1 : name, strlen(last ? last + 1 : name));
        return false;
    }
    if (strstr(o->output, "%p") == NULL && !o->overwrite && lstat(name, &st) == 0) {
        error->status = ZT_E_EXISTS;
        snprintf(error->text, sizeof(error->text), "%.300s exists and is not overwritten; give another name with -o, or -f", name);
        return false;
    }
    if (!zt_may_replace(name)) {
        error->status = ZT_E_USAGE;
        snprintf(error->text, sizeof(error->text), "%.300s is no regular file, which a trace could replace; give another name with -o", name);
        return false;
    }
    char folder[4096];
    snprintf(folder, sizeof(folder), "%s", name);
    char *const end = strrchr(folder, '/');
    if (end != NULL)
        end[end == folder] = '\0';
    if (access(end ? folder : ".", W_OK | X_OK) != 0) {
        fail(error, ZT_E_IO, "no trace can be written in the folder %.200s: %s; choose another with -o", end ? folder : ".");
        return false;
    }
    return true;
}

int zc_record_program(const zc_record_options *options, zc_record_summary *summary, zt_error *error)
{
    zc_recorder r = {.options = options, .summary = summary, .listener = -1};
    *summary = (zc_record_summary){.status = 125};
    *error = (zt_error){0};
    if (!output_free(options, error))
        return error->status;
    gethostname(r.hostname, sizeof(r.hostname) - 1);
    r.calibrate_ns = zc_mono_now();
    r.calibrate_ticks = zc_ticks_now();
    if (!open_socket(&r, error))
        goto out;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const struct sigaction forward = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    struct sigaction before[4];
    for (int i = 0; i < 4; i++)
        sigaction(told[i], told[i] == SIGTERM || told[i] == SIGHUP ? &forward : &ignore, &before[i]);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of a write, not the recorder's death */
    const pid_t pid = launch(&r, before, error);
    if (pid > 0) {
        summary->launched = true;
        run(&r, pid, error);
        say_why_none(&r);
    }
    for (int i = 0; i < 4; i++)
        sigaction(told[i], &before[i], NULL);
out:
    for (size_t i = 0; i < r.n_connections; i++)
        close(r.connections[i].fd);
    for (size_t i = 0; i < r.n_names; i++)
        free(r.names[i]);
    if (r.listener >= 0)
        close(r.listener);
    if (r.folder[0] != '\0')
        remove_folder(r.folder);
    free(r.connections);
    free(r.processes);
    free(r.names);
    return error->status;
}
