/* SPDX-License-Identifier: MIT */
/*
 * Where in the program a call was made. Frames are found by the unwind tables, which programs have without frame pointers, too. The
 * unwinder is libgcc's, linked into the layer: it takes no lock and no memory (glibc's own backtrace() loads a library at its first
 * use). It ends where a frame has no tables, as code made at run time often has none.
 */
#include "process.h"

#include <fnmatch.h>
#include <unwind.h>

bool zc_backtraces;
static bool *traced; /* by function id */

/* The linker's names for where the layer lies. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

typedef struct frames {
    uint64_t at[ZC_MAX_FRAMES];
    uint32_t n;
} frames;

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *to)
{
    frames *const f = to;
    int exact = 0;
    const uint64_t address = _Unwind_GetIPInfo(context, &exact);
    if (address == 0)
        return _URC_END_OF_STACK;
    if (f->n == 0 && address >= (uintptr_t)__ehdr_start && address < (uintptr_t)_end)
        return _URC_NO_REASON;
    /* readers look one byte before a return address; a frame that a signal interrupted has none */
    f->at[f->n++] = address + (exact != 0);
    return f->n < ZC_MAX_FRAMES ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void zc_backtrace_start(const char *globs)
{
    if (globs == NULL || *globs == '\0' || (traced = zc_map(zt_n_funcs * sizeof(*traced))) == NULL)
        return;
    while (*globs != '\0') {
        char glob[128];
        const size_t n = strcspn(globs, ",");
        if (n > 0 && n < sizeof(glob)) {
            memcpy(glob, globs, n);
            glob[n] = '\0';
            for (unsigned i = 0; i < zt_n_funcs; i++)
                traced[i] |= fnmatch(glob, zt_funcs[i].name, 0) == 0;
        }
        globs += n + (globs[n] == ',');
    }
    /* what the unwinder does once, it does now */
    frames first = {.n = 0};
    _Unwind_Backtrace(take_frame, &first);
    zc_backtraces = true;
}

ZC_COLD zc_slot *zc_open_traced(zc_thread *t, uint32_t func, uint32_t n_words, uint32_t in_size, uint32_t reserve, uint32_t flags)
{
    frames f;
    f.n = 0;
    if (traced[func] && !(t->head & 1))
        _Unwind_Backtrace(take_frame, &f); /* before the call's time begins */
    const uint32_t size = f.n ? zc_put_size(f.n * 8) : 0;
    zc_slot *const slot = zc_open_plain(t, func, n_words, in_size + size, reserve, flags);
    if (slot != NULL && size) {
        zc_piece *const piece = (zc_piece *)(zc_words_end(slot, n_words) + in_size);
        *piece = (zc_piece){.len = f.n * 8, .kind = ZC_P_BACKTRACE};
        memcpy(piece + 1, f.at, f.n * 8);
    }
    return slot;
}
