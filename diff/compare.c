/* SPDX-License-Identifier: MIT */
/* From two traces to a script. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#define PAIRED_AT_ONCE (1u << 21) /* calls of a gap in which those of one function are sought for each other */

static void *read_side(void *side)
{
    zd_read(side);
    return NULL;
}

/* Both at once; the calling thread tells how far they are. */
static bool read_both(zd_diff *d)
{
    pthread_t thread[2];
    const uint64_t total = zt_trace_health(d->side[0].trace)->calls + zt_trace_health(d->side[1].trace)->calls;
    int started = 0;
    while (started < 2 && pthread_create(&thread[started], NULL, read_side, &d->side[started]) == 0)
        started++;
    for (int i = started; i < 2; i++)
        zd_read(&d->side[i]);
    for (bool running = started > 0; running;) {
        uint64_t done = 0;
        running = false;
        for (int i = 0; i < 2; i++) {
            const uint64_t n = __atomic_load_n(&d->side[i].progress, __ATOMIC_ACQUIRE);
            running |= n != UINT64_MAX;
            done += n != UINT64_MAX ? n : d->side[i].n;
        }
        if (d->options.progress != NULL)
            d->options.progress(d->options.ctx, done, total);
        const struct timespec rest = {0, 1000000};
        if (running)
            nanosleep(&rest, NULL);
    }
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    return d->side[0].status == ZT_OK && d->side[1].status == ZT_OK;
}

bool zd_add_op(zd_diff *d, zd_section *s, int kind, uint32_t a, uint32_t b, uint32_t n)
{
    if (n == 0)
        return true;
    zd_op *const last = s->n > 0 ? &d->script[d->n_script - 1] : NULL;
    if (last != NULL && last->kind == kind && last->a + (kind != ZD_ADDED ? last->n : 0) == a && last->b + (kind != ZD_REMOVED ? last->n : 0) == b) {
        last->n += n;
        return true;
    }
    if (!zd_room(&d->script, d->n_script, &d->script_room, sizeof(*d->script)))
        return false;
    d->script[d->n_script++] = (zd_op){(uint8_t)kind, a, b, n};
    s->n++;
    return true;
}

/* What is between two blocks: calls of one function on both sides are one that has changed. */
static bool add_gap(zd_diff *d, zd_section *s, uint32_t a, uint32_t a_end, uint32_t b, uint32_t b_end)
{
    const uint32_t n = a_end - a, m = b_end - b;
    zd_blocks pairs = {0};
    bool ok = true;
    if (n > 0 && m > 0 && (uint64_t)n + m <= PAIRED_AT_ONCE) {
        uint64_t *const hash = malloc(((size_t)n + m) * sizeof(*hash));
        ok = hash != NULL;
        for (uint32_t i = 0; ok && i < n; i++)
            hash[i] = d->side[0].func_hash[d->side[0].func[zd_index(&s->a, a + i)]];
        for (uint32_t i = 0; ok && i < m; i++)
            hash[n + i] = d->side[1].func_hash[d->side[1].func[zd_index(&s->b, b + i)]];
        const zd_sequence x = {hash, NULL, n}, y = {hash + n, NULL, m};
        ok = ok && zd_align(&x, 0, n, &y, 0, m, NULL, &pairs);
        free(hash);
    }
    uint32_t at_a = 0, at_b = 0;
    for (size_t i = 0; i <= pairs.n && ok; i++) {
        const zd_block next = i < pairs.n ? pairs.at[i] : (zd_block){n, m, 0};
        ok = zd_add_op(d, s, ZD_REMOVED, a + at_a, b + at_b, next.a - at_a) && zd_add_op(d, s, ZD_ADDED, a + next.a, b + at_b, next.b - at_b) &&
             zd_add_op(d, s, ZD_CHANGED, a + next.a, b + next.b, next.n);
        at_a = next.a + next.n;
        at_b = next.b + next.n;
    }
    free(pairs.at);
    return ok;
}

static bool add_section(zd_diff *d, zd_section section)
{
    zd_section *const grown = realloc(d->sections, (d->n_sections + 1) * sizeof(*grown));
    zd_blocks blocks = {0};
    if (grown == NULL)
        return false;
    d->sections = grown;
    zd_section *const s = &d->sections[d->n_sections++];
    *s = section;
    s->first = d->n_script;
    s->n = 0;
    bool ok = zd_align(&s->a, 0, s->a.n, &s->b, 0, s->b.n, NULL, &blocks);
    uint32_t a = 0, b = 0;
    for (size_t i = 0; i <= blocks.n && ok; i++) {
        const zd_block next = i < blocks.n ? blocks.at[i] : (zd_block){s->a.n, s->b.n, 0};
        ok = add_gap(d, s, a, next.a, b, next.b) && zd_add_op(d, s, ZD_EQUAL, next.a, next.b, next.n);
        a = next.a + next.n;
        b = next.b + next.n;
    }
    free(blocks.at);
    return ok;
}

static bool by_thread(zd_diff *d)
{
    bool ok = true;
    for (uint32_t t = 1; ok && t <= d->side[0].n_threads; t++) {
        const zd_sequence line = zd_thread_line(&d->side[0], t);
        if (line.n > 0)
            ok = add_section(d, (zd_section){.thread_a = t, .thread_b = d->pair[t], .a = line, .b = zd_thread_line(&d->side[1], d->pair[t])});
    }
    for (uint32_t t = 1; ok && t <= d->side[1].n_threads; t++) {
        const zd_sequence line = zd_thread_line(&d->side[1], t);
        if (line.n > 0 && !d->paired[t])
            ok = add_section(d, (zd_section){.thread_b = t, .a = zd_thread_line(&d->side[0], 0), .b = line});
    }
    return ok;
}

