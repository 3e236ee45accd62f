/* The shared memory of a run; see history.h. */
#include "history.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <evlock/evlock.h>
#include <evlock/loop.h>

const char *const operation_names[OPERATIONS] = {"acquire", "release", "extend", "query",
                                                 "adopt",   "cancel",  "free",   "close"};

struct history *history_new(void) {
    struct history *history =
        mmap(NULL, sizeof(struct history), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (history == MAP_FAILED)
        return NULL;
    history->began = evlock_clock_us();
    return history;
}

void history_free(struct history *history) {
    munmap(history, sizeof(*history));
}

/* The belief counts when it is complete, as the process may be killed in between. */
struct belief *history_believe(struct diary *diary, int holder, int name, int64_t called, int64_t from,
                               uint64_t fence) {
    size_t len = atomic_load(&diary->beliefs_len);
    if (len == BELIEFS_MAX) {
        fprintf(stderr, "the history is full\n");
        exit(2);
    }
    diary->beliefs[len] = (struct belief){
        .window = {.from = from, .until = from, .fence = fence, .holder = holder},
        .called = called,
        .name = name,
    };
    atomic_store(&diary->beliefs_len, len + 1);
    return &diary->beliefs[len];
}

void history_let_go(struct belief *belief, int64_t now) {
    if (!belief->over && now < belief->window.until)
        belief->window.until = now;
    belief->over = true;
}

void history_crash(struct diary *diary, int64_t now) {
    size_t len = atomic_load(&diary->beliefs_len);
    for (size_t i = 0; i < len; i++)
        history_let_go(&diary->beliefs[i], now);
}

void history_complain(struct diary *diary, int name, const char *format, ...) {
    size_t len = atomic_load(&diary->complaints_len);
    struct complaint *complaint = &diary->complaints[len];
    va_list args;
    if (len == COMPLAINTS_MAX)
        return;
    complaint->at = evlock_clock_us();
    complaint->name = name;
    va_start(args, format);
    vsnprintf(complaint->words, sizeof(complaint->words), format, args);
    va_end(args);
    atomic_store(&diary->complaints_len, len + 1);
}
