/* SPDX-License-Identifier: MIT */
#include "report.h"

#include "commands.h"

void zt_print_report_json(FILE *out, const zr_report *r)
{
    fprintf(out, "{\"same\":%s,\"verdict\":%d,\"calls\":%llu,\"not_made\":%llu,\"first_mismatch\":",
           r->verdict == ZR_SAME ? "true" : "false", r->verdict, (unsigned long long)r->calls,
           (unsigned long long)r->not_made);
    if (r->mismatches > 0) {
        fprintf(out, "{\"call\":%llu,\"function\":", (unsigned long long)r->first.call);
        zt_json_string(out, r->first.function);
        fprintf(out, ",\"what\":\"%s\",\"recorded\":", zr_what_name(r->first.what));
        zt_json_string(out, r->first.recorded);
        fprintf(out, ",\"replayed\":");
        zt_json_string(out, r->first.replayed);
        fprintf(out, ",\"detail\":");
        zt_json_string(out, r->first.detail);
        fprintf(out, "}");
    } else {
        fprintf(out, "null");
    }
    fprintf(out, ",\"mismatches\":%llu,\"injected\":%llu,\"replaced\":%llu,\"mapped\":%llu,\"callbacks\":%llu,\"compared_bytes\":%llu,"
           "\"host_bytes\":%llu,\"rounds\":%llu,\"time_ns\":%llu,"
           "\"failure\":",
           (unsigned long long)r->mismatches, (unsigned long long)r->injected, (unsigned long long)r->replaced, (unsigned long long)r->mapped,
           (unsigned long long)r->callbacks, (unsigned long long)r->compared, (unsigned long long)r->taken, (unsigned long long)r->rounds,
           (unsigned long long)r->ns);
    if (r->failed_call != 0) {
        fprintf(out, "{\"call\":%llu,\"function\":", (unsigned long long)r->failed_call);
        zt_json_string(out, r->failed_function);
        fprintf(out, ",\"result\":");
        zt_json_string(out, r->failed_result);
        fprintf(out, "}");
    } else {
        fprintf(out, "null");
    }
    fprintf(out, ",\"driver\":");
    zt_json_string(out, r->driver);
    fprintf(out, ",\"message\":");
    zt_json_string(out, r->message);
    fprintf(out, "}\n");
}
