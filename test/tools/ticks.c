/*
 * Preloaded into evlock: /proc says of all processes that they began in the same tick.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef FILE *ticks_fopen(const char *path, const char *mode);

/* A file like /proc/PID/stat, of which evlock reads the parent and the beginning alone. */
static FILE *ticks_stat(int pid, int parent) {
    FILE *file = tmpfile();
    if (!file)
        return NULL;
    fprintf(file, "%d (a) S %d", pid, parent);
    for (int i = 0; i < 17; i++)
        fputs(" 0", file);
    fputs(" 1\n", file);
    rewind(file);
    return file;
}

__attribute__((visibility("default"))) FILE *fopen(const char *path, const char *mode) {
    ticks_fopen *next;
    int pid, parent = 0, length = 0;
    *(void **)&next = dlsym(RTLD_NEXT, "fopen");
    FILE *file = next ? next(path, mode) : NULL;
    if (!file || sscanf(path, "/proc/%d/stat%n", &pid, &length) != 1 || length != (int)strlen(path))
        return file;
    char text[1024];
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *end = strrchr(text, ')');
    if (end)
        sscanf(end, ") %*c %d", &parent);
    return ticks_stat(pid, parent);
}
