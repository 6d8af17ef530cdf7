/* SPDX-License-Identifier: MIT */
/* Host waits that the program did not make: after each submit, each list, or each command. */
#include "serialize.h"

#include <stdlib.h>
#include <string.h>

/* The object that a parameter of that role holds. */
uint32_t zr_object_of_role(const zr_call *call, enum zt_role role)
{
    const zt_field *const p = zt_param_by_role(call->func, role);
    for (uint32_t i = 0; p != NULL && p->shape == ZT_VALUE && i < call->n_fixes; i++)
        if (call->fixes[i].kind == ZR_FIX_OBJECT && call->fixes[i].where == &call->words[p->offset])
            return call->fixes[i].index;
    return ZR_NONE;
}

static void wait_behind(zr_run *run, const zr_call *call, uint32_t object)
{
    char name[64];
    atomic_fetch_add(&run->shared->progress, 1);
    if (zr_sync_object(run, object, run->options->timeout_ns) != ZR_NOT_READY)
        return;
    zr_object_name(&run->plan->objects, object, name, sizeof(name));
    zr_stop(run, ZR_DIFFERS,
            "serialised, the replay waits for %s behind call #%llu %s, but the device waits for the host, which is "
            "here: this program submits work before it signals what the work waits for",
            name, (unsigned long long)call->number, call->func->name);
}

static int64_t by_list(zr_run *run, const zr_call *call, void *fn, uint32_t queue)
{
    const zt_field *const lists = zt_param_by_role(call->func, ZT_R_LISTS), *const fence = zt_param_by_role(call->func,
                                                                                                            ZT_R_FENCE);
    if (lists == NULL || lists->count.op != ZT_X_FIELD || fence == NULL)
        return zr_thunks[call->id](fn, call->words);
    const unsigned count_at = call->func->params[lists->count.a].offset;
    const uint32_t n = (uint32_t)call->words[count_at];
    uint64_t words[16];
    if (n <= 1 || call->func->n_words > 16)
        return zr_thunks[call->id](fn, call->words);
    memcpy(words, call->words, call->func->n_words * 8u);
    words[count_at] = 1;
    int64_t result = 0;
    for (uint32_t i = 0; i < n && result == 0 && !atomic_load(&run->stop); i++) {
        words[lists->offset] = call->words[lists->offset] + i * 8u;
        words[fence->offset] = i + 1 == n ? call->words[fence->offset] : 0;
        result = zr_thunks[call->id](fn, words);
        if (result == 0)
            wait_behind(run, call, queue);
    }
    return result;
}

/* ------------------------------------------------------------------------------------------------ each command a list
 */

typedef struct book { /* what is in a regular list */
    const zr_call *create;
    const zr_call **appends;
    size_t n, room;
} book;
static book *books; /* by object; one replay at a time in a process, and it is a child's */
static size_t n_books;

static book *book_of(zr_run *run, uint32_t object)
{
    if (books == NULL) {
        n_books = run->plan->objects.n_objects;
        books = calloc(n_books + 1, sizeof(*books));
    }
    return books != NULL && object < n_books ? &books[object] : NULL;
}

int64_t zr_call_by_name(zr_run *run, const char *name, const uint64_t *words)
{
    const int id = zt_func_find(name);
    void *const fn = id >= 0 ? zr_target_function(&run->target, (uint32_t)id) : NULL;
    return fn ? zr_thunks[id](fn, words) : 0x78000003;
}

static int64_t one_command(zr_run *run, const zr_call *execute, const book *b, const zr_call *append, uint32_t queue)
{
    uint64_t list = 0, words[64];
    const zt_field *const at = zt_param_by_role(append->func, ZT_R_LIST), *const made = zt_param_by_role(
                                                                              b->create->func, ZT_R_CREATE);
    if (at == NULL || made == NULL || append->func->n_words > 64 || b->create->func->n_words > 64)
        return 0x78000003;
    memcpy(words, b->create->words, b->create->func->n_words * 8u);
    words[made->offset] = (uint64_t)(uintptr_t)&list;
    int64_t result = zr_call_by_name(run, b->create->func->name, words);
    if (result != 0)
        return result;
    memcpy(words, append->words, append->func->n_words * 8u);
    words[at->offset] = list;
    result = zr_call_by_name(run, append->func->name, words);
    if (result == 0)
        result = zr_call_by_name(run, "zeCommandListClose", (const uint64_t[]){list});
    if (result == 0)
        result =
            zr_call_by_name(run, "zeCommandQueueExecuteCommandLists",
                         (const uint64_t[]){run->plan->objects.objects[queue].live, 1, (uint64_t)(uintptr_t)&list, 0});
    if (result == 0)
        wait_behind(run, execute, queue);
    if (!atomic_load(&run->stop))
        zr_call_by_name(run, "zeCommandListDestroy", (const uint64_t[]){list});
    return result;
}

