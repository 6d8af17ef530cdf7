/* SPDX-License-Identifier: MIT */
/* The part of the API table that a chunk's calls need: with it any later reader can take them apart. */
#include "writer.h"

typedef struct describer {
    Zetrace__ApiTable *table;
    uint8_t *seen; /* by type */
    bool broken;
} describer;

static void *add_message(describer *d, void *list, size_t *n, size_t size)
{
    void **const grown = realloc(*(void ***)list, (*n + 1) * sizeof(void *));
    void *const m = calloc(1, size);
    if (grown != NULL)
        *(void ***)list = grown;
    if (grown == NULL || m == NULL) {
        free(m);
        d->broken = true;
        return NULL;
    }
    grown[(*n)++] = m;
    return m;
}

static char *text(const char *s)
{
    return strdup(s);
}

static void describe_type(describer *d, uint16_t index, unsigned depth)
{
    const zt_type *const type = &zt_types[index];
    if (d->seen[index] || (type->n_fields == 0 && type->n_values == 0) || depth > 8)
        return;
    d->seen[index] = 1;
    Zetrace__ApiTable__Type *const m = add_message(d, &d->table->types, &d->table->n_types, sizeof(*m));
    if (m == NULL)
        return;
    zetrace__api_table__type__init(m);
    m->name = text(type->name);
    m->size = type->size;
    m->stype = type->stype;
    for (unsigned i = 0; i < type->n_values; i++) {
        Zetrace__ApiTable__Value *const v = add_message(d, &m->values, &m->n_values, sizeof(*v));
        if (v == NULL)
            return;
        zetrace__api_table__value__init(v);
        v->name = text(type->values[i].name);
        v->value = type->values[i].value;
    }
    for (unsigned i = 0; i < type->n_fields; i++) {
        Zetrace__ApiTable__Field *const f = add_message(d, &m->fields, &m->n_fields, sizeof(*f));
        if (f == NULL)
            return;
        zetrace__api_table__field__init(f);
        f->name = text(type->fields[i].name);
        f->type = text(type->fields[i].decl);
        f->offset = type->fields[i].offset;
        f->size = type->fields[i].size;
        describe_type(d, type->fields[i].type, depth + 1);
    }
}

bool zt__chunk_describe(zt__chunk *c, zt__bytes *out)
{
    Zetrace__Packet *const packet = malloc(sizeof(*packet));
    Zetrace__ApiTable *const table = malloc(sizeof(*table));
    describer d = {.table = table, .seen = calloc(zt_n_types, 1)};
    bool ok = false;
    if (packet == NULL || table == NULL || d.seen == NULL) {
        free(packet);
        free(table);
        free(d.seen);
        return false;
    }
    zetrace__packet__init(packet);
    zetrace__api_table__init(table);
    packet->kind_case = ZETRACE__PACKET__KIND_API;
    packet->api = table;
    table->api_version = zt_api_version;
    /* types of functions described before are not told again */
    for (size_t i = 0; i < c->n_functions; i++)
        for (unsigned p = 0; i < zt_n_funcs && c->functions[i].described && p < c->functions[i].func->n_params; p++)
            d.seen[c->functions[i].func->params[p].type] = 1;
    for (size_t i = 0; i < c->used.n; i++) {
        zt__function_columns *const f = &c->functions[c->used.at[i]];
        if (f->described)
            continue;
        f->described = true;
        Zetrace__ApiTable__Function *const m = add_message(&d, &table->functions, &table->n_functions, sizeof(*m));
        if (m == NULL)
            break;
        zetrace__api_table__function__init(m);
        m->id = f->id;
        m->name = text(f->func->name);
        m->returns = text(zt_types[f->func->return_type].name);
        m->words = f->func->n_words;
        m->ns = f->func->ns;
        for (unsigned p = 0; p < f->func->n_params; p++) {
            const zt_field *const field = &f->func->params[p];
            Zetrace__ApiTable__Param *const param = add_message(&d, &m->params, &m->n_params, sizeof(*param));
            if (param == NULL)
                break;
            zetrace__api_table__param__init(param);
            param->name = text(field->name);
            param->type = text(field->decl);
            param->word = field->offset;
            param->size = field->size;
            describe_type(&d, field->type, 0);
        }
        describe_type(&d, f->func->return_type, 0);
    }
    if (table->n_functions > 0 && !d.broken)
        ok = zt__pack(packet, out);
    free(d.seen);
    zetrace__packet__free_unpacked(packet, NULL);
    return ok;
}

bool zt__chunk_describe_again(zt__chunk *c, zt__bytes *out)
{
    Zetrace__Packet packet;
    Zetrace__ApiTable table;
    bool ok = false;
    zetrace__packet__init(&packet);
    zetrace__api_table__init(&table);
    packet.kind_case = ZETRACE__PACKET__KIND_API;
    packet.api = &table;
    table.api_version = zt_api_version;
    Zetrace__ApiTable__Function *const functions = calloc(c->n_functions + 1, sizeof(*functions));
    table.functions = calloc(c->n_functions + 1, sizeof(*table.functions));
    for (size_t i = 0; functions != NULL && table.functions != NULL && i < c->n_functions; i++) {
        const zt__function_columns *const f = &c->functions[i];
        if (!f->described)
            continue;
        Zetrace__ApiTable__Function *const m = &functions[table.n_functions];
        zetrace__api_table__function__init(m);
        m->id = f->id;
        m->name = (char *)(uintptr_t)f->func->name;
        m->returns = (char *)(uintptr_t)zt_types[f->func->return_type].name;
        m->words = f->func->n_words;
        m->ns = f->func->ns;
        table.functions[table.n_functions++] = m;
    }
    if (table.n_functions > 0)
        ok = zt__pack(&packet, out);
    free(functions);
    free(table.functions);
    return ok;
}
