/* SPDX-License-Identifier: MIT */
/*
 * Between loader and driver: which pointers of a function table become wrappers, and what each wrapper calls.
 *
 * A function has one usual pointer. Others (a second loader in the process, a table the loader fills for itself, a driver's
 * extension functions) get a thunk from a pool: it leaves its number with the thread and jumps to the wrapper.
 */
#include "process.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_VARIANTS 1024u
#define STACK_REACH (1u << 20)

_Atomic(zc_fn) zc_next[1024];

typedef struct variant {
    zc_fn next;
    uint32_t func, flags;
    uintptr_t text, text_end; /* INTERNAL if called from here ... */
    _Atomic bool fresh;       /* ... or for the first time: the loader's tracing layer may stand in between */
} variant;

static variant variants[MAX_VARIANTS + 1]; /* 0 is not used */
static _Atomic uint32_t n_variants;
static zc_lock variants_lock;
__attribute__((visibility("hidden"))) zc_fn zc_variant_target[MAX_VARIANTS + 1];

#if defined(__x86_64__)
extern char zc_thunks[] __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n"
        ".balign 32\n"
        ".hidden zc_thunks\n"
        "zc_thunks:\n"
        ".set zc_i, 1\n"
        ".rept 1024\n"
        ".balign 32\n"
        "endbr64\n"
        "movq zc_self@gottpoff(%rip), %r11\n"
        "movl $zc_i, %fs:8(%r11)\n"
        "jmp *zc_variant_target + 8 * zc_i(%rip)\n"
        ".set zc_i, zc_i + 1\n"
        ".endr\n"
        ".popsection\n");

static void *thunk_of(uint32_t index)
{
    return zc_thunks + 32 * (index - 1);
}

static uint32_t variant_of_thunk(const void *p)
{
    const uintptr_t offset = (uintptr_t)p - (uintptr_t)zc_thunks;
    return offset < 32 * MAX_VARIANTS ? (uint32_t)(offset / 32 + 1) : 0;
}
#else
static void *thunk_of(uint32_t index)
{
    (void)index;
    return NULL;
}
static uint32_t variant_of_thunk(const void *p)
{
    (void)p;
    return 0;
}
#endif

ZC_COLD zc_fn zc_take_variant(uint32_t *flags, void *return_address)
{
    variant *const v = &variants[zc_self.variant];
    zc_self.variant = 0;
    *flags = v->flags;
    if (*flags & ZC_SF_INTERNAL) {
        const bool first = atomic_exchange_explicit(&v->fresh, false, memory_order_relaxed);
        if (!first && ((uintptr_t)return_address < v->text || (uintptr_t)return_address >= v->text_end))
            *flags &= ~(uint32_t)ZC_SF_INTERNAL;
    }
    return v->next;
}

/* @return the address that stands for calling `next` through the function's wrapper, or NULL if the pool is empty. */
static void *make_variant(uint32_t func, zc_fn next, uint32_t flags, uintptr_t text, uintptr_t text_end)
{
    void *address = NULL;
    zc_lock_take(&variants_lock);
    const uint32_t n = atomic_load(&n_variants);
    for (uint32_t i = 1; i <= n && address == NULL; i++)
        if (variants[i].func == func && variants[i].next == next && variants[i].flags == flags && variants[i].text == text) {
            atomic_store(&variants[i].fresh, true);
            address = thunk_of(i);
        }
    if (address == NULL && n < MAX_VARIANTS && thunk_of(n + 1) != NULL) {
        variants[n + 1] = (variant){next, func, flags, text, text_end, true};
        zc_variant_target[n + 1] = zc_wrappers[func];
        atomic_store(&n_variants, n + 1);
        address = thunk_of(n + 1);
    }
    zc_lock_give(&variants_lock);
    return address;
}

