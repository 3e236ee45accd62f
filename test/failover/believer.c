/*
 * One client of the failover table: believer URL NAME TTL_MS [FAILOVER_WAIT_MS [RENEWAL_INTERVAL_MS]] waits for the
 * lock, renews it, and writes until when it believes in it, as "WORD TIME [UNTIL or reason]" with times in microseconds
 * of CLOCK_BOOTTIME. With a ttl of 0 it takes and gives back free locks instead, one after the other, and writes when
 * each was had. It ends when its input does. It judges nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>

#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <evlock/loop.h>

enum {
    MAX_TTL_MS = 10000,  /* with a wait after failovers */
    LOOK_MS = 5,         /* from one look at the lease to the next */
    NEWS_US = 20 * 1000, /* a deadline that has moved by so much is worth a line */
    PAUSE_MS = 20,       /* before the next free lock */
    FREE_TTL_MS = 3000,
    AGAIN_MS = 100, /* after an acquire that failed */
};

static struct {
    struct event_base *base;
    evlock_client *client;
    struct event *timer;
    const char *name;
    int64_t ttl_ms;
    int64_t renewal_interval_ms; /* 0: the library's */
    evlock *lock;
    int64_t until; /* held: the deadline that was written last; else 0 */
    unsigned number;
} self;

static void say(const char *word, int64_t at) {
    printf("%s %" PRId64 "\n", word, at);
    fflush(stdout);
}

/* With what the holder believes from then on. */
static void say_until(const char *word, int64_t at, int64_t until) {
    printf("%s %" PRId64 " %" PRId64 "\n", word, at, until);
    fflush(stdout);
}

static void say_why(const char *word, int status) {
    printf("%s %" PRId64 " %s: %s\n", word, evlock_clock_us(), evlock_strerror(status), evlock_last_error());
    fflush(stdout);
}

static void wake_after(int ms) {
    struct timeval pause = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
    event_add(self.timer, &pause);
}

static void die_unless(bool ok, const char *what) {
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", what, evlock_last_error());
    exit(1);
}

/* --- One lock, kept ----------------------------------------------------------------------------------------------- */

/* What was lost is not sought again: the table asks who had it, and when. */
static void on_lost(evlock *lock, int status, void *arg) {
    (void)lock, (void)arg;
    event_del(self.timer);
    self.until = 0;
    say_why("lost", status);
}

static void on_acquired(evlock *lock, int status, void *arg) {
    int64_t now = evlock_clock_us();
    (void)arg;
    if (status == EVLOCK_OK) {
        self.until = now + evlock_remaining_ms(lock) * 1000;
        say_until("granted", now, self.until);
        wake_after(LOOK_MS);
    } else {
        say_why("failed", status);
        wake_after(AGAIN_MS);
    }
}

static void want_it(void) {
    die_unless(evlock_acquire(self.lock, NULL, on_acquired, NULL) == EVLOCK_OK, "evlock_acquire");
}

/* The deadline is read after the clock: a stop in between makes the belief too short, and never too long. */
static void look(void) {
    int64_t now = evlock_clock_us(), until = now + evlock_remaining_ms(self.lock) * 1000;
    if (evlock_is_held(self.lock) && until > self.until + NEWS_US)
        say_until("until", now, self.until = until);
}

static void keep_one(void) {
    evlock_options options = {.size = sizeof(options)};
    options.ttl_ms = self.ttl_ms;
    options.auto_renewal = 1;
    options.renewal_interval_ms = self.renewal_interval_ms;
    options.on_lost = on_lost;
    die_unless(evlock_new(&self.lock, self.client, self.name, EVLOCK_CSTRING, &options) == EVLOCK_OK, "evlock_new");
}

/* --- Free locks, one after the other ------------------------------------------------------------------------------ */

static void on_had(evlock *lock, int status, void *arg) {
    (void)arg;
    if (status == EVLOCK_OK)
        say("served", evlock_clock_us());
    else
        say_why("failed", status);
    evlock_free(lock); /* which releases it */
    wake_after(PAUSE_MS);
}

static void take_another(void) {
    char name[128];
    evlock *lock = NULL;
    evlock_options options = {.size = sizeof(options)};
    options.ttl_ms = FREE_TTL_MS;
    options.max_attempts = EVLOCK_TRY;
    snprintf(name, sizeof(name), "%s:%u", self.name, self.number++);
    die_unless(evlock_new(&lock, self.client, name, EVLOCK_CSTRING, &options) == EVLOCK_OK, "evlock_new");
    die_unless(evlock_acquire(lock, NULL, on_had, NULL) == EVLOCK_OK, "evlock_acquire");
}

/* --- The loop ----------------------------------------------------------------------------------------------------- */

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what, (void)arg;
    if (!self.ttl_ms) {
        take_another();
    } else if (!self.until) {
        want_it();
    } else {
        look();
        wake_after(LOOK_MS);
    }
}

static void on_input(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what, (void)arg;
    event_base_loopbreak(self.base);
}

static void on_log(enum evlock_log_level level, const char *line, void *arg) {
    (void)level, (void)arg;
    fprintf(stderr, "%" PRId64 " %s\n", evlock_clock_us(), line);
}

static void begin(char **argv) {
    evlock_client_options options = {.size = sizeof(options)};
    options.on_log = on_log;
    options.failover_wait_ms = argv[4] ? atoll(argv[4]) : 0;
    options.max_ttl_ms = options.failover_wait_ms ? MAX_TTL_MS : 0;
    self.renewal_interval_ms = argv[4] && argv[5] ? atoll(argv[5]) : 0;
    self.name = argv[2];
    self.ttl_ms = atoll(argv[3]);
    self.base = event_base_new();
    die_unless(self.base && evlock_client_new_libevent(&self.client, self.base, argv[1], &options) == EVLOCK_OK,
               "evlock_client_new");
    self.timer = evtimer_new(self.base, on_timer, NULL);
    if (self.ttl_ms)
        keep_one();
    wake_after(0);
}

int main(int argc, char **argv) {
    if (argc < 4 || argc > 6) {
        fprintf(stderr, "usage: believer URL NAME TTL_MS [FAILOVER_WAIT_MS [RENEWAL_INTERVAL_MS]]\n");
        return 2;
    }
    begin(argv);
    struct event *input = event_new(self.base, 0, EV_READ, on_input, NULL);
    event_add(input, NULL);
    event_base_dispatch(self.base);
    if (self.until)
        say("released", evlock_clock_us());
    evlock_client_free(self.client);
    event_free(input);
    event_free(self.timer);
    event_base_free(self.base);
    return 0;
}
