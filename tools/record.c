/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"

enum { OUTPUT = 1, FORCE, DRIVER, SCHEDULE, MEMORY, ATTACH, LOSSY, RING, LEVEL, ENVIRONMENT, BACKTRACE, REPEAT, KEEP, QUIET };

static const zt_option options[] = {
    {OUTPUT, 'o', "output", "FILE", "write the trace to FILE (default %n.zetrace); FILE may hold %p process, %h host, %r MPI rank, %n program, %i run of --repeat"},
    {FORCE, 'f', "force", NULL, "overwrite an existing file"},
    {DRIVER, 0, "driver", "auto|soft|PATH", "driver the program gets: as it is, libze_soft, or a library"},
    {SCHEDULE, 0, "schedule", "SCHEDULE", "schedule of libze_soft: async, eager, lazy, seed:N, script:FILE, null"},
    {MEMORY, 0, "memory", "none|inputs|full", "contents to keep: none, what the device reads and hashes of what the host reads back (default), or the bytes of both"},
    {BACKTRACE, 0, "backtrace", "GLOB", "keep where in the program functions of that name are called; may be given several times, or several with commas"},
    {REPEAT, 0, "repeat", "N", "run the program up to N times, until a run fails"},
    {KEEP, 0, "keep", "failing|all", "with --repeat: the trace of the run that fails and of the last good one (default), or of all N runs"},
    {ATTACH, 0, "attach", "layer|driver", "sit in the loader's layer slot (default), or be its driver"},
    {LOSSY, 0, "lossy", NULL, "drop and count calls rather than wait for a full ring"},
    {RING, 0, "ring", "BYTES", "shared memory for each thread (default 4Mi)"},
    {LEVEL, 0, "level", "1..9", "compression, fast to small (default 3)"},
    {ENVIRONMENT, 0, "env", "GLOB", "keep these environment variables too (ZE_*, SYCL_* and the like are kept)"},
    {QUIET, 'q', "quiet", NULL, "no summary at the end"},
    {0}};

static const char more[] =
    "PROGRAM runs as it would without zetrace, each of its processes that calls Level Zero gets a trace.\n"
    "Exit status: the program's own (128 + N if signal N ended it); 125 if zetrace failed, 126 if the program "
    "cannot be run, 127 if it is not found.\n"
    "Traces hold contents of memory and are readable by their owner only.\n";

static void tell(const zc_record_summary *s, const char *backtrace)
{
    if (s->calls == 0) {
        zt_complain("%s", s->why_none);
        return;
    }
    zt_complain("%s, %s, %s, %llu bytes (%.1f a call), %llu dropped%s: %s%s", zt_count(s->calls, "call").text,
                zt_count(s->threads, "thread").text, zt_count(s->processes, "process").text, (unsigned long long)s->bytes, (double)s->bytes / (double)s->calls, (unsigned long long)s->dropped,
                s->never_returned ? ", some never returned" : "", s->file, s->processes > 1 ? " and more" : "");
    if (backtrace != NULL && s->traced == 0)
        zt_complain("no call of a function that --backtrace=%s names was seen", backtrace);
}

/* `name` with `what` put in front of its ending. @return whether it fits. */
static bool put_in(char *out, size_t size, const char *name, const char *what)
{
    const char *const dot = strrchr(name, '.');
    const bool ends = dot != NULL && strchr(dot, '/') == NULL && dot != name && dot[-1] != '/';
    const int stem = (int)(ends ? dot - name : (ptrdiff_t)strlen(name));
    return (size_t)snprintf(out, size, "%.*s%s%s", stem, name, what, name + stem) < size;
}

/* Gives a trace of a good run its name. @return false after a complaint. */
static bool rename_good(char **file, bool overwrite)
{
    for (unsigned n = 1; n < 1000; n++) {
        char good[4096], number[32] = ".good";
        if (n > 1)
            snprintf(number, sizeof(number), ".good.%u", n);
        if (!put_in(good, sizeof(good), *file, number))
            break;
        /* link, unlike rename, refuses to replace what is there; some file systems know no links */
        if (!overwrite && link(*file, good) == 0)
            unlink(*file);
        else if (!overwrite && (errno == EEXIST || access(good, F_OK) == 0))
            continue;
        else if (rename(*file, good) != 0)
            break;
        char *const copy = strdup(good);
        if (copy == NULL)
            break;
        free(*file);
        *file = copy;
        return true;
    }
    zt_complain("%s: the trace of a good run could not be renamed: %s", *file, strerror(errno));
    return false;
}