static bool lines_are_equal(const zd_diff *d)
{
    for (uint32_t t = 1; t <= d->side[0].n_threads; t++) {
        const zd_sequence a = zd_thread_line(&d->side[0], t), b = zd_thread_line(&d->side[1], d->pair[t]);
        if (a.n != b.n)
            return false;
        for (uint32_t i = 0; i < a.n; i++)
            if (zd_at(&a, i) != zd_at(&b, i))
                return false;
    }
    for (uint32_t t = 1; t <= d->side[1].n_threads; t++)
        if (!d->paired[t] && zd_thread_line(&d->side[1], t).n > 0)
            return false;
    return true;
}

/* All calls that count, in order, each with its thread in its hash. */
static bool order_line(zd_diff *d, int side, zd_sequence *line)
{
    zd_side *const s = &d->side[side];
    uint32_t *const names = calloc((size_t)s->n_threads + 1, sizeof(*names));
    if (names == NULL)
        return false;
    for (uint32_t t = 1; t <= s->n_threads; t++)
        names[t] = side == 0 ? (d->pair[t] ? t : t | 1u << 30) : 1u << 31 | t;
    for (uint32_t t = 1; side == 1 && t <= d->side[0].n_threads; t++)
        if (d->pair[t] != 0)
            names[d->pair[t]] = t;
    for (uint32_t i = 0; i < s->n; i++)
        s->hash[i] = zd_mix(s->hash[i], names[s->thread ? s->thread[i] : s->only_thread]);
    free(names);
    uint32_t n = 0;
    if (s->any_ignored) {
        for (uint32_t i = 0; i < s->n; i++)
            if (!(s->func_flags[s->func[i]] & ZD_IGNORED))
                s->index[n++] = i;
    } else {
        free(s->index);
        s->index = NULL;
        n = s->n;
    }
    *line = (zd_sequence){s->hash, s->index, n};
    return true;
}

static int complain(zt_error *error, int status, const char *text)
{
    if (error != NULL) {
        error->status = status;
        snprintf(error->text, sizeof(error->text), "%s", text);
    }
    return status;
}

int zd_compare(zd_diff **out, zt_trace *a, zt_trace *b, const zd_options *options, zt_error *error)
{
    zd_diff *const d = calloc(1, sizeof(*d));
    *out = d;
    if (d == NULL)
        return complain(error, ZT_E_MEMORY, "no memory to compare the traces");
    d->options = *options;
    d->side[0] = (zd_side){.trace = a, .options = &d->options};
    d->side[1] = (zd_side){.trace = b, .options = &d->options};
    bool ok = read_both(d);
    ok = ok && (d->pair = calloc((size_t)d->side[0].n_threads + 1, sizeof(*d->pair))) != NULL &&
         (d->paired = calloc((size_t)d->side[1].n_threads + 1, 1)) != NULL && zd_match_objects(d);
    if (ok)
        d->same_by_thread = lines_are_equal(d);
    if (ok && options->by_order) {
        zd_section s = {0};
        ok = order_line(d, 0, &s.a) && order_line(d, 1, &s.b) && add_section(d, s);
    } else if (ok) {
        ok = by_thread(d);
    }
    if (ok)
        return ZT_OK;
    const int status = d->side[0].status > ZT_END ? d->side[0].status : d->side[1].status > ZT_END ? d->side[1].status : ZT_E_MEMORY;
    zd_free(d);
    *out = NULL;
    return complain(error, status, status == ZT_E_MEMORY ? "no memory to compare the traces" : "a trace could not be read to its end");
}

void zd_free(zd_diff *d)
{
    if (d == NULL)
        return;
    zd_side_free(&d->side[0]);
    zd_side_free(&d->side[1]);
    free(d->pair);
    free(d->paired);
    for (size_t i = 0; d->lines != NULL && i < d->n_sections; i++)
        free(d->lines[i]);
    free(d->lines);
    free(d->sections);
    free(d->script);
    free(d);
}

size_t zd_sections(const zd_diff *d, const zd_section **sections)
{
    *sections = d->sections;
    return d->n_sections;
}

size_t zd_script(const zd_diff *d, zd_op **script)
{
    *script = d->script;
    return d->n_script;
}

uint32_t zd_calls(const zd_diff *d, int side)
{
    return d->side[side].n;
}

uint64_t zd_number(const zd_diff *d, int side, uint32_t index)
{
    const zd_side *const s = &d->side[side];
    size_t low = 0, high = s->n_runs;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (s->runs[middle].index <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return s->runs[low - 1].number + (index - s->runs[low - 1].index);
}

uint32_t zd_thread(const zd_diff *d, int side, uint32_t index)
{
    const zd_side *const s = &d->side[side];
    return s->thread ? s->thread[index] : s->only_thread;
}

const char *zd_function(const zd_diff *d, int side, uint32_t index)
{
    return d->side[side].funcs[d->side[side].func[index]]->name;
}

bool zd_result(const zd_diff *d, int side, uint32_t index, int64_t *result, bool *known)
{
    const uint8_t r = d->side[side].result[index];
    *known = r < 254;
    *result = *known ? d->side[side].results[r] : 0;
    return r != 255;
}

uint32_t zd_thread_of(const zd_diff *d, uint32_t thread_a)
{
    return thread_a <= d->side[0].n_threads ? d->pair[thread_a] : 0;
}

bool zd_same_by_thread(const zd_diff *d)
{
    return d->same_by_thread;
}

bool zd_interleaved(const zd_diff *d)
{
    const zd_side *const a = &d->side[0], *const b = &d->side[1];
    if (a->thread == NULL || b->thread == NULL || a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (d->pair[a->thread[i]] != b->thread[i])
            return true;
    return false;
}
