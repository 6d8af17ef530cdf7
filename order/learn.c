/* SPDX-License-Identifier: MIT */
/* Finds out by a replay which bytes the host has written. */
#include <stdlib.h>
#include <sys/mman.h>

#include "read.h"

static void use(const zo_graph *g, zr_options *o)
{
    o->learned = g->learned;
    o->n_learned = g->n_learn;
}

void zo_learn_free(zo_graph *g)
{
    if (g->learned != NULL)
        munmap(g->learned, g->n_learn);
    g->learned = NULL;
}

static void run(zo_graph *g, zr_plan *plan, const zr_options *options)
{
    uint32_t *line = NULL, stuck;
    size_t n_items = 0;
    const size_t n = zo_schedule(g, ZO_P_EARLY, 0, NULL, 0, NULL, 0, &line, &stuck);
    zr_item *const items = n > 0 ? zo_graph_items(g, line, n, &n_items) : NULL;
    if (items != NULL && g->learned == NULL) {
        void *const flags = mmap(NULL, g->n_learn, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        g->learned = flags == MAP_FAILED ? NULL : flags;
    }
    if (items != NULL && g->learned != NULL) {
        zr_report report;
        zr_options o = *options;
        o.items = items;
        o.n_items = n_items;
        o.learn = true;
        o.loop = 1;
        o.verify = ZR_VERIFY_NONE;
        use(g, &o);
        zr_replay(plan, &o, &report);
    }
    free(items);
    free(line);
}

bool zo_learn(zo_graph *g, zr_plan *plan, zr_options *options)
{
    if (g->learned == NULL && g->n_learn > 0)
        run(g, plan, options);
    use(g, options);
    return g->learned != NULL;
}

static int by_call(const void *a, const void *b)
{
    const zo_read *const x = a, *const y = b;
    return x->call != y->call ? (x->call < y->call ? -1 : 1) : x->content < y->content ? -1 : x->content > y->content;
}

size_t zo_learn_reads(zo_graph *g, zr_plan *plan, const zr_options *options)
{
    size_t found = 0;
    if (g->n_reads == 0)
        return 0;
    qsort(g->reads, g->n_reads, sizeof(*g->reads), by_call);
    g->learn_reads = true;
    run(g, plan, options);
    g->learn_reads = false;
    for (size_t i = 0; g->learned != NULL && i < g->n_reads; i++) {
        const zo_read *const r = &g->reads[i];
        const uint8_t *const flags = g->learned + (r->learn - 1);
        uint64_t lo = 0, hi = r->access.hi - r->access.lo;
        while (lo < hi && !flags[lo])
            lo++;
        while (lo < hi && !flags[hi - 1])
            hi--;
        if (lo == hi)
            continue;
        zo_write_add(g, r->call, &(zo_write){.content = r->content, .moves = true, .from = lo, .size = hi - lo, .learn = r->learn + lo});
        zo_conflict_add(g, (zo_conflict){.kind = ZO_X_HOST_WRITE, .a = r->writer, .b = r->call | ZO_CALL_BIT, .object = r->access.mem,
                                         .lo = r->access.lo + lo, .hi = r->access.lo + hi});
        found++;
    }
    return found;
}
