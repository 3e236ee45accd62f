/*
 * A handler: a function of which every call runs under the lock that is named after it.
 *
 *     handler redis://127.0.0.1 --calls 5
 *
 * Two clients, as two servers would, run one handler several times at once, and the calls take turns. Start the
 * program twice and the turns go round both processes. A server that is not there at the start is reported at once
 * (on_connection), and ends the program after 3 seconds. Exit status: 0 when every call ran alone and to its end; 1
 * when not; 2 for a wrong command line.
 */
#include <errno.h>
#include <event2/event.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CLIENTS = 2, MAX_CALLS = 1000, CONNECT_MS = 900, START_MS = 3000 };

/* One call of the handler, from evlock_run() to on_called(). */
struct call {
    struct program *program;
    char name[64];
    struct event *work;
    evlock *lock; /* while it runs */
};

struct program {
    const char *url;
    int calls; /* of each client */
    long work_ms;
    struct event_base *base;
    struct event *starting, *signals[2];
    evlock_client *clients[CLIENTS];
    int open;             /* clients not yet closed */
    int under_way;        /* calls not yet ended */
    struct call *running; /* the one that has its turn */
    int connected;        /* there has been a server */
    int away;             /* there is none, and it was said */
    int closing;
    int failed;
};

/* --- The handler -------------------------------------------------------------------------------------------------- */

/* Ends the turn of a call. */
static void end_turn(struct call *call) {
    printf("%s ends\n", call->name);
    call->program->running = NULL;
    (void)evlock_release(call->lock, NULL, NULL);
}

static void on_worked(evutil_socket_t fd, short events, void *arg) {
    (void)fd, (void)events;
    end_turn(arg);
}

/* What must never run twice at once, anywhere. It begins its work, returns, and finishes by a timer. */
static int nightly_report(evlock *lock, void *arg) {
    struct call *call = arg;
    struct program *program = call->program;
    struct timeval work = {.tv_sec = program->work_ms / 1000, .tv_usec = program->work_ms % 1000 * 1000};
    if (event_add(call->work, &work) != 0)
        return EVLOCK_ESYSTEM; /* on_called() reports it */
    printf("%s begins\n", call->name);
    if (program->running) {
        printf("%s is still running!\n", program->running->name);
        program->failed = 1;
    }
    program->running = call;
    call->lock = lock;
    return EVLOCK_OK;
}

/* Its lock, of the same name in every process that is built from this file. */
static const char handler_name[] = EVLOCK_NAME_OF(nightly_report);

/* --- The end ------------------------------------------------------------------------------------------------------ */

static void on_closed(int status, void *arg) {
    struct program *program = arg;
    if (status != EVLOCK_OK) {
        fprintf(stderr, "handler: close: %s\n", evlock_strerror(status));
        program->failed = 1;
    }
    if (--program->open > 0)
        return;
    for (int i = 0; i < 2; i++)
        event_del(program->signals[i]); /* the last events of the base: the loop ends */
}

/* Cuts short the call that runs, and lets the clients end those that wait. */
static void end(struct program *program) {
    if (program->closing)
        return;
    program->closing = 1;
    event_del(program->starting);
    if (program->running) {
        event_del(program->running->work);
        end_turn(program->running);
    }
    for (int i = 0; i < CLIENTS; i++) {
        int status = evlock_client_close(program->clients[i], on_closed, program);
        if (status != EVLOCK_OK) { /* also for NULL: a client that could not be made */
            evlock_client_free(program->clients[i]);
            on_closed(status, program);
        }
    }
}

static void on_signal(evutil_socket_t number_of, short events, void *arg) {
    struct program *program = arg;
    (void)number_of, (void)events;
    program->failed = 1;
    end(program);
}

/* A status in words, with the library's particulars where there are any. */
static void complain(const char *what, int status) {
    const char *particulars = evlock_last_error();
    fprintf(stderr, "handler: %s: %s%s%s\n", what, evlock_strerror(status), *particulars ? ": " : "", particulars);
}

static void on_connection(evlock_client *client, enum evlock_connection now, int status, void *arg) {
    struct program *program = arg;
    (void)client;
    if (now == EVLOCK_AWAY && !program->away)
        complain("no connection", status);
    if (now == EVLOCK_CONNECTED)
        program->connected = 1;
    if (now != EVLOCK_CONNECTING)
        program->away = now == EVLOCK_AWAY;
}

/* A server that goes away later is waited for, as long as the calls wait. */
static void on_start_over(evutil_socket_t fd, short events, void *arg) {
    struct program *program = arg;
    (void)fd, (void)events;
    if (!program->connected) {
        fprintf(stderr, "handler: no server in %d s\n", START_MS / 1000);
        program->failed = 1;
        end(program);
    }
}

/* --- The calls ---------------------------------------------------------------------------------------------------- */

