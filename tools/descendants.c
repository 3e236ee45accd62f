/* The descendants of this process, as /proc has them. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "descendants.h"

struct descendants_one {
    pid_t pid, parent;
};

/* All that were found, parents before their children. */
struct descendants_all {
    struct descendants_one *found;
    size_t count, room;
};

/* What /proc says of a process: its parent, or 0, and when it began. */
static pid_t descendants_parent(pid_t pid, unsigned long long *ret_ticks) {
    char path[64], text[1024];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *end = strrchr(text, ')'); /* the program's name may hold anything, brackets too */
    if (!end || sscanf(end, ") %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                       &parent, ret_ticks) != 2)
        return 0;
    return parent;
}

struct descendants_birth descendants_birth(pid_t pid) {
    unsigned long long ticks = 0;
    return descendants_parent(pid, &ticks) ? (struct descendants_birth){ticks, pid} : (struct descendants_birth){0};
}

static bool descendants_is_older(pid_t pid, struct descendants_birth since) {
    if (since.pid == 0)
        return false;
    struct descendants_birth birth = descendants_birth(pid);
    return birth.ticks < since.ticks || (birth.ticks == since.ticks && birth.pid < since.pid);
}

/* --- Finding ------------------------------------------------------------------------------------------------------ */

/* Whether /proc knows processes by the numbers that this one knows: in a namespace of its own it may be another's. */
static bool descendants_proc_is_ours(void) {
    char text[24] = "";
    return readlink("/proc/self", text, sizeof text - 1) > 0 && strtol(text, NULL, 10) == getpid();
}

/* False without memory: those that were found are all then. */
static bool descendants_add(struct descendants_all *all, pid_t pid, pid_t parent) {
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 64;
        void *bigger = reallocarray(all->found, room, sizeof *all->found);
        if (!bigger)
            return false;
        all->found = bigger;
        all->room = room;
    }
    all->found[all->count++] = (struct descendants_one){pid, parent};
    return true;
}

/* Those whom one thread has started. False if /proc does not say. */
static bool descendants_add_of(struct descendants_all *all, pid_t parent, const char *thread) {
    char path[96];
    int pid;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", (int)parent, thread);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (fscanf(file, "%d", &pid) == 1 && descendants_add(all, pid, parent)) {
    }
    fclose(file);
    return true;
}

static bool descendants_add_children(struct descendants_all *all, pid_t parent) {
    char path[64];
    bool said = false;
    snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    DIR *folder = opendir(path);
    if (!folder)
        return false;
    for (struct dirent *entry; (entry = readdir(folder));)
        said = (entry->d_name[0] != '.' && descendants_add_of(all, parent, entry->d_name)) || said;
    closedir(folder);
    return said;
}

/* False if /proc does not say. */
static bool descendants_find(struct descendants_all *all, struct descendants_birth since) {
    unsigned long long ticks;
    size_t kept = 0;
    if (!descendants_proc_is_ours() || !descendants_add_children(all, getpid()))
        return false;
    for (size_t i = 0; i < all->count; i++) {
        if (!descendants_is_older(all->found[i].pid, since))
            all->found[kept++] = all->found[i];
    }
    all->count = kept;
    for (size_t i = 0; i < all->count; i++) {
        struct descendants_one one = all->found[i];
        size_t before = all->count;
        descendants_add_children(all, one.pid);
        /* A number that was found a moment ago may be another's by now. Our own children keep theirs until this process
         * waits for them. */
        if (one.parent != getpid() && all->count > before && descendants_parent(one.pid, &ticks) != one.parent)
            all->count = before;
    }
    return true;
}

/* --- Signalling --------------------------------------------------------------------------------------------------- */

/* The number may be another's by now, and is not if the process that it stands for has the parent that was found. */
static int descendants_send(struct descendants_one one, int number) {
#if defined SYS_pidfd_open && defined SYS_pidfd_send_signal
    unsigned long long ticks;
    int fd = one.parent == getpid() ? -1 : (int)syscall(SYS_pidfd_open, one.pid, 0);
    if (fd >= 0) {
        pid_t parent = descendants_parent(one.pid, &ticks);
        bool same = parent == one.parent || parent == getpid();
        int sent = same ? (int)syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) : 0, error = errno;
        close(fd);
        errno = error;
        return sent;
    }
#endif
    return kill(one.pid, number);
}

int descendants_signal(int number, struct descendants_birth since, pid_t *ret_refused) {
    struct descendants_all all = {0};
    int count = descendants_find(&all, since) ? (int)all.count : -1;
    for (int i = 0; i < count; i++) {
        if (descendants_send(all.found[i], number) != 0 && errno == EPERM)
            *ret_refused = all.found[i].pid;
    }
    free(all.found);
    return count;
}