/* The newest good run takes the place of the one before, `kept`. */
static void keep_good(zc_record_summary *kept, zc_record_summary *run, const zc_record_options *o)
{
    for (size_t i = 0; i < kept->n_files; i++)
        unlink(kept->files[i]);
    zc_summary_free(kept);
    for (size_t i = 0; strstr(o->output, "%i") == NULL && i < run->n_files; i++)
        if (!rename_good(&run->files[i], o->overwrite))
            break;
    if (run->n_files > 0)
        snprintf(run->file, sizeof(run->file), "%s", run->files[0]);
    *kept = *run;
}

/* @return what `zetrace record` exits with. */
static int record_runs(zc_record_options *o, unsigned runs, bool keep_all, bool quiet)
{
    zc_record_summary run, good = {0};
    unsigned failed = 0, first_failed = 0;
    for (o->round = 1;; o->round++) {
        zt_error error = {0};
        const int status = zc_record_program(o, &run, &error);
        if (status != ZT_OK) {
            if (run.launched && !quiet)
                tell(&run, o->backtrace);
            zt_complain("%s", error.text);
            zc_summary_free(&good);
            zc_summary_free(&run);
            return run.launched ? ZT_EXIT_CANNOT : run.status;
        }
        if (run.status != 0 && failed++ == 0)
            first_failed = o->round;
        if (run.status == 0 && !keep_all && runs > 1)
            keep_good(&good, &run, o);
        if (o->round == runs || (failed && !keep_all))
            break;
        if (keep_all || run.status != 0)
            zc_summary_free(&run);
    }
    const bool is_good = run.status == 0 && !keep_all && runs > 1; /* `good` has its files */
    if (!quiet)
        tell(&run, o->backtrace);
    if (!quiet && runs > 1 && failed == 0)
        zt_complain("%s, none failed", zt_count(o->round, "run").text);
    else if (!quiet && runs > 1 && keep_all)
        zt_complain("%s, %u failed, run %u first", zt_count(o->round, "run").text, failed, first_failed);
    else if (!quiet && runs > 1)
        zt_complain("run %u of %u failed with status %d%s%s", o->round, runs, run.status, good.n_files ? "; the good run before it: " : "",
                    good.n_files ? good.files[0] : "");
    if (!is_good)
        zc_summary_free(&run);
    zc_summary_free(&good);
    return run.status;
}

/* Adds globs to `list`. @return 0, or the status of a usage error. */
static int add_backtrace(char *list, size_t size, const char *globs)
{
    for (const char *at = globs; *at != '\0';) {
        const size_t n = strcspn(at, ","), have = strlen(list);
        char glob[128];
        bool match = false;
        if (n >= sizeof(glob) || have + n + 2 > size)
            return zt_usage_error(&zt_command_record, "record: --backtrace was given more than fits; leave out what you can");
        memcpy(glob, at, n);
        glob[n] = '\0';
        for (unsigned i = 0; i < zt_n_funcs && !match; i++)
            match = zt_glob(glob, zt_funcs[i].name);
        if (!match)
            return zt_usage_error(&zt_command_record, "record: --backtrace=%s matches no Level Zero function", glob);
        snprintf(list + have, size - have, "%s%s", have ? "," : "", glob);
        at += n + (at[n] == ',');
    }
    return 0;
}

