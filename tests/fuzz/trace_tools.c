/* SPDX-License-Identifier: MIT */
#include "trace_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static bool make(const char *path, unsigned calls, unsigned per_chunk, bool backtraces)
{
    static const char *const names[] = {"zeCommandListAppendMemoryCopy", "zeMemAllocDevice", "zeEventQueryStatus", "zeDeviceGetProperties",
                                        "zeCommandListCreate", "zeMemFree"};
    static uint8_t big[100000], memory[8192];
    zt_session session = {.pid = 42, .start_wall_ns = 1, .uuid = "fifteen letters"};
    const zt_writer_options options = {.overwrite = true, .max_calls = per_chunk, .level = 1};
    zt_error error;
    zt_writer *w;
    uint64_t seed = 0x1234567, time = 1000, pending[16];
    uint64_t backtrace[4], places[64];
    const char *names_of[64];
    unsigned n_pending = 0, n_places = 0;
    for (size_t i = 0; i < sizeof(big); i++)
        big[i] = (uint8_t)(i * i >> 7);
    if (zt_writer_open(&w, path, &session, &options, &error) != ZT_OK)
        return false;
    for (uint64_t n = 1; n <= calls; n++) {
        const int id = zt_func_find(names[next(&seed) % 6]);
        uint64_t words[64];
        const zt_func *const func = &zt_funcs[id];
        for (unsigned i = 0; i < func->n_words; i++)
            words[i] = next(&seed) % 3 ? 0x7f0000000000ull + next(&seed) % 4096 : next(&seed);
        for (size_t i = 0; i < 64; i++)
            memory[next(&seed) % sizeof(memory)] = (uint8_t)next(&seed);
        zt_piece in = {.addr = func->n_words > 1 ? words[1] : 0, .len = 1 + next(&seed) % 300, .data = memory};
        zt_piece out = {.addr = words[0], .len = 8, .data = memory + 512};
        zt_content content = {.kind = (uint8_t)(1 + next(&seed) % 3), .addr = words[0], .len = 64, .data = memory};
        zt_call call = {.number = n, .func = func, .thread = 1 + (uint32_t)(next(&seed) % 2), .returned = 1, .enter_ns = time += 10,
                        .words = words, .result = next(&seed) % 9 ? 0 : 0x78000004};
        call.leave_ns = time += next(&seed) % 1000;
        if (next(&seed) % 3 == 0)
            call.in = &in, call.n_in = 1;
        if (next(&seed) % 4 == 0)
            call.out = &out, call.n_out = 1;
        if (next(&seed) % 20 == 0)
            call.contents = &content, call.n_contents = 1;
        for (unsigned i = 0; backtraces && i < 4; i++)
            backtrace[i] = 0x400000 + next(&seed) % 16 * 64;
        if (backtraces && next(&seed) % 5 == 0)
            call.backtrace = backtrace, call.n_backtrace = 1 + (uint32_t)(next(&seed) % 4);
        if (next(&seed) % 90 == 0)
            in.data = big, in.len = sizeof(big) - next(&seed) % 3, call.in = &in, call.n_in = 1;
        if (next(&seed) % 50 == 0 && n_pending < 16) {
            call.returned = 0;
            call.n_out = 0;
            pending[n_pending++] = n;
        } else if (n_pending > 0 && next(&seed) % 40 == 0) {
            const zt_call leave = {.returned = 1, .leave_ns = time, .result = 0, .out = &out, .n_out = 1};
            zt_writer_leave(w, pending[--n_pending], &leave);
        }
        if (zt_writer_call(w, &call) != ZT_OK)
            break;
    }
    for (; backtraces && n_places < 16; n_places++) {
        places[n_places] = 0x400000 + n_places * 64;
        names_of[n_places] = n_places % 5 ? "work spinner.c:12" : "";
    }
    if (backtraces)
        zt_writer_frames(w, places, names_of, n_places);
    zt_writer_lost(w, 1, time, 3, 100);
    const zt_ending ending = {.complete = 1, .exited = 1, .status = 3, .calls = calls};
    return zt_writer_close(w, &ending, &error) == ZT_OK;
}

bool make_trace(const char *path, unsigned calls, unsigned per_chunk)
{
    return make(path, calls, per_chunk, false);
}

bool make_trace_with_backtraces(const char *path, unsigned calls, unsigned per_chunk)
{
    return make(path, calls, per_chunk, true);
}

bytes read_file(const char *path)
{
    bytes b = {NULL, 0};
    FILE *const f = fopen(path, "rb");
    if (f == NULL)
        return b;
    fseek(f, 0, SEEK_END);
    b.n = (size_t)ftell(f);
    rewind(f);
    b.at = malloc(b.n + 1);
    if (b.at == NULL || fread(b.at, 1, b.n, f) != b.n)
        b.n = 0;
    fclose(f);
    return b;
}

bool write_file(const char *path, const void *data, size_t n)
{
    FILE *const f = fopen(path, "wb");
    const bool ok = f != NULL && fwrite(data, 1, n, f) == n;
    return f != NULL && fclose(f) == 0 && ok;
}

size_t find_chunk(const bytes *file, unsigned kind, unsigned n)
{
    zt_chunk_header h;
    for (size_t at = sizeof(zt_file_header); at + sizeof(h) <= file->n; at += sizeof(h) + h.stored_size) {
        memcpy(&h, file->at + at, sizeof(h));
        if (h.magic != ZT_CHUNK_MAGIC)
            return 0;
        if (h.kind == kind && n-- == 0)
            return at;
    }
    return 0;
}

