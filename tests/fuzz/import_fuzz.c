/* SPDX-License-Identifier: MIT */
/*
 * Property: whatever JSON says, import ends with a sentence or with a trace; that trace can be read, and the JSON that export makes of it
 * is imported as the same file. The bytes are the JSON; the fuzzer changes that of a good trace.
 */
#include "convert/convert.h"
#include "trace_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/zetrace-fuzz.XXXXXX", path[64], again[64];
static bytes good; /* JSON */
static unsigned long n_accepted, n_read;

static bytes exported(const char *file)
{
    zt_trace *trace;
    zt_error error;
    bytes json = {NULL, 0};
    if (zt_trace_open(&trace, file, &error) != ZT_OK)
        return json;
    char *text = NULL;
    FILE *const out = open_memstream(&text, &json.n);
    if (out != NULL) {
        zv_json_write(trace, out, NULL);
        fclose(out);
        json.at = (uint8_t *)text;
    }
    zt_trace_close(trace);
    return json;
}

static bool import(const bytes *json, const char *to, zt_error *error)
{
    static const zv_import_options options = {.overwrite = true, .level = 1};
    FILE *const in = fmemopen(json->at, json->n ? json->n : 1, "r");
    if (in == NULL)
        exit(2);
    const bool ok = zv_json_read(in, "fuzz", to, &options, error) == ZT_OK;
    fclose(in);
    return ok;
}

static void set_up(void)
{
    if (good.n > 0)
        return;
    if (mkdtemp(folder) == NULL)
        exit(2);
    snprintf(path, sizeof(path), "%s/t", folder);
    snprintf(again, sizeof(again), "%s/u", folder);
    if (!make_trace_with_backtraces(path, 60, 30))
        exit(2);
    good = exported(path);
    if (good.n == 0)
        exit(2);
}

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "%s: %s\n", what, detail);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zt_error error;
    const bytes input = {(uint8_t *)(uintptr_t)data, size};
    set_up();
    unlink(path);
    if (!import(&input, path, &error)) {
        if (error.text[0] == '\0' || strchr(error.text, '\n') != NULL)
            fail("refused without a sentence", error.text);
        if (access(path, F_OK) == 0)
            fail("refused, and yet there is a trace", error.text);
        return 0;
    }
    n_accepted++;
    n_read += read_everything(path, NULL, NULL, NULL) == ZT_OK;
    bytes json = exported(path); /* nothing, if it needs a newer reader */
    if (json.n > 0) {
        if (!import(&json, again, &error))
            fail("what export has written is refused", error.text);
        bytes first = read_file(path), second = read_file(again);
        if (first.n != second.n || memcmp(first.at, second.at, first.n) != 0)
            fail("another file", "after export and import");
        free(first.at);
        free(second.at);
    }
    free(json.at);
    return 0;
}

#ifndef FUZZ_WITH_LIBFUZZER
static uint64_t seed;

static uint64_t roll(uint64_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % n;
}

static void replace(bytes *b, size_t at, size_t n, const char *text)
{
    const size_t more = strlen(text);
    memmove(b->at + at + more, b->at + at + n, b->n - at - n);
    memcpy(b->at + at, text, more);
    b->n += more - n;
}

/* A word, number, bracket or mark that begins at or behind `at`. */
static size_t token(const bytes *b, size_t *at)
{
    static const char marks[] = "{}[]:,\"\n";
    if (strchr(marks, b->at[*at]) != NULL && roll(4) > 0)
        while (*at + 1 < b->n && strchr(marks, b->at[*at]) != NULL)
            ++*at;
    size_t n = 1;
    while (strchr(marks, b->at[*at]) == NULL && *at + n < b->n && strchr(marks, b->at[*at + n]) == NULL)
        n++;
    return n;
}

static void mutate(bytes *b)
{
    static const char *const texts[] = {"0", "-1", "18446744073709551615", "18446744073709551616", "9223372036854775807", "-9223372036854775808",
                                        "4294967295", "1e9", "", "null", "true", "[]", "{}", "{\"@base64\":\"/w==\"}", "\"", "}", "]", "[[[[", "\\u0000",
                                        "\xff", "AA==", "AAE=", "@unknown", "packet", "raw", "header", "packets", "calls", "1152921504606846976",
                                        "{\"packet\":{\"lost\":{\"thread\":1}}}\n"};
    for (uint64_t k = 1 + roll(3); k > 0; k--) {
        size_t at = roll(b->n);
        const size_t n = token(b, &at);
        switch (roll(6)) {
        case 0: {
            const char one[2] = {(char)(1 + roll(255)), 0};
            replace(b, at, 1, one);
            break;
        }
        case 1:
            replace(b, at, 0, texts[roll(sizeof(texts) / sizeof(texts[0]))]);
            break;
        case 2: { /* a token of another place */
            size_t other = roll(b->n);
            char copy[128];
            size_t m = token(b, &other);
            m = m < sizeof(copy) ? m : sizeof(copy) - 1;
            memcpy(copy, b->at + other, m);
            copy[m] = '\0';
            replace(b, at, n, copy);
            break;
        }
        case 3: { /* a line goes */
            const uint8_t *const end = memchr(b->at + at, '\n', b->n - at);
            if (end != NULL && (size_t)(end - b->at) + 1 < b->n)
                replace(b, at, (size_t)(end - b->at) + 1 - at, "");
            break;
        }
        default:
            replace(b, at, n, texts[roll(sizeof(texts) / sizeof(texts[0]))]);
        }
    }
}

int main(int argc, char **argv)
{
    const double seconds = argc == 3 && strcmp(argv[1], "--seconds") == 0 ? atof(argv[2]) : 2;
    const time_t start = time(NULL);
    unsigned long rounds = 0;
    set_up();
    for (seed = 0x5eed; difftime(time(NULL), start) < seconds + 0.5; rounds++) {
        bytes b = {malloc(good.n + 4096), good.n};
        if (b.at == NULL)
            return 2;
        memcpy(b.at, good.at, good.n);
        if (rounds > 0)
            mutate(&b);
        LLVMFuzzerTestOneInput(b.at, b.n);
        if (rounds == 0 && n_read != 1)
            fail("not even the good one", "is a trace");
        free(b.at);
    }
    free(good.at);
    unlink(path);
    unlink(again);
    rmdir(folder);
    printf("%lu files, %lu imported, %lu of them traces\n", rounds, n_accepted, n_read);
    return 0;
}
#endif
