/* Sites; see sites.h. */
#include "sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a command says about this program, whose path comes between `before` and `after`. */
static FILE *ask(const char *before, const char *after) {
    char path[1024], command[1200];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (len < 0)
        return NULL;
    path[len] = '\0';
    snprintf(command, sizeof(command), "%s '%s' %s 2> /dev/null", before, path, after);
    return popen(command, "r");
}

/* Whether a line of the listing calls one of them: "  1234:  call  5678 <function>". */
static bool calls(const char *line, const char *const *functions) {
    const char *open = strrchr(line, '<');
    for (; open && *functions; functions++) {
        size_t len = strlen(*functions);
        if (strncmp(open + 1, *functions, len) == 0 && open[len + 1] == '>')
            return true;
    }
    return false;
}

size_t sites_of(const char *const *functions, uintptr_t *sites, size_t size) {
    char line[1024];
    size_t count = 0;
    bool called = false;
    FILE *listing = ask("objdump --disassemble --no-show-raw-insn", "");
    while (listing && fgets(line, sizeof(line), listing)) {
        char *end;
        uintptr_t address = strtoul(line, &end, 16);
        if (end == line || *end != ':')
            continue;
        if (called && count < size)
            sites[count++] = address;
        called = calls(line, functions);
    }
    if (listing)
        pclose(listing);
    return count;
}

void sites_name(uintptr_t site, char *name, size_t size) {
    char address[24];
    snprintf(address, sizeof(address), "%#lx", (unsigned long)site - 1);
    FILE *answer = ask("addr2line --basenames --exe", address);
    if (!answer || !fgets(name, (int)size, answer))
        snprintf(name, size, "?");
    name[strcspn(name, " \n")] = '\0';
    if (answer)
        pclose(answer);
}
