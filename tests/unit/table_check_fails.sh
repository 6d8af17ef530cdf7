#!/bin/sh
# SPDX-License-Identifier: MIT
# table_check_fails.sh CC GEN_DIR INCLUDE_DIR: the generated checks accept the table as it is and refuse wrong numbers.
cc=$1 gen=$2 include=$3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

compiles() {
    "$cc" -std=gnu11 -fsyntax-only -I"$gen" -I"$include" "$1" >"$folder/log" 2>&1
}

refuses() { # FILE SED_EXPRESSION MESSAGE: with the number changed, the compiler must say MESSAGE
    sed "$2" "$gen/$1" >"$folder/$1"
    if cmp -s "$gen/$1" "$folder/$1"; then
        echo "not ok - $1: nothing to change with '$2'"
        failed=1
    elif ! compiles "$folder/$1" && grep -q "$3" "$folder/log"; then
        echo "ok - $1 refuses: $3"
    else
        echo "not ok - $1 accepts a wrong number: $2"
        failed=1
    fi
}

for file in check_table.c check_installed.c; do
    if compiles "$gen/$file"; then
        echo "ok - $file holds"
    else
        echo "not ok - $file does not hold"
        cat "$folder/log"
        failed=1
    fi
    refuses "$file" 's/(ze_module_desc_t, pInputModule) == 32/(ze_module_desc_t, pInputModule) == 40/' 'ze_module_desc_t.pInputModule lies at'
    refuses "$file" 's/sizeof(ze_context_desc_t) == 24/sizeof(ze_context_desc_t) == 16/' 'ze_context_desc_t has'
done
refuses check_installed.c 's/ZE_RESULT_ERROR_UNKNOWN == 0x7ffffffe/ZE_RESULT_ERROR_UNKNOWN == 0x7ffffff0/' 'ZE_RESULT_ERROR_UNKNOWN is'
refuses check_installed.c 's/(ze_context_dditable_t, pfnEvictMemory) == [0-9]*/(ze_context_dditable_t, pfnEvictMemory) == 1/' 'zeContextEvictMemory stands in'
refuses check_table.c 's/sizeof(ze_context_dditable_t) == [0-9]*/sizeof(ze_context_dditable_t) == 8/' 'ze_context_dditable_t has'
exit $failed
