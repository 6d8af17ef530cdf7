/* SPDX-License-Identifier: MIT */
/*
 * Frame addresses of a process: which file each lay in is noted when its first call comes by, while the process lives as a rule;
 * names are looked up once, at the end.
 */
#include "recorder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PLACES (1u << 20)
#define PATIENCE_NS 20000000u /* code that no file holds must not make every call read the maps */
#define NAMES_AT_ONCE 16

/* ----------------------------------------------------------------------------------------------------------- modules */

static bool is_loader(const char *path)
{
    static const char *const names[] = {"libze_loader.so", "libze_tracing_layer.so", "libze_validation_layer.so", "libzetrace-"};
    const char *const slash = strrchr(path, '/');
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(slash ? slash + 1 : path, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* A module that was known before takes its place again. */
static void add_module(zc_frames *f, const char *path, uint64_t base, uint64_t end, bool code)
{
    for (size_t i = f->n_modules; i > 0; i--) {
        zc_module *const known = &f->modules[i - 1];
        if (known->base == base && strcmp(known->path, path) == 0) {
            known->end = end;
            known->code |= code;
            return;
        }
    }
    if (!zc_grow(&f->modules, f->n_modules, &f->modules_room, sizeof(*f->modules)))
        return;
    char *const copy = strdup(path);
    if (copy != NULL)
        f->modules[f->n_modules++] = (zc_module){.path = copy, .base = base, .end = end, .fd = -1, .code = code, .loader = is_loader(path)};
}

bool zc_modules_read(zc_process *p)
{
    char name[64], *path = NULL;
    size_t n = 0;
    uint64_t base = 0, end = 0;
    bool code = false;
    snprintf(name, sizeof(name), "/proc/%d/maps", p->system_pid);
    char *const text = zc_slurp(name, &n), *rest = text;
    for (char *line; n > 0 && (line = strsep(&rest, "\n")) != NULL;) {
        unsigned long long from, to, offset;
        char access[5] = "";
        char *const file = strchr(line, '/');
        if (file == NULL || sscanf(line, "%llx-%llx %4s %llx", &from, &to, access, &offset) != 4)
            continue;
        /* a file's mappings follow each other; one that is mapped twice begins again with its first byte */
        if (path == NULL || strcmp(path, file) != 0 || (offset == 0 && access[1] != 'w')) {
            if (path != NULL)
                add_module(&p->frames, path, base, end, code);
            path = file;
            base = from;
            code = false;
        }
        end = to;
        code |= access[2] == 'x';
    }
    if (path != NULL)
        add_module(&p->frames, path, base, end, code);
    free(text);
    return path != NULL;
}

static void open_module(const zc_process *p, zc_module *m)
{
    char path[4300];
    /* the process may see other folders than we do */
    snprintf(path, sizeof(path), "/proc/%d/root%.4200s", p->system_pid, m->path);
    m->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (m->fd < 0)
        m->fd = open(m->path, O_RDONLY | O_CLOEXEC);
}

/* @return index plus one of the newest module there. */
static uint32_t find_module(const zc_frames *f, uint64_t address)
{
    for (size_t i = f->n_modules; i > 0; i--)
        if (address >= f->modules[i - 1].base && address < f->modules[i - 1].end)
            return (uint32_t)i;
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------ places */

static zc_place *slot_of(zc_place *places, size_t room, uint64_t address)
{
    size_t at = (size_t)((address * 0x9e3779b97f4a7c15ull) >> 20) & (room - 1);
    while (places[at].address != 0 && places[at].address != address)
        at = (at + 1) & (room - 1);
    return &places[at];
}

static zc_place *place_of(zc_frames *f, uint64_t address)
{
    if (f->n_places * 2 >= f->places_room && f->places_room < MAX_PLACES * 2) {
        const size_t room = f->places_room ? f->places_room * 2 : 256;
        zc_place *const places = calloc(room, sizeof(*places));
        if (places == NULL)
            return NULL;
        for (size_t i = 0; i < f->places_room; i++)
            if (f->places[i].address != 0)
                *slot_of(places, room, f->places[i].address) = f->places[i];
        free(f->places);
        f->places = places;
        f->places_room = room;
    }
    zc_place *const place = slot_of(f->places, f->places_room, address);
    if (place->address == 0) {
        if (f->n_places >= MAX_PLACES)
            return NULL;
        place->address = address;
        f->n_places++;
    }
    return place;
}

static const zc_module *locate(zc_process *p, uint64_t address)
{
    zc_frames *const f = &p->frames;
    zc_place *const place = address ? place_of(f, address) : NULL;
    if (place == NULL)
        return NULL;
    if (place->module == 0) {
        place->module = find_module(f, address - 1);
        const uint64_t now = place->module || p->ended ? 0 : zc_mono_now();
        if (now - f->fruitless_ns > PATIENCE_NS && now != 0) {
            zc_modules_read(p);
            place->module = find_module(f, address - 1);
            f->fruitless_ns = place->module ? 0 : now;
        }
        if (place->module && f->modules[place->module - 1].fd < 0)
            open_module(p, &f->modules[place->module - 1]);
    }
    return place->module ? &f->modules[place->module - 1] : NULL;
}

size_t zc_frames_take(zc_process *p, uint64_t *frames, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const zc_module *const module = locate(p, frames[i]);
        if (kept > 0 || module == NULL || !module->loader)
            frames[kept++] = frames[i];
    }
    return kept;
}

/* ------------------------------------------------------------------------------------------------------------- names */

typedef struct named {
    zc_place place;
    char *name;
} named;

static int by_module(const void *a, const void *b)
{
    const named *const x = a, *const y = b;
    return x->place.module < y->place.module ? -1 : x->place.module > y->place.module;
}

static int by_address(const void *a, const void *b)
{
    const named *const x = a, *const y = b;
    return x->place.address < y->place.address ? -1 : x->place.address > y->place.address;
}

static void look_after_others(zc_recorder *recorder, const zc_process *p)
{
    for (size_t i = 0; i < recorder->n_processes; i++)
        if (recorder->processes[i] != p)
            zc_process_pass(recorder, recorder->processes[i]);
}

static void name_all(zc_recorder *recorder, zc_process *p, named *list, size_t n)
{
    zc_symbols *symbols = NULL;
    for (size_t i = 0; i < n; i++) {
        zc_module *const module = &p->frames.modules[list[i].place.module - 1];
        const uint64_t address = list[i].place.address;
        char text[512];
        if (i == 0 || list[i - 1].place.module != list[i].place.module) {
            zc_symbols_close(symbols);
            symbols = zc_symbols_open(module);
        }
        if (symbols == NULL || !zc_symbols_name(symbols, address, text, sizeof(text))) {
            const char *const slash = strrchr(module->path, '/');
            snprintf(text, sizeof(text), "%.300s+0x%llx", slash ? slash + 1 : module->path, (unsigned long long)(address - module->base));
        }
        list[i].name = strdup(text);
        if (i % NAMES_AT_ONCE == NAMES_AT_ONCE - 1)
            look_after_others(recorder, p);
    }
    zc_symbols_close(symbols);
}

void zc_frames_write(zc_recorder *recorder, zc_process *p)
{
    zc_frames *const f = &p->frames;
    size_t n = 0;
    if (f->n_places == 0 || p->failed)
        return;
    named *const list = calloc(f->n_places, sizeof(*list));
    uint64_t *const addresses = calloc(f->n_places, sizeof(*addresses));
    const char **const names = calloc(f->n_places, sizeof(*names));
    if (list != NULL && addresses != NULL && names != NULL) {
        for (size_t i = 0; i < f->places_room; i++)
            if (f->places[i].module != 0 && !f->modules[f->places[i].module - 1].loader)
                list[n++].place = f->places[i];
        qsort(list, n, sizeof(*list), by_module);
        name_all(recorder, p, list, n);
        qsort(list, n, sizeof(*list), by_address);
        for (size_t i = 0; i < n; i++) {
            addresses[i] = list[i].place.address;
            names[i] = list[i].name ? list[i].name : "?";
        }
        zt_writer_frames(p->writer, addresses, names, n);
    }
    for (size_t i = 0; i < n; i++)
        free(list[i].name);
    free(list);
    free(addresses);
    free(names);
}

void zc_frames_free(zc_frames *f)
{
    for (size_t i = 0; i < f->n_modules; i++) {
        free(f->modules[i].path);
        if (f->modules[i].fd >= 0)
            close(f->modules[i].fd);
    }
    free(f->modules);
    free(f->places);
    *f = (zc_frames){0};
}
