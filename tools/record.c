/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture.h"

enum { OUTPUT = 1, FORCE, DRIVER, SCHEDULE, MEMORY, ATTACH, LOSSY, RING, LEVEL, ENVIRONMENT, BACKTRACE, QUIET };

static const zt_option options[] = {
    {OUTPUT, 'o', "output", "FILE", "write the trace to FILE (default %n.zetrace); FILE may hold\n%p process, %h host, %r MPI rank, %n program"},
    {FORCE, 'f', "force", NULL, "overwrite an existing file"},
    {DRIVER, 0, "driver", "auto|soft|PATH", "driver the program gets: as it is, libze_soft, or a library"},
    {SCHEDULE, 0, "schedule", "SCHEDULE", "schedule of libze_soft: async, eager, lazy, seed:N, script:FILE, null"},
    {MEMORY, 0, "memory", "none|inputs|full", "contents to keep: none, what the device reads and hashes of what the\nhost reads back (default), or the bytes of both"},
    {BACKTRACE, 0, "backtrace", "GLOB", "keep where in the program functions of that name are called;\nmay be given several times, or several with commas"},
    {ATTACH, 0, "attach", "layer|driver", "sit in the loader's layer slot (default), or be its driver"},
    {LOSSY, 0, "lossy", NULL, "drop and count calls rather than wait for a full ring"},
    {RING, 0, "ring", "BYTES", "shared memory for each thread (default 4Mi)"},
    {LEVEL, 0, "level", "1..9", "compression, fast to small (default 3)"},
    {ENVIRONMENT, 0, "env", "GLOB", "keep these environment variables too (ZE_*, SYCL_* and the like are kept)"},
    {QUIET, 'q', "quiet", NULL, "no summary at the end"},
    {0}};

static const char more[] =
    "PROGRAM runs as it would without zetrace, each of its processes that calls Level Zero gets a trace.\n"
    "Exit status: the program's own (128 + N if signal N ended it); 125 if zetrace failed, 126 if the program\n"
    "cannot be run, 127 if it is not found.\n"
    "Traces hold contents of memory and are readable by their owner only.\n";

static void tell(const zc_record_summary *s, const char *backtrace)
{
    if (s->calls == 0) {
        zt_complain("%s", s->why_none);
        return;
    }
    zt_complain("%llu calls, %llu threads, %llu processes, %llu bytes (%.1f a call), %llu dropped%s: %s%s",
                (unsigned long long)s->calls, (unsigned long long)s->threads, (unsigned long long)s->processes,
                (unsigned long long)s->bytes, (double)s->bytes / (double)s->calls, (unsigned long long)s->dropped,
                s->never_returned ? ", some never returned" : "", s->file, s->processes > 1 ? " and more" : "");
    if (backtrace != NULL && s->traced == 0)
        zt_complain("no call of a function that --backtrace=%s names was seen", backtrace);
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
    bool quiet = false;
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
    o.argv = argv + parser.at;
    if (o.schedule != NULL && strcmp(o.driver, "soft") != 0 && strcmp(o.driver, "auto") != 0)
        zt_complain("--schedule speaks to libze_soft; the driver %s may not listen", o.driver);
    if (strcmp(o.driver, "auto") != 0 && strcmp(o.driver, "soft") != 0) {
        if (stat(o.driver, &st) != 0)
            return zt_usage_error(&zt_command_record, "record: the driver '%s' was not found; give auto, soft or the path of a library", o.driver);
        static char absolute[4096];
        if (realpath(o.driver, absolute) != NULL)
            o.driver = absolute;
    }
    static char library[4200];
    snprintf(library, sizeof(library), "%s/libzetrace-layer.so", o.library_folder);
    if (stat(library, &st) != 0) {
        zt_complain("its own library %s was not found; set ZETRACE_LIBDIR to the folder that holds it", library);
        return ZT_EXIT_CANNOT;
    }

    zc_record_summary summary;
    zt_error error = {0};
    const int status = zc_record_program(&o, &summary, &error);
    if (summary.launched && !quiet)
        tell(&summary, o.backtrace);
    if (status == ZT_OK)
        return summary.status;
    zt_complain("%s", error.text);
    return summary.launched ? ZT_EXIT_CANNOT : summary.status;
}

const zt_command zt_command_record = {"record",  "Records the Level Zero calls of a program", "-- PROGRAM [ARG]...", options, more,
                                      ZT_EXIT_CANNOT, run_record};
