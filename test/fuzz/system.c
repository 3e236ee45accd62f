/* The system of the fuzz targets; see system.h. Descriptors of sockets in memory are numbers that no file has. */
#undef _GNU_SOURCE       /* with which connect() takes a union that is none of the standard */
#undef _FILE_OFFSET_BITS /* which gives fcntl() another name: whoever calls it may have been built with or without */
#undef _FORTIFY_SOURCE   /* with which read() and recv() are inline functions */
#define _DEFAULT_SOURCE
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "input.h"

enum { FIRST_FD = 1 << 20, PAIRS = 32, ROOM = 1 << 16 };

enum pair_state { FREE, NEW, QUEUED, TAKEN };

/* One end's inbox; what has been read lies before `at`. */
struct end {
    bool open;
    size_t at, len;
    char bytes[ROOM];
};

/* A connection: the client's end first. Descriptors go by the place, two to a pair. */
struct pair {
    enum pair_state state;
    unsigned server;
    struct end ends[2];
};

static struct pair pairs[PAIRS];
static unsigned listening;
static unsigned queued;
static unsigned refusing; /* by bit */
static uint64_t random_state;

static struct pair *pair_of(int fd) {
    return fd >= FIRST_FD && fd < FIRST_FD + 2 * PAIRS ? &pairs[(fd - FIRST_FD) / 2] : NULL;
}

static int fail(int error) {
    errno = error;
    return -1;
}

/* --- What the kernel would do ------------------------------------------------------------------------------------- */

static ssize_t take(int fd, void *to, size_t size) {
    struct pair *pair = pair_of(fd);
    struct end *end = &pair->ends[fd % 2];

    check(end->open);
    if (end->at == end->len)
        return pair->ends[!(fd % 2)].open ? fail(EAGAIN) : 0;
    size = size < end->len - end->at ? size : end->len - end->at;
    memcpy(to, end->bytes + end->at, size);
    end->at += size;
    return (ssize_t)size;
}

static ssize_t put(int fd, const void *from, size_t size) {
    struct pair *pair = pair_of(fd);
    struct end *end = &pair->ends[!(fd % 2)];

    check(pair->ends[fd % 2].open);
    if (!end->open)
        return fail(EPIPE);
    memmove(end->bytes, end->bytes + end->at, end->len -= end->at);
    end->at = 0;
    size = size < ROOM - end->len ? size : ROOM - end->len;
    if (size == 0)
        return fail(EAGAIN);
    memcpy(end->bytes + end->len, from, size);
    end->len += size;
    return (ssize_t)size;
}

/* One that was never taken is forgotten with its client's end. */
static int shut(int fd) {
    struct pair *pair = pair_of(fd);

    check(pair->ends[fd % 2].open);
    pair->ends[fd % 2].open = false;
    if (pair->state != TAKEN)
        pair->ends[1].open = false;
    queued -= pair->state == QUEUED;
    if (!pair->ends[0].open && !pair->ends[1].open)
        pair->state = FREE;
    return 0;
}

/* --- In place of the C library ------------------------------------------------------------------------------------ */

int socket(int domain, int type, int protocol) {
    (void)type, (void)protocol;
    if (domain != AF_UNIX)
        return fail(EAFNOSUPPORT);
    for (int i = 0; i < PAIRS; i++) {
        if (pairs[i].state != FREE)
            continue;
        pairs[i].state = NEW;
        for (int j = 0; j < 2; j++) {
            pairs[i].ends[j].open = true;
            pairs[i].ends[j].at = pairs[i].ends[j].len = 0;
        }
        return FIRST_FD + 2 * i;
    }
    return fail(EMFILE);
}

int connect(int fd, const struct sockaddr *address, socklen_t len) {
    const char *path = ((const struct sockaddr_un *)(const void *)address)->sun_path;
    struct pair *pair = pair_of(fd);
    unsigned server = (unsigned)(path[strlen(SYSTEM_PATH)] - '0');

    (void)len;
    check(pair);
    if (pair->state != NEW)
        return fail(EISCONN);
    if (strncmp(path, SYSTEM_PATH, strlen(SYSTEM_PATH)) != 0 || server >= listening)
        return fail(ENOENT);
    if (refusing & 1U << server) {
        refusing &= ~(1U << server);
        return fail(ECONNREFUSED);
    }
    pair->state = QUEUED;
    queued++;
    pair->server = server;
    return 0;
}

ssize_t read(int fd, void *to, size_t size) {
    return pair_of(fd) ? take(fd, to, size) : syscall(SYS_read, fd, to, size);
}

ssize_t recv(int fd, void *to, size_t size, int flags) {
    struct pair *pair = pair_of(fd);
    size_t at = pair->ends[fd % 2].at;
    ssize_t count = take(fd, to, size);

    if (flags & MSG_PEEK)
        pair->ends[fd % 2].at = at;
    return count;
}

ssize_t write(int fd, const void *from, size_t size) {
    return pair_of(fd) ? put(fd, from, size) : syscall(SYS_write, fd, from, size);
}

ssize_t send(int fd, const void *from, size_t size, int flags) {
    (void)flags;
    return put(fd, from, size);
}

int close(int fd) {
    return pair_of(fd) ? shut(fd) : (int)syscall(SYS_close, fd);
}

int fcntl(int fd, int command, ...) {
    va_list args;
    long arg;

    va_start(args, command);
    arg = va_arg(args, long);
    va_end(args);
    return pair_of(fd) ? 0 : (int)syscall(SYS_fcntl, fd, command, arg);
}

int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));

int setsockopt(int fd, int level, int option, const void *value, socklen_t len) {
    (void)fd, (void)level, (void)option, (void)value, (void)len;
    return 0;
}

int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict len) {
    (void)fd, (void)level, (void)option;
    memset(value, 0, *len); /* as SO_ERROR: none */
    return 0;
}

ssize_t getrandom(void *bytes, size_t len, unsigned flags) {
    (void)flags;
    for (size_t i = 0; i < len; i++) {
        random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ((unsigned char *)bytes)[i] = (unsigned char)(random_state >> 56);
    }
    return (ssize_t)len;
}

/* ------------------------------------------------------------------------------------------------------------------ */

void system_begin(unsigned servers) {
    for (int i = 0; i < PAIRS; i++)
        pairs[i].state = FREE;
    listening = servers;
    queued = refusing = 0;
    random_state = 1;
}

int system_accept(unsigned server) {
    for (int i = 0; queued && i < PAIRS; i++) {
        if (pairs[i].state != QUEUED || pairs[i].server != server)
            continue;
        pairs[i].state = TAKEN;
        queued--;
        return FIRST_FD + 2 * i + 1;
    }
    return -1;
}

void system_refuse(unsigned server) {
    refusing |= 1U << server;
}

bool system_readable(int fd) {
    const struct pair *pair = pair_of(fd);
    const struct end *end = &pair->ends[fd % 2];

    return end->at < end->len || !pair->ends[!(fd % 2)].open;
}

void system_end(void) {
    for (int i = 0; i < PAIRS; i++)
        check(pairs[i].state == FREE);
}
