/*
 * An HTTP server in which each request takes the lock of the resource it names, works, and answers.
 *
 *     http-server redis://127.0.0.1 --port 8080
 *     curl 'http://127.0.0.1:8080/printer?ms=500'
 *
 * GET /RESOURCE?ms=N works for N milliseconds (100) under the lock RESOURCE and answers 200; requests for one resource
 * take turns, also with those of other servers on the same Redis. 503 is the answer when the lock was not free in time,
 * when the lease was lost during the work, and when the server is told to end. A client that goes away gives up its
 * place. One thread does it all and never waits: a request for a free resource is answered while hundreds wait for a
 * busy one. Exit status: 0 after SIGTERM or SIGINT; 1 when it could not start, also when it had no connection to Redis
 * in the first 3 seconds; 2 for a wrong command line.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

enum {
    DEFAULT_WORK_MS = 100,
    MAX_WORK_MS = 60000,
    MAX_READ_AHEAD = 4096,
    FLUSH_MS = 100,
    CONNECT_MS = 900,
    START_MS = 3000
};

TAILQ_HEAD(job_list, job);

struct server {
    const char *url;
    uint16_t port;
    long wait_ms;
    long ttl_ms;
    struct event_base *base;
    struct evhttp *http;
    struct evhttp_bound_socket *listener;
    struct event *signals[2];
    evlock_client *client;
    struct job_list jobs;
    int connected; /* there has been a lock server */
    int closing;
    int failed;
};

/* One request: waiting for its lock, working under it, or releasing it. Lives until on_ended(). */
struct job {
    TAILQ_ENTRY(job) link;
    struct server *server;
    struct evhttp_request *request; /* NULL when nobody waits for the answer any more */
    evlock *lock;
    int working;
    struct event *work;
    long work_ms;
    int abandoned;
};

/* --- The answer --------------------------------------------------------------------------------------------------- */

static void answer(struct evhttp_request *request, int code, const char *reason, const char *text) {
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    struct evbuffer *body = evbuffer_new();
    if (body && evbuffer_add_printf(body, "%s\n", text) >= 0 &&
        evhttp_add_header(headers, "Content-Type", "text/plain") == 0)
        evhttp_send_reply(request, code, reason, body);
    else
        evhttp_send_error(request, HTTP_INTERNAL, NULL);
    if (body)
        evbuffer_free(body);
}

/* What evlock's statuses are to an HTTP client. */
static void answer_status(struct evhttp_request *request, int status) {
    if (status == EVLOCK_OK)
        answer(request, HTTP_OK, "OK", "done");
    else if (status == EVLOCK_ENAME || status == EVLOCK_EINVAL)
        answer(request, HTTP_BADREQUEST, "Bad Request", evlock_last_error());
    else
        answer(request, HTTP_SERVUNAVAIL, "Service Unavailable", evlock_strerror(status));
}

/* --- Clients that go away ----------------------------------------------------------------------------------------- */

static void abandon(struct job *job);

/*
 * The connection is gone, and the request with it: evhttp has taken the two apart before it tells, and then the request
 * is ours to free; only evhttp_free() leaves them together and frees both.
 */
static void on_client_gone(struct evhttp_connection *connection, void *arg) {
    struct job *job = arg;
    (void)connection;
    if (!evhttp_request_get_connection(job->request))
        evhttp_request_free(job->request);
    job->request = NULL;
    abandon(job);
}

/*
 * evhttp stops reading while a request is answered, and so learns of a client that went away only when it writes. Read
 * on, then; but without evhttp's read callback, which takes bytes at this time for a fault of its own and ends the
 * process, and for a limited amount: they are the client's next request, and stay in the buffer until its turn.
 */
static void watch_client(struct job *job) {
    struct evhttp_connection *connection = evhttp_request_get_connection(job->request);
    struct bufferevent *stream = evhttp_connection_get_bufferevent(connection);
    bufferevent_data_cb on_write;
    bufferevent_event_cb on_event;
    void *arg;
    bufferevent_getcb(stream, NULL, &on_write, &on_event, &arg);
    bufferevent_setcb(stream, NULL, on_write, on_event, arg);
    bufferevent_setwatermark(stream, EV_READ, 0, MAX_READ_AHEAD);
    bufferevent_enable(stream, EV_READ);
    evhttp_connection_set_closecb(connection, on_client_gone, job);
}

static void unwatch_client(struct job *job) {
    struct evhttp_connection *connection = evhttp_request_get_connection(job->request);
    evhttp_connection_set_closecb(connection, NULL, NULL);
    bufferevent_setwatermark(evhttp_connection_get_bufferevent(connection), EV_READ, 0, 0);
}

/* --- The job ------------------------------------------------------------------------------------------------------ */

static void free_job(struct job *job) {
    if (job->work)
        event_free(job->work);
    free(job);
}

