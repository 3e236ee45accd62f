/*
 * A long task on a short lease that renews itself, and that is told when the lease is lost.
 *
 *     renew redis://127.0.0.1 --seconds 10                        works to the end
 *     renew redis://127.0.0.1 --seconds 10 --break-after 3000     somebody breaks the lock: the task is told and stops
 *
 * A holder that dies frees the lock within the short ttl; one that lives keeps it for as long as its task takes. Stop
 * the server during the task to see the warning (on_at_risk) and then, no later than the deadline, the loss (on_lost).
 * A server that is not there at the start is reported at once (on_connection), and ends the program after 3 seconds.
 * Exit status: 0 when the task was done under the lock throughout; 1 when it was not; 2 for a wrong command line.
 */
#include <errno.h>
#include <event2/event.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEP_MS = 250, CONNECT_MS = 900, START_MS = 3000 };

struct task {
    const char *url;
    long ttl_ms;
    long seconds;
    long break_after_ms; /* 0: nobody breaks the lock */
    long steps;          /* left to do */
    struct event_base *base;
    struct event *step, *breaker, *starting, *sigint, *sigterm;
    evlock_client *client;
    evlock *lock;
    evlock *other; /* the handle of somebody else, who breaks the lock */
    int connected; /* there has been a server */
    int away;      /* there is none, and it was said */
    int closing;
    int done;
};

/* --- The command line --------------------------------------------------------------------------------------------- */

static void usage(FILE *out) {
    fputs("usage: renew URL [--ttl MS] [--seconds S] [--break-after MS]\n"
          "  URL               redis://host or unix:///path, as evlock_client_new() takes it\n"
          "  --ttl MS          the lease's length (1000)\n"
          "  --seconds S       how long the task takes (10)\n"
          "  --break-after MS  break the lock so long after it was acquired\n",
          out);
}

/* A whole number from `min` to `max`, or the end of the program. */
static long number(const char *option, const char *text, long min, long max) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < min || value > max) {
        fprintf(stderr, "renew: --%s takes a whole number from %ld to %ld\n", option, min, max);
        exit(2);
    }
    return value;
}

