/* SPDX-License-Identifier: MIT */
/*
 * Which kernel is it that a walker starts? The command holds the address of its code. The driver carries its own kernels as
 * compiled ELF files inside its library; code that is the same as one of theirs, but for what was relocated, is that kernel. The
 * text beside the code (.ze_info) says where the arguments are. So nothing here depends on a version of the driver.
 */
#include "fakegpu.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINE = 205, CODE = 16 << 10, RELOCATIONS = 32, SKIP_STEP = 64, SKIP_MOST = 512 };

struct kernel {
    const char *name; /* not ended by 0 */
    size_t name_length;
    const uint8_t *code;
    size_t size;
    uint32_t relocated[RELOCATIONS]; /* offsets of 4 bytes */
    unsigned relocations;
    const char *info; /* .ze_info of its file */
    size_t info_size;
    fakegpu_body *body; /* registered; NULL for the driver's own */
};

/* What .ze_info says about one kernel. */
struct facts {
    int skip; /* the code may be entered so far behind its begin */
    int local_size;
    struct {
        int offset, size;
    } arguments[FAKEGPU_ARGUMENTS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static struct kernel *kernels;
static size_t count, room;
static bool searched;

/* --- files --- */

static void add_relocations(struct kernel *kernel, const uint8_t *file, const Elf64_Shdr *section)
{
    const bool with_addend = section->sh_type == SHT_RELA;
    const size_t step = with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    for (size_t at = 0; at + step <= section->sh_size && kernel->relocations < RELOCATIONS; at += step) {
        Elf64_Rel relocation;
        memcpy(&relocation, file + section->sh_offset + at, sizeof(relocation));
        kernel->relocated[kernel->relocations++] = (uint32_t)relocation.r_offset;
    }
}

static bool add_kernel(const struct kernel *kernel)
{
    if (count == room) {
        const size_t more = room ? 2 * room : 1024;
        struct kernel *const grown = realloc(kernels, more * sizeof(*grown));
        if (!grown)
            return false;
        kernels = grown;
        room = more;
    }
    kernels[count++] = *kernel;
    return true;
}

static bool section_fits(const Elf64_Shdr *section, size_t size)
{
    return section->sh_type == SHT_NOBITS || (section->sh_offset <= size && section->sh_size <= size - section->sh_offset);
}

/* Adds the kernels of one file, or only the one of that name. @return how many. */
static size_t add_file(const uint8_t *file, size_t size, const char *only, fakegpu_body *body)
{
    static const char prefix[] = ".text.";
    Elf64_Ehdr head;
    if (size < sizeof(head))
        return 0;
    memcpy(&head, file, sizeof(head));
    if (head.e_machine != MACHINE || head.e_shentsize != sizeof(Elf64_Shdr) || head.e_shstrndx >= head.e_shnum || head.e_shoff > size ||
        (size - head.e_shoff) / sizeof(Elf64_Shdr) < head.e_shnum || head.e_shoff % 4)
        return 0;
    const Elf64_Shdr *const sections = (const void *)(file + head.e_shoff);
    const Elf64_Shdr *const names = &sections[head.e_shstrndx], *info = NULL;
    for (unsigned i = 0; i < head.e_shnum; i++)
        if (!section_fits(&sections[i], size) || sections[i].sh_name >= names->sh_size)
            return 0;
    const char *const text = (const char *)file + names->sh_offset;
    if (names->sh_size == 0 || text[names->sh_size - 1] != '\0')
        return 0;
    for (unsigned i = 0; i < head.e_shnum; i++)
        if (strcmp(text + sections[i].sh_name, ".ze_info") == 0)
            info = &sections[i];
    size_t added = 0;
    for (unsigned i = 0; info && i < head.e_shnum; i++) {
        const char *const name = text + sections[i].sh_name;
        if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
            continue;
        struct kernel kernel = {.name = name + sizeof(prefix) - 1,
                                .code = file + sections[i].sh_offset,
                                .size = sections[i].sh_size,
                                .info = (const char *)file + info->sh_offset,
                                .info_size = info->sh_size,
                                .body = body};
        kernel.name_length = strlen(kernel.name);
        if (kernel.size == 0 || kernel.size > CODE || (only && strcmp(only, kernel.name) != 0))
            continue;
        for (unsigned k = 0; k < head.e_shnum; k++)
            if ((sections[k].sh_type == SHT_REL || sections[k].sh_type == SHT_RELA) && sections[k].sh_info == i)
                add_relocations(&kernel, file, &sections[k]);
        added += add_kernel(&kernel);
    }
    return added;
}

static int search_library(struct dl_phdr_info *library, size_t size, void *argument)
{
    (void)size, (void)argument;
    if (!strstr(library->dlpi_name, "libze_intel_gpu"))
        return 0;
    for (unsigned i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &library->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_R))
            continue;
        const uint8_t *const begin = (const uint8_t *)library->dlpi_addr + segment->p_vaddr;
        for (size_t at = 4; at + sizeof(Elf64_Ehdr) < segment->p_filesz; at += 4)
            if (memcmp(begin + at, ELFMAG, SELFMAG) == 0)
                add_file(begin + at, segment->p_filesz - at, NULL, NULL);
    }
    return 1;
}