/* The run has ended: the lock is released, or was never had. */
static void on_ended(int status, bool ran, void *arg) {
    struct job *job = arg;
    if (job->abandoned)
        status = EVLOCK_ECANCELLED;
    if (job->request) {
        printf("%s %s: %s\n", evhttp_request_get_uri(job->request), ran ? "ran" : "did not run",
               evlock_strerror(status));
        unwatch_client(job);
        answer_status(job->request, status);
    }
    TAILQ_REMOVE(&job->server->jobs, job, link);
    free_job(job);
}

/* Ends the work, done or not; on_ended() follows when the lock is released. */
static void end_work(struct job *job) {
    job->working = 0;
    event_del(job->work);
    (void)evlock_release(job->lock, NULL, NULL);
}

static void on_worked(evutil_socket_t fd, short events, void *arg) {
    (void)fd, (void)events;
    end_work(arg);
}

/* The lock is held. The asynchronous work of this server is to let some time pass. */
static int work(evlock *lock, void *arg) {
    struct job *job = arg;
    struct timeval duration = {.tv_sec = job->work_ms / 1000, .tv_usec = job->work_ms % 1000 * 1000};
    (void)lock;
    if (event_add(job->work, &duration) != 0)
        return EVLOCK_ESYSTEM; /* the run releases, and on_ended() reports it */
    job->working = 1;
    return EVLOCK_OK;
}

/* The run will report EVLOCK_ELOST. */
static void on_lost(evlock *lock, int reason, void *arg) {
    struct job *job = arg;
    (void)lock, (void)reason;
    if (job->working)
        end_work(job);
}

/* Gives the job up, wherever it is; on_ended() follows. One that is releasing its lock already only goes on. */
static void abandon(struct job *job) {
    job->abandoned = 1;
    if (job->working)
        end_work(job);
    else
        (void)evlock_cancel(job->lock);
}

static int start_job(struct server *server, struct evhttp_request *request, const char *name, size_t length, long ms) {
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return EVLOCK_ENOMEM;
    job->server = server;
    job->request = request;
    job->work_ms = ms;
    job->work = evtimer_new(server->base, on_worked, job);

    evlock_options options = {.size = sizeof(evlock_options)};
    options.ttl_ms = server->ttl_ms;
    options.auto_renewal = true;
    options.max_wait_ms = server->wait_ms;
    options.on_lost = on_lost;
    options.arg = job;
    int status =
        job->work ? evlock_run(&job->lock, server->client, name, length, &options, work, on_ended, job) : EVLOCK_ENOMEM;
    if (status != EVLOCK_OK) {
        free_job(job);
        return status;
    }
    TAILQ_INSERT_TAIL(&server->jobs, job, link);
    watch_client(job);
    return EVLOCK_OK;
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

/* A whole number from `min` to `max`; or -1. */
static long number(const char *text, long min, long max) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || end == text || *end || value < min || value > max ? -1 : value;
}

/* The milliseconds of the query "ms=N"; -1 if they make no sense. */
static long work_ms(const struct evhttp_uri *uri) {
    const char *query = evhttp_uri_get_query(uri);
    struct evkeyvalq fields;
    if (!query)
        return DEFAULT_WORK_MS;
    if (evhttp_parse_query_str(query, &fields) != 0)
        return -1;
    const char *ms = evhttp_find_header(&fields, "ms");
    long value = ms ? number(ms, 0, MAX_WORK_MS) : DEFAULT_WORK_MS;
    evhttp_clear_headers(&fields);
    return value;
}