static int64_t by_command(zr_run *run, const zr_call *call, void *fn, uint32_t queue)
{
    const zt_field *const lists = zt_param_by_role(call->func, ZT_R_LISTS), *const fence = zt_param_by_role(call->func,
                                                                                                            ZT_R_FENCE);
    const uint64_t first = lists ? call->words[lists->offset] : 0;
    const uint64_t n =
        lists && lists->count.op == ZT_X_FIELD ? (uint32_t)call->words[call->func->params[lists->count.a].offset] : 0;
    bool any = false;
    for (uint32_t i = 0; i < call->n_fixes; i++) { /* fixes come in the order of the walk: list after list */
        const zr_fix *const fix = &call->fixes[i];
        const uint64_t where = (uint64_t)(uintptr_t)fix->where;
        const book *const b = fix->kind == ZR_FIX_OBJECT ? book_of(run, fix->index) : NULL;
        if (b == NULL || where < first || where >= first + n * 8 || b->create == NULL)
            continue;
        for (size_t k = 0; k < b->n; k++) {
            const int64_t result = one_command(run, call, b, b->appends[k], queue);
            if (result != 0 || atomic_load(&run->stop))
                return result;
            any = true;
        }
    }
    if (!any || fence == NULL)
        return zr_thunks[call->id](fn, call->words);
    if (call->words[fence->offset] == 0)
        return 0;
    /* a submit of nothing signals the fence */
    uint64_t empty = 0, words[8] = {0};
    for (size_t i = 0; i < n_books && empty == 0; i++) {
        if (books[i].create == NULL)
            continue;
        memcpy(words, books[i].create->words, sizeof(uint64_t) * 4);
        words[3] = (uint64_t)(uintptr_t)&empty;
        if (zr_call_by_name(run, "zeCommandListCreate", words) != 0)
            empty = 0;
    }
    zr_call_by_name(run, "zeCommandListClose", (const uint64_t[]){empty});
    const int64_t result = zr_call_by_name(run, "zeCommandQueueExecuteCommandLists",
                                        (const uint64_t[]){run->plan->objects.objects[queue].live, 1,
                                                           (uint64_t)(uintptr_t)&empty, call->words[fence->offset]});
    wait_behind(run, call, queue);
    if (!atomic_load(&run->stop))
        zr_call_by_name(run, "zeCommandListDestroy", (const uint64_t[]){empty});
    return result;
}

static void keep_book(zr_run *run, const zr_call *call)
{
    const int kind = call->func->kind;
    if (kind == ZT_K_CREATE && strcmp(call->func->name, "zeCommandListCreate") == 0 && call->n_outs > 0) {
        book *const b = book_of(run, call->outs[0].index);
        if (b != NULL && call->outs[0].kind == ZR_OUT_OBJECT)
            b->create = call;
    } else if (kind == ZT_K_APPEND || kind == ZT_K_RESET) {
        const uint32_t list = kind == ZT_K_RESET ? call->self : zr_object_of_role(call, ZT_R_LIST);
        book *const b = list == ZR_NONE ? NULL : book_of(run, list);
        if (b == NULL)
            return;
        if (kind == ZT_K_RESET)
            b->n = 0;
        else if (zr_grow((void **)&b->appends, b->n, &b->room, sizeof(*b->appends)))
            b->appends[b->n++] = call;
    }
}

int64_t zr_serialized(zr_run *run, const zr_call *call, void *fn, const uint64_t *words)
{
    memcpy(call->words, words, call->func->n_words * 8u); /* later calls look them up */
    const int kind = call->func->kind, how = run->options->serialize;
    uint32_t object = ZR_NONE;
    if (kind == ZT_K_EXECUTE) {
        object = zr_object_of_role(call, ZT_R_QUEUE);
        if (object == ZR_NONE)
            object = zr_object_of_role(call, ZT_R_LIST);
    } else if (kind == ZT_K_APPEND) {
        object = zr_object_of_role(call, ZT_R_LIST);
        if (object != ZR_NONE && !run->plan->objects.objects[object].immediate)
            object = ZR_NONE;
    }
    int64_t result;
    if (kind == ZT_K_EXECUTE && object != ZR_NONE && how == ZR_SERIALIZE_LIST)
        result = by_list(run, call, fn, object);
    else if (kind == ZT_K_EXECUTE && object != ZR_NONE && how == ZR_SERIALIZE_COMMAND &&
             object == zr_object_of_role(call, ZT_R_QUEUE))
        result = by_command(run, call, fn, object);
    else
        result = zr_thunks[call->id](fn, call->words);
    if (how == ZR_SERIALIZE_COMMAND && result == 0)
        keep_book(run, call);
    if (result == 0 && object != ZR_NONE && !atomic_load(&run->stop))
        wait_behind(run, call, object);
    return result;
}