/* @return what the slot should hold instead of `next`. */
static void *wrap(uint32_t func, void *next, uint32_t flags, uintptr_t text, uintptr_t text_end)
{
    if ((zc_fn)next == zc_wrappers[func] || variant_of_thunk(next))
        return next;
    if (flags == 0) {
        zc_fn usual = NULL;
        if (atomic_compare_exchange_strong(&zc_next[func], &usual, (zc_fn)next) || usual == (zc_fn)next)
            return (void *)zc_wrappers[func];
    }
    void *const address = make_variant(func, (zc_fn)next, flags, text, text_end);
    return address != NULL ? address : next;
}

/* ------------------------------------------------------------------------------------------------------ the caller */

typedef struct caller {
    void *handle; /* for dlsym */
    uintptr_t text, text_end;
    bool exports; /* has the API's functions, so that dlsym tells how long its tables are */
    bool reordered; /* loaders whose tables did not only grow */
} caller;

typedef struct span {
    uintptr_t address, start, end;
    const struct link_map *map;
} span;

static int find_span(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    span *const s = data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const p = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && s->address >= start && s->address < start + p->p_memsz) {
            s->start = start;
            s->end = start + p->p_memsz;
            return 1;
        }
    }
    return 0;
}

/* 1.18.0 to 1.18.3 put new functions into the middle of some tables. */
static bool is_reordered(const char *path)
{
    char real[PATH_MAX];
    const char *const at = realpath(path, real) ? strstr(real, ".so.1.18.") : NULL;
    return at != NULL && at[9] >= '0' && at[9] <= '3' && at[10] == 0;
}

static caller find_caller(void *address)
{
    caller c = {0};
    Dl_info info;
    span s = {.address = (uintptr_t)address};
    dl_iterate_phdr(find_span, &s);
    c.text = s.start;
    c.text_end = s.end;
    if (dladdr(address, &info) && info.dli_fname != NULL) {
        c.handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        c.reordered = is_reordered(info.dli_fname);
    }
    if (c.handle == NULL)
        c.handle = dlopen(NULL, RTLD_LAZY);
    if (c.handle != NULL) {
        /* the driver's proxy answers for the loader that called it */
        void *(*const on_behalf)(void) = (void *(*)(void))dlsym(c.handle, "zetrace_proxy_caller");
        if (on_behalf != NULL && on_behalf() != address)
            return find_caller(on_behalf());
        c.exports = dlsym(c.handle, "zeInit") != NULL;
    }
    return c;
}

static bool is_api_name(const char *name)
{
    if (name[0] != 'z' || name[1] != 'e')
        return false;
    const char *const rest = name + (name[2] == 't' || name[2] == 's' || name[2] == 'r' ? 3 : 2);
    const size_t length = strlen(name);
    return *rest >= 'A' && *rest <= 'Z' && strncmp(name, "zeLoader", 8) != 0 &&
           !(length > 16 && strcmp(name + length - 16, "ProcAddrTable") == 0) && strstr(name, "ProcAddrTable") == NULL;
}

/* Functions that the caller exports and this table does not know: their slots pass through. */
static void count_unknown(const caller *c)
{
    static uintptr_t counted[8];
    const struct link_map *map = NULL;
    if (!c->exports || dlinfo(c->handle, RTLD_DI_LINKMAP, &map) != 0 || map == NULL)
        return;
    for (unsigned i = 0; i < 8; i++) {
        if (counted[i] == c->text)
            return;
        if (counted[i] == 0) {
            counted[i] = c->text;
            break;
        }
    }
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const uint32_t *hash = NULL;
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)d->d_un.d_ptr;
        else if (d->d_tag == DT_STRTAB)
            strings = (const char *)d->d_un.d_ptr;
        else if (d->d_tag == DT_GNU_HASH)
            hash = (const uint32_t *)d->d_un.d_ptr;
    }
    if (symbols == NULL || strings == NULL || hash == NULL)
        return;
    const uint32_t n_buckets = hash[0], first = hash[1], bloom = hash[2];
    const uint32_t *const buckets = hash + 4 + 2 * bloom, *const chains = buckets + n_buckets;
    uint64_t unknown = 0;
    for (uint32_t b = 0; b < n_buckets; b++)
        for (uint32_t i = buckets[b]; i >= first; i++) {
            const char *const name = strings + symbols[i].st_name;
            if (symbols[i].st_shndx != SHN_UNDEF && is_api_name(name) && zt_func_find(name) < 0)
                unknown++;
            if (chains[i - first] & 1)
                break;
        }
    if (unknown) {
        atomic_fetch_add(&zc_this.unknown_slots, unknown);
        if (zc_self.thread != NULL && zc_self.thread->ring != NULL)
            atomic_fetch_add(&zc_self.thread->ring->unknown_slots, atomic_exchange(&zc_this.unknown_slots, 0));
    }
}

