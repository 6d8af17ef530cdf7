/* SPDX-License-Identifier: MIT */
/* The API table against what the specification says: counts, exceptions, slots, stypes, lookups. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "table_facts.h"

extern const unsigned zt_check_counts[4];    /* structs, enumerators, constants, slots compared while compiling */
extern const char *const zt_check_differs[]; /* structs that are shorter or longer in the installed headers */
extern const char *const zt_check_unknown[]; /* what the installed headers have and the table lacks */

static const zt_func *func(const char *name)
{
    const int id = zt_func_find(name);
    return id < 0 ? NULL : &zt_funcs[id];
}

/* Prints which fact is wrong before CUnit counts the failure. */
static void same(const char *what, const char *got, const char *want)
{
    if (strcmp(got, want) != 0)
        printf("\n    %s: the table says '%s', expected '%s'", what, got, want);
    CU_ASSERT_STRING_EQUAL(got, want);
}

static void same_number(const char *what, long got, long want)
{
    if (got != want)
        printf("\n    %s: the table says %ld, expected %ld", what, got, want);
    CU_ASSERT_EQUAL(got, want);
}

/* ------------------------------------------------------------------------------------------------ facts in words */

static void say_expr(char *out, size_t size, const zt_expr *x, const zt_field *siblings)
{
    char times[16] = "";
    if ((x->op == ZT_X_FIELD || x->op == ZT_X_DEREF) && x->b != 0)
        snprintf(times, sizeof(times), "*%d", x->b);
    switch (x->op) {
    case ZT_X_NONE:
        snprintf(out, size, "?");
        break;
    case ZT_X_CONST:
        snprintf(out, size, "%d", x->a);
        break;
    case ZT_X_FIELD:
        snprintf(out, size, "%s%s", siblings[x->a].name, times);
        break;
    case ZT_X_DEREF:
        snprintf(out, size, "*%s%s", siblings[x->a].name, times);
        break;
    case ZT_X_FUNC_DEREF:
        snprintf(out, size, "@%d", x->a);
        break;
    case ZT_X_PATH:
        snprintf(out, size, "%s->%d", siblings[x->a].name, x->b);
        break;
    case ZT_X_ELEMENT:
        snprintf(out, size, "%s[]", siblings[x->a].name);
        break;
    case ZT_X_STRLEN:
        snprintf(out, size, "strlen");
        break;
    case ZT_X_REGION:
        snprintf(out, size, "region(%s,%s,%s)", siblings[x->a].name, siblings[x->b].name, siblings[x->c].name);
        break;
    case ZT_X_LOOKUP:
        snprintf(out, size, "lookup");
        break;
    default:
        snprintf(out, size, "bad");
        break;
    }
}

/* "address(size) w", "array(*pSize) inout", "one of string out": what the tests' list is written in. */
static void say_field(char *out, size_t size, const zt_field *f, const zt_field *siblings)
{
    static const char *const shapes[] = {"value", "one", "array", "blob", "string", "pnext", "address", "opaque"};
    static const char *const dirs[] = {"", "in", "out", "inout"};
    static const char *const access[] = {"", " r", " w", " rw"};
    char count[96] = "", inner[128] = "", text[64];
    if (f->shape == ZT_ARRAY || f->shape == ZT_BLOB || (f->shape == ZT_ADDRESS && f->count.op != ZT_X_NONE)) {
        say_expr(text, sizeof(text), &f->count, siblings);
        snprintf(count, sizeof(count), "(%s)", text);
    }
    if (f->inner != ZT_VALUE) {
        text[0] = 0;
        if (f->inner == ZT_ARRAY || f->inner == ZT_BLOB)
            say_expr(text, sizeof(text), &f->inner_count, siblings);
        snprintf(inner, sizeof(inner), text[0] ? " of %s(%s)" : " of %s", shapes[f->inner], text);
    }
    const bool followed = f->shape != ZT_VALUE && f->shape != ZT_ADDRESS && f->shape != ZT_OPAQUE;
    snprintf(out, size, "%s%s%s%s%s%s%s", shapes[f->shape], count, inner, followed ? " " : "",
             followed ? dirs[f->dir & 3] : "", f->dir & ZT_ON_ERROR ? " on-error" : "",
             f->shape == ZT_ADDRESS ? access[f->access & 3] : "");
}

