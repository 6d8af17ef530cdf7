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

bool zo_learn(zo_graph *g, zr_plan *plan, zr_options *options)
{
    if (g->learned != NULL || g->n_learn == 0) {
        use(g, options);
        return g->learned != NULL;
    }
    uint32_t *line = NULL, stuck;
    size_t n_items = 0;
    const size_t n = zo_schedule(g, ZO_P_EARLY, 0, NULL, 0, NULL, 0, &line, &stuck);
    zr_item *const items = n > 0 ? zo_graph_items(g, line, n, &n_items) : NULL;
    void *const flags = items == NULL ? MAP_FAILED : mmap(NULL, g->n_learn, PROT_READ | PROT_WRITE,
                                                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (flags != MAP_FAILED) {
        zr_report report;
        zr_options o = *options;
        g->learned = flags;
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
    use(g, options);
    return g->learned != NULL;
}
