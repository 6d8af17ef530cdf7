/* SPDX-License-Identifier: MIT */
/* zetrace extract: the modules of a trace as files. */
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "commands.h"
#include "modules.h"
#include "output_file.h"

enum { OUTPUT = 1, FORCE, JSON };

static const zt_option options[] = {
    {OUTPUT, 'o', "output", "DIR", "the folder to write to; made, for you alone, if it is not there"},
    {FORCE, 'f', "force", NULL, "overwrite files in it"},
    {JSON, 0, "json", NULL, "the manifest on standard output as well"},
    {0, 0, NULL, NULL, NULL},
};

static int run(int argc, char **argv);
const zt_command zt_command_extract = {
    .name = "extract",
    .summary = "write the modules of a trace to files",
    .synopsis = "TRACE -o DIR",
    .options = options,
    .more = "Writes module-CALL.spv, native-CALL.bin and the like, and manifest.json, which tells where each comes from.\n"
            "'zetrace replay --replace=#CALL:FILE' puts one back. Options may stand behind TRACE as well.\n"
            "Exit status: 0 written, 1 some are not in the trace, or could not be written, 2 usage, 3 damaged trace, 125 not enough memory.\n",
    .usage_status = ZT_EXIT_USAGE,
    .run = run,
};

typedef struct written { /* the same bytes are written once */
    XXH128_hash_t hash;
    char name[64];
} written;

typedef struct extraction {
    const char *folder;
    bool force;
    zt_trace *trace;
    zt_objects *objects;
    FILE *manifest; /* in memory */
    void *files; /* tree of written */
    size_t n_files, entries;
    uint64_t missing;
    int status; /* -1: goes on */
} extraction;

/* -------------------------------------------------------------------------------------------------------------- files */

/* No part of a name comes from the trace but numbers. */
static const char *ending_of(const void *data, uint64_t size)
{
    static const uint8_t spirv[4] = {3, 2, 0x23, 7}, spirv_big[4] = {7, 0x23, 2, 3};
    if (size >= 4 && (memcmp(data, spirv, 4) == 0 || memcmp(data, spirv_big, 4) == 0))
        return "spv";
    return size >= 4 && memcmp(data, "\177ELF", 4) == 0 ? "elf" : "bin";
}

static int by_hash(const void *a, const void *b)
{
    return XXH128_cmp(&((const written *)a)->hash, &((const written *)b)->hash);
}

static const char *write_once(extraction *x, const char *name, const void *data, uint64_t size)
{
    written *const w = calloc(1, sizeof(*w));
    if (w == NULL) {
        x->status = ZT_EXIT_CANNOT;
        return NULL;
    }
    w->hash = XXH3_128bits(data, size);
    snprintf(w->name, sizeof(w->name), "%s", name);
    written *const *const found = tsearch(w, &x->files, by_hash);
    if (found == NULL || *found != w) {
        free(w);
        x->status = found == NULL ? ZT_EXIT_CANNOT : x->status;
        return found ? (*found)->name : NULL;
    }
    char path[4400];
    zt_output out;
    snprintf(path, sizeof(path), "%s/%s", x->folder, name);
    if (!zt_output_open(&out, path, x->force) || (fwrite(data, 1, size, out.file), !zt_output_close(&out, true))) {
        x->status = ZT_EXIT_DIFFERS;
        return NULL;
    }
    x->n_files++;
    return w->name;
}

static bool make_folder(const char *folder)
{
    struct stat st;
    if (mkdir(folder, 0700) == 0)
        return true;
    if (errno == EEXIST && stat(folder, &st) == 0 && S_ISDIR(st.st_mode))
        return true;
    zt_complain("extract: -o wants a folder, but %s: %s", folder, strerror(errno == EEXIST ? ENOTDIR : errno));
    return false;
}

/* ------------------------------------------------------------------------------------------------------------ entries */

static void put_text(FILE *out, const char *text, uint64_t length)
{
    char *const copy = strndup(text, length);
    zt_json_string(out, copy ? copy : "");
    free(copy);
}