bytes chunk_contents(const bytes *file, size_t offset)
{
    zt_chunk_header h;
    memcpy(&h, file->at + offset, sizeof(h));
    bytes raw = {malloc(h.raw_size + 1u), h.raw_size};
    if (raw.at == NULL || ZSTD_decompress(raw.at, raw.n, file->at + offset + sizeof(h), h.stored_size) != raw.n)
        raw.n = 0;
    return raw;
}

bytes with_contents(const bytes *file, size_t offset, const void *raw, size_t n, uint32_t calls, uint32_t late)
{
    zt_chunk_header h;
    memcpy(&h, file->at + offset, sizeof(h));
    const size_t behind = offset + sizeof(h) + h.stored_size, bound = ZSTD_compressBound(n);
    bytes out = {malloc(file->n + bound), 0};
    if (out.at == NULL)
        return out;
    const size_t stored = ZSTD_compress(out.at + offset + sizeof(h), bound, raw, n, 1);
    memcpy(out.at, file->at, offset);
    h.raw_size = (uint32_t)n;
    h.stored_size = (uint32_t)stored;
    h.calls = calls;
    h.late = late;
    h.check = XXH32(&h, offsetof(zt_chunk_header, check), 0);
    memcpy(out.at + offset, &h, sizeof(h));
    memcpy(out.at + offset + sizeof(h) + stored, file->at + behind, file->n - behind);
    out.n = offset + sizeof(h) + stored + (file->n - behind);
    return out;
}

static uint64_t mix(uint64_t hash, const void *data, size_t n)
{
    return XXH3_64bits_withSeed(data, n, hash);
}

static uint64_t digest_pieces(uint64_t hash, const zt_piece *pieces, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t facts[] = {pieces[i].addr, pieces[i].len, pieces[i].lost, pieces[i].hash.lo, pieces[i].hash.hi};
        hash = mix(hash, facts, sizeof(facts));
        if (pieces[i].data != NULL)
            hash = mix(hash, pieces[i].data, pieces[i].len);
    }
    return hash;
}

/* Everything that stands in the call itself. */
static uint64_t digest(const zt_call *c)
{
    uint64_t hash = mix(1, c->func->name, strlen(c->func->name));
    const uint64_t facts[] = {c->number, c->thread, c->internal, c->nested, c->enter_ns};
    hash = mix(hash, facts, sizeof(facts));
    hash = mix(hash, c->words, c->func->n_words * 8u);
    hash = digest_pieces(hash, c->in, c->n_in);
    for (uint32_t i = 0; i < c->n_contents; i++)
        if (c->contents[i].data != NULL && c->contents[i].kind != ZT_C_READBACK)
            hash = mix(hash, c->contents[i].data, c->contents[i].len);
    if (!c->returned)
        return hash;
    /* what a LEAVE adds is its own: a late one may be lost without the call */
    const uint64_t leave[] = {c->leave_ns, (uint64_t)c->result};
    return digest_pieces(mix(hash, leave, sizeof(leave)), c->out, c->n_out);
}

static int count_node(void *ctx, const zt_node *node)
{
    *(uint64_t *)ctx += node->kind;
    return 0;
}

int read_everything(const char *path, void (*see)(void *ctx, uint64_t number, uint64_t digest), void *ctx, zt_health *health)
{
    zt_trace *trace;
    zt_error error;
    const int status = zt_trace_open(&trace, path, &error);
    if (status != ZT_OK)
        return status;
    const zt_call *call;
    uint64_t nodes = 0, budget = 4096;
    while (zt_trace_next(trace, &call) == ZT_OK) {
        if (see)
            see(ctx, call->number, digest(call));
        for (uint32_t i = 0; i < call->n_in; i++) {
            uint64_t len;
            if (call->in[i].data == NULL && !call->in[i].lost && budget > 0 && budget-- > 0)
                zt_trace_blob(trace, &call->in[i].hash, &len);
        }
        zt_call_memory in = {.call = call, .phase = ZT_ENTER, .trace = trace};
        const zt_memory memory = zt_memory_of(&in);
        const zt_walk walk = {.func = call->func, .words = call->words, .memory = &memory, .visit = count_node, .ctx = &nodes};
        zt_walk_call(&walk);
        for (uint32_t i = 0; i < call->n_backtrace; i++)
            zt_trace_frame(trace, call->backtrace[i]);
    }
    zt_trace_seek(trace, 1);
    zt_events *events = NULL;
    zt_objects *const objects = zt_objects_new();
    zt_text *const text = zt_text_new();
    zt_event event;
    unsigned shown = 0;
    if (objects && text && zt_events_open(&events, trace) == ZT_OK) {
        while (zt_events_next(events, &event) == ZT_OK) {
            zt_objects_event(objects, trace, &event);
            if (event.phase == ZT_ENTER && event.call->returned)
                continue;
            if (shown++ > 3000)
                continue;
            zt_text_clear(text);
            zt_print_call(text, trace, objects, event.call, 0);
            zt_text_clear(text);
            zt_print_call_json(text, trace, objects, event.call);
        }
    }
    if (health)
        *health = *zt_trace_health(trace);
    zt_events_close(events);
    zt_objects_free(objects);
    zt_text_free(text);
    zt_trace_close(trace);
    return status;
}
