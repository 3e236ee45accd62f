/*
 * Faults; see faults.h. evlock's own allocations are reached by the linker's --wrap, since its objects are linked in;
 * those of hiredis and of the loops by their hooks; system calls by functions of the same names, which win over the C
 * library's for shared libraries, too.
 */
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <event2/event.h>
#include <hiredis/async.h>

#ifdef EVLOCK_TEST_LIBUV
#include <uv.h>
#endif

#include "pool.h"
#include "secret.h"
#include "slab.h"
#include "token.h"

enum { MAX_SITES = 1024 };

const char *const fault_names[FAULT_KINDS] = {"evlock's memory", "hiredis's memory", "the loop's memory",
                                              "system calls"};

static struct {
    enum fault_kind kind;
    long at;
    bool from_there_on;
    bool fired;
    bool healed;
    long passed;
    const char *name; /* of what was refused first */
    uintptr_t site;
} plan = {.at = -1};

static struct {
    long refused;
    _Atomic long live; /* libuv frees in threads, too */
    uintptr_t sites[MAX_SITES];
    size_t site_count;
} kinds[FAULT_KINDS];

static bool armed;
static bool on_uv;
static bool in_attach;
static pthread_t main_thread;

/* Where the program is loaded. Sites of shared libraries are far away from there, and only counted. */
extern char __executable_start[];

static void note_site(enum fault_kind kind, uintptr_t site) {
    for (size_t i = 0; i < kinds[kind].site_count; i++)
        if (kinds[kind].sites[i] == site)
            return;
    if (kinds[kind].site_count < MAX_SITES)
        kinds[kind].sites[kinds[kind].site_count++] = site;
}

/* At each point: whether it is to be refused. */
static bool refused(enum fault_kind kind, const char *name, const void *caller) {
    uintptr_t site = (uintptr_t)caller - (uintptr_t)__executable_start;

    if (!armed || kind != plan.kind || plan.healed || !pthread_equal(pthread_self(), main_thread))
        return false;
    if (!plan.fired && plan.passed++ != plan.at)
        return false;
    if (plan.fired && (!plan.from_there_on || (kind == FAULT_SYSTEM && strcmp(name, plan.name) != 0)))
        return false;
    if (!plan.fired) {
        plan.name = name;
        plan.site = site;
    }
    plan.fired = true;
    kinds[kind].refused++;
    note_site(kind, site);
    return true;
}

#define REFUSED(kind) refused((kind), __func__, __builtin_return_address(0))

void faults_plan(enum fault_kind kind, long at, bool from_there_on) {
    memset(&plan, 0, sizeof(plan));
    plan.kind = kind;
    plan.at = at;
    plan.from_there_on = from_there_on;
}

void faults_heal(void) {
    plan.healed = true;
}

bool faults_fired(void) {
    return plan.fired;
}

void faults_arm(void) {
    armed = true;
}

void faults_disarm(void) {
    armed = false;
}

long faults_live(enum fault_kind kind) {
    return kinds[kind].live;
}

long faults_refused(enum fault_kind kind) {
    return kinds[kind].refused;
}

size_t faults_sites(enum fault_kind kind) {
    return kinds[kind].site_count;
}

bool faults_refused_at(enum fault_kind kind, uintptr_t site) {
    for (size_t i = 0; i < kinds[kind].site_count; i++)
        if (kinds[kind].sites[i] == site)
            return true;
    return false;
}

uintptr_t faults_planned_site(void) {
    return plan.site;
}

const char *faults_planned_name(void) {
    return plan.fired ? plan.name : "nothing";
}

/* --- evlock's memory ---------------------------------------------------------------------------------------------- */

void *__real_evl_alloc(size_t size);
void *__real_evl_resize(void *block, size_t size);
char *__real_evl_dup(const void *bytes, size_t len);
void __real_evl_free(void *block);
void *__wrap_evl_alloc(size_t size);
void *__wrap_evl_resize(void *block, size_t size);
char *__wrap_evl_dup(const void *bytes, size_t len);
void __wrap_evl_free(void *block);
void *__real_evl_pool_alloc(struct pool *pool);
void *__wrap_evl_pool_alloc(struct pool *pool);
void *__real_evl_slab_alloc(struct slabs *slabs);
void *__wrap_evl_slab_alloc(struct slabs *slabs);

