/* SPDX-License-Identifier: MIT */
/* Where the frame addresses of backtraces lie: what the recorder found out, or else the library that was mapped there. */
#include "reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_address(const void *a, const void *b)
{
    const zt__frame *const x = a, *const y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Takes over `name`. @return the name if it was kept, NULL when memory is out. */
static const char *append(zt__frames *f, uint64_t address, char *name)
{
    if (name != NULL && f->n == f->room) {
        const size_t more = f->room ? f->room * 2 : 64;
        zt__frame *const grown = realloc(f->at, more * sizeof(*grown));
        if (grown == NULL) {
            free(name);
            return NULL;
        }
        f->at = grown;
        f->room = more;
    }
    if (name == NULL)
        return NULL;
    f->at[f->n++] = (zt__frame){address, name};
    f->sorted = false;
    return name;
}

/* A stranger's text must not steer a terminal, of 8 bits or of UTF-8. */
static char *clean(char *name)
{
    unsigned char before = 0;
    for (unsigned char *c = (unsigned char *)name; c != NULL && *c != '\0'; before = *c++)
        if (*c < 0x20 || *c == 0x7f || (*c >= 0x80 && *c < 0xa0 && (before < 0x80 || before == 0xc2)))
            *c = '?';
    return name;
}

void zt__frames_take(zt__frames *f, const Zetrace__Frames *m)
{
    uint64_t address = 0;
    for (size_t i = 0; i < m->n_address && i < m->n_name; i++) {
        append(f, address += m->address[i], clean(strdup(m->name[i])));
    }
}

const char *zt__frames_find(zt__frames *f, const zt_session *session, uint64_t address)
{
    const zt__frame key = {.address = address};
    if (!f->sorted && f->n > 0)
        qsort(f->at, f->n, sizeof(*f->at), by_address);
    f->sorted = true;
    const zt__frame *const found = f->n ? bsearch(&key, f->at, f->n, sizeof(key), by_address) : NULL;
    if (found != NULL)
        return found->name;
    for (uint32_t i = 0; i < session->n_libraries; i++) {
        const zt_library *const library = &session->libraries[i];
        if (address < library->base || address - library->base >= library->size)
            continue;
        const char *const slash = strrchr(library->path, '/');
        char text[300];
        snprintf(text, sizeof(text), "%.250s+0x%llx", slash ? slash + 1 : library->path, (unsigned long long)(address - library->base));
        return append(f, address, clean(strdup(text)));
    }
    return NULL;
}

void zt__frames_free(zt__frames *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->at[i].name);
    free(f->at);
}