static void put_object(const extraction *x, const zt_call *call, bool native, FILE *out)
{
    const zt_object *o = NULL;
    const zt_field *const made = zt_param_by_role(call->func, ZT_R_CREATE);
    if (native)
        o = zt_object_of_handle(x->objects, &zt_types[call->func->params[0].type], call->words[0]);
    else if (made != NULL && call->returned && call->result == 0) {
        uint64_t handle;
        o = zt_word_left(call, made, x->trace, &handle) ? zt_object_of_handle(x->objects, &zt_types[made->type], handle) : NULL;
    }
    if (o == NULL)
        return;
    fprintf(out, ",\"object\":\"%s#%u\"", o->kind, o->generation);
}

static void put_entry(extraction *x, const zt_call *call, const zt_binaries *all, const zt_binary *b, bool native)
{
    char name[64], number[32] = "";
    const unsigned input = (unsigned)(b - all->list) + 1;
    const char *file = NULL;
    if (all->n > 1)
        snprintf(number, sizeof(number), "-%u", input);
    snprintf(name, sizeof(name), "%s-%" PRIu64 "%s.%s", native ? "native" : "module", call->number, number,
             b->data ? ending_of(b->data, b->size) : "bin");
    if (b->data != NULL)
        file = write_once(x, name, b->data, b->size);
    x->missing += b->data == NULL;
    if (x->status >= 0)
        return;
    fprintf(x->manifest, "%s{\"call\":%" PRIu64 ",\"function\":", x->entries++ ? ",\n  " : "\n  ", call->number);
    zt_json_string(x->manifest, call->func->name);
    fprintf(x->manifest, ",\"kind\":\"%s\",\"input\":%u", native ? "native" : "module", input);
    put_object(x, call, native, x->manifest);
    fprintf(x->manifest, ",\"file\":");
    if (file != NULL)
        fprintf(x->manifest, "\"%s\",\"size\":%" PRIu64, file, b->size);
    else
        fprintf(x->manifest, "null");
    if (all->format != NULL)
        fprintf(x->manifest, ",\"format\":\"%s\"", all->format);
    if (b->flags != NULL) {
        fprintf(x->manifest, ",\"build_flags\":");
        put_text(x->manifest, b->flags, b->flags_length);
    }
    fprintf(x->manifest, ",\"result\":\"%s\"}", call->returned ? zt_result_name(call->result) : "(never returned)");
}

static void see_call(extraction *x, const zt_call *call)
{
    const int kind = zt_binaries_of(call->func);
    const bool native = kind == ZT_B_NATIVE;
    zt_binaries all;
    if (kind == ZT_B_NONE || (native && (!call->returned || call->result != 0)))
        return;
    zt_call_memory as_entered = {.call = call, .phase = ZT_ENTER, .trace = x->trace}, as_left = {.call = call, .phase = ZT_LEAVE, .trace = x->trace};
    const zt_memory before = zt_memory_of(&as_entered), after = zt_memory_of(&as_left);
    const zt_walk walk = {.func = call->func, .words = call->words, .phase = native ? ZT_LEAVE : ZT_ENTER, .result = call->result,
                          .memory = native ? &after : &before, .before = native ? &before : NULL};
    zt_binaries_read(&walk, &all);
    for (unsigned i = 0; i < all.n && x->status < 0; i++)
        if (!native || all.list[i].data != NULL)
            put_entry(x, call, &all, &all.list[i], native);
    if (all.left_out > 0)
        zt_complain("#%" PRIu64 " has %u binaries more than extract takes of one call", call->number, all.left_out);
    x->missing += all.left_out;
}

static void read_calls(extraction *x)
{
    zt_events *events = NULL;
    zt_event event;
    zt_progress progress;
    int status = x->objects ? zt_events_open(&events, x->trace) : ZT_E_MEMORY;
    zt_progress_start(&progress, "extract", zt_trace_health(x->trace)->calls);
    while (x->status < 0 && status == ZT_OK && (status = zt_events_next(events, &event)) == ZT_OK) {
        if (event.phase == ZT_LEAVE || !event.call->returned) {
            if (event.phase == ZT_LEAVE)
                zt_objects_event(x->objects, x->trace, &event);
            see_call(x, event.call);
        }
        if (event.phase == ZT_ENTER)
            zt_objects_event(x->objects, x->trace, &event);
        zt_progress_step(&progress, event.call->number);
    }
    zt_progress_end(&progress);
    zt_events_close(events);
    if (status == ZT_E_MEMORY)
        x->status = ZT_EXIT_CANNOT;
}