void *__wrap_evl_alloc(size_t size) {
    void *block = REFUSED(FAULT_OWN) ? NULL : __real_evl_alloc(size);
    kinds[FAULT_OWN].live += block != NULL;
    return block;
}

void *__wrap_evl_resize(void *block, size_t size) {
    void *resized = REFUSED(FAULT_OWN) ? NULL : __real_evl_resize(block, size);
    kinds[FAULT_OWN].live += !block && resized;
    return resized;
}

char *__wrap_evl_dup(const void *bytes, size_t len) {
    char *copy = REFUSED(FAULT_OWN) ? NULL : __real_evl_dup(bytes, len);
    kinds[FAULT_OWN].live += copy != NULL;
    return copy;
}

void __wrap_evl_free(void *block) {
    kinds[FAULT_OWN].live -= block != NULL;
    __real_evl_free(block);
}

/* Also of a block that a pool has kept: whether it has one is chance. */
void *__wrap_evl_pool_alloc(struct pool *pool) {
    return REFUSED(FAULT_OWN) ? NULL : __real_evl_pool_alloc(pool);
}

/* The same. Only one block is by itself, so that slabs come and go too. */
void *__wrap_evl_slab_alloc(struct slabs *slabs) {
    slabs->keep = 1;
    return REFUSED(FAULT_OWN) ? NULL : __real_evl_slab_alloc(slabs);
}

bool __real_evl_secret_make(struct secret *ret, size_t room);
bool __wrap_evl_secret_make(struct secret *ret, size_t room);

bool __wrap_evl_secret_make(struct secret *ret, size_t room) {
    return !REFUSED(FAULT_OWN) && __real_evl_secret_make(ret, room);
}

/* --- hiredis's memory --------------------------------------------------------------------------------------------- */

#if HIREDIS_MAJOR >= 1
static void *hiredis_malloc(size_t size) {
    void *block = REFUSED(FAULT_HIREDIS) ? NULL : malloc(size);
    kinds[FAULT_HIREDIS].live += block != NULL;
    return block;
}

static void *hiredis_calloc(size_t count, size_t size) {
    void *block = REFUSED(FAULT_HIREDIS) ? NULL : calloc(count, size);
    kinds[FAULT_HIREDIS].live += block != NULL;
    return block;
}

static void *hiredis_realloc(void *block, size_t size) {
    void *resized = REFUSED(FAULT_HIREDIS) ? NULL : realloc(block, size);
    kinds[FAULT_HIREDIS].live += !block && resized;
    return resized;
}

static char *hiredis_strdup(const char *text) {
    char *copy = REFUSED(FAULT_HIREDIS) ? NULL : strdup(text);
    kinds[FAULT_HIREDIS].live += copy != NULL;
    return copy;
}

static void hiredis_free(void *block) {
    kinds[FAULT_HIREDIS].live -= block != NULL;
    free(block);
}
#endif

/* --- The loops' memory -------------------------------------------------------------------------------------------- */

/* hiredis 0.14's adapter for libevent does not look whether it got its events. */
static bool event_survives(void) {
    return HIREDIS_MAJOR >= 1 || !in_attach;
}

static void *event_malloc(size_t size) {
    void *block = event_survives() && REFUSED(FAULT_LOOP) ? NULL : malloc(size);
    kinds[FAULT_LOOP].live += block != NULL;
    return block;
}

static void *event_realloc(void *block, size_t size) {
    void *resized = event_survives() && REFUSED(FAULT_LOOP) ? NULL : realloc(block, size);
    kinds[FAULT_LOOP].live += !block && resized;
    return resized;
}