static int run_record(int argc, char **argv)
{
    zt_parser parser;
    const char *kept[65] = {NULL};
    size_t n_kept = 0;
    char backtrace[4096] = "";
    bool quiet = false, keep_all = false;
    uint64_t runs = 0; /* 0: no --repeat */
    const char *keep = NULL;
    uint64_t level = 0;
    struct stat st;
    zc_record_options o = {.output = "%n.zetrace", .driver = "auto", .memory = "inputs", .attach = "layer",
                           .env = kept, .library_folder = zt_library_folder(), .round = 1};
    zt_parser_init(&parser, &zt_command_record, argc, argv);
    for (int option; (option = zt_option_next(&parser)) != 0;) {
        switch (option) {
        case OUTPUT:
            o.output = parser.value;
            break;
        case FORCE:
            o.overwrite = true;
            break;
        case DRIVER:
            o.driver = parser.value;
            break;
        case SCHEDULE:
            o.schedule = parser.value;
            break;
        case MEMORY:
            o.memory = parser.value;
            break;
        case ATTACH:
            o.attach = parser.value;
            break;
        case BACKTRACE:
            if (add_backtrace(backtrace, sizeof(backtrace), parser.value) != 0)
                return ZT_EXIT_CANNOT;
            o.backtrace = backtrace;
            break;
        case REPEAT:
            if (!zt_parse_number(parser.value, &runs) || runs < 1 || runs > 1000000)
                return zt_usage_error(&zt_command_record, "record: --repeat wants a number of runs from 1 to 1M, but was given '%s'", parser.value);
            break;
        case KEEP:
            keep = parser.value;
            keep_all = strcmp(keep, "all") == 0;
            break;
        case LOSSY:
            o.lossy = true;
            break;
        case RING:
            if (!zt_parse_number(parser.value, &o.ring_bytes) || o.ring_bytes < 65536 || o.ring_bytes > (1u << 30))
                return zt_usage_error(&zt_command_record, "record: --ring wants a size from 64Ki to 1Gi, but was given '%s'", parser.value);
            while (o.ring_bytes & (o.ring_bytes - 1))
                o.ring_bytes += o.ring_bytes & -o.ring_bytes; /* the next power of two */
            break;
        case LEVEL:
            if (!zt_parse_number(parser.value, &level) || level < 1 || level > 9)
                return zt_usage_error(&zt_command_record, "record: --level wants a number from 1 to 9, but was given '%s'", parser.value);
            o.level = (int)level;
            break;
        case ENVIRONMENT:
            if (n_kept == 64)
                return zt_usage_error(&zt_command_record, "record: --env may be given 64 times, not more");
            kept[n_kept++] = parser.value;
            break;
        case QUIET:
            quiet = true;
            break;
        case ZT_OPTION_HELP:
            return zt_finish_output(ZT_EXIT_OK);
        default:
            return ZT_EXIT_CANNOT;
        }
    }
    if (parser.at >= argc)
        return zt_usage_error(&zt_command_record, "record wants a program to run, but none was given; write it behind '--'");
    if (keep != NULL && runs == 0)
        return zt_usage_error(&zt_command_record, "record: --keep=%s says which runs of --repeat to keep, but --repeat was not given", keep);
    o.argv = argv + parser.at;
    char numbered[4096];
    if (keep_all && strstr(o.output, "%i") == NULL) {
        if (!put_in(numbered, sizeof(numbered), o.output, ".%i"))
            return zt_usage_error(&zt_command_record, "record: the file name is too long; give a shorter one with -o");
        o.output = numbered;
    }
    if (o.schedule != NULL && strcmp(o.driver, "soft") != 0 && strcmp(o.driver, "auto") != 0)
        zt_complain("--schedule speaks to libze_soft; the driver %s may not listen", o.driver);
    if (strcmp(o.driver, "auto") != 0 && strcmp(o.driver, "soft") != 0) {
        if (stat(o.driver, &st) != 0)
            return zt_usage_error(&zt_command_record, "record: the driver '%s' was not found; give auto, soft or the path of a library", o.driver);
        static char absolute[4096];
        if (realpath(o.driver, absolute) != NULL)
            o.driver = absolute;
    }
    struct stat program;
    if (o.overwrite && strchr(o.argv[0], '/') != NULL && stat(o.output, &st) == 0 && stat(o.argv[0], &program) == 0 &&
        st.st_dev == program.st_dev && st.st_ino == program.st_ino)
        return zt_usage_error(&zt_command_record, "record: -o %s is the program itself, which would be overwritten; give another name", o.output);
    static char library[4200];
    snprintf(library, sizeof(library), "%s/libzetrace-layer.so", o.library_folder);
    if (stat(library, &st) != 0) {
        zt_complain("its own library %s was not found; set ZETRACE_LIBDIR to the folder that holds it", library);
        return ZT_EXIT_CANNOT;
    }

    return record_runs(&o, runs ? (unsigned)runs : 1, keep_all, quiet);
}

const zt_command zt_command_record = {"record",  "record the Level Zero calls of a program", "-- PROGRAM [ARG]...", options, more,
                                      ZT_EXIT_CANNOT, run_record};
