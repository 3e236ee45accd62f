/*
 * What a fence is for: a holder is stopped for longer than its lease, and its late write is refused.
 *
 *     fence redis://127.0.0.1
 *     fence --no-check redis://127.0.0.1     the store does not look at fences: the late write destroys the newer one
 *
 * No lock can prevent a late write by itself: between the moment when a holder sees that it holds and the moment when
 * its write arrives, any time may pass. So the write brings the fence along, a number that grows with every
 * acquisition, and the store refuses one that is smaller than the greatest it has seen. This store is a script in
 * Redis, run by a process of its own. In a database it is one statement, and no row matched means refused:
 *
 *     UPDATE record SET value = :value, fence = :fence WHERE id = :id AND fence <= :fence
 *
 * Three processes: two workers that want the same lock, and the director, who owns the store and makes the trouble.
 * Exit status: 0 when the late write was refused; 1 when it got through, or anything failed; 2 for a wrong command
 * line.
 */
#include <event2/event.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TTL_MS = 1000, WAIT_MS = 10000, CONNECT_MS = 900 };

/* What the director and a worker say to each other. */
enum word { FAILED, GO, READY, WRITE, WRITTEN, REFUSED };

struct message {
    uint64_t word;
    uint64_t fence; /* with WRITE */
};

static int64_t began;