static const zt_field *find_field(const char *target, const zt_field **siblings)
{
    char owner[128];
    const char *const dot = strchr(target, '.');
    snprintf(owner, sizeof(owner), "%.*s", (int)(dot - target), target);
    const zt_func *const f = func(owner);
    const zt_type *const t = f == NULL ? zt_type_find(owner) : NULL;
    const unsigned n = f != NULL ? f->n_params : t != NULL ? t->n_fields : 0;
    *siblings = f != NULL ? f->params : t != NULL ? t->fields : NULL;
    for (unsigned i = 0; i < n; i++)
        if (strcmp((*siblings)[i].name, dot + 1) == 0)
            return &(*siblings)[i];
    return NULL;
}

static void test_field_facts(void)
{
    for (unsigned i = 0; i < sizeof(field_facts) / sizeof(field_facts[0]); i++) {
        const zt_field *siblings, *const f = find_field(field_facts[i].target, &siblings);
        char said[256] = "nothing of that name";
        if (f != NULL)
            say_field(said, sizeof(said), f, siblings);
        same(field_facts[i].target, said, field_facts[i].words);
    }
}

static void test_roles(void)
{
    for (unsigned i = 0; i < sizeof(role_facts) / sizeof(role_facts[0]); i++) {
        const zt_field *siblings, *const f = find_field(role_facts[i].target, &siblings);
        same_number(role_facts[i].target, f == NULL ? -1 : f->role, role_facts[i].role);
    }
}

static void test_kinds(void)
{
    long used[ZT_K_UNMAP + 1] = {0};
    for (unsigned i = 0; i < sizeof(kind_facts) / sizeof(kind_facts[0]); i++) {
        const zt_func *const f = func(kind_facts[i].name);
        same_number(kind_facts[i].name, f == NULL ? -1 : f->kind, kind_facts[i].kind);
        if (f != NULL && (f->flags & kind_facts[i].flags) != kind_facts[i].flags)
            printf("\n    %s: flags %#x lack %#x", f->name, f->flags, kind_facts[i].flags);
        CU_ASSERT(f != NULL && (f->flags & kind_facts[i].flags) == kind_facts[i].flags);
    }
    for (unsigned i = 0; i < zt_n_funcs; i++)
        used[zt_funcs[i].kind]++;
    for (int k = ZT_K_OTHER; k <= ZT_K_UNMAP; k++)
        CU_ASSERT(used[k] > 0);
}

/* What must hold for every function of a kind, whatever its name. */
static void test_kinds_have_roles(void)
{
    for (unsigned i = 0; i < zt_n_funcs; i++) {
        const zt_func *const f = &zt_funcs[i];
        const bool waits = zt_param_by_role(f, ZT_R_WAITS) != NULL;
        bool good = true;
        switch (f->kind) {
        case ZT_K_CREATE:
            good = zt_param_by_role(f, ZT_R_CREATE) != NULL;
            break;
        case ZT_K_DESTROY:
            good = zt_param_by_role(f, ZT_R_DESTROY) != NULL;
            break;
        case ZT_K_ALLOC:
            good = zt_param_by_role(f, ZT_R_ALLOC) != NULL;
            break;
        case ZT_K_FREE:
            good = zt_param_by_role(f, ZT_R_FREE) != NULL;
            break;
        case ZT_K_APPEND:
        case ZT_K_CLOSE:
        case ZT_K_RESET:
            good = zt_param_by_role(f, ZT_R_LIST) != NULL;
            break;
        case ZT_K_EXECUTE:
            good = zt_param_by_role(f, ZT_R_LISTS) != NULL &&
                   (zt_param_by_role(f, ZT_R_QUEUE) != NULL || zt_param_by_role(f, ZT_R_LIST) != NULL);
            break;
        case ZT_K_SYNC:
            good = zt_param_by_role(f, ZT_R_TIMEOUT) != NULL || strcmp(f->name, "zeDeviceSynchronize") == 0;
            break;
        case ZT_K_RESIDENT:
        case ZT_K_EVICT:
            good = zt_param_by_role(f, ZT_R_PTR) != NULL || strstr(f->name, "Image") != NULL;
            break;
        case ZT_K_EXT_LOOKUP:
            good = zt_param_by_role(f, ZT_R_EXT_NAME) != NULL && zt_param_by_role(f, ZT_R_EXT_ADDRESS) != NULL;
            break;
        default:
            break;
        }
        if (waits) /* commands, and what changes a command's wait list */
            good = good && (f->kind == ZT_K_APPEND || f->kind == ZT_K_EXECUTE || f->kind == ZT_K_SET);
        if (!good)
            printf("\n    %s: kind %d lacks its roles", f->name, f->kind);
        CU_ASSERT(good);
        for (unsigned p = 0; p < f->n_params; p++) {
            const zt_field *const x = &f->params[p];
            const zt_type *const t = &zt_types[x->type];
            if (x->role == ZT_R_CREATE || x->role == ZT_R_GET)
                CU_ASSERT(t->cls == ZT_HANDLE && (x->dir & ZT_OUT) && x->shape != ZT_VALUE);
            if (x->role == ZT_R_TIMEOUT)
                CU_ASSERT(t->size == 8 && x->shape == ZT_VALUE && f->kind == ZT_K_SYNC);
            if (x->role == ZT_R_COUNT)
                CU_ASSERT((x->dir & 3) == (ZT_IN | ZT_OUT) && x->shape == ZT_ONE);
            if (x->role == ZT_R_SELF)
                CU_ASSERT(p == 0);
        }
    }
}

