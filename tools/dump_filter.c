/* SPDX-License-Identifier: MIT */
#include "dump_filter.h"

#include <stdio.h>
#include <string.h>

static bool is_failure(const zt_call *call)
{
    const char *const type = zt_types[call->func->return_type].name;
    return call->returned && strcmp(type, "ze_result_t") == 0 && call->result != 0 && call->result != 1 /* NOT_READY */;
}

bool zt_is_object_name(const char *text)
{
    const char *const mark = strchr(text, '#');
    uint64_t generation;
    if (mark == NULL || !zt_parse_call(mark + 1, &generation) || mark[1] == '#')
        return false;
    const size_t n = (size_t)(mark - text);
    bool known = n == 3 && memcmp(text, "mem", 3) == 0;
    for (unsigned i = 0; i < zt_n_types && !known; i++)
        known = zt_types[i].object != NULL && strlen(zt_types[i].object) == n && memcmp(zt_types[i].object, text, n) == 0;
    return known;
}

/* Whether the printed line names the object: the name, not followed by a further digit. */
bool zt_filter_wants_line(const zt_filter *f, const char *line)
{
    const size_t n = f->object ? strlen(f->object) : 0;
    if (f->object == NULL)
        return true;
    for (const char *p = line; (p = strstr(p, f->object)) != NULL; p += n) {
        const bool begins = p == line || strchr("=,{[( >\"", p[-1]) != NULL;
        if (begins && (p[n] < '0' || p[n] > '9'))
            return true;
    }
    return false;
}

bool zt_filter_wants(zt_filter *f, const zt_objects *objects, const zt_call *call)
{
    bool match = f->n_functions == 0;
    f->seen++;
    f->last = call->number;
    f->threads = call->thread > f->threads ? call->thread : f->threads;
    for (size_t i = 0; i < f->n_functions; i++)
        if (zt_glob(f->functions[i], call->func->name))
            match = f->met[i] = true;
    const bool in_calls = zt_calls_have(f->calls, objects, call), failed = is_failure(call);
    f->thread_met |= call->thread == f->thread;
    f->failed_met |= failed;
    f->pending_met |= !call->returned;
    return match && in_calls && (f->thread == 0 || call->thread == f->thread) && (!f->failed || failed) &&
           (!f->pending || !call->returned);
}

static void tell_function(const char *glob, const char *path)
{
    bool known = false;
    for (unsigned i = 0; i < zt_n_funcs && !known; i++)
        known = zt_glob(glob, zt_funcs[i].name);
    zt_complain("%s: no call of it is of a function that matches '%s'%s", path, glob,
                known ? "" : ", and no function of Level Zero is; patterns are as in a shell, such as 'zeMem*'");
}

static void tell_object(const char *name, const zt_objects *objects, const char *path)
{
    const zt_object *const *list;
    const size_t n = zt_objects_list(objects, &list), length = (size_t)(strchr(name, '#') - name);
    unsigned greatest = 0;
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i]->kind) == length && memcmp(list[i]->kind, name, length) == 0 && list[i]->generation > greatest)
            greatest = list[i]->generation;
    if (greatest == 0)
        zt_complain("%s: there is no %s in it, nor any other %.*s", path, name, (int)length, name);
    else
        zt_complain("%s: there is no %s in it; the last %.*s is %.*s#%u", path, name, (int)length, name, (int)length, name, greatest);
}

static bool has_object(const char *name, const zt_objects *objects)
{
    const zt_object *const *list;
    const size_t n = zt_objects_list(objects, &list);
    for (size_t i = 0; i < n; i++) {
        char text[128];
        snprintf(text, sizeof(text), "%s#%u", list[i]->kind, list[i]->generation);
        if (strcmp(text, name) == 0)
            return true;
    }
    return false;
}

void zt_filter_tell(const zt_filter *f, const zt_objects *objects, const char *path)
{
    bool told = false;
    const char *const unmet = f->seen ? zt_calls_unmet(f->calls) : NULL;
    if (unmet != NULL) {
        zt_complain("%s: it has no call that --calls=%s names; its last is #%llu", path, unmet, (unsigned long long)f->last);
        told = true;
    }
    for (size_t i = 0; i < f->n_functions && f->seen > 0; i++)
        if (!f->met[i]) {
            tell_function(f->functions[i], path);
            told = true;
        }
    if (f->thread != 0 && f->seen > 0 && !f->thread_met) {
        zt_complain("%s: there is no thread %llu in it; the last is T%llu", path, (unsigned long long)f->thread, (unsigned long long)f->threads);
        told = true;
    }
    if (f->object != NULL && f->seen > 0 && !has_object(f->object, objects)) {
        tell_object(f->object, objects, path);
        told = true;
    }
    if (f->failed && f->seen > 0 && !f->failed_met) {
        zt_complain("%s: no call of it failed", path);
        told = true;
    }
    if (f->pending && f->seen > 0 && !f->pending_met) {
        zt_complain("%s: every call of it returned", path);
        told = true;
    }
    if (f->shown == 0 && f->seen > 0 && !told)
        zt_complain("%s: no call of it meets all of these options", path);
}