static void parse(struct task *task, int argc, char **argv) {
    static const struct option options[] = {
        {"ttl", required_argument, NULL, 't'},
        {"seconds", required_argument, NULL, 's'},
        {"break-after", required_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 't':
            task->ttl_ms = number("ttl", optarg, 100, 60 * 1000L);
            break;
        case 's':
            task->seconds = number("seconds", optarg, 1, 24L * 60 * 60);
            break;
        case 'b':
            task->break_after_ms = number("break-after", optarg, 1, 24L * 60 * 60 * 1000);
            break;
        case 'h':
            usage(stdout);
            exit(0);
        default:
            usage(stderr);
            exit(2);
        }
    }
    if (optind != argc - 1) {
        usage(stderr);
        exit(2);
    }
    task->url = argv[optind];
    task->steps = task->seconds * 1000 / STEP_MS;
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

static void on_closed(int status, void *arg) {
    struct task *task = arg;
    if (status != EVLOCK_OK)
        fprintf(stderr, "renew: the lock is left to its ttl: %s\n", evlock_strerror(status));
    event_del(task->sigint); /* the last events of the base: the loop ends */
    event_del(task->sigterm);
}

/* Ends in good order: the client gives the lock back, if it is held, before it calls on_closed. */
static void end(struct task *task) {
    if (task->closing)
        return;
    task->closing = 1;
    event_del(task->step);
    event_del(task->breaker);
    event_del(task->starting);
    int status = evlock_client_close(task->client, on_closed, task);
    if (status != EVLOCK_OK) {
        evlock_client_free(task->client);
        on_closed(status, task);
    }
}

/* A status in words, with the library's particulars where there are any. */
static void complain(const char *what, int status) {
    const char *particulars = evlock_last_error();
    fprintf(stderr, "renew: %s: %s%s%s\n", what, evlock_strerror(status), *particulars ? ": " : "", particulars);
}

static void fail(struct task *task, const char *what, int status) {
    complain(what, status);
    end(task);
}

static void on_signal(evutil_socket_t number_of, short events, void *arg) {
    (void)number_of, (void)events;
    puts("told to stop");
    end(arg);
}

static void after(struct task *task, struct event *event, long ms) {
    struct timeval pause = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    if (event_add(event, &pause) != 0)
        fail(task, "timer", EVLOCK_ESYSTEM);
}

/* --- The server --------------------------------------------------------------------------------------------------- */

static void on_connection(evlock_client *client, enum evlock_connection now, int status, void *arg) {
    struct task *task = arg;
    (void)client;
    if (now == EVLOCK_AWAY && !task->away)
        complain("no connection", status);
    if (now == EVLOCK_CONNECTED)
        task->connected = 1;
    if (now != EVLOCK_CONNECTING)
        task->away = now == EVLOCK_AWAY;
}

/* One that goes away later is waited for; the task is told of its lease. */
static void on_start_over(evutil_socket_t fd, short events, void *arg) {
    struct task *task = arg;
    (void)fd, (void)events;
    if (!task->connected) {
        fprintf(stderr, "renew: no server in %d s\n", START_MS / 1000);
        end(task);
    }
}

/* --- The task ----------------------------------------------------------------------------------------------------- */

static void on_released(evlock *lock, int status, void *arg) {
    struct task *task = arg;
    (void)lock;
    task->done = status == EVLOCK_OK;
    printf("released: %s\n", evlock_strerror(status));
    end(task);
}

/* One step of the work. The check before each step is local and exact; it asks nobody. */
static void on_step(evutil_socket_t fd, short events, void *arg) {
    struct task *task = arg;
    (void)fd, (void)events;
    if (!evlock_is_held(task->lock))
        return; /* on_lost is about to tell why */
    if (task->steps-- > 0) {
        printf("working; the lease is good for another %" PRId64 " ms\n", evlock_remaining_ms(task->lock));
        after(task, task->step, STEP_MS);
        return;
    }
    puts("the task is done");
    int status = evlock_release(task->lock, on_released, task);
    if (status != EVLOCK_OK)
        fail(task, "release", status);
}

static void on_at_risk(evlock *lock, int status, void *arg) {
    (void)arg;
    printf("at risk: %s, and %" PRId64 " ms are left\n", evlock_strerror(status), evlock_remaining_ms(lock));
}

static void on_lost(evlock *lock, int reason, void *arg) {
    (void)lock;
    printf("lost: %s; the task stops\n", evlock_strerror(reason));
    end(arg);
}

static void on_acquired(evlock *lock, int status, void *arg) {
    struct task *task = arg;
    (void)lock;
    if (status == EVLOCK_ECANCELLED)
        return;
    if (status != EVLOCK_OK) {
        fail(task, "acquire", status);
        return;
    }
    puts("acquired");
    after(task, task->step, 0);
    if (task->break_after_ms > 0)
        after(task, task->breaker, task->break_after_ms);
}

/* --- Somebody else ------------------------------------------------------------------------------------------------ */

static void on_broken(evlock *lock, int status, void *arg) {
    (void)lock, (void)arg;
    printf("somebody broke the lock: %s\n", evlock_strerror(status));
}

static void on_breaker(evutil_socket_t fd, short events, void *arg) {
    struct task *task = arg;
    (void)fd, (void)events;
    int status = evlock_break(task->other, on_broken, NULL);
    if (status != EVLOCK_OK)
        fail(task, "break", status);
}

/* --- The program -------------------------------------------------------------------------------------------------- */

static int start_events(struct task *task) {
    task->base = event_base_new();
    if (!task->base)
        return -1;
    task->step = evtimer_new(task->base, on_step, task);
    task->breaker = evtimer_new(task->base, on_breaker, task);
    task->starting = evtimer_new(task->base, on_start_over, task);
    task->sigint = evsignal_new(task->base, SIGINT, on_signal, task);
    task->sigterm = evsignal_new(task->base, SIGTERM, on_signal, task);
    if (!task->step || !task->breaker || !task->starting || !task->sigint || !task->sigterm)
        return -1;
    return event_add(task->sigint, NULL) == 0 && event_add(task->sigterm, NULL) == 0 ? 0 : -1;
}

static int start_task(struct task *task) {
    evlock_client_options client_options = {.size = sizeof(evlock_client_options)};
    client_options.connect_timeout_ms = CONNECT_MS;
    client_options.on_connection = on_connection;
    client_options.arg = task;
    int status = evlock_client_new_libevent(&task->client, task->base, task->url, &client_options);
    if (status != EVLOCK_OK)
        return status;

    evlock_options options = {.size = sizeof(evlock_options)};
    options.ttl_ms = task->ttl_ms;
    options.auto_renewal = true; /* every third of the ttl, as long as renewal_interval_ms is left alone */
    options.max_wait_ms = 10000;
    options.on_lost = on_lost;
    options.on_at_risk = on_at_risk;
    options.arg = task;
    status = evlock_new(&task->lock, task->client, "evlock-renew", EVLOCK_CSTRING, &options);
    if (status == EVLOCK_OK)
        status = evlock_new(&task->other, task->client, "evlock-renew", EVLOCK_CSTRING, NULL);
    if (status == EVLOCK_OK)
        status = evlock_acquire(task->lock, NULL, on_acquired, task);
    return status;
}

static void free_all(struct task *task) {
    evlock_free(task->lock);
    evlock_free(task->other);
    struct event *events[] = {task->step, task->breaker, task->starting, task->sigint, task->sigterm};
    for (int i = 0; i < 5; i++)
        if (events[i])
            event_free(events[i]);
    if (task->base)
        event_base_free(task->base);
}

int main(int argc, char **argv) {
    struct task task = {.ttl_ms = 1000, .seconds = 10};
    parse(&task, argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);

    if (start_events(&task) != 0) {
        fputs("renew: no event loop\n", stderr);
    } else {
        int status = start_task(&task);
        if (status == EVLOCK_OK) {
            after(&task, task.starting, START_MS);
            event_base_dispatch(task.base);
        } else {
            complain("start", status);
            evlock_client_free(task.client);
        }
    }
    free_all(&task);
    return task.done ? 0 : 1;
}