static void loop_free_block(void *block) {
    kinds[FAULT_LOOP].live -= block != NULL;
    free(block);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

#ifdef EVLOCK_TEST_LIBUV
/* libuv itself does not survive without memory: what it has is counted. */
static void *uv_malloc(size_t size) {
    void *block = malloc(size);
    kinds[FAULT_LOOP].live += block != NULL;
    return block;
}

static void *uv_calloc(size_t count, size_t size) {
    void *block = __real_calloc(count, size);
    kinds[FAULT_LOOP].live += block != NULL;
    return block;
}

static void *uv_realloc(void *block, size_t size) {
    void *resized = realloc(block, size);
    kinds[FAULT_LOOP].live += !block && resized;
    return resized;
}
#endif

/* The adapter for libuv takes its memory from here, and the resolver. */

void *__wrap_calloc(size_t count, size_t size) {
    return REFUSED(FAULT_LOOP) ? NULL : __real_calloc(count, size);
}

/* --- The loops' operations ---------------------------------------------------------------------------------------- */

static evlock_loop_ops guarded;
static evlock_loop_ops unguarded;

static int guarded_attach(void *data, struct redisAsyncContext *connection) {
    in_attach = true;
    int result = unguarded.attach(data, connection);
    in_attach = false;
    return result;
}

const evlock_loop *faults_loop(const evlock_loop *loop) {
    static evlock_loop faulty;
    unguarded = guarded = *loop->ops;
    guarded.attach = guarded_attach;
    faulty = (evlock_loop){&guarded, loop->data};
    return &faulty;
}

/* libevent would warn of each refusal. */
static void say_nothing(int severity, const char *words) {
    (void)severity;
    (void)words;
}

bool faults_possible(enum fault_kind kind) {
    return kind != FAULT_HIREDIS || HIREDIS_MAJOR >= 1;
}

void faults_install(void) {
    const char *loop = getenv("EVLOCK_TEST_LOOP");
    on_uv = loop && strcmp(loop, "libuv") == 0;
    main_thread = pthread_self();
    event_set_log_callback(say_nothing);
    event_set_mem_functions(event_malloc, event_realloc, loop_free_block);
#ifdef EVLOCK_TEST_LIBUV
    uv_replace_allocator(uv_malloc, uv_realloc, uv_calloc, loop_free_block);
#endif
#if HIREDIS_MAJOR >= 1
    hiredisAllocFuncs functions = {hiredis_malloc, hiredis_calloc, hiredis_realloc, hiredis_strdup, hiredis_free};
    hiredisSetAllocators(&functions);
#endif
}

/* --- System calls ------------------------------------------------------------------------------------------------- */

/*
 * Each has a name of its own here and the C library's for the linker. What is not refused goes to the kernel.
 */
#define STANDS_FOR(name) __asm__(#name)
#define SYSTEM_REFUSED(error) (REFUSED(FAULT_SYSTEM) && (errno = (error), true))

/* Loops wake themselves by descriptors that are none, and may abort where those fail. */
static bool is_socket(int fd) {
    struct stat about;
    return armed && fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode);
}

/* Whether a loop has been told of a descriptor yet. */
static bool watched[1024];

static int new_descriptor(int fd) {
    if (fd >= 0 && fd < (int)sizeof(watched))
        watched[fd] = false;
    return fd;
}

int system_socket(int domain, int type, int protocol) STANDS_FOR(socket);
int system_socket(int domain, int type, int protocol) {
    return SYSTEM_REFUSED(EMFILE) ? -1 : new_descriptor((int)syscall(SYS_socket, domain, type, protocol));
}

int system_connect(int fd, const struct sockaddr *address, socklen_t len) STANDS_FOR(connect);
int system_connect(int fd, const struct sockaddr *address, socklen_t len) {
    return SYSTEM_REFUSED(ECONNREFUSED) ? -1 : (int)syscall(SYS_connect, fd, address, len);
}

