/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "format.h"

static void free_pairs(zt_pair *pairs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free(pairs[i].name);
        free(pairs[i].value);
    }
    free(pairs);
}

void zt_session_free(zt_session *s)
{
    for (uint32_t i = 0; i < s->argc; i++)
        free(s->argv[i]);
    for (uint32_t i = 0; i < s->n_libraries; i++) {
        free(s->libraries[i].path);
        free(s->libraries[i].build_id);
    }
    free_pairs(s->settings, s->n_settings);
    free_pairs(s->environment, s->n_environment);
    free(s->argv);
    free(s->libraries);
    free(s->program);
    free(s->hostname);
    free(s->rank);
    free(s->version);
    free(s->order);
    free(s->attach);
    free(s->memory);
    memset(s, 0, sizeof(*s));
}
