/* SPDX-License-Identifier: MIT */
/* From an address to function, file and line, by the debug information of a file or of its separate one, else by its symbols. */
#include "recorder.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct zc_symbols {
    Dwfl *dwfl;
    Dwfl_Module *module;
};

/* By build id and on this machine only: the library's own search may ask a server, and the recorder must not wait for one. */
static char *debug_folders;
static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                         .find_debuginfo = dwfl_build_id_find_debuginfo,
                                         .section_address = dwfl_offline_section_address,
                                         .debuginfo_path = &debug_folders};

zc_symbols *zc_symbols_open(zc_module *m)
{
    zc_symbols *const s = m->fd >= 0 ? calloc(1, sizeof(*s)) : NULL;
    if (s == NULL)
        return NULL;
    s->dwfl = dwfl_begin(&callbacks);
    if (s->dwfl != NULL) {
        dwfl_report_begin(s->dwfl);
        s->module = dwfl_report_elf(s->dwfl, "", m->path, m->fd, m->base, false);
        if (s->module != NULL)
            m->fd = -1; /* the library closes it */
        dwfl_report_end(s->dwfl, NULL, NULL);
    }
    if (s->module == NULL) {
        zc_symbols_close(s);
        return NULL;
    }
    return s;
}

void zc_symbols_close(zc_symbols *s)
{
    if (s == NULL)
        return;
    if (s->dwfl != NULL)
        dwfl_end(s->dwfl);
    free(s);
}

static const char *base_name(const char *path)
{
    const char *const slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

static void add(char *out, size_t size, const char *before, const char *function, const char *file, int line)
{
    const size_t n = strlen(out);
    if (file != NULL && line > 0)
        snprintf(out + n, size - n, "%s%.160s%s%.100s:%d", before, function ? function : "", function ? " " : "", file, line);
    else
        snprintf(out + n, size - n, "%s%.160s", before, function ? function : "?");
}

/* File and line from which an inlined function was called. */
static const char *call_site(Dwarf_Die *cu, Dwarf_Die *inlined, int *line)
{
    Dwarf_Attribute attribute;
    Dwarf_Files *files;
    Dwarf_Word file = 0, number = 0;
    size_t n;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &number) != 0 ||
        dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0 || dwarf_getsrcfiles(cu, &files, &n) != 0 ||
        file >= n)
        return NULL;
    *line = (int)number;
    return base_name(dwarf_filesrc(files, file, NULL, NULL));
}

static Dwarf_Die *unit_of(zc_symbols *s, Dwarf_Addr pc, Dwarf_Addr *bias)
{
    Dwarf_Die *unit = dwfl_module_addrdie(s->module, pc, bias);
    if (unit != NULL)
        return unit;
    /* some compilers make no table of address ranges */
    while ((unit = dwfl_module_nextcu(s->module, unit, bias)) != NULL)
        if (dwarf_haspc(unit, pc - *bias) > 0)
            return unit;
    return NULL;
}

static bool by_line(zc_symbols *s, Dwarf_Addr pc, char *out, size_t size)
{
    Dwarf_Addr bias;
    Dwarf_Die *const unit = unit_of(s, pc, &bias), *scopes = NULL, *nested = NULL;
    Dwarf_Line *const place = unit ? dwarf_getsrc_die(unit, pc - bias) : NULL;
    int line = 0;
    if (place == NULL || dwarf_lineno(place, &line) != 0)
        return false;
    const char *file = base_name(dwarf_linesrc(place, NULL, NULL));
    const char *before = "";
    out[0] = '\0';
    /* the first call finds the innermost scope, the second what it is inlined into */
    const int n = dwarf_getscopes(unit, pc - bias, &scopes) > 0 ? dwarf_getscopes_die(&scopes[0], &nested) : 0;
    for (int i = 0; i < n; i++) {
        const int tag = dwarf_tag(&nested[i]);
        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        add(out, size, before, dwarf_diename(&nested[i]), file, line);
        before = ", inlined into ";
        if (tag == DW_TAG_subprogram)
            break;
        file = call_site(unit, &nested[i], &line);
    }
    if (out[0] == '\0')
        add(out, size, "", dwfl_module_addrname(s->module, pc), file, line);
    free(scopes);
    free(nested);
    return true;
}

bool zc_symbols_name(zc_symbols *s, uint64_t address, char *out, size_t size)
{
    const Dwarf_Addr pc = address - 1; /* inside the call, not behind it */
    GElf_Off offset = 0;
    GElf_Sym symbol;
    if (by_line(s, pc, out, size))
        return true;
    const char *const name = dwfl_module_addrinfo(s->module, pc, &offset, &symbol, NULL, NULL, NULL);
    if (name == NULL)
        return false;
    snprintf(out, size, "%.300s+0x%llx", name, (unsigned long long)offset + 1);
    return true;
}