/* ------------------------------------------------------------------------------------------------ counts and layout */

static void test_counts(void)
{
    static const long funcs[] = {248, 69, 157, 4}, params[] = {805, 229, 400, 3};
    long f[ZT_NS_COUNT] = {0}, p[ZT_NS_COUNT] = {0}, pointers = 0, others = 0, by_value = 0, chains = 0;
    for (unsigned i = 0; i < zt_n_funcs; i++) {
        f[zt_funcs[i].ns]++;
        p[zt_funcs[i].ns] += zt_funcs[i].n_params;
        others += strcmp(zt_types[zt_funcs[i].return_type].name, "ze_result_t") != 0;
        for (unsigned k = 0; k < zt_funcs[i].n_params; k++) {
            const zt_field *const x = &zt_funcs[i].params[k];
            pointers += strchr(x->decl, '*') != NULL;
            by_value += x->shape == ZT_VALUE && zt_types[x->type].cls == ZT_STRUCT;
            chains += x->shape == ZT_PNEXT;
        }
    }
    for (int ns = 0; ns < ZT_NS_COUNT; ns++) {
        same_number("functions of a namespace", f[ns], funcs[ns]);
        same_number("parameters of a namespace", p[ns], params[ns]);
    }
    same_number("functions", zt_n_funcs, 478);
    same_number("parameters that are pointers", pointers, 642);
    same_number("functions that do not return ze_result_t", others, 4);
    same_number("structs passed by value", by_value, 16);
    same_number("chains among the parameters", chains, 15 + 1); /* and zeDeviceGetRuntimeRequirements' pObjDesc */
    same_number("version of the specification", zt_api_version, 1 << 16 | 17);

    /* 302 structs and unions pass through calls, 209 of them have stype; 3 more, with stype, only through callbacks */
    long records = 0, unions = 0, chained = 0, members = 0;
    for (unsigned i = 0; i < zt_n_types; i++) {
        const zt_type *const t = &zt_types[i];
        if (t->cls != ZT_STRUCT && t->cls != ZT_UNION)
            continue;
        const bool callback_only = strstr(t->name, "_cb_params_t") != NULL;
        records += !callback_only;
        unions += t->cls == ZT_UNION;
        members += callback_only ? 0 : t->n_fields;
        chained += !callback_only && strcmp(t->fields[0].name, "stype") == 0;
    }
    same_number("structs and unions", records, 302);
    same_number("unions", unions, 3);
    same_number("structs with stype", chained, 209);
    same_number("members", members, 1379);
}

static void test_words(void)
{
    for (unsigned i = 0; i < zt_n_funcs; i++) {
        const zt_func *const f = &zt_funcs[i];
        unsigned at = 0;
        for (unsigned k = 0; k < f->n_params; k++) {
            CU_ASSERT(f->params[k].offset == at);
            CU_ASSERT(f->params[k].size > 0);
            at += (f->params[k].size + 7u) / 8u;
        }
        same_number(f->name, f->n_words, at);
    }
    same_number("words of zeMemOpenIpcHandle", func("zeMemOpenIpcHandle")->n_words, 1 + 1 + 8 + 1 + 1);
    same_number("words of zeCommandListAppendLaunchKernelWithArguments",
                func("zeCommandListAppendLaunchKernelWithArguments")->n_words, 1 + 1 + 2 + 2 + 5);
    const zt_type *const flag = zt_type_find("ze_bool_t");
    CU_ASSERT(flag != NULL && flag->size == 1 && flag->cls == ZT_BOOL);
    const zt_field *siblings, *const factor = find_field("zesPerformanceFactorSetConfig.factor", &siblings);
    CU_ASSERT(factor != NULL && factor->shape == ZT_VALUE && zt_types[factor->type].cls == ZT_FLOAT &&
              factor->size == 8);
}

