/* The descendants of a process, as /proc has them. */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descendants.h"

/* So often the youngest child is looked at. */
enum { DESCENDANTS_CHASES = 200 };

/* One process, as it was found. */
struct descendants_found {
    pid_t pid, parent;
    bool zombie;
};

/* All of the machine, sorted by their numbers. */
struct descendants_all {
    struct descendants_found *found;
    size_t count, room;
};

static bool descendants_read(const char *name, struct descendants_found *ret_found) {
    char path[64], text[512], state;
    int parent, threads;
    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *end = strrchr(text, ')'); /* the program's name may hold anything, brackets too */
    if (!end || sscanf(end, ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d", &state, &parent,
                       &threads) != 3)
        return false;
    /* What looks like a zombie may be a first thread that has ended before the others. */
    bool zombie = (state == 'Z' || state == 'X') && threads <= 1;
    *ret_found = (struct descendants_found){(pid_t)strtol(name, NULL, 10), parent, zombie};
    return true;
}

static int descendants_compare(const void *a, const void *b) {
    pid_t first = ((const struct descendants_found *)a)->pid, second = ((const struct descendants_found *)b)->pid;
    return (first > second) - (first < second);
}

/* Whether /proc knows processes by the numbers that this one knows: in a namespace of its own it may be another's. */
static bool descendants_proc_is_ours(void) {
    char text[24] = "";
    return readlink("/proc/self", text, sizeof text - 1) > 0 && strtol(text, NULL, 10) == getpid();
}

/* Without memory for all, those that were read are all. */
static bool descendants_read_all(struct descendants_all *all) {
    DIR *folder = descendants_proc_is_ours() ? opendir("/proc") : NULL;
    if (!folder)
        return false;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (all->count == all->room) {
            size_t room = all->room ? 2 * all->room : 256;
            void *bigger = reallocarray(all->found, room, sizeof *all->found);
            if (!bigger)
                break;
            all->found = bigger;
            all->room = room;
        }
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            descendants_read(entry->d_name, &all->found[all->count]))
            all->count++;
    }
    closedir(folder);
    if (all->count > 0)
        qsort(all->found, all->count, sizeof *all->found, descendants_compare);
    return all->count > 0;
}

static bool descendants_spares(const struct descendants *descendants, pid_t pid) {
    for (size_t i = 0; i < descendants->count; i++) {
        if (descendants->spared[i] == pid)
            return true;
    }
    return false;
}

/* Up from a process to the root. A parent may have ended and its number be another's meanwhile, so circles are cut. */
static bool descendants_has(const struct descendants *descendants, const struct descendants_all *all,
                            const struct descendants_found *found) {
    for (size_t steps = 0; found && steps <= all->count; steps++) {
        if (descendants_spares(descendants, found->pid))
            return false;
        if (found->parent == descendants->root)
            return true;
        struct descendants_found parent = {.pid = found->parent};
        found = bsearch(&parent, all->found, all->count, sizeof *all->found, descendants_compare);
    }
    return false;
}

void descendants_begin(struct descendants *descendants, pid_t root) {
    struct descendants_all all = {0};
    *descendants = (struct descendants){.root = root};
    if (descendants_read_all(&all)) {
        for (size_t i = 0; i < all.count; i++) {
            if (all.found[i].parent == root)
                descendants_spare(descendants, all.found[i].pid);
        }
    }
    free(all.found);
}

void descendants_spare(struct descendants *descendants, pid_t pid) {
    if (descendants->count < DESCENDANTS_SPARED)
        descendants->spared[descendants->count++] = pid;
}

/* --- What goes on faster than it is looked at --------------------------------------------------------------------- */

/* The youngest child of the root that is not spared, dead or alive; 0: there is none. Whoever is orphaned becomes the
 * last of its children, and the dead stay until they are waited for: so a process that forks and ends all the time is
 * among them. */
static pid_t descendants_youngest(const struct descendants *descendants) {
    char path[64];
    int pid, youngest = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)descendants->root, (int)descendants->root);
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%d", &pid) == 1) {
        if (!descendants_spares(descendants, pid))
            youngest = pid;
    }
    if (file)
        fclose(file);
    return youngest;
}

static bool descendants_lives(pid_t pid) {
    struct descendants_found found;
    char name[24];
    snprintf(name, sizeof name, "%d", (int)pid);
    return descendants_read(name, &found) && !found.zombie;
}

/* Whether any is left that no look at all processes has found: none is, if the youngest was dead and is the youngest
 * still. Who is to die is chased, for it may flee. A child that was not waited for keeps its number: it is no other's.
 */
static int descendants_chase(const struct descendants *descendants, int number) {
    pid_t dead = 0;
    for (int i = 0; i < DESCENDANTS_CHASES; i++) {
        pid_t youngest = descendants_youngest(descendants);
        if (youngest == dead)
            return 0;
        if (number)
            kill(youngest, number);
        dead = descendants_lives(youngest) ? -1 : youngest;
    }
    return 1;
}

int descendants_signal(const struct descendants *descendants, int number) {
    struct descendants_all all = {0};
    int living = 0;
    if (!descendants_read_all(&all))
        return -1;
    for (size_t i = 0; i < all.count; i++) {
        if (all.found[i].pid == descendants->root || !descendants_has(descendants, &all, &all.found[i]))
            continue;
        living += !all.found[i].zombie;
        if (number)
            kill(all.found[i].pid, number);
    }
    free(all.found);
    return living > 0 ? living : descendants_chase(descendants, number);
}