__attribute__((format(printf, 2, 3))) static void say(const char *who, const char *format, ...) {
    va_list arguments;
    printf("%6.3f  %-8s  ", (double)(evlock_clock_us() - began) / 1e6, who);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

static bool send_message(int to, enum word word, uint64_t fence) {
    struct message message = {.word = word, .fence = fence};
    return send(to, &message, sizeof message, MSG_NOSIGNAL) == (ssize_t)sizeof message;
}

static bool receive_message(int from, struct message *ret) {
    return recv(from, ret, sizeof *ret, 0) == (ssize_t)sizeof *ret;
}

static bool await_word(int from, enum word word) {
    struct message message;
    return receive_message(from, &message) && message.word == word;
}

/* --- The store: one record, its value and the greatest fence that wrote it ---------------------------------------- */

static const char record[] = "evlock-fence-record";

static const char checked_write[] = "local greatest = redis.call('HGET', KEYS[1], 'fence') "
                                    "if greatest and tonumber(ARGV[1]) < tonumber(greatest) then return 0 end "
                                    "redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'value', ARGV[2]) "
                                    "return 1";

static const char unchecked_write[] = "redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'value', ARGV[2]) "
                                      "return 1";

static redisContext *open_store(const char *url) {
    char host[256];
    int port = 6379;
    struct timeval connect = {.tv_usec = CONNECT_MS * 1000L}, command = {.tv_sec = WAIT_MS / 1000};
    redisContext *store = NULL;

    if (strncmp(url, "unix://", 7) == 0)
        store = redisConnectUnixWithTimeout(url + 7, connect);
    else if (!strchr(url, '@') && sscanf(url, "redis://%255[^:/]:%d", host, &port) >= 1)
        store = redisConnectWithTimeout(host, port, connect);
    if (store && store->err == 0 && redisSetTimeout(store, command) == REDIS_OK)
        return store;
    fprintf(stderr, "fence: no server: %s\n",
            store ? store->errstr : "the URL is not redis://host:port or unix:///path");
    if (store)
        redisFree(store);
    return NULL;
}

/* Writes `value` into the record, unless a greater fence has written it. WRITTEN, REFUSED or FAILED. */
static enum word write_record(redisContext *store, const char *script, uint64_t fence, const char *value) {
    char number[24];
    enum word result = FAILED;

    snprintf(number, sizeof number, "%" PRIu64, fence);
    redisReply *reply = redisCommand(store, "EVAL %s 1 %s %s %s", script, record, number, value);
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        result = reply->integer == 1 ? WRITTEN : REFUSED;
    else
        fprintf(stderr, "fence: the store failed: %s\n", reply ? reply->str : store->errstr);
    freeReplyObject(reply);
    return result;
}

static bool print_record(redisContext *store) {
    redisReply *reply = redisCommand(store, "HGET %s value", record);
    bool good = reply && reply->type == REDIS_REPLY_STRING;
    if (good)
        say("store", "what remains is the write of %s", reply->str);
    freeReplyObject(reply);
    return good;
}

/* --- A worker: takes the lock with a fence, and writes under it --------------------------------------------------- */

struct worker {
    const char *name;
    int director;
    evlock_client *client;
    evlock *lock;
    bool failed;
};

/* With nothing left to wait for, the client goes, and with it the last event of the loop. */
static void end(struct worker *worker) {
    evlock_free(worker->lock);
    worker->lock = NULL;
    if (evlock_client_close(worker->client, NULL, NULL) != EVLOCK_OK)
        evlock_client_free(worker->client);
}

static void fail(struct worker *worker, const char *what, int status) {
    fprintf(stderr, "fence: %s: %s: %s (%s)\n", worker->name, what, evlock_strerror(status), evlock_last_error());
    worker->failed = true;
    end(worker);
}

static void on_connection(evlock_client *client, enum evlock_connection now, int status, void *arg) {
    const struct worker *worker = arg;
    (void)client;
    if (now == EVLOCK_AWAY)
        fprintf(stderr, "fence: %s: %s: %s\n", worker->name, evlock_strerror(status), evlock_last_error());
}

static void on_lost(evlock *lock, int reason, void *arg) {
    struct worker *worker = arg;
    (void)lock;
    say(worker->name, "is told that its lease is lost: %s", evlock_strerror(reason));
    end(worker);
}

static void on_released(evlock *lock, int status, void *arg) {
    struct worker *worker = arg;
    (void)lock;
    if (status != EVLOCK_OK) {
        fail(worker, "release", status);
        return;
    }
    say(worker->name, "has released the lock");
    end(worker);
}

/* The worker does everything right: it checks, and then writes. But what lies between the two may take any time; here
 * it is a wait for the director, which stops the whole process, as a page of memory or a busy machine could. */
static bool check_and_write(struct worker *worker) {
    struct message answer;
    uint64_t fence = evlock_fence(worker->lock);

    if (!evlock_is_held(worker->lock))
        return true; /* on_lost is about to tell why */
    say(worker->name, "sees that it holds the lock, and is about to write");
    if (!send_message(worker->director, READY, 0) || !await_word(worker->director, GO) ||
        !send_message(worker->director, WRITE, fence) || !receive_message(worker->director, &answer))
        return false;
    say(worker->name, answer.word == WRITTEN ? "has written" : "learns that its write was refused");
    return true;
}

static void on_acquired(evlock *lock, int status, void *arg) {
    struct worker *worker = arg;
    if (status != EVLOCK_OK) {
        fail(worker, "acquire", status);
        return;
    }
    say(worker->name, "has the lock, with the fence %" PRIu64, evlock_fence(lock));
    if (!check_and_write(worker)) {
        fail(worker, "the director is gone", EVLOCK_ECANCELLED);
        return;
    }
    if (!evlock_is_held(lock))
        return; /* on_lost is about to tell why */
    status = evlock_release(lock, on_released, worker);
    if (status != EVLOCK_OK)
        fail(worker, "release", status);
}

static int acquire(struct worker *worker, struct event_base *base, const char *url) {
    evlock_client_options client_options = {.size = sizeof(evlock_client_options)};
    client_options.connect_timeout_ms = CONNECT_MS;
    client_options.on_connection = on_connection;
    client_options.arg = worker;
    int status = evlock_client_new_libevent(&worker->client, base, url, &client_options);
    if (status != EVLOCK_OK)
        return status;

    evlock_options options = {.size = sizeof(evlock_options)};
    options.ttl_ms = TTL_MS;
    options.auto_renewal = true; /* of no use to a process that is stopped */
    options.on_lost = on_lost;
    options.arg = worker;
    status = evlock_new(&worker->lock, worker->client, "evlock-fence", EVLOCK_CSTRING, &options);

    evlock_acquire_options fenced = {.size = sizeof(evlock_acquire_options)};
    fenced.fence = EVLOCK_ON;
    fenced.max_wait_ms = WAIT_MS;
    if (status == EVLOCK_OK)
        status = evlock_acquire(worker->lock, &fenced, on_acquired, worker);
    return status;
}

/* The worker's process, from the director's word on. Returns the exit status. */
static int run_worker(const char *name, int director, const char *url) {
    struct worker worker = {.name = name, .director = director};
    if (!await_word(director, GO))
        return 1;
    struct event_base *base = event_base_new();
    if (!base) {
        fputs("fence: no event loop\n", stderr);
        return 1;
    }
    int status = acquire(&worker, base, url);
    if (status == EVLOCK_OK) {
        event_base_dispatch(base);
    } else {
        fprintf(stderr, "fence: %s: %s\n", evlock_strerror(status), evlock_last_error());
        evlock_free(worker.lock);
        evlock_client_free(worker.client);
        worker.failed = true;
    }
    event_base_free(base);
    return worker.failed;
}

/* --- The director: owns the store, and makes the trouble ---------------------------------------------------------- */

struct process {
    const char *name;
    pid_t pid; /* 0: not started */
    int socket;
};

/* Forked before there is any event loop, client or connection. It ends with the director, even while it is stopped. */
static bool start(struct process *process, const char *name, const char *url) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        perror("fence: socketpair");
        return false;
    }
    pid_t director = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        close(sockets[0]);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != director)
            exit(1);
        exit(run_worker(name, sockets[1], url));
    }
    close(sockets[1]);
    if (pid < 0) {
        perror("fence: fork");
        close(sockets[0]);
        return false;
    }
    *process = (struct process){name, pid, sockets[0]};
    return true;
}

