/* SPDX-License-Identifier: MIT */
/*
 * Contents of memory in the program: stretches of one byte in a few words, a little of other bytes as numbers, more of them in a file
 * beside the program. The same contents stand there once.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define LITERALS_OF_A_BUFFER 4096u
#define SHORTEST_RUN         64u
#define MOST_PARTS           65536u
#define MOST_SIDE            (1ull << 30)

struct zx_known { /* its id is its place from 1 */
    uint64_t len, sum;
    uint32_t n;
    bool used;
    char *bytes;
    zx_text text;
};

static uint64_t sum_of(const uint8_t *bytes, uint64_t len)
{
    uint64_t h = 0xcbf29ce484222325ull ^ len;
    for (uint64_t i = 0; i < len; i++)
        h = (h ^ bytes[i]) * 0x100000001b3ull;
    return h;
}

static uint64_t run_at(const uint8_t *bytes, uint64_t len, uint64_t from)
{
    uint64_t n = 1;
    while (from + n < len && bytes[from + n] == bytes[from])
        n++;
    return n;
}

/* Where the next long run begins. */
static uint64_t literal_end(const uint8_t *bytes, uint64_t len, uint64_t from)
{
    uint64_t at = from;
    while (at < len) {
        const uint64_t n = run_at(bytes, len, at);
        if (n >= SHORTEST_RUN)
            break;
        at += n;
    }
    return at;
}

static int put_literal(zx_export *x, zx_text *data, zx_text *parts, const uint8_t *bytes, uint64_t at, uint64_t n, size_t key,
                       uint32_t index)
{
    const uint32_t id = (uint32_t)x->n_known + 1;
    if (x->literals[key] + n > LITERALS_OF_A_BUFFER) {
        if (x->options->side == NULL)
            return zx_refuse(x, "its contents need a file beside the program: give -o");
        if (x->side.n + n > MOST_SIDE)
            return zx_refuse(x, "its contents are more than %llu bytes", (unsigned long long)MOST_SIDE);
        zx_put(parts, "{%" PRIu64 ", %" PRIu64 ", NULL, -1, %zu}", at, n, x->side.n);
        zx_put_bytes(&x->side, bytes + at, n);
        return ZT_OK;
    }
    x->literals[key] += n;
    zx_put(data, "static const unsigned char bytes_%u_%u[] = {", id, index);
    for (uint64_t i = 0; i < n; i++)
        zx_put(data, "%s0x%02x%s", i % 16 == 0 ? "\n    " : "", bytes[at + i], i + 1 == n ? "" : i % 16 == 15 ? "," : ", ");
    zx_put(data, "};\n");
    zx_put(parts, "{%" PRIu64 ", %" PRIu64 ", bytes_%u_%u, 0, 0}", at, n, id, index);
    return ZT_OK;
}

int zx_parts(zx_export *x, const void *from, uint64_t len, size_t key, uint32_t *id, uint32_t *n)
{
    const uint8_t *const bytes = from;
    const uint64_t sum = sum_of(bytes, len);
    for (size_t i = 0; i < x->n_known; i++)
        if (x->known[i].len == len && x->known[i].sum == sum && memcmp(x->known[i].bytes, bytes, len) == 0) {
            *id = (uint32_t)i + 1;
            *n = x->known[i].n;
            return ZT_OK;
        }
    zx_text parts = {0};
    struct zx_known known = {.len = len, .sum = sum, .bytes = malloc(len ? len : 1)};
    int status = ZT_OK;
    *n = 0;
    for (uint64_t at = 0; at < len && status == ZT_OK; (*n)++) {
        const uint64_t run = run_at(bytes, len, at), end = run < SHORTEST_RUN ? literal_end(bytes, len, at) : at + run;
        zx_put(&parts, "%s", *n ? ", " : "");
        if (*n >= MOST_PARTS)
            status = zx_refuse(x, "the contents of one buffer are in more than %u pieces", MOST_PARTS);
        else if (end == at + run)
            zx_put(&parts, "{%" PRIu64 ", %" PRIu64 ", NULL, 0x%02x, 0}", at, run, bytes[at]);
        else
            status = put_literal(x, &known.text, &parts, bytes, at, end - at, key, *n);
        at = end;
    }
    *id = (uint32_t)x->n_known + 1;
    known.n = *n;
    zx_put(&known.text, "static const part parts_%u[] = {%s};\n", *id, parts.at ? parts.at : "");
    const bool failed = parts.failed || known.text.failed || x->side.failed || known.bytes == NULL;
    free(parts.at);
    if (status != ZT_OK || failed || !ZX_PUSH(x->known, x->n_known, x->room_known, known)) {
        free(known.bytes);
        free(known.text.at);
        return status != ZT_OK ? status : zx_no_memory(x);
    }
    memcpy(known.bytes, bytes, len);
    return ZT_OK;
}

void zx_use_parts(zx_export *x, uint32_t id)
{
    x->known[id - 1].used = true;
}

void zx_put_parts(const zx_export *x, zx_text *out)
{
    for (size_t i = 0; i < x->n_known; i++)
        if (x->known[i].used)
            zx_put_bytes(out, x->known[i].text.at, x->known[i].text.n);
}

void zx_free_parts(zx_export *x)
{
    for (size_t i = 0; i < x->n_known; i++) {
        free(x->known[i].bytes);
        free(x->known[i].text.at);
    }
    free(x->known);
}

int zx_contents(zx_export *x, zx_call *call, const zt_call *from)
{
    call->contents = from->n_contents ? calloc(from->n_contents, sizeof(*call->contents)) : NULL;
    if (from->n_contents > 0 && call->contents == NULL)
        return zx_no_memory(x);
    for (uint32_t i = 0; i < from->n_contents; i++) {
        const zt_content *const c = &from->contents[i];
        zx_content *const to = &call->contents[call->n_contents++];
        *to = (zx_content){.number = i + 1, .readback = c->kind == ZT_C_READBACK, .len = c->len};
        const zt_object *const memory = zt_object_of_address(x->names, c->addr);
        const bool inside = memory == NULL || (memory->destroyed == 0 && memory->by != NULL && c->addr - memory->value <= memory->size &&
                                               c->len <= memory->size - (c->addr - memory->value));
        if (c->len == 0 || c->hash_only || !inside || !zx_address(x, c->addr, to->place, sizeof(to->place)))
            continue;
        if (memory != NULL && !x->objects[memory->index].used)
            continue; /* nothing that is made reads it */
        uint64_t len = c->len;
        const void *const bytes = c->data ? c->data : zt_trace_blob(x->trace, &c->hash, &len);
        size_t key = memory ? memory->index : x->n_objects;
        for (size_t s = 0; memory == NULL && s < x->n_spans; s++)
            if (c->addr >= x->spans[s].start && c->addr < x->spans[s].end)
                key = x->n_objects + s;
        const int status = bytes != NULL && len >= c->len ? zx_parts(x, bytes, c->len, key, &to->parts, &to->n_parts) : ZT_OK;
        if (status != ZT_OK)
            return status;
    }
    return ZT_OK;
}
