/* SPDX-License-Identifier: MIT */
#include "api.h"

#include <string.h>

#include "lookup.h"

int zt_func_find(const char *name)
{
    unsigned low = 0, high = zt_n_funcs;
    while (low < high) {
        const unsigned mid = (low + high) / 2;
        const int order = strcmp(name, zt_funcs[zt__funcs_by_name[mid]].name);
        if (order == 0)
            return zt__funcs_by_name[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return -1;
}

const zt_type *zt_type_find(const char *name)
{
    unsigned low = 0, high = zt_n_types;
    while (low < high) {
        const unsigned mid = (low + high) / 2;
        const int order = strcmp(name, zt_types[mid].name);
        if (order == 0)
            return &zt_types[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

const zt_type *zt_struct_by_stype(enum zt_ns ns, uint32_t stype)
{
    const zt__stype *const list = zt__stypes[ns];
    unsigned low = 0, high = zt__n_stypes[ns];
    while (low < high) {
        const unsigned mid = (low + high) / 2;
        if (list[mid].stype == stype)
            return &zt_types[list[mid].type];
        if (stype < list[mid].stype)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

const char *zt_enum_name(const zt_type *type, uint32_t value)
{
    for (unsigned i = 0; i < type->n_values; i++)
        if (type->values[i].value == value)
            return type->values[i].name;
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

unsigned zt_modes(const zt_type *type, uint32_t value)
{
    static const struct {
        const char *end;
        uint8_t cls, mode;
    } ends[] = {{"_FLAG_IN_ORDER", ZT_FLAGS, ZT_M_IN_ORDER},
                {"_MODE_SYNCHRONOUS", ZT_ENUM, ZT_M_SYNCHRONOUS},
                {"_FLAG_KERNEL_TIMESTAMP", ZT_FLAGS, ZT_M_TIMESTAMPS},
                {"_FLAG_KERNEL_MAPPED_TIMESTAMP", ZT_FLAGS, ZT_M_TIMESTAMPS}};
    unsigned modes = 0;
    for (unsigned i = 0; (type->cls == ZT_FLAGS || type->cls == ZT_ENUM) && i < type->n_values; i++) {
        const zt_enum_value *const v = &type->values[i];
        const bool set = type->cls == ZT_FLAGS ? (value & v->value) != 0 : value == v->value;
        for (unsigned k = 0; set && k < sizeof(ends) / sizeof(ends[0]); k++)
            if (ends[k].cls == type->cls && ends_with(v->name, ends[k].end))
                modes |= ends[k].mode;
    }
    return modes;
}

bool zt_is_fault(int64_t result)
{
    return result == 0x70000001 || result == 0x70000003 || result == 0x7ffffffe;
}

const zt_field *zt_param_by_role(const zt_func *func, enum zt_role role)
{
    for (unsigned i = 0; i < func->n_params; i++)
        if (func->params[i].role == role)
            return &func->params[i];
    return NULL;
}
