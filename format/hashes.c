/* SPDX-License-Identifier: MIT */
#include "hashes.h"

#include <stdlib.h>

static bool is_zero(const zt_hash *h)
{
    return h->lo == 0 && h->hi == 0;
}

/* Where the hash is, or would be. */
static size_t find(const zt_hash *table, size_t room, const zt_hash *hash)
{
    size_t at = hash->lo & (room - 1);
    while (!is_zero(&table[at]) && (table[at].lo != hash->lo || table[at].hi != hash->hi))
        at = (at + 1) & (room - 1);
    return at;
}

bool zt__hashes_add(zt__hashes *set, const zt_hash *hash, bool *known)
{
    if (set->n * 2 >= set->room) {
        const size_t room = set->room ? set->room * 2 : 256;
        zt_hash *const table = calloc(room, sizeof(*table));
        if (table == NULL)
            return false;
        for (size_t i = 0; i < set->room; i++)
            if (!is_zero(&set->at[i]))
                table[find(table, room, &set->at[i])] = set->at[i];
        free(set->at);
        set->at = table;
        set->room = room;
    }
    const size_t at = find(set->at, set->room, hash);
    *known = !is_zero(&set->at[at]);
    if (!*known && !is_zero(hash)) {
        set->at[at] = *hash;
        set->n++;
    }
    return true;
}

bool zt__hashes_have(const zt__hashes *set, const zt_hash *hash)
{
    return set->room > 0 && !is_zero(&set->at[find(set->at, set->room, hash)]);
}