static void on_called(int status, bool ran, void *arg) {
    struct call *call = arg;
    struct program *program = call->program;
    if (status != EVLOCK_OK) {
        printf("%s %s: %s\n", call->name, ran ? "ran" : "did not run", evlock_strerror(status));
        program->failed = 1;
    }
    event_free(call->work);
    free(call);
    if (--program->under_way == 0)
        end(program);
}

static int start_call(struct program *program, int client, int number) {
    struct call *call = calloc(1, sizeof *call);
    if (!call)
        return EVLOCK_ENOMEM;
    call->program = program;
    snprintf(call->name, sizeof call->name, "process %ld client %d call %d", (long)getpid(), client + 1, number);
    call->work = evtimer_new(program->base, on_worked, call);

    evlock_options options = {.size = sizeof(evlock_options)};
    options.ttl_ms = 2000;
    options.auto_renewal = true;
    options.max_wait_ms = 60000; /* a run makes 4 attempts otherwise */
    int status = call->work ? evlock_run(NULL, program->clients[client], handler_name, EVLOCK_CSTRING, &options,
                                         nightly_report, on_called, call)
                            : EVLOCK_ENOMEM;
    if (status == EVLOCK_OK) {
        program->under_way++;
        return EVLOCK_OK;
    }
    if (call->work)
        event_free(call->work);
    free(call);
    return status;
}

static int start_client(struct program *program, int client) {
    evlock_client_options client_options = {.size = sizeof(evlock_client_options)};
    client_options.connect_timeout_ms = CONNECT_MS;
    client_options.on_connection = on_connection;
    client_options.arg = program;
    int status = evlock_client_new_libevent(&program->clients[client], program->base, program->url, &client_options);
    if (status == EVLOCK_OK)
        printf("client %d calls %s\n", client + 1, handler_name);
    return status;
}

/* --- The program -------------------------------------------------------------------------------------------------- */

static void usage(FILE *out) {
    fputs("usage: handler URL [--calls N] [--work MS]\n"
          "  URL        redis://host or unix:///path, as evlock_client_new() takes it\n"
          "  --calls N  how often each of the two clients calls the handler (5)\n"
          "  --work MS  how long a call takes (100)\n",
          out);
}

/* A whole number from `min` to `max`, or the end of the program. */
static long number(const char *option, const char *text, long min, long max) {
    char *end_of;
    errno = 0;
    long value = strtol(text, &end_of, 10);
    if (errno || end_of == text || *end_of || value < min || value > max) {
        fprintf(stderr, "handler: --%s takes a whole number from %ld to %ld\n", option, min, max);
        exit(2);
    }
    return value;
}

static void parse(struct program *program, int argc, char **argv) {
    static const struct option options[] = {
        {"calls", required_argument, NULL, 'c'},
        {"work", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'c':
            program->calls = (int)number("calls", optarg, 1, MAX_CALLS);
            break;
        case 'w':
            program->work_ms = number("work", optarg, 0, 60 * 1000L);
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
    program->url = argv[optind];
}

static int start_events(struct program *program) {
    program->base = event_base_new();
    if (!program->base)
        return -1;
    program->starting = evtimer_new(program->base, on_start_over, program);
    program->signals[0] = evsignal_new(program->base, SIGTERM, on_signal, program);
    program->signals[1] = evsignal_new(program->base, SIGINT, on_signal, program);
    for (int i = 0; i < 2; i++)
        if (!program->signals[i] || event_add(program->signals[i], NULL) != 0)
            return -1;
    struct timeval start = {.tv_sec = START_MS / 1000};
    return program->starting && event_add(program->starting, &start) == 0 ? 0 : -1;
}

static void run(struct program *program) {
    int status = EVLOCK_OK;
    for (int client = 0; client < CLIENTS && status == EVLOCK_OK; client++)
        status = start_client(program, client);
    for (int i = 0; i < CLIENTS * program->calls && status == EVLOCK_OK; i++)
        status = start_call(program, i % CLIENTS, i / CLIENTS + 1);
    if (status != EVLOCK_OK) {
        complain("start", status);
        program->failed = 1;
        end(program);
    }
    if (event_base_dispatch(program->base) < 0)
        program->failed = 1;
}

int main(int argc, char **argv) {
    struct program program = {.calls = 5, .work_ms = 100, .open = CLIENTS};
    parse(&program, argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);

    if (start_events(&program) == 0) {
        run(&program);
    } else {
        fputs("handler: no event loop\n", stderr);
        program.failed = 1;
    }
    struct event *events[] = {program.starting, program.signals[0], program.signals[1]};
    for (int i = 0; i < 3; i++)
        if (events[i])
            event_free(events[i]);
    if (program.base)
        event_base_free(program.base);
    return program.failed;
}
