/* SPDX-License-Identifier: MIT */
/* Facts about a recorded process, read from /proc while it lives. What cannot be read stays empty. */
#include "recorder.h"

#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char *const kept[] = {"ZE_*", "ZET_*", "ZES_*", "ZEL_*", "ZEX_*", "SYCL_*", "UR_*", "ONEAPI_*", "NEOReadDebugKeys",
                                   "ZETRACE_MEMORY", "ZETRACE_RING", "OCL_ICD_VENDORS", "CCL_ZE_*", "EnableDirectSubmission"};

const char *zc_rank(void)
{
    static const char *const names[] = {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *const value = getenv(names[i]);
        if (value != NULL && *value && strspn(value, "0123456789") == strlen(value))
            return value;
    }
    return "0";
}

char *zc_slurp(const char *path, size_t *length)
{
    char *bytes = NULL;
    size_t room = 0, n = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    for (;;) {
        if (n + 4096 > room) {
            char *const grown = room < (64u << 20) ? realloc(bytes, room = room ? room * 2 : 16384) : NULL;
            if (grown == NULL)
                break;
            bytes = grown;
        }
        const ssize_t got = read(fd, bytes + n, room - n - 1);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    close(fd);
    if (bytes != NULL)
        bytes[n] = '\0';
    *length = n;
    return bytes;
}

static char *copy(const char *text)
{
    return strdup(text ? text : "");
}

static void add_pair(zt_pair **list, uint32_t *n, const char *name, const char *value)
{
    zt_pair *const grown = realloc(*list, (*n + 1) * sizeof(**list));
    if (grown == NULL)
        return;
    *list = grown;
    grown[(*n)++] = (zt_pair){copy(name), copy(value)};
}

static bool wanted(const zc_record_options *o, const char *name)
{
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (fnmatch(kept[i], name, 0) == 0)
            return true;
    for (const char *const *glob = o->env; glob != NULL && *glob != NULL; glob++)
        if (fnmatch(*glob, name, 0) == 0)
            return true;
    return false;
}

static void read_environment(const zc_record_options *o, zt_session *s, const char *folder)
{
    char path[64];
    size_t n = 0;
    snprintf(path, sizeof(path), "%s/environ", folder);
    char *const bytes = zc_slurp(path, &n);
    for (char *p = bytes; p != NULL && p < bytes + n; p += strlen(p) + 1) {
        char *const equals = strchr(p, '=');
        if (equals == NULL)
            continue;
        *equals = '\0';
        if (wanted(o, p))
            add_pair(&s->environment, &s->n_environment, p, equals + 1);
        *equals = '=';
    }
    free(bytes);
}

static void read_arguments(zt_session *s, const char *folder)
{
    char path[64];
    size_t n = 0;
    snprintf(path, sizeof(path), "%s/cmdline", folder);
    char *const bytes = zc_slurp(path, &n);
    for (char *p = bytes; p != NULL && p < bytes + n; p += strlen(p) + 1) {
        char **const grown = realloc(s->argv, (s->argc + 1) * sizeof(*grown));
        if (grown == NULL)
            break;
        s->argv = grown;
        s->argv[s->argc++] = copy(p);
    }
    free(bytes);
}

/* The GNU build id of an ELF file, in hex. */
static char *build_id(const char *path)
{
    char hex[2 * 64 + 1] = "";
    Elf64_Ehdr header;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return copy("");
    if (pread(fd, &header, sizeof(header), 0) == sizeof(header) && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
        header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_phentsize == sizeof(Elf64_Phdr)) {
        for (unsigned i = 0; i < header.e_phnum && i < 64 && hex[0] == '\0'; i++) {
            Elf64_Phdr segment;
            uint8_t notes[4096];
            if (pread(fd, &segment, sizeof(segment), (off_t)(header.e_phoff + i * sizeof(segment))) != sizeof(segment) ||
                segment.p_type != PT_NOTE || segment.p_filesz > sizeof(notes))
                continue;
            const ssize_t n = pread(fd, notes, segment.p_filesz, (off_t)segment.p_offset);
            for (ssize_t at = 0; at + (ssize_t)sizeof(Elf64_Nhdr) <= n;) {
                Elf64_Nhdr note;
                memcpy(&note, notes + at, sizeof(note));
                const uint64_t name = (note.n_namesz + 3ull) & ~3ull, desc = (note.n_descsz + 3ull) & ~3ull;
                if (at + (int64_t)(sizeof(note) + name + desc) > n)
                    break;
                if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz <= 64) {
                    const uint8_t *const id = notes + at + sizeof(note) + name;
                    for (unsigned k = 0; k < note.n_descsz; k++)
                        snprintf(hex + 2 * k, 3, "%02x", id[k]);
                    break;
                }
                at += (ssize_t)(sizeof(note) + name + desc);
            }
        }
    }
    close(fd);
    return copy(hex);
}

