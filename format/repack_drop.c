/* SPDX-License-Identifier: MIT */
/* What a trace may lose before it is given away: contents of memory, modules, the environment. */
#include "repack.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------------------- modules */

typedef struct looking {
    zt__dropping *d;
    const zt_call *call;
    bool leave, outputs; /* outputs: only of parameters that the call fills; some are read as well */
} looking;

static bool gives_module(const zt_func *func)
{
    const uint16_t module = zt_type_find("ze_module_handle_t") - zt_types;
    for (unsigned i = 0; i < func->n_params; i++)
        if (func->params[i].role == ZT_R_CREATE && zt_types[func->params[i].type].base == module)
            return true;
    return false;
}

static bool takes_module(const zt_func *func)
{
    for (unsigned i = 0; i < func->n_params; i++)
        if (func->params[i].role == ZT_R_MODULE || func->params[i].role == ZT_R_KERNEL)
            return true;
    return false;
}

static int see_node(void *ctx, const zt_node *node)
{
    looking *const l = ctx;
    const bool bytes = node->kind == ZT_N_BYTES || (node->kind == ZT_N_ARRAY && node->type && node->type->size == 1 && node->type->cls != ZT_CHAR);
    if (!bytes || node->addr == 0 || (l->outputs && !(node->field && node->field->dir & ZT_OUT)))
        return 0;
    const zt_piece *const pieces = l->leave ? l->call->out : l->call->in;
    const uint32_t n = l->leave ? l->call->n_out : l->call->n_in;
    for (uint32_t i = 0; i < n; i++)
        if (pieces[i].addr <= node->addr && node->addr - pieces[i].addr < pieces[i].len) {
            const zt__dropped_piece piece = {l->call->number, pieces[i].addr, l->leave};
            ZT_PUSH(l->d->out_of_memory, l->d->modules, piece);
            break;
        }
    return 0;
}

static void look(zt__dropping *d, zt_trace *t, const zt_call *call, int phase, bool outputs)
{
    looking l = {.d = d, .call = call, .leave = phase == ZT_LEAVE, .outputs = outputs};
    zt_call_memory of = {.call = call, .phase = phase, .trace = t};
    const zt_memory memory = zt_memory_of(&of);
    const zt_walk walk = {.func = call->func, .words = call->words, .phase = phase, .result = call->result, .memory = &memory, .visit = see_node,
                          .ctx = &l};
    zt_walk_call(&walk);
}

