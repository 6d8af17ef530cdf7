/* SPDX-License-Identifier: MIT */
/* Blobs put together from their parts; the last ones are kept. */
#include "reader.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define BLOB_CACHE (64u << 20)
#define BLOB_ANY (1u << 30) /* a blob of more bytes must not be as much larger than its file as a bomb is */
#define BLOB_RATIO 64u

const void *zt_trace_blob(zt_trace *t, const zt_hash *hash, uint64_t *len)
{
    for (zt__cached_blob *b = t->blobs; b != NULL; b = b->next)
        if (b->hash.lo == hash->lo && b->hash.hi == hash->hi) {
            *len = b->len;
            return b->data;
        }
    uint8_t *data = NULL;
    uint64_t total = 0, have = 0, held = 0;
    for (size_t i = 0; i < t->file.n_places; i++)
        if (t->file.places[i].kind == ZT_CHUNK_BLOB && t->file.places[i].first == hash->lo && t->file.places[i].begin == hash->hi)
            held += t->file.places[i].raw_size;
    for (size_t i = 0; i < t->file.n_places; i++) {
        zt__place *const p = &t->file.places[i];
        if (p->kind != ZT_CHUNK_BLOB || p->first != hash->lo || p->begin != hash->hi || p->end != have)
            continue;
        Zetrace__Packet *const packet = zt__unpack(t, p);
        if (packet == NULL)
            break;
        const Zetrace__Blob *const m = packet->kind_case == ZETRACE__PACKET__KIND_BLOB ? packet->blob : NULL;
        bool ok = m != NULL && m->offset == have && (total == 0 || m->total == total) && m->data.len <= m->total - have;
        if (ok && (m->total > held || (m->total > BLOB_ANY && m->total / BLOB_RATIO > t->file.size)))
            ok = false; /* more than stands in the file, or than anybody could have meant */
        if (ok && m->data.len > 0) {
            uint8_t *const grown = realloc(data, have + m->data.len);
            if (grown != NULL) {
                data = grown;
                memcpy(data + have, m->data.data, m->data.len);
                have += m->data.len;
            } else {
                ok = false;
            }
        }
        if (ok)
            total = m->total;
        zetrace__packet__free_unpacked(packet, NULL);
        if (!ok)
            break;
        if (have == total)
            break;
    }
    const XXH128_hash_t h = XXH3_128bits(data ? data : (const uint8_t *)"", have);
    zt__cached_blob *const b = data != NULL && have == total && h.low64 == hash->lo && h.high64 == hash->hi ? malloc(sizeof(*b)) : NULL;
    if (b == NULL) {
        free(data);
        return NULL;
    }
    while (t->blobs != NULL && t->blob_bytes + total > BLOB_CACHE) { /* the oldest goes */
        zt__cached_blob **last = &t->blobs;
        while ((*last)->next != NULL)
            last = &(*last)->next;
        t->blob_bytes -= (*last)->len;
        free((*last)->data);
        free(*last);
        *last = NULL;
    }
    *b = (zt__cached_blob){*hash, data, total, t->blobs};
    t->blobs = b;
    t->blob_bytes += total;
    *len = total;
    return data;
}