int system_setsockopt(int fd, int level, int name, const void *value, socklen_t len) STANDS_FOR(setsockopt);
int system_setsockopt(int fd, int level, int name, const void *value, socklen_t len) {
    return SYSTEM_REFUSED(ENOBUFS) ? -1 : (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

int system_getsockopt(int fd, int level, int name, void *value, socklen_t *len) STANDS_FOR(getsockopt);
int system_getsockopt(int fd, int level, int name, void *value, socklen_t *len) {
    return SYSTEM_REFUSED(ENOBUFS) ? -1 : (int)syscall(SYS_getsockopt, fd, level, name, value, len);
}

static int control(int fd, int command, va_list args) {
    return (int)syscall(SYS_fcntl, fd, command, va_arg(args, long));
}

int system_fcntl(int fd, int command, ...) STANDS_FOR(fcntl);
int system_fcntl(int fd, int command, ...) {
    va_list args;
    va_start(args, command);
    int result = SYSTEM_REFUSED(EBADF) ? -1 : control(fd, command, args);
    va_end(args);
    return result;
}

int system_fcntl64(int fd, int command, ...) STANDS_FOR(fcntl64);
int system_fcntl64(int fd, int command, ...) {
    va_list args;
    va_start(args, command);
    int result = SYSTEM_REFUSED(EBADF) ? -1 : control(fd, command, args);
    va_end(args);
    return result;
}

ssize_t system_write(int fd, const void *bytes, size_t len) STANDS_FOR(write);
ssize_t system_write(int fd, const void *bytes, size_t len) {
    return is_socket(fd) && SYSTEM_REFUSED(ECONNRESET) ? -1 : (ssize_t)syscall(SYS_write, fd, bytes, len);
}

ssize_t system_send(int fd, const void *bytes, size_t len, int flags) STANDS_FOR(send);
ssize_t system_send(int fd, const void *bytes, size_t len, int flags) {
    return SYSTEM_REFUSED(ECONNRESET) ? -1 : (ssize_t)syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

ssize_t system_read(int fd, void *bytes, size_t len) STANDS_FOR(read);
ssize_t system_read(int fd, void *bytes, size_t len) {
    return is_socket(fd) && SYSTEM_REFUSED(ECONNRESET) ? -1 : (ssize_t)syscall(SYS_read, fd, bytes, len);
}

ssize_t system_recv(int fd, void *bytes, size_t len, int flags) STANDS_FOR(recv);
ssize_t system_recv(int fd, void *bytes, size_t len, int flags) {
    return SYSTEM_REFUSED(ECONNRESET) ? -1 : (ssize_t)syscall(SYS_recvfrom, fd, bytes, len, flags, NULL, NULL);
}

int system_timerfd_create(int clock, int flags) STANDS_FOR(timerfd_create);
int system_timerfd_create(int clock, int flags) {
    return SYSTEM_REFUSED(EMFILE) ? -1 : new_descriptor((int)syscall(SYS_timerfd_create, clock, flags));
}

/* To change or take out what is there cannot fail. libuv aborts; and what libevent adds again, as it does after each
 * event, leaves a connection deaf that was well, for as long as a command may take: that is for tests of silence. */
int system_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event) STANDS_FOR(epoll_ctl);
int system_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event) {
    bool first = what == EPOLL_CTL_ADD && fd >= 0 && fd < (int)sizeof(watched) && !watched[fd];
    if (first)
        watched[fd] = true;
    return first && !on_uv && SYSTEM_REFUSED(ENOSPC) ? -1 : (int)syscall(SYS_epoll_ctl, epoll, what, fd, event);
}

ssize_t system_getrandom(void *bytes, size_t len, unsigned flags) STANDS_FOR(getrandom);
ssize_t system_getrandom(void *bytes, size_t len, unsigned flags) {
    return SYSTEM_REFUSED(ENOSYS) ? -1 : (ssize_t)syscall(SYS_getrandom, bytes, len, flags);
}

bool __real_evl_token_generate(struct entropy *entropy, char token[EVL_TOKEN_TEXT]);
bool __wrap_evl_token_generate(struct entropy *entropy, char token[EVL_TOKEN_TEXT]);

/* Each token is a point: whether bytes were drawn ahead is chance. */
bool __wrap_evl_token_generate(struct entropy *entropy, char token[EVL_TOKEN_TEXT]) {
    evl_entropy_wipe(entropy);
    return __real_evl_token_generate(entropy, token);
}

int __real_getnameinfo(const struct sockaddr *address, socklen_t len, char *host, socklen_t host_len, char *service,
                       socklen_t service_len, int flags);
int __wrap_getnameinfo(const struct sockaddr *address, socklen_t len, char *host, socklen_t host_len, char *service,
                       socklen_t service_len, int flags);

int __wrap_getnameinfo(const struct sockaddr *address, socklen_t len, char *host, socklen_t host_len, char *service,
                       socklen_t service_len, int flags) {
    if (REFUSED(FAULT_SYSTEM))
        return EAI_MEMORY;
    return __real_getnameinfo(address, len, host, host_len, service, service_len, flags);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *arg) {
    return REFUSED(FAULT_SYSTEM) ? EAGAIN : __real_pthread_create(thread, attributes, body, arg);
}

/* By which evlock learns of forks: it asks for all of it once in a process, and does without. */
static bool forks_refused(void) {
    return REFUSED(FAULT_SYSTEM);
}

int __real_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    return forks_refused() ? ENOMEM : __real_pthread_atfork(prepare, parent, child);
}

int __real_madvise(void *start, size_t len, int advice);
int __wrap_madvise(void *start, size_t len, int advice);

int __wrap_madvise(void *start, size_t len, int advice) {
    return forks_refused() ? -1 : __real_madvise(start, len, advice);
}