/* Returns when the process has stopped; not before, as kill() alone would. */
static bool stop(const struct process *process) {
    int status;
    say("director", "stops %s, for longer than its lease of %d ms", process->name, TTL_MS);
    return kill(process->pid, SIGSTOP) == 0 && waitpid(process->pid, &status, WUNTRACED) == process->pid &&
           WIFSTOPPED(status);
}

static bool proceed(const struct process *process) {
    say("director", "lets %s go on", process->name);
    return kill(process->pid, SIGCONT) == 0;
}

static bool let_go(const struct process *process) {
    return send_message(process->socket, GO, 0);
}

/* Does the write that a worker asks for. WRITTEN, REFUSED or FAILED. */
static enum word serve(const struct process *process, redisContext *store, const char *script) {
    struct message write;
    if (!receive_message(process->socket, &write) || write.word != WRITE)
        return FAILED;
    enum word result = write_record(store, script, write.fence, process->name);
    if (result != FAILED)
        say("store", "%s the write of %s, with the fence %" PRIu64, result == WRITTEN ? "takes" : "REFUSES",
            process->name, write.fence);
    return result != FAILED && send_message(process->socket, result, 0) ? result : FAILED;
}

/* What became of the late write: WRITTEN, REFUSED or FAILED. */
static enum word direct(const struct process *first, const struct process *second, redisContext *store,
                        const char *script) {
    if (!let_go(first) || !await_word(first->socket, READY) || !stop(first))
        return FAILED;
    if (!let_go(second) || !await_word(second->socket, READY) || !let_go(second) ||
        serve(second, store, script) != WRITTEN)
        return FAILED;
    return let_go(first) && proceed(first) ? serve(first, store, script) : FAILED;
}

/* Waits for the process to end by itself, or ends it. Whether all was well with it. */
static bool finish(const struct process *process, bool well) {
    int status;
    if (!process->pid)
        return false;
    if (!well)
        kill(process->pid, SIGKILL);
    close(process->socket);
    return waitpid(process->pid, &status, 0) == process->pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Returns the exit status. */
static int run(const char *url, const char *script) {
    struct process first = {0}, second = {0};
    enum word late = FAILED;
    if (start(&first, "worker-1", url) && start(&second, "worker-2", url)) {
        redisContext *store = open_store(url);
        if (store) {
            late = direct(&first, &second, store, script);
            if (late != FAILED && !print_record(store))
                late = FAILED;
            redisFree(store);
        }
    }
    bool first_well = finish(&first, late != FAILED), second_well = finish(&second, late != FAILED);
    if (late == FAILED || !first_well || !second_well) {
        fputs("fence: it could not be shown\n", stderr);
        return 1;
    }
    puts(late == REFUSED ? "the late write was refused" : "THE LATE WRITE GOT THROUGH");
    return late == REFUSED ? 0 : 1;
}

int main(int argc, char **argv) {
    bool checks = !(argc == 3 && strcmp(argv[1], "--no-check") == 0);
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        puts("usage: fence [--no-check] URL");
        return 0;
    }
    if ((checks && argc != 2) || argv[argc - 1][0] == '-') {
        fputs("usage: fence [--no-check] URL\n", stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    began = evlock_clock_us();
    return run(argv[argc - 1], checks ? checked_write : unchecked_write);
}
