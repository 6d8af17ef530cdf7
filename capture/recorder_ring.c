/* SPDX-License-Identifier: MIT */
/* Reading one ring. What stands in it was written by the recorded program: nothing is believed unchecked. */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BIG (16ull << 30)

bool zc_grow(void *array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return true;
    const size_t more = *room ? *room * 2 : 16;
    void *const grown = realloc(*(void **)array, more * size);
    if (grown == NULL)
        return false;
    *(void **)array = grown;
    *room = more;
    return true;
}

zc_reader *zc_reader_new(int fd, uint64_t size, int32_t pid, int32_t tid, const char **why)
{
    struct stat st;
    zc_reader *reader = NULL;
    uint8_t *base = MAP_FAILED;
    *why = "is not a ring of this version";
    if (size < 4096 || size > (1ull << 32) || (size & (size - 1)) != 0 || fstat(fd, &st) != 0 ||
        st.st_size < (off_t)(sizeof(zc_ring) + size))
        goto out;
    *why = "could not be mapped";
    base = mmap(NULL, sizeof(zc_ring) + 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        goto out;
    if (mmap(base, sizeof(zc_ring) + size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
        mmap(base + sizeof(zc_ring) + size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, sizeof(zc_ring)) ==
            MAP_FAILED)
        goto out;
    const zc_ring *const ring = (const zc_ring *)(const void *)base;
    *why = "is not a ring of this version";
    if (ring->magic != ZC_MAGIC || ring->abi != ZC_ABI || ring->size != size || ring->pid != pid)
        goto out;
    *why = "memory is out";
    reader = calloc(1, sizeof(*reader));
    if (reader == NULL)
        goto out;
    reader->ring = (zc_ring *)(void *)base;
    reader->data = base + sizeof(zc_ring);
    reader->size = size;
    reader->tail = atomic_load(&reader->ring->tail);
    reader->tid = tid;
    *why = NULL;
out:
    if (reader == NULL && base != MAP_FAILED)
        munmap(base, sizeof(zc_ring) + 2 * size);
    close(fd);
    return reader;
}

void zc_reader_free(zc_reader *reader)
{
    for (size_t i = 0; i < reader->n_big; i++)
        free(reader->big[i].bytes);
    munmap(reader->ring, sizeof(zc_ring) + 2 * reader->size);
    free(reader->big);
    free(reader->open);
    free(reader);
}

static const uint8_t *at(const zc_reader *reader, uint64_t position)
{
    return reader->data + (position & (reader->size - 1));
}

static void advance(zc_reader *reader, uint64_t bytes)
{
    reader->tail += bytes;
    atomic_store_explicit(&reader->ring->tail, reader->tail, memory_order_release);
}

/* -------------------------------------------------------------------------------------------------------- big pieces */

static zc_big *find_big(zc_reader *reader, uint32_t id)
{
    size_t low = 0, high = reader->n_big; /* they come in the order of their ids */
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (reader->big[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < reader->n_big && reader->big[low].id == id ? &reader->big[low] : NULL;
}

static void add_data(zc_reader *reader, const zc_data *data, uint32_t record_size)
{
    const uint64_t n = record_size - sizeof(*data);
    zc_big *big = find_big(reader, data->data_id);
    if (big == NULL) {
        if (reader->n_big > 0 && reader->big[reader->n_big - 1].id > data->data_id)
            return; /* out of order, too */
        if (!zc_grow(&reader->big, reader->n_big, &reader->big_room, sizeof(*reader->big)))
            return;
        big = &reader->big[reader->n_big++];
        *big = (zc_big){.id = data->data_id, .total = data->total};
        big->bytes = data->total <= MAX_BIG ? malloc(data->total) : NULL;
    }
    if (data->offset != big->have || data->total != big->total || data->offset > big->total)
        return; /* out of order: the piece stays incomplete and counts as lost */
    const uint64_t part = n < big->total - big->have ? n : big->total - big->have;
    if (big->bytes != NULL)
        memcpy(big->bytes + big->have, data + 1, part);
    big->have += part;
}

static void drop_big(zc_reader *reader, uint32_t before)
{
    size_t kept = 0;
    for (size_t i = 0; i < reader->n_big; i++) {
        if (reader->big[i].id <= before)
            free(reader->big[i].bytes);
        else
            reader->big[kept++] = reader->big[i];
    }
    reader->n_big = kept;
}

/* ------------------------------------------------------------------------------------------------------------- pieces */

static bool add_content(zc_pieces *p, const zc_piece *piece, const void *payload, const zt_hash *hash)
{
    if (!zc_grow(&p->contents, p->n_contents, &p->contents_room, sizeof(*p->contents)))
        return false;
    static const uint8_t kinds[] = {[ZC_P_OPERAND] = ZT_C_OPERAND, [ZC_P_USM] = ZT_C_USM, [ZC_P_READBACK] = ZT_C_READBACK};
    p->contents[p->n_contents++] = (zt_content){.kind = kinds[piece->kind], .changed = !!(piece->flags & ZC_PF_CHANGED),
                                                .addr = piece->addr, .len = piece->len, .data = payload,
                                                .hash = hash ? *hash : (zt_hash){0, 0}, .hash_only = payload == NULL};
    return true;
}

/* @return the highest data_id used. A piece that does not add up ends the list: what comes behind it cannot be trusted. */
static uint32_t add_pieces(zc_reader *reader, const uint8_t *bytes, uint64_t size, zc_pieces *p, bool listed)
{
    uint32_t highest = 0;
    while (size >= sizeof(zc_piece)) {
        zc_piece piece;
        memcpy(&piece, bytes, sizeof(piece));
        bytes += sizeof(piece);
        size -= sizeof(piece);
        const void *payload = NULL;
        zt_hash hash = {0, 0};
        bool lost = piece.flags & ZC_PF_LOST, have_hash = false;
        if (piece.flags & ZC_PF_DATA) {
            const zc_big *const big = find_big(reader, piece.data_id);
            if (big != NULL && big->bytes != NULL && big->have == big->total && big->total == piece.len)
                payload = big->bytes;
            else
                lost = true;
            if (piece.data_id > highest)
                highest = piece.data_id;
        } else if (!lost) {
            const uint64_t n = piece.flags & ZC_PF_HASH_ONLY ? sizeof(hash) : piece.len;
            const uint64_t padded = (n + 7) & ~7ull;
            if (n > size || padded > size)
                break;
            if (piece.flags & ZC_PF_HASH_ONLY) {
                memcpy(&hash, bytes, sizeof(hash));
                have_hash = true;
            } else {
                payload = bytes;
            }
            bytes += padded;
            size -= padded;
        }
        if (piece.kind == ZC_P_LIST) {
            const uint32_t within = payload != NULL && !listed ? add_pieces(reader, payload, piece.len, p, true) : 0;
            highest = within > highest ? within : highest;
        } else if (piece.kind == ZC_P_MEMORY) {
            if (!zc_grow(&p->pieces, p->n_pieces, &p->pieces_room, sizeof(*p->pieces)))
                break;
            p->pieces[p->n_pieces++] = (zt_piece){.addr = piece.addr, .len = piece.len, .data = payload, .hash = hash,
                                                  .lost = lost || payload == NULL};
        } else if (piece.kind == ZC_P_BACKTRACE) {
            for (uint64_t i = 0; payload != NULL && i < piece.len / 8 && i < ZC_MAX_FRAMES; i++) {
                if (!zc_grow(&p->frames, p->n_frames, &p->frames_room, sizeof(*p->frames)))
                    break;
                memcpy(&p->frames[p->n_frames++], (const uint8_t *)payload + i * 8, 8);
            }
        } else if (piece.kind >= ZC_P_OPERAND && piece.kind <= ZC_P_READBACK) {
            if (!add_content(p, &piece, payload, have_hash ? &hash : NULL))
                break;
        }
    }
    return highest;
}

static uint32_t parse_pieces(zc_reader *reader, const uint8_t *bytes, uint64_t size, zc_pieces *p)
{
    p->n_pieces = p->n_contents = p->n_frames = 0;
    return add_pieces(reader, bytes, size, p, false);
}

/* -------------------------------------------------------------------------------------------------------------- calls */

static uint32_t added_ns(const zc_process *process, uint32_t ticks)
{
    const double ns = (double)ticks * (process->ns_per_tick > 0 ? process->ns_per_tick : 1);
    return ns > 4e9 ? UINT32_MAX : (uint32_t)ns;
}

static uint32_t fill_out(zc_reader *reader, zc_process *process, zt_call *call, const uint8_t *out, uint64_t size)
{
    const uint32_t highest = parse_pieces(reader, out, size, &process->out);
    call->out = process->out.pieces;
    call->n_out = (uint32_t)process->out.n_pieces;
    for (size_t i = 0; i < process->out.n_contents; i++) {
        zc_pieces *const in = &process->in;
        if (!zc_grow(&in->contents, in->n_contents, &in->contents_room, sizeof(*in->contents)))
            break;
        in->contents[in->n_contents++] = process->out.contents[i];
    }
    call->contents = process->in.contents;
    call->n_contents = (uint32_t)process->in.n_contents;
    return highest;
}

static void late_leave(zc_reader *reader, zc_process *process, uint64_t number, uint64_t t_leave, uint64_t result,
                       uint32_t ticks, const uint8_t *out, uint64_t out_size)
{
    zt_call leave = {.number = number, .thread = reader->thread, .returned = 1, .leave_ns = zc_process_ns(process, t_leave),
                     .result = (int64_t)result, .added_ns = added_ns(process, ticks)};
    process->in.n_contents = 0;
    const uint32_t highest = fill_out(reader, process, &leave, out, out_size);
    if (process->writer != NULL && !process->failed &&
        zt_writer_leave(process->writer, number, &leave) != ZT_OK)
        process->failed = true;
    process->never_returned--;
    process->added_ns += leave.added_ns;
    drop_big(reader, highest);
}

static void broken(zc_reader *reader, zc_process *process)
{
    (void)process;
    reader->broken = true;
    atomic_fetch_add(&reader->ring->dropped, 1);
}

static void take_leave(zc_reader *reader, zc_process *process, const zc_leave *leave, uint32_t size)
{
    for (size_t i = 0; i < reader->n_open; i++) {
        if (reader->open[i].seq != leave->seq)
            continue;
        const uint64_t room = size - sizeof(*leave);
        late_leave(reader, process, reader->open[i].number, leave->t_leave, leave->result, leave->added_ticks,
                   (const uint8_t *)(leave + 1), leave->out_size < room ? leave->out_size : room);
        reader->open[i] = reader->open[--reader->n_open];
        break;
    }
    if (leave->t_leave > reader->bound)
        reader->bound = leave->t_leave;
}

enum zc_front zc_reader_front(zc_reader *reader, zc_process *process, uint64_t *t_enter)
{
    for (;;) {
        if (reader->broken)
            return ZC_BROKEN;
        /* head lies in a line that the program writes twice a call: it is looked at once a batch */
        if (reader->head <= reader->tail)
            reader->head = atomic_load_explicit(&reader->ring->head, memory_order_acquire) & ~1ull;
        const uint64_t head = reader->head;
        if (head <= reader->tail)
            return ZC_EMPTY;
        if (head - reader->tail > reader->size || head - reader->tail < sizeof(zc_record)) {
            broken(reader, process);
            return ZC_BROKEN;
        }
        const zc_record *const record = (const zc_record *)(const void *)at(reader, reader->tail);
        const uint32_t size = *(const volatile uint32_t *)&record->size;
        static const uint32_t least[] = {[ZC_R_PAD] = sizeof(zc_record), [ZC_R_SLOT] = sizeof(zc_slot),
                                         [ZC_R_LEAVE] = sizeof(zc_leave), [ZC_R_DATA] = sizeof(zc_data),
                                         [ZC_R_LOST] = sizeof(zc_lost)};
        const uint16_t type = record->type;
        if (type < ZC_R_PAD || type > ZC_R_LOST || size % 8 != 0 || size < least[type] || size > reader->size) {
            broken(reader, process);
            return ZC_BROKEN;
        }
        if (type == ZC_R_SLOT) {
            const zc_slot *const slot = (const zc_slot *)(const void *)record;
            const uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
            *t_enter = slot->t_enter;
            if (state == ZC_S_OPEN)
                return ZC_CALL_OPEN;
            if (state != ZC_S_DONE && state != ZC_S_DETACHED) {
                broken(reader, process);
                return ZC_BROKEN;
            }
            if (reader->open_number != 0) { /* was emitted while open */
                zc_reader_take(reader, process);
                continue;
            }
            return ZC_CALL;
        }
        if (head - reader->tail < size)
            return ZC_EMPTY;
        if (type == ZC_R_DATA) {
            add_data(reader, (const zc_data *)(const void *)record, size);
        } else if (type == ZC_R_LEAVE) {
            take_leave(reader, process, (const zc_leave *)(const void *)record, size);
        } else if (type == ZC_R_LOST) {
            const zc_lost *const lost = (const zc_lost *)(const void *)record;
            if (process->writer != NULL)
                zt_writer_lost(process->writer, reader->thread, zc_process_ns(process, lost->time), lost->calls, lost->bytes);
        }
        advance(reader, size);
    }
}

void zc_reader_take(zc_reader *reader, zc_process *process)
{
    const zc_slot *const slot = (const zc_slot *)(const void *)at(reader, reader->tail);
    const uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
    const uint64_t size = *(const volatile uint32_t *)&slot->rec.size;
    const uint16_t id = slot->rec.func, n_words = *(const volatile uint16_t *)&slot->n_words;
    const uint64_t body = size - sizeof(*slot), words = (uint64_t)n_words * 8;
    const uint64_t in_size = slot->in_size, out_size = state == ZC_S_DONE ? slot->out_size : 0;
    if (id >= zt_n_funcs || zt_funcs[id].n_words != n_words || words > body || in_size > body - words ||
        out_size > body - words - in_size) {
        broken(reader, process);
        return;
    }
    const uint8_t *const bytes = (const uint8_t *)(slot + 1);
    const uint64_t seq = slot->seq;
    if (reader->open_number == 0) {
        if (process->ns_per_tick == 0)
            zc_process_ns(process, slot->t_enter);
        if (reader->thread == 0)
            reader->thread = ++process->next_thread;
        zt_call call = {.number = ++process->next_number, .func = &zt_funcs[id], .thread = reader->thread,
                        .returned = state == ZC_S_DONE, .internal = !!(slot->flags & ZC_SF_INTERNAL),
                        .nested = !!(slot->flags & ZC_SF_NESTED), .enter_ns = zc_process_ns(process, slot->t_enter),
                        .added_ns = added_ns(process, slot->added_ticks), .words = (const uint64_t *)(const void *)bytes};
        uint32_t highest = parse_pieces(reader, bytes + words, in_size, &process->in);
        call.in = process->in.pieces;
        call.n_in = (uint32_t)process->in.n_pieces;
        if (process->in.n_frames > 0) {
            call.backtrace = process->in.frames;
            call.n_backtrace = (uint32_t)zc_frames_take(process, process->in.frames, process->in.n_frames);
            process->traced++;
        }
        call.contents = process->in.contents;
        call.n_contents = (uint32_t)process->in.n_contents;
        if (state == ZC_S_DONE) {
            call.leave_ns = zc_process_ns(process, slot->t_leave);
            call.result = (int64_t)slot->result;
            const uint32_t out_highest = fill_out(reader, process, &call, bytes + words + in_size, out_size);
            highest = highest > out_highest ? highest : out_highest;
        } else {
            process->never_returned++;
        }
        zc_process_emit(process, &call);
        drop_big(reader, highest);
        if (state == ZC_S_OPEN) {
            reader->open_number = call.number;
            return;
        }
        if (state == ZC_S_DETACHED && zc_grow(&reader->open, reader->n_open, &reader->open_room, sizeof(*reader->open)))
            reader->open[reader->n_open++] = (zc_open_call){seq, call.number};
    } else if (state == ZC_S_DONE) {
        late_leave(reader, process, reader->open_number, slot->t_leave, slot->result, 0, bytes + words + in_size, out_size);
    } else if (state == ZC_S_DETACHED) {
        if (zc_grow(&reader->open, reader->n_open, &reader->open_room, sizeof(*reader->open)))
            reader->open[reader->n_open++] = (zc_open_call){seq, reader->open_number};
    } else {
        return;
    }
    reader->open_number = 0;
    const uint64_t bound = state == ZC_S_DONE ? slot->t_leave : slot->t_enter;
    if (bound > reader->bound)
        reader->bound = bound;
    advance(reader, size);
}