static void test_fields_are_sound(void)
{
    for (unsigned i = 0; i < zt_n_types; i++) {
        const zt_type *const t = &zt_types[i];
        CU_ASSERT(t->base < zt_n_types && t->align > 0);
        for (unsigned k = 0; k < t->n_fields; k++) {
            const zt_field *const f = &t->fields[k];
            CU_ASSERT(f->type < zt_n_types && f->offset + f->size <= t->size);
            CU_ASSERT(t->cls == ZT_UNION ? f->offset == 0
                                         : k == 0 || f->offset >= t->fields[k - 1].offset + t->fields[k - 1].size);
            const unsigned one = f->array_len ? f->size / f->array_len : f->size;
            CU_ASSERT(f->shape != ZT_VALUE || one == zt_types[f->type].size);
        }
    }
    /* every pointer is followed in a way the table knows, or on purpose not at all */
    for (unsigned i = 0; i < zt_n_funcs; i++)
        for (unsigned k = 0; k < zt_funcs[i].n_params; k++) {
            const zt_field *const f = &zt_funcs[i].params[k];
            const bool pointer = strchr(f->decl, '*') != NULL;
            if (pointer == (f->shape == ZT_VALUE) ||
                ((f->shape == ZT_ARRAY || f->shape == ZT_BLOB) && f->count.op == ZT_X_NONE))
                printf("\n    %s.%s: shape %d for '%s'", zt_funcs[i].name, f->name, f->shape, f->decl);
            CU_ASSERT(pointer == (f->shape != ZT_VALUE));
            CU_ASSERT((f->shape != ZT_ARRAY && f->shape != ZT_BLOB) || f->count.op != ZT_X_NONE);
            CU_ASSERT((f->dir & 3) != 0);
        }
}

/* ------------------------------------------------------------------------------------------------ tables, stypes,
 * names */

static void test_slots(void)
{
    long slots = 0, mandatory = 0;
    same_number("DDI tables", zt_n_tables, 76);
    for (unsigned t = 0; t < zt_n_tables; t++) {
        slots += zt_tables[t].n_slots;
        mandatory += zt_tables[t].mandatory;
        for (unsigned s = 0; s < zt_tables[t].n_slots; s++) {
            int holders = 0;
            for (unsigned i = 0; i < zt_n_funcs; i++)
                holders += zt_funcs[i].table == t && zt_funcs[i].slot == s;
            CU_ASSERT_EQUAL(holders, 1);
        }
    }
    same_number("slots", slots, 478);
    same_number("mandatory tables", mandatory, 46);
    printf("\n    compared while compiling: %u structs, %u enumerators, %u constants, %u slots", zt_check_counts[0],
           zt_check_counts[1], zt_check_counts[2], zt_check_counts[3]);
    CU_ASSERT(zt_check_counts[0] >= 170 && zt_check_counts[3] >= 289); /* libze-dev 1.8.12 has that many */
    for (unsigned i = 0; zt_check_differs[i] != NULL; i++)
        printf("\n    note: %s has other members in the installed headers", zt_check_differs[i]);
    for (unsigned i = 0; zt_check_unknown[i] != NULL; i++)
        printf("\n    note: the installed headers are newer: %s", zt_check_unknown[i]);
}