static void on_request(struct evhttp_request *request, void *arg) {
    struct server *server = arg;
    if (server->closing) {
        answer_status(request, EVLOCK_ECLOSED);
        return;
    }
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    long ms = uri ? work_ms(uri) : -1;
    if (!path || path[0] != '/' || ms < 0) {
        answer(request, HTTP_BADREQUEST, "Bad Request", "GET /RESOURCE?ms=N");
        return;
    }
    size_t length;
    char *name = evhttp_uridecode(path + 1, 0, &length);
    int status = name ? start_job(server, request, name, length, ms) : EVLOCK_ENOMEM;
    free(name);
    if (status != EVLOCK_OK)
        answer_status(request, status);
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

/* Every lock is given back. A moment more for the last answers to leave, and the loop ends. */
static void on_closed(int status, void *arg) {
    struct server *server = arg;
    struct timeval moment = {.tv_usec = FLUSH_MS * 1000L};
    if (status != EVLOCK_OK)
        fprintf(stderr, "http-server: some locks are left to their ttl: %s\n", evlock_strerror(status));
    if (event_base_loopexit(server->base, &moment) != 0)
        event_base_loopbreak(server->base);
}

static void end(struct server *server) {
    if (server->closing)
        return;
    server->closing = 1;
    evhttp_del_accept_socket(server->http, server->listener);
    struct job *job;
    TAILQ_FOREACH (job, &server->jobs, link)
        abandon(job);
    int status = evlock_client_close(server->client, on_closed, server);
    if (status != EVLOCK_OK) {
        evlock_client_free(server->client);
        on_closed(status, server);
    }
}

static void on_signal(evutil_socket_t number_of, short events, void *arg) {
    (void)number_of, (void)events;
    end(arg);
}

/* --- The lock server ---------------------------------------------------------------------------------------------- */

/* Every failure to connect is in the log. */
static void on_connection(evlock_client *client, enum evlock_connection now, int status, void *arg) {
    struct server *server = arg;
    (void)client, (void)status;
    if (now == EVLOCK_CONNECTED)
        server->connected = 1;
}

/* One that goes away later is waited for; one that was never there is taken for a wrong URL. */
static void on_start_over(evutil_socket_t fd, short events, void *arg) {
    struct server *server = arg;
    (void)fd, (void)events;
    if (server->connected || server->closing)
        return;
    fprintf(stderr, "http-server: no lock server in %d s\n", START_MS / 1000);
    server->failed = 1;
    end(server);
}

/* --- The program -------------------------------------------------------------------------------------------------- */

static void usage(FILE *out) {
    fputs("usage: http-server URL [--port P] [--wait MS] [--ttl MS]\n"
          "  URL        redis://host or unix:///path, as evlock_client_new() takes it\n"
          "  --port P   where to listen on 127.0.0.1 (8080); 0: any, and it is printed\n"
          "  --wait MS  how long a request waits for its lock (10000)\n"
          "  --ttl MS   the leases' length (2000)\n",
          out);
}

static long option_number(const char *option, const char *text, long min, long max) {
    long value = number(text, min, max);
    if (value < 0) {
        fprintf(stderr, "http-server: --%s takes a whole number from %ld to %ld\n", option, min, max);
        exit(2);
    }
    return value;
}

static void parse(struct server *server, int argc, char **argv) {
    static const struct option options[] = {
        {"port", required_argument, NULL, 'p'},
        {"wait", required_argument, NULL, 'w'},
        {"ttl", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'p':
            server->port = (uint16_t)option_number("port", optarg, 0, 65535);
            break;
        case 'w':
            server->wait_ms = option_number("wait", optarg, 0, 10L * 60 * 1000);
            break;
        case 't':
            server->ttl_ms = option_number("ttl", optarg, 100, 60 * 1000L);
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
    server->url = argv[optind];
}

/* Listens on the loopback interface and says where. */
static int start_http(struct server *server) {
    server->http = evhttp_new(server->base);
    if (!server->http)
        return -1;
    evhttp_set_allowed_methods(server->http, EVHTTP_REQ_GET);
    evhttp_set_timeout(server->http, (int)((server->wait_ms + MAX_WORK_MS) / 1000) + 60); /* longer than any request */
    evhttp_set_gencb(server->http, on_request, server);
    server->listener = evhttp_bind_socket_with_handle(server->http, "127.0.0.1", server->port);
    if (!server->listener)
        return -1;

    struct sockaddr_in address;
    socklen_t length = sizeof address;
    if (getsockname(evhttp_bound_socket_get_fd(server->listener), (struct sockaddr *)&address, &length) != 0)
        return -1;
    printf("listening on http://127.0.0.1:%d\n", ntohs(address.sin_port));
    return 0;
}

static int start_events(struct server *server) {
    server->base = event_base_new();
    if (!server->base)
        return -1;
    server->signals[0] = evsignal_new(server->base, SIGTERM, on_signal, server);
    server->signals[1] = evsignal_new(server->base, SIGINT, on_signal, server);
    for (int i = 0; i < 2; i++)
        if (!server->signals[i] || event_add(server->signals[i], NULL) != 0)
            return -1;
    struct timeval start = {.tv_sec = START_MS / 1000};
    return event_base_once(server->base, -1, EV_TIMEOUT, on_start_over, server, &start);
}

static int start(struct server *server) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    options.on_log = evlock_log_stderr;
    options.on_connection = on_connection;
    options.arg = server;
    options.connect_timeout_ms = CONNECT_MS;
    if (start_events(server) != 0) {
        fputs("http-server: no event loop\n", stderr);
        return -1;
    }
    int status = evlock_client_new_libevent(&server->client, server->base, server->url, &options);
    if (status != EVLOCK_OK) {
        fprintf(stderr, "http-server: %s: %s\n", evlock_strerror(status), evlock_last_error());
        return -1;
    }
    if (start_http(server) != 0) {
        perror("http-server: listen");
        evlock_client_free(server->client);
        return -1;
    }
    return 0;
}

int main(int argc, char **argv) {
    struct server server = {
        .port = 8080, .wait_ms = 10000, .ttl_ms = 2000, .jobs = TAILQ_HEAD_INITIALIZER(server.jobs)};
    parse(&server, argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);

    int started = start(&server) == 0;
    server.failed |= !started || event_base_dispatch(server.base) < 0;
    if (server.http)
        evhttp_free(server.http);
    for (int i = 0; i < 2; i++)
        if (server.signals[i])
            event_free(server.signals[i]);
    if (server.base)
        event_base_free(server.base);
    return server.failed;
}