/* --- .ze_info --- */

static bool line_value(const char *line, const char *key, int *value)
{
    const size_t n = strlen(key);
    return strncmp(line, key, n) == 0 && line[n] == ':' && sscanf(line + n + 1, "%d", value) == 1;
}

static bool line_is(const char *line, const char *key, const char *value, size_t length)
{
    const size_t n = strlen(key);
    if (strncmp(line, key, n) != 0 || line[n] != ':')
        return false;
    line += n + 1;
    line += strspn(line, " ");
    return strncmp(line, value, length) == 0 && line[length + strspn(line + length, " ")] == '\0';
}

struct reader {
    bool in_kernels, in_kernel, in_payload, is_argument, is_local_size;
    int offset, size;
};

/* One line: its text behind blanks and dashes, and how far it was indented. */
static void read_line(struct reader *r, const struct kernel *kernel, struct facts *facts, size_t indent, bool item, const char *line)
{
    int value;
    if (indent == 0)
        r->in_kernels = strcmp(line, "kernels:") == 0;
    if (!r->in_kernels)
        return;
    if (item && indent == 2)
        r->in_kernel = line_is(line, "name", kernel->name, kernel->name_length);
    if (!r->in_kernel)
        return;
    if (!item && indent == 4)
        r->in_payload = strcmp(line, "payload_arguments:") == 0;
    if (line_value(line, "offset_to_skip_per_thread_data_load", &value))
        facts->skip = value;
    if (!r->in_payload)
        return;
    if (strncmp(line, "arg_type:", 9) == 0) {
        r->is_argument = strstr(line, "arg_by") != NULL;
        r->is_local_size = strstr(line, "enqueued_local_size") != NULL;
    } else if (line_value(line, "offset", &value)) {
        r->offset = value;
        if (r->is_local_size)
            facts->local_size = value;
    } else if (line_value(line, "size", &value)) {
        r->size = value;
    } else if (r->is_argument && line_value(line, "arg_index", &value) && value >= 0 && value < FAKEGPU_ARGUMENTS) {
        facts->arguments[value].offset = r->offset;
        facts->arguments[value].size = r->size;
    }
}

static struct facts read_info(const struct kernel *kernel)
{
    struct facts facts = {.local_size = -1};
    struct reader reader = {0};
    const char *at = kernel->info, *const end = at + kernel->info_size;
    while (at < end) {
        const char *const newline = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((newline ? newline : end) - at);
        char line[256];
        const size_t kept = length < sizeof(line) - 1 ? length : sizeof(line) - 1;
        memcpy(line, at, kept);
        line[kept] = '\0';
        const size_t indent = strspn(line, " ");
        const bool item = line[indent] == '-' && line[indent + 1] == ' ';
        const size_t text = item ? indent + 1 + strspn(line + indent + 1, " ") : indent;
        read_line(&reader, kernel, &facts, indent, item, line + text);
        at += length + 1;
    }
    return facts;
}

/* --- recognising --- */

static bool same_code(const struct kernel *kernel, const uint8_t *code, size_t size)
{
    if (size < kernel->size)
        return false;
    for (size_t i = 0; i < kernel->size; i++) {
        if (code[i] == kernel->code[i])
            continue;
        bool relocated = false;
        for (unsigned k = 0; k < kernel->relocations && !relocated; k++)
            relocated = i >= kernel->relocated[k] && i < kernel->relocated[k] + 4;
        if (!relocated)
            return false;
    }
    return true;
}

