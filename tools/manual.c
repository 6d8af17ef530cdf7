/* SPDX-License-Identifier: MIT */
/* What the option tables make besides --help: manual pages, shell completion, the option lists of the pages under docs/. */
#include "manual.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static void roff(FILE *out, const char *text)
{
    for (bool start = true; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\' || *text == '-')
            fputc('\\', out);
        fputc(*text == '\n' ? '\n' : *text, out);
        start = *text == '\n';
    }
}

static void manual_head(FILE *out, const char *name, const char *summary)
{
    fprintf(out, ".TH \"%s\" 1 \"\" \"zetrace %s\" \"User commands\"\n.SH NAME\n", name, ZETRACE_VERSION);
    roff(out, name);
    fputs(" \\- ", out);
    roff(out, summary);
    fputs("\n.SH SYNOPSIS\n", out);
}

static bool manual_page(const char *folder, const zt_command *command)
{
    char path[4096], name[64];
    snprintf(name, sizeof(name), "zetrace-%s", command->name);
    snprintf(path, sizeof(path), "%s/%s.1", folder, name);
    FILE *const out = fopen(path, "w");
    if (out == NULL) {
        zt_complain("%s: could not be written: %s", path, strerror(errno));
        return false;
    }
    manual_head(out, name, command->summary);
    fprintf(out, ".B zetrace %s\n[\\fIOPTION\\fR]... ", command->name);
    roff(out, command->synopsis);
    fputs("\n.SH OPTIONS\n", out);
    for (const zt_option *o = command->options; o->id != 0; o++) {
        fputs(".TP\n", out);
        if (o->letter)
            fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
        fputs("\\fB\\-\\-", out);
        roff(out, o->name);
        fputs("\\fR", out);
        if (o->value) {
            fputs("=\\fI", out);
            roff(out, o->value);
            fputs("\\fR", out);
        }
        fputc('\n', out);
        roff(out, o->help);
        fputc('\n', out);
    }
    fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nshow a summary\n", out);
    if (command->more != NULL) {
        fputs(".SH NOTES\n.nf\n", out);
        roff(out, command->more);
        fputs(".fi\n", out);
    }
    fputs(".SH SEE ALSO\n.BR zetrace (1)\n", out);
    return fclose(out) == 0;
}

static bool overview(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/zetrace.1", folder);
    FILE *const out = fopen(path, "w");
    if (out == NULL) {
        zt_complain("%s: could not be written: %s", path, strerror(errno));
        return false;
    }
    manual_head(out, "zetrace", "record, show and replay the Level Zero calls of a program");
    fputs(".B zetrace\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... \\fIARGUMENT\\fR...\n.SH COMMANDS\n", out);
    for (size_t i = 0; zt_commands[i] != NULL; i++) {
        fprintf(out, ".TP\n\\fB%s\\fR\n", zt_commands[i]->name);
        roff(out, zt_commands[i]->summary);
        fprintf(out, "; see \\fBzetrace\\-%s\\fR(1)\n", zt_commands[i]->name);
    }
    fputs(".SH ENVIRONMENT\n.TP\n\\fBZETRACE_LIBDIR\\fR\nfolder with zetrace's own libraries, if they are not beside the command\n"
          ".TP\n\\fBTMPDIR\\fR\nwhere a recording keeps its socket\n.TP\n\\fBNO_COLOR\\fR\nno colour, whatever it is set to\n",
          out);
    return fclose(out) == 0;
}

static bool completion(const char *path)
{
    FILE *const out = fopen(path, "w");
    if (out == NULL) {
        zt_complain("%s: could not be written: %s", path, strerror(errno));
        return false;
    }
    fputs("# bash completion for zetrace; written by zetrace itself\n_zetrace()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}\n"
          "    local options=\"\" commands=\"",
          out);
    for (size_t i = 0; zt_commands[i] != NULL; i++)
        fprintf(out, "%s%s", i ? " " : "", zt_commands[i]->name);
    fputs("\"\n    if [ \"$COMP_CWORD\" = 1 ]; then\n        COMPREPLY=($(compgen -W \"$commands --help --version\" -- \"$cur\"))\n        return\n"
          "    fi\n    case $command in\n",
          out);
    for (size_t i = 0; zt_commands[i] != NULL; i++) {
        fprintf(out, "    %s) options=\"--help", zt_commands[i]->name);
        for (const zt_option *o = zt_commands[i]->options; o->id != 0; o++) {
            bool words = o->value != NULL && strchr(o->value, '|') != NULL;
            for (const char *c = o->value; words && *c; c++)
                words = islower((unsigned char)*c) || *c == '|' || *c == '-';
            fprintf(out, " --%s%s", o->name, o->value ? "=" : "");
            for (const char *c = words ? o->value : ""; *c;) {
                const size_t n = strcspn(c, "|");
                fprintf(out, " --%s=%.*s", o->name, (int)n, c);
                c += n + (c[n] == '|');
            }
        }
        fputs("\" ;;\n", out);
    }
    fputs("    esac\n    if [ \"$command\" = help ]; then\n        COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n"
          "    elif [[ $cur == -* ]]; then\n        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
          "        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n    else\n        COMPREPLY=($(compgen -f -- \"$cur\"))\n    fi\n}\n"
          "complete -F _zetrace zetrace\n",
          out);
    return fclose(out) == 0;
}

static void option_list(const zt_command *command)
{
    puts("| option | meaning |\n|---|---|");
    for (const zt_option *o = command->options; o->id != 0; o++) {
        printf("| `");
        if (o->letter)
            printf("-%c, ", o->letter);
        printf("--%s", o->name);
        if (o->value) {
            putchar('=');
            for (const char *c = o->value; *c; c++)
                printf("%s%c", *c == '|' ? "\\" : "", *c);
        }
        printf("` | ");
        for (const char *c = o->help; *c; c++) {
            if (*c == '\n')
                putchar(' ');
            else
                printf("%s%c", *c == '|' ? "\\" : "", *c);
        }
        puts(" |");
    }
}

int zt_generate(int argc, char **argv)
{
    bool ok = argc == 3;
    if (ok && strcmp(argv[1], "man") == 0) {
        ok = overview(argv[2]);
        for (size_t i = 0; ok && zt_commands[i] != NULL; i++)
            ok = manual_page(argv[2], zt_commands[i]);
    } else if (ok && strcmp(argv[1], "completion") == 0) {
        ok = completion(argv[2]);
    } else if (ok && strcmp(argv[1], "options") == 0 && zt_command_find(argv[2]) != NULL) {
        option_list(zt_command_find(argv[2]));
    } else {
        zt_complain("--generate wants 'man FOLDER', 'completion FILE' or 'options COMMAND'");
        return ZT_EXIT_USAGE;
    }
    return zt_finish_output(ok ? ZT_EXIT_OK : 1);
}