static int extract(zt_trace *trace, const char *path, const char *folder, bool force, bool json)
{
    char *text = NULL;
    size_t size = 0;
    extraction x = {.folder = folder, .force = force, .trace = trace, .objects = zt_objects_new(), .manifest = open_memstream(&text, &size),
                    .status = -1};
    if (x.manifest == NULL || x.objects == NULL)
        x.status = ZT_EXIT_CANNOT;
    else if (!make_folder(folder))
        x.status = ZT_EXIT_USAGE;
    if (x.manifest != NULL)
        fprintf(x.manifest, "{\"modules\":[");
    if (x.status < 0)
        read_calls(&x);
    if (x.manifest != NULL) {
        fprintf(x.manifest, "]}\n");
        fclose(x.manifest);
    }
    char name[4400];
    zt_output out;
    snprintf(name, sizeof(name), "%s/manifest.json", folder);
    if (x.status < 0 && (!zt_output_open(&out, name, force) || (fwrite(text, 1, size, out.file), !zt_output_close(&out, true))))
        x.status = ZT_EXIT_DIFFERS;
    if (x.status < 0 && json)
        fwrite(text, 1, size, stdout);
    else if (x.status < 0)
        printf("%s: %zu file%s of %zu module%s; manifest.json tells of them\n", folder, x.n_files, x.n_files == 1 ? "" : "s", x.entries,
               x.entries == 1 ? "" : "s");
    if (x.status == ZT_EXIT_CANNOT)
        zt_complain("%s: not enough memory", path);
    if (x.missing > 0)
        zt_complain("%s: the bytes of %" PRIu64 " modules are not in it; they may have been taken out of it with 'zetrace repack'", path,
                    x.missing);
    free(text);
    tdestroy(x.files, free);
    zt_objects_free(x.objects);
    return x.status >= 0 ? x.status : x.missing > 0 ? ZT_EXIT_DIFFERS : ZT_EXIT_OK;
}

static int run(int argc, char **argv)
{
    char *operand[2] = {argv[0], NULL};
    const char *folder = NULL;
    int operands = 0;
    bool force = false, json = false;
    zt_parser parser;
    zt_trace *trace;
    zt_parser_init(&parser, &zt_command_extract, argc, argv);
    for (int id; (id = zt_option_anywhere(&parser, &operand[1], 1, &operands)) != 0;) {
        if (id == ZT_OPTION_HELP)
            return zt_finish_output(ZT_EXIT_OK);
        if (id == ZT_OPTION_ERROR)
            return ZT_EXIT_USAGE;
        if (id == OUTPUT)
            folder = parser.value;
        force |= id == FORCE;
        json |= id == JSON;
    }
    if (operands != 1)
        return zt_usage_error(&zt_command_extract, "extract wants one trace, but was given %s; 'zetrace help extract' tells more", zt_count((unsigned)operands, "operand").text);
    if (folder == NULL || folder[0] == '\0' || strlen(folder) > 4096)
        return zt_usage_error(&zt_command_extract, "extract wants -o DIR, the folder to write to");
    const zt_parser one = {.command = &zt_command_extract, .argc = 2, .argv = operand, .at = 1};
    int status = zt_open_operand(&one, &trace);
    if (status != ZT_EXIT_OK)
        return status;
    status = extract(trace, operand[1], folder, force, json);
    zt_tell_health(trace, operand[1]);
    if (zt_trace_health(trace)->calls == 0 && zt_trace_health(trace)->damaged_chunks > 0)
        status = ZT_EXIT_DAMAGED;
    zt_trace_close(trace);
    return zt_finish_output(status);
}