static const struct kernel *find(const uint8_t *code, size_t size)
{
    for (size_t i = count; i-- > 0;) /* registered ones come last and are taken first */
        if (same_code(&kernels[i], code, size))
            return &kernels[i];
    return NULL;
}

static const struct kernel *recognise(struct fake_queue *q, uint64_t address, struct facts *facts)
{
    /* the code may have been entered behind the part that loads what comes with each thread */
    static uint8_t code[CODE];
    if (!searched)
        dl_iterate_phdr(search_library, NULL);
    searched = true;
    for (int skip = 0; skip <= SKIP_MOST; skip += SKIP_STEP) {
        const struct kernel *const kernel = find(code, fake_peek(q, address - (uint64_t)skip, code, sizeof(code)));
        if (!kernel)
            continue;
        *facts = read_info(kernel);
        if (skip == 0 || facts->skip == skip)
            return kernel;
    }
    return NULL;
}

static bool device_read(void *device, uint64_t address, void *data, size_t size)
{
    return fake_read(device, address, data, size);
}

static bool device_write(void *device, uint64_t address, const void *data, size_t size)
{
    return fake_write(device, address, data, size);
}

static bool device_copy(void *device, uint64_t to, uint64_t from, uint64_t size)
{
    return fake_copy(device, to, from, size);
}

static bool device_fill(void *device, uint64_t to, const void *pattern, size_t width, uint64_t size)
{
    return fake_fill(device, to, pattern, width, size);
}

static struct fakegpu_launch launch_of(struct fake_queue *q, const struct fake_walk *walk, const struct facts *facts)
{
    struct fakegpu_launch launch = {
        .device = q, .read = device_read, .write = device_write, .copy = device_copy, .fill = device_fill};
    memcpy(launch.groups, walk->groups, sizeof(launch.groups));
    memcpy(launch.local, walk->local, sizeof(launch.local));
    if (facts->local_size >= 0 && (uint32_t)facts->local_size + sizeof(launch.local) <= walk->payload_size)
        memcpy(launch.local, walk->payload + facts->local_size, sizeof(launch.local));
    for (unsigned i = 0; i < FAKEGPU_ARGUMENTS; i++) {
        const int offset = facts->arguments[i].offset, size = facts->arguments[i].size;
        if (size > 0 && size <= (int)sizeof(launch.arguments[i]) && offset >= 0 && (uint32_t)(offset + size) <= walk->payload_size) {
            memcpy(launch.arguments[i], walk->payload + offset, (size_t)size);
            launch.sizes[i] = (uint32_t)size;
        }
    }
    return launch;
}

bool fake_run_kernel(struct fake_queue *q, const struct fake_walk *walk)
{
    struct facts facts = {0};
    pthread_mutex_lock(&lock);
    const struct kernel *const kernel = recognise(q, walk->address, &facts);
    char name[80] = "";
    fakegpu_body *body = NULL;
    if (kernel) {
        snprintf(name, sizeof(name), "%.*s", (int)kernel->name_length, kernel->name);
        body = kernel->body ? kernel->body : fake_builtin_body(name);
    }
    pthread_mutex_unlock(&lock);
    if (!body) {
        fake_unknown("the kernel %s at 0x%llx has no body: fakegpu_register gives it one", *name ? name : "(of unknown code)",
                     (unsigned long long)walk->address);
        return fake_hang(q);
    }
    const struct fakegpu_launch launch = launch_of(q, walk, &facts);
    fake_say(LOG_KERNELS, "%s, groups %u %u %u of %u %u %u, arguments 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx", name, launch.groups[0],
             launch.groups[1], launch.groups[2], launch.local[0], launch.local[1], launch.local[2],
             (unsigned long long)launch.arguments[0][0], (unsigned long long)launch.arguments[1][0],
             (unsigned long long)launch.arguments[2][0], (unsigned long long)launch.arguments[3][0],
             (unsigned long long)launch.arguments[4][0]);
    return body(&launch);
}

__attribute__((visibility("default"))) bool fakegpu_register(const void *binary, size_t size, const char *name, fakegpu_body *body)
{
    uint8_t *const copy = malloc(size);
    if (!copy)
        return false;
    memcpy(copy, binary, size);
    pthread_mutex_lock(&lock);
    if (!searched)
        dl_iterate_phdr(search_library, NULL);
    searched = true;
    const bool added = add_file(copy, size, name, body) > 0;
    pthread_mutex_unlock(&lock);
    if (!added)
        free(copy);
    return added;
}