static bool of_interest(const char *path, const char *program)
{
    const char *const slash = strrchr(path, '/');
    const char *const name = slash ? slash + 1 : path;
    return strncmp(name, "libze", 5) == 0 || strcmp(path, program) == 0;
}

/* Its file may be gone before its first backtrace is looked at: while it lives, this is the one that runs, whatever it is called by then. */
static void keep_program(const zc_process *p, zc_module *module)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/exe", p->system_pid);
    if (module->fd < 0)
        module->fd = open(path, O_RDONLY | O_CLOEXEC);
}

/* @return false if the process cannot be asked any more. */
static bool read_libraries(const zc_record_options *o, zt_session *s, zc_process *p)
{
    const bool there = zc_modules_read(p);
    for (size_t m = 0; m < p->frames.n_modules; m++) {
        zc_module *const module = &p->frames.modules[m];
        if (o->backtrace != NULL && strcmp(module->path, s->program) == 0)
            keep_program(p, module);
        bool wanted_here = of_interest(module->path, s->program) || (o->backtrace != NULL && module->code);
        for (uint32_t i = 0; i < s->n_libraries; i++)
            wanted_here &= strcmp(s->libraries[i].path, module->path) != 0;
        if (!wanted_here)
            continue;
        zt_library *const grown = realloc(s->libraries, (s->n_libraries + 1) * sizeof(*grown));
        if (grown == NULL)
            break;
        s->libraries = grown;
        s->libraries[s->n_libraries++] = (zt_library){.path = copy(module->path), .build_id = build_id(module->path),
                                                      .base = module->base, .size = module->end - module->base};
    }
    return there;
}

static void read_settings(const zc_record_options *o, zt_session *s)
{
    char number[32];
    add_pair(&s->settings, &s->n_settings, "driver", o->driver);
    add_pair(&s->settings, &s->n_settings, "schedule", o->schedule ? o->schedule : "");
    add_pair(&s->settings, &s->n_settings, "lossy", o->lossy ? "yes" : "no");
    snprintf(number, sizeof(number), "%llu", (unsigned long long)(o->ring_bytes ? o->ring_bytes : ZC_DEFAULT_RING));
    add_pair(&s->settings, &s->n_settings, "ring", number);
    if (o->backtrace != NULL)
        add_pair(&s->settings, &s->n_settings, "backtrace", o->backtrace);
}

void zc_session_read(zc_recorder *recorder, zc_process *p)
{
    char folder[64], path[96], program[4096] = "";
    zt_session fresh = {.pid = p->pid, .parent_pid = p->parent_pid, .start_wall_ns = p->real0, .start_monotonic_ns = p->mono0};
    snprintf(folder, sizeof(folder), "/proc/%d", p->system_pid);
    snprintf(path, sizeof(path), "%s/exe", folder);
    const ssize_t n = readlink(path, program, sizeof(program) - 1);
    if (n <= 0 && p->session.program != NULL)
        return; /* it has ended in between: what was read at the first meeting stands */
    if (n > 0)
        program[n] = '\0';
    else
        snprintf(program, sizeof(program), "%s", recorder->options->argv[0]);
    if (getrandom(fresh.uuid, sizeof(fresh.uuid), 0) != sizeof(fresh.uuid))
        memcpy(fresh.uuid, &fresh.start_wall_ns, 8);
    fresh.program = copy(program);
    fresh.hostname = copy(recorder->hostname);
    fresh.rank = copy(zc_rank());
    fresh.version = copy(ZETRACE_VERSION);
    fresh.order = copy(p->counter ? "counter" : "tsc");
    fresh.attach = copy(recorder->options->attach);
    fresh.memory = copy(recorder->options->memory);
    read_settings(recorder->options, &fresh);
    read_arguments(&fresh, folder);
    read_environment(recorder->options, &fresh, folder);
    if (!read_libraries(recorder->options, &fresh, p) && p->session.program != NULL) {
        zt_session_free(&fresh); /* it has ended while this was read */
        return;
    }
    zt_session_free(&p->session);
    p->session = fresh;
}