static int by_call_phase_address(const void *a, const void *b)
{
    const zt__dropped_piece *const x = a, *const y = b;
    if (x->call != y->call)
        return x->call < y->call ? -1 : 1;
    if (x->leave != y->leave)
        return x->leave ? 1 : -1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static bool is_dropped(const zt__dropping *d, uint64_t call, uint64_t address, bool leave)
{
    const zt__dropped_piece piece = {call, address, leave};
    return d->modules.n > 0 && bsearch(&piece, d->modules.at, d->modules.n, sizeof(piece), by_call_phase_address) != NULL;
}

/* ------------------------------------------------------------------------------------------------------------- calls */

/* The numbers of a chunk's calls, by function. */
typedef struct numbers {
    uint64_t *all;
    size_t *from; /* where in `all` a function's begin; one more than there are functions */
} numbers;

static bool number_calls(const Zetrace__CallChunk *m, numbers *n)
{
    size_t *const next = calloc(m->n_functions + 1, sizeof(*next));
    n->all = calloc(m->n_function + 1, sizeof(*n->all));
    n->from = calloc(m->n_functions + 2, sizeof(*n->from));
    bool ok = next != NULL && n->all != NULL && n->from != NULL && (m->n_gaps == 0 || m->n_gaps == m->n_function);
    for (size_t i = 0; ok && i < m->n_function; i++)
        if (m->function[i] < m->n_functions)
            n->from[m->function[i] + 1]++;
        else
            ok = false;
    for (size_t f = 0; ok && f < m->n_functions; f++)
        next[f] = n->from[f], n->from[f + 1] += n->from[f];
    uint64_t number = m->first - 1;
    for (size_t i = 0; ok && i < m->n_function; i++)
        n->all[next[m->function[i]]++] = number += 1ull + (m->n_gaps ? m->gaps[i] : 0);
    free(next);
    return ok;
}

static bool drop_pieces(zt__dropping *d, const numbers *n, Zetrace__Pieces *p)
{
    uint64_t address = 0, call = 0;
    size_t at = 0, to = 0;
    bool changed = false;
    const size_t calls = n->from[p->function + 1] - n->from[p->function];
    for (size_t k = 0; k < p->n_address; k++) {
        address += (uint64_t)p->address[k];
        call = p->n_call ? call + p->call[k] + (k > 0) : k;
        const uint32_t kind = p->n_kind ? p->kind[k] : 0;
        const uint64_t size = kind == 0 ? p->length[p->n_length == 1 ? 0 : k] : kind == 1 ? sizeof(zt_hash) : 0;
        if (call >= calls || size > p->data.len - at)
            return changed;
        if (is_dropped(d, n->all[n->from[p->function] + call], address, p->leave)) {
            if (p->n_kind == 0) {
                p->kind = calloc(p->n_address, sizeof(*p->kind));
                if (p->kind == NULL) {
                    d->out_of_memory = true;
                    return changed;
                }
                p->n_kind = p->n_address;
            }
            p->kind[k] = 2;
            d->bytes += kind == 0 ? size : 0;
            changed = true;
        } else {
            memmove(p->data.data + to, p->data.data + at, size);
            to += size;
        }
        at += size;
    }
    p->data.len = to;
    return changed;
}

static bool drop_late_pieces(zt__dropping *d, Zetrace__Late *late)
{
    bool changed = false;
    for (size_t i = 0; i < late->n_out; i++) {
        Zetrace__Piece *const p = late->out[i];
        if (p->kind == 2 || !is_dropped(d, late->number, p->address, true))
            continue;
        d->bytes += p->kind == 0 ? p->data.len : 0;
        p->kind = 2;
        p->data.len = 0;
        changed = true;
    }
    return changed;
}

static void free_contents(zt__dropping *d, size_t *n, Zetrace__Content **contents)
{
    for (size_t i = 0; i < *n; i++) {
        d->bytes += contents[i]->data.len;
        zetrace__content__free_unpacked(contents[i], NULL);
    }
    *n = 0;
}

static bool drop_in_calls(zt__dropping *d, Zetrace__CallChunk *m)
{
    bool changed = false;
    numbers n = {0};
    if (d->drop & ZT_DROP_MEMORY) {
        changed = m->n_contents > 0;
        free_contents(d, &m->n_contents, m->contents);
        for (size_t i = 0; i < m->n_late; i++) {
            changed |= m->late[i]->n_contents > 0;
            free_contents(d, &m->late[i]->n_contents, m->late[i]->contents);
        }
    }
    const bool numbered = d->modules.n > 0 && number_calls(m, &n);
    d->out_of_memory |= d->modules.n > 0 && (n.all == NULL || n.from == NULL);
    if (numbered)
        for (size_t i = 0; i < m->n_pieces; i++)
            if (m->pieces[i]->function < m->n_functions)
                changed |= drop_pieces(d, &n, m->pieces[i]);
    for (size_t i = 0; d->modules.n > 0 && i < m->n_late; i++)
        changed |= drop_late_pieces(d, m->late[i]);
    free(n.all);
    free(n.from);
    return changed;
}

/* Without the table nobody knows what is a module, and columns were held against nothing. */
static int drop_calls(zt__dropping *d, const zt__place *place, const uint8_t *packet, size_t n, zt__bytes *out)
{
    Zetrace__Packet *const m = place->fault == ZT__GOOD ? zt__packet_unpack(packet, n) : NULL;
    int dropped = ZT__UNCLEAN;
    if (m != NULL && m->kind_case == ZETRACE__PACKET__KIND_CALLS) {
        dropped = drop_in_calls(d, m->calls) ? ZT__DROPPED : ZT__NOTHING_DROPPED;
        if (dropped == ZT__DROPPED && !zt__pack(m, out)) {
            d->out_of_memory = true;
            dropped = ZT__UNCLEAN;
        }
    }
    zetrace__packet__free_unpacked(m, NULL);
    return dropped;
}

/* ------------------------------------------------------------------------------------------------------------- blobs */

static void keep(zt__dropping *d, const void *hash)
{
    zt_hash h;
    bool known;
    memcpy(&h, hash, sizeof(h));
    d->out_of_memory |= !zt__hashes_add(&d->kept, &h, &known);
}

static void keep_blobs(zt__dropping *d, zt_trace *t)
{
    for (size_t i = 0; i < t->file.n_places; i++) {
        zt__calls *const calls = t->file.places[i].kind == ZT_CHUNK_CALLS ? zt__load_calls(t, i) : NULL;
        zt__slot slot = {0};
        int status = calls ? ZT_OK : ZT_END;
        for (size_t k = 0; status != ZT_E_MEMORY && calls != NULL;) {
            status = zt__calls_next(calls, &slot);
            if (status == ZT_END) {
                if (k == calls->chunk->n_late)
                    break;
                zt__slot_clear(&slot);
                slot.call = (zt_call){.number = calls->chunk->late[k]->number};
                status = zt__slot_complete(&slot, calls, calls->chunk->late[k++]);
            }
            if (status != ZT_OK)
                break;
            const zt_call *const c = &slot.call;
            for (uint32_t p = 0; p < c->n_in + c->n_out; p++) {
                const bool leave = p >= c->n_in;
                const zt_piece *const piece = leave ? &c->out[p - c->n_in] : &c->in[p];
                if (piece->data == NULL && !piece->lost && !is_dropped(d, c->number, piece->addr, leave))
                    keep(d, &piece->hash);
            }
            for (uint32_t p = 0; p < c->n_contents && !(d->drop & ZT_DROP_MEMORY); p++)
                if (c->contents[p].data == NULL && !c->contents[p].hash_only)
                    keep(d, &c->contents[p].hash);
        }
        zt__slot_free(&slot);
        zt__calls_unref(calls);
    }
}

int zt__dropping_find(zt__dropping *d, zt_trace *t)
{
    const zt_call *call;
    int status = ZT_END;
    zt_trace_seek(t, 1);
    while ((d->drop & ZT_DROP_MODULES) && (status = zt_trace_next(t, &call)) == ZT_OK) {
        const bool gives = gives_module(call->func), takes = takes_module(call->func);
        if (gives || takes)
            look(d, t, call, ZT_ENTER, !gives);
        if (call->returned && takes)
            look(d, t, call, ZT_LEAVE, true);
    }
    if (d->modules.n > 0)
        qsort(d->modules.at, d->modules.n, sizeof(*d->modules.at), by_call_phase_address);
    if (d->drop & (ZT_DROP_MODULES | ZT_DROP_MEMORY))
        keep_blobs(d, t);
    return d->out_of_memory || status == ZT_E_MEMORY ? ZT_E_MEMORY : ZT_OK;
}

bool zt__dropping_keeps(const zt__dropping *d, const zt_hash *hash)
{
    return !(d->drop & (ZT_DROP_MODULES | ZT_DROP_MEMORY)) || zt__hashes_have(&d->kept, hash);
}

void zt__dropping_free(zt__dropping *d)
{
    free(d->modules.at);
    free(d->kept.at);
}

/* ----------------------------------------------------------------------------------------------------------- session */

enum { SESSION_SETTINGS = 15, SESSION_ENVIRONMENT = 16 };

static const char *const drop_names[] = {"memory", "modules", "env"};

/* The setting that says what was dropped before. @return its bits, 0 if the field is another one. */
static unsigned dropped_before(const zt__field *f)
{
    unsigned drop = 0;
    Zetrace__Pair *const pair = f->number == SESSION_SETTINGS && f->type == 2 ? zetrace__pair__unpack(NULL, f->value_n, f->value) : NULL;
    if (pair != NULL && strcmp(pair->name, "dropped") == 0)
        for (unsigned i = 0; i < 3; i++)
            drop |= strstr(pair->value, drop_names[i]) ? 1u << i : 0;
    if (pair != NULL)
        zetrace__pair__free_unpacked(pair, NULL);
    return drop;
}

static bool add_dropped(zt__bytes *out, unsigned drop)
{
    char text[32] = "";
    uint8_t packed[64];
    Zetrace__Pair pair;
    for (unsigned i = 0; i < 3; i++)
        if (drop >> i & 1) {
            strcat(text, text[0] ? "," : "");
            strcat(text, drop_names[i]);
        }
    zetrace__pair__init(&pair);
    pair.name = (char *)(uintptr_t)"dropped";
    pair.value = text;
    return zt__field_bytes(out, SESSION_SETTINGS, packed, zetrace__pair__pack(&pair, packed));
}

/* Field by field: what this version does not know stays where it is. */
static int drop_in_session(zt__dropping *d, const uint8_t *packet, size_t n, zt__bytes *out)
{
    zt__bytes session = {0}, whole = {0};
    zt__field outer, f;
    unsigned drop = d->drop;
    bool ok = true;
    for (const uint8_t *at = packet, *const end = packet + n; ok && at < end;) {
        ok = zt__field_next(&at, end, &outer);
        if (ok && (outer.number != ZT_CHUNK_SESSION || outer.type != 2)) {
            ok = zt__append(&whole, outer.at, outer.n);
            continue;
        }
        session.n = 0;
        for (const uint8_t *in = outer.value, *const stop = in + outer.value_n; ok && in < stop;) {
            ok = zt__field_next(&in, stop, &f);
            const unsigned before = ok ? dropped_before(&f) : 0;
            drop |= before;
            const bool env = ok && f.number == SESSION_ENVIRONMENT && (d->drop & ZT_DROP_ENVIRONMENT);
            d->bytes += env ? f.n : 0;
            if (ok && !env && before == 0)
                ok = zt__append(&session, f.at, f.n);
        }
        ok = ok && add_dropped(&session, drop) && zt__field_bytes(&whole, ZT_CHUNK_SESSION, session.at, session.n);
    }
    ok = ok && zt__varint(out, whole.n) && zt__append(out, whole.at, whole.n);
    free(session.at);
    free(whole.at);
    return ok ? ZT__DROPPED : ZT__UNCLEAN;
}

int zt__dropping_packet(zt__dropping *d, const zt__place *place, const uint8_t *packet, size_t n, zt__bytes *out)
{
    const bool calls = place->kind == ZT_CHUNK_CALLS, session = place->kind == ZT_CHUNK_SESSION;
    if (d->drop == 0 || (calls && !(d->drop & (ZT_DROP_MEMORY | ZT_DROP_MODULES))) || (!calls && !session))
        return ZT__NOTHING_DROPPED;
    if (n == 0)
        return ZT__UNCLEAN;
    return calls ? drop_calls(d, place, packet, n, out) : drop_in_session(d, packet, n, out);
}