/* ------------------------------------------------------------------------------------------------------ tables */

/* The validation layer that the user had asked for gets its place under ours. */
static void call_real_layer(unsigned table, uint32_t version, void **slots)
{
    static void *handle;
    static _Atomic bool tried;
    if (!atomic_exchange(&tried, true)) {
        const char *const path = getenv("ZETRACE_REAL_VALIDATION");
        if (path != NULL && path[0] != 0)
            handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (handle == NULL)
        return;
    int (*const getter)(uint32_t, void **) = (int (*)(uint32_t, void **))dlsym(handle, zt_tables[table].getter);
    if (getter != NULL)
        getter(version, slots);
}

static const char *const reordered_tables[] = {"ze_command_list_exp_dditable_t", "zet_metric_group_exp_dditable_t",
                                               "zet_metric_dditable_t", "zet_metric_exp_dditable_t",
                                               "zes_device_exp_dditable_t", "zes_vf_management_exp_dditable_t"};

int zc_fill_table(unsigned table, uint32_t version, void **slots, void *caller_address)
{
    if (slots == NULL)
        return 0x78000007; /* ZE_RESULT_ERROR_INVALID_NULL_POINTER */
    if (version >> 16 != zt_api_version >> 16)
        return 0; /* another layout: leave it as it is */
    const int saved = errno;
    call_real_layer(table, version, slots);
    const caller c = find_caller(caller_address);
    if (c.reordered)
        for (unsigned i = 0; i < sizeof(reordered_tables) / sizeof(reordered_tables[0]); i++)
            if (strcmp(zt_tables[table].name, reordered_tables[i]) == 0)
                goto out;
    count_unknown(&c);
    /* a table on the stack is one that the loader fills to make a call of its own */
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0), at = (uintptr_t)slots;
    const uint32_t flags = at > here && at - here < STACK_REACH ? ZC_SF_INTERNAL : 0;
    for (unsigned i = 0; i < zt_tables[table].n_slots; i++) {
        const unsigned func = zc_table_slots[table][i];
        const uint32_t since = (uint32_t)(zt_funcs[func].since >> 8) << 16 | (zt_funcs[func].since & 0xff);
        /* a program may ask a new loader for an old table: what is behind that table's end is not ours to touch */
        const bool there = since <= version && (!c.exports || dlsym(c.handle, zt_funcs[func].name) != NULL);
        if (there && slots[i] != NULL)
            slots[i] = wrap(func, slots[i], flags, c.text, c.text_end);
    }
out:
    if (c.handle != NULL)
        dlclose(c.handle);
    errno = saved;
    return 0;
}

void zc_wrap_extension(const char *name, void **address)
{
    if (name == NULL || address == NULL || *address == NULL)
        return;
    const int saved = errno;
    const int func = zt_func_find(name);
    void *const wrapped = func >= 0 ? wrap((uint32_t)func, *address, ZC_SF_EXTENSION, 0, 0) : NULL;
    if (wrapped != NULL && wrapped != *address)
        *address = wrapped;
    else if (zc_self.thread != NULL && zc_self.thread->ring != NULL && !(func >= 0 && variant_of_thunk(*address)))
        atomic_fetch_add_explicit(&zc_self.thread->ring->unwrapped_extensions, 1, memory_order_relaxed);
    errno = saved;
}