static void test_stypes(void)
{
    for (unsigned i = 0; i < sizeof(stype_facts) / sizeof(stype_facts[0]); i++) {
        const zt_type *const t = zt_struct_by_stype(stype_facts[i].ns, stype_facts[i].stype);
        same(stype_facts[i].constant, t == NULL ? "none" : t->name, stype_facts[i].name);
        char list[32];
        static const char *const ns[] = {"ze", "zet", "zes"};
        snprintf(list, sizeof(list), "%s_structure_type_t", ns[stype_facts[i].ns]);
        const char *const constant = zt_enum_name(zt_type_find(list), stype_facts[i].stype);
        same(stype_facts[i].name, constant == NULL ? "none" : constant, stype_facts[i].constant);
    }
    long found = 0;
    for (unsigned i = 0; i < zt_n_types; i++) {
        const zt_type *const t = &zt_types[i];
        if (t->cls != ZT_STRUCT || t->stype < 0)
            continue;
        found++;
        const zt_type *const back = zt_struct_by_stype(t->ns, (uint32_t)t->stype);
        same(t->name, back == NULL ? "none" : back->name, t->name);
        CU_ASSERT(t->n_fields >= 2 && strcmp(t->fields[0].name, "stype") == 0 &&
                  strcmp(t->fields[1].name, "pNext") == 0);
        CU_ASSERT(t->fields[0].offset == 0 && t->fields[1].offset == 8 && t->fields[1].shape == ZT_PNEXT);
    }
    same_number("structs with an stype of their own", found, 209 + 3 - 9); /* without the base structs */
    CU_ASSERT_PTR_NULL(zt_struct_by_stype(ZT_NS_ZE, 0x00030031));
    CU_ASSERT_PTR_NULL(
        zt_struct_by_stype(ZT_NS_ZES, 0x2e)); /* ZES_STRUCTURE_TYPE_DEVICE_UUID: zes_uuid_t has no stype */
    CU_ASSERT_PTR_NULL(zt_struct_by_stype(ZT_NS_ZE, 0x7fffffff));
    /* the same number means another struct in another namespace */
    CU_ASSERT_PTR_NOT_EQUAL(zt_struct_by_stype(ZT_NS_ZE, 1), zt_struct_by_stype(ZT_NS_ZET, 1));
}

static void test_lookups(void)
{
    for (unsigned i = 0; i < zt_n_funcs; i++)
        CU_ASSERT_EQUAL(zt_func_find(zt_funcs[i].name), (int)i);
    for (unsigned i = 0; i < zt_n_types; i++)
        CU_ASSERT_PTR_EQUAL(zt_type_find(zt_types[i].name), &zt_types[i]);
    static const char *const absent[] = {"", "a", "ze", "zeIni", "zeInitX", "zzz", "zexDriverImportExternalPointer"};
    for (unsigned i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
        CU_ASSERT_EQUAL(zt_func_find(absent[i]), -1);
        CU_ASSERT_PTR_NULL(zt_type_find(absent[i]));
    }
    const zt_type *const result = zt_type_find("ze_result_t");
    same("0x7ffffffe", zt_enum_name(result, 0x7ffffffe), "ZE_RESULT_ERROR_UNKNOWN");
    CU_ASSERT_PTR_NULL(zt_enum_name(result, 0x12345));
    CU_ASSERT_PTR_NULL(zt_param_by_role(func("zeInit"), ZT_R_DEVICE));
    same("zet_device_handle_t", zt_types[zt_type_find("zet_device_handle_t")->base].name, "ze_device_handle_t");
    same("word for a queue", zt_type_find("ze_command_queue_handle_t")->object, "queue");
    same("word for a list", zt_type_find("zet_command_list_handle_t")->object, "list");
}

static void test_since(void)
{
    same_number("zeInit", func("zeInit")->since, 0x0100);
    same_number("zeInitDrivers", func("zeInitDrivers")->since, 0x010b);
    same_number("zesInit", func("zesInit")->since, 0x0105);
    long old = 0;
    for (unsigned i = 0; i < zt_n_funcs; i++)
        old += zt_funcs[i].since <= 0x0104;
    same_number("functions up to version 1.4", old, 289);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    CU_pSuite suite = CU_add_suite("API table", NULL, NULL);
    CU_ADD_TEST(suite, test_counts);
    CU_ADD_TEST(suite, test_words);
    CU_ADD_TEST(suite, test_fields_are_sound);
    CU_ADD_TEST(suite, test_field_facts);
    CU_ADD_TEST(suite, test_roles);
    CU_ADD_TEST(suite, test_kinds);
    CU_ADD_TEST(suite, test_kinds_have_roles);
    CU_ADD_TEST(suite, test_slots);
    CU_ADD_TEST(suite, test_stypes);
    CU_ADD_TEST(suite, test_lookups);
    CU_ADD_TEST(suite, test_since);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    const unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed != 0;
}
