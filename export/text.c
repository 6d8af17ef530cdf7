/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

bool zx_grow(void *array, size_t n, size_t *room, size_t element)
{
    if (n < *room)
        return true;
    const size_t more = *room ? *room * 2 : 16;
    void *const grown = realloc(*(void **)array, more * element);
    if (grown == NULL)
        return false;
    *(void **)array = grown;
    *room = more;
    return true;
}

static bool make_room(zx_text *t, size_t n)
{
    while (!t->failed && t->n + n + 1 > t->room) {
        const size_t more = t->room ? t->room * 2 : 256;
        char *const grown = realloc(t->at, more);
        if (grown == NULL) {
            t->failed = true;
            break;
        }
        t->at = grown;
        t->room = more;
    }
    return !t->failed;
}

void zx_put_bytes(zx_text *t, const void *bytes, size_t n)
{
    if (!make_room(t, n))
        return;
    memcpy(t->at + t->n, bytes, n);
    t->n += n;
    t->at[t->n] = '\0';
}

void zx_put(zx_text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = NULL;
    const int n = vasprintf(&text, format, list);
    va_end(list);
    if (n < 0) {
        t->failed = true;
        return;
    }
    zx_put_bytes(t, text, (size_t)n);
    free(text);
}

void zx_strip(zx_text *t, const char *tail)
{
    const size_t n = strlen(tail);
    if (t->n >= n && memcmp(t->at + t->n - n, tail, n) == 0) {
        t->n -= n;
        t->at[t->n] = '\0';
    }
}

static int by_name(const void *key, const void *element)
{
    return strcmp(key, *(const char *const *)element);
}

bool zx_in_headers(const char *name)
{
    return bsearch(name, zx_names, zx_n_names, sizeof(zx_names[0]), by_name) != NULL;
}

int zx_refuse(zx_export *x, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(x->error->text, sizeof(x->error->text), format, list);
    va_end(list);
    x->error->status = ZT_E_USAGE;
    return ZT_E_USAGE;
}

int zx_no_memory(zx_export *x)
{
    snprintf(x->error->text, sizeof(x->error->text), "not enough memory to export it");
    x->error->status = ZT_E_MEMORY;
    return ZT_E_MEMORY;
}

void zx_object_name(const zt_object *object, char *out, size_t size)
{
    snprintf(out, size, "%s_%u", object->kind, object->generation);
}
